"""Operators that keep state by key: what an update costs, and a window of few rows beside many keys."""
