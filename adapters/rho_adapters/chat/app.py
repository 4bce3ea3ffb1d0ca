"""`rho-core chat`: the command line. Imports nothing heavy, since it is loaded for every `rho-core` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

USAGE = 4


def chat(
    provider: Annotated[
        str,
        typer.Option(
            envvar="RHO_PROVIDER", help="embedded, openai, openai-responses, anthropic, compatible or scripted"
        ),
    ] = "embedded",
    model: Annotated[str | None, typer.Option(envvar="RHO_MODEL", help="the provider's name for the model")] = None,
    base_url: Annotated[str | None, typer.Option(envvar="RHO_BASE_URL", help="of the API, for compatible")] = None,
    script: Annotated[Path | None, typer.Option(help="JSON turns for --provider scripted")] = None,
    tools: Annotated[bool, typer.Option("--tools", help="a calculator, a clock, reading files of --folder")] = False,
    folder: Annotated[Path | None, typer.Option(help="what read_file may see; the working folder by default")] = None,
    mcp: Annotated[list[str] | None, typer.Option(help="command of an MCP stdio server; may be repeated")] = None,
    store: Annotated[Path | None, typer.Option(help="SQLite file that keeps sessions")] = None,
    session: Annotated[str, typer.Option(help="id of the session, in --store and in --record")] = "chat",
    system: Annotated[str | None, typer.Option(help="the system prompt")] = None,
    event_capacity: Annotated[int, typer.Option(min=1, help="events that may wait for the screen")] = 64,
    record: Annotated[Path | None, typer.Option(help="write a trace for `rho-core check`")] = None,
) -> int:
    """Talk to a model in the terminal.

    Keys: OPENAI_API_KEY for openai, openai-responses and compatible, ANTHROPIC_API_KEY for anthropic. A line typed
    while the model works is a steer; /help tells the rest. In a pipe: a line in is a message or the answer to a
    question, the model's text comes out, everything else goes to standard error; status 3 when the last run failed.
    """
    try:
        from rho_adapters.chat import live
        from rho_adapters.chat.choose import CannotStart, ProviderName, Wanted, missing
    except ImportError as fault:
        package = (fault.name or "").partition(".")[0]
        return _say(f"chat needs the package {package!r}; install it with: pip install 'rho-core[chat]'")
    try:
        wanted = Wanted(
            provider=ProviderName(provider),
            model=model,
            base_url=base_url,
            script=script,
            tools=tools,
            folder=folder or Path.cwd(),
            mcp=tuple(mcp or ()),
            store=store,
            session=session,
            system=system,
            event_capacity=event_capacity,
            record=record,
        )
    except ValueError:
        return _say(f"--provider: {provider!r} is none of {', '.join(ProviderName)}")
    try:
        return live.run(wanted)
    except CannotStart as why:
        return _say(str(why))
    except ImportError as fault:
        return _say(str(missing(fault)))


def _say(text: str) -> int:
    print(f"rho-core chat: {text}", file=sys.stderr)
    return USAGE
