"""The driver's half of a log sink: sends the messages of a window that the log does not have yet.

Before the first message of a window is sent, a note says where each partition ended. A launch that finds the note reads the
messages behind these ends back: the last one that carries this window tells how many of its messages a partition has. So each
launch also sees whether the log still has the window that was published last, and no later one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from dagflow import SinkLaunch, StagedWindow, WindowMark
from dagflow.errors import RunFolderOlder
from operators.sinks.logs.client import LogBounds, LogTarget, MessageMark, OpenLog, Outgoing, owner_of
from operators.sinks.logs.errors import LogHasMessages, LogReplaced, LogTailTooLong, MessageRefused
from operators.sinks.logs.hashing import partition_of
from operators.sinks.logs.staging import Begun, BegunNotes, StagedMessages

FIRST_LOOK = 64
"""The messages of a partition that are read back at first; then 16 times as many, until a mark of the window is found."""
LAUNCH_LOOK = 1_000
"""The messages of a partition that are looked at first for windows that this run folder does not know of."""
BATCH = 4_096
"""Messages that are Python objects at the same time."""


@attrs.frozen
class LogPublisher:
    """Publishes windows to a log.

    Attributes:
        look_back: the most messages of a partition that are read back.
        settle: seconds in which messages of a launch that died may still arrive.
        sleep: waits so long.
    """

    log: LogTarget
    look_back: int
    settle: float
    sleep: Callable[[float], None] = time.sleep

    def check(self, launch: SinkLaunch) -> list[str]:
        """Try the log, and return warnings. Raises LogHasMessages, LogRefused, LogUnavailable."""
        with self.log.connected("looking at it before the launch") as log:
            state = log.state()
            self.log.check(log)
            if launch.application:
                return []
            if launch.fresh:
                return self._check_fresh(log, state, launch)
            owners = {mark.owner for _, _, mark in log.marks(self._last(state, LAUNCH_LOOK), {}) if mark is not None}
        applications = {owner.rpartition("/")[0] for owner in owners if owner.rpartition("/")[2] == launch.sink}
        earlier = sorted(each for each in applications if launch.is_earlier_run(each))
        if not earlier:
            return []
        return [
            f"{self.log.place} has messages of an earlier run of this application, on another run folder: if they are made of "
            "the same input, they will be there twice"
        ]

    def _check_fresh(self, log: OpenLog, state: LogBounds, launch: SinkLaunch) -> list[str]:
        """Raise LogHasMessages if the log has messages of the run that is replaced; warn if `look_back` is too short for that."""

        def is_earlier(mark: MessageMark) -> bool:
            application, _, sink = mark.owner.rpartition("/")
            return sink == launch.sink and (
                application == launch.replaces if launch.replaces else launch.is_earlier_run(application)
            )

        newest, is_whole = self._newest_marks(log, state, state.begins, is_earlier, one=True)
        for mark in newest.values():
            raise LogHasMessages(log=self.log.place, application=mark.owner.rpartition("/")[0])
        if is_whole:
            return []
        return [
            f"{self.log.place} may have messages of the run that is replaced, behind the last {self.look_back:,} of a partition, "
            "which are of other producers: if it has, they will be there twice"
        ]

    def _newest_marks(
        self, log: OpenLog, state: LogBounds, floors: Sequence[int], is_wanted: Callable[[MessageMark], bool], one: bool = False
    ) -> tuple[dict[int, MessageMark], bool]:
        """Return the last wanted mark of each partition, and whether all messages from `floors` on were read where there is none.

        The last messages are read first, then further back, up to `look_back` of them. `one`: a mark of any partition is enough.
        """
        newest: dict[int, MessageMark] = {}
        places = enumerate(zip(floors, state.begins, state.ends, strict=False))
        lowest = {partition: max(floor, begin) for partition, (floor, begin, end) in places if end > max(floor, begin)}
        stops: dict[int, int] = {}
        look = 0
        while lowest and look < self.look_back and not (one and newest):
            look = min(max(LAUNCH_LOOK, 16 * look), self.look_back)
            starts = {partition: max(least, state.ends[partition] - look) for partition, least in lowest.items()}
            marks = log.marks(starts, stops)
            newest |= {partition: mark for partition, _, mark in marks if mark is not None and is_wanted(mark)}
            lowest = {each: least for each, least in lowest.items() if each not in newest and starts[each] > least}
            stops = {partition: starts[partition] for partition in lowest}
        return newest, not lowest

    def newest_mark(self, last: StagedWindow) -> WindowMark:
        """Return the newest window that the log has, as far as its last messages say it.

        Raises LogReplaced if the log is not the one that `last` was published to, or has lost messages of it.
        """
        staged, owner = _staged(last), owner_of(last.application, last.sink)
        notes = BegunNotes(staged[0].folder, last.sink) if staged else None
        note = None if notes is None else notes.read(last.number)
        if notes is not None and note is None and (older := notes.newest(last.number)) is not None:
            # a user who accepts another log removes the only note that there is
            reason = f"the note of window {last.number}, which was published, is gone, and that of window {older[0]} is there"
            raise LogReplaced(log=self.log.place, window=None, reason=reason, note=notes.place(older[0]))
        with self.log.connected("looking for its newest window") as log:
            state = log.state()
            if notes is None or note is None:  # a run folder without one is new, so only the last messages are looked at
                floors = [max(begin, end - LAUNCH_LOOK) for begin, end in zip(state.begins, state.ends, strict=True)]
            else:  # where there are more partitions now, messages of a newer run folder are in the others, too
                floors = list(note.starts)
            marks, _ = self._newest_marks(log, state, floors, lambda mark: mark.owner == owner)
            newest = max((mark.window for mark in marks.values()), default=-1)
            if notes is not None and note is not None and newest <= last.number:
                messages = sum(file.messages for file in staged)
                left = sum(mark.sequence + 1 for mark in marks.values() if mark.window == last.number)
                if left < messages or _difference(state, note, "") is not None:
                    self._check_tail(log, last, messages, note, notes)
        return WindowMark(max(newest, last.number))  # what retention has removed is no longer there

    def _check_tail(self, log: OpenLog, last: StagedWindow, messages: int, note: Begun, notes: BegunNotes) -> None:
        """Raise LogReplaced if the log is another one, or certainly lacks some of the messages of a window that was published."""
        then = f"since window {last.number} began to be published"

        def reason() -> str | None:
            state = log.state()
            return _difference(state, note, then) or self._lost(log, state, last, messages, note)

        if reason() is None:
            return
        self.sleep(self.settle)  # servers may say late where a log ends
        if (certain := reason()) is not None:
            raise LogReplaced(log=self.log.place, window=None, reason=certain, note=notes.place(last.number))

    def _lost(self, log: OpenLog, state: LogBounds, last: StagedWindow, messages: int, note: Begun) -> str | None:
        """Return which messages of a window are lost; None if all are there, or others may have removed them since."""
        owner, read, counts = owner_of(last.application, last.sink), 0, dict[int, int]()
        starts = dict(enumerate(note.starts))
        behind = sum(state.ends[partition] - start for partition, start in starts.items())
        if any(state.begins[partition] > start for partition, start in starts.items()) or behind > self.look_back:
            return None
        for partition, _, mark in log.marks(starts, dict(enumerate(state.ends))):
            read += 1
            if mark is not None and (mark.owner, mark.window) == (owner, last.number):
                counts[partition] = mark.sequence + 1
        left = sum(counts.values())
        if left >= messages or read < behind >= messages:  # compaction or a user has removed single messages
            return None
        return f"{messages - left:,} of {messages:,} messages of window {last.number}, which was published, are gone"

    def publish(self, window: StagedWindow) -> None:
        """Send what is not in the log yet."""
        staged = _staged(window)
        if not staged:
            return
        notes = BegunNotes(staged[0].folder, window.sink)
        with self.log.connected(f"publishing window {window.number}") as log:
            note, counts = self._begun(log, window, staged, notes)
            if not _is_whole(staged, counts) and any(self._rest(window, staged, note, counts)):
                rest = self._rest(window, staged, note, counts)
                log.send(owner_of(window.application, window.sink), window.number, note.starts, rest)

    def is_published(self, window: StagedWindow) -> bool:
        """Return whether the log has all messages of a window. Its staged files may be swept away, if it has."""
        staged = _staged(window)
        if not staged:
            return True
        notes = BegunNotes(staged[0].folder, window.sink)
        if notes.is_behind(window.number):
            return True
        note = notes.read(window.number)
        if note is None:
            return False
        with self.log.connected(f"looking for window {window.number}") as log:
            counts = self._counts(log, window, note, notes)  # without waiting: `publish` does, where messages are missing
        return _is_whole(staged, counts) or not any(self._rest(window, staged, note, counts))

    def sweep(self, window: StagedWindow) -> None:
        """Remove what was staged for a window and those before it."""
        if staged := _staged(window):
            BegunNotes(staged[0].folder, window.sink).sweep(window.number)

    def _begun(
        self, log: OpenLog, window: StagedWindow, staged: Sequence[StagedMessages], notes: BegunNotes
    ) -> tuple[Begun, Mapping[int, int]]:
        """Return the note of a window, which is written now if there is none, and how many messages each partition has."""
        note = notes.read(window.number)
        if note is not None:
            return note, self._present(log, window, note, notes)
        state = log.state()
        self._check_partitions(state, window, staged)
        before = notes.newest(window.number)
        if before is not None:
            self._check_same(state, before[1], window, notes, before[0])
        identity = before[1].identity if state.identity is None and before is not None else state.identity
        return notes.write(window.number, Begun(identity=identity, starts=state.ends)), {}

    def _check_partitions(self, state: LogBounds, window: StagedWindow, staged: Sequence[StagedMessages]) -> None:
        """Raise MessageRefused if a message names a partition that the log does not have."""
        if (named := max(file.partitions for file in staged)) > len(state.ends):
            reason = f"it is for partition {named - 1}, and there are {len(state.ends)}, numbered from 0"
            raise MessageRefused(log=self.log.place, window=window.number, reason=reason)

    def _check_same(self, state: LogBounds, note: Begun, window: StagedWindow, notes: BegunNotes, noted: int) -> None:
        """Raise LogReplaced if the log is not the one that a note was written for, or has lost messages."""
        begun = "began to be" if noted == window.number else "was"
        if (reason := _difference(state, note, f"since window {noted} {begun} published")) is not None:
            raise LogReplaced(log=self.log.place, window=window.number, reason=reason, note=notes.place(noted))

    def _last(self, state: LogBounds, messages: int) -> dict[int, int]:
        ends = enumerate(zip(state.begins, state.ends, strict=True))
        return {partition: max(begin, end - messages) for partition, (begin, end) in ends if end > begin}

    # ------------------------------------------------------------------------------------------------------------ the tail

    def _present(self, log: OpenLog, window: StagedWindow, note: Begun, notes: BegunNotes) -> dict[int, int]:
        """Return how many messages of a window each partition has, once none arrives any more."""
        counts = self._counts(log, window, note, notes)
        while True:
            self.sleep(self.settle)
            again = self._counts(log, window, note, notes)
            if again == counts:
                return counts
            counts = again

    def _counts(self, log: OpenLog, window: StagedWindow, note: Begun, notes: BegunNotes) -> dict[int, int]:
        state, owner = log.state(), owner_of(window.application, window.sink)
        self._check_same(state, note, window, notes, window.number)
        counts: dict[int, int] = {}
        starts = dict(enumerate(note.starts))
        stops: dict[int, int] = {}
        look = FIRST_LOOK
        while starts:
            wanted = {}
            for partition, start in starts.items():
                end = state.ends[partition]
                furthest = max(start, state.begins[partition], end - self.look_back)
                wanted[partition] = max(furthest, stops.get(partition, end) - look)
                if wanted[partition] == stops.get(partition):  # all of `look_back` was read
                    raise LogTailTooLong(
                        log=self.log.place, window=window.number, partition=partition, messages=end - start, limit=self.look_back
                    )
            for partition, _, mark in log.marks(wanted, stops):
                if mark is not None and (mark.owner, mark.window) == (owner, window.number):
                    counts[partition] = max(counts.get(partition, 0), mark.sequence + 1)
                elif mark is not None and mark.owner == owner and mark.window > window.number:
                    raise RunFolderOlder(
                        sink=window.sink, store=self.log.place, window=mark.window, newest=window.number, run_folder=notes.folder
                    )
            for partition, start in list(starts.items()):
                if partition in counts or wanted[partition] <= start:
                    del starts[partition]
                elif wanted[partition] <= state.begins[partition]:
                    reason = (
                        f"partition {partition} begins at {state.begins[partition]:,} now, behind {start:,}, where window "
                        f"{window.number} began: messages of it may have been removed"
                    )
                    raise LogReplaced(log=self.log.place, window=window.number, reason=reason, note=notes.place(window.number))
            stops, look = {partition: wanted[partition] for partition in starts}, look * 16
        return counts

    # -------------------------------------------------------------------------------------------------------- the messages

    def _rest(
        self, window: StagedWindow, staged: Sequence[StagedMessages], note: Begun, counts: Mapping[int, int]
    ) -> Iterator[Outgoing]:
        """Yield the messages that are not in the log, in order."""
        partitions, position = len(note.starts), 0
        following = dict.fromkeys(range(partitions), 0)
        for file in staged:
            for batch in file.batches(window.sink, window.number):
                for start in range(0, batch.num_rows, BATCH):
                    chunk = batch.slice(start, BATCH)
                    outgoing = _outgoing(chunk, partitions, position, following, counts)
                    position += chunk.num_rows
                    if outgoing.partitions:
                        yield outgoing


def _difference(state: LogBounds, note: Begun, then: str) -> str | None:
    """Return how a log is not the one that a note was written for, or has lost messages; None if it is. `then`: since when."""
    if None not in (note.identity, state.identity) and note.identity != state.identity:
        return f"it was dropped and created again {then}"
    if len(state.ends) < len(note.starts):
        return f"it has {len(state.ends)} partitions, and had {len(note.starts)}, {then}"
    for partition, start in enumerate(note.starts):
        if state.ends[partition] < start:
            return f"partition {partition} ends at {state.ends[partition]:,}, and ended at {start:,}, {then}"
    return None


def _staged(window: StagedWindow) -> list[StagedMessages]:
    return [StagedMessages(**each) for each in window.staged]


def _is_whole(staged: Sequence[StagedMessages], counts: Mapping[int, int]) -> bool:
    """Return whether partitions have all messages of a window, by their number."""
    return sum(counts.values()) == sum(file.messages for file in staged)


def _outgoing(
    batch: pa.RecordBatch, partitions: int, position: int, following: dict[int, int], counts: Mapping[int, int]
) -> Outgoing:
    """Return the messages of a batch that are not in the log, numbered within their partition."""
    routes: list[Any] = batch.column("route").to_pylist()
    places = [partition_of(route, partitions, position + row) for row, route in enumerate(routes)]
    kept, sequences = [], []
    for row, place in enumerate(places):
        number = following.get(place, 0)
        following[place] = number + 1
        if number >= counts.get(place, 0):
            kept.append(row)
            sequences.append(number)
    if len(kept) < len(places):
        batch, places = batch.take(pa.array(kept, pa.int64())), [places[row] for row in kept]
    columns = {name: batch.column(name).to_pylist() for name in ("subject", "key", "value", "headers", "time")}
    return Outgoing(
        partitions=places,
        sequences=sequences,
        subjects=columns["subject"],
        keys=columns["key"],
        values=columns["value"],
        headers=columns["headers"],
        times=columns["time"],
    )
