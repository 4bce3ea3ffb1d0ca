"""`rho-core explore --interactive`: a prompt, or a pipe of commands, around one walk through the machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from rho_conformance.cli.common import BROKEN, OK
from rho_conformance.explore.configuration import Configuration
from rho_conformance.explore.play import Play
from rho_conformance.explore.saving import NotExpressible, scenario
from rho_conformance.explore.search import render
from rho_conformance.scenario import parse_text, run_scenario
from rho_conformance.targets import resolve
from rho_core.explain import WhyNot

HELP = "a number or the beginning of an input takes it; undo; why INPUT; save FILE; help; quit"


def walk(config: Configuration, source: TextIO, console: Console) -> int:
    """Read commands until `quit` or the end of the text; 1 if a step went against a rule, else 0."""
    return _Walk(config, console, source.isatty()).run(source)


class _Walk:
    def __init__(self, config: Configuration, console: Console, prompted: bool) -> None:
        self._play, self._console, self._prompted = Play(config), console, prompted
        self._broken = False

    def run(self, source: TextIO) -> int:
        self._say(f"{self._play.config.name}: {HELP}", "dim")
        self._show()
        while True:
            if self._prompted:
                self._console.print("> ", end="")
            line = source.readline()
            word, _, rest = line.strip().partition(" ")
            if not line or word == "quit":
                return BROKEN if self._broken else OK
            if word:
                self._obey(word, rest.strip(), line.strip())

    def _obey(self, word: str, rest: str, line: str) -> None:
        if word == "help":
            self._say(HELP)
        elif word == "undo":
            if self._play.undo():
                self._show()
            else:
                self._say("nothing to take back")
        elif word == "why":
            self._why(rest)
        elif word == "save":
            self._save(rest)
        else:
            self._take(line)

    def _say(self, line: str, style: str = "") -> None:
        self._console.print(Text(line, style=style), soft_wrap=True)

    # --- commands ------------------------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        found = self._play.find(text)
        if len(found) > 1:
            self._say(f"{text!r} may be any of: {'; '.join(render(c.input) for c in found)}", "yellow")
        elif not found:
            self._say(f"{text!r} is not possible now", "yellow")
            self._why(text)
        else:
            self._play.take(found[0])
            self._show()

    def _why(self, text: str) -> None:
        answers = list(self._play.why(text)) if text else []
        for name, why in answers:
            reason = (
                "the run is over" if self._play.over else "it would have an effect" if why is None else _reason(why)
            )
            self._say(f"{name}: {reason}")
        if not answers:
            self._say(f"no input is called {text!r}; try: why Taken", "yellow")

    def _save(self, name: str) -> None:
        """Write the walk as a scenario file, run it on the core, and say what came of it."""
        if not name:
            self._say("save FILE", "yellow")
            return
        path = Path(name)
        try:
            text = scenario(self._play, f"walk/{path.stem}")
            path.write_text(text, encoding="utf-8", newline="\n")
        except (NotExpressible, OSError) as fault:
            self._say(f"not saved: {fault}", "red")
            return
        results = [run_scenario(one, resolve("core")) for one in parse_text(text, name)]
        verdicts = ", ".join(f"{r.verdict} {r.detail}".strip() for r in results)
        self._say(f"saved {name}: {verdicts} on the core")

    # --- the picture ---------------------------------------------------------------------------------------------

    def _show(self) -> None:
        play, last = self._play, self._play.steps[-1]
        run = play.node.run
        lines = [f"after {len(play.steps)} steps, the last: {render(last.input)}"]
        lines += [f"  effect  {_effect(e)}" for e in last.effects] or ["  no effect"]
        lines.append(f"phase {type(run.phase).__name__}{', over' if play.over else ''}")
        if run.blocked is not None:
            lines.append(f"  blocked: {len(run.blocked.sends)} sends wait for the reader")
        open_work = [" ".join(str(part) for part in work) for work in play.node.world.open]
        unread = [f"the reader ({play.node.world.unread} unread)"] if play.node.world.unread else []
        lines.append(f"waiting for {', '.join([*open_work, *unread]) or 'nothing'}")
        history = run.core.ledger.history
        lines.append(f"history at revision {run.core.ledger.revision}, {len(history)} committed")
        lines += [f"  {_KIND.sub('', str(m))}" for m in history]
        self._console.print(Panel(Text("\n".join(lines)), title=f"step {len(play.steps)}", title_align="left"))
        self._possible()
        for rule, text in last.issues:
            self._broken = True
            self._say(f"AGAINST {rule}: {text}", "bold red")

    def _possible(self) -> None:
        play = self._play
        for number, edge in enumerate(play.choices(), 1):
            self._say(f"{number:3} {render(edge.input)}{'' if edge.fair else '  (free)'}", "bold" if edge.fair else "")
        for i, why in play.held():
            self._say(f"  - {render(i)}: {_reason(why)}", "dim")
        taken, rest = play.kinds()
        self._say(f"kinds with a row here: {', '.join(taken) or 'none'}", "dim")
        self._say(f"kinds without effect here (why NAME): {', '.join(rest) or 'none'}", "dim")


def _reason(why: WhyNot) -> str:
    rules = f" ({', '.join(why.rules)})" if why.rules else ""
    return f"{why.why}: {why.text}{rules}"


_KIND = re.compile(r"(, )?kind='[a-z_]+'")
WIDTH = 200


def _effect(e: Any) -> str:
    """An effect in one line, without the wire's own names; what is long is cut."""
    event = getattr(e, "event", None)
    text = _KIND.sub("", str(e) if event is None else f"{type(e).__name__} {event}")
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
