"""What stands in the log of one task, and what follows from it: a pure function of its entries, in their order."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.model.plain import dumps, loads
from dagflow.runtime.stage.parts import Part, part_of

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
class State:
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
