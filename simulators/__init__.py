"""Simulators that run lowered IR, one file a machine, and the NumPy reference."""
