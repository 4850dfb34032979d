/* label: medium
 * Pipelines that are carried out have the bits of one device.
 *
 * For every family, random cuts, schedules, microbatches and ways to recompute, with random pauses on every stream and
 * NaN in all memory that was released: the plan passes its check, and the run ends with the losses and weights of the
 * job spilled on one device. Replicas add up their gradients in another order: all plans of equally many replicas have
 * the same bits, and losses that differ from one device's only by rounding; so have all levels of shares that add up
 * in one order; clipped shares differ by rounding, and the same shares have the same bits. Checkpoints do not show how the
 * job was cut:
 * those of a pipeline equal the spilled job's byte for byte, and each goes on under another cut with the same bits.
 * Several processes have the bits of one.
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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/random.h"
#include "base/size.h"
#include "exec/ranks/rank_mesh.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { STEPS = 3, DEVICES = 12, CASES = 16, SHARE_CASES = 16, CLIPPED = 8, TREES = 8 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* Stages, chunks on each, buckets, schedule, replicas. */
struct cut {
    uint32_t pipeline, chunks, buckets, schedule, data;
};
static const struct cut cuts[] = {
    {2, 1, 1, PIPELINE_GPIPE, 1},       {3, 1, 1, PIPELINE_GPIPE, 1}, {2, 1, 1, PIPELINE_1F1B, 1},
    {3, 1, 1, PIPELINE_1F1B, 1},        {4, 1, 1, PIPELINE_1F1B, 1},  {2, 2, 1, PIPELINE_INTERLEAVED, 1},
    {2, 3, 1, PIPELINE_INTERLEAVED, 1}, {1, 3, 1, PIPELINE_1F1B, 1},  {2, 1, 3, PIPELINE_1F1B, 1},
    {2, 1, 2, PIPELINE_GPIPE, 1},       {2, 1, 1, PIPELINE_ZB_H1, 1}, {3, 1, 1, PIPELINE_ZB_H1, 1},
    {2, 1, 1, PIPELINE_ZB_H2, 1},       {4, 1, 1, PIPELINE_ZB_H2, 1}, {2, 2, 1, PIPELINE_ZB_V, 1},
    {3, 2, 1, PIPELINE_ZB_V, 1},
};

struct setting {
    const char *config;
    uint64_t microbatches, first; /* first: minibatches already done */
    double clip;                  /* 0: none */
    bool diverges;                /* weights overflow after a few steps */
    uint64_t every, held_out;     /* minibatches between evaluations, 0: none; and of each */
    uint32_t precision;
    const struct cut *cut;        /* NULL: one device, spilled */
    uint32_t recompute, zero, prefetch, moments, optimizer;
    bool blocking, tree, offload; /* offload: the host updates */
    uint32_t devices;             /* of the machine; 0: DEVICES */
};

static const struct cut replicated[] = {
    {1, 1, 1, PIPELINE_GPIPE, 2}, {1, 3, 1, PIPELINE_1F1B, 2},        {2, 1, 1, PIPELINE_1F1B, 2},
    {3, 1, 1, PIPELINE_GPIPE, 2}, {2, 2, 1, PIPELINE_INTERLEAVED, 2}, {2, 1, 2, PIPELINE_1F1B, 2},
    {2, 1, 1, PIPELINE_ZB_H1, 2}, {2, 2, 1, PIPELINE_ZB_V, 2},        {1, 1, 1, PIPELINE_1F1B, 4},
    {2, 1, 1, PIPELINE_GPIPE, 4}, {2, 1, 1, PIPELINE_ZB_H2, 4},
};

static void make_plan(const struct setting *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, !s->cut ? 1 : s->devices > 0 ? s->devices : DEVICES, 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    test_network_jobs(&jobs, 1, s->config, STEPS);
    struct job *job = &jobs.jobs[0];
    job->microbatch = 2;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->optimizer.learning_rate = 0.01;
    job->optimizer.moments = s->moments;
    job->optimizer.kind = s->optimizer;
    job->first_minibatch = s->first;
    job->minibatches = STEPS - s->first;
    if (s->diverges) job->optimizer = (struct job_optimizer){.kind = OPTIMIZER_SGD, .learning_rate = 1e6};
    job->optimizer.clip = s->clip;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = s->held_out};
    if (s->cut)
        job->parallel = (struct parallel){.tensor = 1, .prefetch = 1 + s->prefetch, .pipeline = s->cut->pipeline,
                                          .data = s->cut->data, .zero = s->zero,
                                          .chunks = s->cut->chunks, .buckets = s->cut->buckets,
                                          .schedule = s->cut->schedule, .recompute = s->recompute,
                                          .blocking = s->blocking, .tree = s->tree,
                                          .offload = s->offload ? OFFLOAD_STATES : OFFLOAD_NOTHING};
    const struct planner_options options = {.policy = s->cut ? NULL : "spill-sequential", .shards = 3,
                                            
                                            .activations = PLANNER_AUTO,
                                            .optimizer = s->clip > 0 ? PLANNER_AUTO : PLANNER_PLACE_DEVICE};
    enum status status = parallel_is_set(&job->parallel) ? parallel_check(job, &err) : STATUS_OK;
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (status) fail_msg("%s", err.text);
}

struct outcome {
    double losses[STEPS], norms[STEPS]; /* norms: of run_with_norms() */
    struct evaluation_progress evaluations[STEPS];
    uint64_t evaluation_count;
    uint64_t fingerprint, minibatches;
};

/* Releases the plan. */
static void run(struct plan *plan, const struct run_options *options, struct outcome *out)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (run_plan(plan, options, &result, &trace, &err)) fail_msg("%s", err.text);
    if (options->record_spans && trace_check(&trace, &err)) fail_msg("%s", err.text);
    if (options->record_spans) assert_int_equal(trace.span_count, plan_operations(plan));
    out->minibatches = result.jobs[0].minibatches;
    out->fingerprint = result.jobs[0].weights_fingerprint;
    memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
    out->evaluation_count = result.jobs[0].evaluation_count;
    memcpy(out->evaluations, result.jobs[0].evaluations, out->evaluation_count * sizeof *out->evaluations);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(plan);
}

static void assert_same(const struct outcome *wanted, const struct outcome *found, const struct setting *s)
{
    char what[200];
    snprintf(what, sizeof what,
             "%.25s..., %u stages, %u chunks, %u buckets, %u replicas, zero %u, prefetch %u, precision %u, moments %u, "
             "%s, recompute %s, %u microbatches, clip %g%s", s->config, s->cut->pipeline, s->cut->chunks, s->cut->buckets,
             s->cut->data, s->zero, s->prefetch, s->precision, s->moments, pipeline_schedule_names[s->cut->schedule],
             recompute_names[s->recompute], (unsigned)s->microbatches, s->clip, s->offload ? ", the host updates" : "");
    assert_int_equal(found->minibatches, STEPS);
    for (uint32_t i = 0; i < STEPS; i++)
        if (memcmp(&wanted->losses[i], &found->losses[i], sizeof(double)) != 0)
            fail_msg("%s: loss %u is %.17g, not %.17g", what, i, found->losses[i], wanted->losses[i]);
    assert_int_equal(found->evaluation_count, wanted->evaluation_count);
    for (uint32_t i = 0; i < found->evaluation_count; i++) {
        const struct evaluation_progress *a = &wanted->evaluations[i], *b = &found->evaluations[i];
        if (a->step != b->step || memcmp(&a->loss, &b->loss, sizeof a->loss) != 0)
            fail_msg("%s: evaluation after step %u is %.17g, not %.17g", what, (unsigned)b->step, b->loss, a->loss);
    }
    if (wanted->fingerprint != found->fingerprint) fail_msg("%s: other weights", what);
}

/* Jobs of bert and vit do not clip. */
static bool network_is_clipped(const char *config)
{
    return !strstr(config, "bert") && !strstr(config, "vit");
}

static struct setting draw(uint64_t seed, uint64_t n, const char *config)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    struct setting s = {.config = config,
                        .cut = &cuts[random_below(seed, 7 * n, ARRAY_COUNT(cuts))],
                        .recompute = recompute[random_below(seed, 7 * n + 1, 4)],
                        .precision = random_below(seed, 7 * n + 2, 3) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32,
                        .blocking = random_below(seed, 7 * n + 3, 4) == 0};
    s.microbatches = 1 + random_below(seed, 7 * n + 4, 5);
    if (n % 2 == 0 && network_is_clipped(config)) s.clip = 0.05 + 0.5 * random_unit(seed, 7 * n + 5);
    else s.offload = random_below(seed, 7 * n + 5, 2);
    s.every = random_below(seed, 7 * n + 5, 4);
    s.held_out = 1 + random_below(seed, 7 * n + 6, 3);
    if (s.cut->schedule == PIPELINE_INTERLEAVED) s.microbatches = s.cut->pipeline * (1 + random_below(seed, 7 * n + 4, 2));
    return s;
}

static void test_bits_of_one_device(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("pipelines");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            const struct setting s = draw(seed, c * CASES + n, configs[c]);
            struct setting alone = s;
            struct outcome wanted, found;
            struct plan plan = {0};
            alone.cut = NULL;
            make_plan(&alone, &plan);
            run(&plan, &(struct run_options){.poison = true}, &wanted);
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n, .record_spans = true},
                &found);
            assert_same(&wanted, &found, &s);
        }
}

/* Compares all cuts of 2 and of 4 replicas with the first, and the first with one device. */
static void test_bits_of_equal_replicas(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("replicas");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        struct outcome alone, first = {0}, found;
        struct plan plan = {0};
        uint32_t replicas = 0;
        const uint32_t precision = random_below(seed, c, 3) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
        struct setting s = {.config = configs[c], .microbatches = 8, .precision = precision,
                            .every = 1 + random_below(seed, 50 + c, 3), .held_out = 2};
        if (c % 2 == 0 && network_is_clipped(configs[c])) s.clip = 0.2;
        make_plan(&s, &plan);
        run(&plan, &(struct run_options){.poison = true}, &alone);
        for (size_t i = 0; i < ARRAY_COUNT(replicated); i++) {
            s.cut = &replicated[i];
            s.recompute = random_below(seed, 100 * c + i, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true, .delay_seed = seed + i, .record_spans = true}, &found);
            if (replicas != s.cut->data) {
                replicas = s.cut->data;
                first = found;
                for (uint32_t k = 0; k < STEPS; k++)
                    if (fabs(found.losses[k] / alone.losses[k] - 1) > (precision == PRECISION_FP32 ? 1e-5 : 1e-2))
                        fail_msg("%.25s...: loss %u is %.9g, of one device %.9g", s.config, k, found.losses[k],
                                 alone.losses[k]);
            }
            assert_same(&first, &found, &s);
        }
    }
}

/* --- shares ----------------------------------------------------------------------------------- */

/* Draws a cut for `data` replicas, which have `each` microbatches and split at most states, if `states`. */
static struct cut draw_cut(uint64_t seed, uint64_t n, uint32_t data, uint64_t each, bool states)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_INTERLEAVED};
    struct cut cut = {.pipeline = 1 + (uint32_t)random_below(seed, n, 3), .data = data, .buckets = 1, .chunks = 1};
    cut.schedule = schedules[random_below(seed, n + 1, 3)];
    if (cut.pipeline > 1 && states && random_below(seed, n + 3, 3) == 0) {
        cut.schedule = random_below(seed, n + 2, 2) ? PIPELINE_ZB_H1 : PIPELINE_ZB_V;
        cut.chunks = cut.schedule == PIPELINE_ZB_V ? 2 : 1;
        return cut;
    }
    if (cut.pipeline > 1 && cut.schedule == PIPELINE_INTERLEAVED && each % cut.pipeline != 0) cut.schedule = PIPELINE_1F1B;
    if (cut.schedule == PIPELINE_INTERLEAVED) cut.chunks = cut.pipeline == 3 ? 2 : 2 + (uint32_t)random_below(seed, n + 2, 2);
    else if (cut.pipeline == 1) cut.chunks = 1 + (uint32_t)random_below(seed, n + 2, 4);
    else cut.buckets = 1 + (uint32_t)random_below(seed, n + 2, 2);
    return cut;
}

/*
 * Shares change where a job is computed, not what. Levels 0 and 1 add up each replica's microbatches, then the
 * replicas' sums; 2 and 3 add up the replicas' gradients of each microbatch, then these. With one microbatch each, all
 * four have the same bits.
 */
static void test_bits_of_shares(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("shares");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < SHARE_CASES; n++) {
            const uint64_t at = 20 * (c * SHARE_CASES + n);
            const uint32_t data = 2 + (uint32_t)random_below(seed, at, 3);
            const uint64_t each = 1 + random_below(seed, at + 1, 4);
            struct setting s = {.config = configs[c], .microbatches = data * each};
            struct outcome wanted, found;
            struct plan plan = {0};
            struct cut cut = {.pipeline = 1, .chunks = 1, .buckets = 1, .schedule = PIPELINE_GPIPE, .data = data};
            s.precision = random_below(seed, at + 2, 2) ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
            s.moments = random_below(seed, at + 3, 3) == 0 ? PRECISION_BF16 : PRECISION_FP32;
            s.optimizer = random_below(seed, at + 4, 4) == 0 ? OPTIMIZER_MOMENTUM : OPTIMIZER_ADAMW;
            const uint32_t zero = (uint32_t)random_below(seed, at + 5, 4);
            s.every = random_below(seed, at + 13, 3);
            s.held_out = s.every > 0 ? 1 + random_below(seed, at + 14, 2) : 0;
            s.cut = &cut;
            s.zero = zero < ZERO_GRADIENTS || each == 1 ? ZERO_NOTHING : ZERO_GRADIENTS;
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true}, &wanted);
            cut = draw_cut(seed, at + 6, data, each, zero < ZERO_GRADIENTS);
            s.zero = zero;
            s.offload = random_below(seed, at + 15, 2);
            s.prefetch = (uint32_t)random_below(seed, at + 10, 2);
            s.recompute = random_below(seed, at + 11, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            s.blocking = random_below(seed, at + 12, 4) == 0;
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n, .record_spans = true},
                &found);
            assert_same(&wanted, &found, &s);
        }
}

/* Runs a plan, and reads the gradients' norms in its log. */
static void run_with_norms(struct plan *plan, struct run_options options, struct outcome *out)
{
    char path[] = "/tmp/test-pipeline-norms-XXXXXX", *line = NULL;
    const int file = mkstemp(path);
    size_t room = 0;
    uint32_t count = 0;
    assert_true(file >= 0);
    close(file);
    options.log_path = path;
    run(plan, &options, out);
    FILE *log = fopen(path, "r");
    assert_non_null(log);
    while (getline(&line, &room, log) > 0) {
        const char *norm = strstr(line, "\"norm\":");
        if (!norm) continue;
        assert_true(count < STEPS);
        out->norms[count++] = strtod(norm + strlen("\"norm\":"), NULL);
    }
    assert_int_equal(count, STEPS);
    free(line);
    fclose(log);
    unlink(path);
}

static void assert_near(const struct outcome *wanted, const struct outcome *found, const struct setting *s, double most)
{
    for (uint32_t i = 0; i < STEPS; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= most) || !(fabs(found->norms[i] / wanted->norms[i] - 1) <= most))
            fail_msg("%.60s..., %u stages, %u chunks, %u replicas, %s, zero %u, clip %g: loss %u is %.9g (one device: %.9g), "
                     "norm %.9g (%.9g)", s->config, s->cut->pipeline, s->cut->chunks, s->cut->data,
                     pipeline_schedule_names[s->cut->schedule], s->zero, s->clip, i, found->losses[i], wanted->losses[i],
                     found->norms[i], wanted->norms[i]);
}

/* Clipped replicas with shares have the losses and norms of one device, to rounding: a share cuts tensors, whose squares
 * are added up in another order. Other ways to compute with the same shares have the same bits. */
static void test_clipped_shares(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("clipped shares");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CLIPPED && network_is_clipped(configs[c]); n++) {
            const uint64_t at = 20 * (c * CLIPPED + n);
            const uint32_t data = 2 + (uint32_t)random_below(seed, at, 3), zero = 1 + (uint32_t)random_below(seed, at + 1, 3);
            const uint64_t each = 1 + random_below(seed, at + 2, 4);
            const struct cut cut = draw_cut(seed, at + 3, data, each, zero == ZERO_STATES);
            struct setting s = {.config = configs[c], .microbatches = data * each};
            struct outcome alone, found, again;
            struct plan plan = {0};
            s.clip = 0.02 + 0.4 * random_unit(seed, at + 7);
            s.precision = random_below(seed, at + 8, 4) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
            s.optimizer = random_below(seed, at + 9, 2) ? OPTIMIZER_MOMENTUM : OPTIMIZER_ADAMW;
            s.every = random_below(seed, at + 10, 3);
            s.held_out = s.every > 0 ? 1 + random_below(seed, at + 11, 2) : 0;
            make_plan(&s, &plan);
            run_with_norms(&plan, (struct run_options){.poison = true}, &alone);
            s.cut = &cut;
            s.zero = zero;
            for (uint32_t way = 0; way < 2; way++) {
                s.prefetch = (uint32_t)random_below(seed, at + 12 + way, 2);
                s.recompute = random_below(seed, at + 14 + way, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
                s.blocking = random_below(seed, at + 16 + way, 4) == 0;
                make_plan(&s, &plan);
                run_with_norms(&plan, (struct run_options){.poison = true, .delay_seed = way == 0 ? 0 : seed + n, .record_spans = true},
                               way == 0 ? &found : &again);
            }
            assert_near(&alone, &found, &s, s.precision == PRECISION_FP32 ? 1e-5 : 1e-2);
            assert_same(&found, &again, &s);
            assert_memory_equal(found.norms, again.norms, sizeof found.norms);
        }
}

/* The tree's sums have the same bits for any number of replicas, stages and chunks. */
static void test_bits_of_trees(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("trees");
    static const struct cut one = {1, 1, 1, PIPELINE_GPIPE, 1};
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < TREES; n++) {
            const uint64_t draws = 1000 + 16 * (c * TREES + n);
            const uint32_t pipeline = 1 + (uint32_t)random_below(seed, draws, 3);
            const bool interleaved = pipeline == 2 && random_below(seed, draws + 1, 2);
            struct cut cut = {.pipeline = pipeline, .buckets = 1, .data = 1 + (uint32_t)random_below(seed, draws + 2, 4),
                              .chunks = interleaved || pipeline == 1 ? 1 + (uint32_t)random_below(seed, draws + 3, 3) : 1,
                              .schedule = interleaved ? PIPELINE_INTERLEAVED : PIPELINE_1F1B};
            if (interleaved && cut.chunks == 1) cut.chunks = 2;
            if (pipeline * cut.data > DEVICES) cut.data = 2;
            struct setting s = {.config = configs[c], .cut = &one, .tree = true, .every = 2, .held_out = 2};
            s.precision = random_below(seed, draws + 4, 3) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
            s.microbatches = cut.data == 1 ? 1 + random_below(seed, draws + 5, 8)
                                           : cut.data * (UINT64_C(1) << random_below(seed, draws + 5, 3));
            if (interleaved) s.microbatches = cut.data * 2 * (1 + random_below(seed, draws + 6, 2));
            if (random_below(seed, draws + 7, 2) && network_is_clipped(configs[c])) s.clip = 0.2;
            struct outcome wanted, found;
            struct plan plan = {0};
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true}, &wanted);
            s.cut = &cut;
            s.recompute = random_below(seed, draws + 8, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true, .delay_seed = seed + n, .record_spans = true}, &found);
            assert_same(&wanted, &found, &s);
        }
}

/* A job whose loss is not finite ends, or leaves out the step, as on one device; replicas agree. */
static void test_losses_that_are_not_finite(void **state)
{
    (void)state;
    static const enum run_on_nan ways[] = {RUN_NAN_STOP, RUN_NAN_STOP, RUN_NAN_SKIP};
    const struct cut *const those[] = {&cuts[3], &cuts[5], &replicated[2], &replicated[6]};
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        struct setting s = {.config = configs[0], .microbatches = 8, .diverges = true, .clip = w == 0 ? 0 : 1e20};
        struct outcome wanted, found;
        struct plan plan = {0};
        make_plan(&s, &plan);
        run(&plan, &(struct run_options){.poison = true, .on_nan = ways[w]}, &wanted);
        s.offload = false;
        if (isfinite(wanted.losses[wanted.minibatches - 1])) fail_msg("the job does not diverge");
        for (size_t i = 0; i < ARRAY_COUNT(those); i++) {
            s.cut = those[i];
            s.offload = w == 0;
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true, .delay_seed = 1 + i, .on_nan = ways[w]}, &found);
            assert_int_equal(found.minibatches, wanted.minibatches);
            if (isfinite(found.losses[found.minibatches - 1])) fail_msg("the replicas do not diverge");
            if (s.cut->data == 1) assert_true(found.fingerprint == wanted.fingerprint);
        }
    }
}

/* --- several processes ------------------------------------------------------------------------- */

enum { RANKS_MOST = 4, RANK_CASES = 4, RANK_PATIENCE_S = 60 };

/* Carries the plan out as one of several processes. Returns 0 unless the run failed, with the reason in *err. */
static int run_rank(const struct plan *plan, const struct ranks_options *options, uint64_t delay_seed,
                    struct outcome *out, struct error *err)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct ranks *ranks = NULL;
    enum status status = ranks_join(options, &ranks, err);
    const struct run_options of_run = {.ranks = ranks, .poison = true, .delay_seed = delay_seed, .stall_s = RANK_PATIENCE_S};
    if (status == STATUS_OK) status = run_plan(plan, &of_run, &result, &trace, err);
    if (status == STATUS_OK) {
        out->minibatches = result.jobs[0].minibatches;
        out->fingerprint = result.jobs[0].weights_fingerprint;
        memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
    }
    ranks_destroy(ranks);
    trace_release(&trace);
    run_result_release(&result);
    return (int)status;
}

/* Runs rank 0 here and the others in children. All must end well, and each must know all losses. */
static void run_ranks(const struct plan *plan, uint32_t count, uint64_t seed, struct outcome *found)
{
    char meet[64];
    struct error err = {0};
    pid_t children[RANKS_MOST] = {0};
    struct outcome *const theirs = mmap(NULL, RANKS_MOST * sizeof *theirs, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(theirs != MAP_FAILED);
    snprintf(meet, sizeof meet, "/tmp/test-pipeline-%ld.meet", (long)getpid());
    struct ranks_options options = {.count = count, .meet_file = meet, .patience_s = RANK_PATIENCE_S,
                                    .plan = plan_fingerprint(plan), .machine = "test"};
    for (uint32_t r = 1; r < count; r++) {
        children[r] = fork();
        assert_true(children[r] >= 0);
        if (children[r] > 0) continue;
        options.rank = r;
        const int code = run_rank(plan, &options, seed > 0 ? seed + r : 0, &theirs[r], &err);
        if (code) fprintf(stderr, "rank %u: %s\n", r, err.text);
        _exit(code);
    }
    *found = (struct outcome){.evaluation_count = 0};
    const int code = run_rank(plan, &options, seed, found, &err);
    for (uint32_t r = 1; r < count; r++) {
        int ended = 0;
        assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
        if (code == 0) assert_int_equal(ended, 0);
        if (code == 0) assert_memory_equal(theirs[r].losses, found->losses, sizeof found->losses);
    }
    munmap(theirs, RANKS_MOST * sizeof *theirs);
    if (code) fail_msg("%s", err.text);
}

static void test_bits_of_several_processes(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("processes");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < RANK_CASES; n++) {
            struct setting s = draw(seed, c * RANK_CASES + n, configs[c]);
            struct outcome wanted, found;
            struct plan plan = {0};
            if (n % 2 == 1) {
                s.cut = &replicated[random_below(seed, 1000 + n, ARRAY_COUNT(replicated))];
                s.microbatches = 8;
            }
            s.clip = 0;
            s.every = 0;
            s.offload = false;
            s.devices = s.cut->pipeline * s.cut->data;
            make_plan(&s, &plan);
            run(&plan, &(struct run_options){.poison = true}, &wanted);
            if (s.devices < 2) continue;
            make_plan(&s, &plan);
            const uint32_t most = s.devices < RANKS_MOST ? s.devices : RANKS_MOST;
            run_ranks(&plan, 2 + (uint32_t)random_below(seed, 2000 + n, most - 1), n % 3 == 0 ? 0 : seed + n, &found);
            assert_same(&wanted, &found, &s);
            plan_release(&plan);
        }
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static char top[] = "/tmp/test-pipeline-XXXXXX";

static char *folder(uint32_t number, char out[64])
{
    snprintf(out, 64, "%s/%u", top, number);
    return out;
}

static void assert_same_file(const char *a, const char *b, uint64_t step)
{
    char path[128], *text[2];
    size_t length[2];
    struct error err = {0};
    const char *const folders[] = {a, b};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/job-0/step-%010llu.safetensors", folders[i], (unsigned long long)step);
        if (file_read(path, 64 << 20, &text[i], &length[i], &err)) fail_msg("%s", err.text);
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(text[0], text[1], length[0]);
    free(text[0]);
    free(text[1]);
}

static void remove_top(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    assert_int_equal(system(command), 0);
}

static void copy_folder(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", to, from, to);
    assert_int_equal(system(command), 0);
}

/* Replicas of one microbatch each, whatever they split: checkpoints are equal, and each goes on under another cut and
 * level with the same bits, or spilled. */
static void check_shared_checkpoints(void)
{
    static const struct cut shared[] = {
        {1, 2, 1, PIPELINE_1F1B, 2}, {2, 1, 1, PIPELINE_GPIPE, 2}, {1, 1, 1, PIPELINE_GPIPE, 2}, {2, 1, 2, PIPELINE_1F1B, 2}};
    struct setting s = {.config = configs[0], .microbatches = 2, .precision = PRECISION_BF16_WEIGHTS};
    struct outcome wanted, found;
    struct plan plan = {0};
    char own[64], other[64];
    for (uint32_t zero = ZERO_NOTHING; zero <= ZERO_WEIGHTS; zero++) {
        const struct run_checkpoints checkpoints = {.folder = folder(200 + zero, own), .every_steps = 1, .keep = 100, .each = true};
        s.cut = &shared[zero];
        s.zero = zero;
        s.offload = zero > ZERO_NOTHING;
        make_plan(&s, &plan);
        run(&plan, &(struct run_options){.poison = true, .delay_seed = 7 + zero, .checkpoints = &checkpoints},
            zero == ZERO_NOTHING ? &wanted : &found);
        if (zero == ZERO_NOTHING) continue;
        assert_same(&wanted, &found, &s);
        for (uint64_t step = 1; step <= STEPS; step++) assert_same_file(folder(200, other), own, step);
    }
    for (uint32_t zero = ZERO_NOTHING; zero <= ZERO_WEIGHTS + 1; zero++) {
        const struct run_checkpoints checkpoints = {.folder = folder(99, own), .keep = 100};
        const bool spilled = zero > ZERO_WEIGHTS;
        copy_folder(folder(200 + (spilled ? ZERO_WEIGHTS : zero), other), own);
        s.zero = (zero + 1) % 4;
        s.cut = spilled ? NULL : &shared[s.zero];
        s.offload = !spilled && zero % 2 == 0;
        s.first = 1 + zero % 2;
        make_plan(&s, &plan);
        run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, &found);
        if (!spilled) assert_same(&wanted, &found, &s);
        else assert_true(fabs(found.losses[STEPS - 1] / wanted.losses[STEPS - 1] - 1) < 1e-2);
    }
}

/* Takes a checkpoint after every minibatch under each cut and by itself, and goes on from each under the next cut. */
static void test_checkpoints_do_not_show_the_cut(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(top));
    struct setting s = {.config = configs[0], .microbatches = 4};
    struct outcome wanted, found;
    struct plan plan = {0};
    char own[64], other[64];
    for (uint32_t i = 0; i <= ARRAY_COUNT(cuts); i++) {
        const struct run_checkpoints checkpoints = {
            .folder = folder(i, own), .every_steps = 1, .keep = 100, .each = true};
        s.cut = i == 0 ? NULL : &cuts[i - 1];
        make_plan(&s, &plan);
        run(&plan, &(struct run_options){.poison = true, .delay_seed = 5 + i, .checkpoints = &checkpoints},
            i == 0 ? &wanted : &found);
        if (i == 0) continue;
        assert_same(&wanted, &found, &s);
        for (uint64_t step = 1; step <= STEPS; step++) assert_same_file(folder(0, other), own, step);
    }
    for (uint32_t i = 0; i <= ARRAY_COUNT(cuts); i++) {
        const struct run_checkpoints checkpoints = {.folder = folder(99, own), .keep = 100};
        copy_folder(folder(i, other), own);
        s.cut = &cuts[i % ARRAY_COUNT(cuts)];
        s.first = 1 + i % (STEPS - 1);
        make_plan(&s, &plan);
        run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, &found);
        assert_same(&wanted, &found, &s);
    }
    for (uint32_t i = 0; i < 2; i++) { /* replicas: whole under one cut, then from the middle under another */
        const struct run_checkpoints checkpoints = {.folder = folder(98, own), .every_steps = 1, .keep = 100, .each = true};
        s.cut = &replicated[2 * i];
        s.first = i;
        make_plan(&s, &plan);
        run(&plan, &(struct run_options){.poison = true, .checkpoints = &checkpoints}, i == 0 ? &wanted : &found);
    }
    assert_same(&wanted, &found, &s);
    check_shared_checkpoints();
    remove_top();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_one_device),
        cmocka_unit_test(test_bits_of_equal_replicas),
        cmocka_unit_test(test_bits_of_shares),
        cmocka_unit_test(test_clipped_shares),
        cmocka_unit_test(test_bits_of_trees),
        cmocka_unit_test(test_losses_that_are_not_finite),
        cmocka_unit_test(test_checkpoints_do_not_show_the_cut),
        cmocka_unit_test(test_bits_of_several_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
