"""What the slash commands do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from rho_adapters.chat import commands
from rho_adapters.chat.history import told
from rho_adapters.errors import RhoError

if TYPE_CHECKING:
    from rho_adapters.chat.talk import Talk


async def obey(talk: Talk, name: str) -> bool:
    """Carry out a command; False when it was the last."""
    if name == "quit":
        return False
    try:
        await _ROWS[name](talk)
    except RhoError as refused:
        talk.note(str(refused), bad=True)
    return True


async def _help(talk: Talk) -> None:
    talk.note(commands.HELP)


async def _history(talk: Talk) -> None:
    talk.note(told(talk.session.history) or "(nothing yet)")


async def _reset(talk: Talk) -> None:
    talk.note(f"back to the beginning, revision {talk.session.reset()}")


async def _save(talk: Talk) -> None:
    await talk.session.save()
    talk.note(f"saved {talk.session.id!r} at revision {talk.session.revision}")


async def _compact(talk: Talk) -> None:
    talk.compact()


async def _retract(talk: Talk) -> None:
    found = talk.retract()
    if found is None:
        talk.note("there is no steer to take back")
    else:
        text, answer = found
        talk.note(f"taken back: {text}" if answer == "Retracted" else f"too late: {answer}")


async def _cancel(talk: Talk) -> None:
    if not talk.cancel():
        talk.note("there is nothing to cancel")


_ROWS: dict[str, Callable[[Talk], Awaitable[None]]] = {
    "help": _help,
    "history": _history,
    "reset": _reset,
    "save": _save,
    "compact": _compact,
    "retract": _retract,
    "cancel": _cancel,
}
