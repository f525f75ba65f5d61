"""The order of a job's tasks, and the retry rules, whatever happens to attempts and in whatever order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import DagflowError, OperatorFailed
from dagflow.local.schedule import MAX_ATTEMPTS, Attempt, JobSchedule
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import ExchangeLayout, Job, TaskSpec

GOOD, BAD, DEAD = "good", "bad", "dead"


def job_of(*tasks_in_levels: int) -> Job:
    tasks = tuple(
        TaskSpec(window=0, epoch="e", stage=f"s{level}", partition=n, partitions=count, layout=ExchangeLayout(level=level))
        for level, count in enumerate(tasks_in_levels)
        for n in range(count)
    )
    return Job(window=0, epoch="e", name="job", tasks=tasks, programs={}, run_folder="run", durable=False)


def outcome(attempt: Attempt, error: DagflowError | None = None) -> TaskOutcome:
    return TaskOutcome(task=attempt.spec.name, attempt=str(attempt.number), started=0.0, ended=0.0, error=error)


def failed(attempt: Attempt) -> TaskOutcome:
    return outcome(attempt, OperatorFailed(operator="o", doing="a test", error="ValueError: no"))


levels = st.lists(st.integers(1, 4), min_size=1, max_size=3)
fates = st.sampled_from([GOOD] * 6 + [DEAD] * 3 + [BAD])


@given(levels, st.integers(1, 4), st.data())
def test_any_course_of_a_job(counts: list[int], slots: int, data: st.DataObject) -> None:
    schedule = JobSchedule(job_of(*counts))
    running: list[Attempt] = []
    attempts, ended, deaths = Counter[str](), set[str](), Counter[str]()
    while not schedule.is_over:
        if schedule.is_between_levels:
            assert not running
            level = schedule.next_level
            assert ended == {name for name in ended if int(name[1]) < level}
            assert len(ended) == sum(counts[:level]), "a level begins when all tasks before it have ended"
            schedule.begin_level()
        while len(running) < slots and (attempt := schedule.next()) is not None:
            name = attempt.spec.name
            attempts[name] += 1
            assert attempt.number == attempts[name] <= MAX_ATTEMPTS
            assert name not in ended
            assert name not in {each.spec.name for each in running}, "never two attempts at once"
            running.append(attempt)
        assert running, "a job that is not over has something to do"
        attempt = running.pop(data.draw(st.integers(0, len(running) - 1)))
        fate = data.draw(fates)
        if fate == DEAD:
            deaths[attempt.spec.name] += 1
            schedule.died(attempt, "it was killed")
        else:
            schedule.ended(attempt, failed(attempt) if fate == BAD else outcome(attempt))
            ended.add(attempt.spec.name)
        assert schedule.is_over or fate != BAD, "the first error ends the job"
    for attempt in running:  # what is still running does not count
        schedule.ended(attempt, outcome(attempt))
    assert schedule.next() is None
    names = [each.task for each in schedule.outcomes]
    assert names == sorted(ended)
    if deaths and max(deaths.values()) == MAX_ATTEMPTS:
        [dead] = [name for name, count in deaths.items() if count == MAX_ATTEMPTS]
        assert isinstance(schedule.failure, TasksDied)
        assert schedule.failure.tasks == (dead,)
        assert str(schedule.failure) == f"task {dead} has died 4 times, the last time because it was killed"
    else:
        assert schedule.failure is None
        assert any(each.error for each in schedule.outcomes) or len(names) == sum(counts)


def test_a_dead_task_is_next_in_line() -> None:
    schedule = JobSchedule(job_of(3))
    schedule.begin_level()
    first = schedule.next()
    assert first is not None
    schedule.died(first, "it was killed")
    again = schedule.next()
    assert again is not None
    assert (again.spec.name, again.number) == ("s0-0000", 2)


def test_a_job_without_tasks_is_over() -> None:
    schedule = JobSchedule(job_of())
    assert (schedule.is_over, schedule.outcomes, schedule.failure) == (True, [], None)


@pytest.mark.parametrize("late", ["ended", "died"])
def test_what_comes_after_a_failure_changes_nothing(late: str) -> None:
    schedule = JobSchedule(job_of(2))
    schedule.begin_level()
    one, other = schedule.next(), schedule.next()
    assert one is not None
    assert other is not None
    schedule.fail(TasksDied("cancelled"))
    schedule.fail(TasksDied("late"))
    schedule.ended(one, outcome(one))
    schedule.died(other, "late") if late == "died" else schedule.ended(other, failed(other))
    assert str(schedule.failure) == "cancelled"
    assert schedule.outcomes == []
