"""The command-line tools and the universe that xDSL finds them by."""
