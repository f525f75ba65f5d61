"""Logs after crashes, errors and retries: each message is in once, in order. Judged by reading the log."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import SinkLaunch, StagedWindow, WindowMark
from dagflow.errors import (
    LogHasMessages,
    LogReplaced,
    LogTailTooLong,
    LogUnavailable,
    MessageRefused,
    RecordDamaged,
    StagedMessagesMissing,
)
from dagflow.testing import OperatorTask
from operators.sinks.logs import publishing
from operators.sinks.logs.hashing import partition_of
from operators.sinks.logs.staging import Begun, BegunNotes
from tests.operators.sinks.logs.memory_log import LOGS, Died, MemoryLog, MemoryWriter, unavailable

Staged = Callable[..., StagedWindow]


@pytest.fixture
def log() -> MemoryLog:
    LOGS[""] = MemoryLog()
    return LOGS[""]


def stage(folder: Any, number: int, *tasks: list[Any], writer: Any = None, application: str = "shop-1f") -> StagedWindow:
    """A window as the driver gets it: the values of each task."""
    staged = []
    for values in tasks:
        own = attrs.evolve(writer or MemoryWriter())
        with OperatorTask(own, name="sink", window=number) as task:
            task.context.application, task.context.staging_folder = application, str(folder)
            if values and isinstance(values[0], dict):
                task.give("input", pa.RecordBatch.from_pylist(values))
            else:
                task.give("input", pa.record_batch({"value": pa.array(values, pa.string())}))
            task.end_window()
            staged.append(own.stage())
    return StagedWindow(application, number, tuple(each for each in staged if each is not None), "sink")


def names(*numbers: int) -> list[str]:
    return [f"m{number}" for number in numbers]


def test_a_window_is_published_once(log: MemoryLog, tmp_path: Path) -> None:
    window, writer = stage(tmp_path, 0, names(*range(300)), names(*range(300, 500))), MemoryWriter()
    assert not writer.is_published(window)
    for _ in range(3):
        writer.publish(window)
        assert writer.is_published(window)
    for partition in range(3):
        assert log.own(partition) == [(0, number) for number in range(len(log.own(partition)))]
    values = sorted(value for partition in range(3) for value in log.values(partition))
    assert values == sorted(f"m{number}".encode() for number in range(500))


def test_a_window_without_messages_asks_nothing(log: MemoryLog, tmp_path: Path) -> None:
    window = stage(tmp_path, 0, [])
    MemoryWriter().publish(window)
    assert MemoryWriter().is_published(window)
    MemoryWriter().sweep(window)
    assert log.calls == {}


def test_messages_of_a_key_stay_in_order_also_over_windows(log: MemoryLog, tmp_path: Path) -> None:
    writer = MemoryWriter(key="k")
    for number in range(3):
        rows = [{"k": f"key {n % 5}", "n": number * 100 + n} for n in range(100)]
        MemoryWriter().publish(stage(tmp_path, number, rows, writer=writer))
    for partition in log.partitions:
        for key in {each.key for each in partition}:
            own = [int(each.value.rpartition(b":")[2][:-1]) for each in partition if each.key == key and each.value]
            assert own == sorted(own)
    assert sum(len({each.key for each in partition}) for partition in log.partitions) == 5


STEPS = ["connect", "state", "batch", "before a message", "after a message", "answer", "marks"]


@pytest.mark.parametrize("error", [Died, unavailable])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("number", [0, 1, 7])
def test_a_crash_at_a_step_loses_and_doubles_nothing(
    log: MemoryLog, tmp_path: Path, step: str, number: int, error: Callable[[], BaseException]
) -> None:
    windows = [stage(tmp_path, at, names(*range(at * 20, at * 20 + 20)), writer=MemoryWriter(key="value")) for at in range(3)]
    log.breaks[step, number] = error()
    for window in windows:
        for _ in range(3):
            try:
                if MemoryWriter().is_published(window):
                    break
                MemoryWriter().publish(window)
                break
            except (Died, LogUnavailable):
                pass
    assert published(log) == expected(windows)


def expected(windows: list[StagedWindow]) -> list[list[Any]]:
    """The messages of each partition, in order."""
    found: list[list[Any]] = [[], [], []]
    for window in windows:
        position = 0
        numbers = [0] * 3
        for file in publishing._staged(window):
            for batch in file.batches("sink", window.number):
                for route, value in zip(batch["route"].to_pylist(), batch["value"].to_pylist(), strict=True):
                    place = partition_of(route, 3, position)
                    found[place].append((window.number, numbers[place], value))
                    numbers[place] += 1
                    position += 1
    return found


def published(log: MemoryLog) -> list[list[Any]]:
    """The same, as the log has them."""
    marked = [[(each.mark, each.value) for each in partition if each.mark is not None] for partition in log.partitions]
    return [[(mark.window, mark.sequence, value) for mark, value in partition] for partition in marked]


@given(data=st.data())
def test_any_sequence_of_crashes_leaves_each_message_once_in_order(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("staged")
    log = LOGS[""] = MemoryLog()
    sizes = data.draw(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), min_size=1, max_size=4), label="windows")
    log.lags = data.draw(st.integers(0, 3), label="ends are told too early by")
    keyed = data.draw(st.booleans(), label="keyed")
    writer = MemoryWriter(key="value" if keyed else None)
    windows = []
    wanted: list[list[Any]] = [[], [], []]
    for number, tasks in enumerate(sizes):
        values = [[f"{number}.{task}.{n % 7}" for n in range(size)] for task, size in enumerate(tasks)]
        windows.append(stage(folder, number, *values, writer=writer))
    for window in windows:
        for _ in range(data.draw(st.integers(0, 4), label="crashes")):
            step = data.draw(st.sampled_from(STEPS), label="step")
            at = log.calls.get(step, -1) + 1 + data.draw(st.integers(0, 30), label="number")
            log.breaks = {(step, at): data.draw(st.sampled_from([Died(), unavailable()]), label="error")}
            try:
                if not MemoryWriter().is_published(window):
                    MemoryWriter().publish(window)
            except (Died, LogUnavailable):
                pass
            if data.draw(st.booleans(), label="others write"):
                log.other(data.draw(st.integers(0, 2)), data.draw(st.integers(1, 100)))
        log.breaks = {}
        if not MemoryWriter().is_published(window):
            MemoryWriter().publish(window)
        for partition, messages in enumerate(expected([window])):
            wanted[partition] += messages
        assert published(log) == wanted
        if data.draw(st.booleans(), label="swept"):
            MemoryWriter().sweep(StagedWindow(window.application, window.number - 1, window.staged, window.sink))


# ------------------------------------------------------------------------------------------------------------- the look back


def test_after_a_crash_little_is_read_back(log: MemoryLog, tmp_path: Path) -> None:
    for number in range(2):
        MemoryWriter().publish(stage(tmp_path, number, names(*range(10_000))))
    window = stage(tmp_path, 2, names(*range(10_000)))
    log.breaks["before a message", 29_999] = Died()
    with pytest.raises(Died):
        MemoryWriter().publish(window)
    log.marks_read = 0
    MemoryWriter(look_back=1_000).publish(window)
    assert log.marks_read == 2 * 3 * publishing.FIRST_LOOK
    assert [len(log.own(partition)) for partition in range(3)] == [10_032, 9_984, 9_984]


def test_a_window_without_a_crash_reads_nothing_back(log: MemoryLog, tmp_path: Path) -> None:
    log.other(0, 5_000)
    assert MemoryWriter().newest_mark(StagedWindow("shop-1f", -1, sink="sink")) == WindowMark()
    assert log.marks_read == publishing.LAUNCH_LOOK  # in the partition that has messages
    for number in range(5):
        MemoryWriter().publish(stage(tmp_path, number, names(1)))
    assert log.marks_read == publishing.LAUNCH_LOOK


def crashed(log: MemoryLog, folder: Path, after: int = 5) -> StagedWindow:
    """A window of which some messages are in."""
    window = stage(folder, 0, [{"p": 0, "n": n} for n in range(10)], writer=MemoryWriter(partition="p"))
    log.breaks["before a message", after] = Died()
    with pytest.raises(Died):
        MemoryWriter().publish(window)
    return window


def test_messages_of_others_behind_ours_are_passed(log: MemoryLog, tmp_path: Path) -> None:
    window = crashed(log, tmp_path)
    log.other(0, 3_000)
    MemoryWriter().publish(window)
    assert log.own(0) == [(0, number) for number in range(10)]


def test_too_many_messages_of_others_are_refused(log: MemoryLog, tmp_path: Path) -> None:
    window = crashed(log, tmp_path)
    log.other(0, 30_000)
    with pytest.raises(LogTailTooLong, match=r"30,005 messages came to partition 0 since window 0 .* look_back is 20,000"):
        MemoryWriter(look_back=20_000).publish(window)
    MemoryWriter(look_back=100_000).publish(window)
    assert log.own(0) == [(0, number) for number in range(10)]


def test_a_late_message_of_the_launch_that_died_is_waited_for(
    log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = crashed(log, tmp_path)
    late = attrs.evolve(log.partitions[0][-1], mark=attrs.evolve(log.partitions[0][-1].mark, sequence=5), value=b'{"p":0,"n":5}')
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            log.partitions[0].append(late)

    publishing.LogPublisher(log, 1_000, 1.5, sleep).publish(window)
    assert waits == [1.5, 1.5]
    assert log.own(0) == [(0, number) for number in range(10)]


# --------------------------------------------------------------------------------------------------------- logs that change


def test_more_partitions_do_not_move_the_keys_of_a_window(log: MemoryLog, tmp_path: Path) -> None:
    writer = MemoryWriter(key="value")
    first, second = (stage(tmp_path, number, names(*range(40)), writer=writer) for number in range(2))
    log.breaks["before a message", 17] = Died()
    with pytest.raises(Died):
        MemoryWriter().publish(first)
    log.partitions.append([])
    log.begins.append(0)
    MemoryWriter().publish(first)
    assert log.partitions[3] == []
    MemoryWriter().publish(second)
    assert log.partitions[3] != []


def test_messages_that_retention_has_removed_are_not_sent_again(log: MemoryLog, tmp_path: Path) -> None:
    window = crashed(log, tmp_path)
    log.forget(0, 3)
    MemoryWriter().publish(window)
    assert log.own(0) == [(0, number) for number in range(3, 10)]


def test_where_all_may_have_been_removed_nothing_is_sent(log: MemoryLog, tmp_path: Path) -> None:
    window = crashed(log, tmp_path)
    log.forget(0, 5)
    with pytest.raises(
        LogReplaced, match=r"begins at 5 now, behind 0, where window 0 began: .* may have been removed"
    ) as refused:
        MemoryWriter().publish(window)
    Path(refused.value.note).unlink()
    MemoryWriter().publish(window)  # the user knows better
    assert log.own(0) == [(0, number) for number in range(10)]


def again(log: MemoryLog) -> None:
    log.identity = "second"
    log.partitions = [[], [], []]


def truncated(log: MemoryLog) -> None:
    log.partitions[0].pop()


def fewer(log: MemoryLog) -> None:
    del log.partitions[2], log.begins[2]


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (again, "it was dropped and created again since window"),
        (truncated, "partition 0 ends at 3, and ended at 4, since window"),
        (fewer, "it has 2 partitions, and had 3, since window"),
    ],
)
def test_a_log_that_is_not_the_same_is_noticed(
    log: MemoryLog, tmp_path: Path, change: Callable[[MemoryLog], None], reason: str, has_begun: bool
) -> None:
    log.other(0, 4)
    first, second = stage(tmp_path, 0, names(0), writer=MemoryWriter(key="value")), stage(tmp_path, 1, names(1, 2, 3))
    if not has_begun:
        MemoryWriter().publish(first)
        log.partitions[0] = log.partitions[0][:4]
        MemoryWriter().sweep(first)
    else:
        log.breaks["batch", 0] = Died()
        with pytest.raises(Died):
            MemoryWriter().publish(second)
    change(log)
    with pytest.raises(LogReplaced, match=reason) as refused:
        MemoryWriter().publish(second)
    assert "not published" in str(refused.value)
    Path(refused.value.note).unlink()
    MemoryWriter().publish(second)
    assert sum(len(log.own(partition)) for partition in range(len(log.partitions))) >= 3


def test_the_identity_is_kept_where_servers_do_not_tell_it_once(log: MemoryLog, tmp_path: Path) -> None:
    for number, identity in enumerate(["first", None]):
        log.identity = identity
        MemoryWriter().publish(stage(tmp_path, number, names(number)))
    log.identity = "second"
    with pytest.raises(LogReplaced, match="it was dropped and created again since window 1 was published"):
        MemoryWriter().publish(stage(tmp_path, 2, names(2)))


def test_a_run_folder_that_is_older_than_the_log_is_noticed(log: MemoryLog, tmp_path: Path) -> None:
    for number in range(3):
        MemoryWriter().publish(stage(tmp_path / "run", number, names(number)))
    assert MemoryWriter().newest_mark(stage(tmp_path / "copy", 0, names(0))) == WindowMark(2)
    assert MemoryWriter().newest_mark(StagedWindow("shop-1f", -1, sink="sink")) == WindowMark(2)
    assert MemoryWriter().newest_mark(StagedWindow("shop-2e", -1, sink="sink")) == WindowMark()
    assert sum(len(log.own(partition)) for partition in range(3)) == 3


def test_a_partition_that_the_log_does_not_have_is_refused_before_anything_is_sent(log: MemoryLog, tmp_path: Path) -> None:
    window = stage(tmp_path, 0, [{"p": 0}, {"p": 3}], writer=MemoryWriter(partition="p"))
    with pytest.raises(MessageRefused, match="it is for partition 3, and there are 3, numbered from 0"):
        MemoryWriter().publish(window)
    assert log.partitions == [[], [], []]
    log.partitions.append([])
    log.begins.append(0)
    MemoryWriter().publish(window)
    assert [len(log.own(partition)) for partition in range(4)] == [1, 0, 0, 1]


def test_staged_files_that_are_lost_or_cut_are_noticed(log: MemoryLog, tmp_path: Path) -> None:
    window = stage(tmp_path, 0, names(1, 2))
    path = Path(window.staged[0]["path"])
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    with pytest.raises(StagedMessagesMissing, match=r"bytes, .* were written"):
        MemoryWriter().publish(window)
    path.unlink()
    with pytest.raises(StagedMessagesMissing, match="it is not there"):
        MemoryWriter().publish(window)
    path.write_bytes(data)
    MemoryWriter().publish(window)
    assert published(log) == expected([window])


def test_sweeping_leaves_the_newest_note_and_what_later_windows_have_staged(log: MemoryLog, tmp_path: Path) -> None:
    windows = [stage(tmp_path, number, names(number)) for number in range(3)]
    stage(tmp_path, 1, ["of an attempt that does not count"])
    other = tmp_path / "0000000000.another.1f"
    other.write_bytes(b"")
    for window in windows[:2]:
        MemoryWriter().publish(window)
        MemoryWriter().sweep(window)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [other.name, "0000000001.sink.begun", Path(windows[2].staged[0]["path"]).name]


# --------------------------------------------------------------------------------------------------------------- launches


@pytest.fixture
def earlier(log: MemoryLog, tmp_path: Path) -> MemoryLog:
    MemoryWriter().publish(stage(tmp_path, 0, names(0), application="shop-1f"))
    return log


def test_a_launch_on_another_run_folder_warns_of_messages_that_are_there(earlier: MemoryLog) -> None:
    (warning,) = MemoryWriter().check_store(SinkLaunch(name="shop", sink="sink"))
    assert "has messages of an earlier run of this application" in warning
    assert MemoryWriter().check_store(SinkLaunch(name="shop", sink="sink", application="shop-1f")) == []
    assert MemoryWriter().check_store(SinkLaunch(name="another", sink="sink")) == []


def test_a_fresh_launch_does_not_publish_again_what_is_there(earlier: MemoryLog) -> None:
    launch = SinkLaunch(name="shop", sink="sink", fresh=True, replaces="shop-1f")
    with pytest.raises(LogHasMessages, match=r"messages of an earlier run \(shop-1f\), and --fresh would publish them again"):
        MemoryWriter().check_store(launch)
    assert MemoryWriter().check_store(attrs.evolve(launch, replaces="shop-2e")) == []
    earlier.partitions = [[], [], []]
    assert MemoryWriter().check_store(launch) == []


# ------------------------------------------------------------------------------- a window whose mark of done has been lost


def test_a_window_that_is_in_needs_no_staged_files(log: MemoryLog, tmp_path: Path) -> None:
    first, second = (stage(tmp_path, number, names(number, number + 10)) for number in range(2))
    MemoryWriter().publish(first)
    MemoryWriter().sweep(first)
    assert MemoryWriter().is_published(first)
    MemoryWriter().publish(first)
    MemoryWriter().publish(second)
    assert MemoryWriter().is_published(first)
    MemoryWriter().sweep(second)
    assert MemoryWriter().is_published(first)
    assert MemoryWriter().is_published(second)
    assert log.own(0) == [(0, 0), (0, 1), (1, 0), (1, 1)]


# ---------------------------------------------------------------------------------- sinks whose names begin or end alike


@pytest.mark.parametrize(("sink", "other"), [("out", "shop.out"), ("shop", "shop.out")])
def test_notes_of_other_sinks_are_left_alone(tmp_path: Path, sink: str, other: str) -> None:
    own, others = BegunNotes(str(tmp_path), sink), BegunNotes(str(tmp_path), other)
    note = Begun(identity="first", starts=(0,))
    own.write(2, note)
    others.write(1, note)
    others.write(5, note)
    staged = tmp_path / f"0000000001.{other}.{'0' * 32}"
    staged.write_bytes(b"")
    assert own.newest(10) == (2, note)
    assert not own.is_behind(2)
    own.sweep(9)
    assert staged.exists()
    assert others.newest(10) == (5, note)
    assert others.read(1) == note
    others.sweep(9)
    assert own.newest(10) == (2, note)
    assert not staged.exists()


# --------------------------------------------------------------------------------------- far behind messages of others


def test_a_fresh_launch_looks_past_messages_of_others(earlier: MemoryLog) -> None:
    launch = SinkLaunch(name="shop", sink="sink", fresh=True, replaces="shop-1f")
    for partition in range(3):
        earlier.other(partition, 20_000)
    with pytest.raises(LogHasMessages):
        MemoryWriter().check_store(launch)
    [warning] = MemoryWriter(look_back=10_000).check_store(launch)
    assert "may have messages of the run that is replaced, behind the last 10,000 of a partition" in warning


def test_an_older_run_folder_is_noticed_behind_messages_of_others(log: MemoryLog, tmp_path: Path) -> None:
    MemoryWriter().publish(stage(tmp_path / "run", 0, names(0)))
    copy = Path(shutil.copytree(tmp_path / "run", tmp_path / "copy"))
    MemoryWriter().publish(stage(tmp_path / "run", 1, names(1)))
    log.other(0, 20_000)
    assert MemoryWriter().newest_mark(stage(copy, 0, names(0))) == WindowMark(1)


@pytest.mark.parametrize("others", [900, 1_100])
def test_all_of_look_back_is_read(log: MemoryLog, tmp_path: Path, others: int) -> None:
    log.other(0, 2_000)
    window = crashed(log, tmp_path)
    log.other(0, others)
    if others < 1_000:
        MemoryWriter(look_back=1_000).publish(window)
        assert log.own(0) == [(0, number) for number in range(10)]
    else:
        log.marks_read = 0
        with pytest.raises(LogTailTooLong, match="look_back is 1,000"):
            MemoryWriter(look_back=1_000).publish(window)
        assert log.marks_read == 1_000


# ----------------------------------------------------------------------------------------- what a launch sees before it begins


def done(log: MemoryLog, folder: Path, *sizes: int) -> StagedWindow:
    """Publish windows of so many messages to partition 0, and return the last one."""
    windows = [
        stage(folder, number, [{"p": 0, "n": n} for n in range(size)], writer=MemoryWriter(partition="p"))
        for number, size in enumerate(sizes)
    ]
    for window in windows:
        MemoryWriter().publish(window)
        MemoryWriter().sweep(window)
    return windows[-1]


def test_a_log_as_it_was_left_is_read_once(log: MemoryLog, tmp_path: Path) -> None:
    last = done(log, tmp_path, 3, 5)
    log.marks_read = 0
    assert MemoryWriter().newest_mark(last) == WindowMark(1)
    assert log.marks_read == 5


@pytest.mark.parametrize("lost", [1, 5])
@pytest.mark.parametrize("others", [0, 7])
def test_messages_that_a_server_has_acknowledged_and_lost_are_missed(
    log: MemoryLog, tmp_path: Path, lost: int, others: int
) -> None:
    last = done(log, tmp_path, 3, 5)
    del log.partitions[0][-lost:]
    log.other(0, others)
    with pytest.raises(LogReplaced, match=f"{lost} of 5 messages of window 1, which was published, are gone") as refused:
        MemoryWriter().newest_mark(last)
    assert "nothing that is missing is sent again" in str(refused.value)
    Path(refused.value.note).unlink()
    assert MemoryWriter().newest_mark(last) == WindowMark(1)  # the user knows


def test_messages_that_retention_or_compaction_has_removed_are_not_missed(log: MemoryLog, tmp_path: Path) -> None:
    last = done(log, tmp_path, 3, 5)
    log.other(0, 1)
    log.forget(0, 8)  # all of ours
    assert MemoryWriter().newest_mark(last) == WindowMark(1)


def test_an_end_that_is_told_late_is_not_a_loss(log: MemoryLog, tmp_path: Path) -> None:
    last = done(log, tmp_path, 3, 5)
    log.lags = 6

    def catches_up(seconds: float) -> None:
        log.lags = 0

    publisher = attrs.evolve(MemoryWriter()._publisher(), sleep=catches_up)
    assert publisher.newest_mark(last) == WindowMark(1)


def test_a_log_that_was_created_again_is_noticed_without_a_new_window(log: MemoryLog, tmp_path: Path) -> None:
    last = done(log, tmp_path, 3)
    again(log)
    with pytest.raises(LogReplaced, match="it was dropped and created again since window 0 began to be published\n"):
        MemoryWriter().newest_mark(last)


# ------------------------------------------------------------------------------------------------------------------- the notes


def test_a_note_that_was_altered_is_refused(log: MemoryLog, tmp_path: Path) -> None:
    window = crashed(log, tmp_path)
    [note] = tmp_path.glob("*.begun")
    note.write_bytes(note.read_bytes().replace(b"[0,", b"[9,"))
    with pytest.raises(RecordDamaged, match="its bytes have the hash"):
        MemoryWriter().publish(window)
    note.write_bytes(b"")
    with pytest.raises(RecordDamaged, match="its 0 bytes do not end with a seal"):
        MemoryWriter().publish(window)


def test_notes_of_earlier_releases_are_not_sealed(log: MemoryLog, tmp_path: Path) -> None:
    window = crashed(log, tmp_path)
    [note] = tmp_path.glob("*.begun")
    note.write_text(json.dumps({"identity": "first", "starts": [0, 0, 0]}))
    MemoryWriter().publish(window)
    assert log.own(0) == [(0, number) for number in range(10)]
