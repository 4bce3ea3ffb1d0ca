"""AG-UI: the runtime as an endpoint that its official client accepts (extra `[agui]`)."""

from __future__ import annotations

from rho_adapters.agui.app import Endpoint, create_app

__all__ = ["Endpoint", "create_app"]
