/*
 * The time of Sharded-LRTF and the distance of its plans from the bound, for the two sizes that the simulator is
 * measured with: (devices, models, shards, minibatches) = (8, 16, 24, 50) and (64, 256, 24, 20). Every shard has 200 to
 * 400 MB and computes 80 to 160 ms forward and twice that backward; four devices share a 20 GB/s host link.
 *
 * Prints, for each size: seconds of the scheduler and of the whole planner (partition, units, folding, bound, check),
 * and the simulated makespan over the lower bound. Medians of five.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "planner/policy/policies.h"
#include "planner/spill/cut/partition.h"
#include "planner/spill/order/cost_table.h"
#include "planner/spill/order/schedule.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

static struct test_layer layer(void *context, uint32_t job, uint32_t number)
{
    (void)context;
    uint64_t m = job, s = number;
    uint64_t forward = 80000000 + 80000 * ((15485863 * m + 32452843 * s) % 1000);
    return (struct test_layer){.parameter_bytes = 200000000 + 200000 * ((7919 * m + 104729 * s) % 1000),
                               .boundary_bytes = 64,
                               .activation_bytes = 64,
                               .forward_ns = forward,
                               .backward_ns = 2 * forward};
}

/* Connects groups of four devices through one simplex link. */
static void share_host_links(struct hardware *hw)
{
    uint32_t groups = (hw->device_count + 3) / 4;
    struct error err = {0};
    struct hardware_link *to;
    if (ARENA_NEW(&hw->arena, hw->device_count + groups, to, &err)) abort();
    for (uint32_t d = 0; d < hw->device_count; d++) {
        to[d] = hw->links[d];
        hw->devices[d].path[1] = d;
        hw->devices[d].path[0] = hw->device_count + d / 4;
        hw->devices[d].path_count = 2;
    }
    for (uint32_t g = 0; g < groups; g++) {
        to[hw->device_count + g] = hw->links[0];
        to[hw->device_count + g].name = "host";
        to[hw->device_count + g].bandwidth.value = 20e9;
        to[hw->device_count + g].duplex = false;
    }
    hw->links = to;
    hw->link_count = hw->device_count + groups;
}

static void check(enum status status, const struct error *err)
{
    if (status) {
        fprintf(stderr, "%s\n", err->text);
        exit(error_exit_code(status));
    }
}

static double schedule_s(struct hardware *hw, struct job_set *jobs,
                         const struct planner_options *options)
{
    struct footprints *footprints;
    struct partition partition = {0};
    struct schedule schedule;
    struct error err = {0};
    check(footprints_create(hw, jobs, &footprints, &err), &err);
    check(partition_spilled(hw, jobs, footprints, options, true, &partition, &err), &err);
    struct cost_table times;
    double started = clock_s();
    check(cost_table_make(hw, jobs, footprints, &partition, &times, &err), &err);
    check(schedule_make(&times, policy_find("sharded-lrtf"), 0, true, &schedule, &err), &err);
    double seconds = clock_s() - started;
    schedule_release(&schedule);
    cost_table_release(&times);
    partition_release(&partition);
    footprints_destroy(footprints);
    return seconds;
}

int main(void)
{
    static const uint32_t sizes[][4] = {{8, 16, 24, 50}, {64, 256, 24, 20}};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        const uint32_t *n = sizes[i];
        double schedule[5], whole[5], makespan = 0, bound = 0;
        for (int r = 0; r < 5; r++) {
            struct hardware hw;
            struct job_set jobs;
            struct plan plan = {0};
            struct error err = {0};
            struct sim_result result = {0};
            struct trace trace = {0};
            struct sim_options sim = {0};
            struct planner_options options = {.activations = ACTIVATIONS_SPILL, .shards = n[2]};
            test_hardware(&hw, n[0], 11000000000u, 12e9);
            share_host_links(&hw);
            hw.host_bytes.value = 1e13;
            test_profile_jobs(&jobs, n[1], n[2], n[3], layer, NULL);
            schedule[r] = schedule_s(&hw, &jobs, &options);
            double started = clock_s();
            check(planner_plan(&hw, &jobs, &options, &plan, &err), &err);
            whole[r] = clock_s() - started;
            check(sim_run(&plan, &sim, &result, &trace, &err), &err);
            makespan = result.makespan_s;
            bound = plan.lower_bound_s;
            if (r == 0)
                printf("(%u, %u, %u, %u): %llu operations, simulated in %.3f s\n", n[0], n[1], n[2],
                       n[3], (unsigned long long)result.operations, result.wall_s);
            sim_result_release(&result);
            trace_release(&trace);
            plan_release(&plan);
        }
        qsort(schedule, 5, sizeof *schedule, order_double);
        qsort(whole, 5, sizeof *whole, order_double);
        printf("  schedule %.4f s (%.4f to %.4f), whole planner %.3f s (%.3f to %.3f)\n",
               schedule[2], schedule[0], schedule[4], whole[2], whole[0], whole[4]);
        printf("  makespan %.3f s, bound %.3f s, ratio %.4f\n", makespan, bound, makespan / bound);
    }
    return 0;
}
