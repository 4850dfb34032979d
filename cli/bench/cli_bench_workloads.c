#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json/json_in.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/bench/cli_bench.h"
#include "planner/policy/policies.h"
#include "planner/policy/policy_load.h"

const char bench_searched[] = "searched", bench_optimal[] = "optimal";

bool bench_is_search(const char *policy)
{
    return strcmp(policy, bench_searched) == 0 || strcmp(policy, bench_optimal) == 0;
}

/* --- policies -------------------------------------------------------------------------------- */

static enum status add_policy(struct bench *bench, const char *name, struct error *err)
{
    struct policy_handle handle = {0};
    if (bench->policy_count == BENCH_POLICIES_MAX)
        return error_set(err, STATUS_LIMIT, "too many policies (limit is %d)", BENCH_POLICIES_MAX);
    for (uint32_t i = 0; i < bench->policy_count; i++)
        if (strcmp(bench->policies[i], name) == 0)
            return error_set(err, STATUS_BAD_INPUT, "policy '%s' is given twice", name);
    /* files are checked in a child process */
    if (!bench_is_search(name) && !policy_is_file(name)) TRY(policy_open(name, &handle, err));
    policy_close(&handle);
    return arena_string(&bench->arena, name, &bench->policies[bench->policy_count++], err);
}

static enum status add_all(struct bench *bench, struct error *err)
{
    for (uint32_t i = 0; policy_name_at(i); i++) /* "optimal" is one of them */
        TRY(add_policy(bench, policy_name_at(i), err));
    return add_policy(bench, bench_searched, err);
}

enum status bench_add_policies(struct bench *bench, const char *list, struct error *err)
{
    if (strcmp(list, "all") == 0) return add_all(bench, err);
    for (const char *next = list;; next++) {
        char name[CLI_PATH_BYTES];
        size_t length = strcspn(next, ",");
        if (length == 0 || length >= sizeof name)
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--policies' is '%s' (expected names separated by commas)", list);
        memcpy(name, next, length);
        name[length] = '\0';
        TRY(add_policy(bench, name, err));
        next += length;
        if (*next == '\0') return STATUS_OK;
    }
}

/* --- workloads ------------------------------------------------------------------------------- */

static enum status add_workload(struct bench *bench, const struct bench_workload *workload,
                                struct error *err)
{
    TRY(array_reserve(&bench->workloads, &bench->workload_capacity, bench->workload_count, sizeof *bench->workloads,
                      BENCH_WORKLOADS_MAX, "workloads", err));
    bench->workloads[bench->workload_count++] = *workload;
    return STATUS_OK;
}

static enum status kind_of(const char *path, enum bench_kind *kind, struct error *err)
{
    struct json_input *in = NULL;
    TRY(json_input_read(path, &in, err));
    const json_t *root = json_input_root(in);
    if (json_object_get(root, "spillway_instance")) *kind = BENCH_INSTANCE;
    else if (json_object_get(root, "spillway_jobs")) *kind = BENCH_JOBS;
    else
        json_fail_index(in, root, JSON_SELF, err,
                        "neither jobs nor an instance (expected an object with 'spillway_jobs' or "
                        "'spillway_instance')");
    json_input_destroy(in);
    return err->status;
}

static enum status add_file(struct bench *bench, const char *path, struct error *err)
{
    struct bench_workload workload = {0};
    TRY(kind_of(path, &workload.kind, err));
    TRY(arena_string(&bench->arena, path, &workload.path, err));
    const char *slash = strrchr(workload.path, '/');
    workload.name = slash ? slash + 1 : workload.path;
    return add_workload(bench, &workload, err);
}

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status add_folder(struct bench *bench, const char *path, struct error *err)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_json, by_name);
    if (count < 0) return error_input(err, "cannot read the folder '%s'", path);
    for (int i = 0; i < count; i++) {
        char file[CLI_PATH_BYTES + 256];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (!err->status && add_file(bench, file, err)) {}
        free(entries[i]);
    }
    free(entries);
    if (count == 0) return error_set(err, STATUS_BAD_INPUT, "there is no *.json file in '%s'", path);
    return err->status;
}

enum status bench_add_path(struct bench *bench, const char *path, struct error *err)
{
    struct stat about;
    if (strlen(path) >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "the path of a workload is longer than %d bytes", CLI_PATH_BYTES);
    if (stat(path, &about) != 0) return error_input(err, "cannot read '%s'", path);
    return S_ISDIR(about.st_mode) ? add_folder(bench, path, err) : add_file(bench, path, err);
}

enum status bench_add_family(struct bench *bench, const char *name, struct error *err)
{
    char ending[SUGGEST_BYTES];
    for (uint32_t f = 0; f < INSTANCE_FAMILY_COUNT; f++)
        if (strcmp(instance_family_names[f], name) == 0)
            return add_workload(bench, &(struct bench_workload){.kind = BENCH_FAMILY,
                                                                .name = instance_family_names[f],
                                                                .family = (enum instance_family)f}, err);
    return error_set(err, STATUS_BAD_INPUT, "unknown family '%s'%s", name,
                     suggest_ending(name, instance_family_names, INSTANCE_FAMILY_COUNT, ending));
}

void bench_release(struct bench *bench)
{
    free(bench->workloads);
    free(bench->results);
    free(bench->reasons);
    arena_release(&bench->arena);
    *bench = (struct bench){0};
}
