"""Operators that find files and cut them into blocks, without opening any."""
