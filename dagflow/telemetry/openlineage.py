"""Run events of OpenLineage: a launch, its inputs and its outputs, with rows, files and hashes from the ledgers."""

# pyright: reportCallIssue=false
# Facets take `producer` by an alias that it does not see.

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

import attr
from openlineage.client import OpenLineageClient, event_v2
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    OutputDatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from dagflow.errors.shown import without_secrets
from dagflow.planning.plan import Plan
from dagflow.runtime.events import EntryAppended, Event, RunEnded, RunStarted, WindowDecided
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage import open_store
from dagflow.telemetry.lineage import InputLineage, OutputLineage, RunLineage, dataset_name

RUNNING = 60.0
"""Seconds between two events of a run that goes on."""
QUEUE = 10_000
"""Events of the run that may wait while a receiver is slow."""
THREAD = "dagflow-openlineage"
_ENDS = {"done": RunState.COMPLETE, "failed": RunState.FAIL, "interrupted": RunState.ABORT}
_SCHEMAS = "urn:dagflow:openlineage:1:"


@attr.define
class LaunchRunFacet(RunFacet):
    """The launch: its id in the run folder, and where that is."""

    launch: str
    runner: str
    runFolder: str  # noqa: N815  # facets are written as OpenLineage writes them
    firstWindow: int  # noqa: N815
    windows: int

    @staticmethod
    def _get_schema() -> str:
        return f"{_SCHEMAS}LaunchRunFacet"


@attr.define
class FilesInputDatasetFacet(InputDatasetFacet):
    """The files that were read: `path`, and `ranges` of bytes, half-open. `omitted`: blocks that are not among them."""

    files: list[dict[str, Any]]
    omitted: int

    @staticmethod
    def _get_schema() -> str:
        return f"{_SCHEMAS}FilesInputDatasetFacet"


@attr.define
class RowsInputDatasetFacet(InputDatasetFacet):
    """The rows that were read of a dataset with a ledger: the offsets `[start, stop)`, up to the entry with that hash."""

    datasetId: str  # noqa: N815
    start: int
    stop: int
    ledgerHash: str | None  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return f"{_SCHEMAS}RowsInputDatasetFacet"


@attr.define
class FilesOutputDatasetFacet(OutputDatasetFacet):
    """The files that were added: `path`, `start` and `stop` of their rows, `size`, `hash`. `omitted`: files not among them."""

    files: list[dict[str, Any]]
    omitted: int

    @staticmethod
    def _get_schema() -> str:
        return f"{_SCHEMAS}FilesOutputDatasetFacet"


@attr.define
class LedgerDatasetFacet(DatasetFacet):
    """The newest entry of the dataset's ledger by this launch, and the offsets `[start, stop)` of all rows that it added."""

    datasetId: str | None  # noqa: N815
    entry: int
    ledgerHash: str  # noqa: N815
    start: int | None
    stop: int | None

    @staticmethod
    def _get_schema() -> str:
        return f"{_SCHEMAS}LedgerDatasetFacet"


class OpenLineage:
    """A subscriber of a run's events that sends run events of OpenLineage, in a thread of its own. Closed at the end.

    The client takes its transport from OPENLINEAGE_URL, OPENLINEAGE__TRANSPORT__… or openlineage.yml. Raises what the client
    raises for a configuration that is wrong.
    """

    def __init__(
        self, application: str, plan: Plan, continuous: bool, environment: Mapping[str, str], warn: Callable[[str], None]
    ) -> None:
        logging.getLogger("openlineage").addHandler(logging.NullHandler())  # its errors are warnings of the run
        logging.getLogger("urllib3.connectionpool").addFilter(_is_of_others)
        with _environment_kept():
            self._client = OpenLineageClient()
            self._client.config  # noqa: B018  # read now, while the variables are there
        self._producer = f"urn:dagflow:{version('dagflow')}"
        self._environment = environment
        self._warn = warn
        self._lineage = RunLineage(plan)
        self._log: WindowLog | None = None
        self._run_id = str(generate_new_uuid())
        self._job = Job(
            environment.get("OPENLINEAGE_NAMESPACE") or "default",
            application,
            facets={
                "jobType": job_type_job.JobTypeJobFacet(
                    "STREAMING" if continuous else "BATCH", "DAGFLOW", "APPLICATION", producer=self._producer
                )
            },
        )
        self._facets: dict[str, RunFacet] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version("dagflow"), "dagflow", producer=self._producer
            ),
            **self._parent(),
        }
        self._launch: LaunchRunFacet | None = None
        self._sent = 0.0
        self._events: queue.Queue[Event | None] = queue.Queue(QUEUE)
        self._thread = threading.Thread(target=self._work, name=THREAD, daemon=True)
        self._thread.start()
        self.line = f"OpenLineage: run events by {self._client.transport.kind or 'its transport'}"
        url = getattr(self._client.transport, "url", None)
        self.line += f" to {url}" if url else ""

    def __call__(self, event: Event) -> None:
        """Pass an event to the thread."""
        if isinstance(event, RunStarted | WindowDecided | EntryAppended | RunEnded):
            try:
                self._events.put_nowait(event)
            except queue.Full:
                self._warn("OpenLineage: the receiver is too slow, events are left out")

    def close(self) -> None:
        """Send the last events."""
        self._events.put(None)
        self._thread.join()
        self._client.close()

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                self._take(event)
            except Exception as error:  # noqa: BLE001  # telemetry does not end a run
                self._warn(f"OpenLineage: {type(error).__name__}: {error}")

    def _take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._log = WindowLog(open_store(event.run_folder, durable=False))
            folder = without_secrets(event.run_folder)
            self._launch = LaunchRunFacet(event.launch, event.runner, folder, event.first_window, 0, producer=self._producer)
            self._emit(RunState.START, event.at)
        elif isinstance(event, WindowDecided):
            if self._launch is not None:
                self._launch.windows += 1
            plan = None if self._log is None or self._lineage.is_full else self._log.read_plan(event.window)
            if plan is not None:
                self._lineage.planned(plan)
        elif isinstance(event, EntryAppended):
            self._lineage.appended(event.dataset, event.entry)
            if event.at - self._sent >= RUNNING:
                self._emit(RunState.RUNNING, event.at)
        elif isinstance(event, RunEnded):
            if event.error:
                message = without_secrets(event.error)
                self._facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(message, "PYTHON", producer=self._producer)
            if self._launch is None:  # the launch failed before it began
                self._emit(RunState.START, event.at)
            self._emit(_ENDS[event.status], event.at)

    def _emit(self, state: RunState, at: float) -> None:
        facets = self._facets if self._launch is None else {**self._facets, "dagflow_launch": self._launch}
        self._sent = at
        self._client.emit(
            RunEvent(
                eventTime=datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(),
                producer=self._producer,
                eventType=state,
                run=event_v2.Run(self._run_id, facets=facets),
                job=self._job,
                inputs=[self._input(each) for each in self._lineage.inputs.values()],
                outputs=[self._output(each) for each in self._lineage.outputs.values()],
            )
        )

    def _parent(self) -> dict[str, RunFacet]:
        """Return the facet of the run that this one is a part of, from OPENLINEAGE_PARENT_ID: `NAMESPACE/JOB/RUN`."""
        namespace, job, run = (["", "", *self._environment.get("OPENLINEAGE_PARENT_ID", "").rsplit("/", 2)])[-3:]
        if not (namespace and job and run):
            return {}
        facet = parent_run.ParentRunFacet(parent_run.Run(run), parent_run.Job(namespace, job), producer=self._producer)
        return {"parent": facet}

    def _input(self, each: InputLineage) -> InputDataset:
        namespace, name = dataset_name(each.path)
        facets: dict[str, InputDatasetFacet] = {}
        if each.files.ranges:
            files = [{"path": without_secrets(path), "ranges": list(map(list, r))} for path, r in each.files.ranges.items()]
            facets["dagflow_files"] = FilesInputDatasetFacet(files, each.files.omitted, producer=self._producer)
        if each.rows is not None and each.dataset is not None:
            facets["dagflow_rows"] = RowsInputDatasetFacet(each.dataset, *each.rows, each.entry, producer=self._producer)
        return InputDataset(namespace, name, inputFacets=facets)

    def _output(self, each: OutputLineage) -> OutputDataset:
        namespace, name = dataset_name(each.path)
        facets: dict[str, DatasetFacet] = {}
        output_facets: dict[str, OutputDatasetFacet] = {}
        if each.schema:
            fields = [schema_dataset.SchemaDatasetFacetFields(name=field.name, type=field.type) for field in each.schema]
            facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields, producer=self._producer)
        if each.entry is not None and each.hash is not None:
            facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(each.hash, producer=self._producer)
            start, stop = each.rows or (None, None)
            facets["dagflow_ledger"] = LedgerDatasetFacet(
                each.dataset, each.entry, each.hash, start, stop, producer=self._producer
            )
            output_facets["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=each.row_count, size=each.size, fileCount=each.file_count, producer=self._producer
            )
            output_facets["dagflow_files"] = FilesOutputDatasetFacet(
                [
                    {
                        "path": f.path,
                        "start": f.interval.start,
                        "stop": f.interval.end + 1,
                        "size": f.size,
                        "hash": f.physical_hash,
                    }
                    for f in each.files
                ],
                each.file_count - len(each.files),
                producer=self._producer,
            )
        return OutputDataset(namespace, name, facets=facets, outputFacets=output_facets)


@contextlib.contextmanager
def _environment_kept() -> Iterator[None]:
    """Undo the client's changes to the environment: it copies OPENLINEAGE_URL and the key to variables of other names."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]


def _is_of_others(record: logging.LogRecord) -> bool:
    """Return False for the log records of this module's thread: the run's own warning replaces them."""
    return record.threadName != THREAD
