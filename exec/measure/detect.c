/*
 * A PCIe link has the speed that both ends support, and an idle device may have reduced it: the code reads the maximum
 * of both ends, and the present number of lanes.
 */
#include "exec/measure/detect.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "exec/device/host_memory.h"
#include "exec/measure/measure_state.h"

/* --- processors ----------------------------------------------------------------------------------- */

/* Returns the fp32 operations of a core per cycle: two units that multiply and add, with the widest instructions. */
static uint32_t flops_per_cycle(const char *flags)
{
    if (strstr(flags, " avx512f")) return 2 * 2 * 16;
    if (strstr(flags, " fma")) return 2 * 2 * 8;
    return strstr(flags, " avx ") ? 2 * 8 : 2 * 4; /* Arm's have four lanes in each of two units */
}

static void read_processor(double *clock_hz, uint32_t *flops)
{
    char line[4096];
    *clock_hz = 0;
    *flops = 2 * 4;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *const colon = strchr(line, ':');
        if (!colon) continue;
        if (strncmp(line, "cpu MHz", 7) == 0 && !(*clock_hz > 0)) *clock_hz = strtod(colon + 1, NULL) * 1e6;
        if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0) {
            *flops = flops_per_cycle(colon + 1);
            break; /* all processors are alike */
        }
    }
    if (file) fclose(file);
    file = fopen("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "re");
    if (file && fgets(line, sizeof line, file) && strtod(line, NULL) > 0) *clock_hz = strtod(line, NULL) * 1e3;
    if (file) fclose(file);
}

/* --- public ------------------------------------------------------------------------------------------ */

static enum status detect_all(const char *root, FILE *notes, struct hardware_detected *found, struct hardware *out,
                              struct error *err)
{
#ifdef SPILLWAY_CUDA
    struct detect_gpu_list *const gpus = alloc_zeroed(1, sizeof *gpus);
    if (!gpus) return error_memory(err, "GPUs", sizeof *gpus);
    enum status status = detect_gpus(root, notes, gpus, err);
    found->gpus = gpus->all;
    found->gpu_count = gpus->count;
    found->reaches = gpus->reaches;
    if (status == STATUS_OK) status = hardware_from_detected(found, out, err);
    free(gpus);
    return status;
#else
    (void)root;
    if (notes) fprintf(notes, "note: built without CUDA: GPUs are not looked for\n");
    return hardware_from_detected(found, out, err);
#endif
}

enum status detect_machine(FILE *notes, struct hardware *out, struct error *err)
{
    struct measure_machine machine;
    char today[16];
    const time_t now = time(NULL);
    struct tm parts;
    measure_machine_look(&machine);
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &parts));
    struct hardware_detected found = {
        .cpu = machine.cpu, .cores = machine.cores, .host_bytes = host_memory_available(), .as_of = today};
    if (found.host_bytes == UINT64_MAX) found.host_bytes = host_memory_total();
    if (found.host_bytes == 0)
        return error_set(err, STATUS_DEVICE, "the kernel does not say how much memory there is");
    read_processor(&found.clock_hz, &found.flops_per_cycle);
    return detect_all("", notes, &found, out, err);
}
