! Every collective operation, blocking and nonblocking, with buffers and in place.
! Notes: [name, bytes sent, bytes received, whether root].
#include "binding.h"

program collectives
  use binding
  use counting
  implicit none
  integer :: out(1000), in(1000), counts(0:15), places(0:15), n(0:15), at(0:15), bytes(0:15)
  integer :: all, mine, root, i
  logical :: alone
  COMM :: group, pair
  REQUEST :: r
  DATATYPE :: types(0:15)

  call begin()
  out = me
  all = 0
  do i = 0, ranks - 1
    counts(i) = i + 1
    places(i) = all
    all = all + counts(i)
  end do
  mine = counts(me)
  call of_all()
  do root = 0, ranks - 1
    call with_root()
  end do
  call in_place()
  call between_groups()
  call finish()

contains

  subroutine note(name, bytes_sent, bytes_received, is_root)
    character(len=*), intent(in) :: name
    integer, intent(in) :: bytes_sent, bytes_received
    logical, intent(in) :: is_root
    call called(name)
    call noted('["' // name // '",' // text_of(bytes_sent) // ',' // text_of(bytes_received) // &
      ',' // merge('1', '0', is_root) // ']')
  end subroutine

  subroutine wait()
    call called('Wait')
    call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
  end subroutine

  subroutine of_all()
    integer :: sum
    call note('Barrier', 0, 0, .false.)
    call MPI_Barrier(MPI_COMM_WORLD ERROR)
    call note('Ibarrier', 0, 0, .false.)
    call MPI_Ibarrier(MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Allreduce', 40, 40, .false.)
    call MPI_Allreduce(out, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
    call must(in(1) == ranks*(ranks - 1)/2, 'Allreduce')
    call note('Iallreduce', 40, 40, .false.)
    call MPI_Iallreduce(out, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Scan', 40, 40, .false.)
    call MPI_Scan(out, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
    call note('Iscan', 40, 40, .false.)
    call MPI_Iscan(out, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Exscan', 40, 40, .false.)
    call MPI_Exscan(out, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
    call note('Iexscan', 40, 40, .false.)
    call MPI_Iexscan(out, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Reduce_scatter', 4*all, 4*mine, .false.)
    call MPI_Reduce_scatter(out, in, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
    call note('Ireduce_scatter', 4*all, 4*mine, .false.)
    call MPI_Ireduce_scatter(out, in, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Reduce_scatter_block', 12*ranks, 12, .false.)
    call MPI_Reduce_scatter_block(out, in, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
    call note('Ireduce_scatter_block', 12*ranks, 12, .false.)
    call MPI_Ireduce_scatter_block(out, in, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Allgather', 20, 20*ranks, .false.)
    call MPI_Allgather(out, 5, MPI_INTEGER, in, 5, MPI_INTEGER, MPI_COMM_WORLD ERROR)
    call note('Iallgather', 20, 20*ranks, .false.)
    call MPI_Iallgather(out, 5, MPI_INTEGER, in, 5, MPI_INTEGER, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Allgatherv', 4*mine, 4*all, .false.)
    call MPI_Allgatherv(out, mine, MPI_INTEGER, in, counts, places, MPI_INTEGER, &
      MPI_COMM_WORLD ERROR)
    call note('Iallgatherv', 4*mine, 4*all, .false.)
    call MPI_Iallgatherv(out, mine, MPI_INTEGER, in, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
      r ERROR)
    call wait()
    call note('Alltoall', 24, 24*ranks, .false.)
    call MPI_Alltoall(out, 6, MPI_INTEGER, in, 6, MPI_INTEGER, MPI_COMM_WORLD ERROR)
    call note('Ialltoall', 24, 24*ranks, .false.)
    call MPI_Ialltoall(out, 6, MPI_INTEGER, in, 6, MPI_INTEGER, MPI_COMM_WORLD, r ERROR)
    call wait()
    ! To each as many as both ranks together are.
    sum = 0
    do i = 0, ranks - 1
      n(i) = me + i
      at(i) = sum
      bytes(i) = 4*sum
      sum = sum + n(i)
      types(i) = MPI_INTEGER
    end do
    call note('Alltoallv', 4*sum, 4*sum, .false.)
    call MPI_Alltoallv(out, n, at, MPI_INTEGER, in, n, at, MPI_INTEGER, MPI_COMM_WORLD ERROR)
    call note('Ialltoallv', 4*sum, 4*sum, .false.)
    call MPI_Ialltoallv(out, n, at, MPI_INTEGER, in, n, at, MPI_INTEGER, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Alltoallw', 4*sum, 4*sum, .false.)
    call MPI_Alltoallw(out, n, bytes, types, in, n, bytes, types, MPI_COMM_WORLD ERROR)
    call note('Ialltoallw', 4*sum, 4*sum, .false.)
    call MPI_Ialltoallw(out, n, bytes, types, in, n, bytes, types, MPI_COMM_WORLD, r ERROR)
    call wait()
  end subroutine

  subroutine with_root()
    logical :: is_root
    integer :: one
    is_root = me == root
    one = merge(1, 0, is_root)
    call note('Bcast', 40*one, 40*(1 - one), is_root)
    call MPI_Bcast(out, 10, MPI_INTEGER, root, MPI_COMM_WORLD ERROR)
    call note('Ibcast', 40*one, 40*(1 - one), is_root)
    call MPI_Ibcast(out, 10, MPI_INTEGER, root, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Reduce', 40*(1 - one), 40*one, is_root)
    call MPI_Reduce(out, in, 10, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD ERROR)
    call note('Ireduce', 40*(1 - one), 40*one, is_root)
    call MPI_Ireduce(out, in, 10, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Gather', 20, 20*ranks*one, is_root)
    call MPI_Gather(out, 5, MPI_INTEGER, in, 5, MPI_INTEGER, root, MPI_COMM_WORLD ERROR)
    call note('Igather', 20, 20*ranks*one, is_root)
    call MPI_Igather(out, 5, MPI_INTEGER, in, 5, MPI_INTEGER, root, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Gatherv', 4*mine, 4*all*one, is_root)
    call MPI_Gatherv(out, mine, MPI_INTEGER, in, counts, places, MPI_INTEGER, root, &
      MPI_COMM_WORLD ERROR)
    call note('Igatherv', 4*mine, 4*all*one, is_root)
    call MPI_Igatherv(out, mine, MPI_INTEGER, in, counts, places, MPI_INTEGER, root, &
      MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Scatter', 20*ranks*one, 20, is_root)
    call MPI_Scatter(out, 5, MPI_INTEGER, in, 5, MPI_INTEGER, root, MPI_COMM_WORLD ERROR)
    call note('Iscatter', 20*ranks*one, 20, is_root)
    call MPI_Iscatter(out, 5, MPI_INTEGER, in, 5, MPI_INTEGER, root, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Scatterv', 4*all*one, 4*mine, is_root)
    call MPI_Scatterv(out, counts, places, MPI_INTEGER, in, mine, MPI_INTEGER, root, &
      MPI_COMM_WORLD ERROR)
    call note('Iscatterv', 4*all*one, 4*mine, is_root)
    call MPI_Iscatterv(out, counts, places, MPI_INTEGER, in, mine, MPI_INTEGER, root, &
      MPI_COMM_WORLD, r ERROR)
    call wait()
  end subroutine

  subroutine in_place()
    in = me
    call note('Allreduce', 40, 40, .false.)
    call MPI_Allreduce(MPI_IN_PLACE, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
    call must(in(1) == ranks*(ranks - 1)/2, 'MPI_IN_PLACE')
    call note('Allgather', 20, 20*ranks, .false.)
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, in, 5, MPI_INTEGER, MPI_COMM_WORLD ERROR)
    call note('Iallgather', 20, 20*ranks, .false.)
    call MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INTEGER, in, 5, MPI_INTEGER, MPI_COMM_WORLD, r ERROR)
    call wait()
    call note('Allgatherv', 4*mine, 4*all, .false.)
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INTEGER, in, counts, places, MPI_INTEGER, &
      MPI_COMM_WORLD ERROR)
    call note('Alltoall', 24, 24*ranks, .false.)
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, in, 6, MPI_INTEGER, MPI_COMM_WORLD ERROR)
    if (me == 0) then
      call note('Reduce', 0, 40, .true.)
      call MPI_Reduce(MPI_IN_PLACE, in, 10, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD ERROR)
      call note('Gather', 20, 20*ranks, .true.)
      call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, in, 5, MPI_INTEGER, 0, MPI_COMM_WORLD ERROR)
      call note('Scatterv', 4*all, 4, .true.)
      call MPI_Scatterv(out, counts, places, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, 0, &
        MPI_COMM_WORLD ERROR)
    else
      call note('Reduce', 40, 0, .false.)
      call MPI_Reduce(out, in, 10, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD ERROR)
      call note('Gather', 20, 0, .false.)
      call MPI_Gather(out, 5, MPI_INTEGER, in, 0, MPI_INTEGER, 0, MPI_COMM_WORLD ERROR)
      call note('Scatterv', 0, 4*mine, .false.)
      call MPI_Scatterv(out, counts, places, MPI_INTEGER, in, mine, MPI_INTEGER, 0, &
        MPI_COMM_WORLD ERROR)
    end if
  end subroutine

  ! Rank 0 is one group, the others are the other one.
  subroutine between_groups()
    integer :: root_of_all
    alone = me == 0
    call called('Comm_split')
    call MPI_Comm_split(MPI_COMM_WORLD, merge(1, 0, alone), me, group ERROR)
    call called('Intercomm_create')
    call MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, merge(1, 0, alone), 77, pair ERROR)
    root_of_all = merge(MPI_ROOT, 0, alone)
    call note('Bcast', merge(40, 0, alone), merge(0, 40, alone), alone)
    call MPI_Bcast(out, 10, MPI_INTEGER, root_of_all, pair ERROR)
    call note('Gather', merge(0, 20, alone), merge(20*(ranks - 1), 0, alone), alone)
    call MPI_Gather(out, 5, MPI_INTEGER, in, 5, MPI_INTEGER, root_of_all, pair ERROR)
    call called('Comm_free')
    call MPI_Comm_free(pair ERROR)
    call called('Comm_free')
    call MPI_Comm_free(group ERROR)
  end subroutine

end program
