/* `explain` of a plan, with and without its measured trace (label: fast): the memory for each operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "cli/common/cli.h"
#include "planner/files/plan_io.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/sim/support_traces_long.h"

enum { JOBS = 3, MINIBATCHES = 4000, BYTES_MOST = 250 };

struct files {
    char plan[200], trace[200];
    uint64_t operations;
};

/* Writes a plan and, as its measured trace, its simulation. */
static void make(struct files *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    const struct planner_options options = {.policy = "sharded-lrtf", .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO};
    const struct sim_options how = {.record_spans = true};
    snprintf(out->plan, sizeof out->plan, "%s", support_path("plan.json"));
    snprintf(out->trace, sizeof out->trace, "%s", support_path("measured.json"));
    test_hardware(&hardware, 1, 3 << 20, 1e10);
    test_gpt_jobs(&jobs, JOBS, 4, 64, 1021, MINIBATCHES);
    if (planner_plan(&hardware, &jobs, &options, &plan, &err) || plan_write(&plan, out->plan, &err) ||
        sim_run(&plan, &how, &result, &trace, &err))
        fail_msg("%s", err.text);
    trace.source = TRACE_MEASURED;
    out->operations = trace.span_count;
    if (trace_write(&trace, out->trace, &err)) fail_msg("%s", err.text);
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

static int explain(const void *context)
{
    const struct files *files = context;
    char verb[] = "explain", plan[200], trace[200], purchases[] = "--no-purchases", memory[] = "--no-memory",
        quiet[] = "--quiet";
    char *argv[] = {verb, plan, purchases, memory, quiet, NULL, NULL};
    int count = ARRAY_COUNT(argv) - 2;
    struct error err = {0};
    if (!context) return 0;
    FILE *out = fopen("/dev/null", "w");
    snprintf(plan, sizeof plan, "%s", files->plan);
    snprintf(trace, sizeof trace, "%s", files->trace);
    if (files->trace[0]) argv[count++] = trace;
    enum status status = out ? cli_dispatch(count, argv, out, &err) : STATUS_IO;
    if (status != STATUS_OK) fprintf(stderr, "%s\n", err.text);
    if (out) fclose(out);
    return (int)status;
}

/* Returns the memory that explain() takes more with files than without, in KiB. */
static long growth_kib(struct files *files)
{
    const long least = support_peak_kib(explain, NULL), most = support_peak_kib(explain, files);
    print_message("%ld KiB more than %ld for %lu operations\n", most - least, least, (unsigned long)files->operations);
    return most - least;
}

/* The spans of the prediction are released before the measured trace is read. With both an operation takes 304
 * bytes. */
static void an_operation_takes_little(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory */
#endif
    struct files files;
    make(&files);
    assert_true((uint64_t)growth_kib(&files) * 1024 < files.operations * BYTES_MOST);
    support_clean();
}

/* Without a trace, operations before the newest are in a file: with spans, an operation takes 120 bytes. */
static void a_long_plan_takes_no_more(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory */
#endif
    struct files files;
    make(&files);
    files.trace[0] = '\0';
    assert_true(growth_kib(&files) < 8192);
    support_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_operation_takes_little),
                                       cmocka_unit_test(a_long_plan_takes_no_more)};
    return cmocka_run_group_tests_name("memory of explain", tests, NULL, NULL);
}
