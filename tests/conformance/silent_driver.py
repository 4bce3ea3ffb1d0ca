"""Two drivers that nothing can be said of: one declares nothing, the other answers nonsense."""

from __future__ import annotations

from typing import Any


class Silent:
    """Keeps the protocol, can do nothing, and says so."""

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": 1,
            "name": "silent",
            "version": "0",
            "profiles": ["rho"],
            "capabilities": [],
            "time": "virtual",
            "deterministic": True,
        }

    def open(self, config: dict[str, Any]) -> dict[str, Any]:
        return {}

    def perform(self, stimuli: list[dict[str, Any]]) -> dict[str, Any]:
        return {"observations": [], "waiting_on": [], "facts": {}}

    def close(self) -> None:
        return None


class Broken(Silent):
    def hello(self) -> dict[str, Any]:
        return {"protocol": "one"}


def factory() -> Silent:
    return Silent()


def broken() -> Broken:
    return Broken()
