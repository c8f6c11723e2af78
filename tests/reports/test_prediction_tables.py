"""The screen of a prediction, on documents that no bundled default gives."""

from __future__ import annotations

from typing import Any

import pytest
from pasted import parsed

from popmodel.machines import profile
from popmodel.model import signatures as signature
from popmodel.prediction.prediction import predict
from popmodel.reports.prediction_tables import blocks
from popmodel.reports.renderers.markdown import markdown_lines
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style, command_lines

MAIN = ["hybrid-additive"]
MEASURE = "popmodel machine measure --only memory -o 'my machine.json' --force"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Document:
    run = predict(signature.load("cannon"), profile.load(profile.DEFAULT_PRESET), 64, 4, draws=0)
    return run.to_dict()


def shown(document: Document, *families: str, fitting: bool = False, width: int = 60) -> list[str]:
    lines = block_lines(
        blocks(document, families or MAIN, fitting=fitting), Style(width, whole=True)
    )
    assert max(map(len, lines)) <= width
    return lines


def markdown(document: Document, *families: str) -> list[str]:
    return markdown_lines(blocks(document, families or MAIN))


def measured(document: Document, metric: str, **estimate: float | None) -> Document:
    """The document with another value of a metric of the additive family."""
    main = document["metrics"]["hybrid-additive"] | {metric: {"why": "a test", **estimate}}
    return {**document, "metrics": document["metrics"] | {"hybrid-additive": main}}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("memory.bsat", "saturated memory bandwidth (memory.bsat, preset)"),
        ("core.freq", "clock frequency by active cores of a node (core.freq, preset)"),
        (
            "net.inter.classes.alpha",
            "latency of a message between nodes (net.inter.classes.alpha, preset)",
        ),
        (
            "openmp.parallel_for.seconds",
            "overhead of OpenMP parallel_for (openmp.parallel_for.seconds, preset)",
        ),
    ],
)
def test_the_main_uncertainty_has_its_words_its_path_and_its_origin(
    document: Document, name: str, words: str
) -> None:
    lines = shown({**document, "doubtful": {name: 0.5}}, width=120)
    assert f"main uncertainty: {words}, 50 % of the variance" in lines


def test_a_law_is_compared_with_runs_and_the_next_input_is_measured(document: Document) -> None:
    shares = {"law.loops": 0.6, "params.N": 0.2, "memory.bsat": 0.1}
    lines = shown({**document, "doubtful": shares, "measure": MEASURE}, width=120)
    first = lines.index("main uncertainty: law of parallel loops (law.loops), 60 % of the variance")
    assert lines[first + 1 : first + 4] == [
        " no benchmark measures a law: compare with measured runs (popmodel validate)",
        "largest that a benchmark measures: saturated memory bandwidth (memory.bsat, preset), "
        "10 % of the variance",
        " measure, then add --machine 'my machine.json':",
    ]
    alone = shown({**document, "doubtful": {"law.loops": 0.6}, "measure": None}, width=120)
    assert not any("largest that" in line for line in alone)


@pytest.mark.parametrize("width", [40, 60, 120])
def test_the_command_that_measures_can_be_pasted(document: Document, width: int) -> None:
    lines = shown({**document, "doubtful": {"memory.bsat": 0.5}, "measure": MEASURE}, width=width)
    text = "\n".join(lines)
    above, _, below = text.partition("  popmodel machine measure ")
    assert " ".join(above.split()).endswith("measure, then add --machine 'my machine.json':")
    command = f"popmodel machine measure {below.partition(chr(10) + chr(10))[0]}"
    assert parsed(command) == parsed(MEASURE)


def test_a_profile_of_a_file_is_measured_in_place(document: Document) -> None:
    own = {**document, "machine": document["machine"] | {"preset": False}, "measure": MEASURE}
    assert " measure:" in shown({**own, "doubtful": {"memory.bsat": 0.5}})


def test_sections_measured_in_noise_are_named_beside_the_machine(document: Document) -> None:
    machine = {**document["machine"], "preset": False, "origin": "measured", "noisy": ["core"]}
    assert any(
        line.endswith("sandybridge-fdr (measured; noisy: core)")
        for line in shown({**document, "machine": machine})
    )


def test_a_change_that_rounds_to_nothing_has_no_minus(document: Document) -> None:
    same = {"runtime": 1.0}, {"runtime": 1.0 - 1e-6}
    replay = {**document["replay"], "closed_form": same[1], "replay": same[0]}
    text = " ".join(" ".join(shown({**document, "replay": replay})).split())
    assert "closed form: 1.000 s (+0.0 %)" in text


def test_views_are_shown_where_they_lose_or_a_family_is_asked_for(document: Document) -> None:
    name = "OpenMP load balance"
    assert not any(name in line for line in shown(document, fitting=True))
    assert any(f"   ({name}) " in line for line in shown(document))
    losing = measured(document, "openmp_load_balance", value=0.9, low=None, high=None)
    assert any(f"   ({name}) " in line for line in shown(losing, fitting=True))


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.967, 0.9665, 0.9672, "96.7  96 .. 97"),
        (0.884, 0.8845 - 0.001, 0.889, "88.4  88 .. 89"),
        (1.0, 0.9996, 1.0, "100.0  99 .. 100"),
        (1.0 + 1e-15, 1.0 - 1e-15, 1.0 + 1e-15, "100.0  100 .. 100"),
    ],
)
def test_an_interval_is_rounded_outwards(
    document: Document, value: float, low: float, high: float, text: str
) -> None:
    changed = measured(document, "parallel_efficiency", value=value, low=low, high=high)
    (row,) = [line for line in shown(changed) if line.startswith("Parallel efficiency ")]
    assert " ".join(row.split()[2:]) == " ".join(text.split())


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(1.21, 1.37, "1.21 .. 1.37 s"), (0.95, 1.37, "950 ms .. 1.37 s")],
)
def test_the_unit_of_an_interval_is_told_once(
    document: Document, low: float, high: float, text: str
) -> None:
    runtime = {"value": 1.3, "low": low, "high": high}
    (verdict,) = [line for line in shown({**document, "runtime": runtime}) if "takes" in line]
    assert f"takes 1.300 s (90 %: {text})" in verdict


def test_what_the_largest_loss_comes_from_is_told(document: Document) -> None:
    metric = "process_transfer_efficiency"
    causes = {metric: {"shift B": 0.3, "shift A": 0.1, "sum": 0.001}}
    lines = shown({**document, "limits": metric, "causes": causes})
    (row,) = [line for line in lines if "Process transfer efficiency <-" in line]
    assert "<- 401 ms lost: shift B 300 ms; shift A 100 ms" in lines
    assert lines.index(row) < lines.index("<- 401 ms lost: shift B 300 ms; shift A 100 ms")
    text = markdown({**document, "limits": metric, "causes": causes})
    assert "\\<- 401 ms lost: shift B 300 ms; shift A 100 ms" in text


@pytest.mark.parametrize("width", [20, 30, 80])
def test_what_a_launch_line_quotes_stays_on_one_line(width: int) -> None:
    command = "A=1 \\\nsrun -n 2 --cpu-bind=cores './a  b; c' \"it's d\" -e './f'\"'\"' g'"
    lines = command_lines(command, width)
    assert any("'./a  b; c'" in line for line in lines)
    assert any('"it\'s d"' in line for line in lines)
    assert any("'./f'\"'\"' g'" in line for line in lines)
