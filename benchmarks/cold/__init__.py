"""Whole commands from a shell, cold: what a user waits for, peers and ours in turn."""
