"""One walk over folders: what is in them, in an order that does not depend on the file system."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

import attrs

from dagflow.storage import OWN_FOLDER, FileStatus, FileSystem, file_system, join, translate

DOING = "scanning the input"
_COPYING = "._COPYING_"  # `hdfs dfs -put` writes under such a name, and renames the file when it is whole


@attrs.frozen
class Visit:
    """The findings of a scan in one folder.

    Attributes:
        root: the input below which it lies; None when what was found is itself an input.
        found: the folder itself, when it is to be reported, then files in the order of their names.
    """

    root: str | None
    found: list[FileStatus]


@attrs.define
class Skipped:
    """The paths that scans passed over. Noted in the scanner's thread, counted in the operator's.

    >>> skipped = Skipped()
    >>> for path in ("a", "b", "a"):
    ...     skipped.add("no_regular_files", path)
    >>> skipped.counts(), skipped.counts()
    ({'no_regular_files': 2}, {})
    """

    _known: set[tuple[str, str]] = attrs.field(factory=set)
    _reasons: deque[str] = attrs.field(factory=deque)
    _refused: dict[str, tuple[int, str]] = attrs.field(factory=dict)

    def add(self, reason: str, path: str) -> None:
        """Take note of a path, once for each reason, however many scans pass over it."""
        if (reason, path) not in self._known:
            self._known.add((reason, path))
            self._reasons.append(reason)

    def refused(self, why: str, path: str) -> None:
        """Take note of a file that a scan must not find: count it by its reason, and keep the first one of each."""
        number, first = self._refused.get(why, (0, path))
        self._refused[why] = (number + 1, first)

    def in_words(self) -> str:
        """Return what scans have passed over so far, as a sentence; empty for nothing.

        >>> skipped = Skipped()
        >>> for path in ("a", "b"):
        ...     skipped.refused("do not match the pattern", path)
        >>> skipped.add("hidden_files", ".c")
        >>> skipped.in_words()
        '2 do not match the pattern (a, …); 1 of hidden files (.c)'
        """
        noted: dict[str, tuple[int, str]] = {}
        for reason, path in sorted(self._known):
            number, first = noted.get(reason, (0, path))
            noted[reason] = (number + 1, first)
        parts = [f"{n:,} {why} ({first}{', …' if n > 1 else ''})" for why, (n, first) in self._refused.items()]
        parts += [f"{n:,} of {why.replace('_', ' ')} ({first}{', …' if n > 1 else ''})" for why, (n, first) in noted.items()]
        return "; ".join(parts)

    def counts(self) -> dict[str, int]:
        """Return the number of paths that were noted since the last call, by reason."""
        counts: Counter[str] = Counter()
        while self._reasons:
            counts[self._reasons.popleft()] += 1
        return dict(counts)


@attrs.define(kw_only=True)
class Walk:
    """One scan: folders depth first, in each the files in the order of their names, then its folders in theirs.

    Attributes:
        recursive: whether folders below the inputs are entered; otherwise they are only reported.
        accept: whether a path is wanted; asked for files, and for folders that are not entered.
        newest_ns: files modified later are passed over; None: none are.
        wait: whether an input that is not there is passed over instead of ending the scan.
        skip_unreadable: whether a folder that may not be read is passed over instead of ending the scan.
        hidden: whether files and folders below the inputs are found whose names say that they are not input (`is_hidden`).
        skipped: takes note of what is passed over.
        at: the path at which the walk is.
    """

    recursive: bool
    accept: Callable[[str], bool]
    newest_ns: int | None = None
    wait: bool = False
    skip_unreadable: bool = False
    hidden: bool = False
    skipped: Skipped = attrs.field(factory=Skipped)
    at: str = ""
    _entered: set[object] = attrs.field(factory=set, init=False)

    def visits(self, roots: Iterable[str]) -> Iterator[Visit]:
        """Yield everything below the inputs. Each real folder is entered once, whatever links lead to it."""
        for root in roots:
            self.at = root
            system = file_system(root)
            try:
                status = system.status(root)
            except OSError as error:
                if self.wait and isinstance(error, (FileNotFoundError, NotADirectoryError)):
                    continue
                raise translate(error, root, DOING) from error
            if status.is_directory:
                yield from self._below(system, status)
            elif self._wanted(status):
                yield Visit(None, [status])

    def _below(self, system: FileSystem, root: FileStatus) -> Iterator[Visit]:
        stack = [root]
        while stack:
            folder = stack.pop()
            self.at = folder.path
            identity = folder.inode or folder.path
            if identity in self._entered:
                self.skipped.add("folders_found_again", folder.path)
                continue
            self._entered.add(identity)
            entries = self._list(system, folder, is_root=folder is root)
            if entries is None:
                continue
            if folder is root and not entries:
                yield Visit(None, [root])
                continue
            entries = self._visible(entries, folder if folder is not root else None)
            entries.sort(key=_path)
            files = [folder] if folder is not root else []
            files += [e for e in entries if not e.is_directory and self._wanted(e)]
            if files:
                yield Visit(root.path, files)
            folders = [e for e in entries if e.is_directory and not self._is_ours(e.path)]
            if self.recursive:
                stack += reversed(folders)
            else:
                yield from (Visit(root.path, [e]) for e in folders if self.accept(e.path))

    def _list(self, system: FileSystem, folder: FileStatus, is_root: bool) -> list[FileStatus] | None:
        try:
            return list(system.scan(folder.path))
        except (FileNotFoundError, NotADirectoryError) as error:
            if is_root and not self.wait:
                raise translate(error, folder.path, DOING) from error
            return None  # gone since its parent was listed
        except PermissionError as error:
            if not self.skip_unreadable or is_root:
                raise translate(error, folder.path, DOING) from error
            self.skipped.add("unreadable_folders", folder.path)
            return None
        except OSError as error:
            raise translate(error, folder.path, DOING) from error

    def _visible(self, entries: list[FileStatus], folder: FileStatus | None) -> list[FileStatus]:
        """Yield the entries that are not hidden. In a folder that a link led to, each has its real path."""
        if not self.hidden:
            hidden = [e for e in entries if is_hidden(_name(e.path)) and not self._is_ours(e.path)]
            for entry in hidden:
                self.skipped.add("hidden_folders" if entry.is_directory else "hidden_files", entry.path)
            if hidden:
                entries = [e for e in entries if not is_hidden(_name(e.path))]
        if folder is None or folder.target is None:
            return entries
        return [e if e.target is not None else attrs.evolve(e, target=join(folder.target, _name(e.path))) for e in entries]

    def _wanted(self, status: FileStatus) -> bool:
        self.at = path = status.path
        if not self.accept(path):
            return False
        if not status.is_regular:
            self.skipped.add("no_regular_files", path)
            return False
        if self.newest_ns is not None and status.modified_ns > self.newest_ns:
            self.skipped.add("files_younger_than_min_age", path)
            return False
        return True

    def _is_ours(self, path: str) -> bool:
        return _name(path).startswith(OWN_FOLDER)


def is_hidden(name: str) -> bool:
    """Return True if Spark and Hadoop would not read a file of this name as input: temporary, metadata, or still being copied.

    Spark reads folders such as `_year=2026`, since that is the name of a column.

    >>> [is_hidden(name) for name in ("a.txt", ".a.txt.Xy12Ab", "_temporary", "_SUCCESS", "_year=2026", "a._COPYING_")]
    [False, True, True, True, False, True]
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(_COPYING)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _path(status: FileStatus) -> str:
    return status.path


def name_below(folder: str, path: str) -> str:
    """Return the part of `path` below `folder`; empty if it is the folder.

    >>> name_below("/logs", "/logs/a.txt"), name_below("/", "/a.txt"), name_below("/logs", "/logs")
    ('a.txt', 'a.txt', '')
    """
    return path[len(folder) + (not folder.endswith("/")) :]
