"""Errors of a ledger: broken rules, damaged or missing entries and files, and conflicts between writers."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error
from dagflow.errors.wording import did_you_mean, known_names


@error
class LedgerError(RunError):
    """A ledger cannot be read or appended to."""

    code: ClassVar[str] = "DF500"
    is_fatal: ClassVar[bool] = True


@error
class LedgerRuleError(LedgerError, ValueError):
    """An entry breaks a rule of the ledger. `rule`: the rule's code; `sentence`: its text. `RULES` lists all rules."""

    seq: int
    field: str
    expected: object
    actual: object
    rule: str = "DF501"
    sentence: str = ""
    code: ClassVar[str] = "DF501"
    example = {
        "seq": 5,
        "field": "prev_hash",
        "expected": "sha256:ab…",
        "actual": "sha256:cd…",
        "rule": "DF522",
        "sentence": "An entry has the hash of the entry before it; the first has none",
    }
    general_remedy = "`dagflow verify` lists all damage; restore the ledger from a copy"

    def __attrs_post_init__(self) -> None:
        self.__dict__["code"] = self.rule  # users look up the rule, not the class

    def message(self) -> str:
        return (
            f"entry {self.seq}: {self.field} is {_shown(self.actual)}, expected {_shown(self.expected)} (rule: {self.sentence})"
        )


@error
class NothingAdded(LedgerRuleError):
    """An AddData event changes nothing."""

    code: ClassVar[str] = "DF538"
    example = {
        "seq": 5,
        "field": "event",
        "expected": "something new",
        "actual": "an AddData that changes nothing",
        "sentence": "An AddData changes something",
    }
    general_remedy = "append no entry for a window that changes nothing"


@error
class NothingExecuted(LedgerRuleError):
    """An ExecuteQuery event changes nothing."""

    code: ClassVar[str] = "DF539"
    example = {
        "seq": 5,
        "field": "event",
        "expected": "something new",
        "actual": "an ExecuteQuery that changes nothing",
        "sentence": "An ExecuteQuery changes something",
    }
    general_remedy = "append no entry for a window that changes nothing"


@error
class InputDiverged(LedgerRuleError):
    """An ExecuteQuery contradicts the ledger of one of its inputs."""

    rule: str = "DF559"
    sentence: str = "An ExecuteQuery agrees with the ledgers of its inputs"
    code: ClassVar[str] = "DF559"
    example = {"seq": 5, "field": "query_inputs[0].new_block_hash", "expected": "sha256:ab…", "actual": "sha256:cd…"}
    general_remedy = "check the ledger of the input with `dagflow verify`"


def _shown(value: object) -> str:
    if value is None:
        return "absent"
    text = repr(value) if not isinstance(value, str) or "\n" in value or value == "" else value
    return text if len(text) <= 200 else text[:197] + "..."


@error
class LedgerDamaged(LedgerError):
    """A stored ledger differs from what was written."""

    place: str
    seq: int | None
    reason: str
    code: ClassVar[str] = "DF502"
    example = {"place": "out", "seq": 5, "reason": "it is not the entry that was written"}

    def message(self) -> str:
        where = "" if self.seq is None else f", entry {self.seq}"
        return f"{self.place}{where}: {self.reason}\n  help: restore it from a copy; `dagflow verify` lists all damage"


@error
class EntryMalformed(LedgerDamaged):
    """The bytes of an entry are not a valid entry."""

    code: ClassVar[str] = "DF503"
    example = {"place": "out", "seq": 5, "reason": "its bytes are cut short"}


@error
class EntryMissing(LedgerDamaged):
    """An entry is missing, although later entries exist."""

    code: ClassVar[str] = "DF504"
    example = {"place": "out", "seq": 5, "reason": "it is missing, but entry 6 is there"}


@error
class LedgerCut(LedgerDamaged):
    """The newest entries of the ledger are missing."""

    code: ClassVar[str] = "DF505"
    example = {"place": "out", "seq": 6, "reason": "it was written and is not there: the end of the ledger is lost"}


@error
class EntryRewritten(LedgerDamaged):
    """An entry does not have the hash that was recorded for it."""

    code: ClassVar[str] = "DF506"
    example = {"place": "out", "seq": 5, "reason": "its hash is sha256:cd…, but sha256:ab… was written"}


@error
class ForeignObject(LedgerDamaged):
    """A file among the entries is not an entry."""

    code: ClassVar[str] = "DF507"
    example = {"place": "out", "seq": None, "reason": "notes.txt is not an entry"}


@error
class ObjectMissing(LedgerDamaged):
    """A data file that an entry names does not exist."""

    code: ClassVar[str] = "DF508"
    example = {"place": "out", "seq": 5, "reason": "part-3.txt is not there"}


@error
class ObjectDamaged(LedgerDamaged):
    """A data file differs from what its entry records."""

    code: ClassVar[str] = "DF509"
    example = {"place": "out", "seq": 5, "reason": "part-3.txt has 7 bytes, not 12"}


@error
class FileNotKept(LedgerDamaged):
    """An entry keeps a file that was not content of the dataset before it, or was another one."""

    code: ClassVar[str] = "DF841"
    example = {"place": "out", "seq": 5, "reason": "it keeps part-3.txt, which was not content before"}


@error
class CurrentDiffers(LedgerDamaged):
    """The name `current` of a dataset does not lead to the snapshot that is its content. Readers of the ledger are right."""

    remedy: str
    code: ClassVar[str] = "DF518"
    example = {
        "place": "out",
        "seq": 5,
        "reason": "current leads to _snapshots/w000002, and the content is _snapshots/w000004",
        "remedy": "ln -sfn _snapshots/w000004 out/current",
    }

    def message(self) -> str:
        return f"{self.place}, entry {self.seq}: {self.reason}\n  help: {self.remedy}"


@error
class HeadMoved(LedgerError):
    """Another writer has appended an entry in the meantime."""

    place: str
    expected: str
    actual: str
    code: ClassVar[str] = "DF510"
    example = {"place": "out", "expected": "4", "actual": "5"}

    def message(self) -> str:
        return (
            f"{self.place}: the newest entry is {self.actual}, not {self.expected}: another writer was faster\n"
            "  help: nothing was written; call resume() again, and plan from the new state"
        )


@error
class WindowConflict(LedgerError):
    """Another pipeline has committed a window under the same application id."""

    place: str
    app_id: str
    window_id: int
    seq: int
    field: str
    committed: object
    proposed: object
    code: ClassVar[str] = "DF511"
    example = {
        "place": "out",
        "app_id": "demo",
        "window_id": 3,
        "seq": 5,
        "field": "new_data",
        "committed": "part-3.txt",
        "proposed": "part-4.txt",
    }

    def message(self) -> str:
        window = f"window {self.window_id} of application {self.app_id!r}"
        return (
            f"{self.place}: {window} was committed by entry {self.seq} with different content: {self.field} is\n"
            f"  {_shown(self.committed)} there, {_shown(self.proposed)} here\n"
            "  help: two pipelines use the same application id; give each its own"
        )


@error
class WindowPassed(LedgerError):
    """A later window of the application is in the ledger already."""

    place: str
    app_id: str
    window_id: int
    newest: int
    code: ClassVar[str] = "DF512"
    example = {"place": "out", "app_id": "demo", "window_id": 3, "newest": 7}

    def message(self) -> str:
        window = f"window {self.window_id} of application {self.app_id!r}"
        return (
            f"{self.place}: {window} comes too late: window {self.newest} is already committed\n"
            "  help: windows are committed in order; was the run folder replaced by an older one?"
        )


@error
class LedgerTaken(ConfigError, LedgerError):
    """The folder has the ledger of another dataset."""

    place: str
    expected: str
    actual: str
    code: ClassVar[str] = "DF283"
    example = {"place": "out", "expected": "did:odf:a", "actual": "did:odf:b"}

    def message(self) -> str:
        return f"{self.place} holds the ledger of dataset {self.actual}, not of {self.expected}\n  help: name another folder"


@error
class NewerLedger(LedgerError):
    """A newer dagflow has written to this ledger."""

    place: str
    what: str
    code: ClassVar[str] = "DF513"
    example = {"place": "out", "what": "format version 9"}

    def message(self) -> str:
        return (
            f"{self.place}: it has {self.what}, which this version of dagflow does not know; nothing was appended\n"
            "  help: use the version that wrote it, or a newer one"
        )


@error
class LedgerMissing(ConfigError, LedgerError, LookupError):
    """A folder has no ledger. `below`: a dataset in that folder."""

    place: str
    below: str | None = None
    code: ClassVar[str] = "DF281"
    example = {"place": "logs"}
    general_remedy = "name the output folder of an application"

    def message(self) -> str:
        text = f"{self.place} has no ledger: it is not the output folder of an application, or nothing was committed yet"
        return text if self.below is None else f"{text}\n  did you mean {self.below}?"


@error
class NoSuchDataset(ConfigError, LedgerError, LookupError):
    """The path has no dataset. `near`: a folder with a similar name; `dataset`: the dataset in which the path lies."""

    place: str
    near: str | None = None
    dataset: str | None = None
    code: ClassVar[str] = "DF284"
    example = {"place": "outt"}

    def message(self) -> str:
        text = f"there is no {self.place}"
        if self.dataset is not None:
            return f"{text}\n  help: the path lies in the dataset {self.dataset}"
        if self.near is not None:
            return f"{text}\n  did you mean {self.near}?"
        return f"{text}\n  help: name the output folder of an application, or a file in it"


@error
class NoSuchEntry(ConfigError, LedgerError, LookupError):
    """A ledger does not have the requested entry or row."""

    place: str
    what: str
    newest: str
    code: ClassVar[str] = "DF282"
    example = {"place": "out", "what": "entry 7", "newest": "its newest entry is 6"}
    general_remedy = "`dagflow log` lists the entries"

    def message(self) -> str:
        return f"{self.place} has no {self.what}; {self.newest}"


@error
class NoSuchColumn(ConfigError, LedgerError, LookupError):
    """A dataset does not have the requested column."""

    place: str
    name: str
    known: tuple[str, ...]
    code: ClassVar[str] = "DF286"
    example = {"place": "out", "name": "coutry", "known": ("id", "country")}
    general_remedy = "name a column of the schema, which `dagflow show` prints"

    def message(self) -> str:
        listed = known_names(self.known) or " It has no columns."
        return f"{self.place} has no column {self.name!r}.{did_you_mean(self.name, self.known)}{listed}"
