/*
 * Why a cycle continues, to the last bit. Later placements depend on clocks, on counts (next weight buffer, edge and
 * position), which must be equal, and on ranks.
 *
 *   Clocks. They are used only by max(), so two looks whose clocks all differ by the same time go on alike, that time
 *   apart. A clock that stood still does no harm if it is older than every result of max() since the reference
 *   (earliest_s of struct schedule_builder): no result came from that clock, and none will, since results get later.
 *   Rounding. Numbers of one binade are multiples of one unit, and a duration added to any of them is rounded to that
 *   unit; half units are rounded to even ones, so cycles take an even number of units. So cycles are skipped only while
 *   all relevant clocks, and the remaining computation of jobs, stay in their binades. A schedule of n minibatches is
 *   looked at some 2 log n times, and equals the schedule that places all of them.
 *   Ranks. The ranks of built-in policies are times to compute or times of readiness: they change by the same amount in
 *   each cycle. Cycles are skipped while no difference between a chosen job and another can change its sign
 *   (cycles_by_rank()).
 *   Ends. No job comes to its last minibatch, and evaluations come after the same number of minibatches in each cycle.
 *
 * References are taken after each skipped cycle, else after 4, 16, 64, 256 looks, then again from 4 on: cycles begin
 * and end with jobs.
 *
 * Not covered: users' policies, whose decisions are unknown; random orders, which never repeat.
 */
#include "planner/spill/order/schedule_steady.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "planner/policy/policies.h"

enum {
    UNITS_MIN = 1 << 15, /* to place; with fewer, skipping saves little */
    PATIENCE_MIN = 4,
    PATIENCE_MAX = 256,
    PATIENCE_GROWS = 4,
    PAIRS_JOBS_MAX = 64, /* for more jobs, comparing all pairs takes longer than placing units */
    BYTES_OF_UNIT = 64   /* comparing these bytes of the state costs about the same as placing a unit */
};

/* --- creation -------------------------------------------------------------------------------- */

/* Returns the ranks by which a built-in policy decides; NULL: none. Between equal ranks it decides by numbers of jobs
 * and their last devices, which repeat with the clocks. */
static schedule_rank *rank_of_policy(const struct policy *policy)
{
    return policy == &policy_sharded_lrtf_cached ? policy_remaining : policy->rank;
}

bool schedule_policy_repeats(const struct policy *policy)
{
    bool own = policy_find(policy->name) != policy;
    return !own && (policy == &policy_spill_sequential || rank_of_policy(policy)) && policy != &policy_random;
}

enum status schedule_steady_begin(struct schedule_steady *steady, struct schedule_builder *builder, bool one_device,
                                  const struct policy *policy, void *policy_state, const struct policy_view *view,
                                  uint64_t units, struct error *err)
{
    *steady = (struct schedule_steady){.builder = builder, .rank = rank_of_policy(policy), .policy_state = policy_state,
                                       .view = view,
                                       .marker = PLAN_NONE, .patience = PATIENCE_MIN};
    uint32_t jobs = builder->times->jobs->count;
    if (units < UNITS_MIN || !schedule_policy_repeats(policy)) return STATUS_OK;
    steady->ranks = alloc_zeroed(jobs + 1u, sizeof *steady->ranks);
    steady->lowest = alloc_zeroed(jobs + 1u, sizeof *steady->lowest);
    if (jobs <= PAIRS_JOBS_MAX && steady->rank)
        steady->gaps = alloc_zeroed((size_t)jobs * jobs + 1, sizeof *steady->gaps);
    if (!steady->ranks || !steady->lowest || (jobs <= PAIRS_JOBS_MAX && steady->rank && !steady->gaps))
        return error_memory(err, "the schedule", jobs * sizeof *steady->ranks);
    return schedule_builder_create(builder->times, one_device, &steady->reference, err);
}

void schedule_steady_release(struct schedule_steady *steady)
{
    schedule_builder_destroy(steady->reference);
    free(steady->ranks);
    free(steady->lowest);
    free(steady->gaps);
}

/* --- states ---------------------------------------------------------------------------------- */

static bool is_over(const struct schedule_builder *p, uint32_t job)
{
    return p->jobs[job].minibatch == p->times->jobs->jobs[job].minibatches;
}

static double rank_of(const struct schedule_steady *steady, uint32_t job)
{
    return steady->rank ? steady->rank(steady->policy_state, steady->view, job) : 0;
}

static void keep_reference(struct schedule_steady *steady, uint32_t marker, uint32_t count)
{
    struct schedule_builder *now = steady->builder;
    schedule_builder_copy(steady->reference, now);
    for (uint32_t j = 0; j < now->times->jobs->count; j++) {
        steady->ranks[j] = rank_of(steady, j);
        steady->lowest[j] = HUGE_VAL;
    }
    steady->gap = HUGE_VAL;
    for (size_t i = 0; steady->gaps && i < (size_t)now->times->jobs->count * now->times->jobs->count; i++)
        steady->gaps[i] = HUGE_VAL;
    steady->marker = marker;
    steady->reference_count = steady->last_count = count;
    steady->looks = 0;
    now->earliest_s = HUGE_VAL;
}

/* The difference between a look and the reference; times up to old_s have no effect since. */
struct shift {
    double later_s, old_s;
};

static bool same_time(const struct shift *shift, double before_s, double now_s)
{
    if (before_s <= shift->old_s && now_s <= shift->old_s + shift->later_s) return true;
    double since_s = now_s - shift->later_s;
    return !(since_s < before_s) && !(since_s > before_s);
}

static bool same_device(const struct partition *cut, const struct shift *shift, const struct schedule_builder_device *a,
                      const struct schedule_builder_device *b)
{
    if (a->last_job != b->last_job || a->ahead != b->ahead ||
        a->turn % cut->weight_buffer_count != b->turn % cut->weight_buffer_count ||
        a->edge_turn % cut->edge_count != b->edge_turn % cut->edge_count ||
        !same_time(shift, a->h2d_free_s, b->h2d_free_s) || !same_time(shift, a->compute_free_s, b->compute_free_s) ||
        !same_time(shift, a->d2h_free_s, b->d2h_free_s) || !same_time(shift, a->p2p_free_s, b->p2p_free_s))
        return false;
    for (uint32_t i = 0; i < cut->weight_buffer_count; i++)
        if (!same_time(shift, a->weight_buffer_free_s[i], b->weight_buffer_free_s[i]) ||
            !same_time(shift, a->weight_buffer_left_s[i], b->weight_buffer_left_s[i]))
            return false;
    return true;
}

static bool same_host(const struct shift *shift, const struct schedule_builder_host *a,
                      const struct schedule_builder_host *b)
{
    return same_time(shift, a->cpu_free_s, b->cpu_free_s) && same_time(shift, a->host_free_s, b->host_free_s) &&
           same_time(shift, a->read_free_s, b->read_free_s) && same_time(shift, a->write_free_s, b->write_free_s) &&
           same_time(shift, a->file_free_s, b->file_free_s);
}

static bool same_ranges(const struct shift *shift, const struct host_ranges *a, const struct host_ranges *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct host_segment *before = &a->segments[i], *now = &b->segments[i];
        if (before->first != now->first || before->end != now->end || before->job != now->job) return false;
        if (now->job == PLAN_NONE && !same_time(shift, before->free_s, now->free_s)) return false;
    }
    return true;
}

/* Returns the units on its last device since the job's last, capped; PLAN_NONE: the output is on the host. */
static uint32_t edges_since(const struct schedule_builder *p, uint32_t job)
{
    uint32_t last = p->view_jobs[job].last_device, edges = p->times->partition->edge_count;
    if (last == PLAN_NONE || p->jobs[job].edge_turn == PLAN_NONE) return PLAN_NONE;
    uint32_t since = p->devices[last].edge_turn - p->jobs[job].edge_turn;
    return since < edges ? since : edges + 1;
}

static bool same_job(const struct schedule_builder *a, const struct schedule_builder *b, uint32_t job,
                     const struct shift *shift)
{
    const struct partition *cut = a->times->partition;
    const struct job *about = &a->times->jobs->jobs[job];
    const struct schedule_builder_view *view = &a->view_jobs[job], *view_now = &b->view_jobs[job];
    const struct schedule_builder_job *own = &a->jobs[job], *own_now = &b->jobs[job];
    if (is_over(a, job) != is_over(b, job)) return false;
    if (is_over(a, job)) return true;
    uint64_t minibatches = own_now->minibatch - own->minibatch;
    if (own->position != own_now->position || own->seat != own_now->seat ||
        view->last_device != view_now->last_device || view->next_device != view_now->next_device ||
        view->admitted != view_now->admitted || view->reserved != view_now->reserved ||
        own->has_range != own_now->has_range || edges_since(a, job) != edges_since(b, job) ||
        (about->evaluation.every > 0 && minibatches % about->evaluation.every != 0))
        return false;
    if (!same_time(shift, view->ready_s, view_now->ready_s) ||
        !same_time(shift, own->edge_ready_s, own_now->edge_ready_s))
        return false;
    for (uint32_t s = cut->job_first_shard[job]; s < cut->job_first_shard[job + 1]; s++)
        if (!same_time(shift, a->state_ready_s[s], b->state_ready_s[s])) return false;
    return true;
}

static bool same_state(const struct schedule_builder *a, const struct schedule_builder *b, const struct shift *shift)
{
    const struct cost_table *times = a->times;
    if (a->next_admitted != b->next_admitted || a->seats_free_count != b->seats_free_count) return false;
    for (uint32_t i = 0; i < a->seats_free_count; i++)
        if (a->seats_free[i] != b->seats_free[i]) return false;
    for (uint32_t d = 0; d < a->device_count; d++)
        if (!same_device(times->partition, shift, &a->devices[d], &b->devices[d])) return false;
    for (uint32_t h = 0; h < hardware_host_count(times->hardware); h++)
        if (!same_host(shift, &a->hosts[h], &b->hosts[h])) return false;
    for (uint32_t j = 0; j < times->jobs->count; j++)
        if (!same_job(a, b, j, shift)) return false;
    return same_ranges(shift, &a->ranges, &b->ranges);
}

/* --- how many cycles --------------------------------------------------------------------------- */

/* Return the end of a positive number's binade, and the distance of numbers there. */
static double binade_end(double number)
{
    int exponent;
    frexp(number, &exponent);
    return ldexp(1, exponent);
}
static double binade_spacing(double number) { return ldexp(binade_end(number), -DBL_MANT_DIG); }

typedef void (*time_use)(double *time_s, const struct schedule_cycle *cycle, double *result);

static void use_device(struct schedule_builder_device *clocks, uint32_t weight_buffers, time_use use,
                       const struct schedule_cycle *cycle, double *result)
{
    use(&clocks->h2d_free_s, cycle, result);
    use(&clocks->compute_free_s, cycle, result);
    use(&clocks->d2h_free_s, cycle, result);
    use(&clocks->p2p_free_s, cycle, result);
    for (uint32_t i = 0; i < weight_buffers; i++) {
        use(&clocks->weight_buffer_free_s[i], cycle, result);
        use(&clocks->weight_buffer_left_s[i], cycle, result);
    }
}

/* Visits all clocks of unfinished jobs. */
static void use_times(struct schedule_builder *p, time_use use, const struct schedule_cycle *cycle, double *result)
{
    const struct partition *cut = p->times->partition;
    for (uint32_t d = 0; d < p->device_count; d++)
        use_device(&p->devices[d], cut->weight_buffer_count, use, cycle, result);
    for (uint32_t h = 0; h < hardware_host_count(p->times->hardware); h++) {
        use(&p->hosts[h].cpu_free_s, cycle, result);
        use(&p->hosts[h].host_free_s, cycle, result);
        use(&p->hosts[h].read_free_s, cycle, result);
        use(&p->hosts[h].write_free_s, cycle, result);
        use(&p->hosts[h].file_free_s, cycle, result);
    }
    for (uint32_t j = 0; j < p->times->jobs->count; j++) {
        if (is_over(p, j)) continue;
        use(&p->view_jobs[j].ready_s, cycle, result);
        use(&p->jobs[j].edge_ready_s, cycle, result);
        for (uint32_t s = cut->job_first_shard[j]; s < cut->job_first_shard[j + 1]; s++)
            use(&p->state_ready_s[s], cycle, result);
    }
    for (uint32_t i = 0; i < p->ranges.count; i++)
        if (p->ranges.segments[i].job == PLAN_NONE) use(&p->ranges.segments[i].free_s, cycle, result);
}

static void find_latest(double *time_s, const struct schedule_cycle *cycle, double *result)
{
    (void)cycle;
    *result = max_s(*result, *time_s);
}

/* Counts cycles while clocks stay in their binade. */
static double cycles_by_clocks(const struct schedule_steady *steady, const struct shift *shift)
{
    double latest = 0;
    use_times(steady->builder, find_latest, NULL, &latest);
    double end = binade_end(latest);
    if (shift->old_s < end / 2 || fmod(shift->later_s, 2 * binade_spacing(latest)) > 0) return 0;
    return floor((end - latest) / shift->later_s) - 2;
}

/* Counts cycles of a running job before its end, with its remaining computation in the same binade. */
static double cycles_by_job(const struct schedule_steady *steady, uint32_t job, uint64_t minibatches)
{
    const struct schedule_builder *before = steady->reference, *now = steady->builder;
    double then = before->view_jobs[job].remaining_s, left = now->view_jobs[job].remaining_s, drop = then - left;
    uint64_t to_do = now->times->jobs->jobs[job].minibatches - now->jobs[job].minibatch;
    double cycles = (double)(to_do / minibatches) - 2, end = binade_end(left);
    if (!(drop > 0)) return cycles;
    if (then >= end || fmod(drop, 2 * binade_spacing(left)) > 0) return 0;
    return min_s(cycles, floor((left - end / 2) / drop) - 2);
}

static uint64_t minibatches_since(const struct schedule_steady *steady, uint32_t job)
{
    return steady->builder->jobs[job].minibatch - steady->reference->jobs[job].minibatch;
}

/* Counts cycles until a job that could have been chosen comes up to a chosen one: pair by pair. */
static double cycles_by_pairs(const struct schedule_steady *steady)
{
    const uint32_t jobs = steady->builder->times->jobs->count;
    double cycles = HUGE_VAL;
    for (uint32_t chosen = 0; chosen < jobs; chosen++) {
        const double drift = rank_of(steady, chosen) - steady->ranks[chosen];
        for (uint32_t other = 0; other < jobs; other++) {
            const double gap = steady->gaps[(size_t)chosen * jobs + other];
            const double nearer = gap < HUGE_VAL ? rank_of(steady, other) - steady->ranks[other] - drift : 0;
            if (nearer > 0) cycles = min_s(cycles, gap / nearer);
        }
    }
    return cycles - 2;
}

/*
 * A running job's rank changes by `drift` in a cycle. Two jobs come closer by at most the widest difference of drifts;
 * at each choice the others were at least `gap` below the chosen one. A waiting job keeps its rank, until the lowest
 * rank of a chosen one falls to it.
 */
static double cycles_by_rank(const struct schedule_steady *steady)
{
    const struct schedule_builder *now = steady->builder;
    double least = HUGE_VAL, most = -HUGE_VAL, waiting = -HUGE_VAL, cycles = HUGE_VAL;
    uint32_t jobs = now->times->jobs->count;
    if (!steady->rank) return HUGE_VAL;
    if (steady->gaps) return cycles_by_pairs(steady);
    for (uint32_t j = 0; j < jobs; j++) {
        double rank = rank_of(steady, j);
        bool runs = minibatches_since(steady, j) > 0;
        if (runs) least = min_s(least, rank - steady->ranks[j]);
        if (runs) most = max_s(most, rank - steady->ranks[j]);
        if (!runs && now->view_jobs[j].admitted && !is_over(now, j)) waiting = max_s(waiting, rank);
    }
    if (most > least) cycles = steady->gap / (most - least);
    for (uint32_t j = 0; j < jobs && waiting > -HUGE_VAL; j++) {
        double drift = rank_of(steady, j) - steady->ranks[j];
        if (minibatches_since(steady, j) > 0 && drift < 0)
            cycles = min_s(cycles, (steady->lowest[j] - waiting) / -drift);
    }
    return cycles - 2;
}

/* --- leaving out ------------------------------------------------------------------------------- */

static void move_time(double *time_s, const struct schedule_cycle *cycle, double *result)
{
    (void)result;
    if (*time_s > cycle->old_s) *time_s += cycle->later_s;
}

void schedule_steady_move(struct schedule_builder *builder, const struct schedule_cycle *cycle)
{
    use_times(builder, move_time, cycle, NULL);
}

static void leave_out(struct schedule_steady *steady, const struct schedule_cycle *cycle)
{
    struct schedule_builder *now = steady->builder;
    schedule_steady_move(now, cycle);
    for (uint32_t j = 0; j < now->times->jobs->count; j++) {
        uint64_t minibatches = minibatches_since(steady, j);
        if (minibatches == 0) continue;
        now->jobs[j].minibatch += cycle->times * minibatches;
        now->view_jobs[j].remaining_s -=
            (double)cycle->times * (steady->reference->view_jobs[j].remaining_s - now->view_jobs[j].remaining_s);
    }
}

/* --- public ---------------------------------------------------------------------------------- */

void schedule_steady_decided(struct schedule_steady *steady, double now_s, uint32_t job, double rank, double next_rank)
{
    if (!steady->reference) return;
    steady->builder->earliest_s = min_s(steady->builder->earliest_s, now_s);
    steady->lowest[job] = min_s(steady->lowest[job], rank);
    if (next_rank > -HUGE_VAL) steady->gap = min_s(steady->gap, rank - next_rank);
}

void schedule_steady_compared(struct schedule_steady *steady, uint32_t job, double rank, uint32_t other,
                              double other_rank)
{
    double *const gap = &steady->gaps[(size_t)job * steady->builder->times->jobs->count + other];
    *gap = min_s(*gap, rank - other_rank);
}

/* Returns the number of whole cycles to skip; 0 if the state differs or is about to change. */
static uint64_t cycles_to_come(const struct schedule_steady *steady, struct schedule_cycle *cycle)
{
    const struct schedule_builder *before = steady->reference, *now = steady->builder;
    double now_s = now->view_jobs[steady->marker].ready_s;
    struct shift shift = {.later_s = now_s - before->view_jobs[steady->marker].ready_s, .old_s = now->earliest_s};
    if (!(shift.later_s > 0) || !same_state(before, now, &shift)) return 0;
    double cycles = min_s(cycles_by_clocks(steady, &shift), cycles_by_rank(steady));
    for (uint32_t j = 0; j < now->times->jobs->count; j++)
        if (minibatches_since(steady, j) > 0)
            cycles = min_s(cycles, cycles_by_job(steady, j, minibatches_since(steady, j)));
    if (!(cycles >= 1)) return 0;
    cycle->times = (uint64_t)cycles;
    cycle->later_s = floor(cycles) * shift.later_s;
    cycle->old_s = shift.old_s;
    return cycle->times;
}

bool schedule_steady_look(struct schedule_steady *steady, const struct schedule_unit *unit, uint32_t count,
                          struct schedule_cycle *out)
{
    if (!steady->reference || !unit->ends) return false;
    bool marked = steady->marker != PLAN_NONE && !is_over(steady->builder, steady->marker);
    if (!marked && unit->last) return false;
    if (!marked) {
        keep_reference(steady, unit->job, count);
        return false;
    }
    if (unit->job != steady->marker || (count - steady->last_count) * (size_t)BYTES_OF_UNIT < steady->builder->bytes)
        return false;
    steady->last_count = count;
    steady->looks++;
    if (cycles_to_come(steady, out) > 0) {
        out->first = steady->reference_count;
        out->end = count;
        leave_out(steady, out);
        steady->patience = PATIENCE_MIN;
        return true;
    }
    if (steady->looks < steady->patience) return false;
    steady->patience = steady->patience < PATIENCE_MAX ? steady->patience * PATIENCE_GROWS : PATIENCE_MIN;
    keep_reference(steady, unit->job, count);
    return false;
}

void schedule_steady_go_on(struct schedule_steady *steady, uint32_t count)
{
    keep_reference(steady, steady->marker, count);
}
