"""``--fail-if``: conditions that a result must not meet."""

from __future__ import annotations

from pathlib import Path

from .conftest import Call


def test_a_condition_that_is_not_met_changes_nothing(trace: str, popmodel: Call) -> None:
    words = ("--fail-if", "load_balance < 87.5%", "--fail-if", "runtime > 1")
    status, out, err = popmodel("metrics", trace, *words)
    assert (status, err) == (0, "")
    assert "Load balance" in out


def test_a_condition_that_is_met_is_status_3_after_the_result(
    runs: list[str], popmodel: Call
) -> None:
    conditions = ("parallel_efficiency < 0.7", "talp.mpi_load_balance<0.8", "runtime > 0.008")
    words = [word for one in conditions for word in ("--fail-if", one)]
    status, out, err = popmodel("metrics", *runs, *words)
    assert status == 3
    assert "Load balance" in out
    assert err == (
        "popmodel: error: mpi.parallel_efficiency of four is 0.6, less than 0.7; "
        "talp.mpi_load_balance of four is 0.75, less than 0.8; "
        "runtime of two is 0.009, more than 0.008\n"
    )


def test_a_metric_that_is_not_shown_can_be_held_to_a_limit(trace: str, popmodel: Call) -> None:
    status, _, err = popmodel("metrics", trace, "--fail-if", "process_efficiency < 0.9")
    assert status == 3
    assert err == ("popmodel: error: hybrid-additive.process_efficiency is 0.7778, less than 0.9\n")


def test_a_reason_that_several_runs_share_is_told_once(trace: str, popmodel: Call) -> None:
    for name in "abc":
        Path(f"{name}.prv").write_text(Path(trace).read_text())
    runs = ("a.prv", "b.prv", "c.prv", trace)
    _, _, err = popmodel("metrics", *runs, "--fail-if", "ipc_scaling < 0.9")
    assert err.splitlines()[0] == (
        "popmodel: error: --fail-if cannot be checked: no value for scaling.ipc_scaling of a, "
        "scaling.ipc_scaling of b, scaling.ipc_scaling of c, scaling.ipc_scaling of two "
        "(no hardware counter of cycles; no hardware counter of instructions)"
    )


def test_an_absent_value_is_a_failure(trace: str, popmodel: Call) -> None:
    status, out, err = popmodel("metrics", trace, "--fail-if", "ipc_scaling < 0.9")
    assert status == 1
    assert "Load balance" in out
    message, hint = err.splitlines()
    assert message.startswith(
        "popmodel: error: --fail-if cannot be checked: no value for scaling.ipc_scaling "
        "(no hardware counter"
    )
    assert hint == "hint: leave the condition out or analyse runs that have the value"
