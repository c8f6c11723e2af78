! A program that counts what it does, as counting.h does for C: calls by name, messages by what
! happened, partner (its rank in MPI_COMM_WORLD), tag and bytes; report() writes $COUNTS/RANK.json.
#include "binding.h"

module binding
#if defined F08
  use mpi_f08
  implicit none
#elif defined MODULE
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
end module

module counting
  use binding
  implicit none
  integer :: me, ranks, ierror
  character(len=40), private :: names(200)
  integer, private :: counts(200), known = 0
  character(len=:), allocatable, private :: messages, notes

contains

  subroutine called(name)
    character(len=*), intent(in) :: name
    integer :: i
    do i = 1, known
      if (names(i) == name) exit
    end do
    if (i > known) then
      known = i
      names(i) = name
      counts(i) = 0
    end if
    counts(i) = counts(i) + 1
  end subroutine

  function text_of(n) result(text)
    integer, intent(in) :: n
    character(len=:), allocatable :: text
    character(len=20) :: digits
    write (digits, '(i0)') n
    text = trim(digits)
  end function

  subroutine message(what, partner, tag, bytes)
    character(len=*), intent(in) :: what
    integer, intent(in) :: partner, tag, bytes
    if (.not. allocated(messages)) messages = ''
    if (len(messages) > 0) messages = messages // ','
    messages = messages // '["' // what // '",' // text_of(partner) // ',' // text_of(tag) // ',' &
      // text_of(bytes) // ']'
  end subroutine

  subroutine sent(to, tag, bytes)
    integer, intent(in) :: to, tag, bytes
    call message('sent', to, tag, bytes)
  end subroutine

  subroutine received(from, tag, bytes)
    integer, intent(in) :: from, tag, bytes
    call message('received', from, tag, bytes)
  end subroutine

  ! To the one, and the same from there.
  subroutine exchanged(partner, tag, bytes)
    integer, intent(in) :: partner, tag, bytes
    call sent(partner, tag, bytes)
    call received(partner, tag, bytes)
  end subroutine

  ! Anything else that a test wants to know: a JSON value.
  subroutine noted(value)
    character(len=*), intent(in) :: value
    if (.not. allocated(notes)) notes = ''
    if (len(notes) > 0) notes = notes // ','
    notes = notes // value
  end subroutine

  ! What the program gets must be what it would get without the tracer.
  subroutine must(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    write (0, '(a,i0,2a)') 'rank ', me, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1 ERROR)
  end subroutine

  subroutine begin()
    call called('Init')
    call MPI_Init(ONLY_ERROR)
    call MPI_Comm_rank(MPI_COMM_WORLD, me ERROR)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks ERROR)
  end subroutine

  subroutine finish()
    character(len=4096) :: folder
    integer :: i, file
    call called('Finalize')
    call get_environment_variable('COUNTS', folder)
    if (folder /= '') then
      open (newunit=file, file=trim(folder) // '/' // text_of(me) // '.json', action='write')
      write (file, '(3a)', advance='no') '{"rank":', text_of(me), ',"calls":{'
      do i = 1, known
        if (i > 1) write (file, '(a)', advance='no') ','
        write (file, '(4a)', advance='no') '"', trim(names(i)), '":', text_of(counts(i))
      end do
      if (.not. allocated(messages)) messages = ''
      if (.not. allocated(notes)) notes = ''
      write (file, '(5a)') '},"messages":[', messages, '],"notes":[', notes, ']}'
      close (file)
    end if
    call MPI_Finalize(ONLY_ERROR)
  end subroutine

end module
