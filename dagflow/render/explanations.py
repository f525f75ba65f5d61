"""Every error that dagflow can raise: its cause, an example and the remedy. docs/reference/errors.md is made of it."""

from __future__ import annotations

import inspect
import re
from typing import Any

import attrs

from dagflow.errors import ConfigError, DagError, DagflowError, InfrastructureError, RunError
from dagflow.errors.codes import classes_by_code
from dagflow.errors.wording import suggest
from dagflow.render.style import Style

_BRANCHES = (
    ("DF0", "The DAG is wrong", DagError),
    ("DF2", "A setting or the command line is wrong", ConfigError),
    ("DF3", "A run failed", RunError),
    ("DF4", "The environment: Java, cluster, permissions, disk", InfrastructureError),
    ("DF5", "A ledger is damaged, or cannot be appended to", RunError),
    ("DF6", "A file cannot be scanned", RunError),
    ("DF7", "A run failed, more causes", RunError),
    ("DF8", "A run failed, still more causes", RunError),
    ("DF9", "A run failed, further causes", RunError),
)


@attrs.frozen
class Explanation:
    """The explanation of one code.

    Attributes:
        name: the class, or "" for a rule of the ledger.
        cause: when the error is raised.
        example: a message as users read it; empty for codes that stand for a whole branch.
        remedy: what to do.
    """

    code: str
    name: str
    cause: str
    example: str
    remedy: str
    exit_code: int

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return attrs.asdict(self)


def explanations() -> dict[str, Explanation]:
    """Return the explanations of all codes, in their order.

    >>> explanations()["DF016"].cause
    'The application has no operators.'
    """
    single = {code: _of_class(cls) for code, cls in classes_by_code().items()}
    return dict(sorted({**_of_rules(), **single}.items()))


def explain(code: str) -> Explanation:
    """Return the explanation of a code (`DF012`, `df012`, `012`) or class. Raises LookupError with the nearest class."""
    known = explanations()
    wanted = code.strip().upper()
    wanted = wanted if wanted.startswith("DF") else f"DF{wanted}"
    by_name = {each.name.upper(): each for each in known.values() if each.name}
    entry = known.get(wanted) or by_name.get(code.strip().upper())
    if entry is None:
        near = suggest(code, [each.name for each in known.values() if each.name])  # codes that look alike mean other things
        raise LookupError(
            f"there is no error {code!r}." + (f" Did you mean {near}?" if near else "") + " `dagflow explain` lists all."
        )
    return entry


def explanation_text(found: Explanation, style: Style | None = None) -> str:
    """Return one explanation as text for a terminal."""
    style = style or Style()
    head = style.paint("bold", f"{found.code} {found.name}".rstrip())
    parts = [f"{head}  (exit code {found.exit_code})", found.cause]
    if found.example:
        parts.append(style.paint("cyan", "Example") + "\n" + _indented(found.example))
    if found.remedy:
        parts.append(style.paint("cyan", "Remedy") + "\n" + _indented(found.remedy))
    return "\n\n".join(parts)


def list_text() -> str:
    """Return all codes, one per line."""
    return "\n".join(f"{each.code}  {each.name or 'rule of the ledger':<24}  {each.cause}" for each in explanations().values())


def errors_page() -> str:
    """Return docs/reference/errors.md."""
    listed = explanations().values()
    lines = [
        "# Errors",
        "",
        "Each error has a code. `dagflow explain CODE` prints its section. Programs import the classes from `dagflow.errors`.",
        "The first digit of a code says what is wrong, and with which exit code a command ends.",
        "",
        "This page is made from the classes: `dagflow explain --markdown > docs/reference/errors.md`.",
        "",
        "| codes | what is wrong | exit code |",
        "| --- | --- | --- |",
        *(f"| [{digit}xx](#{_anchor(digit, title)}) | {title} | {branch.exit_code} |" for digit, title, branch in _BRANCHES),
        "",
        "`Interrupted` (DF308) is the exception: a run that was stopped from outside ends with 130.",
    ]
    for digit, title, _ in _BRANCHES:
        lines += ["", f"## {digit}xx: {title}"]
        for each in listed:
            if each.code.startswith(digit):
                lines += _section(each)
    return "\n".join(lines) + "\n"


def _section(each: Explanation) -> list[str]:
    if not each.name:  # one line per rule
        return ["", f"**{each.code}** {each.cause}"]
    lines = ["", f"### {each.code} {each.name}", "", each.cause]
    if each.example:
        lines += ["", "```text", each.example, "```"]
    remedy = " ".join(each.remedy.split())
    if remedy not in " ".join(each.example.split()):  # else the example ends with it
        lines += ["", "Remedy: " + remedy.replace("](", r"]\(")]
    return lines


def _anchor(digit: str, title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", f"{digit}xx: {title}".lower()).replace(" ", "-")


def _of_class(cls: type[DagflowError]) -> Explanation:
    if not (cls.template or cls.message is not DagflowError.message) or not _is_complete(cls):
        return Explanation(cls.code, cls.__name__, cause_of(cls), "", cls.general_remedy, cls.exit_code)
    example = example_of(cls).message()
    return Explanation(cls.code, cls.__name__, cause_of(cls), example, remedy_in(example) or cls.general_remedy, cls.exit_code)


def _is_complete(cls: type[DagflowError]) -> bool:
    """Return True if the example has all fields without a default. A test finds classes of ours where it lacks some."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)  # type: ignore[arg-type]  # all errors are attrs classes
    names = {field.name for field in fields if field.default is attrs.NOTHING} - {"problems", "errors"}
    return names <= set(cls.example)


def _of_rules() -> dict[str, Explanation]:
    from dagflow.ledger import RULES

    remedy = "`dagflow verify` names the entries; restore the ledger from a copy, or correct what is to be appended"
    return {rule.code: Explanation(rule.code, "", f"{rule.sentence.rstrip('.')}.", "", remedy, 1) for rule in RULES}


def example_of(cls: type[DagflowError]) -> DagflowError:
    """Return an error of a class, with the fields of its example; of a class for several errors, with two of them."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)  # type: ignore[arg-type]  # all errors are attrs classes
    for name in ("problems", "errors"):
        if name in [field.name for field in fields]:
            return cls(**{name: tuple(map(example_of, _members(cls)))})
    return cls(**cls.example)


def _members(cls: type[DagflowError]) -> list[type[DagflowError]]:
    members = [each for each in classes_by_code().values() if issubclass(each, cls.__bases__[0]) and each.example]
    return sorted(members, key=lambda each: each.code)[:2]


def cause_of(cls: type[DagflowError]) -> str:
    """Return the sentences of a docstring that state the cause; those that begin with a field's name in backticks do not."""
    paragraph = " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].split())
    sentences = re.split(r"(?<=[.:;]) (?=`\w+`)", paragraph)
    return sentences[0].rstrip(".:;") + "."


def remedy_in(message: str) -> str:
    r"""Return what follows `help:` in a message, or an empty string.

    >>> remedy_in("a is wrong\n  help: write b\n        or c")
    'write b\nor c'
    """
    _, mark, remedy = message.partition("\n  help: ")
    return inspect.cleandoc(remedy) if mark else ""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else line for line in text.split("\n"))
