"""A submission: a launch of an application that another platform is to run."""

from __future__ import annotations

import json
from typing import Any

import attrs

from dagflow.config.layers import RESERVED, Setting
from dagflow.config.run_settings import RUN_NAMES
from dagflow.config.values.conversion import holds_secret
from dagflow.config.values.hints import field_hint, settable
from dagflow.errors.shown import sounds_secret, without_secrets
from dagflow.launching.build import LoadedApplication
from dagflow.launching.errors import SecretInSubmission


@attrs.frozen(kw_only=True)
class Submission:
    """A launch of an application on a platform.

    Attributes:
        name: the name of the application, as platforms allow it: lower case, digits and hyphens.
        arguments: the arguments of `dagflow launch`, the application first, without `--master` and `--remote`.
        spark: settings of Spark.
        master: the master, or the address of a Spark Connect server.
    """

    name: str
    arguments: tuple[str, ...]
    spark: dict[str, str]
    master: str

    def check_secrets(self) -> None:
        """Raise SecretInSubmission for a value that anyone could read who sees the command line or the manifest."""
        words = [*self.arguments, *(f"{key}={value}" for key, value in self.spark.items())]
        for word in words:
            key, separator, value = word.partition("=")
            if (separator and value and sounds_secret(key)) or without_secrets(word) != word:
                raise SecretInSubmission(setting=key if separator else "an address")


@attrs.frozen
class Carried:
    """The settings of this machine that a driver elsewhere has to get: those of the environment and of `--conf` files.

    Attributes:
        definitions: `KEY=VALUE` for `-D`.
        withheld: the keys that hold secrets, with their origins; they are in no definition.
    """

    definitions: tuple[str, ...]
    withheld: dict[str, str]

    @classmethod
    def of(cls, built: LoadedApplication, leaving_out: tuple[str, ...] = ()) -> Carried:
        """Return those of an application. Settings of Spark are part of the submission anyway."""
        kept, withheld = [], {}
        for key, setting in built.layers.winners().items():
            name = setting.path[-1] if setting.path[0] == "run" else setting.path[0]
            if not _is_of_this_machine(setting) or name == "spark" or (name in leaving_out and name in RUN_NAMES):
                continue
            if _is_secret(built, setting):
                withheld[key] = setting.origin
            else:
                kept.append(f"{key}={_text(setting.value)}")
        return cls(tuple(kept), withheld)


def _is_of_this_machine(setting: Setting) -> bool:
    return setting.origin not in ("default", "code", "-D") and not setting.origin.startswith("--")


def _is_secret(built: LoadedApplication, setting: Setting) -> bool:
    cls, (first, *below) = built.application.settings_class, setting.path
    if sounds_secret(setting.path[-1]) or (isinstance(setting.value, str) and without_secrets(setting.value) != setting.value):
        return True
    if cls is None or below or first in RESERVED or first not in (known := settable(cls)):
        return False
    return holds_secret(field_hint(cls, known[first]))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
