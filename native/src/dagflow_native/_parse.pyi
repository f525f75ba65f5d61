from typing import TypeAlias

from typing_extensions import Buffer

Column: TypeAlias = tuple[str, str, int, tuple[Column, ...]]
Parsed: TypeAlias = tuple[int, int, bytes | None, bytes | None, bytes | None, tuple[Parsed, ...]]

def json_lines(data: Buffer, columns: tuple[Column, ...], skips_others: bool, /) -> Parsed | None: ...
def cut(data: Buffer, delimiter: int, quote: int, is_wanted: bytes, /) -> tuple[int, bytes] | None: ...
