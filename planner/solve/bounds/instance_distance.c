/* Least distances between the starts of units. See instance_bound.h. */
#include "planner/solve/bounds/instance_bound.h"

#include "base/extreme.h"
#include "planner/solve/bounds/assignment.h"

/* Returns the distance along the chain, for neighbours on a device that are not neighbours in the chain. */
static int64_t chain_distance(const struct instance *in, uint32_t j, uint32_t k)
{
    const struct instance_job *job = &in->jobs[in->units[j].job];
    uint32_t first = job->first_unit, end = first + job->unit_count;
    uint32_t after = j + 1 < end ? j + 1 : first, before = k > first ? k - 1 : end - 1;
    int64_t sum = instance_through_host(in, j, after) + instance_through_host(in, before, k);
    if (k > j) return sum + instance_compute_between(in, j, k);
    return sum + instance_compute_between(in, j, end) + instance_compute_between(in, first, k);
}

int64_t instance_tail(const struct instance *in, uint32_t unit)
{
    const struct instance_job *job = &in->jobs[in->units[unit].job];
    uint32_t end = job->first_unit + job->unit_count;
    int64_t own = instance_compute_min(in, unit) + in->units[unit].out;
    return max_i64(own, instance_compute_between(in, unit, end) + in->units[end - 1].out);
}

int64_t instance_head(const struct instance *in, uint32_t unit)
{
    uint32_t first = in->jobs[in->units[unit].job].first_unit;
    if (unit == first) return in->units[unit].in;
    return in->units[first].in + instance_compute_between(in, first, unit);
}

int64_t instance_compute_between(const struct instance *in, uint32_t from, uint32_t to)
{
    int64_t sum = 0;
    for (uint32_t u = from; u < to; u++) sum += instance_compute_min(in, u);
    return sum;
}

int64_t instance_class_distance(const struct instance *in, uint32_t j, uint32_t k, uint32_t class)
{
    const struct instance_unit *a = &in->units[j], *b = &in->units[k];
    if (!instance_fits(in, j, class) || !instance_fits(in, k, class)) return ASSIGNMENT_FORBIDDEN;
    int64_t distance = instance_setup(in, j, k, class);
    if (a->job != b->job) return distance;
    const struct instance_job *job = &in->jobs[a->job];
    uint32_t next = j + 1 < job->first_unit + job->unit_count ? j + 1 : job->first_unit;
    if (k <= j && job->repeat == 1) return ASSIGNMENT_FORBIDDEN;
    if (k == next) return distance;
    int64_t longer = instance_compute(in, j, class) - instance_compute_min(in, j);
    return max_i64(distance, longer + chain_distance(in, j, k));
}

int64_t instance_distance(const struct instance *in, uint32_t j, uint32_t k)
{
    int64_t distance = ASSIGNMENT_FORBIDDEN;
    for (uint32_t c = 0; c < in->class_count; c++)
        distance = min_i64(distance, instance_class_distance(in, j, k, c));
    return distance;
}
