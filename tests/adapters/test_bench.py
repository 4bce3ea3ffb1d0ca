"""The runtime's benchmark: every figure is there, and what is not installed is said to be missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from rho_adapters import bench
from rho_adapters.bench.peers import PEERS


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "DELTAS", 300)
    monkeypatch.setattr(bench, "ROUNDS", 1)


@pytest.mark.usefixtures("small")
def test_every_figure_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)  # as if it were not installed
    figures = bench.figures()
    assert figures["peer_openai-agents_deltas_per_second"]["value"] is None
    assert "not installed" in figures["peer_openai-agents_deltas_per_second"]["unit"]
    assert find_spec("pydantic_ai") is not None
    assert figures["peer_pydantic-ai_deltas_per_second"]["value"] > 0
    assert figures["stream_ratio_to_fastest_peer"]["value"] > 0
    for name in ("stream_deltas_per_second", "stream_cost_growth", "cancel_full_channel_ms", "startup_ms"):
        assert figures[name]["value"] > 0, name
    assert figures["slow_consumer_kib"]["value"] < 100


@pytest.mark.usefixtures("small")
def test_no_peer_is_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(PEERS):
        monkeypatch.delitem(PEERS, name)
    figures = bench.figures()
    assert figures["stream_ratio_to_fastest_peer"]["value"] is None
    assert "no peer" in figures["stream_ratio_to_fastest_peer"]["unit"]
