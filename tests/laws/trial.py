"""The trial of a case, and a smaller case that is wrong in the same way."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from dagflow.errors import DagflowError
from operators.join.errors import JoinColumnsUnknown
from tests.laws.application import results_of
from tests.laws.cases import Case, Source, Target
from tests.laws.oracle import compared, differences

REFUSALS = (JoinColumnsUnknown,)
"""The errors that are not a difference: a right or full join needs the columns of its left side, and no row has come there."""


def wrong_with(case: Case, database: Any, runner: str = "local") -> list[str]:
    """Launch a case, and return where its sinks differ from the reference, and the reference from SQL."""
    expected = case.expected()
    wrong = differences(database, case, expected)
    try:
        for launch, results in results_of(case, runner):
            right = expected if launch == case.launches - 1 else case.until(launch).expected()
            for number, (target, rows) in enumerate(zip(case.targets, results, strict=True)):
                name = f"out{number} of {target.stream}{'' if right is expected else f' after launch {launch}'}"
                wrong += compared(name, right[target.stream], rows)
    except REFUSALS:
        return wrong
    except Exception as error:  # noqa: BLE001  # whatever a launch raises is a finding
        shown = str(error) if isinstance(error, DagflowError) else "".join(traceback.format_exception(error)[-16:])
        return [*wrong, f"{type(error).__name__}: {shown}"]
    return wrong


def smaller(case: Case, is_wrong: Callable[[Case], bool], most: int = 300) -> Case:
    """Return a small case that is still wrong: with fewer nodes, sinks, rows, files, launches. Tries `most` cases."""
    tried = 0
    progress = True
    while progress and tried < most:
        progress = False
        for each in _reduced(case):
            tried += 1
            if tried > most:
                break
            try:
                progress = is_wrong(each)
            except Exception:  # noqa: BLE001  # a reduction need not be a case
                continue
            if progress:
                case = each
                break
    return case


def _reduced(case: Case) -> Iterator[Case]:
    """Yield cases with less of something, the largest steps first."""
    for number in range(len(case.targets)):
        if len(case.targets) > 1:
            yield attrs.evolve(case, targets=_without(case.targets, number))
    taken = {name.partition(".")[0] for node in case.nodes for name in node.inputs}
    wanted = {target.stream.partition(".")[0] for target in case.targets}
    for number in reversed(range(len(case.nodes))):
        if f"n{number}" not in taken | wanted:
            yield _renumbered(case, number)
        yield from _bypassed(case, number)
    for number, source in enumerate(case.sources):
        if f"s{number}" not in taken | wanted and number == len(case.sources) - 1 and number:
            yield attrs.evolve(case, sources=case.sources[:-1])
        for less in _fewer(source):
            yield attrs.evolve(case, sources=(*case.sources[:number], less, *case.sources[number + 1 :]))
    if case.deaths:
        yield attrs.evolve(case, deaths={})
    for number in case.every:
        yield attrs.evolve(case, every={each: every for each, every in case.every.items() if each != number})
    if case.is_final:
        yield attrs.evolve(case, is_final=False)
    if case.is_moving:
        yield attrs.evolve(case, is_moving=False)
    for name in case.options:
        yield attrs.evolve(case, options={each: value for each, value in case.options.items() if each != name})
    if case.windows_of_launch:
        yield attrs.evolve(case, windows_of_launch=None)
    if case.slots > 1:
        yield attrs.evolve(case, slots=1)
    for number, target in enumerate(case.targets):
        if (
            plain := {"partition_columns": ()}
            if target.partition_columns
            else {"max_file_rows": None}
            if target.max_file_rows
            else {}
        ):
            simpler = attrs.evolve(target, **plain)
            yield attrs.evolve(case, targets=(*case.targets[:number], simpler, *case.targets[number + 1 :]))
        if target.kind != "collector":
            yield attrs.evolve(
                case,
                targets=(*case.targets[:number], Target(target.stream, "collector"), *case.targets[number + 1 :]),
            )


def _renumbered(case: Case, number: int) -> Case:
    """Return a case without a node that nothing takes."""

    def name(stream: str) -> str:
        node, _, port = stream.partition(".")
        return f"n{int(node[1:]) - 1}.{port}" if node[0] == "n" and int(node[1:]) > number else stream

    nodes = tuple(attrs.evolve(node, inputs=tuple(map(name, node.inputs))) for node in _without(case.nodes, number))
    return attrs.evolve(case, nodes=nodes, targets=tuple(attrs.evolve(each, stream=name(each.stream)) for each in case.targets))


def _bypassed(case: Case, number: int) -> Iterator[Case]:
    """Yield cases whose later nodes and sinks take what a node takes, where that has the same columns."""
    streams = case.streams()
    for name in case.nodes[number].inputs:
        for port in [each for each in streams if each.startswith(f"n{number}.")]:
            if streams[name].columns == streams[port].columns:
                nodes = [
                    attrs.evolve(node, inputs=tuple(name if each == port else each for each in node.inputs))
                    for node in case.nodes
                ]
                targets = [attrs.evolve(each, stream=name if each.stream == port else each.stream) for each in case.targets]
                if nodes != list(case.nodes) or targets != list(case.targets):
                    yield attrs.evolve(case, nodes=tuple(nodes), targets=tuple(targets))


def _fewer(source: Source) -> Iterator[Source]:
    for at, rows in enumerate(source.files):
        if len(source.files) > 1:
            yield attrs.evolve(source, files=_without(source.files, at), launches=_without(source.launches, at))
        if len(rows) > 1:
            for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
                yield attrs.evolve(source, files=(*source.files[:at], half, *source.files[at + 1 :]))
        for row in range(len(rows) if len(rows) < 6 else 0):
            yield attrs.evolve(source, files=(*source.files[:at], _without(rows, row), *source.files[at + 1 :]))
        if source.launches[at] and not source.late:
            earlier = (*source.launches[:at], source.launches[at] - 1, *source.launches[at + 1 :])
            yield attrs.evolve(source, launches=earlier)
    if source.block_size < 1 << 20:
        yield attrs.evolve(source, block_size=1 << 20)
    if source.blocks_threshold:
        yield attrs.evolve(source, blocks_threshold=None)


def _without(many: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    return (*many[:at], *many[at + 1 :])
