"""The ownership log of each task: who owns which part of which item. Entries are published create-if-absent, numbered from 0.

If several tasks want to write the next entry, one wins. The others read it, and see whether their own still makes sense. So all
tasks agree on each log, whichever of them die. A task that dies is begun again: stolen parts stay with the tasks that stole them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dagflow.model.types.plain_data import dumps, loads
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing.item_log import finish
from dagflow.runtime.run_folder.layout import entry_name, task_name
from dagflow.runtime.stage.parts import Part, part_of, without
from dagflow.storage import Store, read_sealed, seal

START, ASK, GRANT, REFUSE, WITHDRAW, REPORT = KINDS = ("start", "ask", "give", "refuse", "withdraw", "report")


@attrs.frozen(kw_only=True)
class Entry:
    """One entry of the log of a task (the *owner*).

    Attributes:
        kind: `start`, `give`, `refuse` and `report` are the owner's, `ask` and `withdraw` those of another task.
        attempt: the attempt that wrote it, of the owner or of the asking task.
        asker: the partition that sent the request.
        ask: the number of the request that is answered or withdrawn.
        parts: the stolen parts.
        items: the items of these parts by number, as they travel, since the plan of the asking task does not have them.
        size: the weight of these parts.
        reason: of a refusal.
        report: the task's report, encoded.
    """

    kind: str
    attempt: str
    asker: int = -1
    ask: int = -1
    parts: tuple[Part, ...] = ()
    items: dict[int, Any] = attrs.field(factory=dict)
    size: int = 0
    reason: str = ""
    report: Any = None

    def to_bytes(self) -> bytes:
        """Return the entry as a record of the store, without fields that have their defaults."""
        data: dict[str, Any] = {"kind": self.kind, "attempt": self.attempt}
        for name, empty in (("asker", -1), ("ask", -1), ("size", 0), ("reason", ""), ("report", None)):
            if (value := getattr(self, name)) != empty:
                data[name] = value
        if self.parts:
            data["parts"] = [part.to_list() for part in self.parts]
            data["items"] = {str(number): item for number, item in self.items.items()}
        return dumps(data)

    @classmethod
    def of(cls, record: bytes) -> Entry:
        """Return the entry in a record."""
        data = loads(record)
        data["parts"] = tuple(part_of(part) for part in data.get("parts", ()))
        data["items"] = {int(number): item for number, item in data.get("items", {}).items()}
        return cls(**data)


@attrs.define
class LogState:
    """The state that follows from the entries of a log so far: a pure function of them, in their order.

    An entry that the rules do not allow is void. No task writes one, since a writer has read all entries before its own.

    Attributes:
        length: the number of entries, and of the next one.
        attempts: the owner's, in order; the last one counts, earlier ones are fenced.
        asks: the open requests by number: the asking partition and its attempt.
        answers: the entry that closed each request, by the request's number.
        grants: the partition that has stolen, and the entry, for each steal.
        report: the owner's, encoded. Entries after it do not count.
    """

    length: int = 0
    attempts: list[str] = attrs.field(factory=list)
    asks: dict[int, tuple[int, str]] = attrs.field(factory=dict)
    answers: dict[int, Entry] = attrs.field(factory=dict)
    grants: list[tuple[int, Entry]] = attrs.field(factory=list)
    report: Any = None

    def add(self, entry: Entry) -> None:
        """Apply the next entry."""
        number, self.length = self.length, self.length + 1
        if self.report is not None:
            return
        if entry.kind == START or (entry.kind == REPORT and not self.attempts):  # the attempt had begun quietly
            self.attempts.append(entry.attempt)
        if entry.kind == ASK:
            self.asks[number] = (entry.asker, entry.attempt)
        elif entry.kind == WITHDRAW:
            if self.asks.pop(entry.ask, None) is not None:
                self.answers[entry.ask] = entry
        elif entry.kind == START or not self.is_owner(entry.attempt):
            return
        elif entry.kind == REPORT:
            self.report = entry.report
        elif entry.ask in self.asks:
            asker, _ = self.asks.pop(entry.ask)
            self.answers[entry.ask] = entry
            if entry.kind == GRANT:
                self.grants.append((asker, entry))

    def is_owner(self, attempt: str) -> bool:
        """Return whether an attempt is the owner's last one."""
        return bool(self.attempts) and self.attempts[-1] == attempt

    def granted_to(self, partition: int) -> list[Entry]:
        """Return the entries of a partition's steals."""
        return [entry for asker, entry in self.grants if asker == partition]


class AttemptFenced(BaseException):
    """Another attempt of the task has begun, so this one must stop. Not an `Exception`, so that user code does not catch it."""


class TaskLog:
    """The log of one task, as far as it has been read."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self.state = LogState()

    @property
    def _next(self) -> str:
        return entry_name(self.name, self.state.length)

    def catch_up(self) -> LogState:
        """Read the new entries, up to the report. Raises RecordRefused."""
        state = self.state
        while state.report is None and (record := read_sealed(self._store, self._next)) is not None:
            state.add(Entry.of(record.body))
        return state

    def append(self, entry: Entry) -> bool:
        """Write the next entry. False: another task has written it, and it has been read."""
        if self._store.create(self._next, seal(self._next, entry.to_bytes())):
            self.state.add(entry)
            return True
        self.catch_up()
        return False


@attrs.frozen
class StealRequest:
    """A steal request: the partition that it was sent to, and the number of its entry in that partition's log."""

    partition: int
    number: int


class OwnershipLog:
    """One attempt of a task at the logs of its stage. For one thread at a time.

    Args:
        area: the name of the logs of the stage in this epoch of the window, up to the partition.
        attempt: a name that no other attempt of any task has in this epoch.
        assigned: the items that the plan assigns to this partition, by number, as they travel.
    """

    def __init__(
        self, store: Store, area: str, *, partition: int, partitions: int, attempt: str, assigned: Mapping[int, Any]
    ) -> None:
        self.partition = partition
        self.attempt = attempt
        self.items = dict(assigned)
        self._store, self._area = store, area
        self._assigned = [Part(number) for number in assigned]
        self._logs = [TaskLog(store, task_name(area, number)) for number in range(partitions)]
        self._known: set[tuple[int, int]] = set()  # the known steals of this partition: victim, request
        self._is_quiet = False  # this attempt has written nothing to its log yet

    @property
    def own(self) -> TaskLog:
        """The log of this task."""
        return self._logs[self.partition]

    @property
    def is_last(self) -> bool:
        """Return whether this is the task of the last partition."""
        return self.partition == len(self._logs) - 1

    def log_of(self, partition: int) -> TaskLog:
        """Return the log of another task."""
        return self._logs[partition]

    def begin(self, *, quietly: bool = False) -> list[Part]:
        """Begin the attempt, which fences earlier ones; return the parts that it owns: none if the task has reported.

        Open requests of earlier attempts are withdrawn, unless they are answered at that moment.

        `quietly`: if there is no earlier attempt, nothing is written until `announce` or the report. Until then no task can send
        it a request, and another attempt that is announced fences this one.
        """
        state = self.own.state
        if quietly and not self.own.catch_up().length:
            self._is_quiet = True
            return self._assigned
        failpoints.hit("before start")
        while state.report is None and not self.own.append(Entry(kind=START, attempt=self.attempt)):
            pass
        if state.report is not None:
            return []
        failpoints.hit("after start")
        if len(state.attempts) == 1:
            return self._assigned
        parts = [*self._assigned, *self.recover()]
        failpoints.hit("recovered")
        return without(parts, [part for _, entry in self.own.state.grants for part in entry.parts])

    def announce(self) -> None:
        """Announce an attempt that has begun quietly, so that it can get and send requests. Raises AttemptFenced."""
        if not self._is_quiet:
            return
        self._check(self.own.state)
        failpoints.hit("before start")
        self.own.append(Entry(kind=START, attempt=self.attempt))
        self._check(self.own.state)  # another attempt may have come first
        self._is_quiet = False
        failpoints.hit("after start")

    def recover(self) -> list[Part]:
        """Return the parts that earlier attempts of this task have stolen, without those known already."""
        if len(self.own.state.attempts) <= 1:
            return []
        parts: list[Part] = []
        for number, log in enumerate(self._logs):
            if number == self.partition:
                continue
            state = log.catch_up()
            while True:
                old = next((n for n, (asker, _) in state.asks.items() if asker == self.partition), None)
                if old is None or state.report is not None:
                    break
                log.append(Entry(kind=WITHDRAW, attempt=self.attempt, ask=old))
            parts += self._stolen(number, state.granted_to(self.partition))
        return parts

    def _stolen(self, victim: int, entries: Iterable[Entry]) -> list[Part]:
        parts: list[Part] = []
        for entry in entries:
            if (victim, entry.ask) not in self._known:
                self._known.add((victim, entry.ask))
                self.items.update(entry.items)
                parts += entry.parts
        return parts

    def known_items(self) -> dict[int, Any]:
        """Return the items that this partition was assigned, or has stolen in any attempt, by number."""
        stolen = [entry for log in self._logs for entry in log.catch_up().granted_to(self.partition)]
        return self.items | {number: item for entry in stolen for number, item in entry.items.items()}

    def check(self) -> LogState:
        """Read the new entries of the task's own log. Raises AttemptFenced."""
        state = self.own.catch_up()
        self._check(state)
        return state

    def _check(self, state: LogState) -> None:
        if not (state.is_owner(self.attempt) or (self._is_quiet and not state.length)):
            raise AttemptFenced

    def finish(self, part: Part) -> bool:
        """Note that a proper part of an item has been read; return whether it completes the item. Raises AttemptFenced."""
        self.check()
        failpoints.hit("before finish")
        completes = finish(
            self._store, self._area, part, partition=self.partition, attempt=self.attempt, counts=self._is_last_attempt
        )
        failpoints.hit("after finish")
        return completes

    def _is_last_attempt(self, partition: int, attempt: str) -> bool:
        return self._logs[partition].catch_up().is_owner(attempt)

    # Stealing

    def ask(self, partition: int) -> StealRequest | None:
        """Send a steal request. None: the other task has reported, or has not begun. Raises AttemptFenced."""
        self.announce()
        self.check()
        log = self._logs[partition]
        state = log.catch_up()
        failpoints.hit("before ask")
        while state.attempts and state.report is None:
            number = state.length
            if log.append(Entry(kind=ASK, attempt=self.attempt, asker=self.partition)):
                failpoints.hit("after ask")
                return StealRequest(partition, number)
        return None

    def answer(self, request: StealRequest) -> list[Part] | None:
        """Return the parts granted to a request, none if it was refused, and None before the answer."""
        log = self._logs[request.partition]
        state = log.catch_up()
        answer = state.answers.get(request.number)
        if answer is None:
            return [] if state.report is not None else None
        failpoints.hit("stolen")
        return self._stolen(request.partition, [answer]) if answer.kind == GRANT else []

    def withdraw(self, request: StealRequest) -> list[Part]:
        """Withdraw a request; return the parts that it has brought at the last moment."""
        failpoints.hit("before withdraw")
        log = self._logs[request.partition]
        while (parts := self.answer(request)) is None:
            if log.append(Entry(kind=WITHDRAW, attempt=self.attempt, ask=request.number)):
                failpoints.hit("after withdraw")
                return []
        return parts

    def refusal(self, request: StealRequest) -> str:
        """Return the reason why a request was refused."""
        answer = self._logs[request.partition].state.answers.get(request.number)
        if answer is None:
            return "the other task had ended"
        return answer.reason if answer.kind == REFUSE else "no answer came in time"

    # Being stolen from

    def requests(self) -> list[int]:
        """Return the open requests to this task. Raises AttemptFenced."""
        return list(self.check().asks)

    def grant(self, ask: int, parts: Iterable[Part], size: int) -> bool:
        """Grant a steal of parts, which this task no longer reads. False: the request was withdrawn. Raises AttemptFenced."""
        parts = tuple(parts)
        items = {part.number: self.items[part.number] for part in parts}
        granted = self._answer(Entry(kind=GRANT, attempt=self.attempt, ask=ask, parts=parts, items=items, size=size))
        failpoints.hit("after grant")
        return granted

    def refuse(self, ask: int, reason: str) -> None:
        """Refuse a request. Raises AttemptFenced."""
        self._answer(Entry(kind=REFUSE, attempt=self.attempt, ask=ask, reason=reason))
        failpoints.hit("after refuse")

    def _answer(self, entry: Entry) -> bool:
        while entry.ask in self.check().asks:
            if self.own.append(entry):
                return True
        return False

    # The end

    def report(self, report: Any) -> None:
        """Write the report, the last entry, which refuses all open requests. Raises AttemptFenced."""
        failpoints.hit("before report")
        while True:
            self._check(self.own.state)
            if self.own.append(Entry(kind=REPORT, attempt=self.attempt, report=report)):
                break
        failpoints.hit("after report")
