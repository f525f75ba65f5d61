"""The cost of live figures: the same launch with and without them, in turn."""
