"""Operators that bring the records of two streams together."""
