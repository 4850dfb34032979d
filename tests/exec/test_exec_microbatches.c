/*
 * Several microbatches in a minibatch: the same training as one large microbatch, but for rounding.
 *
 * test_contract.c checks that the bits do not depend on shards, places and neighbours. The tests of the
 * families check that a single microbatch's gradients are right. This test checks the sum: the
 * same samples, taken 6 at once, or in 2, 3 or 6 parts, must give the same losses and weights to the
 * precision of a float, for families whose mean loss over all samples is the mean of the parts'.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "exec/run/run.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"

enum { STEPS = 5, SAMPLES = 6 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, "
    "\"n_positions\": 32, \"vocab_size\": 131}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 32, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 88, "
    "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 2, \"hidden_size\": 32, "
    "\"num_attention_heads\": 4, \"intermediate_size\": 64, \"image_size\": 16, \"patch_size\": 4, "
    "\"num_labels\": 10}",
};

/* Makes two jobs, with adamw and sgd. */
static void make_jobs(const char *config, uint64_t parts, double rate, struct job_set *out)
{
    test_network_jobs(out, 2, config, STEPS);
    for (uint32_t j = 0; j < 2; j++) {
        out->jobs[j].microbatches = parts;
        out->jobs[j].microbatch = SAMPLES / parts;
        out->jobs[j].optimizer.learning_rate = j == 0 ? 0.005 : rate;
    }
}

static void train(const char *config, uint64_t parts, double rate, uint32_t place,
                  double losses[2][STEPS])
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {
        .activations = PLANNER_AUTO, .optimizer = place, .shards = 3};
    test_hardware(&hardware, 1, 1 << 22, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    make_jobs(config, parts, rate, &jobs);
    enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (!status) status = run_plan(&plan, &(struct run_options){.poison = true}, &result, &trace, &err);
    if (status) fail_msg("%s", err.text);
    for (uint32_t j = 0; j < 2; j++)
        memcpy(losses[j], result.jobs[j].losses, sizeof losses[j]);
    assert_int_equal(trace.jobs[0].samples, STEPS * SAMPLES);
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

static void test_parts_are_the_whole(void **state)
{
    (void)state;
    double worst = 0, least = 1;
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        double whole[2][STEPS], larger[2][STEPS];
        train(configs[c], 1, 0.5, PLANNER_PLACE_DEVICE, whole);
        /* gradients that were off by a tenth would show in sgd's losses */
        train(configs[c], 1, 0.55, PLANNER_PLACE_DEVICE, larger);
        least = fmin(least, fabs(larger[1][STEPS - 1] / whole[1][STEPS - 1] - 1));
        for (uint64_t parts = 2; parts <= SAMPLES; parts++) {
            if (SAMPLES % parts) continue;
            double losses[2][STEPS];
            train(configs[c], parts, 0.5, (uint32_t)parts % PLANNER_PLACE_COUNT, losses);
            for (uint32_t j = 0; j < 2; j++)
                for (uint32_t i = 0; i < STEPS; i++)
                    worst = fmax(worst, fabs(losses[j][i] - whole[j][i]) / whole[j][i]);
        }
    }
    print_message("largest relative difference of a loss: %.2g; of a gradient a tenth larger: %.2g\n",
                  worst, least);
    assert_true(worst < 2e-5);
    assert_true(least > 10 * worst);
}

/* The link carries parameters and gradients once for all microbatches; boundaries grow with them. */
static void test_bytes(void **state)
{
    (void)state;
    double moved[2];
    for (uint64_t k = 0; k < 2; k++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.activations = ACTIVATIONS_RECOMPUTE, .shards = 4};
        test_hardware(&hardware, 1, 1 << 22, 1e9);
        test_gpt_jobs(&jobs, 1, 2, 64, 131, 1);
        jobs.jobs[0].microbatch = 2;
        jobs.jobs[0].microbatches = 1 + 3 * k;
        enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
        if (status) fail_msg("%s", err.text);
        moved[k] = 0;
        for (uint32_t o = 0; o < plan.op_count; o++)
            if (plan.ops[o].kind == OP_COPY && plan.ops[o].stream == STREAM_H2D)
                moved[k] += (double)plan.ops[o].bytes;
        plan_release(&plan);
    }
    /* in: a batch each for embedding twice and head; boundary 2; the gradient of boundary 1 is made
     * and used on the device, as is boundary 1 but for recomputing */
    double batch = 2 * 17 * 4, boundary = 2 * 16 * 64 * 4;
    assert_true(fabs(moved[1] - moved[0] - 3 * (3 * batch + 2 * boundary)) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests_name("microbatches", tests, NULL, NULL);
}
