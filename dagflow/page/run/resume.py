"""The command that resumes a run that failed or was stopped."""

from __future__ import annotations

import re
import shlex

from dagflow.runtime.run_folder.launch_record import LaunchRecord

_ONCE = "fresh"
"""The option that is left out: it would remove what was committed."""


def resume_command(launched: LaunchRecord) -> str | None:
    """Return the command of a launch, without `--fresh`; None for one that code started.

    >>> record = LaunchRecord(application="app", name="app", folder="/data/apps", definitions=["input=my logs"],
    ...     settings=[["application", "input", "my logs", "-D"], ["run", "slots", "2", "--slots"],
    ...         ["run", "fresh", "true", "--fresh"]])
    >>> resume_command(record)
    "cd /data/apps && dagflow launch app -D 'input=my logs' --slots 2"
    """
    rows = launched.settings
    if not launched.application or any(group in ("application", "run") and origin == "code" for group, _, _, origin in rows):
        return None
    words = ["dagflow", "launch", launched.application]
    for file in dict.fromkeys(origin.rpartition(":")[0] for *_, origin in rows if re.fullmatch(r".*\.toml:\d+", origin)):
        words += ["--conf", file]
    from_text = {key for _, key, _, origin in rows if origin == "-D" or origin.startswith("env ")}
    for definition in launched.definitions:
        if not rows or definition.partition("=")[0] in from_text:
            words += ["-D", definition]
    for _, key, value, origin in rows:
        if origin.startswith("--") and key.removeprefix("run.") != _ONCE:
            words += _option(origin, value)
    return f"cd {shlex.quote(launched.folder)} && {shlex.join(words)}"


def _option(option: str, value: str) -> list[str]:
    if value == "true":
        return [option]
    if value == "false":
        return ["--once" if option == "--continuous" else f"--no-{option.removeprefix('--')}"]
    return [option, value]
