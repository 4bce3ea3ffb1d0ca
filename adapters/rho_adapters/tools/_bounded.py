"""Output of a child process, kept within bounds: the head and the tail, and a note of what was cut."""

from __future__ import annotations

import codecs


class BoundedOutput:
    """Keeps the first and the last half of `limit` bytes, whatever comes; amortised O(1) per byte."""

    def __init__(self, limit: int) -> None:
        if limit < 2:
            raise ValueError("an output limit must be at least 2 bytes")
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._passed = 0

    def add(self, chunk: bytes) -> None:
        """One more piece."""
        room = self._half - len(self._head)
        self._head += chunk[:room]
        rest = chunk[room:]
        self._passed += len(rest)
        self._tail += rest[-self._half :]
        if len(self._tail) > 2 * self._half:  # not at every piece: a child may write byte by byte
            del self._tail[: -self._half]

    def text(self) -> str:
        """What was kept, as text; bytes that are not UTF-8 become U+FFFD."""
        tail = bytes(self._tail[-self._half :])
        cut = self._passed - len(tail)
        if not cut:
            return (self._head + tail).decode(errors="replace")
        # A character may have been cut in two: what is left of it is not wrong output of the child.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        return f"{head}\n[... {cut} bytes cut ...]\n{_without_fragment(tail).decode(errors='replace')}"


def _without_fragment(tail: bytes) -> bytes:
    start = next((i for i, byte in enumerate(tail[:3]) if byte & 0xC0 != 0x80), min(3, len(tail)))
    return tail[start:]


class Lines:
    """Bytes as they come in, whole lines out. An unfinished line longer than `limit` characters comes out as it is."""

    def __init__(self, limit: int = 65_536) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: list[str] = []
        self._held = 0
        self._limit = limit

    def feed(self, chunk: bytes, final: bool = False) -> str:
        """The lines that this piece ended, joined; empty when none did."""
        text = self._decoder.decode(chunk, final)
        ended, newline, rest = text.rpartition("\n")
        if not newline and not final and self._held + len(text) <= self._limit:
            self._hold(text)
            return ""
        whole = "".join(self._rest) + (ended if newline else text)
        self._rest, self._held = [], 0
        if newline:
            if final and rest:
                return f"{whole}\n{rest}"
            self._hold(rest)
        return whole

    def _hold(self, text: str) -> None:
        if text:
            self._rest.append(text)
            self._held += len(text)
