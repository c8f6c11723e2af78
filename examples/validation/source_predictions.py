"""Mini-apps predicted from their source and a machine profile, and then run.

    python source_predictions.py predict --src FOLDER --machine profile.json
    python source_predictions.py run --src FOLDER [--repeats 5]

The first step drafts a signature from each program's source, predicts all sizes and splits, and
keeps all that with its SHA-256 in ``source_predictions.json``; nothing is run by it. The second
builds the programs and runs them in turn, keeps every time, and prints the table of errors. The
time of a run is that of the command, less the median of the command with the least problem.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEPT = HERE / "source_predictions.json"
Program = dict[str, Any]


def read_programs(src: Path, binaries: Path) -> dict[str, Program]:
    """The programs, with the folders of this machine in their commands."""
    programs: dict[str, Program] = tomllib.loads((HERE / "source_predictions.toml").read_text())
    for program in programs.values():
        for key in ("sources", "prepare", "build", "command", "least"):
            if isinstance(program.get(key), str):
                for mark, folder in (("{src}", src), ("{bin}", binaries)):
                    program[key] = program[key].replace(mark, str(folder.resolve()))
    return programs


def steps_of(program: Program, size: int) -> int:
    return int(program.get("steps", {}).get(str(size), 1))


def settings(draft: Path, program: Program, size: int, processes: int) -> dict[str, float]:
    """Values of what the draft leaves open."""
    names = {"n": size, "P": processes, "steps": steps_of(program, size)}
    formulas = {word: text for words, text in program["set"].items() for word in words.split()}
    left_open = re.findall(r'^(\w+) = "\?"', draft.read_text(), re.MULTILINE)
    if missing := set(left_open) - formulas.keys():
        sys.exit(f"source_predictions.toml: {program['command']} needs {', '.join(missing)}")
    return {name: float(eval(formulas[name], {"__builtins__": {}}, names)) for name in left_open}


def popmodel(*words: str) -> str:
    """What a command of popmodel prints; its error ends this."""
    made = subprocess.run(["popmodel", *words], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"popmodel {shlex.join(words)}\n{made.stderr}")
    return made.stdout


def shell(command: str) -> None:
    made = subprocess.run(command, shell=True, capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{command}\n{made.stdout[-2000:]}{made.stderr[-2000:]}")


def digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> dict[str, Any]:
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"time": when, "load": os.getloadavg()[0]}


def predict(given: argparse.Namespace) -> None:
    """Draft and predict all programs, and keep that before anything runs."""
    with tempfile.TemporaryDirectory() as folder:
        programs = read_programs(given.src, given.bin or Path(folder))
        kept: dict[str, Any] = {"predicted": now(), "programs": {}}
        for name, program in programs.items():
            draft = HERE / "drafts" / f"{name}.toml"
            draft.parent.mkdir(exist_ok=True)
            shell(program.get("prepare", ""))
            files = [
                str(file)
                for part in map(Path, program["sources"].split())
                for file in sorted(part.parent.glob(part.name))
            ]
            popmodel(
                *("signature", "from", *files, f"--cflags={program['cflags']}"),
                *("--name", name, "-o", str(draft), "--force"),
            )
            rows = []
            for size in (*program["sizes"], program["tiny"]):
                for split in program["splits"]:
                    rows.append(predicted(draft, program, size, split, given.machine))
                    print(name, size, split, f"{rows[-1]['seconds']:.3f} s", flush=True)
            kept["programs"][name] = {"draft": digest(draft.read_text()), "predictions": rows}
    profile = given.machine.read_text()
    (HERE / "drafts" / "machine.json").write_text(profile)
    kept["machine"] = digest(profile)
    kept["sha256"] = digest(kept["programs"])
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{KEPT.name}: SHA-256 of the predictions {kept['sha256']}")


def predicted(draft: Path, program: Program, size: int, split: str, machine: Path) -> Program:
    processes, threads = split.split("x")
    values = settings(draft, program, size, int(processes))
    words = [word for name, value in values.items() for word in ("--set", f"{name}={value!r}")]
    text = popmodel(
        *("predict", str(draft), "--procs", processes, "--threads", threads),
        *("--machine", str(machine), *words, "--format", "json"),
    )
    runtime = json.loads(text)["runtime"]
    row = {"size": size, "steps": steps_of(program, size), "split": split, "set": values}
    return row | {
        "seconds": runtime["value"],
        "low": runtime["low"],
        "high": runtime["high"],
    }


def launched(program: Program, size: int | None, split: str) -> float:
    """Seconds of a command; without a size, of the least problem."""
    processes, threads = split.split("x")
    command = program["command"]
    if size is None and isinstance(program["least"], str):
        command = program["least"]
    else:
        size = size or program["least"]
    names = {"n": size, "steps": steps_of(program, size) if size else 1}
    with tempfile.TemporaryDirectory() as folder:
        if "input" in program:
            text = program["text"].lstrip("\n").format(**names)
            (Path(folder) / program["input"]).write_text(text)
        binding = ["--bind-to", "core" if threads == "1" else "none"]
        mpirun = Path(shutil.which(program["compiler"]) or "").with_name("mpirun")
        words = [str(mpirun), "-n", processes, *binding, *shlex.split(command.format(**names))]
        begin = time.monotonic()
        made = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - begin
    if made.returncode:
        sys.exit(f"{shlex.join(words)}\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
    return seconds


def run(given: argparse.Namespace) -> None:
    """Build and run the programs in turn; every time is kept beside its prediction."""
    kept = json.loads(KEPT.read_text())
    if digest(kept["programs"]) != kept["sha256"]:
        sys.exit(f"{KEPT}: the predictions are not those that were kept")
    with tempfile.TemporaryDirectory() as folder:
        binaries = given.bin or Path(folder)
        programs = read_programs(given.src, binaries)
        names = given.only.split(",") if given.only else list(programs)
        for name in names:
            shell(programs[name].get("prepare", ""))
            shell(programs[name]["build"])
        cases = [
            (name, row)
            for name in names
            for row in kept["programs"][name]["predictions"]
            if (row["size"] == programs[name]["tiny"]) == given.tiny
        ]
        begin = now()
        launches: dict[str, list[float]] = {}
        times: list[list[float]] = [[] for _ in cases]
        for _ in range(given.repeats):
            for number, (name, row) in enumerate(cases):
                key = f"{name} {row['split']}"
                launches.setdefault(key, []).append(launched(programs[name], None, row["split"]))
                times[number].append(launched(programs[name], row["size"], row["split"]))
    runs = []
    for (name, row), seconds in zip(cases, times, strict=True):
        launch = statistics.median(launches[f"{name} {row['split']}"])
        measured = statistics.median(seconds) - launch
        own = {key: row[key] for key in ("size", "steps", "split", "seconds", "low", "high")}
        runs.append(
            {"program": name, **own, "times": seconds, "launch": launch, "median": measured}
        )
    result = {"begin": begin, "end": now(), "launches": launches, "runs": runs}
    if not given.tiny:
        KEPT.write_text(json.dumps(kept | {"measured": result}, indent=1) + "\n")
    print(table(runs))


def table(runs: list[Program]) -> str:
    """Predicted and measured, as Markdown."""
    lines = ["| program | size | split | predicted | 90 % | measured | spread | error | held |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    errors, held = [], 0
    for row in runs:
        error = row["seconds"] / row["median"] - 1
        inside = row["low"] <= row["median"] <= row["high"]
        errors.append(abs(error))
        held += inside
        low, high = (edge - row["launch"] for edge in (min(row["times"]), max(row["times"])))
        lines.append(
            f"| {row['program']} | {row['size']} | {row['split'].replace('x', ' x ')} "
            f"| {row['seconds']:.3g} s | {row['low']:.3g} .. {row['high']:.3g} s "
            f"| {row['median']:.3g} s | {low:.3g} .. {high:.3g} s "
            f"| {error:+.0%} | {'yes' if inside else 'no'} |"
        )
    median = statistics.median(errors)
    lines += ["", f"Median error {median:.0%}; {held} of {len(runs)} intervals held."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("step", choices=("predict", "run"))
    parser.add_argument("--src", type=Path, required=True, help="folder of the programs' sources")
    parser.add_argument(
        "--bin", type=Path, help="folder of what is built; default: a temporary one"
    )
    parser.add_argument("--machine", type=Path, help="of predict: the profile of this machine")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="of run: names of programs, by commas")
    parser.add_argument("--tiny", action="store_true", help="of run: tries the smallest size alone")
    given = parser.parse_args()
    if given.step == "predict" and given.machine is None:
        parser.error("predict needs --machine")
    (predict if given.step == "predict" else run)(given)


if __name__ == "__main__":
    main()
