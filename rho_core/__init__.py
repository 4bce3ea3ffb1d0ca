"""The contract of LLM-agent session runtimes as a pure reducer."""

__version__ = "0.1.0"
