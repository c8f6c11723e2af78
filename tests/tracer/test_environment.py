"""Who gets the variables of the tracer: the program, and not its launcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.tracer.commands import Family, Settings, TracedCommand, place, variables

GIVEN = variables(Path("/lib/t.so"), Path("/raw dir"), Settings())
LISTED = (
    "LD_PRELOAD=/lib/t.so,POPMODEL_TRACE_DIR=/raw dir,POPMODEL_TRACE_OPENMP=auto,"
    "POPMODEL_TRACE_COUNTERS=0"
)


def command(line: str, family: Family | None, start: int = 0) -> TracedCommand:
    return TracedCommand(tuple(line.split()), "/x", start, family is not None, family, None)


def placed(
    line: str, family: Family | None, start: int = 0, **environment: str
) -> tuple[list[str], dict[str, str]]:
    call = place(command(line, family, start), GIVEN, environment)
    return call.words, call.environment


def test_the_variables_say_what_is_recorded() -> None:
    assert GIVEN == {
        "LD_PRELOAD": "/lib/t.so",
        "POPMODEL_TRACE_DIR": "/raw dir",
        "POPMODEL_TRACE_OPENMP": "auto",
        "POPMODEL_TRACE_COUNTERS": "0",
    }
    counted = variables(Path("/t.so"), Path("/r"), Settings(counters=True, openmp="ompt"))
    assert counted["POPMODEL_TRACE_OPENMP"] == "ompt"
    assert counted["POPMODEL_TRACE_COUNTERS"] == "1"
    part = variables(Path("/t.so"), Path("/r"), Settings(window="0:", max_size=1 << 20))
    assert part["POPMODEL_TRACE_WINDOW"] == "0:"
    less = variables(Path("/t"), Path("/r"), Settings(max_rate=10, leave_out=("tests", "io")))
    assert less["POPMODEL_TRACE_MAX_RATE"] == "10"
    assert less["POPMODEL_TRACE_LEAVE_OUT"] == "tests,io"
    assert part["POPMODEL_TRACE_MAX_SIZE"] == "1048576"
    locks = variables(Path("/t.so"), Path("/r"), Settings(locks="each"))
    assert locks["POPMODEL_TRACE_LOCKS"] == "each"
    assert "POPMODEL_TRACE_CALL_SITES" not in counted
    bare = variables(Path("/t.so"), Path("/r"), Settings(call_sites=False))
    assert bare["POPMODEL_TRACE_CALL_SITES"] == "0"


def test_a_program_has_them_in_its_environment() -> None:
    assert placed("./app 7", None) == (["./app", "7"], GIVEN)
    assert placed("./app 7", None, LD_PRELOAD="a.so:b.so") == (
        ["./app", "7"],
        {**GIVEN, "LD_PRELOAD": "/lib/t.so:a.so:b.so"},
    )


OPEN_MPI = [word for name, value in GIVEN.items() for word in ("-x", f"{name}={value}")]
HYDRA = [word for name, value in GIVEN.items() for word in ("-genv", name, value)]


@pytest.mark.parametrize(("family", "flags"), [("Open MPI", OPEN_MPI), ("Hydra", HYDRA)])
def test_a_launcher_has_them_as_options_for_the_program(family: Family, flags: list[str]) -> None:
    assert placed("run -n 2 ./app -x A", family) == (
        ["run", *flags, *["-n", "2", "./app", "-x", "A"]],
        {},
    )
    assert placed("env A=1 run -n 2 ./app", family, 2) == (
        ["env", "A=1", "run", *flags, *["-n", "2", "./app"]],
        {},
    )


@pytest.mark.parametrize(
    ("family", "line", "left"),
    [
        ("Open MPI", "run -x LD_PRELOAD=own.so -n 2 ./app", "-n 2 ./app"),
        ("Hydra", "run -n 2 -genv LD_PRELOAD own.so ./app", "-n 2 ./app"),
        ("Hydra", "run -n 2 -env LD_PRELOAD own.so ./app", "-n 2 ./app"),
    ],
)
def test_what_the_user_preloads_by_an_option_stays(family: Family, line: str, left: str) -> None:
    for environment in ({}, {"LD_PRELOAD": "other.so"}):
        words, own = placed(line, family, **environment)
        assert own == {}
        assert " ".join(words).count("LD_PRELOAD") == 1
        assert any(word.endswith("/lib/t.so:own.so") for word in words)
        assert words[-len(left.split()) :] == left.split()


def test_an_option_without_value_hands_on_the_users_environment() -> None:
    words, _ = placed("run -x LD_PRELOAD -n 2 ./app", "Open MPI", LD_PRELOAD="mine.so")
    assert words[:3] == ["run", "-x", "LD_PRELOAD=/lib/t.so:mine.so"]
    assert words[-3:] == ["-n", "2", "./app"]


@pytest.mark.parametrize(
    ("line", "environment", "exported"),
    [
        ("srun -n 2 ./app", {}, f"ALL,{LISTED}"),
        ("srun -n 2 ./app", {"SLURM_EXPORT_ENV": "NONE"}, LISTED),
        ("srun -n 2 ./app", {"SLURM_EXPORT_ENV": "A,B=2"}, f"A,B=2,{LISTED}"),
        ("srun --export=ALL,B=2 -n 2 ./app", {}, f"ALL,B=2,{LISTED}"),
        ("srun --export=NONE -n 2 ./app", {}, LISTED),
        (
            "srun --export=ALL,LD_PRELOAD=own.so ./app",
            {"LD_PRELOAD": "other.so"},
            f"ALL,{LISTED.replace('t.so', 't.so:own.so')}",
        ),
        ("srun ./app", {"LD_PRELOAD": "o.so"}, f"ALL,{LISTED.replace('t.so', 't.so:o.so')}"),
    ],
)
def test_srun_has_them_in_its_list(line: str, environment: dict[str, str], exported: str) -> None:
    words, own = placed(line, "srun", **environment)
    assert own == {}
    assert [word for word in words if word.startswith("--export")] == [f"--export={exported}"]
    rest = [word for word in words if not word.startswith("--export")]
    assert rest == [word for word in line.split() if not word.startswith("--export")]


def test_a_comma_does_not_fit_into_the_list_of_srun() -> None:
    given = variables(Path("/a,b/t.so"), Path("/raw"), Settings())
    call = place(command("srun ./app", "srun"), given, {})
    assert (call.words, call.environment) == (["srun", "./app"], given)
