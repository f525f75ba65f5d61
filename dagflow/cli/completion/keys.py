"""The keys of `-D` for an application, read from its source and that of the library. Nothing is imported or run."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from dagflow.exports import modules_of_names

TOP = Path(__file__).parents[3]
"""The folder of the packages `dagflow` and `operators`."""


@attrs.frozen
class SettingKey:
    """A key, with the annotation of its type as it is written."""

    name: str
    annotation: str

    @property
    def values(self) -> list[str]:
        """The values that the type lists."""
        try:
            tree = ast.parse(self.annotation, mode="eval").body
        except SyntaxError:
            return []
        if isinstance(tree, ast.Name) and tree.id == "bool":
            return ["true", "false"]
        if isinstance(tree, ast.Subscript) and ast.unparse(tree.value).endswith("Literal"):
            parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
            return [str(part.value) for part in parts if isinstance(part, ast.Constant)]
        return []


def keys_of(application: str) -> Iterator[SettingKey]:
    """Yield the settings of an application, then the properties of its operators and modules."""
    path = _file_named(application)
    tree = _tree(path)
    if tree is None:
        return
    yield from _members(_settings_class(tree), path, _fields)
    for name, value in _operators(tree):
        for key in _members_of_call(value, path, _fields):
            yield SettingKey(f"operator.{name}.{key.name}", key.annotation)


def ports_of(application: str) -> Iterator[str]:
    """Yield the ports at which streams of an application start, as `OPERATOR.PORT`: those of operators in modules, too."""
    path = _file_named(application)
    tree = _tree(path)
    if tree is None:
        return
    has_errors = any(isinstance(node, ast.Attribute) and node.attr == "errors" for node in ast.walk(tree))
    names = dict.fromkeys(port.name for port in _ports_below(tree, path))
    yield from (name for name in names if has_errors or not name.endswith(".errors"))


def _file_named(application: str) -> Path:
    place = application.partition(":")[0]
    path = Path(place, "app.py") if os.path.isdir(place) else Path(place)
    return path if path.suffix == ".py" else Path(*place.split(".")).with_suffix(".py")


def _operators(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of operators and modules, with the class that is called for each."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) > 1):
            continue
        name, value = node.args[:2]
        is_name = isinstance(name, ast.Constant) and isinstance(name.value, str)
        if node.func.attr in ("add_operator", "add_module") and is_name and isinstance(value, ast.Call):
            made_by_module = ast.unparse(value.func) == "self.make" and value.args  # `self.make(Filter)`: see `Module.make`
            yield name.value, value.args[0] if made_by_module else value.func  # type: ignore[attr-defined]


_Reader = Callable[[ast.ClassDef, ast.Module, Path], Iterator[SettingKey]]


def _members_of_call(function: ast.expr, path: Path, read: _Reader) -> Iterator[SettingKey]:
    """Yield the members of the class that is called: `Filter(…)`, `Filter[str](…)` or `operators.Filter(…)`."""
    function = function.value if isinstance(function, ast.Subscript) else function
    if isinstance(function, ast.Attribute):
        target = _file_of(ast.unparse(function.value), function.attr, path)
        return iter(()) if target is None else _members(function.attr, target, read)
    return _members(_name(function), path, read)


def _settings_class(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "populate_dag":
            arguments = [argument for argument in node.args.args if argument.arg != "self"]
            if len(arguments) > 1 and arguments[1].annotation is not None:
                return _name(arguments[1].annotation).strip("'\"")
    return ""


def _members(name: str, path: Path, read: _Reader, depth: int = 30) -> Iterator[SettingKey]:
    """Yield what `read` finds in a class that a file defines or imports, and in its bases."""
    tree = _tree(path)
    if tree is None or not depth:
        return
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield from read(node, tree, path)
            for base in node.bases:
                yield from _members(_name(base), path, read, depth - 1)
            return
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            real = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
            target = _file_of(str(node.module), real, path)
            if target is not None and target != path:
                yield from _members(real, target, read, depth - 1)
            return


def _file_of(module: str, name: str, path: Path) -> Path | None:
    """Return the file of a module, or that of a name which a package of dagflow exports."""
    parts = module.split(".")
    for top in (path.parent, TOP):
        place = top.joinpath(*parts)
        if place.with_suffix(".py").is_file():
            return place.with_suffix(".py")
        stub = place / "__init__.pyi"
        if stub.is_file():
            exported = modules_of_names(stub.read_bytes()).get(name)
            return None if exported is None or exported == module else _file_of(exported, name, path)
    return None


def _fields(node: ast.ClassDef, tree: ast.Module, path: Path) -> Iterator[SettingKey]:
    aliases = {ast.unparse(each.targets[0]): each.value for each in tree.body if isinstance(each, ast.Assign)}
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        annotation, name = ast.unparse(statement.annotation), statement.target.id
        annotation = ast.unparse(aliases.get(annotation, statement.annotation))
        given = {each.arg: each.value for each in statement.value.keywords} if isinstance(statement.value, ast.Call) else {}
        is_made = isinstance(given.get("init"), ast.Constant) and given["init"].value is False  # type: ignore[attr-defined]
        if "ClassVar" in annotation or is_made or name.startswith("_"):
            continue
        alias = given.get("alias")
        yield SettingKey(str(alias.value) if isinstance(alias, ast.Constant) else name, annotation)


def _ports(node: ast.ClassDef, tree: ast.Module, path: Path) -> Iterator[SettingKey]:
    """Yield the output ports of a class, `output = OutputPort[str]()`, and those of the operators that a module adds."""
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            kind = _name(statement.value.func)
            if kind == "OutputPort":
                yield from (SettingKey(ast.unparse(target), kind) for target in statement.targets)
    yield from _ports_below(node, path)


def _ports_below(tree: ast.AST, path: Path) -> Iterator[SettingKey]:
    for name, value in _operators(tree):
        for port in _members_of_call(value, path, _ports):
            yield SettingKey(f"{name}.{port.name}", port.annotation)


def _name(node: ast.expr) -> str:
    """Return the name of a class in an expression: `Filter` of `Filter[str]`."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return ast.unparse(node).rpartition(".")[2]


@functools.cache
def _tree(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
