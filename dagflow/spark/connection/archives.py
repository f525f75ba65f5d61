"""An archive with the Python of tasks: sent to executors by Spark, which unpacks it in their working folders."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dagflow.spark.connection.address import Given
from dagflow.spark.connection.links import ClassicLink, Link
from dagflow.spark.connection.starting import given_setting

ARCHIVES = "spark.archives"


@attrs.frozen
class PythonArchive:
    """An archive, the folder into which it is unpacked, and the Python in that folder, as a path of executors."""

    path: str
    folder: str
    python: str

    @property
    def uri(self) -> str:
        """The archive as Spark's settings name it."""
        return f"{self.path}#{self.folder}"

    def settings(self, conf: Mapping[str, str], outside: Mapping[str, Given]) -> dict[str, str]:
        """Return the settings of a classic session that is about to start. Other archives stay."""
        archives = ",".join(filter(None, [given_setting(ARCHIVES, conf, outside), self.uri]))
        return {ARCHIVES: archives, "spark.pyspark.python": self.python}

    def send(self, link: Link) -> None:
        """Send the archive by a session that runs already."""
        if isinstance(link, ClassicLink):
            link.spark.sparkContext.addArchive(self.uri)
        else:
            link.spark.addArtifacts(self.uri, archive=True)
