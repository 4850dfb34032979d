/* label: medium
 * Stages with unequal numbers of replicas have one device's losses and weights to rounding.
 *
 * For every family, random numbers of replicas of each stage, schedules, microbatches that do not divide evenly, buckets,
 * tensor groups, ways to recompute, clipping and evaluations, with random pauses on every stream and NaN in all memory that
 * was released: the plan passes its check, and the run has the losses and the last checkpoint of the job spilled on one
 * device, to rounding. Another synchronous schedule with the same replicas has the same bits. Checkpoints do not show the
 * replicas: a job that stopped under one cut goes on under another, or spilled.
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
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_checkpoints.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { STEPS = 4, CASES = 8, STAGES_MAX = 3 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 24, \"n_head\": 4, \"n_positions\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 24, \"n_head\": 4, \"n_positions\": 16, \"vocab_size\": 61, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

struct setting {
    const char *config;
    struct parallel parallel; /* tensor 0: spilled on one device */
    uint64_t microbatches, first, last; /* first: minibatches that are done; last: the job's minibatches */
    uint32_t precision;
    double clip;              /* 0: none */
    uint64_t every, held_out; /* minibatches between evaluations, 0: none; and of each */
};

static char *setting_text(const struct setting *s, char text[256])
{
    char how[PARALLEL_TEXT_BYTES];
    snprintf(text, 256, "%.60s... %s, %s, recompute %s, %u microbatches, precision %u, clip %g, evaluation %u", s->config,
             s->parallel.tensor > 0 ? parallel_text(&s->parallel, how) : "spilled",
             pipeline_schedule_names[s->parallel.schedule], recompute_names[s->parallel.recompute], (unsigned)s->microbatches,
             s->precision, s->clip, (unsigned)s->every);
    return text;
}

static void make_plan(const struct setting *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    char text[256];
    const bool spilled = s->parallel.tensor == 0;
    test_hardware(&hardware, spilled ? 1 : (uint32_t)parallel_devices(&s->parallel), 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    test_network_jobs(&jobs, 1, s->config, STEPS);
    struct job *job = &jobs.jobs[0];
    job->microbatch = 2;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->optimizer.kind = OPTIMIZER_MOMENTUM;
    job->optimizer.learning_rate = 0.01;
    job->optimizer.clip = s->clip;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = s->held_out};
    job->first_minibatch = s->first;
    job->minibatches = s->last - s->first;
    job->parallel = s->parallel;
    const struct planner_options options = {.policy = spilled ? "spill-sequential" : NULL, .shards = 3,
                                            .activations = PLANNER_AUTO,
                                            .optimizer = s->clip > 0 ? PLANNER_AUTO : PLANNER_PLACE_DEVICE};
    enum status status = parallel_check(job, &err);
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (status) fail_msg("%s: %s", setting_text(s, text), err.text);
    if (!spilled) assert_true(parallel_is_carried_out(&plan->jobs.jobs[0].parallel));
}

struct outcome {
    double losses[STEPS];
    uint64_t fingerprint, minibatches;
    struct evaluation_progress evaluations[STEPS];
    uint64_t evaluation_count;
};

/* Carries the setting out with checkpoints in `folder`, if it is given. */
static void carry_out(const struct setting *s, const char *folder, uint64_t delay_seed, struct outcome *out)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    char text[256];
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = 100, .each = true};
    const struct run_options options = {.poison = true, .delay_seed = delay_seed, .record_spans = true,
                                        .checkpoints = folder ? &checkpoints : NULL};
    make_plan(s, &plan);
    if (run_plan(&plan, &options, &result, &trace, &err)) fail_msg("%s: %s", setting_text(s, text), err.text);
    if (trace_check(&trace, &err)) fail_msg("%s: %s", setting_text(s, text), err.text);
    assert_int_equal(trace.span_count, plan_operations(&plan));
    *out = (struct outcome){.fingerprint = result.jobs[0].weights_fingerprint, .minibatches = result.jobs[0].minibatches};
    memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
    out->evaluation_count = result.jobs[0].evaluation_count;
    assert_true(out->evaluation_count <= STEPS);
    memcpy(out->evaluations, result.jobs[0].evaluations, out->evaluation_count * sizeof *out->evaluations);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
}

static void compare_losses(const struct setting *s, const struct outcome *wanted, const struct outcome *found)
{
    const double tolerance = s->precision == PRECISION_FP32 ? 1e-5 : 1e-2;
    char text[256];
    assert_int_equal(found->minibatches, s->last);
    for (uint64_t i = 0; i < s->last; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= tolerance))
            fail_msg("%s: loss %u is %.9g (expected %.9g)", setting_text(s, text), (unsigned)i, found->losses[i],
                     wanted->losses[i]);
    assert_int_equal(found->evaluation_count, wanted->evaluation_count);
    for (uint64_t i = 0; i < found->evaluation_count; i++)
        if (!(fabs(found->evaluations[i].loss / wanted->evaluations[i].loss - 1) <= tolerance))
            fail_msg("%s: evaluation %u is %.9g (expected %.9g)", setting_text(s, text), (unsigned)i,
                     found->evaluations[i].loss, wanted->evaluations[i].loss);
}

static void assert_same_bits(const struct setting *s, const struct outcome *wanted, const struct outcome *found)
{
    char text[256];
    assert_int_equal(found->minibatches, wanted->minibatches);
    if (memcmp(found->losses, wanted->losses, found->minibatches * sizeof *found->losses) != 0)
        fail_msg("%s: other losses", setting_text(s, text));
    for (uint64_t i = 0; i < found->evaluation_count; i++)
        if (memcmp(&found->evaluations[i].loss, &wanted->evaluations[i].loss, sizeof(double)) != 0)
            fail_msg("%s: another evaluation %u", setting_text(s, text), (unsigned)i);
    if (found->fingerprint != wanted->fingerprint) fail_msg("%s: other weights", setting_text(s, text));
}

static void compare_checkpoints(const struct setting *s, const char *wanted, const char *found)
{
    struct job_set jobs;
    char text[256];
    test_network_jobs(&jobs, 1, s->config, STEPS);
    support_checkpoints_compare(&jobs.jobs[0].network, wanted, found, s->last, setting_text(s, text));
    job_set_release(&jobs);
}

/* Jobs of bert and vit do not clip. */
static bool network_is_clipped(const char *config)
{
    return !strstr(config, "bert") && !strstr(config, "vit");
}

/* Draws what does not change the bits of given replicas: a synchronous schedule, buckets, and what is recomputed. */
static void draw_way(uint64_t seed, uint64_t n, struct parallel *p)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    p->schedule = random_below(seed, n, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE;
    p->buckets = p->pipeline > 1 ? 1 + (uint32_t)random_below(seed, n + 1, 2) : 1;
    p->recompute = recompute[random_below(seed, n + 2, 4)];
    p->blocking = random_below(seed, n + 3, 4) == 0;
}

static struct setting draw(uint64_t seed, uint64_t n, const char *config)
{
    const uint64_t at = 40 * n;
    struct setting s = {.config = config, .last = STEPS};
    struct parallel *p = &s.parallel;
    uint64_t least = 1;
    *p = (struct parallel){.tensor = random_below(seed, at, 4) == 0 ? 2 : 1,
                           .pipeline = 1 + (uint32_t)random_below(seed, at + 1, STAGES_MAX), .data = 1, .prefetch = 1, .chunks = 1};
    p->replicated = p->pipeline;
    for (uint32_t i = 0; i < p->pipeline; i++) {
        p->replicas[i] = 1 + (uint32_t)random_below(seed, at + 2 + i, 4);
        if (p->replicas[i] > least) least = p->replicas[i];
    }
    draw_way(seed, at + 6, p);
    s.microbatches = least + random_below(seed, at + 10, 6);
    s.precision = random_below(seed, at + 11, 4) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
    if (random_below(seed, at + 12, 2) && network_is_clipped(config)) s.clip = 0.05 + 0.5 * random_unit(seed, at + 13);
    s.every = random_below(seed, at + 14, 4);
    s.held_out = s.every > 0 ? 1 + random_below(seed, at + 15, 3) : 0;
    return s;
}

static void test_one_device(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("replicas");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            struct setting s = draw(seed, c * CASES + n, configs[c]), alone = s;
            struct outcome wanted, found, again;
            char text[256], one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
            support_folder_make(one);
            support_folder_make(many);
            print_message("%s\n", setting_text(&s, text));
            alone.parallel = (struct parallel){0};
            carry_out(&alone, one, 0, &wanted);
            carry_out(&s, many, n % 3 == 0 ? 0 : seed + n, &found);
            compare_losses(&s, &wanted, &found);
            if (s.precision == PRECISION_FP32) compare_checkpoints(&s, one, many);
            if (s.parallel.tensor == 1) draw_way(seed, 1000000 + 8 * (c * CASES + n), &s.parallel);
            carry_out(&s, NULL, seed + 1000 + n, &again);
            assert_same_bits(&s, &found, &again);
            support_folder_remove(one);
            support_folder_remove(many);
        }
}

/* Each cut trains a minibatch and leaves the job to the next one. */
static void test_other_cuts_go_on(void **state)
{
    (void)state;
    const struct parallel cuts[] = {
        {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .replicated = 2, .replicas = {2, 1}},
        {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1, .zero = ZERO_STATES, .schedule = PIPELINE_1F1B},
        {.tensor = 2, .pipeline = 3, .data = 1, .chunks = 1, .prefetch = 1, .replicated = 3, .replicas = {1, 3, 2},
         .schedule = PIPELINE_1F1B},
        {.tensor = 0},
    };
    static_assert(ARRAY_COUNT(cuts) == STEPS, "one for each minibatch");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        struct setting s = {.config = configs[c], .microbatches = 4, .last = STEPS};
        struct outcome wanted, found = {0};
        char one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
        support_folder_make(one);
        support_folder_make(many);
        carry_out(&s, one, 0, &wanted);
        for (uint64_t i = 0; i < ARRAY_COUNT(cuts); i++) {
            s.parallel = cuts[(i + c) % ARRAY_COUNT(cuts)];
            s.first = i;
            s.last = i + 1;
            carry_out(&s, many, 9 + i, &found);
            compare_losses(&s, &wanted, &found);
        }
        compare_checkpoints(&s, one, many);
        support_folder_remove(one);
        support_folder_remove(many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_other_cuts_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
