"""Checks of an output on S3 once a launch has got through, from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dagflow.ledger import Ledger
from dagflow.storage import base_name, file_system, join, read_fully


def put(url: str, data: bytes) -> None:
    """Write a file."""
    with file_system(url).create(url) as writer:
        writer.write(data)


def files(url: str) -> Iterator[str]:
    """The files below a folder, without those that readers of a dataset skip."""
    for status in file_system(url).scan(url):
        if base_name(status.path)[0] in "._":
            continue
        if status.is_directory:
            yield from files(status.path)
        else:
            yield status.path


def content(url: str) -> bytes:
    """The bytes of a file."""
    system = file_system(url)
    with system.open(url) as stream:
        return read_fully(stream, system.status(url).length)


def lines(folder: str) -> Counter[bytes]:
    """All lines in an output folder, each with how often it is there."""
    return Counter(line for path in files(folder) for line in content(path).splitlines())


def wrong(folder: str, expected: Counter[bytes]) -> list[str]:
    """Return the differences from an undisturbed run, and the problems of the ledger."""
    actual = lines(folder)
    found = [] if actual == expected else [f"{dict(actual - expected)} too many, {dict(expected - actual)} missing"]
    found += [str(problem) for problem in Ledger.open(folder).verify().problems]
    staging = join(folder, "_dagflow", "staging")
    if file_system(staging).exists(staging):
        found += [f"{status.path} is left over" for status in file_system(staging).scan(staging)]
    return found
