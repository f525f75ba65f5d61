"""Errors of a ledger: broken rules, damaged or missing entries and files, and conflicts between writers."""

from __future__ import annotations

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error


@error("DF500", is_fatal=True)
class LedgerError(RunError):
    """A ledger cannot be read or appended to."""


@error("DF501")
class LedgerRuleError(LedgerError, ValueError):
    """An entry breaks a rule of the ledger. `rule`: the rule's code; `sentence`: its text. `RULES` lists all rules."""

    seq: int
    field: str
    expected: object
    actual: object
    rule: str = "DF501"
    sentence: str = ""
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


@error("DF538")
class NothingAdded(LedgerRuleError):
    """An AddData event changes nothing."""

    example = {
        "seq": 5,
        "field": "event",
        "expected": "something new",
        "actual": "an AddData that changes nothing",
        "sentence": "An AddData changes something",
    }
    general_remedy = "append no entry for a window that changes nothing"


@error("DF539")
class NothingExecuted(LedgerRuleError):
    """An ExecuteQuery event changes nothing."""

    example = {
        "seq": 5,
        "field": "event",
        "expected": "something new",
        "actual": "an ExecuteQuery that changes nothing",
        "sentence": "An ExecuteQuery changes something",
    }
    general_remedy = "append no entry for a window that changes nothing"


@error("DF559")
class InputDiverged(LedgerRuleError):
    """An ExecuteQuery contradicts the ledger of one of its inputs."""

    rule: str = "DF559"
    sentence: str = "An ExecuteQuery agrees with the ledgers of its inputs"
    example = {"seq": 5, "field": "query_inputs[0].new_block_hash", "expected": "sha256:ab…", "actual": "sha256:cd…"}
    general_remedy = "check the ledger of the input with `dagflow verify`"


def _shown(value: object) -> str:
    if value is None:
        return "absent"
    text = repr(value) if not isinstance(value, str) or "\n" in value or value == "" else value
    return text if len(text) <= 200 else text[:197] + "..."


@error("DF502")
class LedgerDamaged(LedgerError):
    """A stored ledger differs from what was written."""

    place: str
    seq: int | None
    reason: str
    template = "{place}{seq:?, entry {seq}}: {reason}\n  help: restore it from a copy; `dagflow verify` lists all damage"
    example = {"place": "out", "seq": 5, "reason": "it is not the entry that was written"}


@error("DF503")
class EntryMalformed(LedgerDamaged):
    """The bytes of an entry are not a valid entry."""

    example = {"place": "out", "seq": 5, "reason": "its bytes are cut short"}


@error("DF504")
class EntryMissing(LedgerDamaged):
    """An entry is missing, although later entries exist."""

    example = {"place": "out", "seq": 5, "reason": "it is missing, but entry 6 is there"}


@error("DF505")
class LedgerCut(LedgerDamaged):
    """The newest entries of the ledger are missing."""

    example = {"place": "out", "seq": 6, "reason": "it was written and is not there: the end of the ledger is lost"}


@error("DF506")
class EntryRewritten(LedgerDamaged):
    """An entry does not have the hash that was recorded for it."""

    example = {"place": "out", "seq": 5, "reason": "its hash is sha256:cd…, but sha256:ab… was written"}


@error("DF507")
class ForeignObject(LedgerDamaged):
    """A file among the entries is not an entry."""

    example = {"place": "out", "seq": None, "reason": "notes.txt is not an entry"}


@error("DF508")
class ObjectMissing(LedgerDamaged):
    """A data file that an entry names does not exist."""

    example = {"place": "out", "seq": 5, "reason": "part-3.txt is not there"}


@error("DF509")
class ObjectDamaged(LedgerDamaged):
    """A data file differs from what its entry records."""

    example = {"place": "out", "seq": 5, "reason": "part-3.txt has 7 bytes, not 12"}


@error("DF841")
class FileNotKept(LedgerDamaged):
    """An entry keeps a file that was not content of the dataset before it, or was another one."""

    example = {"place": "out", "seq": 5, "reason": "it keeps part-3.txt, which was not content before"}


@error("DF518")
class CurrentDiffers(LedgerDamaged):
    """The name `current` of a dataset does not lead to the snapshot that is its content. Readers of the ledger are right."""

    remedy: str
    template = "{place}, entry {seq}: {reason}\n  help: {remedy}"
    example = {
        "place": "out",
        "seq": 5,
        "reason": "current leads to _snapshots/w000002, and the content is _snapshots/w000004",
        "remedy": "ln -sfn _snapshots/w000004 out/current",
    }


@error("DF510")
class HeadMoved(LedgerError):
    """Another writer has appended an entry in the meantime."""

    place: str
    expected: str
    actual: str
    template = (
        "{place}: the newest entry is {actual}, not {expected}: another writer was faster\n"
        "  help: nothing was written; call resume() again, and plan from the new state"
    )
    example = {"place": "out", "expected": "4", "actual": "5"}


@error("DF511")
class WindowConflict(LedgerError):
    """Another pipeline has committed a window under the same application id."""

    place: str
    app_id: str
    window_id: int
    seq: int
    field: str
    committed: object
    proposed: object
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
        return (
            f"{self.place}: window {self.window_id} of application {self.app_id!r} was committed by entry {self.seq} with different "
            f"content: {self.field} is\n"
            f"  {_shown(self.committed)} there, {_shown(self.proposed)} here\n"
            "  help: two pipelines use the same application id; give each its own"
        )


@error("DF512")
class WindowPassed(LedgerError):
    """A later window of the application is in the ledger already."""

    place: str
    app_id: str
    window_id: int
    newest: int
    template = (
        "{place}: window {window_id} of application {app_id!r} comes too late: window {newest} is already committed\n"
        "  help: windows are committed in order; was the run folder replaced by an older one?"
    )
    example = {"place": "out", "app_id": "demo", "window_id": 3, "newest": 7}


@error("DF283")
class LedgerTaken(ConfigError, LedgerError):
    """The folder has the ledger of another dataset."""

    place: str
    expected: str
    actual: str
    template = "{place} holds the ledger of dataset {actual}, not of {expected}\n  help: name another folder"
    example = {"place": "out", "expected": "did:odf:a", "actual": "did:odf:b"}


@error("DF513")
class NewerLedger(LedgerError):
    """A newer dagflow has written to this ledger."""

    place: str
    what: str
    template = (
        "{place}: it has {what}, which this version of dagflow does not know; nothing was appended\n"
        "  help: use the version that wrote it, or a newer one"
    )
    example = {"place": "out", "what": "format version 9"}


@error("DF281")
class LedgerMissing(ConfigError, LedgerError, LookupError):
    """A folder has no ledger. `below`: a dataset in that folder."""

    place: str
    below: str | None = None
    template = (
        "{place} has no ledger: it is not the output folder of an application, or nothing was committed yet"
        "{below:?\n  did you mean {below}?}"
    )
    example = {"place": "logs"}
    general_remedy = "name the output folder of an application"


@error("DF284")
class NoSuchDataset(ConfigError, LedgerError, LookupError):
    """The path has no dataset. `near`: a folder with a similar name; `dataset`: the dataset in which the path lies."""

    place: str
    near: str | None = None
    dataset: str | None = None
    template = (
        "there is no {place}\n"
        "  {dataset:?help: the path lies in the dataset {dataset}|{near:?did you mean {near}?|help: name the output folder of an "
        "application, or a file in it}}"
    )
    example = {"place": "outt"}


@error("DF282")
class NoSuchEntry(ConfigError, LedgerError, LookupError):
    """A ledger does not have the requested entry or row."""

    place: str
    what: str
    newest: str
    template = "{place} has no {what}; {newest}"
    example = {"place": "out", "what": "entry 7", "newest": "its newest entry is 6"}
    general_remedy = "`dagflow log` lists the entries"


@error("DF286")
class NoSuchColumn(ConfigError, LedgerError, LookupError):
    """A dataset does not have the requested column."""

    place: str
    name: str
    known: tuple[str, ...]
    template = "{place} has no column {name!r}.{name:~known}{known:? Known: {known}.| It has no columns.}"
    example = {"place": "out", "name": "coutry", "known": ("id", "country")}
    general_remedy = "name a column of the schema, which `dagflow show` prints"
