"""Folders as an executor sees them: the run folder, inputs and outputs."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from typing import Any

from dagflow.runtime.run_folder.layout import PROBE
from dagflow.spark.executors.mark import Mark
from dagflow.storage import OWN_FOLDER, file_system, join, local_path, open_store


def unfit_folders(needs: Mapping[str, Any]) -> dict[str, str]:
    """Return the reasons why this process cannot use folders of a `Needs`, by `run folder URL`, `input URL`, `output URL`."""
    found = {}
    mark = None if needs["mark"] is None else Mark(**needs["mark"])
    if mark is not None:
        found[f"run folder {mark.run_folder}"] = mark.look() or _why_not_written(mark.run_folder)
    for mark in (Mark(**each) for each in needs["table_marks"]):
        found[f"table {mark.run_folder.removesuffix(OWN_FOLDER)}"] = mark.look() or _why_not_written(mark.run_folder)
    for path in needs["inputs"]:
        found[f"input {path}"] = why_not_read(path)
    for path in needs["outputs"]:
        found[f"output {path}"] = _why_not_written(join(path, OWN_FOLDER))
    return {name: reason for name, reason in found.items() if reason}


def why_not_read(path: str) -> str:
    """Return the reason why a file or folder cannot be read; "" if it can."""
    try:
        if not file_system(path).exists(path):
            return "it is not there"
    except Exception as error:  # noqa: BLE001  # a store without credentials
        return str(error).partition("\n")[0] or type(error).__name__
    local = local_path(path)
    if local is None:
        return ""
    wanted = os.R_OK | os.X_OK if os.path.isdir(local) else os.R_OK
    return "" if os.access(local, wanted) else "it may not be read"


def _why_not_written(folder: str) -> str:
    """Return the reason why files cannot be written to a folder; "" if they can."""
    if (local := local_path(folder)) is not None and not os.path.isdir(local):
        return "it is not there"
    name = PROBE.name(token=uuid.uuid4().hex)
    try:
        store = open_store(folder, durable=False)
        store.create(name, b"")
    except Exception as error:  # noqa: BLE001  # of any store
        reason = str(error).partition("\n")[0].replace(f"/{name}", "") or type(error).__name__  # it differs each time
        return f"it cannot be written: {reason}"
    with contextlib.suppress(Exception):  # the next launch does it
        store.discard(name)
    return ""
