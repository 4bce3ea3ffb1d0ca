"""Entries and the live part as rich renderables, and as plain text where there is no terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from rho_adapters.chat.asking import Asking, hint, numbered
from rho_adapters.chat.entries import Answered, Card, CardState, Done, Ended, Entry, Note, Said, Thought, Typed
from rho_adapters.chat.view import View
from rho_core.messages import Usage

RESULT_LINES = 8
PROGRESS_LINES = 4
TAIL_CHARACTERS = 16_000
"""No terminal shows more at once; what is cut off here comes into the scrollback when the response stands."""

MARKS: dict[CardState, tuple[str, str]] = {
    "proposed": ("·", "dim"),
    "running": ("▸", "yellow"),
    "detached": ("▹", "yellow"),
    "asking": ("?", "magenta"),
    "ok": ("✓", "green"),
    "failed": ("✗", "red"),
    "interrupted": ("■", "red"),
    "unavailable": ("✗", "red"),
    "never ran": ("■", "dim"),
}

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def safe(text: str) -> str:
    """The text without what a terminal would obey: a model must not move the cursor or set the title."""
    return _CONTROL.sub("�", text.replace("\r\n", "\n")).expandtabs(4)


def shorten(text: str, lines: int) -> str:
    """At most that many lines; how many more there were."""
    every = safe(text).splitlines()
    if len(every) <= lines:
        return "\n".join(every)
    return "\n".join((*every[:lines], f"… {len(every) - lines} more lines"))


def card(shown: Card) -> Panel:
    """A tool call."""
    mark, style = MARKS[shown.state]
    body = Text(safe(shown.arguments), style="dim")
    for line in shown.progress[-PROGRESS_LINES:]:
        body.append(f"\n… {safe(line)}", style="italic")
    if shown.text:
        body.append(f"\n{shorten(shown.text, RESULT_LINES)}", style="default")
    title = f"[{style}]{mark}[/] [bold]{escape(safe(shown.name))}[/] [{style}]{shown.state}[/]"
    return Panel(body, title=title, title_align="left", border_style="dim", padding=(0, 1))


def usage(value: Usage) -> str:
    """What was counted, in words."""
    parts = (
        ("in", value.input_tokens),
        ("out", value.output_tokens),
        ("cached", value.cache_read_tokens),
        ("total", value.total_tokens),
    )
    told = [f"{count} {name}" for name, count in parts if count is not None]
    text = f"tokens: {', '.join(told)}" if told else "tokens: not reported"
    if value.cost_usd_micros is not None:
        text += f" · ${value.cost_usd_micros / 1_000_000:.4f}"
    return text


def last_line(end: Ended) -> str:
    """Stop reason, usage, revision."""
    parts = [f"{end.how}: {safe(end.message)}" if end.message else end.how, usage(end.usage)]
    if end.revision is not None:
        parts.append(f"revision {end.revision}")
    return " · ".join(parts)


def entry(shown: Entry) -> RenderableType:
    """What goes into the scrollback."""
    match shown:
        case Typed(text=text, steer=steer):
            return Text(f"{'↳' if steer else '›'} {safe(text)}", style="bold cyan")
        case Said(text=text, cut_off=cut_off):
            body = Text(safe(text))
            return body.append(" ⋯ cut off", style="red") if cut_off else body
        case Thought(text=text):
            return Text(safe(text), style="dim italic")
        case Done(card=done):
            return card(done)
        case Answered(title=title, answer=answer):
            return Text(f"? {safe(title)} → {safe(answer)}", style="magenta")
        case Note(text=text, bad=bad):
            return Text(safe(text), style="red" if bad else "dim")
        case Ended(ok=ok):
            return Rule(Text(last_line(shown)), align="left", style="dim" if ok else "red")


def plain(shown: Entry) -> str:
    """The same as a line or more of text."""
    match shown:
        case Typed(text=text, steer=steer):
            return f"{'(steer) ' if steer else ''}{safe(text)}"
        case Said(text=text, cut_off=cut_off):
            return safe(text) + (" [cut off]" if cut_off else "")
        case Thought(text=text):
            return f"[thought] {safe(text)}"
        case Done(card=done):
            head = f"[{done.name} {safe(done.arguments)}] {done.state}"
            return f"{head}: {shorten(done.text, RESULT_LINES)}" if done.text else head
        case Answered(title=title, answer=answer):
            return f"[{safe(title)}] {safe(answer)}"
        case Note(text=text):
            return f"[{safe(text)}]"
        case Ended():
            return f"[{last_line(shown)}]"


def question(asking: Asking) -> str:
    """A question with its numbered choices."""
    return "\n".join(_question(asking))


def _question(asking: Asking) -> Iterator[str]:
    asked = asking.question
    yield f"? {safe(asking.title)}"
    if asked.header:
        yield safe(asked.header)
    if asked.prompt and asked.prompt not in asking.title:
        yield safe(asked.prompt)
    if asked.help:
        yield safe(asked.help)
    for line in numbered(asked):
        yield f"  {safe(line)}"
    yield asking.problem or hint(asked)


def live(view: View | None, asking: Asking | None) -> Group:
    """What is on the screen for now: the streaming attempt, open cards, waiting steers, the open question."""
    parts: list[RenderableType] = []
    if view is not None:
        if view.reasoning and not view.text:
            parts.append(Text(safe(view.reasoning[-400:]), style="dim italic"))
        if view.summary:
            parts.append(Text(safe(view.summary[-TAIL_CHARACTERS:]), style="dim italic"))
        if view.text:
            parts.append(Text(safe(view.text[-TAIL_CHARACTERS:])))
        parts += [card(c) for c in (*view.calls.values(), *view.cards.values())]
        parts += [Text(f"↳ waits: {safe(text)}", style="cyan") for text in view.staged.values()]
    if asking is not None:
        parts.append(Text(question(asking), style="magenta"))
    return Group(*parts)


def tail(console: Console, shown: RenderableType, rows: int) -> str:
    """The last rows of it, as text with the terminal's escapes; no newline at the end."""
    with console.capture() as taken:
        console.print(shown, end="")
    lines = taken.get().rstrip("\n").split("\n")
    return "\n".join(lines[-max(1, rows) :])
