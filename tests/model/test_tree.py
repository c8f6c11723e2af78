"""The tree of works: its leaves add up to the whole, and other works of them to another whole."""

from pathlib import Path

import pytest
from model.demo import machine, program

from popmodel.machines import profile as profiles
from popmodel.model import signatures
from popmodel.model.run.collective_times import CARRIED, CARRIED_LAW
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import RunWork
from popmodel.model.tree import ItemTree, prepare

DATA = Path(__file__).parent.parent / "data"


def every() -> ItemTree:
    """The tree of a program with every kind of item."""
    signature = signatures.load(DATA / "signatures" / "every.toml")
    profile = profiles.load(DATA / "machines" / "every.json")
    known = {**profile.quantities, **profile.plain, CARRIED_LAW: CARRIED}
    parameters = Parameters(profile, lambda path: known[path].value)
    values = {name: quantity.value for name, quantity in signature.inputs.items()}
    return prepare(signature, place(8, 2, profile.topology), parameters, values).work()


def small(body: str) -> ItemTree:
    profile = machine()
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    return prepare(program(body), place(2, 1, profile.topology), parameters, {}).work()


NESTED = """
[[program]]
serial = { name = "first", trip = 10 }
[[program]]
loop = { count = 6 }
[[program.body]]
serial = { name = "sometimes", trip = 10, every = 3 }
[[program.body]]
loop = { name = "inner", count = 5, every = 2, body = [{ serial = { name = "deep", trip = 10 } }] }
"""


def test_leaves_add_up_to_the_whole() -> None:
    tree = every()
    for name in RunWork._fields:
        if name == "steps":  # counted once for what meets side by side
            continue
        parts = [getattr(work, name) for _, work in tree.leaves()]
        whole = getattr(tree.total, name)
        assert (whole is None) == any(part is None for part in parts)
        assert whole is None or whole == pytest.approx(sum(parts), rel=1e-12)


def test_other_works_of_leaves_give_another_whole() -> None:
    tree = small(NESTED)
    doubled = tree.mapped(lambda node: node.work.times(2))
    assert doubled.total.serial == pytest.approx(2 * tree.total.serial)
    without = tree.mapped(
        lambda node: node.work._replace(serial=0.0) if node.item.name == "deep" else node.work
    )
    assert tree.total.serial - without.total.serial == pytest.approx(15 * 10 / 2e9)
    assert tree.mapped(lambda node: node.work).total == tree.total
