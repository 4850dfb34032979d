#include "planner/solve/bounds/stream_bound.h"

#include "base/extreme.h"

static int64_t divide_up(__int128 a, int64_t b) { return a <= 0 ? 0 : (int64_t)((a + b - 1) / b); }

/* Returns the ticks after its computation until the unit's data are out. */
static int64_t out_of(const struct instance_unit *u) { return u->out > 0 ? u->edge_out + u->out : 0; }

/* --- sums ------------------------------------------------------------------------------------ */

struct stream_sums {
    __int128 compute, in, out, buffers, host;
    int64_t head, tail, out_head; /* least of a unit: copy in; the rest after it; all before its copy out */
    int64_t slots;                /* of all devices */
};

static struct stream_sums sums_of(const struct instance *in)
{
    struct stream_sums s = {.head = INT64_MAX, .tail = INT64_MAX, .out_head = INT64_MAX};
    for (uint32_t c = 0; c < in->class_count; c++)
        s.slots += (int64_t)in->classes[c].device_count * in->classes[c].slots;
    for (uint32_t i = 0; i < in->unit_count; i++) {
        const struct instance_unit *u = &in->units[i];
        int64_t repeat = in->jobs[u->job].repeat, compute = instance_compute_min(in, i);
        bool buffer = u->memory > 0;
        int64_t copied = buffer ? u->in : 0;
        s.compute += (__int128)repeat * compute;
        s.in += (__int128)repeat * copied;
        s.out += (__int128)repeat * u->out;
        s.host += (__int128)repeat * (u->host_before + u->host_after + u->update);
        if (buffer) s.buffers += (__int128)repeat * (u->in + compute + (u->out_apart ? 0 : out_of(u)));
        s.head = min_i64(s.head, copied);
        s.tail = min_i64(s.tail, compute + out_of(u));
        if (u->out > 0) s.out_head = min_i64(s.out_head, copied + compute);
    }
    if (s.out_head == INT64_MAX) s.out_head = 0;
    return s;
}

/* --- chains ---------------------------------------------------------------------------------- */

/* Returns the ticks that a unit adds to its job's chain, without waiting. */
static int64_t step_of(const struct instance *in, uint32_t unit)
{
    return instance_compute_min(in, unit) + in->units[unit].host_before + in->units[unit].host_after;
}

static int64_t once_around(const struct instance *in, const struct instance_job *job)
{
    int64_t all = 0;
    for (uint32_t u = job->first_unit; u < job->first_unit + job->unit_count; u++) all += step_of(in, u);
    return all;
}

/* Returns the least ticks between the starts of two minibatches: a shard's first reader waits for its last writer. */
static int64_t period_of(const struct instance *in, const struct instance_job *job)
{
    int64_t period = once_around(in, job);
    for (uint32_t r = job->first_unit; r < job->first_unit + job->unit_count; r++) {
        int64_t passed = 0, turn = 0;
        for (uint32_t w = r; w < job->first_unit + job->unit_count; w++) {
            const struct instance_unit *u = &in->units[w];
            passed += step_of(in, w) - (w == r ? u->host_before : 0);
            int64_t state = passed - u->host_after + out_of(u) + u->update;
            if (u->writes && instance_resident(u, &in->units[r])) turn = state;
        }
        bool copied = in->units[r].memory > 0;
        if (turn > 0) period = max_i64(period, turn + (copied ? in->units[r].in : 0));
    }
    return period;
}

/* Returns the ticks after the computation of a unit, until its data are out and updated. */
static int64_t rest_of(const struct instance_unit *u)
{
    int64_t rest = u->update > 0 ? u->edge_out + u->out + u->update : out_of(u);
    return max_i64(rest, u->host_after > 0 ? u->edge_out + u->host_after : 0);
}

int64_t stream_bound_head(const struct instance *in, uint32_t job, uint32_t position)
{
    const struct instance_job *j = &in->jobs[job];
    const struct instance_unit *first = &in->units[j->first_unit];
    int64_t head = max_i64(first->memory > 0 ? first->in : 0, first->host_before);
    head += position / j->unit_count * once_around(in, j);
    for (uint32_t u = 0; u < position % j->unit_count; u++)
        head += step_of(in, j->first_unit + u) - (u == 0 ? first->host_before : 0);
    uint32_t unit = instance_unit_at(j, position);
    if (position % j->unit_count > 0) head += in->units[unit].host_before;
    return max_i64(head, in->units[unit].memory > 0 ? in->units[unit].in : 0);
}

int64_t stream_bound_tail(const struct instance *in, uint32_t job, uint32_t position)
{
    const struct instance_job *j = &in->jobs[job];
    uint32_t length = instance_length(j), skipped = (length - position - 1) / j->unit_count;
    int64_t passed = skipped * once_around(in, j), tail = 0;
    for (uint32_t p = position + skipped * j->unit_count, first = p; p < length; p++) {
        uint32_t unit = instance_unit_at(j, p);
        passed += instance_compute_min(in, unit) + (p > first ? in->units[unit].host_before : 0);
        tail = max_i64(tail, passed + rest_of(&in->units[unit]));
        passed += in->units[unit].host_after;
    }
    return tail;
}

/* Counts the waits for updates between minibatches, too. Whatever the shard that waits most, its first reader comes
 * after the minibatch's first unit and before its last. */
static int64_t chain_of(const struct instance *in, uint32_t job)
{
    const struct instance_job *j = &in->jobs[job];
    const uint32_t last = j->first_unit + j->unit_count - 1;
    int64_t all = once_around(in, j) - in->units[j->first_unit].host_before - in->units[last].host_after;
    return stream_bound_head(in, job, 0) + (j->repeat - 1) * period_of(in, j) + all + rest_of(&in->units[last]);
}

/* --- public ---------------------------------------------------------------------------------- */

void stream_bound(const struct instance *in, int64_t value[INSTANCE_BOUND_COUNT])
{
    struct stream_sums s = sums_of(in);
    int64_t devices = in->device_count;
    value[INSTANCE_BOUND_AREA] = s.head + divide_up(s.compute, devices);
    value[INSTANCE_BOUND_LINK] = divide_up(s.in, devices) + (s.in > 0 ? s.tail : 0);
    value[INSTANCE_BOUND_OUT] = s.out > 0 ? s.out_head + divide_up(s.out, devices) : 0;
    value[INSTANCE_BOUND_MEMORY] = divide_up(s.buffers, s.slots);
    value[INSTANCE_BOUND_HOST] = s.host > INT64_MAX ? 0 : (int64_t)s.host;
    for (uint32_t j = 0; j < in->job_count; j++)
        value[INSTANCE_BOUND_CHAIN] = max_i64(value[INSTANCE_BOUND_CHAIN], chain_of(in, j));
}
