"""Tools: Python functions, child processes, MCP servers, and the policies that say which of them may run.

The names of `function`, `process` and `policy` are here; `mcp` needs its own package and is imported by itself.
"""

from __future__ import annotations

from ._blocking import BlockingToolContext
from ._needs import reads, writes
from .function import FunctionTool, tool
from .policy import AllowList, AskHost, Decision, Rule
from .process import DEFAULT_ENVIRONMENT, ProcessTool, shell_tool

__all__ = [
    "DEFAULT_ENVIRONMENT",
    "AllowList",
    "AskHost",
    "BlockingToolContext",
    "Decision",
    "FunctionTool",
    "ProcessTool",
    "Rule",
    "reads",
    "shell_tool",
    "tool",
    "writes",
]
