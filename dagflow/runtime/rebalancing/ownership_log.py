"""One attempt of a task at the logs of its stage: entries are published create-if-absent, under the next number of a log.

Of all who want to write the next entry one wins; the others read it, and see whether theirs still makes sense. So each log is a
sequence that all agree on, whoever dies when. A task that dies is begun again: what it gave away stays given, what it was
given stays its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dagflow.model.plain import dumps, loads
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing.item_log import finish
from dagflow.runtime.run_folder.layout import entry_name, task_name
from dagflow.runtime.stage.parts import Part, part_of, without
from dagflow.storage import Store, read_sealed, seal

START, ASK, GIVE, REFUSE, WITHDRAW, REPORT = KINDS = ("start", "ask", "give", "refuse", "withdraw", "report")


@attrs.frozen(kw_only=True)
class Entry:
    """One entry of the log of a task (the *owner*).

    Attributes:
        kind: `start`, `give`, `refuse` and `report` are the owner's, `ask` and `withdraw` those of another task.
        attempt: the attempt that wrote it, of the owner or of the task that asks.
        asker: the partition that asks, or asked.
        ask: which entry is answered, or withdrawn.
        parts: what is given away.
        items: the given items by number, as they travel: whoever gets them has not been dealt them.
        size: how much is given, as items are weighed.
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
        """The entry as a record of the store. What is as by default is left out."""
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
        """The entry that a record holds."""
        data = loads(record)
        data["parts"] = tuple(part_of(part) for part in data.get("parts", ()))
        data["items"] = {int(number): item for number, item in data.get("items", {}).items()}
        return cls(**data)


@attrs.define
class LogState:
    """What the entries of a log say so far.

    An entry that the rules do not allow is void. Nobody writes such a one: who writes an entry has read all before it.

    Attributes:
        length: how many entries there are: the number of the next one.
        attempts: of the owner, in order; the last one counts, the others are fenced.
        asks: the questions without an answer, by their number: who asks, in which attempt.
        answers: `give`, `refuse` or `withdraw`, by the number of the question.
        gives: what has been given away: to whom, and the entry.
        report: the owner's, encoded. It is the end: nothing counts behind it.
    """

    length: int = 0
    attempts: list[str] = attrs.field(factory=list)
    asks: dict[int, tuple[int, str]] = attrs.field(factory=dict)
    answers: dict[int, Entry] = attrs.field(factory=dict)
    gives: list[tuple[int, Entry]] = attrs.field(factory=list)
    report: Any = None

    def add(self, entry: Entry) -> None:
        """Reads the next entry."""
        number, self.length = self.length, self.length + 1
        if self.report is not None:
            return
        if entry.kind == START or (entry.kind == REPORT and not self.attempts):  # that one had begun quietly
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
            if entry.kind == GIVE:
                self.gives.append((asker, entry))

    def is_owner(self, attempt: str) -> bool:
        """Whether an attempt is the owner's last one."""
        return bool(self.attempts) and self.attempts[-1] == attempt

    def given_to(self, partition: int) -> list[Entry]:
        """What the owner has given to a partition."""
        return [entry for asker, entry in self.gives if asker == partition]


class AttemptFenced(BaseException):
    """Another attempt of the task has begun: this one must stop, nothing of it counts. No `Exception`: nobody may catch it."""


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
        """Reads what is new. Behind the report, nothing is. Raises RecordRefused."""
        state = self.state
        while state.report is None and (record := read_sealed(self._store, self._next)) is not None:
            state.add(Entry.of(record.body))
        return state

    def append(self, entry: Entry) -> bool:
        """Writes the next entry. False: somebody else has, and it is read."""
        if self._store.create(self._next, seal(self._next, entry.to_bytes())):
            self.state.add(entry)
            return True
        self.catch_up()
        return False


@attrs.frozen
class StealRequest:
    """A question that has been put to a partition: the number of its entry in that one's log."""

    partition: int
    number: int


class OwnershipLog:
    """An attempt of a task. For one thread at a time.

    Args:
        area: what the logs of the stage in this round of the window are called, up to the partition.
        attempt: a name that no other attempt of any task has in this round.
        dealt: the items that the plan gives to this partition, by number, as they travel.
    """

    def __init__(
        self, store: Store, area: str, *, partition: int, partitions: int, attempt: str, dealt: Mapping[int, Any]
    ) -> None:
        self.partition = partition
        self.attempt = attempt
        self.items = dict(dealt)
        self._store, self._area = store, area
        self._dealt = [Part(number) for number in dealt]
        self._logs = [TaskLog(store, task_name(area, number)) for number in range(partitions)]
        self._found: set[tuple[int, int]] = set()  # what was given to this partition and is known: giver, question
        self._is_quiet = False  # nothing of this attempt stands in its log yet

    @property
    def own(self) -> TaskLog:
        """The log of this task."""
        return self._logs[self.partition]

    @property
    def is_last(self) -> bool:
        """Whether this is the task of the last partition."""
        return self.partition == len(self._logs) - 1

    def log_of(self, partition: int) -> TaskLog:
        """The log of another task."""
        return self._logs[partition]

    def begin(self, *, quietly: bool = False) -> list[Part]:
        """Begins the attempt, which fences those known before: the parts that are its own. Where the task has reported: none.

        What earlier attempts have asked for and not been answered is withdrawn, unless it is answered at that moment.

        `quietly`: if no attempt is known yet, nothing is written until `announce`, or the report: nobody can ask it before,
        and another attempt that becomes known before it fences this one.
        """
        state = self.own.state
        if quietly and not self.own.catch_up().length:
            self._is_quiet = True
            return self._dealt
        failpoints.hit("before start")
        while state.report is None and not self.own.append(Entry(kind=START, attempt=self.attempt)):
            pass
        if state.report is not None:
            return []
        failpoints.hit("after start")
        if len(state.attempts) == 1:
            return self._dealt
        parts = [*self._dealt, *self.recover()]
        failpoints.hit("recovered")
        return without(parts, [part for _, entry in self.own.state.gives for part in entry.parts])

    def announce(self) -> None:
        """Makes an attempt known that has begun quietly: from now on it can be asked, and can ask. Raises AttemptFenced."""
        if not self._is_quiet:
            return
        self._check(self.own.state)
        failpoints.hit("before start")
        self.own.append(Entry(kind=START, attempt=self.attempt))
        self._check(self.own.state)  # another one may have come first
        self._is_quiet = False
        failpoints.hit("after start")

    def recover(self) -> list[Part]:
        """What has been given to earlier attempts of this task, and is not known yet; nothing for a first attempt."""
        if len(self.own.state.attempts) <= 1:
            return []
        found: list[Part] = []
        for number, log in enumerate(self._logs):
            if number == self.partition:
                continue
            state = log.catch_up()
            while True:
                old = next((n for n, (asker, _) in state.asks.items() if asker == self.partition), None)
                if old is None or state.report is not None:
                    break
                log.append(Entry(kind=WITHDRAW, attempt=self.attempt, ask=old))
            found += self._taken(number, state.given_to(self.partition))
        return found

    def _taken(self, giver: int, entries: Iterable[Entry]) -> list[Part]:
        found: list[Part] = []
        for entry in entries:
            if (giver, entry.ask) not in self._found:
                self._found.add((giver, entry.ask))
                self.items.update(entry.items)
                found += entry.parts
        return found

    def known_items(self) -> dict[int, Any]:
        """The items that this partition was dealt, or given by others in any attempt, by number."""
        given = [entry for log in self._logs for entry in log.catch_up().given_to(self.partition)]
        return self.items | {number: item for entry in given for number, item in entry.items.items()}

    def check(self) -> LogState:
        """Reads what is new in the own log. Raises AttemptFenced."""
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

    # Asking others

    def ask(self, partition: int) -> StealRequest | None:
        """Asks another task for work. None: it has reported, or not begun. Raises AttemptFenced."""
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

    def answer(self, asked: StealRequest) -> list[Part] | None:
        """What a question has brought: parts that are this task's from now on, none where it was refused. None: no answer yet."""
        log = self._logs[asked.partition]
        state = log.catch_up()
        found = state.answers.get(asked.number)
        if found is None:
            return [] if state.report is not None else None
        failpoints.hit("taken over")
        return self._taken(asked.partition, [found]) if found.kind == GIVE else []

    def withdraw(self, asked: StealRequest) -> list[Part]:
        """Gives up waiting: what the question has brought at the last moment."""
        failpoints.hit("before withdraw")
        log = self._logs[asked.partition]
        while (parts := self.answer(asked)) is None:
            if log.append(Entry(kind=WITHDRAW, attempt=self.attempt, ask=asked.number)):
                failpoints.hit("after withdraw")
                return []
        return parts

    def refusal(self, asked: StealRequest) -> str:
        """Why a question has brought nothing."""
        found = self._logs[asked.partition].state.answers.get(asked.number)
        if found is None:
            return "the other had ended"
        return found.reason if found.kind == REFUSE else "no answer came in time"

    # Being asked

    def asks(self) -> list[int]:
        """The questions to this task that have no answer yet. Raises AttemptFenced."""
        return list(self.check().asks)

    def give(self, ask: int, parts: Iterable[Part], size: int) -> bool:
        """Grant a steal of parts, which this task no longer reads. False: the request was withdrawn. Raises AttemptFenced."""
        parts = tuple(parts)
        items = {part.number: self.items[part.number] for part in parts}
        given = self._answer(Entry(kind=GIVE, attempt=self.attempt, ask=ask, parts=parts, items=items, size=size))
        failpoints.hit("after give")
        return given

    def refuse(self, ask: int, reason: str) -> None:
        """Gives nothing. Raises AttemptFenced."""
        self._answer(Entry(kind=REFUSE, attempt=self.attempt, ask=ask, reason=reason))
        failpoints.hit("after refuse")

    def _answer(self, entry: Entry) -> bool:
        while entry.ask in self.check().asks:
            if self.own.append(entry):
                return True
        return False

    # The end

    def report(self, report: Any) -> None:
        """Reports: the last entry. Questions without an answer are refused by it. Raises AttemptFenced."""
        failpoints.hit("before report")
        while True:
            self._check(self.own.state)
            if self.own.append(Entry(kind=REPORT, attempt=self.attempt, report=report)):
                break
        failpoints.hit("after report")
