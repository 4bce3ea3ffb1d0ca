"""Stores of session snapshots: in memory, one file a session, one SQLite database."""

from __future__ import annotations

from .directory import DirectoryStore
from .memory import MemoryStore
from .sqlite import SQLiteStore

__all__ = ["DirectoryStore", "MemoryStore", "SQLiteStore"]
