"""Slash commands: their names, their help, and the line taken apart."""

from __future__ import annotations

from dataclasses import dataclass

COMMANDS = {
    "help": "what can be typed",
    "history": "the session's committed messages",
    "reset": "back to the system prompt",
    "save": "save the session in the store",
    "compact": "make the history shorter, where a compactor is installed",
    "retract": "take the last steer back, if it was not taken up yet",
    "cancel": "cancel the run, as Ctrl-C does",
    "quit": "leave",
}

HELP = "\n".join(
    (
        *(f"/{name:<9}{text}" for name, text in COMMANDS.items()),
        "//text    says /text to the model",
        "",
        "A line typed while the model works is a steer: it is taken up at the next step.",
        "Ctrl-C cancels the run; a second one, or one when nothing runs, leaves. Ctrl-D leaves.",
    )
)


@dataclass(frozen=True, slots=True)
class Command:
    """`name` without its slash; `rest`: what follows it."""

    name: str
    rest: str = ""


class UnknownCommand(ValueError):
    """No such command; the text says which there are."""


def parse(line: str) -> Command | str:
    """A command, or the text that is meant for the model. Raises UnknownCommand.

    A command may be shortened as long as it stays unambiguous.
    """
    if line.startswith("//"):
        return line[1:]
    if not line.startswith("/"):
        return line
    word, _, rest = line[1:].partition(" ")
    found = [word] if word in COMMANDS else [name for name in COMMANDS if word and name.startswith(word)]
    if len(found) != 1:
        what = (
            "could be " + " or ".join(f"/{n}" for n in found) if found else "is no command; /help tells which there are"
        )
        raise UnknownCommand(f"/{word} {what}")
    return Command(found[0], rest.strip())
