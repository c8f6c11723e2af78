"""Which format a file has."""

import gzip
import shutil
from pathlib import Path

import pytest

import popmodel
from popmodel.base.errors import FileError, TraceError, UsageError
from popmodel.traces import read
from popmodel.traces.source import FOREIGN as FOREIGN_FORMATS
from popmodel.traces.source import foreign_folder

DATA = Path(__file__).parent.parent / "data"
HINT = (
    "popmodel reads Paraver (.prv), SimGrid SMPI (.ti.txt .ti), Dimemas (.dim), GOAL (.goal), also "
    "with .gz; OTF2 (.otf2)"
)


@pytest.mark.parametrize("name", ["is.S.4.prv.gz", "smpi/jac2048.4.ti.txt.gz"])
def test_a_file_with_another_name_is_known_by_how_it_begins(tmp_path: Path, name: str) -> None:
    shutil.copy(DATA / name, tmp_path / "packed")
    (tmp_path / "plain.txt").write_bytes(gzip.decompress((DATA / name).read_bytes()))
    wanted = read(DATA / name).calls()
    for file in ("packed", "plain.txt"):
        calls = read(tmp_path / file).calls()
        assert calls.entry.tolist() == wanted.entry.tolist()
        assert calls.names == wanted.names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04\0\0", "the file is binary"),
        (b"Hello\n", "not a trace"),
    ],
)
def test_other_files_are_told_what_is_read(tmp_path: Path, text: bytes, problem: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}: {problem}"
    assert caught.value.hint == HINT


# mtime: names of tests are the same in every process.
_TWICE = gzip.compress(gzip.compress(b"#Paraver ", mtime=0), mtime=0)
FOREIGN = [
    ("runs.xlsx", b"PK", "a spreadsheet"),
    ("traces.def", b"\x03B\1\0", "part of an archive in OTF2"),
    ("0.evt", b"\x03B\1\0", "part of an archive in OTF2"),
    ("x", b"\x03B\1\0", "part of an archive in OTF2"),
    ("profile.cubex", b"anchor.xml\0\0", "a profile in Cube's format"),
    ("x.tar", b"anchor.xml\0\0", "a profile in Cube's format"),
    ("scorep.cfg", b"SCOREP_ENABLE_TRACING=true\n", "a measurement of Score-P"),
    ("cg.extra-p", b"PK\3\4\0", "an experiment of Extra-P"),
    ("trace.db", b"HPCTOOLKITtrce\4\0", "a database of HPCToolkit"),
    ("app-0.hpcrun", b"HPCRUN-profile____04.00b", "a database of HPCToolkit"),
    ("experiment.xml", b"<?xml version='1.0'?>", "a database of HPCToolkit"),
    ("run.cali", b"__rec=node,id=12,attr=8,data=3\n", "a profile of Caliper"),
    ("run.out", b"__rec=node,id=12,attr=8,data=3\n", "a profile of Caliper"),
    ("talp.json", b'{"dlbVersion": "3.5.0", "Application": {}}', "a report of TALP"),
    ("talp.json", b'{"popMetrics": [{"name": "MPI"}]}', "a report of TALP"),
    ("report1.nsys-rep", b"\x1f\x8b", "a report of Nsight Systems"),
    ("report1.sqlite", b"SQLite format 3\0\x10", "an SQLite database"),
    ("run.prv.bz2", b"BZh91AY&SY", "a file compressed by bzip2"),
    ("run.prv.xz", b"\xfd7zXZ\0\0", "a file compressed by xz"),
    ("run.prv.zst", b"\x28\xb5\x2f\xfd\4", "a file compressed by zstd"),
    ("run.lz4", b"\4\x22\x4d\x18", "a file compressed by lz4"),
    ("run.prv", b"\xfd7zXZ\0\0", "a file compressed by xz"),
    ("run.prv.gz", _TWICE, "a file compressed twice"),
    ("runs.zip", b"PK\3\4\0", "an archive of files"),
    ("run.prv", b"a/x.prv".ljust(257, b"\0") + b"\0ustar", "an archive of files"),
    ("run.log", b"DLB[n:1]: ##### Monitoring Region POP Metrics ####\n", "what TALP prints"),
    ("app.sts", b"PROJECTIONS_ID \nVERSION 11.0\n", "a trace of Charm++'s Projections"),
    ("app.0.log", b"PROJECTIONS-RECORD 1234\n", "a trace of Charm++'s Projections"),
    ("tautrace.0.0.0.trc", b"\1\2", "a trace of TAU"),
    ("events.0.edf", b"4 dynamic_trace_events\n", "a trace of TAU"),
    ("profile.0.0.0", b"5 templated_functions_MULTI_TIME\n", "a profile of TAU"),
    ("app.stf", b"\0\1", "a trace of Intel Trace Collector"),
    ("app.stf.dcl", b"x", "a trace of Intel Trace Collector"),
    ("app.otf", b"x", "a trace in OTF"),
    ("app.slog2", b"\0", "a trace of MPE"),
    ("app.trace", b"%EventDef PajeDefineContainerType 0\n", "a trace in Paje's format"),
    ("perf.data", b"PERFILE2\0", "a profile of Linux perf"),
    ("x.perfetto-trace", b"\n\0", "a trace for Perfetto or Chrome"),
    ("x.json", b'{"displayTimeUnit": "ns", "traceEvents": []}', "a trace for Perfetto or Chrome"),
    ("x.json", b'[{"name": "a", "ph": "X", "ts": 1}]', "a trace for Perfetto or Chrome"),
    ("TRACE.mpits", b"/a/set-0/x.mpit named\n", "a trace of Extrae that is not merged"),
    ("useful.cfg", b"#ParaverCFG\n", "a configuration of Paraver"),
    ("run.pcf", b"DEFAULT_OPTIONS\n", "what belongs to a Paraver trace"),
    ("run.row", b"LEVEL CPU SIZE 4\n", "what belongs to a Paraver trace"),
]


@pytest.mark.parametrize(("name", "text", "what"), FOREIGN)
def test_formats_of_other_tools_have_their_names(
    tmp_path: Path, name: str, text: bytes, what: str
) -> None:
    """And say what to do, in every function that takes a trace."""
    path = tmp_path / name
    path.write_bytes(text)
    if name != "report1.nsys-rep":  # what is no whole gzip file is damaged
        for reader in (read, popmodel.metrics, popmodel.predict, popmodel.report):
            if reader is popmodel.predict and text.startswith(b"["):
                continue  # may be a list of runs
            if reader is popmodel.metrics and name.endswith(".cubex"):
                continue  # reads these
            options = {"procs": 64} if reader is popmodel.predict else {}
            with pytest.raises(FileError) as caught:
                reader(str(path), **options)
            assert caught.value.message.startswith(f"{path}: is {what}"), reader
            assert caught.value.hint
            assert "popmodel reads" not in caught.value.hint
    folder = tmp_path / "run"
    folder.mkdir()
    path.rename(folder / name)
    if foreign_folder(folder) is None:
        return  # a name that says nothing
    with pytest.raises(TraceError) as caught:
        read(folder)
    assert caught.value.message == f"{folder}: is a directory with {foreign_folder(folder).name}"


def test_a_table_is_no_trace_and_a_folder_may_hold_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("ranks,time\n1,2\n")
    with pytest.raises(FileError, match="is a table, not a trace") as caught:
        popmodel.metrics(str(path))
    assert "popmodel predict FILE" in (caught.value.hint or "")
    assert foreign_folder(tmp_path) is None


def test_every_foreign_format_is_tried() -> None:
    tried = {
        foreign.name
        for foreign in FOREIGN_FORMATS
        for *_, what in FOREIGN
        if foreign.name.startswith(what)
    }
    others = {"a recording of popmodel that is not merged"}
    assert tried | others == {foreign.name for foreign in FOREIGN_FORMATS}


@pytest.mark.parametrize(
    ("folder", "names", "what"),
    [
        ("scorep-20260811_1207", ["MANIFEST.md"], "a measurement of Score-P"),
        ("ping", ["scorep.cfg", "traces", "traces.def"], "part of an archive in OTF2"),
        ("hpctoolkit-app-database", ["meta.db", "profile.db"], "a database of HPCToolkit"),
        ("MULTI__TIME", ["x"], "a profile of TAU"),
        ("out", ["set-0", "app.prv.tmp"], "a trace of Extrae that is not merged"),
        ("run.raw", ["node7.4711.meta", "node7.4711.0.rec"], "a recording of popmodel"),
    ],
)
def test_folders_of_other_tools(tmp_path: Path, folder: str, names: list[str], what: str) -> None:
    path = tmp_path / folder
    path.mkdir()
    for name in names:
        (path / name).touch()
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message.startswith(f"{path}: is a directory with {what}")
    (path / "x.prv.gz").touch()  # a trace is what is wanted, whatever is beside it
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.hint == "name one .prv or .prv.gz file in it"


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "x", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(TraceError, match=problem):
            read(path)
    with pytest.raises(UsageError, match="must not be empty"):
        read("")
