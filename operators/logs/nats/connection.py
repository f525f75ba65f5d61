"""The API of JetStream for synchronous callers: a connection whose event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import attrs

from operators.logs.errors import LogRefused, LogUnavailable

T = TypeVar("T")

CONNECT_TIMEOUT = 5.0
ANSWER_TIMEOUT = 5.0
NEEDS = "permission to publish to $JS.API.>, and to subscribe to _INBOX.>"
_NO_STREAM, _NO_MESSAGE = 10059, 10037
_BUSY, _NOT_ENABLED = 503, (10039, 10076)  # the last two have the code of servers that are busy, and stay
_PAUSE = 0.1


@attrs.frozen
class NatsServer:
    """Servers of NATS as the properties of an operator describe them.

    Args:
        servers: URLs, separated by commas. A user, a password or a token may stand before the host.
        credentials: the path of a file with the credentials of a user (`.creds`).
        domain: the domain of JetStream, for leaf nodes.
        timeout: seconds for which a server may be away.
    """

    servers: str = attrs.field(repr=False)
    credentials: str | None = None
    domain: str | None = None
    timeout: float = 10.0

    @property
    def urls(self) -> list[str]:
        """The URL of each server.

        >>> NatsServer("nats://ada:secret@a:4222, b").urls
        ['nats://ada:secret@a:4222', 'nats://b']
        """
        return [url if "://" in url else f"nats://{url}" for url in self._pieces]

    @property
    def place(self) -> str:
        """The addresses, without users and passwords. One that may be part of a password is left out.

        >>> NatsServer("nats://ada:secret@a:4222, b").place, NatsServer("nats://ada:se/cr,et@a:4222").place
        ('nats://a:4222,b', 'nats://a:4222')
        """
        hosts = [_host(url) for url in self._pieces]
        return "nats://" + ",".join(host for number, host in enumerate(hosts) if not self._is_cut(number))

    def problems(self) -> list[str]:
        """Return what is wrong with the URLs and the credentials. No text has any of them.

        >>> [len(NatsServer(url).problems()) for url in ("a, nats://ada:secret@[::1]:4222/", "nats://ada:se/cr@a", "", "a,b:x")]
        [0, 1, 1, 1]
        """
        urls, problems = self.urls, []
        if self.credentials is not None and importlib.util.find_spec("nkeys") is None:
            problems.append("credentials needs the package nkeys: pip install 'dagflow[nats]'")
        if not urls:
            return ["servers is empty: write nats://host:4222", *problems]
        wrong = [number for number, url in enumerate(urls) if self._is_cut(number) or not _is_url(url)]
        return problems + [
            f"servers: URL {number + 1} of {len(urls)} cannot be read: write nats://host:4222, or "
            "nats://user:password@host:4222; a password with any of / ? # , cannot stand in a URL"
            for number in wrong
        ]

    @property
    def _pieces(self) -> list[str]:
        return [url.strip() for url in self.servers.split(",") if url.strip()]

    def _is_cut(self, number: int) -> bool:
        """Return True for a URL that may go on behind a comma, which then belongs to its password."""
        behind = itertools.takewhile(lambda each: "://" not in each, self._pieces[number + 1 :])
        return any("@" in each for each in behind)

    @property
    def prefix(self) -> str:
        """The prefix of the subjects of the API."""
        return "$JS.API" if self.domain is None else f"$JS.{self.domain}.API"


def _host(url: str) -> str:
    """Return host and port of a URL. Passwords may have characters that end the host elsewhere."""
    return re.split("[/?#]", url.partition("://")[2 if "://" in url else 0].rpartition("@")[2], maxsplit=1)[0]


def _is_url(url: str) -> bool:
    """Return True for the URL of a server, as the client reads it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    is_bare = parts.path in ("", "/") or parts.scheme in ("ws", "wss")
    return bool(host) and is_bare and "@" not in parts.path and not parts.query and not parts.fragment


class _Busy(Exception):
    """Raised for an answer after which the same request may be granted."""


class StreamMissing(Exception):  # a signal within this package
    """Raised for a stream that the server does not have."""


class Pulled(NamedTuple):
    """The answer to a request for messages. `status`: the code that ended it; 0: all messages came; `reason`: its text."""

    messages: list[Any]
    status: int
    reason: str


@attrs.define(eq=False)
class JetStream:
    """A connection to JetStream. It connects when it is first used, and again after it was lost or the process has forked.

    All methods raise LogUnavailable and LogRefused. `doing`: the purpose of a request, for messages.
    """

    server: NatsServer
    _loop: _LoopThread | None = attrs.field(init=False, default=None)
    _client: Any = attrs.field(init=False, default=None)
    _process: int = attrs.field(init=False, default=0)
    _problems: list[str] = attrs.field(init=False, factory=list)  # what the server has complained of, of its own accord
    _lost: asyncio.Event | None = attrs.field(init=False, default=None)  # the connection
    _denied: asyncio.Event | None = attrs.field(init=False, default=None)

    def request(self, name: str, doing: str, **body: Any) -> dict[str, Any]:
        """Send a request of JetStream's API, and return the answer. Raises StreamMissing."""

        async def ask(client: Any) -> dict[str, Any]:
            answer = await client.request(f"{self.server.prefix}.{name}", json.dumps(body).encode(), timeout=ANSWER_TIMEOUT)
            answered: dict[str, Any] = json.loads(answer.data)
            problem = answered.get("error") or {}
            if problem.get("code") == _BUSY and problem.get("err_code") not in _NOT_ENABLED:
                raise _Busy(problem.get("description", str(problem)))
            return answered

        answer = self._tried(ask, doing)
        if problem := answer.get("error"):
            if problem.get("err_code") == _NO_STREAM:
                raise StreamMissing
            if problem.get("err_code") == _NO_MESSAGE:
                return {}
            raise self._refused(doing, problem.get("description", str(problem)))
        return answer

    def pull(self, stream: str, consumer: str, messages: int, size: int | None, doing: str) -> Pulled:
        """Return the next messages of a consumer that are there: up to a number of messages and of bytes (None: any)."""
        body = {"batch": messages, "no_wait": True, **({} if size is None else {"max_bytes": size})}

        async def take(client: Any) -> Pulled:
            pulled: list[Any] = []
            done, ends = asyncio.Event(), Pulled([], 0, "")

            async def receive(message: Any) -> None:
                nonlocal ends
                status = (message.headers or {}).get("Status") if not message.reply else None
                if status is not None:
                    ends = Pulled([], int(status), message.headers.get("Description", ""))
                else:
                    pulled.append(message)
                if status is not None or len(pulled) >= messages:
                    done.set()

            inbox = client.new_inbox()
            subscription = await client.subscribe(inbox, cb=receive, pending_msgs_limit=0, pending_bytes_limit=0)
            subject = f"{self.server.prefix}.CONSUMER.MSG.NEXT.{stream}.{consumer}"
            await client.publish(subject, json.dumps(body).encode(), reply=inbox)
            await self._until(done, lambda: len(pulled))
            with contextlib.suppress(Exception):  # the connection may be lost, and what came is right
                await subscription.unsubscribe()
            return Pulled(pulled, ends.status, ends.reason)

        return self._tried(take, doing)

    def call(self, work: Callable[[Any], Awaitable[T]], doing: str) -> T:
        """Run a coroutine on a connected client, once: what it has done before an error is not repeated."""
        return self._tried(work, doing, timeout=0.0)

    def close(self) -> None:
        """Close the connection, and end its thread."""
        loop, client, self._loop, self._client = self._loop, self._client, None, None
        if loop is None or self._process != os.getpid():
            return
        with contextlib.suppress(Exception):
            loop.run(_close(client), CONNECT_TIMEOUT)
        loop.close()

    # -------------------------------------------------------------------------------------------------------- connections

    def _tried(self, work: Callable[[Any], Awaitable[T]], doing: str, timeout: float | None = None) -> T:
        """Run a coroutine on a connected client; again while the server is away, for as long as it may be.

        `timeout`: in place of that of the server.
        """
        import nats.errors

        timeout = self.server.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout
        while True:
            self._problems.clear()
            try:
                return self._run(work)
            except nats.errors.NoRespondersError:
                if time.monotonic() >= deadline:
                    reason = "JetStream does not answer: start the server with --jetstream, and enable it for the account"
                    raise LogUnavailable(log=self.server.place, doing=doing, reason=reason) from None
            except nats.errors.AuthorizationError as error:
                raise self._refused(doing, str(error)) from None
            except PermissionError:
                raise self._refused(doing, self._problems[-1]) from None
            except (OSError, nats.errors.Error, TimeoutError, _Busy) as error:
                if self._problems and "authorization" in self._problems[-1].lower():
                    raise self._refused(doing, self._problems[-1]) from None
                if time.monotonic() >= deadline:
                    reason = self._problems[-1] if self._problems else str(error) or type(error).__name__
                    raise LogUnavailable(log=self.server.place, doing=doing, reason=reason) from None
            time.sleep(_PAUSE)

    def _refused(self, doing: str, reason: str) -> LogRefused:
        return LogRefused(log=self.server.place, doing=doing, reason=reason.removeprefix("nats: "), needs=NEEDS)

    def _run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        if self._process != os.getpid():  # threads do not survive a fork, and the socket belongs to the parent
            self._loop, self._client, self._process = None, None, os.getpid()
        if self._loop is None:
            self._loop = _LoopThread()
            weakref.finalize(self, self._loop.close)

        async def connected() -> T:
            if self._client is None or not self._client.is_connected:
                await _close(self._client)
                self._client = await self._connected()
            assert self._denied is not None
            self._denied.clear()
            working, denied = asyncio.ensure_future(work(self._client)), asyncio.ensure_future(self._denied.wait())
            try:
                await asyncio.wait((working, denied), return_when=asyncio.FIRST_COMPLETED)
                if not working.done():
                    raise PermissionError  # the server says what is denied by itself, and leaves the request without an answer
                return working.result()
            finally:
                working.cancel()
                denied.cancel()

        return self._loop.run(connected())

    async def _connected(self) -> Any:
        from nats.aio.client import Client

        self._lost = lost = asyncio.Event()
        self._denied = denied = asyncio.Event()

        async def note(error: Exception) -> None:
            self._problems.append(str(error) or type(error).__name__)
            if "permissions violation" in self._problems[-1].lower():
                denied.set()

        async def end() -> None:
            lost.set()

        client = Client()
        more = {} if self.server.credentials is None else {"user_credentials": self.server.credentials}
        try:
            await client.connect(
                servers=self.server.urls,
                name="dagflow",
                error_cb=note,
                closed_cb=end,
                disconnected_cb=end,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=CONNECT_TIMEOUT,  # type: ignore[arg-type]  # any number
                **more,  # type: ignore[arg-type]
            )
        except BaseException:
            await _close(client)
            raise
        return client

    async def _until(self, done: asyncio.Event, progress: Callable[[], int]) -> None:
        """Wait for an event, as long as messages come and the connection is there."""
        assert self._lost is not None
        ends = [asyncio.ensure_future(each.wait()) for each in (done, self._lost)]
        try:
            seen = -1
            while seen != (seen := progress()):
                if (await asyncio.wait(ends, timeout=ANSWER_TIMEOUT, return_when=asyncio.FIRST_COMPLETED))[0]:
                    return
        finally:
            for each in ends:
                each.cancel()
        raise TimeoutError("the server does not answer")


async def _close(client: Any) -> None:
    """Close a client, if there is one, in whatever state it is."""
    if client is not None:
        with contextlib.suppress(Exception):
            await client.close()


class _LoopThread:
    """An event loop in a thread of its own, for coroutines that callers wait for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dagflow-nats", daemon=True)
        self._thread.start()
        self._process = os.getpid()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine, and return its result."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what runs, and end the thread."""
        if self._loop.is_closed() or self._process != os.getpid():
            return
        with contextlib.suppress(Exception):
            self.run(_cancel_others(), CONNECT_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CONNECT_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
