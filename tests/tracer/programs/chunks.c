/* A loop whose iterations are handed out one by one, to one thread. */
#include <stdlib.h>

int main(int count, char **words)
{
    long n = count > 1 ? atol(words[1]) : 1;
    volatile long sum = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(1)
    for (long i = 0; i < n; i++)
        sum += i;
    return 0;
}
