"""Checks of a cluster's executors: the probe that a launch makes before its first window."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import attrs

from dagflow.config import RunSettings
from dagflow.diagnosis.check import Check
from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.planning.plan import Plan
from dagflow.render.words import counted
from dagflow.runtime.run_folder.folders import Folders
from dagflow.spark.executors.check import Facts, Needs
from dagflow.spark.executors.probe import needs_of
from dagflow.spark.runner import SparkRunner
from dagflow.storage import OWN_FOLDER, file_system, is_object_store, join


def executors(run: RunSettings, spark: Mapping[str, str], needs: Needs) -> Iterator[Check]:
    """Start a session as settings of a run and of Spark say, and look at each executor.

    In one process with the driver, there is nothing to look at.
    """
    runner = SparkRunner(master=run.master, remote=run.remote, conf=dict(spark), slots_timeout=run.slots_timeout)
    try:
        outcome = runner.look("dagflow doctor", needs)
    except DagflowError as error:
        line = error.message().partition("\n")[0]
        yield Check("Spark", "problem", f"{line} [{error.code}]", f"dagflow explain {error.code}")
        return
    finally:
        runner.close()
    if outcome is None:
        yield Check("executors", "ok", "are in this process")
        return
    unfit = {problem.place for problem in outcome.problems}
    yield from (_check(facts, needs) for facts in outcome.facts if facts.place not in unfit)
    for problem in outcome.problems:
        yield Check("executor", "problem", f"{problem.text} ({problem.place})", problem.remedy)
    if outcome.facts and not outcome.problems:
        yield Check("executors", "ok", f"{counted(len(outcome.facts), 'executor')} can run the tasks")


def _check(facts: Facts, needs: Needs) -> Check:
    packages = ", ".join(f"{name} {version}" for name, version in facts.packages.items() if version)
    java = f"Java {facts.java}" if facts.java else ""
    text = f"{facts.place}: {', '.join(filter(None, (f'Python {facts.python}', java, packages)))}"
    others = [
        f"{name} {needs.packages[name]}" for name, there in facts.packages.items() if there and there != needs.packages.get(name)
    ]
    if others:
        return Check("executor", "warning", f"{text}; the driver has {', '.join(others)}")
    return Check("executor", "ok", text)


@contextlib.contextmanager
def needs_without_launch(built: LoadedApplication, plan: Plan) -> Iterator[Needs]:
    """The needs of an application as far as they can be looked at before a launch: folders that are not there are left out.

    A mark is in the run folder while this lasts, if there is a run folder.
    """
    needs = needs_of(plan, built.run.run_folder, built.run.lock_lease)
    folders = Folders.of(plan, built.run.run_folder)
    outputs = tuple(folder for folder in needs.outputs if _is_there(join(folder, OWN_FOLDER)))
    tables = tuple(folder for folder in needs.tables if _is_there(folder))
    run_folder = folders.run_folder if folders.run_folder and _is_there(folders.run_folder) else None
    marked = attrs.evolve(needs, outputs=outputs, tables=tables).marked(run_folder, sweep=False)
    try:
        yield marked
    finally:
        marked.remove_marks()


def _is_there(folder: str) -> bool:
    return is_object_store(folder) or file_system(folder).exists(folder)
