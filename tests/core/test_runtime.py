"""Shutdown and registration (RHO-SHUT-1…7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rho_core import effects as fx
from rho_core import inputs as inp
from rho_core.runtime import Runtime, step

ACTIONS = st.lists(
    st.one_of(
        st.builds(inp.Admit, st.sampled_from("abcd")),
        st.builds(inp.Released, st.sampled_from("abcd")),
        st.builds(inp.Shutdown, st.just("c")),
    ),
    max_size=12,
)


@given(ACTIONS)
def test_the_first_shutdown_cancels_and_counts_exactly_what_is_registered(actions: list[inp.RuntimeInput]) -> None:
    runtime, registered, shut = Runtime(), [], False
    for action in actions:
        after = step(runtime, action)
        runtime = after.state
        match action:
            case inp.Admit(operation):
                assert after.effects == ((fx.Refused if shut else fx.Admitted)(operation),)
                if not shut:
                    registered.append(operation)
            case inp.Released(operation):
                registered = [r for r in registered if r != operation]
            case inp.Shutdown():
                cancels = [] if shut else [fx.CancelOperation(r) for r in registered]
                assert after.effects == (*cancels, fx.Reply("c", len(cancels)))
                shut = True
    assert runtime.shut is shut


def test_an_input_of_another_type_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="not an input of the runtime"):
        step(Runtime(), inp.Cancel())  # type: ignore[arg-type]
