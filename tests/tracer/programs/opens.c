/* A program without OpenMP that opens a library which has it, for itself alone. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*work)(void) = library ? (int (*)(void))dlsym(library, "work") : NULL;
    if (!work) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("%d\n", work());
    return 0;
}
