/*
 * cli/machine/cli_doctor.h: made-up machines in a folder (/proc, /sys) with made-up programs on PATH; each is well but
 * for one thing, which is found, and how to repair it.
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
#include "cli/machine/cli_doctor.h"
#include "tests/support/support_folder.h"

static char root[SUPPORT_FOLDER_BYTES];

/* --- the machine ----------------------------------------------------------------------------- */

static const char *at(const char *path)
{
    static char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return whole;
}

static void put(const char *path, const char *text)
{
    struct error err = {0};
    assert_int_equal(path_make_folders(at(path), &err), STATUS_OK);
    FILE *file = fopen(at(path), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void program(const char *name, const char *script)
{
    char path[128], text[1024];
    snprintf(path, sizeof path, "/bin/%s", name);
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    put(path, text);
    assert_int_equal(chmod(at(path), 0700), 0);
}

static void gpu(unsigned number, const char *lanes, const char *node)
{
    char path[128];
    const char *const files[][2] = {{"vendor", "0x10de\n"}, {"class", "0x030200\n"}, {"numa_node", node},
                                    {"current_link_width", lanes}, {"max_link_width", "16\n"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "/sys/bus/pci/devices/0000:0%u:00.0/%s", number, files[i][0]);
        put(path, files[i][1]);
    }
}

/* Makes a machine with two GPUs and no faults. */
static void well(void)
{
    gpu(1, "16\n", "0\n");
    gpu(2, "16\n", "1\n");
    /* a network card of the same maker is no GPU */
    put("/sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n");
    put("/sys/bus/pci/devices/0000:05:00.0/class", "0x020000\n");
    put("/sys/devices/system/node/node0/cpulist", "0-31\n");
    put("/sys/devices/system/node/node1/cpulist", "32-63\n");
    put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23\nGCC "
                                       "version: 12\n");
    put("/proc/meminfo", "MemTotal:       134217728 kB\nMemFree:        1000 kB\nMemAvailable:   100663296 kB\n");
    put("/config/spillway/hardware.json", "{}");
    program("spillway-exec", "case $1 in --version) echo 'spillway-exec 0.1.0 (back ends: host, cuda)';; "
                             "devices) echo 'host any'; echo 'cuda 2'; echo 'collectives NCCL 2.28.9';; esac");
    program("nvidia-smi", "case $1 in --query*) echo 'NVIDIA GeForce RTX 3090, 8.6'; echo 'NVIDIA GeForce RTX 3090, "
                          "8.6';; topo) printf '\\tGPU0\\tGPU1\\nGPU0\\tX\\tOK\\nGPU1\\tOK\\tX\\n\\nLegend:\\n  OK = "
                          "Status Ok\\n';; esac");
    program("gnuplot", "exit 0");
}

static struct cli_doctor look(uint64_t memlock_bytes)
{
    struct cli_doctor doctor = {.root = root, .memlock_bytes = memlock_bytes};
    cli_doctor_look(&doctor);
    return doctor;
}

static const struct cli_finding *finding(const struct cli_doctor *doctor, const char *name)
{
    for (uint32_t i = 0; i < doctor->count; i++)
        if (strcmp(doctor->findings[i].name, name) == 0) return &doctor->findings[i];
    fail_msg("no finding '%s'", name);
    return NULL;
}

/* Expects this finding; every other finding must be healthy. */
static void expect(const struct cli_doctor *doctor, const char *name, enum cli_health health, const char *text)
{
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct cli_finding *found = &doctor->findings[i];
        if (strcmp(found->name, name) != 0 && found->health != CLI_HEALTH_OK)
            fail_msg("%s: %s", found->name, found->text);
    }
    assert_string_equal(finding(doctor, name)->text, text);
    assert_int_equal(finding(doctor, name)->health, health);
    assert_int_equal(cli_doctor_health(doctor), health);
    assert_true(health == CLI_HEALTH_OK || finding(doctor, name)->repair[0]);
}

static int set_up(void **state)
{
    (void)state;
    support_folder_make(root);
    well();
    char path[128];
    snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", root);
    setenv("PATH", path, 1);
    setenv("SPILLWAY_EXEC", at("/bin/spillway-exec"), 1);
    setenv("XDG_CONFIG_HOME", at("/config"), 1);
    setenv("SPILLWAY_HISTORY", at("/history.db"), 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_folder_remove(root);
    return 0;
}

/* --- tests ----------------------------------------------------------------------------------- */

static void all_well(void **state)
{
    (void)state;
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "driver", CLI_HEALTH_OK, "NVIDIA 570.86.15");
    expect(&doctor, "cuda", CLI_HEALTH_OK, "2 GPUs can be used");
    expect(&doctor, "nccl", CLI_HEALTH_OK, "NCCL 2.28.9 for collectives between GPUs");
    expect(&doctor, "architecture", CLI_HEALTH_OK, "NVIDIA GeForce RTX 3090: compute capability 8.6");
    expect(&doctor, "p2p", CLI_HEALTH_OK, "2 pairs of GPUs reach each other");
    expect(&doctor, "numa", CLI_HEALTH_OK, "2 nodes; the first GPU is on node 0");
    expect(&doctor, "memory", CLI_HEALTH_OK, "96 GiB of 128 GiB are free");
    expect(&doctor, "pinned memory", CLI_HEALTH_OK, "any amount may be locked");
    expect(&doctor, "gnuplot", CLI_HEALTH_OK, "on PATH");
    assert_false(doctor.no_device);
}

static void no_executor(void **state)
{
    (void)state;
    unlink(at("/bin/spillway-exec"));
    struct cli_doctor doctor = look(UINT64_MAX);
    assert_true(doctor.no_device);
    assert_int_equal(finding(&doctor, "executor")->health, CLI_HEALTH_FAIL);
    assert_non_null(strstr(finding(&doctor, "executor")->text, "is not a program that can be started"));
    program("spillway-exec", "exit 127");
    doctor = look(UINT64_MAX);
    assert_true(doctor.no_device);
    assert_non_null(strstr(finding(&doctor, "executor")->text, "does not start"));
}

static void driver_gone(void **state)
{
    (void)state;
    unlink(at("/proc/driver/nvidia/version"));
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "driver", CLI_HEALTH_FAIL, "2 NVIDIA GPUs without a driver");
}

static void driver_too_old(void **state)
{
    (void)state;
    program("spillway-exec", "case $1 in --version) echo 'spillway-exec 0.1.0 (back ends: host, cuda)';; "
                             "devices) echo 'cuda no CUDA device: insufficient driver';; esac");
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "cuda", CLI_HEALTH_FAIL, "no CUDA device: insufficient driver, but the bus has 2 GPUs");
}

static void without_nccl(void **state)
{
    (void)state;
    program("spillway-exec", "case $1 in --version) echo 'spillway-exec 0.1.0 (back ends: host, cuda)';; "
                             "devices) echo 'cuda 2'; echo \"collectives cannot load NCCL: SPILLWAY_NCCL is 'off'\";; "
                             "esac");
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "nccl", CLI_HEALTH_WARN,
           "collectives between GPUs go through host memory: cannot load NCCL: SPILLWAY_NCCL is 'off'");
}

static void built_without_cuda(void **state)
{
    (void)state;
    program("spillway-exec", "echo 'spillway-exec 0.1.0 (back ends: host)'");
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "cuda", CLI_HEALTH_FAIL, "the executor is built without CUDA");
}

static void gpu_too_old(void **state)
{
    (void)state;
    program("nvidia-smi", "case $1 in --query*) echo 'Tesla P100-PCIE-16GB, 6.0';; topo) echo;; esac");
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "architecture", CLI_HEALTH_FAIL, "Tesla P100-PCIE-16GB: compute capability 6.0 is older than 7.5");
}

static void narrow_link(void **state)
{
    (void)state;
    gpu(2, "8\n", "1\n");
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "link", CLI_HEALTH_WARN, "GPU 0000:02:00.0 has 8 of its 16 lanes");
}

static void no_peers(void **state)
{
    (void)state;
    program("nvidia-smi", "case $1 in --query*) echo 'NVIDIA GeForce RTX 4090, 8.9';; "
                          "topo) printf '\\tGPU0\\tGPU1\\nGPU0\\tX\\tCNS\\nGPU1\\tCNS\\tX\\n';; esac");
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "p2p", CLI_HEALTH_WARN, "2 of 2 pairs of GPUs do not reach each other");
}

static void little_may_be_locked(void **state)
{
    (void)state;
    struct cli_doctor doctor = look(64 << 20);
    expect(&doctor, "pinned memory", CLI_HEALTH_WARN,
           "only 64 MiB may be locked (ulimit -l): copies may go through pageable memory");
}

static void little_memory(void **state)
{
    (void)state;
    put("/sys/fs/cgroup/memory.max", "2147483648\n"); /* a container's 2 GiB, all of them free */
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "memory", CLI_HEALTH_OK, "2 GiB of 2 GiB are free");
    put("/proc/meminfo", "MemTotal:       134217728 kB\nMemAvailable:   131072 kB\n");
    doctor = look(UINT64_MAX);
    expect(&doctor, "memory", CLI_HEALTH_WARN, "only 128 MiB of 2 GiB are free");
}

static void unknown_node(void **state)
{
    (void)state;
    gpu(1, "16\n", "-1\n");
    struct cli_doctor doctor = look(UINT64_MAX);
    expect(&doctor, "numa", CLI_HEALTH_WARN, "2 nodes; the nearest node is unknown for 1 of 2 GPUs");
}

static void not_measured(void **state)
{
    (void)state;
    unlink(at("/config/spillway/hardware.json"));
    struct cli_doctor doctor = look(UINT64_MAX);
    assert_int_equal(finding(&doctor, "profile")->health, CLI_HEALTH_WARN);
    assert_string_equal(finding(&doctor, "profile")->repair, "spillway measure");
}

static void storage(void **state)
{
    (void)state;
    struct cli_doctor doctor = {.root = root, .memlock_bytes = UINT64_MAX, .storage = "/nowhere"};
    cli_doctor_look(&doctor);
    expect(&doctor, "storage", CLI_HEALTH_FAIL, "'/nowhere': No such file or directory");
}

/* No GPU, and nothing of NVIDIA's: a healthy machine. */
static void no_gpu(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/bus/pci/devices/0000:0%u:00.0/vendor", i);
        put(path, "0x1af4\n");
    }
    unlink(at("/proc/driver/nvidia/version"));
    unlink(at("/bin/nvidia-smi"));
    program("spillway-exec", "echo 'spillway-exec 0.1.0 (back ends: host)'");
    struct cli_doctor doctor = look(8 << 20);
    expect(&doctor, "driver", CLI_HEALTH_OK, "not needed: there is no NVIDIA GPU");
    expect(&doctor, "numa", CLI_HEALTH_OK, "2 nodes");
}

int main(void)
{
#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ON_A_MACHINE(all_well),     ON_A_MACHINE(no_executor),          ON_A_MACHINE(driver_gone),
        ON_A_MACHINE(driver_too_old), ON_A_MACHINE(without_nccl), ON_A_MACHINE(built_without_cuda),
        ON_A_MACHINE(gpu_too_old),
        ON_A_MACHINE(narrow_link),  ON_A_MACHINE(no_peers),             ON_A_MACHINE(little_may_be_locked),
        ON_A_MACHINE(little_memory), ON_A_MACHINE(unknown_node),        ON_A_MACHINE(not_measured),
        ON_A_MACHINE(storage),      ON_A_MACHINE(no_gpu),
    };
    return cmocka_run_group_tests_name("cli/machine/cli_doctor.h", tests, NULL, NULL);
}
