/*
 * Memory that jobs share because they follow each other: parallel jobs on the same devices that do not hold all of them
 * at once, and jobs of Saturn's plans in host memory that does not hold all of them at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "planner/plan_hosts.h"
#include "planner/saturn/saturn.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/support_models.h"

static const double gib = 1024.0 * 1024 * 1024;

/* Makes `count` jobs of Llama 3.2 1B, 14.8 GiB of states each, on two devices of 24 GB. */
static void make(uint32_t count, const char *parallel, double host_bytes, struct hardware *hardware,
                 struct job_set *jobs)
{
    struct error err = {0};
    char text[512];
    snprintf(text, sizeof text,
             "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"l\", \"network\": \"llama-3.2-1b\", \"count\": %u, "
             "\"microbatch\": 1, \"microbatches\": 4, \"sequence\": 512, \"minibatches\": 6%s%s}]}", count,
             parallel[0] ? ", \"parallel\": " : "", parallel);
    *hardware = (struct hardware){0};
    *jobs = (struct job_set){0};
    support_machine("2x rtx-3090-24gb", hardware);
    if (host_bytes > 0) hardware->host_bytes.value = host_bytes;
    if (support_jobs(text, ".", jobs, &err)) fail_msg("%s: %s", text, err.text);
}

static const struct planner_options automatic = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                                 .iterations = 200};

static double plan_parallel(uint32_t count, const char *parallel, double host_bytes, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    double seconds = 0;
    make(count, parallel, host_bytes, &hardware, &jobs);
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &automatic, plan, &err)) fail_msg("%u jobs, %s: %s", count, parallel, err.text);
    if (sim_seconds(NULL, plan, &seconds, &err)) fail_msg("%s", err.text);
    return seconds;
}

/* Each device has 23 GiB. One job takes 11 GiB and a half of it, so three do not fit. Three in a row take three times
 * the time of one; estimate and simulation agree as for one. */
static void devices_are_used_again(void **state)
{
    (void)state;
    static const char parallel[] = "{\"data\": 2, \"zero\": 3, \"chunks\": 16}";
    struct plan one, three;
    double one_s = plan_parallel(1, parallel, 0, &one), three_s = plan_parallel(3, parallel, 0, &three);
    assert_int_equal(one.reservation_count, 0);
    assert_int_equal(three.reservation_count, 3);
    assert_true(three_s > 2.99 * one_s && three_s < 3.01 * one_s);
    assert_true(three.estimated_makespan_s > 2.99 * one.estimated_makespan_s &&
                three.estimated_makespan_s < 3.01 * one.estimated_makespan_s);
    plan_release(&one);
    plan_release(&three);
}

static void check_ranges(const struct plan *plan, double host_bytes, const char *name)
{
    uint32_t at_once = 0;
    struct error err = {0};
    struct plan_host_use use = plan_host_fullest(plan);
    assert_int_equal(plan_host_jobs(plan, &at_once, &err), STATUS_OK);
    print_message("%s: %u of %u jobs in host memory at a time, %.1f GiB\n", name, at_once, plan->jobs.count,
                  (double)use.memory_bytes / gib);
    assert_true((double)use.memory_bytes <= host_bytes);
}

/* Host memory holds two of five jobs. Each way to choose parallelism and devices has a plan, and so has one device. */
static void host_memory_is_used_again(void **state)
{
    (void)state;
    const double host_bytes = 34 * gib;
    const struct saturn_clock clock = {.time = sim_seconds};
    for (enum saturn_rule rule = 0; rule < SATURN_RULES; rule++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        struct saturn_report report = {0};
        const struct saturn_options how = {.spilled = &automatic, .clock = &clock, .rule = rule, .interval_s = -1,
                                           .restart_s = -1, .single = rule == SATURN_RULE_SPASE};
        make(5, "", host_bytes, &hardware, &jobs);
        if (saturn_plan(&hardware, &jobs, &how, &report, &plan, &err))
            fail_msg("%s: %s", saturn_rule_names[rule], err.text);
        check_ranges(&plan, host_bytes, saturn_rule_names[rule]);
        double seconds; /* two devices that read files at once share the disk */
        assert_int_equal(sim_seconds(NULL, &plan, &seconds, &err), STATUS_OK);
        print_message("%s: %.1f s by the planner's clock, %.1f s simulated\n", saturn_rule_names[rule],
                      plan.estimated_makespan_s, seconds);
        assert_true(seconds < 1.4 * plan.estimated_makespan_s);
        plan_release(&plan);
    }
    struct plan plan;
    double short_s = plan_parallel(5, "{\"data\": 1}", host_bytes, &plan);
    check_ranges(&plan, host_bytes, "dp=1");
    plan_release(&plan);
    double plenty_s = plan_parallel(5, "{\"data\": 1}", 0, &plan);
    assert_true(short_s >= plenty_s);
    plan_release(&plan);
}

/* Jobs on several devices pay for their states as those on one do: less host memory gives no faster plan, and none that
 * can only be simulated. 20 GiB hold one job, so each takes both devices in turn. */
static void less_host_memory_is_not_faster(void **state)
{
    (void)state;
    static const double memory_gib[] = {128, 48, 24, 20};
    const struct saturn_clock clock = {.time = sim_seconds};
    double before_s = 0;
    for (size_t i = 0; i < ARRAY_COUNT(memory_gib); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        struct saturn_report report = {0};
        const struct saturn_options how = {.spilled = &automatic, .clock = &clock, .rule = SATURN_RULE_SPASE,
                                           .interval_s = -1,
                                           .restart_s = -1};
        double seconds;
        make(5, "", memory_gib[i] * gib, &hardware, &jobs);
        if (saturn_plan(&hardware, &jobs, &how, &report, &plan, &err)) fail_msg("%g GiB: %s", memory_gib[i], err.text);
        assert_int_equal(sim_seconds(NULL, &plan, &seconds, &err), STATUS_OK);
        print_message("%g GiB: %.2f s\n", memory_gib[i], seconds);
        if (seconds < before_s)
            fail_msg("%g GiB: %.3f s, less than the %.3f s with more", memory_gib[i], seconds, before_s);
        for (uint32_t j = 0; j < plan.jobs.count; j++) {
            const struct parallel *p = &plan.jobs.jobs[j].parallel;
            if (parallel_is_set(p) && !parallel_is_carried_out(p))
                fail_msg("%g GiB: job %u is only simulated", memory_gib[i], j);
        }
        before_s = seconds;
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_used_again),
        cmocka_unit_test(host_memory_is_used_again),
        cmocka_unit_test(less_host_memory_is_not_faster),
    };
    return cmocka_run_group_tests_name("saturn_turns", tests, NULL, NULL);
}
