"""The output of `dagflow validate`, `plan` and `graph` for programs: objects with text, Mermaid and JSON forms."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication, build, examine
from dagflow.launching.places import place_problems
from dagflow.model.graph.dag import DAG
from dagflow.model.graph.expand import ExpandedDag
from dagflow.page import graph_svg
from dagflow.page.run.report import run_report
from dagflow.planning.plan import Plan
from dagflow.planning.view import PlanView, plan_view
from dagflow.render.errors import each, error_json, error_text
from dagflow.render.graph import graph_dot, graph_text, mermaid
from dagflow.render.notebook import TEXT, Bundle, graph_bundle, plan_bundle
from dagflow.render.plan import plan_text
from dagflow.render.style import Style
from dagflow.render.words import counted
from dagflow.runtime.run_report import RunReport


@attrs.frozen(kw_only=True)
class Validation:
    """The summary of an application, or all its problems. `application`: None if it could not be loaded."""

    application: str | None = None
    operators: int = 0
    streams: int = 0
    stages: int = 0
    problems: tuple[DagflowError, ...] = ()

    @classmethod
    def of(cls, built: LoadedApplication | None, plan: Plan | None, problems: tuple[DagflowError, ...] = ()) -> Validation:
        """The figures of an application, as far as it could be built and planned."""
        name = None if built is None else built.dag.name
        problems = tuple(single for problem in problems for single in each(problem))
        if plan is None:
            return cls(application=name, problems=problems)
        operators, streams, stages = len(plan.dag.nodes), len(plan.dag.streams), len(plan.stages)
        return cls(application=name, operators=operators, streams=streams, stages=stages, problems=problems)

    @property
    def is_ok(self) -> bool:
        """Return whether there are no problems."""
        return not self.problems

    def check(self) -> None:
        """Raise the first problem, if there is one."""
        for problem in self.problems:
            raise problem

    def text(self, style: Style | None = None) -> str:
        """One line, or all problems as the command line shows them."""
        if self.problems:
            return "\n\n".join(error_text(problem, style) for problem in self.problems)
        figures = {"operator": self.operators, "stream": self.streams, "stage": self.stages}
        return f"{self.application}: ok ({', '.join(counted(number, what) for what, number in figures.items())})"

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        if self.problems:
            return {"ok": False, "problems": [single for problem in self.problems for single in error_json(problem)]}
        figures = {"operators": self.operators, "streams": self.streams, "stages": self.stages}
        return {"ok": True, "application": self.application, **figures}

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return {TEXT: self.text()}


@attrs.frozen(repr=False)
class View:
    """An application at a step of its plan: `data` has its operators, ports, streams, stages and exchanges as plain fields."""

    data: PlanView

    def svg(self) -> str:
        """The picture as SVG."""
        return graph_svg(self.data)

    def dot(self) -> str:
        """The picture for Graphviz."""
        return graph_dot(self.data)

    def mermaid(self) -> str:
        """The picture as Mermaid."""
        return mermaid(self.data)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return self.data.as_json()

    def text(self, style: Style | None = None) -> str:
        """The text that the command prints."""
        raise NotImplementedError

    def __repr__(self) -> str:
        figures = f"{counted(len(self.data.operators), 'operator')}, {counted(len(self.data.streams), 'stream')}"
        return f"<{type(self).__name__} {self.data.application}, {self.data.step}: {figures}>"

    def __str__(self) -> str:
        return self.text()


class PlanOfApplication(View):
    """The plan of an application, as `dagflow plan` shows it."""

    def text(self, style: Style | None = None) -> str:
        """The text that `dagflow plan` prints."""
        return plan_text(self.data, style)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return plan_bundle(self.data)


class GraphOfApplication(View):
    """The operators and streams of an application, as `dagflow graph` draws them."""

    def text(self, style: Style | None = None) -> str:
        """The picture that `dagflow graph` draws of lines of text."""
        return graph_text(self.data, style)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return graph_bundle(self.data)


def validate(populate_dag: Any, settings: object = None, **options: Any) -> Validation:
    """Find all that is wrong with an application, its settings and its folders. Nothing is run, made or changed.

    Args:
        populate_dag: the function that fills the DAG, an object with such a method, or what the command line would name.
        settings: an object of its Settings class, or a mapping of keys as for `-D`.
        options: settings of the run, as for `launch`: `continuous`, `run_folder`…

    >>> import dagflow
    >>> from operators import Console, FileSplitterInput
    >>> def populate_dag(dag, conf):
    ...     files = dag.add_operator("files", FileSplitterInput(files=["nowhere"]))
    ...     dag.add_stream("found", files.files_metadata_output, dag.add_operator("show", Console()).input)
    >>> found = dagflow.validate(populate_dag)
    >>> found.is_ok, [problem.code for problem in found.problems]
    (False, ['DF264'])
    """
    built, plan, problems = examine(populate_dag, code=settings, environment=os.environ, run=options)
    places = () if built is None else place_problems(built)
    return Validation.of(built, plan, (*problems, *places))


def plan(populate_dag: Any, settings: object = None, *, step: str = "staged", **options: Any) -> PlanOfApplication:
    """Plan an application and return what `dagflow plan` shows of it. Nothing is run.

    Args:
        populate_dag: as for `validate`.
        settings: as for `validate`.
        options: as for `validate`.
        step: `logical` (also of a DAG with mistakes), `expanded`, `checked`, `placed`, `staged` or `spark`.

    Raises ConfigError and DagError for what is wrong.
    """
    return PlanOfApplication(_view(populate_dag, settings, step, options))


def graph(populate_dag: Any, settings: object = None, *, step: str = "staged", **options: Any) -> GraphOfApplication:
    """Plan an application and return what `dagflow graph` draws of it. Nothing is run.

    Args:
        populate_dag: as for `plan`.
        settings: as for `plan`.
        options: as for `plan`.
        step: as for `plan`.

    Raises ConfigError and DagError for what is wrong.

    >>> import dagflow
    >>> from operators import Console, FileSplitterInput
    >>> def populate_dag(dag, conf):
    ...     files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    ...     dag.add_stream("found", files.files_metadata_output, dag.add_operator("show", Console()).input)
    >>> print(dagflow.graph(populate_dag))
    ● files  FileSplitterInput  driver
    │ found: FileMetadata  files_metadata_output → show.input
    ● show  Console  driver
    """
    return GraphOfApplication(_view(populate_dag, settings, step, options))


def _view(populate_dag: Any, settings: object, step: str, options: Mapping[str, Any]) -> PlanView:
    built = build(populate_dag, code=settings, environment=os.environ, run=options)
    early: dict[str, DAG | ExpandedDag] = {"logical": built.dag, "expanded": built.expanded}  # which need no DAG without mistakes
    return plan_view(early[step] if step in early else built.plan(), step, built.applied)


def report(output: str) -> RunReport:
    """Return the report of the newest launch that wrote an output: what `dagflow report OUTPUT` prints.

    Args:
        output: the output folder, by path or URL, or the run folder.

    Raises NoRun, StorageError.
    """
    return run_report(output)
