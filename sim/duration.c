/*
 * A plan's millions of operations are a few thousand different ones: equal work on equal devices takes equal time.
 * models/cost/cost.h's seconds are cached by operation template and device class.
 *
 *     device class   devices of one type and slowness, with links of equal bandwidths and latencies; the
 *                    host's processor has its own class
 *     by op          the cache: one load per operation
 *     by work        a second cache for computations, by device type: a plan of 3000 templates has a few
 *                    dozen different works of up to 40 kernels, which are expensive to compute
 *
 * Cost: 8 bytes per template and device class. models/ is called once per (work, device type), and per template of
 * copies and device class.
 */
#include "sim/duration.h"

#include <assert.h>
#include <math.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/plan_charges.h"
#include "planner/plan_files.h"
#include "sim/engine/allocate.h"

static const double not_computed = -1;

struct device_class {
    uint32_t device;   /* the first of the class */
    double *by_work;   /* shared by a type's classes that are not slow */
    double *by_op;
};

struct sim_durations {
    const struct plan *plan;
    const struct hardware *hardware;
    const double *slow; /* by device; NULL: no device is slow */
    uint32_t *class_of; /* by device */
    struct device_class *classes;
    uint32_t class_count;
};

/* --- creation ------------------------------------------------------------------------------- */

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

static double slowness(const struct sim_durations *d, uint32_t device)
{
    return d->slow && device != hardware_cpu(d->hardware) ? d->slow[device] : 1;
}

static bool same_class(const struct sim_durations *d, uint32_t a, uint32_t b)
{
    const struct hardware *hardware = d->hardware;
    if (b == hardware_cpu(hardware) || !same(slowness(d, a), slowness(d, b))) return false;
    const struct hardware_device *left = &hardware->devices[a], *right = &hardware->devices[b];
    if (left->type != right->type || left->path_count != right->path_count) return false;
    for (uint32_t i = 0; i < left->path_count; i++) {
        const struct hardware_link *l = &hardware->links[left->path[i]];
        const struct hardware_link *r = &hardware->links[right->path[i]];
        if (!same(l->bandwidth.value, r->bandwidth.value) ||
            !same(l->latency.value, r->latency.value) || l->paced != r->paced ||
            l->duplex != r->duplex)
            return false;
    }
    return true;
}

static void find_classes(struct sim_durations *d)
{
    for (uint32_t i = 0; i <= hardware_cpu(d->hardware); i++) {
        uint32_t c = 0;
        while (c < d->class_count && !same_class(d, d->classes[c].device, i)) c++;
        if (c == d->class_count) d->classes[d->class_count++].device = i;
        d->class_of[i] = c;
    }
}

static double *unknown(struct arena *arena, uint32_t count, enum status *status, struct error *err)
{
    double *table = sim_allocate(arena, count, sizeof *table, status, err);
    for (uint32_t i = 0; table && i < count; i++) table[i] = not_computed;
    return table;
}

static enum status create_tables(struct sim_durations *d, struct arena *arena, struct error *err)
{
    enum status status = STATUS_OK;
    const struct hardware_device *devices = d->hardware->devices;
    for (uint32_t c = 0; c < d->class_count; c++) {
        struct device_class *class = &d->classes[c];
        bool cpu = class->device == hardware_cpu(d->hardware);
        for (uint32_t b = 0; b < c && !class->by_work && !cpu; b++)
            if (devices[d->classes[b].device].type == devices[class->device].type)
                class->by_work = d->classes[b].by_work;
        if (!class->by_work) class->by_work = unknown(arena, d->plan->work_count, &status, err);
        class->by_op = unknown(arena, d->plan->op_count, &status, err);
    }
    return status;
}

/* Finds the time that LOAD takes for stopped jobs (planner/plan.h, reservations). */
static void note_restarts(struct sim_durations *d)
{
    const struct plan *plan = d->plan;
    for (uint32_t u = 0; plan->reservation_count > 0 && u < plan->unit_count; u++) {
        const struct plan_unit *unit = &plan->units[u];
        const struct parallel *p = &plan->jobs.jobs[unit->job].parallel;
        double restart_s = plan->reservations[plan->job_reservation[unit->job]].restart_s;
        if (unit->pass != PLAN_LOAD || !parallel_is_set(p) || parallel_place(p, unit->shard).on_stage > 0) continue;
        for (uint32_t c = 0; c < d->class_count && restart_s > 0; c++)
            d->classes[c].by_op[unit->first_op + unit->op_count - 1] = restart_s; /* its computation */
    }
}

/* --- states that are loaded and stored (planner/plan_charges.h) ---------------------------------- */

static void set_op(struct sim_durations *d, const struct plan_unit *unit, double seconds)
{
    for (uint32_t c = 0; c < d->class_count; c++)
        for (uint32_t o = 0; o < unit->op_count; o++) d->classes[c].by_op[unit->first_op + o] = seconds;
}

static bool moves_states(const struct plan_unit *unit)
{
    return unit->pass == PLAN_LOAD || unit->pass == PLAN_STORE;
}

static void forget_charges(struct sim_durations *d)
{
    for (uint32_t u = 0; u < d->plan->unit_count; u++)
        if (moves_states(&d->plan->units[u])) set_op(d, &d->plan->units[u], 0);
}

/* Returns true for the first unit of a parallel job's stage, which includes later chunks' states, unless these are
 * copied. */
static bool is_charged(const struct plan *plan, const struct plan_task *task)
{
    const struct plan_unit *unit = &plan->units[task->unit];
    const struct job *job = &plan->jobs.jobs[unit->job];
    const struct parallel *p = &job->parallel;
    return moves_states(unit) && task->gang != PLAN_NONE && parallel_is_set(p) &&
           parallel_place(p, unit->shard).on_stage == 0 && !parallel_is_carried_out(p);
}

/* Returns a reservation's place in tables with a last entry for none. */
static uint32_t place_of(const struct plan *plan, uint32_t reservation)
{
    return reservation == PLAN_NONE ? plan->reservation_count : reservation;
}

/* Marks the reservations that another one follows. */
static void find_followed(const struct plan *plan, bool *followed)
{
    for (uint32_t r = 0; r < plan->reservation_count; r++)
        followed[place_of(plan, plan->reservations[r].follows)] = true;
}

static bool goes_on(const struct plan *plan, uint32_t job, const bool *followed)
{
    return plan->reservation_count > 0 && followed[place_of(plan, plan->job_reservation[job])];
}

/* Returns the seconds of moving states; a stopped job's move is a restart, in its next LOAD. */
static double charge_of(const struct sim_durations *d, const struct plan_task *task, const double *link_bytes,
                        const bool *followed)
{
    const struct plan *plan = d->plan;
    const struct plan_unit *unit = &plan->units[task->unit];
    const struct plan_gang *gang = &plan->gangs[task->gang];
    const struct job *job = &plan->jobs.jobs[unit->job];
    uint64_t bytes = plan_charges_bytes(job, parallel_place(&job->parallel, unit->shard).stage);
    enum copy_direction direction = unit->pass == PLAN_LOAD ? COPY_H2D : COPY_D2H;
    double seconds = 0;
    if (unit->pass == PLAN_STORE && goes_on(plan, unit->job, followed)) return 0;
    for (uint32_t i = 0; i < plan_gang_size(gang); i++)
        seconds = max_s(seconds, plan_charges_s(d->hardware, plan->gang_devices[gang->first + i], direction, bytes,
                                                link_bytes));
    return seconds;
}

/* Adds the bytes that a task loads to its links, or with `clears` sets their bytes to 0. */
static void add_charge(const struct sim_durations *d, const struct plan_task *task, bool clears, double *link_bytes)
{
    const struct plan_unit *unit = &d->plan->units[task->unit];
    const struct plan_gang *gang = &d->plan->gangs[task->gang];
    const struct job *job = &d->plan->jobs.jobs[unit->job];
    uint64_t bytes = plan_charges_bytes(job, parallel_place(&job->parallel, unit->shard).stage);
    for (uint32_t i = 0; unit->pass == PLAN_LOAD && i < plan_gang_size(gang); i++) {
        uint32_t device = d->plan->gang_devices[gang->first + i];
        if (clears) plan_charges_clear(d->hardware, device, link_bytes);
        else plan_charges_add(d->hardware, device, bytes, link_bytes);
    }
}

/* The charged tasks by job, in plan order: tasks[first[j] .. first[j + 1]) are of job j. */
struct charged {
    uint32_t *first, *tasks;
};

static enum status find_charged(const struct plan *plan, struct arena *arena, struct charged *out, struct error *err)
{
    const uint32_t jobs = plan->jobs.count;
    uint32_t count = 0;
    TRY(ARENA_NEW(arena, jobs + 2u, out->first, err));
    for (uint32_t i = 0; i < plan->task_count; i++) {
        if (!is_charged(plan, &plan->tasks[i])) continue;
        out->first[plan->units[plan->tasks[i].unit].job + 2]++;
        count++;
    }
    TRY(ARENA_NEW(arena, count, out->tasks, err));
    for (uint32_t j = 0; j < jobs; j++) out->first[j + 2] += out->first[j + 1];
    for (uint32_t i = 0; i < plan->task_count; i++) /* first[j + 1] moves from the begin of job j to its end */
        if (is_charged(plan, &plan->tasks[i]))
            out->tasks[out->first[plan->units[plan->tasks[i].unit].job + 1]++] = i;
    return STATUS_OK;
}

/* A job's devices copy at the same time: link_bytes has an entry per link, for one job after the other. */
static enum status note_charges(struct sim_durations *d, struct error *err)
{
    const struct plan *plan = d->plan;
    struct arena scratch = {0};
    struct charged charged;
    if (plan->gang_count == 0) return STATUS_OK;
    double *link_bytes;
    bool *followed;
    enum status status = ARENA_NEW(&scratch, d->hardware->link_count, link_bytes, err);
    if (!status) status = ARENA_NEW(&scratch, plan->reservation_count + 1u, followed, err);
    if (!status) status = find_charged(plan, &scratch, &charged, err);
    if (!status) find_followed(plan, followed);
    for (uint32_t j = 0; !status && j < plan->jobs.count; j++) {
        const uint32_t from = charged.first[j], to = charged.first[j + 1];
        for (uint32_t i = from; i < to; i++) add_charge(d, &plan->tasks[charged.tasks[i]], false, link_bytes);
        for (uint32_t i = from; i < to; i++) {
            const struct plan_task *task = &plan->tasks[charged.tasks[i]];
            set_op(d, &plan->units[task->unit], charge_of(d, task, link_bytes, followed));
        }
        for (uint32_t i = from; i < to; i++) add_charge(d, &plan->tasks[charged.tasks[i]], true, link_bytes);
    }
    arena_release(&scratch);
    return status;
}

enum status sim_durations_create(struct arena *arena, const struct plan *plan,
                                 const struct hardware *hardware, const double *slow,
                                 struct sim_durations **out, struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_durations *d = sim_allocate(arena, 1, sizeof *d, &status, err);
    if (status != STATUS_OK) return status;
    d->plan = plan;
    d->hardware = hardware;
    d->slow = slow;
    d->class_of = sim_allocate(arena, hardware->device_count + 1u, sizeof *d->class_of, &status, err);
    d->classes = sim_allocate(arena, hardware->device_count + 1u, sizeof *d->classes, &status, err);
    if (status != STATUS_OK) return status;
    find_classes(d);
    status = create_tables(d, arena, err);
    if (status != STATUS_OK) return status;
    if (plan_charges_count(hardware)) TRY(note_charges(d, err));
    else forget_charges(d);
    note_restarts(d);
    *out = d;
    return status;
}

/* --- looking up ----------------------------------------------------------------------------- */

static double compute_s(const struct sim_durations *d, const struct device_class *class,
                        uint32_t work)
{
    if (work == PLAN_NONE) return 0;
    double *seconds = &class->by_work[work];
    if (*seconds < 0) {
        const struct plan_work *w = &d->plan->works[work];
        *seconds = cost_work_s(d->hardware, class->device, d->plan->items + w->first_item,
                               w->item_count, NULL);
    }
    return *seconds;
}

double sim_durations_alone_s(struct sim_durations *durations, uint32_t device, uint32_t op)
{
    const struct device_class *class = &durations->classes[durations->class_of[device]];
    double *seconds = &class->by_op[op];
    if (*seconds >= 0) return *seconds;
    const struct plan_op *template = &durations->plan->ops[op];
    if (template->kind == OP_COPY && plan_stream_is_host(template->stream))
        *seconds = cost_storage_s(durations->hardware,
                                  template->stream == STREAM_READ ? STORAGE_READ : STORAGE_WRITE,
                                  template->bytes);
    else if (template->kind == OP_COPY)
        *seconds = cost_copy_s(durations->hardware, class->device,
                               template->stream == STREAM_H2D ? COPY_H2D : COPY_D2H,
                               template->bytes);
    else if (plan_op_of_files(template))
        *seconds = plan_file_s(durations->plan, durations->hardware, template);
    else if (template->pass == PLAN_BATCH)
        *seconds = 0; /* tokens are read ahead by their own thread */
    else
        *seconds = slowness(durations, class->device) * compute_s(durations, class, template->work);
    assert(*seconds >= 0);
    assert(isfinite(*seconds));
    return *seconds;
}
