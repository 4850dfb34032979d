/* label: medium, all rounds: slow
 * Parallel jobs over several processes have the bits of one process: random pipelines of all schedules, replicas,
 * unequal ones, shares, tensor groups with cut rows and without, and offloaded states, on random numbers of processes,
 * with random pauses on every stream and NaN in all memory that was released; some keep their best weights. Then
 * encoded gradients, delayed updates, states in storage, asynchronous pipelines that clip or share a table,
 * products in pieces, and experts in tensor groups. Some networks have adapters or frozen layers. The
 * measured trace has the same operations, in the same order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/ranks/rank_mesh.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { RANKS_MOST = 4, RANK_PATIENCE_S = 60 };
#define RANK_CASES support_rounds(3, 8)

/* What a rank tells: of rank 0, a hash of its trace, too. */
struct rank_outcome {
    struct cut_job_outcome job;
    uint64_t spans, hash;
    bool in_order; /* spans of a stream follow each other */
};

/* Hashes what the spans are of, in their order, and looks at their times. */
static void look_at_trace(const struct trace *trace, struct rank_outcome *out)
{
    double ends_s[512] = {0};
    out->spans = trace->span_count;
    out->hash = 0;
    out->in_order = trace->stream_count <= ARRAY_COUNT(ends_s);
    for (uint64_t i = 0; out->in_order && i < trace->span_count; i++) {
        const struct trace_span *const span = &trace->spans[i];
        const uint64_t words[] = {span->number, span->bytes, span->minibatch, span->stream, span->job, span->shard,
                                  span->kind, span->pass, span->op_index};
        for (size_t w = 0; w < ARRAY_COUNT(words); w++) out->hash = random_mix(out->hash ^ words[w]);
        if (span->start_s < ends_s[span->stream] || span->end_s < span->start_s || span->end_s > RANK_PATIENCE_S)
            out->in_order = false;
        ends_s[span->stream] = span->end_s;
    }
}

/* Carries the plan out as one of several processes, or without `options` in one. Returns 0 unless the run failed, with
 * the reason in *err. */
static int run_rank(const struct plan *plan, const struct ranks_options *options, uint64_t delay_seed,
                    struct rank_outcome *told, struct error *err)
{
    struct cut_job_outcome *const out = &told->job;
    struct run_result result = {0};
    struct trace trace = {0};
    struct ranks *ranks = NULL;
    enum status status = options ? ranks_join(options, &ranks, err) : STATUS_OK;
    const struct run_options of_run = {.ranks = ranks, .poison = true, .delay_seed = delay_seed,
                                       .stall_s = RANK_PATIENCE_S, .storage.folder = P_tmpdir,
                                       .record_spans = !options || options->rank == 0};
    if (status == STATUS_OK) status = run_plan(plan, &of_run, &result, &trace, err);
    if (status == STATUS_OK) {
        out->minibatches = result.jobs[0].minibatches;
        out->fingerprint = result.jobs[0].weights_fingerprint;
        out->kept_fingerprint = result.jobs[0].kept_fingerprint;
        memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
        out->evaluation_count = result.jobs[0].evaluation_count;
        memcpy(out->evaluations, result.jobs[0].evaluations, out->evaluation_count * sizeof *out->evaluations);
        look_at_trace(&trace, told);
    }
    ranks_destroy(ranks);
    trace_release(&trace);
    run_result_release(&result);
    return (int)status;
}

/* Carries the plan out in several processes, or in one for a `count` of 1. All are children, because threads of kernels
 * do not survive a fork. All must end well, and each must know all losses. */
static void run_ranks(const struct plan *plan, uint32_t count, uint64_t seed, struct rank_outcome *found)
{
    char meet[64];
    struct error err = {0};
    pid_t children[RANKS_MOST] = {0};
    struct rank_outcome *const theirs = mmap(NULL, RANKS_MOST * sizeof *theirs, PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(theirs != MAP_FAILED);
    snprintf(meet, sizeof meet, "/tmp/test-pipeline-%ld.meet", (long)getpid());
    struct ranks_options options = {.count = count, .meet_file = meet, .patience_s = RANK_PATIENCE_S,
                                    .plan = plan_fingerprint(plan), .machine = "test"};
    for (uint32_t r = 0; r < count; r++) {
        children[r] = fork();
        assert_true(children[r] >= 0);
        if (children[r] > 0) continue;
        options.rank = r;
        const int code = run_rank(plan, count > 1 ? &options : NULL, seed > 0 ? seed + r : 0, &theirs[r], &err);
        if (code) fprintf(stderr, "rank %u: %s\n", r, err.text);
        _exit(code);
    }
    bool well = true;
    for (uint32_t r = 0; r < count; r++) {
        int ended = 0;
        assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
        well &= ended == 0;
        if (WIFSIGNALED(ended)) print_message("rank %u: signal %d\n", r, WTERMSIG(ended));
    }
    for (uint32_t r = 1; well && r < count; r++)
        assert_memory_equal(theirs[r].job.losses, theirs[0].job.losses, sizeof theirs[0].job.losses);
    *found = theirs[0];
    munmap(theirs, RANKS_MOST * sizeof *theirs);
    if (!well) fail_msg("a rank failed");
}

static void check_same(const struct rank_outcome *wanted, const struct rank_outcome *found, const struct cut_job *job)
{
    cut_job_same(&wanted->job, &found->job, job);
    assert_true(!job->keeps_best || wanted->job.evaluation_count == 0 || wanted->job.kept_fingerprint != 0);
    if (wanted->job.kept_fingerprint != found->job.kept_fingerprint) fail_msg("other best weights");
    assert_true(wanted->spans > 0);
    assert_int_equal(found->spans, wanted->spans);
    assert_true(found->hash == wanted->hash);
    if (!wanted->in_order || !found->in_order)
        fail_msg("spans overlap: in one process %d, in several %d", !wanted->in_order, !found->in_order);
}

/* A way to carry a job out over several devices. */
struct way {
    struct parallel parallel;
    struct cut_job job;
};

enum way_kind { WAY_PIPELINE, WAY_UNEQUAL, WAY_ASYNCHRONOUS, WAY_SLICES, WAY_KINDS };

static void draw_pipeline(uint64_t seed, uint64_t *key, struct way *w)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_INTERLEAVED, PIPELINE_ZB_H1,
                                         PIPELINE_ZB_H2, PIPELINE_ZB_V};
    struct parallel *const p = &w->parallel;
    p->pipeline = 1 + (uint32_t)random_below(seed, (*key)++, 3);
    p->data = p->pipeline == 1
              ? 2 + (uint32_t)random_below(seed, (*key)++, 3) : 1 + (uint32_t)random_below(seed, (*key)++, 2);
    p->schedule = schedules[random_below(seed, (*key)++, p->pipeline == 1 ? 2 : ARRAY_COUNT(schedules))];
    p->chunks = p->schedule == PIPELINE_INTERLEAVED || p->schedule == PIPELINE_ZB_V ? 2 : 1;
    if (p->pipeline > 1 && p->chunks == 1 && !pipeline_has_halves(p->schedule))
        p->buckets = 1 + (uint32_t)random_below(seed, (*key)++, 2);
    w->job.microbatches = p->data * p->pipeline * (1 + random_below(seed, (*key)++, 2));
    const uint64_t each = w->job.microbatches / p->data;
    p->tree = random_below(seed, (*key)++, 2) && (each & (each - 1)) == 0;
}

static void draw_unequal(uint64_t seed, uint64_t *key, struct way *w)
{
    struct parallel *const p = &w->parallel;
    uint64_t least = 1;
    p->pipeline = 1 + (uint32_t)random_below(seed, (*key)++, 3);
    p->replicated = p->pipeline;
    for (uint32_t i = 0; i < p->pipeline; i++) {
        p->replicas[i] = 1 + (uint32_t)random_below(seed, (*key)++, 3);
        if (p->pipeline == 1) p->replicas[i]++;
        if (p->replicas[i] > least) least = p->replicas[i];
    }
    p->schedule = random_below(seed, (*key)++, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE;
    w->job.microbatches = least + random_below(seed, (*key)++, 4);
}

static void draw_asynchronous(uint64_t seed, uint64_t *key, struct way *w)
{
    struct parallel *const p = &w->parallel;
    p->pipeline = 2 + (uint32_t)random_below(seed, (*key)++, 3);
    p->schedule = random_below(seed, (*key)++, 2) ? PIPELINE_PIPEDREAM : PIPELINE_2BW;
    p->data = 1 + (uint32_t)random_below(seed, (*key)++, 2);
    w->job.steps = CUT_JOB_STEPS_MOST;
    w->job.microbatches = p->data *
                          (p->schedule == PIPELINE_PIPEDREAM ? 1 : p->pipeline + random_below(seed, (*key)++, 3));
    if (random_below(seed, (*key)++, 2)) {
        p->replicated = p->pipeline;
        p->data = 1;
        for (uint32_t i = 0; i < p->pipeline; i++) p->replicas[i] = 1 + (uint32_t)random_below(seed, (*key)++, 3);
        w->job.microbatches = p->schedule == PIPELINE_PIPEDREAM ? 1 : 12; /* enough in flight */
        return;
    }
    if (random_below(seed, (*key)++, 2)) p->flush = 1 + (uint32_t)random_below(seed, (*key)++, 5);
    w->job.every = random_below(seed, (*key)++, 4);
}

static void draw_slices(uint64_t seed, uint64_t *key, struct way *w)
{
    enum { TOKENS = 16 };
    struct parallel *const p = &w->parallel;
    p->pipeline = 2 + (uint32_t)random_below(seed, (*key)++, 2);
    p->data = 1 + (uint32_t)random_below(seed, (*key)++, 2);
    p->schedule = PIPELINE_TERAPIPE;
    for (uint32_t left = TOKENS; left > 0; left -= p->slice_tokens[p->slices++])
        p->slice_tokens[p->slices] = 1 + (uint32_t)random_below(seed, (*key)++, left < 7 ? left : 7);
    w->job.microbatches = p->data * (1 + random_below(seed, (*key)++, 3));
}

/* Draws a level of shares of replicas, and how far ahead weights are gathered. */
static void draw_shares(uint64_t seed, uint64_t *key, struct way *w)
{
    struct parallel *const p = &w->parallel;
    if (p->data == 1 || p->replicated > 0 || pipeline_is_asynchronous(p->schedule)) return;
    p->zero = (uint32_t)random_below(seed, (*key)++, p->tree && w->job.microbatches > p->data ? 2 : 4);
    p->prefetch = (uint32_t)random_below(seed, (*key)++, 3);
}

static void draw_tensor(uint64_t seed, uint64_t *key, struct way *w)
{
    struct parallel *const p = &w->parallel;
    p->tensor = 2;
    p->scatter = p->pipeline > 1 && random_below(seed, (*key)++, 2);
    p->sequence = !p->scatter && !strstr(w->job.config, "vit") && random_below(seed, (*key)++, 2);
}

/* Draws where the states are, and the weights. Whole weights come up for one microbatch of each replica. */
static void draw_offload(uint64_t seed, uint64_t *key, struct way *w)
{
    struct parallel *const p = &w->parallel;
    const bool whole = p->data > 1 && p->zero == ZERO_NOTHING;
    if (p->replicated > 0 || p->tree || pipeline_is_asynchronous(p->schedule) || random_below(seed, (*key)++, 2))
        return;
    p->offload = p->schedule == PIPELINE_TERAPIPE ? OFFLOAD_STATES : 1 + (uint32_t)random_below(seed, (*key)++, 2);
    if (p->offload != OFFLOAD_WEIGHTS) return;
    if (pipeline_has_halves(p->schedule) || (p->zero > 0 && p->data > 1 && p->zero < ZERO_WEIGHTS) ||
        (whole && p->schedule == PIPELINE_INTERLEAVED))
        p->offload = OFFLOAD_STATES;
    else if (whole) w->job.microbatches = p->data;
}

static bool is_tied(const char *config)
{
    return !strstr(config, "vit") && !strstr(config, "\"tie_word_embeddings\": false");
}

/* Draws adapters, or frozen layers: the first ones, or one in the middle. */
static void draw_trained(uint64_t seed, uint64_t *key, struct way *w)
{
    static const uint64_t layers[][1][2] = {{{0, 2}}, {{3, 3}}};
    const uint64_t drawn = random_below(seed, (*key)++, 6);
    if (drawn < 2)
        w->job.freeze = (struct network_freeze){.layers = layers[drawn], .layer_count = 1};
    else if (drawn < 4 && cut_job_clips(w->job.config))
        w->job.adapter = (struct job_adapter){.rank = 3, .alpha = 20, .all_linear = true};
}

/* Draws what the network and the executor can do. */
static void draw_way(uint64_t seed, uint64_t n, const char *config, struct way *w)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    static void (*const draws[])(uint64_t seed, uint64_t *key, struct way *w) = {draw_pipeline, draw_unequal,
                                                                                 draw_asynchronous,
                                                                                draw_slices};
    uint64_t key = 100 * n;
    enum way_kind kind = (enum way_kind)(n % WAY_KINDS);
    if (kind == WAY_ASYNCHRONOUS && is_tied(config)) kind = WAY_UNEQUAL;
    if (kind == WAY_SLICES && !strstr(config, "gpt2") && !strstr(config, "llama")) kind = WAY_PIPELINE;
    *w = (struct way){.parallel = {.tensor = 1, .data = 1, .chunks = 1, .buckets = 1, .prefetch = 1},
                      .job = {.config = config, .held_out = 1 + random_below(seed, key, 3)}};
    key++;
    w->parallel.recompute = recompute[random_below(seed, key++, 4)];
    w->parallel.blocking = random_below(seed, key++, 4) == 0;
    w->job.precision = test_precision(random_below(seed, key++, 3));
    if (kind == WAY_PIPELINE || kind == WAY_UNEQUAL) w->job.every = random_below(seed, key++, 4);
    if (kind != WAY_ASYNCHRONOUS && cut_job_clips(config) && random_below(seed, key++, 2))
        w->job.clip = 0.05 + 0.5 * random_unit(seed, key++);
    draws[kind](seed, &key, w);
    draw_shares(seed, &key, w);
    if (random_below(seed, key++, 2) && kind != WAY_SLICES && parallel_devices(&w->parallel) <= 6)
        draw_tensor(seed, &key, w);
    draw_offload(seed, &key, w);
    draw_trained(seed, &key, w);
    w->job.keeps_best = w->job.every > 0 && random_below(seed, key++, 2);
    w->job.parallel = &w->parallel;
    w->job.devices = (uint32_t)parallel_devices(&w->parallel);
}

/* Runs a job in one process and in several, and compares them. `n`: of the case. */
static void compare_processes(const struct cut_job *job, uint64_t seed, uint64_t n)
{
    const uint32_t most = job->devices < RANKS_MOST ? job->devices : RANKS_MOST;
    const uint32_t ranks = 2 + (uint32_t)random_below(seed, 100000 + n, most - 1);
    struct rank_outcome wanted, found;
    struct plan plan = {0};
    char how[PARALLEL_TEXT_BYTES];
    print_message("%.25s..., %s, %s, clip %g, %u microbatches, %u processes\n", job->config,
                  pipeline_schedule_names[job->parallel->schedule], parallel_text(job->parallel, how), job->clip,
                  (unsigned)job->microbatches, ranks);
    cut_job_plan(job, &plan);
    run_ranks(&plan, 1, 0, &wanted);
    run_ranks(&plan, ranks, n % 3 == 0 ? 0 : seed + n, &found);
    check_same(&wanted, &found, job);
    plan_release(&plan);
}

static void test_bits_of_several_processes(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("processes");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < RANK_CASES; n++) {
            struct way w;
            draw_way(seed, c * RANK_CASES + n, cut_job_configs[c], &w);
            if (w.job.devices >= 2) compare_processes(&w.job, seed, n);
        }
}

/* Gradients of 16 bits, and compressed to int8, over replicas in several processes; with a tied table and without. */
static void test_codes_of_several_processes(void **state)
{
    (void)state;
    static const struct parallel ways[] = {
        {.tensor = 1, .pipeline = 1, .data = 3, .chunks = 2, .prefetch = 1, .schedule = PIPELINE_1F1B},
        {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_GPIPE},
        {.tensor = 2, .pipeline = 1, .data = 2, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
    };
    const uint64_t seed = support_seed("codes in processes");
    for (uint32_t n = 0; n < 4 * ARRAY_COUNT(ways); n++) {
        const struct parallel *const p = &ways[n / 4];
        const struct cut_job job = {.config = cut_job_configs[n % 2], .parallel = p,
                                    .devices = (uint32_t)parallel_devices(p),
                                    .microbatches = 2 * p->data,
                                    .precision = test_precision(n % 4),
                                    .gradients = n % 4 < 2 ? PRECISION_BF16 : PRECISION_FP32,
                                    .ratio = n % 4 < 2 ? 0 : 3.75};
        compare_processes(&job, seed, n);
    }
}

/* Gradients of 16 bits, and compressed to 16, of which each replica gets its share of the sum. */
static void test_codes_of_shares(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("codes of shares");
    for (uint64_t n = 0; n < support_rounds(CUT_JOB_CONFIGS, 3 * CUT_JOB_CONFIGS); n++) {
        const char *const config = cut_job_configs[n % CUT_JOB_CONFIGS];
        uint64_t key = 100 * n;
        struct parallel p = {.tensor = 1, .chunks = 1, .buckets = 1, .prefetch = 1, .zero = ZERO_STATES};
        p.pipeline = 1 + (uint32_t)random_below(seed, key++, 2);
        p.data = 2 + (uint32_t)random_below(seed, key++, 3);
        p.schedule = random_below(seed, key++, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE;
        const bool bits = random_below(seed, key++, 3) > 0;
        if (bits) p.zero = 1 + (uint32_t)random_below(seed, key++, 3);
        if (bits && random_below(seed, key++, 3) == 0) p.offload = OFFLOAD_STATES;
        if (p.pipeline * p.data <= 4 && random_below(seed, key++, 2)) p.tensor = 2;
        struct cut_job job = {.config = config, .parallel = &p, .devices = (uint32_t)parallel_devices(&p),
                              .microbatches = p.data * (1 + random_below(seed, key++, 3)),
                              .precision = bits ? PRECISION_BF16_WEIGHTS : PRECISION_FP32,
                              .gradients = bits ? PRECISION_BF16 : PRECISION_FP32, .ratio = bits ? 0 : 2};
        if (cut_job_clips(config) && random_below(seed, key++, 2)) job.clip = 0.1 + random_unit(seed, key);
        compare_processes(&job, seed, n);
    }
}

/* Draws updates on the host, delayed or of states in storage or both; whole or of shares, with flushes and without. */
static void draw_below(uint64_t seed, uint64_t n, struct way *w)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_INTERLEAVED, PIPELINE_ZB_H1};
    uint64_t key = 100 * n;
    struct parallel *const p = &w->parallel;
    *p = (struct parallel){.tensor = 1, .chunks = 1, .buckets = 1, .prefetch = 1, .offload = OFFLOAD_STATES};
    p->storage = random_below(seed, key++, 2);
    p->delayed = !p->storage || random_below(seed, key++, 3) == 0;
    p->pipeline = 1 + (uint32_t)random_below(seed, key++, 3);
    p->data = p->pipeline == 1
              ? 2 + (uint32_t)random_below(seed, key++, 3) : 1 + (uint32_t)random_below(seed, key++, 2);
    p->schedule = schedules[random_below(seed, key++, p->pipeline == 1 ? 2 : ARRAY_COUNT(schedules))];
    if (p->schedule == PIPELINE_INTERLEAVED) p->chunks = 2;
    if (p->data > 1) p->zero = (uint32_t)random_below(seed, key++, 4);
    if (parallel_devices(p) <= 4 && random_below(seed, key++, 3) == 0) p->tensor = 2;
    if (p->delayed && random_below(seed, key++, 2)) p->flush = 1 + (uint32_t)random_below(seed, key++, 4);
    w->job = (struct cut_job){.config = cut_job_configs[n % CUT_JOB_CONFIGS], .parallel = p, .steps = 7,
                              .stored = p->storage,
                              .microbatches = p->data * p->pipeline * (1 + random_below(seed, key++, 2)),
                              .devices = (uint32_t)parallel_devices(p),
                              .every = random_below(seed, key++, 4), .held_out = 1 + random_below(seed, key, 2)};
    key++;
    w->job.precision = test_precision(random_below(seed, key++, 3));
    if (cut_job_clips(w->job.config) && random_below(seed, key++, 2)) w->job.clip = 0.1 + random_unit(seed, key++);
    w->job.keeps_best = w->job.every > 0 && !p->storage && random_below(seed, key++, 2);
    const bool whole = p->data > 1 && p->zero == ZERO_NOTHING; /* whole weights come up for one microbatch */
    const bool divides = p->data > 1 && !whole && p->zero < ZERO_WEIGHTS;
    if (p->delayed || pipeline_has_halves(p->schedule) || whole || divides || random_below(seed, key++, 2)) return;
    p->offload = OFFLOAD_WEIGHTS;
}

static void test_updates_below(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("delayed and stored in processes");
    for (uint64_t n = 0; n < support_rounds(CUT_JOB_CONFIGS, 4 * CUT_JOB_CONFIGS); n++) {
        struct way w;
        draw_below(seed, n, &w);
        compare_processes(&w.job, seed, n);
    }
}

/* Asynchronous pipelines whose last stages wait for the first: they clip, or share a table over their ends. */
static void test_waits_of_several_processes(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("waits in processes");
    for (uint64_t n = 0; n < support_rounds(6, 16); n++) {
        const char *const config = cut_job_configs[n % 4];
        uint64_t key = 100 * n;
        struct parallel p = {.tensor = 1, .chunks = 1, .buckets = 1, .prefetch = 1};
        p.pipeline = 2 + (uint32_t)random_below(seed, key++, 3);
        p.data = 1 + (uint32_t)random_below(seed, key++, 2);
        p.schedule = random_below(seed, key++, 2) ? PIPELINE_PIPEDREAM : PIPELINE_2BW;
        if (random_below(seed, key++, 2)) p.flush = 1 + (uint32_t)random_below(seed, key++, 5);
        if (parallel_devices(&p) <= 4 && random_below(seed, key++, 3) == 0) p.tensor = 2;
        struct cut_job job = {.config = config, .parallel = &p, .devices = (uint32_t)parallel_devices(&p),
                              .steps = CUT_JOB_STEPS_MOST, .microbatches = p.data, .held_out = 2,
                              .every = random_below(seed, key++, 4)};
        if (p.schedule == PIPELINE_2BW) job.microbatches *= p.pipeline + random_below(seed, key++, 3);
        if (cut_job_clips(config) && (!is_tied(config) || random_below(seed, key++, 2)))
            job.clip = 0.1 + random_unit(seed, key++);
        job.precision = test_precision(random_below(seed, key++, 3));
        compare_processes(&job, seed, n);
    }
}

/* Products in pieces, whose sums over processes are trees. */
static void test_pieces_of_several_processes(void **state)
{
    (void)state;
    static const char config[] = "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 32, "
                                 "\"num_attention_heads\": 8, \"intermediate_size\": 40, "
                                 "\"max_position_embeddings\": 16, \"vocab_size\": 67}";
    const uint64_t seed = support_seed("pieces in processes");
    for (uint32_t ranks = 2; ranks <= RANKS_MOST; ranks++) {
        struct parallel parallel = {.tensor = 4, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1,
                                    .tensor_pieces = 8};
        const struct cut_job job = {.config = config, .parallel = &parallel, .devices = 4, .microbatches = 2,
                                    .clip = 0.3};
        struct rank_outcome wanted, found;
        struct plan plan = {0};
        cut_job_plan(&job, &plan);
        run_ranks(&plan, ranks, seed, &found);
        plan_release(&plan);
        parallel.tensor = 1;
        cut_job_plan(&job, &plan);
        run_ranks(&plan, 1, 0, &wanted);
        cut_job_same(&wanted.job, &found.job, &job); /* another plan, with other operations */
        plan_release(&plan);
    }
}

/* Experts, of which each device of a group has a part, with cut rows, scattered boundaries, shares, and in pieces. */
static void test_experts_of_several_processes(void **state)
{
    (void)state;
    enum { FIRST_WITH_EXPERTS = 11 };
    static const struct parallel ways[] = {
        {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1, .tensor_pieces = 2},
        {.tensor = 2, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_ZB_H1,
         .sequence = true},
        {.tensor = 2, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B,
         .scatter = true},
        {.tensor = 2, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1, .zero = ZERO_WEIGHTS},
    };
    const uint64_t seed = support_seed("experts in processes");
    for (uint32_t n = 0; n < (CUT_JOB_FAMILIES - FIRST_WITH_EXPERTS) * ARRAY_COUNT(ways); n++) {
        const struct parallel *const p = &ways[n % ARRAY_COUNT(ways)];
        const struct cut_job job = {.config = cut_job_families[FIRST_WITH_EXPERTS + n / ARRAY_COUNT(ways)],
                                    .parallel = p, .devices = (uint32_t)parallel_devices(p),
                                    .microbatches = 2 * p->data,
                                    .precision = n % 3 == 0 && p->tensor_pieces == 0 ? PRECISION_BF16_WEIGHTS
                                                                                     : PRECISION_FP32,
                                    .clip = n % 2 ? 0.3 : 0};
        assert_non_null(strstr(job.config, "experts"));
        compare_processes(&job, seed, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_several_processes), cmocka_unit_test(test_codes_of_several_processes),
        cmocka_unit_test(test_codes_of_shares), cmocka_unit_test(test_updates_below),
        cmocka_unit_test(test_waits_of_several_processes),
        cmocka_unit_test(test_pieces_of_several_processes),
        cmocka_unit_test(test_experts_of_several_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
