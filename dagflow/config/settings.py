"""From layers to the objects that applications and runs are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.config.assembly import Assembly, SettingEntry
from dagflow.config.errors import BadValue, ConflictingSettings, MissingSetting, UnknownSetting
from dagflow.config.layers import Layers, Setting, find_name, flatten, join_key, setting_names
from dagflow.config.problems import Problems
from dagflow.config.run_settings import RUN_NAMES, RunSettings
from dagflow.config.values import conversion
from dagflow.errors import ConfigError
from dagflow.errors.shown import sounds_secret


class SettingsMapping(Mapping[str, Any]):
    """The `conf` of an application without a class of its settings: read-only, by dotted key.

    Values are text, unless they begin with `[` or `{`, come from a TOML file or from code. A key that was not given raises
    MissingSetting, which is a KeyError. Settings in settings are there as they were given, too.

    >>> conf = SettingsMapping({"input": "logs", "splitter.block_size": 997})
    >>> conf["input"], conf["splitter.block_size"], conf["splitter"]
    ('logs', 997, {'block_size': 997})
    """

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        if key in self._items:
            return self._items[key]
        nested: dict[str, Any] = {}
        for name, value in self._items.items():
            if name.startswith(f"{key}."):
                *outer, last = name.removeprefix(f"{key}.").split(".")
                inner = nested
                for each in outer:
                    inner = inner.setdefault(each, {})
                inner[last] = value
        if not nested:
            raise MissingSetting(key=key)
        return nested

    if not TYPE_CHECKING:  # checkers report attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise AttributeError(
                f"conf.{name}: the application has no class of its settings. Annotate populate_dag(dag, conf: Settings) with one "
                f'that has the field {name}, or write conf["{name}"]'
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"SettingsMapping({', '.join(self._items)})"  # keys only: any of the values may be a secret


def build_settings(settings_class: type | None, layers: Layers) -> Any:
    """Return the settings of an application: an object of its class, or a read-only mapping where it has none.

    Raises the ConfigError, or ConfigErrors with all of them: MissingSetting, UnknownSetting, BadValue, ConflictingSettings…

    >>> import attrs
    >>> from dagflow.config import read_layers
    >>> @attrs.define
    ... class Settings:
    ...     input: list[str]
    ...     prefix: str = "."
    >>> build_settings(Settings, read_layers(Settings, definitions=["input=logs"]))
    Settings(input=['logs'], prefix='.')
    """
    return assemble_settings(settings_class, layers)[0]


def build_run_settings(layers: Layers) -> RunSettings:
    """Return the settings of the run. Raises as `build_settings` does.

    >>> from dagflow.config import read_layers
    >>> build_run_settings(read_layers(options={"window": "500ms"})).window
    0.5
    """
    return assemble_run_settings(layers)[0]


def assemble_settings(settings_class: type | None, layers: Layers) -> tuple[Any, dict[str, Setting]]:
    """Return the settings of an application, and by dotted key the setting that decided each part of them."""
    mine = layers.application()
    if settings_class is None and mine.base is not None:
        settings_class = type(mine.base)
    if settings_class is None:
        return _mapping(mine)
    setting_names(settings_class)  # refuses classes that cannot hold settings
    entries = [SettingEntry(setting.path, setting) for setting in mine]
    assembly = Assembly(unknown=_unknown(settings_class))
    if mine.base is not None and not isinstance(mine.base, settings_class):
        name = type(mine.base).__name__
        raise BadValue(key="settings", value=f"a {name}", origin="code", expected=f"a {settings_class.__name__}, or a mapping")
    if mine.base is not None and not entries:
        return mine.base, {}
    base = attrs.NOTHING if mine.base is None else mine.base
    result = assembly.fields(settings_class, base, entries, "")
    assembly.problems.raise_all()
    return result, assembly.origins


def assemble_run_settings(layers: Layers) -> tuple[RunSettings, dict[str, Setting]]:
    """Return the settings of the run, and by name the setting that decided each."""
    assembly = Assembly(unknown=_unknown(RunSettings))
    entries = []
    for setting in layers.run():
        path = setting.path
        entries.append(SettingEntry(path[1:] if path[0].lower() == "run" and len(path) > 1 else path, setting))
    result = assembly.fields(RunSettings, attrs.NOTHING, entries, "")
    assembly.problems.raise_all()
    _refuse_other_runner(result, {**assembly.origins, **layers.spark().winners()})
    return result, assembly.origins


def _refuse_other_runner(settings: RunSettings, origins: Mapping[str, Setting]) -> None:
    """Raise ConflictingSettings when one command line names one runner and what is for the other.

    In other layers this does not contradict: a file may say where Spark is, and a command line try it without.
    """
    typed = {key: setting for key, setting in origins.items() if setting.origin.startswith("-")}
    places = [key for key in ("master", "remote", "spark.master", "spark.remote") if key in typed]
    if settings.runner == "local" and "runner" in typed and places:
        lines = [
            f"{typed[key].key} = {conversion.show_plain(typed[key].value)} ({typed[key].origin})" for key in ("runner", *places)
        ]
        raise ConflictingSettings(reason="the local runner uses no Spark; leave one out", given=tuple(lines))
    if settings.runner == "spark" and "slots" in typed:
        slots = typed["slots"]
        reason = "slots are for the local runner; add --runner local, or say --master local[N]"
        raise ConflictingSettings(reason=reason, given=(f"{slots.key} = {conversion.show_plain(slots.value)} ({slots.origin})",))


def _unknown(cls: type) -> Any:
    def unknown(setting: Setting, name: str, place: str, known: Sequence[str]) -> ConfigError:
        names = {"known_run": tuple(known)} if cls is RunSettings else {"known": tuple(known), "known_run": RUN_NAMES}
        return UnknownSetting(key=setting.key, origin=setting.origin, name=name, place=place, **names)

    return unknown


def _mapping(layers: Layers) -> tuple[SettingsMapping, dict[str, Setting]]:
    problems = Problems()
    items: dict[str, Any] = {}
    origins: dict[str, Setting] = {}
    known: list[str] = []
    for setting in layers:
        key = find_name(setting.key, known, any_case=setting.any_case) or setting.key
        value = setting.value
        if setting.is_text:
            try:
                value = conversion.from_text(Any, value)
            except conversion.Mismatch as error:
                shown = "***" if sounds_secret(key) else conversion.show_plain(setting.value)
                problems.add(BadValue(key=key, value=shown, origin=setting.origin, reason=error.reason))
                continue
        parts = flatten({key: value}) if isinstance(value, Mapping) else [((key,), value)]
        for path, part in parts:
            name = f"{key}.{join_key(path[1:])}" if path[1:] else key
            items[name], origins[name] = part, setting
            known.append(name)
    problems.raise_all()
    return SettingsMapping(items), origins
