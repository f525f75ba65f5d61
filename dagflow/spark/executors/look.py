"""The facts about an executor's Python. Needs nothing but Python itself: executors may lack dagflow.

`look` and all that it calls must be in this module, which is pickled by value (`dagflow.spark.executors.probe`).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import time
from typing import Any


def look(wanted: str) -> str:
    """Return the facts about this process, as JSON. `wanted`: a `Needs`, as JSON. Raises nothing."""
    began = time.monotonic()
    needs = json.loads(wanted)
    facts: dict[str, Any] = {
        "host": platform.node(),
        "folder": os.getcwd(),
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "java": _java(),
        "clock": time.time(),
        "packages": {name: _version(name) for name in needs["packages"]},
        "broken": {name: reason for name in needs["modules"] if (reason := _why_broken(name))},
        "folders": {},
    }
    if not any(name.partition(".")[0] == "dagflow" for name in facts["broken"]):
        try:
            facts["folders"] = importlib.import_module("dagflow.spark.executors.check").unfit_folders(needs)
        except Exception as error:  # noqa: BLE001  # a dagflow of another version
            facts["broken"]["dagflow.spark.executors.check"] = f"{type(error).__name__}: {error}"
    time.sleep(max(0.0, float(needs["seconds"]) - (time.monotonic() - began)))
    return json.dumps(facts)


def _java() -> str:
    """Return the version of the Java that has started this process, by its folder; "" where that cannot be found out."""
    try:
        number = os.getppid()
        while number > 1:  # the daemon of Python workers stands between
            program = os.readlink(f"/proc/{number}/exe")
            if os.path.basename(program) == "java":
                with open(os.path.join(os.path.dirname(program), "..", "release"), encoding="utf-8") as lines:
                    return next((line.split('"')[1] for line in lines if line.startswith("JAVA_VERSION=")), "")
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as stat:
                number = int(stat.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):  # another system, or a Java without that file
        pass
    return ""


def _version(package: str) -> str | None:
    """Return the version of a package, "" for one without metadata (in a zip, say), None if it is not there."""
    try:
        return importlib.metadata.version(package)
    except Exception:  # noqa: BLE001  # metadata may be damaged
        try:
            return None if importlib.util.find_spec(package) is None else ""
        except Exception:  # noqa: BLE001
            return None


def _why_broken(module: str) -> str:
    """Return the reason why a module cannot be imported, "" if it can."""
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001  # a module may raise anything
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return ""
