"""The lines of a TOML file at which its keys stand: tomllib returns only values.

The scanner reads documents that tomllib has accepted, so it only needs to know where keys stand and where values end.
"""

from __future__ import annotations

Path = tuple[str, ...]

_BLANK = " \t\r\n"


def key_lines(text: str) -> dict[Path, int]:
    r"""Return the line (from 1) of each table header and key of a valid TOML document, by its full path.

    Keys inside arrays are not listed: such an array is one value. Of a header and of an array of tables the first counts.

    >>> key_lines("a = 1\n[b]\nc.d = [\n 1]\n")
    {('a',): 1, ('b',): 2, ('b', 'c', 'd'): 3}
    """
    return _Scanner(text).document()


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Return the line of a path, else that of the nearest table or value around it, else 1."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.counted_to = 0
        self.found: dict[Path, int] = {}

    def document(self) -> dict[Path, int]:
        table: Path = ()
        arrays: set[Path] = set()
        while self.skip_blank():
            line = self.here()
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self.key()
                arrays.add(table)
                self.found.setdefault(table, line)
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self.key()
                self.note(table, line, arrays)
                self.at += 1
            else:
                path = table + self.key()
                self.note(path, line, arrays)
                self.at += 1  # the equals sign
                self.value(path, arrays)
        return self.found

    def note(self, path: Path, line: int, arrays: set[Path]) -> None:
        if not any(path[:length] in arrays for length in range(1, len(path) + 1)):
            self.found.setdefault(path, line)

    def here(self) -> int:
        """Return the line of the current position."""
        self.line += self.text.count("\n", self.counted_to, self.at)
        self.counted_to = self.at
        return self.line

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip_blank(self, extra: str = "") -> bool:
        """Skip blanks, line ends and comments; False at the end of the document."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif character in _BLANK or character in extra:
                self.at += 1
            else:
                return True
        return False

    def key(self) -> Path:
        """Read a dotted key, up to `=` or `]`."""
        parts = []
        while True:
            self.skip_blank()
            if self.peek() in ('"', "'"):
                parts.append(self.string())
            else:
                start = self.at
                while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "_-"):
                    self.at += 1
                parts.append(self.text[start : self.at])
            self.skip_blank()
            if self.peek() != ".":
                return tuple(parts)
            self.at += 1

    def string(self) -> str:
        """Read a quoted string of any of the four kinds, and return its value (several lines: as they stand)."""
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            self.at = start = self.at + 3
            while not self.text.startswith(quote * 3, self.at):
                self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
            end = self.at
            self.at += 3
            while self.peek() == quote:  # up to two quotes may stand before the closing ones
                self.at += 1
            return self.text[start:end]
        start = self.at
        self.at += 1
        while self.text[self.at] != quote:
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += 1
        raw = self.text[start : self.at]
        if quote == "'" or "\\" not in raw:
            return raw[1:-1]
        import tomllib

        return str(tomllib.loads(f"it = {raw}")["it"])

    def value(self, path: Path | None, arrays: set[Path]) -> None:
        """Skip a value; `path` is its place, None inside arrays, where keys are not noted."""
        self.skip_blank()
        opening = self.peek()
        if opening in ('"', "'"):
            self.string()
        elif opening == "[":
            self.at += 1
            while self.skip_blank(",") and self.peek() != "]":
                self.value(None, arrays)
            self.at += 1
        elif opening == "{":
            self.at += 1
            while self.skip_blank(",") and self.peek() != "}":
                line, inner = self.here(), self.key()
                if path is not None:
                    self.note(path + inner, line, arrays)
                self.at += 1
                self.value(None if path is None else path + inner, arrays)
            self.at += 1
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1
