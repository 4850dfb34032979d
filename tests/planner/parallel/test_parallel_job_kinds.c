/*
 * Machines with devices of several kinds (label: fast): the parts that they are put together from, pipelines and
 * replicas over two kinds against closed forms, cuts against all there are, memory device by device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "models/cost/cost.h"
#include "models/job/parallel_work.h"
#include "planner/parallel/pipeline/stage_partition.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

#define FOUR "2x h100-sxm5-80gb + 2x v100-sxm2-32gb"
#define TURNED "2x v100-sxm2-32gb + 2x h100-sxm5-80gb"

static void find(const char *name, struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    if (hardware_find(name, out, &err) || hardware_check(out, &err)) fail_msg("%s", err.text);
}

/* --- machines -------------------------------------------------------------------------------- */

static void machines(void **state)
{
    (void)state;
    struct hardware all, alone;
    find("2x a100-sxm4-80gb + 3x v100-sxm2-32gb + a100-sxm4-80gb", &all);
    assert_string_equal(all.name, "2x a100-sxm4-80gb + 3x v100-sxm2-32gb + a100-sxm4-80gb");
    assert_int_equal(all.device_count, 6);
    assert_int_equal(all.type_count, 2);
    assert_true(fabs(all.host_bytes.value - 6 * 128 * 0x1p30) < 1);
    assert_int_equal(all.host_cores, 96);
    for (uint32_t a = 0; a < all.link_count; a++)
        for (uint32_t b = 0; b < a; b++) assert_string_not_equal(all.links[a].name, all.links[b].name);
    for (uint32_t a = 0; a < 6; a++)
        for (uint32_t b = 0; b < 6; b++)
            assert_int_equal(hardware_p2p_pair(&all, a, b), a != b && a < 2 && b < 2); /* by NVLink */
    find("3x v100-sxm2-32gb", &alone);
    for (uint32_t d = 0; d < 3; d++) {
        assert_int_equal(all.devices[2 + d].memory_bytes, alone.devices[d].memory_bytes);
        test_parallel_near(cost_copy_s(&all, 2 + d, COPY_H2D, 2385000), cost_copy_s(&alone, d, COPY_H2D, 2385000));
    }
    hardware_release(&alone);
    find("2x a100-sxm4-80gb", &alone);
    test_parallel_near(cost_p2p_s(&all, 0, 1, 2385000), cost_p2p_s(&alone, 0, 1, 2385000));
    hardware_release(&alone);
    hardware_release(&all);
}

/* Nodes of two kinds copy at the slower NIC's rate; nodes of one kind copy as if there were no others. */
static void clusters(void **state)
{
    (void)state;
    struct hardware all, alone;
    find("dgx-h100 + 2x dgx-a100-80gb", &all);
    find("2x dgx-a100-80gb", &alone);
    assert_int_equal(all.device_count, 24);
    test_parallel_near(cost_p2p_bandwidth(&all, 0, 9), 22.5e9);
    for (uint32_t d = 1; d < 16; d++)
        test_parallel_near(cost_p2p_s(&all, 8, 8 + d, 2385000), cost_p2p_s(&alone, 0, d, 2385000));
    hardware_release(&alone);
    hardware_release(&all);
}

/* --- pipelines ------------------------------------------------------------------------------- */

/* Lets all devices copy to each other at once. */
static void at_once(struct hardware *hardware)
{
    struct error err = {0};
    uint32_t before = hardware->link_count;
    const struct hardware_options options = {.p2p_bytes_per_s = 1e18};
    if (hardware_adjust(hardware, &options, &err)) fail_msg("%s", err.text);
    for (uint32_t l = before; l < hardware->link_count; l++) hardware->links[l].latency.value = 0;
    for (uint32_t t = 0; t < hardware->type_count; t++) hardware->types[t].collective_latency.value = 0;
}

static void job_of(struct job_set *jobs, uint32_t blocks, struct parallel parallel, uint32_t microbatches)
{
    test_gpt_jobs(jobs, 1, blocks, 1024, 256, 1);
    jobs->jobs[0].parallel = parallel;
    jobs->jobs[0].microbatches = microbatches;
}

static double pass_s(const struct plan *plan, uint32_t device, struct parallel_layers layers, enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(&plan->jobs.jobs[0], layers, pass, items);
    return cost_work_s(&plan->hardware, device, items, count, NULL);
}

/* Returns the times of a chunk's passes on a device. */
static struct test_parallel_stage stage_of(const struct plan *plan, uint32_t device, struct parallel_layers layers)
{
    return (struct test_parallel_stage){pass_s(plan, device, layers, PARALLEL_FORWARD),
                                        pass_s(plan, device, layers, PARALLEL_INPUT) +
                                            pass_s(plan, device, layers, PARALLEL_WEIGHT),
                                        pass_s(plan, device, layers, PARALLEL_UPDATE)};
}

static void plan_on(const char *machine, uint32_t blocks, struct parallel parallel, uint32_t microbatches,
                    struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    find(machine, &hardware);
    at_once(&hardware);
    job_of(&jobs, blocks, parallel, microbatches);
    test_parallel_plan(&hardware, &jobs, out);
}

/*
 * Where the last stage is the slowest, it waits for the first microbatch and never again: the fill and the drain of all
 * others, m passes there and back of its own, and then the step of whatever stage ends last. The last stage's waits for
 * the first, whose part of the tied table's gradient is complete last. The other way round by a recurrence.
 */
static void two_kinds(void **state)
{
    (void)state;
    struct parallel p = {.tensor = 1, .pipeline = 4, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B};
    for (uint32_t m = 4; m <= 24; m += 5)
        for (uint32_t turned = 0; turned <= 1; turned++) {
            struct plan plan;
            struct test_parallel_stage of[4];
            plan_on(turned ? TURNED : FOUR, 4, p, m, &plan);
            for (uint32_t s = 0; s < 4; s++) of[s] = stage_of(&plan, s, parallel_layers(&plan.jobs.jobs[0], s));
            double found_s = test_parallel_simulate(&plan, false).makespan_s;
            test_parallel_near(found_s, test_parallel_1f1b_s(of, 4, m, plan.jobs.jobs[0].network.tied_head));
            double bottleneck_s = of[3].forward_s + of[3].backward_s, closed_s = m * bottleneck_s, last_s = 0;
            for (uint32_t s = 3; s-- > 0;) {
                closed_s += of[s].forward_s + of[s].backward_s;
                if (!turned) assert_true(of[s].forward_s < of[3].forward_s && of[s].backward_s < of[3].backward_s);
            }
            last_s = closed_s + of[3].update_s;
            for (uint32_t s = 0; s < 3; s++) {
                last_s = fmax(last_s, closed_s + of[s].update_s);
                closed_s -= of[s].backward_s;
            }
            if (!turned) test_parallel_near(found_s, last_s);
            assert_true(plan.lower_bound_s <= found_s * (1 + 1e-9));
            plan_release(&plan);
        }
}

/* A stage of two kinds is as slow as two of its slowest device. It is not folded; stages of one kind are. */
static void mixed_replicas(void **state)
{
    (void)state;
    struct parallel p = {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B};
    struct plan mixed, slow, fast;
    plan_on("h100-sxm5-80gb + v100-sxm2-32gb", 4, p, 6, &mixed);
    plan_on("2x v100-sxm2-32gb", 4, p, 6, &slow);
    plan_on("2x h100-sxm5-80gb", 4, p, 6, &fast);
    struct test_parallel_outcome a = test_parallel_simulate(&mixed, false), b = test_parallel_simulate(&slow, false);
    test_parallel_near(a.makespan_s, b.makespan_s);
    test_parallel_near(mixed.estimated_makespan_s, slow.estimated_makespan_s);
    test_parallel_near(mixed.lower_bound_s, slow.lower_bound_s);
    assert_int_equal(a.represented, 0);
    assert_int_equal(b.represented, 1);
    assert_true(test_parallel_simulate(&fast, false).makespan_s < 0.9 * a.makespan_s);
    plan_release(&mixed);
    plan_release(&slow);
    plan_release(&fast);
}

/* --- cuts ------------------------------------------------------------------------------------ */

enum { LAYERS = 8, STAGES_MAX = 4 };

struct cut {
    double slowest_s, squares;
};

/* The best of all cuts of the layers from `first` on into the stages from `stage` on, with at most `limit_s` each:
 * by the slowest stage, or the sum of squares. */
static double best_cut(const struct stage_request *request, const struct stage_chain *memory, uint32_t stage,
                       uint32_t first, double limit_s, bool squares)
{
    const struct stage_layer *of = request->chain_of_stage[stage]->layers;
    uint32_t behind = request->stages - 1 - stage;
    double own_s = 0, best = INFINITY;
    uint64_t bytes = 0;
    for (uint32_t end = first + 1; end + behind <= LAYERS; end++) {
        own_s += of[end - 1].forward_s + of[end - 1].backward_s;
        bytes += memory->layers[end - 1].held_bytes + (behind + 1) * memory->layers[end - 1].kept_bytes;
        if ((behind == 0 && end < LAYERS) || bytes > request->memory_of_stage[stage] || own_s > limit_s) continue;
        double rest = behind > 0 ? best_cut(request, memory, stage + 1, end, limit_s, squares) : 0;
        best = fmin(best, squares ? own_s * own_s + rest : fmax(own_s, rest));
    }
    return best;
}

static void cuts(void **state)
{
    (void)state;
    uint64_t seed = support_seed("cuts of kinds");
    uint32_t fitting = 0;
    for (uint32_t c = 0; c < 300; c++) {
        uint64_t key = random_u64(seed, c), memory[STAGES_MAX];
        struct stage_layer layers[STAGES_MAX][LAYERS];
        struct stage_chain chains[STAGES_MAX];
        const struct stage_chain *of_stage[STAGES_MAX];
        struct arena arena = {0};
        struct stage_partition found;
        struct error err = {0};
        uint32_t stages = 1 + (uint32_t)random_below(key, 0, STAGES_MAX);
        for (uint32_t s = 0; s < stages; s++) {
            double pace = 1 + 9 * random_unit(key, 1 + s);
            for (uint32_t l = 0; l < LAYERS; l++)
                layers[s][l] = (struct stage_layer){.name = "layer", .forward_s = pace * (1 + random_unit(key, 50 + l)),
                                                    .backward_s = pace * (1 + random_unit(key, 100 + 10 * s + l)),
                                                    .held_bytes = 10 + random_below(key, 200 + l, 10),
                                                    .kept_bytes = random_below(key, 300 + l, 10)};
            chains[s] = (struct stage_chain){"chain", layers[s], LAYERS};
            of_stage[s] = &chains[s];
            memory[s] = 60 + random_below(key, 10 + s, 200);
        }
        const struct stage_request request = {.method = STAGE_BALANCED, .levels = {{stages, 1}}, .level_count = 1,
                                              .stages = stages, .microbatches = 1, .memory_bytes = 1,
                                              .chain_of_stage = of_stage, .memory_of_stage = memory};
        double best_s = best_cut(&request, &chains[0], 0, 0, INFINITY, false), squares = 0, slowest_s = 0;
        enum status status = stage_partition_find(&arena, &chains[0], &request, &found, &err);
        assert_int_equal(status, isfinite(best_s) ? STATUS_OK : STATUS_INFEASIBLE);
        if (status == STATUS_OK) {
            assert_int_equal(found.count, stages);
            for (uint32_t s = 0; s < stages; s++) {
                double own_s = 0;
                for (uint32_t l = found.stages[s].first; l < found.stages[s].first + found.stages[s].count; l++)
                    own_s += layers[s][l].forward_s + layers[s][l].backward_s;
                slowest_s = fmax(slowest_s, own_s);
                squares += own_s * own_s;
            }
            test_parallel_near(found.interval_s, best_s);
            test_parallel_near(slowest_s, best_s);
            test_parallel_near(squares, best_cut(&request, &chains[0], 0, 0, best_s * (1 + 1e-12), true));
            fitting++;
        }
        arena_release(&arena);
    }
    assert_true(fitting > 50 && fitting < 300);
}

/* From job to plan: no cut of eight blocks has a faster slowest stage, on either order of the kinds; the equal one is
 * slower for it. */
static void balanced(void **state)
{
    (void)state;
    for (uint32_t turned = 0; turned <= 1; turned++) {
        struct parallel p = {.tensor = 1, .pipeline = 4, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B,
                             .partition = PARALLEL_BALANCED};
        struct plan plan, equal;
        plan_on(turned ? TURNED : FOUR, 12, p, 16, &plan);
        p.partition = PARALLEL_EQUAL;
        plan_on(turned ? TURNED : FOUR, 12, p, 16, &equal);
        const uint32_t *cut = plan.jobs.jobs[0].parallel.cut_lengths;
        double found_s = 0, best_s = INFINITY;
        for (uint32_t s = 0; s < 4; s++) {
            struct test_parallel_stage of = stage_of(&plan, s, parallel_layers(&plan.jobs.jobs[0], s));
            found_s = fmax(found_s, of.forward_s + of.backward_s);
        }
        for (uint32_t a = 1; a <= 9; a++)
            for (uint32_t b = 1; a + b <= 10; b++)
                for (uint32_t c = 1; a + b + c <= 11; c++) {
                    struct job job = plan.jobs.jobs[0];
                    const uint32_t lengths[4] = {a, b, c, 12 - a - b - c};
                    double slowest_s = 0;
                    memcpy(job.parallel.cut_lengths, lengths, sizeof lengths);
                    for (uint32_t s = 0; s < 4; s++) {
                        struct test_parallel_stage of = stage_of(&plan, s, parallel_layers(&job, s));
                        slowest_s = fmax(slowest_s, of.forward_s + of.backward_s);
                    }
                    best_s = fmin(best_s, slowest_s);
                }
        test_parallel_near(found_s, best_s);
        assert_true(cut[turned ? 2 : 0] > cut[turned ? 1 : 3]); /* more layers on the faster kind */
        double ratio = test_parallel_simulate(&plan, false).makespan_s /
                       test_parallel_simulate(&equal, false).makespan_s;
        if (!(ratio < 0.99)) fail_msg("%g of equal cuts, %u-%u-%u-%u", ratio, cut[0], cut[1], cut[2], cut[3]);
        plan_release(&plan);
        plan_release(&equal);
    }
}

/* A job only on the second kind is cut by that kind's times: for it the head of many words is as dear as fewer
 * blocks. */
static void behind_others(void **state)
{
    (void)state;
    static const char *const names[] = {"2x v100-sxm2-32gb", FOUR};
    for (uint32_t blocks = 3; blocks <= 24; blocks++) {
        uint32_t cut[2];
        for (uint32_t i = 0; i < 2; i++) {
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan = {0};
            find(names[i], &hardware);
            at_once(&hardware);
            job_of(&jobs, blocks, (struct parallel){.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1,
                                                    .first_device = 2 * i,
                                                    .schedule = PIPELINE_1F1B, .partition = PARALLEL_BALANCED}, 16);
            jobs.jobs[0].network.vocabulary = 50304;
            test_parallel_plan(&hardware, &jobs, &plan);
            cut[i] = plan.jobs.jobs[0].parallel.cut_lengths[0];
            plan_release(&plan);
        }
        assert_int_equal(cut[0], cut[1]);
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Stages of one size fit the one kind and not the other, and the message says which device it is. */
static void memory(void **state)
{
    (void)state;
    struct parallel p = {.tensor = 1, .pipeline = 4, .data = 1, .chunks = 1, .schedule = PIPELINE_GPIPE};
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    find(FOUR, &hardware);
    at_once(&hardware);
    for (uint32_t d = 0; d < 4; d++) hardware.devices[d].memory_bytes = d < 2 ? UINT64_C(1) << 33 : 100000;
    job_of(&jobs, 4, p, 8);
    assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_INFEASIBLE);
    if (!strstr(err.text, "on each device of stage 2, and device 2 has 97.7 KiB")) fail_msg("%s", err.text);
    plan_release(&plan);
    hardware_release(&hardware);
    job_set_release(&jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines), cmocka_unit_test(clusters), cmocka_unit_test(two_kinds),
        cmocka_unit_test(mixed_replicas), cmocka_unit_test(cuts), cmocka_unit_test(balanced),
        cmocka_unit_test(behind_others), cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests_name("planner/parallel kinds", tests, NULL, NULL);
}
