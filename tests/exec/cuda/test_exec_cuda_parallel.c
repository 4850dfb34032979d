/*
 * Parallel jobs on the CUDA back end: pipelines have the bits of one GPU, replicas of equal number each other's, and
 * all are near the host's. So are jobs that clip, asynchronous schedules, tensor groups, also with cut rows, unequal
 * replicas, sums as a tree, best weights, encoded boundaries and gradients, offloaded states, also in storage or
 * updated late, and slices of tokens. Collectives of replicas go through NCCL; through host memory they have the same
 * bits, unless NCCL adds up in its own order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/plan_runnable.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_cuda.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_memory.h"
#include "tests/support/support_seed.h"

#ifndef SPILLWAY_CUDA

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(support_cuda_left_out)};
    return cmocka_run_group_tests_name("CUDA, parallel jobs", tests, NULL, NULL);
}

#else

#ifdef SPILLWAY_EMULATED
#include "tests/emulator/emulator_faults.h"
#include "tests/support/exec/support_nccl.h"
enum { FAMILIES = 1, OTHERS = 1, MORE = 1 }; /* drawn for each run: a case takes seconds */
#else
#include "exec/nccl/nccl_library.h"
#if defined __has_include
#if __has_include(<nccl.h>)
#include <nccl.h>
static_assert(NCCL_SUCCESS == (int)ncclSuccess && NCCL_IN_PROGRESS == (int)ncclInProgress, "results");
static_assert(NCCL_INT8 == (int)ncclInt8 && NCCL_FLOAT32 == (int)ncclFloat32 && NCCL_FLOAT64 == (int)ncclFloat64,
              "types");
static_assert(NCCL_SUM == (int)ncclSum, "operations");
#endif
#endif
enum { FAMILIES = 4, OTHERS = 2, MORE = 4 };
#endif

/* Lets runs find NCCL or not. */
static void choose_library(bool found)
{
#ifdef SPILLWAY_EMULATED
    setenv("SPILLWAY_NCCL", found ? EMULATED_NCCL : "off", 1);
    nccl_break(NCCL_BREAK_NOTHING, 0);
    emulator_set_faults((struct emulator_faults){.device = 0}); /* counts copies from now on */
#else
    if (found) unsetenv("SPILLWAY_NCCL");
    else setenv("SPILLWAY_NCCL", "off", 1);
#endif
}

enum { STEPS = 2, DEVICES = 4 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 4, \"vocab_size\": 67}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 4, \"vocab_size\": 67}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 4, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* Stages, chunks on each, schedule. */
static const struct cut {
    uint32_t pipeline, chunks, schedule;
} cuts[] = {
    {2, 1, PIPELINE_GPIPE}, {3, 1, PIPELINE_1F1B}, {2, 2, PIPELINE_INTERLEAVED}, {1, 3, PIPELINE_1F1B},
    {2, 1, PIPELINE_ZB_H1}, {2, 2, PIPELINE_ZB_V}, {4, 1, PIPELINE_ZB_H2}, {4, 1, PIPELINE_1F1B},
};

struct setting {
    const char *config, *backend;
    const struct cut *cut; /* NULL: one device, spilled */
    uint32_t data, zero, recompute, precision, moments;
    uint64_t microbatches, every, delay_seed;
    double clip;       /* 0: none */
    uint32_t tensor;   /* devices of a tensor group; 0: one */
    uint32_t replicas[2]; /* of each of two stages, unequal; 0: `data` */
    uint32_t offload;
    bool tree, best;
    bool sequence, delayed, stored; /* rows are cut; updates, and states, of offloaded jobs */
    double boundaries, gradients; /* ratios of codes; 0: none */
    bool staged, nccl_sums; /* without NCCL; sums in its order */
};

struct outcome {
    double losses[STEPS], norms[STEPS], evaluated;
    uint64_t fingerprint, kept;
};

/* Reads the norms of a job that clips from a log, which it removes. */
static void read_norms(const char *path, double norms[STEPS])
{
    char *line = NULL;
    size_t room = 0;
    int count = 0;
    FILE *const log = fopen(path, "r");
    assert_non_null(log);
    while (getline(&line, &room, log) > 0) {
        const char *const norm = strstr(line, "\"norm\":");
        if (norm && count < STEPS) norms[count++] = strtod(norm + strlen("\"norm\":"), NULL);
    }
    assert_int_equal(count, STEPS);
    free(line);
    fclose(log);
    assert_int_equal(unlink(path), 0);
}

static struct parallel parallel_of(const struct setting *s)
{
    struct parallel p = {.tensor = s->tensor > 0 ? s->tensor : 1, .prefetch = 1, .pipeline = s->cut->pipeline,
                         .data = s->data,
                         .zero = s->zero, .chunks = s->cut->chunks, .buckets = 1, .schedule = s->cut->schedule,
                         .recompute = s->recompute, .tree = s->tree, .offload = s->offload,
                         .sequence = s->sequence, .delayed = s->delayed, .storage = s->stored};
    if (s->cut->schedule == PIPELINE_TERAPIPE) {
        p.slices = 2;
        p.slice_tokens[0] = 11;
        p.slice_tokens[1] = 5;
    }
    for (uint32_t i = 0; s->replicas[0] > 0 && i < ARRAY_COUNT(s->replicas); i++)
        p.replicas[p.replicated++] = s->replicas[i];
    return p;
}

/* The run says who carries out collectives, and that is true. Of jobs with groups, clipping and the like some are the
 * host's. */
static void assert_library(const struct setting *s, const struct plan *plan, const char *libraries)
{
    bool collectives = false, sums = false;
    for (uint32_t o = 0; o < plan->op_count; o++) collectives = collectives || plan->ops[o].kind == OP_COLLECTIVE;
    for (uint32_t o = 0; o < plan->op_count; o++)
        sums = sums || (plan->ops[o].kind == OP_COLLECTIVE && plan->ops[o].collective != COLLECTIVE_ALL_GATHER);
    if (strcmp(s->backend, "cuda") != 0) return;
    const bool by_nccl = collectives && !s->staged && (s->data == 2 || s->nccl_sums || s->zero > 0 || s->data == 1);
    const bool by_host = collectives && (s->staged || (sums && s->data > 2 && !s->nccl_sums));
    const bool plain = s->tensor <= 1 && !(s->clip > 0) && s->replicas[0] == 0 && !s->tree &&
                       s->offload == OFFLOAD_NOTHING && s->gradients <= 0;
    if (plain && ((strstr(libraries, "collectives by NCCL ") != NULL) != by_nccl ||
                  (strstr(libraries, "the host") != NULL) != by_host))
        fail_msg("'%s' of %u replicas, zero %u", libraries, s->data, s->zero);
#ifdef SPILLWAY_EMULATED
    uint64_t calls = 0;
    for (int kind = NCCL_ALL_REDUCE; kind <= NCCL_BROADCAST; kind++) calls += nccl_calls(kind);
    assert_string_equal(nccl_finding(), "");
    assert_int_equal(nccl_open(), 0);
    assert_true(!plain || (calls > 0) == by_nccl);
    assert_true(!plain || !s->cut || emulator_peer_copies().direct >= STEPS * s->microbatches * (s->cut->pipeline - 1));
    assert_int_equal(emulator_peer_copies().through_driver, 0);
#endif
}

static struct compression code_of(double ratio)
{
    return (struct compression){.ratio = ratio, .encode_bytes_per_s = 1e11, .decode_bytes_per_s = 1e11};
}

static enum status make_plan(const struct setting *s, struct plan *plan, struct error *err)
{
    struct hardware hardware;
    struct job_set jobs;
    test_hardware(&hardware, s->cut ? DEVICES : 1, 1 << 24, 1e9);
    hardware.backend = s->backend;
    hardware.threads = strcmp(s->backend, "host") == 0;
    hardware.host_bytes.value = 1e9;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    hardware.storage.capacity_bytes.value = 1e9;
    hardware.storage.read_rate.value = hardware.storage.write_rate.value = 1e9;
    test_network_jobs(&jobs, 1, s->config, STEPS);
    struct job *const job = &jobs.jobs[0];
    job->microbatch = 1;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->optimizer.learning_rate = 0.01;
    job->optimizer.moments = s->moments;
    job->optimizer.clip = s->clip;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = 1};
    job->keep_best = s->best;
    job->tree = s->tree && !s->cut; /* else as the cut says */
    if (s->cut) job->parallel = parallel_of(s);
    job->compression[COMPRESSION_BOUNDARIES] = code_of(s->boundaries);
    job->compression[COMPRESSION_GRADIENTS] = code_of(s->gradients);
    const struct planner_options options = {.policy = s->cut ? NULL : "spill-sequential", .shards = 3,
                                            .activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE};
    enum status status = s->cut ? parallel_check(job, err) : STATUS_OK;
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, err);
    return status ? status : plan_check(plan, err);
}

static void plan_and_run(const struct setting *s, struct outcome *out)
{
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    choose_library(!s->staged);
    enum status status = make_plan(s, &plan, &err);
    char log[] = "/tmp/test-cuda-parallel-XXXXXX";
    if (s->clip > 0) close(mkstemp(log));
    const struct run_options how = {.poison = true, .delay_seed = s->delay_seed, .record_spans = s->cut,
                                    .log_path = s->clip > 0 ? log : NULL, .nccl_sums = s->nccl_sums,
                                    .storage = {.folder = BINARY_DIR}};
    if (!status) status = run_plan(&plan, &how, &result, &trace, &err);
    if (!status && s->cut) status = trace_check(&trace, &err);
    if (status) fail_msg("%s", err.text);
    assert_memory_as_planned(&plan, &result);
    assert_library(s, &plan, result.libraries);
    assert_int_equal(result.jobs[0].minibatches, STEPS);
    *out = (struct outcome){.kept = result.jobs[0].kept_fingerprint};
    memcpy(out->losses, result.jobs[0].losses, sizeof out->losses);
    if (s->clip > 0) read_norms(log, out->norms);
    out->evaluated = s->every > 0 ? result.jobs[0].evaluations[0].loss : 0;
    out->fingerprint = result.jobs[0].weights_fingerprint;
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

static void describe(const struct setting *s, char out[300])
{
    char how[PARALLEL_TEXT_BYTES];
    const struct parallel p = parallel_of(s);
    snprintf(out, 300, "%.22s..., %s, %s, %s, recompute %s, precision %u, %u microbatches, clip %g", s->config,
             s->backend,
             parallel_text(&p, how), pipeline_schedule_names[s->cut->schedule], recompute_names[s->recompute],
             s->precision, (unsigned)s->microbatches, s->clip);
}

static void assert_same(const struct outcome *wanted, const struct outcome *found, const struct setting *s)
{
    char what[300];
    describe(s, what);
    if (memcmp(wanted, found, sizeof *wanted) != 0)
        fail_msg("%s: loss %.17g and weights %llx, not %.17g and %llx", what, found->losses[STEPS - 1],
                 (unsigned long long)found->fingerprint, wanted->losses[STEPS - 1],
                 (unsigned long long)wanted->fingerprint);
}

static void assert_near(const struct outcome *wanted, const struct outcome *found, const struct setting *s)
{
    char what[300];
    const bool rounds = s->precision != PRECISION_FP32 || s->boundaries > 0 || s->gradients > 0;
    describe(s, what);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= (rounds ? 1e-2 : 1e-5)))
            fail_msg("%s: loss %d is %.9g, not %.9g", what, i, found->losses[i], wanted->losses[i]);
    for (int i = 0; i < STEPS && s->clip > 0; i++)
        if (!(fabs(found->norms[i] / wanted->norms[i] - 1) <= (s->precision == PRECISION_FP32 ? 1e-4 : 5e-2)))
            fail_msg("%s: norm %d is %.9g, not %.9g", what, i, found->norms[i], wanted->norms[i]);
}

/* Skips the test without enough GPUs. */
static void need_gpus(void)
{
    uint32_t count = 0;
    struct error err = {0};
    support_need_gpu();
    if (backend_find("cuda")->count(&count, &err) == STATUS_OK && count >= DEVICES) return;
    print_message("skipped: %u GPUs, not %d\n", count, DEVICES);
    skip();
}

static struct setting draw(uint64_t seed, uint64_t n, const char *config)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    const bool rounded = random_below(seed, n + 1, 3) == 0;
    return (struct setting){.config = config, .backend = "cuda", .data = 1,
                            .cut = &cuts[random_below(seed, n, ARRAY_COUNT(cuts))],
                            .recompute = recompute[random_below(seed, n + 2, 3)],
                            .precision = rounded ? PRECISION_BF16_WEIGHTS : PRECISION_FP32,
                            .moments = random_below(seed, n + 3, 3) == 0 ? PRECISION_BF16 : PRECISION_FP32,
                            .microbatches = 4, .every = random_below(seed, n + 4, 2), .delay_seed = seed + n};
}

/* Returns another family for each n below their number. */
static const char *config_of(uint64_t seed, uint64_t n)
{
    return configs[(random_below(seed, 9999, ARRAY_COUNT(configs)) + n) % ARRAY_COUNT(configs)];
}

static void test_pipelines(void **state)
{
    (void)state;
    need_gpus();
    const uint64_t seed = support_seed("pipelines on GPUs");
    for (uint64_t n = 0; n < FAMILIES; n++) {
        const struct setting s = draw(seed, 10 * n, config_of(seed, n));
        struct setting alone = s, host = s;
        struct outcome wanted, found, near;
        alone.cut = NULL;
        alone.delay_seed = 0;
        plan_and_run(&alone, &wanted);
        plan_and_run(&s, &found);
        assert_same(&wanted, &found, &s);
        host.backend = "host";
        plan_and_run(&host, &near);
        assert_near(&near, &found, &s);
    }
}

/* Runs the setting on the host, too, and on GPUs under another schedule, if there is one, with the same bits. */
static void check_setting(struct setting s, const struct cut *other)
{
    struct outcome found, near, again;
    plan_and_run(&s, &found);
    struct setting host = s;
    host.backend = "host";
    plan_and_run(&host, &near);
    assert_near(&near, &found, &s);
    s.delay_seed++;
    if (other) s.cut = other;
    plan_and_run(&s, &again);
    assert_same(&found, &again, &s);
}

/* A pipeline that clips has the bits of the same job on one device, whatever the family. */
static void test_clipping(void **state)
{
    (void)state;
    static const struct cut alone = {1, 1, PIPELINE_1F1B};
    need_gpus();
    const uint64_t seed = support_seed("clipping on GPUs");
    for (uint64_t n = 0; n < MORE; n++) {
        struct setting s = draw(seed, 3000 + 10 * n, config_of(seed, n));
        s.clip = 0.05 + 0.5 * random_unit(seed, 3500 + n);
        check_setting(s, &alone);
    }
}

/* Replicas' shares of the states cut tensors, so the order of the squares is theirs. */
static void test_clipped_replicas(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B}, other = {2, 1, PIPELINE_GPIPE};
    need_gpus();
    const uint64_t seed = support_seed("clipped replicas on GPUs");
    for (uint64_t n = 0; n < OTHERS; n++) {
        struct setting s = draw(seed, 3600 + 10 * n, config_of(seed, n));
        s.clip = 0.05 + 0.5 * random_unit(seed, 3700 + n);
        s.cut = &two;
        s.data = 2;
        s.zero = (uint32_t)random_below(seed, 3800 + n, 4);
        check_setting(s, &other);
    }
}

static void test_tensor_groups(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B}, other = {2, 1, PIPELINE_GPIPE}, one = {1, 2, PIPELINE_1F1B};
    need_gpus();
    const uint64_t seed = support_seed("tensor groups on GPUs");
    for (uint64_t n = 0; n < MORE; n++) {
        struct setting s = draw(seed, 4000 + 10 * n, config_of(seed, n));
        const bool replicas = random_below(seed, 4100 + n, 2);
        s.tensor = 2;
        s.cut = replicas ? &one : &two;
        s.data = replicas ? 2 : 1;
        s.zero = replicas ? (uint32_t)random_below(seed, 4200 + n, 4) : 0;
        if (random_below(seed, 4300 + n, 2)) s.clip = 0.05 + 0.5 * random_unit(seed, 4400 + n);
        check_setting(s, replicas ? NULL : &other);
    }
}

/* A tree's sums are the same spilled and for any number of replicas. */
static void test_trees(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B};
    need_gpus();
    const uint64_t seed = support_seed("trees on GPUs");
    for (uint64_t n = 0; n < OTHERS; n++) {
        struct setting s = draw(seed, 4500 + 10 * n, config_of(seed, n));
        struct outcome wanted, found;
        s.tree = true;
        s.cut = NULL;
        plan_and_run(&s, &wanted);
        s.cut = &two;
        s.data = 2;
        s.delay_seed++;
        plan_and_run(&s, &found);
        assert_same(&wanted, &found, &s);
        check_setting(s, NULL);
    }
}

static void test_unequal_replicas(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B}, other = {2, 1, PIPELINE_GPIPE};
    need_gpus();
    const uint64_t seed = support_seed("unequal replicas on GPUs");
    for (uint64_t n = 0; n < OTHERS; n++) {
        struct setting s = draw(seed, 4600 + 10 * n, config_of(seed, n));
        s.cut = &two;
        s.replicas[0] = 1 + (uint32_t)random_below(seed, 4700 + n, 2);
        s.replicas[1] = 3 - s.replicas[0];
        if (random_below(seed, 4800 + n, 2)) s.clip = 0.05 + 0.5 * random_unit(seed, 4900 + n);
        check_setting(s, &other);
    }
}

/* The host's processor steps; weights stay on the GPUs, or come up for each pass. */
static void test_offloaded_states(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B}, other = {2, 1, PIPELINE_GPIPE};
    need_gpus();
    const uint64_t seed = support_seed("offloaded states on GPUs");
    for (uint64_t n = 0; n < OTHERS; n++) {
        struct setting s = draw(seed, 5500 + 10 * n, config_of(seed, n));
        s.cut = &two;
        s.data = 2;
        s.offload = random_below(seed, 6500 + n, 2) ? OFFLOAD_STATES : OFFLOAD_WEIGHTS;
        s.zero = s.offload == OFFLOAD_STATES ? (uint32_t)random_below(seed, 5600 + n, 4)
                 : random_below(seed, 5600 + n, 2) ? ZERO_WEIGHTS : ZERO_NOTHING;
        /* hosts add up one gradient of each */
        if (s.offload == OFFLOAD_WEIGHTS && s.zero == ZERO_NOTHING) s.microbatches = s.data;
        if (random_below(seed, 5700 + n, 2)) s.clip = 0.05 + 0.5 * random_unit(seed, 5800 + n);
        s.stored = random_below(seed, 6600 + n, 2);
        s.delayed = s.offload == OFFLOAD_STATES && random_below(seed, 6700 + n, 2);
        check_setting(s, &other);
    }
}

/* Stages update by themselves, with a flush or without; those that share a table or clip wait for the first. */
static void test_asynchronous(void **state)
{
    (void)state;
    static const struct cut cuts_of[] = {{2, 1, PIPELINE_PIPEDREAM}, {2, 1, PIPELINE_2BW}};
    need_gpus();
    const uint64_t seed = support_seed("asynchronous on GPUs");
    for (uint64_t n = 0; n < MORE; n++) {
        struct setting s = draw(seed, 7600 + 10 * n, config_of(seed, n));
        s.cut = &cuts_of[random_below(seed, 7700 + n, 2)];
        s.microbatches = s.cut->schedule == PIPELINE_PIPEDREAM ? 1 : 2;
        if (random_below(seed, 7800 + n, 2)) s.clip = 0.05 + 0.5 * random_unit(seed, 7900 + n);
        check_setting(s, NULL);
    }
}

/* Boundaries and gradients cross as codes. */
static void test_codes(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B}, other = {2, 1, PIPELINE_GPIPE};
    static const double ratios[] = {0, 2, 3.75};
    need_gpus();
    const uint64_t seed = support_seed("codes on GPUs");
    for (uint64_t n = 0; n < MORE; n++) {
        struct setting s = draw(seed, 6800 + 10 * n, config_of(seed, n));
        s.cut = &two;
        s.data = 2;
        s.zero = (uint32_t)random_below(seed, 6900 + n, 2);
        s.boundaries = ratios[random_below(seed, 7000 + n, 3)];
        s.gradients = ratios[s.boundaries > 0 ? random_below(seed, 7100 + n, 3) : 1 + random_below(seed, 7100 + n, 2)];
        if (s.zero > 0 && s.gradients > 2) s.gradients = 2; /* shares begin anywhere in a block of the other code */
        check_setting(s, &other);
    }
}

/* Devices of a tensor group have parts of the rows outside products. */
static void test_cut_rows(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B}, other = {2, 1, PIPELINE_GPIPE};
    need_gpus();
    const uint64_t seed = support_seed("cut rows on GPUs");
    for (uint64_t n = 0; n < OTHERS; n++) {
        struct setting s = draw(seed, 7200 + 10 * n, configs[random_below(seed, 7300 + n, 3)]);
        s.tensor = 2;
        s.sequence = true;
        s.cut = &two;
        if (random_below(seed, 7400 + n, 2)) s.clip = 0.05 + 0.5 * random_unit(seed, 7500 + n);
        check_setting(s, &other);
    }
}

/* After each minibatch the weights are evaluated; the best are those of the last one, or of the first. */
static void test_best_weights(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_1F1B};
    need_gpus();
    const uint64_t seed = support_seed("best weights on GPUs");
    for (uint64_t n = 0; n < OTHERS; n++) {
        struct setting s = draw(seed, 5900 + 10 * n, config_of(seed, n));
        struct outcome found;
        s.cut = &two;
        s.every = STEPS; /* one evaluation, of the last weights */
        s.best = true;
        plan_and_run(&s, &found);
        assert_true(found.kept != 0 && found.kept == found.fingerprint);
        check_setting(s, NULL);
    }
}

/* Slices have the bits of one stage that passes over them. */
static void test_slices(void **state)
{
    (void)state;
    static const struct cut two = {2, 1, PIPELINE_TERAPIPE}, alone = {1, 1, PIPELINE_TERAPIPE};
    need_gpus();
    const uint64_t seed = support_seed("slices of tokens on GPUs");
    for (uint64_t n = 0; n < OTHERS; n++) {
        struct setting s = draw(seed, 6100 + 10 * n, configs[random_below(seed, 6200 + n, 2)]);
        s.cut = &two;
        s.every = 0;
        if (random_below(seed, 6300 + n, 2)) s.clip = 0.05 + 0.5 * random_unit(seed, 6400 + n);
        check_setting(s, &alone);
    }
}

/* Plans two parallel jobs for GPUs that are not asked for. */
static void plan_two(struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    enum status status = STATUS_OK;
    test_hardware(&hardware, DEVICES, 1 << 24, 1e9);
    hardware.backend = "cuda";
    hardware.host_bytes.value = 1e9;
    test_network_jobs(&jobs, 2, configs[0], STEPS);
    for (uint32_t j = 0; j < jobs.count && !status; j++) {
        jobs.jobs[j].microbatch = 1;
        jobs.jobs[j].microbatches = 4;
        jobs.jobs[j].parallel = (struct parallel){.tensor = 1, .prefetch = 1, .pipeline = 2, .data = 1, .chunks = 1,
                                                  .buckets = 1,
                                                  .schedule = PIPELINE_1F1B};
        status = parallel_check(&jobs.jobs[j], &err);
    }
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE};
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (status) fail_msg("%s", err.text);
}

static void assert_refused(const struct plan *plan, const char *what)
{
    struct error err = {0};
    char text[200];
    snprintf(text, sizeof text, "is parallel with %s on devices of backend 'cuda', which can be simulated, not run "
                                "(expected "
             "'host')", what);
    assert_int_equal(plan_runnable(plan, &err), STATUS_BAD_INPUT);
    if (!strstr(err.text, text)) fail_msg("'%s', not '%s'", err.text, text);
}

/* What is only simulated is refused in one line. */
static void test_refusals(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct error err = {0};
    plan_two(&plan);
    assert_int_equal(plan_runnable(&plan, &err), STATUS_OK);
    plan.jobs.jobs[1].parallel.tensor_pieces = 2;
    assert_refused(&plan, "products in pieces ('tensor_pieces')");
    plan.jobs.jobs[1].parallel.tensor_pieces = 0;
    plan_release(&plan);
}

/* Levels 0 and 1 of shares, and of 2 and 3, have the same bits. */
static void test_replicas(void **state)
{
    (void)state;
    static const struct cut whole = {1, 1, PIPELINE_1F1B}, others[] = {{1, 3, PIPELINE_1F1B}, {2, 1, PIPELINE_1F1B},
                                                                       {2, 1, PIPELINE_GPIPE}};
    need_gpus();
    const uint64_t seed = support_seed("replicas on GPUs");
    for (uint64_t n = 0; n < FAMILIES; n++) {
        struct setting s = draw(seed, 2000 + 10 * n, config_of(seed, n));
        struct outcome wanted, found, near;
        const uint32_t zero = (uint32_t)random_below(seed, 5000 + n, 4);
        s.cut = &whole;
        s.data = 2;
        s.zero = zero < ZERO_GRADIENTS ? ZERO_NOTHING : ZERO_GRADIENTS;
        s.staged = true;
        plan_and_run(&s, &wanted);
        s.staged = false;
        s.backend = "host";
        plan_and_run(&s, &near);
        assert_near(&near, &wanted, &s);
        s.backend = "cuda";
        s.cut = &others[random_below(seed, 6000 + n, ARRAY_COUNT(others))];
        s.zero = zero;
        s.delay_seed++;
        plan_and_run(&s, &found);
        assert_same(&wanted, &found, &s);
    }
}

/* Sums of four replicas have a stated order, unless NCCL adds them up: equal runs have equal bits then, too. */
static void test_orders(void **state)
{
    (void)state;
    static const struct cut whole = {1, 2, PIPELINE_1F1B};
    need_gpus();
    const uint64_t seed = support_seed("orders of sums on GPUs");
    struct setting s = draw(seed, 8000, config_of(seed, 0));
    struct outcome wanted, found, near, again;
    s.cut = &whole;
    s.data = 4;
    s.zero = (uint32_t)random_below(seed, 8100, 4);
    s.staged = true;
    plan_and_run(&s, &wanted);
    s.staged = false;
    s.delay_seed++;
    plan_and_run(&s, &found);
    assert_same(&wanted, &found, &s);
    s.nccl_sums = true;
    plan_and_run(&s, &near);
    assert_near(&wanted, &near, &s);
    s.delay_seed++;
    plan_and_run(&s, &again);
    assert_same(&near, &again, &s);
}

#ifdef SPILLWAY_EMULATED

static void make_sharing_plan(struct plan *plan)
{
    static const struct cut whole = {1, 2, PIPELINE_1F1B};
    const struct setting s = {.config = configs[0], .backend = "cuda", .cut = &whole, .data = 2, .zero = ZERO_GRADIENTS,
                              .microbatches = 4};
    struct error err = {0};
    choose_library(true);
    if (make_plan(&s, plan, &err)) fail_msg("%s", err.text);
}

/* The failure is one line, and no communicator is left. */
static void assert_failure(const struct error *err, const char *says)
{
    if (!strstr(err->text, says)) fail_msg("'%s' does not say '%s'", err->text, says);
    assert_null(strchr(err->text, '\n'));
    assert_string_equal(nccl_finding(), "");
    assert_int_equal(nccl_open(), 0);
}

static enum status run_broken(const struct plan *plan, bool keep_going, struct error *err)
{
    *err = (struct error){0};
    struct run_result result = {0};
    struct trace trace = {0};
    const enum status status = run_plan(plan, &(struct run_options){.poison = true, .keep_going = keep_going}, &result,
                                        &trace, err);
    if (!status) assert_non_null(result.jobs[0].failure);
    if (!status) snprintf(err->text, sizeof err->text, "%s", result.jobs[0].failure);
    run_result_release(&result);
    trace_release(&trace);
    return status;
}

/* A version that is too old is as good as none. */
static void test_old_library(void **state)
{
    (void)state;
    static const struct cut whole = {1, 1, PIPELINE_1F1B};
    const struct setting s = {.config = configs[0], .backend = "cuda", .cut = &whole, .data = 2, .microbatches = 4};
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    if (make_plan(&s, &plan, &err)) fail_msg("%s", err.text);
    choose_library(true);
    nccl_break(NCCL_BREAK_VERSION, 0);
    if (run_plan(&plan, &(struct run_options){.poison = true}, &result, &trace, &err)) fail_msg("%s", err.text);
    assert_non_null(strstr(result.libraries, "collectives by the host (NCCL 2.8.3 is not of 2.13.4 to 2.99.99)"));
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

/* A library that cannot be used ends the run before its first operation. */
static void test_failures_at_first(void **state)
{
    (void)state;
    static const struct failure {
        int what;
        uint64_t after;
        const char *says;
    } cases[] = {
        {NCCL_BREAK_INIT, 0, "NCCL 2.28.9 between 2 devices, the first of them 0: no communicator: unhandled cuda "
                             "error"},
        {NCCL_BREAK_SUM, 0, "NCCL 2.28.9 between 2 devices, the first of them 0: all-reduce: device 0 has 10 at "
                            "element 0, not 9"},
        {NCCL_BREAK_REMOTE, 0, "all-reduce: remote process exited or there was a network error: it was told to fail"},
        {NCCL_BREAK_GROUP, 3, "all-gather: unhandled system error"},
    };
    struct plan plan = {0};
    struct error err = {0};
    make_sharing_plan(&plan);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        nccl_break(cases[i].what, cases[i].after);
        assert_int_equal(run_broken(&plan, false, &err), STATUS_DEVICE);
        assert_failure(&err, cases[i].says);
    }
    plan_release(&plan);
}

/* A failure at a collective, or a lost GPU, ends the run, or the job with `keep_going`. */
static void test_failures_later(void **state)
{
    (void)state;
    static const char remote[] = "was lost: NCCL 2.28.9: remote process exited or there was a network error: it was "
                                 "told to fail";
    static const struct failure {
        int what;
        uint64_t after;
        const char *says;
    } cases[] = {
        {NCCL_BREAK_REMOTE, 7, remote},
        {NCCL_BREAK_REMOTE, 9, remote},
        {NCCL_BREAK_GROUP, 8, "was lost: NCCL 2.28.9: unhandled system error"},
        {NCCL_BREAK_NOTHING, 400, "device 1 was lost: "},
        {NCCL_BREAK_NOTHING, 900, "device 1 was lost: "},
    };
    struct plan plan = {0};
    struct error err = {0};
    make_sharing_plan(&plan);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        for (uint64_t keep_going = 0; keep_going < 2; keep_going++) {
            const bool loses = cases[i].what == NCCL_BREAK_NOTHING;
            nccl_break(cases[i].what, cases[i].after);
            emulator_set_faults((struct emulator_faults){.loses = loses, .device = 1,
                                                         .after = cases[i].after + 37 * keep_going});
            assert_int_equal(run_broken(&plan, keep_going, &err), keep_going ? STATUS_OK : STATUS_DEVICE);
            assert_failure(&err, cases[i].says);
        }
    emulator_set_faults((struct emulator_faults){.device = 0});
    plan_release(&plan);
}

#endif

int main(void)
{
#ifdef SPILLWAY_EMULATED
    emulator_set_devices(DEVICES);
    if (!nccl_open_library()) return 1;
#endif
    const struct CMUnitTest tests[] = {
#ifdef SPILLWAY_EMULATED
        cmocka_unit_test(test_old_library), cmocka_unit_test(test_failures_at_first),
            cmocka_unit_test(test_failures_later),
#endif
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_replicas),     cmocka_unit_test(test_pipelines),         cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_clipped_replicas), cmocka_unit_test(test_tensor_groups), cmocka_unit_test(test_trees),
        cmocka_unit_test(test_unequal_replicas), cmocka_unit_test(test_offloaded_states),
        cmocka_unit_test(test_best_weights),     cmocka_unit_test(test_codes),         cmocka_unit_test(test_cut_rows),
        cmocka_unit_test(test_asynchronous),
        cmocka_unit_test(test_slices),           cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("CUDA, parallel jobs", tests, NULL, NULL);
}

#endif
