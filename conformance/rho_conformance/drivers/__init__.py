"""Drivers: ways to reach an implementation (spec/protocol.md)."""
