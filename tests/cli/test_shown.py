"""The output of commands and files: no control characters of file names on a terminal, no secrets of URLs anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.cli.progress import PlainProgress
from dagflow.errors import PathMissing
from dagflow.errors.shown import sounds_secret, visible, visible_lines, without_secrets
from dagflow.render.errors import error_json, error_text
from dagflow.render.style import Style
from dagflow.runtime.events import Warned, line_of
from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]
EVIL = "a\x1b[31m\x1b]0;title\x07\r\x9b2J\u202e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sftp://ada:hunter2@host/a", "sftp://ada:***@host/a"),
        ("postgresql://ada:p@ss:w?rd@host:5432/db", "postgresql://ada:***@host:5432/db"),
        ("redis://:hunter2@host", "redis://:***@host"),
        ("sftp://ada@host/a", "sftp://ada@host/a"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        ("https://h/a?day=1&api_key=k1&b=2", "https://h/a?day=1&api_key=***&b=2"),
        ("https://h/a?X-Amz-Signature=s&X-Amz-Credential=c#access_token=t", "https://h/a?X-Amz-Signature=***&X-Amz-Credential=***#access_token=***"),
        ("https://acc.blob/c?sv=1&sig=a%2Fb", "https://acc.blob/c?sv=1&sig=***"),
        ("host=db password=hunter2 user=ada", "host=db password=*** user=ada"),
        ("out/token=abc/part-0", "out/token=abc/part-0"),
        ("HTTPS://ghp_1@host/a and https://host/a@b", "HTTPS://***@host/a and https://host/a@b"),
        ("cannot log in with api_key=k1 now", "cannot log in with api_key=*** now"),
        ("Client(url='h', api_key='k1', n=2)", "Client(url='h', api_key='***', n=2)"),
        ("AWS_SECRET_ACCESS_KEY=k1, partition_key=a", "AWS_SECRET_ACCESS_KEY=*** partition_key=a"),
        ("a = b, key = value", "a = b, key = value"),
        ("host=db password='two words' user=ada", "host=db password='***' user=ada"),
        ("host=db password=a#b user=ada", "host=db password=*** user=ada"),
        ("Server=db;Password=a;User=b", "Server=db;Password=***;User=b"),
        ("Protocol=https;AccountKey=a+/b==;EndpointSuffix=c", "Protocol=https;AccountKey=***;EndpointSuffix=c"),
        ("sv=2020&sig=a%2Fb&se=1", "sv=2020&sig=***&se=1"),
        ("{'Authorization': 'Bearer abc', 'Accept': 'a'}", "{'Authorization': 'Bearer ***', 'Accept': 'a'}"),
        ("401 for authorization: Basic dXNlcjpw", "401 for authorization: Basic ***"),
        ("got Bearer abcdefgh1 back", "got Bearer *** back"),
        ("the bearer certificate is old", "the bearer certificate is old"),
        ("key AKIAIOSFODNN7EXAMPLE is unknown", "key *** is unknown"),
        ("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "***"),
        ('{"secret_access_key": "wJalr/bP"}', '{"secret_access_key": "***"}'),
        ("pat=abc and path=a, pattern=b", "pat=*** and path=a, pattern=b"),
        ("ghp_abcdefghijklmnop1234 glpat-abcdefghij123456789 xoxb-123456789012-abc", "*** *** ***"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc_-", "***"),
        ("https://hooks.slack.com/services/T0/B0/xyz: 404", "https://hooks.slack.com/*** 404"),
        ("https://discord.com/api/webhooks/12/abc?wait=1", "https://discord.com/api/webhooks/***?wait=1"),
        ("https://acme.webhook.office.com/webhookb2/a@b/IncomingWebhook/c/d", "https://acme.webhook.office.com/***"),
        ("https://api.telegram.org/bot12:abc/send", "https://api.telegram.org/bot***"),
        ("operator 'token_filter': 'slow', 10:30", "operator 'token_filter': 'slow', 10:30"),
    ],
)  # fmt: skip
def test_secrets_of_urls_are_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown
    assert without_secrets({"a": [text, (text, 1)]}) == {"a": [shown, (shown, 1)]}


SECRETS = st.text("abcdefgXYZ0123456789", min_size=16, max_size=40).map(lambda text: f"S3cr{text}")
PLACES = (
    "sftp://ada:{}@host/a",
    "https://{}@host/a",
    "https://host/a?x=1&sig={}&y=2",
    "https://host/a?access_token={}",
    "Authorization: Bearer {}",
    '{{"Authorization": "token {}"}}',
    "Proxy-Authorization=Basic {}",
    "Bearer {}",
    "password={}",
    "host=db password='a {} b' port=1",
    "PWD={};Server=a",
    "api_key: '{}'",
    "client_secret = {}",
    "azure.pat={}",
    "AccountKey={};x=1",
    "ghp_{}",
    "github_pat_{}",
    "glpat-{}",
    "https://hooks.slack.com/services/T0/B0/{}",
    "https://discord.com/api/webhooks/1/{}",
    "https://acme.webhook.office.com/webhookb2/{}/c",
    "https://api.telegram.org/bot1:{}/send",
)


@given(
    secret=SECRETS, place=st.sampled_from(PLACES), before=st.sampled_from(["", "cannot log in: ", "a\n"]), after=st.text(" .a\n")
)
def test_no_secret_is_shown_or_stored(secret: str, place: str, before: str, after: str) -> None:
    text = f"{before}{place.format(secret)} {after}"
    shown = without_secrets(text)
    assert secret not in shown
    assert without_secrets(shown) == shown
    for form in (
        visible(text),
        visible_lines(text),
        line_of(Warned(text=text)),
        PathMissing(path=text, doing="reading").message(),
    ):
        assert secret not in form


@given(secret=SECRETS, key=st.sampled_from(["Authorization", "cookie", "X-Api-Key", "password", "pat", "fs.s3a.secret.key"]))
def test_no_secret_under_its_name_is_stored(secret: str, key: str) -> None:
    assert without_secrets({"headers": {key: secret, "Accept": "a"}}) == {"headers": {key: "***", "Accept": "a"}}
    assert without_secrets({"tokens_of": {"a": 1}, "sinks": {"token_writer": "a.db"}})["sinks"] == {"token_writer": "a.db"}


@given(st.text())
def test_what_is_hidden_stays_hidden(text: str) -> None:
    assert without_secrets(without_secrets(text)) == without_secrets(text)


def test_names_of_secrets() -> None:
    assert all(
        map(
            sounds_secret,
            [
                "api_key",
                "apiKey",
                "operator.sink.api-key",
                "token",
                "aws_session_token",
                "PASSWORD",
                "pwd",
                "pat",
                "azure.pat",
                "Authorization",
                "webhook_url",
            ],
        )
    )
    assert not any(
        map(
            sounds_secret,
            ["tokenizer", "key", "keys", "partition_key", "keyboard", "pass_through", "path", "pattern", "patch_size"],
        )
    )


def is_clean(text: str) -> bool:
    return not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c == "\u202e" for c in text)


def test_control_characters_are_escaped() -> None:
    assert visible("größe 計画 👩‍💻") == "größe 計画 👩‍💻"
    assert is_clean(visible(EVIL))
    assert is_clean(visible_lines(f"{EVIL}\n\t{EVIL}"))
    assert visible_lines("a\n\tb") == "a\n\tb"


def test_errors_and_progress() -> None:
    error = PathMissing(path=f"sftp://ada:hunter2@host/{EVIL}\nb", doing="reading")
    error.add_note(f"beside {EVIL}, sftp://ada:hunter2@host")
    text = error_text(error, Style())
    assert is_clean(text)
    assert f"{EVIL}\nb".encode("unicode_escape").decode() in text, "a line end in a name breaks no line"
    for shown in (text, str(error), json.dumps(error_json(error)), *error.notes):
        assert "hunter2" not in shown
    assert EVIL in json.loads(json.dumps(error_json(error)))[0]["message"], "JSON has the name as it is"
    written: list[str] = []

    class Stream:
        write = staticmethod(written.append)

        def flush(self) -> None: ...

    event = Warned(text=f"{EVIL} of sftp://ada:hunter2@host")
    PlainProgress(Stream())(event)  # type: ignore[arg-type]
    assert is_clean(written[0])
    assert "hunter2" not in written[0] + line_of(event)
    assert EVIL in json.loads(line_of(event))["text"]


@pytest.fixture
def evil(dagflow: Dagflow, tmp_path: Path) -> list[str]:
    """A dataset of which folder, source and file have control characters in their names; the settings that made it."""
    (tmp_path / f"in{EVIL}").mkdir()
    (tmp_path / f"in{EVIL}" / f"{EVIL}\n.txt").write_text("one\n")
    return ["-D", f'input=["in{EVIL}"]'.encode("unicode_escape").decode().replace("\\x", "\\u00"), "-D", f"output=out{EVIL}"]


def test_no_command_lets_control_characters_through(dagflow: Dagflow, evil: list[str], tmp_path: Path) -> None:
    out = f"out{EVIL}"
    launched = dagflow("launch", LINE_FILTER, *evil, "--runner", "local", "--progress", "plain")
    assert launched.code == 0
    answers = [
        launched,
        *(dagflow(command, LINE_FILTER, *evil) for command in ("validate", "plan", "graph", "config")),
        dagflow("plan", LINE_FILTER, *evil, "--step", "logical"),
        dagflow("log", out),
        *(dagflow("log", out, str(entry)) for entry in range(4)),
        dagflow("trace", out, "--offset", "0"),
        dagflow("trace", out, "--offset", "0", "--exact", "--trust"),
        dagflow("trace", out, "--offset", "9"),
        dagflow("verify", out, "--replay", "--trust"),
        dagflow("verify", out, "--replay"),
        dagflow("log", f"nowhere{EVIL}"),
        dagflow("validate", f"nowhere{EVIL}"),
    ]
    (tmp_path / out / "part-000000-0000").write_text("changed")
    (tmp_path / f"in{EVIL}" / f"{EVIL}\n.txt").unlink()
    answers += [dagflow("verify", out), dagflow("verify", out, "--replay", "--trust")]
    for answer in answers:
        assert is_clean(answer.out), answer.out
        assert is_clean(answer.err), answer.err
    assert json.loads(dagflow("verify", out, "--json").out)["dataset"] == str(tmp_path / out)


def test_no_output_has_a_secret(dagflow: Dagflow, tmp_path: Path) -> None:
    """The memory file system takes all of the URL for a path, so that it has a password without a server."""
    url = "memory://ada:hunter2@host/in"
    fsspec.filesystem("memory").pipe_file(f"{url}/a.txt", b"one\n")
    given = ["-D", f"input={url}", "-D", "output=out"]
    launched = dagflow("launch", LINE_FILTER, *given, "--runner", "local", "--progress", "json")
    assert launched.code == 0, launched.err
    source = f"input={url}"
    answers = [
        launched,
        dagflow("launch", LINE_FILTER, *given, "--runner", "local", "--json", "--progress", "plain"),
        *(
            dagflow(command, LINE_FILTER, *given, *form)
            for command in ("validate", "plan", "graph", "config")
            for form in ([], ["--json"])
        ),
        dagflow("graph", LINE_FILTER, *given, "--format", "mermaid"),
        *(dagflow("log", "out", *form) for form in ([], ["--json"], ["1"], ["2"], ["2", "--json"])),
        *(dagflow("trace", "out", "--offset", "0", *form) for form in ([], ["--json"])),
        *(dagflow("trace", "out", "--offset", "0", "--exact", "--trust", "-D", source, *form) for form in ([], ["--json"])),
        *(dagflow("verify", "out", *form) for form in ([], ["--json"], ["--replay"], ["--replay", "--trust", "-D", source])),
    ]
    assert answers[-1].code == 0
    fsspec.filesystem("memory").rm(url, recursive=True)
    answers += [dagflow("validate", LINE_FILTER, *given), dagflow("verify", "out", "--replay", "--trust", "-D", source)]
    answers.append(dagflow("launch", LINE_FILTER, "-D", f"input={url}", "-D", "output=other", "--runner", "local"))
    for answer in answers:
        assert "hunter2" not in answer.out
        assert "hunter2" not in answer.err
    kept = {
        path.relative_to(tmp_path / "out" / "_dagflow").parts[0]
        for path in tmp_path.glob("out/_dagflow/**/*")
        if path.is_file() and b"hunter2" in path.read_bytes()
    }
    assert kept == {"plan", "state"}, "only what a restart reads its input by"


def test_settings_that_sound_secret_are_hidden_also_where_their_type_does_not_say_so(
    dagflow: Dagflow, write: Callable[..., None]
) -> None:
    write(
        "app.py",
        """
        import attrs

        @attrs.define(kw_only=True)
        class Settings:
            api_key: str = ""
            tokenizer: str = "words"

        from operators import Console, FileSplitterInput

        def populate_dag(dag, conf: Settings):
            files = dag.add_operator("files", FileSplitterInput(files=["."]))
            dag.add_stream("found", files.files_metadata_output, dag.add_operator("show", Console()).input)
        """,
    )
    for command in ("config", "plan", "graph", "validate"):
        for form in ([], ["--json"]):
            answer = dagflow(command, ".", "-D", "api_key=hunter2", *form)
            assert answer.code == 0, answer.err
            assert "hunter" not in answer.out
    rows = {row["key"]: row["value"] for row in json.loads(dagflow("config", ".", "-D", "api_key=k", "--json").out)}
    assert (rows["api_key"], rows["tokenizer"]) == ("***", "words")
