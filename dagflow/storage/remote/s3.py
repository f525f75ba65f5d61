"""Requests of S3 for which s3fs makes several, or none. Each function takes its driver, and paths `BUCKET/KEY`."""

from __future__ import annotations

import asyncio
import errno
import http
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from dagflow.storage.parallel import AT_ONCE
from dagflow.storage.transient import is_transient

SCHEMES = ("s3", "s3a")
_AT_ONCE = 1000  # objects that one request removes
_VALID = 600  # seconds for which a signed URL can be used


def options() -> dict[str, Any]:
    """Return the options of the driver.

    With another `max_concurrency`, it asks for the length of an object before it reads it. Without more connections than the ten
    of its default, requests that are sent at once would wait for each other. `config_kwargs` of fsspec's configuration count too.
    """
    from fsspec.config import conf

    given: dict[str, Any] = {}
    for scheme in SCHEMES:
        given |= conf.get(scheme, {}).get("config_kwargs", {})
    return {"max_concurrency": 1, "config_kwargs": {"max_pool_connections": AT_ONCE, **given}}


def is_object(driver: Any, path: str) -> bool:
    """Return whether there is an object of that name, by one request; `exists` makes another one, for a folder."""
    bucket, _, key = path.partition("/")
    try:
        driver.call_s3("head_object", Bucket=bucket, Key=key)
    except FileNotFoundError:
        return False
    return True


def copy(driver: Any, path: str, new: str) -> None:
    """Copy an object by one request; by several if it has more than 5 GB. An existing one is replaced."""
    bucket, _, key = path.partition("/")
    to, _, new_key = new.partition("/")
    try:
        driver.call_s3("copy_object", Bucket=to, Key=new_key, CopySource={"Bucket": bucket, "Key": key})
    except OSError as error:
        if error.errno != errno.EINVAL:  # InvalidRequest: it is too large for one
            raise
        driver.cp_file(path, new)


def fetch_of(driver: Any, path: str, version: str | None) -> Callable[[int, int], bytes]:
    """Return a function that reads the bytes `[start, stop)` of a version of an object (its ETag) by one request.

    The request names the version (`If-Match`). Some servers ignore that, so the version that is answered is compared, too.
    The function raises OSError (EBUSY) if the object is another version.
    """
    from fsspec.asyn import sync

    bucket, _, key = path.partition("/")
    wanted = {"IfMatch": version} if version else {}

    async def once(start: int, stop: int) -> tuple[str, bytes]:
        answer = await driver._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{stop - 1}", **wanted)
        try:
            return str(answer.get("ETag") or ""), bytes(await answer["Body"].read())
        finally:
            answer["Body"].close()

    async def patiently(start: int, stop: int) -> tuple[str, bytes]:
        for attempt in itertools.count():
            try:
                return await once(start, stop)
            except Exception as error:
                if attempt == driver.retries - 1 or not is_transient(error):
                    raise
                await asyncio.sleep(0.1 * 1.7**attempt)
        raise AssertionError("unreachable")

    def fetch(start: int, stop: int) -> bytes:
        if start >= stop:
            return b""
        try:
            answer: Any = sync(driver.loop, patiently, start, stop)
        except OSError as error:
            if error.errno == errno.EINVAL and "pre-conditions" in str(error):
                raise OSError(errno.EBUSY, "It has changed since it was listed", path) from error
            raise
        actual, data = answer
        if version and actual and _bare(actual) != _bare(version):
            raise OSError(errno.EBUSY, f"It has changed since it was listed: its ETag was {version} and is {actual}", path)
        return bytes(data)

    return fetch


def read_parts(driver: Any, path: str, ranges: Sequence[tuple[int, int]]) -> dict[int, bytes]:
    """Return the bytes of an object in several ranges, by their numbers: those that the store has answered with a part.

    The driver takes 2 ms of processor time for a request, mostly to make and to sign it. A signed URL does not cover the range,
    so one is enough for all of them. The driver can ask for what is missing: it repeats requests, and its errors are explained.
    """
    from botocore.awsrequest import AWSRequest
    from fsspec.asyn import sync

    bucket, _, key = path.partition("/")

    async def read(client: Any, url: str, start: int, stop: int) -> bytes | None:
        request = AWSRequest("GET", url, {"Range": f"bytes={start}-{stop - 1}"}, stream_output=True)
        answer = await client._endpoint.http_session.send(request.prepare())
        data = bytes(await answer.content)
        return data if answer.status_code == http.HTTPStatus.PARTIAL_CONTENT else None

    async def read_all() -> list[Any]:
        client = await driver.set_session()
        client.meta.events.register_first("choose-signer.s3.GetObject", _signature_of_urls, unique_id="dagflow")
        url = await client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=_VALID)
        return await asyncio.gather(*(read(client, url, *each) for each in ranges), return_exceptions=True)

    with suppress(Exception):  # the driver meets it, too, or needs no credentials
        answers: Any = sync(driver.loop, read_all)
        return {number: part for number, part in enumerate(answers) if isinstance(part, bytes)}
    return {}


def _signature_of_urls(signature_version: object, **_: object) -> str | None:
    """Return the version by which URLs are signed: that of requests. AWS refuses botocore's default for newer buckets."""
    return "s3v4-query" if str(signature_version).endswith("-query") else None


def _bare(version: str) -> str:
    """Return an ETag without its quotes, which some servers leave out in listings."""
    return version.removeprefix("W/").strip('"')


def keys(driver: Any, path: str) -> Iterator[str]:
    """Yield the paths that begin with a path, which may end within a word: a request for every thousand."""
    bucket, _, prefix = path.partition("/")
    page: dict[str, Any] = {}
    while True:
        answer = driver.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, **page)
        yield from (f"{bucket}/{entry['Key']}" for entry in answer.get("Contents", ()))
        if not answer.get("IsTruncated"):
            return
        page = {"ContinuationToken": answer["NextContinuationToken"]}


def remove(driver: Any, paths: Sequence[str]) -> None:
    """Remove objects of one bucket, a thousand by a request; those that are not there are skipped."""
    for first in range(0, len(paths), _AT_ONCE):
        bucket = paths[first].partition("/")[0]
        objects = [{"Key": path.partition("/")[2]} for path in paths[first : first + _AT_ONCE]]
        answer = driver.call_s3("delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        for problem in answer.get("Errors", ()):
            reason = f"{problem.get('Code')}: {problem.get('Message')}"
            number = errno.EACCES if problem.get("Code") == "AccessDenied" else errno.EBUSY
            raise OSError(number, reason, f"{bucket}/{problem.get('Key')}")


def remove_uploads(driver: Any, path: str, is_stale: Callable[[str], bool]) -> int:
    """Remove unfinished multipart uploads to a folder, and return their number; `is_stale` is asked with names below it."""
    bucket, _, folder = path.rstrip("/").partition("/")
    prefix = f"{folder}/" if folder else ""
    removed = 0
    page: dict[str, Any] = {}
    while True:
        answer = driver.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix, **page)
        for upload in answer.get("Uploads", ()):
            key = str(upload["Key"])
            if key.startswith(prefix) and is_stale(key[len(prefix) :]):
                with suppress(FileNotFoundError):  # its task has completed it, or another launch has removed it
                    driver.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=upload["UploadId"])
                removed += 1
        if not answer.get("IsTruncated"):
            return removed
        page = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}
