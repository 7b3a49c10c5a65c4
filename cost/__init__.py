"""Cost formulas: cycles, bytes, energy. No IR."""
