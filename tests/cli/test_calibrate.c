/*
 * cli/machine/cli_runs.h, cli/machine/cli_calibrate_split.h and cli/machine/cli_calibrate_fit.h (label: fast): files of
 * measured runs, their faults to the column, the choice of held-out runs, and a fit that recovers the values that the
 * runs were predicted with.
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

#include "base/size.h"
#include "cli/machine/cli_calibrate_fit.h"
#include "models/job/parallel.h"

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
        [RUN_DEVICES] = 8, [RUN_BATCH] = 64, [RUN_MICROBATCH] = 2, [RUN_WIDTH] = 1024, [RUN_HEADS] = 16,
            [RUN_LAYERS] = 12,
        [RUN_SEQUENCE] = 512, [RUN_TENSOR] = 2, [RUN_DATA] = 2, [RUN_PIPELINE] = 2, [RUN_RECOMPUTE] = RECOMPUTE_FULL,
        [RUN_CHUNKS] = 1, [RUN_VOCABULARY] = 50304, [RUN_STACK] = STACK_FRAMEWORKS};
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
        {HEAD ",iteration time\n", ":1:143: unknown column 'iteration time' (expected a column of measured runs, such "
                                   "as 'global batch')"},
        {HEAD ",chunks, chunks\n", ":1:151: second column 'chunks' (expected each once)"},
        {HEAD ",iteration time (ms)\n" ROW "\n", ":2:1: 10 fields (expected 11)"},
        {HEAD ",iteration time (ms)\n" ROW ",-3\n", ":2:29: iteration time (ms) '-3' (expected a number above 0)"},
        {HEAD ",iteration time (ms)\n8,6x," "2,1024,16,12,512,2,2,2,7\n",
         ":2:3: global batch '6x' (expected a whole number from 1 to 16777216)"},
        {HEAD ",iteration time (ms),recompute\n" ROW ",7,some\n",
         ":2:31: recompute is 'some' (expected none, selective, full or stage)"},
        {HEAD ",iteration time (ms),scatter\n" ROW ",7,2\n",
         ":2:31: scatter '2' (expected a whole number from 0 to 1)"},
        {HEAD ",iteration time (ms)\n9,64,2,1024,16,12,512,2,2,2,7\n",
         ":2:1: 9 GPUs, but tensor x data x pipeline is 8"},
        {HEAD ",iteration time (ms)\n8,66,4,1024,16,12,512,2,2,2,7\n",
         ":2:1: global batch 66 is not a multiple of micro batch x data, 8"},
        {HEAD ",iteration time (ms)\n8,64,2,1024,15,12,512,2,2,2,7\n",
         ":2:1: hidden size 1024 is not a multiple of 15 attention heads"},
        {HEAD ",iteration time (ms)\n" ROW ",5e-324\n", ":2:29: iteration time (ms) '5e-324' (expected a number above "
                                                        "0)"},
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

static struct calibration_split half(const char *text)
{
    struct calibration_split split = {.half = CALIBRATION_HALF_ALL};
    struct error err = {0};
    if (calibration_half_parse(text, &split, &err) != STATUS_OK) fail_msg("%s", err.text);
    return split;
}

static void halves_are_disjoint_and_whole(void **state)
{
    (void)state;
    const struct calibration_split even = half("even"), odd = half("odd"), all = half("all"), none = half("none"),
                                   seven = half("7");
    const struct measured_run run = {.seconds = 1};
    uint32_t drawn = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(calibration_is_fitted(&even, &run, i) != calibration_is_fitted(&odd, &run, i));
        assert_true(calibration_is_fitted(&all, &run, i) && !calibration_is_fitted(&none, &run, i));
        drawn += calibration_is_fitted(&seven, &run, i);
    }
    assert_in_range(drawn, 400, 600); /* 500, and a standard deviation of 16 */
}

/* 24 runs: microbatches 1, 2, 4, 8 of which each has every sixth place twice, recomputation in all but every third. */
enum { GROUPED = 24 };
static void make_groups(struct measured_run runs[GROUPED])
{
    for (uint32_t i = 0; i < GROUPED; i++)
        runs[i] = (struct measured_run){.of = {[RUN_MICROBATCH] = 8u >> i / 6, [RUN_TENSOR] = 3,
                                               [RUN_RECOMPUTE] = i % 3 ? RECOMPUTE_FULL : RECOMPUTE_NONE}};
}

static void groups_are_held_out_whole(void **state)
{
    (void)state;
    struct measured_run runs[GROUPED];
    struct calibration_split split = half("even");
    struct error err = {0};
    make_groups(runs);
    assert_int_equal(calibration_held_parse("micro batch=4", &split, &err), STATUS_OK);
    assert_int_equal(calibration_held_parse("recompute=none", &split, &err), STATUS_OK);
    for (uint32_t i = 0; i < GROUPED; i++)
        assert_int_equal(calibration_is_fitted(&split, &runs[i], i), i % 2 == 0 && !(i >= 6 && i < 12) && i % 3 != 0);
}

/* Each run is held out by one fold and no other. */
static void folds_hold_out_each_run_once(void **state)
{
    (void)state;
    struct measured_run runs[GROUPED];
    const struct measured_runs set = {.path = "made up", .runs = runs, .count = GROUPED};
    static const struct {
        const char *text, *second;
        uint32_t count;
    } cases[] = {{"5", "fold 2 of 5", 5}, {"micro batch", "micro batch 2", 4}, {"recompute", "recompute full", 2}};
    make_groups(runs);
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct calibration_folds folds;
        struct error err = {0};
        char label[CALIBRATION_LABEL_BYTES];
        if (calibration_folds_parse(cases[c].text, &set, 1, &folds, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_int_equal(folds.count, cases[c].count);
        calibration_fold_label(&folds, 1, label);
        assert_string_equal(label, cases[c].second);
        for (uint32_t i = 0; i < GROUPED; i++) {
            uint32_t held = 0;
            for (uint32_t f = 0; f < folds.count; f++) {
                const struct calibration_split split = calibration_fold(&folds, f);
                held += !calibration_is_fitted(&split, &runs[i], i);
            }
            assert_int_equal(held, 1);
        }
    }
}

static void wrong_splits_are_named(void **state)
{
    (void)state;
    struct measured_run runs[GROUPED];
    const struct measured_runs set = {.path = "made up", .runs = runs, .count = GROUPED};
    static const struct {
        char option; /* h: --half, o: --hold-out, f: --folds */
        const char *text, *message;
    } cases[] = {
        {'h', "evn", "option '--half' is 'evn' (expected none, all, even, odd or a seed)"},
        {'h', "7x", "option '--half' is '7x' (expected none, all, even, odd or a seed)"},
        {'h', "99999999999999999999", "option '--half' is '99999999999999999999' (expected none, all, even, odd or a "
                                      "seed)"},
        {'o', "micro batch", "option '--hold-out' is 'micro batch' (expected a column and its value, such as 'micro "
                             "batch=4')"},
        {'o', "batch=4", "option '--hold-out' is 'batch=4' (expected a column and its value, such as 'micro batch=4')"},
        {'o', "micro batch=0", "option '--hold-out' is 'micro batch=0' (expected a value of column 'micro batch')"},
        {'o', "recompute=all", "option '--hold-out' is 'recompute=all' (expected a value of column 'recompute')"},
        {'f', "1", "option '--folds' is '1' (expected a number from 2 to 64 or a column)"},
        {'f', "width", "option '--folds' is 'width' (expected a number from 2 to 64 or a column)"},
        {'f', "tensor parallelism", "option '--folds' is 'tensor parallelism', which is the same in all runs"},
    };
    make_groups(runs);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct calibration_split split = {.half = CALIBRATION_HALF_ALL};
        struct calibration_folds folds;
        struct error err = {0};
        const char *text = cases[i].text;
        enum status status = cases[i].option == 'h'   ? calibration_half_parse(text, &split, &err)
                             : cases[i].option == 'o' ? calibration_held_parse(text, &split, &err)
                                                      : calibration_folds_parse(text, &set, 1, &folds, &err);
        assert_int_equal(status, STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
}

enum { RUNS = 60 };

/* Makes runs of small and large networks, with and without tensor groups: enough to tell the values apart. */
static void make_runs(struct measured_run runs[RUNS])
{
    for (uint32_t i = 0; i < RUNS; i++) {
        uint32_t tensor = 1u << i % 3, width = 512u << i % 4, microbatch = 1u << i % 5;
        runs[i] = (struct measured_run){.of = {[RUN_DEVICES] = tensor, [RUN_BATCH] = 2 * microbatch,
                                               [RUN_MICROBATCH] = microbatch,
                                               [RUN_WIDTH] = width, [RUN_HEADS] = 16, [RUN_LAYERS] = 4,
                                               [RUN_SEQUENCE] = 1024,
                                               [RUN_TENSOR] = tensor, [RUN_DATA] = 1, [RUN_PIPELINE] = 1,
                                               [RUN_CHUNKS] = 1, [RUN_VOCABULARY] = 51200,
                                               [RUN_STACK] = STACK_FRAMEWORKS}};
    }
}

/* Products run at 0.9 of the sustained rate and kernels are dispatched in 1.3 of the time; the fit recovers both. */
static void a_fit_finds_its_way_back(void **state)
{
    (void)state;
    static const char machine[] = "dgx-a100-80gb";
    struct measured_run runs[RUNS];
    struct measured_runs set = {.path = "made up", .runs = runs, .count = RUNS};
    double start[CALIBRATION_VALUES], truth[CALIBRATION_VALUES], found[CALIBRATION_VALUES], seconds;
    struct error err = {0};
    make_runs(runs);
    if (calibration_start(machine, &set, 1, start, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(start[CALIBRATION_MATMUL_SUSTAINED] > 0 && start[CALIBRATION_DISPATCH_LATENCY] > 0);
    assert_true(start[CALIBRATION_NIC_BANDWIDTH] <= 0); /* one node has none */
    memcpy(truth, start, sizeof truth);
    truth[CALIBRATION_MATMUL_SUSTAINED] *= 0.9;
    truth[CALIBRATION_DISPATCH_LATENCY] *= 1.3;
    for (uint32_t i = 0; i < RUNS; i++)
        if (calibration_predict(machine, truth, &runs[i], &runs[i].seconds, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    memcpy(found, start, sizeof found);
    const struct calibration_problem problem = {.machine = machine, .sets = &set, .set_count = 1,
                                                .keep = {[CALIBRATION_NVLINK_BANDWIDTH] = true}};
    const struct calibration_split split = half("even");
    if (calibration_fit(&problem, &split, found, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(found[CALIBRATION_NVLINK_BANDWIDTH] >= start[CALIBRATION_NVLINK_BANDWIDTH] &&
                found[CALIBRATION_NVLINK_BANDWIDTH] <= start[CALIBRATION_NVLINK_BANDWIDTH]); /* kept */
    for (uint32_t i = 0; i < RUNS; i++) { /* the other half, too */
        if (calibration_predict(machine, found, &runs[i], &seconds, &err) != STATUS_OK) fail_msg("%s", err.text);
        if (!(fabs(seconds / runs[i].seconds - 1) < 0.01))
            fail_msg("run %u: %g s and not %g s", i, seconds, runs[i].seconds);
    }
    assert_true(fabs(found[CALIBRATION_DISPATCH_LATENCY] / truth[CALIBRATION_DISPATCH_LATENCY] - 1) < 0.03);
}

static void too_few_runs_are_refused(void **state)
{
    (void)state;
    struct measured_run runs[RUNS];
    struct measured_runs set = {.path = "made up", .runs = runs, .count = 4};
    double values[CALIBRATION_VALUES];
    struct error err = {0};
    make_runs(runs);
    assert_int_equal(calibration_start("dgx-a100-80gb", &set, 1, values, &err), STATUS_OK);
    const struct calibration_problem problem = {.machine = "dgx-a100-80gb", .sets = &set, .set_count = 1};
    const struct calibration_split all = half("all");
    assert_int_equal(calibration_fit(&problem, &all, values, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "4 measured runs are too few for 14 values");
    err = (struct error){0};
    set.count = 1;
    assert_int_equal(calibration_fit(&problem, &all, values, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "1 measured run is too few for 14 values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_stand_in_any_order),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(halves_are_disjoint_and_whole),
        cmocka_unit_test(groups_are_held_out_whole),
        cmocka_unit_test(folds_hold_out_each_run_once),
        cmocka_unit_test(wrong_splits_are_named),
        cmocka_unit_test(a_fit_finds_its_way_back),
        cmocka_unit_test(too_few_runs_are_refused),
    };
    return cmocka_run_group_tests_name("cli/machine/cli_calibrate.h", tests, NULL, NULL);
}
