"""NatsWriter on a server of its own process, which is killed, full or restricted. Judged by reading the stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nats", reason="nats-py is not installed: pip install 'dagflow[nats]'")

from dagflow import SinkLaunch, StagedWindow
from dagflow.errors import LogNotWritable, LogRefused, LogReplaced, LogUnavailable, MessageRefused, ValueNotWritable
from operators import NatsWriter
from operators.sinks.logs.client import Outgoing
from operators.sinks.logs.nats import OpenStream, mark_of
from tests.logs import brokers
from tests.logs.any_log import with_jetstream
from tests.logs.brokers import NatsServer
from tests.operators.sinks.logs.test_publishing import stage

pytestmark = pytest.mark.full

Found = list[tuple[int, int, bytes]]


def create(url: str, name: str, **config: Any) -> str:
    async def add(jetstream: Any) -> None:
        await jetstream.add_stream(name=name, **{"subjects": [f"{name}.>"], **config})

    with_jetstream(url, add)
    return name


@pytest.fixture
def stream(shared_nats: NatsServer, name: str) -> str:
    return create(shared_nats.url, name)


def writer(server: NatsServer, stream: str, **properties: Any) -> NatsWriter[Any]:
    return NatsWriter(server.url, stream, **{"subject": f"{stream}.a", "settle": 0.1, "timeout": 5.0, **properties})


def read(server: NatsServer, stream: str) -> list[Any]:
    """All messages of a stream, with their sequence: window, number and value of ours."""

    async def messages(jetstream: Any) -> list[Any]:
        info = await jetstream.stream_info(stream)
        if not info.state.messages:
            return []
        subscription = await jetstream.subscribe(f"{stream}.>", stream=stream, ordered_consumer=True)
        return [await subscription.next_msg(timeout=20) for _ in range(info.state.messages)]

    return with_jetstream(server.url, messages)


def own(server: NatsServer, stream: str) -> Found:
    marked = [(mark_of((each.headers or {}).get("Nats-Msg-Id", "").encode()), each.data) for each in read(server, stream)]
    return [(mark.window, mark.sequence, data) for mark, data in marked if mark is not None]


def values(window: int, count: int = 3_000) -> list[str]:
    return [f"{window}.{number}" for number in range(count)]


def expected(*windows: int, count: int = 3_000) -> Found:
    return [(window, number, value.encode()) for window in windows for number, value in enumerate(values(window, count))]


def retried(kept: NatsWriter[Any], window: StagedWindow) -> None:
    """Publish as the driver does."""
    for _ in range(10):
        try:
            if not kept.is_published(window):
                kept.publish(window)
            return
        except LogUnavailable:
            continue
    raise AssertionError("it is still down")


def test_windows_are_published_in_order(shared_nats: NatsServer, stream: str, tmp_path: Path) -> None:
    kept = writer(shared_nats, stream)
    assert kept.check_store(SinkLaunch(name="shop", sink="sink")) == []
    for number in range(3):
        window = stage(tmp_path, number, values(number), writer=kept)
        assert not kept.is_published(window)
        kept.publish(window)
        assert kept.is_published(window)
        kept.publish(window)
        kept.sweep(window)
    assert own(shared_nats, stream) == expected(0, 1, 2)
    [warning] = kept.check_store(SinkLaunch(name="shop", sink="sink"))
    assert "earlier run" in warning


def test_subjects_and_headers_are_made_of_columns(shared_nats: NatsServer, stream: str, tmp_path: Path) -> None:
    rows = [{"country": country, "n": n} for n, country in enumerate(("se", "dk", "se"))]
    by_column = writer(shared_nats, stream, subject=f"{stream}.{{country}}.new", headers={"number": "n"}, value="n")
    by_column.publish(stage(tmp_path, 0, rows, writer=by_column))
    found = [(each.subject.removeprefix(f"{stream}."), each.headers["number"], each.data) for each in read(shared_nats, stream)]
    assert found == [("se.new", "0", b"0"), ("dk.new", "1", b"1"), ("se.new", "2", b"2")]


def test_the_window_of_duplicates_is_not_what_it_rests_on(shared_nats: NatsServer, name: str, tmp_path: Path) -> None:
    create(shared_nats.url, name, duplicate_window=0.1)
    kept = writer(shared_nats, name)
    window = stage(tmp_path, 0, values(0, 50), writer=kept)
    kept.publish(window)
    threading.Event().wait(0.3)
    kept.publish(window)
    assert own(shared_nats, name) == expected(0, count=50)


def test_other_producers_come_between_and_nothing_is_out_of_order(shared_nats: NatsServer, stream: str, tmp_path: Path) -> None:
    begun, done, kept = threading.Event(), threading.Event(), writer(shared_nats, stream)

    async def disturb(jetstream: Any) -> None:
        while not done.is_set():
            await jetstream.publish(f"{stream}.other", b"other")
            begun.set()

    other = threading.Thread(target=with_jetstream, args=(shared_nats.url, disturb))
    other.start()
    try:
        assert begun.wait(60)
        for number in range(2):
            kept.publish(stage(tmp_path, number, values(number, 700), writer=kept))
    finally:
        done.set()
        other.join()
    found = read(shared_nats, stream)
    numbers = [number for number, each in enumerate(found) if each.subject.endswith(".a")]
    assert numbers[-1] - numbers[0] > len(numbers)  # they did come between
    assert own(shared_nats, stream) == expected(0, 1, count=700)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_a_server_that_is_killed_while_messages_are_sent(
    batch: int, nats_server: NatsServer, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(nats_server.url, name)
    kept = writer(nats_server, name, timeout=2.0)
    window = stage(tmp_path, 0, values(0, 600), writer=kept)
    whole = OpenStream.send

    def send(self: OpenStream, owner: str, number: int, starts: Any, messages: Iterator[Outgoing]) -> None:
        def killing() -> Iterator[Outgoing]:
            for n, part in enumerate(part for some in messages for part in parts(some)):
                if n == batch:
                    nats_server.kill()
                yield part

        whole(self, owner, number, starts, killing())

    with monkeypatch.context() as patched:
        patched.setattr(OpenStream, "send", send)
        with pytest.raises(LogUnavailable, match="while publishing window 0"):
            kept.publish(window)
    with pytest.raises(LogUnavailable):
        kept.publish(window)
    nats_server.start()
    retried(kept, window)
    assert own(nats_server, name) == expected(0, count=600)


def parts(some: Outgoing, size: int = 150) -> Iterator[Outgoing]:
    """The same messages, fewer at a time."""
    for at in range(0, len(some.sequences), size):
        names = ("partitions", "sequences", "subjects", "keys", "values", "headers", "times")
        yield Outgoing(**{name: getattr(some, name)[at : at + size] for name in names})


@pytest.mark.parametrize("config", [{"max_msgs": 1_000, "discard": "new"}, {"max_bytes": 60_000, "discard": "new"}])
def test_a_stream_that_is_full_has_no_gap(config: Any, shared_nats: NatsServer, name: str, tmp_path: Path) -> None:
    create(shared_nats.url, name, **config)
    kept = writer(shared_nats, name)
    window = stage(tmp_path, 0, values(0), writer=kept)
    with pytest.raises(MessageRefused, match=r"maximum (messages|bytes) exceeded"):
        kept.publish(window)
    found = own(shared_nats, name)
    assert 0 < len(found) < 3_000
    assert found == expected(0)[: len(found)]

    async def enlarge(jetstream: Any) -> None:
        await jetstream.update_stream(name=name, subjects=[f"{name}.>"], max_msgs=-1, max_bytes=-1)

    with_jetstream(shared_nats.url, enlarge)
    kept.publish(window)
    assert own(shared_nats, name) == expected(0)


def test_a_stream_that_was_created_again_is_noticed(shared_nats: NatsServer, stream: str, tmp_path: Path) -> None:
    kept = writer(shared_nats, stream)
    kept.publish(stage(tmp_path, 0, values(0, 5), writer=kept))
    with_jetstream(shared_nats.url, lambda jetstream: jetstream.delete_stream(stream))
    second = stage(tmp_path, 1, values(1, 5), writer=kept)
    with pytest.raises(LogNotWritable, match="there is no such stream\n  help: create the stream"):
        kept.publish(second)
    create(shared_nats.url, stream)
    with pytest.raises(LogReplaced, match="it was dropped and created again since window 0 was published"):
        kept.publish(second)


# ---------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"no_ack": True}, "it acknowledges no messages"),
        ({"max_msg_size": 1_000}, "its max_msg_size is 1,000, and max_message_bytes is 1,000,000"),
        ({"sealed": True}, "it is sealed"),
    ],
)
def test_streams_that_would_fail_later_are_refused_at_launch(config: Any, words: str, shared_nats: NatsServer, name: str) -> None:
    create(shared_nats.url, name)

    async def update(jetstream: Any) -> None:
        await jetstream.update_stream(name=name, subjects=[f"{name}.>"], **config)

    with_jetstream(shared_nats.url, update)
    with pytest.raises(LogNotWritable, match=words):
        writer(shared_nats, name).check_store(SinkLaunch(name="shop", sink="sink"))


def test_a_stream_that_forgets_what_was_read_is_refused(shared_nats: NatsServer, name: str) -> None:
    create(shared_nats.url, name, retention="workqueue")
    with pytest.raises(LogNotWritable, match="its retention policy is 'workqueue'"):
        writer(shared_nats, name).check_store(SinkLaunch(name="shop", sink="sink"))


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The subjects of the stream change behind the tasks, which have looked at them."""
    monkeypatch.setattr("operators.sinks.logs.nats.NatsTarget.place_problem", lambda *_: None)


def test_a_subject_that_the_stream_lacks_is_a_bad_row(shared_nats: NatsServer, stream: str, tmp_path: Path) -> None:
    kept = writer(shared_nats, stream, subject="nowhere.a")
    with pytest.raises(ValueNotWritable, match=r"column 'subject' has 'nowhere\.a', which stream"):
        stage(tmp_path, 0, values(0, 5), writer=kept)


@pytest.mark.usefixtures("late")
def test_a_subject_of_no_stream_is_named(shared_nats: NatsServer, stream: str, tmp_path: Path) -> None:
    kept = writer(shared_nats, stream, subject="nowhere.a")
    with pytest.raises(LogNotWritable, match=r"no stream has the subject 'nowhere\.a'"):
        kept.publish(stage(tmp_path, 0, values(0, 5), writer=kept))


@pytest.mark.usefixtures("late")
def test_a_subject_of_another_stream_is_named(shared_nats: NatsServer, stream: str, name: str, tmp_path: Path) -> None:
    create(shared_nats.url, f"{name}x")
    kept = writer(shared_nats, stream, subject=f"{name}x.a")
    with pytest.raises(LogNotWritable, match="expected stream does not match"):
        kept.publish(stage(tmp_path, 0, values(0, 5), writer=kept))
    assert read(shared_nats, f"{name}x") == []


def test_no_server_is_named(shared_nats: NatsServer, stream: str) -> None:
    kept = NatsWriter("nats://ada:secret@127.0.0.1:1", stream, "a", timeout=0.5)
    with pytest.raises(LogUnavailable, match=r"nats://127\.0\.0\.1:1") as refused:
        kept.check_store(SinkLaunch(name="shop", sink="sink"))
    assert "secret" not in str(refused.value) + repr(kept) + kept.destination()


def test_a_user_without_permission_to_publish_is_refused(tmp_path: Path, name: str) -> None:
    users = 'authorization { users: [ {user: "ada", password: "x", permissions: {publish: ["$JS.API.>"], subscribe: [">"]}}, '
    users += '{user: "root", password: "x"} ] }'
    (tmp_path / "server").mkdir()
    with brokers.nats(tmp_path / "server", users) as server:
        create(server.url.replace("//", "//root:x@"), name)
        kept = NatsWriter(server.url.replace("//", "//ada:x@"), name, f"{name}.a", timeout=2.0)
        with pytest.raises(LogRefused, match=rf"(?i)permissions violation for publish to .{name}\.a"):
            kept.publish(stage(tmp_path / "run", 0, values(0, 5), writer=kept))


@pytest.mark.parametrize("country", ["", "a b", "x.", "*", ">", "a..b", None])
@pytest.mark.parametrize("by", ["column", "function"])
def test_values_that_make_no_subject_are_bad_records(country: Any, by: str, tmp_path: Path) -> None:
    subject: Any = "orders.{country}" if by == "column" else lambda row: f"orders.{row['country']}" if row["country"] else None
    kept = NatsWriter("nats://localhost", "ORDERS", subject)
    encoder = kept.encoder()
    with pytest.raises(ValueNotWritable, match="a subject is words with dots between them"):
        encoder.message({"country": country})
    if by == "column":
        with pytest.raises(ValueNotWritable, match="a subject is words with dots between them"):
            stage(tmp_path, 0, [{"country": "se"}, {"country": country}], writer=kept)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"subject": "orders.{}"}, r"write columns in braces: orders\.{country}"),
        ({"subject": "orders.*"}, "a subject is words with dots, without"),
        ({"stream": "a.b"}, "a stream has a name without blanks"),
        ({"servers": ""}, "servers is empty"),
    ],
)
def test_properties_are_checked(properties: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NatsWriter(**{"servers": "nats://localhost", "stream": "ORDERS", "subject": "orders.new", **properties}).check()


@pytest.mark.parametrize("value", ["a\nb", b"\xff", " a"])
def test_headers_that_nats_cannot_carry_are_bad_records(value: Any, tmp_path: Path) -> None:
    header: Callable[[Any], Any] = lambda _: value  # noqa: E731
    kept = NatsWriter("nats://localhost", "ORDERS", "orders", headers={"x": header})
    with pytest.raises(ValueNotWritable, match="headers of NATS are lines of text"):
        kept.encoder().message({"a": 1})
