/* See what_if.h. A way's plan is one of the first devices of the machine alone (planner/part.h). */
#include "planner/what_if.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "models/job.h"
#include "models/try.h"
#include "planner/part.h"

enum { FIRST = 2, SECOND = 4, WHOLE_MOST = 8 };

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
    const struct part part = {.jobs = &first, .devices = devices, .job_count = 1, .device_count = device_count};
    enum status status = part_plan(hardware, &own, &part, &way->fit.parallel, hardware->host_bytes.value, &options,
                                   out, err);
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

enum status what_if_time(const struct hardware *hardware, const struct job *job, const struct what_if_way *way,
                         const struct saturn_clock *clock, double *run_s, struct error *err)
{
    double first_s, second_s;
    if (job->minibatches <= WHOLE_MOST)
        return time_minibatches(hardware, job, way, clock, job->minibatches, run_s, err);
    TRY(time_minibatches(hardware, job, way, clock, SECOND, &second_s, err));
    TRY(time_minibatches(hardware, job, way, clock, FIRST, &first_s, err));
    *run_s = second_s + (double)(job->minibatches - SECOND) * (second_s - first_s) / (SECOND - FIRST);
    return STATUS_OK;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* What a way lacks, and what it cannot be, is its own affair; all else ends the search. */
static bool only_this_way(enum status status)
{
    return status == STATUS_INFEASIBLE || status == STATUS_BAD_INPUT || status == STATUS_LIMIT;
}

static bool keep_less(struct what_if_way *way)
{
    struct parallel *p = &way->fit.parallel;
    if (!way->keeps_less || p->recompute + 1 >= RECOMPUTE_COUNT) return false;
    p->recompute++;
    return true;
}

static void name_recompute(struct what_if_way *way)
{
    static const char *const suffixes[RECOMPUTE_COUNT] = {"", "+selective", "+recompute"};
    size_t length = 0;
    while (way->fit.name[length]) length++;
    snprintf(way->fit.name + length, sizeof way->fit.name - length, "%s", suffixes[way->fit.parallel.recompute]);
}

static enum status try_way(const struct hardware *hardware, const struct job *job, const struct saturn_clock *clock,
                           struct what_if_try *t, struct error *err)
{
    struct error why;
    do {
        why = (struct error){0};
        t->fits = what_if_time(hardware, job, &t->way, clock, &t->run_s, &why) == STATUS_OK;
    } while (why.status == STATUS_INFEASIBLE && keep_less(&t->way));
    if (t->way.keeps_less) name_recompute(&t->way);
    if (t->fits) return STATUS_OK;
    if (!only_this_way(why.status)) return error_set(err, why.status, "%s", why.text);
    snprintf(t->reason, sizeof t->reason, "%.*s", WHAT_IF_REASON_BYTES - 1, why.text);
    return STATUS_OK;
}

enum status what_if_search(const struct hardware *hardware, const struct job *job, const struct saturn_clock *clock,
                           struct what_if *out, struct error *err)
{
    struct what_if_way *ways = alloc_zeroed(WHAT_IF_WAYS_MAX, sizeof *ways);
    if (!ways) return error_memory(err, "ways", WHAT_IF_WAYS_MAX * sizeof *ways);
    uint32_t count = what_if_ways(hardware, job, ways);
    out->tries = alloc_zeroed(count, sizeof *out->tries);
    enum status status = out->tries ? STATUS_OK : error_memory(err, "ways", count * sizeof *out->tries);
    out->best = UINT32_MAX;
    for (uint32_t i = 0; !status && i < count; i++) {
        struct what_if_try *t = &out->tries[out->count++];
        t->way = ways[i];
        status = try_way(hardware, job, clock, t, err);
        if (status || !t->fits) continue;
        if (out->best == UINT32_MAX || t->run_s < out->tries[out->best].run_s) out->best = i;
    }
    if (out->best == UINT32_MAX) out->best = out->count;
    free(ways);
    return status;
}

void what_if_release(struct what_if *what_if)
{
    free(what_if->tries);
    *what_if = (struct what_if){0};
}
