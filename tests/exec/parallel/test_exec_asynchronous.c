/* label: medium
 * Asynchronous pipelines have the bits of a slow reference that keeps every version of the weights.
 *
 * The reference computes one microbatch after the other over all chunks, without a plan. For update u each stage computes
 * with its own weights after max(u - s, F) updates: s is the number of later stages with pipedream, 1 with 2bw, and F the
 * updates before the last flush. Replicas' gradients are added in their order; the numbers of replicas of stages may be
 * unequal. Evaluations, which follow flushes, pass forward with the newest weights. Random cuts, microbatches, ways to
 * recompute and numbers of updates; the runs have
 * random pauses on every stream and NaN in all memory that was released. A run that is stopped ends the updates that any
 * stage has begun, so it has the weights of a shorter run. Tensor groups have the reference's losses to rounding, and equal
 * bits from run to run. A run with checkpoints goes on from each with the bits of the run that was not interrupted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "exec/files/data.h"
#include "exec/files/weights.h"
#include "exec/network/chunk.h"
#include "exec/run/run.h"
#include "models/job/evaluation.h"
#include "models/job/learning_rate.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_stop.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { DEVICES = 12, CASES = 14, CHUNKS_MAX = 8, REPLICAS_MAX = 3, UPDATES_MAX = 20 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"tie_word_embeddings\": false, \"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

static void make_plan(const struct job *wanted, const char *config, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, DEVICES, 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    test_network_jobs(&jobs, 1, config, wanted->minibatches);
    struct job *job = &jobs.jobs[0];
    job->microbatch = wanted->microbatch;
    job->microbatches = wanted->microbatches;
    job->precision = wanted->precision;
    job->optimizer.learning_rate = wanted->optimizer.learning_rate;
    job->optimizer.schedule = wanted->optimizer.schedule;
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
    char *versions[UPDATES_MAX + 1]; /* whole states, after 0, 1, 2, ... updates */
    float *gradient[REPLICAS_MAX], *kept, *boundary, *d_boundary, *workspace;
};

struct reference {
    const struct job *job;
    const struct kernels *kernels;
    uint32_t chunks;
    struct stage stages[CHUNKS_MAX];
    int32_t *batch;
    uint64_t targets; /* of the batch */
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

static void make_reference(struct reference *r, const struct job *job, const struct kernels *kernels)
{
    const struct parallel *p = &job->parallel;
    struct error err = {0};
    *r = (struct reference){.job = job, .kernels = kernels, .chunks = parallel_chunks(p),
                            .batch = allocate(job_batch_bytes(job))};
    const uint64_t boundary = memory_boundary_bytes(&job->network, 0, job->microbatch, job->sequence, PRECISION_FP32);
    for (uint32_t c = 0; c < r->chunks; c++) {
        struct stage *s = &r->stages[c];
        const struct chunk_memory *m = &s->tables.memory;
        if (chunk_tables_init(job, 0, parallel_layers(job, c), &r->arena, &s->tables, &err)) fail_msg("%s", err.text);
        s->staleness = p->schedule == PIPELINE_2BW ? 1 : in_flight(p, c / (r->chunks / p->pipeline)) - 1;
        for (uint64_t u = 0; u <= job->minibatches; u++) s->versions[u] = allocate(m->state_bytes);
        weights_init(job, &s->tables.state, (float *)(void *)s->versions[0]);
        for (uint32_t d = 0; d < replicas_of(job, c); d++) s->gradient[d] = allocate(m->gradient_bytes);
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
        free(s->kept);
        free(s->boundary);
        free(s->d_boundary);
        free(s->workspace);
    }
    free(r->batch);
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
        .job = r->job, .tables = &s->tables, .pass = pass, .minibatch = update,
        .microbatch = {.alone = true, .adds = turn.before > 0, .index = (uint32_t)microbatch},
        .state = s->versions[version], .table = r->chunks == 1 ? s->versions[version] : NULL,
        .gradient = back ? s->gradient[turn.replica] : NULL, .batch = r->batch, .targets = r->targets, .loss = losses ? &losses[turn.replica] : NULL,
        .boundary_in = s->boundary, .boundary_out = back || !next ? NULL : next->boundary,
        .gradient_in = back && next ? next->d_boundary : NULL, .gradient_out = back ? s->d_boundary : NULL,
        .activations = pass == PLAN_EVALUATE ? NULL : s->kept, .workspace = s->workspace};
    chunk_compute(r->kernels, &a);
}

static void step(struct reference *r, uint32_t c, uint64_t update)
{
    struct stage *s = &r->stages[c];
    const uint64_t numbers = s->tables.memory.gradient_bytes / sizeof(float);
    for (uint32_t d = 1; d < replicas_of(r->job, c); d++)
        for (uint64_t i = 0; i < numbers; i++) s->gradient[0][i] += s->gradient[d][i];
    memcpy(s->versions[update + 1], s->versions[update], s->tables.memory.state_bytes);
    const float mean = 1 / (float)round_of(r->job, c);
    for (uint64_t i = 0; mean < 1 && i < numbers; i++) s->gradient[0][i] *= mean;
    struct job job = *r->job; /* the rate is that of the update's last minibatch, the step counts the stage's updates */
    job.optimizer.learning_rate = learning_rate_at(r->job, (update + 1) * round_of(r->job, c));
    job.optimizer.schedule = (struct rate_schedule){.kind = RATE_CONSTANT};
    struct chunk_tables tables = s->tables;
    tables.job = &job;
    const struct chunk_arguments a = {
        .job = &job, .tables = &tables, .pass = PLAN_UPDATE, .minibatch = update, .state = s->versions[update + 1],
        .gradient = s->gradient[0], .table_gradient = chunk_table_gradient(&s->tables, s->gradient[0])};
    chunk_compute(r->kernels, &a);
}

static double train(struct reference *r, const struct data_source *data, uint64_t update)
{
    struct error err = {0};
    double losses[REPLICAS_MAX] = {NAN, NAN, NAN}, sum = 0;
    if (data_batch(data, update, r->batch, &err)) fail_msg("%s", err.text);
    r->targets = data_targets(data, update);
    for (uint64_t n = 0; n < r->job->microbatches; n++) {
        for (uint32_t c = 0; c < r->chunks; c++) pass_over(r, c, PLAN_FORWARD, update, n, NULL);
        for (uint32_t c = r->chunks; c-- > 0;) pass_over(r, c, PLAN_BACKWARD, update, n, losses);
    }
    const uint32_t last = r->chunks - 1;
    for (uint32_t d = 0; d < replicas_of(r->job, last); d++) sum = d == 0 ? losses[d] : sum + losses[d];
    if (round_of(r->job, last) > 1) sum = losses[update % round_of(r->job, last)];
    for (uint32_t c = 0; c < r->chunks; c++)
        if ((update + 1) % round_of(r->job, c) == 0) step(r, c, update / round_of(r->job, c));
    return sum;
}

/* Returns the mean loss of held-out minibatches after `updates` updates. */
static double evaluate(struct reference *r, const struct data_source *held_out, uint64_t updates)
{
    struct error err = {0};
    double mean = 0;
    for (uint64_t h = 0; h < r->job->evaluation.minibatches; h++) {
        double losses[REPLICAS_MAX], sum = 0;
        if (data_batch(held_out, h, r->batch, &err)) fail_msg("%s", err.text);
        r->targets = data_targets(held_out, h);
        for (uint64_t n = 0; n < r->job->microbatches; n++)
            for (uint32_t c = 0; c < r->chunks; c++) pass_over(r, c, PLAN_EVALUATE, updates, n, losses);
        for (uint32_t d = 0; d < r->job->parallel.data; d++) sum = d == 0 ? losses[d] : sum + losses[d];
        mean += sum;
    }
    return mean / (double)r->job->evaluation.minibatches;
}

struct outcome {
    double losses[UPDATES_MAX];
    double held_out[UPDATES_MAX + 1]; /* after so many updates; NaN: not evaluated */
    uint64_t fingerprints[UPDATES_MAX + 1]; /* after 0, 1, 2, ... updates */
};

static void follow_reference(const struct job *job, struct outcome *out)
{
    struct reference r;
    struct kernels *kernels;
    struct data_source *data;
    struct error err = {0};
    struct state_tables tables[CHUNKS_MAX];
    float *states[CHUNKS_MAX];
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

/* --- cases ------------------------------------------------------------------------------------ */

static struct job draw(uint64_t seed, uint64_t n, const struct job *from)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    struct job job = *from;
    uint64_t key = 64 * n;
    struct parallel p = {.tensor = 1, .prefetch = 1, .chunks = 1};
    p.pipeline = 1 + (uint32_t)random_below(seed, key++, 4);
    p.data = p.pipeline == 1 ? 2 : 1 + (uint32_t)random_below(seed, key++, 2);
    p.buckets = p.pipeline == 1 || p.pipeline == 4 ? 1 : 1 + (uint32_t)random_below(seed, key++, 2);
    p.schedule = random_below(seed, key++, 2) ? PIPELINE_PIPEDREAM : PIPELINE_2BW;
    p.recompute = recompute[random_below(seed, key++, 4)];
    p.blocking = random_below(seed, key++, 4) == 0;
    job.microbatch = 2;
    job.microbatches = p.data * (p.schedule == PIPELINE_PIPEDREAM ? 1 : p.pipeline + random_below(seed, key++, 3));
    if (random_below(seed, key++, 2)) {
        p.replicated = p.pipeline;
        p.data = 1;
        for (uint32_t i = 0; i < p.pipeline; i++) p.replicas[i] = 1 + (uint32_t)random_below(seed, key++, REPLICAS_MAX);
        while (parallel_devices(&p) > DEVICES / 2) p.replicas[random_below(seed, key++, p.pipeline)] = 1;
        job.microbatches = p.schedule == PIPELINE_PIPEDREAM ? 1 : 6 * (1 + random_below(seed, key++, 2)); /* enough in flight */
    }
    job.minibatches = p.replicated > 0 && p.schedule == PIPELINE_PIPEDREAM ? 6 * (1 + random_below(seed, key++, UPDATES_MAX / 6))
                                                                           : 1 + random_below(seed, key++, UPDATES_MAX);
    job.optimizer.schedule.kind = (uint32_t)random_below(seed, key++, RATE_SCHEDULE_COUNT);
    job.precision = random_below(seed, key++, 3) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
    job.optimizer.learning_rate = 0.01;
    if (p.replicated == 0 && random_below(seed, key++, 2)) p.flush = 1 + (uint32_t)random_below(seed, key, 8);
    key++;
    if (p.replicated == 0 && random_below(seed, key++, 3) == 0) job.evaluation = (struct job_evaluation){.every = 1 + random_below(seed, key, 6)};
    key++;
    if (job.evaluation.every > 0) job.evaluation.minibatches = 1 + random_below(seed, key++, 3);
    job.parallel = p;
    return job;
}

static void describe(const struct job *job, const char *config, char what[200])
{
    const struct parallel *p = &job->parallel;
    char how[PARALLEL_TEXT_BYTES];
    snprintf(what, 200, "%.24s: %s, %s, recompute %s, %u microbatches, %u updates, evaluation %u", config,
             pipeline_schedule_names[p->schedule], parallel_text(p, how), recompute_names[p->recompute],
             (unsigned)job->microbatches, (unsigned)job->minibatches, (unsigned)job->evaluation.every);
    print_message("%s\n", what);
}

static void assert_same(const char *what, const struct outcome *wanted, const struct run_job_result *found)
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

/* Runs the plan and compares with the reference. Returns the seconds that it took. */
static double run_and_compare(const struct job *job, const char *config, const struct run_options *options, const char *what,
                              const struct outcome *wanted)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    make_plan(job, config, &plan);
    const double begin_s = clock_s();
    if (run_plan(&plan, options, &result, &trace, &err)) fail_msg("%s: %s", what, err.text);
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

static void test_bits_of_the_reference(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            struct job_set jobs;
            struct outcome wanted;
            char what[200];
            test_network_jobs(&jobs, 1, configs[c], 1);
            const struct job job = draw(seed, c * CASES + n, &jobs.jobs[0]);
            describe(&job, configs[c], what);
            follow_reference(&job, &wanted);
            const struct run_options options = {.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n, .record_spans = true};
            run_and_compare(&job, configs[c], &options, what, &wanted);
            job_set_release(&jobs);
        }
}

/* Carries out a job of tensor groups. */
static void run_groups(const struct job *job, const char *config, uint64_t delay_seed, double losses[UPDATES_MAX],
                       uint64_t *fingerprint)
{
    const struct run_options options = {.poison = true, .delay_seed = delay_seed, .record_spans = true};
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    make_plan(job, config, &plan);
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

static void test_tensor_groups(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous tensor groups");
    for (uint64_t n = 0; n < 16; n++) {
        const char *config = configs[n % ARRAY_COUNT(configs)];
        struct job_set jobs;
        struct outcome wanted;
        double losses[2][UPDATES_MAX];
        uint64_t fingerprints[2];
        char what[200];
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0]);
        if (parallel_devices(&job.parallel) * 2 > DEVICES) {
            job.parallel.pipeline = 2;
            job.parallel.buckets = 1;
        }
        describe(&job, config, what);
        follow_reference(&job, &wanted);
        job.parallel.tensor = 2;
        for (uint32_t again = 0; again < 2; again++)
            run_groups(&job, config, again * (seed + n), losses[again], &fingerprints[again]);
        const double tolerance = job.precision == PRECISION_FP32 ? 1e-5 : 1e-2;
        for (uint64_t u = 0; u < job.minibatches; u++)
            if (!(fabs(losses[0][u] / wanted.losses[u] - 1) <= tolerance))
                fail_msg("%s: loss %u is %.9g (expected %.9g)", what, (unsigned)u, losses[0][u], wanted.losses[u]);
        assert_memory_equal(losses[0], losses[1], job.minibatches * sizeof **losses);
        if (fingerprints[0] != fingerprints[1]) fail_msg("%s: other weights", what);
        job_set_release(&jobs);
    }
}

/* Stops each run at some time of a whole one. */
static void test_stop(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("stops");
    for (uint64_t n = 0; n < 12; n++) {
        struct job_set jobs;
        const char *config = configs[n % ARRAY_COUNT(configs)];
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0]);
        struct outcome wanted;
        char what[200];
        job.minibatches = UPDATES_MAX / 6 * 6;
        describe(&job, config, what);
        follow_reference(&job, &wanted);
        struct run_options options = {.poison = true, .delay_seed = seed + n};
        const double seconds = run_and_compare(&job, config, &options, what, &wanted);
        options.stop = &support_stop;
        support_stop_after((long)(fmin(seconds, 0.9) * 1e6 * (0.2 + 0.8 * random_unit(seed, n))));
        run_and_compare(&job, config, &options, what, &wanted);
        support_stop_after(0);
        job_set_release(&jobs);
    }
}

static void test_no_trees(void **state)
{
    (void)state;
    struct job_set jobs;
    struct error err = {0};
    test_network_jobs(&jobs, 1, configs[0], 3);
    struct job *job = &jobs.jobs[0];
    job->microbatches = 2;
    job->parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 2, .chunks = 1, .prefetch = 1, .tree = true,
                                      .schedule = PIPELINE_2BW};
    assert_int_equal(parallel_check(job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'sum' 'tree' with a schedule without a flush");
    job_set_release(&jobs);
}

/* Without a flush stages are never in the same minibatch, so no checkpoint has the weights of one. */
static void test_no_checkpoints(void **state)
{
    (void)state;
    struct job_set jobs;
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    test_network_jobs(&jobs, 1, configs[0], 3);
    struct job job = jobs.jobs[0];
    job.parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 2, .chunks = 1, .prefetch = 1,
                                     .schedule = PIPELINE_PIPEDREAM};
    make_plan(&job, configs[0], &plan);
    const struct run_checkpoints checkpoints = {.folder = "/tmp/never", .keep = 2};
    assert_int_equal(run_plan(&plan, &(struct run_options){.checkpoints = &checkpoints}, &result, &trace, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "job 'job-0' has the asynchronous schedule 'pipedream' without a flush, whose stages are "
                                  "never in the same minibatch, so it has no checkpoints (expected 'flush', a run without "
                                  "them, or another schedule)");
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    job_set_release(&jobs);
}

/* Takes checkpoints wherever the pipeline is flushed, and goes on from each. */
static void test_checkpoints(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous checkpoints");
    for (uint64_t n = 0; n < 16; n++) {
        const char *config = configs[n % ARRAY_COUNT(configs)];
        struct job_set jobs;
        struct outcome wanted;
        char what[200], folder[SUPPORT_FOLDER_BYTES];
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0]);
        if (job.parallel.replicated > 0) {
            job_set_release(&jobs);
            continue;
        }
        job.parallel.flush = 2 + (uint32_t)random_below(seed, 1000 + n, 4);
        job.minibatches = 10;
        describe(&job, config, what);
        follow_reference(&job, &wanted);
        support_folder_make(folder);
        const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = 100, .each = true};
        const struct run_options options = {.poison = true, .delay_seed = seed + n, .checkpoints = &checkpoints};
        run_and_compare(&job, config, &options, what, &wanted);
        uint32_t resumed = 0;
        for (uint64_t done = 1; done < 10; done++) {
            struct job rest = job;
            char path[160];
            snprintf(path, sizeof path, "%s/job-0/step-%010u.safetensors", folder, (unsigned)done);
            const uint64_t every = job.evaluation.every;
            const bool flushed = done % job.parallel.flush == 0 || (every > 0 && done % every == 0);
            assert_int_equal(access(path, F_OK) == 0, flushed);
            if (!flushed) continue;
            rest.first_minibatch = done;
            rest.minibatches = 10 - done;
            run_and_compare(&rest, config, &options, what, &wanted);
            resumed++;
        }
        assert_true(resumed > 0);
        support_folder_remove(folder);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_the_reference),
        cmocka_unit_test(test_tensor_groups),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_no_checkpoints),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_no_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
