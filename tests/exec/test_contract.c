/* label: long, all rounds: slow
 *
 * The contract of training: a plan changes the time and the place of a computation, never its result.
 *
 * The same jobs, planned by each policy for devices of several sizes and numbers, with and without
 * double buffering, with activations or the inputs of blocks kept and spilled, or recomputed, or kept
 * only by some shards, with
 * states in host memory, some of them on storage or all, or jobs in files until their turn, carried out with random
 * pauses on every stream and with every released range filled with NaN: the losses of each step and of each
 * evaluation, the final weights and the weights of the best evaluation have the same bits as when each job is the
 * only one on a device that holds all of it, whether two devices copy to each other directly or through the host.
 * The same for each family of networks that can be trained, and for jobs whose weights, moments or all numbers are in
 * bf16, next to each other, of a width that leaves rows unaligned; for jobs with frozen layers, embeddings and
 * tensors, and for adapters of frozen networks; and for jobs that clip, which can only be spilled: in a run of its
 * own, each is one shard and its embedding. A job that clips at a norm no gradient has ends with the same bits as a job
 * that does not clip at all.
 *
 * A part of the grid of policies, devices and sizes is drawn; all rounds take the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "models/network/network_ignored.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_memory.h"
#include "tests/support/support_rows.h"
#include "tests/support/support_seed.h"

#define NEVER 1e6 /* clips, but no gradient is that large */

enum { FP32 = PRECISION_FP32, BF16 = PRECISION_BF16, ROUNDED = PRECISION_BF16_WEIGHTS };
enum { JOBS = 3, STEPS = 5, EVERY = 2, EVALUATIONS = 3 };

static const uint64_t lowest_layers[][2] = {{0, 2}}, middle_layers[][2] = {{2, 2}}, last_layers[][2] = {{3, 4}};
static const char *const some_tensors[] = {"*.ln_1.*", "h.1.mlp.*", "h.0.attn.c_proj.weight"};
static const char *const the_embedding[] = {"wte.*", "wpe.*"}, *const gpt2_targets[] = {"c_attn", "c_fc"};
static const char *const mixtral_targets[] = {"q_proj", "v_proj"};
static const char *const last_targets[] = {"layers.2.self_attn.q_proj", "layers.1.mlp.up_proj"};

#define LAYERS(ranges) {.layers = ranges, .layer_count = ARRAY_COUNT(ranges)}
#define TENSORS(patterns) {.tensors = patterns, .tensor_count = ARRAY_COUNT(patterns)}
#define TARGETS(names) .targets = names, .target_count = ARRAY_COUNT(names)

/* Three blocks of width 32 each: enough parameters that the same devices are too small. */
static const struct subject {
    const char *config;
    double first_loss; /* of guessing */
    double clip[JOBS]; /* 0: does not */
    uint32_t weights[JOBS], moments[JOBS]; /* enum precision */
    struct network_freeze freeze[JOBS];
    struct job_adapter adapter[JOBS];
    bool rows; /* some tokens of rows are learned, by job 1 of packed ones */
} subjects[] = {
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, \"n_head\": 4, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0}, {0}, {0}, {{0}}, {{0}}, true},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 88, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131, \"tie_word_embeddings\": true}",
     4.875, {0}, {0}, {0}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0}, {0}, {0}, {{0}}, {{0}}, true},
    {"{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"intermediate_size\": 101, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0}, {0}, {0}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"vit\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"head_dim\": 12, \"intermediate_size\": 133, "
     "\"image_size\": 16, \"patch_size\": 4, \"qkv_bias\": false, \"num_labels\": 10}",
     2.303, {0}, {0}, {0}, {{0}}, {{0}}, false},
    /* clips in every step, in none, and in some; and together with a job that does not clip */
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, \"n_head\": 4, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0.02, NEVER, 0.7}, {0}, {0}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0.02, 0, 0.7}, {0}, {0}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 33, \"n_head\": 3, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0}, {ROUNDED, ROUNDED, FP32}, {FP32, BF16, BF16}, {{0}}, {{0}}, false},
    /* 16 bits throughout, next to others; rows are unaligned */
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 33, \"n_head\": 3, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0}, {BF16, BF16, FP32}, {FP32, BF16, BF16}, {{0}}, {{0}}, true},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0.02, 0, 0.7}, {BF16, ROUNDED, BF16}, {BF16, FP32, BF16}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"intermediate_size\": 101, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0}, {BF16, BF16, BF16}, {BF16, FP32, BF16}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"vit\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"head_dim\": 12, \"intermediate_size\": 133, "
     "\"image_size\": 16, \"patch_size\": 4, \"qkv_bias\": false, \"num_labels\": 10}",
     2.303, {0}, {BF16, BF16, FP32}, {FP32, BF16, BF16}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, \"n_head\": 4, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0}, {BF16, BF16, BF16}, {0},
     {LAYERS(lowest_layers), LAYERS(middle_layers), TENSORS(some_tensors)}, {{0}}, false},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0.02, 0, 0.7}, {ROUNDED, ROUNDED, ROUNDED}, {BF16, FP32, BF16}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"intermediate_size\": 101, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0}, {ROUNDED, ROUNDED, ROUNDED}, {BF16, FP32, BF16}, {{0}}, {{0}}, false},
    {"{\"model_type\": \"vit\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"head_dim\": 12, \"intermediate_size\": 133, "
     "\"image_size\": 16, \"patch_size\": 4, \"qkv_bias\": false, \"num_labels\": 10}",
     2.303, {0}, {ROUNDED, ROUNDED, ROUNDED}, {FP32, BF16, BF16}, {{0}}, {{0}}, false},
    /* the embedding and two blocks; one in the middle; tensors here and there */
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, \"n_head\": 4, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0}, {0}, {0},
     {LAYERS(lowest_layers), LAYERS(middle_layers), TENSORS(some_tensors)}, {{0}}, false},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0.02, 0, 0.7}, {0}, {0},
     {LAYERS(last_layers), LAYERS(middle_layers), {0}}, {{0}}, false},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 33, \"n_head\": 3, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0}, {ROUNDED, ROUNDED, FP32}, {FP32, BF16, BF16},
     {TENSORS(some_tensors), {0}, TENSORS(the_embedding)}, {{0}, {.rank = 5, .alpha = 20, TARGETS(gpt2_targets)}, {0}},
     false},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, \"n_head\": 4, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     4.875, {0}, {0}, {0}, {{0}},
     {{.rank = 4, .alpha = 8, TARGETS(gpt2_targets)},
      {.rank = 3, .alpha = 300, .all_linear = true},
      {.rank = 2, .alpha = 200, .rslora = true, TARGETS(gpt2_targets)}}, false},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 88, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131, \"tie_word_embeddings\": true}",
     4.875, {0.02, 0, 0}, {0}, {0}, {{0}},
     {{.rank = 4, .alpha = 8, .all_linear = true},
      {.rank = 3, .alpha = 300, TARGETS(last_targets)},
      {.rank = 6, .alpha = 200, .all_linear = true}}, false},
    /* adapters of 16 bits, next to frozen layers */
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0}, {BF16, BF16, BF16}, {FP32, BF16, BF16}, {{0}, {0}, LAYERS(lowest_layers)},
     {{.rank = 5, .alpha = 20, .all_linear = true}, {.rank = 3, .alpha = 300, TARGETS(last_targets)}, {0}}, false},
    /* experts of 16 bits throughout, next to others, with one that all rows use */
    {"{\"model_type\": \"qwen2_moe\", \"num_hidden_layers\": 3, \"hidden_size\": 33, \"num_attention_heads\": 3, "
     "\"num_key_value_heads\": 1, \"head_dim\": 14, \"intermediate_size\": 37, \"num_experts\": 5, "
     "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 13, \"shared_expert_intermediate_size\": 7, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0.02, 0, 0.7}, {BF16, ROUNDED, BF16}, {BF16, FP32, BF16}, {{0}}, {{0}}, false},
    /* frozen experts, of which some get no row */
    {"{\"model_type\": \"mixtral\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 24, \"num_local_experts\": 64, "
     "\"num_experts_per_tok\": 1, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     4.875, {0}, {0}, {0}, {{0}, {0}, LAYERS(middle_layers)},
     {{.rank = 4, .alpha = 8, TARGETS(mixtral_targets)}, {0}, {0}}, false},
};

/* Properties of a plan, in addition to its outcome. */
struct shape {
    uint32_t shards;
    uint64_t stored_bytes; /* of states on storage */
    bool direct;           /* it copies from device to device */
    bool turns;            /* jobs take turns in host memory */
    uint32_t losses[2]; /* that hold all activations of several layers, or only their inputs */
    uint32_t kept;      /* shards that keep their activations when others of their job do not */
};

struct outcome {
    double losses[JOBS][STEPS];
    double evaluations[JOBS][EVALUATIONS]; /* after steps 2, 4 and 5 */
    uint64_t weights[JOBS], best_weights[JOBS];
    uint64_t best[JOBS];
};

/* The host's devices are made-up ones with its back end's name. */
static void host_devices(struct hardware *hardware, uint32_t devices, uint64_t memory_bytes, bool p2p)
{
    test_hardware(hardware, devices, memory_bytes, 1e9);
    hardware->backend = "host";
    hardware->threads = 1;
    for (uint32_t d = 0; d < devices && p2p; d++) hardware_join(&hardware->devices[d], 1);
    hardware_note_p2p(hardware);
    hardware->host_bytes.value = 1e9;
    hardware->storage.capacity_bytes.value = 1e9;
    hardware->storage.read_rate.value = hardware->storage.write_rate.value = 0.7e9;
}

/* Jobs keep their best weights only without storage, because their states must stay in host memory. */
static bool keeps_best(const struct planner_options *options, uint64_t host_bytes)
{
    return options->storage == PLANNER_STORAGE_NONE || (options->storage != PLANNER_STORAGE_ALL && host_bytes == 0);
}

static char rows_path[SUPPORT_FOLDER_BYTES + 16];

static void make_jobs(const struct subject *subject, bool keeps, struct job_set *jobs)
{
    test_network_jobs(jobs, JOBS, subject->config, STEPS);
    jobs->jobs[1].microbatches = 2;
    jobs->jobs[2].microbatches = 3; /* 0 and 2 are alike but for their samples and seeds */
    jobs->jobs[2].tree = (subject - subjects) % 2 == 1;
    for (uint32_t j = 0; j < JOBS; j++) {
        jobs->jobs[j].evaluation =
            (struct job_evaluation){.every = EVERY, .minibatches = 1 + j, .data_format = DATA_NONE, .share = 0.3};
        jobs->jobs[j].packs = subject->rows && j == 1 && !network_drops(&jobs->jobs[j].network);
        if (subject->rows) jobs->jobs[j].data = rows_path;
        if (subject->rows) jobs->jobs[j].data_format = DATA_ROWS;
        jobs->jobs[j].keep_best = j > 0 && keeps;
        jobs->jobs[j].optimizer.clip = subject->clip[j];
        jobs->jobs[j].precision = subject->weights[j];
        jobs->jobs[j].freeze = subject->freeze[j];
        jobs->jobs[j].adapter = subject->adapter[j];
        support_train_only(&jobs->jobs[j], &jobs->arena);
        jobs->jobs[j].optimizer.moments = subject->moments[j];
        if (j == JOBS - 1) jobs->jobs[j].optimizer.learning_rate = 0.3; /* gets worse in the end */
    }
}

/* Plans and runs. Returns false if nothing fits. host_bytes 0: plenty. */
static bool outcome_of(const struct subject *subject, uint32_t devices, uint64_t memory_bytes,
                       uint64_t host_bytes, const struct planner_options *options,
                       uint64_t delay_seed, struct outcome *out, struct shape *shape)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct run_options run = {.poison = true,
                              .delay_seed = delay_seed,
                              .storage = {.folder = BINARY_DIR, .no_ring = delay_seed % 2 == 1}};
    host_devices(&hardware, devices, memory_bytes, delay_seed % 4 < 2);
    if (host_bytes > 0) hardware.host_bytes.value = (double)host_bytes;
    make_jobs(subject, keeps_best(options, host_bytes), &jobs);
    enum status status = planner_plan(&hardware, &jobs, options, &plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (!status) status = run_plan(&plan, &run, &result, &trace, &err);
    if (status) fail_msg("%s", err.text);
    assert_memory_as_planned(&plan, &result);
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_int_equal(result.jobs[j].minibatches, STEPS);
        memcpy(out->losses[j], result.jobs[j].losses, sizeof out->losses[j]);
        out->weights[j] = result.jobs[j].weights_fingerprint;
        out->best_weights[j] = result.jobs[j].kept_fingerprint;
        out->best[j] = result.jobs[j].best_evaluation;
        assert_int_equal(result.jobs[j].evaluation_count, EVALUATIONS);
        for (uint32_t i = 0; i < EVALUATIONS; i++) {
            assert_int_equal(result.jobs[j].evaluations[i].step, i < 2 ? EVERY * (i + 1) : STEPS);
            out->evaluations[j][i] = result.jobs[j].evaluations[i].loss;
        }
    }
    *shape = (struct shape){.shards = plan.shard_count, .stored_bytes = plan_stored_bytes(&plan),
                            .turns = plan.host_ranges != NULL};
    for (uint32_t o = 0; o < plan.op_count; o++)
        shape->direct |= plan.ops[o].stream == STREAM_P2P;
    for (uint32_t j = 0; j < JOBS; j++) {
        const struct plan_shard *last = &plan.shards[plan.job_first_shard[j + 1] - 1];
        if (last->layer_count > 2) shape->losses[last->inputs_only]++;
        shape->kept += plan_kept_shards(&plan, j);
    }
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return true;
}

/* Checks that the lowest loss is the best one; its weights are kept, and are the last ones only if it is the last. */
static void check_evaluations(const struct subject *subject, const struct outcome *alone)
{
    uint32_t earlier = 0;
    for (uint32_t j = 0; j < JOBS; j++) {
        const double *losses = alone->evaluations[j];
        uint64_t best = 0;
        for (uint32_t i = 0; i < EVALUATIONS; i++) {
            assert_true(isfinite(losses[i]));
            if (j < JOBS - 1) assert_true(fabs(losses[i] - subject->first_loss) < 0.5);
            if (losses[i] < losses[best]) best = i;
        }
        assert_true(losses[0] < losses[1] || losses[0] > losses[1]); /* the steps changed it */
        assert_int_equal(alone->best[j], best);
        assert_int_equal(alone->best_weights[j] == 0, j == 0);
        if (j == 0) continue;
        assert_int_equal(alone->best_weights[j] == alone->weights[j], best == EVALUATIONS - 1);
        if (best < EVALUATIONS - 1) earlier++;
    }
    assert_true(earlier > 0);
}

static bool clips_at_all(const struct subject *subject)
{
    for (uint32_t j = 0; j < JOBS; j++)
        if (subject->clip[j] > 0) return true;
    return false;
}

/* Checks that jobs that clip in no step, or do not clip, end as before, and that the others do not. */
static void check_clipping(const struct subject *subject, const struct planner_options *options,
                           const struct outcome *alone)
{
    struct subject never = *subject, not = *subject;
    for (uint32_t j = 0; j < JOBS; j++) {
        never.clip[j] = NEVER;
        not.clip[j] = 0;
    }
    struct planner_options resident = {.policy = "model-parallel", .activations = PLANNER_AUTO};
    struct outcome unclipped, never_clipped;
    struct shape shape;
    assert_true(outcome_of(&not, 1, 1 << 24, 0, &resident, 0, &unclipped, &shape));
    assert_true(outcome_of(&never, 1, 1 << 24, 0, options, 0, &never_clipped, &shape));
    assert_memory_equal(&never_clipped, &unclipped, sizeof unclipped);
    for (uint32_t j = 0; j < JOBS; j++) {
        bool clipped = subject->clip[j] > 0 && subject->clip[j] < NEVER;
        assert_int_equal(alone->weights[j] != unclipped.weights[j], clipped);
        assert_true(alone->losses[j][0] == unclipped.losses[j][0]); /* before the first step */
    }
}

/* Returns true for cases of the grid that are carried out. */
static bool is_drawn(uint64_t draw)
{
    return random_below(draw, 99, support_rounds(4, 1)) == 0;
}

/* Counts the cases that the draws of all subjects covered. */
static struct coverage {
    uint32_t place[PLANNER_PLACE_COUNT], mode[ACTIVATIONS_COUNT], all_stored, some_stored, direct;
    uint32_t losses[2], mixed, turns, ran;
} covered;

/* Runs with host memory for one job, for two, for nearly all; the others are in their files. Returns the number of
 * plans. */
static uint32_t check_turns(const struct subject *subject, const struct outcome *alone, uint64_t seed)
{
    uint32_t ran = 0;
    for (uint64_t host_bytes = 500000; host_bytes < 3000000; host_bytes = host_bytes * 8 / 7) {
        uint64_t draw = random_mix(seed ^ host_bytes);
        if (!is_drawn(draw)) continue;
        const struct policy *policy = policy_at((uint32_t)random_below(draw, 0, 9));
        struct planner_options options = {.policy = policy->name,
                                          .seed = draw >> 1,
                                          .no_persistence = random_below(draw, 1, 2) == 0,
                                          .activations = PLANNER_AUTO,
                                          .optimizer = clips_at_all(subject) ? PLANNER_AUTO : PLANNER_PLACE_DEVICE,
                                          .storage = PLANNER_STORAGE_NONE,
                                          .shards = (uint32_t)random_below(draw, 2, 6)};
        struct outcome outcome;
        struct shape shape;
        if (policy->resident && clips_at_all(subject)) continue;
        uint32_t devices = 1 + (uint32_t)random_below(draw, 3, 2);
        if (!outcome_of(subject, devices, policy->resident ? 1200000 : 500000, host_bytes, &options, draw, &outcome,
                        &shape))
            continue;
        covered.turns += shape.turns;
        ran++;
        if (memcmp(&outcome, alone, sizeof outcome) != 0)
            fail_msg("%s: %s on %u devices, host memory of %llu bytes: other bits than alone (first loss %.17g, %.17g)",
                     subject->config, options.policy, devices, (unsigned long long)host_bytes, outcome.losses[0][1],
                     alone->losses[0][1]);
    }
    return ran;
}

/* A subject under test, and what its plans covered so far. */
struct same_bits {
    const struct subject *subject;
    const struct outcome *alone; /* of the resident plan on a large device */
    uint64_t seed;
    bool clips;
    uint32_t turn, ran, shards_most, losses[2], all_stored, some_stored;
};

/* Draws the options of a plan by policy `p`. Sets *host_bytes to the host memory; 0: enough. */
static struct planner_options draw_options(struct same_bits *s, uint32_t p, uint64_t draw, uint64_t *host_bytes)
{
    /* in turn, another one for the same device by the next policy */
    uint32_t mode = (s->turn++ + p) % (ACTIVATIONS_COUNT + 1);
    struct planner_options options = {
        .policy = policy_at(p)->name,
        .seed = draw >> 1,
        .no_double_buffer = random_below(draw, 1, 3) == 0,
        .no_persistence = random_below(draw, 4, 2) == 0,
        .activations = mode < ACTIVATIONS_COUNT ? mode : PLANNER_AUTO,
        .mixed = random_below(draw, 8, 2) == 0,
        .optimizer = (uint32_t)random_below(draw, 3, PLANNER_PLACE_COUNT),
        .storage = random_below(draw, 6, 2) == 0 ? PLANNER_STORAGE_ALL : PLANNER_STORAGE_AUTO,
        .shards = (uint32_t)random_below(draw, 2, 6)};
    if (policy_at(p)->resident) options.optimizer = PLANNER_PLACE_DEVICE;
    if (s->clips && options.optimizer == PLANNER_PLACE_DEVICE) options.optimizer = PLANNER_AUTO;
    if (policy_at(p)->resident && plan_activations_spill(mode)) options.activations = PLANNER_AUTO;
    /* of AUTO, a third has too little host memory for all states */
    *host_bytes = random_below(draw, 7, 3) == 0 ? 1250000 : 0;
    if (options.storage == PLANNER_STORAGE_ALL) *host_bytes = 0;
    return options;
}

/* Carries out a plan by policy `p` with drawn options, if there is one. */
static void check_drawn(struct same_bits *s, uint32_t p, uint32_t devices, uint64_t bytes, uint64_t draw)
{
    uint64_t host_bytes;
    const struct planner_options options = draw_options(s, p, draw, &host_bytes);
    const struct outcome *alone = s->alone;
    struct outcome outcome;
    struct shape shape;
    if (options.optimizer < PLANNER_PLACE_COUNT) covered.place[options.optimizer]++;
    if (!outcome_of(s->subject, devices, bytes, host_bytes, &options, draw, &outcome, &shape)) return;
    s->ran++;
    if (!keeps_best(&options, host_bytes))
        memcpy(outcome.best_weights, alone->best_weights, sizeof alone->best_weights);
    if (shape.stored_bytes > 0) *(host_bytes > 0 ? &s->some_stored : &s->all_stored) += 1;
    if (options.activations != PLANNER_AUTO) covered.mode[options.activations]++;
    covered.direct += shape.direct;
    if (shape.shards > s->shards_most) s->shards_most = shape.shards;
    covered.mixed += shape.kept > 0;
    for (uint32_t i = 0; i < 2; i++) s->losses[i] += shape.losses[i];
    if (memcmp(&outcome, alone, sizeof *alone) != 0)
        fail_msg("%s: %s on %u devices of %llu bytes, activations %u, optimizers %s, %u "
                 "shards, %llu bytes on storage: other bits than alone (first loss "
                 "%.17g, %.17g)",
                 s->subject->config, options.policy, devices, (unsigned long long)bytes, options.activations,
                 planner_place_names[options.optimizer], shape.shards, (unsigned long long)shape.stored_bytes,
                 outcome.losses[0][1], alone->losses[0][1]);
}

static void check_policies(struct same_bits *s, size_t size_step)
{
    const uint64_t sizes[] = {4000000, 1200000, 500000, 250000, 180000};
    for (uint32_t p = 0; policy_at(p); p++) {
        if (s->clips && policy_at(p)->resident) continue;
        for (uint32_t devices = 1; devices <= 2; devices++)
            for (size_t m = 0; m < ARRAY_COUNT(sizes); m += size_step) {
                const uint64_t draw = random_mix(s->seed + p * 100 + devices * 10 + m);
                if (is_drawn(draw)) check_drawn(s, p, devices, sizes[m], draw);
            }
    }
}

/* Jobs that stay whole on a device hardly large enough: their losses recompute. */
static void check_whole_jobs(struct same_bits *s, const struct planner_options *resident)
{
    for (uint64_t memory = 3 << 19;; memory = memory * 19 / 20) {
        if (!is_drawn(random_mix(s->seed + memory))) continue;
        struct outcome outcome;
        struct shape shape;
        if (!outcome_of(s->subject, 1, memory, 0, resident, 0, &outcome, &shape)) break;
        assert_memory_equal(&outcome, s->alone, sizeof *s->alone);
        for (uint32_t i = 0; i < 2; i++) s->losses[i] += shape.losses[i];
        s->ran++;
    }
}

/* Bytes to spare, but not for all activations. */
static void check_mixed(struct same_bits *s)
{
    for (uint64_t memory = 1000000; memory > 300000 && !s->clips; memory = memory * 3 / 4) {
        const struct planner_options mixed = {.policy = "spill-sequential",
                                              .activations = s->ran % 2 ? ACTIVATIONS_RECOMPUTE : ACTIVATIONS_SPILL,
                                              .mixed = true,
                                              .optimizer = PLANNER_PLACE_DEVICE,
                                              .shards = 5};
        struct outcome outcome;
        struct shape shape;
        if (!outcome_of(s->subject, 1, memory, 0, &mixed, memory, &outcome, &shape)) break;
        if (memcmp(&outcome, s->alone, sizeof outcome) != 0)
            fail_msg("%s: on a device of %llu bytes, %u shards that keep: other bits than alone",
                     s->subject->config, (unsigned long long)memory, shape.kept);
        covered.mixed += shape.kept > 0;
        s->ran++;
    }
}

static void check_sane_start(const struct subject *subject, const struct outcome *alone)
{
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint32_t i = 0; i < STEPS; i++) {
            assert_true(isfinite(alone->losses[j][i]));
            if (i == 0 || j < JOBS - 1)
                assert_true(fabs(alone->losses[j][i] - subject->first_loss) < 0.5);
        }
}

static void check_same_bits(const struct subject *subject, size_t size_step, uint64_t seed)
{
    struct outcome alone;
    struct shape shape;
    const bool clips = clips_at_all(subject);
    struct same_bits s = {.subject = subject, .alone = &alone, .seed = seed, .clips = clips,
                          .turn = (uint32_t)random_below(seed, 0, 97)};
    struct planner_options resident = {.policy = clips ? "spill-sequential" : "model-parallel",
                                       .activations = PLANNER_AUTO,
                                       .optimizer = clips ? PLANNER_PLACE_CPU : PLANNER_PLACE_DEVICE};
    assert_true(outcome_of(subject, 1, 1 << 24, 0, &resident, 0, &alone, &shape));
    assert_int_equal(shape.stored_bytes, 0);
    check_sane_start(subject, &alone);
    check_evaluations(subject, &alone);
    if (clips) check_clipping(subject, &resident, &alone);
    check_policies(&s, size_step);
    check_whole_jobs(&s, &resident);
    check_mixed(&s);
    s.ran += check_turns(subject, &alone, seed);
    print_message("%.22s...: %u plans with up to %u shards, %u losses from all activations, %u from "
                  "inputs, all states on storage in %u of them, some in %u: the same bits\n",
                  subject->config, s.ran, s.shards_most, s.losses[0], s.losses[1], s.all_stored, s.some_stored);
    for (uint32_t i = 0; i < 2; i++) covered.losses[i] += s.losses[i];
    covered.all_stored += s.all_stored;
    covered.some_stored += s.some_stored;
    covered.ran += s.ran;
    /* in the whole grid each layer was a shard of its own at least once */
    assert_true(s.ran >= support_rounds(0, 10));
    assert_true(s.shards_most >= JOBS * support_rounds(0, size_step == 1 ? 5 : 3));
}

static void test_same_bits(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (size_t i = 0; i < ARRAY_COUNT(subjects); i++)
        check_same_bits(&subjects[i], i == 0 ? 1 : 2, random_mix(seed + i)); /* it takes a while */
    for (uint32_t i = 0; i < 2; i++) assert_true(covered.losses[i] > 0);
    for (uint32_t place = 0; place < PLANNER_PLACE_COUNT; place++)
        assert_true(covered.place[place] >= support_rounds(3, 9));
    for (uint32_t mode = 0; mode < ACTIVATIONS_COUNT; mode++) assert_true(covered.mode[mode] >= support_rounds(1, 3));
    assert_true(covered.ran >= support_rounds(60, 200));
    assert_true(covered.all_stored > 0 && covered.some_stored > 0);
    print_message("%u plans in which some shards of a job keep their activations\n", covered.mixed);
    assert_true(covered.mixed >= support_rounds(1, 3));
    assert_true(covered.direct >= support_rounds(1, 5));
    print_message("%u plans in which jobs take turns in host memory\n", covered.turns);
    assert_true(covered.turns >= support_rounds(2, 9));
}

static char folder[SUPPORT_FOLDER_BYTES];

static int setup(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(rows_path, sizeof rows_path, "%s/a.rows", folder);
    support_rows_write(rows_path, 7, 60, 16, 131, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests_name("contract", tests, setup, teardown);
}
