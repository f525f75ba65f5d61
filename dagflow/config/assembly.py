"""Putting values together: settings with dotted paths, lowest precedence first, become fields of attrs objects.

Tables merge: a table of a higher layer changes the keys that it names and leaves the rest. An empty table empties,
`none` and whole objects replace. Whatever goes wrong is collected, and what cannot be built is FAILED.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from dagflow.config.errors import BadValue, ConflictingSettings, MissingSetting
from dagflow.config.layers import Setting, find_name, flatten
from dagflow.config.problems import Problems
from dagflow.config.values import conversion, hints
from dagflow.config.values.conversion import Mismatch
from dagflow.config.values.hints import kind
from dagflow.errors import ConfigError
from dagflow.errors.shown import HIDDEN, sounds_secret

FAILED = object()


@attrs.frozen
class SettingEntry:
    """A setting, and what is left of its path at the place where we are."""

    path: tuple[str, ...]
    setting: Setting

    def below(self) -> SettingEntry:
        """Return the entry one part further down its path."""
        return SettingEntry(self.path[1:], self.setting)

    def spread(self, table: Mapping[str, Any]) -> list[SettingEntry]:
        """Return an entry for each value in a table that the setting gives."""
        return [SettingEntry(path, attrs.evolve(self.setting, value=value, is_text=False)) for path, value in flatten(table)]


@attrs.define
class Assembly:
    """One pass over some settings.

    Attributes:
        unknown: makes the error for a setting whose part `name` is not known inside `prefix` (dotted, "" for the top).
        problems: all that went wrong.
        origins: dotted path → the setting that decided it.
    """

    unknown: Callable[[Setting, str, str, Sequence[str]], ConfigError]
    problems: Problems = attrs.field(factory=Problems)
    origins: dict[str, Setting] = attrs.field(factory=dict)

    def value(self, hint: Any, current: Any, entries: Sequence[SettingEntry], place: str) -> Any:
        """Return the value of type `hint` that `entries` make of `current` (attrs.NOTHING: there is none yet)."""
        whole: Setting | None = None
        parts: list[SettingEntry] = []
        for entry in entries:
            if entry.path:
                parts.append(entry)
                continue
            table = self.table(hint, current, entry.setting)
            if table is FAILED:
                return FAILED
            if table:
                parts.extend(entry.spread(table))
            else:
                whole, parts = entry.setting, []
        if whole is not None:
            current = self.convert(hint, whole)
            self.origins[place] = whole
        if not parts or current is FAILED:
            return current
        return self.with_parts(hint, current, parts, place)

    def table(self, hint: Any, current: Any, setting: Setting) -> Any:
        """Return the table that a setting gives where a table is wanted, else None."""
        wanted = attrs.has(type(current)) or any(hints.is_table(part) or kind(part) is Any for part in hints.members(hint))
        value = setting.value
        if wanted and setting.is_text and value.lstrip().startswith("{"):
            if any(hints.is_text(part) for part in hints.members(hint)) and not attrs.has(type(current)):
                return None
            try:
                value = conversion.toml_value(hint, value)
            except Mismatch as error:
                self.bad(hint, setting, error)
                return FAILED
        if not wanted or not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            return None
        return value

    def convert(self, hint: Any, setting: Setting) -> Any:
        """Return the whole value of a setting, or FAILED."""
        try:
            if setting.is_text:
                return conversion.from_text(hint, setting.value)
            return conversion.from_value(hint, setting.value, from_code=setting.origin == "code")
        except Mismatch as error:
            self.bad(hint, setting, error)
            return FAILED

    def bad(self, hint: Any, setting: Setting, error: Mismatch) -> None:
        """Note that a value does not fit its type."""
        shown = conversion.show_plain(setting.value, hint)
        words = {"expected": error.expected, "reason": error.reason}
        self.problems.add(BadValue(key=setting.key, value=shown, origin=setting.origin, **words))

    def with_parts(self, hint: Any, current: Any, entries: Sequence[SettingEntry], place: str) -> Any:
        """Return `current` with the fields or keys that `entries` name."""
        if attrs.has(type(current)):
            return self.fields(type(current), current, entries, place)
        classes = [kind(part) for part in hints.members(hint) if hints.is_attrs(part)]
        tables = [part for part in hints.members(hint) if hints.is_dict(part)]
        if classes:
            fitting = (c for c in classes if all(find_name(e.path[0], hints.settable(c), any_case=True) for e in entries))
            return self.fields(next(fitting, classes[0]), attrs.NOTHING, entries, place)
        if tables or any(kind(part) is Any for part in hints.members(hint)):
            inner = hints.element(tables[0], 1) if tables else Any
            return self.keys(inner, current if isinstance(current, Mapping) else {}, entries, place)
        for entry in entries:
            self.problems.add(self.unknown(entry.setting, entry.path[0], place, ()))
        return FAILED

    def keys(self, hint: Any, current: Mapping[str, Any], entries: Sequence[SettingEntry], place: str) -> Any:
        """Return a mapping with the keys that `entries` name replaced. A key holds dots where its value is not a table."""
        nested = any(hints.is_table(part) or kind(part) is Any for part in hints.members(hint))
        groups: dict[str, list[SettingEntry]] = {}
        for entry in entries:
            name = entry.path[0] if nested else ".".join(entry.path)
            groups.setdefault(name, []).append(entry.below() if nested else SettingEntry((), entry.setting))
        result = dict(current)
        for name, group in groups.items():
            result[name] = self.value(hint, current.get(name, attrs.NOTHING), group, f"{place}.{name}")
        return FAILED if any(value is FAILED for value in result.values()) else result

    def group(self, cls: type, entries: Sequence[SettingEntry], place: str) -> dict[str, list[SettingEntry]]:
        """Return the entries by the field of `cls` that they are for, and note those for none as unknown."""
        known = list(hints.settable(cls))
        groups: dict[str, list[SettingEntry]] = {}
        for entry in entries:
            name = find_name(entry.path[0], known, any_case=entry.setting.any_case) if entry.path else None
            if name is None:
                self.problems.add(self.unknown(entry.setting, entry.path[0] if entry.path else "", place, known))
            else:
                groups.setdefault(name, []).append(entry.below())
        return groups

    def fields(self, cls: type, current: Any, entries: Sequence[SettingEntry], place: str) -> Any:
        """Return an object of `cls`: `current` with the fields that `entries` name replaced, or a new one."""
        count = len(self.problems.errors)
        known, given, before = hints.settable(cls), {}, f"{place}." if place else ""
        deciding: dict[str, Setting] = {}
        for name, group in self.group(cls, entries, place).items():
            field = known[name]
            old = getattr(current, field.name) if current is not attrs.NOTHING else default_of(field)
            given[name] = self.value(hints.field_hint(cls, field), old, group, before + name)
            deciding[name] = group[-1].setting
        for name, field in known.items():
            if current is attrs.NOTHING and field.default is attrs.NOTHING and name not in given:
                self.problems.add(missing_setting(cls, before + name, field))
        self.check_each(cls, current, {name: value for name, value in given.items() if value is not FAILED}, deciding)
        if len(self.problems.errors) > count:
            return FAILED
        try:
            return cls(**given) if current is attrs.NOTHING else attrs.evolve(current, **given)
        except (ValueError, TypeError) as error:
            self.problems.add(conflict(cls, current, deciding, given, conversion.reason_of(error)))
            return FAILED

    def check_each(self, cls: type, current: Any, given: dict[str, Any], deciding: dict[str, Setting]) -> None:
        """Run the converter and the validators of each field that was given, so that every error has its key."""
        known = hints.settable(cls)
        try:
            probe: Any = object.__new__(cls)
        except TypeError:
            return  # a class that is made in its own way
        for name, field in known.items():
            old = getattr(current, field.name, attrs.NOTHING) if current is not attrs.NOTHING else default_of(field)
            if name in given or old is not attrs.NOTHING:
                object.__setattr__(probe, field.name, given.get(name, old))
        for name, value in given.items():
            with self.naming(cls, known[name], deciding[name], value, probing=True):
                attrs.setters.validate(probe, known[name], attrs.setters.convert(probe, known[name], value))

    def naming(self, cls: type, field: attrs.Attribute[Any], setting: Setting, value: Any, *, probing: bool = False) -> _Naming:
        """Return a context in which a validator may raise. Its error is noted for the key of `setting`."""
        return _Naming(self, hints.field_hint(cls, field), setting, value, probing)


@attrs.define
class _Naming:
    assembly: Assembly
    hint: Any
    setting: Setting
    value: Any
    probing: bool

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, (ValueError, TypeError)) or isinstance(error, ConfigError):
            # on a probe, what a validator stumbles over else is left to the object itself
            return self.probing and isinstance(error, Exception) and not isinstance(error, ConfigError)
        secret = conversion.holds_secret(self.hint) or sounds_secret(self.setting.key)
        value = self.setting.value if self.setting.is_text else self.value
        shown = HIDDEN if secret else conversion.show_plain(value, self.hint)
        reason = "the check of this setting refuses it" if secret else conversion.reason_of(error)
        self.assembly.problems.add(BadValue(key=self.setting.key, value=shown, origin=self.setting.origin, reason=reason))
        return True


def default_of(field: attrs.Attribute[Any]) -> Any:
    """Return the default of a field, attrs.NOTHING where it has none or needs the object to make it."""
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # Factory is a class at run time
        return attrs.NOTHING if default.takes_self else default.factory()
    return default


def missing_setting(cls: type, key: str, field: attrs.Attribute[Any]) -> MissingSetting:
    """Return the error for a field that was not given."""
    from dagflow.config.values.field_docs import field_docs

    hint = hints.field_hint(cls, field)
    name, expected = hints.type_name(hint), hints.expected(hint)
    return MissingSetting(key=key, type=name, doc=field_docs(cls).get(hints.key_of(field), ""), expected=expected)


def conflict(
    cls: type, current: Any, deciding: Mapping[str, Setting], given: Mapping[str, Any], reason: str
) -> ConflictingSettings:
    """Return the error for values that an object refuses together. It shows those that `reason` names, or all."""
    import re

    known = hints.settable(cls)
    for name, field in known.items():
        value = given.get(name, getattr(current, field.name, None))
        if isinstance(value, str) and value and conversion.holds_secret(hints.field_hint(cls, field)):
            for form in (repr(value)[1:-1], value):
                reason = reason.replace(form, "***")
    named = [name for name in deciding if re.search(rf"\b{re.escape(name)}\b", reason)] or list(deciding)
    lines = []
    for name in named:
        shown = conversion.show_plain(given[name], hints.field_hint(cls, known[name]))
        lines.append(f"{deciding[name].key} = {shown} ({deciding[name].origin})")
    return ConflictingSettings(reason=reason, given=tuple(lines))
