/*
 * Small random plans of every family in the simulator (label: fast), judged by what must hold of any
 * (support_plan_judge.h).
 *
 *     test_sim_families [COUNT [FIRST]]     COUNT cases from case FIRST on; with SPILLWAY_SEED the same again
 *
 * A case is simulated as it is; with other numbers for its devices and jobs and every device for itself; and, where
 * theory has a word to say, with a faster link.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "planner/files/plan_io.h"
#include "sim/sim.h"
#include "tests/support/planner/support_plan_judge.h"
#include "tests/support/planner/support_random_family.h"
#include "tests/support/support_seed.h"

static uint64_t case_count = 900, first_case;

struct tally {
    uint64_t plans, operations, renumbered, faster;
};

/* --- one case -------------------------------------------------------------------------------- */

struct random_case {
    enum random_family family;
    uint64_t seed, number;
};

/* The plan is written as it was made. (What is of no family is no plan that a file could have.) */
static void complain(const struct random_case *c, const char *what)
{
    const char *path = BINARY_DIR "/test_sim_families-failed.json";
    struct error err = {0};
    struct plan plan;
    bool written = random_family_plan(c->family, random_u64(c->seed, c->number), &plan) &&
                   plan_write(&plan, path, &err) == STATUS_OK;
    fail_msg("SPILLWAY_SEED=%" PRIu64 " test_sim_families 1 %" PRIu64 " (%s): %s; the plan: %s", c->seed, c->number,
             random_family_names[c->family], what, written ? path : err.text);
}

/* The makespan. The trace is wanted with spans, or not at all. */
static double simulate(const struct random_case *c, const struct plan *plan, struct trace *trace)
{
    struct sim_result result = {0};
    struct trace own = {0};
    struct error err = {0};
    const struct sim_options options = {.record_spans = trace != NULL};
    if (sim_run(plan, &options, &result, trace ? trace : &own, &err)) complain(c, err.text);
    double makespan_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&own);
    return makespan_s;
}

static bool judge_case(const struct random_case *c, struct tally *tally)
{
    static struct plan_judge judge;
    struct plan plan;
    struct trace trace = {0};
    char text[128];
    uint64_t key = random_u64(c->seed, c->number);
    if (!random_family_plan(c->family, key, &plan)) return false;
    double makespan_s = simulate(c, &plan, NULL);

    plan_judge_renumber(&plan, key);
    plan_judge_read(&judge, &plan);
    double renumbered_s = simulate(c, &plan, &trace);
    const char *complaint = plan_judge_bounds(&judge, makespan_s);
    if (!complaint) complaint = plan_judge_spans(&judge, &trace);
    if (!complaint && fabs(renumbered_s - makespan_s) > 1e-9 * makespan_s) {
        snprintf(text, sizeof text, "%.17g s, with other numbers %.17g s", makespan_s, renumbered_s);
        complaint = text;
    }
    if (complaint) complain(c, complaint);
    trace_release(&trace);
    tally->plans++;
    tally->operations += judge.op_count;
    tally->renumbered += plan.jobs.count > 1 || plan.hardware.device_count > 1;

    if ((judge.alone || c->family == RANDOM_ONE_LINK) && plan.hardware.link_count > 0) {
        uint32_t link = c->family == RANDOM_ONE_LINK ? 0 : (uint32_t)random_below(key, 90, plan.hardware.link_count);
        plan.hardware.links[link].bandwidth.value *= 1 + 3 * random_unit(key, 91);
        double faster_s = simulate(c, &plan, NULL);
        if (faster_s > makespan_s * (1 + 1e-9)) {
            snprintf(text, sizeof text, "%.17g s, with a faster link %u %.17g s", makespan_s, link, faster_s);
            complain(c, text);
        }
        tally->faster++;
    }
    plan_release(&plan);
    return true;
}

/* --- all of them ----------------------------------------------------------------------------- */

static void hold_what_must_hold(void **state)
{
    (void)state;
    struct tally tallies[RANDOM_FAMILY_COUNT] = {0};
    uint64_t seed = support_seed("families"), plans = 0;
    for (uint64_t n = first_case; n < first_case + case_count; n++) {
        const struct random_case c = {(enum random_family)(n % RANDOM_FAMILY_COUNT), seed, n};
        plans += judge_case(&c, &tallies[c.family]);
        if (n % 1000000 == 999999) {
            print_message("%" PRIu64 " cases, %" PRIu64 " plans\n", n + 1 - first_case, plans);
            fflush(NULL);
        }
    }
    for (uint32_t f = 0; f < RANDOM_FAMILY_COUNT; f++) {
        const struct tally *t = &tallies[f];
        print_message("%-10s %9" PRIu64 " plans, %6.1f operations each; renumbered %9" PRIu64 ", faster links %9" PRIu64
                      "\n", random_family_names[f], t->plans, t->plans ? (double)t->operations / (double)t->plans : 0,
                      t->renumbered, t->faster);
        if (case_count >= 900) assert_true(t->plans > 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hold_what_must_hold)};
    if (argc > 1) case_count = strtoull(argv[1], NULL, 10);
    if (argc > 2) first_case = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests_name("every family of plans", tests, NULL, NULL);
}
