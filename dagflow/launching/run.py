"""A launched application, as `launch(...)` returns it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dagflow.errors import DagflowError
from dagflow.exports import shown_in_notebooks
from dagflow.model.operator.base import Operator
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.run_view import RunView


class Run:
    """A launch: wait for it, stop it, read its report.

    Attributes:
        report: what it has done so far; complete once it has ended. `view`: the state that its events have led to.
    """

    def __init__(self, view: RunView, body: Callable[[Run], None]) -> None:
        self.view, self.report = view, view.report
        self._body = body
        self._stopped_by: str | None = None
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._operators: Callable[[str], Operator | None] = lambda name: None

    _repr_mimebundle_ = shown_in_notebooks("run_bundle")

    def __repr__(self) -> str:
        return f"<Run {self.report.summary()}>"

    def run_here(self) -> None:
        """Run in the calling thread. Raises what ends the run."""
        try:
            self._body(self)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._ended.set()

    def run_in_background(self) -> None:
        """Run in a background thread. `wait` raises what ends the run."""

        def body() -> None:
            try:
                self._body(self)
            except BaseException as error:  # noqa: BLE001  # raised again by the caller that waits
                self._error = error
            finally:
                self._ended.set()

        self._thread = threading.Thread(target=body, name="dagflow-run", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> RunReport:
        """Wait until the run has ended, and return its report. Raises what ended it; TimeoutError after `timeout` seconds."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"the run has not ended within {timeout} s")
        if self._error is not None and not (isinstance(self._error, DagflowError) and self._stopped_by == "stop()"):
            raise self._error
        return self.report

    def stop(self, by: str = "stop()") -> None:
        """Ask the run to end. It abandons the windows that run, and the next launch resumes from there."""
        self._stopped_by = self._stopped_by or by

    @property
    def stopping(self) -> str | None:
        """The source of the request to end the run; None without one."""
        return self._stopped_by

    @property
    def ended(self) -> bool:
        """Return whether the run has ended."""
        return self._ended.is_set()

    def operator(self, name: str) -> Operator:
        """Return the driver's instance of an operator. Raises KeyError if the DAG does not have an operator of that name."""
        live = self._operators(name)
        if live is None:
            raise KeyError(name)
        return live

    def publish_operators(self, find: Callable[[str], Operator | None]) -> None:
        """Set the function with which `operator` finds operators."""
        self._operators = find
