"""A store whose writer is killed at any point holds the last acknowledged snapshot or the one begun after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.store_child import Figures, sweep


def _sound(figures: Figures) -> None:
    print(figures)
    assert (figures.torn, figures.lost) == (0, 0)
    assert figures.inside > 0  # else no kill hit what the test is about


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_no_save_is_torn_or_lost(kind: str, tmp_path: Path) -> None:
    figures = sweep(kind, tmp_path, kills=25, seed=7)
    assert figures.kills == 25 and figures.saves > 300
    _sound(figures)


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_no_big_save_is_torn_or_lost(kind: str, tmp_path: Path) -> None:
    _sound(sweep(kind, tmp_path, kills=8, seed=7, size=1_000_000, saves=2, ms=30))
