"""Find a dataset by its folder, or by a path in it."""

from __future__ import annotations

from dagflow.errors.wording import suggest
from dagflow.ledger.errors import LedgerCut, LedgerMissing, NoSuchDataset
from dagflow.ledger.tail import ENTRIES, HINTS
from dagflow.storage import OWN_FOLDER, absolute, base_name, explained, file_system, is_local, join

_DECISIONS = "decision"


def find_dataset(place: str) -> str:
    """Return the folder of the dataset at a path or URL: the place itself, or the nearest folder above it that has a ledger.

    Raises NoSuchDataset when there is no such place, LedgerMissing when it belongs to no dataset, LedgerCut when its ledger has
    been removed, StorageError.
    """
    place = absolute(place)
    with explained(place, "looking for a ledger"):
        system = file_system(place)
        folder: str | None = place
        while folder is not None:
            if _has_ledger(folder):
                if folder == place or system.exists(place):
                    return folder
                break
            folder = above(folder)
        if not system.exists(place):
            raise NoSuchDataset(place, _nearest(place), folder)
        if system.exists(join(place, OWN_FOLDER, _DECISIONS)):
            raise LedgerCut(join(place, OWN_FOLDER), None, "the ledger is gone, but windows were decided here")
        raise LedgerMissing(place, _below(place))


def above(place: str) -> str | None:
    """Return the folder above a place; None when there is none.

    >>> above("/data/out"), above("/"), above("s3://bucket/out/"), above("s3://bucket"), above("file:///out")
    ('/data', None, 's3://bucket', None, 'file:///')
    """
    scheme, separator, rest = place.partition("://")
    if not separator:
        scheme, rest = "", place
    folder, slash, last = rest.rstrip("/").rpartition("/")
    if not last or not slash:
        return None
    if not folder:
        folder = "/" if is_local(place) else ""
    return f"{scheme}{separator}{folder}" if folder else None


def _has_ledger(folder: str) -> bool:
    system = file_system(folder)
    return any(system.exists(join(folder, OWN_FOLDER, kind)) for kind in (ENTRIES, HINTS))


def _nearest(place: str) -> str | None:
    """Return the path beside a place whose name is most like that of the place."""
    folder = above(place)
    if folder is None or not file_system(folder).exists(folder):
        return None
    names = [base_name(status.path) for status in file_system(folder).scan(folder) if status.is_directory]
    near = suggest(base_name(place), [name for name in names if name[0] not in "._"])
    return None if near is None else join(folder, near)


def _below(place: str) -> str | None:
    """Return the first dataset, by name, that is directly in a folder."""
    system = file_system(place)
    if not system.status(place).is_directory:
        return None
    folders = sorted(status.path for status in system.scan(place) if status.is_directory)
    return next((folder for folder in folders if _has_ledger(folder)), None)
