"""Machines that configurations of Dimemas describe."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from popmodel.base.errors import FileError
from popmodel.network.dimemas_cfg import MEGABYTE, Machine, is_configuration, read

HINT = "give a configuration as Dimemas reads it (#DIMEMAS_CONFIGURATION)"
WIDE = '"wide area network information" {"", 1, 0, 4, 0.0, 0.0, 1};;'
ENVIRONMENT = '"environment information" {"a, b", 0, "", 4, 100, 2, 3};;'
NODES = '"multi node information" {0, 4, "n", 8, 2.0, 1e-6, 1000, 0, 3, 3, 1e-5, 1, 2, 0.0};;'
PLACES = '"predefined mapping information" {"2 TASKS_PER_NODE"};;'
FILES = '"configuration files" {"", "", "coll.txt", ""};;'


def machine(folder: Path, *records: str) -> Machine:
    path = folder / "x.cfg"
    head = '#DIMEMAS_CONFIGURATION\n/* "environment information" {\n 1: int "of"\n};; */\n'
    path.write_text(head + "\n".join(records) + "\n")
    return read(path)


def test_a_machine(tmp_path: Path) -> None:
    found = machine(tmp_path, WIDE, ENVIRONMENT, NODES, PLACES, FILES)
    (node,) = set(found.nodes)
    assert (len(found.nodes), node.processors, node.speed) == (4, 8, 2.0)
    assert (node.latency_within, node.bandwidth_within) == (1e-6, 1000 * MEGABYTE)
    assert (node.latency, node.input_links, node.output_links) == (1e-5, 1, 2)
    assert (node.input_links_within, node.output_links_within, node.buses_within) == (3, 3, 0)
    assert (found.bandwidth, found.buses) == (100 * MEGABYTE, 2)
    assert (found.collective_cost, found.collectives) == ("logarithmic", "coll.txt")
    assert found.placement(5) == [0, 0, 1, 1, 2]


def test_nodes_one_by_one_in_both_forms_and_nothing_that_limits(tmp_path: Path) -> None:
    nodes = (
        '"node information" {0, "n", 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0.0};;',
        '"node information" {0, 1, "n", 3, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0.0};;',
    )
    environment = '"environment information" {"", 0, "", 2, 0, 0, 1};;'
    found = machine(tmp_path, environment, *nodes)
    assert [node.processors for node in found.nodes] == [1, 3]
    assert math.isinf(found.bandwidth)
    assert math.isinf(found.nodes[0].bandwidth_within)
    assert found.placement(4) == [0, 1, 1, 1]  # filled where nobody says


@pytest.mark.parametrize(
    ("record", "placed"),
    [
        ('"predefined mapping information" {"FILL_NODES"};;', [0, 0, 0, 0, 0]),
        ('"predefined mapping information" {"x.dim", "INTERLEAVED"};;', [0, 1, 2, 3, 0]),
        ('"mapping information" {"x.dim", 5, [5] {3, 0, 1, 2, 3}};;', [3, 0, 1, 2, 3]),
    ],
)
def test_mappings(tmp_path: Path, record: str, placed: list[int]) -> None:
    assert machine(tmp_path, ENVIRONMENT, NODES, record).placement(5) == placed


@pytest.mark.parametrize(
    ("record", "count", "problem"),
    [
        (PLACES, 9, "has no place for 9 processes on 4 nodes"),
        ('"predefined mapping information" {"FILL_NODES"};;', 33, "has no place for 33 processes"),
        ('"mapping information" {"x", 2, [2] {0, 1}};;', 3, "maps 2 tasks, not 3"),
    ],
)
def test_processes_without_a_place(tmp_path: Path, record: str, count: int, problem: str) -> None:
    with pytest.raises(FileError, match=problem):
        machine(tmp_path, ENVIRONMENT, NODES, record).placement(count)


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([], 'has no records "environment information", not one'),
        ([ENVIRONMENT] * 2, 'has 2 records "environment information", not one'),
        (['"environment information" {1};;'], "environment information has 1 fields, not 7"),
        ([ENVIRONMENT], "describes no nodes"),
        (
            [ENVIRONMENT, NODES.replace("{0, 4,", "{0, 1e300,")],
            "describes 1e+300 nodes, more than 10,000,000",
        ),
        ([ENVIRONMENT.replace("4,", "5,"), NODES], "announces 5 nodes, but describes 4"),
        ([ENVIRONMENT.replace("3}", "7}"), NODES], "model 7 of collectives is not known (1 to 3"),
        ([ENVIRONMENT, '"node information" {0, 1};;'], "node information has 2 fields, not 13"),
        ([ENVIRONMENT, '"multi node information" {0};;'], "information has 1 fields, not 14"),
        ([ENVIRONMENT, NODES.replace("2.0", "0")], "a speed of 0, which stands for bursts"),
        ([ENVIRONMENT, NODES.replace("1e-5", "x")], "field 11 must be a number, not x"),
        ([ENVIRONMENT, NODES.replace("1e-5", "-1")], "field 11 must not be below 0"),
        ([ENVIRONMENT, NODES.replace("8,", "1.5,")], "field 4 must be a whole number from 0"),
        ([WIDE.replace("1, 0", "2, 0"), ENVIRONMENT, NODES], "several machines in a wide area"),
        (['"modules information" {1, 2, 3};;', ENVIRONMENT, NODES], "has modules, which are not"),
        ([ENVIRONMENT, NODES, PLACES.replace("2 ", "0 ")], 'unknown mapping "0 TASKS_PER_NODE"'),
        (
            [ENVIRONMENT, NODES, '"mapping information" {"x", 1, [1] {4}};;'],
            "maps a task to node 4 of 4",
        ),
    ],
)
def test_configurations_that_cannot_be_used(
    tmp_path: Path, records: list[str], problem: str
) -> None:
    with pytest.raises(FileError) as caught:
        machine(tmp_path, *records)
    assert problem in caught.value.message
    assert caught.value.message.startswith(str(tmp_path / "x.cfg"))
    assert caught.value.hint == HINT


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read: no such file or directory"):
        read(tmp_path / "none.cfg")
    assert is_configuration("a/b.cfg")
    assert not is_configuration("ideal")
