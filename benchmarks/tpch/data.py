"""The tables, made by `tpchgen-cli`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

TABLES = ("customer", "lineitem", "nation", "orders", "part", "region", "supplier")


def make_data(folder: Path, scale: float, parts: int = 1) -> Path:
    """Make the tables, a folder of Parquet files each; those that are there stay. Raises CalledProcessError."""
    program = shutil.which("tpchgen-cli", path=Path(sys.executable).parent) or shutil.which("tpchgen-cli") or "tpchgen-cli"
    made = folder / f"scale-{scale:g}-{parts}"
    if not made.exists():
        begun = folder / f"{made.name}-begun"
        for name in TABLES:
            size = ["--parts", str(parts)] if name in ("customer", "lineitem", "orders") else ["--parts", "1"]
            command = [program, "parquet", "-s", f"{scale:g}", "--tables", name, *size, "-o", str(begun), "--overwrite"]
            subprocess.run(command, check=True, capture_output=True)
        begun.rename(made)
    return made
