"""Any program and any machine, for the tests of what holds for all of them."""

from typing import Any

from hypothesis import strategies as st
from model.demo import machine, program

from popmodel.machines import profile as profiles
from popmodel.machines.profile import Profile
from popmodel.model.signature.application import Signature

count = st.integers(1, 2000)
size = st.sampled_from([1, 8, 1000, 1e5, 1e7])
few = st.sampled_from([0, 1, 4])
spread = st.sampled_from([0.0, 0.02, 0.1])
duration = st.sampled_from([1e-7, 1e-5, 1e-3])


@st.composite
def costs(draw: st.DrawFn) -> str:
    kinds = ("flops", "loads", "stores", "bytes.MEM", "bytes.L3")
    given = {kind: draw(few) for kind in kinds if draw(st.booleans())} or {"flops": 2}
    return ", ".join(f"{kind} = {value}" for kind, value in given.items())


@st.composite
def parallel(draw: st.DrawFn) -> str:
    text = f'trip = "N/P", inner = {draw(count)}, {draw(costs())}'
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["static", "dynamic", "guided"]))
        text += f', schedule = "{kind}", chunk = {draw(st.integers(1, 50))}'
    if draw(st.booleans()):
        text += f", constructs = {{ parallel_for = {draw(few)}, barrier = {draw(few)} }}"
    if draw(st.booleans()):
        text += f", critical = {{ entries = {draw(count)}, seconds = {draw(duration)} }}"
    if draw(st.booleans()):
        text += f", persistent_cv = {draw(spread)}, transient_cv = {draw(spread)}"
    return f"parallel = {{ {text} }}"


@st.composite
def communication(draw: st.DrawFn) -> str:
    bytes_ = draw(size)
    kind = draw(st.sampled_from(["halo", "shift", "p2p", "collective", "pipeline"]))
    return {
        "halo": f"halo = {{ width = 1, bytes_per_cell = {draw(st.integers(1, 80))}, mode = "
        f'"{draw(st.sampled_from(["nonblocking", "blocking"]))}", '
        f'pack = "{draw(st.sampled_from(["serial", "parallel", "none"]))}", '
        f"overlap = {draw(st.floats(0, 1))} }}",
        "shift": f"shift = {{ dim = 0, by = 1, bytes = {bytes_} }}",
        "p2p": f'p2p = {{ to = "rank + 1", bytes = {bytes_}, '
        f'mode = "{draw(st.sampled_from(["send", "sendrecv"]))}" }}',
        "collective": f'collective = {{ op = "{draw(st.sampled_from(OPERATIONS))}", '
        f"bytes = {bytes_}, every = {draw(st.integers(1, 5))} }}",
        "pipeline": f"pipeline = {{ dims = [0, 1], blocks = {draw(st.integers(1, 20))}, "
        f"seconds = {draw(duration)}, bytes = {bytes_} }}",
    }[kind]


OPERATIONS = ["barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall"]
serial = costs().map(lambda text: f'serial = {{ trip = "N", {text} }}')
task = st.builds("task = {{ count = {}, seconds = {} }}".format, count, duration)
item = st.one_of(parallel(), parallel(), serial, task, communication(), communication())


@st.composite
def programs(draw: st.DrawFn, most_steps: int = 2000, *, talks: bool = False) -> Signature:
    """Any program that computes; half of them with imbalance, some without communication."""
    body = [draw(parallel()), *draw(st.lists(item, max_size=4))]
    body += [draw(communication())] if talks else []
    if draw(st.booleans()):
        body = [
            one.replace("trip = ", f"instructions = {draw(st.integers(1, 9))}, trip = ")
            for one in body
        ]
    spread = {name: draw(st.floats(0, 0.2)) for name in ("persistent_cv", "transient_cv")} | {
        "reference_processes": draw(st.integers(1, 16)),
        "growth_exponent": draw(st.floats(0, 0.5)),
    }
    imbalance = "\n".join(
        f"{name} = {{ value = {value}, low = {value / 2}, high = {1.5 * value} }}"
        if name.endswith("cv") and value
        else f"{name} = {value}"
        for name, value in spread.items()
    )
    sections = {"imbalance": imbalance} if draw(st.booleans()) else {}
    loop = f"[[program]]\nloop = {{ count = {draw(st.integers(1, most_steps))}, body = [\n"
    return program(
        loop + "".join(f"  {{ {one} }},\n" for one in body) + "] }\n",
        params=f"N = {draw(st.integers(64, 100000))}\n",
        decomp='global = ["N", "N"]\ngrid = "auto"\nperiodic = [false, true]\n',
        **sections,
    )


@st.composite
def machines(draw: st.DrawFn) -> Profile:
    """A machine whose quantities are some times larger or smaller, and uncertain."""
    document: dict[str, Any] = dict(machine().document)
    chunks = {
        f"{kind}_chunk": {"T": [1, 8], "seconds": [{"value": 2e-8}, {"value": 8e-8}]}
        for kind in ("dynamic", "guided")
    }
    others = {
        name: {"T": [1, 8], "seconds": [{"value": 1e-8}, {"value": 2e-7}]}
        for name in ("critical", "task", "parallel")
    }
    document["openmp"] = document["openmp"] | chunks | others
    document["core"] = document["core"] | {"freq": {"1": {"value": 2e9}, "8": {"value": 1.6e9}}}
    document["memory"] = document["memory"] | {"copy_bw": {"value": 5e9}}
    document["topology"] = document["topology"] | {"nodes": 32}
    factors = st.sampled_from([0.1, 0.5, 1.0, 3.0])

    def changed(entry: Any, factor: float) -> Any:
        if isinstance(entry, list):
            return [changed(each, factor) for each in entry]
        if not isinstance(entry, dict):
            return entry
        if "value" in entry:
            value = entry["value"] * factor
            return {"value": value, "low": value / 1.3, "high": value * 1.3}
        return {key: changed(each, factor) for key, each in entry.items()}

    for section in ("core", "openmp", "net"):
        document[section] = changed(document[section], draw(factors))
    memory = changed(document["memory"], 1.0)
    document["memory"] = memory | {"q": {"value": 8.0}}
    return profiles.from_document(document)
