/*
 * Matches the ends of messages, and the members of collectives.
 *
 * Each kind's ends are sorted by key, so that matching ones are neighbours. Partners match by order in the files and
 * must agree in bytes and kind.
 */
#include "sim/chakra/chakra_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"
#include "base/try.h"
#include "sim/engine/allocate.h"

enum status chakra_import_fail(const struct chakra_import *import, uint32_t rank, uint32_t node,
                               struct error *err, const char *format, ...)
{
    char text[sizeof err->text / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const struct chakra_node *of = &import->trace->ranks[rank].nodes[node];
    return error_set(err, STATUS_BAD_INPUT, "%s.%" PRIu32 ".et: byte %" PRIu64 ": node %" PRIu64 " %s",
                     import->trace->prefix, rank, of->at, of->id, text);
}

static const struct chakra_node *node_of(const struct chakra_import *import, const struct chakra_end *end)
{
    return &import->trace->ranks[end->rank].nodes[end->node];
}

static uint32_t *activity_of(const struct chakra_import *import, const struct chakra_end *end)
{
    return &import->activity[import->first[end->rank] + end->node];
}

static int compare_keys(const struct chakra_end *left, const struct chakra_end *right)
{
    for (uint32_t k = 0; k < 3; k++)
        if (left->key[k] != right->key[k]) return left->key[k] < right->key[k] ? -1 : 1;
    return 0;
}

static int compare_ends(const void *a, const void *b)
{
    const struct chakra_end *left = a, *right = b;
    int keys = compare_keys(left, right);
    if (keys != 0) return keys;
    if (left->receives != right->receives) return left->receives ? 1 : -1;
    if (left->rank != right->rank) return left->rank < right->rank ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

/* Returns how many ends, from the first on, have its key. */
static size_t alike(const struct chakra_end *ends, size_t count)
{
    size_t n = 1;
    while (n < count && compare_keys(&ends[0], &ends[n]) == 0) n++;
    return n;
}

/* --- messages ------------------------------------------------------------------------------- */

static enum status message_end(const struct chakra_import *import, uint32_t rank, uint32_t index,
                               struct chakra_end *end, struct error *err)
{
    const struct chakra_node *node = &import->trace->ranks[rank].nodes[index];
    bool receives = node->type == CHAKRA_RECV;
    uint32_t from, to, ranks = import->trace->rank_count;
    chakra_message_ranks(node, rank, &from, &to);
    if (receives ? node->comm_src == CHAKRA_NONE : node->comm_dst == CHAKRA_NONE)
        return chakra_import_fail(import, rank, index, err, "is a message without attribute '%s'",
                                  receives ? "comm_src" : "comm_dst");
    if ((receives ? to : from) != rank || from == to)
        return chakra_import_fail(import, rank, index, err,
                                  "%s a message from rank %" PRIu32 " to rank %" PRIu32,
                                  receives ? "receives" : "sends", from, to);
    if (from >= ranks || to >= ranks)
        return chakra_import_fail(import, rank, index, err,
                                  "has rank %" PRIu32 " at its other end (there are %" PRIu32 ")",
                                  receives ? from : to, ranks);
    *end = (struct chakra_end){
        .key = {from, to, node->comm_tag}, .rank = rank, .node = index, .receives = receives};
    return STATUS_OK;
}

/* Pairs ends of one key; there must be equal numbers of both kinds. */
static enum status pair_ends(struct chakra_import *import, const struct chakra_end *ends, size_t count,
                             struct error *err)
{
    size_t sends = 0;
    while (sends < count && !ends[sends].receives) sends++;
    size_t pairs = sends < count - sends ? sends : count - sends;
    for (size_t i = 0; i < pairs; i++) {
        const struct chakra_end *send = &ends[i], *receive = &ends[sends + i];
        uint64_t bytes = chakra_message_bytes(node_of(import, send));
        uint64_t expected = chakra_message_bytes(node_of(import, receive));
        if (bytes != expected)
            return chakra_import_fail(import, receive->rank, receive->node, err,
                                      "receives %" PRIu64 " bytes, but node %" PRIu64 " of rank %" PRIu32
                                      " sends %" PRIu64,
                                      expected, node_of(import, send)->id, send->rank, bytes);
        *activity_of(import, receive) = *activity_of(import, send);
    }
    if (sends == count - sends) return STATUS_OK;
    const struct chakra_end *alone = sends > pairs ? &ends[pairs] : &ends[sends + pairs];
    return chakra_import_fail(import, alone->rank, alone->node, err,
                              alone->receives ? "receives tag %" PRIu64 " from rank %" PRIu64 ", which does not send it"
                                              : "sends tag %" PRIu64 " to rank %" PRIu64 ", which does not receive it",
                              alone->key[2], alone->key[alone->receives ? 0 : 1]);
}

/* --- collectives ---------------------------------------------------------------------------- */

static int compare_number(const void *key, const void *group)
{
    uint32_t left = *(const uint32_t *)key, right = ((const struct chakra_group *)group)->number;
    return (left > right) - (left < right);
}

enum status chakra_group_of(const struct chakra_import *import, uint32_t rank, uint32_t index, uint32_t *out,
                            struct error *err)
{
    const struct chakra_node *node = &import->trace->ranks[rank].nodes[index];
    uint32_t all = import->group_count - 1;
    uint64_t number = 0;
    *out = all;
    if (!node->pg_name || node->pg_name[0] == '\0') return STATUS_OK;
    bool named = number_read_u64(node->pg_name, &number) && number < UINT32_MAX;
    if (named && number == 0) return STATUS_OK;
    uint32_t key = (uint32_t)number;
    const struct chakra_group *group =
        named ? bsearch(&key, import->groups, all, sizeof *import->groups, compare_number) : NULL;
    if (!group)
        return chakra_import_fail(import, rank, index, err,
                                  "is of process group '%s', which is not in %s.groups.json", node->pg_name,
                                  import->trace->prefix);
    *out = (uint32_t)(group - import->groups);
    for (uint32_t i = 0; i < group->count; i++)
        if (import->members[*out][i] == rank) return STATUS_OK;
    return chakra_import_fail(import, rank, index, err, "is of process group '%s', which rank %" PRIu32
                              " is not in", node->pg_name, rank);
}

/* Joins collectives of one group and number: one of each member, all equal. */
static enum status join_ends(struct chakra_import *import, const struct chakra_end *ends, size_t count,
                             struct error *err)
{
    const struct chakra_group *group = &import->groups[ends[0].key[0]];
    const struct chakra_node *first = node_of(import, &ends[0]);
    for (size_t i = 0; i < count; i++) {
        const struct chakra_node *node = node_of(import, &ends[i]);
        if (node->comm_type != first->comm_type || node->comm_size != first->comm_size)
            return chakra_import_fail(import, ends[i].rank, ends[i].node, err,
                                      "is %s of %" PRIu64 " bytes, but its partner, node %" PRIu64
                                      " of rank %" PRIu32 ", is %s of %" PRIu64,
                                      chakra_collective_names[node->comm_type], node->comm_size, first->id,
                                      ends[0].rank, chakra_collective_names[first->comm_type], first->comm_size);
        *activity_of(import, &ends[i]) = *activity_of(import, &ends[0]);
    }
    if (count == group->count) return STATUS_OK;
    uint32_t missing = 0;
    while (missing < count && import->members[ends[0].key[0]][missing] == ends[missing].rank) missing++;
    return chakra_import_fail(import, ends[0].rank, ends[0].node, err,
                              "is collective %" PRIu64 " of its process group, which rank %" PRIu32
                              " has no node for",
                              ends[0].key[1] + 1, import->members[ends[0].key[0]][missing]);
}

/* --- both ----------------------------------------------------------------------------------- */

struct ends {
    struct chakra_end *ends;
    size_t count;
};

/* `counts`: per group, zeroed before; number of collectives of a rank so far. */
static enum status list_ends(const struct chakra_import *import, uint32_t *counts, struct ends *messages,
                             struct ends *collectives, struct error *err)
{
    for (uint32_t r = 0; r < import->trace->rank_count; r++) {
        memset(counts, 0, import->group_count * sizeof *counts);
        for (uint32_t n = 0; n < import->trace->ranks[r].count; n++) {
            uint32_t type = import->trace->ranks[r].nodes[n].type, group;
            if (type == CHAKRA_SEND || type == CHAKRA_RECV) {
                TRY(message_end(import, r, n, &messages->ends[messages->count++], err));
            } else if (type == CHAKRA_COLLECTIVE) {
                TRY(chakra_group_of(import, r, n, &group, err));
                collectives->ends[collectives->count++] =
                    (struct chakra_end){.key = {group, counts[group]++}, .rank = r, .node = n};
            }
        }
    }
    return STATUS_OK;
}

static enum status join(struct chakra_import *import, const struct ends *of,
                        enum status (*meet)(struct chakra_import *, const struct chakra_end *, size_t,
                                            struct error *),
                        struct error *err)
{
    if (of->count > 0) qsort(of->ends, of->count, sizeof *of->ends, compare_ends);
    for (size_t i = 0, n; i < of->count; i += n) {
        n = alike(of->ends + i, of->count - i);
        TRY(meet(import, of->ends + i, n, err));
    }
    return STATUS_OK;
}

/* Numbers the activities that are not parts of others, without gaps. */
static void number_activities(struct chakra_import *import, uint32_t count, uint32_t *numbers)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) numbers[i] = SIM_GRAPH_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *number = &numbers[import->activity[i]];
        if (*number == SIM_GRAPH_NONE) *number = used++;
        import->activity[i] = *number;
    }
    import->graph.node_count = used;
}

enum status chakra_match(struct chakra_import *import, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t count = import->first[import->trace->rank_count];
    size_t message_count = 0, collective_count = 0;
    for (uint32_t r = 0; r < import->trace->rank_count; r++)
        for (uint32_t n = 0; n < import->trace->ranks[r].count; n++) {
            uint32_t type = import->trace->ranks[r].nodes[n].type;
            message_count += type == CHAKRA_SEND || type == CHAKRA_RECV;
            collective_count += type == CHAKRA_COLLECTIVE;
        }
    struct ends messages = {0}, collectives = {0};
    messages.ends = sim_allocate(&scratch, message_count, sizeof *messages.ends, &status, err);
    collectives.ends = sim_allocate(&scratch, collective_count, sizeof *collectives.ends, &status, err);
    uint32_t *counts = sim_allocate(&scratch, import->group_count, sizeof *counts, &status, err);
    uint32_t *numbers = sim_allocate(&scratch, count, sizeof *numbers, &status, err);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) import->activity[i] = i;
    if (status == STATUS_OK) status = list_ends(import, counts, &messages, &collectives, err);
    if (status == STATUS_OK) status = join(import, &messages, pair_ends, err);
    if (status == STATUS_OK) status = join(import, &collectives, join_ends, err);
    if (status == STATUS_OK) number_activities(import, count, numbers);
    arena_release(&scratch);
    return status;
}
