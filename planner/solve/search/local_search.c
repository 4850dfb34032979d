/*
 * Steps are in the order of their starts. The split (local_split.h) advances through them; at each step, `at`, changes
 * of this and the next ones are tried. Most ways across a split are nearly as long as the makespan, so few changes make
 * the longest shorter. The objective is therefore the sum over all ways of exp((length - makespan) / sharpness).
 *
 * Changes are as in local_window.h, and one more:
 *
 *     cross     two devices (of a class) exchange their futures from here on, which needs no dispatch. So steps after
 *               the front name sequences and not devices, and a sequence gets its device when the front reaches it
 *
 * Source: heads and tails of job shop moves, Taillard, "Parallel taboo search techniques for the job shop scheduling
 * problem", 1994; machines chosen as well, Mastrolilli and Gambardella, 2000; worsenings taken at random, Kirkpatrick,
 * Gelatt and Vecchi, 1983.
 */
#include "planner/solve/search/local_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/anytime.h"
#include "base/random.h"
#include "planner/solve/instance/bridge_bytes.h"
#include "planner/solve/search/local_window.h"

/* Devices to cross with at each step; longest wait worth judging, in units of the sharpness. */
enum { CROSSES_MAX = 8, PATIENCE = 4 };
enum { WORSENINGS = 1024 };

/* Errors of estimated additions by swaps: of one end, and of both. */
static const double end_error = 3, estimate_error = 0.3;

/* The bridge's way counts 1/e of its weight if it is shorter by this number of mean copies. */
static const double bridge_softness = 4;

struct local_search_timed {
    int64_t start;
    uint32_t at;
};

struct local_search {
    struct local_split split;
    struct dispatch_step *order;
    struct local_search_timed *timed; /* for sorting */
    struct local_window *window;
    double worsenings[WORSENINGS]; /* exponentially distributed: quantiles */
    uint32_t at;    /* the first step after the split */
    uint64_t bytes; /* moved before the split */
    double mean_copy; /* in ticks of the bridge */
};

/* --- creation -------------------------------------------------------------------------------- */

enum status local_search_create(const struct instance *in, struct local_search **out, struct error *err)
{
    struct local_search *s = alloc_zeroed(1, sizeof *s);
    if (!s) return error_memory(err, "a search", sizeof *s);
    s->order = alloc_zeroed(in->task_count, sizeof *s->order);
    s->timed = alloc_zeroed(in->task_count, sizeof *s->timed);
    if (!s->order || !s->timed) error_memory(err, "a search", in->task_count * sizeof *s->timed);
    if (err->status || local_split_init(in, &s->split, err) || local_window_create(&s->split, &s->window, err)) {
        local_search_destroy(s);
        return err->status;
    }
    for (uint32_t u = 0; u < in->unit_count && in->bridge_bytes_per_tick > 0; u++)
        s->mean_copy += (double)in->jobs[in->units[u].job].repeat * (double)in->units[u].in_bytes / in->task_count;
    if (in->bridge_bytes_per_tick > 0) s->mean_copy /= (double)in->bridge_bytes_per_tick;
    for (uint32_t i = 0; i < WORSENINGS; i++) s->worsenings[i] = -log((i + 0.5) / WORSENINGS);
    *out = s;
    return STATUS_OK;
}

void local_search_destroy(struct local_search *s)
{
    if (!s) return;
    local_window_destroy(s->window);
    local_split_release(&s->split);
    free(s->order);
    free(s->timed);
    free(s);
}

void local_search_begin(struct local_search *s, const struct dispatch_step *steps)
{
    memcpy(s->order, steps, s->split.in->task_count * sizeof *steps);
}

const struct dispatch_step *local_search_order(const struct local_search *s)
{
    return s->order;
}

/* --- changes --------------------------------------------------------------------------------- */

struct local_pass {
    const struct local_rule *rule;
    uint64_t draws;
    uint32_t end; /* one past the last step within reach */
    int64_t patience;
    double worst; /* largest addition to the sum that is accepted */
};

static inline uint64_t draw(struct local_pass *w)
{
    return random_mix(w->draws += UINT64_C(0x9e3779b97f4a7c15));
}

/* Returns the largest accepted addition to the sum, by bits of a draw that no other function uses. */
static inline double worst_of(const struct local_search *s, const struct local_pass *w, uint64_t drawn)
{
    return w->rule->temperature * s->worsenings[drawn / 16 % WORSENINGS];
}

/* Returns true if the job's next task could run at the front. */
static inline bool may_come(const struct local_search *s, const struct local_pass *w, const struct local_job *j)
{
    return j->ready <= local_window_place(s->window, s->at)->start + w->patience;
}

/* Returns the change of the sum by the ways of step `at` + t, if a task of `unit` runs there from `start` on and its
 * job goes on with step `next`. */
static double swapped_ways(const struct local_search *s, uint32_t t, uint32_t unit, uint32_t next, int64_t start)
{
    const struct local_split *c = &s->split;
    const struct local_step *step = &c->steps[s->at + t];
    const struct local_place *place = local_window_place(s->window, s->at + t);
    uint32_t class = c->in->device_class[c->device_of[step->sequence]];
    double sum = -place->job_way - place->device_way;
    if (next != TIMETABLE_NONE)
        sum += local_split_weigh(c, start + instance_compute(c->in, unit, class) + c->steps[next].tail);
    if (step->next_in_sequence != TIMETABLE_NONE) {
        const struct local_step *after = &c->steps[step->next_in_sequence];
        sum += local_split_weigh(c, start + setup_table_at(&c->setups, unit, after->unit, class) + after->tail);
    }
    return sum;
}

/* Estimates whether swapping steps `at` and `at` + last may be accepted, by their own ways: most swaps are hopeless,
 * and judging them takes ten times as long. */
static bool swap_hopeful(const struct local_search *s, const struct local_pass *w, uint32_t last)
{
    const struct local_split *c = &s->split;
    const struct local_step *first = &c->steps[s->at], *other = first + last;
    const struct local_place *there = local_window_place(s->window, s->at + last);
    int64_t start = local_split_device_ready(c, c->device_of[first->sequence], other->unit);
    if (c->jobs[other->job].ended > start) start = c->jobs[other->job].ended;
    double sum = swapped_ways(s, 0, other->unit, other->next_of_job, start);
    if (sum > w->worst + end_error) return false;
    if (first->next_of_job <= s->at + last) return sum <= w->worst + estimate_error;
    start = local_split_ready_of(c, &there->device, c->device_of[other->sequence], first->unit);
    if (c->jobs[first->job].ended > start) start = c->jobs[first->job].ended;
    return sum + swapped_ways(s, last, first->unit, first->next_of_job, start) <= w->worst + estimate_error;
}

/* Swaps the jobs of two steps. Returns false if the result is not worth judging. */
static bool swap(const struct local_search *s, struct local_pass *w, uint32_t last, struct local_change *change)
{
    const struct local_step *first = &s->split.steps[s->at], *other = first + last;
    w->worst = worst_of(s, w, draw(w));
    if (first->sequence != other->sequence && !swap_hopeful(s, w, last)) return false;
    *change = (struct local_change){LOCAL_SWAP, last, 0};
    return true;
}

/* Estimates whether moving a task of step `at` or `at` + last may be accepted, by its job's way from there: most moves
 * are hopeless. */
static bool move_hopeful(const struct local_search *s, const struct local_pass *w, const struct local_change *change)
{
    const struct local_split *c = &s->split;
    const struct local_step *first = &c->steps[s->at], *other = first + change->last;
    const struct local_step *moved = change->kind == LOCAL_SOONER ? other : first;
    if (moved->next_of_job == TIMETABLE_NONE) return true;
    uint32_t device = c->device_of[(change->kind == LOCAL_LATER ? other : first)->sequence];
    int64_t start;
    if (change->kind == LOCAL_LATER) {
        start = local_window_place(s->window, s->at + change->last)->start +
                setup_table_at(&c->setups, other->unit, first->unit, c->in->device_class[device]);
    } else {
        if (change->kind == LOCAL_ELSEWHERE) device = change->to;
        start = local_split_device_ready(c, device, moved->unit);
    }
    if (c->jobs[moved->job].ended > start) start = c->jobs[moved->job].ended;
    int64_t ended = start + instance_compute(c->in, moved->unit, c->in->device_class[device]);
    float now = local_window_place(s->window, s->at + (moved == other ? change->last : 0))->job_way;
    return local_split_weigh(c, ended + c->steps[moved->next_of_job].tail) - now <= w->worst + end_error;
}

static bool draw_change(struct local_search *s, struct local_pass *w, struct local_change *change)
{
    uint64_t r = draw(w);
    w->worst = worst_of(s, w, r);
    uint32_t last = 1 + (uint32_t)((r >> 16) % (w->end - s->at - 1));
    if ((r & 15) == 0) {
        uint32_t to = (uint32_t)((r >> 40) % s->split.in->device_count);
        *change = (struct local_change){LOCAL_ELSEWHERE, 0, to};
        return to != s->split.device_of[s->split.steps[s->at].sequence] && move_hopeful(s, w, change);
    }
    *change = (struct local_change){(r & 15) < 6 ? LOCAL_SOONER : LOCAL_LATER, last, 0};
    const struct local_job *j = &s->split.jobs[s->split.steps[s->at + last].job];
    if (change->kind == LOCAL_SOONER && (j->next != s->at + last || !may_come(s, w, j))) return false;
    return move_hopeful(s, w, change);
}

/* Returns the way's weight of the job of the device's last task, which depends on the device's next task if parameters
 * would go through the host. */
static float way_of_last(const struct local_search *s, const struct local_device *d)
{
    const struct local_job *j = &s->split.jobs[d->job];
    return j->ready == j->ended ? j->way : local_split_job_way(&s->split, d->job);
}

/* Exchanges the futures of two devices. */
static void cross(struct local_search *s, uint32_t g, uint32_t h)
{
    struct local_split *c = &s->split;
    uint32_t next = c->devices[g].next, sequence = c->sequence_of[g];
    c->devices[g].next = c->devices[h].next;
    c->devices[h].next = next;
    c->sequence_of[g] = c->sequence_of[h];
    c->sequence_of[h] = sequence;
    c->device_of[c->sequence_of[g]] = g;
    c->device_of[c->sequence_of[h]] = h;
}

/* Returns the bytes that a device copies in if it goes on with step `next`. */
static uint64_t next_copy(const struct local_split *c, const struct local_device *d, uint32_t next)
{
    return next == TIMETABLE_NONE ? 0 : local_split_copy(c, d, c->steps[next].unit);
}

/* Tries to exchange the futures of two devices. Their own ways show at once that most exchanges are hopeless. */
static void try_cross(struct local_search *s, struct local_pass *w, uint32_t g, uint32_t h)
{
    struct local_device *a = &s->split.devices[g], *b = &s->split.devices[h];
    const struct local_split *c = &s->split;
    struct local_job none = {0}, *i = a->job == TIMETABLE_NONE ? &none : &s->split.jobs[a->job];
    struct local_job *k = b->job == TIMETABLE_NONE || b->job == a->job ? &none : &s->split.jobs[b->job];
    double most = (double)(a->way + b->way + i->way + k->way) + worst_of(s, w, draw(w));
    float a_way = local_split_device_way_to(&s->split, g, b->next);
    if (a_way > most) return;
    float b_way = local_split_device_way_to(&s->split, h, a->next);
    uint64_t bytes = c->bytes;
    if (c->in->bridge_bytes_per_tick > 0) {
        bytes += next_copy(c, a, b->next) + next_copy(c, b, a->next);
        bytes -= next_copy(c, a, a->next) + next_copy(c, b, b->next);
        most += (double)(local_split_bridge_way(c, c->bytes) - local_split_bridge_way(c, bytes));
    }
    if (a_way + b_way > most) return;
    cross(s, g, h);
    float i_way = i == &none ? 0 : way_of_last(s, a), k_way = k == &none ? 0 : way_of_last(s, b);
    if (a_way + b_way + i_way + k_way > most) {
        cross(s, g, h);
        return;
    }
    s->split.bytes = bytes;
    a->way = a_way;
    b->way = b_way;
    i->way = i_way;
    k->way = k_way;
    local_window_spoil(s->window);
}

/*
 * Tries to cross the last step's device with each other one of its class, or with some neighbours of many, once each:
 * drawing eight at random, with repetitions, left gaps 0.3 points larger (12 to 15 jobs on 8 devices, 250 passes).
 */
static void try_crosses(struct local_search *s, struct local_pass *w)
{
    const struct instance *in = s->split.in;
    uint32_t g = s->at > 0 ? s->order[s->at - 1].device : 0, h = g, n = in->device_count;
    if (n > CROSSES_MAX + 1) h = (uint32_t)(draw(w) >> 32) % n;
    for (uint32_t k = 0; k < CROSSES_MAX && k + 1 < n; k++) {
        h = h + 1 < n ? h + 1 : 0;
        if (h != g && in->device_class[g] == in->device_class[h]) try_cross(s, w, g, h);
    }
}

static void try_change(struct local_search *s, const struct local_pass *w, const struct local_change *change)
{
    double delta;
    if (!local_window_judge(s->window, change, w->worst, &delta)) return;
    local_window_apply(s->window, change);
    local_window_set(s->window, s->at, w->end);
}

static void try_changes(struct local_search *s, struct local_pass *w)
{
    struct local_change change;
    try_crosses(s, w);
    if (w->end - s->at < 2) return;
    local_window_set(s->window, s->at, w->end);
    if (draw_change(s, w, &change)) try_change(s, w, &change);
    for (uint32_t t = s->at + 1; t < w->end; t++) {
        const struct local_job *j = &s->split.jobs[s->split.steps[t].job];
        if (j->next != t || !may_come(s, w, j)) continue;
        if (swap(s, w, t - s->at, &change)) try_change(s, w, &change);
    }
}

/* --- a pass ---------------------------------------------------------------------------------- */

static int compare_timed(const void *a, const void *b)
{
    const struct local_search_timed *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Begins a pass: sorts steps by their starts, computes tails, and moves the front before the first step. */
static void begin_pass(struct local_search *s, double sharpness)
{
    const struct instance *in = s->split.in;
    s->split.scale = LOCAL_EXPONENT_STEPS / sharpness;
    local_split_clear(&s->split);
    for (uint32_t t = 0; t < in->task_count; t++)
        s->timed[t] = (struct local_search_timed){local_split_put(&s->split, s->order[t].job, s->order[t].device), t};
    s->split.makespan = 0;
    for (uint32_t i = 0; i < in->job_count; i++)
        if (s->split.jobs[i].end > s->split.makespan) s->split.makespan = s->split.jobs[i].end;
    qsort(s->timed, in->task_count, sizeof *s->timed, compare_timed);
    for (uint32_t t = 0; t < in->task_count; t++) {
        const struct dispatch_step *step = &s->order[s->timed[t].at];
        s->split.steps[t].job = step->job;
        s->split.steps[t].sequence = step->device;
    }
    local_split_clear(&s->split);
    local_split_set_tails(&s->split, 0, in->task_count - 1);
    local_split_count_bytes(&s->split);
    s->split.makespan = max_i64(s->split.makespan, bridge_bytes_ticks(in, s->split.bytes));
    s->split.bridge_scale = LOCAL_EXPONENT_STEPS / fmax(sharpness, bridge_softness * s->mean_copy);
    for (uint32_t i = 0; i < in->job_count; i++) s->split.jobs[i].way = local_split_job_way(&s->split, i);
    for (uint32_t g = 0; g < in->device_count; g++) s->split.devices[g].way = local_split_device_way(&s->split, g);
    local_window_spoil(s->window);
    s->at = 0;
    s->bytes = 0;
}

static void advance(struct local_search *s)
{
    const struct local_step *step = &s->split.steps[s->at];
    uint32_t device = s->split.device_of[step->sequence], prior = s->split.devices[device].job;
    const struct instance_unit *units = s->split.in->units, *unit = &units[step->unit];
    bool there = prior != TIMETABLE_NONE && instance_resident(&units[s->split.devices[device].unit], unit);
    s->bytes += (there ? 0 : unit->in_bytes) + (unit->writes ? unit->out_bytes : 0);
    s->order[s->at] = (struct dispatch_step){step->job, device};
    local_split_put(&s->split, step->job, device);
    s->split.jobs[step->job].next = step->next_of_job;
    s->split.devices[device].next = step->next_in_sequence;
    s->at++;
    local_split_set_ways(&s->split, device);
    if (prior != TIMETABLE_NONE) s->split.jobs[prior].way = local_split_job_way(&s->split, prior);
}

int64_t local_search_run(struct local_search *s, const struct local_rule *rule, double until_s)
{
    uint32_t n = s->split.in->task_count, reach = rule->reach < LOCAL_REACH_MAX ? rule->reach : LOCAL_REACH_MAX;
    struct local_pass w = {.rule = rule, .draws = random_mix(rule->seed),
                           .patience = (int64_t)(PATIENCE * rule->sharpness)};
    struct anytime limits = {.until_s = until_s, .clock_every = 64};
    begin_pass(s, rule->sharpness);
    while (s->at < n) {
        w.end = s->at + reach < n ? s->at + reach : n;
        if (anytime_step(&limits)) try_changes(s, &w);
        advance(s);
    }
    int64_t *ends = alloca(s->split.in->job_count * sizeof *ends); /* at most 512 KiB */
    for (uint32_t i = 0; i < s->split.in->job_count; i++) ends[i] = s->split.jobs[i].end;
    return instance_value(s->split.in, ends, s->bytes);
}
