"""The parts of the driver of the core: the world that the suite plays around a `rho_core` session."""
