/* Libraries that the program has loaded: see loaded.h. */
#define _GNU_SOURCE
#include "loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

#define MOST_LIBRARIES 1024
static struct {
    char *names[MOST_LIBRARIES];
    int count;
} loaded;

static int collect(struct dl_phdr_info *info, size_t size, void *ignored)
{
    (void)size;
    (void)ignored;
    if (info->dlpi_name && strstr(info->dlpi_name, ".so") && loaded.count < MOST_LIBRARIES)
        loaded.names[loaded.count++] = strdup(info->dlpi_name);
    return 0;
}

void *library_with(const char *symbol)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    void *found = NULL;
    pthread_mutex_lock(&one);
    /* Opening one inside the walk would need a lock that the walk may hold. */
    dl_iterate_phdr(collect, NULL);
    for (int i = 0; i < loaded.count; i++) {
        void *library = loaded.names[i] ? dlopen(loaded.names[i], RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (library && !found && dlsym(library, symbol))
            found = library; /* and stays open */
        else if (library)
            dlclose(library);
        free(loaded.names[i]);
    }
    loaded.count = 0;
    pthread_mutex_unlock(&one);
    return found;
}

#define NOT_TRACED " is loaded: kernels and copies of its devices are not traced"
static const char *const runtimes[] = {
    "libcuda.so" NOT_TRACED,
    "libamdhip64.so" NOT_TRACED,
    "libze_loader.so" NOT_TRACED,
    "libOpenCL.so" NOT_TRACED,
};
#define RUNTIMES (sizeof runtimes / sizeof *runtimes)

static int find_runtime(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *name = slash ? slash + 1 : info->dlpi_name;
    for (size_t i = 0; name && i < RUNTIMES; i++) {
        size_t length = strchr(runtimes[i], ' ') - runtimes[i];
        if (strncmp(name, runtimes[i], length) == 0)
            *(const char **)found = runtimes[i];
    }
    return *(const char **)found != NULL;
}

void devices_note(void)
{
    static atomic_bool noted;
    const char *found = NULL;
    dl_iterate_phdr(find_runtime, &found);
    if (found && !atomic_exchange(&noted, true))
        note(found);
}
