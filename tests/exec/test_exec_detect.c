/*
 * exec/measure/detect.h: what a link can do is found in a tree like the kernel's, and this machine, whatever it is,
 * comes out as one that makes sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/size.h"
#include "exec/measure/detect.h"
#include "tests/support/support_folder.h"

static char root[SUPPORT_FOLDER_BYTES];

static void put(const char *path, const char *text)
{
    char whole[512];
    struct error err = {0};
    snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_int_equal(path_make_folders(whole, &err), STATUS_OK);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Makes a device as the kernel does: its folder is inside its port's, and a link among the devices leads there. */
static void put_device(const char *address, const char *speed, const char *port, const char *width)
{
    char path[256], target[256];
    snprintf(path, sizeof path, "/sys/devices/port-%s/%s/max_link_speed", address, address);
    if (speed) put(path, speed);
    snprintf(path, sizeof path, "/sys/devices/port-%s/%s/current_link_width", address, address);
    put(path, width);
    snprintf(path, sizeof path, "/sys/devices/port-%s/max_link_speed", address);
    if (port) put(path, port);
    put("/sys/bus/pci/devices/none", "");
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s", root, address);
    snprintf(target, sizeof target, "../../../devices/port-%s/%s", address, address);
    assert_int_equal(symlink(target, path), 0);
}

static void links_are_as_fast_as_both_ends(void **state)
{
    (void)state;
    static const struct {
        const char *address, *speed, *port, *width;
        uint32_t generation, lanes;
    } rows[] = {
        {"0000:01:00.0", "16.0 GT/s PCIe\n", "16.0 GT/s PCIe\n", "16\n", 4, 16},
        {"0000:02:00.0", "32.0 GT/s PCIe\n", "16.0 GT/s PCIe\n", "8\n", 4, 8},
        {"0000:03:00.0", "16.0 GT/s PCIe\n", "8.0 GT/s PCIe\n", "16\n", 3, 16},
        {"0000:04:00.0", "5.0 GT/s PCIe\n", NULL, "4\n", 2, 4},
        {"0000:05:00.0", "Unknown speed\n", "Unknown speed\n", "63\n", 0, 0}, /* a virtual machine */
        {"0000:06:00.0", NULL, NULL, "16\n", 0, 0},
        {"0000:07:00.0", "8.0 GT/s PCIe\n", NULL, "0\n", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint32_t generation = 99, lanes = 99;
        put_device(rows[i].address, rows[i].speed, rows[i].port, rows[i].width);
        detect_pcie(root, rows[i].address, &generation, &lanes);
        assert_int_equal(generation, rows[i].generation);
        assert_int_equal(lanes, rows[i].lanes);
    }
    uint32_t generation = 99, lanes = 99;
    detect_pcie(root, "0000:08:00.0", &generation, &lanes);
    assert_int_equal(generation, 0);
    assert_int_equal(lanes, 0);
}

static void this_machine_makes_sense(void **state)
{
    (void)state;
    struct hardware hardware = {0};
    struct error err = {0};
    if (detect_machine(NULL, &hardware, &err) != STATUS_OK || hardware_check(&hardware, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_true(hardware.device_count >= 1 && hardware.host_cores >= 1);
    assert_true(hardware.host_bytes.value > 0x1p20);
    assert_non_null(strstr(hardware.note, "found, not measured"));
    hardware_release(&hardware);
}

static int make_root(void **state)
{
    (void)state;
    support_folder_make(root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    support_folder_remove(root);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_as_fast_as_both_ends),
        cmocka_unit_test(this_machine_makes_sense),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
