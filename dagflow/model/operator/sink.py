"""`Sink`: the protocol of operators that publish a window outside of dagflow, in a table or a database for example."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import attrs

from dagflow.model.operator.base import Operator


@attrs.frozen
class StagedWindow:
    """A decided window, as a sink publishes it.

    Attributes:
        application: the identity of the application on its run folder, the same in all launches. `--fresh` begins another one.
        number: of the window. A sink remembers `(application, number)` for the windows that it has published.
        staged: what `stage` returned in the tasks that count, in their order. What other attempts have staged is not in it.
    """

    application: str
    number: int
    staged: tuple[Any, ...] = ()


@runtime_checkable
class PublishesWindows(Protocol):
    """The driver's half of a sink: of directories of files, and of every `Sink`."""

    def publish(self, window: StagedWindow) -> None:
        """Make visible what has been staged for a window."""
        ...

    def is_published(self, window: StagedWindow) -> bool:
        """Return True if all of a window has been published."""
        ...

    def sweep(self, window: StagedWindow) -> None:
        """Remove what is staged for earlier windows."""
        ...


@attrs.define(slots=False, eq=False)
class Sink(Operator):
    """An operator that writes to a store of its own, exactly once.

    In tasks, handlers collect what arrives, and `stage` writes it to a place where no reader of the store sees it. After the
    window is decided, the driver calls `publish` with what the tasks have staged. A launch that finds a decided window that is
    not done publishes it again, unless `is_published`.

    Operators that write files with `context.create_file` need none of this: dagflow stages and publishes their files.
    """

    def stage(self) -> Any:
        """Store what has been collected for the window, and return a description of it: plain data, None for nothing.

        Called in tasks, after `end_window`. A task may run several times, also at the same time, so each attempt needs a place of
        its own (`uuid.uuid4()`), which the description names. What is staged must survive the task.
        """

    def publish(self, window: StagedWindow) -> None:
        """Make visible what has been staged for a window, and remember `(window.application, window.number)` with it.

        Called on the driver's instance (not set up), once the window is decided, in the order of windows. It must be idempotent:
        it is called again after a crash, and after an error that is transient. A window without anything staged is published
        too. Best done in one transaction of the store.
        """
        raise NotImplementedError(f"{type(self).__name__} does not publish: override publish(window)")

    def is_published(self, window: StagedWindow) -> bool:
        """Return True if `publish` has succeeded for a window. Should be a single read, however many windows there are."""
        raise NotImplementedError(f"{type(self).__name__} does not know what it has published: override is_published(window)")

    def sweep(self, window: StagedWindow) -> None:
        """Remove what tasks have staged for earlier windows, which are published, and what attempts that do not count have left.

        Called on the driver's instance after each published window.
        """
