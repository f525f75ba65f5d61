"""Sealed records: each one holds its own name, the records that it builds on, and a hash of all its bytes.

A record is a head of one line, a body of any bytes, and a last line with the SHA-256 of all before it, as
`head -n -1 FILE | sha256sum` shows it:

    {"format":5,"record":"plan/0000000003","builds_on":{"plan/0000000002":"sha256:…"}}
    …
    sha256:…

So a record that was altered, cut short or copied to another name is refused when it is read. `builds_on` holds the hashes of the
records before it, which a reader of both compares: a record of another run does not fit.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import attrs

from dagflow.bounded_json import parse
from dagflow.storage.hashes import ALGORITHM, hash_bytes, new_hash
from dagflow.storage.records.errors import PlanMismatch, RecordDamaged, RecordMisplaced
from dagflow.storage.store import Store

FORMAT = 5
_SEAL = len("sha256:") + 64 + 1


@attrs.frozen
class SealedRecord:
    """A record whose seal was checked.

    Attributes:
        name: the name that it was published under.
        body: the content.
        builds_on: the hashes of the records that it builds on, by name.
        hash: its own hash, by which others name it.
    """

    name: str
    body: bytes
    builds_on: Mapping[str, str]
    hash: str


def seal(name: str, body: bytes | Iterable[bytes], builds_on: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a record, sealed. A large body comes in pieces, so that it is not in memory beside the record.

    >>> unseal(seal("plan/3", b"...", {"plan/2": "sha256:ab"}), "plan/3", "run").builds_on
    {'plan/2': 'sha256:ab'}
    """
    head: dict[str, Any] = {"format": FORMAT, "record": name}
    if builds_on:
        head["builds_on"] = builds_on
    first = json.dumps(head, separators=(",", ":")).encode()
    record, digest = io.BytesIO(), new_hash(ALGORITHM)
    for part in itertools.chain((first, b"\n"), [body] if isinstance(body, bytes) else body, (b"\n",)):
        digest.update(part)
        record.write(part)
    record.write(f"{ALGORITHM}:{digest.hexdigest()}\n".encode())
    return record.getvalue()


def seal_of(stored: bytes) -> str:
    """Return the hash in the seal of a record, which is not checked."""
    return stored[-_SEAL:-1].decode("ascii", "replace")


def unseal(stored: bytes, name: str, place: str) -> SealedRecord:
    """Check the bytes of a record, and return it. `name`: the name that it must hold; `place`: the run folder, for messages.

    Raises RecordDamaged, RecordMisplaced, and PlanMismatch for a record of another version of dagflow.
    """
    content = stored[:-_SEAL]
    actual = hash_bytes(content)
    if stored[-_SEAL:] != b"%s\n" % actual.encode():
        _refuse(stored, actual, name, place)
    head, _, rest = content.partition(b"\n")
    try:
        fields = parse(head)
        form, record, builds_on = fields["format"], fields["record"], fields.get("builds_on", {})
        if not (isinstance(builds_on, dict) and all(map(_is_text, builds_on.values()))):
            raise TypeError("builds_on")
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # it is sealed, and nothing that dagflow has sealed
        raise RecordDamaged(place, name, "its first line is not the head of a record") from error
    if form != FORMAT:
        raise _other_version(place, form)
    if record != name:
        raise RecordMisplaced(place, name, f"it is {record}")
    return SealedRecord(name, rest[:-1], builds_on, actual)


def read_sealed(store: Store, name: str) -> SealedRecord | None:
    """Read and check a record of a store; None if there is none of that name. Raises the errors of `unseal`."""
    stored = store.read(name)
    return None if stored is None else unseal(stored, name, store.url)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _refuse(stored: bytes, actual: str, name: str, place: str) -> NoReturn:
    try:
        fields = parse(stored.partition(b"\n")[0])
    except ValueError:
        fields = None
    if (
        isinstance(fields, dict)
        and "record" not in fields
        and isinstance(fields.get("format"), int)
        and fields["format"] < FORMAT
    ):
        raise _other_version(place, fields["format"])  # records were not sealed then
    last = seal_of(stored)
    if not stored.endswith(b"\n") or not last.startswith("sha256:"):
        raise RecordDamaged(place, name, f"its {len(stored):,} bytes do not end with a seal: it was cut short")
    raise RecordDamaged(place, name, f"its bytes have the hash {actual}, its seal says {last}")


def _other_version(place: str, version: object) -> PlanMismatch:
    return PlanMismatch(place, f"it was written by another version of dagflow (format {version}, this one reads {FORMAT})")
