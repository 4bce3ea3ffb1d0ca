"""The reader of one run: when the caller takes the next event, and when it only stands there."""

from __future__ import annotations

import asyncio


class Reader:
    """Eager (takes everything), held (takes what `read` allows), draining (takes and discards), or closed."""

    def __init__(self, *, held: bool) -> None:
        self._mode = "held" if held else "eager"
        self._credits = 0
        self._wake: asyncio.Future[None] | None = None
        self.closed = False

    @property
    def waiting(self) -> bool:
        return self._wake is not None

    async def take(self) -> bool:
        """Wait until an event may be taken; `False` when nobody will see it."""
        await self.ask()
        if self._mode == "held":
            self._credits -= 1
        return self._mode != "drain" and not self.closed

    async def ask(self) -> None:
        """Wait until the reader wants an event."""
        while self._mode == "held" and self._credits <= 0 and not self.closed:
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None

    def read(self, count: int | str) -> None:
        if count == "all":
            self._mode = "eager"
        elif self._mode == "held":
            self._credits = int(count)
        self._go()

    def hold(self) -> None:
        self._mode, self._credits = "held", 0

    def drain(self) -> None:
        if self._mode == "held":
            self._mode = "drain"
        self._go()

    def close(self) -> None:
        self.closed = True
        self._go()

    def settled(self) -> None:
        """What `read` allowed and nobody offered is not carried over to later."""
        self._credits = 0

    def _go(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
