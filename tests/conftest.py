"""Deterministic by default: the same examples on every machine, no deadline on a shared one."""

from hypothesis import settings

settings.register_profile("rho", derandomize=True, deadline=None, database=None)
settings.load_profile("rho")
