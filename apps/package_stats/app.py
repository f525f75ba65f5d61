"""Add up the disk space of Debian packages by section and by maintainer, from an index whose records have several lines."""

from __future__ import annotations

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, WindowState
from dagflow.config import Bytes, MiB
from operators import CsvWriter, FileInput, KeyValue, Map, ReadAheadLineReaderContext, Sum, TopN


@attrs.frozen
class Package:
    """A package as the index describes it, with its installed size in KiB."""

    name: str
    section: str
    maintainer: str
    installed_size: int


@attrs.frozen
class Section:
    """The packages of a section, and their installed size in KiB."""

    section: str
    packages: int
    installed_size: int


@attrs.frozen
class Maintainer:
    """The installed size of a maintainer's packages, in KiB."""

    maintainer: str
    installed_size: int


def to_package(paragraph: bytes) -> Package | None:
    r"""Return the package of a paragraph; None for an empty one, and for a package that is not installed. Raises KeyError.

    >>> to_package(b"Package: a\nSection: net\nMaintainer: A <a@b.org>\nDescription: an a\n with more\nInstalled-Size: 7\n")
    Package(name='a', section='net', maintainer='A <a@b.org>', installed_size=7)
    """
    lines = (line for line in paragraph.decode().splitlines() if line and not line[0].isspace())  # others continue with a field
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if not fields or fields.get("status", "installed").split()[-1:] != ["installed"]:
        return None
    section, maintainer = fields.get("section", "unknown"), fields.get("maintainer", "unknown")
    return Package(fields["package"], section, maintainer, int(fields.get("installed-size", 0)))


def package_of(read: ReaderRecord[Package]) -> Package:
    """Return a package without its place."""
    return read.record


def section_of(package: Package) -> Section:
    """Return the section of one package."""
    return Section(package.section, 1, package.installed_size)


def maintainer_of(total: KeyValue[str, int]) -> Maintainer:
    """Return a sum with the names of its columns."""
    return Maintainer(total.key, total.value)


@attrs.define
class PerSection(Operator):
    """Add up the parts of each section."""

    input = InputPort[Section](partition_by="section")
    output = OutputPort[Section]()
    sections = WindowState[dict[str, Section]](factory=dict)

    @input.process
    def each(self, section: Section) -> None:
        """Take a part in."""
        before = self.sections.get(section.section)
        self.sections[section.section] = section if before is None else self.together(before, section)

    @input.combine
    def together(self, one: Section, other: Section) -> Section:
        """Merge two parts of a section, before they cross the exchange too."""
        return Section(one.section, one.packages + other.packages, one.installed_size + other.installed_size)

    def end_window(self) -> None:
        """Emit the sections."""
        self.output.emit_all(self.sections.values())


@attrs.define
class Settings:
    """The disk space of Debian packages, by section and by maintainer."""

    input: list[str]  # indexes: /var/lib/dpkg/status, /var/lib/apt/lists/*_Packages
    sections: str  # a folder
    maintainers: str  # another one
    top: int = 10
    block_size: Bytes = 4 * MiB


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect packages → sections → CSV, and packages → sums by maintainer → the largest → CSV."""
    paragraphs = ReadAheadLineReaderContext(terminators=(b"\n\n",))
    read = FileInput(conf.input, block_size=conf.block_size, convert_to_record=to_package, reader_context=paragraphs)
    index = dag.add_module("index", read)
    packages = dag.add_operator("packages", Map(package_of))
    parts = dag.add_operator("parts", Map(section_of))
    sections = dag.add_operator("sections", PerSection())
    sections_writer = dag.add_operator("sections_writer", CsvWriter[Section](conf.sections))
    sums = dag.add_operator("sums", Sum[Package, str, int]("installed_size", by="maintainer"))
    top = dag.add_operator("top", TopN[KeyValue[str, int]](conf.top, "value"))
    maintainers = dag.add_operator("maintainers", Map(maintainer_of))
    maintainers_writer = dag.add_operator("maintainers_writer", CsvWriter[Maintainer](conf.maintainers))
    dag.add_stream("records", index.messages, packages.input)
    dag.add_stream("packages", packages.output, parts.input, sums.input)
    dag.add_stream("parts", parts.output, sections.input)
    dag.add_stream("by section", sections.output, sections_writer.input)
    dag.add_stream("by maintainer", sums.output, top.input)
    dag.add_stream("largest", top.output, maintainers.input)
    dag.add_stream("maintainers", maintainers.output, maintainers_writer.input)
