"""apps/package_stats: sections and top maintainers of a package index, beside plain Python, on both runners."""

from __future__ import annotations

import csv
import random
from collections import Counter
from pathlib import Path

from dagflow.testing import run_dag

APP = str(Path(__file__).parents[2] / "apps" / "package_stats")
TEAMS = ["Debian Ä Team <a@example.org>", "One, Person <one@example.org>", "X <x@y>", "Others <o@example.org>"]


def index(seed: int, count: int) -> list[dict[str, str]]:
    chance = random.Random(seed)
    return [
        {
            "Package": f"lib{number}",
            "Status": chance.choice(
                ["install ok installed", "install ok installed", "deinstall ok config-files", "install ok half-installed"]
            ),
            "Section": chance.choice(["libs", "net", "non-free/doc"]),
            "Installed-Size": str(chance.randrange(1000)),
            "Maintainer": chance.choice(TEAMS),
            "Conffiles": "\n /etc/a: x\n /etc/b y",
            "Description": "short\n longer: text\n .\n Section: this is none",
        }
        for number in range(count)
    ]


def rows(folder: Path) -> list[list[str]]:
    return [row for path in sorted(folder.glob("part-*")) for row in list(csv.reader(path.read_text().splitlines()))[1:]]


def test_sections_and_top_maintainers(runner: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    packages = [*index(1, 60), *index(2, 40)]
    for name, part, end in (("status", packages[:60], "\n\n\n"), ("main_Packages", packages[60:], "\n")):
        paragraphs = ["\n".join(f"{key}: {value}" for key, value in package.items()) for package in part]
        (source / name).write_text("\n\n".join(paragraphs) + end, encoding="utf-8")
    settings = {"sections": str(tmp_path / "sections"), "maintainers": str(tmp_path / "maintainers"), "top": 3, "block_size": 700}
    report = run_dag(APP, {"input": str(source), **settings}, runner=runner)
    assert (report.windows, report.jobs) == (1, 1), "two sinks of one pass"
    installed = [package for package in packages if package["Status"] == "install ok installed"]
    count, sizes, by_maintainer = Counter[str](), Counter[str](), Counter[str]()
    for package in installed:
        count[package["Section"]] += 1
        sizes[package["Section"]] += int(package["Installed-Size"])
        by_maintainer[package["Maintainer"]] += int(package["Installed-Size"])
    assert sorted(rows(tmp_path / "sections")) == sorted([name, str(count[name]), str(sizes[name])] for name in count)
    largest = [[name, str(size)] for name, size in by_maintainer.most_common(3)]
    assert sorted(rows(tmp_path / "maintainers" / "current")) == sorted(largest)
    assert report.operators["index.reader"].records_out == len(installed), "each record is read once"
