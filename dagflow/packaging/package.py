"""The package of an application: made once for the same files, and the settings with which Spark uses it."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from dagflow.model.operator.base import Operator
from dagflow.packaging.archive import Member, address, publish, remove_old, share
from dagflow.packaging.code import (
    code_files,
    imported_by,
    imported_by_operators,
    texts_of,
    user_modules,
)
from dagflow.packaging.errors import LibraryUnknown, LockUnusable, PackageNotMade
from dagflow.packaging.launcher import ENVIRONMENT, PYTHON, Interpreter, launcher
from dagflow.packaging.libraries import FROM_SPARK, Installed, Library, canonical, our_library
from dagflow.packaging.lock import install
from dagflow.storage.local.cache import cache_folder
from dagflow.storage.remote.drivers import driver_modules

MAIN = "dagflow_main.py"
_MAIN = b'''"""The program that spark-submit starts: the command dagflow."""

import sys

from dagflow.cli.main import main

sys.exit(main())
'''
_KEPT = 4
"""Archives of a name that stay in the cache."""


@attrs.frozen
class Package:
    """An archive of libraries, and one of the application's code.

    Attributes:
        name: the application's.
        archive: the libraries, for `spark.archives`. If they are in a shared folder, only the script that finds them.
        shared: the libraries in a shared folder.
        code: the application's modules, for `--py-files`.
        module: the application as a module of `code`.
        python: the version of Python that executors need.
        libraries: what the archive holds.
        is_new: the archive was not in the cache.
        seconds: the time that it took to find or make it.
    """

    name: str
    archive: Path
    shared: Path | None
    code: Path
    module: str
    python: str
    libraries: tuple[Library, ...]
    is_new: bool
    seconds: float

    @property
    def bytes(self) -> int:
        """The size of the libraries."""
        return (self.shared or self.archive).stat().st_size

    @property
    def folder(self) -> str:
        """The folder into which Spark unpacks the archive."""
        return ENVIRONMENT

    @property
    def launcher(self) -> str:
        """The archive's Python, seen from an executor's working folder."""
        return PYTHON

    @property
    def uri(self) -> str:
        """The archive as Spark's settings name it, with the folder into which it is unpacked."""
        return f"{self.archive}#{ENVIRONMENT}"

    def spark_settings(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the settings of a classic session. Archives that are `given` stay."""
        others = (given or {}).get("spark.archives", "")
        return {"spark.archives": ",".join(filter(None, [others, self.uri])), "spark.pyspark.python": PYTHON}


def package_of(
    name: str,
    populate_dag: Any,
    operators: Iterable[Operator],
    *,
    lock: str | None = None,
    extra: Iterable[str] = (),
    texts: Iterable[str] = (),
    shared: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Package:
    """Return the package of an application, from the cache if nothing in it has changed.

    Args:
        name: the application's name.
        populate_dag: its function, whose module is the application's.
        operators: those of its DAG.
        lock: a file with exact versions, to be installed; None: what is installed here.
        extra: names of further libraries, which a lock file has to hold too.
        texts: URLs that tasks read or write, besides those in properties of operators.
        shared: a folder that all machines see: the archive goes there, and what Spark sends is a script that finds it.
        environ: the environment, which names the cache folder.

    Raises LockUnusable, LibraryUnknown, InstallerMissing, PackageNotMade.
    """
    began = time.monotonic()
    operators = list(operators)
    folder = _folder(os.environ if environ is None else environ)
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-") or "application"
    code = code_files(sys.modules.get(getattr(populate_dag, "__module__", "")), user_modules())
    if lock is not None:
        libraries = [our_library(), *install(Path(os.path.abspath(lock)), folder)]
        if missing := {canonical(each) for each in extra} - {library.name for library in libraries}:
            raise LockUnusable(path=lock, reason=f"{', '.join(sorted(missing))} is missing, which --package-with asks for")
    else:
        libraries = _libraries_here(code.values(), populate_dag, operators, texts, extra)
    interpreter = Interpreter.here()
    members = {
        "bin/python": Member(launcher(plain, interpreter), is_program=True),
        "package.json": Member(_manifest(plain, interpreter, libraries)),
    }
    for library in libraries:
        members |= {f"{interpreter.libraries}/{file}": Member(path) for file, path in library.files.items()}
    sources = {file: Member(path) for file, path in code.items()}
    archive, zipped = folder / f"{plain}-{address(members)}.tar.gz", folder / f"{plain}-{address(sources)}.zip"
    is_new = publish(archive, members)
    sent, place = archive, None
    if shared is not None:
        place, is_new = share(archive, Path(os.path.abspath(shared)))
        script = {"bin/python": Member(launcher(plain, interpreter, str(place)), is_program=True)}
        sent = folder / f"{plain}-shared-{address(script)}.tar.gz"
        publish(sent, script)
    publish(zipped, sources)
    digits = "[0-9a-f]" * 16
    remove_old(folder, [f"{plain}-{digits}.tar.gz", f"{plain}-shared-{digits}.tar.gz", f"{plain}-{digits}.zip"], _KEPT)
    return Package(
        name=plain,
        archive=sent,
        shared=place,
        code=zipped,
        module=_module_of(populate_dag, code),
        python=interpreter.version,
        libraries=tuple(libraries),
        is_new=is_new,
        seconds=time.monotonic() - began,
    )


def main_program(environ: Mapping[str, str] | None = None) -> Path:
    """Return the program for spark-submit, which starts `dagflow`, in the cache folder.

    Raises PackageNotMade.
    """
    main = _folder(os.environ if environ is None else environ) / MAIN
    try:
        main.write_bytes(_MAIN)
    except OSError as error:
        raise PackageNotMade(doing=f"writing {main}", reason=error.strerror or str(error), remedy="make room for it") from error
    return main


def _module_of(populate_dag: Any, code: Mapping[str, Path]) -> str:
    """Return the application as `module:function`, under the name by which it is imported from the code."""
    module = sys.modules.get(getattr(populate_dag, "__module__", ""))
    file = os.path.abspath(getattr(module, "__file__", None) or "")
    name = next((name for name, path in code.items() if str(path) == file), None)
    if name is None:  # of a library
        return f"{getattr(populate_dag, '__module__', 'app')}:{getattr(populate_dag, '__name__', 'populate_dag')}"
    return f"{name.removesuffix('.py').replace(os.sep, '.')}:{getattr(populate_dag, '__name__', 'populate_dag')}"


def _libraries_here(
    code: Iterable[Path], populate_dag: Any, operators: list[Operator], texts: Iterable[str], extra: Iterable[str]
) -> list[Library]:
    installed = Installed.here()
    modules = imported_by(code) | imported_by_operators(operators)
    modules |= {type(operator).__module__ for operator in operators} | {getattr(populate_dag, "__module__", "")}
    modules |= driver_modules([*texts, *texts_of(operators)])
    wanted = {canonical(each) for each in extra}
    for each in sorted(wanted - installed.by_name.keys()):
        raise LibraryUnknown(name=each, asked_by="--package-with")
    names = installed.closed({"dagflow", *installed.that_provide(modules), *installed.plugins(), *wanted})
    required = installed.closed(_required_by_us(installed)) if "dagflow" not in installed.by_name else []
    return [our_library(), *(installed.library(each) for each in sorted({*names, *required} - {"dagflow"}))]


def _required_by_us(installed: Installed) -> set[str]:
    """Return what dagflow imports, where it is not installed but only lies on the path."""
    ours = our_library().files
    return installed.that_provide(imported_by(path for name, path in ours.items() if name.endswith(".py"))) - FROM_SPARK


def _manifest(name: str, interpreter: Interpreter, libraries: Iterable[Library]) -> bytes:
    versions = {library.name: library.version for library in libraries}
    return json.dumps({"v": 1, "name": name, "python": interpreter.kind, "libraries": versions}, indent=1).encode()


def _folder(environ: Mapping[str, str]) -> Path:
    try:
        folder = cache_folder(environ) / "packages"
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        remedy = "set XDG_CACHE_HOME to a folder of yours"
        raise PackageNotMade(doing="making its folder", reason=error.strerror or str(error), remedy=remedy) from error
    return folder
