/* Prints which ranks make pairs: choose_pairs TIER PAIRS NODE:SOCKET:SOCKETS... */
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct place at[64];
    int members[64], ranks = argc - 3, pairs = atoi(argv[2]);
    for (int r = 0; r < ranks; r++)
        sscanf(argv[3 + r], "%d:%d:%d", &at[r].node, &at[r].socket, &at[r].sockets);
    const char *why = choose_pairs(at, ranks, tier_named(argv[1]), pairs, members);
    if (why)
        printf("%s", why);
    for (int i = 0; !why && i < pairs; i++)
        printf("%s%d-%d", i ? " " : "", members[2 * i], members[2 * i + 1]);
    printf("\n%d\n", count_nodes(at, ranks));
    return 0;
}
