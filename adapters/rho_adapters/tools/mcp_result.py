"""What a model reads of an MCP tool result."""

from __future__ import annotations

import json

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)


def result_text(result: CallToolResult, limit: int) -> str:
    """Text blocks as they are, a note for everything else; structured content unless a text block says the same.

    `limit`: characters; what is longer is cut and says so.
    """
    parts = [_block(block) for block in result.content]
    structured: object = result.structured_content
    if structured is not None and not any(_says(block, structured) for block in result.content):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return clipped("\n".join(parts), limit)


def clipped(text: str, limit: int) -> str:
    """The text, or as much of it as fits and a note of how much does not."""
    return text if len(text) <= limit else f"{text[:limit]}\n[{len(text) - limit} more characters left out]"


def _block(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=kind, data=data):
            return f"[image, {kind}, {_size(data)} bytes, not shown]"
        case AudioContent(mime_type=kind, data=data):
            return f"[audio, {kind}, {_size(data)} bytes, not shown]"
        case ResourceLink(uri=uri, name=name):
            return f"[resource {name}: {uri}]"
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case EmbeddedResource(resource=resource):
            return f"[resource {resource.uri}, {resource.mime_type or 'of unknown type'}, not shown]"


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _says(block: ContentBlock, structured: object) -> bool:
    """Is the text block the structured content, or the one value that a server wrapped as `result`?"""
    if not isinstance(block, TextContent):
        return False
    wrapped = structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured
    if block.text == wrapped:
        return True
    try:
        value: object = json.loads(block.text)
    except ValueError:
        return False
    return value in (structured, wrapped)
