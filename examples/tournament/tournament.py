"""A blind tournament: popmodel chooses the split of each program before any split is measured.

``python tournament.py --into results/quiet.json``: a study of small runs of each program predicts
all splits of the cores of this machine; the predictions are stored with their hashes; then every
split is run, in turn. The README says how to read the result.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from popmodel.machines.host import hardware

HERE = Path(__file__).resolve().parent
LEAST_ROUNDS = 3
DRAWS = 2000
RIVALS = ("popmodel", "all MPI", "one process per socket", "random")
Times = Mapping[str, Sequence[float]]  # Seconds of every repeat, by split such as 2x1


def read_programs(folder: Path, binaries: Path) -> dict[str, dict[str, Any]]:
    """The programs of a folder, with its paths where they are run, and without where kept."""
    programs: dict[str, dict[str, Any]] = tomllib.loads((folder / "programs.toml").read_text())
    places = {"{here}": str(folder.resolve()), "{bin}": str(binaries)}
    for program in programs.values():
        program["written"] = program["command"]
        program["folder"] = folder
        for key in ("build", "command"):
            for mark, place in places.items():
                program[key] = program.get(key, "").replace(mark, place)
    return programs


def splits_of(cores: int) -> list[str]:
    """All splits of the cores, and of fewer: half of them, a quarter and so on."""
    totals = {cores} | {2**power for power in range(cores.bit_length()) if 2**power <= cores}
    return [
        f"{processes}x{total // processes}"
        for total in sorted(totals)
        for processes in range(1, total + 1)
        if total % processes == 0
    ]


def cores_of(split: str) -> int:
    """Processes times threads."""
    processes, threads = map(int, split.split("x"))
    return processes * threads


# -- predicted


def predict(
    name: str, program: Mapping[str, Any], machine: Path, work: Path, given: argparse.Namespace
) -> dict[str, Any]:
    """What a study of small runs says of every split, and the split that it would take."""
    words = ["popmodel", "study", "--budget", given.budget, "--machine", str(machine)]
    words += ["-o", str(work / f"{name}.study"), "--force", "--format", "json"]
    for parameter, values in program["set"].items():
        words += ["--set", f"{parameter}={','.join(map(str, values))}"]
    for parameter, value in program["target"].items():
        words += ["--target", f"{parameter}={value}"]
    words += ["--cores", ",".join(map(str, sorted({cores_of(s) for s in splits_of(given.cores)})))]
    words += ["--", *shlex.split(given.launch), *shlex.split(program["command"])]
    done = subprocess.run(words, cwd=program["folder"], capture_output=True, text=True, check=False)
    (work / f"{name}.log").write_text(done.stderr)
    if done.returncode:
        error = [line for line in done.stderr.splitlines() if "error" in line]
        return {"choice": None, "why": (error or done.stderr.splitlines() or ["no answer"])[-1]}
    study = json.loads(done.stdout)
    runtimes = {
        f"{split['processes']}x{split['threads']}": split["runtime"]
        for split in study["candidates"]
    }
    taken = ["{}x{}".format(*choice["take"]) for choice in study["choices"]]
    return {
        "choice": min(taken, key=lambda split: float(runtimes[split]["value"])),
        "runtimes": runtimes,
        "trust": study["trust"],
    }


def hash_of(prediction: Mapping[str, Any]) -> str:
    """SHA-256 of a prediction, of which the keys are sorted."""
    return hashlib.sha256(json.dumps(prediction, sort_keys=True).encode()).hexdigest()


# -- measured


def timed(program: Mapping[str, Any], split: str, launch: str) -> float | None:
    """Seconds of one run; None where the program refuses the split."""
    processes, threads = split.split("x")
    values = {"P": processes, "T": threads, **program["target"]}
    words = [
        re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), word)
        for word in [*shlex.split(launch), *shlex.split(program["command"])]
    ]
    begin = time.perf_counter()
    done = subprocess.run(
        words,
        env={**os.environ, "OMP_NUM_THREADS": threads},
        cwd=program["folder"],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        return None
    if "time" not in program:
        return seconds
    own = re.search(program["time"], done.stdout)
    if own is None:
        raise SystemExit(f"{words}: no time like {program['time']} in what it wrote")
    return float(own[1])


def measure(
    programs: Mapping[str, Mapping[str, Any]], given: argparse.Namespace, end: float
) -> dict[str, dict[str, list[float]]]:
    """Times of all splits of all programs: round after round, so that all meet the same load."""
    times: dict[str, dict[str, list[float]]] = {name: {} for name in programs}
    refused = set()
    for number in range(given.repeats):
        if number >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for name, program in programs.items():
            splits = splits_of(given.cores)
            start = number % len(splits)
            for split in (*splits[start:], *splits[:start]):
                if (name, split) in refused:
                    continue
                seconds = timed(program, split, given.launch)
                if seconds is None:
                    refused.add((name, split))
                    times[name].pop(split, None)
                else:
                    times[name].setdefault(split, []).append(seconds)
        if silent := [name for name in programs if not times[name]]:
            raise SystemExit(f"{', '.join(silent)}: no split runs: try its command by hand")
        print(f"round {number + 1} of {given.repeats} is done", file=sys.stderr)
    return times


# -- scored


def regrets(times: Times, choice: str | None, sockets: int) -> dict[str, float]:
    """How much longer each rival's split takes than the best one, as a share of its time.

    Where popmodel chose nothing, or a split that does not run, the slowest one counts.
    """
    medians = {split: statistics.median(seconds) for split, seconds in times.items()}
    best = min(medians.values())
    loss = {split: median / best - 1 for split, median in medians.items()}
    cores = max(map(cores_of, medians))
    full = {int(split.split("x")[0]): loss[split] for split in loss if cores_of(split) == cores}
    return {
        "popmodel": max(loss.values()) if choice not in loss else loss[choice],
        "all MPI": full[max(full)],
        "one process per socket": full[min(full, key=lambda processes: abs(processes - sockets))],
        "random": statistics.mean(full.values()),
    }


def score(
    played: Mapping[str, Mapping[str, Any]], sockets: int, draws: int = DRAWS
) -> dict[str, dict[str, Any]]:
    """Mean regret of each rival with its 90 % interval: programs and repeats are drawn again."""

    def mean_of(chosen: Sequence[tuple[Times, str | None]]) -> dict[str, float]:
        losses = [regrets(times, choice, sockets) for times, choice in chosen]
        return {rival: statistics.mean(loss[rival] for loss in losses) for rival in RIVALS}

    measured = [(game["times"], game["prediction"]["choice"]) for game in played.values()]
    mean = mean_of(measured)
    dice = random.Random(0)
    drawn = []
    for _ in range(draws):
        some = dice.choices(measured, k=len(measured))
        drawn.append(
            mean_of(
                [
                    ({split: dice.choices(t, k=len(t)) for split, t in times.items()}, choice)
                    for times, choice in some
                ]
            )
        )
    table = {}
    for rival in RIVALS:
        values = sorted(draw[rival] for draw in drawn)
        low, high = (values[round(share * (draws - 1))] for share in (0.05, 0.95))
        worst = max(regrets(times, choice, sockets)[rival] for times, choice in measured)
        table[rival] = {"mean": mean[rival], "low": low, "high": high, "worst": worst}
    return table


def told(result: Mapping[str, Any]) -> str:
    """The result as a table of programs, and one of rivals."""
    lines = ["program      chosen  best    regret  times (median, s)"]
    for name, game in result["programs"].items():
        medians = {split: statistics.median(times) for split, times in game["times"].items()}
        best = min(medians, key=lambda split: medians[split])
        times = "  ".join(f"{split} {seconds:.3g}" for split, seconds in medians.items())
        choice = game["prediction"]["choice"] or "none"
        lost = f"{100 * game['regrets']['popmodel']:.1f} %"
        lines.append(f"{name:12} {choice:7} {best:7} {lost:7} {times}")
    lines += ["", "regret, per cent        mean  90 %          worst"]
    for rival, row in result["score"].items():
        mean, low, high, worst = (100 * row[key] for key in ("mean", "low", "high", "worst"))
        lines.append(f"{rival:22} {mean:5.1f}  {low:5.1f} .. {high:5.1f} {worst:6.1f}")
    return "\n".join(lines)


# -- the whole


def surroundings(given: argparse.Namespace) -> dict[str, Any]:
    """Machine and versions."""

    def first_line(*words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return (done.stdout or done.stderr).partition("\n")[0]

    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": given.cores,
        "sockets": hardware.here().sockets,
        "system": platform.release(),
        "popmodel": first_line("popmodel", "--version"),
        "launcher": first_line(shlex.split(given.launch)[0], "--version"),
        "compiler": first_line("cc", "--version"),
        "launch": given.launch,
        "budget": given.budget,
        "profile": "measured" if given.machine is None else "given",
        "hogs": given.hogs,
    }


def now() -> dict[str, Any]:
    """Date and load."""
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"date": date, "load": [round(load, 2) for load in os.getloadavg()]}


def play(given: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Predict all programs, store that, measure, score."""
    end = time.monotonic() + 60 * given.minutes
    result: dict[str, Any] = {**surroundings(given), "begin": now(), "programs": {}}
    programs = read_programs(HERE, work)
    for folder in given.also:
        programs |= read_programs(folder, work)
    programs = {name: programs[name] for name in given.only or programs}
    for build in {program["build"] for program in programs.values()} - {""}:
        subprocess.run(shlex.split(build), check=True)
    machine = given.machine
    if machine is None:
        machine = work / "machine.json"
        words = ["popmodel", "machine", "measure", "-o", str(machine), "--force"]
        subprocess.run(words, check=True, stdout=sys.stderr)
    for name, program in programs.items():
        prediction = predict(name, program, machine.resolve(), work, given)
        about = {key: program[key] for key in ("set", "target")} | {"command": program["written"]}
        result["programs"][name] = about | {
            "predicted": now(),
            "prediction": prediction,
            "sha256": hash_of(prediction),
        }
        print(f"{name}: {prediction['choice'] or prediction['why']}", file=sys.stderr)
    keep(given.into, result)  # before anything of the truth is known
    result["measured"] = now()
    times, sockets = measure(programs, given, end), result["sockets"]
    for name, game in result["programs"].items():
        game["times"] = dict(sorted(times[name].items()))
        game["regrets"] = regrets(times[name], game["prediction"]["choice"], sockets)
    result["score"] = score(result["programs"], sockets)
    result["end"] = now()
    keep(given.into, result)
    return result


def keep(path: Path, result: Mapping[str, Any]) -> None:
    """Write what is known."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def main(words: Sequence[str] | None = None) -> None:
    """Read the options, and play."""
    here = hardware.here()
    asks = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asks.add_argument("--into", type=Path, default=Path("results/tournament.json"))
    asks.add_argument("--also", type=Path, action="append", default=[], metavar="FOLDER")
    asks.add_argument("--only", type=lambda text: text.split(","), metavar="NAME,...")
    asks.add_argument("--cores", type=int, default=here.usable_cores, help="default: all")
    asks.add_argument("--machine", type=Path, help="profile; default: it is measured")
    asks.add_argument("--launch", default="mpirun --bind-to none -n {P}", help="the launcher")
    asks.add_argument("--budget", default="20s", help="of each study; default: 20s")
    asks.add_argument("--repeats", type=int, default=5, help="of each split; default: 5")
    asks.add_argument("--minutes", type=float, default=20, help="begin no round after; default: 20")
    asks.add_argument("--hogs", type=int, default=0, help="processes that spin all the time")
    asks.add_argument("--work", type=Path, help="keep studies and binaries in this folder")
    given = asks.parse_args(words)
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.hogs)]
    try:
        with tempfile.TemporaryDirectory() as temporary:
            work = given.work or Path(temporary)
            work.mkdir(parents=True, exist_ok=True)
            print(told(play(given, work.resolve())))
    finally:
        for hog in hogs:
            hog.kill()


if __name__ == "__main__":
    main()
