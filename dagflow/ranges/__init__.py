"""Range trackers: who owns which positions of a range, and how a range is split while it is read."""
