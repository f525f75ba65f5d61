"""Errors in settings, configuration files and the command line.

No message and no field holds the value of a secret: the code that raises passes `***` instead.
"""

from __future__ import annotations

from dagflow.errors import ConfigError, DagflowError
from dagflow.errors.base import error
from dagflow.errors.wording import suggest


def _as_given(key: str, origin: str) -> str:
    """The key in the spelling that its origin asks for."""
    if origin.startswith("env "):
        return "DAGFLOW_" + key.upper().replace(".", "__")
    return key


@error(kw_only=True)
class UnknownKey(ConfigError):
    """A key has a part that is unknown. `name`: that part; `known`: what may stand there."""

    key: str
    origin: str
    name: str
    known: tuple[str, ...] = ()

    def did_you_mean(self, before: str, after: str = "", known: tuple[str, ...] | None = None) -> str:
        """Return a line with the key that was probably meant, which has another name between two texts; or an empty string."""
        near = suggest(self.name, self.known if known is None else known)
        return "" if near is None else f"\n  did you mean `{_as_given(before + near + after, self.origin)}`?"


@error("DF201", kw_only=True)
class UnknownSetting(UnknownKey):
    """A setting that neither the application nor the run has. `known` are the settings of the application, `known_run` those of the run.

    `name` is the part that is unknown, `place` what it was looked for in (`database` in `database.hots`, empty for the top).
    """

    place: str = ""
    known_run: tuple[str, ...] = ()
    example = {"key": "ouput", "origin": "-D", "name": "ouput", "known": ("output",), "known_run": ("runner", "window")}
    general_remedy = "use a known name; `dagflow config APP` shows all settings"

    def message(self) -> str:
        text = f"there is no setting `{self.key}` ({self.origin})"
        if self.place and not self.known:
            return f"{text}\n  `{self.place}` is a single value, nothing lies below it"
        if self.place:
            near = self.did_you_mean(f"{self.place}.")
            return f"{text}{near}\n  settings in `{self.place}`: {', '.join(self.known)}"
        of_run = self.key.lower().startswith("run.")
        names = self.known_run if of_run else (*self.known, *self.known_run)
        near = self.did_you_mean("run." if of_run else "", known=names)
        text += near
        if not of_run:
            text += f"\n  settings of the application: {', '.join(self.known) or 'none'}"
        if not near:
            text += f"\n  settings of the run: {', '.join(self.known_run)}"
            text += "\n  others: operator.NAME.PROPERTY, operator.NAME.port.PORT.ATTRIBUTE, spark.*"
        return text


@error("DF202", kw_only=True)
class UnknownOperatorName(UnknownKey):
    """`operator.NAME…` where the DAG has no operator of that name."""

    template = (
        "{name:?there is no operator `{name}` for `{key}`|`{key}` does not name an operator} ({origin}){near}\n"
        "  operators: {known:?{known}|none}"
    )
    example = {"key": "operator.raeder.max_readers", "origin": "-D", "name": "raeder", "known": ("reader", "sink")}
    general_remedy = "use the name of an operator; `dagflow config APP` shows all settings"

    @property
    def near(self) -> str:
        """A sentence with the key that was probably meant, or an empty string."""
        return self.did_you_mean("operator.", self.key.removeprefix(f"operator.{self.name}"))


@error("DF203", kw_only=True)
class UnknownProperty(UnknownKey):
    """`operator.NAME.PROPERTY` where the operator has no such property; `name` is the part that is unknown.

    `inside` is where it was looked for: empty for the operator itself, `reader_context` for a part of it.
    `operator` is `*` when no operator at all has the property.
    """

    operator: str
    operator_class: str
    inside: str = ""
    template = (
        "{operator:=*?no operator has a property `{name}`, as `{key}` asks for ({origin}){near}"
        "|{name:?{place} has no property `{name}`|`{key}` does not name a property of {place}} ({origin}){near}\n"
        "  {known:?its properties: {known}|it has no properties}}"
    )
    example = {
        "key": "operator.reader.max_reader",
        "origin": "-D",
        "operator": "reader",
        "operator_class": "BlockReader",
        "name": "max_reader",
        "known": ("min_readers", "max_readers"),
    }
    general_remedy = "use a known property; `dagflow config APP` shows them all"

    @property
    def place(self) -> str:
        """The operator, or a part of it."""
        return (f"`{self.inside}` of " if self.inside else "") + f"operator `{self.operator}` ({self.operator_class})"

    @property
    def near(self) -> str:
        """A sentence with the key that was probably meant, or an empty string."""
        return self.did_you_mean(".".join(part for part in ("operator", self.operator, self.inside, "") if part) + ".")


@error("DF204", kw_only=True)
class UnknownPortName(UnknownKey):
    """`operator.NAME.port.PORT…` where the operator has no port of that name; `operator` is `*` when no operator has it."""

    operator: str
    template = (
        "{operator:=*?no operator has a|operator `{operator}` has no} port `{name}`, as `{key}` asks for ({origin}){near}\n"
        "  ports: {known:?{known}|none}"
    )
    example = {
        "key": "operator.reader.port.message.partition_parallel",
        "origin": "-D",
        "operator": "reader",
        "name": "message",
        "known": ("messages",),
    }
    general_remedy = "use the name of a port"

    @property
    def near(self) -> str:
        """A sentence with the key that was probably meant, or an empty string."""
        before, _, after = self.key.partition(f".port.{self.name}")
        return self.did_you_mean(f"{before}.port.", after)


@error("DF205", kw_only=True)
class UnknownPortAttribute(UnknownKey):
    """`operator.NAME.port.PORT.ATTRIBUTE` where ports have no such attribute."""

    template = (
        "ports have no attribute `{name}`, as `{key}` asks for ({origin}){near}\n  attributes of ports: {known:?{known}|none}"
    )
    example = {
        "key": "operator.sink.port.input.paralel",
        "origin": "-D",
        "name": "paralel",
        "known": ("partition_by", "partition_parallel"),
    }
    general_remedy = "use a known attribute"

    @property
    def near(self) -> str:
        """A sentence with the key that was probably meant, or an empty string."""
        return self.did_you_mean(self.key.removesuffix(self.name))


@error("DF206", kw_only=True)
class BadValue(ConfigError):
    """A value of the wrong type, or one that a validator refuses. `value` is as shown: `***` for secrets."""

    key: str
    value: str
    origin: str
    expected: str = ""
    reason: str = ""
    template = "`{key}` cannot be {value} ({origin}){reason:?\n  because: {reason}}{expected:?\n  expected: {expected}}"
    example = {"key": "operator.reader.max_readers", "value": "'many'", "origin": "-D", "expected": "an integer"}
    general_remedy = "give a value of the expected kind; docs/reference/settings.md lists how values are written"


@error("DF207", kw_only=True)
class MissingSetting(ConfigError, KeyError):
    """A setting without a default was not given. `type` is empty where the application has no class for its settings."""

    key: str
    type: str = ""
    doc: str = ""
    expected: str = ""
    template = (
        "the setting `{key}` is missing"
        "{doc:?\n  what it is: {doc}}"
        "{type:?\n  its type: {type}{expected:? ({expected})}}\n"
        "  give it: -D {key}=…, or {variable}=… in the environment, or in a --conf file"
    )
    example = {"key": "output", "type": "str", "doc": "the folder that results are written to", "expected": "a string"}
    general_remedy = "give the setting: -D KEY=VALUE, DAGFLOW_KEY in the environment, or in a --conf file"

    @property
    def variable(self) -> str:
        """The name of the variable of the environment."""
        return _as_given(self.key, "env ")


@error("DF208", kw_only=True)
class ConflictingSettings(ConfigError):
    """Two settings contradict each other. `given` are lines `key = value (origin)`."""

    reason: str
    given: tuple[str, ...] = ()
    template = "settings that contradict each other: {reason}{given:?\n  {given:\n  }}"
    example = {
        "reason": "a run ends once its input is read, or continues",
        "given": ("once = true (--once)", "continuous = true (-D)"),
    }
    general_remedy = "leave out one of the settings"


@error("DF209", kw_only=True)
class BadConfFile(ConfigError):
    """A configuration file is not TOML. The line itself is not shown, since it may hold a secret."""

    path: str
    reason: str
    line: int | None = None
    column: int | None = None
    template = (
        "{path}{line:?:{line}}: this is not TOML: {reason}{column:? (column {column})}\n"
        '  text stands in quotes: output = "out"; so does `*`: [operator."*"]; lists are like ["a", "b"]'
    )
    example = {"path": "conf.toml", "reason": "Invalid value", "line": 3, "column": 10}
    general_remedy = "write the line as TOML: text stands in quotes, lists in brackets"


@error("DF210", kw_only=True)
class ConfFileMissing(ConfigError):
    """A configuration file is missing or cannot be read."""

    path: str
    reason: str
    template = "the configuration file `{path}` cannot be read: {reason}"
    example = {"path": "conf.toml", "reason": "no such file"}
    general_remedy = "name a file that is there and can be read"


@error("DF211", kw_only=True)
class BadDefinition(ConfigError):
    """`-D` is not followed by KEY=VALUE. Only the key is shown."""

    text: str
    example = {"text": "output"}
    general_remedy = "write -D KEY=VALUE"

    def message(self) -> str:
        if self.text.startswith("="):
            return "-D has no key before `=`\n  write -D KEY=VALUE, for example -D output=out"
        return f"-D {self.text} has no `=` and no value\n  write -D {self.text or 'KEY'}=VALUE"


@error("DF214", kw_only=True)
class RepeatedDefinition(ConfigError):
    """`-D` gives one key several values. `values` are `***` where they may be secrets; `as_list`: both as one, where a list is possible."""

    key: str
    values: tuple[str, ...]
    as_list: str = ""
    example = {"key": "input", "values": ("a", "b"), "as_list": '["a", "b"]'}
    general_remedy = "leave one of them out, or give both as one list"

    def message(self) -> str:
        import shlex

        shown = "" if "***" in self.values else f": {', '.join(map(repr, self.values))}"
        lines = [f"`{self.key}` has {len(self.values)} values (-D){shown}"]
        if self.as_list:
            lines.append(f"  a list is one value: -D {shlex.quote(f'{self.key}={self.as_list}')}")
        return "\n".join([*lines, "  otherwise leave the others out"])


@error("DF212", kw_only=True)
class NotASettingsClass(ConfigError):
    """The class that `conf` is annotated with is not made by attrs."""

    name: str
    where: str = ""
    template = (
        "`{name}` cannot hold settings: it is not an attrs class{where:? ({where})}\n  write @attrs.define above `class {name}`"
    )
    example = {"name": "Settings", "where": "app.py:12"}
    general_remedy = "write @attrs.define above the class"


@error("DF213", kw_only=True)
class ReservedSettingName(ConfigError):
    """A setting has the name with which other keys begin, so no configuration could reach it."""

    name: str
    class_name: str
    template = (
        "`{class_name}.{name}` is a reserved name: keys that begin with `{name}` have another meaning\n"
        "  give it another name, for example `{name}_name`"
    )
    example = {"name": "operator", "class_name": "Settings"}
    general_remedy = "give the setting another name"


@error("DF299", kw_only=True)
class ConfigErrors(ConfigError):
    """Several problems, reported together."""

    errors: tuple[DagflowError, ...]
    general_remedy = "each problem in the list has its own remedy"

    def message(self) -> str:
        lines = [f"{len(self.errors)} problems in the configuration"]
        for number, each in enumerate(self.errors, 1):
            first, *rest = each.message().split("\n")
            lines += [f"{number}. [{each.code}] {first}", *(f"   {line}" for line in rest)]
        return "\n".join(lines)
