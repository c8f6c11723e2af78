"""Programs in Fortran, and the items that they become: those of the same program in C."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import UsageError
from popmodel.source import signature_of_source

HEAT = """
module sizes
  implicit none
  integer, parameter :: dp = kind(1.d0)
  integer :: n, left, right
end module
program heat
  use mpi
  use sizes
  implicit none
  integer :: steps, rank, nprocs, ierr, step, i, j, nl
  real(dp), allocatable :: u(:,:), v(:,:)
  real(dp) :: diff, total
  character(len=32) :: arg
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, ierr)
  call get_command_argument(1, arg)
  read(arg,*) n
  call get_command_argument(2, arg)
  read(arg,*) steps
  nl = n/nprocs
  left = rank - 1
  right = rank + 1
  if (rank == 0) left = MPI_PROC_NULL
  if (rank == nprocs - 1) right = MPI_PROC_NULL
  allocate(u(0:n+1, 0:nl+1), v(0:n+1, 0:nl+1))
  do step = 1, steps
    call exchange(u, nl)
    diff = 0.0_dp
    !$omp parallel do private(i) &
    !$omp& reduction(+:diff)
    do j = 1, nl
      do i = 1, n
        v(i,j) = 0.25_dp*(u(i-1,j) + u(i+1,j) + u(i,j-1) + u(i,j+1))
        diff = diff + (v(i,j) - u(i,j))**2
      end do
    end do
    !$omp end parallel do
    if (mod(step, 10) == 0) then
      call MPI_Allreduce(diff, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    end if
    u(1:n,1:nl) = v(1:n,1:nl)
  end do
  call MPI_Finalize(ierr)
contains
  subroutine exchange(a, nl)
    integer, intent(in) :: nl
    real(dp), intent(inout) :: a(0:n+1, 0:nl+1)
    integer :: st(MPI_STATUS_SIZE), e
    call MPI_Sendrecv(a(1,1), n, MPI_DOUBLE_PRECISION, left, 0, a(1,nl+1), n, &
      MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, st, e)
  end subroutine
end program
"""


def written(folder: Path, text: str, name: str = "app.f90") -> dict[str, Any]:
    """The signature of a program."""
    (folder / name).write_text(text)
    return tomllib.loads(signature_of_source([folder / name], "app")[0])


def items(program: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [next(iter(item.items())) for item in program]


def test_a_stencil_has_its_loops_messages_and_parameters(tmp_path: Path) -> None:
    document = written(tmp_path, HEAT)
    assert document["params"] == {"n": "?", "steps": "?"}
    (step,) = document["program"]
    assert step["loop"] == {"name": "step", "count": "steps"}
    found = dict(items(step["body"]))
    sweep, copy = found["parallel"], found["serial"]
    assert (sweep["trip"], sweep["inner"]) == ("floor(n/P)", "n")
    assert (sweep["flops"], sweep["loads"], sweep["stores"]) == (8, 5, 1)
    assert sweep["constructs"]["reduction"] == 1
    assert (copy["trip"], copy["loads"], copy["stores"]) == ("n*floor(n/P)", 1, 1)
    assert (found["shift"]["by"], found["shift"]["bytes"]) == (-1, "8*n")
    assert (found["collective"]["op"], found["collective"]["every"]) == ("allreduce", 10)


def test_fixed_form_with_included_common_blocks_is_read(tmp_path: Path) -> None:
    (tmp_path / "grid.h").write_text(
        "c     sizes of the grid\n      integer nx, ny\n      common /grid/ nx, ny\n"
    )
    document = written(
        tmp_path,
        """\
      program main
      include 'grid.h'
      include 'mpif.h'
      double precision a(100), s, t
      integer ierr
      call mpi_init(ierr)
      read(*,*) nx, ny
      call work(a, s)
      call mpi_reduce(s, t, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0,
     >     MPI_COMM_WORLD, ierr)
      call mpi_finalize(ierr)
      end
      subroutine work(a, s)
      include 'grid.h'
      double precision a(*), s
      integer i
c$omp parallel do
c$omp& schedule(static)
      do i = 1, nx*ny
         a(i) = a(i)*2.0d0 + 1.0d0
      enddo
      s = sum(a(1:nx))
      end
""",
        "app.f",
    )
    assert set(document["params"]) == {"nx", "ny"}
    found = dict(items(document["program"]))
    assert found["parallel"]["trip"] == "nx*ny"
    assert (found["parallel"]["flops"], found["parallel"]["loads"]) == (2, 1)
    assert (found["serial"]["trip"], found["serial"]["flops"]) == ("nx", 1)
    assert (found["collective"]["op"], found["collective"]["bytes"]) == ("reduce", 8)


def test_arguments_are_passed_by_address_and_records_have_members(tmp_path: Path) -> None:
    document = written(
        tmp_path,
        """
module cells
  type block
    integer :: low, high
    real(8), allocatable :: x(:)
  end type
  type(block) :: own
contains
  subroutine bounds(n, low, high)
    integer, intent(in) :: n
    integer, intent(out) :: low, high
    low = 1
    high = 2*n
  end subroutine
  subroutine scale(b)
    type(block), intent(inout) :: b
    integer :: i
    do i = b%low, b%high
      b%x(i) = b%x(i)*0.5
    end do
  end subroutine
end module
program p
  use cells
  integer :: n
  namelist /input/ n
  read(5, nml=input)
  call bounds(n, own%low, own%high)
  call scale(own)
end program
""",
    )
    assert set(document["params"]) == {"n"}
    (item,) = document["program"]
    assert item["serial"]["trip"] == "2*n"
    assert (item["serial"]["flops"], item["serial"]["stores"]) == (1, 1)


def test_conditions_of_the_preprocessor_are_followed(tmp_path: Path) -> None:
    text = """
program p
#ifdef SMALL
  integer, parameter :: n = 1000
#else
  integer, parameter :: n = 2000
#endif
  real :: a(n)
  integer :: i
  do i = 1, n
    a(i) = a(i) + 1.0
  end do
end program
"""
    (tmp_path / "app.F90").write_text(text)
    for options, turns in (([], 2000), (["-DSMALL"], 1000)):
        found, _ = signature_of_source([tmp_path / "app.F90"], "app", options)
        assert tomllib.loads(found)["program"][0]["serial"]["trip"] == turns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "program",
        "end program end end",
        "subroutine s(\ncall s(s(s(\nend",
        "program p\n  x = ((((\nend program",
        "program p\n  include 'nowhere.h'\n  call q%r(1)\n  a(:) = b(:,:)\nend program",
        "program p\n  do\n    cycle\n  end do\n  goto 10\nend program",
        "program p\n  i = " + "(" * 3000 + "1" + ")" * 3000 + "\nend program",
        "program p\n" + "  x = 1\n" * 20_000 + "end program",
    ],
)
def test_broken_source_is_answered_in_one_line_or_read_as_far_as_it_goes(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / "app.f90").write_text(text)
    try:
        signature_of_source([tmp_path / "app.f90"], "app")
    except UsageError as error:
        assert "no main" in error.message


@pytest.mark.parametrize(
    ("condition", "is_done"),
    [
        ("all(a == 1)", True),  # a(2) has another value: nobody leaves
        ("all(a(1:1) == 1)", False),
        ("all(b == 1)", True),  # some are 1, by a mask: that is not decided
    ],
)
def test_all_and_where_are_about_each_element(
    condition: str, is_done: bool, tmp_path: Path
) -> None:
    text = f"""
program sweep
  use mpi
  integer :: a(2), b(2), ierr
  a(1) = 1
  a(2) = 2
  b(1) = 2
  b(2) = 2
  where (a == b)
    b = 1
  end where
  call solve()
contains
  subroutine solve()
    if ({condition}) return
    call sweep_all()
  end subroutine
  subroutine sweep_all()
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine
end program
"""
    assert ("program" in written(tmp_path, text)) == is_done


def test_a_procedure_may_have_the_name_of_the_program(tmp_path: Path) -> None:
    text = """
module work
contains
  subroutine solver()
    use mpi
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine
end module
program solver
  use work
  call solver_of_work()
end program
subroutine solver_of_work()
  use work
  call solver()
end subroutine
"""
    (item,) = written(tmp_path, text)["program"]
    assert "collective" in item


def test_a_real_number_for_a_whole_one_is_cut(tmp_path: Path) -> None:
    text = """
program cut
  use mpi
  integer :: levels, halves, ierr
  real :: a(64)
  levels = log(33.0)/log(2.0)
  halves = levels/2
  if (2*halves + 1 == levels) call MPI_Bcast(a, 2**levels, MPI_REAL, 0, MPI_COMM_WORLD, ierr)
end program
"""
    (item,) = written(tmp_path, text)["program"]
    assert item["collective"]["bytes"] == 4 * 32


def test_what_only_some_cases_set_is_a_formula_of_them(tmp_path: Path) -> None:
    text = """
program cases
  use mpi
  integer :: n, m, ierr, status
  real(8) :: a(100)
  open(unit=2, file='input', iostat=status)
  if (status == 0) then
    read(2, *) n
  else
    n = 6
  end if
  if (n == 6) then
    m = 8
  else if (n > 6) then
    m = n
  end if
  call MPI_Bcast(a, m, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
end program
"""
    document = written(tmp_path, text)
    assert document["params"] == {"n": 6}
    size = document["program"][0]["collective"]["bytes"]
    assert [eval(size, {"n": n}) for n in (6, 9)] == [64, 72]


def test_neighbours_that_a_mask_replaces_are_still_neighbours(tmp_path: Path) -> None:
    text = """
program ring
  use mpi
  integer :: grid, ierr, dims(1), sides(2), requests(2), size
  logical :: periodic(1)
  real(8) :: a(100), b(100)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  dims(1) = size
  periodic(1) = .false.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periodic, 0, grid, ierr)
  call MPI_Cart_shift(grid, 0, 1, sides(1), sides(2), ierr)
  where (sides == MPI_PROC_NULL)
    sides = -1
  end where
  if (sides(1) /= -1) then
    call MPI_Isend(a, 100, MPI_DOUBLE_PRECISION, sides(1), 0, grid, requests(1), ierr)
  end if
  if (sides(2) /= -1) then
    call MPI_Irecv(b, 100, MPI_DOUBLE_PRECISION, sides(2), 0, grid, requests(2), ierr)
  end if
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
end program
"""
    (item,) = written(tmp_path, text)["program"]
    assert item == {"shift": {"name": "shift", "dim": 0, "by": -1, "bytes": 800}}


def test_sizes_of_an_array_that_a_loop_fills_are_numbers_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "app.f90"
    path.write_text(
        "program app\n  use mpi\n  integer :: m(10), k, n, levels\n  real(8) :: u(1000)\n"
        "  read(*, *) n, levels\n  do k = levels, 1, -1\n    m(k) = n / 2**k\n  end do\n"
        "  do k = 2, levels\n    call smooth(u, m(k))\n  end do\ncontains\n"
        "  subroutine smooth(u, n)\n    integer :: n, i\n    real(8) :: u(n)\n"
        "    do i = 1, n\n      u(i) = 2 * u(i)\n    end do\n    n = n + 0\n  end subroutine\n"
        "end program\n"
    )
    found = tomllib.loads(popmodel.signature(path).text)
    assert list(found["constants"]) == ["m"]


OCEAN = """program ocean
  use mpi
  type :: field
    integer :: nx
    real(8), allocatable :: t(:, :)
  end type
  type(field) :: f
  integer :: me, nx = 200, nz = 20, buffer(2), i, ierr
  character(32) :: word
  real(8), allocatable :: total(:)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  if (me == 0) then
    if (command_argument_count() >= 1) then
      call get_command_argument(1, word)
      read(word, *) nx
    end if
    buffer = (/ nx, nz /)
  end if
  call MPI_Bcast(buffer, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  f%nx = buffer(1)
  nz = buffer(2)
  call make(f, nz)
  allocate(total(f%nx))
  f%t = 1
  total = sum(f%t, dim=2)
contains
  subroutine make(grid, depth)
    type(field) :: grid
    integer :: depth
    allocate(grid%t(0:grid%nx + 1, depth))
  end subroutine
end program
"""


def test_arrays_of_objects_and_sums_along_a_dimension_have_the_sizes_that_are_broadcast(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ocean.f90"
    path.write_text(OCEAN)
    found = tomllib.loads(popmodel.signature(path).text)
    assert found["params"] == {"nx": 200} and "constants" not in found
    trips = [item["serial"]["trip"] for item in found["program"] if "serial" in item]
    assert trips == ["20*nx + 40", "20*nx"]


@pytest.mark.parametrize("name", ["app.f", "app.f90"])
def test_free_form_is_read_whatever_the_suffix(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(
        "program app\n  use mpi\n  implicit none\n  integer :: ierr\n  real(8) :: x(8)\n"
        "  call MPI_Init(ierr)\n  call MPI_Bcast(x, 8, MPI_DOUBLE_PRECISION, &\n"
        "       0, MPI_COMM_WORLD, ierr)\n  call MPI_Finalize(ierr)\nend program app\n"
    )
    text, _ = signature_of_source([tmp_path / name], "app")
    (item,) = tomllib.loads(text)["program"]
    assert item["collective"]["bytes"] == 64


def test_c_and_fortran_call_each_other_by_the_names_that_they_link(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(
        "#include <mpi.h>\n#include <stdlib.h>\nvoid sweep_(int *n, double *a);\n"
        "void share_(double *a, int *n) { MPI_Bcast(a, *n, MPI_DOUBLE, 0, MPI_COMM_WORLD); }\n"
        "int main(int argc, char **argv) { int n = atoi(argv[1]); double *a = malloc(8 * n);\n"
        "MPI_Init(&argc, &argv); sweep_(&n, a); MPI_Finalize(); return 0; }\n"
    )
    (tmp_path / "sweep.f90").write_text(
        "subroutine sweep(n, a)\n  integer, intent(in) :: n\n  real(8) :: a(n)\n  integer :: i\n"
        "  do i = 1, n\n    a(i) = 2*a(i)\n  end do\n  call share(a, n)\nend subroutine\n"
    )
    text, _ = signature_of_source([tmp_path / "app.c", tmp_path / "sweep.f90"], "app")
    loop, message = tomllib.loads(text)["program"]
    assert loop["serial"]["trip"] == "n"
    assert message["collective"]["bytes"] == "8*n"
