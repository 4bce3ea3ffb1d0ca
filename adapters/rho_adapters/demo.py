"""`python -m rho_adapters.demo`: a real tool call and back, with the embedded model, without key or network.

A small language model on this machine is asked for the weather, calls a Python function, gets its result and
answers. Exit status: 0 when the function ran exactly once with the right argument, its result is in the history
and an answer followed; 1 when not; 2 when the model is not installed.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import anyio

from rho_core import events as ev
from rho_core.messages import Assistant, History, ToolCall, ToolResult, calls_of, freeze_json, text_of

from .embedded import ModelMissing, ServerFailed
from .embedded.examples import Example
from .errors import RunFailed
from .providers.embedded import EmbeddedProvider
from .runtime.rho import Rho
from .runtime.run import Run
from .tool import Tool, ToolFailure
from .tools import reads, tool

PROMPT = "What is the weather in Paris?"
CITY = "Paris"
WEATHER = {"Berlin": "11 degrees, wind", "Paris": "7 degrees, rain", "Tokyo": "21 degrees, clear"}
SYSTEM = "You are a helpful assistant."
EXAMPLES = {
    "weather": (
        Example(
            "What is the weather in Rome?", {"city": "Rome"}, "18 degrees, sun", "It is 18 degrees and sun in Rome."
        ),
        Example(
            "What is the weather in Oslo?", {"city": "Oslo"}, "4 degrees, snow", "It is 4 degrees and snow in Oslo."
        ),
    )
}
LIMIT_S = 150.0

Say = Callable[[str], None]


@dataclass
class Facts:
    """What happened. `executed`: the arguments that the function itself saw; `faults`: what is not as it should be."""

    prompt: str = PROMPT
    model: str = ""
    executed: list[dict[str, str]] = field(default_factory=list)
    proposed: list[dict[str, str]] = field(default_factory=list)
    result: str | None = None
    answer: str = ""
    history: list[str] = field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    text_deltas: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


def weather_tool(seen: list[dict[str, str]]) -> Tool:
    """A table behind a function; every call is noted in `seen`."""

    @tool(accesses=reads("weather"))
    async def weather(city: str) -> str:
        """The weather in a city."""
        seen.append({"city": city})
        if city not in WEATHER:
            raise ToolFailure(f"no weather is known of {city!r}")
        return WEATHER[city]

    return weather


async def demo(say: Say, write: Say) -> Facts:
    """Run it. `say`: takes whole lines, `write`: pieces of text as they come. Raises ModelMissing."""
    facts = Facts()
    began = time.monotonic()
    async with EmbeddedProvider(examples=EXAMPLES, progress=say) as provider:
        facts.model = provider.identity.model
        async with Rho(provider, tools=[weather_tool(facts.executed)]) as rho:
            session = rho.session("demo", system=SYSTEM)
            say(f"user: {PROMPT}")
            try:
                async with session.start(PROMPT) as run:
                    await _follow(run, facts, say, write)
                    outcome = await run.outcome()
                facts.answer = outcome.text
                facts.input_tokens, facts.output_tokens = outcome.usage.input_tokens, outcome.usage.output_tokens
            except RunFailed as failed:
                facts.faults.append(f"the run did not complete: {failed}")
            judge(facts, session.history)
    facts.seconds = round(time.monotonic() - began, 2)
    return facts


async def _follow(run: Run, facts: Facts, say: Say, write: Say) -> None:
    """Show the events as they come."""
    async for event in run:
        match event:
            case ev.AssistantTextDelta(text=text):
                write(text if facts.text_deltas else f"model: {text}")
                facts.text_deltas += 1
            case ev.ToolProposed(call=call):
                facts.proposed.append({"name": call.name, "arguments": call.arguments})
                say(f"┌─ {call.name} {call.arguments}")
            case ev.ToolFinished(completion=completion):
                say(f"└─ {completion.kind}: {completion.text}")
            case ev.ProviderStreamReset(detail=detail):
                say(f"(again: {detail})")
            case _:
                pass
    write("\n")


def judge(facts: Facts, history: History) -> None:
    """Compare with what should have happened, from the function's own notes and the committed history."""
    facts.history = [m.kind for m in history]
    expected = {"city": CITY}
    if facts.executed != [expected]:
        facts.faults.append(f"the tool should have run once with {expected}, and ran with {facts.executed}")
    calls = [c for m in history if isinstance(m, Assistant) for c in calls_of(m.content)]
    results = [m for m in history if isinstance(m, ToolResult)]
    facts.result = results[0].content if results else None
    if [_canonical(c) for c in calls] != [("weather", freeze_json(expected))]:
        facts.faults.append("the call is not in the history as it should be")
    if results != [ToolResult(c.id, True, WEATHER[CITY]) for c in calls]:
        facts.faults.append("the result is not in the history as it should be")
    last = history[-1]
    if not (isinstance(last, Assistant) and text_of(last.content).strip() and not calls_of(last.content)):
        facts.faults.append("no answer followed the result")


def _canonical(call: ToolCall) -> tuple[str, str]:
    return call.name, freeze_json(json.loads(call.arguments))


async def _bounded(say: Say, write: Say) -> Facts:
    with anyio.fail_after(LIMIT_S):
        return await demo(say, write)


def main(argv: list[str] | None = None) -> int:
    """The command; its exit status."""
    parser = ArgumentParser(prog="python -m rho_adapters.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json: the facts alone")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio", help="the event loop")
    options = parser.parse_args(argv)
    quiet = options.format == "json"
    write: Say = _nothing if quiet else partial(print, end="", flush=True)
    say: Say = _nothing if quiet else partial(print, flush=True)
    try:
        facts = anyio.run(_bounded, say, write, backend=options.backend)
    except (ModelMissing, ServerFailed) as fault:
        print(fault, file=sys.stderr)
        return 2
    if quiet:
        print(json.dumps(_document(facts), indent=2, ensure_ascii=False))
    else:
        say(_summary(facts))
    return 1 if facts.faults else 0


def _document(facts: Facts) -> dict[str, Any]:
    return {"ok": not facts.faults, **asdict(facts)}


def _summary(facts: Facts) -> str:
    if facts.faults:
        return "\n".join(["NOT AS IT SHOULD BE", *facts.faults])
    return f"ok: one real tool call and back, {facts.model}, {facts.seconds:.1f} s, no key, no network"


def _nothing(_: str) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
