/*
 * Shares have ranges, one for each section of a chunk, rounded to 64 numbers: the last member's are often shorter. A
 * section whose ranges are equal is one collective, else one reduce or broadcast for each member's range; all are one
 * group.
 *
 *     equal      [ 0 | 1 | 2 | 3 ]   reduce-scatter, all-gather
 *     unequal    [ 0 | 1 | 2 |3]     reduce to 0, to 1, ...; broadcast from 0, from 1, ...
 *
 * Sums that are to be added to the member's share go to the place of the share among its whole data first, which
 * nothing reads after the collective.
 */
#include "exec/group/run_library.h"

#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "exec/device/device_groups.h"
#include "exec/group/run_collective_time.h"
#include "models/job/parallel_memory.h"
#include "planner/plan_gang.h"

enum { AXES_SETS = 1 << AXIS_COUNT };

struct run_library {
    const struct group_library *functions;
    struct groups_session *groups;
    uint32_t **numbers; /* [gang * AXES_SETS + axes]: communicators by group; NULL: none */
    uint32_t *members;  /* of all communicators, one after the other */
    uint32_t *first;    /* by communicator: in `members` */
    uint32_t count, taken, left;
};

/* --- which collectives ------------------------------------------------------------------------ */

/* Returns true for the ends of a pipeline that are on one device. */
static bool has_device_twice(const struct plan *plan, const struct plan_gang *gang)
{
    const uint32_t *const devices = plan->gang_devices + gang->first;
    for (uint32_t i = 1; i < plan_gang_size(gang); i++)
        for (uint32_t k = 0; k < i; k++)
            if (devices[i] == devices[k]) return true;
    return false;
}

bool run_library_takes(const struct run *run, uint32_t gang, const struct plan_unit *unit, const struct plan_op *op)
{
    const struct plan *const plan = run->plan;
    const struct job *const job = &plan->jobs.jobs[unit->job];
    const struct parallel *const p = &job->parallel;
    if (!run->library || op->stream == STREAM_CPU || op->stream == STREAM_HOST) return false;
    const uint32_t members = plan_gang_group_size(&plan->gangs[gang], op->axes);
    if (members < 2 || p->tensor > 1 || p->offload != OFFLOAD_NOTHING || unit->pass == PLAN_NORM) return false;
    if (run_collective_is_paced(&plan->hardware, 0) || has_device_twice(plan, &plan->gangs[gang])) return false;
    if (op->collective == COLLECTIVE_ALL_GATHER) return true;
    if (unit->pass == PLAN_REDUCE && parallel_encodes_gradients(job)) return false;
    if (op->collective != COLLECTIVE_ALL_REDUCE && op->collective != COLLECTIVE_REDUCE_SCATTER) return false;
    if (unit->pass == PLAN_JOIN && p->replicated > 0) return false; /* equal members are left out of the sum */
    return members == 2 || (run->options->nccl_sums && !job_sums_as_tree(job));
}

/* Calls `each` for all collectives of the plan. */
typedef enum status each_collective(struct run *run, const struct plan_task *task, const struct plan_op *op,
                                    struct error *err);
static enum status walk(struct run *run, each_collective *each, struct error *err)
{
    const struct plan *const plan = run->plan;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        const struct plan_unit *const unit = &plan->units[task->unit];
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
            if (plan->ops[o].kind == OP_COLLECTIVE && task->gang != PLAN_NONE) TRY(each(run, task, &plan->ops[o], err));
    }
    return STATUS_OK;
}

static enum status count_collective(struct run *run, const struct plan_task *task, const struct plan_op *op,
                                    struct error *err)
{
    (void)err;
    if (run_library_takes(run, task->gang, &run->plan->units[task->unit], op)) run->library->taken++;
    else run->library->left++;
    return STATUS_OK;
}

/* Writes "NCCL 2.28.9, ...". */
static void describe(struct run *run, const char *version)
{
    const struct run_library *const library = run->library;
    snprintf(run->collectives_by, sizeof run->collectives_by, "%s%s%s", library->taken > 0 ? version : "",
             library->taken > 0 && run->options->nccl_sums ? " with sums in its order" : "",
             library->left == 0    ? ""
             : library->taken == 0 ? "the host, in a stated order"
                                   : " and the host, in a stated order");
}

static bool has_collectives(const struct plan *plan)
{
    uint32_t o = 0;
    while (o < plan->op_count && plan->ops[o].kind != OP_COLLECTIVE) o++;
    return o < plan->op_count;
}

enum status run_library_find(struct run *run, struct error *err)
{
    const struct group_library *const functions = run->backend->groups;
    struct error why = {0};
    char version[64];
    if (!functions || !has_collectives(run->plan)) return STATUS_OK;
    if (run->peers || functions->find(version, sizeof version, &why) != STATUS_OK) {
        snprintf(run->collectives_by, sizeof run->collectives_by, "the host (%.200s)",
                 run->peers ? "of several processes" : why.text);
        return STATUS_OK;
    }
    TRY(ARENA_NEW(&run->arena, 1, run->library, err));
    run->library->functions = functions;
    TRY(walk(run, count_collective, err));
    describe(run, version);
    if (run->library->taken == 0) run->library = NULL;
    return STATUS_OK;
}

/* --- communicators ---------------------------------------------------------------------------- */

/* Returns the number of a communicator of these members, making it if there is none. */
static enum status find_communicator(struct run *run, uint32_t size, uint32_t *out, struct error *err)
{
    struct run_library *const library = run->library;
    const uint32_t *const members = library->members + library->first[library->count];
    for (uint32_t c = 0; c < library->count; c++) {
        const uint32_t first = library->first[c];
        if (library->first[c + 1] - first != size ||
            memcmp(library->members + first, members, size * sizeof *members) != 0)
            continue;
        *out = c;
        return STATUS_OK;
    }
    TRY(library->functions->add(library->groups, members, size, out, err));
    library->first[library->count + 1] = library->first[library->count] + size;
    library->count++;
    return STATUS_OK;
}

static enum status connect(struct run *run, const struct plan_task *task, const struct plan_op *op, struct error *err)
{
    struct run_library *const library = run->library;
    const struct plan_gang *const gang = &run->plan->gangs[task->gang];
    const uint32_t all = plan_gang_size(gang), size = plan_gang_group_size(gang, op->axes);
    uint32_t **const numbers = &library->numbers[task->gang * AXES_SETS + op->axes];
    if (*numbers || !run_library_takes(run, task->gang, &run->plan->units[task->unit], op)) return STATUS_OK;
    uint32_t *places;
    TRY(ARENA_NEW(&run->arena, all, places, err));
    TRY(ARENA_NEW(&run->arena, all / size, *numbers, err));
    plan_gang_order(gang, op->axes, places);
    for (uint32_t g = 0; g < all / size; g++) {
        uint32_t *const members = library->members + library->first[library->count];
        for (uint32_t m = 0; m < size; m++) members[m] = run->plan->gang_devices[gang->first + places[g * size + m]];
        TRY(find_communicator(run, size, &(*numbers)[g], err));
    }
    return STATUS_OK;
}

enum status run_library_open(struct run *run, struct error *err)
{
    struct run_library *const library = run->library;
    const struct plan *const plan = run->plan;
    if (!library) return STATUS_OK;
    size_t groups = 0;
    for (uint32_t g = 0; g < plan->gang_count; g++) groups += (size_t)plan_gang_size(&plan->gangs[g]) * AXES_SETS;
    TRY(ARENA_NEW(&run->arena, (size_t)plan->gang_count * AXES_SETS, library->numbers, err));
    TRY(ARENA_NEW(&run->arena, groups, library->members, err));
    TRY(ARENA_NEW(&run->arena, groups + 1, library->first, err));
    TRY(library->functions->open(run->devices, plan->hardware.device_count, run->options->nccl_sums, &library->groups,
                                 err));
    return walk(run, connect, err);
}

void run_library_stop(struct run *run)
{
    if (run->library && run->library->groups) run->library->functions->stop(run->library->groups);
}

void run_library_close(struct run *run)
{
    if (run->library && run->library->groups) run->library->functions->close(run->library->groups);
}

uint32_t run_library_communicator(const struct run *run, const struct plan_walk_op *op)
{
    return run->library->numbers[op->gang * AXES_SETS + op->op->axes][op->group];
}

/* --- calls ------------------------------------------------------------------------------------ */

/* The place of a member's share of the sums, before they are added to it. */
static char *target_of(const struct run_collective_data *data, const struct run_collective_range *range)
{
    return data->adds ? data->from + range->whole : data->to + range->share;
}

/* Returns true if all members have an equal range of a section, one after the other. */
static bool is_equal(const struct run_library_collective *c, uint32_t section)
{
    const struct run_collective_range *const first = &c->data[0].ranges[section];
    for (uint32_t m = 0; m < c->members; m++) {
        const struct run_collective_range *const range = &c->data[m].ranges[section];
        if (c->data[m].range_count != c->data[0].range_count || range->bytes != first->bytes ||
            range->whole != first->whole + m * first->bytes)
            return false;
    }
    return true;
}

/* Calls the part of `member` in the exchange of the root's range; root PLAN_NONE: in a collective of equal ranges. */
static void call_part(const struct run *run, const struct run_library_collective *c, uint32_t section, uint32_t root,
                      uint32_t member)
{
    const bool sums = c->kind == COLLECTIVE_REDUCE_SCATTER, equal = root == PLAN_NONE;
    const struct run_collective_data *const data = &c->data[member], *const owner = &c->data[equal ? member : root];
    const struct run_collective_range *const range = &owner->ranges[section];
    const uint64_t begin = equal ? c->data[0].ranges[section].whole : range->whole;
    struct group_call call = {.member = member, .root = equal ? 0 : root, .type = sums ? GROUP_FP32 : GROUP_BYTES,
                              .count = sums ? range->bytes / sizeof(float) : range->bytes};
    if (sums) {
        call.kind = equal ? GROUP_REDUCE_SCATTER : GROUP_REDUCE;
        call.from = data->from + begin;
        call.to = owner == data ? target_of(data, range) : NULL;
    } else {
        call.kind = equal ? GROUP_ALL_GATHER : GROUP_BROADCAST;
        call.to = data->to + begin;
        call.from = owner == data ? data->from + range->share : call.to;
    }
    run->library->functions->call(run->library->groups, &call);
}

static void call_shares(const struct run *run, const struct run_library_collective *c)
{
    for (uint32_t m = 0; m < c->members; m++)
        for (uint32_t i = 0; i < c->data[m].range_count; i++) {
            if (is_equal(c, i))
                call_part(run, c, i, PLAN_NONE, m);
            else
                for (uint32_t k = 0; k < c->members; k++) call_part(run, c, i, m, k);
        }
}

bool run_library_enqueue(const struct run *run, const struct run_library_collective *c)
{
    const struct group_library *const functions = run->library->functions;
    struct groups_session *const groups = run->library->groups;
    functions->begin(groups, c->communicator, c->streams);
    for (uint32_t m = 0; m < c->members && c->kind == COLLECTIVE_ALL_REDUCE; m++)
        functions->call(groups, &(struct group_call){.kind = GROUP_ALL_REDUCE,
                                                     .type = c->doubles ? GROUP_FP64 : GROUP_FP32,
                                                     .member = m, .from = c->data[m].from, .to = c->data[m].to,
                                                     .count = c->data[m].count});
    if (c->kind != COLLECTIVE_ALL_REDUCE) call_shares(run, c);
    return functions->end(groups);
}

void run_library_end(const struct run *run, const struct run_library_collective *c, uint32_t member)
{
    const struct run_collective_data *const data = &c->data[member];
    if (c->kind != COLLECTIVE_REDUCE_SCATTER || !data->adds) return;
    for (uint32_t i = 0; i < data->range_count; i++) {
        const struct run_collective_range *const range = &data->ranges[i];
        run->library->functions->accumulate(c->streams[member], (float *)(void *)(data->to + range->share),
                                            (const float *)(const void *)target_of(data, range),
                                            range->bytes / sizeof(float));
    }
}
