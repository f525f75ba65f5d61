"""Operators that turn records into records."""
