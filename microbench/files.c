/* The system's files, as they are: what they mean is for the reader of the samples to say, who can
 * then be wrong, and be corrected, without measuring again. */
#define _DEFAULT_SOURCE
#include "files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"

static const char CPU[] = "/sys/devices/system/cpu";
static const char NODE[] = "/sys/devices/system/node";
static const char *const OF_CPU[] = {"topology/core_id", "topology/physical_package_id",
                                     "topology/thread_siblings_list", "topology/core_cpus_list",
                                     NULL};
static const char *const OF_CACHE[] = {"level",           "type", "size", "coherency_line_size",
                                       "shared_cpu_list", NULL};
static const char *const OF_NODE[] = {"cpulist", "meminfo", NULL};
static const char *const OF_CGROUP[] = {"cpu.max",
                                        "memory.max",
                                        "memory.high",
                                        "cpu.cfs_quota_us",
                                        "cpu.cfs_period_us",
                                        "memory.limit_in_bytes",
                                        NULL};

struct object {
    struct text *text;
    int members;
};

static void add_member(struct object *object, const char *path, const char *content)
{
    text_add(object->text, object->members++ ? "," : "");
    text_add_json(object->text, path);
    text_add(object->text, ":");
    text_add_json(object->text, content);
}

static void add_file(struct object *object, const char *folder, const char *name)
{
    struct text path = {0};
    text_add(&path, "%s/%s", folder, name);
    char *content = file_read(path.at);
    if (content)
        add_member(object, path.at, content);
    free(content);
    text_free(&path);
}

static void add_files(struct object *object, const char *folder, const char *const *names)
{
    for (; *names; names++)
        add_file(object, folder, *names);
}

/* Of a long file only what is told apart by `from` and `until`: the line that holds the one, the
 * text before the other. */
static void add_part(struct object *object, const char *path, const char *from, const char *until)
{
    char *content = file_read(path), *start = content ? strstr(content, from) : NULL;
    if (start) {
        char *end = strstr(start, until);
        if (end)
            end[1] = '\0';
        add_member(object, path, start);
    }
    free(content);
}

/* Calls `each` with every entry of a folder whose name is `prefix` and a number. */
static void for_each_numbered(struct object *object, const char *folder, const char *prefix,
                              void (*each)(struct object *, const char *))
{
    DIR *entries = opendir(folder);
    if (!entries)
        return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        size_t length = strlen(prefix);
        const char *number = entry->d_name + length;
        if (strncmp(entry->d_name, prefix, length) != 0 || !*number ||
            strspn(number, "0123456789") != strlen(number))
            continue;
        struct text path = {0};
        text_add(&path, "%s/%s", folder, entry->d_name);
        each(object, path.at);
        text_free(&path);
    }
    closedir(entries);
}

static void add_cache(struct object *object, const char *folder)
{
    add_files(object, folder, OF_CACHE);
}

static void add_cpu(struct object *object, const char *folder)
{
    add_files(object, folder, OF_CPU);
    struct text caches = {0};
    text_add(&caches, "%s/cache", folder);
    for_each_numbered(object, caches.at, "index", add_cache);
    text_free(&caches);
}

static void add_node(struct object *object, const char *folder)
{
    add_files(object, folder, OF_NODE);
}

/* Whether a word is in a list with commas. */
static int in_list(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

/* A line of /proc/self/mountinfo (see proc(5)): which control groups are mounted where. */
struct mount {
    char *root, *point; /* the group that is seen at the place, and the place */
    int unified;        /* version 2 */
    char *controllers;  /* version 1 */
};

/* Cuts the line in place. Returns 1 if it is about control groups. */
static int parse_mount(char *line, struct mount *mount)
{
    char *after = strstr(line, " - "), *rest = NULL;
    if (!after)
        return 0;
    *after = '\0';
    strtok_r(line, " ", &rest);
    strtok_r(NULL, " ", &rest);
    strtok_r(NULL, " ", &rest);
    mount->root = strtok_r(NULL, " ", &rest);
    mount->point = strtok_r(NULL, " ", &rest);
    char *type = strtok_r(after + 3, " ", &rest);
    strtok_r(NULL, " ", &rest);
    mount->controllers = strtok_r(NULL, " ", &rest);
    mount->unified = type && strcmp(type, "cgroup2") == 0;
    return mount->point && mount->controllers && (mount->unified || strcmp(type, "cgroup") == 0);
}

/* The limits of a group and of all groups around it: any of them may be the narrowest. */
static void add_groups(struct object *object, const struct mount *mount, const char *group)
{
    /* In a container the group's path may be that of the host, of which only the end is mounted. */
    size_t root = strlen(mount->root);
    if (strcmp(mount->root, "/") != 0 && strncmp(group, mount->root, root) == 0)
        group += root;
    struct text folder = {0};
    text_add(&folder, "%s%s%s", mount->point, *group == '/' ? "" : "/", group);
    size_t shortest = strlen(mount->point);
    while (folder.length > shortest && folder.at[folder.length - 1] == '/')
        folder.at[--folder.length] = '\0';
    for (;;) {
        add_files(object, folder.at, OF_CGROUP);
        char *slash = strrchr(folder.at, '/');
        if (folder.length <= shortest || !slash)
            break;
        folder.length = (size_t)(slash - folder.at);
        *slash = '\0';
    }
    text_free(&folder);
}

/* Control groups of this process, a line "number:controllers:path" each (see cgroups(7)). */
static void add_limits(struct object *object)
{
    char *groups = file_read("/proc/self/cgroup"), *next = NULL;
    for (char *line = groups ? strtok_r(groups, "\n", &next) : NULL; line;
         line = strtok_r(NULL, "\n", &next)) {
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        controllers++;
        *group++ = '\0';
        int unified = *controllers == '\0', cpu = in_list(controllers, "cpu"),
            memory = in_list(controllers, "memory");
        if (!unified && !cpu && !memory)
            continue;
        char *mounts = file_read("/proc/self/mountinfo"), *next_mount = NULL;
        for (char *one = mounts ? strtok_r(mounts, "\n", &next_mount) : NULL; one;
             one = strtok_r(NULL, "\n", &next_mount)) {
            struct mount mount;
            if (!parse_mount(one, &mount) || mount.unified != unified)
                continue;
            if (unified || (cpu && in_list(mount.controllers, "cpu")) ||
                (memory && in_list(mount.controllers, "memory"))) {
                add_groups(object, &mount, group);
                break;
            }
        }
        free(mounts);
    }
    free(groups);
}

void files_add(struct text *text)
{
    struct object object = {text, 0};
    text_add(text, "{");
    char *cpus = allowed_cpus();
    add_member(&object, "affinity", cpus);
    free(cpus);
    add_part(&object, "/proc/cpuinfo", "", "\n\n");
    add_part(&object, "/proc/meminfo", "MemTotal:", "\n");
    add_file(&object, CPU, "online");
    add_file(&object, CPU, "present");
    add_file(&object, CPU, "cpu0/cpufreq/scaling_governor");
    for_each_numbered(&object, CPU, "cpu", add_cpu);
    for_each_numbered(&object, NODE, "node", add_node);
    add_limits(&object);
    text_add(text, "}");
}
