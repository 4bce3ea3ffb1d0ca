"""The normal form: what protocol and traces call messages, events and outcomes (`spec/protocol.md`).

Plain JSON values, one way only, and pure. `rho_core.wire` is the form that can be read back.
"""
