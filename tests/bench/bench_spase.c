/*
 * The quality of SPASE schedules, and how much of it is proven.
 *
 *   small      12 jobs, one node of 8, 4 parallelisms, every count of devices (`powers`: 1, 2, 4, 8): value after 0.1 s
 *              and 10 s, proofs in 10 s. Open instances get PROOF SECONDS more, so that gaps are to the optimum or to
 *              the best bound
 *   large      64 jobs, 4 nodes of 8: gap to the bound after 10 s
 *   published  Saturn's own formulation and the flow formulation, by GLPK and by CBC for 10 s each: the solver's value,
 *              and the real value of its schedule
 *   baselines  the same instances by Saturn's four baselines and by our search, then with introspection
 *   FILE       the baselines on an instance's file
 *
 * Seeds are 1, 2, 3 ... Times depend on the machine; with a time limit the rest does so a little. Our seconds are
 * processor time: a limit is stretched by the share that a busy loop lost to other programs just before.
 *
 * usage: bench_spase small|powers|large|published|baselines|FILE [INSTANCES [PROOF SECONDS]]
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/order.h"
#include "base/process/clock.h"
#include "base/text/number.h"
#include "planner/saturn/spase/spase_baseline.h"
#include "planner/saturn/spase/spase_certify.h"
#include "planner/saturn/spase/spase_formulation.h"
#include "planner/saturn/spase/spase_introspect.h"
#include "planner/saturn/spase/spase_io.h"
#include "planner/saturn/spase/spase_search.h"
#include "tests/support/solve/support_spase.h"

enum { RANDOM_SEEDS = 30 };

static void check(enum status status, const struct error *err)
{
    if (status) {
        fprintf(stderr, "%s\n", err->text);
        exit(error_exit_code(status));
    }
}

static void make(uint64_t seed, uint32_t jobs, uint32_t nodes, bool powers, struct spase *out)
{
    struct test_spase_random options = {.seed = seed, .jobs = jobs, .parallelisms = 4, .nodes = nodes, .devices = 8,
                                   .powers = powers};
    struct error err = {0};
    *out = (struct spase){0};
    check(test_spase_random(&options, out, &err), &err);
}

static double processor_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Seconds of the clock in which this process gets `limit_s` of a processor, as things are. */
static double stretched(double limit_s)
{
    double started = clock_s(), used = processor_s();
    while (clock_s() - started < 0.2) {}
    return limit_s * (clock_s() - started) / (processor_s() - used);
}

/* *used_s: seconds of the processor. */
static struct spase_certificate certified(const struct spase *in, double limit_s, double *used_s)
{
    struct spase_certify_options options = {.seed = 1, .iterations = UINT64_MAX};
    struct spase_schedule schedule = {0};
    struct spase_certificate made;
    struct error err = {0};
    spase_certify_divide(in, stretched(limit_s), &options);
    *used_s = processor_s();
    check(spase_certify(in, &options, &schedule, &made, &err), &err);
    *used_s = processor_s() - *used_s;
    spase_schedule_release(&schedule);
    return made;
}

static void print_gaps(const char *what, double *gaps, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += gaps[i];
    qsort(gaps, count, sizeof *gaps, order_double);
    printf("%-24s gap mean %.2f %%, median %.2f %%, max %.2f %%\n", what, 100 * sum / count, 100 * gaps[count / 2],
           100 * gaps[count - 1]);
}

static void bench_small(uint32_t instances, double proof_s, bool powers)
{
    double *quick = calloc(instances, sizeof *quick), *slow = calloc(instances, sizeof *slow);
    double *open = calloc(instances, sizeof *open), *seconds = calloc(instances, sizeof *seconds);
    uint32_t proven = 0, proven_after = 0;
    if (!quick || !slow || !open || !seconds) exit(3);
    for (uint32_t n = 0; n < instances; n++) {
        struct spase in;
        make(n + 1, 12, 1, powers, &in);
        double first_s, last_s;
        struct spase_certificate first = certified(&in, 0.1, &first_s), second = certified(&in, 10, &seconds[n]);
        struct spase_certificate last = second;
        proven += second.status != CERTIFICATE_GAP;
        if (last.status == CERTIFICATE_GAP && proof_s > 0) last = certified(&in, proof_s, &last_s);
        proven_after += last.status != CERTIFICATE_GAP;
        double bound = (double)(last.bound > second.bound ? last.bound : second.bound);
        quick[n] = (double)first.value / bound - 1;
        slow[n] = (double)second.value / bound - 1;
        open[n] = spase_certificate_gap(&second);
        printf("  %u: %" PRId64 " in %.2f s; %" PRId64 " (proven >= %" PRId64 ") in %.2f s; optimum %s%.0f\n", n + 1,
               first.value, first_s, second.value, second.bound, seconds[n],
               last.status == CERTIFICATE_GAP ? ">= " : "", bound);
        fflush(stdout);
        spase_release(&in);
    }
    printf("12 jobs x 8 devices x 4 parallelisms, %s: %u instances, %u proven in 10 s, %u with %.0f s\n",
           powers ? "1, 2, 4, 8 devices" : "1 to 8 devices", instances, proven, proven_after, proof_s);
    print_gaps("0.1 s, to the optimum", quick, instances);
    print_gaps("10 s, to the optimum", slow, instances);
    print_gaps("10 s, certified", open, instances);
    qsort(seconds, instances, sizeof *seconds, order_double);
    printf("seconds until done: median %.2f, max %.2f\n", seconds[instances / 2], seconds[instances - 1]);
    free(quick);
    free(slow);
    free(open);
    free(seconds);
}

static void bench_large(uint32_t instances)
{
    double *gaps = calloc(instances, sizeof *gaps);
    if (!gaps) exit(3);
    for (uint32_t n = 0; n < instances; n++) {
        struct spase in;
        make(n + 1, 64, 4, false, &in);
        double used_s;
        struct spase_certificate c = certified(&in, 10, &used_s);
        gaps[n] = spase_certificate_gap(&c);
        spase_release(&in);
    }
    printf("64 jobs x 4 nodes of 8, 10 s: %u instances\n", instances);
    print_gaps("certified", gaps, instances);
    free(gaps);
}

/* One program on one instance, cold (published) or from the search's value (flow). */
static void ask(const struct spase *in, enum spase_formulation_kind kind, const char *solver, double limit_s)
{
    double used_s;
    struct spase_certificate c = certified(in, 0.1, &used_s);
    struct spase_formulation_result result;
    struct spase_step *steps = calloc(in->job_count, sizeof *steps);
    struct error err = {0};
    int64_t value = kind == SPASE_FLOW ? c.value : INT64_MAX;
    if (!steps) exit(3);
    enum status status =
        spase_formulation_solve(in, kind, solver, limit_s, c.bound, steps, &value, &result, &err);
    printf("  %-9s %-5s", spase_formulation_names[kind], solver);
    if (result.claims) printf(" says %.0f%s,", result.claimed, result.status == MILP_OPTIMAL ? " (optimal)" : "");
    if (result.status == MILP_INFEASIBLE) printf(" says that there is nothing%s,", result.proven ? " better" : "");
    if (value < INT64_MAX) printf(" schedule %" PRId64 ",", value);
    else printf(" no schedule,");
    if (result.bound) printf(" bound %" PRId64 ",", result.bound);
    printf(" %.1f s%s%s\n", result.seconds, status ? ": " : "", status ? err.text : "");
    fflush(stdout);
    free(steps);
}

static void bench_published(uint32_t instances)
{
    for (uint32_t jobs = 4; jobs <= 12; jobs += 4)
        for (uint32_t n = 1; n <= instances; n++) {
            struct spase in;
            make(n, jobs, 1, true, &in);
            double used_s;
            struct spase_certificate c = certified(&in, 10, &used_s);
            printf("%u jobs x 8 devices, instance %u: ours %" PRId64 ", bound %" PRId64 ", %.2f s\n", jobs, n, c.value,
                   c.bound, used_s);
            ask(&in, SPASE_PUBLISHED, "glpk", 10);
            ask(&in, SPASE_PUBLISHED, "cbc", 10);
            ask(&in, SPASE_FLOW, "glpk", 10);
            ask(&in, SPASE_FLOW, "cbc", 10);
            spase_release(&in);
        }
}

/* --- baselines ------------------------------------------------------------------------------- */

static double introspected(const struct spase *in, const struct spase_step *steps, bool optimus)
{
    /* the paper's seconds where the whole takes about a day: an interval of 1 % of it */
    struct spase_introspect_options options = {.seed = 1, .iterations = 100000, .optimus = optimus};
    struct spase_course course = {0};
    struct error err = {0};
    options.interval_ticks = in->horizon > 100000 ? 1000 : in->horizon / 100;
    options.threshold_ticks = options.interval_ticks / 2;
    options.restart_ticks = options.interval_ticks / 10;
    check(spase_introspect(in, steps, &options, &course, &err), &err);
    check(spase_course_check(in, &course, options.restart_ticks, &err), &err);
    double makespan = (double)course.makespan;
    spase_course_release(&course);
    return makespan;
}

enum { PLANNERS = SPASE_BASELINE_COUNT + 3 };
static const char *const planner_names[PLANNERS] = {"max", "min", "optimus", "random", "optimus dynamic", "ours",
                                                    "ours, introspection"};

static void run_planners(const struct spase *in, double makespans[PLANNERS], int64_t *bound)
{
    struct spase_step *steps = calloc(in->job_count, sizeof *steps);
    struct error err = {0};
    int64_t value;
    uint64_t made;
    if (!steps) exit(3);
    for (uint32_t b = 0; b < SPASE_BASELINE_COUNT; b++) {
        uint32_t seeds = b == SPASE_BASELINE_RANDOM ? RANDOM_SEEDS : 1;
        makespans[b] = 0;
        for (uint32_t seed = 1; seed <= seeds; seed++) {
            check(spase_baseline_run(in, b, seed, NULL, steps, &value, &err), &err);
            makespans[b] += (double)value / seeds;
            if (b == SPASE_BASELINE_OPTIMUS) makespans[SPASE_BASELINE_COUNT] = introspected(in, steps, true);
        }
    }
    double used_s;
    struct spase_certificate c = certified(in, 10, &used_s);
    *bound = c.bound;
    makespans[SPASE_BASELINE_COUNT + 1] = (double)c.value;
    struct spase_search_options search = {.seed = 1, .iterations = 2000000, .until_s = HUGE_VAL};
    check(spase_search(in, &search, false, steps, &value, &made, &err), &err);
    makespans[SPASE_BASELINE_COUNT + 2] = introspected(in, steps, false);
    free(steps);
}

static void bench_baselines(uint32_t instances)
{
    double ratios[PLANNERS] = {0};
    for (uint32_t n = 1; n <= instances; n++) {
        double makespans[PLANNERS];
        struct spase in;
        int64_t bound;
        make(n, 12, 1, false, &in);
        run_planners(&in, makespans, &bound);
        for (uint32_t p = 0; p < PLANNERS; p++)
            ratios[p] += makespans[p] / makespans[SPASE_BASELINE_COUNT + 1] / instances;
        spase_release(&in);
    }
    printf("makespan over ours, mean of %u instances of 12 jobs x 8 devices\n", instances);
    for (uint32_t p = 0; p < PLANNERS; p++) printf("  %-20s %.3f\n", planner_names[p], ratios[p]);
}

static void bench_file(const char *path)
{
    double makespans[PLANNERS];
    struct spase in = {0};
    struct error err = {0};
    int64_t bound;
    check(spase_read(path, &in, &err), &err);
    run_planners(&in, makespans, &bound);
    printf("%s: %u jobs on %u devices, bound %" PRId64 "\n", in.name, in.job_count, in.device_count, bound);
    for (uint32_t p = 0; p < PLANNERS; p++)
        printf("  %-20s %9.0f, %.3f of ours\n", planner_names[p], makespans[p],
               makespans[p] / makespans[SPASE_BASELINE_COUNT + 1]);
    spase_release(&in);
}

int main(int argc, char **argv)
{
    uint64_t instances = 10, proof_s = 60;
    if (argc < 2 || argc > 4 || (argc > 2 && !number_read_u64(argv[2], &instances)) ||
        (argc > 3 && !number_read_u64(argv[3], &proof_s)) || instances < 1 || instances > 100000) {
        fprintf(stderr, "usage: bench_spase small|powers|large|published|baselines|FILE [INSTANCES [PROOF SECONDS]]\n");
        return 2;
    }
    uint32_t count = (uint32_t)instances;
    if (strcmp(argv[1], "small") == 0) bench_small(count, (double)proof_s, false);
    else if (strcmp(argv[1], "powers") == 0) bench_small(count, (double)proof_s, true);
    else if (strcmp(argv[1], "large") == 0) bench_large(count);
    else if (strcmp(argv[1], "published") == 0) bench_published(count);
    else if (strcmp(argv[1], "baselines") == 0) bench_baselines(count);
    else bench_file(argv[1]);
    return 0;
}
