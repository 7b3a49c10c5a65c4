"""Polyhedral mathematics of crossbars: kernels, reuse, schedules, bounds, proofs. No IR."""
