"""A plan view as text: what each step decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dagflow.errors.shown import visible
from dagflow.planning.view import OperatorView, PlanView, StageView, StreamView
from dagflow.render.style import Style, indented, narrower, table
from dagflow.render.words import counted

_SHOWN_COLUMNS = 12
FORMS = {"record": "records", "stream": "records", "batch": "batches"}


def plan_text(view: PlanView, style: Style | None = None) -> str:
    """Return a plan view as text.

    >>> from dagflow import DAG
    >>> from dagflow.planning.view import plan_view
    >>> print(plan_text(plan_view(DAG("demo"), "logical")))
    demo: logical (as written)
    <BLANKLINE>
    0 operators
    """
    style, view = style or Style(), visible(view)
    head = f"{style.paint('bold', view.application)}: {view.step} ({_STEPS[view.step][0]})"
    blocks = [block for block in _STEPS[view.step][1](view, style) if block]
    return "\n\n".join([head, *("\n".join(block) for block in blocks)])


def hint(view: PlanView) -> str:
    """Return how to see the other steps."""
    others = ", ".join(step for step in view.steps if step != view.step)
    return f"other steps: {others} (--step NAME)"


def _logical(view: PlanView, style: Style) -> list[list[str]]:
    modules = len([o for o in view.operators if o.is_module]) + len(view.modules)
    operators = counted(len([o for o in view.operators if not o.is_module]), "operator")
    blocks = [[f"{operators}, {counted(modules, 'module')}" if modules else operators]]
    if view.operators:
        blocks[0] += indented(_operators(view.operators, style, [_where]))
    if view.modules:
        blocks.append(["modules", *indented(_operators(view.modules, style, [_where]))])
    return [*blocks, _streams(view, style)]


def _checked(view: PlanView, style: Style) -> list[list[str]]:
    blocks = []
    for operator in view.operators:
        rows = [["in", p.name, p.type or "", p.stream or "(not connected)"] for p in operator.inputs]
        rows += [["out", p.name, p.type or "", p.stream or "(not connected)"] for p in operator.outputs]
        head = f"{style.paint('bold', operator.name)}  {operator.class_name}  {style.paint('dim', operator.where)}"
        blocks.append([head, *indented(table(rows, "llLl", narrower(style, 2)))])
    return blocks


def _staged(view: PlanView, style: Style) -> list[list[str]]:
    driver = [o for o in view.operators if o.stage is None]
    blocks = []
    if driver:
        what = "plans the windows" if view.stages else "does everything"
        order = f"windows: one at a time, since state is kept over them ({', '.join(view.waits_for)})" if view.waits_for else ""
        lines = [*([style.paint("dim", order)] if order else []), *_operators(driver, style, [_why])]
        blocks.append([f"{style.paint('bold', 'driver')}: {what}", *indented(lines)])
    for stage in view.stages:
        mine = [o for o in view.operators if o.stage == stage.name]
        readers = [style.paint("dim", line) for line in _readers(stage)]
        blocks.append([_stage(stage, style), *indented(readers), *indented(_operators(mine, style, [_why]))])
    return [*blocks, _streams(view, style), _conversions(view)]


def _stage(stage: StageView, style: Style) -> str:
    name = style.paint("bold", f"stage {stage.name}")
    if stage.max_readers is None or stage.head not in stage.operators:
        return f"{name} (level {stage.level}): one pass, in the partitions of {stage.head}"
    least = "" if stage.min_readers == stage.max_readers else f"{stage.min_readers} to "
    return f"{name} (level {stage.level}): one pass, in {least}{counted(stage.max_readers, 'partition')} of {stage.head}"


def _readers(stage: StageView) -> list[str]:
    """Return the policy for the number of readers, and whether their blocks can be split."""
    what = "readers" if stage.level == 0 else "partitions"
    lines = [f"{what}: {stage.policy}"] if stage.policy is not None else []
    if stage.splittable is not None:
        lines.append(f"blocks: {'may be' if stage.splittable else 'are never'} split while they are read")
    return lines


def _operators(operators: Sequence[OperatorView], style: Style, more: Sequence[Callable[[OperatorView], str]]) -> list[str]:
    """A line an operator, and below it what it keeps, what it depends on, and its properties that are not their defaults."""
    inner = narrower(style, 2)
    lines = table([[o.name, o.class_name, *(column(o) for column in more)] for o in operators], "llL", inner)
    texts = []
    for operator, line in zip(operators, lines, strict=True):
        texts.append(line)
        facts = {"keeps": operator.keeps, "depends on windows:": operator.depends_on_windows}
        texts += [style.paint("dim", f"    {name} {fact}") for name, fact in facts.items() if fact is not None]
        rows = [[p.name, "=", p.value, "" if p.origin == "code" else f"({p.origin})"] for p in operator.properties]
        texts += [style.paint("dim", text) for text in indented(table(rows, "llLl", narrower(inner, 4), gap=" "), 4)]
    return texts


def _where(operator: OperatorView) -> str:
    return operator.where


def _why(operator: OperatorView) -> str:
    covers = f"; results cover {operator.covers}" if operator.covers else ""
    emits = f"; {operator.emits}" if operator.emits else ""
    return f"{operator.why or ''}{covers}{emits}"


def _streams(view: PlanView, style: Style) -> list[str]:
    if not view.streams:
        return []
    rows = []
    for stream in view.streams:
        for number, sink in enumerate(stream.sinks):
            first = [stream.name, stream.source] if number == 0 else ["", ""]
            rows.append([*first, "→", sink.port, *_carries(stream, number)])
        if not stream.sinks:
            rows.append([stream.name, stream.source, "→", "nowhere"])
    lines = ["streams", *indented(table(rows, "llllLl", narrower(style, 2)))]
    for stream in view.streams:
        if stream.changed_by is not None:
            lines += indented([style.paint("dim", f"rows of {stream.name} may be taken back, by {stream.changed_by}")])
        if stream.depends_on_windows is not None:
            lines += indented([style.paint("dim", f"rows of {stream.name} depend on windows: {stream.depends_on_windows}")])
        if stream.rows is not None:
            lines += indented([style.paint("dim", f"columns of {stream.name}: {_some(stream.rows)}")])
        for names in stream.identified_by:
            by = f"differ in {_some(names)}" if names else "are at most one"
            lines += indented([style.paint("dim", f"rows of {stream.name} {by}")])
        if stream.columns is not None:
            lines += indented([style.paint("dim", f"columns of {stream.name}: {stream.columns}")])
    return lines


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_COLUMNS
    return ", ".join(names[:_SHOWN_COLUMNS]) + (f" and {more} more" if more > 0 else "")


def _carries(stream: StreamView, number: int) -> list[str]:
    """The type of a stream's records, and the form in which they travel to one of its sinks."""
    if stream.type is None:
        return []
    sink = stream.sinks[number]
    if stream.form is None:
        return [stream.type]
    if sink.crosses:
        return [stream.type, "work items"]
    if sink.exchange is not None:
        return [stream.type, f"exchange {sink.exchange}: {sink.carried}"]
    return [stream.type, f"converted ({sink.conversion})" if sink.conversion else FORMS[stream.form]]


def _conversions(view: PlanView) -> list[str]:
    sinks = [(stream, sink) for stream in view.streams for sink in stream.sinks]
    converted = [sink.port for _, sink in sinks if sink.conversion]
    sentences = [f"records are converted before {', '.join(converted)}" if converted else "nothing is converted on the way"]
    for stream, sink in sinks:
        if sink.carried == "pickled":
            sentences.append(f"records of {stream.type} cross pickled to {sink.port}: their type has no Arrow form")
    return sentences


_STEPS: dict[str, tuple[str, Callable[[PlanView, Style], list[list[str]]]]] = {
    "logical": ("as written", _logical),
    "expanded": ("modules inlined", _logical),
    "checked": ("the types of all ports", _checked),
    "columns": ("readers leave out the columns that nothing reads", _logical),
    "current": ("what stands where changing streams end, and waits for emission points", _logical),
    "partial": ("partial aggregations before exchanges", _logical),
    "relayed": ("relays for records of the driver that cross an exchange", _logical),
    "placed": (
        "what runs where, and why",
        lambda view, style: [
            indented(_operators(view.operators, style, [lambda o: o.placement or "", lambda o: o.why or ""])),
        ],
    ),
    "forms": ("records or batches; conversions", lambda view, style: [_streams(view, style), _conversions(view)]),
    "staged": ("fused into stages; forms and conversions", _staged),
    "spark": ("what Spark is given", lambda view, style: [list(view.spark)]),
}
