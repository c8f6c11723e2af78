"""The screen of a prediction, on documents that no bundled default gives."""

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

MEASURE = "popmodel machine measure --only memory -o 'my machine.json' --force"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Document:
    run = predict(signature.load("cannon"), profile.load(profile.DEFAULT_PRESET), 64, 4, draws=0)
    return run.to_dict()


def shown(document: Document, *families: str, width: int = 60) -> list[str]:
    lines = block_lines(blocks(document, families or None), Style(width, whole=True))
    assert max(map(len, lines)) <= width
    return lines


def measured(document: Document, metric: str, **estimate: float | None) -> Document:
    """The document with another value of a metric of the additive family."""
    main = document["metrics"]["hybrid-additive"] | {metric: {"why": "a test", **estimate}}
    return {**document, "metrics": document["metrics"] | {"hybrid-additive": main}}


def test_the_main_uncertainty_has_its_words_its_path_and_its_origin(document: Document) -> None:
    for name, words in {
        "memory.bsat": "saturated memory bandwidth (memory.bsat, preset)",
        "net.inter.classes.alpha": "latency of a message between nodes "
        "(net.inter.classes.alpha, preset)",
    }.items():
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


def test_the_command_that_measures_can_be_pasted(document: Document) -> None:
    doubted = {**document, "doubtful": {"memory.bsat": 0.5}, "measure": MEASURE}
    for width in (40, 60, 120):
        above, _, below = "\n".join(shown(doubted, width=width)).partition(
            "  popmodel machine measure "
        )
        assert " ".join(above.split()).endswith("measure, then add --machine 'my machine.json':")
        command = f"popmodel machine measure {below.partition(chr(10) + chr(10))[0]}"
        assert parsed(command) == parsed(MEASURE)
    assert " measure:" in shown({**doubted, "machine": document["machine"] | {"preset": False}})


def test_sections_measured_in_noise_are_named_beside_the_machine(document: Document) -> None:
    machine = {**document["machine"], "preset": False, "origin": "measured", "noisy": ["core"]}
    lines = shown({**document, "machine": machine})
    assert any(line.endswith("sandybridge-fdr (measured; noisy: core)") for line in lines)


def test_views_are_shown_where_they_lose_or_a_family_is_asked_for(document: Document) -> None:
    name = "OpenMP load balance"
    assert not any(name in line for line in shown(document))
    assert any(f"   ({name}) " in line for line in shown(document, "hybrid-additive"))
    losing = measured(document, "openmp_load_balance", value=0.9, low=None, high=None)
    assert any(f"   ({name}) " in line for line in shown(losing))


def test_numbers_are_rounded_without_hiding_what_they_are(document: Document) -> None:
    for value, low, high, text in (
        (0.884, 0.8845 - 0.001, 0.889, "88.4 88 .. 89"),
        (1.0, 0.9996, 1.0, "100.0 99 .. 100"),
        (1.0 + 1e-15, 1.0 - 1e-15, 1.0 + 1e-15, "100.0 100 .. 100"),
    ):
        changed = measured(document, "parallel_efficiency", value=value, low=low, high=high)
        (row,) = [line for line in shown(changed) if line.startswith("Parallel efficiency ")]
        assert " ".join(row.split()[2:]) == text
    for low, text in ((1.21, "1.21 .. 1.37 s"), (0.95, "950 ms .. 1.37 s")):
        runtime = {"value": 1.3, "low": low, "high": 1.37}
        (verdict,) = [line for line in shown({**document, "runtime": runtime}) if "takes" in line]
        assert f"takes 1.300 s (90 %: {text})" in verdict
    same = {"closed_form": {"runtime": 1.0 - 1e-6}, "replay": {"runtime": 1.0}}
    text = " ".join(" ".join(shown({**document, "replay": document["replay"] | same})).split())
    assert "closed form: 1.000 s (+0.0 %)" in text


def test_what_the_largest_loss_comes_from_is_told(document: Document) -> None:
    metric = "process_transfer_efficiency"
    causes = {metric: {"shift B": 0.3, "shift A": 0.1, "sum": 0.001}}
    told = {**document, "limits": metric, "causes": causes}
    lines = shown(told)
    (row,) = [line for line in lines if "Process transfer efficiency <-" in line]
    assert lines.index(row) < lines.index("<- 401 ms lost: shift B 300 ms; shift A 100 ms")
    assert "\\<- 401 ms lost: shift B 300 ms; shift A 100 ms" in markdown_lines(blocks(told))


def test_what_a_launch_line_quotes_stays_on_one_line() -> None:
    command = "A=1 \\\nsrun -n 2 --cpu-bind=cores './a  b; c' \"it's d\" -e './f'\"'\"' g'"
    for width in (20, 30, 80):
        lines = command_lines(command, width)
        for words in ("'./a  b; c'", '"it\'s d"', "'./f'\"'\"' g'"):
            assert any(words in line for line in lines)
