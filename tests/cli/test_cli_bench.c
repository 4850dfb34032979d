/* label: medium
 * cli/bench/cli_bench.h: samples and pairs of made-up results by hand; results on instances and jobs against the
 * functions that make schedules and plans; bounds are bounds, and searches search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/cli_bench.h"
#include "models/jobs/jobs_file.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"

#define GOOD BINARY_DIR "/policies/good.so"

static void near_to(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) fail_msg("%.12g is not %.12g", value, expected);
}

/* --- summaries ------------------------------------------------------------------------------- */

static struct bench_result *put(struct bench *bench, size_t workload, uint32_t seed, uint32_t policy,
                                double value, double bound)
{
    struct bench_result *r = bench_at(bench, workload, seed, policy);
    *r = (struct bench_result){.outcome = BENCH_DONE, .value = value, .bound = bound};
    return r;
}

/*
 * A family with 3 seeds and a file; policies a and b, values over bounds of 10:
 *     a   1.2 1.4 1.6 | 1.1 1.3 1.5     samples 1.2, 1.4, 1.6 and 1.3: the file is one
 *     b   1.1 1.4 fail | 1.2 1.2 1.2    samples 1.1, 1.4 and 1.2
 * The mean of a is 5.5 / 4 = 1.375. Against a, b is better in the first, equal in the second and, by
 * logarithms, worse or better in the file: 1.2^3 = 1.728 against 1.1 * 1.3 * 1.5 = 2.145, so better.
 * Cases that b wins: the first and the second of the family, and of the file 1.2 < 1.3 and 1.2 < 1.5;
 * a wins 1.4, the one in which b failed, and 1.1.
 */
static void samples_by_hand(void **state)
{
    (void)state;
    struct bench_workload workloads[] = {{.kind = BENCH_FAMILY, .name = "f"},
                                         {.kind = BENCH_JOBS, .name = "j", .path = "j"}};
    struct bench_result results[12] = {0};
    struct bench bench = {.policies = {"a", "b"}, .policy_count = 2, .workloads = workloads,
                          .workload_count = 2, .seeds = 3, .results = results};
    const double a[] = {12, 14, 16, 11, 13, 15}, b[] = {11, 14, 0, 12, 12, 12};
    for (uint32_t i = 0; i < 6; i++) {
        put(&bench, i / 3, i % 3, 0, a[i], 10);
        if (b[i] > 0) put(&bench, i / 3, i % 3, 1, b[i], 10);
        else bench_at(&bench, i / 3, i % 3, 1)->outcome = BENCH_FAILED;
    }
    struct bench_result *measured = bench_at(&bench, 1, 0, 0);
    measured->measured_s = 7; /* a is simulated at 11 and b at 12, and b turns out to be faster */
    bench_at(&bench, 1, 0, 1)->measured_s = 6;
    measured->decisions = 4;
    measured->deciding_s = 0.002;

    struct bench_summary summaries[2];
    struct error err = {0};
    double tau;
    assert_int_equal(bench_summarize(&bench, summaries, &err), STATUS_OK);
    assert_int_equal(summaries[0].planned.samples, 4);
    near_to(summaries[0].planned.mean, 1.375);
    near_to(summaries[0].planned.worst, 1.6);
    assert_int_equal(summaries[1].planned.samples, 3);
    near_to(summaries[1].planned.mean, 3.7 / 3);
    assert_int_equal(summaries[1].done, 5);
    assert_int_equal(summaries[1].failed, 1);
    assert_int_equal(summaries[0].wins, 3);
    assert_int_equal(summaries[1].wins, 4);
    assert_int_equal(summaries[1].against.better, 2);
    assert_int_equal(summaries[1].against.worse, 0);
    assert_int_equal(summaries[1].against.equal, 1);
    near_to(summaries[1].against.p, 0.5); /* two that count, both on one side: 2 / 2^2 */
    near_to(summaries[0].decision_s, 0.0005);
    assert_true(bench_agreement(&bench, 1, &tau));
    near_to(tau, -1);
    assert_false(bench_agreement(&bench, 0, &tau)); /* not carried out */
}

/* --- instances ------------------------------------------------------------------------------- */

static void bench_of(struct bench *bench, const char *policies, const char *family, uint32_t seeds,
                     double noise)
{
    struct error err = {0};
    *bench = (struct bench){.options = {.machine = CLI_MACHINE_NONE, .limit_s = 60, .noise = noise}};
    bench->seeds = seeds;
    if (bench_add_family(bench, family, &err) || bench_add_policies(bench, policies, &err) ||
        bench_run(bench, &err))
        fail_msg("%s", err.text);
}

/* Nothing is below its bound; the search is at least as good as the policies that it begins with; without
 * noise nothing is kept or live; with it all are there; the same again is the same. */
static void families(void **state)
{
    (void)state;
    const char *const names[] = {"compute", "hidden", "tight", "many-short"};
    for (size_t f = 0; f < sizeof names / sizeof *names; f++)
        for (int noisy = 0; noisy < 2; noisy++) {
            struct bench bench, again;
            bench_of(&bench, "sharded-lrtf-cached,srtf," GOOD ",searched", names[f], 2, noisy ? 0.2 : 0);
            bench_of(&again, "sharded-lrtf-cached,srtf," GOOD ",searched", names[f], 2, noisy ? 0.2 : 0);
            for (uint32_t s = 0; s < 2; s++) {
                const struct bench_result *best = bench_at(&bench, 0, s, 3);
                for (uint32_t p = 0; p < 4; p++) {
                    const struct bench_result *r = bench_at(&bench, 0, s, p), *a = bench_at(&again, 0, s, p);
                    assert_int_equal(r->outcome, BENCH_DONE);
                    assert_true(r->value >= r->bound && r->bound > 0);
                    assert_true(best->value <= r->value);
                    assert_true((r->kept > 0) == (noisy == 1));
                    assert_true(r->has_live == (noisy == 1 && p < 3));
                    if (noisy) assert_true(r->kept >= r->actual_bound);
                    if (r->has_live) assert_true(r->live >= r->actual_bound);
                    near_to(a->value, r->value);
                    if (noisy) near_to(a->kept, r->kept);
                    if (r->has_live) near_to(a->live, r->live);
                }
            }
            bench_release(&bench);
            bench_release(&again);
        }
}

/* `optimal` proves the optimum of small instances, and all are compared with its bound. */
static void optimal(void **state)
{
    (void)state;
    char path[] = "/tmp/spillway-bench-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    /* 5, 4, 3, 3, 3 on two devices: 18 / 2 = 9 is met by 5 + 4 and 3 + 3 + 3; LRTF: 5 + 3, 4 + 3 + 3 = 10 */
    static const char text[] =
        "{\"spillway_instance\": 1, \"devices\": [{\"count\": 2, \"memory\": 9}], \"jobs\": ["
        "{\"name\": \"a\", \"units\": [{\"compute\": 5}]}, {\"name\": \"b\", \"units\": [{\"compute\": 4}]},"
        "{\"name\": \"c\", \"units\": [{\"compute\": 3}]}, {\"name\": \"d\", \"units\": [{\"compute\": 3}]},"
        "{\"name\": \"e\", \"units\": [{\"compute\": 3}]}]}";
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    close(file);
    struct bench bench = {.options = {.machine = CLI_MACHINE_NONE, .limit_s = 60}, .seeds = 2};
    struct error err = {0};
    if (bench_add_path(&bench, path, &err) || bench_add_policies(&bench, "sharded-lrtf,optimal", &err) ||
        bench_run(&bench, &err))
        fail_msg("%s", err.text);
    for (uint32_t s = 0; s < 2; s++) { /* another order of the jobs changes neither */
        near_to(bench_at(&bench, 0, s, 0)->value, 10);
        near_to(bench_at(&bench, 0, s, 1)->value, 9);
        near_to(bench_at(&bench, 0, s, 0)->bound, 9);
    }
    bench_release(&bench);
    unlink(path);
}

/* --- jobs ------------------------------------------------------------------------------------ */

static const char *const preset = "host-2-cores";

static double simulated(const char *path, const char *policy, double *bound)
{
    struct cli_machine machine = CLI_MACHINE_NONE;
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct plan plan = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    struct planner_options options = {
        .policy = policy, .seed = 1, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    machine.name = preset;
    machine.devices = 2;
    machine.device_memory_bytes = 32 << 20;
    if (cli_machine_read(&machine, &hardware, &err) || job_set_read(path, &jobs, &err) ||
        planner_plan(&hardware, &jobs, &options, &plan, &err) ||
        sim_run(&plan, &(struct sim_options){0}, &result, &trace, &err))
        fail_msg("%s", err.text);
    double seconds = result.makespan_s;
    *bound = plan.lower_bound_s;
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return seconds;
}

/* Jobs are planned and simulated in this process or, for a shared object, in a child. */
static void jobs_are_planned(void **state)
{
    (void)state;
    static const char path[] = SOURCE_DIR "/docs/examples/selection.json";
    struct bench bench = {.options = {.machine = CLI_MACHINE_NONE, .limit_s = 60}, .seeds = 1};
    struct error err = {0};
    bench.options.machine.name = preset;
    bench.options.machine.devices = 2;
    bench.options.machine.device_memory_bytes = 32 << 20;
    if (bench_add_path(&bench, path, &err) ||
        bench_add_policies(&bench, "fifo,searched," GOOD, &err) || bench_run(&bench, &err))
        fail_msg("%s", err.text);
    for (uint32_t p = 0; p < 3; p += 2) {
        const struct bench_result *r = bench_at(&bench, 0, 0, p);
        double bound, seconds = simulated(path, bench.policies[p], &bound);
        assert_int_equal(r->outcome, BENCH_DONE);
        near_to(r->value, seconds);
        near_to(r->bound, bound);
    }
    assert_int_equal(bench_at(&bench, 0, 0, 1)->outcome, BENCH_DONE);
    /* by the planner's clock the search is never worse; the simulator may see it otherwise by a little */
    assert_true(bench_at(&bench, 0, 0, 1)->value <= bench_at(&bench, 0, 0, 0)->value * 1.02);
    bench_release(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples_by_hand), cmocka_unit_test(families),
                                       cmocka_unit_test(optimal), cmocka_unit_test(jobs_are_planned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
