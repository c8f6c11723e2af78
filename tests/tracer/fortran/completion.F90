! Every way to complete requests, with and without statuses; what the program gets back is checked.
#include "binding.h"

program completion
  use binding
  use counting
  implicit none
  integer, parameter :: n = 6
  integer :: other, i, number, base, where, finished, places(n + 1)
  integer :: data(100), room(100, n)
  logical :: flag
  REQUEST :: requests(n + 1)
  STATUS :: s
  STATUSES(all, n + 1)

  call begin()
  other = 1 - me
  data = me
  requests(n + 1) = MPI_REQUEST_NULL

  call post(1000)
  do i = n, 1, -1
    call called('Wait')
    call MPI_Wait(requests(i), s ERROR)
    call told(s, 1000 + i)
  end do
  call post(1100)
  call called('Waitall')
  call MPI_Waitall(n + 1, requests, all ERROR)
  do i = 1, n
    call told(ONE_OF(all, i), 1100 + i)
  end do
  call post(1200)
  do i = 1, n
    call called('Waitany')
    call MPI_Waitany(n + 1, requests, where, s ERROR)
    call told_of(s, where)
  end do
  call called('Waitany')
  call MPI_Waitany(n + 1, requests, where, s ERROR)
  call must(where < 1, 'Waitany')
  call post(1300)
  number = 0
  do while (number < n)
    call called('Waitsome')
    call MPI_Waitsome(n + 1, requests, finished, places, all ERROR)
    do i = 1, finished
      call told_of(ONE_OF(all, i), places(i))
    end do
    number = number + finished
  end do
  call post(1400)
  do i = 1, n
    flag = .false.
    do while (.not. flag)
      call called('Test')
      call MPI_Test(requests(i), flag, s ERROR)
    end do
    call told(s, 1400 + i)
  end do
  call post(1500)
  flag = .false.
  do while (.not. flag)
    call called('Testall')
    call MPI_Testall(n + 1, requests, flag, all ERROR)
  end do
  do i = 1, n
    call told(ONE_OF(all, i), 1500 + i)
  end do
  call post(1600)
  number = 0
  do while (number < n)
    call called('Testany')
    call MPI_Testany(n + 1, requests, where, flag, s ERROR)
    if (.not. flag) cycle
    call told_of(s, where)
    number = number + 1
  end do
  call post(1700)
  number = 0
  do while (number < n)
    call called('Testsome')
    call MPI_Testsome(n + 1, requests, finished, places, all ERROR)
    do i = 1, finished
      call told_of(ONE_OF(all, i), places(i))
    end do
    number = number + finished
  end do
  call post(1800)
  do i = 1, n
    flag = .false.
    do while (.not. flag)
      call called('Request_get_status')
      call MPI_Request_get_status(requests(i), flag, s ERROR)
    end do
    call told(s, 1800 + i)
    call called('Wait')
    call MPI_Wait(requests(i), MPI_STATUS_IGNORE ERROR)
  end do

  ! The same, and nobody wants to know.
  call post(2000)
  call called('Waitall')
  call MPI_Waitall(n + 1, requests, MPI_STATUSES_IGNORE ERROR)
  call post(2100)
  do i = 1, n
    call called('Waitany')
    call MPI_Waitany(n + 1, requests, where, MPI_STATUS_IGNORE ERROR)
  end do
  call post(2200)
  number = 0
  do while (number < n)
    call called('Waitsome')
    call MPI_Waitsome(n + 1, requests, finished, places, MPI_STATUSES_IGNORE ERROR)
    number = number + finished
  end do
  call post(2300)
  flag = .false.
  do while (.not. flag)
    call called('Testall')
    call MPI_Testall(n + 1, requests, flag, MPI_STATUSES_IGNORE ERROR)
  end do
  call post(2400)
  do i = 1, n
    flag = .false.
    do while (.not. flag)
      call called('Test')
      call MPI_Test(requests(i), flag, MPI_STATUS_IGNORE ERROR)
    end do
  end do
  do i = 1, n
    call must(requests(i) == MPI_REQUEST_NULL .and. room(1, i) == other, 'MPI_STATUS_IGNORE')
  end do

  ! Calls on no requests are calls.
  call called('Waitall')
  call MPI_Waitall(0, requests, all ERROR)
  call called('Waitany')
  call MPI_Waitany(0, requests, where, s ERROR)
  call called('Waitsome')
  call MPI_Waitsome(0, requests, finished, places, all ERROR)
  call called('Testall')
  call MPI_Testall(0, requests, flag, all ERROR)
  call must(flag, 'Testall of nothing')
  call called('Testany')
  call MPI_Testany(0, requests, where, flag, s ERROR)
  call must(flag, 'Testany of nothing')
  call called('Testsome')
  call MPI_Testsome(0, requests, finished, places, all ERROR)
  call called('Startall')
  call MPI_Startall(0, requests ERROR)
  call finish()

contains

  ! Messages come in the reverse order of their receives.
  subroutine post(first)
    integer, intent(in) :: first
    integer :: k, from
    base = first
    do k = 1, n
      from = other
      if (mod(k, 2) == 0) from = MPI_ANY_SOURCE
      call called('Irecv')
      call MPI_Irecv(room(:, k), 100, MPI_INTEGER, from, first + k, MPI_COMM_WORLD, &
        requests(k) ERROR)
    end do
    call called('Barrier')
    call MPI_Barrier(MPI_COMM_WORLD ERROR)
    do k = n, 1, -1
      call called('Send')
      call MPI_Send(data, k, MPI_INTEGER, other, first + k, MPI_COMM_WORLD ERROR)
      call exchanged(other, first + k, 4*k)
    end do
  end subroutine

  ! MPICH 4.0 counts from 0 in mpi_f08, and adds 1 to MPI_UNDEFINED elsewhere.
  subroutine told_of(of, place)
    STATUS, intent(in) :: of
    integer, intent(in) :: place
    call told(of, TAG_OF(of))
    call must(TAG_OF(of) - base == place .or. TAG_OF(of) - base == place + 1, 'a place is wrong')
  end subroutine

  subroutine told(of, tag)
    STATUS, intent(in) :: of
    integer, intent(in) :: tag
    integer :: length
    call MPI_Get_count(of, MPI_INTEGER, length ERROR)
    call must(SOURCE_OF(of) == other .and. TAG_OF(of) == tag .and. length == tag - base, &
      'a status is not that of message ' // text_of(tag))
  end subroutine

end program
