/*
 * Cores are limited by the machine, the set a process may run on (taskset, a container's cpuset) and a quota of time
 * (a container's cpu limit); a profile with more threads measures waiting.
 */
#include "exec/measure/measure_state.h"

#include <hwloc.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/device/host_memory.h"

/* Counts cores, not hardware threads; 0 when hwloc cannot tell. Without /sys it would report that on standard error. */
static uint32_t cores_present(void)
{
    hwloc_topology_t topology;
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    if (hwloc_topology_init(&topology) != 0) return 0;
    int count = 0;
    if (hwloc_topology_load(topology) == 0)
        count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    hwloc_topology_destroy(topology);
    return count > 0 ? (uint32_t)count : 0;
}

static uint32_t processors_allowed(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return UINT32_MAX;
    return (uint32_t)CPU_COUNT(&set);
}

/* Returns the whole processors in the control group's quota; UINT32_MAX without a quota. */
static uint32_t processors_in_quota(void)
{
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!file) return UINT32_MAX;
    uint64_t quota, period;
    const bool limited = fscanf(file, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period > 0;
    fclose(file);
    if (!limited) return UINT32_MAX;
    return quota < period ? 1 : (uint32_t)(quota / period);
}

static void read_cpu_model(char *text, size_t size)
{
    snprintf(text, size, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(text, size, "%s", colon + 2);
        break;
    }
    fclose(file);
}

void measure_machine_look(struct measure_machine *machine)
{
    *machine = (struct measure_machine){.present = cores_present()};
    machine->cores = machine->present;
    const uint32_t allowed = processors_allowed(), quota = processors_in_quota();
    if (machine->cores == 0 || allowed < machine->cores) machine->cores = allowed;
    if (quota < machine->cores) machine->cores = quota;
    if (machine->cores == 0 || machine->cores == UINT32_MAX) machine->cores = 1;
    if (machine->present == 0) machine->present = machine->cores;
    read_cpu_model(machine->cpu, sizeof machine->cpu);
}

/* Returns the share of the machine that others use now, in [0, 1]; 0 if unknown. The load average would count work
 * that has ended. */
static double others_busy(void)
{
    const struct timespec pause = {.tv_nsec = 300 * 1000 * 1000};
    const struct load_mark before = load_now();
    nanosleep(&pause, NULL);
    const struct load_mark after = load_now();
    const struct load load = load_between(&before, &after);
    return load_taken(&load);
}

void measure_machine_warn(const struct measure_machine *machine, FILE *notes)
{
    if (machine->cores < machine->present)
        fprintf(notes, "note: only %" PRIu32 " of %" PRIu32
                       " cores may be used (affinity or quota); the profile covers only these\n",
                machine->cores, machine->present);
    if (!host_memory_huge_pages())
        fprintf(notes, "note: transparent huge pages are off; memory is slower to set up and a few "
                       "per cent slower to use\n");
    const double busy = others_busy();
    if (busy > 0.1)
        fprintf(notes, "note: the machine is busy (others use %.0f %% of its processors); "
                       "measured rates will be too low\n", 100 * busy);
}
