/* Calls an entry of a runtime that nobody has brought, but for the wrapper of it. */
#define _GNU_SOURCE
#include <dlfcn.h>

int main(void)
{
    void (*barrier)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "GOMP_barrier");
    if (barrier)
        barrier();
    return 0;
}
