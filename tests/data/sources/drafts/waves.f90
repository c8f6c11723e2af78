! The same line of cells in Fortran, its sizes in a namelist.
program waves
  use mpi
  implicit none
  integer :: rank, size, ierr, cells, steps, step, n, left, right, i
  real(8), allocatable :: u(:), v(:)
  real(8) :: most
  namelist /run/ cells, steps
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  read(5, nml=run)
  n = cells/size
  allocate(u(0:n+1), v(0:n+1))
  left = rank - 1
  right = rank + 1
  if (rank == 0) left = MPI_PROC_NULL
  if (rank == size - 1) right = MPI_PROC_NULL
  do step = 1, steps
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 0, u(n+1), 1, MPI_DOUBLE_PRECISION, &
      right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    most = 0
    !$omp parallel
    !$omp do schedule(guided) reduction(max: most)
    do i = 1, n
      v(i) = 0.25d0*u(i-1) + 0.5d0*u(i) + 0.25d0*u(i+1)
      most = max(most, v(i))
    end do
    !$omp end do
    !$omp single
    v(0) = v(1)
    !$omp end single
    !$omp end parallel
    do concurrent (i = 1:n)
      u(i) = v(i)
    end do
    if (mod(step, 10) == 0) call MPI_Allreduce(MPI_IN_PLACE, most, 1, MPI_DOUBLE_PRECISION, &
      MPI_MAX, MPI_COMM_WORLD, ierr)
  end do
  call MPI_Finalize(ierr)
end program
