"""The screen of a terminal: what stays is written into the scrollback, and below it lives a part that is redrawn.

prompt_toolkit has the keyboard, the line that is being typed and the redrawing; rich makes what is drawn. Nothing
of an attempt is written into the scrollback before it stands, so that a reset only has to redraw.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console

from rho_adapters.chat import render
from rho_adapters.chat.asking import Asking
from rho_adapters.chat.entries import Entry
from rho_adapters.chat.screen import End, Input, Interrupt, Line
from rho_adapters.chat.view import View

REDRAW_S = 0.03
ROWS_KEPT = 3
"""Below the live part: the status, the line that is being typed, and one of air."""


class TerminalScreen:
    """Entered as an async context: on leaving, however that comes about, the terminal is as it was."""

    live = True

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[Input](math.inf)
        self._view: View | None = None
        self._asking: Asking | None = None
        self._status = ""
        self._output = create_output()
        if isinstance(self._output, Vt100_Output):
            self._output.enable_cpr = False  # the answer to a query could reach the shell after we have left
        self._buffer = Buffer(multiline=False, accept_handler=self._accept)
        self._app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            output=self._output,
            erase_when_done=True,
            min_redraw_interval=REDRAW_S,
        )
        self._group = anyio.create_task_group()

    def _layout(self) -> Layout:
        above = Window(FormattedTextControl(self._live), dont_extend_height=True, wrap_lines=False)
        status = Window(FormattedTextControl(lambda: [("class:status", self._status)]), height=1, style="reverse")
        prompt = Window(BufferControl(self._buffer, [BeforeInput("› ")]), dont_extend_height=True, wrap_lines=True)
        return Layout(HSplit([above, status, prompt]), focused_element=prompt)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def _(_: KeyPressEvent) -> None:
            self._buffer.reset()
            self._send.send_nowait(Interrupt())

        @keys.add("c-d")
        def _(_: KeyPressEvent) -> None:
            if self._buffer.text:
                self._buffer.delete()
            else:
                self._send.send_nowait(End())

        return keys

    def _accept(self, buffer: Buffer) -> bool:
        self._send.send_nowait(Line(buffer.text))
        return False  # the buffer is emptied, and the line goes into its history

    # -- what is drawn -----------------------------------------------------------------------------------------

    def _console(self) -> Console:
        size = self._output.get_size()
        return Console(width=size.columns, height=size.rows, force_terminal=True, highlight=False, markup=False)

    def _live(self) -> AnyFormattedText:
        rows = self._output.get_size().rows - ROWS_KEPT
        return ANSI(render.tail(self._console(), render.live(self._view, self._asking), rows))

    def add(self, entries: list[Entry]) -> None:
        """Written above the part that lives, which is drawn again below."""
        if not entries:
            return
        console = self._console()
        with console.capture() as taken:
            for one in entries:
                console.print(render.entry(one))
        self._app.renderer.erase()
        self._output.write_raw(taken.get().replace("\n", "\r\n"))
        self._output.flush()
        self._app.invalidate()

    def update(self, view: View | None, asking: Asking | None, status: str) -> None:
        self._view, self._asking, self._status = view, asking, status
        self._app.invalidate()

    # -- what comes in -----------------------------------------------------------------------------------------

    async def inputs(self) -> AsyncIterator[Input]:
        """Lines, Ctrl-C and Ctrl-D, as they are typed."""
        async for one in self._receive:
            yield one

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._group.start_soon(self._run)
        return self

    async def _run(self) -> None:
        # Signals and what escapes from tasks are the conversation's affair.
        await self._app.run_async(handle_sigint=False, set_exception_handler=False)

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._app.is_running:
            self._app.exit()
        else:
            self._group.cancel_scope.cancel()
        self._send.close()
        self._receive.close()
        return await self._group.__aexit__(kind, fault, trace)
