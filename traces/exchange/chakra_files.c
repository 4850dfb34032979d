/* The files of a trace: one for each rank, and one of process groups. */
#include "base/try.h"
#include "traces/exchange/chakra.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json_in.h"
#include "base/order.h"
#include "base/text/number.h"

enum { GROUPS_MAX = 1 << 16, MEMBERS_MAX = 1 << 24 };

static enum status path_of(const char *prefix, const char *suffix, char path[CHAKRA_PATH_BYTES],
                           struct error *err)
{
    if ((size_t)snprintf(path, CHAKRA_PATH_BYTES, "%s%s", prefix, suffix) < CHAKRA_PATH_BYTES) return STATUS_OK;
    return error_set(err, STATUS_LIMIT, "the prefix of a trace is too long (limit is %d bytes)",
                     CHAKRA_PATH_BYTES - 32);
}

enum status chakra_path(const char *prefix, uint32_t rank, char path[CHAKRA_PATH_BYTES], struct error *err)
{
    char suffix[32];
    snprintf(suffix, sizeof suffix, ".%" PRIu32 ".et", rank);
    return path_of(prefix, suffix, path, err);
}

enum status chakra_groups_path(const char *prefix, char path[CHAKRA_PATH_BYTES], struct error *err)
{
    return path_of(prefix, ".groups.json", path, err);
}

static enum status read_rank(const char *path, struct chakra_rank *rank, struct error *err)
{
    char *bytes;
    size_t length;
    TRY(file_read(path, CHAKRA_FILE_BYTES_MAX, &bytes, &length, err));
    enum status status = chakra_rank_parse(path, bytes, length, rank, err);
    free(bytes);
    return status;
}

static enum status read_ranks(struct chakra_trace *trace, struct error *err)
{
    char path[CHAKRA_PATH_BYTES];
    uint32_t count = 0;
    for (;; count++) {
        TRY(chakra_path(trace->prefix, count, path, err));
        if (count > 0 && access(path, F_OK) != 0) break; /* without a first one, reading it says why */
        if (count == CHAKRA_RANKS_MAX)
            return error_set(err, STATUS_LIMIT, "%s: too many ranks (limit is %d)", path, CHAKRA_RANKS_MAX);
    }
    TRY(ARENA_NEW(&trace->arena, count, trace->ranks, err));
    for (; trace->rank_count < count; trace->rank_count++) {
        struct chakra_rank rank = {0};
        enum status status = chakra_path(trace->prefix, trace->rank_count, path, err);
        if (status == STATUS_OK) status = read_rank(path, &rank, err);
        if (status != STATUS_OK) {
            chakra_rank_release(&rank);
            return status;
        }
        trace->ranks[trace->rank_count] = rank;
    }
    return STATUS_OK;
}

/* --- process groups ------------------------------------------------------------------------- */

static int compare_groups(const void *a, const void *b)
{
    return order_u32(&((const struct chakra_group *)a)->number, &((const struct chakra_group *)b)->number);
}

static enum status read_members(const struct json_input *in, const char *name, const json_t *list,
                                struct chakra_trace *trace, struct chakra_group *group, struct error *err)
{
    uint32_t *members = trace->members + group->first;
    for (size_t i = 0; i < group->count; i++) {
        uint64_t rank;
        TRY(json_item_u64(in, list, i, 0, trace->rank_count - 1, &rank, err));
        members[i] = (uint32_t)rank;
    }
    qsort(members, group->count, sizeof *members, order_u32);
    for (uint32_t i = 1; i < group->count; i++)
        if (members[i] == members[i - 1])
            return json_fail_key(in, json_input_root(in), name, err, "rank %" PRIu32 " is in group '%s' twice",
                                 members[i], name);
    return STATUS_OK;
}

/* Its number and how many members it has. */
static enum status open_group(const struct json_input *in, const char *name, const json_t *list,
                              struct chakra_group *group, struct error *err)
{
    uint64_t number;
    const json_t *root = json_input_root(in);
    if (name[0] == '0' || !number_read_u64(name, &number) || number >= UINT32_MAX)
        return json_fail_key(in, root, name, err, "process group '%s' is not a number (expected 1 or more)", name);
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > CHAKRA_RANKS_MAX)
        return json_fail_key(in, root, name, err, "group '%s' is not a list of 1 to %d ranks", name,
                             CHAKRA_RANKS_MAX);
    group->number = (uint32_t)number;
    group->count = (uint32_t)json_array_size(list);
    return STATUS_OK;
}

static enum status parse_groups(const struct json_input *in, struct chakra_trace *trace, struct error *err)
{
    const json_t *root = json_input_root(in);
    const char *name;
    json_t *list;
    size_t total = 0, at = 0;
    if (!json_is_object(root) || json_object_size(root) > GROUPS_MAX)
        return json_fail_index(in, root, JSON_SELF, err, "not an object of at most %d process groups", GROUPS_MAX);
    TRY(ARENA_NEW(&trace->arena, json_object_size(root), trace->groups, err));
    json_object_foreach((json_t *)(uintptr_t)root, name, list) {
        struct chakra_group *group = &trace->groups[at++];
        TRY(open_group(in, name, list, group, err));
        group->first = (uint32_t)total;
        total += group->count;
        if (total > MEMBERS_MAX)
            return json_fail_key(in, root, name, err, "too many members of groups (limit is %d)", MEMBERS_MAX);
    }
    TRY(ARENA_NEW(&trace->arena, total, trace->members, err));
    json_object_foreach((json_t *)(uintptr_t)root, name, list) {
        struct chakra_group *group = &trace->groups[trace->group_count++];
        TRY(read_members(in, name, list, trace, group, err));
    }
    qsort(trace->groups, trace->group_count, sizeof *trace->groups, compare_groups);
    return STATUS_OK;
}

static enum status read_groups(struct chakra_trace *trace, struct error *err)
{
    char path[CHAKRA_PATH_BYTES];
    struct json_input *in;
    TRY(chakra_groups_path(trace->prefix, path, err));
    if (access(path, F_OK) != 0) return STATUS_OK;
    TRY(json_input_read(path, &in, err));
    enum status status = parse_groups(in, trace, err);
    json_input_destroy(in);
    return status;
}

/* --- public --------------------------------------------------------------------------------- */

enum status chakra_trace_read(const char *prefix, struct chakra_trace *out, struct error *err)
{
    TRY(arena_string(&out->arena, prefix, &out->prefix, err));
    TRY(read_ranks(out, err));
    return read_groups(out, err);
}

void chakra_trace_release(struct chakra_trace *trace)
{
    for (uint32_t r = 0; r < trace->rank_count; r++) chakra_rank_release(&trace->ranks[r]);
    arena_release(&trace->arena);
    *trace = (struct chakra_trace){0};
}
