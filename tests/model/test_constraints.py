"""With which processes and threads conditions hold, and what formulas give there."""

import numpy as np
import pytest

from popmodel.base.documents import parse_toml
from popmodel.base.expressions import Expression
from popmodel.model.constraints import Possible, environment, outcomes, possible
from popmodel.model.run.process_placement import MOST_PROCESSES
from popmodel.model.signature import reading
from popmodel.model.signature.application import Signature, names
from popmodel.model.signature.reading import Path
from popmodel.model.signatures import SignatureReader

HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
BODY = "[[program]]\nserial = { trip = 5 }\n"


def read(text: str) -> tuple[Signature, dict[Path, Expression], dict[str, float]]:
    whole = HEAD + text
    reader = SignatureReader("demo.toml", reading.key_lines(whole))
    signature = reader.signature(parse_toml(whole, "demo.toml"), False)
    params = {name: quantity.value for name, quantity in signature.inputs.items()}
    return signature, reader.formulas, params


def runs(text: str) -> Possible:
    signature, formulas, params = read(text)
    require = {path: one for path, one in formulas.items() if path[:2] == ("limits", "require")}
    return possible(signature, require, params)


@pytest.mark.parametrize(
    ("text", "smallest"),
    [
        ("", [1, 2, 3, 4]),
        ("[limits]\nrequire = ['is_square(P)']\n", [1, 4, 9, 16]),
        ("[limits]\nrequire = ['P % 3 == 0', 'P > 5']\n", [6, 9, 12, 15]),
        ("[limits]\nrequire = ['P == 999983']\n", [999983]),
        ("[limits]\nrequire = ['sqrt(P - 3) >= 0']\n", [3, 4, 5, 6]),
        ("[limits]\nrequire = ['P - 1']\n", [2, 3, 4, 5]),
        ("[params]\nN = 6\n[let]\nb = 'N/P'\n[limits]\nrequire = ['b % 1 == 0']\n", [1, 2, 3, 6]),
        ("[limits]\nrequire = ['P*T == 12']\n", [1, 2, 3, 4]),
        ("[limits]\nrequire = ['P == 4*T', 'T > 2']\n", [12, 16, 20, 24]),
        ("[let]\ns = 'sqrt(P)'\n[decomp]\ngrid = ['s', 's']\n", [1, 4, 9, 16]),
        ("[decomp]\ngrid = ['2', 'P/2']\n", [2, 4, 6, 8]),
        ("[decomp]\ngrid = ['T', 'P/T']\n[limits]\nrequire = ['T > 3']\n", [4, 5, 6, 7]),
        ("[params]\nN = 64\n[decomp]\nglobal = ['N', 'N']\n[limits]\nrequire = ['n0 > n1']\n",
         [2, 3, 5, 6]),
        ("[decomp]\nglobal = [64, 64]\n[limits]\nrequire = ['P0 == 4', 'T == 2']\n",
         [16, 20, 24, 28]),
    ],
)  # fmt: skip
def test_smallest_possible_numbers(text: str, smallest: list[int]) -> None:
    found = runs(text + BODY).smallest(4)
    assert found == smallest


def test_never_is_said_of_all_numbers_where_that_is_possible() -> None:
    alone = runs("[limits]\nrequire = ['P > 3']\n" + BODY)
    assert alone.is_complete
    assert alone.processes.size == MOST_PROCESSES
    threads = runs("[limits]\nrequire = ['P > T']\n" + BODY)
    assert not threads.is_complete
    assert (threads.threads.min(), threads.threads.max()) == (1, 256)
    assert set(range(1, 4097)) <= {int(count) for count in threads.processes}
    assert not runs(
        "[decomp]\nglobal = [8, 8]\n[limits]\nrequire = ['n0 > 1']\n" + BODY
    ).is_complete


def test_a_grid_that_is_searched_for_excludes_nothing() -> None:
    found = runs("[decomp]\nglobal = [8, 8]\n" + BODY)
    assert found.conditions == ()
    assert found.allowed.all()


def test_conflicts() -> None:
    head = "[limits]\nrequire = "
    assert runs(head + "['P > 3', 'P < 9']\n" + BODY).first_conflict() is None
    found = runs(head + "['P > 3', 'P < 9', 'P % 2 == 0', 'P == 3']\n" + BODY).first_conflict()
    assert found is not None
    assert found[0].text == "P == 3"
    assert found[1] is not None
    assert found[1].text == "P > 3"
    found = runs(head + "['P % 2 == 0', 'P % 3 == 0', 'P < 6']\n" + BODY).first_conflict()
    assert found is not None
    assert (found[0].text, found[1]) == ("P < 6", None)
    # what never holds by itself contradicts nothing else
    assert runs(head + "['P < 0', 'P > 3']\n" + BODY).first_conflict() is None
    grid = "[decomp]\ngrid = ['2', 'P/2']\n"
    found = runs(head + "['P % 2 == 1']\n" + grid + BODY).first_conflict()
    assert found is not None
    assert (found[0].path, found[0].text) == (("decomp", "grid"), "2 x P/2")


def test_names_are_those_of_a_prediction() -> None:
    signature, _, params = read(
        "[params]\nN = 96\n[let]\nh = 'N/T'\n[decomp]\nglobal = ['N', 'h']\n" + BODY
    )
    processes, threads = np.array([1.0, 6.0, 12.0]), np.array([1.0, 2.0, 3.0])
    found = environment(signature, processes, threads, params)
    for index, (process, thread) in enumerate(zip(processes, threads, strict=True)):
        expected, _ = names(signature, int(process), int(thread), params)
        for name, value in expected.items():
            here = np.broadcast_to(found[name], processes.shape)[index]
            assert here == pytest.approx(value), name


def test_outcomes_are_for_possible_runs_only() -> None:
    signature, formulas, params = read(
        "[params]\nN = 8\n[let]\na = '1/(P - 2)'\n[limits]\nrequire = ['P > 2']\n"
        "[[program]]\nserial = { trip = 'a', bytes.MEM = 'if_fits(N, 1, 0*P)' }\n"
        "[[program]]\np2p = { to = 'rank + P', bytes = 8 }\n"
        "[[program]]\nserial = { trip = 'P > 8' }\n"
    )
    found = outcomes(signature, formulas, params, runs("[limits]\nrequire = ['P > 2']\n" + BODY))
    by_place = {outcome.path: outcome for outcome in found}
    assert ("limits", "require", 0) not in by_place
    trip = by_place["program", 0, "serial", "trip"]
    assert trip.processes.min() == 3
    assert trip.processes.max() > 1e5
    np.testing.assert_allclose(trip.values, 1 / (trip.processes - 2))
    fits, misses = (one for one in found if one.path[-1] == "MEM")
    assert (set(fits.values), set(misses.values)) == ({1.0}, {0.0})
    assert by_place["program", 2, "serial", "trip"].values.dtype == np.float64
    to = by_place["program", 1, "p2p", "to"]
    np.testing.assert_array_equal(to.values, to.processes)
