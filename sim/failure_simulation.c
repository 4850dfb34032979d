/*
 * Owners of the event queue: places of devices, for failures; devices under repair; places again, for slow times; and
 * one for the trace's next event. A place is empty when its device is away without a spare.
 */
#include "sim/failure_simulation.h"

#include <math.h>

#include "base/random.h"
#include "sim/engine/queue.h"

enum phase { WORKING, WRITING, RESTARTING, WAITING };

/* Order of events at equal times. */
enum { ORDER_RETURN, ORDER_SLOW, ORDER_FAIL, ORDER_TRACE };

struct runner {
    const struct failure_simulation_case *of;
    const struct failures *f;
    struct sim_queue *queue;
    struct error *err;
    uint32_t places, repairs;  /* number of owners of each kind */
    uint32_t *draws;           /* by owner: random numbers used */
    bool *empty;               /* by place */
    bool *slow;                /* by place: slow by a random event */
    uint32_t *repair_next;     /* a stack of unused repair owners */
    uint32_t repair_free;
    uint32_t trace_next;       /* of failures->events */
    uint32_t *active;          /* slow times among earlier events that are not over */
    uint32_t active_count;
    uint32_t present, joining, spares, slow_count;
    double now_s, done_s, saved_s, phase_end_s;
    enum phase phase;
    struct failure_simulation *out;
};

static uint32_t repair_owner(const struct runner *r, uint32_t repair) { return r->places + repair; }
static uint32_t slow_owner(const struct runner *r, uint32_t place) { return r->places + r->repairs + place; }
static uint32_t trace_owner(const struct runner *r) { return 2 * r->places + r->repairs; }

/* --- chance ---------------------------------------------------------------------------------- */

static double exponential_s(struct runner *r, uint32_t owner, double mean_s)
{
    return mean_s * random_exponential(random_u64(r->of->seed, owner), r->draws[owner]++);
}

static void draw_failure(struct runner *r, uint32_t place)
{
    if (r->f->mtbf_s == HUGE_VAL) return;
    double life_s = failures_life_s(r->f, exponential_s(r, place, 1));
    sim_queue_set(r->queue, place, r->now_s + life_s, sim_order(ORDER_FAIL, place));
}

static void draw_slow(struct runner *r, uint32_t place)
{
    if (r->f->straggle_every_s == HUGE_VAL) return;
    double s = exponential_s(r, slow_owner(r, place), r->slow[place] ? r->f->straggle_s : r->f->straggle_every_s);
    sim_queue_set(r->queue, slow_owner(r, place), r->now_s + s, sim_order(ORDER_SLOW, place));
}

static void set_trace(struct runner *r)
{
    if (r->trace_next == r->f->event_count) return;
    sim_queue_set(r->queue, trace_owner(r), fmax(r->f->events[r->trace_next].at_s, r->now_s),
                  sim_order(ORDER_TRACE, 0));
}

/* --- work ------------------------------------------------------------------------------------ */

static double ends_s(const struct failure_event *event) { return event->at_s + event->for_s; }

/* Returns the factor of a step's time. */
static double slowdown(const struct runner *r)
{
    double factor = r->slow_count > 0 ? r->f->straggle_factor : 1;
    for (uint32_t i = 0; i < r->active_count; i++) factor = fmax(factor, r->f->events[r->active[i]].factor);
    return factor * r->places / r->present;
}

/* Returns the trace's next end of a slow time, which changes speeds. */
static double next_change_s(const struct runner *r)
{
    double next_s = HUGE_VAL;
    for (uint32_t i = 0; i < r->active_count; i++) next_s = fmin(next_s, ends_s(&r->f->events[r->active[i]]));
    return next_s;
}

static void forget_ended(struct runner *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->active_count; i++)
        if (ends_s(&r->f->events[r->active[i]]) > r->now_s) r->active[kept++] = r->active[i];
    r->active_count = kept;
}

/* Adds devices that returned while the run was working. */
static void add_returned(struct runner *r)
{
    r->present += r->joining;
    r->joining = 0;
}

static uint32_t needed(const struct runner *r) { return r->f->elastic ? r->f->least : r->places; }

static void enter(struct runner *r, enum phase phase)
{
    r->phase = phase;
    r->phase_end_s = HUGE_VAL;
    if (phase == WRITING) r->phase_end_s = r->now_s + r->f->checkpoint_s;
    if (phase == RESTARTING) r->phase_end_s = r->now_s + r->f->restart_s;
}

/* Restarts from the last checkpoint, with the available devices. */
static void start_again(struct runner *r)
{
    r->out->again_s += r->done_s - r->saved_s;
    r->out->work_s -= r->done_s - r->saved_s;
    r->done_s = r->saved_s;
    enter(r, r->present >= needed(r) ? RESTARTING : WAITING);
}

/* Advances to `until_s`; no event comes before. */
static void pass_time(struct runner *r, double until_s)
{
    double span_s = until_s - r->now_s;
    switch (r->phase) {
    case WORKING: {
        double useful_s = span_s / slowdown(r);
        r->done_s += useful_s;
        r->out->work_s += useful_s;
        r->out->slow_s += span_s - useful_s;
        break;
    }
    case WRITING: r->out->checkpoint_s += span_s; break;
    case RESTARTING: r->out->restart_s += span_s; break;
    case WAITING: r->out->waiting_s += span_s; break;
    }
    r->now_s = until_s;
    forget_ended(r);
}

/* Returns the next checkpoint or the end of work. */
static double work_ends_s(const struct runner *r)
{
    double left_s = fmin(r->of->work_s, r->saved_s + r->of->checkpoint_every_s) - r->done_s;
    return r->now_s + left_s * slowdown(r);
}

/* Ends the phase as planned. Returns false if the run ends with it. */
static bool end_phase(struct runner *r)
{
    double mark_s = fmin(r->of->work_s, r->saved_s + r->of->checkpoint_every_s);
    switch (r->phase) {
    case WORKING:
        r->out->work_s += mark_s - r->done_s; /* rounding error */
        r->done_s = mark_s;
        if (r->done_s >= r->of->work_s) return false;
        enter(r, WRITING);
        return true;
    case WRITING:
        r->saved_s = r->done_s;
        add_returned(r);
        break;
    default: break;
    }
    enter(r, WORKING);
    return true;
}

/* --- devices --------------------------------------------------------------------------------- */

static void fill_place(struct runner *r, uint32_t place)
{
    r->empty[place] = false;
    draw_failure(r, place);
    /* a working run adds it at its next stop */
    if (r->phase == WORKING || r->phase == WRITING)
        r->joining++;
    else
        r->present++;
    if (r->phase == WAITING && r->present >= needed(r)) enter(r, RESTARTING);
}

static void come_back(struct runner *r)
{
    for (uint32_t place = 0; place < r->places; place++) {
        if (!r->empty[place]) continue;
        fill_place(r, place);
        return;
    }
    r->spares++;
}

static void repair(struct runner *r, double seconds)
{
    uint32_t repair = r->repair_next[--r->repair_free];
    sim_queue_set(r->queue, repair_owner(r, repair), r->now_s + seconds, sim_order(ORDER_RETURN, repair));
}

/* Removes the place's device for away_s seconds; < 0: for a random repair time. */
static void lose(struct runner *r, uint32_t place, double away_s)
{
    if (r->empty[place]) return;
    sim_queue_remove(r->queue, place);
    r->out->interruptions++;
    r->empty[place] = true;
    add_returned(r); /* the run stops here, and may include returned devices */
    r->present--;
    if (away_s < 0) away_s = r->f->repair_s > 0 ? exponential_s(r, place, r->f->repair_s) : 0;
    if (r->phase != WAITING) start_again(r); /* before a spare replaces it at once */
    if (away_s > 0) {
        repair(r, away_s);
        if (r->spares == 0) return;
        r->spares--;
    }
    fill_place(r, place);
}

static void play_trace(struct runner *r)
{
    const struct failure_event *event = &r->f->events[r->trace_next++];
    if (event->factor <= 0)
        lose(r, event->device, event->for_s);
    else if (event->for_s > 0)
        r->active[r->active_count++] = r->trace_next - 1;
    set_trace(r);
}

static void happen(struct runner *r, const struct sim_event *event)
{
    uint32_t owner = event->owner;
    if (owner < r->places) {
        lose(r, owner, -1);
    } else if (owner < r->places + r->repairs) {
        r->repair_next[r->repair_free++] = owner - r->places;
        come_back(r);
    } else if (owner < trace_owner(r)) {
        uint32_t place = owner - r->places - r->repairs;
        r->slow[place] = !r->slow[place];
        r->slow_count += r->slow[place] ? 1 : UINT32_MAX;
        draw_slow(r, place);
    } else {
        play_trace(r);
    }
}

/* --- the run --------------------------------------------------------------------------------- */

static enum status begin(struct runner *r, struct arena *arena)
{
    uint32_t owners = trace_owner(r) + 1;
    if (ARENA_NEW(arena, owners, r->draws, r->err) ||
        ARENA_NEW(arena, r->places, r->empty, r->err) ||
        ARENA_NEW(arena, r->places, r->slow, r->err) ||
        ARENA_NEW(arena, r->f->event_count, r->active, r->err) ||
        ARENA_NEW(arena, r->repairs, r->repair_next, r->err) ||
        sim_queue_create(arena, owners, &r->queue, r->err))
        return r->err->status;
    for (uint32_t i = 0; i < r->repairs; i++) r->repair_next[r->repair_free++] = i;
    for (uint32_t place = 0; place < r->places; place++) {
        draw_failure(r, place);
        draw_slow(r, place);
    }
    set_trace(r);
    enter(r, WORKING);
    return STATUS_OK;
}

static void run(struct runner *r)
{
    double patience_s = FAILURE_SIMULATION_PATIENCE * r->of->work_s;
    while (r->now_s < patience_s) {
        double end_s = r->phase == WORKING ? work_ends_s(r) : r->phase_end_s;
        double change_s = r->phase == WORKING ? next_change_s(r) : HUGE_VAL;
        struct sim_event event;
        bool any = sim_queue_first(r->queue, &event);
        if (change_s < end_s && (!any || change_s <= event.time_s)) {
            pass_time(r, change_s);
        } else if (any && event.time_s < end_s) {
            (void)sim_queue_pop(r->queue, &event);
            pass_time(r, event.time_s);
            happen(r, &event);
        } else if (end_s < HUGE_VAL) {
            pass_time(r, end_s);
            if (!end_phase(r)) {
                r->out->ended = true;
                return;
            }
        } else {
            return; /* no device will return */
        }
    }
}

enum status failure_simulation_run(const struct failure_simulation_case *of, struct failure_simulation *out,
                                   struct error *err)
{
    *out = (struct failure_simulation){0};
    struct runner r = {.of = of, .f = of->failures, .err = err, .places = of->devices, .present = of->devices,
                       .spares = of->failures->spares, .repairs = of->devices + of->failures->spares, .out = out};
    struct arena arena = {0};
    if (begin(&r, &arena) == STATUS_OK) run(&r);
    out->wall_s = r.now_s;
    arena_release(&arena);
    return err->status;
}
