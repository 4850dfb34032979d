/*
 * The assignment bound. A schedule covers all tasks by paths, one per device (of G). Let D(j, k) be a lower bound on
 * s_k - s_j for neighbours, A(k) on a first task's start and E(j) on the time from a last task's start to the makespan.
 * For any numbers with
 *
 *     row[j] + column[k] <= D(j, k)      row_start + column[k] <= A(k)
 *     row[j] + column_end <= E(j)        row_start + column_end <= any proven bound on C
 *
 * the sum along a device's path gives C >= row_start + column_end + sum of (row + column) over its tasks, also for a
 * device without tasks. Over all devices G C >= G (row_start + column_end) + the sum over all tasks. The best numbers
 * are duals of a transportation problem between units (supply: repetitions) and one node for the G beginnings and ends.
 * (Without the last condition idle devices may cost less than the bound.) D(j, k) holds for any two tasks of these
 * units, so thousands of minibatches cost no more than one. Times before first and after last tasks are counted again
 * with fixed duals, because the G paths begin and end with different tasks (head_tail_bound.h).
 *
 * Distances along a chain matter: with d_jk only, two passes of one shard are neighbours at the first one's cost,
 * although the whole network lies between them.
 *
 * The sorted bound. With D(j, k) = max(p_j, a_k) the duals have a closed form. D is an integral over levels x of [x <
 * p_j or x < a_k]; each level costs at least the larger of the numbers of p and of a above x. Rows pay where more p
 * than a are above x, columns elsewhere. (Matching both in order of size attains all levels at once.)
 */
#include "planner/solve/bounds/instance_bound.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/try.h"
#include "planner/solve/bounds/assignment.h"
#include "planner/solve/bounds/prefix_bound.h"
#include "planner/solve/bounds/head_tail_bound.h"
#include "planner/solve/bounds/stream_bound.h"
#include "planner/solve/bounds/weighted_bound.h"
#include "planner/solve/instance/bridge_bytes.h"

const char *const instance_bound_names[INSTANCE_BOUND_COUNT] = {
    "area", "chain", "link", "bridge", "memory", "assignment", "sorted", "opening",
    "weighted", "priced", "order", "due", "host", "out"};

static int64_t divide_up(__int128 a, int64_t b)
{
    return a <= 0 ? 0 : (int64_t)((a + b - 1) / b);
}

/* --- assignment ------------------------------------------------------------------------------ */

/* `least`: a makespan proven by another bound; a device without tasks idles for that long. */
static void fill_matrix(const struct instance *in, int64_t least, int64_t *cost, uint32_t *supply)
{
    uint32_t n = in->unit_count;
    size_t width = n + 1u;
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t k = 0; k < n; k++) cost[j * width + k] = instance_distance(in, j, k);
        cost[j * width + n] = instance_tail(in, j);
        cost[n * width + j] = head_tail_bound_first_start(in, j);
        supply[j] = in->jobs[in->units[j].job].repeat;
    }
    cost[n * width + n] = least;
    supply[n] = in->device_count;
}

static void area_duals(const struct instance *in, struct instance_bounds *out)
{
    memset(out->column, 0, in->unit_count * sizeof *out->column);
    for (uint32_t u = 0; u < in->unit_count; u++) out->row[u] = instance_compute_min(in, u);
    out->row_start = out->column_end = 0;
}

static enum status assignment_duals(const struct instance *in, int64_t least,
                                    struct instance_bounds *out, struct error *err)
{
    size_t width = in->unit_count + 1u;
    int64_t *cost = alloc_zeroed(width * width, sizeof *cost);
    int64_t *duals = alloc_zeroed(2 * width, sizeof *duals);
    uint32_t *supply = alloc_zeroed(width, sizeof *supply);
    if (!cost || !duals || !supply) {
        error_memory(err, "the assignment bound", width * width * sizeof *cost);
        goto out;
    }
    fill_matrix(in, least, cost, supply);
    struct error none = {0};
    if (assignment_solve(cost, (uint32_t)width, supply, supply, duals, duals + width, &none)) {
        if (none.status == STATUS_INFEASIBLE) { /* classes keep units apart: use the area's duals */
            area_duals(in, out);
        } else {
            *err = none;
        }
        goto out;
    }
    memcpy(out->row, duals, in->unit_count * sizeof *duals);
    memcpy(out->column, duals + width, in->unit_count * sizeof *duals);
    out->row_start = duals[in->unit_count];
    out->column_end = duals[width + in->unit_count];
out:
    free(cost);
    free(duals);
    free(supply);
    return err->status;
}

/* --- sorted ---------------------------------------------------------------------------------- */

struct instance_bound_level {
    int64_t at;
    uint32_t unit;
    uint32_t count;
    bool copy;
};

static int compare_levels(const void *a, const void *b)
{
    const struct instance_bound_level *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (x->copy != y->copy) return x->copy ? 1 : -1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

/* Repairs columns: a neighbour that already has the shard costs less than max(p, a). */
static void repair_columns(const struct instance *in, struct instance_bounds *out)
{
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        for (uint32_t k = job->first_unit; k < job->first_unit + job->unit_count; k++)
            for (uint32_t j = job->first_unit; j < job->first_unit + job->unit_count; j++)
                if (instance_resident(&in->units[j], &in->units[k])) {
                    int64_t cost = instance_distance(in, j, k);
                    if (cost < ASSIGNMENT_FORBIDDEN && out->column[k] > cost - out->row[j])
                        out->column[k] = cost - out->row[j];
                }
    }
}

static enum status sorted_duals(const struct instance *in, int64_t least, struct instance_bounds *out,
                                struct error *err)
{
    size_t count = 2 * (size_t)in->unit_count;
    struct instance_bound_level *levels = alloc_zeroed(count, sizeof *levels);
    if (!levels) return error_memory(err, "the sorted bound", count * sizeof *levels);
    uint64_t computing = 0, copying = 0; /* above the level */
    for (uint32_t u = 0; u < in->unit_count; u++) {
        uint32_t repeat = in->jobs[in->units[u].job].repeat;
        levels[2 * u] = (struct instance_bound_level){instance_compute_min(in, u), u, repeat, false};
        levels[2 * u + 1] = (struct instance_bound_level){in->units[u].in, u, repeat, true};
        computing += repeat;
        copying += repeat;
    }
    qsort(levels, count, sizeof *levels, compare_levels);
    int64_t at = 0, rows = 0, columns = 0;
    for (size_t l = 0; l < count; l++) {
        if (computing >= copying) rows += levels[l].at - at;
        else columns += levels[l].at - at;
        at = levels[l].at;
        if (levels[l].copy) {
            out->column[levels[l].unit] = columns;
            copying -= levels[l].count;
        } else {
            out->row[levels[l].unit] = rows;
            computing -= levels[l].count;
        }
    }
    free(levels);
    repair_columns(in, out);
    out->row_start = out->column_end = INT64_MAX;
    for (uint32_t u = 0; u < in->unit_count; u++) {
        out->row_start = min_i64(out->row_start, head_tail_bound_first_start(in, u) - out->column[u]);
        out->column_end = min_i64(out->column_end, instance_tail(in, u) - out->row[u]);
    }
    out->row_start = min_i64(out->row_start, least - out->column_end);
    return STATUS_OK;
}

/* --- area, chain, link, bridge, memory ------------------------------------------------------- */

static int64_t job_compute(const struct instance *in, const struct instance_job *job)
{
    return job->repeat * instance_compute_between(in, job->first_unit, job->first_unit + job->unit_count);
}

/* Returns the least time from an empty machine to the job's end without other jobs. */
static int64_t job_alone(const struct instance *in, const struct instance_job *job)
{
    const struct instance_unit *first = &in->units[job->first_unit];
    const struct instance_unit *last = first + job->unit_count - 1;
    return first->in + job_compute(in, job) + last->out;
}

static bool shard_seen(const struct instance *in, uint32_t unit)
{
    uint32_t first = in->jobs[in->units[unit].job].first_unit;
    for (uint32_t u = first; u < unit; u++)
        if (instance_resident(&in->units[u], &in->units[unit])) return true;
    return false;
}

/* Counts the loads of area, link, bridge and memory. A shard is copied in at least once, by its fastest unit. */
static void count_loads(const struct instance *in, struct instance_bounds *out)
{
    __int128 compute = 0, copies = 0, memory = 0, capacity = 0;
    for (uint32_t c = 0; c < in->class_count; c++)
        capacity += (__int128)in->classes[c].memory * in->classes[c].device_count;
    for (uint32_t u = 0; u < in->unit_count; u++) {
        const struct instance_unit *unit = &in->units[u];
        const struct instance_job *job = &in->jobs[unit->job];
        __int128 all = (__int128)job->repeat * instance_compute_min(in, u);
        compute += all;
        memory += all * unit->memory;
        if (shard_seen(in, u)) continue;
        int64_t copy = unit->in;
        __int128 copy_memory = (__int128)unit->in * unit->memory;
        for (uint32_t o = u + 1; o < job->first_unit + job->unit_count; o++) {
            const struct instance_unit *other = &in->units[o];
            if (!instance_resident(unit, other)) continue;
            copy = min_i64(copy, other->in);
            __int128 held = (__int128)other->in * other->memory;
            if (held < copy_memory) copy_memory = held;
        }
        copies += copy;
        memory += copy_memory;
    }
    out->value[INSTANCE_BOUND_AREA] = divide_up(compute, in->device_count);
    out->value[INSTANCE_BOUND_LINK] = divide_up(copies, in->device_count);
    if (capacity > 0)
        out->value[INSTANCE_BOUND_MEMORY] = (int64_t)((memory + capacity - 1) / capacity);
    out->value[INSTANCE_BOUND_BRIDGE] = bridge_bytes_ticks(in, bridge_bytes_least(in));
}

static __int128 dual_sum(const struct instance *in, const struct instance_bounds *out)
{
    __int128 sum = 0;
    for (uint32_t u = 0; u < in->unit_count; u++)
        sum += (__int128)in->jobs[in->units[u].job].repeat * (out->row[u] + out->column[u]);
    return sum;
}

static enum status makespan_bounds(const struct instance *in, struct instance_bounds *out,
                                   struct error *err)
{
    count_loads(in, out);
    for (uint32_t i = 0; i < in->job_count; i++)
        out->value[INSTANCE_BOUND_CHAIN] =
            max_i64(out->value[INSTANCE_BOUND_CHAIN], job_alone(in, &in->jobs[i]));
    bool small = in->unit_count <= INSTANCE_BOUND_UNITS_MAX;
    int64_t least = max_i64(out->value[INSTANCE_BOUND_AREA], out->value[INSTANCE_BOUND_CHAIN]);
    if (small ? assignment_duals(in, least, out, err) : sorted_duals(in, least, out, err))
        return err->status;
    __int128 sum = dual_sum(in, out);
    struct head_tail_bound paths;
    TRY(head_tail_bound_find(in, least, out, &paths, err));
    int64_t value = max_i64(0, divide_up(sum + paths.both, in->device_count));
    out->value[small ? INSTANCE_BOUND_ASSIGNMENT : INSTANCE_BOUND_SORTED] = value;
    if (small && value > out->value[INSTANCE_BOUND_AREA]) {
        int64_t opening;
        TRY(prefix_bound(in, out, &paths, max_i64(least, value), &opening, err));
        out->value[INSTANCE_BOUND_OPENING] = max_i64(0, divide_up(sum + opening, in->device_count));
    }
    weighted_bound_classes(in, out->class_weight);
    TRY(weighted_bound(in, out->class_weight, max_i64(least, value), &out->value[INSTANCE_BOUND_WEIGHTED], err));
    if (value <= out->value[INSTANCE_BOUND_AREA]) { /* no set-ups matter: only idle time is slack */
        area_duals(in, out);
        sum = dual_sum(in, out);
    }
    out->sum = (int64_t)sum;
    return STATUS_OK;
}

/* --- sums and deadlines ---------------------------------------------------------------------- */

struct instance_bound_ranked {
    int64_t compute, alone, deadline;
    int64_t weight;
    uint32_t job;
};

static int compare_by_weight(const void *a, const void *b)
{
    const struct instance_bound_ranked *x = a, *y = b;
    __int128 left = (__int128)x->compute * y->weight, right = (__int128)y->compute * x->weight;
    if (left != right) return left < right ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

static int compare_by_deadline(const void *a, const void *b)
{
    const struct instance_bound_ranked *x = a, *y = b;
    if (x->deadline != y->deadline) return x->deadline < y->deadline ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

/* Source: Eastman, Even and Isaacs 1964, for preemptive schedules. A job ends half its computation after the mean of
 * its computing times. These means' weighted sum is least in the order of compute by weight on one device as fast as
 * all. Twice the bound times the number of devices is an integer. */
static void sum_bounds(const struct instance *in, struct instance_bound_ranked *jobs, struct instance_bounds *out)
{
    __int128 before = 0, doubled = 0, alone = 0;
    qsort(jobs, in->job_count, sizeof *jobs, compare_by_weight);
    for (uint32_t i = 0; i < in->job_count; i++) {
        alone += (__int128)jobs[i].weight * jobs[i].alone;
        doubled += jobs[i].weight * (2 * before + jobs[i].compute +
                                     (__int128)jobs[i].compute * in->device_count);
        before += jobs[i].compute;
    }
    __int128 by = 2 * (__int128)in->device_count;
    out->value[INSTANCE_BOUND_CHAIN] = (int64_t)alone;
    out->value[INSTANCE_BOUND_ORDER] = (int64_t)((doubled + by - 1) / by);
}

static void tardiness_bounds(const struct instance *in, struct instance_bound_ranked *jobs,
                             struct instance_bounds *out)
{
    __int128 compute = 0;
    qsort(jobs, in->job_count, sizeof *jobs, compare_by_deadline);
    for (uint32_t i = 0; i < in->job_count; i++) {
        int64_t *chain = &out->value[INSTANCE_BOUND_CHAIN], *due = &out->value[INSTANCE_BOUND_DUE];
        compute += jobs[i].compute;
        *chain = max_i64(*chain, jobs[i].alone - jobs[i].deadline);
        *due = max_i64(*due, divide_up(compute, in->device_count) - jobs[i].deadline);
    }
}

static enum status other_bounds(const struct instance *in, struct instance_bounds *out,
                                struct error *err)
{
    struct instance_bound_ranked *jobs = alloc_zeroed(in->job_count, sizeof *jobs);
    if (!jobs) return error_memory(err, "lower bounds", in->job_count * sizeof *jobs);
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        int64_t weight = in->objective == OBJECTIVE_WEIGHTED ? job->weight : 1;
        jobs[i] = (struct instance_bound_ranked){job_compute(in, job), job_alone(in, job), job->deadline, weight, i};
    }
    if (in->objective == OBJECTIVE_TARDINESS) tardiness_bounds(in, jobs, out);
    else sum_bounds(in, jobs, out);
    free(jobs);
    return STATUS_OK;
}

/* --- public ---------------------------------------------------------------------------------- */

enum status instance_bounds_make(const struct instance *in, struct instance_bounds *out,
                                 struct error *err)
{
    struct instance_bounds made = {0};
    made.row = alloc_zeroed(in->unit_count, sizeof *made.row);
    made.column = alloc_zeroed(in->unit_count, sizeof *made.column);
    if (!made.row || !made.column) {
        error_memory(err, "lower bounds", in->unit_count * sizeof *made.row);
    } else if (in->streams) {
        area_duals(in, &made);
        made.sum = (int64_t)dual_sum(in, &made);
        weighted_bound_classes(in, made.class_weight);
        stream_bound(in, made.value);
    } else if (!makespan_bounds(in, &made, err) && in->objective != OBJECTIVE_MAKESPAN) {
        memset(made.value, 0, sizeof made.value);
        other_bounds(in, &made, err);
    }
    if (err->status) {
        instance_bounds_release(&made);
        return err->status;
    }
    made.best = in->objective == OBJECTIVE_MAKESPAN    ? INSTANCE_BOUND_AREA
                : in->objective == OBJECTIVE_TARDINESS ? INSTANCE_BOUND_DUE
                                                       : INSTANCE_BOUND_ORDER;
    for (int kind = 0; kind < INSTANCE_BOUND_COUNT; kind++)
        if (made.value[kind] > made.value[made.best]) made.best = (enum instance_bound_kind)kind;
    *out = made;
    return STATUS_OK;
}

void instance_bounds_release(struct instance_bounds *bounds)
{
    free(bounds->row);
    free(bounds->column);
    *bounds = (struct instance_bounds){0};
}
