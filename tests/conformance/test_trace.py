"""Recorded traces: nothing is lost on the way through a file, and bad files say where they are bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.errors import UsageError
from rho_conformance.trace import (
    Observation,
    StepRecord,
    Trace,
    dumps_trace,
    loads_trace,
    merged,
    read_trace,
    write_trace,
)


def seen(seq: int, kind: str, step: int = 1, **fields: Any) -> dict[str, Any]:
    return {"seq": seq, "step": step, "at_ms": 0, kind: {"session": "s1", "run": "r1", **fields}}


def trace(*observations: dict[str, Any]) -> Trace:
    record = StepRecord([{"start": "hi\u2028there"}], list(observations), ["model"], {"busy": True})
    return Trace({"name": "fake"}, {"max_steps": 3}, "rho", [record], source="text")


def test_a_trace_survives_a_file(tmp_path: Path) -> None:
    original = trace(seen(1, "Started", revision=0))
    original.witness = {"rule": "CORE-S1"}
    original.extra = {"later": [1]}
    original.steps[0].extra = {"took_ms": 3}
    path = tmp_path / "made" / "trace.jsonl"
    write_trace(original, path)
    assert read_trace(path) == original
    assert dumps_trace(read_trace(path)) == path.read_text(encoding="utf-8")


def test_a_refused_open_survives() -> None:
    refused = Trace({}, {}, "rho", open_error="InvalidConfiguration")
    assert loads_trace(dumps_trace(refused)).open_error == "InvalidConfiguration"


HEAD = json.dumps({"trace": 1, "hello": {}, "config": {}, "profile": "rho"}) + "\n"
STEP: dict[str, Any] = {"perform": [], "observations": [], "waiting_on": [], "facts": {}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("{]", "1: not JSON"),
        ("[]", "1: a line must be a map"),
        ('{"trace": 2}', '"trace": 1'),
        ('{"trace": 1, "hello": {}, "config": []}', "'config' must be a map"),
        (HEAD + "{}", "2: 'perform' must be a list"),
        (HEAD + json.dumps({**STEP, "facts": []}), "2: 'facts' must be a map"),
        (HEAD + json.dumps({**STEP, "perform": ["start"]}), "2: 'perform' must hold stimuli"),
        (HEAD + json.dumps({**STEP, "observations": [{"seq": 1}]}), "2: an observation is"),
        (HEAD + json.dumps({"open": {}}), "2: a refused open is"),
        (HEAD + json.dumps({"open": {"error": "X"}}) + "\n" + json.dumps(STEP), "3: nothing may follow"),
    ],
)
def test_a_bad_trace_says_where(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        loads_trace(text)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")


def test_events_and_upcalls_are_told_apart() -> None:
    recorded = trace(
        seen(1, "Started"),
        seen(2, "ModelCall", n=1),
        seen(3, "BrandNew"),
        {"seq": 4, "step": 1, "at_ms": 0, "Completed": {"session": "s2", "run": "r2"}},
        seen(5, "EventsClosed"),
    )
    assert [e.name for e in recorded.events()] == ["Started", "Completed"]
    assert [e.name for e in recorded.events("s1")] == ["Started"]
    assert [e.name for e in recorded.events(run="r2")] == ["Completed"]
    assert [u.name for u in recorded.upcalls()] == ["ModelCall"]


def test_the_newest_reply_counts() -> None:
    recorded = trace(seen(1, "Reply", name="r1", value="pending"), seen(2, "Reply", name="r1", value="ok"))
    assert recorded.replies() == {"r1": "ok"}


def views(*observations: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (view.name, view.fields.get("text", view.fields.get("arguments_delta")))
        for view in merged(Observation.of(raw) for raw in observations)
    ]


def test_adjacent_deltas_are_one() -> None:
    assert views(
        seen(1, "AssistantTextDelta", text="a", attempt=1),
        seen(2, "AssistantTextDelta", text="b", attempt=1),
        seen(3, "ReasoningDelta", text="c", attempt=1),
        seen(4, "AssistantTextDelta", text="d", attempt=1),
        seen(5, "AssistantTextDelta", text="e", attempt=2),
    ) == [
        ("AssistantTextDelta", "ab"),
        ("ReasoningDelta", "c"),
        ("AssistantTextDelta", "d"),
        ("AssistantTextDelta", "e"),
    ]


def test_call_deltas_are_one_for_each_index() -> None:
    assert views(
        seen(1, "ToolCallUpdated", index=0, id="A", arguments_delta='{"x"'),
        seen(2, "ToolCallUpdated", index=0, arguments_delta=":1}"),
        seen(3, "ToolCallUpdated", index=1, arguments_delta="{}"),
    ) == [("ToolCallUpdated", '{"x":1}'), ("ToolCallUpdated", "{}")]


def test_a_merged_delta_spans_its_steps() -> None:
    first, last = (seen(n, "AssistantTextDelta", step=n, text=str(n)) for n in (1, 2))
    (view,) = merged([Observation.of(first), Observation.of(last)])
    assert (view.step, view.last_step, view.seq) == (1, 2, 1)


def test_facts_of_a_session_come_from_its_own_map() -> None:
    recorded = trace()
    recorded.steps[0].facts = {"revision": 1, "sessions": {"s2": {"revision": 5}}}
    assert recorded.facts_of("s1")["revision"] == 1
    assert recorded.facts_of("s2") == {"revision": 5}
    assert recorded.facts_of("s3") == {}
