"""The columns of a row that are known without reading it: `filename`, `dir0`, `year` of a folder `year=2024`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import attrs

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive, Spark and Arrow give the folder of rows without a value."""
_KEY = re.compile(r"([^=/]+)=([^/]*)")


def parts_of(path: str) -> tuple[str, list[str], str]:
    """Split a path into the part before its folders (`s3://`, `/`), the folders, and the file's name.

    >>> parts_of("/data/a/b.csv"), parts_of("s3://bucket/x.csv")
    (('/', ['data', 'a'], 'b.csv'), ('s3://', ['bucket'], 'x.csv'))
    """
    scheme, separator, rest = path.rpartition("://")
    before = scheme + separator if separator else ""
    if rest.startswith("/"):
        before, rest = before + "/", rest.lstrip("/")
    *folders, name = rest.split("/")
    return before, folders, name


def common_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that holds all files, below which `dir0` begins; "" for no files.

    >>> common_folder(["/w/x/y/a.csv", "/w/x/z/b.csv"]), common_folder(["/w/a.csv"])
    ('/w/x', '/w')
    """
    common: tuple[str, list[str]] | None = None
    for path in paths:
        before, folders, _ = parts_of(path)
        if common is None:
            common = before, folders
            continue
        same = 0
        if before == common[0]:
            while same < min(len(folders), len(common[1])) and folders[same] == common[1][same]:
                same += 1
        common = common[0], common[1][:same]
    return "" if common is None else common[0] + "/".join(common[1])


@attrs.frozen
class FileFacts:
    """The implicit columns of a file by name, from its path below `root`.

    >>> facts = FileFacts.of("/w/x/year=2024/z.csv.gz", "/w")
    >>> facts.value("filename"), facts.value("dir0"), facts.value("dir5"), facts.value("suffix"), facts.keys
    ('z.csv.gz', 'x', None, 'gz', {'year': '2024'})
    """

    path: str
    folders: tuple[str, ...]
    keys: Mapping[str, str | None]

    @classmethod
    def of(cls, path: str, root: str, *, empty_is_null: bool = False) -> FileFacts:
        """Return the facts of a file. Folders count below `root`, keys (`key=value`) in the whole path.

        `empty_is_null`: a folder `key=` stands for null.
        """
        _, folders, _ = parts_of(path)
        base = root.rstrip("/")
        below = parts_of(path[len(base) :])[1] if path.startswith(base + "/") else []
        matches = [match for folder in folders if (match := _KEY.fullmatch(folder))]
        nulls = (NO_VALUE, "") if empty_is_null else (NO_VALUE,)
        keys = {unquote(m[1]): None if m[2] in nulls else unquote(m[2]) for m in matches}
        return cls(path, tuple(below), keys)

    def value(self, name: str) -> Any:
        """Return the value of an implicit column, except `block_offset`, which each row has."""
        if name == "filename":
            return posixpath.basename(self.path)
        if name == "filepath":
            return posixpath.dirname(self.path)
        if name == "fqn":
            return self.path
        if name == "suffix":
            return posixpath.splitext(self.path)[1].removeprefix(".")
        number = int(name.removeprefix("dir"))
        return self.folders[number] if number < len(self.folders) else None


def key_types(facts: Iterable[FileFacts]) -> dict[str, str]:
    """Return the types of the keys of folders: int64 if all values are integers, else string, also without a value.

    >>> key_types([FileFacts.of("/w/y=1/m=01/a", "/w"), FileFacts.of("/w/y=2/m=x/a", "/w")])
    {'y': 'int64', 'm': 'string'}
    """
    integers: dict[str, bool] = {}
    with_values: set[str] = set()
    for each in facts:
        for key, value in each.keys.items():
            is_integer = value is None or re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) is not None
            integers[key] = integers.get(key, True) and is_integer
            with_values.update([key] if value is not None else [])
    return {key: "int64" if is_integer and key in with_values else "string" for key, is_integer in integers.items()}
