"""Which modules travel by value. Applications in processes of their own, with libraries where users have them."""

from __future__ import annotations

import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from dagflow.runtime.task.user_code import Libraries, by_value, dump_by_value, import_folder, is_user_code

APP = """
import attrs
from dagflow import DAG, InputPort, Operator, ReaderRecord
from operators import BlockReader, FileSplitterInput
{imports}

@attrs.define
class Mine(Operator):
    input = InputPort[ReaderRecord[str]]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        {use}

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    lines = dag.add_operator("lines", BlockReader())
    mine = dag.add_operator("mine", Mine())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, mine.input)
"""
SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import app
from dagflow import DAG
from dagflow.planning.steps import make_plan
from dagflow.runtime.task.compile import pickled, stage_program
dag = DAG()
app.populate_dag(dag, None)
plan = make_plan(dag)
open("program", "wb").write(pickled(stage_program(plan, "s0"), plan))
"""
LOAD = "import pickle, sys; pickle.load(open('program', 'rb')); print(*sorted(set(sys.modules) & set(sys.argv[1:])))"
RECURSIVE = "nest = []\nfor _ in range(5000):\n    nest = [nest]\n\ndef clean(text):\n    return text, nest\n"
"""A library that cannot be pickled by value: "excessively deep recursion"."""


def loads(folder: Path, *names: str, before: str = "", after: str = "") -> list[str]:
    """Pickles the program of `folder/app` with PYTHONPATH `before`, loads it with `after`: which of `names` that has imported."""
    for code, path in ((SCRIPT.format(folder=str(folder / "app")), before), (LOAD, after)):
        command = [sys.executable, "-c", code, *(names if code is LOAD else ())]
        ran = subprocess.run(command, cwd=folder, env={"PYTHONPATH": path}, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def app(folder: Path, imports: str, use: str) -> None:
    write(folder / "app" / "app.py", APP.format(imports=imports, use=use))


def wheel(folder: Path, name: str, source: str) -> Path:
    """A wheel of one package, as pip installs it."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}/__init__.py", source)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


def install(folder: Path, target: Path, name: str, source: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*command, str(wheel(folder, name, source))], check=True, capture_output=True)


def test_a_library_that_pip_has_installed_into_a_folder_goes_by_name(tmp_path: Path) -> None:
    install(tmp_path, tmp_path / "libs", "cleaner", RECURSIVE)
    app(tmp_path, "import cleaner\nfrom cleaner import clean", "clean(line), cleaner.clean(line)")
    libs = str(tmp_path / "libs")
    assert loads(tmp_path, "cleaner", "app", before=libs, after=libs) == ["cleaner"]


def test_so_does_one_beside_the_application(tmp_path: Path) -> None:
    """As in a bundle, where all lie in one folder: pip's notes say which are libraries."""
    install(tmp_path, tmp_path / "app", "cleaner", RECURSIVE)
    app(tmp_path, "from cleaner import clean\nfrom rules import keep", "clean(keep(line))")
    write(tmp_path / "app" / "rules.py", "def keep(line):\n    return line\n")
    assert loads(tmp_path, "cleaner", "app", "rules", after=str(tmp_path / "app")) == ["cleaner"]


def test_so_does_one_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "layer.zip", "w") as file:
        file.writestr("cleaner/__init__.py", RECURSIVE)
    app(tmp_path, "from cleaner import clean", "clean(line)")
    layer = str(tmp_path / "layer.zip")
    assert loads(tmp_path, "cleaner", "app", before=layer, after=layer) == ["cleaner"]


def test_an_own_package_beside_the_application_travels(tmp_path: Path) -> None:
    """Through PYTHONPATH, with a helper that only it uses, and one that nothing uses."""
    write(tmp_path / "shop" / "__init__.py", "from shop.prices import price\n")
    write(tmp_path / "shop" / "prices.py", "import rounding\n\ndef price(line):\n    return rounding.up(line)\n")
    write(tmp_path / "rounding.py", "def up(line):\n    return line\n")
    for imports, use in (("from shop import price", "price(line)"), ("import shop", "shop.price(line)")):
        app(tmp_path, imports, use)
        assert loads(tmp_path, "shop", "shop.prices", "rounding", "app", before=str(tmp_path)) == []


def test_what_nothing_names_does_not_travel(tmp_path: Path) -> None:
    """It is loaded, and cannot be pickled."""
    write(tmp_path / "app" / "rules.py", "def keep(line):\n    return line\n")
    write(tmp_path / "layer" / "unused.py", "import threading\nlock = threading.Lock()\n")
    app(tmp_path, "import unused\nfrom rules import keep", "keep(line)")
    assert loads(tmp_path, "rules", "unused", before=str(tmp_path / "layer")) == []


def test_import_folders() -> None:
    assert import_folder(sys.modules[__name__]) == str(Path(__file__).parents[3])
    assert import_folder(sys.modules["dagflow.runtime"]) == str(Path(sys.modules["dagflow"].__file__ or "").parents[1])


@pytest.mark.parametrize("name", ["pytest", "attrs", "dagflow", "operators", "json", "sys", "pyarrow.lib"])
def test_libraries(name: str) -> None:
    __import__(name)
    assert not is_user_code(sys.modules[name], Libraries())
    assert is_user_code(sys.modules[__name__], Libraries())


class Held:
    """When it is pickled with user code by value, another thread ends its own part in between, if it can."""

    def __init__(self, ended: threading.Event, may_end: threading.Event) -> None:
        self.ended, self.may_end, self.passes = ended, may_end, 0

    def __reduce__(self) -> tuple[type[dict], tuple[()]]:
        self.passes += 1
        if self.passes > 1:  # the first pass finds out which folders travel
            self.may_end.set()
            self.ended.wait(20)
        return dict, ()


def travels(text: str) -> str:
    return text


def test_launches_that_pickle_at_once_do_not_end_each_others_registration() -> None:
    entered, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def other() -> None:
        with by_value({import_folder(sys.modules[__name__])}, Libraries()):
            entered.set()
            may_end.wait(0.5)  # the time runs out where this thread keeps the other one waiting
        ended.set()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(20)
    data = dump_by_value((Held(ended, may_end), travels))
    thread.join(20)
    assert b"_make_function" in data, "the function goes by value"
