/*
 * cli/cli_runs.h and cli/cli_calibrate.h (label: fast): files of measured runs, what is wrong with them to the column, and a fit
 * that finds its way back from runs that were predicted with other figures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/cli_calibrate.h"
#include "models/parallel.h"

#define HEAD                                                                                                          \
    "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,"       \
    "data parallelism,pipeline parallelism"
#define ROW "8,64,2,1024,16,12,512,2,2,2"

static enum status read_text(const char *text, struct arena *arena, struct measured_runs *out, struct error *err)
{
    char path[] = "/tmp/spillway-runs-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    enum status status = measured_runs_read(path, arena, out, err);
    char *at = strstr(err->text, path);
    if (at) memmove(at, at + strlen(path), strlen(at + strlen(path)) + 1); /* messages without the folder of the day */
    unlink(path);
    return status;
}

static void columns_stand_in_any_order(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct measured_runs set = {0};
    struct error err = {0};
    if (read_text("## a note\n\niteration time (ms),recompute,Parameters (billion)," HEAD ",vocabulary\r\n"
                  "12.5, full ,3.6," ROW ",50304\r\n", &arena, &set, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(set.count, 1);
    const struct measured_run *run = &set.runs[0];
    assert_int_equal(run->line, 4);
    assert_true(fabs(run->seconds - 0.0125) < 1e-15);
    const uint32_t expected[RUN_COLUMNS] = {
        [RUN_DEVICES] = 8, [RUN_BATCH] = 64, [RUN_MICROBATCH] = 2, [RUN_WIDTH] = 1024, [RUN_HEADS] = 16, [RUN_LAYERS] = 12,
        [RUN_SEQUENCE] = 512, [RUN_TENSOR] = 2, [RUN_DATA] = 2, [RUN_PIPELINE] = 2, [RUN_RECOMPUTE] = RECOMPUTE_FULL,
        [RUN_CHUNKS] = 1, [RUN_VOCABULARY] = 50304};
    for (int c = 0; c < RUN_COLUMNS; c++) assert_int_equal(run->of[c], expected[c]);
    arena_release(&arena);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", ":1:1: no measured runs"},
        {HEAD ",iteration time (ms)\n", ":2:1: no measured runs"},
        {HEAD "\n", ":1:1: missing column 'iteration time (ms)'"},
        {"global batch,iteration time (ms)\n", ":1:1: missing column '# GPUs'"},
        {HEAD ",iteration time\n", ":1:143: unknown column 'iteration time' (expected those of measured runs, such as 'global batch')"},
        {HEAD ",chunks, chunks\n", ":1:151: second column 'chunks' (expected each once)"},
        {HEAD ",iteration time (ms)\n" ROW "\n", ":2:1: 10 fields (expected 11)"},
        {HEAD ",iteration time (ms)\n" ROW ",-3\n", ":2:29: iteration time (ms) '-3' (expected a number above 0)"},
        {HEAD ",iteration time (ms)\n8,6x," "2,1024,16,12,512,2,2,2,7\n",
         ":2:3: global batch '6x' (expected a whole number from 1 to 16777216)"},
        {HEAD ",iteration time (ms),recompute\n" ROW ",7,some\n", ":2:31: recompute is 'some' (expected none, selective or full)"},
        {HEAD ",iteration time (ms),scatter\n" ROW ",7,2\n", ":2:31: scatter '2' (expected a whole number from 0 to 1)"},
        {HEAD ",iteration time (ms)\n9,64,2,1024,16,12,512,2,2,2,7\n", ":2:1: 9 GPUs, but tensor x data x pipeline is 8"},
        {HEAD ",iteration time (ms)\n8,66,4,1024,16,12,512,2,2,2,7\n",
         ":2:1: global batch 66 is not a multiple of micro batch x data, 8"},
        {HEAD ",iteration time (ms)\n8,64,2,1024,15,12,512,2,2,2,7\n",
         ":2:1: hidden size 1024 is not a multiple of 15 attention heads"},
        {HEAD ",iteration time (ms)\n" ROW ",5e-324\n", ":2:29: iteration time (ms) '5e-324' (expected a number above 0)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct measured_runs set = {0};
        struct error err = {0};
        assert_int_equal(read_text(cases[i].text, &arena, &set, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(set.count, 0);
        arena_release(&arena);
    }
}

static void halves_are_disjoint_and_whole(void **state)
{
    (void)state;
    uint32_t drawn = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct calibration_half even = {.which = HALF_EVEN}, odd = {.which = HALF_ODD}, all = {.which = HALF_ALL};
        assert_true(calibration_is_fitted(even, i) != calibration_is_fitted(odd, i));
        assert_true(calibration_is_fitted(all, i));
        drawn += calibration_is_fitted((struct calibration_half){.which = HALF_BY_SEED, .seed = 7}, i);
    }
    assert_in_range(drawn, 400, 600); /* 500, and a standard deviation of 16 */
}

enum { RUNS = 60 };

/* Runs of small and large networks, alone and in tensor groups: enough to tell the figures apart. */
static void make_runs(struct measured_run runs[RUNS])
{
    for (uint32_t i = 0; i < RUNS; i++) {
        uint32_t tensor = 1u << i % 3, width = 512u << i % 4, microbatch = 1u << i % 5;
        runs[i] = (struct measured_run){.of = {[RUN_DEVICES] = tensor, [RUN_BATCH] = 2 * microbatch, [RUN_MICROBATCH] = microbatch,
                                               [RUN_WIDTH] = width, [RUN_HEADS] = 16, [RUN_LAYERS] = 4, [RUN_SEQUENCE] = 1024,
                                               [RUN_TENSOR] = tensor, [RUN_DATA] = 1, [RUN_PIPELINE] = 1, [RUN_CHUNKS] = 1,
                                               [RUN_VOCABULARY] = 51200}};
    }
}

/* Products at 0.9 of what was sustained, kernels dispatched in 1.3 of the time: the fit sees it in the runs. */
static void a_fit_finds_its_way_back(void **state)
{
    (void)state;
    static const char machine[] = "dgx-a100-80gb";
    struct measured_run runs[RUNS];
    struct measured_runs set = {.path = "made up", .runs = runs, .count = RUNS};
    double start[FIT_FIGURES], truth[FIT_FIGURES], found[FIT_FIGURES], seconds;
    struct error err = {0};
    make_runs(runs);
    if (calibration_start(machine, &set, 1, start, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(start[FIT_MATMUL_SUSTAINED] > 0 && start[FIT_DISPATCH_LATENCY] > 0);
    assert_true(start[FIT_NIC_BANDWIDTH] <= 0); /* one node has none */
    memcpy(truth, start, sizeof truth);
    truth[FIT_MATMUL_SUSTAINED] *= 0.9;
    truth[FIT_DISPATCH_LATENCY] *= 1.3;
    for (uint32_t i = 0; i < RUNS; i++)
        if (calibration_predict(machine, truth, &runs[i], &runs[i].seconds, &err) != STATUS_OK) fail_msg("%s", err.text);
    memcpy(found, start, sizeof found);
    if (calibration_fit(machine, &set, 1, (struct calibration_half){.which = HALF_EVEN}, found, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < RUNS; i++) { /* the other half, too */
        if (calibration_predict(machine, found, &runs[i], &seconds, &err) != STATUS_OK) fail_msg("%s", err.text);
        if (!(fabs(seconds / runs[i].seconds - 1) < 0.01)) fail_msg("run %u: %g s and not %g s", i, seconds, runs[i].seconds);
    }
    assert_true(fabs(found[FIT_DISPATCH_LATENCY] / truth[FIT_DISPATCH_LATENCY] - 1) < 0.03);
}

static void too_few_runs_are_refused(void **state)
{
    (void)state;
    struct measured_run runs[RUNS];
    struct measured_runs set = {.path = "made up", .runs = runs, .count = 4};
    double values[FIT_FIGURES];
    struct error err = {0};
    make_runs(runs);
    assert_int_equal(calibration_start("dgx-a100-80gb", &set, 1, values, &err), STATUS_OK);
    assert_int_equal(calibration_fit("dgx-a100-80gb", &set, 1, (struct calibration_half){.which = HALF_ALL}, values, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "4 measured runs are too few for 14 figures");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_stand_in_any_order),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(halves_are_disjoint_and_whole),
        cmocka_unit_test(a_fit_finds_its_way_back),
        cmocka_unit_test(too_few_runs_are_refused),
    };
    return cmocka_run_group_tests_name("cli/cli_calibrate.h", tests, NULL, NULL);
}
