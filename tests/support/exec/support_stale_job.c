#include "tests/support/exec/support_stale_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/size.h"
#include "exec/files/data.h"
#include "exec/files/weights.h"
#include "exec/network/chunk.h"
#include "models/job/learning_rate.h"
#include "models/job/parallel_memory.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"

void stale_job_plan(const struct job *wanted, const char *config, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, STALE_JOB_DEVICES, 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (wanted->parallel.storage)
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate = hardware.host_bandwidth;
    test_network_jobs(&jobs, 1, config, wanted->minibatches);
    struct job *job = &jobs.jobs[0];
    job->microbatch = wanted->microbatch;
    job->microbatches = wanted->microbatches;
    job->precision = wanted->precision;
    job->optimizer = wanted->optimizer;
    job->parallel = wanted->parallel;
    job->evaluation = wanted->evaluation;
    job->first_minibatch = wanted->first_minibatch;
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE};
    enum status status = parallel_check(job, &err);
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (status) fail_msg("%s", err.text);
}

/* --- the reference ---------------------------------------------------------------------------- */

struct stage {
    struct chunk_tables tables;
    uint32_t staleness;
    char *versions[STALE_JOB_UPDATES_MAX + 1]; /* whole states, after 0, 1, 2, ... updates */
    float *gradient[STALE_JOB_REPLICAS_MAX]; /* of each replica; [0]: in the end the sum of all */
    float *sum; /* of microbatches, which the replicas add up one by one; NULL where each adds up its own first */
    float *kept, *boundary, *d_boundary, *workspace;
};

struct reference {
    const struct job *job;
    struct job flat; /* the job on one device: without copies of a tied table, and without shares */
    const struct kernels *kernels;
    uint32_t chunks;
    struct stage stages[STALE_JOB_CHUNKS_MAX];
    int32_t *batch;
    uint64_t targets; /* of the batch */
    double *norms;
    struct arena arena;
};

/* Counts the replicas of a chunk. */
static uint32_t replicas_of(const struct job *job, uint32_t chunk)
{
    return parallel_replicas(&job->parallel, parallel_place(&job->parallel, chunk).stage);
}

static void *allocate(uint64_t bytes)
{
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, size_align(bytes > 0 ? bytes : 1, MEMORY_ALIGNMENT));
    if (!memory) abort();
    memset(memory, 0xff, bytes); /* NaN */
    return memory;
}

/* Returns the microbatches in flight on each replica of a stage of pipedream. */
static uint32_t in_flight(const struct parallel *p, uint32_t stage)
{
    uint32_t devices = 0;
    if (p->replicated == 0) return p->pipeline - stage;
    for (uint32_t s = stage; s < p->pipeline; s++) devices += p->replicas[s];
    return (devices + p->replicas[stage] - 1) / p->replicas[stage];
}

/* Returns the minibatches of a chunk's update: those of all replicas of pipedream's stages that take them in turn. */
static uint64_t round_of(const struct job *job, uint32_t chunk)
{
    const bool own = job->parallel.schedule == PIPELINE_PIPEDREAM && job->parallel.replicated > 0;
    return own ? replicas_of(job, chunk) : 1;
}

/* Returns true if replicas add up each microbatch's gradients before those of the next one. */
static bool adds_apart(const struct job *job)
{
    return parallel_splits(&job->parallel, ZERO_GRADIENTS);
}

/* Returns true if a chunk's updates wait for the first stage's gradient of the same minibatch: to add up the gradients of a
 * table that both ends have, or to clip. */
static bool waits(const struct job *job, uint32_t chunk)
{
    const struct parallel *p = &job->parallel;
    if (p->pipeline == 1) return false;
    if (job->optimizer.clip > 0) return parallel_place(p, chunk).stage > 0;
    return job->network.tied_head && chunk + 1 == parallel_chunks(p);
}

static void make_reference(struct reference *r, const struct job *job, const struct kernels *kernels)
{
    const struct parallel *p = &job->parallel;
    struct error err = {0};
    *r = (struct reference){.job = job, .flat = *job, .kernels = kernels, .chunks = parallel_chunks(p),
                            .batch = allocate(job_batch_bytes(job)), .norms = allocate(memory_norm_bytes(&job->network))};
    r->flat.parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 1, .chunks = r->chunks, .schedule = PIPELINE_1F1B,
                                         .recompute = p->recompute};
    const uint64_t boundary = memory_boundary_bytes(&job->network, 0, job->microbatch, job->sequence, PRECISION_FP32);
    for (uint32_t c = 0; c < r->chunks; c++) {
        struct stage *s = &r->stages[c];
        const struct chunk_memory *m = &s->tables.memory;
        if (chunk_tables_init(&r->flat, 0, parallel_layers(job, c), &r->arena, &s->tables, &err)) fail_msg("%s", err.text);
        if (p->schedule == PIPELINE_2BW || p->delayed) s->staleness = 1;
        else if (p->schedule == PIPELINE_PIPEDREAM) s->staleness = in_flight(p, waits(job, c) ? 0 : c / (r->chunks / p->pipeline)) - 1;
        for (uint64_t u = 0; u <= job->minibatches; u++) s->versions[u] = allocate(m->state_bytes);
        weights_init(job, &s->tables.state, (float *)(void *)s->versions[0]);
        for (uint32_t d = 0; d < replicas_of(job, c); d++) s->gradient[d] = allocate(m->gradient_bytes);
        if (adds_apart(job)) s->sum = allocate(m->gradient_bytes);
        s->kept = m->activation_bytes > 0 ? allocate(m->activation_bytes) : NULL;
        s->boundary = c > 0 ? allocate(boundary) : NULL;
        s->d_boundary = c > 0 ? allocate(boundary) : NULL;
        s->workspace = allocate(m->workspace_bytes);
    }
}

static void free_reference(struct reference *r)
{
    for (uint32_t c = 0; c < r->chunks; c++) {
        struct stage *s = &r->stages[c];
        for (uint64_t u = 0; u <= r->job->minibatches; u++) free(s->versions[u]);
        for (uint32_t d = 0; d < replicas_of(r->job, c); d++) free(s->gradient[d]);
        free(s->sum);
        free(s->kept);
        free(s->boundary);
        free(s->d_boundary);
        free(s->workspace);
    }
    free(r->batch);
    free(r->norms);
    arena_release(&r->arena);
}

/* Returns the updates before the last flush before an update. */
static uint64_t flushed_before(const struct job *job, uint64_t update)
{
    const uint64_t flush = job->parallel.flush, every = job->evaluation.every;
    uint64_t last = 0;
    for (uint64_t done = 1; done <= update; done++)
        if ((flush > 0 && done % flush == 0) || (every > 0 && done % every == 0)) last = done;
    return last;
}

/* The replica that passes a microbatch over a chunk, and the microbatches that it has passed of this update. */
struct turn {
    uint32_t replica;
    uint64_t before;
};
static struct turn turn_of(const struct job *job, uint32_t chunk, uint64_t minibatch, uint64_t microbatch)
{
    if (round_of(job, chunk) > 1) return (struct turn){(uint32_t)(minibatch % round_of(job, chunk)), 0};
    const uint32_t replicas = replicas_of(job, chunk);
    const uint64_t each = job->microbatches / replicas;
    if (job->parallel.replicated > 0) return (struct turn){(uint32_t)(microbatch % replicas), microbatch / replicas};
    return (struct turn){(uint32_t)(microbatch / each), microbatch % each};
}

/* Passes a microbatch over a chunk; for an evaluation, after `minibatch` updates. `losses`: by replica of the last stage. */
static void pass_over(struct reference *r, uint32_t c, uint32_t pass, uint64_t minibatch, uint64_t microbatch, double *losses)
{
    struct stage *s = &r->stages[c], *next = c + 1 < r->chunks ? s + 1 : NULL;
    const struct turn turn = turn_of(r->job, c, minibatch, microbatch);
    const uint64_t update = minibatch / round_of(r->job, c);
    const uint64_t flushed = flushed_before(r->job, update), stale = update > s->staleness ? update - s->staleness : 0;
    const uint64_t version = pass == PLAN_EVALUATE ? update : stale > flushed ? stale : flushed;
    const bool back = pass == PLAN_BACKWARD;
    const struct chunk_arguments a = {
        .job = &r->flat, .tables = &s->tables, .pass = pass, .minibatch = update,
        .microbatch = {.alone = true, .adds = turn.before > 0, .apart = adds_apart(r->job), .index = (uint32_t)microbatch},
        .state = s->versions[version], .table = r->stages[0].versions[version],
        .gradient = back ? s->gradient[turn.replica] : NULL, .batch = r->batch, .targets = r->targets, .loss = losses ? &losses[turn.replica] : NULL,
        .boundary_in = s->boundary, .boundary_out = back || !next ? NULL : next->boundary,
        .gradient_in = back && next ? next->d_boundary : NULL, .gradient_out = back ? s->d_boundary : NULL,
        .activations = pass == PLAN_EVALUATE ? NULL : s->kept, .workspace = s->workspace};
    chunk_compute(r->kernels, &a);
}

static void add(float *sum, const float *x, uint64_t numbers)
{
    for (uint64_t i = 0; i < numbers; i++) sum[i] += x[i];
}

static uint64_t numbers_of(const struct stage *s)
{
    return s->tables.memory.gradient_bytes / sizeof(float);
}

/* Adds up the replicas' gradients of a chunk. */
static void reduce(struct reference *r, uint32_t c)
{
    struct stage *s = &r->stages[c];
    for (uint32_t d = 1; d < replicas_of(r->job, c); d++) add(s->gradient[0], s->gradient[d], numbers_of(s));
}

/* Adds those of a microbatch of each replica, the n-th, to the sum of earlier ones. */
static void reduce_apart(struct reference *r, uint64_t n)
{
    for (uint32_t c = 0; c < r->chunks; c++) {
        struct stage *s = &r->stages[c];
        reduce(r, c);
        if (n == 0) memcpy(s->sum, s->gradient[0], s->tables.memory.gradient_bytes);
        else add(s->sum, s->gradient[0], numbers_of(s));
    }
}

static float *sum_of(const struct stage *s)
{
    return s->sum ? s->sum : s->gradient[0];
}

/* Returns the arguments of a norm or an update. The first chunk adds the last one's gradient of a tied table to its own. */
static struct chunk_arguments arguments_of(struct reference *r, uint32_t c, uint32_t pass)
{
    const struct stage *last = &r->stages[r->chunks - 1];
    return (struct chunk_arguments){.job = &r->flat, .tables = &r->stages[c].tables, .pass = pass,
                                    .gradient = sum_of(&r->stages[c]), .norms = r->norms,
                                    .table_gradient = chunk_table_gradient(&last->tables, sum_of(last))};
}

static void step(struct reference *r, uint32_t c, uint64_t update)
{
    struct stage *s = &r->stages[c];
    memcpy(s->versions[update + 1], s->versions[update], s->tables.memory.state_bytes);
    const float mean = 1 / (float)round_of(r->job, c);
    for (uint64_t i = 0; mean < 1 && i < numbers_of(s); i++) s->gradient[0][i] *= mean;
    struct job job = r->flat; /* the rate is that of the update's last minibatch, the step counts the stage's updates */
    job.optimizer.learning_rate = learning_rate_at(r->job, (update + 1) * round_of(r->job, c));
    job.optimizer.schedule = (struct rate_schedule){.kind = RATE_CONSTANT};
    struct chunk_tables tables = s->tables;
    tables.job = &job;
    struct chunk_arguments a = arguments_of(r, c, PLAN_UPDATE);
    a.job = &job;
    a.tables = &tables;
    a.minibatch = update;
    a.state = s->versions[update + 1];
    chunk_compute(r->kernels, &a);
}

/* Passes over all microbatches of the minibatch: one replica after the other, or a microbatch of each in turn. */
static void pass_over_all(struct reference *r, uint64_t update, double *losses)
{
    const uint64_t replicas = adds_apart(r->job) ? r->job->parallel.data : 1, each = r->job->microbatches / replicas;
    for (uint64_t i = 0; i < each; i++) {
        for (uint64_t d = 0; d < replicas; d++) {
            const uint64_t n = d * each + i;
            for (uint32_t c = 0; c < r->chunks; c++) pass_over(r, c, PLAN_FORWARD, update, n, NULL);
            for (uint32_t c = r->chunks; c-- > 0;) pass_over(r, c, PLAN_BACKWARD, update, n, losses);
        }
        if (adds_apart(r->job)) reduce_apart(r, i);
    }
}

static double train(struct reference *r, const struct data_source *data, uint64_t update)
{
    struct error err = {0};
    double losses[STALE_JOB_REPLICAS_MAX] = {NAN, NAN, NAN, NAN}, sum = 0;
    if (data_batch(data, update, r->batch, &err)) fail_msg("%s", err.text);
    r->targets = data_targets(data, update);
    pass_over_all(r, update, losses);
    const uint32_t last = r->chunks - 1;
    for (uint32_t d = 0; d < replicas_of(r->job, last); d++) sum = d == 0 ? losses[d] : sum + losses[d];
    if (round_of(r->job, last) > 1) sum = losses[update % round_of(r->job, last)];
    for (uint32_t c = 0; c < r->chunks; c++)
        if ((update + 1) % round_of(r->job, c) == 0 && !adds_apart(r->job)) reduce(r, c);
    for (uint32_t c = 0; c < r->chunks && job_clips(r->job); c++) {
        const struct chunk_arguments a = arguments_of(r, c, PLAN_NORM);
        chunk_compute(r->kernels, &a);
    }
    for (uint32_t c = r->chunks; c-- > 0;) /* the first chunk reads a table's gradient of the last one */
        if ((update + 1) % round_of(r->job, c) == 0) step(r, c, update / round_of(r->job, c));
    return sum;
}

/* Returns the mean loss of held-out minibatches after `updates` updates. */
static double evaluate(struct reference *r, const struct data_source *held_out, uint64_t updates)
{
    struct error err = {0};
    double mean = 0;
    for (uint64_t h = 0; h < r->job->evaluation.minibatches; h++) {
        double losses[STALE_JOB_REPLICAS_MAX], sum = 0;
        if (data_batch(held_out, h, r->batch, &err)) fail_msg("%s", err.text);
        r->targets = data_targets(held_out, h);
        for (uint64_t n = 0; n < r->job->microbatches; n++)
            for (uint32_t c = 0; c < r->chunks; c++) pass_over(r, c, PLAN_EVALUATE, updates, n, losses);
        for (uint32_t d = 0; d < r->job->parallel.data; d++) sum = d == 0 ? losses[d] : sum + losses[d];
        mean += sum;
    }
    return mean / (double)r->job->evaluation.minibatches;
}

void stale_job_reference(const struct job *job, struct stale_job_outcome *out)
{
    struct reference r;
    struct kernels *kernels;
    struct data_source *data;
    struct error err = {0};
    struct state_tables tables[STALE_JOB_CHUNKS_MAX];
    float *states[STALE_JOB_CHUNKS_MAX];
    if (kernels_host_create(1, &kernels, &err) || data_open(job, &data, &err)) fail_msg("%s", err.text);
    make_reference(&r, job, kernels);
    struct data_source *held_out = NULL;
    const uint64_t every = job->evaluation.every;
    if (every > 0 && data_open_held_out_known(job, &held_out, &err)) fail_msg("%s", err.text);
    for (uint64_t u = 0; u < job->minibatches; u++) {
        out->losses[u] = train(&r, data, u);
        const bool evaluated = every > 0 && ((u + 1) % every == 0 || u + 1 == job->minibatches);
        out->held_out[u + 1] = evaluated ? evaluate(&r, held_out, u + 1) : NAN;
    }
    for (uint64_t u = 0; u <= job->minibatches; u++) {
        for (uint32_t c = 0; c < r.chunks; c++) {
            tables[c] = r.stages[c].tables.state;
            states[c] = (float *)(void *)r.stages[c].versions[u / round_of(job, c)];
        }
        out->fingerprints[u] = weights_fingerprint(job, tables, r.chunks, states);
    }
    free_reference(&r);
    data_close(data);
    data_close(held_out);
    kernels_host_destroy(kernels);
}

static void assert_same(const char *what, const struct stale_job_outcome *wanted, const struct run_job_result *found)
{
    for (uint64_t u = 0; u < found->minibatches; u++)
        if (memcmp(&wanted->losses[u], &found->losses[u], sizeof(double)) != 0)
            fail_msg("%s: loss %u is %.17g, not %.17g", what, (unsigned)u, found->losses[u], wanted->losses[u]);
    if (found->weights_fingerprint != wanted->fingerprints[found->minibatches]) fail_msg("%s: other weights", what);
    for (uint64_t i = 0; i < found->evaluation_count; i++) {
        const struct evaluation_progress *const own = &found->evaluations[i];
        if (memcmp(&wanted->held_out[own->step], &own->loss, sizeof(double)) != 0)
            fail_msg("%s: evaluation after %u is %.17g, not %.17g", what, (unsigned)own->step, own->loss,
                     wanted->held_out[own->step]);
    }
}

double stale_job_run(const struct job *job, const char *config, const struct run_options *options, const char *what,
                     const struct stale_job_outcome *wanted)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    stale_job_plan(job, config, &plan);
    const double begin_s = clock_s();
    struct run_options stored = *options;
    stored.storage.folder = P_tmpdir;
    if (run_plan(&plan, &stored, &result, &trace, &err)) fail_msg("%s: %s", what, err.text);
    const double seconds = clock_s() - begin_s;
    if (options->record_spans && trace_check(&trace, &err)) fail_msg("%s: %s", what, err.text);
    if (options->record_spans) assert_int_equal(trace.span_count, plan_operations(&plan));
    if (!options->stop) assert_int_equal(result.jobs[0].minibatches, job->first_minibatch + job->minibatches);
    else print_message("  ended after %u updates\n", (unsigned)result.jobs[0].minibatches);
    if (!options->stop && job->first_minibatch == 0)
        assert_int_equal(result.jobs[0].evaluation_count, evaluation_count(job));
    assert_same(what, wanted, &result.jobs[0]);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
    return seconds;
}


/* Carries the job out, and returns its losses and weights. */
static void run_close(const struct job *job, const char *config, uint64_t delay_seed, double losses[STALE_JOB_UPDATES_MAX],
                      uint64_t *fingerprint)
{
    const struct run_options options = {.poison = true, .delay_seed = delay_seed, .record_spans = true,
                                        .storage = {.folder = P_tmpdir}};
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    stale_job_plan(job, config, &plan);
    assert_true(parallel_is_carried_out(&plan.jobs.jobs[0].parallel));
    if (run_plan(&plan, &options, &result, &trace, &err) || trace_check(&trace, &err)) fail_msg("%s", err.text);
    assert_int_equal(trace.span_count, plan_operations(&plan));
    assert_int_equal(result.jobs[0].minibatches, job->minibatches);
    memcpy(losses, result.jobs[0].losses, job->minibatches * sizeof *losses);
    *fingerprint = result.jobs[0].weights_fingerprint;
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
}

void stale_job_close(const struct job *job, const char *config, uint64_t delay_seed, const char *what,
                     const struct stale_job_outcome *wanted)
{
    double losses[2][STALE_JOB_UPDATES_MAX];
    uint64_t fingerprints[2];
    for (uint32_t again = 0; again < 2; again++)
        run_close(job, config, again * delay_seed, losses[again], &fingerprints[again]);
    const double tolerance = job->precision == PRECISION_FP32 ? 1e-4 : 1e-2;
    for (uint64_t u = 0; u < job->minibatches; u++)
        if (!(fabs(losses[0][u] / wanted->losses[u] - 1) <= tolerance))
            fail_msg("%s: loss %u is %.9g (expected %.9g)", what, (unsigned)u, losses[0][u], wanted->losses[u]);
    assert_memory_equal(losses[0], losses[1], job->minibatches * sizeof **losses);
    if (fingerprints[0] != fingerprints[1]) fail_msg("%s: other weights", what);
}
