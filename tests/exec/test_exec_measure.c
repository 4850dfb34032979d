/* label: medium
 * exec/measure/measure.h: with a tiny budget, a profile that makes sense and survives being written and read;
 * and the statistics of its samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json_out.h"
#include "base/size.h"
#include "exec/kernels/kernels_sum.h"
#include "exec/measure/measure.h"
#include "exec/measure/measure_members.h"
#include "exec/measure/measure_state.h"
#include "models/hardware/collective_rate.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_models.h"

static void test_statistics(void **state)
{
    (void)state;
    /* sorted 1.5 2 4 7 16: quartiles 2 and 7, median 4, half the range between them 2.5 */
    struct measure_samples samples = {.count = 0};
    const double values[] = {7, 1.5, 16, 2, 4};
    for (int i = 0; i < 5; i++) measure_samples_add(&samples, values[i]);
    assert_true(fabs(measure_samples_median(&samples) - 4) < 1e-15);
    assert_true(fabs(measure_samples_spread(&samples) - 2.5 / 4) < 1e-15);
    /* with 9: 1.5 2 4 7 9 16: median 5.5, quartiles at 1.25 and 3.75 of 0 .. 5: 2.5 and 8.5 */
    measure_samples_add(&samples, 9);
    assert_true(fabs(measure_samples_median(&samples) - 5.5) < 1e-15);
    assert_true(fabs(measure_samples_spread(&samples) - 3 / 5.5) < 1e-15);
    for (int i = 0; i < 2 * MEASURE_SAMPLES_MAX; i++) measure_samples_add(&samples, 1);
    assert_int_equal(samples.count, MEASURE_SAMPLES_MAX);

    struct measure_samples one = {.count = 0};
    measure_samples_add(&one, 0.25);
    assert_true(fabs(measure_samples_median(&one) - 0.25) < 1e-15);
    assert_false(measure_samples_spread(&one) > 0);
}

/* Of five values the ends, 7 and 1, do not count, so the mean is taken over 1.5, 2 and 4; of four values, all count. */
static void test_mean(void **state)
{
    (void)state;
    struct measure_samples samples = {.count = 0};
    const double values[] = {7, 1.5, 1, 2, 4};
    for (int i = 0; i < 4; i++) measure_samples_add(&samples, values[i]);
    assert_true(fabs(measure_samples_mean(&samples) - 11.5 / 4) < 1e-15);
    measure_samples_add(&samples, values[4]);
    assert_true(fabs(measure_samples_mean(&samples) - 7.5 / 3) < 1e-15);
}

/* Preempted samples are set aside, and used only if there are no others. */
static void test_disturbed_samples(void **state)
{
    (void)state;
    static struct measure_watch watch;
    static struct measure_series mixed, preempted_only;
    measure_watch_begin(&watch);
    assert_false(measure_series_has_samples(&mixed));
    for (int i = 0; i < 3; i++) measure_watch_take(&watch, &preempted_only, 8.5, true);
    measure_watch_judge(&watch);
    assert_int_equal(preempted_only.clean.count, 0);
    assert_int_equal(preempted_only.disturbed.count, 3);
    assert_true(measure_series_has_samples(&preempted_only));
    assert_ptr_equal(measure_series_samples(&preempted_only), &preempted_only.disturbed);
    assert_int_equal(watch.sample_count, 3);
    assert_int_equal(watch.disturbed_count, 3);

    measure_samples_add(&mixed.clean, 2.5); /* as if no other program had run */
    measure_watch_take(&watch, &mixed, 9.5, true);
    measure_watch_judge(&watch);
    assert_int_equal(mixed.disturbed.count, 1);
    assert_true(fabs(measure_samples_median(measure_series_samples(&mixed)) - 2.5) < 1e-15);
}

static void test_cores(void **state)
{
    (void)state;
    struct measure_machine machine;
    measure_machine_look(&machine);
    assert_true(machine.cores >= 1 && machine.cores <= machine.present);
    assert_true(strlen(machine.cpu) > 0);
}

/* Containers without /sys: hwloc finds no cores there, and must not write to the user's terminal. */
static void test_without_sysfs(void **state)
{
    (void)state;
    char root[SUPPORT_FOLDER_BYTES];
    struct measure_machine machine;
    struct stat found;
    support_folder_make(root);
    setenv("HWLOC_FSROOT", root, 1);
    const int kept = dup(STDERR_FILENO), caught = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(kept >= 0 && caught >= 0 && dup2(caught, STDERR_FILENO) >= 0);
    measure_machine_look(&machine);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    assert_int_equal(fstat(caught, &found), 0);
    assert_int_equal(found.st_size, 0);
    assert_true(machine.cores >= 1 && machine.cores <= machine.present);
    close(kept);
    close(caught);
    unsetenv("HWLOC_FSROOT");
    support_folder_remove(root);
}

struct told {
    double done, total;
    uint32_t calls;
};

static void on_progress(void *context, double done, double total, const char *what)
{
    struct told *const told = context;
    assert_true(done >= told->done && total > 0 && strlen(what) > 0);
    told->done = done;
    told->total = total;
    told->calls++;
}

static void check_profile(const struct hardware *hardware, const struct compute_profile *profile)
{
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        const struct kernel_rate *const rate = &profile->kernels[kernel];
        if (kernel == KERNEL_FIXED) continue;
        if (kernel >= KERNEL_MATMUL_BF16_FORWARD && kernel <= KERNEL_MATMUL_BF16_WEIGHT) {
            assert_int_equal(rate->point_count, 0); /* the host makes them in fp32 */
            continue;
        }
        if (kernel_wide(kernel) != kernel || kernel == KERNEL_COLLECTIVE) {
            assert_int_equal(rate->point_count, 0); /* of parallel jobs, which no executor trains */
            continue;
        }
        assert_true(rate->point_count >= 2);
        for (uint32_t i = 0; i < rate->point_count; i++) {
            assert_true(rate->points[i].seconds > 0 && rate->points[i].seconds < 10);
            assert_true(rate->points[i].spread >= 0);
        }
        for (uint32_t i = 1; i < rate->point_count; i++) {
            const struct rate_point *const a = &rate->points[i - 1], *const b = &rate->points[i];
            assert_true(a->m < b->m || (a->m == b->m && a->n < b->n) ||
                        (a->m == b->m && a->n == b->n && a->k < b->k));
        }
    }
    const struct hardware_interference *const i = &profile->interference;
    assert_true(i->copy_reference_rate.value > 1e6);
    assert_true(i->compute_by_compute.value >= 0 && i->compute_by_copy.value >= 0);
    assert_true(i->copy_by_compute.value >= 0 && i->copy_by_copy.value >= 0);
    assert_int_equal(i->copy_reference_rate.kind, SOURCE_MEASURED);
    assert_true(hardware->types[0].peak_fp32.value > 1e8);
}

/* One collective of each kind: what arrives is right, for groups and sizes with uneven shares too. */
static void test_members(void **state)
{
    (void)state;
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_ALL_GATHER, COLLECTIVE_BROADCAST, COLLECTIVE_SEND};
    enum { FLOATS = 16 * 37 };
    static float memory[MEASURE_MEMBERS_MAX][FLOATS];
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
        for (uint32_t members = 2; members <= (kinds[k] == COLLECTIVE_SEND ? 2 : MEASURE_MEMBERS_MAX); members++) {
            struct measure_members about = {
                .kind = kinds[k], .members = members, .bytes = sizeof memory[0], .repetitions = 1};
            struct error err = {0};
            double seconds = 0, sum = 0;
            for (uint32_t m = 0; m < members; m++) {
                about.memory[m] = (char *)memory[m];
                sum += m + 1;
                for (uint32_t i = 0; i < FLOATS; i++) memory[m][i] = (float)(m + 1);
            }
            if (measure_members_run(&about, &seconds, &err) != STATUS_OK) fail_msg("%s", err.text);
            assert_true(seconds > 0);
            for (uint32_t m = 0; m < members; m++)
                for (uint32_t i = 0; i < FLOATS; i++) {
                    uint32_t owner = 0;
                    while (i >= kernels_sum_slice(FLOATS, owner + 1, members)) owner++;
                    const double wanted = kinds[k] == COLLECTIVE_ALL_REDUCE       ? sum
                                          : kinds[k] == COLLECTIVE_REDUCE_SCATTER ? (owner == m ? sum : m + 1)
                                          : kinds[k] == COLLECTIVE_ALL_GATHER     ? owner + 1
                                                                                  : 1;
                    if (fabs(memory[m][i] - wanted) > 1e-6)
                        fail_msg("%s among %u: float %u of member %u is %g (expected %g)",
                                 collective_kind_names[kinds[k]], members, i, m, (double)memory[m][i], wanted);
                }
        }
}

/* A coarse profile has groups of two, without anything else running: each kind and size, however short the budget. */
static void check_collectives(const struct device_type *type)
{
    for (uint32_t k = 0; k < COLLECTIVE_KIND_COUNT; k++) {
        const struct collective_rate *const rate = support_collective_rate(type, k, 2, 0);
        assert_int_equal(rate != NULL, k != COLLECTIVE_ALL_TO_ALL);
        if (!rate) continue;
        assert_int_equal(rate->point_count, 4);
        for (uint32_t i = 0; i < rate->point_count; i++) assert_true(rate->points[i].seconds > 0);
    }
}

static void test_a_profile(void **state)
{
    (void)state;
    struct hardware hardware = {0}, again = {0};
    struct error err = {0};
    struct told told = {0};
    const struct measure_options options = {
        .budget_s = 1, .on_progress = on_progress, .context = &told};
    if (measure_host(&options, &hardware, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(told.calls >= 3);
    assert_string_equal(hardware.backend, "host");
    assert_int_equal(hardware_check(&hardware, &err), STATUS_OK);
    const struct device_type *const type = &hardware.types[0];
    assert_int_equal(type->profiles[0].threads, 1);
    assert_int_equal(type->profiles[type->profile_count - 1].threads, hardware.host_cores);
    for (uint32_t i = 0; i < type->profile_count; i++) check_profile(&hardware, &type->profiles[i]);
    assert_true(type->h2d_count >= 4 && type->d2h_count >= 4);
    check_collectives(type);
    assert_true(hardware.load.others.source && hardware.load.others.value <= 1 && hardware.load.disturbed.value <= 1);

    /* write, read, write: the same bytes */
    struct json_out *out = json_out_create(NULL), *out_again = json_out_create(NULL);
    hardware_write(&hardware, out, NULL);
    size_t length, length_again;
    const char *const text = json_out_text(out, &length);
    struct json_input *in;
    assert_int_equal(json_input_parse("profile", text, length, &in, &err), STATUS_OK);
    if (hardware_parse(in, json_input_root(in), &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    hardware_write(&again, out_again, NULL);
    const char *const text_again = json_out_text(out_again, &length_again);
    assert_int_equal(length, length_again);
    assert_memory_equal(text, text_again, length);
    json_input_destroy(in);
    json_out_destroy(out);
    json_out_destroy(out_again);

    /* The sizes that a plan asks for have answers: a linear layer between the measured sizes takes longer
     * than a linear layer of half its width. */
    const struct work_item narrow = {KERNEL_MATMUL_FORWARD, 1, 200, 300, 500};
    const struct work_item wide = {KERNEL_MATMUL_FORWARD, 1, 200, 600, 500};
    assert_true(cost_item_s(&again, 0, &wide) > cost_item_s(&again, 0, &narrow));
    assert_true(cost_copy_s(&again, 0, COPY_H2D, 3000000) > 0);
    hardware_release(&hardware);
    hardware_release(&again);
}

static void test_stopping(void **state)
{
    (void)state;
    struct hardware hardware = {0};
    struct error err = {0};
    const volatile bool stop = true;
    const struct measure_options options = {.budget_s = 60, .stop = &stop};
    assert_int_equal(measure_host(&options, &hardware, &err), STATUS_INTERRUPTED);
    hardware_release(&hardware);
}

/* The thread sanitizer does not understand OpenMP's barriers: one core, so teams of one thread. */
static void use_one_core(void)
{
#ifdef __SANITIZE_THREAD__
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
#endif
}

int main(void)
{
    use_one_core();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_disturbed_samples),
        cmocka_unit_test(test_without_sysfs),
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_a_profile),
        cmocka_unit_test(test_stopping),
    };
    return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
