"""Compiled parsers for dagflow's readers of JSON lines and CSV. They are an option: without them, results are the same.

Both functions are strict. Where text is not what they expect, they return None, and the caller reads it with pyarrow or line by
line. So each rule about odd input is written once, in `operators.formats`.
"""

from dagflow_native._parse import cut, json_lines

__all__ = ["cut", "json_lines"]
