/* A way is planned on only the first devices of the machine (planner/strategy/subproblem.h). */
#include "planner/capacity/what_if.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/job/job.h"
#include "planner/capacity/what_if_floor.h"
#include "planner/strategy/subproblem.h"

enum { FIRST = 2, SECOND = 4, WHOLE_MOST = 8 };

/* Simulations add up in another order than floors. */
static const double rounding = 1e-9;

/* --- one way ---------------------------------------------------------------------------------- */

enum status what_if_plan(const struct hardware *hardware, const struct job *job, const struct what_if_way *way,
                         uint64_t minibatches, struct plan *out, struct error *err)
{
    struct job own = *job;
    const uint32_t first = 0, device_count = way->fit.devices;
    uint32_t *devices = alloc_zeroed(device_count, sizeof *devices);
    if (!devices) return error_memory(err, "devices", device_count * sizeof *devices);
    for (uint32_t d = 0; d < device_count; d++) devices[d] = d;
    own.microbatch = way->microbatch;
    own.microbatches = way->microbatches;
    own.minibatches = minibatches;
    const struct planner_options options = {.policy = way->fit.policy,
                                            .activations = way->fit.activations,
                                            .optimizer = way->fit.optimizer,
                                            .storage = way->fit.storage,
                                            .last = way->fit.last};
    const struct subproblem subproblem = {.jobs = &first, .devices = devices, .job_count = 1,
                                          .device_count = device_count};
    enum status status = subproblem_plan(hardware, &own, &subproblem, &way->fit.parallel, hardware->host_bytes.value,
                                         &options, out, err);
    free(devices);
    return status;
}

static enum status time_minibatches(const struct hardware *hardware, const struct job *job,
                                    const struct what_if_way *way, const struct saturn_clock *clock,
                                    uint64_t minibatches, double *seconds, struct error *err)
{
    struct plan plan = {0};
    enum status status = what_if_plan(hardware, job, way, minibatches, &plan, err);
    if (!status) status = clock->time(clock->context, &plan, seconds, err);
    plan_release(&plan);
    return status;
}

enum status what_if_minibatch(const struct hardware *hardware, const struct job *job, const struct what_if_way *way,
                              const struct saturn_clock *clock, double *begin_s, double *minibatch_s, struct error *err)
{
    double first_s, second_s;
    TRY(time_minibatches(hardware, job, way, clock, SECOND, &second_s, err));
    TRY(time_minibatches(hardware, job, way, clock, FIRST, &first_s, err));
    *minibatch_s = (second_s - first_s) / (SECOND - FIRST);
    *begin_s = second_s - SECOND * *minibatch_s;
    return STATUS_OK;
}

enum status what_if_time(const struct hardware *hardware, const struct job *job, const struct what_if_way *way,
                         const struct saturn_clock *clock, double *run_s, struct error *err)
{
    double begin_s, minibatch_s;
    if (job->minibatches <= WHOLE_MOST)
        return time_minibatches(hardware, job, way, clock, job->minibatches, run_s, err);
    TRY(what_if_minibatch(hardware, job, way, clock, &begin_s, &minibatch_s, err));
    *run_s = begin_s + (double)job->minibatches * minibatch_s;
    return STATUS_OK;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Errors of a way's memory or options concern only the way; all others end the search. */
static bool only_this_way(enum status status)
{
    return status == STATUS_INFEASIBLE || status == STATUS_BAD_INPUT || status == STATUS_LIMIT;
}

static bool keep_less(struct what_if_way *way)
{
    struct parallel *p = &way->fit.parallel;
    if (!way->keeps_less || p->recompute >= RECOMPUTE_FULL) return false;
    p->recompute++;
    return true;
}

static void name_recompute(struct what_if_way *way)
{
    static const char *const suffixes[RECOMPUTE_COUNT] = {"", "+selective", "+recompute", "+stage"};
    size_t length = 0;
    while (way->fit.name[length]) length++;
    snprintf(way->fit.name + length, sizeof way->fit.name - length, "%s", suffixes[way->fit.parallel.recompute]);
}

/* A way and the next attempt to plan it. */
struct what_if_candidate {
    struct what_if_floor floor;
    bool open; /* not yet planned */
};

struct what_if_search {
    const struct hardware *hardware;
    const struct job *job;
    const struct saturn_clock *clock;
    struct what_if *out;
    struct what_if_candidate *candidates; /* (out->count) */
};

static void refuse_memory(const struct what_if_search *s, struct what_if_try *t, const struct what_if_floor *floor)
{
    char need[QUANTITY_TEXT_BYTES], have[QUANTITY_TEXT_BYTES];
    snprintf(t->reason, sizeof t->reason,
             "job '%.60s' needs at least %s on each device of stage %" PRIu32 ", which have %s", s->job->name,
             quantity_text((double)floor->device_bytes, DIMENSION_BYTES, need), floor->stage,
             quantity_text((double)floor->have_bytes, DIMENSION_BYTES, have));
}

/* Keeps the most activations for which the plan's lower bound leaves memory. */
static enum status open_way(const struct what_if_search *s, uint32_t index, struct error *err)
{
    struct what_if_try *t = &s->out->tries[index];
    struct what_if_candidate *c = &s->candidates[index];
    c->open = true;
    TRY(what_if_floor(s->hardware, s->job, &t->way, &c->floor, err));
    while (c->floor.device_bytes > c->floor.have_bytes) {
        refuse_memory(s, t, &c->floor);
        c->open = keep_less(&t->way);
        if (!c->open) return STATUS_OK;
        TRY(what_if_floor(s->hardware, s->job, &t->way, &c->floor, err));
    }
    return STATUS_OK;
}

/* Plans and times a way. If it does not fit, it is open again, with fewer activations kept. */
static enum status try_way(const struct what_if_search *s, uint32_t index, struct error *err)
{
    struct what_if *out = s->out;
    struct what_if_try *t = &out->tries[index];
    struct error why = {0};
    s->candidates[index].open = false;
    enum status status = what_if_time(s->hardware, s->job, &t->way, s->clock, &t->run_s, &why);
    if (!status) {
        t->fits = true;
        t->run_s = max_s(t->run_s, s->candidates[index].floor.run_s);
        if (out->best == out->count || t->run_s < out->tries[out->best].run_s) out->best = index;
        return STATUS_OK;
    }
    if (!only_this_way(status)) return error_set(err, status, "%s", why.text);
    snprintf(t->reason, sizeof t->reason, "%.*s", WHAT_IF_REASON_BYTES - 1, why.text);
    return status == STATUS_INFEASIBLE && keep_less(&t->way) ? open_way(s, index, err) : STATUS_OK;
}

/* Returns the open way that may be the fastest; `count`: none. */
static uint32_t most_promising(const struct what_if_search *s)
{
    uint32_t best = s->out->count;
    for (uint32_t i = 0; i < s->out->count; i++)
        if (s->candidates[i].open &&
            (best == s->out->count || s->candidates[i].floor.run_s < s->candidates[best].floor.run_s))
            best = i;
    return best;
}

/* Compares with the fastest way found, except for rounding. */
static bool may_be_faster(const struct what_if *found, double run_s)
{
    return found->best == found->count || run_s <= found->tries[found->best].run_s * (1 + rounding);
}

static void prefer_first(struct what_if *found)
{
    for (uint32_t i = 0; i < found->best; i++)
        if (found->tries[i].fits && may_be_faster(found, found->tries[i].run_s)) found->best = i;
}

static enum status search_ways(const struct what_if_search *s, bool all, struct error *err)
{
    struct what_if *out = s->out;
    for (uint32_t i = 0; i < out->count; i++) TRY(open_way(s, i, err));
    for (uint32_t i; (i = most_promising(s)) < out->count;) {
        if (!all && !may_be_faster(out, s->candidates[i].floor.run_s)) break;
        TRY(try_way(s, i, err));
    }
    if (out->best < out->count) prefer_first(out);
    for (uint32_t i = 0; i < out->count; i++) {
        struct what_if_try *t = &out->tries[i];
        t->slower = s->candidates[i].open;
        if (t->slower) t->run_s = s->candidates[i].floor.run_s;
        if (t->way.keeps_less) name_recompute(&t->way);
    }
    return STATUS_OK;
}

enum status what_if_search(const struct hardware *hardware, const struct job *job, const struct saturn_clock *clock,
                           bool all, struct what_if *out, struct error *err)
{
    struct what_if_way *ways = alloc_zeroed(WHAT_IF_WAYS_MAX, sizeof *ways);
    if (!ways) return error_memory(err, "ways", WHAT_IF_WAYS_MAX * sizeof *ways);
    uint32_t count = what_if_ways(hardware, job, ways);
    struct what_if_search search = {.hardware = hardware, .job = job, .clock = clock, .out = out};
    out->tries = alloc_zeroed(count, sizeof *out->tries);
    search.candidates = alloc_zeroed(count, sizeof *search.candidates);
    enum status status = out->tries && search.candidates ? STATUS_OK
                                                         : error_memory(err, "ways", count * sizeof *out->tries);
    if (!status) {
        out->best = out->count = count;
        for (uint32_t i = 0; i < count; i++) out->tries[i].way = ways[i];
        status = search_ways(&search, all, err);
    }
    free(search.candidates);
    free(ways);
    return status;
}

void what_if_release(struct what_if *what_if)
{
    free(what_if->tries);
    *what_if = (struct what_if){0};
}
