"""Every scope by name: `tiny` for tests, `small` for each change, `medium` for every merge, `large` for a night."""

from __future__ import annotations

from .configurations import SCOPES as NARROW
from .configurations import Config
from .wider import LARGE, MEDIUM

SCOPES: dict[str, tuple[Config, ...]] = {**NARROW, "medium": MEDIUM, "large": LARGE}
JUDGED = frozenset({"small"})
"""Scopes that claim to take every declared exit of the tables; the others go deeper into a part of them."""
