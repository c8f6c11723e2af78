! The three ways to call MPI from Fortran, for one and the same program: -DF08 (module mpi_f08),
! -DMODULE (module mpi), else mpif.h. ERROR is the last argument, which may be left out in mpi_f08:
! that it is, is a part of the test. A macro is not joined to what follows it, hence the blanks.
#ifdef F08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define MESSAGE type(MPI_Message)
#define DATATYPE type(MPI_Datatype)
#define GROUP type(MPI_Group)
#define WINDOW type(MPI_Win)
#define HANDLE_OF_FILE type(MPI_File)
#define STATUS type(MPI_Status)
#define SOURCE_OF(status) status%MPI_SOURCE
#define TAG_OF(status) status%MPI_TAG
#define STATUSES(name, n) type(MPI_Status) :: name(n)
#define ONE_OF(statuses, i) statuses(i)
#define ERROR
#define ONLY_ERROR
#else
#define COMM integer
#define REQUEST integer
#define MESSAGE integer
#define DATATYPE integer
#define GROUP integer
#define WINDOW integer
#define HANDLE_OF_FILE integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define SOURCE_OF(status) status(MPI_SOURCE)
#define TAG_OF(status) status(MPI_TAG)
#define STATUSES(name, n) integer :: name(MPI_STATUS_SIZE, n)
#define ONE_OF(statuses, i) statuses(:, i)
#define ERROR , ierror
#define ONLY_ERROR ierror
#endif
