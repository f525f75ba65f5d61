"""Object stores of tables that refuse for a moment: tasks and commits are tried again, and rows are there once.

The texts are those of the packages when the proxy of `tests.storage.s3` refused their requests.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from dagflow.errors import DagflowError, OperatorFailed, StorageBusy
from dagflow.storage import is_transient
from dagflow.testing import run_dag
from operators import DeltaWriter, IcebergWriter
from operators.extras.stores import is_store_busy, patiently
from operators.sinks.delta import log
from operators.sinks.table_formats.staged_files import AttemptFolder
from tests.operators.sinks.test_table_kills import SMALL, check, kinds, populate, prepared

_TREE = "Kernel error -> Generic S3 error\n \x1b[31m↳\x1b[0m GET http://store/_last_checkpoint in 5.3s, after 10 retries\n"
SLOW_DOWN = f"{_TREE}  \x1b[31m↳\x1b[0m 180s  - Server returned non-2xx status code\n  \x1b[31m↳\x1b[0m 503 Service Unavailable\n"
RESET = (
    f"{_TREE}  \x1b[31m↳\x1b[0m HTTP error\n  \x1b[31m↳\x1b[0m error sending request\n  \x1b[31m↳\x1b[0m connection closed before"
)
PUT = "Generic S3 error: Error performing PUT http://store/part-0.parquet in 2.8s, after 10 retries"
ARROW = "When reading information for key 'a' in bucket 'b': AWS Error"


def of_pyiceberg(name: str) -> Exception:
    error: Exception = getattr(pytest.importorskip("pyiceberg.exceptions"), name)("an answer")
    return error


@pytest.mark.parametrize(
    "error",
    [
        lambda: OSError(SLOW_DOWN),
        lambda: OSError(RESET),
        lambda: DeltaError(f"{PUT} - Server returned non-2xx status code: 503 Service Unavailable: <Error/>"),
        lambda: DeltaError(f"{PUT} - HTTP error: error sending request"),
        lambda: DeltaError("Invalid table version: 0"),
        lambda: CommitFailedError("Failed to commit transaction: 0"),
        lambda: OSError(f"{ARROW} UNKNOWN (HTTP status 503) during HeadObject operation: No response body."),
        lambda: OSError(f"{ARROW} SLOW_DOWN during CreateMultipartUpload operation: Please reduce your request rate."),
        lambda: OSError(f"{ARROW} NETWORK_CONNECTION during HeadObject operation: curlCode: 52, Empty reply from server"),
        lambda: TimeoutError("no answer"),
    ],
)
def test_errors_that_a_later_attempt_may_not_meet(error: Callable[[], Exception]) -> None:
    match = r"shop\.rows: the storage is not responding .* while publishing"
    with pytest.raises(StorageBusy, match=match) as caught, patiently("shop.rows", "publishing a window", in_task=True):
        raise error()
    assert is_transient(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        lambda: DeltaError("Invariant violations: value 503 of n is not below 500"),
        lambda: OSError(f"{PUT} - Client error with status 403 Forbidden: <Error><Code>AccessDenied</Code></Error>"),
        lambda: OSError(f"{_TREE} HTTP error\n builder error\n URL scheme is not allowed"),
        lambda: PermissionError(f"{ARROW} ACCESS_DENIED during GetObject operation: Access Denied."),
        lambda: ValueError("status 503"),
    ],
)
def test_errors_that_stay(error: Callable[[], Exception]) -> None:
    made = error()
    assert not is_store_busy(made)
    with pytest.raises(type(made)) as caught, patiently("shop.rows", "publishing a window"):
        raise made
    assert caught.value is made


def fail_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: Exception, *, afterwards: bool) -> list[None]:
    """Let the first call of a function fail, before or after it has worked. Returns a list with an item for each call."""
    function = getattr(owner, name)
    calls: list[None] = []

    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) == 1 and not afterwards:
            raise error
        result = function(*arguments, **options)
        if len(calls) == 1:
            raise error
        return result

    monkeypatch.setattr(owner, name, call)
    return calls


def launched(kind: str, folder: Path, **options: Any) -> None:
    run_dag(populate(folder, kind, "append"), {**SMALL, "retry_delay": 0.01, **options}, run_folder=str(folder / "run"))


@kinds
@pytest.mark.parametrize("where", ["open", "sync"])
def test_a_task_whose_store_is_busy_runs_again(kind: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer: Any = DeltaWriter if kind == "delta" else IcebergWriter
    owner, name = {"open": (writer, "_known_columns"), "sync": (AttemptFolder, "sync")}[where]
    calls = fail_once(monkeypatch, owner, name, OSError(SLOW_DOWN), afterwards=False)
    launched(kind, prepared(tmp_path))
    assert len(calls) > 1
    check(tmp_path, kind)


@kinds
@pytest.mark.parametrize("afterwards", [False, True], ids=["refused", "answer lost"])
def test_a_commit_that_is_refused_for_a_moment_is_tried_again(
    kind: str, afterwards: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer: Any = DeltaWriter if kind == "delta" else IcebergWriter
    error = (
        DeltaError(f"{PUT} - HTTP error: error sending request")
        if kind == "delta"
        else of_pyiceberg("CommitStateUnknownException")
    )
    calls = fail_once(monkeypatch, writer, "commit", error, afterwards=afterwards)
    launched(kind, prepared(tmp_path))
    assert len(calls) > 1
    check(tmp_path, kind)


def test_a_commit_that_is_refused_for_good_ends_the_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fail_once(monkeypatch, DeltaWriter, "commit", CommitFailedError("the table is read-only"), afterwards=False)
    with pytest.raises(OperatorFailed, match="the table is read-only"):
        launched("delta", prepared(tmp_path))
    assert len(calls) == 1


def test_a_store_that_stays_busy_ends_the_launch_and_the_next_one_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        for _ in range(2):
            fail_once(patched, DeltaWriter, "commit", OSError(RESET), afterwards=False)
        with pytest.raises(DagflowError, match="the storage is not responding"):
            launched("delta", prepared(tmp_path), window_attempts=2)
    launched("delta", tmp_path)
    check(tmp_path, "delta")


def test_a_checkpoint_takes_the_options_that_the_table_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    def opens(path: str, storage_options: Any) -> Checkpoint:
        opened.append(storage_options)
        return Checkpoint()

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.setattr(deltalake, "DeltaTable", opens)
    log.DeltaLog("s3://bucket/table", {"AWS_REGION": "eu"})._checkpoint()
    assert opened == [{"AWS_REGION": "eu", "AWS_ALLOW_HTTP": "true"}]


class Checkpoint:
    """A table of whose log nothing is removed."""

    configuration = {"delta.enableExpiredLogCleanup": "false"}

    def version(self) -> int:
        return 0

    def create_checkpoint(self) -> None:
        """Do nothing."""

    def metadata(self) -> Checkpoint:
        return self
