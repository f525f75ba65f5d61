"""apps/block_copy copies files block by block, on both runners."""

from __future__ import annotations

from pathlib import Path

from dagflow.testing import run_dag

APP = str(Path(__file__).parents[2] / "apps" / "block_copy")


def test_blocks_make_up_the_files(runner: str, tmp_path: Path) -> None:
    contents = [bytes(range(256)) * 100, b"", b"\n\n", b"\xff" * 5000]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.bin").write_bytes(content)
    names = tmp_path / "names.txt"
    names.write_text("".join(f"{tmp_path}/{number}.bin\n" for number in range(len(contents))))
    out = tmp_path / "out"
    report = run_dag(
        APP,
        {"list": str(names), "output": str(out), "block_size": "4KiB", "operator.splitter.blocks_threshold": 5},
        runner=runner,
    )
    blocks = sorted((int(path.name, 16), path) for path in out.iterdir() if path.name[0] != "_")
    assert b"".join(path.read_bytes() for _, path in blocks) == b"".join(contents)
    assert [number for number, _ in blocks] == list(range(7 + 1 + 2))
    assert report.windows == 2
    assert run_dag(APP, {"list": str(names), "output": str(out)}, runner="local").windows == 0
