from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import BadUrl
from dagflow.storage import absolute, base_name, is_local, join, local_path, split_url


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("", ("file", "")),
        ("logs/a b%20", ("file", "logs/a b%20")),
        ("~/logs", ("file", "~/logs")),
        ("file:///logs/a%20b", ("file", "/logs/a b")),
        ("file://localhost/logs", ("file", "/logs")),
        ("file:/logs", ("file", "/logs")),
        ("file:notes", ("file", "file:notes")),
        ("C:/logs", ("file", "C:/logs")),
        ("c://logs", ("file", "c://logs")),
        ("S3A://bucket/x", ("s3a", "bucket/x")),
        ("memory://", ("memory", "")),
        ("abfs://container@account/x?y", ("abfs", "container@account/x?y")),
    ],
)
def test_a_url_is_taken_apart(url, parts):
    assert split_url(url) == parts
    assert is_local(url) is (parts[0] == "file")


@pytest.mark.parametrize("url", ["file://host/logs", "file://logs"])
def test_a_file_url_with_a_host_is_refused(url):
    with pytest.raises(BadUrl, match=url) as caught:
        split_url(url)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["/etc", "s3://other/x"])
def test_an_absolute_name_is_not_joined(name):
    with pytest.raises(ValueError, match="not a name below"):
        join("logs", name)


words = st.text(st.characters(codec="utf-8", exclude_characters="/\0:"), min_size=1, max_size=8)


@given(st.sampled_from(["/", "logs", "s3://bucket", "s3://bucket/", "memory://", ""]), st.lists(words, min_size=1, max_size=4))
def test_joining_adds_names_at_the_end(folder, names):
    url = join(folder, *names)
    assert url.startswith(folder)
    assert base_name(url) == names[-1]
    assert join(folder, "/".join(names)) == url


def test_a_relative_path_becomes_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert absolute("logs/../out") == str(tmp_path / "out")
    assert local_path("file:///a/b") == "/a/b"
    assert absolute("hdfs://host/x/../y") == "hdfs://host/x/../y"
