/*
 * A schedule of makespan C has slack devices * C - (sum of duals), which makes partial schedules comparable: of those
 * with equally many tasks, the one that has spent least can end first. Two other things are bad: a job whose remaining
 * chain no longer fits below the best known value (dropped at once), and remaining chains of very different lengths,
 * which leave devices idle at the end. The priority, summed over finished tasks, prevents the latter.
 *
 * States are in two rows of dispatches that swap at each step, with an array of (parent, job, device) per step from
 * which the order is read back. Equal states reached in different orders are recognised by a hash: a collision costs
 * one candidate.
 */
#include "planner/solve/search/beam_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/anytime.h"
#include "base/random.h"
#include "planner/solve/instance/bridge_bytes.h"
#include "planner/solve/instance/setup_table.h"
#include "planner/solve/search/set_up_guide.h"

struct beam_node { /* of the tree of partial schedules; row by row */
    uint32_t parent, job, device;
};

struct beam_candidate {
    double score, guided;
    uint64_t hash, bytes;
    int64_t slack;
    double priority;
    uint32_t parent, job, device;
};

struct beam_state {
    struct dispatch *dispatch;
    int64_t slack;
    double guided, priority;
    uint64_t hash;
    uint64_t bytes; /* over the bridge, at least */
};

struct beam_search {
    const struct instance *in;
    const struct instance_bounds *bounds;
    int64_t *remaining;     /* all jobs, each length + 1 */
    uint32_t *first;        /* (job_count) in `remaining` */
    const double *weight, *leads; /* (job_count) of this run */
    struct set_up_guide guides[BEAM_SOFTNESS_COUNT];
    const struct set_up_guide *guide; /* of this run */
    uint32_t width_max;
    struct beam_state *states;   /* (2 * width_max) */
    struct beam_node *nodes;     /* (task_count * width_max) */
    struct beam_candidate *candidates;
    uint64_t *seen;         /* hashes, an open table */
    uint32_t seen_size;
    uint32_t candidate_max;
    struct setup_table setups;
    double longest;         /* chain, in ticks */
    int64_t *longer;        /* (unit_count, class_count) longer than on the fastest class; NULL: devices are equal */
    double *unsuited;       /* likewise: weighted time above the least of any class */
    uint64_t least_bytes;   /* over the bridge, of any schedule */
    double scale;           /* ticks of priority per tick of remaining time */
};

/* --- remaining times ------------------------------------------------------------------------- */

static enum status make_remaining(struct beam_search *s, struct error *err)
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

/* --- classes --------------------------------------------------------------------------------- */

/* Weight of the time that a task takes beyond its time on its best class. */
static const double unsuited_share = 0.5;

/* Weighted times are needed because a device that is slow for all tasks suits them as well as a fast one. */
static enum status make_classes(struct beam_search *s, struct error *err)
{
    const struct instance *in = s->in;
    size_t count = (size_t)in->unit_count * in->class_count;
    if (in->class_count == 1) return STATUS_OK;
    s->longer = alloc_zeroed(count, sizeof *s->longer);
    s->unsuited = alloc_zeroed(count, sizeof *s->unsuited);
    if (!s->longer || !s->unsuited) return error_memory(err, "a search", count * sizeof *s->longer);
    for (uint32_t u = 0; u < in->unit_count; u++) {
        double least = INFINITY;
        for (uint32_t c = 0; c < in->class_count; c++)
            if (instance_fits(in, u, c))
                least = fmin(least, s->bounds->class_weight[c] * (double)instance_compute(in, u, c));
        for (uint32_t c = 0; c < in->class_count; c++) {
            if (!instance_fits(in, u, c)) continue;
            size_t at = (size_t)u * in->class_count + c;
            s->longer[at] = instance_compute(in, u, c) - instance_compute_min(in, u);
            s->unsuited[at] = s->bounds->class_weight[c] * (double)instance_compute(in, u, c) - least;
        }
    }
    return STATUS_OK;
}

static inline size_t on_class(const struct beam_search *s, uint32_t unit, uint32_t device)
{
    return (size_t)unit * s->in->class_count + s->in->device_class[device];
}

/* --- guides ---------------------------------------------------------------------------------- */

/* In mean computations of a unit; the first is for the bound's own duals. */
static const double softness[BEAM_SOFTNESS_COUNT] = {0, 0.04, 0.1};

/* Returns a guide, made at the first use; the bound's duals if there is no memory for it. */
static const struct set_up_guide *guide_of(struct beam_search *s, uint32_t which)
{
    struct set_up_guide *guide = &s->guides[which];
    struct error none = {0};
    if (!guide->row && set_up_guide_make(s->in, s->bounds, softness[which], guide, &none)) return &s->guides[0];
    return guide;
}

/* --- creation -------------------------------------------------------------------------------- */

enum status beam_search_create(const struct instance *in, const struct instance_bounds *bounds,
                               uint32_t width_max, struct beam_search **out, struct error *err)
{
    struct beam_search *s = alloc_zeroed(1, sizeof *s);
    if (!s) return error_memory(err, "a search", sizeof *s);
    s->in = in;
    s->bounds = bounds;
    s->width_max = width_max;
    s->candidate_max = 3 * in->job_count * width_max;
    s->least_bytes = bridge_bytes_least(in);
    for (s->seen_size = 16; s->seen_size < 4 * width_max; s->seen_size *= 2) {}
    size_t nodes = (size_t)in->task_count * width_max;
    setup_table_make(in, &s->setups);
    s->states = alloc_zeroed(2 * (size_t)width_max, sizeof *s->states);
    s->nodes = alloc_zeroed(nodes, sizeof *s->nodes);
    s->candidates = alloc_zeroed(s->candidate_max, sizeof *s->candidates);
    s->seen = alloc_zeroed(s->seen_size, sizeof *s->seen);
    if (!s->states || !s->nodes || !s->candidates || !s->seen)
        error_memory(err, "a search", nodes * sizeof *s->nodes);
    else if (!make_remaining(s, err) && !make_classes(s, err) && !set_up_guide_make(in, bounds, 0, &s->guides[0], err))
        for (uint32_t w = 0; w < 2 * width_max; w++)
            if (dispatch_create(in, &s->states[w].dispatch, err)) break;
    if (err->status) {
        beam_search_destroy(s);
        return err->status;
    }
    *out = s;
    return STATUS_OK;
}

void beam_search_destroy(struct beam_search *s)
{
    if (!s) return;
    for (uint32_t w = 0; s->states && w < 2 * s->width_max; w++) dispatch_destroy(s->states[w].dispatch);
    setup_table_release(&s->setups);
    for (uint32_t g = 0; g < BEAM_SOFTNESS_COUNT; g++) set_up_guide_release(&s->guides[g]);
    free(s->longer);
    free(s->unsuited);
    free(s->remaining);
    free(s->first);
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

/* Returns when the device could start a task of this unit. */
static inline int64_t free_for(const struct beam_search *s, const struct dispatch *d, uint32_t unit,
                               uint32_t device)
{
    const struct dispatch_device *last = &d->devices[device];
    if (last->job == TIMETABLE_NONE) return s->in->units[unit].in;
    return last->start + setup_table_at(&s->setups, last->unit, unit, s->in->device_class[device]);
}

/* Does the same as dispatch_start(), but faster. */
static inline int64_t start_of(const struct beam_search *s, const struct dispatch *d, uint32_t job,
                               uint32_t device)
{
    const struct dispatch_job *j = &d->jobs[job];
    int64_t free = free_for(s, d, j->unit, device);
    int64_t ready = d->devices[device].job == job && j->device == device ? j->ended : j->ready;
    return free > ready ? free : ready;
}

/* Returns the ticks that the device idles or prepares beyond the duals. */
static int64_t slack_of(const struct beam_search *s, const struct dispatch *d, uint32_t unit,
                        uint32_t device, int64_t start)
{
    const struct dispatch_device *last = &d->devices[device];
    int64_t row = last->job == TIMETABLE_NONE ? s->bounds->row_start
                                              : last->start + s->bounds->row[last->unit];
    return start - row - s->bounds->column[unit];
}

/* Returns the same beyond the guide. */
static double guided_of(const struct beam_search *s, const struct dispatch *d, uint32_t unit,
                        uint32_t device, int64_t start)
{
    const struct dispatch_device *last = &d->devices[device];
    double row = last->job == TIMETABLE_NONE ? s->guide->row_start
                                             : (double)last->start + s->guide->row[last->unit];
    if (!s->longer) return (double)start - row - s->guide->column[unit];
    if (last->job != TIMETABLE_NONE) row += (double)s->longer[on_class(s, last->unit, device)];
    return (double)start - row - s->guide->column[unit] + unsuited_share * s->unsuited[on_class(s, unit, device)];
}

static double urgency(const struct beam_search *s, uint32_t job, uint32_t next)
{
    const struct instance_job *j = &s->in->jobs[job];
    double remaining = (double)s->remaining[s->first[job] + next];
    switch (s->in->objective) {
    case OBJECTIVE_MEAN: return -remaining * s->weight[job];
    case OBJECTIVE_WEIGHTED: return -remaining * s->weight[job] / j->weight;
    case OBJECTIVE_TARDINESS:
        return (remaining - (j->deadline < s->in->horizon ? (double)j->deadline : (double)s->in->horizon)) *
               s->weight[job];
    default: return (remaining + (s->leads ? s->leads[job] * s->longest : 0)) * s->weight[job];
    }
}

/* Returns the least value of a schedule in which this job's next task starts then. */
static int64_t least_value(const struct beam_search *s, uint32_t job, uint32_t next, int64_t start)
{
    int64_t end = start + s->remaining[s->first[job] + next];
    if (s->in->objective == OBJECTIVE_MAKESPAN) return end;
    if (s->in->objective == OBJECTIVE_TARDINESS) return end - s->in->jobs[job].deadline;
    return 0;
}

/* Returns the bytes that are added when the job's next task goes to the device. */
static uint64_t bytes_rise(const struct beam_search *s, const struct dispatch *d, uint32_t job, uint32_t device)
{
    const struct instance_unit *units = s->in->units;
    const struct dispatch_device *place = &d->devices[device];
    uint32_t unit = d->jobs[job].unit, last = UINT32_MAX, position = 0;
    bool held = false, kept = false;
    if (place->job != TIMETABLE_NONE) {
        last = place->unit;
        position = d->jobs[place->job].next + (place->job == job ? 1u : 0);
        if (instance_resident(&units[last], &units[unit])) return 0;
    }
    for (uint32_t g = 0; g < s->in->device_count; g++) {
        if (g == device || d->devices[g].job == TIMETABLE_NONE) continue;
        const struct instance_unit *other = &units[d->devices[g].unit];
        held |= instance_resident(other, &units[unit]);
        kept |= last != UINT32_MAX && instance_resident(other, &units[last]);
    }
    return bridge_bytes_rise(s->in, last, unit, held, kept, position);
}

struct beam_run {
    const struct beam_rule *rule;
    int64_t below;
    int64_t slack_max; /* a state that spends more cannot end below `below` */
    struct beam_search *s;
    int64_t bound;     /* on the objective */
    uint32_t count;    /* candidates */
    double tick_per_byte; /* weight of a byte over the bridge */
};

static void add_candidate(struct beam_run *r, uint32_t parent, uint32_t job, uint32_t device)
{
    struct beam_search *s = r->s;
    const struct beam_state *from = &s->states[parent];
    const struct dispatch *d = from->dispatch;
    uint32_t next = d->jobs[job].next, unit = d->jobs[job].unit;
    int64_t start = start_of(s, d, job, device);
    int64_t least = least_value(s, job, next, start + (s->longer ? s->longer[on_class(s, unit, device)] : 0));
    if (least >= r->below) return;
    int64_t slack = from->slack + slack_of(s, d, unit, device, start);
    if (slack > r->slack_max) return;
    uint64_t rise = s->least_bytes > 0 ? bytes_rise(s, d, job, device) : 0;
    if (bridge_bytes_ticks(s->in, from->bytes + rise) >= r->below) return;
    double priority = from->priority + urgency(s, job, next) * s->scale;
    uint64_t hash = 0;
    if (r->rule->width > 1) {
        struct dispatch_device last = {.start = start, .job = job, .unit = unit};
        hash = from->hash - hash_device(device, &d->devices[device]) + hash_device(device, &last) -
               hash_job(job, next) + hash_job(job, next + 1);
    }
    double guided = from->guided + guided_of(s, d, unit, device, start);
    if (r->rule->idling > 0) guided += r->rule->idling * (double)(start - free_for(s, d, unit, device));
    /* waiting for another device may pay */
    if (r->rule->patient && least > r->bound) guided += (double)(least - r->bound);
    if (rise > 0) guided += r->tick_per_byte * (double)rise;
    s->candidates[r->count++] = (struct beam_candidate){guided - priority, guided, hash, from->bytes + rise, slack,
                                                        priority, parent, job, device};
}

static bool may_run(const struct beam_search *s, const struct dispatch *d, uint32_t job, uint32_t device)
{
    const struct instance_job *j = &s->in->jobs[job];
    return d->jobs[job].next < instance_length(j) &&
           instance_fits(s->in, d->jobs[job].unit, s->in->device_class[device]);
}

static int64_t free_at(const struct beam_search *s, const struct dispatch *d, uint32_t device)
{
    const struct dispatch_device *last = &d->devices[device];
    if (last->job == TIMETABLE_NONE) return 0;
    return last->start + s->bounds->row[last->unit] + (s->longer ? s->longer[on_class(s, last->unit, device)] : 0);
}

/* Returns the device that is free first and holds some job's next task; TIMETABLE_NONE: all tasks are done. */
static uint32_t first_free(const struct beam_search *s, const struct dispatch *d)
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

/* Returns the device where the job's next task starts first, or ends first if devices differ; then the one with the
 * least slack. */
static uint32_t best_device(const struct beam_search *s, const struct dispatch *d, uint32_t job)
{
    uint32_t best = TIMETABLE_NONE;
    int64_t best_start = 0, best_slack = 0;
    uint32_t unit = d->jobs[job].unit;
    for (uint32_t g = 0; g < s->in->device_count; g++) {
        if (s->in->class_count > 1 && !may_run(s, d, job, g)) continue;
        int64_t start = start_of(s, d, job, g), slack = slack_of(s, d, unit, g, start);
        if (s->longer) start += s->longer[on_class(s, unit, g)];
        if (best != TIMETABLE_NONE && (start > best_start || (start == best_start && slack >= best_slack)))
            continue;
        best = g;
        best_start = start;
        best_slack = slack;
    }
    return best;
}

/* Returns the device where the job's next task moves the fewest bytes; among equal ones the one with the earliest
 * start. */
static uint32_t thrifty_device(const struct beam_search *s, const struct dispatch *d, uint32_t job)
{
    uint32_t best = TIMETABLE_NONE;
    int64_t best_start = 0;
    uint64_t best_rise = 0;
    for (uint32_t g = 0; g < s->in->device_count; g++) {
        if (s->in->class_count > 1 && !may_run(s, d, job, g)) continue;
        int64_t start = start_of(s, d, job, g);
        uint64_t rise = bytes_rise(s, d, job, g);
        if (best != TIMETABLE_NONE && (rise > best_rise || (rise == best_rise && start >= best_start))) continue;
        best = g;
        best_start = start;
        best_rise = rise;
    }
    return best;
}

static void expand(struct beam_run *r, uint32_t parent)
{
    struct beam_search *s = r->s;
    const struct dispatch *d = s->states[parent].dispatch;
    uint32_t device = first_free(s, d);
    for (uint32_t i = 0; i < s->in->job_count; i++) {
        if (d->jobs[i].next == instance_length(&s->in->jobs[i])) continue;
        if (may_run(s, d, i, device)) add_candidate(r, parent, i, device);
        uint32_t best = device;
        if (r->rule->every_device) best = best_device(s, d, i);
        if (best != device) add_candidate(r, parent, i, best);
        if (r->tick_per_byte <= 0) continue;
        uint32_t thrifty = thrifty_device(s, d, i);
        if (thrifty != device && thrifty != best) add_candidate(r, parent, i, thrifty);
    }
}

/* --- selection ------------------------------------------------------------------------------- */

static bool better(const struct beam_candidate *a, const struct beam_candidate *b)
{
    if (a->score < b->score) return true;
    if (a->score > b->score) return false;
    if (a->hash != b->hash) return a->hash < b->hash;
    if (a->parent != b->parent) return a->parent < b->parent;
    return a->job < b->job;
}

/* Moves the `wanted` best candidates to the front (Hoare's quickselect). */
static void select_best(struct beam_candidate *c, uint32_t count, uint32_t wanted)
{
    uint32_t low = 0, high = count;
    while (wanted < high && high - low > 1) {
        struct beam_candidate pivot = c[low + (high - low) / 2];
        uint32_t i = low, j = high - 1;
        for (;;) {
            while (better(&c[i], &pivot)) i++;
            while (better(&pivot, &c[j])) j--;
            if (i >= j) break;
            struct beam_candidate swap = c[i];
            c[i++] = c[j];
            c[j--] = swap;
        }
        if (j + 1 == high) break; /* all equal */
        if (wanted <= j + 1) high = j + 1;
        else low = j + 1;
    }
}

static bool seen_before(struct beam_search *s, uint64_t hash)
{
    if (hash == 0) hash = 1;
    for (uint32_t at = (uint32_t)hash & (s->seen_size - 1);; at = (at + 1) & (s->seen_size - 1)) {
        if (s->seen[at] == hash) return true;
        if (s->seen[at]) continue;
        s->seen[at] = hash;
        return false;
    }
}

/* Makes the states of the next step from the best candidates. Returns their number. */
static uint32_t advance(struct beam_run *r, uint32_t step, uint32_t width)
{
    struct beam_search *s = r->s;
    uint32_t made = 0, wanted = 2 * width < r->count ? 2 * width : r->count;
    struct beam_state *next = s->states + s->width_max;
    select_best(s->candidates, r->count, wanted); /* twice the width, because some candidates are equal */
    select_best(s->candidates, wanted, width < wanted ? width : wanted);
    if (width > 1) memset(s->seen, 0, s->seen_size * sizeof *s->seen);
    for (uint32_t c = 0; c < wanted && made < width; c++) {
        const struct beam_candidate *chosen = &s->candidates[c];
        if (width > 1 && seen_before(s, chosen->hash)) continue;
        struct dispatch *to = next[made].dispatch;
        dispatch_copy(to, s->states[chosen->parent].dispatch);
        dispatch_put(to, chosen->job, chosen->device);
        next[made].slack = chosen->slack;
        next[made].guided = chosen->guided;
        next[made].priority = chosen->priority;
        next[made].hash = chosen->hash;
        next[made].bytes = chosen->bytes;
        s->nodes[(size_t)step * s->width_max + made] =
            (struct beam_node){chosen->parent, chosen->job, chosen->device};
        made++;
    }
    for (uint32_t w = 0; w < made; w++) {
        struct beam_state swap = s->states[w];
        s->states[w] = next[w];
        next[w] = swap;
    }
    return made;
}

/* Advances a single state in place, without copies. */
static bool advance_single(struct beam_run *r, uint32_t step)
{
    struct beam_search *s = r->s;
    if (r->count == 0) return false;
    const struct beam_candidate *best = &s->candidates[0];
    for (uint32_t c = 1; c < r->count; c++)
        if (better(&s->candidates[c], best)) best = &s->candidates[c];
    dispatch_put(s->states[0].dispatch, best->job, best->device);
    s->states[0].slack = best->slack;
    s->states[0].guided = best->guided;
    s->states[0].priority = best->priority;
    s->states[0].hash = best->hash;
    s->states[0].bytes = best->bytes;
    s->nodes[(size_t)step * s->width_max] = (struct beam_node){0, best->job, best->device};
    return true;
}

/* --- a run ----------------------------------------------------------------------------------- */

static void prepare(struct beam_run *r, uint32_t fixed, const struct dispatch_step *steps)
{
    struct beam_search *s = r->s;
    const struct instance *in = s->in;
    struct beam_state *state = &s->states[0];
    int64_t longest = 1;
    s->weight = r->rule->weights;
    s->leads = r->rule->leads;
    for (uint32_t i = 0; i < in->job_count; i++)
        if (s->remaining[s->first[i]] > longest) longest = s->remaining[s->first[i]];
    s->longest = (double)longest;
    s->scale = r->rule->priority / s->longest;
    r->slack_max = INT64_MAX / 2;
    if (in->objective == OBJECTIVE_MAKESPAN && r->below < in->horizon)
        r->slack_max = in->device_count * (r->below - 1 - s->bounds->row_start - s->bounds->column_end) -
                       s->bounds->sum;
    dispatch_clear(state->dispatch);
    state->slack = 0;
    state->guided = 0;
    state->priority = 0;
    state->hash = 0;
    state->bytes = s->least_bytes;
    r->tick_per_byte = 0;
    if (s->least_bytes > 0)
        r->tick_per_byte = r->rule->thrift * in->device_count / (double)in->bridge_bytes_per_tick;
    for (uint32_t t = 0; t < fixed; t++) {
        const struct dispatch *d = state->dispatch;
        uint32_t job = steps[t].job, device = steps[t].device;
        uint32_t unit = d->jobs[job].unit;
        int64_t start = dispatch_start(d, job, device);
        if (s->least_bytes > 0) state->bytes += bytes_rise(s, d, job, device);
        state->slack += slack_of(s, d, unit, device, start);
        state->guided += guided_of(s, d, unit, device, start);
        dispatch_put(state->dispatch, job, device);
    }
}

static void read_back(const struct beam_search *s, uint32_t fixed, uint32_t state,
                      struct dispatch_step *steps)
{
    for (uint32_t t = s->in->task_count; t-- > fixed;) {
        const struct beam_node *node = &s->nodes[(size_t)t * s->width_max + state];
        steps[t] = (struct dispatch_step){node->job, node->device};
        state = node->parent;
    }
}

bool beam_search_run(struct beam_search *s, const struct beam_rule *rule, uint32_t fixed, int64_t below,
                     double until_s, struct dispatch_step *steps, int64_t *value)
{
    struct beam_run r = {.rule = rule, .below = below, .bound = instance_bounds_best(s->bounds), .s = s};
    uint32_t width = rule->width < s->width_max ? rule->width : s->width_max, alive = 1;
    bool must = width == 1 && below == INT64_MAX;
    struct anytime limits = {.until_s = until_s, .clock_every = 64};
    s->guide = guide_of(s, rule->softness);
    prepare(&r, fixed, steps);
    for (uint32_t t = fixed; t < s->in->task_count; t++) {
        if (!must && !anytime_step(&limits)) return false;
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
