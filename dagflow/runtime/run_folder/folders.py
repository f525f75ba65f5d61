"""The folders of a run: the outputs of its sinks, and the run folder, which is beside the first of them."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from dagflow.ledger import erase, named_files
from dagflow.ledger.snapshots import remove_current, remove_empty_snapshots, remove_links
from dagflow.model.operator.base import Operator
from dagflow.model.operator.sink import Sink
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.errors import ForeignFiles, LocalPathRemoteMaster, OutputInInput, OutputOrphaned, OutputOwned
from dagflow.runtime.run_folder.layout import APP_ID, CLAIMED, DECISION, KINDS, OWNER, RUN_FOLDERS, STAGING, STARTING_OVER, stored
from dagflow.runtime.run_folder.progress import decided_windows
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage import (
    FORMAT,
    OWN_FOLDER,
    LocalStore,
    Store,
    absolute,
    base_name,
    explained,
    file_system,
    inside,
    is_local,
    is_object_store,
    join,
    local_path,
    open_store,
    seal,
    translate,
    unseal,
)
from dagflow.storage.errors import PathOutside
from dagflow.storage.records.errors import PlanMismatch, RecordRefused

_UNSEALED_ID = re.compile(rb".+-[0-9a-f]{32}")  # as versions before this one have written it


@attrs.frozen
class Folders:
    """The folders that a run writes to.

    Attributes:
        outputs: the output folders of all sinks, absolute.
        run_folder: where the window log is; None when nothing is written that could be continued.
        private: further folders that operators write to, which are not datasets.
    """

    outputs: tuple[str, ...]
    run_folder: str | None
    private: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan, run_folder: str | None) -> Folders:
        """Return the folders of an application."""
        return cls.of_operators([node.operator for node in plan.dag.nodes.values()], run_folder)

    @classmethod
    def of_operators(cls, operators: Sequence[Operator], run_folder: str | None) -> Folders:
        """Return the folders of an application with these operators."""
        outputs = [absolute(folder) for operator in operators for folder in operator.output_folders()]
        private = [absolute(folder) for operator in operators for folder in operator.private_folders()]
        first = join(outputs[0], OWN_FOLDER) if outputs else None
        home = absolute(run_folder) if run_folder is not None else first
        return cls(tuple(dict.fromkeys(outputs)), home, tuple(private))

    def make(self) -> None:
        """Make the folders, and refuse outputs that hold what no run wrote. Raises StorageError, ForeignFiles, PathOutside."""
        assert self.run_folder is not None
        self._check_links()
        for folder in self.outputs:
            with explained(folder, "making the output folder"):
                system = file_system(folder)
                _make(folder)
                if foreign := foreign_files(folder):
                    raise foreign
                system.make_folders(join(folder, OWN_FOLDER))
        with explained(self.run_folder, "making the run folder"):
            _make(self.run_folder)

    def _check_links(self) -> None:
        """Raise PathOutside where a link makes dagflow's own folders lie elsewhere: what is removed in them would be foreign."""
        assert self.run_folder is not None
        for folder in self.outputs:
            inside(folder, STAGING)
        for name in RUN_FOLDERS:
            inside(self.run_folder, name)

    def owns(self, folder: str) -> bool:
        """Return whether a folder that a record names is an output of this run, now or before it got other outputs."""
        return absolute(folder) in (*self.outputs, *self.private) or self._owner(folder) == self.run_folder

    def sweep_temporaries(self) -> None:
        """Remove the half-written records that a killed launch has left in the run folder and in the ledgers of its outputs."""
        for folder in {self.run_folder, *(join(output, OWN_FOLDER) for output in self.outputs)}:
            if folder is not None and local_path(folder) is not None:
                LocalStore(folder).sweep(before=time.time())  # a zombie whose file goes writes it again

    def claim(self, fresh: bool = False) -> None:
        """Record this run as the owner of every output.

        Raises OutputOwned when an output is another run's, OutputOrphaned when it is this run's, but the log is gone. With
        `fresh`, the latter only if there are files in it: without the log, nothing tells which of them are the run's.
        """
        assert self.run_folder is not None
        home = open_store(self.run_folder)
        has_claim = home.read(CLAIMED.form) is not None
        is_claimed = has_claim or bool(WindowLog(home).windows("plan"))
        owners = {folder: self._owner(folder) for folder in self.outputs}
        for folder, owner in owners.items():
            if owner is None or self._was_moved(folder, owner):
                continue
            if owner != self.run_folder:
                raise OutputOwned(folder=folder, owner=owner, mine=self.run_folder)
            if not is_claimed and join(folder, OWN_FOLDER) != self.run_folder and not (fresh and not _visible(folder)):
                raise OutputOrphaned(folder=folder, run_folder=self.run_folder)
        if not has_claim:
            home.create(CLAIMED.form, b"")  # before the outputs say so
        for folder in (folder for folder, owner in owners.items() if owner != self.run_folder):
            store = open_store(join(folder, OWN_FOLDER))
            if not store.create(OWNER.form, os.fsencode(self.run_folder)) and self._owner(folder) != self.run_folder:
                store.discard(OWNER.form)
                store.create(OWNER.form, os.fsencode(self.run_folder))

        for folder in self.private:
            store = open_store(join(folder, OWN_FOLDER))
            store.discard(OWNER.form)  # of a run before, whose files mean nothing to this one
            store.create(OWNER.form, os.fsencode(self.run_folder))

    def _owner(self, folder: str) -> str | None:
        record = open_store(join(folder, OWN_FOLDER)).read(OWNER.form)
        return None if record is None else os.fsdecode(record)

    def _was_moved(self, folder: str, owner: str) -> bool:
        """Return whether this output was moved, or copied, together with its own log. Then it is still its own."""
        mine = self.run_folder
        return owner != mine and os.path.basename(owner) == OWN_FOLDER and mine == join(folder, OWN_FOLDER)

    def _moved(self, then: Sequence[str]) -> dict[str, str]:
        """Return the present paths of output folders by their earlier paths. Folders that are still this run's are left out."""
        return {old: new for old, new in self._replaced(then).items() if self._owner(old) != self.run_folder}

    def _replaced(self, then: Sequence[str]) -> dict[str, str]:
        """Return the present outputs by the earlier outputs that they replace."""
        pairs = zip(then, self.outputs, strict=False)
        return {old: new for old, new in pairs if old not in self.outputs and new not in then}

    def app_id(self, application: str) -> str:
        """Return the id of the application on this run folder, for ledgers. The first launch makes and stores it.

        Raises PlanMismatch if it is gone: under another id, windows would be committed twice.
        """
        assert self.run_folder is not None
        home = open_store(self.run_folder)
        existing = read_app_id(home)
        if existing is None:
            decided = reversed(WindowLog(home).windows("decision"))  # which a listing may still show after a fresh start
            if any(home.read(DECISION.name(window=window)) is not None for window in decided):
                raise PlanMismatch(self.run_folder, f"{APP_ID.form} is gone, by which ledgers know what was committed")
            home.create(APP_ID.form, seal(APP_ID.form, f"{application}-{uuid.uuid4().hex}".encode()))
            existing = read_app_id(home)
        assert existing is not None
        return existing

    def known_app_id(self) -> str | None:
        """Return the id of the application on this run folder; None before the first launch, and if it cannot be read."""
        assert self.run_folder is not None
        with contextlib.suppress(PlanMismatch, RecordRefused):  # it is refused where it is needed
            return read_app_id(open_store(self.run_folder))
        return None

    def log(self, durable: bool) -> WindowLog:
        """Return the window log of the run."""
        assert self.run_folder is not None
        return WindowLog.open(self.run_folder, durable, self.outputs, self._moved, self.owns)

    def has_undone(self) -> bool:
        """Return whether there is a decided window whose files may not have their final names yet."""
        if self.run_folder is None:
            return False
        with explained(self.run_folder, "looking for windows of earlier launches"):
            if not is_object_store(self.run_folder) and not file_system(self.run_folder).exists(self.run_folder):
                return False
        log = WindowLog.open(self.run_folder, durable=False)
        decided = log.windows("decision")
        return bool(decided) and bool(set(decided) - set(log.windows("done")))

    def is_starting_over(self) -> bool:
        """Return whether a launch was killed while it started over."""
        assert self.run_folder is not None
        return open_store(self.run_folder).read(STARTING_OVER.form) is not None

    def start_over(self, check: Callable[[], None] = lambda: None, sweep: Callable[[], None] = lambda: None) -> list[str]:
        """Remove what earlier runs have committed, and their log. If the process dies in between, the next launch completes it.

        Only names that a run gives are removed, only in its own outputs and run folder. Returns the windows, entries and paths
        that cannot be followed: what only they know of stays. `check` is called before each removal, and may raise. `sweep`
        removes what sinks have staged, while the run folder still has the id of the application, so it can be repeated.
        """
        assert self.run_folder is not None
        store = open_store(self.run_folder)
        store.create(STARTING_OVER.form, b"")  # before all else: a launch that resumed would miss what was staged
        check()
        sweep()
        log = WindowLog.open(self.run_folder, False, self.outputs, self._replaced)
        unreadable: list[str] = []
        touched = {*self.outputs}
        for folder in self.outputs:
            remove_current(folder)
        windows = decided_windows(log)
        for window in windows:
            try:
                decision = log.read_decision(window, alone=True)
            except (PlanMismatch, RecordRefused):  # damaged, or of another version
                unreadable.append(f"window {window}")
                continue
            for file in decision.files if decision is not None else ():
                check()
                if absolute(file.folder) in self.outputs:
                    remove_links(file.folder, [file.name] if file.is_partition else ())
                    unreadable += _remove_committed(file.folder, file.name, touched)
        for folder in self.outputs:
            names, lost = named_files(folder)
            unreadable += [f"{lost} entries of {folder}"] if lost else []
            remove_links(folder, set(names))
            for name in names:
                check()
                unreadable += _remove_committed(folder, name, touched)
            check()
            remove_empty_snapshots(folder)
            _remove_tree(inside(folder, STAGING))
        for folder in touched:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                file_system(folder).sync_folder(folder)  # the files are gone for good before the log that knows them
        for folder in self.outputs:
            check()
            erase(folder)
        for name in list(stored(log.unsynced, (kind for kind in KINDS if kind.fresh and not kind.in_outputs))):
            check()
            log.unsynced.discard(name)
        check()
        log.drop(windows)  # also those that a listing does not show yet
        for folder in {self.run_folder, *(join(output, OWN_FOLDER) for output in self.outputs)}:
            file_system(folder).sync_folder(folder)  # what is gone stays gone, before that is forgotten
        store.discard(STARTING_OVER.form)
        return unreadable


def read_app_id(store: Store) -> str | None:
    """Return the id of the run that a run folder belongs to, None without one. Raises RecordRefused, PlanMismatch."""
    stored = store.read(APP_ID.form)
    if stored is None:
        return None
    if _UNSEALED_ID.fullmatch(stored):
        raise PlanMismatch(store.url, f"it was written by another version of dagflow (this one reads format {FORMAT})")
    return unseal(stored, APP_ID.form, store.url).body.decode()


def is_run_folder(place: str) -> bool:
    """Return whether a place is a run folder by itself, not the folder beside an output."""
    folder = absolute(place)
    with explained(folder, "looking for a run folder"):
        return base_name(folder) != OWN_FOLDER and file_system(folder).exists(join(folder, APP_ID.form))


def foreign_files(folder: str) -> ForeignFiles | None:
    """Return the error for an output folder with files that no run wrote; None if it has none."""
    system = file_system(folder)
    with explained(folder, "looking for files of others in the output"):
        ours = join(folder, OWN_FOLDER)
        if is_object_store(folder) and open_store(ours).read(OWNER.form) is not None:
            return None  # by its name: a listing may be old
        if system.exists(ours) or not system.exists(folder):
            return None
    foreign = _visible(folder)
    return ForeignFiles(folder=folder, files=foreign) if foreign else None


def _make(folder: str) -> None:
    """Make a folder and those above it, for good."""
    folders = []
    above = local_path(folder)
    while above and not os.path.isdir(above):
        above = os.path.dirname(above)
        folders.append(above or ".")
    system = file_system(folder)
    system.make_folders(folder)
    for each in folders:
        with contextlib.suppress(PermissionError):  # it may be entered, but not read: nothing that we could secure
            system.sync_folder(each)


def _visible(folder: str) -> tuple[str, ...]:
    names = (base_name(file.path) for file in file_system(folder).scan(folder))
    return tuple(sorted(name for name in names if name[0] not in "._"))


def _remove_committed(folder: str, name: str, touched: set[str]) -> list[str]:
    """Remove a file that a record names, and note its folder; a name that leads elsewhere is returned instead."""
    try:
        path = inside(folder, name)
    except PathOutside:
        return [f"{name!r} (not a path inside {folder})"]
    _remove(path)
    touched.add(path.rpartition("/")[0])
    return []


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _removing(path):
        file_system(path).remove(path)


def _remove_tree(path: str) -> None:
    system = file_system(path)
    with _removing(path):
        if system.exists(path):
            system.remove_tree(path)


@contextlib.contextmanager
def _removing(path: str) -> Iterator[None]:
    """Turn errors other than that it is gone into dagflow's."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise translate(error, path, "starting over") from error


def refuse_outputs_in_inputs(plan: Plan, folders: Folders) -> None:
    """Raise OutputInInput when what the run writes lies in a folder that it reads: the next launch would read it again."""
    for problem in outputs_in_inputs({name: node.operator for name, node in plan.dag.nodes.items()}, folders):
        raise problem


def outputs_in_inputs(operators: Mapping[str, Operator], folders: Folders) -> Iterator[OutputInInput]:
    """Yield an error for each output, and the run folder, if it lies in a folder that an operator reads."""
    for name, operator in operators.items():
        for source in operator.input_paths():
            for output in folders.outputs:
                if _lies_in(output, source):
                    yield OutputInInput(operator=name, path=source, output=output)
            run = folders.run_folder
            if run is not None and not base_name(run).startswith(OWN_FOLDER) and _lies_in(run, source):
                yield OutputInInput(operator=name, path=source, output=run, what="run folder")


def _lies_in(inner: str, outer: str) -> bool:
    here, there = local_path(inner), local_path(outer)
    if here is not None and there is not None:
        here, there = os.path.realpath(here), os.path.realpath(there)
        existing = here
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        if not os.path.isdir(existing):  # it cannot be made anyway, which is then what to say
            return False
    elif here is None and there is None:
        here, there = inner, outer
    else:
        return False
    return f"{here.rstrip('/')}/".startswith(f"{there.rstrip('/')}/")


def refuse_local_paths(plan: Plan, master: str | None) -> None:
    """Raise LocalPathRemoteMaster when an operator works on a path of this machine, but Spark runs on others."""
    if master is None or not on_other_machines(master):
        return
    for name, node in plan.dag.nodes.items():
        staged = node.operator.task_folders() if isinstance(node.operator, Sink) else ()
        for path in (*node.operator.input_paths(), *node.operator.output_folders(), *staged):
            if is_local(path):
                raise LocalPathRemoteMaster(operator=name, path=path, master=master)


def on_other_machines(master: str) -> bool:
    """Return whether a master or a Spark Connect address means machines other than this one.

    >>> [on_other_machines(m) for m in ("local[2]", "spark://127.0.0.1:7077", "sc://localhost", "spark://boss:7077", "yarn")]
    [False, False, False, True, True]
    """
    if master.startswith(("local", "local-cluster")):
        return False
    scheme, separator, rest = master.partition("://")
    if not separator:
        return True
    host = rest.split("/")[0].split(",")[0]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host
    return (
        host not in ("localhost", "127.0.0.1", "::1", socket.gethostname()) and not host.startswith("127.")
    ) or scheme == "k8s"
