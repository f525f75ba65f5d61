"""`operator.NAME.PROPERTY` and `operator.NAME.port.PORT.ATTRIBUTE`: what can be set once the DAG is known.

Operators are attrs objects with a name; nothing here needs to know more of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from dagflow.config.assembly import FAILED, Assembly, SettingEntry
from dagflow.config.errors import UnknownOperatorName, UnknownPortAttribute, UnknownPortName, UnknownProperty
from dagflow.config.layers import Layers, Setting, find_name, split_key
from dagflow.config.problems import Problems
from dagflow.config.values import hints
from dagflow.config.values.hints import kind
from dagflow.errors import ConfigError

ANY = "*"
Applied = dict[str, Setting]
"""Settings by the dotted property that they decided, with its value in the operator."""


@attrs.frozen
class _Match:
    """A setting for one operator; `rank` orders by precedence: layer, named before `*`, order in the layer."""

    rank: tuple[int, ...]
    path: tuple[str, ...]
    setting: Setting
    wild: bool


def apply_to_operator(operator: Any, properties: Mapping[str, Setting], *, name: str) -> Applied:
    """Set properties of one operator, by dotted path below it (`max_readers`, `reader_context.length`), later ones win.

    Objects in properties are replaced, never changed: two operators may share them. Raises UnknownProperty, BadValue, or
    ConfigErrors with several; then the operator may be half set and is of no use.

    >>> import attrs
    >>> from dagflow.config import Setting
    >>> @attrs.define
    ... class Reader:
    ...     max_readers: int = 16
    >>> reader = Reader()
    >>> apply_to_operator(reader, {"max_readers": Setting("operator.r.max_readers", "8", "-D", is_text=True)}, name="r")
    {'max_readers': Setting(key='operator.r.max_readers', origin='-D')}
    >>> reader
    Reader(max_readers=8)
    """
    entries = [SettingEntry(split_key(path), setting) for path, setting in properties.items()]
    return _apply(operator, name, entries)


def apply_module(name: str, module: Any, layers: Layers) -> Applied:
    """Set the properties of a module before it is filled. Names that it does not have may be those of operators inside.

    Raises what `apply_to_operator` raises.
    """
    mine = sorted((match for _, match in _matches({name: module}, layers, Problems())), key=lambda match: match.rank)
    return _apply(module, name, [SettingEntry(match.path, match.setting) for match in mine if _is_for(match, module)])


def apply_operators(
    operators: Mapping[str, Any], layers: Layers, attributes: Collection[str] = (), modules: Mapping[str, Any] | None = None
) -> dict[str, Applied]:
    """Set the properties of all operators of a DAG.

    Args:
        operators: operator by name; those in modules are called `module.operator`.
        layers: what was given; what is for ports is left out.
        attributes: names that are not properties; these are left out too. See `operator_attributes`.
        modules: module by name, to which `apply_module` has given what is theirs.

    Returns for each operator what was set. Raises UnknownOperatorName, UnknownProperty, BadValue, or ConfigErrors with all.
    """
    problems = Problems()
    modules = modules or {}
    matches = [
        (name, match)
        for name, match in _matches({**operators, **modules}, layers, problems)
        if not _for_port(match.path) and (name in modules or not _attribute(match, attributes))
    ]
    used = {id(match.setting) for name, match in matches if name in modules and _is_for(match, modules[name])}
    applied: dict[str, Applied] = {}
    for name, operator in operators.items():
        mine = sorted((m for other, m in matches if other == name), key=lambda m: m.rank)
        entries = []
        for match in mine:
            if not match.wild or reachable(operator, match.path, any_case=match.setting.any_case):
                used.add(id(match.setting))
                entries.append(SettingEntry(match.path, match.setting))
        applied[name] = {}
        with problems:
            applied[name] = _apply(operator, name, entries)
    for name, match in matches:
        if id(match.setting) in used:
            continue
        if match.wild:
            whose = {"operator": ANY, "operator_class": ""}
            known = sorted({key for operator in operators.values() for key in hints.settable(type(operator))})
        else:
            whose = {"operator": name, "operator_class": type(modules[name]).__name__}
            inside = [other.removeprefix(f"{name}.") for other in (*operators, *modules) if other.startswith(f"{name}.")]
            known = [*hints.settable(type(modules[name])), *inside]
        about = {"key": match.setting.key, "origin": match.setting.origin, "name": ".".join(match.path)}
        problems.add(UnknownProperty(**about, **whose, known=tuple(known)))
    problems.raise_all()
    return applied


def operator_attributes(operators: Iterable[str], attributes: Collection[str], layers: Layers) -> dict[str, dict[str, Setting]]:
    """Return the configured attributes of operators: operator → attribute → setting, as it was written.

    `operators`: the names of those that `*` stands for as well. Unknown operators are the business of `apply_operators`.

    >>> from dagflow.config import operator_attributes, read_layers
    >>> given = operator_attributes(["reader"], ["partitioner"], read_layers(definitions=["operator.reader.partitioner=4"]))
    >>> given["reader"]["partitioner"].value
    '4'
    """
    settings: dict[str, dict[str, Setting]] = {}
    ranked = []
    for name, match in _matches(dict.fromkeys(operators), layers, Problems()):
        attribute = _attribute(match, attributes)
        if attribute is not None:
            ranked.append((match.rank, name, attribute, match.setting))
    for _, name, attribute, setting in sorted(ranked, key=lambda item: item[0]):
        settings.setdefault(name, {})[attribute] = setting
    return settings


def _attribute(match: _Match, attributes: Collection[str]) -> str | None:
    return find_name(match.path[0], attributes, any_case=match.setting.any_case) if len(match.path) == 1 else None


def apply_ports(
    ports: Mapping[str, Iterable[str]], attributes: Mapping[str, Any], layers: Layers
) -> dict[str, dict[str, dict[str, Setting]]]:
    """Return the configured attributes of ports: operator → port → attribute → setting, with its typed value.

    Args:
        ports: the names of each operator's ports, by operator.
        attributes: the type of each attribute that ports have.
        layers: what was given.

    Raises UnknownPortName, UnknownPortAttribute, BadValue, or ConfigErrors with all. Unknown operators are
    the business of `apply_operators`.
    """
    problems = Problems()
    settings: dict[str, dict[str, dict[str, Setting]]] = {}
    ranked: list[tuple[tuple[int, ...], str, str, str, Setting]] = []
    for name, match in _matches(ports, layers, Problems()):
        if not _for_port(match.path):
            continue
        setting, wanted, attribute = match.setting, match.path[1], ".".join(match.path[2:])
        known = find_name(attribute, attributes, any_case=setting.any_case)
        if known is None:
            problems.add(UnknownPortAttribute(key=setting.key, origin=setting.origin, name=attribute, known=tuple(attributes)))
            continue
        mine = list(ports[name])
        chosen = mine if wanted == ANY else [p for p in [find_name(wanted, mine, any_case=setting.any_case)] if p]
        everywhere = {port for theirs in ports.values() for port in theirs}
        if not chosen and wanted != ANY and not (match.wild and find_name(wanted, everywhere, any_case=setting.any_case)):
            whose, has = (ANY, sorted(everywhere)) if match.wild else (name, mine)
            problems.add(UnknownPortName(key=setting.key, origin=setting.origin, operator=whose, name=wanted, known=tuple(has)))
        layer, named, order = match.rank
        ranked += [((layer, named, int(wanted != ANY), order), name, port, known, setting) for port in chosen]
    for _, name, port, attribute, setting in sorted(ranked, key=lambda item: item[0]):
        assembly = Assembly(unknown=_never, problems=problems)
        value = assembly.convert(attributes[attribute], setting)
        if value is not FAILED:
            settings.setdefault(name, {}).setdefault(port, {})[attribute] = attrs.evolve(setting, value=value, is_text=False)
    problems.raise_all()
    return settings


def reachable(operator: Any, path: Sequence[str], *, any_case: bool = False) -> bool:
    """Return True if an operator has the property of a path, or a table with any keys on the way to it."""
    current, hint = operator, type(operator)
    for part in path:
        declared = next((kind(member) for member in hints.members(hint) if hints.is_attrs(member)), None)
        cls = type(current) if attrs.has(type(current)) else declared
        if cls is None:
            return any(hints.is_dict(member) for member in hints.members(hint))
        known = hints.settable(cls)
        name = find_name(part, known, any_case=any_case)
        if name is None:
            return False
        current, hint = getattr(current, known[name].name, None), hints.field_hint(cls, known[name])
    return True


def _is_for(match: _Match, module: Any) -> bool:
    """Return True if a setting that names a module, or `*`, is for the module itself and not for operators inside."""
    path, any_case = match.path, match.setting.any_case
    if _for_port(path):
        return False
    if match.wild:
        return reachable(module, path, any_case=any_case)
    return not path or find_name(path[0], hints.settable(type(module)), any_case=any_case) is not None


def _matches(operators: Mapping[str, Any], layers: Layers, problems: Problems) -> list[tuple[str, _Match]]:
    matches = []
    for number, layer in enumerate(layers.operators().layers):
        for order, setting in enumerate(layer):
            path = setting.path[1:]
            if path[:1] == (ANY,):
                matches += [(name, _Match((number, 0, order), path[1:], setting, True)) for name in operators]
                continue
            length = _name_length(path, operators, setting.any_case)
            if length == 0:
                name = path[0] if path else ""
                problems.add(UnknownOperatorName(key=setting.key, origin=setting.origin, name=name, known=tuple(operators)))
                continue
            name = find_name(".".join(path[:length]), operators, any_case=setting.any_case) or ""
            matches.append((name, _Match((number, 1, order), path[length:], setting, False)))
    return matches


def _name_length(path: Sequence[str], operators: Iterable[str], any_case: bool) -> int:
    """Return the number of parts that are the operator's name, since names in modules hold dots. 0: no such operator."""
    names = list(operators)
    lengths = (n for n in range(len(path), 0, -1) if find_name(".".join(path[:n]), names, any_case=any_case) is not None)
    return next(lengths, 0)


def _for_port(path: Sequence[str]) -> bool:
    return len(path) >= 3 and path[0].lower() == "port"


def _never(setting: Setting, name: str, place: str, known: Sequence[str]) -> ConfigError:
    raise AssertionError("attributes of ports have no parts")


def _apply(operator: Any, name: str, entries: Sequence[SettingEntry]) -> Applied:
    cls = type(operator)

    def unknown(setting: Setting, part: str, place: str, known: Sequence[str]) -> ConfigError:
        whose = {"operator": name, "operator_class": cls.__name__, "inside": place}
        return UnknownProperty(key=setting.key, origin=setting.origin, name=part, known=tuple(known), **whose)

    assembly = Assembly(unknown=unknown)
    fields = hints.settable(cls)
    spread: list[SettingEntry] = []
    for entry in entries:
        table = None if entry.path else assembly.table(cls, operator, entry.setting)
        if isinstance(table, Mapping):
            spread += entry.spread(table)
        elif table is not FAILED:
            spread.append(entry)
    for key, group in assembly.group(cls, spread, "").items():
        field = fields[key]
        value = assembly.value(hints.field_hint(cls, field), getattr(operator, field.name, attrs.NOTHING), group, key)
        if value is not FAILED:
            with assembly.naming(cls, field, group[-1].setting, value):
                setattr(operator, field.name, value)
    assembly.problems.raise_all()
    now = {path: value_at(operator, path) for path in assembly.origins}
    return {path: attrs.evolve(setting, value=now[path], is_text=False) for path, setting in assembly.origins.items()}


def value_at(thing: Any, path: str) -> Any:
    """Return the value at a dotted path below an object, or None."""
    while path:
        if isinstance(thing, Mapping):
            key = max((k for k in thing if path == k or path.startswith(f"{k}.")), key=len, default=None)
            if key is None:
                return None
            thing, path = thing[key], path[len(key) + 1 :]
        else:
            part, _, path = path.partition(".")
            field = hints.settable(type(thing)).get(part) if attrs.has(type(thing)) else None
            thing = None if field is None else getattr(thing, field.name, None)
    return thing
