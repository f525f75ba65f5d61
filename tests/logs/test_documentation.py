"""The applications on the pages about message logs run."""

from __future__ import annotations

import json
import re
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dagflow import launch
from operators.logs.errors import LogUnavailable, OffsetsLost
from operators.logs.protocol import OffsetsGone, Topics
from tests.logs.any_log import with_jetstream
from tests.logs.brokers import NatsServer

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def page_code(name: str) -> dict[str, Any]:
    """Run the Python blocks of a page, as one module, and return its names."""
    blocks = re.findall(r"^```python\n(.*?)^```", (HOW_TO / name).read_text(), re.MULTILINE | re.DOTALL)
    module = types.ModuleType(name.removesuffix(".md"))
    exec(compile("\n".join(blocks), str(HOW_TO / name), "exec"), module.__dict__)
    return module.__dict__


@pytest.mark.full
def test_nats(shared_nats: NatsServer, name: str, tmp_path: Path) -> None:
    pytest.importorskip("nats")

    async def fill(jetstream: Any) -> None:
        await jetstream.add_stream(name=name, subjects=["orders.>"])
        for subject in ("orders.1.new", "orders.1.paid", "orders.2.new"):
            await jetstream.publish(subject, subject.encode())

    with_jetstream(shared_nats.url, fill)
    code = page_code("nats.md")
    output = tmp_path / "out"
    settings = {"servers": shared_nats.url, "output": str(output), "stream": name}
    launch(code["populate_dag"], settings, runner="local", run_folder=str(tmp_path / "run"), durability="process")
    rows = [row for file in sorted(output.rglob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert sorted((row["key"], row["offset"]) for row in rows) == [(b"orders.1.new", 1), (b"orders.2.new", 3)]


@pytest.fixture
def redis_url() -> Iterator[str]:
    """A server of fakeredis, which speaks Redis' protocol."""
    fakeredis = pytest.importorskip("fakeredis", reason="fakeredis is not installed: pip install 'dagflow[test]'")
    server = fakeredis.TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"redis://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.full
def test_redis_streams(redis_url: str, name: str, tmp_path: Path) -> None:
    """Entries are an hour apart, so their offsets are four billion times further apart than those of other logs."""
    import redis

    code = page_code("write_a_log.md")
    adapter = (HOW_TO / "write_a_log.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert len([line for line in adapter.splitlines() if line.strip()]) < 80, "the page says so"
    hour, noon = 3_600_000, 1_769_860_800_000
    server = redis.Redis.from_url(redis_url)
    output = tmp_path / "out"

    def add(*numbers: int) -> None:
        for number in numbers:
            server.xadd(name, {"n": str(number)}, id=f"{noon + number // 2 * hour}-{number % 2}")

    def run(**options: Any) -> None:
        settings = {"url": redis_url, "stream": name, "output": str(output)}
        launch(code["populate_dag"], settings, runner="local", run_folder=str(tmp_path / "run"), durability="process", **options)

    def numbers() -> list[int]:
        rows = [row for file in sorted(output.rglob("*.parquet")) for row in pq.read_table(file).to_pylist()]
        return sorted(int(json.loads(row["value"])["n"]) for row in rows)

    add(0)
    run()
    add(*range(1, 2500))
    run()
    run()
    assert numbers() == list(range(2500))
    add(*range(2500, 2600))
    server.xtrim(name, maxlen=50, approximate=False)
    with pytest.raises(OffsetsLost):
        run()
    client = code["RedisLog"](redis_url).connect()
    [partition] = client.partitions(Topics((name,)))
    assert partition.first == (noon + 1275 * hour) << 20
    assert client.offsets_at([partition], (noon + 1280 * hour) * 1000) == [(noon + 1280 * hour) << 20]
    stream = client.open(name, 0, partition.first, None)
    assert stream.read(partition.end).num_rows == 50
    assert stream.read(partition.end) is None
    stream.seek(partition.first - 1)
    with pytest.raises(OffsetsGone):
        stream.read(partition.end)
    assert client.partitions(Topics((f"^{name}.*",))) == [partition]
    assert client.partitions(Topics(("no-such-stream",))) == []
    client.close()
    server.close()
    with pytest.raises(LogUnavailable):
        code["RedisLog"]("redis://127.0.0.1:1").connect().partitions(Topics((name,)))
