/*
 * exec/measure/detect.h on the emulated machine: what the driver says of its GPUs, and that direct copies count only
 * where bytes arrive: not where the driver does not offer them, and not where it offers them and delivers others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/measure/detect.h"
#include "tests/emulator/emulator_faults.h"

static struct detect_gpu_list gpus;

static void detect(struct emulator_faults faults, char notes[1024])
{
    struct error err = {0};
    FILE *file = tmpfile();
    assert_non_null(file);
    emulator_set_faults(faults);
    memset(&gpus, 0, sizeof gpus);
    if (detect_gpus("/nowhere", file, &gpus, &err) != STATUS_OK) fail_msg("%s", err.text);
    rewind(file);
    notes[fread(notes, 1, 1023, file)] = '\0';
    fclose(file);
    assert_int_equal(gpus.count, 2);
}

static void gpus_are_described(void **state)
{
    (void)state;
    char notes[1024];
    detect((struct emulator_faults){.device = 0}, notes);
    for (uint32_t d = 0; d < 2; d++) {
        assert_string_equal(gpus.all[d].name, "an emulated GPU");
        assert_int_equal(gpus.all[d].total_bytes, UINT64_C(4) << 30);
        assert_int_equal(gpus.all[d].free_bytes, UINT64_C(3) << 30);
        assert_true(gpus.all[d].fp32_flops_per_s == 2.0 * 64 * 4 * 1e9);
        assert_true(gpus.all[d].memory_bytes_per_s == 32e9);
        assert_int_equal(gpus.all[d].pcie, 0); /* no such file */
    }
    assert_true(gpus.reaches[1] && gpus.reaches[2]);
    assert_string_equal(notes, "");
}

static void copies_that_do_not_arrive_are_none(void **state)
{
    (void)state;
    char notes[1024];
    detect((struct emulator_faults){.damages_peers = 4096}, notes);
    assert_false(gpus.reaches[1] || gpus.reaches[2]);
    assert_non_null(strstr(notes, "note: no direct copies from GPU 0 to GPU 1: "));
    assert_non_null(strstr(notes, "note: no direct copies from GPU 1 to GPU 0: "));
}

static void copies_that_are_not_offered_are_none(void **state)
{
    (void)state;
    char notes[1024];
    detect((struct emulator_faults){.forbids_peers = true}, notes);
    assert_false(gpus.reaches[1] || gpus.reaches[2]);
}

/* As a file: two of a kind that the catalogue lacks, joined or not as was seen. */
static void machines_are_made_of_them(void **state)
{
    (void)state;
    for (int works = 0; works < 2; works++) {
        char notes[1024];
        struct hardware hardware = {0};
        struct error err = {0};
        detect((struct emulator_faults){.damages_peers = works ? 0 : 512}, notes);
        const struct hardware_detected found = {.cpu = "a CPU", .cores = 8, .host_bytes = UINT64_C(1) << 34,
                                                .gpus = gpus.all,
                                                .gpu_count = gpus.count, .reaches = gpus.reaches,
                                                .as_of = "2026-11-23"};
        if (hardware_from_detected(&found, &hardware, &err) != STATUS_OK ||
            hardware_check(&hardware, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_int_equal(hardware.device_count, 2);
        assert_int_equal(hardware_has_p2p(&hardware), works);
        assert_true(hardware.types[0].peak_fp32.value == 512e9);
        hardware_release(&hardware);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_described),
        cmocka_unit_test(copies_that_do_not_arrive_are_none),
        cmocka_unit_test(copies_that_are_not_offered_are_none),
        cmocka_unit_test(machines_are_made_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
