"""The anyio runtime: an interpreter of the core's effects, on asyncio and trio alike."""
