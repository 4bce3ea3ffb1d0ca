"""`enabled` and `why_not`: what they say is what `step` does."""

from __future__ import annotations

from typing import Any

import pytest

from rho_core import effects as fx
from rho_core import inputs as inp
from rho_core.config import Policy, ToolDecl
from rho_core.explain import enabled, why_not
from rho_core.messages import Text, ToolCall
from rho_core.session import Session, new_session, step


def after(*values: Any, capacity: int = 64) -> Session:
    at = new_session("s1", Policy(event_capacity=capacity, tools=(ToolDecl("t"),)))
    for value in (inp.Start("c1", "r1", (Text("go"),)), inp.Admitted("r1"), *values):
        at = step(at, value).state
    return at


def ask(at: Session, value: Any) -> tuple[str, tuple[str, ...]] | None:
    found = why_not(at, value)
    return None if found is None else (found.why, found.rules)


def test_a_session_at_rest_takes_commands() -> None:
    at = new_session("s1", Policy())
    assert inp.Start in enabled(at) and inp.TextDelta not in enabled(at)
    assert ask(at, inp.Start("c1", "r1", ())) is None
    assert ask(at, inp.TextDelta(1, 1, "x")) == ("late", ())
    assert ask(at, inp.Steer("c1", "s", ())) == ("rejected", ("RHO-STEER-2",))


def test_a_streaming_run() -> None:
    at = after()
    assert inp.TextDelta in enabled(at) and inp.Cancel in enabled(at) and inp.Prepared not in enabled(at)
    assert ask(at, inp.TextDelta(1, 1, "x")) is None
    stale = why_not(at, inp.ModelReturned(1, 2, ()))
    assert stale is not None and stale.why == "stale" and "(1, 2), open is (1, 1)" in stale.text
    assert ask(at, inp.Prepared("A", inp.Plan())) == ("no row", ())
    assert ask(at, inp.Start("c2", "r2", ())) == ("rejected", ("RHO-DROP-2",))
    assert ask(at, inp.ForRun("r0", inp.Cancel())) == ("late", ())
    assert ask(at, inp.ForRun("r1", inp.Cancel())) is None


def test_a_blocked_run_names_the_reader() -> None:
    at = after(inp.TextDelta(1, 1, "a"), capacity=2)
    assert inp.TextDelta not in enabled(at) and inp.Taken in enabled(at)
    assert ask(at, inp.TextDelta(1, 1, "b")) == ("blocked", ("RHO-BUF-4",))


def test_what_is_not_open_is_unknown() -> None:
    at = after(inp.ModelReturned(1, 1, (ToolCall("A", "t", "{}"),)))
    found = why_not(at, inp.Prepared("B", inp.Plan()))
    assert found is not None and (found.why, bool(found.rules)) == ("unknown", True)


@pytest.mark.parametrize("run", ["r1", "r9"])
def test_a_held_input_keeps_its_address(run: str) -> None:
    """What NotReady holds is what was offered: offered again without its address it might reach another run."""
    at = after(inp.TextDelta(1, 1, "a"), capacity=2)
    value = inp.ForRun(run, inp.TextDelta(1, 1, "b"))
    expected = (fx.NotReady(value),) if run == "r1" else ()
    assert step(at, value).effects == expected
    assert step(at, value).state == at
