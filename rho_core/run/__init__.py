"""The run machine: a reducer over two literal tables (see `table`)."""
