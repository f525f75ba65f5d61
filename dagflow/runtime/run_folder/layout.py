"""The table of everything that a run leaves in its run folder and beside its outputs.

Each kind of record is a `Kind` in `KINDS`: its name, its writer, whether it is synced and sealed, and when it is removed.
Sweeping, starting over, verifying and the table in the documentation follow from these. CONTRIBUTING.md says how to add one.
Names of records are made here; those of states, ledgers and locks in the packages that know how to read them.

Removing goes in the order of the table. A plan is removed before its decision: a plan without a decision would run again, and
a plan that comes back after a power cut is known by being older than the newest decision.
"""

from __future__ import annotations

import enum
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from dagflow.storage import OWN_FOLDER, Store, is_object_store

STAGING = f"{OWN_FOLDER}/staging"
"""The folder of attempt files, in an output folder."""

SWEEP_EVERY = 16
"""Windows whose leftovers are removed at a time, in object stores."""


class Removed(enum.Enum):
    """The time at which a record is removed, unless the run starts over before that.

    What is SWEPT or AGED goes 16 windows at a time in object stores (`swept_after`).
    """

    SWEPT = "once the window after it is done"  # of tasks and launches that were killed, too; the name begins with {window}
    AGED = "after `retain_windows` further windows"  # the name is {window} alone; DONE is the last one, see KINDS
    REPLACED = "once a decision that replaces it has been followed"
    AGED_REPLACED = "with the decision that replaces it, after `retain_windows` further windows"
    CROWDED = "when there are too many of its kind"
    LAUNCHED = "by the next launch"
    ENDED = "when it is no longer needed"
    NEVER = "never"


_FIELDS = {
    "window": r"(?P<window>\d{10})",
    "hash": r"[0-9a-f]+",
    "number": r"\d+",
    "partition": r"\d{4,}",
    "launch": r"\d{8}T\d{6}-[0-9a-f]{11}",
}


@attrs.frozen(kw_only=True)
class Kind:
    """One kind of record.

    Attributes:
        title: the kind in words.
        form: the form of its names, as `str.format` takes it. The pattern of each field is in `_FIELDS`.
        writer: `driver`, `task` or `launch`.
        synced: it is on disk before anything builds on it, if `durability` is `machine`: it is written through `WindowLog.store`,
            others through `WindowLog.unsynced`. A power cut may take those.
        sealed: it carries its own name and hash, made by `dagflow.storage.seal`, and `dagflow verify` checks them. Others change,
            or nothing is read from them that counts.
        removed: when it is removed.
        fresh: `--fresh` removes it, in the order of the table.
        in_outputs: it is in each output folder, also where that holds no run folder.
    """

    title: str
    form: str
    writer: str
    synced: bool = False
    sealed: bool = False
    removed: Removed
    fresh: bool = True
    in_outputs: bool = False

    @property
    def folder(self) -> str:
        """The folder of its records, empty for the run folder itself."""
        return self.form.rpartition("/")[0].partition("{")[0].rstrip("/")

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)[^}]*\}", self.form)
        return re.compile("".join(_FIELDS.get(part, ".+") if n % 2 else re.escape(part) for n, part in enumerate(parts)))

    def match(self, name: str) -> re.Match[str] | None:
        """Match a name against the form of this kind."""
        return self._pattern.fullmatch(name)

    def name(self, **fields: Any) -> str:
        """Return the name of one record.

        >>> PLAN.name(window=12)
        'plan/0000000012'
        """
        return self.form.format(**fields)

    def prefix(self, window: int) -> str:
        """Return the beginning of the names of a window's records, where the window comes first."""
        return f"{self.folder}/{window:010d}."


PLAN = Kind(
    title="what a window will do", form="plan/{window:010d}", writer="driver", synced=True, sealed=True, removed=Removed.AGED
)
DECISION = Kind(
    title="what a window did: the commit",
    form="decision/{window:010d}",
    writer="driver",
    synced=True,
    sealed=True,
    removed=Removed.AGED,
)
REJECTED = Kind(
    title="sinks that leave a decided window out, since they cannot publish it",
    form="rejected/{window:010d}",
    writer="driver",
    synced=True,
    sealed=True,
    removed=Removed.AGED,
)
DONE = Kind(
    title="all that follows from a decision has been done",
    form="done/{window:010d}",
    writer="driver",
    sealed=True,
    removed=Removed.AGED,
)
CRASH_MARKER = Kind(
    title="where a task is that is tried again", form="reports/{window:010d}.at.{task}", writer="task", removed=Removed.SWEPT
)
TASK_OUTCOME = Kind(
    title="the outcome of a task before an exchange",
    form="reports/{window:010d}.{epoch}.{stage}-{partition:04d}.outcome",
    writer="task",
    sealed=True,
    removed=Removed.SWEPT,
)
LIVE = Kind(
    title="the figures of a task at work; not in object stores",
    form="reports/{window:010d}.{epoch}.{stage}-{partition:04d}.live.{attempt}",
    writer="task",
    removed=Removed.SWEPT,
)
REPORT = Kind(
    title="what a task did",
    form="reports/{window:010d}.{epoch}.{stage}-{partition:04d}",
    writer="task",
    sealed=True,
    removed=Removed.SWEPT,
)
GAUGE = Kind(
    title="how much a task has left",
    form="claims/{window:010d}.{epoch}.{stage}-{partition:04d}.gauge",
    writer="task",
    removed=Removed.SWEPT,
)
CLAIM = Kind(
    title="an entry in the ownership log of a task whose work can be stolen; the last one holds its report",
    form="claims/{window:010d}.{epoch}.{stage}-{partition:04d}.{number:06d}",
    writer="task",
    sealed=True,
    removed=Removed.SWEPT,
)
ITEM_CLAIM = Kind(
    title="a part of a work item has been read",
    form="claims/{window:010d}.{epoch}.{stage}-item{item}.{number:06d}",
    writer="task",
    sealed=True,
    removed=Removed.SWEPT,
)
SLOTS_WANTED = Kind(
    title="tasks of another window or stage wait for slots",
    form="claims/{window:010d}.{epoch}.wanted",
    writer="driver",
    sealed=True,
    removed=Removed.SWEPT,
)
FREE_SLOT = Kind(
    title="a slot has nothing to do",
    form="claims/{window:010d}.{epoch}.{stage}.free",
    writer="task",
    sealed=True,
    removed=Removed.SWEPT,
)
TASK_STATE = Kind(
    title="`State` of an operator in tasks, if it is large",
    form="task-states/{window:010d}.{hash}",
    writer="task",
    synced=True,
    sealed=True,
    removed=Removed.AGED_REPLACED,
)
STATE = Kind(
    title="what a window changed in `MapState` and `TableState` on the driver",
    form="state/{window:010d}-{hash}",
    writer="driver",
    synced=True,
    sealed=True,
    removed=Removed.REPLACED,
)
KEYED_STATE = Kind(
    title="what a window changed in `MapState` and `TableState` of a keyed operator",
    form="keyed-state/state/{window:010d}-{hash}",
    writer="task",
    synced=True,
    sealed=True,
    removed=Removed.AGED_REPLACED,
)
BEGUN = Kind(
    title="a window has begun to be published to a log",
    form="staged/{window:010d}.{sink}.begun",
    writer="driver",
    synced=True,
    sealed=True,
    removed=Removed.ENDED,
)
STAGED_BY_SINK = Kind(
    title="what a sink has staged",
    form="staged/{window:010d}.{attempt}",
    writer="task",
    synced=True,
    removed=Removed.ENDED,
)
APP_ID = Kind(
    title="the id of the run: the first plan builds on it",
    form="app-id",
    writer="launch",
    synced=True,
    sealed=True,
    removed=Removed.NEVER,
)
LAUNCH = Kind(
    title="the application as it was launched",
    form="launches/{launch}",
    writer="driver",
    synced=True,
    sealed=True,
    removed=Removed.CROWDED,
)
EVENTS = Kind(title="the events of a launch", form="events/{stream}.jsonl", writer="launch", removed=Removed.CROWDED)
STARTING_OVER = Kind(
    title="a launch is starting over", form="starting-over", writer="launch", synced=True, removed=Removed.ENDED, fresh=False
)
CLAIMED = Kind(
    title="outputs have been claimed for this run folder",
    form="_claimed",
    writer="launch",
    synced=True,
    removed=Removed.NEVER,
    fresh=False,
)
PROBE = Kind(
    title="a trial of the store, or the mark that executors look for",
    form="probe/{token}",
    writer="launch",
    removed=Removed.ENDED,
    fresh=False,
)
LOCK = Kind(
    title="one launch at a time, on disks",
    form=".lock",
    writer="launch",
    synced=True,
    removed=Removed.NEVER,
    fresh=False,
)
LOCK_NUMBER = Kind(
    title="one launch at a time, in object stores", form="_lock/{number}", writer="launch", removed=Removed.CROWDED, fresh=False
)
OWNER = Kind(
    title="the run folder that the output belongs to",
    form="owner",
    writer="launch",
    synced=True,
    removed=Removed.NEVER,
    fresh=False,
    in_outputs=True,
)
STAGED = Kind(
    title="a file of an attempt, until it gets its final name",
    form="staging/{window:010d}.{attempt}",
    writer="task",
    synced=True,
    removed=Removed.SWEPT,
    in_outputs=True,
)
LEDGER = Kind(
    title="an entry of the ledger",
    form="ledger/{shard:09d}/{number:012d}.json",
    writer="driver",
    synced=True,
    sealed=True,
    removed=Removed.NEVER,
    in_outputs=True,
)
LEDGER_CHECKPOINT = Kind(
    title="a checkpoint of the ledger, by earlier versions of dagflow",
    form="ledger-checkpoints/{hash_name}",
    writer="driver",
    synced=True,
    removed=Removed.NEVER,
    in_outputs=True,
)
LEDGER_HINT = Kind(
    title="where the ledger ends",
    form="ledger-hint/{number}",
    writer="driver",
    sealed=True,
    removed=Removed.CROWDED,
    in_outputs=True,
)

KINDS: tuple[Kind, ...] = (
    OWNER,
    STAGED,
    LEDGER_CHECKPOINT,
    LEDGER_HINT,
    LEDGER,
    PLAN,
    DECISION,
    REJECTED,
    DONE,
    CRASH_MARKER,  # before reports: its names have the form of theirs
    TASK_OUTCOME,
    LIVE,  # before reports, too
    REPORT,
    GAUGE,
    CLAIM,
    ITEM_CLAIM,
    SLOTS_WANTED,
    FREE_SLOT,
    TASK_STATE,
    STATE,
    KEYED_STATE,
    BEGUN,  # before what is staged: its names have the form of theirs
    STAGED_BY_SINK,
    APP_ID,
    LAUNCH,
    EVENTS,
    STARTING_OVER,
    CLAIMED,
    PROBE,
    LOCK,
    LOCK_NUMBER,
)
"""All kinds, in the order in which they are removed.

- A name that has the forms of two kinds is of the first one.
- DONE is the last of those that age: a removal that was interrupted continues from the marks that are left.
"""

RUN_FOLDERS = tuple(dict.fromkeys(kind.folder.partition("/")[0] or kind.form for kind in KINDS if not kind.in_outputs))
"""The names of what is directly in a run folder."""


def kind_of(name: str) -> Kind | None:
    """Return the kind of a record by its name below `_dagflow`, None for a name of no kind.

    >>> kind_of("reports/0000000003.at.s0-0001").title, kind_of("reports/notes.txt")
    ('where a task is that is tried again', None)
    """
    return next((kind for kind in KINDS if kind.match(name)), None)


def stored(store: Store, kinds: Iterable[Kind], window: int | None = None) -> Iterator[str]:
    """List the records of some kinds, or those of one window: folder by folder in the order of the kinds."""
    for folder, group in itertools.groupby(kinds, key=lambda kind: kind.folder):
        if folder:
            wanted = tuple(group)
            start = f"{folder}/" if window is None else f"{folder}/{window:010d}"
            yield from (name for name in store.names(start) if kind_of(name) in wanted)
        else:
            yield from (kind.form for kind in group)


def swept_after(folder: str, window: int) -> range:
    """Return the windows whose leftovers in a folder are removed once a window is done: of the one before.

    In object stores, where each listing is a request, those of several windows at a time.

    >>> swept_after("out", 7), swept_after("s3://bucket/out", 7), swept_after("s3://bucket/out", 15)
    (range(6, 7), range(0, 0), range(0, 15))
    """
    if not is_object_store(folder):
        return range(window - 1, window)
    return range(max(0, window - SWEEP_EVERY), window) if window % SWEEP_EVERY == SWEEP_EVERY - 1 else range(0)


def record_name(kind: str, window: int) -> str:
    """Return the name of a window's `plan`, `decision` or `done`."""
    return f"{kind}/{window:010d}"


def stage_area(kind: Kind, window: int, epoch: str, stage: str) -> str:
    """Return the beginning that the names of all tasks of a stage share: for reports or claims."""
    return f"{kind.folder}/{window:010d}.{epoch}.{stage}"


def task_name(area: str, partition: int) -> str:
    """Return the name of a task's report, or the beginning of the names in its log of claims."""
    return f"{area}-{partition:04d}"


def gauge_name(area: str, partition: int) -> str:
    """Return the name of a task's gauge."""
    return f"{task_name(area, partition)}.gauge"


def item_name(area: str, item: int) -> str:
    """Return the beginning of the names in the log of a work item."""
    return f"{area}-item{item}"


def entry_name(log: str, number: int) -> str:
    """Return the name of an entry in the log of a task or an item."""
    return f"{log}.{number:06d}"


def as_table() -> str:
    """Return the table as Markdown, for the documentation."""
    lines = [
        "| name | what it is | written by | synced | sealed | removed | `--fresh` |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in KINDS:
        name = re.sub(r"\{(\w+)[^}]*\}", lambda field: field[1].upper(), kind.form)
        columns = [kind.title, kind.writer, "yes" if kind.synced else "", "yes" if kind.sealed else "", kind.removed.value]
        lines.append(f"| `{name}` | {' | '.join(columns)} | {'removes it' if kind.fresh else ''} |")
    return "\n".join(lines) + "\n"
