/*
 * Chunks of layers of unequal length (label: fast): balanced ones are the best of all cuts and simulate so, given ones
 * are what plans have, memory decides, wrong ones are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { LAYERS = 9 };

static uint64_t time_of(const struct test_layer *layer)
{
    return layer->forward_ns + layer->backward_ns;
}

/* The slowest of `stages` chunks of layers from `first` on, at best. */
static uint64_t best_ns(const struct test_layer layers[LAYERS], uint32_t first, uint32_t stages)
{
    uint64_t best = UINT64_MAX, own = 0;
    for (uint32_t end = first + 1; end + stages - 1 <= LAYERS; end++) {
        own += time_of(&layers[end - 1]);
        if (stages == 1 && end < LAYERS) continue;
        uint64_t rest = stages > 1 ? best_ns(layers, end, stages - 1) : 0, slowest = own > rest ? own : rest;
        if (slowest < best) best = slowest;
    }
    return best;
}

static void job_of(struct test_layer *layers, uint32_t stages, uint32_t partition, uint64_t minibatches,
                   struct job_set *jobs)
{
    test_profile_jobs(jobs, 1, LAYERS, minibatches, test_layer_listed, layers);
    jobs->jobs[0].microbatches = 1;
    jobs->jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = stages, .data = 1, .chunks = 1,
                                               .schedule = PIPELINE_PIPEDREAM, .partition = partition};
}

static double makespan_s(struct test_layer *layers, uint32_t stages, uint32_t partition, uint64_t minibatches)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    test_parallel_machine(&hardware, stages, 1e12, 0);
    job_of(layers, stages, partition, minibatches, &jobs);
    test_parallel_plan(&hardware, &jobs, &plan);
    double seconds = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return seconds;
}

/* Without a flush only the slowest stage counts in the long run: 200 minibatches more take 200 times the best
 * slowest chunk of all cuts. */
static void balanced_is_best(void **state)
{
    (void)state;
    uint64_t seed = support_seed("balanced is best");
    uint32_t faster = 0;
    for (uint32_t c = 0; c < 40; c++) {
        uint64_t key = random_u64(seed, c);
        struct test_layer layers[LAYERS];
        uint32_t stages = 1 + (uint32_t)random_below(key, 0, 4);
        for (uint32_t l = 0; l < LAYERS; l++)
            layers[l] = (struct test_layer){.forward_ns = 1000 * (1 + random_below(key, 10 + l, 30)),
                                            .backward_ns = 1000 * (1 + random_below(key, 30 + l, 60)),
                                            .parameter_bytes = 64};
        /* a stage that is a microsecond quicker, and whose neighbours fill later, binds for the first hundreds */
        double few_s = makespan_s(layers, stages, PARALLEL_BALANCED, 500);
        double many_s = makespan_s(layers, stages, PARALLEL_BALANCED, 700),
            best_s = 1e-9 * (double)best_ns(layers, 0, stages);
        if (fabs(many_s - few_s - 200 * best_s) > 1e-9 * many_s)
            fail_msg("case %u: %.17g a minibatch, best %.17g", c, (many_s - few_s) / 200, best_s);
        faster += many_s < 0.999 * makespan_s(layers, stages, PARALLEL_EQUAL, 700);
    }
    assert_true(faster > 2);
}

/* One heavy layer after three light ones: neither equal chunks of 1F1B fit, nor chunks balanced by time, but some cut
 * does. */
static void within_memory(void **state)
{
    (void)state;
    struct test_layer layers[LAYERS];
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    for (uint32_t l = 0; l < LAYERS; l++) /* weights, gradients and whatever the optimizer has are the same for each */
        layers[l] = (struct test_layer){.forward_ns = l < 3 ? 1000 : 9000, .backward_ns = l < 3 ? 1000 : 9000,
                                        .activation_bytes = l < 3 ? 1 << 20 : 64, .parameter_bytes = 64};
    for (uint32_t partition = 0; partition < 2; partition++) {
        test_parallel_machine(&hardware, 3, 1e12, 0);
        /* the first of three stages keeps three microbatches of each of its layers: two heavy ones are 6 MiB */
        for (uint32_t d = 0; d < 3; d++) hardware.devices[d].memory_bytes = 7 << 20;
        job_of(layers, 3, partition, 2, &jobs);
        jobs.jobs[0].microbatches = 6;
        jobs.jobs[0].parallel.schedule = PIPELINE_1F1B;
        enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
        if (partition == PARALLEL_EQUAL) {
            assert_int_equal(status, STATUS_INFEASIBLE);
            assert_non_null(strstr(err.text, "bytes missing"));
            err = (struct error){0};
            continue;
        }
        if (status) fail_msg("%s", err.text);
        assert_true(plan.jobs.jobs[0].parallel.cut_lengths[0] <= 2);
        plan_release(&plan);
    }
}

/*
 * PipeDream's: three layers of 8 s without weights, then six of 2 s whose weights take 4 s each to cross a link. On
 * three devices two of them take the first layers in turn and one the rest: 24 / 2 and 12 s between minibatches, as
 * divided, planned, checked and simulated. Three replicas of all layers would exchange for 2 * 2 * 24 / 3 s.
 */
static void divided_among_replicas(void **state)
{
    (void)state;
    const double rate = 1e9;
    struct test_layer layers[LAYERS];
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    for (uint32_t l = 0; l < LAYERS; l++)
        layers[l] = (struct test_layer){.forward_ns = l < 3 ? 3000000000 : 1000000000,
                                        .backward_ns = l < 3 ? 5000000000 : 1000000000,
                                        .parameter_bytes = l < 3 ? 0 : 4000000000, .boundary_bytes = 64};
    double end_s[2];
    for (uint32_t i = 0; i < 2; i++) {
        test_parallel_machine(&hardware, 3, rate, 0);
        job_of(layers, 1, PARALLEL_PIPEDREAM, i == 0 ? 20 : 60, &jobs);
        jobs.jobs[0].parallel.replicated = 1;
        jobs.jobs[0].parallel.replicas[0] = 3;
        if (i == 0) { /* 20 minibatches on three replicas, before any choice */
            assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
            assert_string_equal(err.text, "20 minibatches on 3 replicas of stage 0 (expected a multiple)");
            err = (struct error){0};
            jobs.jobs[0].minibatches = 30;
        }
        if (planner_plan(&hardware, &jobs, &options, &plan, &err)) fail_msg("%s", err.text);
        const struct parallel *p = &plan.jobs.jobs[0].parallel;
        assert_int_equal(p->pipeline, 2);
        assert_int_equal(p->replicated, 2);
        assert_int_equal(p->replicas[0], 2);
        assert_int_equal(p->replicas[1], 1);
        assert_int_equal(p->cut_lengths[0], 3);
        assert_int_equal(p->cut_lengths[1], LAYERS - 3);
        end_s[i] = test_parallel_simulate(&plan, false).makespan_s;
        plan_release(&plan);
    }
    if (fabs((end_s[1] - end_s[0]) / 30 - 12) > 1e-6) fail_msg("%.17g", (end_s[1] - end_s[0]) / 30);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t cuts, lengths[3];
        const char *message;
    } cases[] = {
        {3, {1, 1, 2}, "'cut' into 3 chunks of layers (expected 2: stages times chunks)"},
        {2, {1, 2, 0}, "'cut' of 3 blocks in all (expected 4)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct error err = {0};
        test_gpt_jobs(&jobs, 1, 4, 64, 256, 2);
        struct parallel *p = &jobs.jobs[0].parallel;
        *p = (struct parallel){.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B,
                               .cuts = cases[i].cuts};
        memcpy(p->cut_lengths, cases[i].lengths, sizeof cases[i].lengths);
        assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_is_best), cmocka_unit_test(within_memory),
        cmocka_unit_test(divided_among_replicas), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
