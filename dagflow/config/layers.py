"""The sources of settings, their order of precedence, and the part of dagflow that each setting is for.

Precedence, highest first: options of the command line and `-D`; `--conf` files, later ones first; the environment; code;
defaults. Nothing here knows types: values of `-D` and of the environment stay strings until a type is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dagflow.config.errors import (
    BadConfFile,
    BadDefinition,
    BadValue,
    ConfFileMissing,
    NotASettingsClass,
    RepeatedDefinition,
    ReservedSettingName,
)
from dagflow.config.problems import Problems
from dagflow.config.run_settings import RUN_NAMES
from dagflow.config.toml_lines import key_lines, line_of
from dagflow.config.values import hints
from dagflow.errors.shown import sounds_secret

ENVIRONMENT_PREFIX = "DAGFLOW_"
RESERVED = ("operator", "run", "spark")


@attrs.frozen
class Setting:
    """One value for one key, and where it comes from: `default`, `code`, `FILE:LINE`, `env NAME`, `-D` or `--option`.

    `is_text`: the value is text from the command line or the environment, whatever type it is for.
    """

    key: str
    value: Any = attrs.field(repr=False)  # may be a secret
    origin: str
    is_text: bool = attrs.field(default=False, repr=False)

    @property
    def any_case(self) -> bool:
        """Return True if the key is matched regardless of case: names of the environment."""
        return self.is_text and self.origin.startswith("env ")

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of the key."""
        return split_key(self.key)


def split_key(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted key; a part in double quotes may hold dots.

    >>> split_key('labels."a.b".c')
    ('labels', 'a.b', 'c')
    """
    part = r'(?:"[^"]*"|[^."]*)'
    if '"' not in key or not re.fullmatch(rf"{part}(?:\.{part})*", key):
        return tuple(key.split("."))
    return tuple(part_of_key.strip('"') for part_of_key in re.findall(rf"(?:^|\.)({part})", key))


def join_key(path: Iterable[str]) -> str:
    """Return the key of some parts; parts with dots are quoted, but not in Spark's keys, which are dotted names.

    >>> join_key(("labels", "a.b", "c")), join_key(("spark", "executor.memory"))
    ('labels."a.b".c', 'spark.executor.memory')
    """
    path = tuple(path)
    if path[:1] == ("spark",):
        return ".".join(path)
    return ".".join(f'"{part}"' if "." in part and '"' not in part else part for part in path)


@attrs.frozen
class Layers:
    """All that was given, lowest precedence first; within a layer, in the order in which it was given.

    `base` is the settings object that code gave, if it gave one. `names` are the application's own settings: they go before
    settings of the run that are called the same, which are then reached as `run.NAME`.
    """

    layers: tuple[tuple[Setting, ...], ...] = ()
    base: Any = None
    names: frozenset[str] = frozenset()

    def application(self) -> Layers:
        """Return the settings of the application, and unknown ones."""
        return self._only("application")

    def operators(self) -> Layers:
        """Return the settings `operator.*`, which are checked when the DAG is known."""
        return self._only("operator")

    def spark(self) -> Layers:
        """Return the settings `spark.*`, which are passed on as text; see `spark_conf`."""
        return self._only("spark")

    def run(self) -> Layers:
        """Return the settings of the run, `run.NAME` or plain NAME."""
        return self._only("run")

    def __iter__(self) -> Iterator[Setting]:
        """Yield all settings, lowest precedence first."""
        return (setting for layer in self.layers for setting in layer)

    def winners(self) -> dict[str, Setting]:
        """Return the setting with the highest precedence of each key, keys in the order in which they first appear."""
        return {setting.key: setting for setting in self}

    def _only(self, group: str) -> Layers:
        layers = tuple(tuple(s for s in layer if self._group(s) == group) for layer in self.layers)
        return attrs.evolve(self, layers=layers, base=self.base if group == "application" else None)

    def _group(self, setting: Setting) -> str:
        first = setting.path[0]
        if setting.any_case:
            first = find_name(first, (*self.names, *RESERVED, *RUN_NAMES), any_case=True) or first
        if first in self.names:
            return "application"
        if first in RESERVED:
            return first
        return "run" if first in RUN_NAMES else "application"


def find_name(name: str, names: Iterable[str], *, any_case: bool) -> str | None:
    """Return the declared name that `name` stands for, or None."""
    names = list(names)
    if name in names:
        return name
    return next((known for known in names if known.lower() == name.lower()), None) if any_case else None


def read_layers(
    settings_class: type | None = None,
    *,
    code: object = None,
    environment: Mapping[str, str] | None = None,
    conf_files: Sequence[str | os.PathLike[str]] = (),
    definitions: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    problems: Problems | None = None,
) -> Layers:
    """Read all layers.

    Args:
        settings_class: the attrs class of the application's settings, if it has one.
        code: what code gives: a settings object, or a mapping of keys to values.
        environment: normally `os.environ`; only names that begin with `DAGFLOW_` count.
        conf_files: TOML files, later ones win.
        definitions: texts `KEY=VALUE` of `-D`; a key has one value.
        options: settings of the run that have their own option, by field name; None: not given.
        run: settings of the run that code gives (arguments of `launch`), by field name; None: not given.
        problems: takes what would be raised, and what can be read comes back.

    Raises:
        ConfFileMissing, BadConfFile, BadDefinition, RepeatedDefinition, NotASettingsClass, ReservedSettingName, or ConfigErrors
        with several.

    >>> layers = read_layers(environment={"DAGFLOW_PREFIX": "#"}, definitions=["prefix=;"])
    >>> [(s.key, s.value, s.origin) for s in layers]
    [('prefix', '#', 'env DAGFLOW_PREFIX'), ('prefix', ';', '-D')]
    """
    errors = Problems()
    names: frozenset[str] = frozenset()
    with errors:
        names = frozenset(setting_names(settings_class)) if settings_class is not None else names
    base, values = (None, code) if isinstance(code, Mapping) or code is None else (code, {})
    layers = [[Setting(join_key(path), value, "code") for path, value in flatten(values or {}, split=True)]]
    layers[0] += [Setting(f"run.{name}", value, "code") for name, value in (run or {}).items() if value is not None]
    layers.append(_environment(environment or {}))
    for path in conf_files:
        with errors:
            layers.append(conf_file(os.fspath(path)))
    layers.append([])
    for text in definitions:
        with errors:
            layers[-1].append(definition(text))
    for key in dict.fromkeys(setting.key for setting in layers[-1]):
        texts = list(dict.fromkeys(setting.value for setting in layers[-1] if setting.key == key))
        if len(texts) > 1:
            errors.add(_repeated(key, texts, settings_class if key in names else None))
    layers.append(
        [
            Setting(f"run.{name}", value, "--" + name.replace("_", "-"), isinstance(value, str))
            for name, value in (options or {}).items()
            if value is not None
        ]
    )
    if problems is None:
        errors.raise_all()
    else:
        problems.extend(errors)
    return Layers(tuple(map(tuple, layers)), base, names)


def setting_names(settings_class: type) -> tuple[str, ...]:
    """Return the names of an application's settings. Raises NotASettingsClass, ReservedSettingName."""
    if not attrs.has(settings_class):
        raise NotASettingsClass(name=settings_class.__name__, where=settings_class.__module__)
    names = tuple(hints.settable(settings_class))
    for name in names:
        if name in RESERVED:
            raise ReservedSettingName(name=name, class_name=settings_class.__name__)
    return names


def definition(text: str) -> Setting:
    """Return the setting of one `-D KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadDefinition(text=text if not equals else "=")
    return Setting(key.strip(), value, "-D", is_text=True)


def _repeated(key: str, given: Sequence[str], settings_class: type | None) -> RepeatedDefinition:
    """Return the error for a key with several values. It shows them unless the type or the key suggests a secret."""
    from dagflow.config.values.conversion import holds_secret

    hint = hints.field_hint(settings_class, hints.settable(settings_class)[key]) if settings_class is not None else Any
    is_shown = not (holds_secret(hint) or sounds_secret(key) or key.startswith("operator."))  # whose types are not known yet
    parts = [part for part in hints.members(hint) if hints.is_list(part) or hints.kind(part) is Any]
    as_list = ""
    if parts and split_key(key)[0] not in ("run", "spark") and (settings_class is not None or key not in RUN_NAMES):
        bare = hints.kind(hints.element(parts[0])) in (int, float, bool)
        items = [value[1:-1] if re.fullmatch(r'\[".*"\]', value) else value if bare else f'"{value}"' for value in given]
        as_list = f"[{', '.join(items if is_shown else ['…'] * len(items))}]"
    return RepeatedDefinition(key=key, values=tuple(given) if is_shown else ("***",) * len(given), as_list=as_list)


def conf_file(path: str) -> list[Setting]:
    """Return the settings of a TOML file, in the order of the file. Raises ConfFileMissing, BadConfFile."""
    import tomllib

    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ConfFileMissing(path=path, reason=(error.strerror or str(error)).lower()) from None
    except UnicodeDecodeError as error:
        raise BadConfFile(path=path, reason=f"byte {error.start} is not UTF-8") from None
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _syntax_error(path, text, str(error) if isinstance(error, ValueError) else "nested too deeply") from None
    lines = key_lines(text)
    settings = []
    for where, value in flatten(document):
        line = line_of(lines, where)
        whole = split_key(where[0]) + where[1:] if '"' not in where[0] else where
        settings.append(Setting(join_key(whole), value, f"{path}:{line}"))
    return settings


def _syntax_error(path: str, text: str, message: str) -> BadConfFile:
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    if match is None:
        return BadConfFile(path=path, reason=message)
    line = int(match[2]) if match[2] else text.rstrip("\n").count("\n") + 1
    return BadConfFile(path=path, reason=match[1], line=line, column=int(match[3]) if match[3] else None)


def flatten(
    table: Mapping[Any, Any], *, split: bool = False, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values of nested tables with their paths. An empty table, or one with a key that is not a string, is a value.

    `split`: keys may be dotted.
    """
    for key, value in table.items():
        path = before + (split_key(key) if split else (key,))
        if isinstance(value, Mapping) and value and all(isinstance(inner, str) for inner in value):
            yield from flatten(value, before=path)
        else:
            yield path, value


def _environment(environment: Mapping[str, str]) -> list[Setting]:
    settings = []
    for name, value in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX):
            parts = name[len(ENVIRONMENT_PREFIX) :].split("__")
            key = ".".join(part.lower() if part == part.upper() else part for part in parts)
            settings.append(Setting(key, value, f"env {name}", is_text=True))
    return settings


def spark_conf(layers: Layers) -> dict[str, Setting]:
    """Return the effective `spark.*` settings, values as text as Spark wants them. Raises BadValue, or ConfigErrors.

    >>> layers = read_layers(code={"spark": {"ui.enabled": False}}, definitions=["spark.executor.memory=2g"])
    >>> {key: setting.value for key, setting in spark_conf(layers).items()}
    {'spark.ui.enabled': 'false', 'spark.executor.memory': '2g'}
    """
    problems, settings = Problems(), {}
    for setting in layers.spark():
        path = setting.path
        key, value = ".".join(("spark", *path[1:])), setting.value
        if len(path) == 1:
            problems.add(
                BadValue(key=key, value="set", origin=setting.origin, expected="a longer key, such as spark.executor.memory")
            )
        elif isinstance(value, (str, int, float)):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            settings[key] = attrs.evolve(setting, key=key, value=text, is_text=True)
        else:
            kind = f"a {type(value).__name__}"
            problems.add(BadValue(key=key, value=kind, origin=setting.origin, expected="text, a number, true or false"))
    problems.raise_all()
    return settings
