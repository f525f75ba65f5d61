"""A submission: a launch of an application that another platform is to run."""

from __future__ import annotations

import attrs

from dagflow.errors.shown import sounds_secret, without_secrets
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
