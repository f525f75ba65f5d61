"""The output of commands and files: no control characters of file names on a terminal, no secrets of URLs anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

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
    ],
)  # fmt: skip
def test_secrets_of_urls_are_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown
    assert without_secrets({"a": [text, (text, 1)]}) == {"a": [shown, (shown, 1)]}


def test_names_of_secrets() -> None:
    assert all(
        map(sounds_secret, ["api_key", "apiKey", "operator.sink.api-key", "token", "aws_session_token", "PASSWORD", "pwd"])
    )
    assert not any(map(sounds_secret, ["tokenizer", "key", "keys", "partition_key", "keyboard", "pass_through"]))


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
