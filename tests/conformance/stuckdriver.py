"""A driver of a runtime that takes a start and then does nothing: it breaks a few rules, always the same ones."""

from __future__ import annotations

from typing import Any


class Stuck:
    """Declares so little that hardly anything can be asked of it."""

    def __init__(self) -> None:
        self.step, self.started = 0, 0

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": 1,
            "name": "stuck",
            "version": "0",
            "profiles": ["common"],
            "capabilities": ["start", "outcome", "observe.outcome", "observe.busy", "observe.waiting_on"],
            "time": "virtual",
            "deterministic": True,
        }

    def open(self, config: dict[str, Any]) -> dict[str, Any]:
        return {}

    def perform(self, stimuli: list[dict[str, Any]]) -> dict[str, Any]:
        self.step += 1
        seen: list[dict[str, Any]] = []
        for stimulus in stimuli:
            if "start" in stimulus:
                self.started += 1
                reply = {"name": f"r{self.started}", "value": "ok"}
                seen.append({"seq": self.step, "step": self.step, "at_ms": 0, "Reply": reply})
        return {"observations": seen, "waiting_on": [], "facts": {"busy": self.started > 0}}

    def close(self) -> None:
        return None


def factory() -> Stuck:
    return Stuck()
