"""Whether an application is the one that a window was planned by."""

from __future__ import annotations

from dagflow.errors.run import PlanMismatch
from dagflow.plan.plan import Plan
from dagflow.runtime.driver import properties, shape
from dagflow.runtime.window_log import WindowPlan


def differences(was: WindowPlan, plan: Plan) -> tuple[str, ...]:
    """What makes an application another one than that which planned a window: other operators, classes or streams."""
    then, now = was.shape, shape(plan)
    lost = [f"{what} is gone" for what in then if what not in now]
    new = [f"{what} is new" for what in now if what not in then]
    changed = [f"{what} was a {then[what]}" for what in now if then.get(what, now[what]) != now[what]]
    return (*lost, *new, *changed)


def other_values(was: WindowPlan, plan: Plan) -> list[str]:
    """The properties that have changed since a window was planned."""
    values = properties(plan)
    return [f"{name} = {then} → {values.get(name)}" for name, then in was.properties.items() if values.get(name) != then]


def changed_properties(plan: Plan, last: WindowPlan, run_folder: str) -> list[str]:
    """The properties that have changed since a window was planned: earlier windows were made without that.

    Raises PlanMismatch when this is not the same application at all.
    """
    found = differences(last, plan)
    if found:
        text = "it belongs to another application, or to this one as it was:"
        raise PlanMismatch(run_folder, "\n    ".join([text, *found]))
    return other_values(last, plan)
