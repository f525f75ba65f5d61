"""`Sink`: the protocol of operators that publish a window outside of dagflow, in a table or a database for example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import attrs

from dagflow.model.operator.base import Operator


@attrs.frozen
class StagedWindow:
    """A window, as a sink publishes it.

    Attributes:
        application: the identity of the application on its run folder, the same in all launches. `--fresh` begins another one.
        number: of the window. A sink remembers `(application, sink, number)` for the windows that it has published. Windows are
            published in their order, without gaps, so the newest number is enough.
        staged: what `stage` returned in the tasks that count, in their order. What other attempts have staged is not in it.
        sink: the name of the operator in the DAG: an application may have several sinks of one class.
        decision: the identity of the decision: 15 hexadecimal digits of its hash, which fit into an integer of 64 bits. A sink
            keeps it with the number. "" in tests of an operator by itself, where the decision is no longer kept,
            and in `check_window`.
    """

    application: str
    number: int
    staged: tuple[Any, ...] = ()
    sink: str = ""
    decision: str = ""

    @property
    def mark(self) -> WindowMark:
        """The mark that a store keeps of this window."""
        return WindowMark(self.number, self.decision)


@attrs.frozen
class WindowMark:
    """The newest window of a sink that its store has.

    Attributes:
        number: of the window; -1 for none.
        decision: the identity of its decision, as in `StagedWindow`; "" where the store does not say it.
    """

    number: int = -1
    decision: str = ""

    @classmethod
    def of(cls, number: int, digest: str | None) -> WindowMark:
        """Return the mark of a window by the hash of its decision; None: it is not known.

        >>> WindowMark.of(3, "sha256:0123456789abcdef0123")
        WindowMark(number=3, decision='0123456789abcde')
        """
        return cls(number, "" if digest is None else digest.rpartition(":")[2][:15])

    def differs(self, window: WindowMark) -> bool:
        """Return whether both are marks of one window, and of two decisions.

        >>> WindowMark(3, "a1").differs(WindowMark(3, "b2")), WindowMark(3).differs(WindowMark(3, "b2"))
        (True, False)
        """
        return self.number == window.number and "" not in (self.decision, window.decision) and self.decision != window.decision


@attrs.frozen(kw_only=True)
class SinkLaunch:
    """A launch that is about to begin, as a sink checks its store for it.

    Attributes:
        application: the identity of the application on its run folder, as in `StagedWindow`; "" if it has none yet, on a new
            run folder and with `--fresh`.
        name: the name of the application. All of its identities begin with it.
        sink: the name of the operator in the DAG.
        fresh: whether `--fresh` starts over.
        replaces: the identity whose windows `--fresh` is about to forget; "" for none, and where its record is gone or damaged.
        columns: the columns of the rows that will come, `(name, Arrow type)`; None where only the data shows them, and where
            windows that are decided have to be published first.
    """

    application: str = ""
    name: str = ""
    sink: str = ""
    fresh: bool = False
    replaces: str = ""
    columns: Sequence[tuple[str, str]] | None = None

    def is_earlier_run(self, application: str) -> bool:
        """Return whether an identity is that of the same application on another run folder, or before a `--fresh`.

        >>> SinkLaunch(name="sales", application="sales-1f").is_earlier_run("sales-2e")
        True
        """
        return application != self.application and application.rpartition("-")[0] == self.name


@runtime_checkable
class PublishesWindows(Protocol):
    """The driver's half of a sink: of directories of files, and of every `Sink`."""

    def publish(self, window: StagedWindow) -> None:
        """Make visible what has been staged for a window."""
        ...

    def is_published(self, window: StagedWindow) -> bool:
        """Return True if all of a window has been published, and survives a power cut."""
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

    def destination(self) -> str:
        """Return the name of the store, as reports show it: a table and its database, for example. Never a secret."""
        return type(self).__name__

    def task_folders(self) -> Sequence[str]:
        """Return the local folders or URLs that `stage` writes to, other than that of the run: each executor has to see them.

        They are tried before the first window. A local one is refused where tasks run on other machines.
        """
        return ()

    def check_store(self, launch: SinkLaunch) -> Sequence[str]:
        """Try the store before a launch begins, and return warnings for its user. Raises what `stage` or `publish` would raise.

        Called on the driver's instance (not set up), before tasks start, and before `--fresh` removes anything.
        """
        return ()

    def stage(self) -> Any:
        """Store what has been collected for the window, and return a description of it: plain data, None for nothing.

        Called in tasks, after `end_window`. A task may run several times, also at the same time, so each attempt needs a place of
        its own (`uuid.uuid4()`), which the description names. What is staged must survive the task.
        """

    def check_window(self, window: StagedWindow) -> None:
        """Raise what `publish` would raise for a window each time: two tasks have staged rows that do not go together, say.

        Called on the driver's instance (not set up), once all tasks have staged, with what they have staged; the window before is
        published. A window that is decided is published, however often that takes, so this is the last time to refuse it. Nothing
        may be left of what is tried.
        """

    def publish(self, window: StagedWindow) -> None:
        """Make visible what has been staged for a window, and remember its `application`, `sink` and `number` with it.

        Called on the driver's instance (not set up), once the window is decided, in the order of windows. It must be idempotent:
        it is called again after a crash, and after an error that is transient. A window without anything staged is published
        too. Best done in one transaction of the store.
        """
        raise NotImplementedError(f"{type(self).__name__} does not publish: override publish(window)")

    def is_published(self, window: StagedWindow) -> bool:
        """Return True if `publish` has succeeded for a window. Should be a single read, however many windows there are."""
        raise NotImplementedError(f"{type(self).__name__} does not know what it has published: override is_published(window)")

    def newest_mark(self, last: StagedWindow) -> WindowMark | None:
        """Return the mark of the newest window that the store has, as `publish` has kept it; None if the store keeps none.

        Called on the driver's instance (not set up) by each launch, also if nothing is new. dagflow compares the mark with the
        run folder: a store, or a run folder, that was restored from an older copy is refused before anything is planned.

        `last`: the newest window with rows for this sink that is certainly published; its number is -1 for none. Raise an error
        where the store is not as that window has left it, and the number alone does not show it.
        """
        return None

    def sweep(self, window: StagedWindow) -> None:
        """Remove what tasks have staged for earlier windows, which are published, and what attempts that do not count have left.

        Called on the driver's instance after each published window.
        """
