"""Text on its way into the core: what no encoding can carry is replaced."""

from __future__ import annotations

from rho_core.messages import Block, Text

Content = str | tuple[Block, ...]


def clean(text: str) -> str:
    """The text without lone surrogates, which neither JSON nor a database can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def blocks(content: Content) -> tuple[Block, ...]:
    """Content as blocks; a bare text is one."""
    if isinstance(content, str):
        return (Text(clean(content)),)
    return tuple(Text(clean(b.text)) if isinstance(b, Text) else b for b in content)
