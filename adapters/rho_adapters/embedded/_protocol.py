"""What the child and its owner agree on."""

from __future__ import annotations

READY = "READY"
"""Line of the child: it answers, at the address that follows."""
LOADING = "LOADING"
"""Line of the child: it loads the file that follows."""
KEY_VARIABLE = "RHO_EMBEDDED_KEY"
"""Environment: what clients must send as their API key. Without it everybody on the machine may ask."""
