! Every way to make a communicator, with a message in each: communicators.c in Fortran.
#include "binding.h"

program communicators
  use binding
  use counting
  implicit none
  COMM :: made, other
  GROUP :: everyone, odd
  REQUEST :: r
  integer :: tag = 0, color, next, before, sizes(2), nodes(16), edges(16), i, range(3, 1)
  integer :: neighbours(1)

  call begin()
  call use(MPI_COMM_WORLD, 'world')
  call use(MPI_COMM_SELF, 'self')
  call called('Comm_dup')
  call MPI_Comm_dup(MPI_COMM_WORLD, made ERROR)
  call use(made, 'dup')
  call called('Comm_dup')
  call MPI_Comm_dup(made, other ERROR)
  call use_and_free(other, 'dup of dup')
  call use_and_free(made, 'dup again')
  call called('Comm_dup_with_info')
  call MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, made ERROR)
  call use_and_free(made, 'dup_with_info')
  call called('Comm_idup')
  call MPI_Comm_idup(MPI_COMM_WORLD, made, r ERROR)
  call overwrite()
  call called('Wait')
  call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
  call use_and_free(made, 'idup')
  call called('Comm_split')
  call MPI_Comm_split(MPI_COMM_WORLD, mod(me, 2), -me, made ERROR)
  call use(made, 'split')
  call called('Comm_disconnect')
  call MPI_Comm_disconnect(made ERROR)
  color = 0
  if (me == 1) color = MPI_UNDEFINED
  call called('Comm_split')
  call MPI_Comm_split(MPI_COMM_WORLD, color, me, made ERROR)
  call use_and_free(made, 'split with one left out')
  call called('Comm_split_type')
  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made ERROR)
  call use_and_free(made, 'split_type')
  range(:, 1) = [1, ranks - 1, 2]
  call MPI_Comm_group(MPI_COMM_WORLD, everyone ERROR)
  call MPI_Group_range_incl(everyone, 1, range, odd ERROR)
  call called('Comm_create')
  call MPI_Comm_create(MPI_COMM_WORLD, odd, made ERROR)
  call use_and_free(made, 'create')
  made = MPI_COMM_NULL
  if (mod(me, 2) == 1) then
    call called('Comm_create_group')
    call MPI_Comm_create_group(MPI_COMM_WORLD, odd, 5, made ERROR)
  end if
  call use_and_free(made, 'create_group')
  sizes = [2, ranks/2]
  call called('Cart_create')
  call MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, [.false., .true.], .false., other ERROR)
  call use(other, 'cart_create')
  call called('Cart_sub')
  call MPI_Cart_sub(other, [.false., .true.], made ERROR)
  call use_and_free(made, 'cart_sub')
  call use_and_free(other, 'cart again')
  do i = 1, ranks
    nodes(i) = i
    edges(i) = mod(i, ranks)
  end do
  call called('Graph_create')
  call MPI_Graph_create(MPI_COMM_WORLD, ranks, nodes, edges, .false., made ERROR)
  call use_and_free(made, 'graph_create')
  next = mod(me + 1, ranks)
  before = mod(me + ranks - 1, ranks)
  neighbours = next
  call called('Dist_graph_create')
  call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [me], [1], neighbours, MPI_UNWEIGHTED, &
    MPI_INFO_NULL, .false., made ERROR)
  call use_and_free(made, 'dist_graph_create')
  call called('Dist_graph_create_adjacent')
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [before], MPI_UNWEIGHTED, 1, neighbours, &
    MPI_UNWEIGHTED, MPI_INFO_NULL, .false., made ERROR)
  call use_and_free(made, 'dist_graph_create_adjacent')
  call called('Comm_split')
  call MPI_Comm_split(MPI_COMM_WORLD, mod(me, 2), me, made ERROR)
  call called('Intercomm_create')
  call MPI_Intercomm_create(made, 0, MPI_COMM_WORLD, 1 - mod(me, 2), 9, other ERROR)
  call called('Comm_free')
  call MPI_Comm_free(made ERROR)
  call use(other, 'intercomm_create')
  call called('Intercomm_merge')
  call MPI_Intercomm_merge(other, mod(me, 2) == 1, made ERROR)
  call use_and_free(made, 'intercomm_merge')
  call use_and_free(other, 'intercomm again')
  call finish()

contains

  ! What calls leave on the stack is gone.
  subroutine overwrite()
    integer, volatile :: stack(4096)
    stack = -1
  end subroutine

  integer function rank_in_world(of, rank)
    GROUP, intent(in) :: of
    integer, intent(in) :: rank
    GROUP :: world
    integer :: found(1)
    call MPI_Comm_group(MPI_COMM_WORLD, world ERROR)
    call MPI_Group_translate_ranks(of, 1, [rank], world, found ERROR)
    call MPI_Group_free(world ERROR)
    rank_in_world = found(1)
  end function

  ! A message to the next and from the one before; what `name` is for: who is in it.
  subroutine use(comm, name)
    COMM, intent(in) :: comm
    character(len=*), intent(in) :: name
    GROUP :: own, partners
    REQUEST :: posted
    integer :: rank, size, members, to, from, data, room, k
    logical :: is_inter
    character(len=:), allocatable :: list
    tag = tag + 1
    if (comm == MPI_COMM_NULL) return
    call MPI_Comm_rank(comm, rank ERROR)
    call MPI_Comm_test_inter(comm, is_inter ERROR)
    call MPI_Comm_group(comm, own ERROR)
    partners = own
    if (is_inter) call MPI_Comm_remote_group(comm, partners ERROR)
    call MPI_Group_size(partners, size ERROR)
    to = mod(rank + 1, size)
    from = mod(rank + size - 1, size)
    if (is_inter) then
      to = 0
      from = 0
    end if
    ! In an intercommunicator the first ranks of both groups exchange.
    if (.not. is_inter .or. rank == 0) then
      data = me
      call called('Irecv')
      call MPI_Irecv(room, 1, MPI_INTEGER, from, tag, comm, posted ERROR)
      call called('Send')
      call MPI_Send(data, 1, MPI_INTEGER, to, tag, comm ERROR)
      call called('Wait')
      call MPI_Wait(posted, MPI_STATUS_IGNORE ERROR)
      call sent(rank_in_world(partners, to), tag, 4)
      call received(rank_in_world(partners, from), tag, 4)
      call must(room == rank_in_world(partners, from), name)
    end if
    call MPI_Group_size(own, members ERROR)
    list = ''
    do k = 0, members - 1
      if (k > 0) list = list // ','
      list = list // text_of(rank_in_world(own, k))
    end do
    call noted('["' // name // '",' // text_of(tag) // ',[' // list // ']]')
  end subroutine

  subroutine use_and_free(comm, name)
    COMM, intent(inout) :: comm
    character(len=*), intent(in) :: name
    call use(comm, name)
    if (comm == MPI_COMM_NULL) return
    call called('Comm_free')
    call MPI_Comm_free(comm ERROR)
  end subroutine

end program
