"""The wire: what is written is read back equal; what is not ours is refused with what, where and rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_core import effects as fx
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import wire
from rho_core.capture import NOTHING, Capture, call_delta, context_block, generation_tokens, seal, text_delta
from rho_core.codec import name_of
from rho_core.config import Policy
from rho_core.digest import digest
from rho_core.ledger import Ledger
from rho_core.messages import Identity, Message, Text, User, user
from rho_core.rope import Rope
from rho_core.run import state as run_state
from rho_core.run.state import Blocked, Core, Hold, Run, Settled
from rho_core.session import Active, Session, new_session

SCHEMAS = Path(__file__).parents[2] / "spec" / "schemas"
GIVEN = settings(derandomize=True, max_examples=12, deadline=None)

Codec = tuple[Callable[[Any], str], Callable[[str], Any]]
CODECS: dict[str, Codec] = {
    "event": (wire.dump_event, wire.load_event),
    "input": (wire.dump_input, wire.load_input),
    "effect": (wire.dump_effect, wire.load_effect),
    "message": (wire.dump_message, wire.load_message),
    "snapshot": (wire.dump_snapshot, wire.load_snapshot),
    "state": (wire.dump_state, wire.load_state),
}
MEMBERS: dict[str, tuple[type, ...]] = {
    "event": get_args(ev.Event),
    "input": get_args(inp.SessionInput | inp.RuntimeInput),
    "effect": get_args(fx.Effect),
    "message": get_args(Message),
}
KINDS = [(name, cls) for name, members in MEMBERS.items() for cls in members]
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=5),
    int: st.integers(-(2**70), 2**70),
    bool: st.booleans(),
    NoneType: st.none(),
}


def streamed(pieces: list[str]) -> Capture:
    """A capture with a bit of everything, from a stream: not any tree is one."""
    capture = NOTHING
    for index, piece in enumerate(pieces):
        capture = text_delta(capture, piece * 40)
        capture = call_delta(capture, inp.CallDelta(1, 1, index % 2, "A", "read", piece * 90))
        capture = context_block(capture, inp.ContextBlock(1, 1, "k", piece, index), Identity())
        capture = seal(generation_tokens(capture, ev.Reported(index)))
    return text_delta(capture, "end")


CAPTURES = st.lists(st.text(st.characters(), max_size=4), max_size=40).map(streamed)


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Every value an annotation allows. (Hypothesis' `from_type` never draws a field that has a default.)"""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Capture:
        return CAPTURES
    if hint in SCALARS:
        return SCALARS[hint]
    if origin in (Union, UnionType):
        return st.one_of(*map(values, args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        if args[-1] is ...:
            return st.lists(st.deferred(lambda: values(args[0])), max_size=2).map(tuple)
        return st.tuples(*map(values, args))
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    hints = get_type_hints(hint)
    if hint is fx.NotReady:
        hints["input"] = inp.SessionInput
    return st.builds(hint, **{f.name: values(hints[f.name]) for f in fields(hint)})


@pytest.mark.parametrize(("name", "cls"), KINDS, ids=lambda x: getattr(x, "__name__", x))
def test_round_trip(name: str, cls: type) -> None:
    dump, load = CODECS[name]

    @given(values(cls))
    @GIVEN
    def check_one(value: Any) -> None:
        text = dump(value)
        back = load(text)
        assert back == value and type(back) is cls
        assert dump(back) == text
        assert json.loads(text)["kind"] == value.kind

    check_one()


def test_kinds_of_one_union_differ() -> None:
    for members in MEMBERS.values():
        kinds = [get_args(get_type_hints(m)["kind"]) for m in members]
        assert len(set(kinds)) == len(kinds)


# --- refused on the way in ----------------------------------------------------------------------------------

KIND, FIELDS, JSON, TYPES = "known kind", "fields are those", "text is JSON", "taken strictly"


@pytest.mark.parametrize(
    ("name", "text", "where", "rule"),
    [
        ("event", '{"kind": "compacted"}', "event", KIND),
        ("event", '{"run": "r", "revision": 1}', "event", KIND),
        ("event", '{"kind": 1}', "event", KIND),
        (
            "message",
            '{"kind": "user", "content": [{"kind": "video", "data": ""}]}',
            "message.user.content[0]",
            KIND,
        ),
        ("message", '{"kind": "user", "content": [{"text": "x"}]}', "message.user.content[0]", KIND),
        ("effect", '{"kind": "not_ready", "input": {"kind": "?"}}', "effect.not_ready.input", KIND),
        ("event", '{"kind": "started", "run": "r"}', "event.started.revision", FIELDS),
        ("event", '{"kind": "started", "run": "r", "revision": 1, "x": 1}', "event.started.x", FIELDS),
        ("message", '{"kind": "aborted_assistant", "content": [], "reasoning": "r"}', ".reasoning", FIELDS),
        ("event", '{"kind": "started", "run": "r", "revision": "1"}', "event.started.revision", TYPES),
        ("event", '{"kind": "started", "run": "r", "revision": 1.0}', "event.started.revision", TYPES),
        ("event", '{"kind": "started", "run": "r", "revision": true}', "event.started.revision", TYPES),
        ("event", '{"kind": "started", "run": null, "revision": 1}', "event.started.run", TYPES),
        (
            "input",
            '{"kind": "compactor_failed", "error": {"name": "Oops", "message": ""}}',
            "error.name",
            TYPES,
        ),
        ("event", "[]", "event", TYPES),
        ("event", "null", "event", TYPES),
        ("event", "", "event", JSON),
        ("event", '{"kind": "cancelled", "revision": NaN}', "event", TYPES),
        ("event", '{"kind": "provider_diagnostic", "detail": "\\ud800"}', "event", JSON),
        ("event", "[" * 100_000, "event", JSON),
        ("snapshot", "{", "snapshot", JSON),
        ("snapshot", "[" * 100_000, "snapshot", JSON),
    ],
)
def test_bad_text(name: str, text: str, where: str, rule: str) -> None:
    with pytest.raises(wire.WireError) as caught:
        CODECS[name][1](text)
    assert where in caught.value.where
    assert rule in caught.value.rule
    assert str(caught.value).startswith(caught.value.where)
    assert caught.value.what


@given(st.sampled_from(sorted(CODECS)), st.text() | st.binary())
@settings(derandomize=True, max_examples=100)
def test_any_text_is_read_or_refused(name: str, text: str | bytes) -> None:
    with pytest.raises(wire.WireError):
        CODECS[name][1](text)  # type: ignore[arg-type]


# --- refused on the way out ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("event", user("x")),
        ("event", None),
        ("message", ev.Cancelled(1)),
        ("effect", inp.Admit("o")),
        ("input", fx.Admit("o")),
        ("event", ev.Cancelled("1")),  # type: ignore[arg-type]
        ("message", User(("x",))),  # type: ignore[arg-type]
        ("message", User([Text("x")])),  # type: ignore[arg-type]
        ("effect", fx.NotReady("x")),
        ("message", user("\ud83d")),
    ],
)
def test_what_could_not_be_read_is_not_written(name: str, value: Any) -> None:
    with pytest.raises(wire.WireError) as caught:
        CODECS[name][0](value)
    assert caught.value.where == name


# --- states in the middle of a run --------------------------------------------------------------------------

PHASES = get_args(run_state.Phase)
CONTINUATIONS = get_args(run_state.Continuation)
CORE = Core("s", "r", Policy(), Ledger((user("before"),), 4), (user("half \ud83d"),))


def running(run: Run) -> Session:
    """A session with that run inside, whatever else it has."""
    session = new_session("s", Policy(), metadata=(("a", "b"),), cache_key="k")
    return replace(session, phase=Active(run))


def survives(session: Session) -> None:
    text = wire.dump_state(session)
    back = wire.load_state(text)
    assert back == session
    assert digest(back) == digest(session)
    assert wire.dump_state(back) == text
    assert text.isascii()


@pytest.mark.parametrize("cls", PHASES, ids=lambda c: c.__name__)
def test_every_phase_survives(cls: type) -> None:
    @given(values(cls))
    @GIVEN
    def check_one(phase: Any) -> None:
        survives(running(Run(phase, 3, None, CORE)))

    check_one()


@pytest.mark.parametrize("cls", CONTINUATIONS, ids=lambda c: c.__name__)
def test_every_continuation_survives(cls: type) -> None:
    @given(values(tuple[ev.Event, ...]), st.booleans(), values(cls))
    @GIVEN
    def check_one(sends: tuple[ev.Event, ...], cancellable: bool, then: Any) -> None:
        survives(running(Run(Settled("Idle"), 0, Blocked(sends, cancellable, then), CORE)))

    check_one()


@given(values(Core))
@GIVEN
def test_everything_around_the_phase_survives(core: Core) -> None:
    survives(running(Run(Settled("Idle"), 3, None, core)))


def test_a_long_stream_survives() -> None:
    capture = NOTHING
    for index in range(20_000):
        capture = text_delta(capture, f"delta {index} ")
    turn = run_state.Turn((user("x"),))
    survives(running(Run(run_state.Streaming(turn, 1, capture), 3, None, CORE)))


def a_state() -> dict[str, Any]:
    blocked = Blocked((ev.Cancelled(1),), True, Hold())
    text = wire.dump_state(running(Run(Settled("Idle"), 3, blocked, CORE)))
    document: dict[str, Any] = json.loads(text)
    return document


RUN = ("state", "phase", "run")


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        (("state_version",), 2, "known versions"),
        (("state_version",), True, "known versions"),
        (("state",), None, TYPES),
        (("state", "kind"), "session.Sessions", "class that a session holds"),
        ((*RUN, "phase", "kind"), "run.state.Blocked", "class that a session holds"),
        ((*RUN, "phase", "kind"), "os.system", "class that a session holds"),
        ((*RUN, "phase", "kind"), ["x"], "class that a session holds"),
        ((*RUN, "phase", "label"), "Gone", TYPES),
        ((*RUN, "phase", "more"), 1, FIELDS),
        ((*RUN, "phase"), {"kind": "run.state.Settled"}, FIELDS),
        ((*RUN, "free"), True, TYPES),
        ((*RUN, "free"), 1.0, TYPES),
        ((*RUN, "free"), "1", TYPES),
        ((*RUN, "blocked", "sends"), {}, "class that a session holds"),
        ((*RUN, "blocked", "sends"), [1], TYPES),
        (("state", "identity", "metadata"), [["a", "b", "c"]], TYPES),
    ],
)
def test_a_bad_state_is_refused(path: tuple[str, ...], value: Any, rule: str) -> None:
    document = a_state()
    wire.load_state(json.dumps(document))
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(wire.WireError) as caught:
        wire.load_state(json.dumps(document))
    assert rule in caught.value.rule
    assert path[-2:-1] == () or path[-2] in caught.value.where


def test_only_sessions_are_states() -> None:
    with pytest.raises(wire.WireError, match="not a session"):
        wire.dump_state(CORE)  # type: ignore[arg-type]
    with pytest.raises(wire.WireError, match="cannot be in a session") as caught:
        wire.dump_state(new_session(object(), Policy()))  # type: ignore[arg-type]
    assert caught.value.where == "state.identity.id"


def test_a_text_of_the_spine_is_checked_at_every_depth() -> None:
    rope = Rope()
    for _ in range(7):
        rope = rope.append("x" * 300)
    assert rope.spine is not None and rope.spine[2] is not None and rope.spine[2][2] is not None
    steps = run_state.Streaming(run_state.Turn(()), 1, Capture("", rope.spine))
    text = wire.dump_state(running(Run(steps, 3, None, CORE)))
    oldest = json.dumps(["x"])
    assert text.count(",null]") == 1  # the end of the spine
    with pytest.raises(wire.WireError, match="taken strictly"):
        wire.load_state(text.replace(",null]", f",{oldest}]"))


def test_names_on_the_wire_are_those_of_the_package() -> None:
    assert name_of(run_state.Streaming) == "run.state.Streaming"
    assert name_of(ev.Cancelled) != name_of(run_state.Cancelling)


# --- schemas ------------------------------------------------------------------------------------------------


def test_published_schemas_are_those_of_the_code(tmp_path: Path) -> None:
    wire.write_schemas(tmp_path)
    written = sorted(p.name for p in tmp_path.iterdir())
    assert written == sorted(f"{name}.schema.json" for name in wire.NAMES)
    for name in written:
        fresh, published = tmp_path / name, SCHEMAS / name
        assert published.read_text(encoding="utf-8") == fresh.read_text(encoding="utf-8"), (
            f"{name} is out of date: rho_core.wire.write_schemas(spec/schemas)"
        )


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_a_schema_lists_every_kind_and_forbids_what_it_does_not_list(name: str) -> None:
    schema = wire.schema(name)
    kinds = {get_args(get_type_hints(m)["kind"])[0] for m in MEMBERS[name]}
    assert set(schema["discriminator"]["mapping"]) == kinds
    for definition in schema["$defs"].values():
        if definition["type"] == "object":
            assert definition["additionalProperties"] is False
            if "kind" in definition["properties"]:
                assert "kind" in definition["required"]


def test_an_unknown_schema_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        wire.schema("state")
