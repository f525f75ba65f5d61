"""Operators that read blocks."""
