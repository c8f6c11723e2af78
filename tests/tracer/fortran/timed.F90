! Calls of which only the time is recorded, tracing off and on, a level of threads that is asked for.
#include "binding.h"

program timed
  use binding
  use counting
  implicit none
  integer(kind=MPI_ADDRESS_KIND) :: place = 0, size = 400
  integer(kind=MPI_OFFSET_KIND) :: position
  integer :: memory(100) = 0, data(100), result(1), other, provided
  logical :: is_cyclic(1) = .true.
  character(len=4096) :: name
  WINDOW :: shared
  HANDLE_OF_FILE :: file
  COMM :: ring
  REQUEST :: r

  call called('Init_thread')
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided ERROR)
  call MPI_Comm_rank(MPI_COMM_WORLD, me ERROR)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks ERROR)
  other = mod(me + 1, ranks)
  data = me

  call called('Win_create')
  call MPI_Win_create(memory, size, 4, MPI_INFO_NULL, MPI_COMM_WORLD, shared ERROR)
  call called('Win_fence')
  call MPI_Win_fence(0, shared ERROR)
  call called('Put')
  call MPI_Put(data, 10, MPI_INTEGER, other, place, 10, MPI_INTEGER, shared ERROR)
  call called('Win_fence')
  call MPI_Win_fence(0, shared ERROR)
  call called('Win_lock')
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, shared ERROR)
  call called('Fetch_and_op')
  call MPI_Fetch_and_op(data, result, MPI_INTEGER, other, place, MPI_SUM, shared ERROR)
  call called('Win_unlock')
  call MPI_Win_unlock(other, shared ERROR)
  call called('Win_free')
  call MPI_Win_free(shared ERROR)

  call get_command_argument(1, name)
  position = 400*me
  call called('File_open')
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, &
    file ERROR)
  call called('File_write_at_all')
  call MPI_File_write_at_all(file, position, data, 100, MPI_INTEGER, MPI_STATUS_IGNORE ERROR)
  call called('File_read_at')
  call MPI_File_read_at(file, position, memory, 100, MPI_INTEGER, MPI_STATUS_IGNORE ERROR)
  call called('File_close')
  call MPI_File_close(file ERROR)
  call must(all(memory == me), 'File_read_at')

  call called('Cart_create')
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], is_cyclic, .false., ring ERROR)
  call called('Neighbor_allgather')
  call MPI_Neighbor_allgather(data, 1, MPI_INTEGER, memory, 1, MPI_INTEGER, ring ERROR)
  call exchanged(1 - me, -2, 4)
  call exchanged(1 - me, -3, 4)
  call called('Ineighbor_alltoall')
  call MPI_Ineighbor_alltoall(data, 1, MPI_INTEGER, memory, 1, MPI_INTEGER, ring, r ERROR)
  call exchanged(1 - me, -2, 4)
  call exchanged(1 - me, -3, 4)
  call called('Wait')
  call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
  call called('Comm_free')
  call MPI_Comm_free(ring ERROR)

  call MPI_Pcontrol(0)
  call MPI_Barrier(MPI_COMM_WORLD ERROR)
  call MPI_Pcontrol(1)
  call called('Barrier')
  call MPI_Barrier(MPI_COMM_WORLD ERROR)
  call finish()

end program
