/* label: medium, all rounds: slow
 *
 * Jobs that share frozen weights: random adapters and frozen tensors of random networks, of one base or two, with other
 * lengths, batches, optimizers and evaluations, on one device to three, of sizes from just enough to plenty. The shared
 * plan has the losses, evaluations, final and best weights of each job alone, bit by bit, and hands out the memory that
 * was planned. Where bases are streamed, they cross once a round for all jobs together. A job that ends early, by a
 * loss that is not finite or data that cannot be read, takes nothing from the others. Jobs that cannot share are
 * refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "models/jobs/job_base.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/support_memory.h"
#include "tests/support/support_seed.h"

enum { JOBS_MOST = 5, STEPS_MOST = 6, EVALUATIONS_MOST = STEPS_MOST + 1 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 9, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 32, "
    "\"vocab_size\": 131}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 8, \"hidden_size\": 32, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 88, \"max_position_embeddings\": 32, \"vocab_size\": 131, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 10, \"hidden_size\": 36, \"num_attention_heads\": 3, "
    "\"num_key_value_heads\": 1, \"head_dim\": 14, \"intermediate_size\": 77, \"max_position_embeddings\": 32, "
    "\"vocab_size\": 131}",
    "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 3, \"hidden_size\": 32, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"num_local_experts\": 8, \"num_experts_per_tok\": 2, "
    "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 32, \"num_attention_heads\": 4, "
    "\"intermediate_size\": 101, \"max_position_embeddings\": 32, \"vocab_size\": 131}"};
enum { GPT2, LLAMA_TIED, LLAMA, MIXTRAL, BERT };

static const char *const attention[] = {"q_proj", "v_proj"}, *const fused[] = {"c_attn", "c_fc"};
static const uint64_t lowest_layers[][2] = {{0, 2}}, middle_layers[][2] = {{2, 2}};

struct outcome {
    uint64_t steps;
    double losses[STEPS_MOST], evaluations[EVALUATIONS_MOST];
    uint64_t weights, best_weights, best;
};

static uint64_t drawn_of(uint64_t seed, uint32_t what, uint64_t below) { return random_below(seed, what, below); }

/* What a job trains: adapters, or all but some layers. Jobs with other frozen layers have other bases. */
static void draw_trained(struct job *job, uint32_t config, uint64_t seed, struct arena *arena)
{
    if (config == BERT || drawn_of(seed, 0, 4) == 0) {
        const bool lowest = drawn_of(seed, 1, 2) == 0;
        job->freeze = (struct network_freeze){.layers = lowest ? lowest_layers : middle_layers, .layer_count = 1};
    } else {
        const bool all = config != MIXTRAL && drawn_of(seed, 2, 2) == 0;
        const char *const *const names = config == GPT2 ? fused : attention;
        job->adapter = (struct job_adapter){.rank = 1 + drawn_of(seed, 3, 6), .alpha = 8, .all_linear = all,
                                            .targets = all ? NULL : names, .target_count = all ? 0 : 2};
    }
    support_train_only(job, arena);
}

static void draw_job(struct job *job, uint32_t config, uint64_t bases, uint64_t seed, struct arena *arena)
{
    job->seed = 7 + drawn_of(seed, 4, bases); /* of the base, too */
    job->sequence = config == BERT ? 16 : 8 + 8 * drawn_of(seed, 5, 3);
    job->microbatch = 1 + drawn_of(seed, 6, 3);
    job->microbatches = 1 + drawn_of(seed, 7, 3);
    job->minibatches = 1 + drawn_of(seed, 8, STEPS_MOST);
    job->tree = drawn_of(seed, 9, 4) == 0;
    job->optimizer.learning_rate = 1e-3 * (double)(1 + drawn_of(seed, 10, 50));
    job->optimizer.clip = config != BERT && drawn_of(seed, 11, 3) == 0 ? 0.02 : 0;
    job->optimizer.moments = drawn_of(seed, 12, 4) == 0 ? PRECISION_BF16 : PRECISION_FP32;
    if (drawn_of(seed, 13, 2) == 0)
        job->evaluation = (struct job_evaluation){.every = 1 + drawn_of(seed, 14, 3),
                                                  .minibatches = 1 + drawn_of(seed, 15, 2),
                                                  .data_format = DATA_NONE, .share = 0.3};
    job->keep_best = job->evaluation.every > 0 && drawn_of(seed, 16, 2) == 0;
    draw_trained(job, config, seed, arena);
}

static void draw_jobs(uint64_t seed, struct job_set *jobs)
{
    const uint32_t config = (uint32_t)drawn_of(seed, 100, ARRAY_COUNT(configs));
    const uint32_t precision = drawn_of(seed, 101, 3) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
    test_network_jobs(jobs, 1 + (uint32_t)drawn_of(seed, 102, JOBS_MOST), configs[config], 1);
    const uint64_t bases = 1 + drawn_of(seed, 103, 2);
    for (uint32_t j = 0; j < jobs->count; j++) {
        jobs->jobs[j].precision = precision;
        draw_job(&jobs->jobs[j], config, bases, random_u64(seed, 200 + j), &jobs->arena);
    }
}

static void make_devices(struct hardware *hardware, uint32_t devices, uint64_t memory_bytes)
{
    test_hardware(hardware, devices, memory_bytes, 1e9);
    hardware->backend = "host";
    hardware->threads = 1;
    hardware->host_bytes.value = 1e9;
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
        const struct run_job_result *job = &result.jobs[j];
        out[j] = (struct outcome){.steps = job->minibatches, .weights = job->weights_fingerprint,
                                  .best_weights = job->kept_fingerprint, .best = job->best_evaluation};
        assert_int_equal(job->minibatches, plan->jobs.jobs[j].minibatches);
        memcpy(out[j].losses, job->losses, job->minibatches * sizeof *job->losses);
        for (uint64_t i = 0; i < job->evaluation_count; i++) out[j].evaluations[i] = job->evaluations[i].loss;
    }
    run_result_release(&result);
    trace_release(&trace);
    plan_release(plan);
}

/* Runs each job by itself, in a plan that shares nothing. */
static void run_alone(uint64_t seed, struct outcome *out)
{
    struct job_set count;
    draw_jobs(seed, &count);
    for (uint32_t j = 0; j < count.count; j++) {
        const struct planner_options options = {.policy = "sharded-lrtf", .activations = PLANNER_AUTO,
                                                .optimizer = PLANNER_AUTO};
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        make_devices(&hardware, 1, 1 << 24);
        draw_jobs(seed, &jobs);
        jobs.jobs[0] = jobs.jobs[j];
        jobs.count = 1;
        if (planner_plan(&hardware, &jobs, &options, &plan, &err)) fail_msg("%s", err.text);
        run_all(&plan, 0, &out[j]);
    }
    job_set_release(&count);
}

/* Counts how often a base's first byte is fetched to devices, over all repetitions. */
static uint64_t fetches_of(const struct plan *plan, uint32_t owner, uint32_t shard)
{
    uint64_t count = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t t = 0; t < plan->segments[s].task_count; t++) {
            const struct plan_unit *unit = &plan->units[plan->tasks[plan->segments[s].first_task + t].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
                const struct plan_access *access = &plan->accesses[plan->ops[o].first_access];
                const struct plan_buffer *b = &plan->buffers[access->buffer];
                if (plan->ops[o].kind == OP_COPY && b->kind == BUFFER_BASE && b->job == owner && b->shard == shard &&
                    plan->buffers[access[1].buffer].kind == BUFFER_BASE && access->offset_bytes == 0)
                    count += plan->segments[s].repeat_count;
            }
        }
    return count;
}

/* Checks that each shard of a base crosses at most twice a round, and once for each round of evaluations' minibatches.
 * Returns true if one crossed more than once, so it was streamed. */
static bool check_crossings(const struct plan *plan)
{
    bool streamed = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        uint64_t rounds = 0, evaluations = 0;
        if (job_base_owner(&plan->jobs, j) != j) continue;
        for (uint32_t i = j; i < plan->jobs.count; i++) {
            const struct job *job = &plan->jobs.jobs[i];
            if (job_base_owner(&plan->jobs, i) != j) continue;
            if (job->minibatches > rounds) rounds = job->minibatches;
            if (job->evaluation.every > 0) evaluations += 2 * job->minibatches;
        }
        for (uint32_t s = 0; s < plan_job_shards(plan, j); s++) {
            const uint64_t fetches = fetches_of(plan, j, s);
            assert_true(fetches <= 2 * rounds + evaluations);
            streamed |= fetches > 1;
        }
    }
    return streamed;
}

static struct {
    uint32_t plans, streamed, several, multiple_bases;
} covered;

/* Plans and runs the jobs on devices of one size; false: they do not fit. */
static bool check_shared(uint64_t seed, uint32_t devices, uint64_t memory_bytes, const struct outcome *alone)
{
    struct planner_options options = {.policy = "shared-base", .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                      .no_double_buffer = drawn_of(seed ^ memory_bytes, 0, 4) == 0};
    struct outcome outcome[JOBS_MOST];
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    make_devices(&hardware, devices, memory_bytes);
    draw_jobs(seed, &jobs);
    const uint32_t count = jobs.count;
    const enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (status) fail_msg("%s", err.text);
    covered.plans++;
    covered.streamed += check_crossings(&plan);
    covered.several += devices > 1;
    covered.multiple_bases += job_base_owner(&plan.jobs, count - 1) != job_base_owner(&plan.jobs, 0);
    run_all(&plan, random_mix(seed ^ memory_bytes), outcome);
    for (uint32_t j = 0; j < count; j++)
        if (memcmp(&outcome[j], &alone[j], sizeof outcome[j]) != 0)
            fail_msg("%u devices of %llu bytes: job %u of %u has other bits than alone (first loss %.17g, %.17g)",
                     devices,
                     (unsigned long long)memory_bytes, j, count, outcome[j].losses[0], alone[j].losses[0]);
    return true;
}

/* Draws four jobs, of two of which one leaves its embedding to the host and the other does not. */
static const uint64_t embeddings_apart = 9801727753231323307u;

static void test_same_bits(void **state)
{
    const uint64_t seed = support_seed("test_exec_shared_base");
    (void)state;
    for (uint64_t round = 0; round < support_rounds(6, 60); round++) {
        const uint64_t own = round == 0 ? embeddings_apart : random_u64(seed, round);
        struct outcome alone[JOBS_MOST];
        run_alone(own, alone);
        uint64_t memory = 1 << 22;
        while (check_shared(own, 1 + (uint32_t)drawn_of(own, 300 + (uint32_t)(memory >> 10), 3), memory, alone))
            memory = memory * 5 / 7;
        assert_true(memory < 1 << 22);
    }
    print_message("%u plans, %u stream a base, %u on several devices, %u have bases of several kinds\n", covered.plans,
                  covered.streamed, covered.several, covered.multiple_bases);
    assert_true(covered.plans > 10 && covered.streamed > 0 && covered.several > 0);
}

/* --- jobs that end early ---------------------------------------------------------------------- */

/* Runs three jobs through a small device and takes their outcomes; the first one diverges, has no data, or neither. */
static void run_three(const char *data, double rate, struct outcome *out)
{
    const struct run_options options = {.poison = true, .delay_seed = 3, .keep_going = true, .on_nan = RUN_NAN_STOP};
    const struct planner_options how = {.policy = "shared-base", .activations = PLANNER_AUTO,
                                        .optimizer = PLANNER_AUTO};
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    make_devices(&hardware, 1, 600000);
    test_network_jobs(&jobs, 3, configs[LLAMA], STEPS_MOST);
    for (uint32_t j = 0; j < 3; j++) {
        jobs.jobs[j].base = "llama";
        jobs.jobs[j].adapter = (struct job_adapter){.rank = 2, .alpha = 8, .all_linear = true};
        support_train_only(&jobs.jobs[j], &jobs.arena);
    }
    jobs.jobs[0].optimizer.learning_rate = rate;
    jobs.jobs[0].data = data;
    jobs.jobs[0].data_format = data ? DATA_TEXT : DATA_NONE;
    if (planner_plan(&hardware, &jobs, &how, &plan, &err)) fail_msg("%s", err.text);
    assert_true(check_crossings(&plan));
    assert_int_equal(run_plan(&plan, &options, &result, &trace, &err), STATUS_OK);
    for (uint32_t j = 0; j < 3; j++) {
        out[j] = (struct outcome){.steps = result.jobs[j].minibatches, .weights = result.jobs[j].weights_fingerprint};
        memcpy(out[j].losses, result.jobs[j].losses, sizeof out[j].losses);
    }
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

static void test_ends_early(void **state)
{
    struct outcome whole[3], ended[3];
    (void)state;
    run_three(NULL, 1e-3, whole);
    assert_int_equal(whole[0].steps, STEPS_MOST);
    run_three(NULL, 1e38, ended); /* its first step overflows */
    assert_true(ended[0].steps < STEPS_MOST);
    for (uint32_t j = 1; j < 3; j++) assert_memory_equal(&ended[j], &whole[j], sizeof whole[j]);
    run_three("/no/such/file", 1e-3, ended);
    assert_int_equal(ended[0].steps, 0);
    for (uint32_t j = 1; j < 3; j++) assert_memory_equal(&ended[j], &whole[j], sizeof whole[j]);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void refuse(const struct planner_options *options, bool adapts, const char *expected)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    make_devices(&hardware, 1, 1 << 22);
    test_network_jobs(&jobs, 2, configs[GPT2], 1);
    jobs.jobs[0].adapter = (struct job_adapter){.rank = 2, .alpha = 8, .all_linear = true};
    if (adapts) jobs.jobs[1].adapter = jobs.jobs[0].adapter;
    for (uint32_t j = 0; j < 2; j++) support_train_only(&jobs.jobs[j], &jobs.arena);
    assert_true(planner_plan(&hardware, &jobs, options, &plan, &err) != STATUS_OK);
    if (!strstr(err.text, expected)) fail_msg("%s (expected %s)", err.text, expected);
}

static void test_refused(void **state)
{
    struct planner_options options = {.policy = "shared-base", .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    (void)state;
    refuse(&options, false,
           "policy 'shared-base' for job 'job-1', which trains all of its network (expected 'adapter' or 'freeze')");
    options.activations = ACTIVATIONS_KEEP;
    refuse(&options, true, "policy 'shared-base' does not go with activations that stay on a device");
    options.activations = PLANNER_AUTO;
    options.live = true;
    refuse(&options, true, "policy 'shared-base' does not go with live dispatch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_ends_early),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
