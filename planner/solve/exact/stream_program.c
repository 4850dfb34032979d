#include "planner/solve/exact/stream_program.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/try.h"
#include "planner/solve/bounds/stream_bound.h"

enum { NO_COLUMN = UINT32_MAX, NO_TASK = UINT32_MAX };

struct stream_time { /* a column's value plus a number of ticks; or ticks */
    uint32_t column;
    int64_t add;
};

struct stream_program_task {
    uint32_t job, unit;
    int64_t compute, head, last; /* window of the start */
    uint32_t in, free, start, edge, keep; /* columns */
    uint32_t before, writer;     /* tasks: of its job; that wrote its shard */
    bool first;                  /* of its job in the program */
    struct stream_time end, edge_out, left, buffer, ready, goes_on, boundary;
};

struct stream_host_work { /* ends at `column` */
    uint32_t column, task;
    int64_t ticks;
};

struct stream_program {
    const struct stream_program_request *request;
    const struct instance *in;
    struct milp *milp;
    struct stream_program_task *tasks; /* (n) */
    uint32_t n, devices, makespan;
    uint32_t *places;       /* (n, devices): x */
    uint32_t *pairs;        /* (n, n): y; NO_COLUMN: j cannot come before k */
    int64_t horizon;        /* no event is later: boundaries that nothing waits for may leave after the makespan */
    struct stream_host_work *works; /* (3 n) */
    uint32_t work_count;
};

static const struct instance_unit *unit_of(const struct stream_program *p, uint32_t k)
{
    return &p->in->units[p->tasks[k].unit];
}

static uint32_t place(const struct stream_program *p, uint32_t k, uint32_t g) { return p->places[k * p->devices + g]; }

static uint32_t pair(const struct stream_program *p, uint32_t j, uint32_t k) { return p->pairs[(size_t)j * p->n + k]; }

/* --- rows ------------------------------------------------------------------------------------ */

static uint32_t time_column(struct stream_program *p, int64_t least, const char *what, uint32_t k)
{
    return milp_column(p->milp, (double)least, (double)p->horizon, 0, false, "%s_%u", what, k);
}

/* Adds `late` >= `early` + ticks, if all of the `count` 0-or-1 columns are 1. */
static void after(struct stream_program *p, uint32_t late, struct stream_time early, int64_t ticks,
                  const uint32_t *columns, uint32_t count)
{
    double big = (double)(p->horizon + ticks + early.add);
    for (uint32_t c = 0; c < count; c++)
        if (columns[c] == NO_COLUMN) return;
    if (early.column == NO_COLUMN) big = (double)(early.add + ticks);
    else milp_term(p->milp, early.column, -1);
    if (big <= 0) big = 0;
    milp_term(p->milp, late, 1);
    for (uint32_t c = 0; c < count; c++) milp_term(p->milp, columns[c], -big);
    milp_row(p->milp, (double)(early.add + ticks) - big * count, HUGE_VAL, "r_%u", milp_row_count(p->milp));
}

static void always_after(struct stream_program *p, uint32_t late, struct stream_time early, int64_t ticks)
{
    after(p, late, early, ticks, NULL, 0);
}

/* Adds `late` >= the device's tick + ticks, on whichever device task k is. */
static void after_device(struct stream_program *p, uint32_t late, uint32_t k, const int64_t *tick, int64_t ticks)
{
    milp_term(p->milp, late, 1);
    for (uint32_t g = 0; g < p->devices; g++) milp_term(p->milp, place(p, k, g), -(double)tick[g]);
    milp_row(p->milp, (double)ticks, HUGE_VAL, "r_%u", milp_row_count(p->milp));
}

static struct stream_time at(uint32_t column, int64_t add) { return (struct stream_time){column, add}; }

/* Adds a term unless the column is known to be 0. */
static void term(struct stream_program *p, uint32_t column, double value)
{
    if (column != NO_COLUMN) milp_term(p->milp, column, value);
}

/* --- tasks ----------------------------------------------------------------------------------- */

static enum status read_tasks(struct stream_program *p, struct error *err)
{
    const struct stream_program_request *r = p->request;
    struct dispatch *d = NULL;
    uint32_t *last = alloc_zeroed(p->in->job_count, sizeof *last);
    if (!last) return error_memory(err, "a program", p->in->job_count * sizeof *last);
    if (dispatch_create(p->in, &d, err)) goto out;
    dispatch_copy(d, r->before);
    p->horizon = r->limit;
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t job = r->steps[k].job, position = d->jobs[job].next;
        struct stream_program_task *t = &p->tasks[k];
        *t = (struct stream_program_task){.job = job, .unit = d->jobs[job].unit, .before = NO_TASK, .writer = NO_TASK,
                                          .keep = NO_COLUMN, .edge = NO_COLUMN, .first = last[job] == 0};
        t->compute = instance_compute(p->in, t->unit, 0);
        t->head = max_i64(stream_bound_head(p->in, job, position), r->before->jobs[job].ended);
        t->last = r->limit - stream_bound_tail(p->in, job, position);
        if (last[job] > 0) t->before = last[job] - 1;
        for (uint32_t w = t->before; w != NO_TASK && t->writer == NO_TASK; w = p->tasks[w].before)
            if (unit_of(p, w)->writes && instance_resident(unit_of(p, w), unit_of(p, k))) t->writer = w;
        last[job] = k + 1;
        p->horizon += unit_of(p, k)->edge_out;
        dispatch_put(d, job, r->steps[k].device);
        if (t->head > t->last)
            error_set(err, STATUS_INFEASIBLE, "no schedule ends by %lld: a task's window is empty",
                      (long long)r->limit);
    }
out:
    dispatch_destroy(d);
    free(last);
    return err->status;
}

static uint32_t add_work(struct stream_program *p, uint32_t k, int64_t ticks, const char *what)
{
    uint32_t column = time_column(p, p->request->before->streams->host + ticks, what, k);
    p->works[p->work_count++] = (struct stream_host_work){column, k, ticks};
    return column;
}

static void add_task_columns(struct stream_program *p, uint32_t k)
{
    struct stream_program_task *t = &p->tasks[k];
    const struct instance_unit *u = unit_of(p, k);
    for (uint32_t g = 0; g < p->devices; g++) { /* before any task equal devices are the same: job i begins on one */
        bool may = p->request->before->streams->last_start >= 0 || !t->first || g <= t->job;
        p->places[k * p->devices + g] = milp_column(p->milp, 0, may ? 1 : 0, 0, true, "x_%u_%u", k, g);
    }
    t->in = time_column(p, (u->memory > 0 ? u->in : 0) + u->table, "in", k);
    t->free = time_column(p, 0, "free", k);
    t->start = milp_column(p->milp, (double)t->head, (double)t->last, 0, false, "s_%u", k);
    t->edge = time_column(p, 0, "edge", k);
    if (u->edge_in > 0) t->keep = milp_column(p->milp, 0, 1, 0, true, "keep_%u", k);
    t->end = at(t->start, t->compute);
    t->edge_out = at(t->edge, 0);
    t->left = u->out > 0 ? at(t->edge, u->out) : t->end;
    t->buffer = u->out_apart ? t->end : t->left;
    t->ready = t->left;
    t->goes_on = t->end;
    t->boundary = t->edge_out;
    if (u->update > 0) t->ready = at(add_work(p, k, u->update, "update"), 0);
    if (u->host_after > 0) t->goes_on = t->boundary = at(add_work(p, k, u->host_after, "after"), 0);
}

static void add_pairs(struct stream_program *p)
{
    struct milp *m = p->milp;
    for (uint32_t j = 0; j < p->n; j++)
        for (uint32_t k = 0; k < p->n; k++) {
            bool may = j != k && (p->tasks[j].job != p->tasks[k].job || j < k) &&
                       p->tasks[j].head + p->tasks[j].compute <= p->tasks[k].last;
            p->pairs[(size_t)j * p->n + k] = may ? milp_column(m, 0, 1, 0, true, "y_%u_%u", j, k) : NO_COLUMN;
        }
    for (uint32_t k = 0; k < p->n; k++) {
        for (uint32_t g = 0; g < p->devices; g++) milp_term(m, place(p, k, g), 1);
        milp_row(m, 1, 1, "once_%u", k);
    }
    for (uint32_t j = 0; j < p->n; j++)
        for (uint32_t k = j + 1; k < p->n; k++)
            for (uint32_t g = 0; g < p->devices; g++) {
                milp_term(m, place(p, j, g), 1);
                milp_term(m, place(p, k, g), 1);
                term(p, pair(p, j, k), -1);
                term(p, pair(p, k, j), -1);
                milp_row(m, -HUGE_VAL, 1, "together_%u_%u_%u", j, k, g);
                milp_term(m, place(p, j, g), 1);
                milp_term(m, place(p, k, g), -1);
                term(p, pair(p, j, k), 1);
                term(p, pair(p, k, j), 1);
                milp_row(m, -HUGE_VAL, 1, "apart_%u_%u_%u", j, k, g);
            }
}

/* --- what a task waits for ------------------------------------------------------------------- */

/* Reads one clock of all devices; `buffer`: the next use of one. */
static const int64_t *clock_of(const struct stream_program *p, size_t offset, int64_t *out)
{
    for (uint32_t g = 0; g < p->devices; g++)
        out[g] = *(const int64_t *)((const char *)&p->request->before->streams->devices[g] + offset);
    return out;
}

/* A task comes after all buffers that were used two places before it, or earlier: these are free when their copies in
 * ended. That it may also wait for the copy out of exactly the task two places before is left out. */
static void add_buffers(struct stream_program *p, uint32_t k, int64_t *scratch)
{
    const struct stream_device *devices = p->request->before->streams->devices;
    const struct instance_unit *u = unit_of(p, k);
    uint32_t slots = p->in->classes[0].slots;
    for (uint32_t use = 0; use < slots && use < 2; use++) { /* the first uses, after tasks before the program's */
        for (uint32_t g = 0; g < p->devices; g++) {
            uint32_t b = (devices[g].turn + use) % slots;
            scratch[g] = devices[g].buffer[b];
        }
        if (use == 0) after_device(p, p->tasks[k].in, k, scratch, u->in + u->table);
        for (uint32_t j = 0; j < p->n && use == 1; j++)
            for (uint32_t g = 0; g < p->devices && j != k; g++) {
                const uint32_t both[] = {pair(p, j, k), place(p, k, g)};
                if (unit_of(p, j)->memory > 0)
                    after(p, p->tasks[k].in, at(NO_COLUMN, scratch[g]), u->in + u->table, both, 2);
            }
    }
    for (uint32_t j = 0; j < p->n && slots <= 2; j++) {
        if (j == k || unit_of(p, j)->memory == 0) continue;
        for (uint32_t i = 0; i < p->n; i++) {
            const uint32_t both[] = {pair(p, j, i), pair(p, i, k)};
            bool between = slots == 1 ? i == k : i != j && i != k && unit_of(p, i)->memory > 0;
            if (!between) continue;
            after(p, p->tasks[k].in, p->tasks[j].buffer, u->in + u->table, both, slots == 1 ? 1 : 2);
        }
    }
}

/* The boundary stays only if the job's task before it is the device's, too. */
static void add_boundary(struct stream_program *p, uint32_t k, struct stream_time boundary)
{
    struct stream_program_task *t = &p->tasks[k];
    const struct instance_unit *u = unit_of(p, k);
    const struct dispatch *d = p->request->before;
    struct milp *m = p->milp;
    uint32_t old = t->first ? d->jobs[t->job].device : TIMETABLE_NONE;
    bool host = u->host_before > 0 || (t->before != NO_TASK && unit_of(p, t->before)->host_after > 0);
    if (t->first && old != TIMETABLE_NONE)
        host |= d->devices[old].job != t->job || p->in->units[d->devices[old].unit].host_after > 0;
    host |= t->first && old == TIMETABLE_NONE;
    milp_term(m, t->keep, 1);
    if (t->before != NO_TASK) term(p, pair(p, t->before, k), -1);
    else if (!host) milp_term(m, place(p, k, old), -1);
    milp_row(m, -HUGE_VAL, 0, "stays_%u", k);
    if (host) {
        milp_term(m, t->keep, 1);
        milp_row(m, 0, 0, "moves_%u", k);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        if (i == k || i == t->before) continue;
        milp_term(m, t->keep, 1);
        term(p, pair(p, i, k), 1);
        if (t->before != NO_TASK) term(p, pair(p, t->before, i), 1);
        milp_row(m, -HUGE_VAL, t->before != NO_TASK ? 2 : 1, "between_%u_%u", k, i);
    }
    milp_term(m, t->free, 1);
    milp_term(m, t->in, -1);
    milp_term(m, t->keep, (double)u->edge_in);
    milp_row(m, (double)u->edge_in, HUGE_VAL, "copied_%u", k);
    double big = (double)(p->horizon + u->edge_in);
    milp_term(m, t->free, 1);
    if (boundary.column != NO_COLUMN) milp_term(m, boundary.column, -1);
    milp_term(m, t->keep, big);
    milp_row(m, (double)(u->edge_in + boundary.add), HUGE_VAL, "boundary_%u", k);
}

static void add_waits(struct stream_program *p, uint32_t k, int64_t *scratch)
{
    struct stream_program_task *t = &p->tasks[k];
    const struct instance_unit *u = unit_of(p, k);
    const struct dispatch *d = p->request->before;
    struct stream_time arrives = at(NO_COLUMN, d->jobs[t->job].ended);
    struct stream_time boundary = at(NO_COLUMN, d->streams->boundary[t->job]);
    int64_t ready = d->streams->ready[d->streams->state_of[t->unit]];
    int64_t copy = (u->memory > 0 ? u->in : 0) + u->table;
    if (t->before != NO_TASK) {
        arrives = p->tasks[t->before].goes_on;
        boundary = p->tasks[t->before].boundary;
    }
    if (u->host_before > 0) {
        uint32_t work = add_work(p, k, u->host_before, "before");
        always_after(p, work, arrives, u->host_before);
        arrives = boundary = at(work, 0);
    }
    always_after(p, t->start, arrives, 0);
    always_after(p, t->in, t->writer != NO_TASK ? p->tasks[t->writer].ready : at(NO_COLUMN, ready), copy);
    if (u->after_host) {
        uint32_t w = t->before;
        while (w != NO_TASK && unit_of(p, w)->host_after == 0) w = p->tasks[w].before;
        struct stream_time home = w != NO_TASK ? p->tasks[w].goes_on : at(NO_COLUMN, d->streams->home[t->job]);
        always_after(p, t->in, home, u->table > 0 ? u->table : copy);
    }
    uint32_t copied = copy > 0 || u->memory > 0 ? t->in : t->free;
    after_device(p, copied, k, clock_of(p, offsetof(struct stream_device, in), scratch), copy);
    after_device(p, t->start, k, clock_of(p, offsetof(struct stream_device, compute), scratch), 0);
    after_device(p, t->edge, k, clock_of(p, offsetof(struct stream_device, out), scratch), u->edge_out);
    always_after(p, t->free, at(t->in, 0), 0);
    always_after(p, t->start, at(t->in, 0), 0);
    if (u->edge_in > 0) { /* copied, unless it stays */
        milp_term(p->milp, t->start, 1);
        milp_term(p->milp, t->free, -1);
        milp_term(p->milp, t->keep, (double)p->horizon);
        milp_row(p->milp, 0, HUGE_VAL, "read_%u", k);
    }
    always_after(p, t->edge, t->end, u->edge_out);
    if (u->edge_in > 0) add_boundary(p, k, boundary);
    if (u->memory > 0) add_buffers(p, k, scratch);
    for (uint32_t j = 0; j < p->n; j++) {
        const uint32_t y[] = {pair(p, j, k)};
        if (j == k) continue;
        after(p, copied, at(p->tasks[j].free, 0), copy, y, 1);
        after(p, t->start, p->tasks[j].end, 0, y, 1);
        after(p, t->edge, at(p->tasks[j].edge, unit_of(p, j)->out), u->edge_out, y, 1);
    }
    if (u->update > 0) always_after(p, t->ready.column, at(t->edge, u->out), u->update);
    if (u->host_after > 0) always_after(p, t->goes_on.column, t->edge_out, u->host_after);
}

/* The host's processor does one work at a time; a job's works in their order. */
static void add_host(struct stream_program *p)
{
    for (uint32_t a = 0; a < p->work_count; a++)
        for (uint32_t b = a + 1; b < p->work_count; b++) {
            const struct stream_host_work *x = &p->works[a], *y = &p->works[b];
            if (p->tasks[x->task].job == p->tasks[y->task].job) continue; /* the chain orders them */
            uint32_t order[] = {milp_column(p->milp, 0, 1, 0, true, "u_%u_%u", a, b)};
            after(p, y->column, at(x->column, 0), y->ticks, order, 1);
            double big = (double)(p->horizon + x->ticks);
            milp_term(p->milp, x->column, 1);
            milp_term(p->milp, y->column, -1);
            milp_term(p->milp, order[0], big);
            milp_row(p->milp, (double)x->ticks, HUGE_VAL, "r_%u", milp_row_count(p->milp));
        }
}

/* --- the end --------------------------------------------------------------------------------- */

/* Adds C >= time + tail, if all of the columns are 1. */
static void ends(struct stream_program *p, struct stream_time time, int64_t tail, const uint32_t *columns,
                 uint32_t count)
{
    if (tail >= 0) after(p, p->makespan, time, tail, columns, count);
}

static void add_ends(struct stream_program *p, uint32_t k)
{
    const struct stream_tails *rest = p->request->after;
    const struct stream_program_task *t = &p->tasks[k];
    uint32_t slots = p->in->classes[0].slots, state = p->request->before->streams->state_of[t->unit];
    ends(p, t->left, 0, NULL, 0);
    ends(p, t->ready, 0, NULL, 0);
    ends(p, t->goes_on, 0, NULL, 0);
    if (!rest) return;
    bool last = true, writes_last = unit_of(p, k)->writes;
    for (uint32_t j = k + 1; j < p->n; j++) {
        last &= p->tasks[j].job != t->job;
        writes_last &= p->tasks[j].job != t->job || !unit_of(p, j)->writes ||
                       !instance_resident(unit_of(p, j), unit_of(p, k));
    }
    if (last) ends(p, t->goes_on, rest->ended[t->job], NULL, 0);
    if (last) ends(p, t->boundary, rest->boundary[t->job], NULL, 0);
    if (writes_last) ends(p, t->ready, rest->ready[state], NULL, 0);
    for (uint32_t g = 0; g < p->devices; g++) {
        const struct stream_device_tails *on = &rest->devices[g];
        const uint32_t x[] = {place(p, k, g)};
        ends(p, at(t->free, 0), on->in, x, 1);
        ends(p, t->end, on->compute, x, 1);
        ends(p, at(t->edge, unit_of(p, k)->out), on->out, x, 1);
        if (unit_of(p, k)->memory == 0) continue;
        ends(p, t->buffer, on->buffer[slots - 1], x, 1); /* the last task's is the last to be used again */
        for (uint32_t j = 0; j < p->n && slots > 1; j++) {
            const uint32_t both[] = {pair(p, k, j), place(p, k, g)};
            if (j == k || unit_of(p, j)->memory == 0) continue;
            ends(p, t->buffer, on->buffer[slots - 2], both, 2);
        }
    }
}

/* Adds C >= what a device had before, all of the tasks' ticks on it, and what follows. */
static void add_load(struct stream_program *p, uint32_t g, int64_t before, int64_t tail, int64_t (*ticks)(
                         const struct stream_program *p, uint32_t k), const char *what)
{
    milp_term(p->milp, p->makespan, 1);
    for (uint32_t k = 0; k < p->n; k++) {
        int64_t load = ticks(p, k);
        if (load > 0) milp_term(p->milp, place(p, k, g), -(double)load);
    }
    milp_row(p->milp, (double)(before + max_i64(tail, 0)), HUGE_VAL, "%s_%u", what, g);
}

static int64_t compute_of(const struct stream_program *p, uint32_t k) { return p->tasks[k].compute; }
static int64_t in_of(const struct stream_program *p, uint32_t k)
{
    return (unit_of(p, k)->memory > 0 ? unit_of(p, k)->in : 0) + unit_of(p, k)->table;
}
static int64_t out_of(const struct stream_program *p, uint32_t k) { return unit_of(p, k)->out; }

static void add_loads(struct stream_program *p)
{
    const struct stream_tails *rest = p->request->after;
    int64_t work = p->request->before->streams->host;
    for (uint32_t g = 0; g < p->devices; g++) {
        const struct stream_device *from = &p->request->before->streams->devices[g];
        add_load(p, g, from->compute, rest ? rest->devices[g].compute : 0, compute_of, "load");
        add_load(p, g, from->in, rest ? rest->devices[g].in : 0, in_of, "loadin");
        add_load(p, g, from->out, rest ? rest->devices[g].out : 0, out_of, "loadout");
    }
    for (uint32_t w = 0; w < p->work_count; w++) {
        work += p->works[w].ticks;
        if (rest) ends(p, at(p->works[w].column, 0), rest->host, NULL, 0);
    }
    if (p->work_count == 0) return;
    milp_term(p->milp, p->makespan, 1);
    milp_row(p->milp, (double)(work + (rest ? max_i64(rest->host, 0) : 0)), HUGE_VAL, "hostload");
}

static void write_program(struct stream_program *p, int64_t *scratch)
{
    p->makespan = milp_column(p->milp, 0, (double)p->request->limit, 1, true, "C");
    for (uint32_t k = 0; k < p->n; k++) add_task_columns(p, k);
    add_pairs(p);
    for (uint32_t k = 0; k < p->n; k++) add_waits(p, k, scratch);
    add_host(p);
    for (uint32_t k = 0; k < p->n; k++) add_ends(p, k);
    add_loads(p);
}

/* --- public ---------------------------------------------------------------------------------- */

enum status stream_program_create(const struct stream_program_request *request, struct stream_program **out,
                                  struct error *err)
{
    const struct instance *in = request->before->in;
    if (in->class_count > 1)
        return error_set(err, STATUS_LIMIT, "programs of orders are of one class of devices");
    if (request->count > STREAM_PROGRAM_TASKS_MAX)
        return error_set(err, STATUS_LIMIT, "too many tasks for a program (limit is %d)", STREAM_PROGRAM_TASKS_MAX);
    if (request->limit > 10000000)
        return error_set(err, STATUS_LIMIT, "times of %lld ticks drown in a solver's tolerances (limit is 10000000)",
                         (long long)request->limit);
    struct stream_program *p = alloc_zeroed(1, sizeof *p);
    if (!p) return error_memory(err, "a program", sizeof *p);
    size_t n = request->count;
    *p = (struct stream_program){.request = request, .in = in, .n = request->count, .devices = in->device_count,
                                 .milp = milp_create("streams")};
    p->tasks = alloc_zeroed(n + 1, sizeof *p->tasks);
    p->places = alloc_zeroed(n * p->devices + 1, sizeof *p->places);
    p->pairs = alloc_zeroed(n * n + 1, sizeof *p->pairs);
    p->works = alloc_zeroed(3 * n + 1, sizeof *p->works);
    int64_t *scratch = alloc_zeroed(p->devices, sizeof *scratch);
    if (!p->milp || !p->tasks || !p->places || !p->pairs || !p->works || !scratch)
        error_memory(err, "a program", n * n * sizeof *p->pairs);
    else if (!read_tasks(p, err)) write_program(p, scratch);
    free(scratch);
    if (err->status) stream_program_destroy(p);
    else *out = p;
    return err->status;
}

void stream_program_destroy(struct stream_program *p)
{
    if (!p) return;
    milp_destroy(p->milp);
    free(p->tasks);
    free(p->places);
    free(p->pairs);
    free(p->works);
    free(p);
}

const struct milp *stream_program_milp(const struct stream_program *p) { return p->milp; }

enum status stream_program_steps(const struct stream_program *p, const double *x, struct dispatch_step *steps,
                                 struct error *err)
{
    bool *done = alloc_zeroed(p->n + 1u, sizeof *done);
    if (!done) return error_memory(err, "an order", p->n * sizeof *done);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t next = NO_TASK;
        for (uint32_t k = 0; k < p->n; k++) { /* by starts, a job's tasks in their order */
            uint32_t before = p->tasks[k].before;
            if (done[k] || (before != NO_TASK && !done[before])) continue;
            if (next == NO_TASK || x[p->tasks[k].start] < x[p->tasks[next].start]) next = k;
        }
        uint32_t device = 0;
        for (uint32_t g = 0; g < p->devices; g++)
            if (x[place(p, next, g)] > 0.5) device = g;
        done[next] = true;
        steps[i] = (struct dispatch_step){p->tasks[next].job, device};
    }
    free(done);
    return STATUS_OK;
}
