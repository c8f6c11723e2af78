/* Whether the calls of libgomp's entries are recorded: see gomp.h. */
#define _GNU_SOURCE
#include "gomp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "openmp_ompt.h"

_Atomic int gomp_use;
int (*gomp_thread_number)(void);
const char *gomp_library;

static function *in_library(void *library, const char *name)
{
    void *object = dlsym(library, name);
    function *found;
    memcpy(&found, &object, sizeof found);
    return found;
}

/* Makes the runtime start, if it did not yet: one that has a tool interface then looks for its
 * tool. */
static void wake(void *library)
{
    function *most = in_library(library, "omp_get_max_threads");
    if (most)
        ((int (*)(void))most)();
}

static enum gomp_use decided(void)
{
    enum openmp_how wanted = openmp_wanted();
    if (!process_wanted() || (wanted != BY_CHOICE && wanted != BY_GOMP))
        return PASSED_ON;
    function *parallel = entry_if_any("GOMP_parallel");
    if (!parallel)
        parallel = entry_if_any("GOMP_parallel_start"); /* before GCC 4.9 */
    Dl_info info;
    void *address;
    memcpy(&address, &parallel, sizeof address);
    if (!parallel || !dladdr(address, &info))
        return PASSED_ON;
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    function *number = library ? in_library(library, "omp_get_thread_num") : NULL;
    if (!number)
        return PASSED_ON;
    gomp_thread_number = (int (*)(void))number;
    gomp_library = info.dli_fname;
    if (wanted == BY_GOMP || !in_library(library, "__kmpc_fork_call"))
        return RECORDED;
    wake(library);
    return atomic_load(&ompt_in_use) ? PASSED_ON : RECORDED;
}

static void decide(void)
{
    atomic_store(&gomp_use, decided());
}

void gomp_decide(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, decide);
}
