"""Mutates small real traces and holds the compiled scanner to the plain one on every input.

Run as ``python tests/fuzz/fuzz_scanner.py --seconds 60``; any difference ends it with status 1 and
leaves the input in a file. ``--corpus FOLDER`` writes inputs instead, for run_asan.sh.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from fuzz.mutate import mutate  # noqa: E402 (the path must be known first)
from oracle.scanner import Layout  # noqa: E402

SEED = 20240229


def excerpts(dice: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield the header and some lines of one of the small traces, for ever."""
    texts = []
    for path in sorted((HERE.parent / "data").glob("*.prv.gz")):
        header, _, rest = gzip.decompress(path.read_bytes()).partition(b"\n")
        texts.append((header.decode(), rest.splitlines(keepends=True)))
    while True:
        header, lines = dice.choice(texts)
        begin = dice.choice([0, dice.randrange(len(lines))])
        yield header, b"".join(lines[begin : begin + dice.randint(1, 40)])


def layout_of(header: str, dice: random.Random) -> Layout:
    """Return the layout that a header states, sometimes with another unit or application.

    The headers are those of the traces beside this file; popmodel's own reader of headers is not
    used, so that the corpus can be written before popmodel is built.
    """
    found = re.search(r":(\d+)_ns:\d+\(([\d,]+)\):1:\d+\(([\d:,]+)\)", header)
    assert found is not None, header
    threads = [[int(task.split(":")[0]) for task in found[3].split(",")]]
    layout = Layout(threads, sum(map(int, found[2].split(","))), 1, int(found[1]), 1)
    if dice.random() < 0.2:
        layout = replace(layout, unit=1000)
    if dice.random() < 0.2:
        layout = replace(layout, threads=[*layout.threads, [1, 2]], application=dice.choice([1, 2]))
    if dice.random() < 0.1:
        layout = replace(layout, cpus=0)
    return layout


def compare(seconds: float, iterations: int) -> int:
    """Compare until the time or the number is used up; the number of inputs compared."""
    from oracle.compare import compiled, expected

    dice = random.Random(SEED)
    until = time.monotonic() + seconds
    errors = 0
    for number, (header, text) in enumerate(excerpts(dice)):
        if number >= iterations or time.monotonic() > until:
            print(f"{number} inputs, {errors} of them refused, no difference")
            return number
        layout = layout_of(header, dice)
        damaged = mutate(text, dice)
        cuts = sorted(dice.randrange(len(damaged) + 1) for _ in range(dice.randint(0, 3)))
        wanted = expected(damaged, layout)
        errors += wanted[0] == "error"
        found = compiled(damaged, layout, cuts)
        if found != wanted:
            Path("difference.prv").write_bytes(damaged)
            print(f"input {number} (in difference.prv, cut at {cuts}), {layout}")
            print("plain   ", str(wanted)[:2000])
            print("compiled", str(found)[:2000])
            sys.exit(1)
    raise AssertionError("the excerpts ended")


def write_corpus(folder: Path, iterations: int) -> None:
    """Write mutated inputs, each after a line with its layout, for driver.cpp."""
    dice = random.Random(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    for number, (header, text) in zip(range(iterations), excerpts(dice), strict=False):
        layout = layout_of(header, dice)
        numbers = [layout.cpus, layout.unit, layout.duration, layout.application]
        for threads in layout.threads:
            numbers += [len(threads), *threads]
        first = " ".join(map(str, numbers)).encode()
        (folder / f"{number:06d}").write_bytes(first + b"\n" + mutate(text, dice))


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--iterations", type=int, default=sys.maxsize)
    parser.add_argument("--corpus", type=Path)
    options = parser.parse_args()
    if options.corpus:
        write_corpus(options.corpus, min(options.iterations, 1_000_000))
    else:
        if options.seconds == float("inf") and options.iterations == sys.maxsize:
            options.seconds = 10.0
        compare(options.seconds, options.iterations)


if __name__ == "__main__":
    main()
