"""A live session as a recorded trace: see `recorder.Recording`."""

from __future__ import annotations

from rho_adapters.recording.recorder import Recording

__all__ = ["Recording"]
