/* Regions of the user's, in order and out of order. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "popmodel.h"

int main(int argc, char **argv)
{
    char name[16];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "step %d", i % 2); /* the same place, other letters */
        popmodel_begin(name);
        popmodel_begin("solver");
        popmodel_end("solver");
        popmodel_end(name);
    }
    popmodel_begin("a");
    popmodel_begin("b");
    popmodel_end("a"); /* crossing */
    popmodel_end("b");
    if (argc > 1 && strcmp(argv[1], "wrong") == 0) {
        popmodel_end("b");
        popmodel_end("never begun");
        popmodel_begin(NULL);
        popmodel_begin("left open");
    }
    for (int i = 0; argc > 1 && strcmp(argv[1], "many") == 0 && i < 5000; i++) {
        snprintf(name, sizeof name, "many %d", i);
        popmodel_begin(name);
    }
    if (argc > 1 && strcmp(argv[1], "close") == 0)
        for (int file = 3; file < 65536; file++)
            close(file);
#pragma omp parallel num_threads(2)
    {
        popmodel_begin("on threads");
        popmodel_end("on threads");
    }
    popmodel_trace_off();
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
    }
    popmodel_trace_on();
    puts("done");
    return 0;
}
