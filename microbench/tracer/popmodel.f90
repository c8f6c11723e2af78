! Regions of a Fortran program's own in its trace (`popmodel trace`), as popmodel.h has them for C:
!
!     use popmodel
!
!     call popmodel_begin("solver")
!     ...
!     call popmodel_end("solver")
!
!     call popmodel_trace_off()      ! nothing is recorded from here ...
!     call popmodel_trace_on()       ! ... to here, on all threads of this process
!
! Compile this file with the program. It needs no library to link with (with a C library older than
! glibc 2.34: -ldl): the tracer is looked for when the program runs, and while it is not traced
! each of these does nothing. Blanks at the end of a name do not count.
module popmodel
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funptr, c_int, &
                                           c_null_char, c_null_ptr, c_ptr
    implicit none
    private
    public :: popmodel_begin, popmodel_end, popmodel_trace_on, popmodel_trace_off

    abstract interface
        subroutine with_name(name) bind(c)
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine with_name

        subroutine with_switch(on) bind(c)
            import :: c_int
            integer(c_int), value :: on
        end subroutine with_switch
    end interface

    interface
        ! Among all that is loaded (RTLD_DEFAULT, which is null).
        function found(where, name) bind(c, name="dlsym")
            import :: c_char, c_funptr, c_ptr
            type(c_ptr), value :: where
            character(kind=c_char), intent(in) :: name(*)
            type(c_funptr) :: found
        end function found
    end interface

contains

    subroutine popmodel_begin(name)
        character(len=*), intent(in) :: name
        call tell("popmodel_region_begin", name)
    end subroutine popmodel_begin

    subroutine popmodel_end(name)
        character(len=*), intent(in) :: name
        call tell("popmodel_region_end", name)
    end subroutine popmodel_end

    subroutine popmodel_trace_on()
        call switch(1_c_int)
    end subroutine popmodel_trace_on

    subroutine popmodel_trace_off()
        call switch(0_c_int)
    end subroutine popmodel_trace_off

    subroutine tell(function, name)
        character(len=*), intent(in) :: function, name
        procedure(with_name), pointer :: told
        type(c_funptr) :: there
        there = found(c_null_ptr, function // c_null_char)
        if (.not. c_associated(there)) return
        call c_f_procpointer(there, told)
        call told(trim(name) // c_null_char)
    end subroutine tell

    subroutine switch(on)
        integer(c_int), intent(in) :: on
        procedure(with_switch), pointer :: told
        type(c_funptr) :: there
        there = found(c_null_ptr, "popmodel_tracing" // c_null_char)
        if (.not. c_associated(there)) return
        call c_f_procpointer(there, told)
        call told(on)
    end subroutine switch
end module popmodel
