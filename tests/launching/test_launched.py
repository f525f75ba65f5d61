"""A run folder knows how its windows were launched, without the secrets."""

from __future__ import annotations

from pathlib import Path

import attrs

from dagflow import DAG, launch
from dagflow.config import Secret
from dagflow.ledger import Ledger
from dagflow.runtime.run_folder.window_log import WindowLog
from operators import BlockReader, FileSplitterInput, RecordWriter


@attrs.define
class Settings:
    input: str
    output: str
    token: Secret = "nobody"


def populate_dag(dag: DAG, conf: Settings) -> None:
    splitter = dag.add_operator("splitter", FileSplitterInput(files=[conf.input]))
    reader = dag.add_operator("reader", BlockReader())
    writer = dag.add_operator("writer", RecordWriter(conf.output))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, writer.input)


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_settings_are_kept_but_no_secrets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    out = tmp_path / "out"
    given = {"input": str(tmp_path / "a.txt"), "output": str(out), "token": "s3cr3t", "operator.reader.max_readers": 3}
    for settings in (given, Settings(str(tmp_path / "a.txt"), str(out), "s3cr3t")):
        launch(populate_dag, settings, runner="local", progress="none", fresh=True)
        log = WindowLog.open(str(out / "_dagflow"), durable=False)
        entry = list(Ledger.open(str(out)).entries())[-1]
        assert entry.data is not None
        launched = log.read_launched(entry.data.txn.attempt_id)
        assert launched is not None
        assert launched.folder == str(Path.cwd())
        assert launched.code["output"] == str(out)
        assert "token" not in launched.code
        assert b"s3cr3t" not in everything_in(out)
    assert launched.code == {"input": str(tmp_path / "a.txt"), "output": str(out)}


def test_a_launch_without_windows_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    launch(populate_dag, {"input": str(tmp_path / "in"), "output": str(tmp_path / "out")}, runner="local", progress="none")
    assert not (tmp_path / "out" / "_dagflow" / "launches").exists()
