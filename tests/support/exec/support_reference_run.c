#include "tests/support/exec/support_reference_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "exec/files/data.h"
#include "exec/files/weights.h"
#include "exec/network/chunk.h"
#include "models/job/learning_rate.h"
#include "models/job/parallel_memory.h"
#include "models/network/network_trained.h"

enum { CHUNKS_MAX = 8 };

struct stage {
    struct chunk_tables tables;
    uint32_t staleness;
    enum compression_code enters; /* how the boundary before it, and its gradient, are encoded */
    char *versions[REFERENCE_UPDATES_MAX + 1]; /* whole states, after 0, 1, 2, ... updates */
    float *gradient[REFERENCE_REPLICAS_MAX]; /* of each replica; [0]: in the end the sum of all */
    float *sum; /* of microbatches, which the replicas add up one by one; NULL where each adds up its own first */
    float *kept, *boundary, *d_boundary, *workspace;
};

struct reference {
    const struct job *job;
    struct job flat; /* the job on one device: without copies of a tied table, shares and codes */
    enum compression_code gradients; /* of replicas */
    const struct kernels *kernels;
    uint32_t chunks;
    struct stage stages[CHUNKS_MAX];
    int32_t *batch;
    uint64_t targets; /* of the batch */
    double *norms;
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
    for (uint64_t block = 0; block < count && code != COMPRESSION_PLAIN; block += 15) {
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

/* --- the reference ---------------------------------------------------------------------------- */

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

/* Returns true if a chunk's updates wait for the first stage's gradient of the same minibatch: to add up the gradients
 * of a table that both ends have, or to clip. */
static bool waits(const struct job *job, uint32_t chunk)
{
    const struct parallel *p = &job->parallel;
    if (p->pipeline == 1) return false;
    if (job->optimizer.clip > 0) return parallel_place(p, chunk).stage > 0;
    return job->network.tied_head && network_first_trained(&job->network) == 0 && chunk + 1 == parallel_chunks(p);
}

static void make_reference(struct reference *r, const struct job *job, const struct kernels *kernels)
{
    const struct parallel *p = &job->parallel;
    const double ratio = job->gradients == PRECISION_BF16 ? 2 : job->compression[COMPRESSION_GRADIENTS].ratio;
    struct error err = {0};
    *r = (struct reference){.job = job, .flat = *job, .kernels = kernels, .chunks = parallel_chunks(p),
                            .gradients = code_of(ratio), .batch = allocate(job_batch_bytes(job)),
                            .norms = allocate(memory_norm_bytes(&job->network))};
    memset(r->flat.compression, 0, sizeof r->flat.compression);
    r->flat.gradients = PRECISION_FP32;
    r->flat.parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 1, .chunks = r->chunks,
                                         .schedule = PIPELINE_1F1B,
                                         .recompute = p->recompute};
    const uint64_t boundary = memory_boundary_bytes(&job->network, 0, job->microbatch, job->sequence, PRECISION_FP32);
    for (uint32_t c = 0; c < r->chunks; c++) {
        struct stage *s = &r->stages[c];
        const struct chunk_memory *m = &s->tables.memory;
        if (chunk_tables_init(&r->flat, 0, parallel_layers(job, c), &r->arena, &s->tables, &err))
            fail_msg("%s", err.text);
        s->enters = code_before(job, c);
        if (p->schedule == PIPELINE_2BW || p->delayed) s->staleness = 1;
        else if (p->schedule == PIPELINE_PIPEDREAM) s->staleness = in_flight(p, waits(job, c)
                                                                             ? 0 : c / (r->chunks / p->pipeline)) - 1;
        for (uint64_t u = 0; u <= job->minibatches; u++) s->versions[u] = allocate(m->state_bytes);
        weights_init(job, &s->tables.state, (float *)(void *)s->versions[0]);
        for (uint32_t d = 0; d < replicas_of(job, c); d++) {
            s->gradient[d] = allocate(m->gradient_bytes);
            if (r->gradients != COMPRESSION_PLAIN) /* blocks of a code reach over the bytes between tensors */
                memset(s->gradient[d], 0, m->gradient_bytes);
        }
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

/* Rounds what a chunk keeps for the pass back, but for statistics and routes. */
static void round_kept(struct reference *r, const struct stage *s)
{
    const struct chunk_memory *m = &s->tables.memory;
    const struct unit_tables *unit = &s->tables.units[m->piece_count - 1];
    const struct memory_table *kept = m->inputs_only ? &unit->inputs : &unit->activations;
    const enum compression_code code = code_of(r->job->compression[COMPRESSION_ACTIVATIONS].ratio);
    const uint64_t stream = memory_boundary_bytes(&r->job->network, 0, r->job->microbatch, r->job->sequence,
                                                  PRECISION_FP32) / sizeof(float);
    if (!s->kept || code == COMPRESSION_PLAIN) return;
    if (m->kept_offset > 0) reference_round(code, s->kept, stream);
    for (uint32_t i = 0; i < kept->count; i++) {
        const struct memory_entry *entry = &kept->entries[i];
        if (strstr(entry->name, "stats") || strstr(entry->name, "routes")) continue;
        reference_round(code, s->kept + (m->kept_offset + entry->offset_bytes) / sizeof(float),
                        entry->bytes / sizeof(float));
    }
}

/* Passes a microbatch over a chunk; for an evaluation, after `minibatch` updates. `losses`: by replica of the last
 * stage. */
static void pass_over(struct reference *r, uint32_t c, uint32_t pass, uint64_t minibatch, uint64_t microbatch,
                      double *losses)
{
    struct stage *s = &r->stages[c], *next = c + 1 < r->chunks ? s + 1 : NULL;
    const struct turn turn = turn_of(r->job, c, minibatch, microbatch);
    const uint64_t update = minibatch / round_of(r->job, c);
    const uint64_t flushed = flushed_before(r->job, update), stale = update > s->staleness ? update - s->staleness : 0;
    const uint64_t version = pass == PLAN_EVALUATE ? update : stale > flushed ? stale : flushed;
    const bool back = pass == PLAN_BACKWARD;
    const struct chunk_arguments a = {
        .job = &r->flat, .tables = &s->tables, .pass = pass, .minibatch = update,
        .microbatch = {.alone = true, .adds = turn.before > 0, .apart = adds_apart(r->job),
                       .index = (uint32_t)microbatch},
        .state = s->versions[version], .table = r->stages[0].versions[version],
        .gradient = back ? s->gradient[turn.replica] : NULL, .batch = r->batch, .targets = r->targets,
        .loss = losses ? &losses[turn.replica] : NULL,
        .boundary_in = s->boundary, .boundary_out = back || !next ? NULL : next->boundary,
        .gradient_in = back && next ? next->d_boundary : NULL, .gradient_out = back ? s->d_boundary : NULL,
        .activations = pass == PLAN_EVALUATE ? NULL : s->kept, .workspace = s->workspace};
    chunk_compute(r->kernels, &a);
    const uint64_t numbers = memory_boundary_bytes(&r->job->network, 0, r->job->microbatch, r->job->sequence,
                                                   PRECISION_FP32) /
                             sizeof(float);
    if (pass == PLAN_FORWARD) round_kept(r, s);
    if (back && c > 0) reference_round(s->enters, s->d_boundary, numbers);
    if (!back && next) reference_round(next->enters, next->boundary, numbers);
}

static void add(float *sum, const float *x, uint64_t numbers)
{
    for (uint64_t i = 0; i < numbers; i++) sum[i] += x[i];
}

static uint64_t numbers_of(const struct stage *s)
{
    return s->tables.memory.gradient_bytes / sizeof(float);
}

/* Adds up the replicas' gradients of a chunk, each of them and the sum rounded to the code. */
static void reduce(struct reference *r, uint32_t c)
{
    struct stage *s = &r->stages[c];
    const uint32_t replicas = replicas_of(r->job, c);
    const uint64_t rounded = replicas > 1 ? s->tables.parameters.bytes / sizeof(float) : 0;
    for (uint32_t d = 0; d < replicas; d++) reference_round(r->gradients, s->gradient[d], rounded);
    for (uint32_t d = 1; d < replicas; d++) add(s->gradient[0], s->gradient[d], numbers_of(s));
    reference_round(r->gradients, s->gradient[0], rounded);
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

/* Returns the arguments of a norm or an update. The first chunk adds the last one's gradient of a tied table to its
 * own. */
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
    double losses[REFERENCE_REPLICAS_MAX] = {NAN, NAN, NAN, NAN}, sum = 0;
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
        double losses[REFERENCE_REPLICAS_MAX], sum = 0;
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
