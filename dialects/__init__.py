"""Dialects: types, attributes and operations, one file a dialect."""
