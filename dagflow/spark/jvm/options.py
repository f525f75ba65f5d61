"""The options of the driver's JVM, chosen by what the plan needs of it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from dagflow.spark.jvm.class_archive import ClassArchive

QUICK = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Records stay in Python: this JVM needs no optimising compiler and no parallel collector, whose threads compete with tasks."""

SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java warns on standard output of an archive that it cannot use."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DEFAULT_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_COLLECTOR = re.compile(r"-XX:[+-]Use(\w*GC|\w*Sweep)\b")
_SHARING = re.compile(r"-Xshare:|-XX:(SharedArchiveFile|ArchiveClassesAtExit|[+-]AutoCreateSharedArchive|AOT)|-javaagent:")


@attrs.frozen
class DriverJvm:
    """The needs of a run in the JVM that dagflow may start for it.

    `runs_dataframes`: rows enter the JVM, so it keeps its compilers and its collector. `runs_queries`: windows are queries of a
    session, because the plan has exchanges. `use_archive`: whether it may load its classes from an archive. `preload`: the
    modules of the operators, for workers.
    """

    runs_dataframes: bool = True
    runs_queries: bool = True
    use_archive: bool = False
    preload: tuple[str, ...] = ()

    @property
    def is_quick(self) -> bool:
        """Return whether the options for a quick start apply."""
        return not self.runs_dataframes

    def uses_archive(self, given: str, environ: Mapping[str, str]) -> bool:
        """Return whether an archive may be used beside the options that the user gives."""
        return self.is_quick and self.use_archive and not _SHARING.search(" ".join([given, *_of_environment(environ)]))

    def options(self, given: str, environ: Mapping[str, str], archive: ClassArchive | None) -> str:
        """Return our options: those that do not contradict the user's. They stand before the user's, which win.

        >>> DriverJvm(runs_dataframes=False).options("-XX:+UseG1GC", {}, None)
        '-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1'
        """
        if not self.is_quick:
            return ""
        return " ".join([*_quick(given, environ), *((*SILENT, archive.option) if archive is not None else ())])


def launcher_options(environ: Mapping[str, str]) -> str:
    """Return the options of the small JVM that works out Spark's command line: ours before the user's."""
    given = environ.get("SPARK_LAUNCHER_OPTS", "")
    return " ".join([*_quick(given, environ), given]).strip()


def _quick(given: str, environ: Mapping[str, str]) -> list[str]:
    """Return the options for a quick start. Java refuses to start with two collectors."""
    is_collector_given = _COLLECTOR.search(" ".join([given, *_of_environment(environ)])) is not None
    return [option for option in QUICK if not (is_collector_given and _COLLECTOR.match(option))]


def _of_environment(environ: Mapping[str, str]) -> list[str]:
    return [environ.get(name, "") for name in _VARIABLES]
