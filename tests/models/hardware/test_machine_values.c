/*
 * models/hardware/machine_values.h: a machine with one value changed differs only in that value, by the factor; the
 * original machine does not change; shares of a peak stay shares.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "models/hardware/machine_values.h"
#include "tests/support/support_models.h"

enum { PLACES_MAX = 20000 };

struct list {
    struct machine_place *places;
    uint32_t count;
};

static void keep(void *context, const struct machine_place *place)
{
    struct list *list = context;
    assert_true(list->count < PLACES_MAX);
    assert_true(place->value > 0);
    list->places[list->count++] = *place;
}

static struct list list_of(const struct hardware *hardware)
{
    struct list list = {.places = calloc(PLACES_MAX, sizeof *list.places)};
    assert_non_null(list.places);
    machine_values_visit(hardware, keep, &list);
    return list;
}

struct change {
    uint32_t what;
    double factor;
};

static double factor_of(void *context, const struct machine_place *place)
{
    const struct change *change = context;
    return place->what == change->what ? change->factor : 1;
}

static void check_moved(const struct hardware *hardware, const struct list *before, struct change change)
{
    struct hardware moved = {0};
    struct error err = {0};
    assert_int_equal(machine_values_move(hardware, factor_of, &change, &moved, &err), STATUS_OK);
    struct list after = list_of(&moved), still = list_of(hardware);
    assert_int_equal(after.count, before->count);
    for (uint32_t i = 0; i < after.count; i++) {
        const struct machine_place *was = &before->places[i], *is = &after.places[i];
        assert_true(still.places[i].value == was->value);
        assert_int_equal(is->what, was->what);
        assert_int_equal(is->index, was->index);
        bool share = machine_value_is_share((enum machine_value)was->what);
        double expected = was->what == change.what ? was->value * change.factor : was->value;
        assert_true(is->value == (share && expected > 1 ? 1 : expected));
    }
    free(after.places);
    free(still.places);
    hardware_release(&moved);
}

static void one_value_moves_alone(void **state)
{
    (void)state;
    static const char *const machines[] = {"2x a100-sxm4-80gb", "g5.12xlarge", "dgx-2", "2x rtx-3090-24gb"};
    for (size_t m = 0; m < ARRAY_COUNT(machines); m++) {
        struct hardware hardware = {0};
        struct error err = {0};
        if (hardware_find(machines[m], &hardware, &err) != STATUS_OK) fail_msg("%s", err.text);
        struct list before = list_of(&hardware);
        assert_true(before.count > 10);
        for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
            check_moved(&hardware, &before, (struct change){f, 0.83});
            check_moved(&hardware, &before, (struct change){f, 7.25});
        }
        free(before.places);
        hardware_release(&hardware);
    }
}

/* A measured quantity has a place for each point; here 2 of a kernel, 1 copy each way, and a profile's interference. */
static const char measured[] =
    "{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"host\","
    " \"host\": {\"memory\": {\"value\": 8, \"unit\": \"GiB\", \"kind\": \"measured\", \"source\": \"s\", "
    "\"as_of\": \"2026\"}, \"cores\": 2}, \"device_types\": [{\"name\": \"t\","
    "  \"memory\": {\"value\": 1, \"unit\": \"GiB\", \"kind\": \"measured\", \"source\": \"s\", \"as_of\": \"2026\"},"
    "  \"peak_fp32\": {\"value\": 90, \"unit\": \"GFLOP/s\", \"kind\": \"measured\", \"source\": \"s\", "
    "\"as_of\": \"2026\"},  \"memory_bandwidth\": {\"value\": 12, \"unit\": \"GB/s\", \"kind\": \"measured\", "
    "\"source\": \"s\", \"as_of\": \"2026\"},  \"profiles\": [{\"threads\": 1, "
    "\"kernels\": {\"matmul_forward\": [[64, 64, 64, 0.001, 0.02], [128, 64, 64, 0.0019, 0.03]]}, "
    "  \"interference\": {\"compute_by_copy\": {\"value\": 0.2, \"unit\": \"ratio\", \"kind\": \"measured\", "
    "\"source\": \"s\", \"as_of\": \"2026\"}}}],  \"h2d\": [[1048576, 0.0002, 0.05]], \"d2h\": [[1048576, 0.0003, "
    "0.04]],  \"collectives\": [{\"kind\": \"send\", \"members\": 2, \"points\": [[64, 0.001, 0], [128, 0.002, "
    "0.1]]},   {\"kind\": \"all-reduce\", \"members\": 2, \"points\": [[64, 0.001, 0]]}]}], "
    "\"links\": [{\"name\": \"l\", \"bandwidth\": {\"value\": 5, \"unit\": \"GB/s\", \"kind\": \"measured\", "
    "\"source\": \"s\", \"as_of\": \"2026\"}, \"duplex\": true}], \"devices\": [{\"type\": \"t\", \"path\": [\"l\"]}]}";

static uint32_t count_of(const struct list *list, enum machine_value what)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) count += list->places[i].what == what;
    return count;
}

static void points_are_places(void **state)
{
    (void)state;
    struct hardware hardware = {0};
    struct error err = {0};
    if (support_hardware(measured, &hardware, &err) != STATUS_OK) fail_msg("%s", err.text);
    struct list list = list_of(&hardware);
    assert_int_equal(count_of(&list, MACHINE_KERNELS), 2);
    assert_int_equal(count_of(&list, MACHINE_H2D), 1);
    assert_int_equal(count_of(&list, MACHINE_D2H), 1);
    assert_int_equal(count_of(&list, MACHINE_COMPUTE_BY_COPY), 1);
    assert_int_equal(count_of(&list, MACHINE_COLLECTIVES), 3);
    assert_int_equal(count_of(&list, MACHINE_LINK), 1);
    assert_int_equal(count_of(&list, MACHINE_LAUNCH_LATENCY), 0); /* it has none */
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) check_moved(&hardware, &list, (struct change){f, 1.7});
    free(list.places);
    hardware_release(&hardware);
}

static void every_value_has_a_name(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
        assert_non_null(machine_value_names[f]);
        for (uint32_t g = 0; g < f; g++) assert_string_not_equal(machine_value_names[f], machine_value_names[g]);
    }
    assert_false(machine_value_is_cost(MACHINE_MATMUL_EFFICIENCY));
    assert_true(machine_value_is_cost(MACHINE_DISPATCH_LATENCY));
    assert_true(machine_value_is_cost(MACHINE_H2D));
    assert_true(machine_value_is_cost(MACHINE_LINK_LATENCY));
    assert_true(machine_value_is_cost(MACHINE_STORAGE_LATENCY));
    assert_false(machine_value_is_cost(MACHINE_LINK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_moves_alone),
        cmocka_unit_test(points_are_places),
        cmocka_unit_test(every_value_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
