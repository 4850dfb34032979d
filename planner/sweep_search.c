/*
 * Sweeps; see sweep_search.h.
 *
 * The steps of the schedule stand in the order of their starts. The cut (sweep_cut.h) goes from front to
 * back through them; at each step, `at`, changes of that and the next ones are tried. Most ways through a
 * cut are as long as the makespan, or nearly, so that hardly any change makes the longest shorter. What is
 * made smaller is the sum over all ways of exp((length - makespan) / sharpness).
 *
 * A change touches steps `at` .. `last`. To judge it these are dispatched from the front, and the ways of
 * the jobs and devices touched compared, at the cut behind `last`, with what they were without the change:
 * `base` holds the sum at each of the next cuts. The changes are
 *
 *     swap      steps `at` and `last` change jobs
 *     sooner    step `last` comes to be in front of step `at`, on that one's device
 *     later     step `at` comes to be behind step `last`, likewise
 *     elsewhere step `at` goes to another device
 *     cross     two devices (of a class) change all that they do from here on: nothing needs to be
 *               dispatched for it. Steps behind the front therefore name not devices but sequences, and
 *               which device goes on with which is decided when the front gets there
 *
 * All of them leave a valid order, since a step says only whose next task is meant.
 *
 * Source: heads and tails of job shop moves, Taillard, "Parallel taboo search techniques for the job
 * shop scheduling problem", 1994; machines chosen as well, Mastrolilli and Gambardella, 2000; worsenings
 * taken at random, Kirkpatrick, Gelatt and Vecchi, 1983.
 */
#include "planner/sweep_search.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "base/random.h"
#include "planner/sweep_cut.h"

/* Trials of crossing at each step; waits or set-ups that are not worth judging, by the sharpness. */
enum { CROSSES = 8, PATIENCE = 4 };
enum { WORSE_MAX = 12 }; /* temperatures by which it may get worse */
enum { REACH_MAX = 64 };

/* What a trial has touched, as it was. */
struct touched_job {
    uint32_t index;
    struct sweep_job was;
};
struct touched_device {
    uint32_t index;
    struct sweep_device was;
};

/* Where a step stands without a change. */
struct place {
    int64_t start, before_start; /* its own; that of the step before it on its device */
    uint32_t before;             /* the unit of that; TIMETABLE_NONE: it is the device's first */
};

struct timed {
    int64_t start;
    uint32_t at;
};

struct sweep_search {
    struct sweep_cut cut;
    struct dispatch_step *order;
    struct timed *timed; /* for sorting */
    uint64_t *job_mark, *device_mark; /* the trial that touched it last */
    uint64_t trial;
    struct touched_job touched_jobs[2 * REACH_MAX + 2];
    struct touched_device touched_devices[REACH_MAX + 2];
    uint32_t touched_job_count, touched_device_count;
    double base[REACH_MAX];
    struct place places[REACH_MAX]; /* of the next steps, without a change */
    uint32_t at;    /* the step behind the cut */
    uint64_t bytes; /* moved up to there */
};

/* --- creation -------------------------------------------------------------------------------- */

enum status sweep_search_create(const struct instance *in, struct sweep_search **out, struct error *err)
{
    struct sweep_search *s = alloc_zeroed(1, sizeof *s);
    if (!s) return error_memory(err, "a search", sizeof *s);
    s->order = alloc_zeroed(in->task_count, sizeof *s->order);
    s->timed = alloc_zeroed(in->task_count, sizeof *s->timed);
    s->job_mark = alloc_zeroed(in->job_count, sizeof *s->job_mark);
    s->device_mark = alloc_zeroed(in->device_count, sizeof *s->device_mark);
    if (!s->order || !s->timed || !s->job_mark || !s->device_mark)
        error_memory(err, "a search", in->task_count * sizeof *s->timed);
    if (err->status || sweep_cut_init(in, &s->cut, err)) {
        sweep_search_destroy(s);
        return err->status;
    }
    *out = s;
    return STATUS_OK;
}

void sweep_search_destroy(struct sweep_search *s)
{
    if (!s) return;
    sweep_cut_release(&s->cut);
    free(s->order);
    free(s->timed);
    free(s->job_mark);
    free(s->device_mark);
    free(s);
}

void sweep_search_begin(struct sweep_search *s, const struct dispatch_step *steps)
{
    memcpy(s->order, steps, s->cut.in->task_count * sizeof *steps);
}

const struct dispatch_step *sweep_search_order(const struct sweep_search *s)
{
    return s->order;
}

/* --- trials ---------------------------------------------------------------------------------- */

static inline void touch_job(struct sweep_search *s, uint32_t job)
{
    if (s->job_mark[job] == s->trial) return;
    s->job_mark[job] = s->trial;
    struct touched_job *touched = &s->touched_jobs[s->touched_job_count++];
    touched->index = job;
    touched->was = s->cut.jobs[job];
}

static inline void touch_device(struct sweep_search *s, uint32_t device)
{
    if (s->device_mark[device] == s->trial) return;
    s->device_mark[device] = s->trial;
    struct touched_device *touched = &s->touched_devices[s->touched_device_count++];
    touched->index = device;
    touched->was = s->cut.devices[device];
    uint32_t job = s->cut.devices[device].job; /* may have, or lose, its next task as a direct neighbour */
    if (job != TIMETABLE_NONE && s->cut.jobs[job].ready != s->cut.jobs[job].ended) touch_job(s, job);
}

static inline void begin_trial(struct sweep_search *s)
{
    s->trial++;
    s->touched_job_count = s->touched_device_count = 0;
}

static inline void undo_trial(struct sweep_search *s)
{
    for (uint32_t i = 0; i < s->touched_job_count; i++)
        s->cut.jobs[s->touched_jobs[i].index] = s->touched_jobs[i].was;
    for (uint32_t i = 0; i < s->touched_device_count; i++)
        s->cut.devices[s->touched_devices[i].index] = s->touched_devices[i].was;
}

/* base[]: the sum over all ways, at the cut behind each of the next steps, less that at the front. */
static void set_base(struct sweep_search *s, uint32_t end)
{
    double sum = 0;
    begin_trial(s);
    for (uint32_t t = s->at; t < end; t++) {
        const struct sweep_step *step = &s->cut.steps[t];
        uint32_t device = s->cut.device_of[step->sequence], prior = s->cut.devices[device].job;
        touch_job(s, step->job);
        touch_device(s, device);
        struct sweep_job *j = &s->cut.jobs[step->job];
        struct sweep_device *d = &s->cut.devices[device];
        bool host = prior != TIMETABLE_NONE && prior != step->job &&
                    s->cut.jobs[prior].ready != s->cut.jobs[prior].ended;
        if (host) touch_job(s, prior);
        struct place *place = &s->places[t - s->at];
        place->before = d->job == TIMETABLE_NONE ? TIMETABLE_NONE : d->unit;
        place->before_start = d->start;
        place->start = sweep_cut_put(&s->cut, step->job, device);
        j->next = step->next_of_job;
        d->next = step->next_in_sequence;
        sum -= j->way + d->way;
        j->way = sweep_cut_job_way(&s->cut, step->job);
        d->way = sweep_cut_device_way(&s->cut, device);
        sum += j->way + d->way;
        if (host) {
            sum -= s->cut.jobs[prior].way;
            s->cut.jobs[prior].way = sweep_cut_job_way(&s->cut, prior);
            sum += s->cut.jobs[prior].way;
        }
        s->base[t - s->at] = sum;
    }
    undo_trial(s);
}

/* A change: steps at .. at + count become these; they name devices. */
struct change {
    struct dispatch_step steps[REACH_MAX];
    uint32_t count;
    uint32_t left; /* a device that may have lost a step */
};

/* The sum of what is touched, unless it is above `most`. */
static bool ways_below(const struct sweep_search *s, double most, double *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < s->touched_device_count && *sum <= most; i++)
        *sum += sweep_cut_device_way(&s->cut, s->touched_devices[i].index);
    for (uint32_t i = 0; i < s->touched_job_count && *sum <= most; i++)
        *sum += sweep_cut_job_way(&s->cut, s->touched_jobs[i].index);
    return *sum <= most;
}

/* What the change adds to the sum; false: a unit does not fit, or it adds more than `worst`. */
static bool judge(struct sweep_search *s, const struct change *change, double worst, double *delta)
{
    uint32_t last = s->at + change->count - 1;
    bool fits = true;
    double sum = 0;
    begin_trial(s);
    touch_device(s, change->left);
    for (uint32_t t = 0; t < change->count; t++) {
        uint32_t job = change->steps[t].job, device = change->steps[t].device;
        fits = instance_fits(s->cut.in, s->cut.jobs[job].unit, s->cut.in->device_class[device]);
        if (!fits) break;
        touch_job(s, job);
        touch_device(s, device);
        sweep_cut_put(&s->cut, job, device);
    }
    for (uint32_t i = 0; i < s->touched_job_count && fits; i++) {
        struct sweep_job *j = &s->cut.jobs[s->touched_jobs[i].index];
        j->next = sweep_cut_job_behind(&s->cut, j->next, last);
    }
    for (uint32_t i = 0; i < s->touched_device_count && fits; i++) {
        struct sweep_device *d = &s->cut.devices[s->touched_devices[i].index];
        d->next = sweep_cut_sequence_behind(&s->cut, d->next, last);
    }
    double most = s->base[change->count - 1] + worst; /* ways are no less than 0 */
    for (uint32_t i = 0; i < s->touched_job_count; i++) most += (double)s->touched_jobs[i].was.way;
    for (uint32_t i = 0; i < s->touched_device_count; i++) most += (double)s->touched_devices[i].was.way;
    fits = fits && ways_below(s, most, &sum);
    undo_trial(s);
    *delta = sum - most + worst;
    return fits;
}

static void apply(struct sweep_search *s, const struct change *change)
{
    uint32_t last = s->at + change->count - 1;
    for (uint32_t t = s->at; t <= last; t++) {
        const struct sweep_step *step = &s->cut.steps[t];
        struct sweep_job *j = &s->cut.jobs[step->job];
        struct sweep_device *d = &s->cut.devices[s->cut.device_of[step->sequence]];
        j->next = sweep_cut_job_behind(&s->cut, j->next, last);
        d->next = sweep_cut_sequence_behind(&s->cut, d->next, last);
    }
    for (uint32_t t = s->at; t <= last; t++) {
        const struct dispatch_step *to = &change->steps[t - s->at];
        s->cut.steps[t].job = to->job;
        s->cut.steps[t].sequence = s->cut.sequence_of[to->device];
    }
    sweep_cut_set_tails(&s->cut, s->at, last);
    for (uint32_t t = s->at; t <= last; t++) {
        s->cut.jobs[s->cut.steps[t].job].way = sweep_cut_job_way(&s->cut, s->cut.steps[t].job);
        sweep_cut_set_ways(&s->cut, s->cut.device_of[s->cut.steps[t].sequence]);
    }
    sweep_cut_set_ways(&s->cut, change->left);
}

/* --- changes --------------------------------------------------------------------------------- */

struct sweep {
    const struct sweep_rule *rule;
    uint64_t draws;
    uint32_t end; /* behind the last step within reach */
    int64_t patience;
};

static uint64_t draw(struct sweep *w)
{
    return random_u64(w->rule->seed, w->draws++);
}

static bool taken(struct sweep *w, double delta)
{
    if (delta <= 0) return true;
    double most = w->rule->temperature;
    if (delta > WORSE_MAX * most) return false;
    return delta < -most * log(random_unit(w->rule->seed ^ 0x5851f42d4c957f2du, w->draws));
}

/* By how much its device would at least be later behind step `at` + t if that were a task of `unit`. */
static int64_t longer(const struct sweep_search *s, uint32_t t, uint32_t unit)
{
    const struct sweep_step *step = &s->cut.steps[s->at + t];
    const struct place *place = &s->places[t];
    if (place->before == TIMETABLE_NONE || step->next_in_sequence == TIMETABLE_NONE) return 0;
    uint32_t class = s->cut.in->device_class[s->cut.device_of[step->sequence]];
    uint32_t after = s->cut.steps[step->next_in_sequence].unit;
    return place->before_start + setup_table_at(&s->cut.setups, place->before, unit, class) +
           setup_table_at(&s->cut.setups, unit, after, class) - place->start -
           setup_table_at(&s->cut.setups, step->unit, after, class);
}

/* Steps at .. at + last as they are, to be changed. */
static void begin_change(const struct sweep_search *s, uint32_t last, struct change *change)
{
    const struct sweep_step *steps = s->cut.steps + s->at;
    for (uint32_t t = 0; t <= last; t++)
        change->steps[t] = (struct dispatch_step){steps[t].job, s->cut.device_of[steps[t].sequence]};
    change->count = last + 1;
    change->left = change->steps[0].device;
}

/* Could the task of step `at` + last run at the front? It is its job's next, and that is ready. */
static bool may_come(const struct sweep_search *s, const struct sweep *w, uint32_t last)
{
    const struct sweep_job *j = &s->cut.jobs[s->cut.steps[s->at + last].job];
    return j->next == s->at + last && j->ready <= s->places[0].start + w->patience;
}

/* Swap the jobs of two steps; false: it is not worth judging. */
static bool swap(const struct sweep_search *s, const struct sweep *w, uint32_t last, struct change *change)
{
    const struct sweep_step *first = &s->cut.steps[s->at], *other = first + last;
    if (first->job == other->job || !may_come(s, w, last)) return false;
    if (first->sequence != other->sequence &&
        (longer(s, 0, other->unit) > w->patience || longer(s, last, first->unit) > w->patience))
        return false;
    begin_change(s, last, change);
    change->steps[0].job = other->job;
    change->steps[last].job = first->job;
    return true;
}

/* One of the other changes. */
static bool draw_change(struct sweep_search *s, struct sweep *w, struct change *change)
{
    uint64_t r = draw(w);
    uint32_t last = 1 + (uint32_t)((r >> 16) % (w->end - s->at - 1));
    if ((r & 15) == 0) { /* elsewhere */
        uint32_t to = (uint32_t)((r >> 40) % s->cut.in->device_count);
        begin_change(s, 0, change);
        change->steps[0].device = to;
        return to != change->left;
    }
    if ((r & 15) < 6) { /* sooner */
        if (!may_come(s, w, last)) return false;
        begin_change(s, last, change);
        struct dispatch_step moved = {change->steps[last].job, change->left};
        change->left = change->steps[last].device;
        memmove(change->steps + 1, change->steps, last * sizeof moved);
        change->steps[0] = moved;
    } else { /* later */
        begin_change(s, last, change);
        struct dispatch_step moved = {change->steps[0].job, change->steps[last].device};
        memmove(change->steps, change->steps + 1, last * sizeof moved);
        change->steps[last] = moved;
    }
    return true;
}

/* What the way of the job counts whose task was the device's last; it depends on what the device does next
 * where parameters would go through the host. */
static float way_of_last(const struct sweep_search *s, const struct sweep_device *d)
{
    const struct sweep_job *j = &s->cut.jobs[d->job];
    return j->ready == j->ended ? j->way : sweep_cut_job_way(&s->cut, d->job);
}

/* Two devices change what they do from here on. */
static void try_cross(struct sweep_search *s, struct sweep *w, uint32_t g)
{
    uint32_t h = (uint32_t)(draw(w) % s->cut.in->device_count);
    if (g == h || s->cut.in->device_class[g] != s->cut.in->device_class[h]) return;
    struct sweep_device *a = &s->cut.devices[g], *b = &s->cut.devices[h];
    struct sweep_job none = {0}, *i = a->job == TIMETABLE_NONE ? &none : &s->cut.jobs[a->job];
    struct sweep_job *k = b->job == TIMETABLE_NONE || b->job == a->job ? &none : &s->cut.jobs[b->job];
    uint32_t swap = a->next;
    a->next = b->next;
    b->next = swap;
    float a_way = sweep_cut_device_way(&s->cut, g), b_way = sweep_cut_device_way(&s->cut, h);
    float i_way = i == &none ? 0 : way_of_last(s, a), k_way = k == &none ? 0 : way_of_last(s, b);
    if (taken(w, (double)(a_way + b_way + i_way + k_way) - (double)(a->way + b->way + i->way + k->way))) {
        uint32_t sequence = s->cut.sequence_of[g];
        s->cut.sequence_of[g] = s->cut.sequence_of[h];
        s->cut.sequence_of[h] = sequence;
        s->cut.device_of[s->cut.sequence_of[g]] = g;
        s->cut.device_of[s->cut.sequence_of[h]] = h;
        a->way = a_way;
        b->way = b_way;
        i->way = i_way;
        k->way = k_way;
        return;
    }
    b->next = a->next;
    a->next = swap;
}

static void try_changes(struct sweep_search *s, struct sweep *w)
{
    struct change change;
    double delta;
    uint32_t reach = w->end - s->at;
    for (uint32_t k = 0; k < CROSSES; k++) try_cross(s, w, s->at > 0 ? s->order[s->at - 1].device : 0);
    if (reach < 2) return;
    set_base(s, w->end);
    for (uint32_t last = 0; last < reach; last++) {
        if (last > 0 ? !swap(s, w, last, &change) : !draw_change(s, w, &change)) continue;
        if (!judge(s, &change, WORSE_MAX * w->rule->temperature, &delta) || !taken(w, delta)) continue;
        apply(s, &change);
        set_base(s, w->end);
    }
}

/* --- a sweep --------------------------------------------------------------------------------- */

static int compare_timed(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Steps in the order of their starts, with their tails; the front before the first. */
static void begin_sweep(struct sweep_search *s, double sharpness)
{
    const struct instance *in = s->cut.in;
    s->cut.scale = SWEEP_EXPONENT_STEPS / sharpness;
    sweep_cut_clear(&s->cut);
    for (uint32_t t = 0; t < in->task_count; t++)
        s->timed[t] = (struct timed){sweep_cut_put(&s->cut, s->order[t].job, s->order[t].device), t};
    s->cut.makespan = 0;
    for (uint32_t i = 0; i < in->job_count; i++)
        if (s->cut.jobs[i].end > s->cut.makespan) s->cut.makespan = s->cut.jobs[i].end;
    qsort(s->timed, in->task_count, sizeof *s->timed, compare_timed);
    for (uint32_t t = 0; t < in->task_count; t++) {
        const struct dispatch_step *step = &s->order[s->timed[t].at];
        s->cut.steps[t].job = step->job;
        s->cut.steps[t].sequence = step->device;
    }
    sweep_cut_clear(&s->cut);
    sweep_cut_set_tails(&s->cut, 0, in->task_count - 1);
    for (uint32_t i = 0; i < in->job_count; i++) s->cut.jobs[i].way = sweep_cut_job_way(&s->cut, i);
    for (uint32_t g = 0; g < in->device_count; g++) s->cut.devices[g].way = sweep_cut_device_way(&s->cut, g);
    s->at = 0;
    s->bytes = 0;
}

static void advance(struct sweep_search *s)
{
    const struct sweep_step *step = &s->cut.steps[s->at];
    uint32_t device = s->cut.device_of[step->sequence], prior = s->cut.devices[device].job;
    const struct instance_unit *units = s->cut.in->units, *unit = &units[step->unit];
    bool there = prior != TIMETABLE_NONE && instance_resident(&units[s->cut.devices[device].unit], unit);
    s->bytes += (there ? 0 : unit->in_bytes) + (unit->writes ? unit->out_bytes : 0);
    s->order[s->at] = (struct dispatch_step){step->job, device};
    sweep_cut_put(&s->cut, step->job, device);
    s->cut.jobs[step->job].next = step->next_of_job;
    s->cut.devices[device].next = step->next_in_sequence;
    s->at++;
    sweep_cut_set_ways(&s->cut, device);
    if (prior != TIMETABLE_NONE) s->cut.jobs[prior].way = sweep_cut_job_way(&s->cut, prior);
}

int64_t sweep_search_run(struct sweep_search *s, const struct sweep_rule *rule, double until_s)
{
    uint32_t n = s->cut.in->task_count, reach = rule->reach < REACH_MAX ? rule->reach : REACH_MAX;
    struct sweep w = {.rule = rule, .patience = (int64_t)(PATIENCE * rule->sharpness)};
    bool over = false;
    begin_sweep(s, rule->sharpness);
    while (s->at < n) {
        if (s->at % 64 == 0) over = clock_s() >= until_s;
        w.end = s->at + reach < n ? s->at + reach : n;
        if (!over) try_changes(s, &w);
        advance(s);
    }
    int64_t *ends = alloca(s->cut.in->job_count * sizeof *ends); /* at most 512 KiB */
    for (uint32_t i = 0; i < s->cut.in->job_count; i++) ends[i] = s->cut.jobs[i].end;
    return instance_value(s->cut.in, ends, s->bytes);
}
