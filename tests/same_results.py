"""Whether every command gives what it gave: ``same_results.py record FOLDER``, then ``compare``.

Runs the ``popmodel`` beside this interpreter on all bundled and shared inputs (words after the
folder select verbs), and keeps what each command prints. Provenance is left out. ``compare BEFORE
AFTER [ROUNDING]`` prints every difference; numbers of JSON may differ by that part of them.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import popmodel

PACKAGE = str(Path(str(popmodel.__file__)).parent)
ROOT = Path(__file__).parent.parent
SHARED = (ROOT / ".." / "shared" / "traces").resolve()
FORMATS = ("json", "table", "markdown", "csv")
STAMP = re.compile(r"^.*(popmodel \d+\.\d+\S* on |popmodel \d+\.\d+\S*, \d{4}-).*$", re.MULTILINE)


def commands() -> list[list[str]]:
    """Every command line, relative to the root of the repository."""
    found: list[list[str]] = []
    shared = [f"../shared/traces/paraver/{one.name}" for one in traces(SHARED / "paraver")]
    own = [str(one.relative_to(ROOT)) for one in traces(ROOT / "tests/data")]
    own += ["examples/traces/stencil3d.2x2.prv.gz"]
    for trace in shared + own:
        found += [["info", trace, "--format", one] for one in ("json", "table", "markdown")]
        found += [["metrics", trace, "--format", one] for one in FORMATS]
        found += [["metrics", trace, "--family", "all"]]
    for trace in shared:
        found += [["metrics", trace, "--from-start", "--format", "json"]]
        found += [["metrics", trace, "--outside-mpi", "not-in-mpi", "--format", "json"]]
        found += [["metrics", trace, "--by", "process", "--format", one] for one in FORMATS]
        found += [["metrics", trace, "--window", middle(trace), "--format", "json"]]
        found += [["metrics", trace, "--by", "region", "--format", "json"]]
        found += [["replay", trace, "--format", one] for one in FORMATS]
        found += [
            ["replay", trace, "--latency", "1us,20us", "--bandwidth", "1GB/s", "--format", "json"],
            ["replay", trace, "--network", "dimemas", "--collectives", "dimemas"],
            ["replay", trace, "--network", "ideal", "--against", "measured", "--metrics"],
            ["replay", trace, "--machine", "tests/data/machines/every.json", "--metrics"],
            ["replay", trace, "--eager-threshold", "1KiB", "--latency", "5us", "--format", "json"],
            ["replay", trace, "--cpu-factor", "2", "--window", middle(trace), "--format", "json"],
        ]
    epoch = [f"../shared/traces/paraver/epoch_{n}proc.prv.gz" for n in (1, 4, 16)]
    image = [f"../shared/traces/paraver/imagemagick_omp{n}.prv.gz" for n in (2, 8)]
    for series in (epoch, image):
        found += [["metrics", *series, "--format", one] for one in (*FORMATS, "svg")]
        found += [["metrics", *series, "--scaling", "weak"]]
    every = "tests/data/signatures/every.toml"
    machine = "tests/data/machines/every.json"
    machines = ("sandybridge-fdr", "examples/profiles/two-core-vm.json", machine)
    signatures = ("stencil3d", "cannon", "examples/axpy/axpy.toml", every)
    signatures += ("examples/cannon/small-blocks.toml",)
    for profile in machines:
        for signature in signatures:
            base = [signature, "--machine", profile]
            for split in ("1x1", "2x1", "1x2", "4x4", "16x1", "9x1", "64x1", "16x4", "4x16"):
                procs, threads = split.split("x")
                run = ["predict", *base, "--procs", procs, "--threads", threads]
                found += [[*run, "--format", "json"], run]
            run = ["predict", *base, "--procs", "4", "--threads", "2"]
            found += [[*run, "--format", one] for one in ("markdown", "csv")]
            found += [[*run, "--family", "all"], [*run, "--reference", "1x1"]]
            for metric in ("runtime", "parallel_efficiency", "talp.mpi_load_balance"):
                found += [[*run, "--formula", metric, "--format", one] for one in FORMATS]
            for cores in ("4", "16,64"):
                sweep = ["sweep", *base, "--cores", cores]
                found += [[*sweep, "--format", one] for one in (*FORMATS, "svg")]
            found += [
                ["sweep", *base, "--cores", "16", "--what-if", "latency=0.5x,bandwidth=2x"],
                ["sweep", *base, "--efficiency", "0.8"],
            ]
        found += [["machine", "show", profile, "--format", one] for one in FORMATS]
        found += [["machine", "check", profile, "--format", one] for one in FORMATS]
        found += [["machine", "diff", machines[0], profile, "--format", one] for one in FORMATS]
        found += [["predict", every, "--machine", profile, "--procs", "8", "--nodes", "2"]]
    found += [["sweep", every, "--machine", machine, "--cores", "16", "--tune", "steps"]]
    for signature in signatures:
        for verb in ("show", "check"):
            found += [["signature", verb, signature, "--format", one] for one in FORMATS]
    found += [["signature", "list", "--format", one] for one in FORMATS]
    for trace in ("comd.4", "bt-mz.S.2x2", "epoch_4proc"):
        path = f"../shared/traces/paraver/{trace}.prv.gz"
        check = ["validate", "stencil3d", path, "--machine", machine]
        found += [[*check, "--format", one] for one in FORMATS]
    table = ["validate", "stencil3d", "examples/stencil3d/two-core-vm.csv"]
    table += ["--machine", "examples/profiles/two-core-vm.json"]
    found += [[*table, "--format", one] for one in FORMATS]
    for name in ("load_balance", "memory.bsat", "net.inter.alpha", "useful_mean", "halo", "os"):
        found += [["explain", name], ["explain", name, "--format", "json"]]
    return found


def middle(trace: str) -> str:
    """The middle of a trace as a window."""
    with gzip.open(ROOT / trace, "rt") as file:
        header = re.match(r"#Paraver \([^)]*\):(\d+)_ns", file.readline())
    assert header is not None
    seconds = int(header[1]) / 1e9
    return f"{0.3 * seconds:.9f}s:{0.7 * seconds:.9f}s"


def traces(folder: Path) -> list[Path]:
    """Traces in a folder."""
    return sorted(folder.glob("*.prv.gz"))


def run(command: list[str]) -> dict[str, object]:
    """What a command prints, without its provenance, and its exit status."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "popmodel"), *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    text: object = done.stdout
    if "json" in command and done.returncode == 0:
        document = json.loads(done.stdout)
        document.pop("provenance", None)
        text = document
    elif isinstance(text, str):
        text = STAMP.split(text)[0] if "markdown" not in command else STAMP.sub("", text)
        text = "\n".join(_without_stamp(line) for line in str(text).splitlines())
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    errors = placeless(done.stderr)
    return {"command": command, "status": done.returncode, "out": text, "err": errors}


def _without_stamp(line: str) -> str:
    return placeless(re.sub(r",0\.\d[^,]*,2026-[^\n]*$", "", line))


def placeless(text: str) -> str:
    """Text without the folders of this machine."""
    return text.replace(PACKAGE, "PACKAGE").replace(str(ROOT), "ROOT")


def record(folder: Path, verbs: list[str]) -> None:
    """Run all commands, or those of some verbs, and keep what they print."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in commands() if not verbs or one[0] in verbs]
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(run, chosen):
            name = hashlib.sha256(str(result["command"]).encode()).hexdigest()[:16]
            text = placeless(json.dumps(result, indent=1))
            (folder / name).write_text(text)


def compare(before: Path, after: Path, rounding: float) -> int:
    """Print every difference; give how many commands differ."""
    different = 0
    recorded = sorted(after.iterdir())
    for file in recorded:
        second, earlier = file.read_text(), before / file.name
        one = earlier.read_text() if earlier.exists() else ""
        if one == second:
            continue
        if rounding and one and same(json.loads(one), json.loads(second), rounding):
            continue
        different += 1
        print("==", " ".join(json.loads(second)["command"]))
        lines = (expanded(one), expanded(second))
        print("\n".join(list(difflib.unified_diff(*lines, lineterm="", n=1))[2:60]))
    print(f"{different} of {len(recorded)} commands differ")
    return different


def expanded(text: str) -> list[str]:
    """Lines of a kept result, those of a printed text one by one."""
    if not text:
        return []
    result = json.loads(text)
    if isinstance(result["out"], str):
        result["out"] = result["out"].splitlines()
    return json.dumps(result, indent=1).splitlines()


def same(one: object, other: object, rounding: float) -> bool:
    """Whether two documents are the same but for rounding of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[k], other[k], rounding) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, [rounding] * len(one)))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= rounding * max(abs(one), abs(other))
    return one == other


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]), sys.argv[3:])
    else:
        least = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
        sys.exit(compare(Path(sys.argv[2]), Path(sys.argv[3]), least) > 0)
