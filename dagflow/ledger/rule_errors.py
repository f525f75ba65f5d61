"""The rules of the ledger, one class a rule: its first line says the rule. The functions are in `dagflow.ledger.rules`."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import error
from dagflow.ledger.errors import LedgerRuleError

# --------------------------------------------------------------------------------------------- one class a rule: the chain


@error
class FirstEntryNotSeed(LedgerRuleError):
    """The first entry is a Seed."""

    code: ClassVar[str] = "DF520"


@error
class SeedAgain(LedgerRuleError):
    """Only the first entry is a Seed."""

    code: ClassVar[str] = "DF521"


@error
class LinkBroken(LedgerRuleError):
    """An entry holds the hash of the one before; the first holds none."""

    code: ClassVar[str] = "DF522"


@error
class SequenceBroken(LedgerRuleError):
    """Entries are numbered 0, 1, 2, … without a gap."""

    code: ClassVar[str] = "DF523"


@error
class TimeWentBack(LedgerRuleError):
    """The system time of an entry is not before that of the entry before."""

    code: ClassVar[str] = "DF524"


@error
class FormatWentBack(LedgerRuleError):
    """The format version of an entry is not below that of the entry before."""

    code: ClassVar[str] = "DF525"


@error
class CarriedWrong(LedgerRuleError):
    """An entry carries the numbers of the newest schema, transform, sources, data and windows up to itself."""

    code: ClassVar[str] = "DF526"


@error
class EventNotOfKind(LedgerRuleError):
    """Root datasets take AddData and SetSource, derivative ones ExecuteQuery and SetTransform."""

    code: ClassVar[str] = "DF527"


# ----------------------------------------------------------------------------------------------------- data entries


@error
class OffsetNotCarried(LedgerRuleError):
    """prev_offset is the end of the last slice that was not empty, also where no data is added; absent before the first."""

    code: ClassVar[str] = "DF530"


@error
class OffsetsNotSequential(LedgerRuleError):
    """New data begins at prev_offset + 1, at 0 if there was none."""

    code: ClassVar[str] = "DF531"


@error
class IntervalInverted(LedgerRuleError):
    """An interval of offsets does not end before it starts."""

    code: ClassVar[str] = "DF532"


@error
class OffsetTooLarge(LedgerRuleError):
    """Offsets fit into 63 bits."""

    code: ClassVar[str] = "DF533"


@error
class CheckpointNotCarried(LedgerRuleError):
    """prev_checkpoint is the new_checkpoint of the last data entry."""

    code: ClassVar[str] = "DF534"


@error
class WatermarkWentBack(LedgerRuleError):
    """A watermark, once set, is on every later data entry, and never smaller."""

    code: ClassVar[str] = "DF535"


@error
class SchemaMissing(LedgerRuleError):
    """Data needs a SetSchema before it."""

    code: ClassVar[str] = "DF536"


@error
class SchemaHashWrong(LedgerRuleError):
    """A slice names the hash of the schema in effect."""

    code: ClassVar[str] = "DF537"


@error
class NothingAdded(LedgerRuleError):
    """An AddData advances something: data, checkpoint, watermark or the state of a source."""

    code: ClassVar[str] = "DF538"


@error
class NothingExecuted(LedgerRuleError):
    """An ExecuteQuery advances something: data, checkpoint, watermark or an input."""

    code: ClassVar[str] = "DF539"


@error
class SourceDropped(LedgerRuleError):
    """The states of all sources are carried, also of those that had nothing new."""

    code: ClassVar[str] = "DF540"


@error
class SourceMisnamed(LedgerRuleError):
    """The state of a source stands under the source's name."""

    code: ClassVar[str] = "DF541"


@error
class SliceWithoutFiles(LedgerRuleError):
    """A slice has at least one file; no data is an absent slice."""

    code: ClassVar[str] = "DF542"


@error
class FilesDoNotTile(LedgerRuleError):
    """The files of a slice follow each other without a gap, from its start to its end."""

    code: ClassVar[str] = "DF543"


@error
class FileRowsWrong(LedgerRuleError):
    """A file has as many rows as its interval has offsets."""

    code: ClassVar[str] = "DF544"


@error
class FilePathOutside(LedgerRuleError):
    """The path of a file is relative to the dataset, and stays in it."""

    code: ClassVar[str] = "DF545"


@error
class FileTwice(LedgerRuleError):
    """A slice names a file once."""

    code: ClassVar[str] = "DF546"


@error
class SizeNegative(LedgerRuleError):
    """Sizes are bytes, 0 or more."""

    code: ClassVar[str] = "DF547"


@error
class WindowNotNew(LedgerRuleError):
    """The windows of an application are committed once each, in their order, from 0."""

    code: ClassVar[str] = "DF548"


# ---------------------------------------------------------------------------------------------- queries and their inputs


@error
class TransformMissing(LedgerRuleError):
    """An ExecuteQuery needs a SetTransform before it."""

    code: ClassVar[str] = "DF550"


@error
class InputsDiffer(LedgerRuleError):
    """An ExecuteQuery names all inputs of the transform, in its order."""

    code: ClassVar[str] = "DF551"


@error
class InputEntryNotCarried(LedgerRuleError):
    """prev_block of an input is the last entry of it that was processed; absent for a new input."""

    code: ClassVar[str] = "DF552"


@error
class InputOffsetNotCarried(LedgerRuleError):
    """prev_offset of an input is the last row of it that was processed; absent for a new input."""

    code: ClassVar[str] = "DF553"


@error
class InputEntryNotNew(LedgerRuleError):
    """new_block of an input is after prev_block, or absent when there is nothing new."""

    code: ClassVar[str] = "DF554"


@error
class InputOffsetNotNew(LedgerRuleError):
    """new_offset of an input is after prev_offset, or absent when there are no new rows."""

    code: ClassVar[str] = "DF555"


@error
class InputOffsetWithoutEntry(LedgerRuleError):
    """New rows of an input come with the entry that they were read up to."""

    code: ClassVar[str] = "DF556"


@error
class InputWatermarkWentBack(LedgerRuleError):
    """The watermark of an input is carried, and never smaller."""

    code: ClassVar[str] = "DF557"


@error
class WatermarkAheadOfInputs(LedgerRuleError):
    """A watermark does not advance beyond the smallest of the inputs' carried watermarks."""

    code: ClassVar[str] = "DF558"


@error
class InputDiverged(LedgerRuleError):
    """What an ExecuteQuery says of an input is what the input's ledger says."""

    code: ClassVar[str] = "DF559"


# ------------------------------------------------------------------------------------------ schemas, transforms, sources


@error
class TransformWithoutInputs(LedgerRuleError):
    """A transform has at least one input."""

    code: ClassVar[str] = "DF560"


@error
class TransformInputsTwice(LedgerRuleError):
    """A transform names each input once."""

    code: ClassVar[str] = "DF561"


@error
class TransformInputUnnamed(LedgerRuleError):
    """A transform names its inputs by the ids of their datasets."""

    code: ClassVar[str] = "DF562"


@error
class TransformUnchanged(LedgerRuleError):
    """A SetTransform changes the transform in effect."""

    code: ClassVar[str] = "DF563"


@error
class SourceUnchanged(LedgerRuleError):
    """A SetSource changes the source of its name."""

    code: ClassVar[str] = "DF564"


@error
class SchemaUnchanged(LedgerRuleError):
    """A SetSchema changes the schema in effect."""

    code: ClassVar[str] = "DF565"


@error
class SchemaFieldTwice(LedgerRuleError):
    """A schema names each field once."""

    code: ClassVar[str] = "DF566"


@error
class SchemaFieldRemoved(LedgerRuleError):
    """A new schema keeps all fields."""

    code: ClassVar[str] = "DF567"


@error
class SchemaFieldRetyped(LedgerRuleError):
    """A new schema keeps the types of fields, or has wider ones."""

    code: ClassVar[str] = "DF568"


@error
class SchemaFieldRequired(LedgerRuleError):
    """Fields that a new schema adds are optional: rows that are there have no value for them."""

    code: ClassVar[str] = "DF569"


@error
class SchemaOptionalityChanged(LedgerRuleError):
    """A new schema leaves optional fields optional and required ones required."""

    code: ClassVar[str] = "DF570"
