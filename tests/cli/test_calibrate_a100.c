/* label: long
 * The A100's values in the catalogue (models/hardware/hardware_catalogue.c) are the result of
 * cli/machine/cli_calibrate_fit.h for the runs that they cite: a fit that starts with them stays there, and the
 * error on runs that the fit has not seen is the stated one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "cli/machine/cli_calibrate_fit.h"

#define DATA SOURCE_DIR "/plots/papers/data/"
static const char machine[] = "dgx-a100-80gb";

/* The files of the command in plots/papers/README.md. */
static const struct {
    const char *path;
    double weight;
    double most; /* limit of the mean error of the runs between: the value in docs/accuracy.md and a little more */
} files[] = {
    {DATA "vtrain_single_a100.csv", 12, 0.044},  {DATA "vtrain_multi_a100.csv", 9, 0.090},
    {DATA "megatron_table1.csv", 1, 0.040},      {DATA "megatron_fig11.csv", 1, 0.095},
    {DATA "megatron_fig12.csv", 1, 0.030},       {DATA "megatron_fig14.csv", 1, 0.020},
    {DATA "megatron_fig17.csv", 1, 0.034},       {DATA "korthikanti_table5.csv", 1, 0.038},
};
enum { FILES = ARRAY_COUNT(files) };

static const uint32_t kept[] = {CALIBRATION_MATMUL_EFFICIENCY, CALIBRATION_MEMORY_EFFICIENCY,
                                CALIBRATION_NVLINK_BANDWIDTH, CALIBRATION_NVLINK_LATENCY, CALIBRATION_NIC_BANDWIDTH};

struct runs {
    struct arena arena;
    struct measured_runs sets[FILES];
    double weights[FILES];
};

static void read_runs(struct runs *out)
{
    struct error err = {0};
    *out = (struct runs){.weights = {0}};
    for (uint32_t f = 0; f < FILES; f++) {
        out->weights[f] = files[f].weight;
        if (measured_runs_read(files[f].path, &out->arena, &out->sets[f], &err) != STATUS_OK) fail_msg("%s", err.text);
    }
}

static double mean_error(const struct measured_runs *set, const struct calibration_split *split,
                         const double values[CALIBRATION_VALUES])
{
    double sum = 0, count = 0, seconds;
    struct error err = {0};
    for (uint32_t i = 0; i < set->count; i++) {
        if (calibration_is_fitted(split, &set->runs[i], i)) continue;
        if (calibration_predict(machine, values, &set->runs[i], &seconds, &err) != STATUS_OK) fail_msg("%s", err.text);
        sum += fabs(seconds / set->runs[i].seconds - 1);
        count++;
    }
    return sum / count;
}

/* Within a tenth; depth, about which few runs say much, within a quarter. */
static void the_catalogue_is_what_a_fit_finds(void **state)
{
    (void)state;
    struct runs runs;
    struct error err = {0};
    double shipped[CALIBRATION_VALUES], found[CALIBRATION_VALUES];
    const struct calibration_split even = {.half = CALIBRATION_HALF_EVEN};
    read_runs(&runs);
    if (calibration_start(machine, runs.sets, FILES, shipped, &err) != STATUS_OK) fail_msg("%s", err.text);
    struct calibration_problem problem = {.machine = machine, .sets = runs.sets, .set_count = FILES,
                                          .weights = runs.weights};
    for (size_t k = 0; k < ARRAY_COUNT(kept); k++) problem.keep[kept[k]] = true;
    memcpy(found, shipped, sizeof found);
    if (calibration_fit(&problem, &even, found, &err) != STATUS_OK) fail_msg("%s", err.text);
    for (uint32_t f = 0; f < CALIBRATION_VALUES; f++) {
        if (shipped[f] <= 0) continue;
        double off = fabs(found[f] / shipped[f] - 1);
        print_message("%-22s %.4g, fitted %.4g\n", calibration_value_names[f], shipped[f], found[f]);
        if (!(off < (f == CALIBRATION_MATMUL_DEPTH ? 0.25 : 0.1)))
            fail_msg("%s: %g and not %g", calibration_value_names[f], found[f], shipped[f]);
    }
    arena_release(&runs.arena);
}

static void what_was_not_fitted_is_as_far_off_as_is_said(void **state)
{
    (void)state;
    struct runs runs;
    const struct calibration_split even = {.half = CALIBRATION_HALF_EVEN};
    read_runs(&runs);
    for (uint32_t f = 0; f < FILES; f++) {
        double error = mean_error(&runs.sets[f], &even, NULL);
        print_message("%s: %.1f %%\n", files[f].path, 100 * error);
        assert_true(error <= files[f].most);
    }
    arena_release(&runs.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_fitted_is_as_far_off_as_is_said),
        cmocka_unit_test(the_catalogue_is_what_a_fit_finds),
    };
    return cmocka_run_group_tests_name("the A100 of the catalogue", tests, NULL, NULL);
}
