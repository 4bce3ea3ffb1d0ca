"""Digests: equal values, equal bytes, in any process; different values, different bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import wire
from rho_core.config import Policy, ToolDecl
from rho_core.digest import digest
from rho_core.errors import ErrorName, ProviderErrorKind
from rho_core.events import RetryableFailure
from rho_core.ledger import Ledger
from rho_core.messages import Assistant, Text, ToolCall, User, user
from rho_core.record import record
from rho_core.rope import Rope
from rho_core.session import new_session, step

ROOT = Path(__file__).parents[2]

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Text, st.text(max_size=3)),
        st.builds(ToolCall, st.text(max_size=2), st.text(max_size=2), st.text(max_size=2)),
        st.builds(lambda t: Ledger(t), st.lists(inner, max_size=2).map(tuple)),
    ),
    max_leaves=8,
)


def shape(value: object) -> object:
    """A value as `repr` tells it: `==` alone takes True for 1."""
    return repr(value)


@given(VALUES, VALUES)
@settings(derandomize=True, max_examples=300)
def test_a_digest_tells_values_apart(a: object, b: object) -> None:
    assert (digest(a) == digest(b)) is (shape(a) == shape(b))


@given(VALUES)
@settings(derandomize=True, max_examples=50)
def test_a_digest_tells_a_value_from_its_wrapping(value: object) -> None:
    assert len({digest(value), digest((value,)), digest(((value,),)), digest((value, None))}) == 4


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("ab", "c"), ("a", "bc")),
        ((("a",), "b"), (("a", "b"),)),
        ("1", 1),
        (1, True),
        (0, False),
        (None, ()),
        ("", ()),
        (Text("x"), User((Text("x"),))),
        (User(()), Assistant(())),
        ("\ud83d\ude00", "\U0001f600"),
        (-1, 1),
    ],
)
def test_neighbours_differ(a: object, b: object) -> None:
    assert digest(a) != digest(b)


def test_equal_values_of_other_classes_of_text_agree() -> None:
    assert digest(RetryableFailure(ProviderErrorKind.TIMEOUT)) == digest(RetryableFailure("Timeout"))
    assert digest(ErrorName.TOOL) == digest("Tool")


PROGRAM = """
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import wire
from rho_core.config import Policy, ToolDecl
from rho_core.digest import digest
from rho_core.ledger import Ledger
from rho_core.messages import user
print(digest(Ledger((user("h\\u00e9llo \\ud800"),), 2**70)))
"""


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_bytes_are_the_same_in_every_process(seed: str) -> None:
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    out = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == digest(Ledger((user("héllo \ud800"),), 2**70))


def test_the_bytes_are_those_of_the_last_release() -> None:
    """Journals keep digests: a change here needs a new format."""
    assert digest((None, True, -7, "é", Text("x"))) == (
        "732f2f750624b9f76fb2ff87c971d44bc9f112a413bb9038fe8bc75a565b54a6"
    )


@record
class Cell:
    """The worst shape: a chain as deep as it is long."""

    head: str
    rest: Cell | None


def test_depth_and_length_do_not_matter() -> None:
    chain, nest, rope = None, (), Rope()
    for i in range(100_000):
        chain = Cell("x", chain)
        nest = (nest,)  # type: ignore[assignment]
        rope = rope.append(f"delta {i} ")
    seen = {digest(chain), digest(nest), digest(rope)}
    assert len(seen) == 3
    assert digest(rope) != digest(rope.append("!"))
    while chain is not None:  # taken apart from the outside: the interpreter's own way down is recursive
        chain = chain.rest


class Unlike:
    """No record."""


@pytest.mark.parametrize("value", [1.5, [1], {"a": 1}, {1}, frozenset({1}), b"x", Unlike(), Text, object()])
def test_what_has_no_stable_bytes_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no digest of"):
        digest((value,))


JOURNAL = (
    inp.Start("c1", "r", (Text("go"),)),
    inp.Admitted("r"),
    inp.Taken(),
    inp.TextDelta(1, 1, "hel"),  # the channel is full: offered again below
    inp.Taken(),
    inp.TextDelta(1, 1, "hel"),
    inp.Taken(),
    inp.CallDelta(1, 1, 0, "A", "read", '{"path":'),
    inp.Taken(),
    inp.Steer("c2", "s1", (Text("faster"),)),
    inp.ModelReturned(1, 1, (Text("hello"), ToolCall("A", "read", "{}"))),
    inp.Taken(),
    inp.Taken(),
    inp.Prepared("A", inp.Plan()),
    inp.Taken(),
    inp.ToolReturned("A", ev.Success("done")),
    inp.Taken(),
    inp.Cancel("c3"),
    inp.Taken(3),
)
"""A run at the narrowest channel: blocked sends, a stream, a steer, a batch, a cancel."""


def test_a_run_resumed_from_text_at_every_input_goes_the_same_way() -> None:
    session = resumed = new_session("s", Policy(event_capacity=1, tools=(ToolDecl("read"),)))
    seen: list[str] = []
    for item in JOURNAL:
        went = step(session, item)
        read = cast(inp.SessionInput, wire.load_input(wire.dump_input(item)))
        again = step(wire.load_state(wire.dump_state(resumed)), read)
        session, resumed = went.state, again.state
        assert again == went
        assert digest(again) == digest(went)
        seen.append(digest(session))
        assert tuple(wire.load_effect(wire.dump_effect(e)) for e in went.effects) == went.effects
    assert len(set(seen)) > 10  # it did go somewhere
    assert not session.busy and session.ledger.revision == 1
