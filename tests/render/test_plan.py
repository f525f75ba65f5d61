from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dagflow import DAG
from dagflow.errors import DagError, ModuleBroken, UnknownName
from dagflow.planning.steps import PHASES, make_plan
from dagflow.planning.view import plan_view
from dagflow.render.graph import mermaid
from dagflow.render.plan import hint, plan_text
from dagflow.render.style import Style, cells
from tests.golden.compare import Golden
from tests.render import sample, shapes


@pytest.mark.parametrize("step", PHASES)
@pytest.mark.parametrize("make", [sample.chain, sample.diamond, sample.modules])
def test_each_step_as_text(make: object, step: str, golden: Golden) -> None:
    view = plan_view(make(), step)  # type: ignore[operator]
    golden(f"plan_{view.application}_{step}.txt", plan_text(view, Style(width=120)) + "\n")


def test_the_whole_view_as_json(golden: Golden) -> None:
    text = json.dumps(plan_view(sample.chain(), "staged").as_json(), indent=2, ensure_ascii=False)
    golden("plan_chain_staged.json", text + "\n")


@pytest.mark.parametrize("step", PHASES)
def test_a_dag_and_its_plan_give_the_same_view(step: str) -> None:
    view, planned = plan_view(sample.diamond(), step), plan_view(make_plan(sample.diamond()), step)
    assert sorted(o.name for o in planned.operators) == sorted(o.name for o in view.operators)
    if step not in ("logical", "expanded"):  # those are as written; a plan has its own order
        assert planned == view


def test_the_first_steps_work_on_a_dag_with_mistakes() -> None:
    view = plan_view(sample.circle(), "logical")
    assert [o.name for o in view.operators] == ["one", "two"]
    with pytest.raises(DagError, match="cycle"):
        plan_view(sample.circle(), "checked")


def test_an_unknown_step_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="'staged'"):
        plan_view(DAG(), "stage")


def test_what_configuration_has_set_is_shown_with_its_origin() -> None:
    from dagflow.config import apply_operators, read_layers

    dag = sample.chain()
    layers = read_layers(definitions=["operator.reader.max_readers=3"])
    applied = apply_operators({name: node.operator for name, node in dag.operators.items()}, layers)
    text = plan_text(plan_view(dag, "logical", applied))
    assert "max_readers = 3 (-D)" in text
    assert "min_readers = 2\n" in text


def test_defaults_are_left_out() -> None:
    assert "encoding" not in plan_text(plan_view(sample.chain(), "staged"))


def test_secrets_are_not_shown() -> None:
    dag = DAG()
    dag.add_operator("login", sample.Keyed(password="hunter2"))
    view = plan_view(dag, "logical")
    assert [p.value for p in view.operators[0].properties] == ["***"]
    assert "hunter2" not in json.dumps(view.as_json()) + plan_text(view)


@pytest.mark.parametrize("step", ["logical", "checked", "placed", "staged"])
def test_lines_fit_the_width(step: str) -> None:
    text = plan_text(plan_view(sample.diamond(), step), Style(width=70))
    assert max(cells(line) for line in text.split("\n")) <= 70


def test_the_hint_names_the_other_steps() -> None:
    assert (
        hint(plan_view(DAG(), "logical"))
        == "other steps: expanded, checked, columns, current, partial, relayed, placed, forms, staged, spark (--step NAME)"
    )


def test_everything_on_the_driver_needs_no_job() -> None:
    from operators import Console, FileSplitterInput

    dag = DAG("small")
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    show = dag.add_operator("show", Console())
    dag.add_stream("found", files.files_metadata_output, show.input)
    assert plan_view(dag, "spark").spark == ("no Spark job: everything runs on the driver",)
    assert "driver: does everything" in plan_text(plan_view(dag, "staged"))


def test_a_module_that_cannot_be_inlined_is_shown_as_written_only() -> None:
    dag = DAG()
    dag.add_module("broken", sample.CleanedFiles([""]))
    assert [o.name for o in plan_view(dag, "logical").operators] == ["broken"]
    with pytest.raises(ModuleBroken):
        plan_view(dag, "expanded")


@pytest.mark.parametrize("make", shapes.SHAPES, ids=lambda make: make.__name__)
def test_plans_with_exchanges(make: Callable[[], DAG], golden: Golden) -> None:
    """The plan shows the place and level of each operator, the exchanges, and the chain that Spark is given."""
    dag = make()
    texts = [plan_text(plan_view(dag, step), Style(width=120)) for step in ("placed", "staged", "spark")]
    golden(f"plan_exchange_{dag.name}.txt", "\n\n".join(texts) + "\n")


def test_a_picture_with_exchanges(golden: Golden) -> None:
    golden("graph_exchange.mermaid", mermaid(plan_view(shapes.fan_in(), "staged")) + "\n")
