/*
 * Why a round repeats. It has the units of whole minibatches of each job, in a chain each, so every job begins a
 * repetition at the position at which it began the one before. How a unit is written down depends besides on where its
 * job's last output is, and on the turns of its device's buffers. So nothing stays on a device from one round to the
 * next, and turns begin anew (a *joint*, struct schedule): every repetition is written as the first one. No job begins
 * or ends in a round.
 *
 * Which stretch. Rounding up gives each job up to a minibatch more than its rate. A stretch is closed when the jobs'
 * minibatches are in proportion to their rates up to a tolerance that grows with the stretch: proportion_min of the
 * shortest, proportion_max of one SPAN_MAX times as long.
 *
 * How many rounds. Clocks next to each other in a fixed order come to a steady pace (a linear system in max and plus).
 * Some rounds on a copy of the clocks show it. If they are slower than the policy's own decisions, by more than
 * slower_max, or few would repeat, none does, and another stretch is tried. From attempt to attempt slower_max grows,
 * and stretches get longer. Rounds end
 *     before a job ends;
 *     before an evaluation, if a round does not have the same ones each time;
 *     when a job's remaining time meets another one's, which the policy then prefers; jobs that are together already
 *     may drift apart by `drift` of what remains.
 * The policy makes good what has drifted, in the next stretch.
 *
 * Cost. The number of stretches grows with the number of jobs that end or meet, and with the logarithm of the number of
 * minibatches: a stretch repeats over a share of what remains.
 */
#include "planner/spill/order/schedule_near.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "planner/policy/policies.h"

enum {
    JOBS_MAX = 512,         /* for more, comparing all pairs takes longer than placing units */
    LEFT_MIN = 1 << 17,     /* left to place; with fewer, rounds save little */
    EXACT_UNITS = 1 << 15,  /* placed without an exact cycle before the first stretch */
    MINIBATCHES = 6,        /* of a job in the shortest stretch, if all have the same */
    SPAN_MAX = 4,
    ATTEMPTS_GROW = 3,      /* attempts after which a stretch is twice as long */
    ATTEMPTS_MAX = 9,       /* after so many, stretches no longer get longer */
    TRIED = 4,              /* rounds on the copy */
    TIMES_MIN = TRIED + 2,
    EVALUATED_STEP_MAX = 16 /* minibatches between evaluations that a round may have */
};

static const double proportion_min = 0.003, proportion_max = 0.05, slower_max = 0.001, drift = 0.1;

/* --- creation -------------------------------------------------------------------------------- */

static double rank_sign_of(const struct policy *policy)
{
    if (policy == &policy_srtf) return -1;
    return policy->rank == policy_remaining || policy == &policy_sharded_lrtf_cached ? 1 : 0;
}

static void describe_job(struct schedule_near *near, uint32_t j)
{
    const struct cost_table *times = near->builder->times;
    const struct job *of = &times->jobs->jobs[j];
    struct schedule_near_job *job = &near->jobs[j];
    uint32_t positions = schedule_unit_count(partition_job_units(times->partition, j));
    uint32_t shards = partition_job_shards(times->partition, j);
    double held_out_s = 0;
    for (uint32_t i = 0; i < positions; i++) job->minibatch_s += cost_table_at(times, 0, j, i)->compute_s;
    for (uint32_t i = 0; i < shards; i++) held_out_s += cost_table_at(times, 0, j, positions + i)->compute_s;
    job->step = of->evaluation.every > 0 && of->evaluation.every <= EVALUATED_STEP_MAX
                ? (uint32_t)of->evaluation.every : 1;
    if (job->step == of->evaluation.every)
        job->minibatch_s += held_out_s * (double)of->evaluation.minibatches / (double)of->evaluation.every;
}

/* Returns the units of a stretch in which each job makes MINIBATCHES. */
static uint32_t size_of(const struct schedule_near *near)
{
    const struct cost_table *times = near->builder->times;
    uint64_t units = 0;
    for (uint32_t j = 0; j < times->jobs->count; j++)
        units += (uint64_t)MINIBATCHES * schedule_unit_count(partition_job_units(times->partition, j));
    return units < LEFT_MIN ? (uint32_t)units : LEFT_MIN;
}

enum status schedule_near_begin(struct schedule_near *near, struct schedule_builder *builder, bool one_device,
                                const struct policy *policy, uint64_t units, struct error *err)
{
    uint32_t jobs = builder->times->jobs->count;
    *near = (struct schedule_near){.builder = builder, .rank_sign = rank_sign_of(policy)};
    if (units < LEFT_MIN || one_device || jobs < 2 || jobs > JOBS_MAX || builder->times->partition->resident ||
        !schedule_policy_repeats(policy))
        return STATUS_OK;
    near->jobs = alloc_zeroed(jobs, sizeof *near->jobs);
    if (!near->jobs) return error_memory(err, "the schedule", jobs * sizeof *near->jobs);
    for (uint32_t j = 0; j < jobs; j++) describe_job(near, j);
    near->state = NEAR_IDLE;
    near->size = size_of(near);
    near->idle_until = EXACT_UNITS;
    return schedule_builder_create(builder->times, one_device, &near->scratch, err);
}

void schedule_near_release(struct schedule_near *near)
{
    schedule_builder_destroy(near->scratch);
    free(near->jobs);
}

/* --- stretches ------------------------------------------------------------------------------- */

static uint64_t minibatches_of(const struct schedule_near *near, uint32_t job)
{
    return near->builder->times->jobs->jobs[job].minibatches;
}

static bool is_done(const struct schedule_near *near, uint32_t job)
{
    return near->builder->jobs[job].minibatch == minibatches_of(near, job);
}

/* Returns false for a job that is done, or waits for room in host memory. */
static bool is_under_way(const struct schedule_near *near, uint32_t job)
{
    return near->builder->view_jobs[job].admitted && !is_done(near, job);
}

/* Returns when the last device is free. Idle devices' clocks stand still. */
static double free_s(const struct schedule_builder *p)
{
    double latest = 0;
    for (uint32_t d = 0; d < p->device_count; d++) latest = max_s(latest, p->devices[d].compute_free_s);
    return latest;
}

/* Begins to measure the policy's pace, after `count` units. */
static void measure(struct schedule_near *near, uint32_t count)
{
    near->phase_first = count;
    near->phase_free_s = free_s(near->builder);
    near->phase_placed_s = 0;
}

/* Returns the policy's pace: since jobs ended or rounds were repeated, or at least in this stretch. */
static double pace(const struct schedule_near *near)
{
    return near->phase_placed_s / (free_s(near->builder) - near->phase_free_s);
}

static void open_stretch(struct schedule_near *near, uint32_t count)
{
    near->state = NEAR_OPEN;
    near->first = count;
    near->next_check = count + near->size;
    schedule_builder_join(near->builder);
    for (uint32_t j = 0; j < near->builder->times->jobs->count; j++) {
        near->jobs[j].minibatch = near->builder->jobs[j].minibatch;
        near->jobs[j].position = near->builder->jobs[j].position;
        near->jobs[j].placed_s = 0;
        near->jobs[j].quota = 0;
    }
}

static void give_up(struct schedule_near *near, uint32_t count)
{
    near->state = NEAR_IDLE;
    near->idle_until = count;
    if (near->attempts < ATTEMPTS_MAX) near->attempts++;
    else near->idle_until += near->size << ATTEMPTS_GROW;
}

/* Returns the minibatches of a job from `minibatch` on before one that an evaluation follows. */
static uint64_t before_evaluation(const struct job *job, uint64_t minibatch)
{
    uint64_t every = job->evaluation.every;
    if (every == 0) return UINT64_MAX;
    return every - 1 - (job->first_minibatch + minibatch) % every;
}

/* Sets a job's quota. Returns false if a round does not repeat. */
static bool set_quota(struct schedule_near *near, uint32_t j)
{
    struct schedule_near_job *job = &near->jobs[j];
    const struct schedule_builder_job *now = &near->builder->jobs[j];
    const struct job *of = &near->builder->times->jobs->jobs[j];
    uint64_t quota = now->minibatch - job->minibatch + (now->position > job->position ? 1 : 0);
    job->quota = (quota + job->step - 1) / job->step * job->step;
    if (job->quota == 0) return true;
    if (minibatches_of(near, j) - job->minibatch < job->quota * (TIMES_MIN + 2)) return false;
    bool alike = of->evaluation.every == 0 || job->step == of->evaluation.every;
    return alike || (job->position < schedule_unit_count(partition_job_units(near->builder->times->partition, j)) &&
                     before_evaluation(of, job->minibatch) >= job->quota * (TIMES_MIN + 2));
}

/* Returns how far the quotas are from the jobs' rates; HUGE_VAL: such rounds do not repeat. */
static double proportion(struct schedule_near *near)
{
    uint32_t jobs = near->builder->times->jobs->count, runs = 0;
    double placed = 0, closed = 0, worst = 0;
    for (uint32_t j = 0; j < jobs; j++) {
        if (is_done(near, j)) continue;
        if (!set_quota(near, j)) return HUGE_VAL;
        placed += near->jobs[j].placed_s;
        closed += (double)near->jobs[j].quota * near->jobs[j].minibatch_s;
        runs += near->jobs[j].quota > 0;
    }
    if (!(placed > 0)) return HUGE_VAL;
    for (uint32_t j = 0; j < jobs; j++) {
        const struct schedule_near_job *job = &near->jobs[j];
        double rate = job->placed_s * closed / placed, error = fabs((double)job->quota * job->minibatch_s - rate);
        worst = max_s(worst, error / max_s(rate, closed / runs / 4));
    }
    return worst;
}

static bool is_open(const struct schedule_near *near)
{
    for (uint32_t j = 0; j < near->builder->times->jobs->count; j++)
        if (!schedule_near_holds(near, j) && !is_done(near, j)) return true;
    return false;
}

/* Closes the stretch if it is long and near its rates. */
static enum schedule_near_step check(struct schedule_near *near, uint32_t count)
{
    uint32_t span = count - near->first, size = near->size << (near->attempts / ATTEMPTS_GROW);
    if (span < size) return NEAR_GOES_ON;
    near->next_check = count + 1 + near->builder->times->jobs->count / 4;
    double share = (double)(span - size) / ((double)(SPAN_MAX - 1) * size);
    double found = proportion(near);
    if (found > proportion_min * pow(proportion_max / proportion_min, min_s(share, 1))) {
        if (share >= 1) give_up(near, count);
        return NEAR_GOES_ON;
    }
    near->pace = pace(near);
    near->state = NEAR_CLOSING;
    return is_open(near) ? NEAR_CLOSES : NEAR_CLOSED;
}

/* --- how many rounds ------------------------------------------------------------------------- */

static double remaining_s(const struct schedule_near *near, uint32_t job)
{
    return near->builder->view_jobs[job].remaining_s;
}

/* Counts rounds until two jobs have drifted past each other. */
static double rounds_by_pair(const struct schedule_near *near, uint32_t a, uint32_t b)
{
    double apart = remaining_s(near, a) - remaining_s(near, b);
    double opens = near->jobs[b].drop_s - near->jobs[a].drop_s; /* by which `apart` grows in a round */
    uint32_t less = apart > 0 ? b : a;
    double small = 2 * max_s(near->jobs[a].minibatch_s, near->jobs[b].minibatch_s);
    double room = drift * remaining_s(near, less), narrows = drift * near->jobs[less].drop_s;
    bool nearer = (apart > 0) == (opens < 0);
    double meet = fabs(apart) / fabs(opens);
    if (nearer) return meet >= TIMES_MIN && fabs(apart) > room ? meet : (room + fabs(apart)) / (fabs(opens) + narrows);
    bool together = fabs(opens) <= small && fabs(apart) <= room + small;
    return near->rank_sign > 0 && together ? room / (fabs(opens) + narrows) : HUGE_VAL;
}

static double rounds_by_job(const struct schedule_near *near, uint32_t j)
{
    const struct schedule_near_job *job = &near->jobs[j];
    const struct job *of = &near->builder->times->jobs->jobs[j];
    uint64_t done = near->builder->jobs[j].minibatch, left = minibatches_of(near, j) - done - 1;
    if (of->evaluation.every != job->step) left = min_u64(left, before_evaluation(of, done));
    return (double)(left / job->quota);
}

static uint64_t rounds_to_come(const struct schedule_near *near)
{
    uint32_t jobs = near->builder->times->jobs->count;
    double rounds = HUGE_VAL;
    for (uint32_t j = 0; j < jobs; j++)
        if (near->jobs[j].quota > 0) rounds = min_s(rounds, rounds_by_job(near, j));
    for (uint32_t a = 0; a < jobs && (near->rank_sign > 0 || near->rank_sign < 0); a++)
        for (uint32_t b = 0; b < a; b++)
            if (is_under_way(near, a) && is_under_way(near, b) && near->jobs[a].quota + near->jobs[b].quota > 0)
                rounds = min_s(rounds, rounds_by_pair(near, a, b));
    return rounds >= TIMES_MIN ? (uint64_t)rounds : 0;
}

/* Places rounds on a copy of the clocks: how long one takes, and what it leaves of the jobs. */
static void try_rounds(struct schedule_near *near, const struct schedule_unit *units, uint32_t count)
{
    uint32_t jobs = near->builder->times->jobs->count;
    struct schedule_unit unit;
    double before_s = 0;
    schedule_builder_copy(near->scratch, near->builder);
    near->scratch->earliest_s = HUGE_VAL;
    for (uint32_t round = 0; round < TRIED; round++) {
        schedule_builder_join(near->scratch);
        if (round == 0) before_s = free_s(near->scratch);
        for (uint32_t i = near->first; i < count; i++)
            schedule_builder_put(near->scratch, units[i].job, units[i].device, &unit);
    }
    near->round_s = (free_s(near->scratch) - before_s) / TRIED;
    for (uint32_t j = 0; j < jobs; j++)
        near->jobs[j].drop_s = (remaining_s(near, j) - near->scratch->view_jobs[j].remaining_s) / TRIED;
}

/* --- public ---------------------------------------------------------------------------------- */

void schedule_near_restart(struct schedule_near *near, uint32_t count)
{
    if (near->state == NEAR_OFF) return;
    near->state = NEAR_IDLE;
    near->idle_until = count + EXACT_UNITS;
    near->attempts = 0;
    measure(near, count);
}

enum schedule_near_step schedule_near_look(struct schedule_near *near, const struct schedule_unit *unit,
                                           uint32_t count, uint64_t left)
{
    if (near->state == NEAR_OFF) return NEAR_GOES_ON;
    if (near->state == NEAR_CLOSING) return schedule_near_holds(near, unit->job) && !is_open(near) ? NEAR_CLOSED
                                                                                                  : NEAR_GOES_ON;
    double compute_s = cost_table_at(near->builder->times, unit->device, unit->job, unit->position)->compute_s;
    near->phase_placed_s += compute_s;
    if (unit->last) measure(near, count);
    if (near->state == NEAR_IDLE || unit->first || unit->last) {
        near->state = NEAR_IDLE;
        if (count < near->idle_until || left < LEFT_MIN) return NEAR_GOES_ON;
        open_stretch(near, count);
        return NEAR_OPENS;
    }
    near->jobs[unit->job].placed_s += compute_s;
    return count >= near->next_check ? check(near, count) : NEAR_GOES_ON;
}

bool schedule_near_holds(const struct schedule_near *near, uint32_t job)
{
    const struct schedule_near_job *of = &near->jobs[job];
    const struct schedule_builder_job *now = &near->builder->jobs[job];
    return near->state == NEAR_CLOSING && now->minibatch == of->minibatch + of->quota && now->position == of->position;
}

double schedule_near_rank(const struct schedule_near *near, uint32_t job)
{
    const struct schedule_near_job *of = &near->jobs[job];
    const struct schedule_builder_job *now = &near->builder->jobs[job];
    double units = schedule_unit_count(partition_job_units(near->builder->times->partition, job));
    double minibatches = (double)(of->minibatch + of->quota - now->minibatch);
    double left = minibatches * units + (double)of->position - (double)now->position;
    return of->minibatch_s * max_s(left, 0.5) / units; /* an evaluation, after the minibatch's units, counts as half */
}

uint64_t schedule_near_choose(struct schedule_near *near, const struct schedule_unit *units, uint32_t count)
{
    double work_s = 0;
    for (uint32_t j = 0; j < near->builder->times->jobs->count; j++)
        work_s += (double)near->jobs[j].quota * near->jobs[j].minibatch_s;
    try_rounds(near, units, count);
    uint64_t times = rounds_to_come(near);
    if (work_s / near->round_s < (1 - slower_max * (1 + near->attempts)) * near->pace) times = 0;
    if (times == 0) give_up(near, count);
    return times;
}

void schedule_near_skip(struct schedule_near *near, struct schedule_cycle *cycle)
{
    struct schedule_builder *now = near->builder;
    double rounds = (double)(cycle->times - TRIED);
    schedule_builder_copy(now, near->scratch);
    schedule_builder_join(now);
    cycle->later_s = rounds * near->round_s;
    cycle->old_s = now->earliest_s;
    schedule_steady_move(now, cycle);
    for (uint32_t j = 0; j < now->times->jobs->count; j++) {
        if (near->jobs[j].quota == 0) continue;
        now->jobs[j].minibatch += (cycle->times - TRIED) * near->jobs[j].quota;
        now->view_jobs[j].remaining_s = max_s(remaining_s(near, j) - rounds * near->jobs[j].drop_s, 1e-12);
    }
    near->state = NEAR_IDLE;
    near->idle_until = cycle->end;
    near->attempts = 0;
    measure(near, cycle->end);
}
