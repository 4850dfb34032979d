#include "planner/solve/bounds/head_tail_bound.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/order.h"

/* The `most` least of some numbers, in a heap whose first is the largest. */
struct head_tail_bound_least {
    int64_t *values;
    uint32_t count, most;
};

static bool least_takes(const struct head_tail_bound_least *l, int64_t value)
{
    return l->count < l->most || value < l->values[0];
}

static void least_add(struct head_tail_bound_least *l, int64_t value)
{
    uint32_t at = 0;
    if (l->count < l->most) {
        for (at = l->count++; at > 0 && l->values[(at - 1) / 2] < value; at = (at - 1) / 2)
            l->values[at] = l->values[(at - 1) / 2];
    } else {
        for (uint32_t child; (child = 2 * at + 1) < l->count; at = child) {
            if (child + 1 < l->count && l->values[child + 1] > l->values[child]) child++;
            if (l->values[child] <= value) break;
            l->values[at] = l->values[child];
        }
    }
    l->values[at] = value;
}

int64_t head_tail_bound_first_start(const struct instance *in, uint32_t unit)
{
    return max_i64(in->units[unit].in, instance_head(in, unit));
}

/* Gathers the least starts and ends of tasks, one for each device. */
static void gather(const struct instance *in, const struct instance_bounds *duals, struct head_tail_bound_least *starts,
                   struct head_tail_bound_least *ends)
{
    for (uint32_t u = 0; u < in->unit_count; u++) {
        const struct instance_job *job = &in->jobs[in->units[u].job];
        uint32_t end = job->first_unit + job->unit_count;
        int64_t pass = instance_compute_between(in, job->first_unit, end);
        int64_t head = instance_head(in, u);
        int64_t tail = instance_compute_between(in, u, end) + in->units[end - 1].out;
        int64_t start = head_tail_bound_first_start(in, u) - duals->column[u];
        int64_t last = instance_tail(in, u) - duals->row[u];
        for (uint32_t r = 0; r < job->repeat && least_takes(starts, start); r++) {
            least_add(starts, start);
            start = max_i64(start, head + (r + 1) * pass - duals->column[u]);
        }
        for (uint32_t r = 0; r < job->repeat && least_takes(ends, last); r++) {
            least_add(ends, last);
            last = max_i64(last, tail + (r + 1) * pass - duals->row[u]);
        }
    }
    qsort(starts->values, starts->count, sizeof *starts->values, order_i64);
    qsort(ends->values, ends->count, sizeof *ends->values, order_i64);
}

enum status head_tail_bound_find(const struct instance *in, int64_t least, const struct instance_bounds *duals,
                                 struct head_tail_bound *out, struct error *err)
{
    uint32_t devices = in->device_count;
    int64_t *values = alloc_zeroed(2 * (size_t)devices, sizeof *values);
    if (!values) return error_memory(err, "lower bounds", 2 * devices * sizeof *values);
    struct head_tail_bound_least starts = {values, 0, devices}, ends = {values + devices, 0, devices};
    gather(in, duals, &starts, &ends);
    *out = (struct head_tail_bound){.full = ends.count == devices};
    for (uint32_t g = 0; g < devices; g++) {
        int64_t sum = g < starts.count ? starts.values[g] + ends.values[g] : least;
        out->both += sum < least ? sum : least;
        if (g < ends.count) out->ends += out->last = ends.values[g];
    }
    free(values);
    return STATUS_OK;
}
