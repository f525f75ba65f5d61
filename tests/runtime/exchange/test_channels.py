from __future__ import annotations

import attrs
import pyarrow as pa
import pytest

from dagflow.errors import ExchangeBroken, OperatorFailed
from dagflow.local.spool import Spool
from dagflow.runtime.exchange.channels import TaskChannels, checked, in_level
from dagflow.runtime.exchange.hot_keys import HotKeys
from dagflow.runtime.exchange.rows import FAILED, Row, batch_of
from dagflow.runtime.run_folder.reports import ExchangeFigures
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import ExchangeLayout, TaskSpec

LAYOUT = ExchangeLayout(level=1, place=2, next_tasks=2)
SPEC = TaskSpec(window=0, epoch="r", stage="s1", partition=0, partitions=2, layout=LAYOUT)
DONE = TaskOutcome(task="s1-0000", attempt="1", started=0, ended=1)


def row(tag: int = 0, dst: int = 2, src: int = 0, seq: int = 0) -> Row:
    return Row(dst, tag, src, seq, b"x")


def test_rows_for_later_levels_are_passed_on() -> None:
    onward: list[Row] = []
    rows = [row(0), row(4, dst=7), row(1)]
    assert list(checked(rows, SPEC, {0: 1, 1: 2}, onward.append)) == [row(0), row(1)]
    assert onward == [row(4, dst=7)]


@pytest.mark.parametrize("wrong", [row(0, dst=1), row(12), row(8)])
def test_rows_that_do_not_belong_here_are_an_error(wrong: Row) -> None:
    with pytest.raises(ExchangeBroken):
        list(checked([wrong], SPEC, {0: 1, 1: 2, 2: 0}, lambda row: None))


def test_a_task_runs_on_all_that_arrives() -> None:
    seen: list[Row] = []

    def execute(channels: TaskChannels) -> TaskOutcome:
        seen.extend(channels.incoming)
        return DONE

    assert in_level(SPEC, TaskChannels([row(seq=1), row(seq=2)]), execute) is DONE
    assert [each.seq for each in seen] == [1, 2]


def test_a_task_behind_one_that_failed_does_not_run_and_tells_those_behind_it() -> None:
    sent: list[Row] = []
    rows = iter([Row(2, FAILED, -1, 0, b""), row()])
    assert in_level(SPEC, TaskChannels(rows, sent.append), lambda channels: pytest.fail("it ran")) is None
    assert [(each.dst, each.tag) for each in sent] == [(0, FAILED), (1, FAILED)]
    assert list(rows) == [], "all is taken: whoever sends it waits for that"


def test_a_task_that_fails_tells_those_behind_it() -> None:
    sent: list[Row] = []
    failed = attrs.evolve(DONE, error=OperatorFailed(operator="o", doing="d", error="e"))
    assert in_level(SPEC, TaskChannels((), sent.append), lambda channels: failed) is failed
    assert [each.dst for each in sent] == [0, 1]


def test_a_spool_gives_each_task_its_rows_by_source_and_sequence() -> None:
    with Spool() as spool:
        for each in (row(src=1, seq=0), row(src=0, seq=5), row(src=0, seq=4), row(dst=3)):
            spool.put(1, each)
        spool.put(2, row(src=9))
        assert [(each.src, each.seq, each.blob) for each in spool.rows(1, 2)] == [(0, 4, b"x"), (0, 5, b"x"), (1, 0, b"x")]
        assert [each.dst for each in spool.rows(1, 3)] == [3]
        assert list(spool.rows(1, 4)) == []
        assert [each.src for each in spool.rows(2, 2)] == [9]


def test_batches_stay_as_they_are_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [pa.record_batch({"n": [n] * 100}) for n in range(3)]
    monkeypatch.setattr("dagflow.local.spool._BATCHES", 2 * batches[0].nbytes)
    with Spool() as spool:
        for n, batch in enumerate(batches):
            spool.put(1, row(seq=n)._replace(blob=batch))
        found = [each.blob for each in spool.rows(1, 2)]
        assert [each is batch for each, batch in zip(found, batches, strict=True)] == [True, True, False]
        assert batch_of(found[2]).equals(batches[2])
        whole = batches[0].slice(0, 1)
        spool.put(1, row(seq=9)._replace(blob=whole))
        (kept,) = (each.blob for each in spool.rows(1, 2))
        assert kept.equals(whole)
        assert kept.get_total_buffer_size() < 100, "what it is a slice of is not kept"


def test_hot_keys_are_found_in_samples_of_batches() -> None:
    hot = HotKeys(stride=2)
    for start in range(0, 5000, 1000):
        hot.see_all(["hot"] * 500 + list(range(start, start + 500)))
    hot.see_all([["a"]] * 8 + [["b"]] * 7)
    assert hot.told() == {"'hot'": 5000, "\"['a']\"": 16}, "what was seen a few times in a sample may not be hot"


def test_hot_keys_are_found_among_many() -> None:
    hot = HotKeys(stride=1)
    for number in range(20_000):
        hot.see("hot" if number % 4 == 0 else number)
    figures = ExchangeFigures(before=20_000, hottest=hot.told())
    assert list(figures.hot()) == ["'hot'"]
    figures.add(figures)
    assert list(figures.hot()) == ["'hot'"]
    assert not ExchangeFigures(before=1000, hottest={"1": 49}).hot()
