! Regions of the user's own: with blanks behind their names, one in the other, and a pause.
program regions
    use popmodel
    implicit none
    character(len=16) :: step
    integer :: i
    do i = 1, 2
        write (step, '("step ", i0)') i
        call popmodel_begin(step)
        call popmodel_begin("solver")
        call popmodel_end("solver")
        call popmodel_end(step)
    end do
    call popmodel_trace_off()
    call popmodel_trace_on()
    print '(a)', "done"
end program regions
