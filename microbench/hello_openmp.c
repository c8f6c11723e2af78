/* Says that OpenMP works, with how many threads, and which runtime library does it.
 *
 * Prints one JSON line:
 *   {"threads":N,"openmp":YYYYMM,"runtime":"name of the library's file"}
 * The library is found among the files that the process has mapped: what was linked and what is
 * found when the program starts may differ. A runtime that is linked statically is called "static".
 */
#include <omp.h>
#include <stdio.h>
#include <string.h>

static void find_runtime(char *name, size_t room)
{
    static const char *const known[] = {"libgomp", "libiomp", "libomp", "libnvomp", "libcraymp",
                                        "libfjomp", "libxlsmp", "libarmomp"};
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");

    snprintf(name, room, "static");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        const char *slash = strrchr(line, '/');
        for (size_t i = 0; slash != NULL && i < sizeof known / sizeof known[0]; i++) {
            if (strncmp(slash + 1, known[i], strlen(known[i])) == 0) {
                snprintf(name, room, "%s", slash + 1);
                name[strcspn(name, "\n\"\\ ")] = '\0';
                fclose(maps);
                return;
            }
        }
    }
    if (maps != NULL)
        fclose(maps);
}

int main(void)
{
    char runtime[256];
    int threads = 0;

#pragma omp parallel reduction(+ : threads)
    threads += 1;

    find_runtime(runtime, sizeof runtime);
    printf("{\"threads\":%d,\"openmp\":%d,\"runtime\":\"%s\"}\n", threads, _OPENMP, runtime);
    return 0;
}
