"""`dagflow verify DATASET`: check that a dataset is what its ledger says."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import attrs
import click

from dagflow.cli.dataset_arguments import DatasetArguments, application_options, dataset_command, locator
from dagflow.cli.exit_codes import DONE, FAILED
from dagflow.cli.report_error import Refused, style_of
from dagflow.errors import DagflowError
from dagflow.errors.shown import visible_lines
from dagflow.ledger import EntryRef, Ledger, SetTransform, VerifyReport
from dagflow.ledger.dataset.find import find_dataset
from dagflow.ledger.errors import LedgerDamaged, LedgerMissing, ObjectDamaged, ObjectMissing
from dagflow.ledger.reader import LedgerReader
from dagflow.render.datasets.verify import Checked, verify_json, verify_text
from dagflow.render.errors import error_text
from dagflow.storage import absolute, may_follow
from dagflow.storage.errors import StorageError
from dagflow.storage.records.errors import RecordRefused

if TYPE_CHECKING:
    from dagflow.lineage.sinks import SinkCheck
    from dagflow.lineage.trace import ApplicationLocator
    from dagflow.runtime.run_folder.verify import FolderReport


def entry_named(context: click.Context, option: click.Parameter, value: str | None) -> EntryRef | None:
    """`SEQ:HASH`, as `verify` prints the newest entry."""
    if value is None:
        return None
    number, _, digest = value.partition(":")
    if not number.isdecimal() or ":" not in digest:
        raise click.BadParameter(f"{value!r} names no entry: write it as `verify` printed it, 12:sha256:…")
    return EntryRef(int(number), digest)


@dataset_command(
    "verify",
    examples=(
        "dagflow verify out",
        "dagflow verify out --replay --app apps/line_filter -D input=logs",
        "dagflow verify run --app shop.py",
    ),
    help="Check that a dataset is as it was written: the links and rules of all entries of its ledger, the sizes and hashes of "
    "all files, and the records of its run folder. If it was derived from other datasets, check those that are found against "
    "what it was made of. With --app or --trust, also look whether the tables, databases and logs that the application writes to "
    "have its newest windows. Of an application without files, DATASET is the run folder. Ends with 1 if anything is damaged.",
    has_ledger=False,
    params=[
        click.Option(["--files/--no-files"], default=True, help="Read all files (default), or only the entries of the ledger."),
        click.Option(
            ["--noted"],
            callback=entry_named,
            metavar="SEQ:HASH",
            help="Check that an entry still exists, as an earlier `verify` printed it.",
        ),
        click.Option(
            ["--input", "inputs"],
            multiple=True,
            metavar="PATH",
            help="Look for an input of a derived dataset there. Repeatable.",
        ),
        click.Option(
            ["--replay"],
            is_flag=True,
            help="Run windows again from their plans, in this process and in a temporary folder, and compare the results. "
            "--app or --trust says which code may run.",
        ),
        click.Option(
            ["--windows"], type=click.IntRange(min=1), metavar="N", help="With --replay: run only the N newest windows."
        ),
        *application_options(),
    ],
)
def command(
    arguments: DatasetArguments,
    files: bool,
    noted: EntryRef | None,
    inputs: tuple[str, ...],
    replay: bool,
    windows: int | None,
    run_folder: str | None,
    app: str | None,
    trust: bool,
    define: tuple[str, ...],
    conf: tuple[str, ...],
) -> int:
    """Print what was checked, and what is damaged."""
    from dagflow.lineage.replay import check_trust
    from dagflow.lineage.replay import replay as replay_windows
    from dagflow.runtime.run_folder.folders import is_run_folder

    if not replay and windows is not None:
        raise click.UsageError("--windows goes with --replay.")
    if not replay and app is None and not trust and (define or conf):
        raise click.UsageError("-D and --conf go with --app or --trust.")
    again = locator(run_folder, app, trust, define, conf)
    if is_run_folder(arguments.dataset):
        if replay:
            raise click.UsageError("--replay needs a dataset, and this is a run folder.")
        folder = absolute(arguments.dataset)
        return _tell(
            arguments, Checked(dataset=arguments.dataset, run_folder=_records(folder), sinks=_sinks(again, None, folder))
        )
    dataset = find_dataset(arguments.dataset)
    if replay:
        check_trust(dataset, again)
    ledger = Ledger.open(dataset, durable=False)
    input_files, missing, broken = inputs_of(ledger, inputs)
    verified = Ledger.open(dataset, durable=False).verify(inputs=input_files, files=files, noted=noted)
    report = _with_end(dataset, verified)
    checked = Checked(
        dataset=dataset,
        report=report,
        files=files,
        inputs={dataset_id: reader.place for dataset_id, reader in input_files.items()},
        missing_inputs=missing,
        input_problems=broken,
        replay=replay_windows(dataset, locator=again, windows=windows) if replay and is_readable(report) else None,
        run_folder=_run_folder(dataset, run_folder),
        sinks=_sinks(again, dataset),
    )
    return _tell(arguments, checked)


def _tell(arguments: DatasetArguments, checked: Checked) -> int:
    """Print the result, and return the exit code."""
    if arguments.json:
        print(json.dumps(verify_json(checked), indent=2, ensure_ascii=False))
    else:
        print(verify_text(checked, style_of(sys.stdout)), flush=True)
        if checked.problems:
            print(error_text(Refused(checked.problems), style_of(sys.stderr)), file=sys.stderr)
    replayed = checked.replay
    if replayed is not None and not replayed.windows and not replayed.problems and replayed.left_out:
        print(f"error: nothing was replayed: {visible_lines(replayed.left_out[0][1].message())}", file=sys.stderr)
        return FAILED
    return DONE if not checked.problems else FAILED


def _with_end(dataset: str, report: VerifyReport) -> VerifyReport:
    """A clean report, and what the run folder says: a ledger that was cut with its hint looks whole."""
    from dagflow.lineage.history import check_end

    try:
        if report.is_clean:
            check_end(dataset)
    except LedgerDamaged as problem:
        return attrs.evolve(report, problems=(problem,))
    return report


def _run_folder(dataset: str, given: str | None) -> FolderReport | str:
    """Check the records that the run left beside the ledger. Return why they are not read."""
    from dagflow.lineage.errors import RunFolderMissing
    from dagflow.lineage.history import run_folder_of

    try:
        return _records(run_folder_of(dataset) if given is None else absolute(given))
    except RunFolderMissing as error:
        if error.run_folder is None:
            return "the dataset does not name the run folder of its windows (--run-folder PATH)"
        return error.message().partition("\n")[0]


def _records(folder: str) -> FolderReport | str:
    """Check the records of a run folder. Return why they are not read."""
    from dagflow.runtime.run_folder.verify import verify_run_folder

    try:
        report = verify_run_folder(folder)
    except DagflowError as error:
        return error.message().partition("\n")[0]
    return report if report.records else f"there are no records in {report.folder} (--run-folder PATH)"


def _sinks(again: ApplicationLocator, dataset: str | None, folder: str | None = None) -> tuple[SinkCheck, ...] | str | None:
    """Look at the tables, databases and logs of an application that the caller names or trusts; a text says why not.

    `folder`: the run folder; None: that of the dataset.
    """
    from dagflow.launching.errors import NotTraceable
    from dagflow.lineage.history import run_folder_of
    from dagflow.lineage.sinks import verify_sinks

    if again.application is None and not again.trust:
        return None
    folder = folder or again.run_folder
    try:
        return tuple(verify_sinks(run_folder_of(dataset or "") if folder is None else absolute(folder), again))
    except (NotTraceable, RecordRefused) as error:
        return error.message().partition("\n")[0]


def is_readable(report: VerifyReport) -> bool:
    """Return whether all entries are whole, whatever the state of the files."""
    return all(isinstance(problem, ObjectMissing | ObjectDamaged | StorageError) for problem in report.problems)


def inputs_of(
    ledger: LedgerReader, places: tuple[str, ...] = ()
) -> tuple[dict[str, LedgerReader], dict[str, str], tuple[DagflowError, ...]]:
    """Return the inputs of a derived dataset: ledgers, missing ones, problems.

    Ledgers and missing inputs come by their ids; of a missing one, the place where it was looked for. `places`: where inputs are
    now. The others are expected where the application found them.

    Raises LedgerError and StorageError for a place that has no ledger, click.BadParameter for one of another dataset.
    """
    is_known, transform = _transform(ledger)
    names = () if transform is None else transform.inputs
    readers: dict[str, LedgerReader] = {}
    for place in places:
        reader = Ledger.open(find_dataset(place), durable=False)
        name = reader.seed().dataset_id
        if is_known and name not in names:
            inputs = f"the inputs are {', '.join(names)}" if names else "this dataset has no inputs"
            raise click.BadParameter(f"{place} holds the dataset {name}; {inputs}", param_hint="--input")
        readers[name] = reader
    missing: dict[str, str] = {}
    broken: list[DagflowError] = []
    paths = {} if transform is None else transform.spec.get("paths", {})
    for name in names:
        path = paths.get(name) if isinstance(paths, dict) else None
        if name in readers:
            continue
        if not isinstance(path, str) or not may_follow(ledger.place, path):  # on another host only if the user names it
            missing[name] = path if isinstance(path, str) else ""
            continue
        try:
            reader = Ledger.open(path, durable=False)
            reader.seed()
            readers[name] = reader
        except LedgerMissing:
            missing[name] = path
        except DagflowError as problem:
            broken.append(problem)
    return readers, missing, tuple(broken)


def _transform(ledger: LedgerReader) -> tuple[bool, SetTransform | None]:
    """Return the inputs of the dataset, and whether they can be read. If not, `verify` reports why."""
    try:
        head = ledger.head()
        return head is not None, None if head is None else ledger.transform_at(head.seq)
    except DagflowError:
        return False, None
