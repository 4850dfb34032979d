#include "planner/spill/order/instance_of_cut.h"

#include <assert.h>
#include <math.h>

#include "base/extreme.h"
#include "base/try.h"
#include "planner/pass_seconds.h"
#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/bounds/stream_bound.h"
#include "planner/spill/cut/footprint.h"

struct cut_filling {
    const struct cost_table *t;
    enum cut_form form;
    struct instance *out;
    double slower; /* factor on the seconds of copies, which assume that all devices copy at once */
    uint32_t types[INSTANCE_CLASSES_MAX]; /* of each class */
};

static int64_t ticks(const struct cut_filling *c, double seconds, int64_t least)
{
    double count = ceil(seconds / c->out->tick_s - 1e-6); /* a whole number with a rounding error stays whole */
    return count > (double)least ? (int64_t)count : least;
}

static int64_t copy_ticks(const struct cut_filling *c, double seconds) { return ticks(c, seconds * c->slower, 0); }

static uint32_t positions_of(const struct cost_table *t, uint32_t job)
{
    return schedule_unit_count(partition_job_units(t->partition, job));
}

/* Returns the number of the job's units on devices before the position. */
static uint32_t unit_before(const struct cost_table *t, uint32_t job, uint32_t position)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < position; i++) count += !cost_table_at(t, 0, job, i)->cpu_alone;
    return count;
}

static uint32_t device_of(const struct hardware *hw, uint32_t type)
{
    uint32_t device = 0;
    while (hw->devices[device].type != type) device++;
    return device;
}

static uint32_t devices_of(const struct hardware *hw, uint32_t type)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < hw->device_count; d++) count += hw->devices[d].type == type;
    return count;
}

/* --- with streams ---------------------------------------------------------------------------- */

/* Adds to a unit of position i what its job's units of the host's processor do just before and just after it. */
static void add_host_work(const struct cut_filling *c, uint32_t j, uint32_t i, struct instance_unit *unit)
{
    for (uint32_t p = i; p-- > 0 && cost_table_at(c->t, 0, j, p)->cpu_alone;)
        unit->host_before += ticks(c, cost_table_at(c->t, 0, j, p)->cpu_s, 0);
    for (uint32_t p = i + 1; p < positions_of(c->t, j) && cost_table_at(c->t, 0, j, p)->cpu_alone; p++)
        unit->host_after += ticks(c, cost_table_at(c->t, 0, j, p)->cpu_s, 0);
}

static double table_s(const struct cost_table *t, const struct job *job)
{
    if (!footprint_has_table(job)) return 0;
    return pass_seconds_copy(t->hardware, 0, COPY_H2D, footprint_table_bytes(job)) * t->partition->contention;
}

/* Fills in what the planner's clock leaves out: a backward pass fetches the boundary where its shard begins; a head's
 * table, tied to the embedding's, has one place on a device; in a buffer what goes out lies after what came in. (Memory
 * is told by the ticks of its copy.) */
static void fill_emitted(const struct cut_filling *c, uint32_t j, uint32_t i, struct instance_unit *unit)
{
    const struct partition *cut = c->t->partition;
    enum plan_pass pass = schedule_unit_pass(partition_job_units(cut, j), i);
    uint32_t shard = cut->job_first_shard[j] + unit->shard;
    if (pass == PLAN_LOSS) unit->table = copy_ticks(c, table_s(c->t, &c->t->jobs->jobs[j]));
    unit->in = max_i64(0, unit->in - unit->table);
    if (unit->memory > 0) unit->memory += (uint64_t)unit->in;
    if (pass == PLAN_BACKWARD && unit->shard > 0)
        unit->in += copy_ticks(c, cost_table_shard(c->t, 0, shard)[COST_PASS_FORWARD].edge_in_s);
}

/* Returns the ticks of copies of a job's states that stay. */
static int64_t load_of(const struct cut_filling *c, uint32_t j)
{
    double load_s = 0;
    for (uint32_t s = c->t->partition->job_first_shard[j]; s < c->t->partition->job_first_shard[j + 1]; s++)
        if (c->t->partition->persistent[s]) load_s += cost_table_shard(c->t, 0, s)->load_s;
    return copy_ticks(c, load_s);
}

/* Fills in what only instances with streams have. */
static void fill_streams(const struct cut_filling *c, uint32_t j, uint32_t i, struct instance_unit *unit)
{
    const struct partition_units units = partition_job_units(c->t->partition, j);
    const struct cost_unit *time = cost_table_at(c->t, 0, j, i);
    uint32_t shard = c->t->partition->job_first_shard[j] + schedule_unit_shard(units, i);
    unit->out = copy_ticks(c, time->out_s);
    unit->edge_in = schedule_unit_begins(units, i) ? 0 : copy_ticks(c, time->edge_in_s);
    unit->edge_out = copy_ticks(c, time->edge_out_s);
    unit->update = unit->writes ? ticks(c, time->cpu_s + time->update_s, 0) : 0;
    unit->memory = !c->t->partition->persistent[shard] || time->in_s > 0 || time->out_s > 0;
    unit->in_apart = time->in_apart;
    unit->out_apart = time->out_apart;
    unit->after_host = schedule_unit_pass(units, i) == PLAN_LOSS && cost_table_at(c->t, 0, j, 0)->cpu_alone;
    add_host_work(c, j, i, unit);
    if (c->form == CUT_PLAN) fill_emitted(c, j, i, unit);
}

/* --- the instance ---------------------------------------------------------------------------- */

static enum status fill_classes(struct cut_filling *c, struct error *err)
{
    const struct hardware *hw = c->t->hardware;
    uint32_t class = 0;
    for (uint32_t type = 0; type < hw->type_count; type++) {
        if (devices_of(hw, type) == 0) continue;
        struct instance_class *to = &c->out->classes[class];
        TRY(arena_string(&c->out->arena, hw->types[type].name, &to->name, err));
        to->device_count = devices_of(hw, type);
        to->memory = c->form == CUT_PLAN ? INSTANCE_TICKS_MAX : c->t->partition->weight_buffer_count;
        to->slots = c->form == CUT_COPIES ? 0 : c->t->partition->weight_buffer_count;
        to->edges = c->form == CUT_PLAN ? c->t->partition->edge_count : 0;
        c->types[class++] = type;
    }
    return STATUS_OK;
}

static void fill_unit(const struct cut_filling *c, uint32_t j, uint32_t i, uint32_t at)
{
    const struct partition_units units = partition_job_units(c->t->partition, j);
    const struct cost_unit *time = cost_table_at(c->t, 0, j, i);
    struct instance_unit *unit = &c->out->units[at];
    *unit = (struct instance_unit){.job = j, .shard = schedule_unit_shard(units, i), .memory = 1,
                                   .in = copy_ticks(c, time->in_s),
                                   .writes = schedule_unit_pass(units, i) != PLAN_FORWARD};
    unit->out = unit->writes ? copy_ticks(c, time->out_s) : 0;
    if (c->form != CUT_COPIES) fill_streams(c, j, i, unit);
    for (uint32_t k = 0; k < c->out->class_count; k++)
        c->out->compute[(size_t)at * c->out->class_count + k] =
            ticks(c, cost_table_at(c->t, device_of(c->t->hardware, c->types[k]), j, i)->compute_s, 1);
}

static enum status fill_job(const struct cut_filling *c, uint32_t j, uint32_t first, struct error *err)
{
    const struct job *job = &c->t->jobs->jobs[j];
    struct instance_job *to = &c->out->jobs[j];
    TRY(arena_string(&c->out->arena, job->name, &to->name, err));
    to->first_unit = first;
    to->unit_count = unit_before(c->t, j, positions_of(c->t, j));
    to->weight = 1;
    to->deadline = INSTANCE_HORIZON_MAX;
    if (job->minibatches > INSTANCE_TASKS_MAX)
        return error_set(err, STATUS_LIMIT, "job '%s' has %llu minibatches (limit of an instance is %d)",
                         job->name, (unsigned long long)job->minibatches, INSTANCE_TASKS_MAX);
    to->repeat = (uint32_t)job->minibatches;
    return STATUS_OK;
}

/* Fills in all times. */
static void fill_times(const struct cut_filling *c)
{
    for (uint32_t j = 0; j < c->t->jobs->count; j++) {
        struct instance_job *to = &c->out->jobs[j];
        if (c->form != CUT_COPIES) to->load = load_of(c, j);
        if (c->form == CUT_PLAN) to->store = to->load;
        for (uint32_t i = 0; i < positions_of(c->t, j); i++)
            if (!cost_table_at(c->t, 0, j, i)->cpu_alone)
                fill_unit(c, j, i, to->first_unit + unit_before(c->t, j, i));
    }
}

/* Returns the share of a bound on the makespan that the busier stream of copies of a mean device needs. */
static double copying_share(const struct instance *in)
{
    int64_t bounds[INSTANCE_BOUND_COUNT] = {0}, most = 1;
    double into = 0, out = 0;
    stream_bound(in, bounds);
    for (uint32_t k = 0; k < INSTANCE_BOUND_COUNT; k++) most = max_i64(most, bounds[k]);
    for (uint32_t u = 0; u < in->unit_count; u++) {
        const struct instance_unit *unit = &in->units[u];
        double repeat = in->jobs[unit->job].repeat;
        into += repeat * (double)(unit->in + unit->table + unit->edge_in);
        out += repeat * (double)(unit->out + unit->edge_out);
    }
    return fmin(1, fmax(into, out) / in->device_count / (double)most);
}

/*
 * The seconds of copies over shared links assume that all devices copy at once. Where copies need only a share of the
 * time, so many others copy at the same time on average; the share depends on the copies' times again.
 */
static void fill_shared(struct cut_filling *c)
{
    enum { ROUNDS = 8 };
    double all = c->t->partition->contention, devices = c->out->device_count;
    for (int round = 0; round < ROUNDS && all > 1; round++) {
        double others = (devices - 1) * copying_share(c->out);
        c->slower = (c->slower + fmax(1 / all, (1 + others) / devices)) / 2;
        fill_times(c);
    }
}

/* Returns a tick of which a mean unit has a thousand, at most the usual one. */
static double fine_tick_s(const struct cost_table *t)
{
    double compute_s = 0, units = 0;
    for (uint32_t j = 0; j < t->jobs->count; j++)
        for (uint32_t i = 0; i < positions_of(t, j); i++) {
            compute_s += cost_table_at(t, 0, j, i)->compute_s;
            units += !cost_table_at(t, 0, j, i)->cpu_alone;
        }
    double tick_s = INSTANCE_TICK_S;
    while (tick_s > 1.5e-9 && compute_s / units < 1000 * tick_s) tick_s /= 10;
    return tick_s;
}

enum status instance_of_cut(const struct cost_table *t, enum cut_form form, double tick_s, struct instance *out,
                            struct error *err)
{
    struct cut_filling c = {.t = t, .form = form, .out = out, .slower = 1};
    uint32_t units = 0, classes = 0;
    assert(!t->partition->resident);
    for (uint32_t j = 0; j < t->jobs->count; j++) units += unit_before(t, j, positions_of(t, j));
    for (uint32_t type = 0; type < t->hardware->type_count; type++)
        classes += devices_of(t->hardware, type) > 0;
    if (classes > INSTANCE_CLASSES_MAX)
        return error_set(err, STATUS_LIMIT, "%u types of device (limit of an instance is %d)", classes,
                         INSTANCE_CLASSES_MAX);
    TRY(instance_init(out, classes, t->jobs->count, units, err));
    out->streams = form != CUT_COPIES;
    out->tick_s = tick_s > 0 ? tick_s : out->streams ? fine_tick_s(t) : INSTANCE_TICK_S;
    TRY(arena_string(&out->arena, t->hardware->name, &out->name, err));
    TRY(fill_classes(&c, err));
    for (uint32_t j = 0, first = 0; j < t->jobs->count; first += out->jobs[j++].unit_count)
        TRY(fill_job(&c, j, first, err));
    fill_times(&c);
    TRY(instance_finish(out, err));
    if (form != CUT_PLAN) return STATUS_OK;
    fill_shared(&c);
    return instance_finish(out, err);
}
