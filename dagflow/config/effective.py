"""Every effective value with its origin: what `dagflow config APP` prints. Pure functions; secrets are shown as `***`."""

from __future__ import annotations

import enum
import pathlib
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dagflow.config.assembly import default_of
from dagflow.config.layers import Layers, Setting, spark_conf
from dagflow.config.settings import assemble_run_settings, assemble_settings
from dagflow.config.values import hints, units
from dagflow.config.values.field_docs import field_docs
from dagflow.errors.shown import HIDDEN, sounds_secret, visible, without_secrets

APPLICATION, RUN, SPARK = "application", "run", "spark"


@attrs.frozen
class SettingRow:
    """One effective value, ready to be shown.

    `group`: `application`, `run`, `spark`, `module NAME (Class)` or `operator NAME (Class)`.
    """

    key: str
    value: str
    origin: str
    type: str
    doc: str
    group: str


def effective(
    settings_class: type | None,
    layers: Layers,
    *,
    operators: Mapping[str, Any] | None = None,
    applied: Mapping[str, Mapping[str, Setting]] | None = None,
    ports: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
    applied_ports: Mapping[str, Mapping[str, Mapping[str, Setting]]] | None = None,
    attributes: Mapping[str, Mapping[str, Setting]] | None = None,
    modules: Mapping[str, Any] | None = None,
    only_given: bool = False,
) -> list[SettingRow]:
    """Return all effective values, in the order in which they are declared.

    Args:
        settings_class: the class of the application's settings, None if it has none.
        layers: what was given.
        operators: the DAG's operators by name, after `apply_operators`.
        applied: what `apply_operators` and `apply_module` returned, by the names of operators and modules.
        ports: operator → port → attribute → value, without what configuration says.
        applied_ports: what `apply_ports` returned.
        attributes: what `operator_attributes` returned.
        modules: the DAG's modules by name, after `apply_module`.
        only_given: True leaves out properties of operators and modules that have their defaults, and the docs, for which the
            sources of all classes are read.

    Raises what `build_settings` and `build_run_settings` raise.
    """
    settings, origins = assemble_settings(settings_class, layers)
    if attrs.has(type(settings)):
        rows = list(_object_rows(settings, origins, "", APPLICATION, with_docs=not only_given))
    else:
        rows = [_plain_row(key, value, origins[key].origin, APPLICATION) for key, value in settings.items()]
    run, run_origins = assemble_run_settings(layers)
    run_rows = _object_rows(run, run_origins, "", RUN, with_docs=not only_given)
    rows += [attrs.evolve(row, key=f"run.{row.key}") if row.key in layers.names else row for row in run_rows]
    rows += [_plain_row(key, setting.value, setting.origin, SPARK) for key, setting in spark_conf(layers).items()]
    for name, module in (modules or {}).items():
        rows += properties("module", name, module, applied, only_given=only_given)
    for name, operator in (operators or {}).items():
        rows += properties("operator", name, operator, applied, only_given=only_given)
        group = group_of("operator", name, operator)
        for attribute, said in (attributes or {}).get(name, {}).items():
            rows.append(_plain_row(f"operator.{name}.{attribute}", said.value, said.origin, group))
        given = (applied_ports or {}).get(name, {})
        for port, of_port in (ports or {}).get(name, {}).items():
            for attribute, value in {**of_port, **given.get(port, {})}.items():
                setting = given.get(port, {}).get(attribute)
                key = f"operator.{name}.port.{port}.{attribute}"
                if setting is None:
                    rows.append(_plain_row(key, value, "default" if value is None else "code", group))
                else:
                    rows.append(_plain_row(key, setting.value, setting.origin, group))
    return rows


def group_of(kind: str, name: str, thing: Any) -> str:
    """Return the group of the rows of an operator or a module."""
    return f"{kind} {name} ({type(thing).__name__})"


def properties(
    kind: str, name: str, thing: Any, applied: Mapping[str, Mapping[str, Setting]] | None, *, only_given: bool = False
) -> Iterable[SettingRow]:
    """Yield the rows of the properties of an operator or a module (`kind`); see `effective`."""
    before, group = f"operator.{name}.", group_of(kind, name, thing)
    yield from _object_rows(thing, (applied or {}).get(name, {}), before, group, only_given=only_given)


def declared(settings_class: type, before: str = "") -> Iterable[SettingRow]:
    """Yield the settings of a class, with those of attrs objects among its defaults. `origin` is `required` or `default`.

    >>> @attrs.define
    ... class Settings:
    ...     input: str
    ...     readers: int = 4
    >>> [(row.key, row.type, row.origin, row.value) for row in declared(Settings)]
    [('input', 'str', 'required', ''), ('readers', 'int', 'default', '4')]
    """
    docs = field_docs(settings_class)
    for key, field in hints.settable(settings_class).items():
        hint, default = hints.field_hint(settings_class, field), default_of(field)
        is_required = field.default is attrs.NOTHING
        value = "" if default is attrs.NOTHING else HIDDEN if default and sounds_secret(key) else show(default, hint)
        origin = "required" if is_required else "default"
        yield SettingRow(before + key, value, origin, hints.type_name(hint), docs.get(key, ""), APPLICATION)
        if attrs.has(type(default)):
            yield from declared(type(default), f"{before}{key}.")


def _plain_row(key: str, value: Any, origin: str, group: str) -> SettingRow:
    return SettingRow(key, HIDDEN if sounds_secret(key) else show(value), origin, "", "", group)


def _object_rows(
    thing: Any,
    origins: Mapping[str, Setting],
    before: str,
    group: str,
    place: str = "",
    above: str = "",
    base: Any = None,
    *,
    with_docs: bool = True,
    only_given: bool = False,
) -> Iterable[SettingRow]:
    """Yield the rows of an object's fields, and those of attrs objects in it. `above` is the origin of the whole.

    `base`: the object of the same class that is there by default, None: that of the class's own defaults.
    """
    cls = type(thing)
    docs = field_docs(cls) if with_docs and not only_given else {}
    for key, field in hints.settable(cls).items():
        hint, value, path = hints.field_hint(cls, field), getattr(thing, field.name), place + key
        nested = attrs.has(type(value)) and not isinstance(value, type) and not hints.is_secret(hint)
        nested = nested and (bool(_below(path, origins)) or not _has_text(value))
        default = _default(field, thing) if base is None else getattr(base, field.name)
        origin = _origin(path, value, default, origins, above)
        if not only_given or origin != "default":
            is_hidden = isinstance(value, str | bytes) and value and sounds_secret(key)
            shown = type(value).__name__ if nested else HIDDEN if is_hidden else show(value, hint)
            yield SettingRow(before + path, shown, origin, hints.type_name(hint), docs.get(key, ""), group)
        if nested:
            whole = origins[path].origin if path in origins else above
            below = default if type(default) is type(value) else None
            yield from _object_rows(
                value, origins, before, group, f"{path}.", whole, below, with_docs=with_docs, only_given=only_given
            )


def _below(path: str, origins: Mapping[str, Setting]) -> list[str]:
    """Return the origins of settings for parts of a value."""
    return list(dict.fromkeys(setting.origin for other, setting in origins.items() if other.startswith(f"{path}.")))


def _origin(path: str, value: Any, default: Any, origins: Mapping[str, Setting], above: str) -> str:
    parts = _below(path, origins)
    if path in origins:
        return ", ".join(dict.fromkeys([origins[path].origin, *(parts if isinstance(value, Mapping) else [])]))
    if parts and (isinstance(value, Mapping) or type(value) is not type(default)):
        return ", ".join(parts)
    if above:
        return above
    # of an object of which only parts were given, the rows below tell which
    return "default" if parts or _same(value, default) else "code"


def _default(field: attrs.Attribute[Any], thing: Any) -> Any:
    """Return the value that the constructor gives a field that was left out."""
    default: Any = field.default
    try:
        own = isinstance(default, attrs.Factory) and default.takes_self  # type: ignore[arg-type]  # Factory is a class
        default = default.factory(thing) if own else default_of(field)
        return default if default is attrs.NOTHING else attrs.setters.convert(thing, field, default)
    except Exception:  # noqa: BLE001  # made for objects that are not whole yet; then there is nothing to compare with
        return attrs.NOTHING


def _same(value: Any, default: Any) -> bool:
    try:
        if value is default or (type(value) is type(default) and bool(value == default)):
            return True
        # attrs objects may compare by identity: two fresh ones of the same fields are the same default
        return type(value) is type(default) and attrs.has(type(value)) and all(
            _same(getattr(value, a.name), getattr(default, a.name)) for a in attrs.fields(type(value))
        )  # fmt: skip
    except Exception:  # noqa: BLE001  # expressions and arrays compare into something that is neither true nor false
        return False


def show(value: Any, hint: Any = Any) -> str:
    """Return a value as users would write it: sizes and durations in words, lists as TOML arrays, secrets, in URLs too, as `***`.

    >>> from dagflow.config import Bytes
    >>> show(67108864, Bytes), show(["a", "b"]), show(None), show(""), show(True)
    ('64MiB', '["a", "b"]', 'none', '""', 'true')
    """
    if value is not None and hints.is_secret(hint):
        return HIDDEN
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        value = without_secrets(value)
        return value if value and value == value.strip() and value.isprintable() else _quoted(value)
    return without_secrets(_inner(value, hint))


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _inner(value: Any, hint: Any) -> str:
    if value is not None and hints.is_secret(hint):
        return HIDDEN
    if value is None:
        return "none"
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return _number(value, hint)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return _quoted(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, re.Pattern):
        return str(value.pattern)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        part = next((m for m in hints.members(hint) if hints.is_list(m)), Any)
        return f"[{', '.join(_inner(item, hints.element(part)) for item in items)}]"
    if isinstance(value, Mapping):
        part = next((m for m in hints.members(hint) if hints.is_dict(m)), Any)
        pairs = (f"{key} = {_inner(item, hints.element(part, 1))}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if attrs.has(type(value)) and not isinstance(value, type):
        cls: Any = type(value)
        if _has_text(value):
            return str(value)
        parts = (f"{a.name}={_inner(getattr(value, a.name), hints.field_hint(cls, a))}" for a in attrs.fields(cls))
        return f"{cls.__name__}({', '.join(parts)})"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def _has_text(value: Any) -> bool:
    """Return whether an attrs object is shown as its author wants it to be, `col('price') > 5`, since it holds no secret."""
    cls: Any = type(value)
    code = getattr(cls.__repr__, "__code__", None)
    by_attrs = code is not None and code.co_filename.startswith("<attrs generated")
    is_own = cls.__str__ is not object.__str__ or not (by_attrs or cls.__repr__ is object.__repr__)
    return is_own and not _holds_secret(value)


def _holds_secret(value: Any) -> bool:
    cls: Any = type(value)
    return any(
        hints.is_secret(hints.field_hint(cls, field))
        or sounds_secret(field.name)
        or (attrs.has(type(part := getattr(value, field.name))) and not isinstance(part, type) and _holds_secret(part))
        for field in attrs.fields(cls)
    )


def _number(value: float, hint: Any) -> str:
    unit = next((u for u in map(hints.unit_of, hints.members(hint)) if u), None)
    if unit == "bytes" and isinstance(value, int):
        return units.format_size(value)
    if unit == "seconds":
        return units.format_seconds(value)
    if unit == "milliseconds" and isinstance(value, int):
        return units.format_millis(value)
    return repr(value)


def render_text(rows: Iterable[SettingRow], width: int = 80) -> str:
    """Return the rows as text: a block for each group, with key, value, origin, type and doc of each value.

    What does not fit into the width stands on lines of its own, below key and value.

    >>> print(render_text([SettingRow("prefix", ".", "default", "str", "what lines start with", "application")]))
    application
      prefix = .  (default)  str: what lines start with
    """
    rows = visible(list(rows))
    lines: list[str] = []
    for group in dict.fromkeys(row.group for row in rows):
        mine = [row for row in rows if row.group == group]
        key_width = max(len(row.key) for row in mine)
        value_width = min(32, max(len(row.value) for row in mine))
        origin_width = max(len(row.origin) for row in mine) + 2
        lines += [""] * bool(lines) + [group]
        if key_width + value_width + origin_width + 7 > width:
            key_width = value_width = origin_width = 0  # nothing would stand below each other
        for row in mine:
            about = ": ".join(part for part in (row.type, row.doc) if part)
            value, origin = f"  {row.key:{key_width}} = {row.value:{value_width}}", f"({row.origin})"
            head = f"{value}  {origin:{origin_width}}"
            if len(f"{head}  {about}") <= width:
                lines.append(f"{head}  {about}".rstrip())
                continue
            if len(head.rstrip()) > width:
                head, about = value, f"{origin}  {about}"
            lines += [
                head.rstrip(),
                *textwrap.wrap(about, max(26, width), break_long_words=False, initial_indent=" " * 6, subsequent_indent=" " * 6),
            ]
    return "\n".join(lines)


def render_json(rows: Iterable[SettingRow]) -> str:
    """Return the rows as a JSON array of objects with `key`, `value` (text, as shown), `origin`, `type`, `doc` and `group`."""
    import json

    return json.dumps([attrs.asdict(row) for row in rows], indent=2, ensure_ascii=False)
