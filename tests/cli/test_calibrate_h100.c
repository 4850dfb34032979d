/* label: long, all rounds: slow (each run left out, not one)
 * The H100 of the catalogue and the stack "megatron-core" (models/hardware/software_stack.c): their errors on published
 * runs, the errors of fits that left a number of GPUs out, and times next to an A100's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "cli/machine/cli_calibrate_fit.h"
#include "tests/support/support_seed.h"

#define DATA SOURCE_DIR "/plots/papers/data/"
static const char machine[] = "dgx-h100";
static const char *const paths[] = {DATA "megatron_core_h100.csv", DATA "megatron_core_h100_strong.csv"};
enum { FILES = ARRAY_COUNT(paths) };

/* The values that seven runs do not identify. */
static const uint32_t kept[] = {
    CALIBRATION_MATMUL_EFFICIENCY, CALIBRATION_MEMORY_EFFICIENCY,  CALIBRATION_COLLECTIVE_LATENCY,
    CALIBRATION_MATMUL_DEPTH,      CALIBRATION_KERNEL_GAP,         CALIBRATION_DISPATCH_LATENCY,
    CALIBRATION_NVLINK_BANDWIDTH,  CALIBRATION_NVLINK_LATENCY,     CALIBRATION_NIC_BANDWIDTH};

struct runs {
    struct arena arena;
    struct measured_runs sets[FILES];
};

static void read_runs(struct runs *out)
{
    struct error err = {0};
    *out = (struct runs){.sets = {{0}}};
    for (uint32_t f = 0; f < FILES; f++)
        if (measured_runs_read(paths[f], &out->arena, &out->sets[f], &err) != STATUS_OK) fail_msg("%s", err.text);
}

static double error_of(const double values[CALIBRATION_VALUES], const struct measured_run *run)
{
    struct error err = {0};
    double seconds;
    if (calibration_predict(machine, values, run, &seconds, &err) != STATUS_OK) fail_msg("%s", err.text);
    return seconds / run->seconds - 1;
}

/* Of the table: 4 % on average, 9 % at most. */
static void published_runs_take_their_time(void **state)
{
    (void)state;
    struct runs runs;
    read_runs(&runs);
    for (uint32_t f = 0; f < FILES; f++) {
        double sum = 0;
        for (uint32_t i = 0; i < runs.sets[f].count; i++) {
            const double error = error_of(NULL, &runs.sets[f].runs[i]);
            print_message("%4u GPUs: %+.1f %%\n", runs.sets[f].runs[i].of[RUN_DEVICES], 100 * error);
            assert_true(fabs(error) < 0.09);
            sum += fabs(error);
        }
        assert_true(sum / runs.sets[f].count < 0.04);
    }
    arena_release(&runs.arena);
}

/* Leaves one run of the table out. */
static double held_out_error(struct runs *runs, const double shipped[CALIBRATION_VALUES], uint32_t run)
{
    const struct measured_run *out = &runs->sets[0].runs[run];
    const struct calibration_group unseen = {.column = RUN_DEVICES, .value = out->of[RUN_DEVICES]};
    const struct calibration_split split = {.half = CALIBRATION_HALF_ALL, .held = {unseen}, .held_count = 1};
    struct calibration_problem problem = {.machine = machine, .sets = runs->sets, .set_count = FILES};
    double found[CALIBRATION_VALUES];
    struct error err = {0};
    for (size_t k = 0; k < ARRAY_COUNT(kept); k++) problem.keep[kept[k]] = true;
    memcpy(found, shipped, sizeof found);
    if (calibration_fit(&problem, &split, found, &err) != STATUS_OK) fail_msg("%s", err.text);
    return error_of(found, out);
}

static void runs_that_a_fit_has_not_seen_are_close(void **state)
{
    (void)state;
    struct runs runs;
    struct error err = {0};
    double shipped[CALIBRATION_VALUES];
    read_runs(&runs);
    if (calibration_start(machine, runs.sets, FILES, shipped, &err) != STATUS_OK) fail_msg("%s", err.text);
    const uint32_t count = runs.sets[0].count, first = (uint32_t)(support_seed("the run left out") % count);
    for (uint32_t n = 0; n < support_rounds(1, count); n++) {
        const uint32_t i = (first + n) % count;
        const double error = held_out_error(&runs, shipped, i);
        print_message("without %4u GPUs: %+.1f %%\n", runs.sets[0].runs[i].of[RUN_DEVICES], 100 * error);
        assert_true(fabs(error) < 0.1);
    }
    arena_release(&runs.arena);
}

/* Peaks differ 3.2 times, bandwidths of memory 1.6 and of NVLink 1.35 times. */
static void no_h100_is_faster_than_its_parts(void **state)
{
    (void)state;
    for (uint32_t microbatch = 1; microbatch <= 8; microbatch *= 2) {
        struct measured_run run = {.of = {[RUN_DEVICES] = 8, [RUN_BATCH] = 32, [RUN_MICROBATCH] = microbatch,
                                          [RUN_WIDTH] = 2048, [RUN_HEADS] = 16, [RUN_LAYERS] = 24,
                                          [RUN_SEQUENCE] = 2048, [RUN_TENSOR] = 8, [RUN_DATA] = 1, [RUN_PIPELINE] = 1,
                                          [RUN_CHUNKS] = 1, [RUN_VOCABULARY] = 50304,
                                          [RUN_STACK] = STACK_FRAMEWORKS}};
        struct error err = {0};
        double a100_s, h100_s;
        if (calibration_predict("dgx-a100-80gb", NULL, &run, &a100_s, &err) != STATUS_OK) fail_msg("%s", err.text);
        if (calibration_predict(machine, NULL, &run, &h100_s, &err) != STATUS_OK) fail_msg("%s", err.text);
        print_message("microbatch %u: %.2f times an A100\n", microbatch, a100_s / h100_s);
        assert_true(a100_s / h100_s > 1 && a100_s / h100_s < 989.4 / 312);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_h100_is_faster_than_its_parts),
        cmocka_unit_test(published_runs_take_their_time),
        cmocka_unit_test(runs_that_a_fit_has_not_seen_are_close),
    };
    return cmocka_run_group_tests_name("the H100 of the catalogue", tests, NULL, NULL);
}
