"""The embedding guide cannot go stale: its code runs, its tables are those of the core, its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from rho_core import effects, inputs
from rho_core.config import Policy

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "embedding.md"
TEXT = GUIDE.read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LINKS = sorted(set(LINK.findall(FENCE.sub("", TEXT))))
CODE = re.compile(r"`(\w+)`")

SESSION = {cls.__name__ for cls in get_args(inputs.SessionInput)}
RUNTIME = {cls.__name__ for cls in get_args(inputs.RuntimeInput)}
COMMANDS = {cls.__name__ for cls in get_args(inputs.SessionCommand)}


def rows(name: str) -> list[list[str]]:
    """Cells of a marked table, without its head."""
    marked = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)
    assert marked is not None, name
    lines = marked[1].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> str:
    """The one name that stands in a cell as code."""
    (name,) = CODE.findall(cell)
    return str(name)


def test_every_block_of_the_guide_runs_in_order() -> None:
    names: dict[str, object] = {"__name__": "guide"}
    blocks = list(FENCE.finditer(TEXT))
    assert len(blocks) > 10
    for block in blocks:
        above = TEXT.count("\n", 0, block.start(1))
        exec(compile("\n" * above + block[1], str(GUIDE), "exec"), names)


def test_no_python_block_escapes() -> None:
    assert TEXT.count("```python") == len(FENCE.findall(TEXT))


def test_the_table_of_effects_is_complete() -> None:
    listed = [named(row[0]) for row in rows("effects")]
    assert sorted(listed) == sorted(cls.__name__ for cls in get_args(effects.Effect))


def test_every_effect_says_what_to_do_what_answers_and_what_is_forbidden() -> None:
    known = SESSION | RUNTIME
    for effect, do, answered, never in rows("effects"):
        assert do and never, effect
        answers = set(CODE.findall(answered))
        assert answers or answered == "–", effect
        assert answers <= known, (effect, answers - known)


def test_every_input_that_answers_an_upcall_is_named_as_an_answer() -> None:
    """What `record` and terminal `gated` inputs report was asked for by some effect."""
    answers = {name for row in rows("effects") for name in CODE.findall(row[2])}
    expected = {cls.__name__ for cls in inputs.RECORD} | {"ModelReturned", "ModelFailed", "ToolProgress", "ToolAsked"}
    assert expected <= answers


def test_the_table_of_inputs_is_complete_with_classes() -> None:
    listed = {named(row[0]): row[1] for row in rows("inputs")}
    classes: dict[str, str] = {cls.__name__: kind for cls, kind in inputs.INPUT_CLASS.items()}
    classes |= dict.fromkeys(COMMANDS, "session")
    classes |= {"Admitted": "link", "Refused": "link", "TasksGone": "link", "ForRun": "envelope"}
    assert set(classes) == SESSION
    assert listed == classes
    assert len(rows("inputs")) == len(listed)


def test_the_table_of_runtime_inputs_is_complete() -> None:
    assert {named(row[0]) for row in rows("runtime inputs")} == RUNTIME


def test_every_field_of_the_policy_is_explained() -> None:
    listed = [name for row in rows("policy") for name in CODE.findall(row[0])]
    assert sorted(listed) == sorted(field.name for field in fields(Policy))


def slug(heading: str) -> str:
    """The anchor that a heading gets on the usual hosts."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_somewhere(link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (GUIDE.parent / path).resolve() if path else GUIDE
    assert target.is_relative_to(ROOT) and target.is_file()
    if anchor:
        text = target.read_text(encoding="utf-8")
        headings = {slug(h) for h in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
        assert anchor in headings or f'id="{anchor}"' in text


def test_examples_are_as_short_as_the_guide_says() -> None:
    for name in ("bare_core.py", "journal_resume.py"):
        count = len((EXAMPLES / name).read_text(encoding="utf-8").splitlines())
        assert count < 150
        assert f"{count} lines" in TEXT, (name, count)


def run(script: str, *arguments: str, flags: tuple[str, ...] = ()) -> str:
    command = [sys.executable, *flags, str(EXAMPLES / script), *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


BARE = """\
  reply to c1
  model asked: step 1, attempt 1, 2 messages
  event started
  event step_started
  event Let
  event provider_stream_reset
  2.0 s pass
  model asked: step 1, attempt 2, 2 messages
  event Let \n  event me \n  event add \n  event them.
  event tool_call_updated
  event model_call_completed
  reply to c2
  event tool_proposed
  event tool_started
  event tool_finished
  model asked: step 2, attempt 1, 5 messages
  event steering_applied
  event step_started
  outcome: Five.
  event model_call_completed
  event completed
  held back for want of room: 4 times
second run
  reply to c3
  model asked: step 1, attempt 1, 7 messages
  event started
  event step_started
  reply to c4
  event la \n  outcome: Cancelled
  event la \n  event cancelled
  revision 2, Idle; the history:
  system: -
  user: 2 + 3?
  assistant: Let me add them.
  tool_result: 5
  user: Answer in one word.
  assistant: Five.
  user: Sing.
  aborted_assistant: la la \n"""


def test_the_bare_core_example_runs_on_the_standard_library_alone() -> None:
    assert run("bare_core.py", flags=("-S",)) == BARE  # -S: no installed package can be imported


RESUMED = """\
  event started
  event step_started
dies at STATE
the child ended with status 9
resumes at STATE
owed: call_model unread: 1
  event assistant_text_delta
  event provider_stream_reset
  event assistant_text_delta
  event model_call_completed
  event tool_proposed
  event tool_started
  event tool_finished
  event step_started
  event assistant_text_delta
  event model_call_completed
  event completed
revision 1 Completed
"""


def test_the_journal_example_resumes_in_the_state_it_died_with(tmp_path: Path) -> None:
    out = run("journal_resume.py", str(tmp_path))
    died, resumed = re.findall(r"^(?:dies|resumes) at ([0-9a-f]{64})$", out, re.MULTILINE)
    assert died == resumed
    assert out.replace(died, "STATE") == RESUMED


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    """Resuming a finished journal with half a line behind it: the whole lines are replayed, the half is gone."""
    run("journal_resume.py", str(tmp_path))
    journal = tmp_path / "s1.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"kind":"for_run","run":"r1","in')
    run("journal_resume.py", str(tmp_path))
    after = journal.read_bytes()
    assert after.startswith(whole + b'{"') and after.endswith(b"\n")
    assert after[len(whole) :].startswith(b'{"command_id":"c1"')


def test_the_blocks_of_the_readme_compile_and_the_core_one_runs() -> None:
    """The block of the runtime talks with a real model; it is run by `rho_adapters.demo`'s tests in another form."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    runtime, core = blocks
    assert compile(runtime, "README.md", "exec")
    names: dict[str, Any] = {}
    exec(compile(core, "README.md", "exec"), names)
    assert [effect.kind for effect in names["effects"]] == ["admit"]
