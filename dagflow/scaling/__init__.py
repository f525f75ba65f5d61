"""Partitioners and stats listeners: how many readers there are, and why."""
