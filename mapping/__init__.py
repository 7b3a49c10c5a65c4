"""Mathematics of mappings: layouts, tilings, covers. No IR."""
