"""A provider-neutral estimate of the context, in tokens: for display and for the compaction threshold.

Source: RHO-ORD-2 (formula in the contract row). Hosts replace it by what UsageUpdated reports.
"""

from __future__ import annotations

from .messages import Block, History, Image, Message, System, Text, ToolResult, User, freeze_json

BASE = 3
PER_MESSAGE = 4


def _quarter(n: int) -> int:
    return -(-n // 4)


def _block(block: Block) -> int:
    if isinstance(block, Text):
        return 1 + _quarter(len(block.text))
    if isinstance(block, Image):
        return 1 + 85 + -(-len(block.data) // 4096)
    return 1 + 8 + _quarter(len(freeze_json([block.id, block.name])) + len(block.arguments))


def message_tokens(message: Message) -> int:
    """Estimate of one message."""
    if isinstance(message, ToolResult):
        return 6 + _quarter(len(freeze_json(message.content)))
    if isinstance(message, System):
        return PER_MESSAGE + _block(Text(message.text))
    blocks = sum(map(_block, message.content))
    if isinstance(message, User):
        return PER_MESSAGE + blocks
    return PER_MESSAGE + blocks + _quarter(len(message.reasoning_summary or ""))


def context_tokens(history: History, tool_spec_tokens: int = 0) -> int:
    """Estimate of a request: its messages and the tool schemas; always positive."""
    return BASE + tool_spec_tokens + sum(map(message_tokens, history))
