"""Lists of calls: what is read, what is refused, and what they take."""

import numpy as np
import pytest
from model.demo import machine, program

from popmodel.base.errors import UsageError
from popmodel.model.kinds import sentence
from popmodel.model.predictor import Study
from popmodel.model.script import Script
from popmodel.model.signature.application import Signature
from popmodel.model.unroll import carry_out, outline
from popmodel.prediction.prediction import predict
from popmodel.simulator.program import Op

LATENCY, PER_BYTE = 5e-7, 1e-10
"""Of messages inside a node of the machine."""

HALVES = """
    { on = "rank % 2 == 0", do = "irecv", from = "rank + 1", tag = 7 },
    { on = "rank % 2 == 1", do = "isend", to = "rank - 1", bytes = 8192, tag = 7 },
    { do = "compute", seconds = 1e-3 },
    { do = "waitall" },
"""


def listed(calls: str, more: str = "", count: int = 1, **sections: str) -> Signature:
    text = (
        f"[[program]]\nloop = {{ count = {count} }}\n[[program.body]]\n"
        f'[program.body.messages]\nname = "list"\n{more}\ncalls = [{calls}]\n'
    )
    return program(text, **sections)


def study_of(signature: Signature) -> Study:
    return Study(signature, machine(), {}, 0, 0)


def carried(signature: Signature, processes: int, seed: int = 0):  # type: ignore[no-untyped-def]
    study = study_of(signature)
    placement = study.admit(processes, 1)
    drawn = study.sources()
    run = study.run(placement, drawn)
    script = Script.of(run.tree, study.spread(placement, drawn))
    return carry_out(outline(script, {}), study.spread(placement, drawn), seed).program


def operations(signature: Signature, processes: int, rank: int) -> list[tuple[str, int]]:
    made = carried(signature, processes)
    mine = slice(made.offsets[rank], made.offsets[rank + 1])
    kinds, targets = made.kind[mine].tolist(), made.target[mine].tolist()
    return [(Op(kind).name.lower(), target) for kind, target in zip(kinds, targets, strict=True)]


def instructions_of(calls: str, processes: int = 4, more: str = "") -> object:
    study = study_of(listed(calls, more))
    return study.run(study.admit(processes, 1), study.sources()).work.instructions


def test_instructions_of_a_list_are_those_of_its_computations() -> None:
    messages = '{ do = "sendrecv", to = "(rank+1) % P", from = "(rank+P-1) % P", bytes = 8 },'
    counted = '{ do = "compute", on = "rank < 2", seconds = 1e-3, instructions = 600 },'
    again = f"{{ repeat = 3, calls = [{counted}] }},"
    assert instructions_of(messages) == 0
    assert instructions_of(messages + counted + again) == 4 * 600 / 2
    assert instructions_of(messages + counted + '{ do = "compute", seconds = 1e-3 },') is None


# -- what is read


def test_every_rank_does_what_its_conditions_say() -> None:
    one = listed(HALVES)
    assert operations(one, 4, 0) == [("post", 0), ("wait_receive", 0)]
    assert operations(one, 4, 1) == [("isend", 0), ("wait_send", 0)]
    assert operations(one, 4, 2) == [("post", 1), ("wait_receive", 1)]
    sent = carried(one, 4).messages
    assert sent.sender.tolist() == [1, 3]
    assert sent.receiver.tolist() == [0, 2]
    assert sent.size.tolist() == [8192, 8192]
    assert sent.tag.tolist() == [7, 7]


def test_a_partner_outside_is_no_message_and_its_request_is_complete() -> None:
    calls = """
        { do = "irecv", from = "rank - 1" }, { do = "isend", to = "rank + 1", bytes = 8 },
        { do = "wait" }, { do = "compute", seconds = 1e-6 }, { do = "wait" },
    """
    one = listed(calls)
    assert operations(one, 3, 0) == [("isend", 0), ("wait_send", 0)]
    assert operations(one, 3, 2) == [("post", 1), ("wait_receive", 1)]
    assert carried(one, 3).burst.tolist() == [0, 1e3, 0, 0, 0, 1e3, 0, 0]


def test_sendrecv_posts_sends_and_waits() -> None:
    calls = '{ do = "sendrecv", to = "(rank + 1) % P", from = "(rank - 1) % P", bytes = 8 },'
    assert [kind for kind, _ in operations(listed(calls), 3, 1)] == [
        "post",
        "send",
        "wait_receive",
    ]


def test_what_sendrecv_receives_is_as_large_as_what_is_sent_to_it() -> None:
    around = 'to = "(rank + 1) % P", from = "(rank - 1) % P"'
    calls = f'{{ do = "sendrecv", {around}, bytes = "100 * rank" }},'
    assert carried(listed(calls), 3).messages.size.tolist() == [0, 100, 200]


@pytest.mark.parametrize(
    "item",
    [
        "p2p = { to = 0, bytes = 1e19 }",
        "collective = { op = 'bcast', bytes = 1e19 }",
        "messages = { calls = [{ do = 'sendrecv', to = 'rank', from = 'rank', bytes = 1e19 }] }",
    ],
)
def test_messages_that_are_too_large_to_be_counted_are_refused(item: str) -> None:
    with pytest.raises(UsageError, match=r"1e\+19"):
        predict(program(f"[[program]]\n{item}"), machine(), 2, 1)


def test_the_kth_send_meets_the_kth_receive_of_the_same_tag() -> None:
    calls = """
        { on = "rank == 0", do = "isend", to = 1, bytes = 1, tag = 5 },
        { on = "rank == 0", do = "isend", to = 1, bytes = 2, tag = 6 },
        { on = "rank == 0", do = "isend", to = 1, bytes = 3, tag = 5 },
        { on = "rank == 1", do = "recv", from = 0, tag = 6 },
        { on = "rank == 1", do = "recv", from = 0, tag = 5, bytes = 1 },
        { on = "rank == 1", do = "recv", from = 0, tag = 5, bytes = 3 },
        { do = "waitall" },
    """
    made = carried(listed(calls), 2)
    received = made.target[made.offsets[1] :]
    assert made.messages.size[received].tolist() == [2, 1, 3]


def test_wait_completes_the_request_that_it_names() -> None:
    calls = """
        { on = "rank == 0", do = "isend", to = 1, bytes = 1 },
        { on = "rank == 0", do = "isend", to = 1, bytes = 2 },
        { on = "rank == 0", do = "wait", request = 1 },
        { on = "rank == 0", do = "wait" },
        { repeat = 2, calls = [{ on = "rank == 1", do = "recv", from = 0 }] },
    """
    made = carried(listed(calls), 2)
    assert made.messages.size[made.target[2:4]].tolist() == [2, 1]


def test_lists_by_rank_stand_for_formulas() -> None:
    by_list = """
        { do = "send", on = [0, 3], to = [1, -1, -1, 2], bytes = [100, 0, 0, 50] },
        { do = "recv", on = [1, 2], from = [-1, 0, 3, -1] },
        { do = "compute", seconds = [1e-6, 2e-6, 3e-6, 4e-6] },
    """
    by_formula = """
        { do = "send", on = "rank % 3 == 0", to = "1 + rank / 3", bytes = "100 - rank * 50 / 3" },
        { do = "recv", on = "rank == 1 or rank == 2", from = "0 if rank == 1 else 3" },
        { do = "compute", seconds = "1e-6 * (rank + 1)" },
    """
    one, other = carried(listed(by_list), 4), carried(listed(by_formula), 4)
    for name in ("offsets", "kind", "target", "burst"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert one.tail == pytest.approx(other.tail)
    assert one.messages.size.tolist() == other.messages.size.tolist() == [100, 50]


def test_calls_are_repeated_inside_each_other() -> None:
    calls = """{ repeat = 2, calls = [
        { repeat = "P", calls = [
            { do = "sendrecv", to = "(rank + 1) % P", from = "(rank - 1) % P", bytes = 8 },
        ] },
        { do = "compute", seconds = 1e-6 },
    ] },"""
    made = carried(listed(calls), 3)
    assert len(made.messages) == 2 * 3 * 3
    assert made.burst.reshape(3, -1).sum(axis=1).tolist() == [1e3] * 3
    assert made.tail.tolist() == [1e3] * 3


# -- what it takes


def test_a_message_costs_its_latency_and_its_bytes() -> None:
    calls = """
        { on = "rank == 0", do = "send", to = 1, bytes = 10000 },
        { on = "rank == 1", do = "recv", from = 0 },
        { do = "compute", seconds = 1e-3 },
    """
    found = predict(listed(calls, count=10), machine(), 2, 1, draws=0)
    one = LATENCY + 10000 * PER_BYTE
    assert found.agreement is not None
    assert found.agreement.closed_form.runtime == pytest.approx(10 * (1e-3 + one))
    # rank 0 goes on while its messages are on their way
    assert found.runtime.value == pytest.approx(10 * 1e-3 + one)


def test_messages_of_one_wait_follow_each_other() -> None:
    calls = """
        { repeat = 3, calls = [{ do = "irecv", from = "(rank - 1) % P" },
                               { do = "isend", to = "(rank + 1) % P", bytes = 10000 }] },
        { do = "waitall" },
    """
    found = predict(listed(calls), machine(), 4, 1, draws=0)
    expected = LATENCY + 3 * 10000 * PER_BYTE
    assert found.runtime.value == pytest.approx(expected)
    assert found.agreement is not None
    assert found.agreement.closed_form.runtime == pytest.approx(expected)


def test_the_replay_of_a_chain_knows_that_processes_wait() -> None:
    calls = """
        { do = "recv", from = "rank - 1" }, { do = "compute", seconds = 1e-3 },
        { do = "send", to = "rank + 1", bytes = 8 },
    """
    found = predict(listed(calls), machine(), 4, 1, draws=0)
    assert found.runtime.value == pytest.approx(4e-3 + 3 * (LATENCY + 8 * PER_BYTE))


def test_work_by_rank_is_load_imbalance() -> None:
    calls = HALVES.replace("seconds = 1e-3", 'seconds = "1e-3 * (1 + rank)"')
    found = predict(listed(calls, count=20), machine(), 4, 1, draws=0)
    balance = found.metrics["hybrid-additive"]["process_load_balance"].value
    # additive: 1 - (max - mean) / runtime
    assert balance == pytest.approx(1 - (4 - 2.5) / 4, abs=2e-3)


# -- other numbers of processes

SCALED = 'processes = 4\nscaled = { messages = "P", bytes = "P * 1000", offsets = [1, -1] }'
ROUND = """
    { do = "sendrecv", to = "(rank + 1) % P", from = "(rank - 1) % P", bytes = 8 },
    { on = "rank == P - 1", do = "compute", seconds = 4e-3 },
"""


def test_others_exchange_what_is_said_of_them() -> None:
    made = carried(listed(ROUND, SCALED), 8)
    assert len(made.messages) == 8 * 8
    assert set(made.messages.size.tolist()) == {1000}
    apart = (made.messages.receiver - made.messages.sender) % 8
    assert np.bincount(apart).tolist() == [0, 32, 0, 0, 0, 0, 0, 32]
    # each computes what those of the list do on average
    assert made.burst.reshape(8, -1).sum(axis=1) + made.tail == pytest.approx([1e6] * 8)


# -- what is refused


# -- in words, and quickly


def test_a_list_is_said_in_words() -> None:
    entry = {
        "kind": "messages",
        "name": "list",
        "every": {"formula": "1", "value": 1.0, "unit": "1"},
        "calls": [{"do": "isend"}, {"repeat": {}, "calls": [{"do": "wait"}, {"do": "wait"}]}],
        "processes": 4,
        "scaled": {
            "messages": {"formula": "6", "value": 6.0, "unit": "1"},
            "bytes": {"formula": "64", "value": 64.0, "unit": "B"},
            "offsets": [1, -1],
        },
    }
    assert sentence(entry) == (
        "list: a list of 3 calls: 1 isend and 2 wait, of 4 processes; others exchange 6 messages "
        "of 64 B in all with the ranks +1 and -1 away"
    )
