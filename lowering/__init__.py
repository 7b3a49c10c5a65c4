"""Conversions between dialects and translations out of the IR, one file each."""
