"""Random DAGs over random input, cut at random: every sink has the rows of the reference, and the reference those of SQL."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.laws.cases import random_case
from tests.laws.oracle import connected
from tests.laws.trial import wrong_with

ROOT = Path(__file__).parents[2]
BATCH = 10
"""The DAGs of a test. What is wrong names the seed of a single one."""
QUICK, FULL, ON_SPARK = 200, 2_000, 30


@pytest.fixture(scope="module")
def database() -> Iterator[Any]:
    with connected() as opened:
        yield opened


def check(database: Any, seeds: range, runner: str = "local", **options: Any) -> None:
    for seed in seeds:
        wrong = wrong_with(random_case(seed, **options), database, runner)
        assert not wrong, "\n".join([f"python -m tests.laws --count 1 --seed {seed} --smaller 300, with {options}", *wrong])


def batches(first: int, count: int) -> list[range]:
    return [range(start, start + BATCH) for start in range(first, first + count, BATCH)]


@pytest.mark.parametrize("seeds", batches(0, QUICK), ids=lambda seeds: f"from {seeds[0]}")
def test_random_dags(database: Any, seeds: range) -> None:
    check(database, seeds)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", batches(QUICK, FULL - QUICK - ON_SPARK), ids=lambda seeds: f"from {seeds[0]}")
def test_more_random_dags(database: Any, seeds: range) -> None:
    """One batch in twenty may use two processes, which start slowly; one in forty has sinks that take longer."""
    number = seeds[0] // BATCH
    check(database, seeds, max_slots=2 if number % 20 == 0 else 1, servers=number % 40 == 30)


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", batches(FULL, ON_SPARK), ids=lambda seeds: f"from {seeds[0]}")
def test_random_dags_on_spark(spark_session: Any, database: Any, seeds: range) -> None:
    check(database, seeds, "spark")


def run(*arguments: str) -> str:
    """Run the command, and return its last line."""
    command = [sys.executable, "-m", "tests.laws", *arguments]
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()[-1]


@pytest.mark.full
def test_the_command_tries_some() -> None:
    assert run("--count", "5", "--seed", "7").startswith("5 DAGs, 0 wrong")


@pytest.mark.nightly
@pytest.mark.timeout(12 * 3600)
@pytest.mark.parametrize(("count", "options"), [(48_000, ()), (2_000, ("--servers",))], ids=["most", "with servers"])
def test_many_random_dags(count: int, options: tuple[str, ...]) -> None:
    """Others each night: what is wrong names its seed."""
    seed = FULL + time.localtime().tm_yday * 50_000
    assert run("--count", f"{count}", "--seed", f"{seed}", "--slots", "2", *options).startswith(f"{count} DAGs")


def test_a_seed_is_a_case() -> None:
    assert random_case(5) == random_case(5) != random_case(6)
