"""The folders of a run: the outputs of its sinks, and the run folder, which is beside the first of them."""

from __future__ import annotations

import os
import socket

import attrs

from dagflow.errors.application import ForeignFiles, LocalPathRemoteMaster, OutputOwned
from dagflow.plan.plan import Plan
from dagflow.runtime.window_log import WindowLog
from dagflow.storage import absolute, base_name, explained, file_system, is_local, join, open_store

OURS = "_dagflow"
_OWNER = "owner"
_STARTING_OVER = "starting-over"
_KEPT = frozenset({".lock", "_lock", _OWNER, _STARTING_OVER})


@attrs.frozen
class Folders:
    """What folders a run works on.

    Attributes:
        outputs: the output folders of all sinks, absolute.
        run_folder: where the window log is; None when nothing is written that could be continued.
    """

    outputs: tuple[str, ...]
    run_folder: str | None

    @classmethod
    def of(cls, plan: Plan, run_folder: str | None) -> Folders:
        """The folders of an application."""
        outputs: list[str] = []
        for node in plan.dag.nodes.values():
            outputs += [absolute(folder) for folder in node.operator.output_folders()]
        first = join(outputs[0], OURS) if outputs else None
        return cls(tuple(dict.fromkeys(outputs)), absolute(run_folder) if run_folder is not None else first)

    def make(self) -> None:
        """Makes the folders, and refuses outputs that hold what no run wrote. Raises StorageError, ForeignFiles."""
        assert self.run_folder is not None
        for folder in self.outputs:
            system = file_system(folder)
            with explained(folder, "making the output folder"):
                system.make_folders(folder)
                if not system.exists(join(folder, OURS)):
                    foreign = sorted(name for s in system.scan(folder) if (name := base_name(s.path))[0] not in "._")
                    if foreign:
                        raise ForeignFiles(folder=folder, files=tuple(foreign))
                system.make_folders(join(folder, OURS))
        with explained(self.run_folder, "making the run folder"):
            file_system(self.run_folder).make_folders(self.run_folder)

    def claim(self) -> None:
        """Notes in every output whose it is. Raises OutputOwned when it is another run's."""
        assert self.run_folder is not None
        for folder in self.outputs:
            store = open_store(join(folder, OURS))
            mine = self.run_folder.encode()
            if store.create(_OWNER, mine):
                continue
            found = store.read(_OWNER)
            if found is not None and found != mine:
                # a folder that was moved as a whole is still its own
                if os.path.basename(found.decode()) == OURS and self.run_folder == join(folder, OURS):
                    store.discard(_OWNER)
                    store.create(_OWNER, mine)
                    continue
                raise OutputOwned(folder=folder, owner=found.decode(), mine=self.run_folder)

    def is_starting_over(self) -> bool:
        """Whether a launch that was to start over has died before it was done with that."""
        assert self.run_folder is not None
        return open_store(self.run_folder).read(_STARTING_OVER) is not None

    def start_over(self) -> None:
        """Removes what earlier runs have committed, and their log. Whoever dies in between, the next launch completes it."""
        assert self.run_folder is not None
        store = open_store(self.run_folder)
        store.create(_STARTING_OVER, b"")
        log = WindowLog(store)
        for window in log.windows("decision"):
            decision = log.read_decision(window)
            for file in decision.files if decision is not None else ():
                system = file_system(file.folder)
                if system.exists(join(file.folder, file.name)):
                    system.remove(join(file.folder, file.name))
        for folder in (self.run_folder, *(join(f, OURS) for f in self.outputs)):
            system = file_system(folder)
            for found in list(system.scan(folder)):
                if base_name(found.path) in _KEPT:
                    continue
                if found.is_directory:
                    system.remove_tree(found.path)
                else:
                    system.remove(found.path)
        for folder in (*self.outputs, self.run_folder):
            file_system(folder).sync_folder(folder)  # what is gone stays gone, before that is forgotten
        store.discard(_STARTING_OVER)


def refuse_local_paths(plan: Plan, master: str | None) -> None:
    """Raises LocalPathRemoteMaster when an operator works on a path of this machine, but Spark runs on others."""
    if master is None or not on_other_machines(master):
        return
    for name, node in plan.dag.nodes.items():
        for path in (*node.operator.input_paths(), *node.operator.output_folders()):
            if is_local(path):
                raise LocalPathRemoteMaster(operator=name, path=path, master=master)


def on_other_machines(master: str) -> bool:
    """Whether a master or a Spark Connect address means machines other than this one.

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
