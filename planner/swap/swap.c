/*
 * Each job becomes a chain on the device that is free first (swap_chain.h), then choices and places (swap_choose.h),
 * then units (swap_units.h).
 *
 * A device's jobs follow each other, with a minibatch stored once. On several devices, jobs share the host's stream of
 * batches, which runs in plan order; so minibatches are in the order of expected starts.
 */
#include "planner/swap/swap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/spill/cut/bound.h"
#include "planner/spill/cut/partition_cutter.h"
#include "planner/swap/swap_choose.h"
#include "planner/swap/swap_units.h"

#define PREFIX "swap-" /* prefix of the plan's policy name, before the way */

struct swap_planned {
    struct swap_job job;
    struct swap_choice choice;
    double begin_s, minibatch_s; /* start on its device; seconds of a minibatch */
    uint64_t written;           /* minibatches */
    bool complete;
};

struct swap_planning {
    struct plan_builder *builder;
    struct plan *plan;
    const struct swap_options *options;
    struct swap_report *report;
    struct footprints *footprints;
    struct swap_planned *jobs;
    struct partition partition;
    double *free_s; /* per device: end of its jobs so far */
    struct error *err;
};

void swap_report_release(struct swap_report *report)
{
    arena_release(&report->arena);
    *report = (struct swap_report){0};
}

static const char *way_name(uint32_t way) { return way == SWAP_BEST ? "best" : chain_rule_names[way]; }

bool swap_made(const char *policy, uint32_t *way)
{
    if (strncmp(policy, PREFIX, strlen(PREFIX)) != 0) return false;
    for (*way = 0; *way < SWAP_WAYS; ++*way)
        if (strcmp(policy + strlen(PREFIX), way_name(*way)) == 0) return true;
    return false;
}

/* --- choosing -------------------------------------------------------------------------------- */

static void note_outcome(const struct swap_planned *p, uint8_t *choices, struct swap_outcome *out)
{
    const struct swap_choice *c = &p->choice;
    const int64_t none = swap_chain_no_passes(&p->job);
    double tick_s = p->job.tick_s;
    out->device = p->job.device;
    out->layer_count = p->job.layer_count;
    out->way = c->way;
    out->choices = choices;
    for (uint32_t l = 0; l < p->job.layer_count; l++) {
        choices[l] = c->schedule.choices[l];
        out->counts[choices[l]]++;
    }
    out->minibatch_s = p->minibatch_s;
    out->promised_s = (double)(c->schedule.makespan - none) * tick_s;
    out->compute_s = p->job.compute_s;
    out->chain_bytes = c->chain.memory;
    out->held_bytes = c->places.held;
    out->placed_bytes = c->places.end;
    out->bound_s = (double)(c->certificate.bound - none) * tick_s;
    out->cut_short = c->cut_short;
    if (c->way == SWAP_BEST)
        chain_certificate_text(&c->certificate, out->proof);
    else
        snprintf(out->proof, sizeof out->proof, "makespan %" PRId64 ", and no choices take less than %" PRId64
                 " (%s)", c->schedule.makespan, c->certificate.bound, c->certificate.proved_by);
}

static enum status choose_job(struct swap_planning *g, uint32_t index)
{
    struct swap_planned *p = &g->jobs[index];
    struct swap_outcome *outcome = &g->report->jobs[index];
    const struct job *job = &g->plan->jobs.jobs[index];
    uint32_t device = 0;
    uint8_t *choices;
    if (parallel_is_set(&job->parallel))
        return error_set(g->err, STATUS_BAD_INPUT, "job '%s' is parallel, and its activations stay there",
                         job->name);
    for (uint32_t d = 1; d < g->plan->hardware.device_count; d++)
        if (g->free_s[d] < g->free_s[device]) device = d;
    if (swap_job_make(&g->plan->hardware, &g->plan->jobs, g->footprints, index, device, &p->job, g->err) ||
        swap_choose(&p->job, g->options, &p->choice, outcome, g->err) ||
        ARENA_NEW(&g->report->arena, p->job.layer_count, choices, g->err))
        return g->err->status;
    p->minibatch_s = (double)p->choice.length * p->job.tick_s;
    p->begin_s = g->free_s[device];
    g->free_s[device] += p->job.load_s + (double)job->minibatches * p->minibatch_s + p->job.store_s;
    note_outcome(p, choices, outcome);
    return STATUS_OK;
}

/* --- writing --------------------------------------------------------------------------------- */

/* Makes every layer a shard, resident on its job's device. */
static void fill_partition(struct swap_planning *g)
{
    struct partition *out = &g->partition;
    out->resident = true;
    out->seat_count = 1;
    for (uint32_t j = 0; j < g->plan->jobs.count; j++) {
        const struct swap_planned *p = &g->jobs[j];
        out->job_first_shard[j] = out->shard_count;
        for (uint32_t l = 0; l < p->job.layer_count; l++) {
            uint32_t s = out->shard_count++;
            out->shards[s] = (struct plan_shard){.job = j, .first_layer = l, .layer_count = 1};
            out->shard_device[s] = p->job.device;
            out->persistent[s] = true;
            out->state_offset[s] = swap_range(&p->choice.places, l, SWAP_STATE)->offset;
            plan_builder_shard(g->builder, j, l, 1, false);
        }
        g->plan->job_activations[j] = ACTIVATIONS_SPILL;
    }
    partition_end(&g->plan->jobs, out);
}

/* Returns the expected start of the job's next minibatch, or its end. */
static double next_s(const struct swap_planned *p)
{
    return p->begin_s + (p->written > 0 ? p->job.load_s : 0) + (double)p->written * p->minibatch_s;
}

static void write_next(struct swap_planning *g, struct emit_context *e, uint32_t index, bool fold)
{
    struct swap_planned *p = &g->jobs[index];
    const struct swap_writing w = {.emitter = e, .job = &p->job, .places = &p->choice.places,
                                   .choices = p->choice.schedule.choices};
    uint64_t minibatches = p->job.job->minibatches;
    if (p->written == 0) swap_emit_load(&w);
    if (fold) plan_builder_segment(g->builder, 1);
    swap_emit_minibatch(&w);
    p->written += fold ? minibatches : 1;
    if (fold) plan_builder_segment(g->builder, (uint32_t)minibatches);
    p->complete = p->written == minibatches;
    if (p->complete) swap_emit_store(&w);
    if (p->complete && fold) plan_builder_segment(g->builder, 1);
}

static enum status write_jobs(struct swap_planning *g)
{
    struct emit_context e = {.builder = g->builder, .plan = g->plan, .footprints = g->footprints,
                        .partition = &g->partition, .err = g->err};
    uint32_t count = g->plan->jobs.count;
    bool fold = true; /* one device: plan order is the order of its jobs */
    for (uint32_t j = 0; j < count; j++) fold &= g->jobs[j].job.device == 0;
    for (;;) {
        uint32_t next = PLAN_NONE;
        for (uint32_t j = 0; j < count; j++)
            if (!g->jobs[j].complete && (next == PLAN_NONE || next_s(&g->jobs[j]) < next_s(&g->jobs[next]))) next = j;
        if (next == PLAN_NONE || e.status) break;
        write_next(g, &e, next, fold);
    }
    free(e.slots);
    free(e.acquires);
    return e.status;
}

/* --- the plan -------------------------------------------------------------------------------- */

static enum status describe(struct swap_planning *g)
{
    struct plan *plan = g->plan;
    struct bound bound;
    char policy[32];
    bound_makespan(&plan->hardware, &plan->jobs, false, &bound);
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        if (g->free_s[d] > plan->estimated_makespan_s) plan->estimated_makespan_s = g->free_s[d];
    plan->lower_bound_s = bound.seconds;
    plan->bound_kind = bound.kind;
    snprintf(policy, sizeof policy, "%s%s", PREFIX, way_name(g->options->way));
    enum status status = arena_string(&plan->arena, bound.text, &plan->bound_text, g->err);
    return status ? status : arena_string(&plan->arena, policy, &plan->policy, g->err);
}

static enum status allocate(struct swap_planning *g)
{
    uint32_t count = g->plan->jobs.count;
    g->jobs = alloc_zeroed(count, sizeof *g->jobs);
    g->free_s = alloc_zeroed(g->plan->hardware.device_count, sizeof *g->free_s);
    if (!g->jobs || !g->free_s) return error_memory(g->err, "jobs that swap", count * sizeof *g->jobs);
    if (ARENA_NEW(&g->report->arena, count, g->report->jobs, g->err) ||
        footprints_create(&g->plan->hardware, &g->plan->jobs, &g->footprints, g->err) ||
        partition_allocate(&g->plan->jobs, &g->partition, g->err))
        return g->err->status;
    g->report->job_count = count;
    return STATUS_OK;
}

enum status swap_plan(struct plan_builder *builder, const struct swap_options *options,
                      struct swap_report *report, struct error *err)
{
    struct swap_planning g = {.builder = builder, .plan = plan_builder_plan(builder), .options = options,
                              .report = report, .err = err};
    enum status status = allocate(&g);
    for (uint32_t j = 0; j < g.plan->jobs.count && !status; j++) status = choose_job(&g, j);
    if (!status) {
        fill_partition(&g);
        status = write_jobs(&g);
    }
    if (!status) status = describe(&g);
    for (uint32_t j = 0; g.jobs && j < g.plan->jobs.count; j++) {
        swap_choice_release(&g.jobs[j].choice);
        swap_job_release(&g.jobs[j].job);
    }
    free(g.jobs);
    free(g.free_s);
    footprints_destroy(g.footprints);
    partition_release(&g.partition);
    return status;
}
