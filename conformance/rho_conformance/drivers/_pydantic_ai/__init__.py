"""Parts of the pydantic-ai driver: its loop, its doubles of model and tools, its runs, its normal form."""
