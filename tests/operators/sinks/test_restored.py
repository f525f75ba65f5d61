"""Any part of an application restored from an older or newer copy: its rows are right, or the next launch refuses by name."""

from __future__ import annotations

import contextlib
import itertools
import os
import uuid
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.errors import DagflowError, HistoriesDiffer
from tests.operators.databases import Database
from tests.operators.sinks.restored import KINDS, LAUNCHES, Subject
from tests.tiers import mostly_nightly

NEWEST = LAUNCHES - 1


@attrs.define
class KeptDatabase:
    """A database of a PostgreSQL server, and copies of it."""

    server: Any
    name: str

    @property
    def address(self) -> str:
        """The address of the database."""
        return str(self.server.get_uri(self.name))

    def keep(self, number: int) -> None:
        """Copy it."""
        self._run(f"CREATE DATABASE {self.name}_{number} TEMPLATE {self.name}")

    def bring(self, number: int) -> None:
        """Bring a copy back."""
        self._run(f"DROP DATABASE {self.name} WITH (FORCE)")
        self._run(f"CREATE DATABASE {self.name} TEMPLATE {self.name}_{number}")

    def run(self, statement: str) -> list[Any]:
        """Run a statement in the database."""
        return Database("postgres", self.address).run(statement)

    def _run(self, statement: str) -> None:
        Database("postgres", self.server.get_uri()).run(statement)


@pytest.fixture(scope="module")
def subjects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the prepared application of a kind, which the tests of this kind share."""
    known: dict[str, Subject] = {}

    def subject(kind: str) -> Subject:
        if kind not in known:
            folder, database = tmp_path_factory.mktemp(kind), None
            if kind.startswith("postgres"):
                database = KeptDatabase(request.getfixturevalue("server"), f"r{uuid.uuid4().hex[:12]}")
                database._run(f"CREATE DATABASE {database.name}")
            known[kind] = Subject(kind, folder / "root", folder / "copies", database)
            known[kind].prepare()
        return known[kind]

    return subject


def cases() -> list[tuple[str, str, int]]:
    """Return each kind with each set of parts that are older than the others, and how old they are."""
    found = []
    for kind in KINDS:
        parts = Subject(kind, Path(), Path()).parts
        for size in range(1, len(parts) + 1):
            for older in itertools.combinations(parts, size):
                found += [(kind, "+".join(older), age) for age in range(NEWEST)]
    return found


IN_CI = [
    ("sqlite_append", "run", 1),
    ("sqlite_upsert", "run+state", 1),
    ("sqlite_replace", "table", 1),
    ("delta_append", "run+state+ledger", 1),
    ("delta_append", "table", 1),
    ("delta_upsert", "run+state+ledger+notes", 1),
    ("delta_replace", "notes", 0),
    ("iceberg_upsert", "run+state+ledger", 1),
    ("iceberg_append", "table+notes", 0),
    ("postgres_append", "run+state+ledger", 1),
    ("postgres_upsert", "table", 1),
    ("log_append", "run+state+ledger+notes", 1),
    ("log_append", "table", 1),
    ("log_append", "table+notes", 1),
    ("sqlite_append", "run+state+ledger+table", 0),
    ("delta_upsert", "run+state+ledger+table+notes", 0),
    ("log_append", "run+state+ledger+table+notes", 0),
    ("sqlite_append", "ledger", 1),
    ("sqlite_append", "state", 0),
]


@pytest.mark.full
@pytest.mark.parametrize("has_news", [False, True])
@pytest.mark.parametrize("case", mostly_nightly(cases(), *IN_CI), ids=lambda case: "-".join(map(str, case)))
def test_parts_from_copies_of_two_times(subjects: Any, case: tuple[str, str, int], has_news: bool) -> None:
    kind, older, age = case
    subject = subjects(kind)
    subject.restore({part: age if part in older.split("+") else NEWEST for part in subject.parts})
    if has_news:
        subject.deliver(LAUNCHES)
    is_of_one_time = set(older.split("+")) == set(subject.parts)
    with contextlib.suppress(*([] if is_of_one_time else [DagflowError])):
        subject.launch()
        assert subject.wrong_rows() is None


@pytest.mark.full
@pytest.mark.parametrize("kind", ["sqlite_append", "delta_upsert", "iceberg_append"])
def test_two_histories_of_one_run(subjects: Any, kind: str) -> None:
    """A table that has gone on from a copy, and a run folder that has, know windows of the same number with other rows."""
    subject = subjects(kind)
    subject.restore(dict.fromkeys(subject.parts, 0))
    for number in range(1, LAUNCHES):
        (subject.root / "in" / f"{number}.csv").unlink()
    for number in range(LAUNCHES, 2 * LAUNCHES - 1):  # other input than before
        subject.deliver(number)
        subject.launch()
    assert subject.wrong_rows() is None
    newer = [part for part in subject.parts if part in ("table", "notes")]
    subject.bring(dict.fromkeys(newer, NEWEST))
    subject.deliver(99)
    with pytest.raises(
        HistoriesDiffer, match=f"has window {NEWEST} of this run, by another decision than that in the run folder"
    ):
        subject.launch()


@pytest.mark.parametrize("kind", ["sqlite_append", "delta_append", "log_append"])
def test_a_launch_with_nothing_new_looks_at_its_tables(subjects: Any, kind: str) -> None:
    subject = subjects(kind)
    subject.restore({part: 0 if part == "table" else NEWEST for part in subject.parts})
    with pytest.raises(DagflowError, match=r"older copy|was rolled back|published"):
        subject.launch()
    subject.restore(dict.fromkeys(subject.parts, NEWEST))
    assert subject.launch().report.windows == 0


@pytest.mark.parametrize("kind", ["delta_append", pytest.param("iceberg_append", marks=pytest.mark.full)])
@pytest.mark.parametrize("left", [0, 40])
def test_a_power_cut_that_damages_a_note_stops_nothing(tmp_path: Path, kind: str, left: int) -> None:
    subject = Subject(kind, tmp_path / "root", tmp_path / "copies")
    subject.deliver(0)
    subject.launch()
    [note] = (tmp_path / "root").glob("**/published/*")
    os.truncate(note, left)
    subject.deliver(1)
    subject.launch()
    os.truncate(next(iter((tmp_path / "root").glob("**/published/*"))), left)
    assert subject.launch().report.windows == 0
    assert subject.wrong_rows() is None
