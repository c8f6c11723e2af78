// The same line of cells as objects, for the front end of C++.
#include <mpi.h>
#include <cstdlib>
#include <vector>

class Line {
public:
    explicit Line(long n) : n(n), u(n + 2), v(n + 2) {}
    template <class Law> void sweep(Law law)
    {
        #pragma omp parallel for schedule(dynamic, 64)
        for (long i = 1; i <= n; i++) v[i] = law(u[i - 1], u[i], u[i + 1]);
    }
    virtual double most() const
    {
        double found = 0.0;
        for (long i = 1; i <= n; i++) found = found < v[i] ? v[i] : found;
        return found;
    }
    long n;
    std::vector<double> u, v;
};

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Line line(std::atol(argv[1]) / size);
    long steps = std::atol(argv[2]);
    for (long step = 0; step < steps; step++) {
        MPI_Send(&line.u[line.n], 1, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD);
        MPI_Recv(&line.u[0], 1, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        line.sweep([](double a, double b, double c) { return 0.25 * a + 0.5 * b + 0.25 * c; });
        double most = line.most();
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
