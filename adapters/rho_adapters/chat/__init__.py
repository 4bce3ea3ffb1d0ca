"""`rho-core chat`: a session in the terminal.

`view` turns events into what is to be seen, `terminal` and `plain` show it, `talk` runs the conversation.
"""

from __future__ import annotations

from rho_adapters.chat.app import chat as command

__all__ = ["command"]
