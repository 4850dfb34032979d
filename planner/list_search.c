/*
 * List schedules and the beam search over them; see list_search.h.
 *
 * Slack is what makes partial schedules comparable: a schedule of makespan C has exactly
 * devices * C - (sum of duals) of it, so after equally many tasks the one that has spent least is the
 * one that can still end first, whatever tasks it has done. Two other things make a partial
 * schedule bad: a job whose remaining chain no longer fits below the best known value (left out at
 * once), and remaining chains of very different lengths, which will leave devices idle at the end;
 * against the latter stands the priority, summed over the tasks done.
 *
 * A beam keeps its states in two rows of dispatches that change places at each step, and an array of
 * (parent, job, device) per step from which the order is read back. Equal states that were reached
 * in different orders (as when two devices are served in either order) are told apart by a hash
 * of what they are: two that collide cost a candidate, nothing else.
 */
#include "planner/list_search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "base/random.h"

struct node { /* of the tree of partial schedules; row by row */
    uint32_t parent, job, device;
};

struct candidate {
    double score;
    uint64_t hash;
    int64_t slack;
    double priority;
    uint32_t parent, job, device;
};

struct state {
    struct dispatch *dispatch;
    int64_t slack;
    double priority;
    uint64_t hash;
};

struct list_search {
    const struct instance *in;
    const struct instance_bounds *bounds;
    int64_t *remaining;     /* all jobs, each length + 1 */
    uint32_t *first;        /* (job_count) in `remaining` */
    double *weight;         /* (job_count) noise of this run */
    uint32_t width_max;
    struct state *states;   /* (2 * width_max) */
    struct node *nodes;     /* (task_count * width_max) */
    struct candidate *candidates;
    uint64_t *seen;         /* hashes, an open table */
    uint32_t seen_size;
    uint32_t candidate_max;
    int32_t *setup;         /* (unit_count, unit_count) d_jk where that is small; may be NULL */
    double scale;           /* ticks of priority per tick of remaining time */
};

/* --- remaining times ------------------------------------------------------------------------- */

static enum status make_remaining(struct list_search *s, struct error *err)
{
    const struct instance *in = s->in;
    s->remaining = alloc_zeroed((size_t)in->task_count + in->job_count, sizeof *s->remaining);
    s->first = alloc_zeroed(in->job_count, sizeof *s->first);
    if (!s->remaining || !s->first)
        return error_memory(err, "remaining times", in->task_count * sizeof *s->remaining);
    uint32_t at = 0;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint32_t length = instance_length(job);
        int64_t sum = in->units[job->first_unit + job->unit_count - 1].out;
        s->first[i] = at;
        s->remaining[at + length] = 0;
        for (uint32_t t = length; t-- > 0;) {
            sum += instance_compute_min(in, instance_unit_at(job, t));
            s->remaining[at + t] = sum;
        }
        at += length + 1;
    }
    return STATUS_OK;
}

const int64_t *list_search_remaining(const struct list_search *search, uint32_t job)
{
    return search->remaining + search->first[job];
}

/* The table is for speed alone: without memory for it, or for long durations, there is none. */
static void make_setup(struct list_search *s)
{
    const struct instance *in = s->in;
    uint32_t n = in->unit_count;
    if (in->class_count > 1 || n > INSTANCE_BOUND_UNITS_MAX || in->horizon > INT32_MAX) return;
    s->setup = alloc_zeroed((size_t)n * n, sizeof *s->setup);
    for (uint32_t j = 0; s->setup && j < n; j++)
        for (uint32_t k = 0; k < n; k++)
            s->setup[(size_t)j * n + k] = (int32_t)instance_setup(in, j, k, 0);
}

/* --- creation -------------------------------------------------------------------------------- */

enum status list_search_create(const struct instance *in, const struct instance_bounds *bounds,
                               uint32_t width_max, struct list_search **out, struct error *err)
{
    struct list_search *s = alloc_zeroed(1, sizeof *s);
    if (!s) return error_memory(err, "a search", sizeof *s);
    s->in = in;
    s->bounds = bounds;
    s->width_max = width_max;
    s->candidate_max = 2 * in->job_count * width_max;
    for (s->seen_size = 16; s->seen_size < 4 * width_max; s->seen_size *= 2) {}
    size_t nodes = (size_t)in->task_count * width_max;
    make_setup(s);
    s->weight = alloc_zeroed(in->job_count, sizeof *s->weight);
    s->states = alloc_zeroed(2 * (size_t)width_max, sizeof *s->states);
    s->nodes = alloc_zeroed(nodes, sizeof *s->nodes);
    s->candidates = alloc_zeroed(s->candidate_max, sizeof *s->candidates);
    s->seen = alloc_zeroed(s->seen_size, sizeof *s->seen);
    if (!s->weight || !s->states || !s->nodes || !s->candidates || !s->seen)
        error_memory(err, "a search", nodes * sizeof *s->nodes);
    else if (!make_remaining(s, err))
        for (uint32_t w = 0; w < 2 * width_max; w++)
            if (dispatch_create(in, &s->states[w].dispatch, err)) break;
    if (err->status) {
        list_search_destroy(s);
        return err->status;
    }
    *out = s;
    return STATUS_OK;
}

void list_search_destroy(struct list_search *s)
{
    if (!s) return;
    for (uint32_t w = 0; s->states && w < 2 * s->width_max; w++) dispatch_destroy(s->states[w].dispatch);
    free(s->setup);
    free(s->remaining);
    free(s->first);
    free(s->weight);
    free(s->states);
    free(s->nodes);
    free(s->candidates);
    free(s->seen);
    free(s);
}

/* --- candidates ------------------------------------------------------------------------------ */

static uint64_t hash_device(uint32_t device, const struct dispatch_device *d)
{
    return random_mix(random_mix(device + 1u) ^ random_mix((uint64_t)d->start * 0x100000 + d->unit));
}

static uint64_t hash_job(uint32_t job, uint32_t next)
{
    return random_mix(((uint64_t)job << 32 | next) ^ 0x5bf03635u);
}

/* dispatch_start(), from the table where there is one. */
static inline int64_t start_of(const struct list_search *s, const struct dispatch *d, uint32_t job,
                               uint32_t device)
{
    const struct dispatch_device *last = &d->devices[device];
    const struct dispatch_job *j = &d->jobs[job];
    if (!s->setup || last->job == TIMETABLE_NONE) return dispatch_start(d, job, device);
    int64_t free = last->start + s->setup[(size_t)last->unit * s->in->unit_count + j->unit];
    int64_t ready = last->job == job && j->device == device ? j->ended : j->ready;
    return free > ready ? free : ready;
}

/* Ticks that the device idles or prepares beyond what the duals account for. */
static int64_t slack_of(const struct list_search *s, const struct dispatch *d, uint32_t unit,
                        uint32_t device, int64_t start)
{
    const struct dispatch_device *last = &d->devices[device];
    int64_t row = last->job == TIMETABLE_NONE ? s->bounds->row_start
                                              : last->start + s->bounds->row[last->unit];
    return start - row - s->bounds->column[unit];
}

/* What the job's next task is worth: more is more urgent. */
static double urgency(const struct list_search *s, uint32_t job, uint32_t next)
{
    const struct instance_job *j = &s->in->jobs[job];
    double remaining = (double)s->remaining[s->first[job] + next];
    switch (s->in->objective) {
    case OBJECTIVE_MEAN: return -remaining * s->weight[job];
    case OBJECTIVE_WEIGHTED: return -remaining * s->weight[job] / j->weight;
    case OBJECTIVE_TARDINESS:
        return (remaining - (j->deadline < s->in->horizon ? (double)j->deadline : (double)s->in->horizon)) *
               s->weight[job];
    default: return remaining * s->weight[job];
    }
}

/* The least value a schedule can have in which this job's next task starts then. */
static int64_t least_value(const struct list_search *s, uint32_t job, uint32_t next, int64_t start)
{
    int64_t end = start + s->remaining[s->first[job] + next];
    if (s->in->objective == OBJECTIVE_MAKESPAN) return end;
    if (s->in->objective == OBJECTIVE_TARDINESS) return end - s->in->jobs[job].deadline;
    return 0;
}

struct run {
    const struct list_rule *rule;
    int64_t below;
    int64_t slack_max; /* a state that spends more cannot end below `below` */
    struct list_search *s;
    uint32_t count;    /* candidates */
};

static void add_candidate(struct run *r, uint32_t parent, uint32_t job, uint32_t device)
{
    struct list_search *s = r->s;
    const struct state *from = &s->states[parent];
    const struct dispatch *d = from->dispatch;
    uint32_t next = d->jobs[job].next, unit = d->jobs[job].unit;
    int64_t start = start_of(s, d, job, device);
    if (least_value(s, job, next, start) >= r->below) return;
    int64_t slack = from->slack + slack_of(s, d, unit, device, start);
    if (slack > r->slack_max) return;
    struct dispatch_device last = {.start = start, .job = job, .unit = unit};
    double priority = from->priority + urgency(s, job, next) * s->scale;
    uint64_t hash = from->hash - hash_device(device, &d->devices[device]) + hash_device(device, &last) -
                    hash_job(job, next) + hash_job(job, next + 1);
    s->candidates[r->count++] = (struct candidate){(double)slack - priority, hash, slack, priority,
                                                   parent, job, device};
}

static bool may_run(const struct list_search *s, const struct dispatch *d, uint32_t job, uint32_t device)
{
    const struct instance_job *j = &s->in->jobs[job];
    return d->jobs[job].next < instance_length(j) &&
           instance_fits(s->in, d->jobs[job].unit, s->in->device_class[device]);
}

static int64_t free_at(const struct list_search *s, const struct dispatch *d, uint32_t device)
{
    const struct dispatch_device *last = &d->devices[device];
    if (last->job == TIMETABLE_NONE) return 0;
    return last->start + s->bounds->row[last->unit];
}

/* The device that is free first and holds some job's next task; TIMETABLE_NONE: all is done. */
static uint32_t first_free(const struct list_search *s, const struct dispatch *d)
{
    uint32_t best = TIMETABLE_NONE;
    for (uint32_t g = 0; g < s->in->device_count; g++) {
        if (best != TIMETABLE_NONE && free_at(s, d, g) >= free_at(s, d, best)) continue;
        bool some = s->in->class_count == 1;
        for (uint32_t i = 0; i < s->in->job_count && !some; i++) some = may_run(s, d, i, g);
        if (some) best = g;
    }
    return best;
}

/* Where the job's next task spends least slack. */
static uint32_t best_device(const struct list_search *s, const struct dispatch *d, uint32_t job)
{
    uint32_t best = TIMETABLE_NONE;
    int64_t best_start = 0, best_slack = 0;
    uint32_t unit = d->jobs[job].unit;
    for (uint32_t g = 0; g < s->in->device_count; g++) {
        if (s->in->class_count > 1 && !may_run(s, d, job, g)) continue;
        int64_t start = start_of(s, d, job, g), slack = slack_of(s, d, unit, g, start);
        if (best != TIMETABLE_NONE && (start > best_start || (start == best_start && slack >= best_slack)))
            continue;
        best = g;
        best_start = start;
        best_slack = slack;
    }
    return best;
}

static void expand(struct run *r, uint32_t parent)
{
    struct list_search *s = r->s;
    const struct dispatch *d = s->states[parent].dispatch;
    uint32_t device = first_free(s, d);
    for (uint32_t i = 0; i < s->in->job_count; i++) {
        if (d->jobs[i].next == instance_length(&s->in->jobs[i])) continue;
        if (may_run(s, d, i, device)) add_candidate(r, parent, i, device);
        if (!r->rule->every_device) continue;
        uint32_t best = best_device(s, d, i);
        if (best != device) add_candidate(r, parent, i, best);
    }
}

/* --- selection ------------------------------------------------------------------------------- */

static bool better(const struct candidate *a, const struct candidate *b)
{
    if (a->score < b->score) return true;
    if (a->score > b->score) return false;
    if (a->hash != b->hash) return a->hash < b->hash;
    return a->parent < b->parent;
}

/* The `wanted` best candidates to the front (Hoare's quickselect). */
static void select_best(struct candidate *c, uint32_t count, uint32_t wanted)
{
    uint32_t low = 0, high = count;
    while (wanted < high && high - low > 1) {
        struct candidate pivot = c[low + (high - low) / 2];
        uint32_t i = low, j = high - 1;
        for (;;) {
            while (better(&c[i], &pivot)) i++;
            while (better(&pivot, &c[j])) j--;
            if (i >= j) break;
            struct candidate swap = c[i];
            c[i++] = c[j];
            c[j--] = swap;
        }
        if (j + 1 == high) break; /* all equal */
        if (wanted <= j + 1) high = j + 1;
        else low = j + 1;
    }
}

static bool seen_before(struct list_search *s, uint64_t hash)
{
    if (hash == 0) hash = 1;
    for (uint32_t at = (uint32_t)hash & (s->seen_size - 1);; at = (at + 1) & (s->seen_size - 1)) {
        if (s->seen[at] == hash) return true;
        if (s->seen[at]) continue;
        s->seen[at] = hash;
        return false;
    }
}

/* Make the states of the next step from the best candidates; returns how many. */
static uint32_t advance(struct run *r, uint32_t step, uint32_t width)
{
    struct list_search *s = r->s;
    uint32_t made = 0, wanted = 2 * width < r->count ? 2 * width : r->count;
    struct state *next = s->states + s->width_max;
    select_best(s->candidates, r->count, wanted); /* twice as many: some are equal */
    select_best(s->candidates, wanted, width < wanted ? width : wanted);
    if (width > 1) memset(s->seen, 0, s->seen_size * sizeof *s->seen);
    for (uint32_t c = 0; c < wanted && made < width; c++) {
        const struct candidate *chosen = &s->candidates[c];
        if (width > 1 && seen_before(s, chosen->hash)) continue;
        struct dispatch *to = next[made].dispatch;
        dispatch_copy(to, s->states[chosen->parent].dispatch);
        dispatch_put(to, chosen->job, chosen->device);
        next[made].slack = chosen->slack;
        next[made].priority = chosen->priority;
        next[made].hash = chosen->hash;
        s->nodes[(size_t)step * s->width_max + made] =
            (struct node){chosen->parent, chosen->job, chosen->device};
        made++;
    }
    for (uint32_t w = 0; w < made; w++) {
        struct state swap = s->states[w];
        s->states[w] = next[w];
        next[w] = swap;
    }
    return made;
}

/* One state, one pass: no copies are needed. */
static bool advance_single(struct run *r, uint32_t step)
{
    struct list_search *s = r->s;
    if (r->count == 0) return false;
    const struct candidate *best = &s->candidates[0];
    for (uint32_t c = 1; c < r->count; c++)
        if (better(&s->candidates[c], best)) best = &s->candidates[c];
    dispatch_put(s->states[0].dispatch, best->job, best->device);
    s->states[0].slack = best->slack;
    s->states[0].priority = best->priority;
    s->states[0].hash = best->hash;
    s->nodes[(size_t)step * s->width_max] = (struct node){0, best->job, best->device};
    return true;
}

/* --- a run ----------------------------------------------------------------------------------- */

static void prepare(struct run *r, uint32_t fixed, const struct dispatch_step *steps)
{
    struct list_search *s = r->s;
    const struct instance *in = s->in;
    struct state *state = &s->states[0];
    int64_t longest = 1;
    for (uint32_t i = 0; i < in->job_count; i++) {
        double unit = random_unit(r->rule->seed, i);
        s->weight[i] = 1 + r->rule->noise * (2 * unit - 1);
        if (s->remaining[s->first[i]] > longest) longest = s->remaining[s->first[i]];
    }
    s->scale = r->rule->priority / (double)longest;
    r->slack_max = INT64_MAX / 2;
    if (in->objective == OBJECTIVE_MAKESPAN && r->below < in->horizon)
        r->slack_max = in->device_count * (r->below - 1 - s->bounds->row_start - s->bounds->column_end) -
                       s->bounds->sum;
    dispatch_clear(state->dispatch);
    state->slack = 0;
    state->priority = 0;
    state->hash = 0;
    for (uint32_t t = 0; t < fixed; t++) {
        const struct dispatch *d = state->dispatch;
        uint32_t job = steps[t].job, device = steps[t].device;
        uint32_t unit = d->jobs[job].unit;
        state->slack += slack_of(s, d, unit, device, dispatch_start(d, job, device));
        dispatch_put(state->dispatch, job, device);
    }
}

static void read_back(const struct list_search *s, uint32_t fixed, uint32_t state,
                      struct dispatch_step *steps)
{
    for (uint32_t t = s->in->task_count; t-- > fixed;) {
        const struct node *node = &s->nodes[(size_t)t * s->width_max + state];
        steps[t] = (struct dispatch_step){node->job, node->device};
        state = node->parent;
    }
}

bool list_search_run(struct list_search *s, const struct list_rule *rule, uint32_t fixed, int64_t below,
                     double until_s, struct dispatch_step *steps, int64_t *value)
{
    struct run r = {.rule = rule, .below = below, .s = s};
    uint32_t width = rule->width < s->width_max ? rule->width : s->width_max, alive = 1;
    bool must = width == 1 && below == INT64_MAX;
    prepare(&r, fixed, steps);
    for (uint32_t t = fixed; t < s->in->task_count; t++) {
        if (!must && t % 64 == 0 && clock_s() >= until_s) return false;
        r.count = 0;
        for (uint32_t w = 0; w < alive; w++) expand(&r, w);
        if (width == 1) alive = advance_single(&r, t);
        else alive = advance(&r, t, width);
        if (alive == 0) return false;
    }
    uint32_t best = 0;
    for (uint32_t w = 1; w < alive; w++)
        if (dispatch_value(s->states[w].dispatch) < dispatch_value(s->states[best].dispatch)) best = w;
    *value = dispatch_value(s->states[best].dispatch);
    if (*value >= below) return false;
    read_back(s, fixed, best, steps);
    return true;
}

/* --- the baselines --------------------------------------------------------------------------- */

struct baseline {
    const struct instance *in;
    struct dispatch *d;
    int64_t *remaining; /* (job_count): computation not yet started */
    bool *taken;        /* (job_count): some device has picked it, and not started it */
    uint32_t *picked;   /* (device_count): TIMETABLE_NONE: nothing */
    int64_t *event;     /* (device_count): when it is free, or starts what it picked */
    bool *waiting;      /* (device_count): found nothing; asked again when a task ends */
    struct dispatch_step *steps;
    uint32_t made;
    double until_s;
};

/* The longest remaining of the jobs that `device` may take at `now`; `own`: its job, also while it
 * runs. Ties go to `own`, then to the lowest index. */
static uint32_t longest(const struct baseline *b, uint32_t device, uint32_t own, int64_t now)
{
    uint32_t best = TIMETABLE_NONE;
    for (uint32_t i = 0; i < b->in->job_count; i++) {
        const struct dispatch_job *job = &b->d->jobs[i];
        const struct instance_job *chain = &b->in->jobs[i];
        if (job->next == instance_length(chain)) continue;
        if (b->taken[i] || (i != own && job->ended > now)) continue;
        if (!instance_fits(b->in, instance_unit_at(chain, job->next), b->in->device_class[device])) continue;
        if (best == TIMETABLE_NONE || b->remaining[i] > b->remaining[best] ||
            (b->remaining[i] == b->remaining[best] && i == own))
            best = i;
    }
    return best;
}

static void pick(struct baseline *b, uint32_t device, uint32_t own, int64_t now)
{
    b->picked[device] = longest(b, device, own, now);
    if (b->picked[device] != TIMETABLE_NONE) b->taken[b->picked[device]] = true;
}

static void start_picked(struct baseline *b, uint32_t device)
{
    uint32_t job = b->picked[device];
    uint32_t unit = instance_unit_at(&b->in->jobs[job], b->d->jobs[job].next);
    dispatch_put(b->d, job, device);
    b->steps[b->made++] = (struct dispatch_step){job, device};
    b->remaining[job] -= instance_compute_min(b->in, unit);
    b->taken[job] = false;
    b->picked[device] = TIMETABLE_NONE;
    b->event[device] = b->d->jobs[job].ended;
}

static uint32_t next_event(const struct baseline *b)
{
    uint32_t best = 0;
    for (uint32_t g = 1; g < b->in->device_count; g++)
        if (b->event[g] < b->event[best]) best = g;
    return best;
}

/* `ahead`: pick the next job when a task starts; else when the device is free. Done in time? */
static bool run_baseline(struct baseline *b, bool ahead)
{
    while (b->made < b->in->task_count) {
        if (b->made % 1024 == 1023 && clock_s() >= b->until_s) return false;
        uint32_t g = next_event(b);
        int64_t now = b->event[g];
        assert(now < INT64_MAX);
        for (uint32_t o = 0; o < b->in->device_count && !b->waiting[g]; o++)
            if (b->waiting[o] && b->event[o] == INT64_MAX) b->event[o] = now;
        if (b->picked[g] == TIMETABLE_NONE) pick(b, g, TIMETABLE_NONE, now);
        b->waiting[g] = b->picked[g] == TIMETABLE_NONE;
        if (b->waiting[g]) {
            b->event[g] = INT64_MAX;
            continue;
        }
        uint32_t job = b->picked[g];
        b->event[g] = dispatch_start(b->d, job, g);
        if (b->event[g] > now) continue;
        start_picked(b, g);
        if (ahead) pick(b, g, job, now);
    }
    return true;
}

static enum status baseline(const struct instance *in, bool ahead, double until_s,
                            struct dispatch_step *steps, int64_t *value, struct error *err)
{
    struct baseline b = {.in = in, .steps = steps, .until_s = until_s};
    b.remaining = alloc_zeroed(in->job_count, sizeof *b.remaining);
    b.taken = alloc_zeroed(in->job_count, sizeof *b.taken);
    b.picked = alloc_zeroed(in->device_count, sizeof *b.picked);
    b.event = alloc_zeroed(in->device_count, sizeof *b.event);
    b.waiting = alloc_zeroed(in->device_count, sizeof *b.waiting);
    if (!b.remaining || !b.taken || !b.picked || !b.event || !b.waiting) {
        error_memory(err, "a schedule", in->job_count * sizeof *b.remaining);
    } else if (!dispatch_create(in, &b.d, err)) {
        for (uint32_t i = 0; i < in->job_count; i++) {
            const struct instance_job *job = &in->jobs[i];
            for (uint32_t u = 0; u < job->unit_count; u++)
                b.remaining[i] += job->repeat * instance_compute_min(in, job->first_unit + u);
        }
        for (uint32_t g = 0; g < in->device_count; g++) b.picked[g] = TIMETABLE_NONE;
        *value = run_baseline(&b, ahead) ? dispatch_value(b.d) : INT64_MAX;
    }
    dispatch_destroy(b.d);
    free(b.remaining);
    free(b.taken);
    free(b.picked);
    free(b.event);
    free(b.waiting);
    return err->status;
}

enum status list_search_hydra(const struct instance *in, double until_s, struct dispatch_step *steps,
                              int64_t *value, struct error *err)
{
    return baseline(in, true, until_s, steps, value, err);
}

enum status list_search_lrtf(const struct instance *in, double until_s, struct dispatch_step *steps,
                             int64_t *value, struct error *err)
{
    return baseline(in, false, until_s, steps, value, err);
}

struct sized {
    int64_t computes;
    uint32_t job;
};

static int compare_sized(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->computes != y->computes) return x->computes > y->computes ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

/* The job's next task: where the one before it was, or where it starts first. */
static uint32_t device_for(const struct instance *in, const struct dispatch *d, uint32_t job)
{
    uint32_t unit = d->jobs[job].unit, best = d->jobs[job].device;
    if (best != TIMETABLE_NONE && instance_fits(in, unit, in->device_class[best])) return best;
    best = TIMETABLE_NONE;
    for (uint32_t g = 0; g < in->device_count; g++)
        if (instance_fits(in, unit, in->device_class[g]) &&
            (best == TIMETABLE_NONE || dispatch_start(d, job, g) < dispatch_start(d, job, best)))
            best = g;
    return best;
}

enum status list_search_whole(const struct instance *in, struct dispatch_step *steps, int64_t *value,
                              struct error *err)
{
    struct dispatch *d = NULL;
    struct sized *order = alloc_zeroed(in->job_count, sizeof *order);
    if (!order) return error_memory(err, "a schedule", in->job_count * sizeof *order);
    if (!dispatch_create(in, &d, err)) {
        for (uint32_t i = 0; i < in->job_count; i++) {
            const struct instance_job *job = &in->jobs[i];
            order[i].job = i;
            for (uint32_t u = 0; u < job->unit_count; u++)
                order[i].computes += job->repeat * instance_compute_min(in, job->first_unit + u);
        }
        qsort(order, in->job_count, sizeof *order, compare_sized);
        for (uint32_t i = 0, t = 0; i < in->job_count; i++)
            for (uint32_t k = 0; k < instance_length(&in->jobs[order[i].job]); k++, t++) {
                uint32_t job = order[i].job, device = device_for(in, d, job);
                steps[t] = (struct dispatch_step){job, device};
                dispatch_put(d, job, device);
            }
        *value = dispatch_value(d);
    }
    dispatch_destroy(d);
    free(order);
    return err->status;
}
