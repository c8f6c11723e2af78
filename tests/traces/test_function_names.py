"""Names of functions out of symbols and labels, whatever C++, Fortran and compilers make."""

from itertools import product

from popmodel.traces.regions import full_name, function_of, readable, without_arguments

SYMBOLS = {
    "main._omp_fn.0": "main",
    "solve.constprop.0.isra.0._omp_fn.12": "solve",
    "solve.omp_outlined.3": "solve",
    "solve.omp_outlined_debug__": "solve",
    "solve.part.0.cold": "solve",
    ".omp_outlined.": ".omp_outlined.",
    "__mesh_MOD_split": "mesh::split",
    "__mesh_MOD_split._omp_fn.1": "mesh::split",
    "run [clone ._omp_fn.0]": "run",
    "exchange_": "exchange_",
    "": "",
}
"""Symbols and what they are called in the source."""

SIGNATURES = {
    "CalcForceForNodes(Domain&)": "CalcForceForNodes",
    "void A<int, B<C> >::f<3>(std::vector<int> const&) const": "A<int, B<C> >::f<3>",
    "(anonymous namespace)::f(int)": "(anonymous namespace)::f",
    "void (anonymous namespace)::g<(E)1>(int)": "(anonymous namespace)::g<(E)1>",
    "std::function<void (int)> g<void (int)>(char)": "g<void (int)>",
    "f(int)::{lambda(int)#1}::operator()(int) const": "f(int)::{lambda(int)#1}::operator()",
    "A::operator()() const": "A::operator()",
    "A::operator[](long) const": "A::operator[]",
    "A::operator bool() const": "A::operator bool",
    "bool operator< <int>(A const&, B)": "operator< <int>",
    "int A::operator->*(int) &&": "A::operator->*",
    "cooperator::run(int)": "cooperator::run",
    "f[abi:cxx11](int)": "f[abi:cxx11]",
    "vtable for A": "vtable for A",
    "main": "main",
}
"""Demangled names and what is left of them without their results and arguments."""

CLONES = (
    "",
    " [clone ._omp_fn.1]",
    " [clone .isra.0] [clone ._omp_fn.12]",
    " [clone .constprop.3]",
)
PLACES = ("", " (lulesh.cc:1114)", " (lulesh.x+0x1fea0)", " (region 3)")


def test_what_compilers_add_to_symbols_is_left_out() -> None:
    assert {symbol: readable(symbol) for symbol in SYMBOLS} == SYMBOLS


def test_results_and_arguments_are_left_out() -> None:
    assert {name: without_arguments(name) for name in SIGNATURES} == SIGNATURES


def test_a_label_that_is_shortened_has_its_whole_name() -> None:
    assert full_name("__mpi_ro..mal_init [__mpi_routines_MOD_mpi_minimal_init]") == (
        "mpi_routines::mpi_minimal_init"
    )
    assert full_name("A::operator[]") == "A::operator[]"


def test_a_function_is_found_in_every_label() -> None:
    """A label may have it shortened, wherever that cuts it, with the whole in brackets."""
    for (name, short), clone, cut in product(SIGNATURES.items(), CLONES, (None, *range(30))):
        whole = name + clone
        label = whole if cut is None else f"{whole[:cut].strip()}.. [{whole}]"
        assert full_name(label) == name, label
        for place in PLACES:
            assert function_of(without_arguments(name) + place) == short, label
