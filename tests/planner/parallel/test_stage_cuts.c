/*
 * Cuts for stages whose replicas are given (planner/parallel/pipeline/stage_cuts.h; label: fast): against all cuts of
 * small chains, in plans that keep the replicas that were asked for, and where nothing fits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/parallel/pipeline/stage_cuts.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { LAYERS = 9, STAGES = 4 };

struct small {
    struct stage_layer layers[LAYERS];
    uint32_t replicas[STAGES];
    struct stage_chain chain;
    struct stage_cuts_request request;
};

static void random_case(struct small *x, uint64_t key)
{
    *x = (struct small){.chain = {"small", x->layers, 1 + (uint32_t)random_below(key, 0, LAYERS)}};
    x->request = (struct stage_cuts_request){.replicas = x->replicas,
                                             .stages = 1 + (uint32_t)random_below(key, 1, STAGES),
                                             .bytes_per_s = INFINITY};
    if (random_below(key, 2, 4)) x->request.bytes_per_s = 1 + (double)random_below(key, 3, 9);
    for (uint32_t s = 0; s < STAGES; s++) x->replicas[s] = 1 + (uint32_t)random_below(key, 5 + s, 5);
    for (uint32_t l = 0; l < LAYERS; l++)
        x->layers[l] = (struct stage_layer){.forward_s = (double)random_below(key, 10 + l, 9),
                                            .backward_s = (double)random_below(key, 30 + l, 20),
                                            .cut_bytes = random_below(key, 50 + l, 40),
                                            .weight_bytes = random_below(key, 70 + l, 60),
                                            .held_bytes = random_below(key, 90 + l, 60),
                                            .kept_bytes = random_below(key, 110 + l, 30)};
    if (random_below(key, 4, 2)) x->request.memory_bytes = 60 + random_below(key, 9, 400);
}

/* The slowest stage or boundary, cut as the bits say: bit l, after layer l. INFINITY: another number of stages, or
 * no room. */
static double slowest_s(const struct small *x, uint32_t cuts)
{
    uint32_t s = 0;
    double slowest = 0, work = 0, weights = 0;
    uint64_t held = 0, kept = 0;
    for (uint32_t l = 0; l < x->chain.count; l++) {
        const struct stage_layer *layer = &x->layers[l];
        bool ends = l + 1 == x->chain.count || (cuts >> l & 1);
        work += layer->forward_s + layer->backward_s;
        weights += (double)layer->weight_bytes;
        held += layer->held_bytes;
        kept += layer->kept_bytes;
        if (!ends) continue;
        if (s == x->request.stages) return INFINITY;
        double r = x->replicas[s], behind = 0;
        for (uint32_t t = s; t < x->request.stages; t++) behind += x->replicas[t];
        if (x->request.memory_bytes > 0 &&
            (double)held + ceil(behind / r) * (double)kept > (double)x->request.memory_bytes)
            return INFINITY;
        slowest = fmax(slowest, fmax(work / r, 2 * (r - 1) * weights / (x->request.bytes_per_s * r)));
        if (l + 1 < x->chain.count) slowest = fmax(slowest, 2.0 * (double)layer->cut_bytes / x->request.bytes_per_s);
        work = weights = 0;
        held = kept = 0;
        s++;
    }
    return s == x->request.stages ? slowest : INFINITY;
}

static void best_of_all_cuts(void **state)
{
    (void)state;
    uint64_t seed = support_seed("best of all cuts");
    uint32_t found_count = 0, none_count = 0;
    for (uint32_t c = 0; c < 2000; c++) {
        struct small x;
        struct arena arena = {0};
        struct error err = {0};
        struct stage_partition found;
        double best_s = INFINITY;
        random_case(&x, random_u64(seed, c));
        for (uint32_t cuts = 0; cuts < 1u << (x.chain.count - 1); cuts++) best_s = fmin(best_s, slowest_s(&x, cuts));
        enum status status = stage_cuts_find(&arena, &x.chain, &x.request, &found, &err);
        if (status != (isinf(best_s) ? STATUS_INFEASIBLE : STATUS_OK))
            fail_msg("case %u: status %d, best %g", c, (int)status, best_s);
        if (status == STATUS_OK) {
            uint32_t cuts = 0, next = 0;
            for (uint32_t s = 0; s < found.count; s++) {
                assert_int_equal(found.stages[s].first, next);
                assert_int_equal(found.stages[s].replicas, x.replicas[s]);
                next += found.stages[s].count;
                if (next < x.chain.count) cuts |= 1u << (next - 1);
            }
            assert_int_equal(next, x.chain.count);
            if (fabs(slowest_s(&x, cuts) - best_s) > 1e-12 * best_s || fabs(found.interval_s - best_s) > 1e-12 * best_s)
                fail_msg("case %u: %.17g, said to be %.17g, best %.17g", c, slowest_s(&x, cuts), found.interval_s,
                         best_s);
        }
        *(status == STATUS_OK ? &found_count : &none_count) += 1;
        arena_release(&arena);
    }
    assert_true(found_count > 200 && none_count > 200);
}

/* --- plans ------------------------------------------------------------------------------------ */

/*
 * Three layers of 8 s, six of 2 s, nothing to exchange. One device and then two, as asked: a cut after the first layer,
 * 8 and 28 / 2 s; PipeDream's programme by itself would have divided the three devices otherwise, all for all layers in
 * 36 / 3 s.
 */
static void replicas_are_kept(void **state)
{
    (void)state;
    struct test_layer layers[LAYERS];
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    static const uint32_t partitions[] = {PARALLEL_PIPEDREAM, PARALLEL_BALANCED};
    for (uint32_t l = 0; l < LAYERS; l++)
        layers[l] = (struct test_layer){.forward_ns = l < 3 ? 3000000000 : 1000000000,
                                        .backward_ns = l < 3 ? 5000000000 : 1000000000, .boundary_bytes = 64};
    for (size_t c = 0; c < ARRAY_COUNT(partitions); c++) {
        double end_s[2];
        for (uint32_t i = 0; i < 2; i++) {
            test_parallel_machine(&hardware, 3, 1e9, 0);
            test_profile_jobs(&jobs, 1, LAYERS, i == 0 ? 30 : 60, test_layer_listed, layers);
            jobs.jobs[0].microbatches = 1;
            jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1,
                                                      .schedule = PIPELINE_PIPEDREAM, .partition = partitions[c],
                                                      .replicated = 2, .replicas = {1, 2}};
            if (planner_plan(&hardware, &jobs, &options, &plan, &err)) fail_msg("%s", err.text);
            const struct parallel *p = &plan.jobs.jobs[0].parallel;
            assert_int_equal(p->replicated, 2);
            assert_int_equal(p->replicas[0], 1);
            assert_int_equal(p->replicas[1], 2);
            assert_int_equal(p->cut_lengths[0], 1);
            end_s[i] = test_parallel_simulate(&plan, false).makespan_s;
            plan_release(&plan);
        }
        if (fabs((end_s[1] - end_s[0]) / 30 - 14) > 1e-6) fail_msg("%.17g", (end_s[1] - end_s[0]) / 30);
    }
}

/* --- what does not fit ------------------------------------------------------------------------ */

static void nothing_fits(void **state)
{
    (void)state;
    static const uint32_t replicas[] = {2, 1, 1, 1};
    struct stage_layer layers[3] = {{.forward_s = 1, .held_bytes = 1 << 20, .kept_bytes = UINT64_C(1) << 63},
                                    {.forward_s = 1}, {.forward_s = 1}};
    const struct stage_chain chain = {"three", layers, 3};
    const struct {
        uint32_t stages;
        uint64_t memory_bytes;
        const char *message;
    } cases[] = {{4, 0, "'three' has 3 layers for 4 stages"},
                 {2, 1 << 19, "no cut of 'three' into 2 stages fits workers with 512 KiB each"},
                 /* 2 minibatches of 2^63 bytes are none with 64 bits */
                 {2, 1 << 21, "no cut of 'three' into 2 stages fits workers with 2 MiB each"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct stage_partition found;
        const struct stage_cuts_request request = {.replicas = replicas, .stages = cases[i].stages,
                                                   .bytes_per_s = INFINITY,
                                                   .memory_bytes = cases[i].memory_bytes};
        assert_int_equal(stage_cuts_find(&arena, &chain, &request, &found, &err), STATUS_INFEASIBLE);
        assert_string_equal(err.text, cases[i].message);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_of_all_cuts),
        cmocka_unit_test(replicas_are_kept),
        cmocka_unit_test(nothing_fits),
    };
    return cmocka_run_group_tests_name("planner/parallel/pipeline/stage_cuts.h", tests, NULL, NULL);
}
