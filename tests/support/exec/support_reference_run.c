#include "tests/support/exec/support_reference_run.h"

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
#include "base/random.h"
#include "base/size.h"
#include "exec/files/data.h"
#include "exec/files/weights.h"
#include "exec/network/chunk.h"
#include "models/job/evaluation.h"
#include "models/job/learning_rate.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"

enum { CHUNKS_MAX = 8, REPLICAS_MAX = 3 };

const char *const reference_configs[REFERENCE_CONFIGS] = {
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

void reference_plan(const struct job *wanted, const char *config, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, REFERENCE_DEVICES, 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    test_network_jobs(&jobs, 1, config, wanted->minibatches);
    struct job *job = &jobs.jobs[0];
    job->microbatch = wanted->microbatch;
    job->microbatches = wanted->microbatches;
    job->precision = wanted->precision;
    job->gradients = wanted->gradients;
    memcpy(job->compression, wanted->compression, sizeof job->compression);
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
    enum compression_code enters; /* how the boundary before it, and its gradient, are encoded */
    char *versions[REFERENCE_UPDATES_MAX + 1]; /* whole states, after 0, 1, 2, ... updates */
    float *gradient[REPLICAS_MAX], *kept, *boundary, *d_boundary, *workspace;
};

struct reference {
    const struct job *job; /* without codes, whose passes are plain */
    struct job plain;
    enum compression_code gradients; /* of replicas */
    const struct kernels *kernels;
    uint32_t chunks;
    struct stage stages[CHUNKS_MAX];
    int32_t *batch;
    uint64_t targets; /* of the batch */
    struct arena arena;
};

/* --- codes ------------------------------------------------------------------------------------ */

/* Rounds to 8 bits, as bf16 does with normal numbers. */
static double nearest_bf16(double x)
{
    int exponent;
    const double part = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(part, 8)), exponent - 8);
}

/* Rounds a number of a block to a multiple of a power of two, at most 127 times it. */
static double nearest_int8(double x, double largest)
{
    int exponent;
    (void)frexp(largest, &exponent);
    exponent = exponent - 7 < -126 ? -126 : exponent - 7;
    return ldexp(fmax(-127, fmin(127, nearbyint(ldexp(x, -exponent)))), exponent);
}

void reference_round(enum compression_code code, float *x, uint64_t count)
{
    for (uint64_t block = 0; block < count; block += 15) {
        const uint64_t end = block + 15 < count ? block + 15 : count;
        double largest = 0;
        for (uint64_t i = block; i < end; i++) largest = fmax(largest, fabs((double)x[i]));
        for (uint64_t i = block; i < end && code == COMPRESSION_BF16; i++) x[i] = (float)nearest_bf16((double)x[i]);
        for (uint64_t i = block; i < end && code == COMPRESSION_INT8; i++)
            x[i] = largest < 0x1p-126 ? 0 : (float)nearest_int8((double)x[i], largest);
    }
}

static enum compression_code code_of(double ratio)
{
    return ratio <= 0 ? COMPRESSION_PLAIN : ratio < 3 ? COMPRESSION_BF16 : COMPRESSION_INT8;
}

/* Returns the code of the boundary that enters a chunk from another stage. */
static enum compression_code code_before(const struct job *job, uint32_t chunk)
{
    const struct compression *boundaries = &job->compression[COMPRESSION_BOUNDARIES];
    const struct parallel *p = &job->parallel;
    if (chunk == 0 || parallel_place(p, chunk).stage == parallel_place(p, chunk - 1).stage) return COMPRESSION_PLAIN;
    const uint64_t block = parallel_layers(job, chunk).first - 1; /* layer 0 is the embedding */
    return block < boundaries->from ? COMPRESSION_PLAIN : code_of(boundaries->ratio);
}

/* Makes a job without codes, and of replicas that have everything. */
static struct job plain_of(const struct job *job)
{
    struct job plain = *job;
    memset(plain.compression, 0, sizeof plain.compression);
    plain.gradients = PRECISION_FP32;
    plain.parallel.zero = ZERO_NOTHING;
    plain.parallel.offload = OFFLOAD_NOTHING;
    return plain;
}

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

static void make_reference(struct reference *r, const struct job *encoded, const struct kernels *kernels)
{
    const struct parallel *p = &encoded->parallel;
    const double ratio = encoded->gradients == PRECISION_BF16 ? 2 : encoded->compression[COMPRESSION_GRADIENTS].ratio;
    struct error err = {0};
    *r = (struct reference){.plain = plain_of(encoded), .kernels = kernels, .chunks = parallel_chunks(p),
                            .gradients = code_of(ratio), .batch = allocate(job_batch_bytes(encoded))};
    const struct job *const job = r->job = &r->plain;
    const uint64_t boundary = memory_boundary_bytes(&job->network, 0, job->microbatch, job->sequence, PRECISION_FP32);
    for (uint32_t c = 0; c < r->chunks; c++) {
        struct stage *s = &r->stages[c];
        const struct chunk_memory *m = &s->tables.memory;
        if (chunk_tables_init(job, 0, parallel_layers(job, c), &r->arena, &s->tables, &err)) fail_msg("%s", err.text);
        s->enters = code_before(encoded, c);
        s->staleness = !pipeline_is_asynchronous(p->schedule) ? 0
                       : p->schedule == PIPELINE_2BW          ? 1
                                                              : in_flight(p, c / (r->chunks / p->pipeline)) - 1;
        for (uint64_t u = 0; u <= job->minibatches; u++) s->versions[u] = allocate(m->state_bytes);
        weights_init(job, &s->tables.state, (float *)(void *)s->versions[0]);
        for (uint32_t d = 0; d < replicas_of(job, c); d++) {
            s->gradient[d] = allocate(m->gradient_bytes);
            memset(s->gradient[d], 0, m->gradient_bytes); /* blocks of a code reach over what is between tensors */
        }
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
    const uint64_t numbers = memory_boundary_bytes(&r->job->network, 0, r->job->microbatch, r->job->sequence, PRECISION_FP32) / sizeof(float);
    if (back && c > 0) reference_round(s->enters, s->d_boundary, numbers);
    if (!back && next) reference_round(next->enters, next->boundary, numbers);
}

/* Rounds a gradient of one of several replicas, or their sum. */
static void round_gradient(const struct reference *r, uint32_t c, float *gradient)
{
    const struct chunk_tables *const tables = &r->stages[c].tables;
    if (replicas_of(r->job, c) > 1) reference_round(r->gradients, gradient, tables->parameters.bytes / sizeof(float));
}

static void step(struct reference *r, uint32_t c, uint64_t update)
{
    struct stage *s = &r->stages[c];
    const uint64_t numbers = s->tables.memory.gradient_bytes / sizeof(float);
    for (uint32_t d = 0; d < replicas_of(r->job, c); d++) round_gradient(r, c, s->gradient[d]);
    for (uint32_t d = 1; d < replicas_of(r->job, c); d++)
        for (uint64_t i = 0; i < numbers; i++) s->gradient[0][i] += s->gradient[d][i];
    round_gradient(r, c, s->gradient[0]);
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

void reference_follow(const struct job *job, struct reference_outcome *out)
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

struct job reference_draw(uint64_t seed, uint64_t n, const struct job *from)
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
        while (parallel_devices(&p) > REFERENCE_DEVICES / 2) p.replicas[random_below(seed, key++, p.pipeline)] = 1;
        job.microbatches = p.schedule == PIPELINE_PIPEDREAM ? 1 : 6 * (1 + random_below(seed, key++, 2)); /* enough in flight */
    }
    job.minibatches = p.replicated > 0 && p.schedule == PIPELINE_PIPEDREAM ? 6 * (1 + random_below(seed, key++, REFERENCE_UPDATES_MAX / 6))
                                                                           : 1 + random_below(seed, key++, REFERENCE_UPDATES_MAX);
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

void reference_describe(const struct job *job, const char *config, char what[200])
{
    const struct parallel *p = &job->parallel;
    char how[PARALLEL_TEXT_BYTES];
    snprintf(what, 200, "%.24s: %s, %s, recompute %s, %u microbatches, %u updates, evaluation %u", config,
             pipeline_schedule_names[p->schedule], parallel_text(p, how), recompute_names[p->recompute],
             (unsigned)job->microbatches, (unsigned)job->minibatches, (unsigned)job->evaluation.every);
    print_message("%s\n", what);
}

static void reference_same(const char *what, const struct reference_outcome *wanted, const struct run_job_result *found)
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
double reference_run(const struct job *job, const char *config, const struct run_options *options, const char *what,
                              const struct reference_outcome *wanted)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    reference_plan(job, config, &plan);
    const double begin_s = clock_s();
    if (run_plan(&plan, options, &result, &trace, &err)) fail_msg("%s: %s", what, err.text);
    const double seconds = clock_s() - begin_s;
    if (options->record_spans && trace_check(&trace, &err)) fail_msg("%s: %s", what, err.text);
    if (options->record_spans) assert_int_equal(trace.span_count, plan_operations(&plan));
    if (!options->stop) assert_int_equal(result.jobs[0].minibatches, job->first_minibatch + job->minibatches);
    else print_message("  ended after %u updates\n", (unsigned)result.jobs[0].minibatches);
    if (!options->stop && job->first_minibatch == 0)
        assert_int_equal(result.jobs[0].evaluation_count, evaluation_count(job));
    reference_same(what, wanted, &result.jobs[0]);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
    return seconds;
}
