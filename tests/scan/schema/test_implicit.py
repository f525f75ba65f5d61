from __future__ import annotations

import pytest

from dagflow.scan.schema.implicit import FileFacts, common_folder, key_types


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        ([], ""),
        (["/w/x/y/z.csv"], "/w/x/y"),
        (["/w/x/y/z.csv", "/w/x/q.csv"], "/w/x"),
        (["/w/ab/1", "/w/ac/1"], "/w"),
        (["/a", "/b"], "/"),
        (["s3://b/k/1", "s3://b/l/2"], "s3://b"),
        (["s3://b/1", "/b/1"], "s3://"),
    ],
)
def test_the_folder_that_has_all(paths: list[str], folder: str) -> None:
    assert common_folder(paths) == folder


def test_what_a_path_says() -> None:
    facts = FileFacts.of("/w/x/y/z.csv", "/w")
    names = ["filename", "filepath", "fqn", "suffix", "dir0", "dir1", "dir2"]
    assert [facts.value(name) for name in names] == ["z.csv", "/w/x/y", "/w/x/y/z.csv", "csv", "x", "y", None]


@pytest.mark.parametrize("root", ["/w/x/y", "/w/x/y/", "/elsewhere", "/w/x/y/z"])
def test_a_file_that_is_not_below_the_root_has_no_folders(root: str) -> None:
    assert FileFacts.of("/w/x/y/z.csv", root).folders == ()


def test_keys_of_folders() -> None:
    facts = FileFacts.of("/w/year=2024/c=a%20b/n=__HIVE_DEFAULT_PARTITION__/f", "/w")
    assert facts.keys == {"year": "2024", "c": "a b", "n": None}
    other = FileFacts.of("/w/year=2023/c=7/n=1/f", "/w")
    assert key_types([facts, other]) == {"year": "int64", "c": "string", "n": "int64"}


def test_keys_of_which_no_folder_has_a_value_are_text() -> None:
    nothing = FileFacts.of("/w/k=__HIVE_DEFAULT_PARTITION__/f", "/w")
    assert key_types([nothing]) == {"k": "string"}
    assert FileFacts.of("/w/k=%5F_HIVE_DEFAULT_PARTITION__/f", "/w").keys == {"k": "__HIVE_DEFAULT_PARTITION__"}


@pytest.mark.parametrize("value", ["01", "1.5", "", "9223372036854775808"])
def test_what_would_not_come_back_as_it_was_written_is_no_number(value: str) -> None:
    assert key_types([FileFacts.of(f"/w/k={value}/f", "/w")]) == {"k": "string"}
