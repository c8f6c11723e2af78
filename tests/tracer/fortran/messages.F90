! Every way to send and to receive, between two ranks, to oneself and to nobody.
#include "binding.h"

program messages
  use binding
  use counting
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  integer :: other
  integer :: data(1000), room(1000), attached(10000)

  call begin()
  other = 1 - me
  data = me
  call modes()
  call both_at_once()
  call odd_ones()
  call probes()
  call persistent()
  call cancelled()
  call finish()

contains

  subroutine modes()
    REQUEST :: requests(8)
    integer :: tag, from, size
    call called('Buffer_attach')
    call MPI_Buffer_attach(attached, 40000 ERROR)
    do tag = 1, 6
      from = other
      if (mod(tag, 2) == 0) from = MPI_ANY_SOURCE
      call called('Irecv')
      call MPI_Irecv(room(10*tag), 10, MPI_INTEGER, from, tag, MPI_COMM_WORLD, requests(tag) ERROR)
    end do
    call called('Barrier')
    call MPI_Barrier(MPI_COMM_WORLD ERROR)
    call called('Send')
    call MPI_Send(data, 1, MPI_INTEGER, other, 1, MPI_COMM_WORLD ERROR)
    call called('Bsend')
    call MPI_Bsend(data, 2, MPI_INTEGER, other, 2, MPI_COMM_WORLD ERROR)
    call called('Rsend')
    call MPI_Rsend(data, 3, MPI_INTEGER, other, 3, MPI_COMM_WORLD ERROR)
    call called('Isend')
    call MPI_Isend(data, 4, MPI_INTEGER, other, 4, MPI_COMM_WORLD, requests(7) ERROR)
    call called('Wait')
    call MPI_Wait(requests(7), MPI_STATUS_IGNORE ERROR)
    call called('Ibsend')
    call MPI_Ibsend(data, 5, MPI_INTEGER, other, 5, MPI_COMM_WORLD, requests(7) ERROR)
    call called('Irsend')
    call MPI_Irsend(data, 6, MPI_INTEGER, other, 6, MPI_COMM_WORLD, requests(8) ERROR)
    call called('Waitall')
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE ERROR)
    do tag = 1, 6
      call exchanged(other, tag, 4*tag)
    end do
    call must(room(10) == other .and. requests(1) == MPI_REQUEST_NULL, 'Waitall')
    call called('Buffer_detach')
    call detach(size)
    call must(size == 40000, 'Buffer_detach')

    ! Synchronous ones, in turn.
    call called('Irecv')
    call MPI_Irecv(room, 10, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &
      requests(1) ERROR)
    call called('Ssend')
    call MPI_Ssend(data, 7, MPI_INTEGER, other, 7, MPI_COMM_WORLD ERROR)
    call called('Wait')
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
    call called('Issend')
    call MPI_Issend(data, 8, MPI_INTEGER, other, 8, MPI_COMM_WORLD, requests(1) ERROR)
    call called('Recv')
    call MPI_Recv(room, 10, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE ERROR)
    call called('Wait')
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE ERROR)
    call exchanged(other, 7, 28)
    call exchanged(other, 8, 32)
  end subroutine

  subroutine detach(size)
    integer, intent(out) :: size
#ifdef F08
    type(c_ptr) :: where
    call MPI_Buffer_detach(where, size)
#else
    integer :: where(10000)
    call MPI_Buffer_detach(where, size, ierror)
#endif
  end subroutine

  subroutine both_at_once()
    STATUS :: s
    call called('Sendrecv')
    call MPI_Sendrecv(data, 9, MPI_INTEGER, other, 20, room, 100, MPI_INTEGER, MPI_ANY_SOURCE, &
      MPI_ANY_TAG, MPI_COMM_WORLD, s ERROR)
    call must(SOURCE_OF(s) == other .and. TAG_OF(s) == 20, 'Sendrecv')
    call called('Sendrecv_replace')
    call MPI_Sendrecv_replace(data, 10, MPI_INTEGER, other, 21, other, 21, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE ERROR)
    call exchanged(other, 20, 36)
    call exchanged(other, 21, 40)
    ! To the one, from nobody.
    call called('Sendrecv')
    if (me == 0) then
      call MPI_Sendrecv(data, 1, MPI_INTEGER, other, 22, room, 0, MPI_INTEGER, MPI_PROC_NULL, 22, &
        MPI_COMM_WORLD, MPI_STATUS_IGNORE ERROR)
      call sent(other, 22, 4)
    else
      call MPI_Sendrecv(data, 0, MPI_INTEGER, MPI_PROC_NULL, 22, room, 1, MPI_INTEGER, other, 22, &
        MPI_COMM_WORLD, MPI_STATUS_IGNORE ERROR)
      call received(other, 22, 4)
    end if
  end subroutine

  ! Zero bytes, oneself, nobody, a part of an array, types of one's own.
  subroutine odd_ones()
    REQUEST :: r
    DATATYPE :: every_second
    call called('Irecv')
    call MPI_Irecv(room, 0, MPI_INTEGER, other, 30, MPI_COMM_WORLD, r ERROR)
    call called('Send')
    call MPI_Send(data, 0, MPI_INTEGER, other, 30, MPI_COMM_WORLD ERROR)
    call called('Wait')
    call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
    call exchanged(other, 30, 0)

    call called('Irecv')
    call MPI_Irecv(room, 5, MPI_INTEGER, 0, 31, MPI_COMM_SELF, r ERROR)
    call called('Send')
    call MPI_Send(data, 5, MPI_INTEGER, 0, 31, MPI_COMM_SELF ERROR)
    call called('Wait')
    call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
    call exchanged(me, 31, 20)

    call called('Send')
    call MPI_Send(data, 5, MPI_INTEGER, MPI_PROC_NULL, 32, MPI_COMM_WORLD ERROR)
    call called('Recv')
    call MPI_Recv(room, 5, MPI_INTEGER, MPI_PROC_NULL, 32, MPI_COMM_WORLD, MPI_STATUS_IGNORE ERROR)

    call MPI_Type_vector(10, 1, 2, MPI_INTEGER, every_second ERROR)
    call MPI_Type_commit(every_second ERROR)
    call called('Irecv')
    call MPI_Irecv(room, 20, MPI_INTEGER, other, 33, MPI_COMM_WORLD, r ERROR)
    call called('Send')
    call MPI_Send(data, 1, every_second, other, 33, MPI_COMM_WORLD ERROR)
    call called('Wait')
    call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
    call MPI_Type_free(every_second ERROR)
    call exchanged(other, 33, 40)

    call called('Irecv')
    call MPI_Irecv(room, 20, MPI_INTEGER, other, 34, MPI_COMM_WORLD, r ERROR)
    call called('Send')
    call MPI_Send(data(1:20:2), 10, MPI_INTEGER, other, 34, MPI_COMM_WORLD ERROR)
    call called('Wait')
    call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
    call exchanged(other, 34, 40)

    call called('Irecv')
    call MPI_Irecv(room, 3, MPI_DOUBLE_PRECISION, other, 35, MPI_COMM_WORLD, r ERROR)
    call called('Send')
    call MPI_Send(data, 3, MPI_DOUBLE_PRECISION, other, 35, MPI_COMM_WORLD ERROR)
    call called('Wait')
    call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
    call exchanged(other, 35, 24)
  end subroutine

  ! Found before they are received.
  subroutine probes()
    REQUEST :: r
    MESSAGE :: found
    STATUS :: s
    logical :: flag
    integer :: tag
    do tag = 40, 43
      call called('Isend')
      call MPI_Isend(data, tag, MPI_INTEGER, other, tag, MPI_COMM_WORLD, r ERROR)
      call called('Request_free')
      call MPI_Request_free(r ERROR)
      call exchanged(other, tag, 4*tag)
    end do
    call called('Probe')
    call MPI_Probe(MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, s ERROR)
    call must(SOURCE_OF(s) == other, 'Probe')
    call called('Recv')
    call MPI_Recv(room, 100, MPI_INTEGER, SOURCE_OF(s), 40, MPI_COMM_WORLD, s ERROR)
    call must(SOURCE_OF(s) == other .and. TAG_OF(s) == 40, 'Recv')
    flag = .false.
    do while (.not. flag)
      call called('Iprobe')
      call MPI_Iprobe(other, 41, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE ERROR)
    end do
    call called('Recv')
    call MPI_Recv(room, 100, MPI_INTEGER, other, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE ERROR)
    call called('Mprobe')
    call MPI_Mprobe(MPI_ANY_SOURCE, 42, MPI_COMM_WORLD, found, MPI_STATUS_IGNORE ERROR)
    call called('Mrecv')
    call MPI_Mrecv(room, 100, MPI_INTEGER, found, MPI_STATUS_IGNORE ERROR)
    flag = .false.
    do while (.not. flag)
      call called('Improbe')
      call MPI_Improbe(other, 43, MPI_COMM_WORLD, flag, found, s ERROR)
    end do
    call called('Imrecv')
    call MPI_Imrecv(room, 100, MPI_INTEGER, found, r ERROR)
    call called('Wait')
    call MPI_Wait(r, s ERROR)
    call must(SOURCE_OF(s) == other .and. TAG_OF(s) == 43, 'Imrecv')
  end subroutine

  subroutine persistent()
    REQUEST :: requests(6)
    integer :: round, tag, i
    call called('Recv_init')
    call MPI_Recv_init(room(1), 100, MPI_INTEGER, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &
      requests(1) ERROR)
    call called('Recv_init')
    call MPI_Recv_init(room(101), 100, MPI_INTEGER, other, 51, MPI_COMM_WORLD, requests(2) ERROR)
    call called('Recv_init')
    call MPI_Recv_init(room(201), 100, MPI_INTEGER, other, 52, MPI_COMM_WORLD, requests(3) ERROR)
    call called('Send_init')
    call MPI_Send_init(data, 50, MPI_INTEGER, other, 50, MPI_COMM_WORLD, requests(4) ERROR)
    call called('Rsend_init')
    call MPI_Rsend_init(data, 51, MPI_INTEGER, other, 51, MPI_COMM_WORLD, requests(5) ERROR)
    call called('Ssend_init')
    call MPI_Ssend_init(data, 52, MPI_INTEGER, other, 52, MPI_COMM_WORLD, requests(6) ERROR)
    do round = 1, 3
      call called('Start')
      call MPI_Start(requests(1) ERROR)
      call called('Startall')
      call MPI_Startall(2, requests(2:3) ERROR)
      call called('Barrier')
      call MPI_Barrier(MPI_COMM_WORLD ERROR)
      call called('Startall')
      call MPI_Startall(3, requests(4:6) ERROR)
      call called('Waitall')
      call MPI_Waitall(6, requests, MPI_STATUSES_IGNORE ERROR)
      do tag = 50, 52
        call exchanged(other, tag, 4*tag)
      end do
    end do
    do i = 1, 6
      call called('Request_free')
      call MPI_Request_free(requests(i) ERROR)
    end do
  end subroutine

  ! A receive that never gets a message, and one behind it that does.
  subroutine cancelled()
    REQUEST :: r
    STATUS :: s
    logical :: flag
    call called('Irecv')
    call MPI_Irecv(room, 1, MPI_INTEGER, other, 60, MPI_COMM_WORLD, r ERROR)
    call called('Cancel')
    call MPI_Cancel(r ERROR)
    call called('Wait')
    call MPI_Wait(r, s ERROR)
    call MPI_Test_cancelled(s, flag ERROR)
    call must(flag, 'Cancel')
    call called('Barrier')
    call MPI_Barrier(MPI_COMM_WORLD ERROR)
    call called('Irecv')
    call MPI_Irecv(room, 1, MPI_INTEGER, other, 60, MPI_COMM_WORLD, r ERROR)
    call called('Send')
    call MPI_Send(data, 1, MPI_INTEGER, other, 60, MPI_COMM_WORLD ERROR)
    call called('Wait')
    call MPI_Wait(r, MPI_STATUS_IGNORE ERROR)
    call exchanged(other, 60, 4)
  end subroutine

end program
