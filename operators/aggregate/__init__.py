"""Operators that make few records of many: per key or of all, in each window."""
