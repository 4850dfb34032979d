/*
 * Stages, replicas and microbatches chosen together (label: fast): simulated, no worse than any choice by hand; the
 * choices that memory and the wire leave; unequal replicas in closed form; refused jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { DEVICES = 4, LAYERS = 8 };

/* A machine, and a network of its own layers or a GPT's. */
struct scene {
    uint64_t memory;
    double rate;
    struct test_layer *layers; /* NULL: a GPT */
    uint64_t samples;          /* of a minibatch */
};

/* Gives all stages equal numbers of replicas. */
static struct parallel equal_stages(uint32_t stages)
{
    return (struct parallel){.pipeline = stages, .data = DEVICES / stages};
}

/* Gives stages the numbers of replicas in `digits`, such as "31". */
static struct parallel unequal_stages(const char *digits)
{
    struct parallel p = {.data = 1};
    for (; digits[p.pipeline]; p.pipeline++) p.replicas[p.pipeline] = (uint32_t)(digits[p.pipeline] - '0');
    p.replicated = p.pipeline;
    return p;
}

static enum status plan_scene(const struct scene *scene, struct parallel parallel, uint64_t microbatch,
                              uint32_t partition, struct plan *out, struct error *err)
{
    struct hardware hardware;
    struct job_set jobs;
    const struct planner_options options = {.weight_buffers = 0};
    test_parallel_machine(&hardware, DEVICES, scene->rate, 0);
    for (uint32_t d = 0; d < DEVICES; d++) hardware.devices[d].memory_bytes = scene->memory;
    if (scene->layers) test_profile_jobs(&jobs, 1, LAYERS, 2, test_layer_listed, scene->layers);
    else test_gpt_jobs(&jobs, 1, LAYERS, 64, 256, 2);
    struct job *job = &jobs.jobs[0];
    job->microbatch = microbatch;
    job->microbatches = scene->samples / microbatch;
    job->parallel = parallel;
    job->parallel.tensor = job->parallel.chunks = job->parallel.prefetch = 1;
    job->parallel.schedule = PIPELINE_1F1B;
    job->parallel.partition = partition;
    *out = (struct plan){0};
    return planner_plan(&hardware, &jobs, &options, out, err);
}

/* Returns 0 if the degrees do not fit or are invalid. */
static double scene_s(const struct scene *scene, struct parallel parallel, uint64_t microbatch, uint32_t partition,
                      struct parallel *chosen)
{
    struct plan plan;
    struct error err = {0};
    enum status status = plan_scene(scene, parallel, microbatch, partition, &plan, &err);
    if (status == STATUS_INFEASIBLE || (status == STATUS_BAD_INPUT && partition != PARALLEL_RANNC)) return 0;
    if (status) fail_msg("%s", err.text);
    const struct job *job = &plan.jobs.jobs[0];
    assert_int_equal(job->microbatch * job->microbatches, scene->samples);
    assert_int_equal(parallel_devices(&job->parallel), DEVICES);
    assert_int_equal(job->parallel.cuts, partition == PARALLEL_EQUAL ? 0 : job->parallel.pipeline);
    if (chosen) *chosen = job->parallel;
    double seconds = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return seconds;
}

/* The best of balanced cuts with any number of stages, any replicas of these, and microbatches of 1, 2, 4, ...
 * samples. */
static double by_hand_s(const struct scene *scene)
{
    static const char *const unequal[] = {"31", "13", "211", "121", "112"};
    double best_s = INFINITY;
    for (uint64_t b = 1; b <= (scene->layers ? 1 : scene->samples); b *= 2) {
        for (uint32_t stages = 1; stages <= DEVICES && scene->samples % b == 0; stages *= 2) {
            if (scene->samples / b % (DEVICES / stages) != 0) continue;
            double seconds = scene_s(scene, equal_stages(stages), b, PARALLEL_BALANCED, NULL);
            if (seconds > 0) best_s = fmin(best_s, seconds);
        }
        for (uint32_t i = 0; i < ARRAY_COUNT(unequal) && scene->samples % b == 0; i++) {
            double seconds = scene_s(scene, unequal_stages(unequal[i]), b, PARALLEL_BALANCED, NULL);
            if (seconds > 0) best_s = fmin(best_s, seconds);
        }
    }
    return isinf(best_s) ? 0 : best_s;
}

/* The planner's clock is close to the simulation, and therefore the choice is good: within a twentieth, and in most
 * cases the best. */
static void no_worse(void **state)
{
    (void)state;
    uint64_t seed = support_seed("no worse");
    uint32_t cases = 0, best = 0, degrees = 0, unequal = 0;
    for (uint32_t i = 0; i < 24; i++) {
        uint64_t key = random_u64(seed, i);
        struct test_layer layers[LAYERS];
        for (uint32_t l = 0; l < LAYERS; l++)
            layers[l] = (struct test_layer){.forward_ns = 100000 * (1 + random_below(key, 10 + l, 9)),
                                            .backward_ns = 100000 * (1 + random_below(key, 30 + l, 19)),
                                            .activation_bytes = 100000 * (1 + random_below(key, 50 + l, 9)),
                                            .parameter_bytes = 400000 * random_below(key, 70 + l, 9),
                                            .boundary_bytes = 10000};
        struct scene scene = {.memory = 12000000 + 4000000 * random_below(key, 1, 8),
                              .rate = i % 3 == 0 ? 1e8 : i % 3 == 1 ? 1e9 : 1e10,
                              .layers = i % 2 ? layers : NULL, .samples = 4u << random_below(key, 2, 3)};
        struct parallel chosen;
        double found_s = scene_s(&scene, equal_stages(1), 1, PARALLEL_RANNC, &chosen), hand_s = by_hand_s(&scene);
        if (!(found_s > 0)) continue; /* nothing has a margin */
        cases++;
        degrees |= 1u << chosen.pipeline;
        unequal += chosen.replicated > 0;
        best += found_s <= hand_s * (1 + 1e-9);
        if (found_s > hand_s * 1.05)
            fail_msg("seed %" PRIu64 ", case %u: %g s with %u stages, by hand %g s", seed, i, found_s, chosen.pipeline,
                     hand_s);
    }
    print_message("%u of %u are the best by hand, %u unequal\n", best, cases, unequal);
    assert_true(cases > 12 && best * 4 > cases * 3 && (degrees & (degrees - 1)));
}

/* A network whose gradients take long to exchange is cut into stages, and replicated where the wire costs nothing.
 * Weights that fit on no device leave nothing else either. */
static void decides(void **state)
{
    (void)state;
    struct parallel chosen;
    struct test_layer layers[LAYERS];
    for (uint32_t l = 0; l < LAYERS; l++)
        layers[l] = (struct test_layer){.forward_ns = 2000000, .backward_ns = 4000000, .activation_bytes = 1000,
                                        .parameter_bytes = 4000000, .boundary_bytes = 1000};
    struct scene scene = {.memory = UINT64_C(1) << 30, .rate = 1e13, .layers = layers, .samples = 8};
    assert_true(scene_s(&scene, equal_stages(1), 1, PARALLEL_RANNC, &chosen) > 0);
    assert_int_equal(chosen.pipeline, 1);
    assert_int_equal(chosen.data, DEVICES);
    scene.rate = 1e8; /* 32 MB: half a second, against 12 ms of a microbatch */
    assert_true(scene_s(&scene, equal_stages(1), 1, PARALLEL_RANNC, &chosen) > 0);
    assert_int_equal(chosen.pipeline, DEVICES);
    scene.rate = 1e13;
    scene.memory = 40000000; /* of 32 MB each of weights and gradients */
    assert_true(scene_s(&scene, equal_stages(4), 1, PARALLEL_RANNC, &chosen) > 0);
    assert_int_equal(chosen.pipeline, 2);
    assert_int_equal(chosen.data, 2);
}

/*
 * A layer of 12 + 24 ms before seven that take 12 ms together and have all the weights, 28 MB at 100 MB/s. Three
 * devices take the first layer in turn, so that both stages pass on a microbatch every 12 ms, and no device exchanges a
 * gradient: 12 ms until the last stage begins, 16 microbatches, 24 ms back. On one device the first stage would
 * take 16 * 36 ms.
 */
static void unequal(void **state)
{
    (void)state;
    struct test_layer layers[LAYERS] = {{.forward_ns = 12000000, .backward_ns = 24000000, .activation_bytes = 1000}};
    struct scene scene = {.memory = UINT64_C(1) << 30, .rate = 1e8, .layers = layers, .samples = 16};
    struct parallel chosen;
    for (uint32_t l = 1; l < LAYERS; l++)
        layers[l] = (struct test_layer){.forward_ns = 4000000 / 7, .backward_ns = 8000000 / 7, .activation_bytes = 1000,
                                        .parameter_bytes = 4000000};
    double seconds = scene_s(&scene, equal_stages(2), 1, PARALLEL_RANNC, &chosen) / 2; /* two minibatches */
    assert_int_equal(chosen.replicated, 2);
    assert_int_equal(chosen.replicas[0], 3);
    assert_int_equal(chosen.replicas[1], 1);
    assert_int_equal(chosen.cut_lengths[0], 1);
    if (fabs(seconds - 228e-3) > 1e-4) fail_msg("%.9g s", seconds);
    scene.rate = 1e13; /* a wire that costs nothing: four replicas of everything, 4 * 48 ms */
    assert_true(scene_s(&scene, equal_stages(2), 1, PARALLEL_RANNC, &chosen) < 2 * 193e-3);
    assert_int_equal(chosen.data, DEVICES);
}

static void refused(void **state)
{
    (void)state;
    struct test_layer layers[LAYERS];
    struct plan plan;
    struct error err = {0};
    for (uint32_t l = 0; l < LAYERS; l++)
        layers[l] = (struct test_layer){.forward_ns = 1000, .backward_ns = 1000, .parameter_bytes = 4000000,
                                        .activation_bytes = 1000};
    struct scene scene = {.memory = 1000000, .rate = 1e10, .layers = layers, .samples = 8};
    assert_int_equal(plan_scene(&scene, equal_stages(1), 1, PARALLEL_RANNC, &plan, &err), STATUS_INFEASIBLE);
    assert_non_null(strstr(err.text, "job 'job-0' fits on 4 devices with no number of stages"));
    struct job job = {.microbatches = 8};
    err = (struct error){0};
    assert_int_equal(parallel_parse_text("pp=2,dp=2,v=2", &job.parallel, &err), STATUS_OK);
    job.network = (struct network){.family = NETWORK_PROFILE, .layer_count = LAYERS};
    job.parallel.schedule = PIPELINE_INTERLEAVED;
    job.parallel.partition = PARALLEL_RANNC;
    assert_int_equal(parallel_check(&job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'partition' 'rannc' with schedule 'interleaved' of 2 chunks (expected '1f1b' of 1)");
    scene.memory = UINT64_C(1) << 30;
    struct hardware hardware;
    struct job_set jobs;
    const struct planner_options options = {.weight_buffers = 0};
    test_parallel_machine(&hardware, 3, 1e9, 0);
    test_profile_jobs(&jobs, 1, LAYERS, 2, test_layer_listed, layers);
    jobs.jobs[0].microbatches = 8;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 4, .chunks = 1,
                                              .schedule = PIPELINE_1F1B, .partition = PARALLEL_RANNC};
    err = (struct error){0};
    assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "job 'job-0' runs on devices 0 to 3, and machine 'made-up' has 3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_worse), cmocka_unit_test(decides), cmocka_unit_test(unequal),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("parallel_job_rannc", tests, NULL, NULL);
}
