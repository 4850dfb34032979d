/* label: medium, all rounds: slow
 *
 * Kept outputs of frozen first layers: random jobs of random networks, whose rows return each epoch, with evaluations,
 * other rates, orders, batches and frozen layers, some of which take outputs that others take. In plans that keep them,
 * by any policy, on one device to three, of sizes from just enough to plenty, jobs have the losses, evaluations, final
 * and best weights of each job alone: bit by bit those of the job that keeps nothing, if microbatches are of one
 * sample, else those of the job that alone keeps the same, and the first loss to 1e-6. Plans pass through files, and
 * hand out the memory that was planned.
 */
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
#include "models/jobs/job_outputs.h"
#include "planner/files/plan_io.h"
#include "planner/prefix/prefix_keep.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_memory.h"
#include "tests/support/support_rows.h"
#include "tests/support/support_seed.h"

enum { JOBS_MOST = 4, STEPS_MOST = 12, EVALUATIONS_MOST = STEPS_MOST + 1, VOCABULARY = 131, LENGTH = 16 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 5, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 32, "
    "\"vocab_size\": 131, \"embd_pdrop\": 0, \"attn_pdrop\": 0, \"resid_pdrop\": 0}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 32, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 88, \"max_position_embeddings\": 32, \"vocab_size\": 131, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 36, \"num_attention_heads\": 3, "
    "\"num_key_value_heads\": 1, \"head_dim\": 14, \"intermediate_size\": 77, \"max_position_embeddings\": 32, "
    "\"vocab_size\": 131}",
    "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 5, \"hidden_size\": 24, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 40, \"max_position_embeddings\": 32, \"vocab_size\": 131, "
    "\"tie_word_embeddings\": false}"};

struct outcome {
    uint64_t steps;
    double losses[STEPS_MOST], evaluations[EVALUATIONS_MOST];
    uint64_t weights, best_weights, best;
};

static char folder[SUPPORT_FOLDER_BYTES], path[SUPPORT_FOLDER_BYTES + 16];

static int setup(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/a.rows", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

static uint64_t drawn_of(uint64_t seed, uint32_t what, uint64_t below) { return random_below(seed, what, below); }

/* Freezes the first layers, 2 of them at least, and trains the rest; or trains only adapters, of no layer. */
static enum status freeze_first(struct job *job, uint64_t frozen, struct arena *arena, struct error *err)
{
    uint64_t(*range)[2];
    if (ARENA_NEW(arena, 1, range, err)) return err->status;
    range[0][1] = frozen - 1;
    job->freeze = (struct network_freeze){.layers = (const uint64_t(*)[2])range, .layer_count = 1};
    support_train_only(job, arena);
    return STATUS_OK;
}

/* What all jobs of a group have in common follows from `all`, the rest from `seed`. */
static void draw_job(struct job *job, uint64_t all, uint64_t seed, struct arena *arena)
{
    struct error err = {0};
    const uint64_t layers = job->network.layer_count;
    const bool base = drawn_of(all, 3, 2) == 0; /* weights of one name, which freeze the same; or of one seed */
    job->base = base ? "the base" : NULL;
    job->seed = 7 + drawn_of(base ? seed : all, 4, 100);
    job->data = path;
    job->data_format = DATA_ROWS;
    job->sequence = LENGTH;
    job->packs = drawn_of(all, 5, 3) == 0;
    job->skips_long = drawn_of(all, 17, 2) == 0;
    const bool evaluates = drawn_of(all, 13, 2) == 0; /* then batches are equal, for as many held-out samples */
    job->microbatch = 1 + drawn_of(evaluates ? all : seed, 6, 3);
    job->microbatches = 1 + drawn_of(evaluates ? all : seed, 7, 3);
    job->minibatches = 1 + drawn_of(seed, 8, STEPS_MOST);
    job->tree = drawn_of(seed, 9, 4) == 0;
    job->optimizer.learning_rate = 1e-3 * (double)(1 + drawn_of(seed, 10, 50));
    job->optimizer.clip = drawn_of(seed, 11, 3) == 0 ? 0.02 : 0;
    const bool half = drawn_of(seed, 12, 4) == 0 && job->optimizer.kind == OPTIMIZER_ADAMW;
    job->optimizer.moments = half ? PRECISION_BF16 : PRECISION_FP32;
    job->evaluation.split_seed = 1;
    if (evaluates)
        job->evaluation = (struct job_evaluation){.every = 1 + drawn_of(seed, 14, 3),
                                                  .minibatches = 1 + drawn_of(all, 15, 2),
                                                  .data_format = DATA_NONE, .share = 0.3, .split_seed = 3};
    job->keep_best = job->evaluation.every > 0 && drawn_of(seed, 16, 2) == 0;
    assert_int_equal(freeze_first(job, 2 + drawn_of(base ? all : seed, 18, layers - 2), arena, &err), STATUS_OK);
}

static void draw_jobs(uint64_t seed, struct job_set *jobs)
{
    const uint32_t config = (uint32_t)drawn_of(seed, 100, ARRAY_COUNT(configs));
    test_network_jobs(jobs, 1 + (uint32_t)drawn_of(seed, 102, JOBS_MOST), configs[config], 1);
    const uint32_t precision = test_precision(drawn_of(seed, 101, 4));
    for (uint32_t j = 0; j < jobs->count; j++) {
        jobs->jobs[j].precision = precision;
        draw_job(&jobs->jobs[j], seed, random_u64(seed, 200 + j), &jobs->arena);
    }
}

static void make_devices(struct hardware *hardware, uint32_t devices, uint64_t memory_bytes)
{
    test_hardware(hardware, devices, memory_bytes, 1e9);
    hardware->backend = "host";
    hardware->threads = 1;
    hardware->host_bytes.value = 1e9;
}

static void take_outcome(const struct run_job_result *job, struct outcome *out)
{
    *out = (struct outcome){.steps = job->minibatches, .weights = job->weights_fingerprint,
                            .best_weights = job->kept_fingerprint, .best = job->best_evaluation};
    memcpy(out->losses, job->losses, job->minibatches * sizeof *job->losses);
    for (uint64_t i = 0; i < job->evaluation_count; i++) out->evaluations[i] = job->evaluations[i].loss;
}

static void run_all(struct plan *plan, uint64_t delay_seed, struct outcome *out)
{
    const struct run_options options = {.poison = true, .delay_seed = delay_seed};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (run_plan(plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
    assert_memory_as_planned(plan, &result);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        assert_int_equal(result.jobs[j].minibatches, plan->jobs.jobs[j].minibatches);
        if (!job_makes_outputs(&plan->jobs.jobs[j])) take_outcome(&result.jobs[j], &out[j]);
    }
    run_result_release(&result);
    trace_release(&trace);
    plan_release(plan);
}

/* Draws the layers whose outputs each job takes; 0: it computes all. */
static void draw_layers(uint64_t seed, uint64_t *layers)
{
    struct job_set jobs;
    const char *why;
    draw_jobs(seed, &jobs);
    for (uint32_t j = 0; j < jobs.count; j++) {
        const uint64_t most = job_outputs_most(&jobs.jobs[j], &why);
        assert_true(most >= 2);
        layers[j] = drawn_of(seed, 400 + j, 5) == 0   ? 0
                    : drawn_of(seed, 500 + j, 2) == 0 ? most
                                                      : 2 + drawn_of(seed, 600 + j, most - 1);
    }
    job_set_release(&jobs);
}

/* Lets each job take the outputs of these layers. Returns how many makers there are. */
static uint32_t keep(const struct hardware *hardware, const uint64_t *layers, struct job_set *jobs)
{
    struct arena arena = {0};
    struct prefix_problem problem;
    struct prefix_choice choice = {0};
    struct error err = {0};
    const uint32_t count = jobs->count;
    if (prefix_problem_make(hardware, jobs, 1e9, &arena, &problem, &err) ||
        ARENA_NEW(&arena, count, choice.layers, &err))
        fail_msg("%s", err.text);
    for (uint32_t j = 0; j < count; j++) choice.layers[j] = layers[j];
    if (prefix_keep(&problem, &choice, jobs, &err)) fail_msg("%s", err.text);
    arena_release(&arena);
    return jobs->count - count;
}

/* Runs job j by itself, after so many layers. */
static void run_one(uint64_t seed, uint32_t j, uint64_t layers, struct outcome *out)
{
    const struct planner_options options = {.policy = "sharded-lrtf", .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO};
    struct outcome both[2];
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    make_devices(&hardware, 1, 1 << 24);
    draw_jobs(seed, &jobs);
    jobs.jobs[0] = jobs.jobs[j];
    jobs.count = 1;
    (void)keep(&hardware, &layers, &jobs);
    if (planner_plan(&hardware, &jobs, &options, &plan, &err)) fail_msg("%s", err.text);
    run_all(&plan, 0, both);
    *out = both[0];
}

/* Runs each job by itself, and checks it against the job that keeps nothing. */
static void run_alone(uint64_t seed, const uint64_t *layers, struct outcome *out)
{
    struct job_set jobs;
    draw_jobs(seed, &jobs);
    for (uint32_t j = 0; j < jobs.count; j++) {
        struct outcome without;
        run_one(seed, j, 0, &without);
        run_one(seed, j, layers[j], &out[j]);
        if (jobs.jobs[j].microbatch == 1 || layers[j] == 0)
            assert_memory_equal(&without, &out[j], sizeof without);
        else
            assert_true(fabs(out[j].losses[0] - without.losses[0]) <= 1e-6 * fabs(without.losses[0]));
    }
    job_set_release(&jobs);
}

static struct {
    uint32_t plans, several, makers, shared, epochs;
} covered;

/* Writes the plan and reads it again. */
static void pass_through_file(struct plan *plan)
{
    char file[SUPPORT_FOLDER_BYTES + 16];
    struct error err = {0};
    const uint64_t print = plan_fingerprint(plan);
    snprintf(file, sizeof file, "%s/plan.json", folder);
    if (plan_write(plan, file, &err)) fail_msg("%s", err.text);
    plan_release(plan);
    if (plan_read(file, plan, &err)) fail_msg("%s", err.text);
    assert_true(plan_fingerprint(plan) == print);
}

/* Plans and runs the jobs on devices of one size; false: they do not fit. */
static bool check_kept(uint64_t seed, uint32_t devices, uint64_t memory_bytes, const uint64_t *layers,
                       const struct outcome *alone)
{
    static const char *const policies[] = {"sharded-lrtf", "srtf", "spill-sequential", "random", "optimal",
                                           "sharded-lrtf-cached"};
    const struct planner_options options = {
        .policy = policies[drawn_of(seed ^ memory_bytes, 1, ARRAY_COUNT(policies))], .activations = PLANNER_AUTO,
        .optimizer = PLANNER_AUTO, .iterations = 20, .no_double_buffer = drawn_of(seed ^ memory_bytes, 0, 4) == 0};
    struct outcome outcome[JOBS_MOST];
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    make_devices(&hardware, devices, memory_bytes);
    draw_jobs(seed, &jobs);
    const uint32_t count = jobs.count;
    uint32_t takers = 0;
    const uint32_t makers = keep(&hardware, layers, &jobs);
    for (uint32_t j = 0; j < count; j++) takers += job_takes_outputs(&jobs.jobs[j]);
    const enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (status) fail_msg("%s: %s", options.policy, err.text);
    covered.plans++;
    covered.several += devices > 1;
    covered.makers += makers;
    covered.shared += takers > makers;
    for (uint32_t j = 0; j < count; j++)
        covered.epochs += makers > 0 && plan.jobs.jobs[j].minibatches > plan.jobs.jobs[count].minibatches;
    pass_through_file(&plan);
    run_all(&plan, random_mix(seed ^ memory_bytes), outcome);
    for (uint32_t j = 0; j < count; j++)
        if (memcmp(&outcome[j], &alone[j], sizeof outcome[j]) != 0)
            fail_msg("%s, %u devices of %llu bytes: job %u of %u has other bits than alone (first loss %.17g, %.17g)",
                     options.policy, devices, (unsigned long long)memory_bytes, j, count, outcome[j].losses[0],
                     alone[j].losses[0]);
    return true;
}

static bool covers_all(void)
{
    return covered.plans > 10 && covered.makers > 5 && covered.shared > 0 && covered.epochs > 0;
}

static void test_same_bits(void **state)
{
    const uint64_t seed = support_seed("test_exec_outputs");
    (void)state;
    for (uint64_t round = 0; round < support_rounds(4, 40) || (!covers_all() && round < 40); round++) {
        const uint64_t own = random_u64(seed, round);
        struct outcome alone[JOBS_MOST];
        uint64_t layers[JOBS_MOST];
        support_rows_write(path, own, 12 + drawn_of(own, 301, 30), LENGTH + 4, VOCABULARY, 7);
        draw_layers(own, layers);
        run_alone(own, layers, alone);
        uint64_t memory = 1 << 22;
        while (check_kept(own, 1 + (uint32_t)drawn_of(own, 302 + (uint32_t)(memory >> 10), 3), memory, layers, alone))
            memory = memory * 5 / 7;
        assert_true(memory < 1 << 22);
    }
    print_message("%u plans, %u on several devices, %u makers, %u with outputs that several take, %u jobs of several "
                  "epochs\n", covered.plans, covered.several, covered.makers, covered.shared, covered.epochs);
    assert_true(covers_all());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
