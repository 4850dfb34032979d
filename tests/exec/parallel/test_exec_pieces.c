/* label: medium
 * Jobs that stop and go on elsewhere, in another layout.
 *
 * Random pieces of a training, each spilled, resident, a pipeline, of replicas that split states, or of a tensor group, on
 * devices of its own, while another job trains on the others; with random pauses on every stream and NaN in all memory
 * that was released. Where all layouts keep one device's bits, the last piece has the losses and weights of the job
 * spilled on one device in one piece; else they are near. A training that is stopped within a piece, or fails there, does
 * not go on.
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

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/plan_runnable.h"
#include "planner/strategy/plan_merge.h"
#include "planner/strategy/planner.h"
#include "planner/strategy/subproblem.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { STEPS = 6, DEVICES = 4, CASES = 8, PIECES_MOST = 4 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, \"vocab_size\": 61, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* A way to run a piece, on its number of devices. */
struct way {
    uint32_t devices;
    struct parallel parallel; /* tensor 0: spilled, or resident if `resident` */
    bool resident, keeps_bits;
};
static const struct way ways[] = {
    {.devices = 1, .keeps_bits = true},
    {.devices = 2, .keeps_bits = true},
    {.devices = 1, .resident = true, .keeps_bits = true},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B}, .keeps_bits = true},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 2, .schedule = PIPELINE_ZB_V}, .keeps_bits = true},
    {.devices = 3, .parallel = {.tensor = 1, .pipeline = 3, .data = 1, .chunks = 1, .schedule = PIPELINE_GPIPE}, .keeps_bits = true},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2}},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .zero = 3}},
    {.devices = 2, .parallel = {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1}},
    {.devices = 3, .parallel = {.tensor = 3, .pipeline = 1, .data = 1, .chunks = 2}},
};
enum { KEEPING = 6 };

struct piece {
    const struct way *way;
    uint64_t first, count; /* minibatches */
};

struct setting {
    const char *config;
    uint32_t precision;
    double rate;
    uint64_t every;
    struct piece pieces[PIECES_MOST];
    uint32_t count;
};

static void fill_job(const struct setting *s, struct job *job)
{
    job->microbatch = 2;
    job->microbatches = 2;
    job->precision = s->precision;
    job->optimizer.kind = s->rate > 1 ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
    job->optimizer.learning_rate = s->rate;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = 2};
}

static void make_machine(struct hardware *out, uint32_t devices)
{
    test_hardware(out, devices, 1 << 24, 1e9);
    out->backend = "host";
    out->threads = 1;
    out->host_bandwidth = out->types[0].memory_bandwidth;
}

/* Plans the pieces as jobs of one plan, and beside them another job on the last device. */
static void make_plan(const struct setting *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    struct plan plans[PIECES_MOST + 1] = {0};
    struct merge_subplan subplans[PIECES_MOST + 1] = {0};
    uint32_t numbers[PIECES_MOST + 1], devices[DEVICES];
    static char names[PIECES_MOST + 1][16];
    double free_s = 0;
    make_machine(&hardware, DEVICES);
    test_network_jobs(&jobs, s->count + 1, s->config, STEPS);
    for (uint32_t d = 0; d < DEVICES; d++) devices[d] = d;
    for (uint32_t i = 0; i <= s->count; i++) {
        const bool other = i == s->count;
        const struct way *const way = other ? &ways[0] : s->pieces[i].way;
        struct job *const job = &jobs.jobs[i];
        numbers[i] = i;
        job->optimizer = jobs.jobs[0].optimizer;
        fill_job(s, job);
        snprintf(names[i], sizeof names[i], other ? "other" : "job.%u", i + 1);
        job->name = names[i];
        if (!other) {
            job->seed = jobs.jobs[0].seed;
            job->first_minibatch = s->pieces[i].first;
            job->minibatches = s->pieces[i].count;
        }
        const struct subproblem subproblem = {.jobs = &numbers[i], .job_count = 1, .devices = other ? &devices[DEVICES - 1] : devices,
                                              .device_count = way->devices};
        const struct planner_options options = {.policy = way->parallel.tensor > 0 ? NULL : way->resident ? "model-parallel" : "spill-sequential",
                                                .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
        if (subproblem_plan(&hardware, jobs.jobs, &subproblem, way->parallel.tensor > 0 ? &way->parallel : NULL, 1e9, &options, &plans[i],
                            &err))
            fail_msg("%s", err.text);
        subplans[i] = (struct merge_subplan){.plan = &plans[i], .jobs = &numbers[i], .devices = subproblem.devices,
                                             .follows = other || i == 0 ? PLAN_NONE : i - 1, .begin_s = other ? 0 : free_s,
                                             .end_s = (other ? 0 : free_s) + plans[i].estimated_makespan_s};
        if (!other) free_s = subplans[i].end_s;
    }
    const struct merge_options how = {.policy = "test"};
    enum status status = plan_merge(&hardware, &jobs, subplans, s->count + 1, &how, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (!status) status = plan_runnable(plan, &err);
    if (status) fail_msg("%s", err.text);
    for (uint32_t i = 0; i <= s->count; i++) plan_release(&plans[i]);
}

/* Plans the training in one piece, spilled on one device. */
static void make_alone(const struct setting *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.policy = "spill-sequential", .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    make_machine(&hardware, 1);
    test_network_jobs(&jobs, 1, s->config, STEPS);
    fill_job(s, &jobs.jobs[0]);
    if (planner_plan(&hardware, &jobs, &options, plan, &err)) fail_msg("%s", err.text);
}

struct outcome {
    double losses[STEPS];
    uint64_t minibatches[PIECES_MOST + 1], fingerprint, evaluations;
    double last_evaluation;
};

/* Releases the plan. `last`: the job with the last results. */
static void run(struct plan *plan, uint32_t last, struct run_options options, struct outcome *out)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    *out = (struct outcome){.fingerprint = 0};
    options.poison = true;
    if (run_plan(plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
    for (uint32_t j = 0; j < plan->jobs.count; j++) out->minibatches[j] = result.jobs[j].minibatches;
    const struct run_job_result *const of = &result.jobs[last];
    memcpy(out->losses, of->losses, of->minibatches * sizeof *out->losses);
    out->fingerprint = of->weights_fingerprint;
    out->evaluations = of->evaluation_count;
    if (of->evaluation_count > 0) out->last_evaluation = of->evaluations[of->evaluation_count - 1].loss;
    trace_release(&trace);
    run_result_release(&result);
    plan_release(plan);
}

static struct setting draw(uint64_t seed, uint64_t at, const char *config, bool keeping)
{
    struct setting s = {.config = config, .rate = 0.01, .every = random_below(seed, at, 3)};
    s.precision = random_below(seed, at + 1, 3) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
    uint64_t done = 0;
    while (done < STEPS && s.count < PIECES_MOST) {
        const bool last = s.count + 1 == PIECES_MOST;
        struct piece *const piece = &s.pieces[s.count];
        piece->way = &ways[random_below(seed, at + 2 + 2 * s.count, keeping ? KEEPING : ARRAY_COUNT(ways))];
        piece->first = done;
        piece->count = last ? STEPS - done : 1 + random_below(seed, at + 3 + 2 * s.count, STEPS - done);
        done += piece->count;
        s.count++;
    }
    return s;
}

static char *pieces_text(const struct setting *s, char text[256])
{
    size_t used = (size_t)snprintf(text, 256, "%.28s..., precision %u", s->config, s->precision);
    for (uint32_t i = 0; i < s->count; i++)
        used += (size_t)snprintf(text + used, 256 - used, ", %u in way %u", (unsigned)s->pieces[i].count,
                                 (unsigned)(s->pieces[i].way - ways));
    return text;
}

static void test_pieces_are_one_training(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("pieces");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            const bool keeping = n % 2 == 0;
            const struct setting s = draw(seed, 20 * (c * CASES + n), configs[c], keeping);
            const double tolerance = s.precision == PRECISION_FP32 ? 1e-4 : 1e-2;
            struct outcome wanted, found;
            struct plan plan = {0};
            char text[256];
            make_alone(&s, &plan);
            run(&plan, 0, (struct run_options){.delay_seed = 0}, &wanted);
            make_plan(&s, &plan);
            run(&plan, s.count - 1, (struct run_options){.delay_seed = n % 3 == 0 ? 0 : seed + n}, &found);
            for (uint32_t i = 0; i < s.count; i++)
                assert_int_equal(found.minibatches[i], s.pieces[i].first + s.pieces[i].count);
            assert_int_equal(found.minibatches[s.count], STEPS);
            for (uint32_t i = 0; i < STEPS; i++)
                if (keeping ? memcmp(&wanted.losses[i], &found.losses[i], sizeof(double)) != 0
                            : !(fabs(found.losses[i] / wanted.losses[i] - 1) <= tolerance))
                    fail_msg("%s: loss %u is %.17g, not %.17g", pieces_text(&s, text), i, found.losses[i], wanted.losses[i]);
            if (keeping && wanted.fingerprint != found.fingerprint) fail_msg("%s: other weights", pieces_text(&s, text));
            assert_true(found.evaluations >= wanted.evaluations); /* the end of each piece is evaluated */
            if (keeping && s.every > 0) assert_memory_equal(&found.last_evaluation, &wanted.last_evaluation, sizeof(double));
        }
}

static volatile bool stopped;

/* A training whose loss is not finite, or that is stopped, has no further pieces. */
static void test_pieces_that_end_early(void **state)
{
    (void)state;
    struct setting s = {.config = configs[0], .rate = 1e9, .count = 3,
                        .pieces = {{&ways[3], 0, 4}, {&ways[0], 4, 1}, {&ways[7], 5, 1}}};
    struct outcome found;
    struct plan plan = {0};
    make_plan(&s, &plan);
    run(&plan, 0, (struct run_options){.delay_seed = 3, .on_nan = RUN_NAN_STOP}, &found);
    assert_true(found.minibatches[0] < 5 && !isfinite(found.losses[found.minibatches[0] - 1]));
    assert_int_equal(found.minibatches[1], 0);
    assert_int_equal(found.minibatches[2], 0);
    s.rate = 0.01;
    make_plan(&s, &plan);
    stopped = true; /* before the first operation */
    run(&plan, 0, (struct run_options){.stop = &stopped}, &found);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(found.minibatches[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_one_training),
        cmocka_unit_test(test_pieces_that_end_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
