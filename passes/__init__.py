"""Passes within a dialect, one file a pass, and the named pipelines."""
