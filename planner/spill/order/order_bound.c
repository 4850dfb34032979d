#include "planner/spill/order/order_bound.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "models/job/evaluation.h"

/* A different order of sums must not round a bound above the value that meets it. */
static const double rounding = 1 - 1e-12;

/* Returns the least of each part of a unit over the devices that may run it. */
static struct cost_unit least(const struct cost_table *t, uint32_t job, uint32_t position)
{
    const struct partition *cut = t->partition;
    if (cut->resident) {
        uint32_t shard = cut->job_first_shard[job] + schedule_unit_shard(partition_job_units(cut, job), position);
        return *cost_table_at(t, cut->shard_device[shard], job, position);
    }
    struct cost_unit made = *cost_table_at(t, t->kinds[0], job, position);
    for (uint32_t k = 1; k < t->kind_count; k++) {
        const struct cost_unit *time = cost_table_at(t, t->kinds[k], job, position);
        made.in_s = min_s(made.in_s, time->in_s);
        made.compute_s = min_s(made.compute_s, time->compute_s);
        made.edge_out_s = min_s(made.edge_out_s, time->edge_out_s);
        made.out_s = min_s(made.out_s, time->out_s);
        made.cpu_s = min_s(made.cpu_s, time->cpu_s);
        made.update_s = min_s(made.update_s, time->update_s);
    }
    return made;
}

/* --- sums ------------------------------------------------------------------------------------ */

struct order_bound_sums { /* seconds, of all units */
    double compute, in, out, weight_buffers; /* of a device, or of all that share the units */
    double cpu, read, write;          /* of the machine */
    double head, tail, out_head;      /* least of a unit: copy in; the rest; the part before the copy out */
    double behind;                    /* the job's last computation */
};

static const struct order_bound_sums nothing = {.head = HUGE_VAL, .tail = HUGE_VAL, .out_head = HUGE_VAL};

static double out_of(const struct cost_unit *unit)
{
    return unit->out_s > 0 ? unit->edge_out_s + unit->out_s : 0; /* with the time that it has its weight buffer */
}

/* `edges`: number of units whose other outgoing data count. */
static void add_unit(struct order_bound_sums *sums, const struct cost_unit *unit, bool persistent, double times,
                     double edges)
{
    bool weight_buffer = !persistent || unit->in_s > 0 || unit->out_s > 0;
    if (!unit->gathers) sums->cpu += unit->cpu_s * times;
    sums->read += unit->read_s * times;
    sums->write += unit->write_s * times;
    if (unit->cpu_alone) return;
    sums->compute += unit->compute_s * times;
    sums->in += unit->in_s * times;
    sums->out += unit->edge_out_s * edges + unit->out_s * times;
    double left = unit->out_apart ? 0 : out_of(unit);
    if (weight_buffer) sums->weight_buffers += (unit->in_s + unit->compute_s + left) * times;
    sums->head = min_s(sums->head, unit->in_s);
    sums->tail = min_s(sums->tail, unit->compute_s + out_of(unit));
    sums->out_head = min_s(sums->out_head, unit->in_s + unit->compute_s);
}

/* Returns the number of runs of a job's unit at this position. */
static double repetitions(const struct job *job, struct partition_units units, uint32_t position)
{
    if (position < schedule_unit_count(units)) return (double)job->minibatches;
    return (double)evaluation_count(job) * (double)job->evaluation.minibatches;
}

static uint32_t distinct_positions(const struct job *job, struct partition_units units)
{
    return schedule_unit_count(units) + (evaluation_count(job) > 0 ? units.shards : 0);
}

static bool is_on(const struct partition *cut, uint32_t shard, uint32_t device)
{
    return !cut->resident || cut->shard_device[shard] == device;
}

/* Returns the job's last unit of a minibatch that ends with its state's copy, or distinct_positions(). After the last
 * minibatch no unit waits for later boundaries, and the clock may stop before they are out. */
static uint32_t last_out(const struct cost_table *t, uint32_t job, uint32_t device)
{
    const struct partition_units units = partition_job_units(t->partition, job);
    uint32_t none = distinct_positions(&t->jobs->jobs[job], units);
    for (uint32_t i = schedule_unit_count(units); i-- > 0;)
        if (is_on(t->partition, t->partition->job_first_shard[job] + schedule_unit_shard(units, i), device) &&
            least(t, job, i).out_s > 0)
            return i;
    return none;
}

/* Returns the number of a unit's boundaries that leave before a state does. */
static double edges_before(const struct job *job, struct partition_units units, uint32_t position, uint32_t last)
{
    if (last == distinct_positions(job, units) || position >= schedule_unit_count(units)) return 0;
    return (double)job->minibatches - (position > last ? 1 : 0);
}

/* Adds a job's units to the sums of its shards' devices if states are resident, else to the only sums. */
static void add_job(const struct cost_table *t, uint32_t j, struct order_bound_sums *sums)
{
    const struct partition *cut = t->partition;
    const struct job *job = &t->jobs->jobs[j];
    const struct partition_units units = partition_job_units(cut, j);
    uint32_t first = cut->job_first_shard[j];
    for (uint32_t i = 0; i < distinct_positions(job, units); i++) {
        uint32_t shard = first + schedule_unit_shard(units, i), device = cut->resident ? cut->shard_device[shard] : 0;
        struct cost_unit unit = least(t, j, i);
        add_unit(&sums[device], &unit, cut->persistent[shard], repetitions(job, units, i),
                 edges_before(job, units, i, last_out(t, j, device)));
    }
    for (uint32_t s = 0; s < units.shards; s++) {
        if (s >= units.frozen)
            sums[0].cpu += least(t, j, schedule_unit_back(units, s)).update_s * (double)job->minibatches;
        if (!cut->resident && cut->persistent[first + s]) sums[0].in += least(t, j, s).load_s;
    }
}

/* --- chains ---------------------------------------------------------------------------------- */

/* Returns the time that a unit adds to its job's chain. */
static double link_s(const struct cost_unit *unit)
{
    return unit->cpu_alone ? unit->cpu_s : unit->compute_s;
}

/* Returns the seconds from a job's first copy to its last without other jobs. */
static double chain_s(const struct cost_table *t, uint32_t job)
{
    const struct job *of = &t->jobs->jobs[job];
    const struct partition_units units = partition_job_units(t->partition, job);
    uint32_t shards = units.shards, last = schedule_unit_count(units) - 1;
    double all = 0, turn = 0, around = 0;
    for (uint32_t i = 0; i <= last; i++) {
        struct cost_unit unit = least(t, job, i);
        all += link_s(&unit);
    }
    /* From the forward pass of shard s to the next, through its state in host memory; a clipping job's states are ready
     * later. */
    for (uint32_t s = shards; s-- > units.frozen && !t->partition->resident;) {
        struct cost_unit forward = least(t, job, s), back = least(t, job, schedule_unit_back(units, s));
        around += link_s(&back) + (s + 1 < shards ? link_s(&forward) : 0);
        if (back.cpu_alone || !t->partition->trains[t->partition->job_first_shard[job] + s]) continue;
        bool persistent = t->partition->persistent[t->partition->job_first_shard[job] + s];
        double ready = around + out_of(&back) + (job_clips(of) ? 0 : back.cpu_s);
        turn = max_s(turn, ready + (persistent ? 0 : forward.in_s));
    }
    double held_out = 0;
    for (uint32_t s = 0; s < shards && evaluation_count(of) > 0; s++) {
        struct cost_unit unit = least(t, job, last + 1 + s);
        held_out += link_s(&unit) * repetitions(of, units, last + 1 + s);
    }
    struct cost_unit first = least(t, job, 0), end = least(t, job, last);
    double minibatches = (double)of->minibatches;
    double turns = evaluation_count(of) > 0 ? all * (minibatches - 1)
                                            : max_s(all, turn) * (minibatches - 1);
    double behind = evaluation_count(of) > 0 || end.cpu_alone ? 0 : out_of(&end);
    return (first.cpu_alone || t->partition->resident ? 0 : first.in_s) + turns + all + held_out + behind;
}

/* --- public ---------------------------------------------------------------------------------- */

static void raise(struct order_bound *bound, double seconds, uint32_t kind)
{
    if (seconds < HUGE_VAL && seconds * rounding > bound->seconds)
        *bound = (struct order_bound){.seconds = seconds * rounding, .kind = kind};
}

/* Returns the sums of a device that begins with a job's first unit and ends with a job's last. */
static struct order_bound_sums of_one_device(const struct cost_table *t, struct order_bound_sums sums)
{
    double head = HUGE_VAL, tail = HUGE_VAL;
    for (uint32_t j = 0; j < t->jobs->count; j++) {
        uint32_t i = 0, last = distinct_positions(&t->jobs->jobs[j], partition_job_units(t->partition, j)) - 1;
        while (i < last && least(t, j, i).cpu_alone) i++;
        while (last > 0 && least(t, j, last).cpu_alone) last--;
        struct cost_unit first = least(t, j, i), end = least(t, j, last);
        head = min_s(head, first.in_s);
        tail = min_s(tail, out_of(&end));
    }
    sums.head = max_s(sums.head, head);
    sums.behind = tail;
    return sums;
}

static void raise_by_device(struct order_bound *bound, const struct order_bound_sums *sums, double devices,
                            double weight_buffers)
{
    if (sums->compute > 0)
        raise(bound, sums->head + sums->compute / devices + sums->behind, PLAN_ORDER_COMPUTE);
    if (sums->in > 0) raise(bound, sums->in / devices + sums->tail, PLAN_ORDER_IN);
    if (sums->out > 0) raise(bound, sums->out_head + sums->out / devices, PLAN_ORDER_OUT);
    if (sums->weight_buffers > 0)
        raise(bound, sums->weight_buffers / devices / weight_buffers, PLAN_ORDER_WEIGHT_BUFFERS);
}

static void raise_all(const struct cost_table *t, bool one_device, struct order_bound_sums *sums,
                      struct order_bound *bound)
{
    const struct partition *cut = t->partition;
    uint32_t devices = one_device ? 1 : t->hardware->device_count;
    double weight_buffers = cut->weight_buffer_count > 0 ? cut->weight_buffer_count : 1;
    for (uint32_t j = 0; j < t->jobs->count; j++) add_job(t, j, sums);
    if (devices == 1 && !cut->resident) sums[0] = of_one_device(t, sums[0]);
    if (!cut->resident) raise_by_device(bound, &sums[0], devices, weight_buffers);
    for (uint32_t d = 0; d < devices && cut->resident; d++) {
        struct order_bound_sums here = sums[d];
        here.head = 0; /* states are there */
        raise_by_device(bound, &here, 1, weight_buffers);
        if (d > 0) sums[0].cpu += here.cpu;
    }
    uint32_t hosts = one_device ? 1 : hardware_host_count(t->hardware);
    raise(bound, sums[0].cpu / hosts, PLAN_ORDER_PROCESSOR);
    raise(bound, max_s(sums[0].read, sums[0].write) / hosts, PLAN_ORDER_STORAGE);
    for (uint32_t j = 0; j < t->jobs->count; j++) raise(bound, chain_s(t, j), PLAN_ORDER_CHAIN);
}

enum status order_bound_make(const struct cost_table *t, bool one_device, struct order_bound *out, struct error *err)
{
    uint32_t count = t->partition->resident ? t->hardware->device_count : 1;
    struct order_bound_sums *sums = alloc_zeroed(count + (size_t)1, sizeof *sums);
    if (!sums) return error_memory(err, "sums of units", count * sizeof *sums);
    for (uint32_t d = 0; d < count; d++) sums[d] = nothing;
    *out = (struct order_bound){.kind = PLAN_ORDER_NONE};
    raise_all(t, one_device, sums, out);
    free(sums);
    return STATUS_OK;
}
