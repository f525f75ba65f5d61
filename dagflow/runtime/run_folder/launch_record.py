"""The record of a launch in the run folder."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.model.types.forms import ADDED


@attrs.frozen(kw_only=True)
class LaunchRecord:
    """An application as it was launched, so that its windows can be understood and run again later. Never a secret.

    Attributes:
        application: what named it (`apps/line_filter`), or names it (`module:name`); empty for a function without such a name.
        name: in reports.
        folder: where it was launched from: relative paths start there.
        definitions: settings as `-D` takes them.
        code: settings that code or files gave, by key; both without secrets, and without the settings of the run.
        left_out: the keys of settings that were given and are not kept: secrets, URLs with secrets, and what is not plain data.
        view: the plan, as `dagflow plan --json` prints it; None in records of earlier versions, as the two below are empty there.
        settings: the values that settings had, as rows of group, key, value and origin. Secrets are `***`.
        versions: of dagflow, Python and the libraries that the run rests on, by name.
    """

    application: str
    name: str
    folder: str
    definitions: list[str] = attrs.field(factory=list)
    code: dict[str, Any] = attrs.field(factory=dict)
    left_out: list[str] = attrs.field(factory=list)
    view: dict[str, Any] | None = attrs.field(default=None, metadata={ADDED: True})
    settings: list[list[str]] = attrs.field(factory=list, metadata={ADDED: True})
    versions: dict[str, str] = attrs.field(factory=dict, metadata={ADDED: True})
