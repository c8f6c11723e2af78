/* Libraries that the program has loaded: see loaded.h. */
#define _GNU_SOURCE
#include "loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
