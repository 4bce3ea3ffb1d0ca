"""A runtime for LLM agents that is nothing but an interpreter of `rho_core`, on asyncio and trio alike."""

from __future__ import annotations

from .errors import (
    CommandRejected,
    InvalidConfiguration,
    RhoError,
    RunCancelled,
    RunDropped,
    RunFailed,
    RunInterrupted,
    RuntimeShutdown,
    SessionBusy,
)
from .provider import BaseProvider, ModelRequest, Provider, ProviderFailure
from .runtime.checkpoint import CheckpointFailed
from .runtime.config import RhoConfig
from .runtime.rho import Rho
from .runtime.run import Run
from .runtime.session import Session
from .runtime.toolhost import ToolHost
from .tool import BaseTool, Tool, ToolCancelled, ToolContext, ToolFailure, ToolSpec

__all__ = [
    "BaseProvider",
    "BaseTool",
    "CheckpointFailed",
    "CommandRejected",
    "InvalidConfiguration",
    "ModelRequest",
    "Provider",
    "ProviderFailure",
    "Rho",
    "RhoConfig",
    "RhoError",
    "Run",
    "RunCancelled",
    "RunDropped",
    "RunFailed",
    "RunInterrupted",
    "RuntimeShutdown",
    "Session",
    "SessionBusy",
    "Tool",
    "ToolCancelled",
    "ToolContext",
    "ToolFailure",
    "ToolHost",
    "ToolSpec",
]
