! Calls of MPI by two ranks. The line of each ends with the name of what it calls, but for those to
! which gfortran gives the line of the program's begin (module mpi).
#include "binding.h"

subroutine exchange(me)
  use binding
  integer, intent(in) :: me
  integer :: in, out, ierror
  REQUEST :: requests(2)
  out = me
  call MPI_Irecv(in, 1, MPI_INTEGER, 1 - me, 7, MPI_COMM_WORLD, requests(1) ERROR) ! at Irecv
  call MPI_Isend(out, 1, MPI_INTEGER, 1 - me, 7, MPI_COMM_WORLD, requests(2) ERROR) ! at Isend
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE ERROR) ! at Waitall
end subroutine

program sites
  use binding
  integer :: me, total, ierror, i
  call MPI_Init(ONLY_ERROR)
  call MPI_Comm_rank(MPI_COMM_WORLD, me ERROR)
  do i = 1, 10
    call exchange(me)
  end do
  do i = 1, 2
    call MPI_Allreduce(me, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR) ! at Allreduce
    call MPI_Allreduce(me, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD ERROR) ! at Allreduce
  end do
  call MPI_Finalize(ONLY_ERROR)
end program
