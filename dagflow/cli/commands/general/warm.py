"""`dagflow warm`: makes the class archive with which launches on a local Spark start faster."""

from __future__ import annotations

import json
import os
import time

import click

from dagflow.cli.group import epilog
from dagflow.render.words import seconds, size
from dagflow.spark.jvm.class_archive import ARCHIVE, archive_for
from dagflow.spark.jvm.java import find_java
from dagflow.spark.jvm.making import make_archive


@click.command(
    "warm",
    help="Make the archive of Spark's classes in your cache folder, with which later launches on a local Spark start faster.\n\n"
    "It takes about half a minute, once for each version of Java and Spark. A launch makes the same one in the background.",
    epilog=epilog("dagflow warm --json"),
    params=[click.Option(["--json", "as_json"], is_flag=True, help="Print JSON on standard output.")],
)
def command(as_json: bool) -> None:
    """Make the archive, and print its place."""
    began = time.monotonic()
    java = find_java()
    known = archive_for(java, os.environ)
    was_whole = known is not None and known.is_whole()
    archive = make_archive(java, os.environ)
    took = time.monotonic() - began
    if archive is None:
        state, bytes_, folder = "another process is making it", 0, ""
    else:
        state = "is there" if was_whole else f"made in {seconds(took)}"
        bytes_, folder = (archive.folder / ARCHIVE).stat().st_size, str(archive.folder)
    if as_json:
        print(json.dumps({"v": 1, "java": java.version, "folder": folder or None, "bytes": bytes_, "seconds": round(took, 3)}))
    else:
        print(
            f"class archive for Java {java.version}: {', '.join(filter(None, [size(bytes_) if bytes_ else '', state, folder]))}"
        )
