"""Lets the tests of this folder share helpers under their full names, whatever way pytest is started."""

import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """What is marked `anyio` here runs on both loops."""
    return str(request.param)
