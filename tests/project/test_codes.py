from __future__ import annotations

import importlib
import pkgutil
import string
from collections import defaultdict
from collections.abc import Iterator

import attrs

import dagflow
import dagflow.errors
import operators
from dagflow.errors import (
    ConfigError,
    DagError,
    DagflowError,
    InfrastructureError,
    Interrupted,
    LedgerError,
    LedgerRuleError,
    RunError,
)
from dagflow.errors.codes import classes_by_code
from dagflow.ledger import RULES
from dagflow.render.explanations import example_of


def classes(cls: type[DagflowError]) -> list[type[DagflowError]]:
    return [each for sub in cls.__subclasses__() for each in (sub, *classes(sub))]


def all_errors() -> list[type[DagflowError]]:
    """Return every error class of the framework and of the library."""
    for package in (dagflow, operators):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return [cls for cls in classes(DagflowError) if cls.__module__.startswith(("dagflow.", "operators."))]


def test_every_code_is_that_of_one_error() -> None:
    """A branch of the tree may share its code with the error that tells several of its kind together."""
    users: dict[str, set[str]] = defaultdict(set)
    for cls in all_errors():
        if "code" in vars(cls):
            users[cls.code].add(cls.__name__)
    for rule in RULES:  # of a ledger; some have a class of their own
        users[rule.code].add(rule.name if rule.error is LedgerRuleError else rule.error.__name__)
    assert {code: names for code, names in users.items() if len(names) > 1} == {"DF010": {"DagError", "DagErrors"}}


def test_remedies_are_found_by_code_and_name_the_operator() -> None:
    assert "-D operator.upper.on_error=skip" in classes_by_code()["DF301"].remedy_at("upper")


def names_in(template: str) -> Iterator[str]:
    """Yield the fields that a template names, also in its texts for the values of others."""
    for _, name, spec, _ in string.Formatter().parse(template):
        if name is not None:
            yield name.partition(".")[0]
            yield from names_in(spec or "")
            if spec and spec.startswith("~"):
                yield spec[1:].partition("|")[0]


def has_field(cls: type[DagflowError], name: str) -> bool:
    """Return True for a field, a property or a constant."""
    return hasattr(cls, name) or name in [field.name for field in attrs.fields(cls)]  # type: ignore[arg-type]  # all are attrs classes


def test_templates_name_fields_that_exist() -> None:
    unknown = {cls.__name__: [name for name in names_in(cls.template) if not has_field(cls, name)] for cls in all_errors()}
    assert {name: names for name, names in unknown.items() if names} == {}


def test_a_template_is_not_hidden_by_a_method() -> None:
    own = [cls for cls in all_errors() if "template" in vars(cls)]
    assert len(own) > 200
    assert [cls.__name__ for cls in own if cls.message is not DagflowError.message] == []


def test_a_message_with_a_help_line_needs_no_other_remedy() -> None:
    """Only a message without that line leaves it to `general_remedy`."""
    twice = [cls for cls in all_errors() if "general_remedy" in vars(cls) and "\n  help: " in example_of(cls).message()]
    assert twice == []


def is_of_commands(cls: type[DagflowError]) -> bool:
    """Return whether an error is a command's own way to end, without a code."""
    return cls.__module__.startswith("dagflow.cli.") and cls.__module__ != "dagflow.cli.errors"


def test_every_error_can_be_imported_from_one_package() -> None:
    public = [cls for cls in all_errors() if not is_of_commands(cls)]
    assert [cls for cls in public if getattr(dagflow.errors, cls.__name__, None) is not cls] == []


def test_modules_of_errors_are_those_that_are_searched() -> None:
    homes = {
        cls.__module__ for cls in all_errors() if not is_of_commands(cls) and not cls.__module__.startswith("dagflow.errors.")
    }
    assert homes == set(dagflow.errors.MODULES)


BRANCHES: dict[str, type[DagflowError]] = {
    "0": DagError,
    "2": ConfigError,
    "3": RunError,
    "4": InfrastructureError,
    "5": LedgerError,
    "6": RunError,
    "7": RunError,
    "8": RunError,
    "9": RunError,
}


def test_the_first_digit_of_a_code_says_the_branch_and_the_exit_code() -> None:
    """An unknown name in a command is the command's mistake (DF2xx), also where it is an error of a ledger or of a trace."""
    named = [cls for cls in all_errors() if "code" in vars(cls)]
    for cls in named:
        branch = BRANCHES[cls.code[2]]
        assert issubclass(cls, branch), f"{cls.__name__} has code {cls.code}, but is not a {branch.__name__}"
        assert cls.exit_code == branch.exit_code or cls is Interrupted, f"{cls.__name__} ends with {cls.exit_code}"
        assert not issubclass(cls, ConfigError) or cls.code[2] == "2", f"{cls.__name__} has code {cls.code}"


def test_an_unknown_name_is_not_an_error_class() -> None:
    assert not hasattr(dagflow.errors, "NoSuchError")
    assert not hasattr(dagflow.errors, "run")
