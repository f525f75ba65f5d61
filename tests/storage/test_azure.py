"""Whole launches on Azure Blob Storage, as Azurite serves it: `npm install -g azurite`."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dagflow.storage import open_store, probe
from tests.storage.s3 import oracle
from tests.storage.s3.servers import azurite

pytestmark = [pytest.mark.nightly, pytest.mark.chaos]
ROOT = Path(__file__).parents[2]
ACCOUNT = "devstoreaccount1"  # Azurite's own, with a key that is in its documentation
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite is not installed: npm install -g azurite")
    with azurite(program, tmp_path_factory.mktemp("azurite")) as endpoint:
        yield endpoint


@pytest.fixture
def container(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty container, to which the usual variable leads."""
    blobs = pytest.importorskip("azure.storage.blob", reason="adlfs is not installed: pip install 'dagflow[abfs]'")
    address = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={server}/{ACCOUNT};"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", address)
    name = f"c{uuid.uuid4().hex[:16]}"
    with blobs.BlobServiceClient.from_connection_string(address) as client:
        client.create_container(name).close()
    return f"abfs://{name}"


def test_of_writers_of_one_name_exactly_one_wins(container: str) -> None:
    store = open_store(f"{container}/run")
    probe(store)
    for number in range(20):
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(lambda writer, name=f"race/{number}": store.create(name, b"writer %d" % writer), range(4)))
        assert won.count(True) == 1
        assert store.read(f"race/{number}") == b"writer %d" % won.index(True)


def begin(source: str, output: str, tmp_path: Path) -> subprocess.Popen[bytes]:
    small = {"operator.splitter.block_size": "4096", "operator.splitter.blocks_threshold": "2"}
    settings = [f"-D{key}={value}" for key, value in {"input": source, "output": output, **small}.items()]
    options = ["--runner", "local", "--slots", "2", "--progress", "none"]
    command = [sys.executable, "-m", "dagflow", "launch", str(ROOT / "apps" / "line_filter"), *options, *settings]
    with (tmp_path / "errors").open("wb") as errors:
        return subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL, stderr=errors
        )


def test_launches_that_are_killed_lose_and_double_nothing(container: str, tmp_path: Path) -> None:
    rng, expected = random.Random(7), Counter[bytes]()
    for number in range(6):
        lines = [b"%s%d %d" % (b"." * (rng.random() < 0.3), number, n) for n in range(1500)]
        oracle.put(f"{container}/in/{number}.txt", b"".join(line + b"\n" for line in lines))
        expected.update(line for line in lines if not line.startswith(b"."))
    output, kills = f"{container}/out", 0
    while (launch := begin(f"{container}/in", output, tmp_path)).poll() is None and kills < 12:
        time.sleep(rng.uniform(1, 5))
        launch.kill()
        kills += launch.wait() < 0
        if launch.returncode >= 0:
            break
    assert launch.wait() in (0, -9)
    assert kills
    assert begin(f"{container}/in", output, tmp_path).wait() == 0, (tmp_path / "errors").read_text()
    assert oracle.wrong(output, expected) == []
    oracle.put(f"{container}/in/new.txt", b"new\n")
    assert begin(f"{container}/in", output, tmp_path).wait() == 0, (tmp_path / "errors").read_text()
    assert oracle.wrong(output, expected + Counter([b"new"])) == []
