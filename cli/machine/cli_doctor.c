/*
 * Findings come in the order of repairs. A machine without GPUs is healthy: its cores are devices too.
 *
 *     executor    spillway-exec --version     its back ends; `devices` lists the devices of each
 *     GPUs        /sys/bus/pci/devices        vendor 10de, class 03: also those without a driver
 *     driver      /proc/driver/nvidia/version
 *     details     nvidia-smi                  compute capability; peers
 */
#include "cli/machine/cli_doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/process/launch.h"
#include "base/text/quantity.h"
#include "cli/common/cli_machine.h"
#include "cli/history/cli_history.h"
#include "cli/process/cli_child.h"

const char *const cli_health_names[CLI_HEALTH_COUNT] = {"ok", "warn", "fail"};

enum { GPUS_MAX = 64, TEXT_BYTES = 1 << 16, PATH_BYTES = 4096 };

/* Kernels are compiled from it on (exec/cuda/find_cuda.cmake). */
static const double least_capability = 7.5;

/* --- findings -------------------------------------------------------------------------------- */

/* Precedes repair(). */
static struct cli_finding *find(struct cli_doctor *doctor, const char *name, enum cli_health health, const char *format,
                                ...) PRINTF_LIKE(4, 5);
static struct cli_finding *find(struct cli_doctor *doctor, const char *name, enum cli_health health, const char *format,
                                ...)
{
    static struct cli_finding beyond; /* beyond the array */
    struct cli_finding *finding = doctor->count < CLI_FINDINGS_MAX ? &doctor->findings[doctor->count++] : &beyond;
    va_list arguments;
    finding->name = name;
    finding->health = health;
    finding->repair[0] = '\0';
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
    return finding;
}

static void repair(struct cli_finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);
static void repair(struct cli_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->repair, sizeof finding->repair, format, arguments);
    va_end(arguments);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Leaves out the line end; false if unreadable. */
static bool read_text(const struct cli_doctor *doctor, const char *path, char *out, size_t size)
{
    char whole[PATH_BYTES];
    snprintf(whole, sizeof whole, "%s%s", doctor->root, path);
    FILE *file = fopen(whole, "r");
    if (!file) return false;
    size_t length = fread(out, 1, size - 1, file);
    fclose(file);
    while (length > 0 && out[length - 1] == '\n') length--;
    out[length] = '\0';
    return length > 0;
}

/* Returns false if the program cannot be started, or fails. */
static bool read_program(const char *const argv[], char *out, size_t size)
{
    int pipe_ends[2];
    pid_t child;
    struct launch_end end = {0};
    struct error unknown = {0};
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) return false;
    const struct launch how = {.argv = argv, .by_name = true, .death_signal = SIGKILL,
                               .streams = {LAUNCH_SAME, pipe_ends[1], LAUNCH_NOWHERE}};
    const bool started = launch_program(&how, &child) == 0;
    close(pipe_ends[1]);
    size_t length = 0;
    while (started) {
        char rest[512];
        bool room = length + 1 < size;
        ssize_t got = read(pipe_ends[0], room ? out + length : rest, room ? size - 1 - length : sizeof rest);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (room) length += (size_t)got;
    }
    out[length] = '\0';
    close(pipe_ends[0]);
    return started && launch_wait(child, &end, &unknown) == STATUS_OK && end.signal == 0 && end.exit_code == 0;
}

static bool on_path(const char *name)
{
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        char path[PATH_BYTES];
        size_t length = strcspn(folders, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, name);
        if (length > 0 && access(path, X_OK) == 0) return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

/* --- GPUs on the PCI bus ------------------------------------------------------------------------ */

struct gpu {
    char address[32];
    int node;                 /* -1: unknown */
    unsigned width, width_max; /* lanes; 0: unknown */
};

struct gpus {
    struct gpu all[GPUS_MAX];
    uint32_t count;
};

/* Returns `fallback` without a number. */
static long pci_number(const struct cli_doctor *doctor, const char *address, const char *file, int base, long fallback)
{
    char path[PATH_BYTES], text[64], *end;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", address, file);
    if (!read_text(doctor, path, text, sizeof text)) return fallback;
    long value = strtol(text, &end, base);
    return end > text ? value : fallback;
}

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct gpu *)a)->address, ((const struct gpu *)b)->address);
}

static void list_gpus(const struct cli_doctor *doctor, struct gpus *out)
{
    enum { NVIDIA = 0x10de, DISPLAY = 0x03 };
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s/sys/bus/pci/devices", doctor->root);
    DIR *all = opendir(folder);
    *out = (struct gpus){0};
    for (struct dirent *entry; all && out->count < GPUS_MAX && (entry = readdir(all)) != NULL;) {
        const char *address = entry->d_name;
        if (address[0] == '.' || strlen(address) >= sizeof out->all[0].address ||
            pci_number(doctor, address, "vendor", 16, 0) != NVIDIA ||
            pci_number(doctor, address, "class", 16, 0) >> 16 != DISPLAY)
            continue;
        struct gpu *gpu = &out->all[out->count++];
        snprintf(gpu->address, sizeof gpu->address, "%.31s", address);
        gpu->node = (int)pci_number(doctor, address, "numa_node", 10, -1);
        gpu->width = (unsigned)pci_number(doctor, address, "current_link_width", 10, 0);
        gpu->width_max = (unsigned)pci_number(doctor, address, "max_link_width", 10, 0);
    }
    if (all) closedir(all);
    qsort(out->all, out->count, sizeof out->all[0], by_address);
}

/* --- the executor and its GPUs -------------------------------------------------------------------- */

/* Returns true if it is built with CUDA. */
static bool look_executor(struct cli_doctor *doctor, char path[CLI_PATH_BYTES])
{
    char text[256];
    struct error err = {0};
    if (cli_child_find(path, &err) != STATUS_OK) {
        doctor->no_device = true;
        repair(find(doctor, "executor", CLI_HEALTH_FAIL, "%.300s", err.text),
               "build it (./bootstrap build) or name it with SPILLWAY_EXEC");
        return false;
    }
    const char *const argv[] = {path, "--version", NULL};
    if (!read_program(argv, text, sizeof text)) {
        doctor->no_device = true;
        repair(find(doctor, "executor", CLI_HEALTH_FAIL, "'%.200s' does not start", path),
               "run it by hand to see why: a library may be missing");
        return false;
    }
    text[strcspn(text, "\n")] = '\0';
    find(doctor, "executor", CLI_HEALTH_OK, "%.200s: %.100s", path, text);
    return strstr(text, "cuda") != NULL;
}

/* Takes the executor's list of devices. */
static void look_collectives(struct cli_doctor *doctor, const char *devices, uint32_t gpu_count)
{
    static const char mark[] = "collectives ", name[] = "NCCL ";
    const char *line = strstr(devices, mark);
    if (!line) return;
    line += strlen(mark);
    int length = (int)strcspn(line, "\n");
    if (strncmp(line, name, strlen(name)) == 0)
        find(doctor, "nccl", CLI_HEALTH_OK, "%.*s for collectives between GPUs", length, line);
    else if (gpu_count < 2)
        find(doctor, "nccl", CLI_HEALTH_OK, "not needed: there are no two GPUs (%.*s)", length, line);
    else
        repair(find(doctor, "nccl", CLI_HEALTH_WARN, "collectives between GPUs go through host memory: %.*s", length,
                    line),
               "install NCCL 2 (libnccl.so.2) or name it with SPILLWAY_NCCL");
}

static void look_cuda(struct cli_doctor *doctor, char *executor, bool built, uint32_t gpu_count)
{
    static const char mark[] = "cuda ";
    char text[1024];
    const char *const argv[] = {executor, "devices", NULL};
    if (!built) {
        struct cli_finding *finding = find(doctor, "cuda", gpu_count > 0 ? CLI_HEALTH_FAIL : CLI_HEALTH_OK,
                                           "the executor is built without CUDA");
        if (gpu_count > 0) repair(finding, "install CUDA 12 or newer and build again (./bootstrap build)");
        return;
    }
    const char *line = read_program(argv, text, sizeof text) ? strstr(text, mark) : NULL;
    if (!line) {
        find(doctor, "cuda", CLI_HEALTH_WARN, "the executor does not say which GPUs it finds");
        return;
    }
    line += strlen(mark);
    int length = (int)strcspn(line, "\n");
    if (*line >= '1' && *line <= '9') {
        find(doctor, "cuda", CLI_HEALTH_OK, "%.*s GPUs can be used", length, line);
    } else if (gpu_count == 0) {
        find(doctor, "cuda", CLI_HEALTH_OK, "no GPU: plans run on the host's cores");
    } else {
        repair(find(doctor, "cuda", CLI_HEALTH_FAIL, "%.*s, but the bus has %" PRIu32 " GPUs", length, line, gpu_count),
               "update the driver to one for the CUDA that the executor was built with; "
               "check that /dev/nvidia* may be opened");
    }
    look_collectives(doctor, text, gpu_count);
}

static void look_driver(struct cli_doctor *doctor, uint32_t gpu_count)
{
    char text[512];
    if (read_text(doctor, "/proc/driver/nvidia/version", text, sizeof text)) {
        const char *module = strstr(text, "Module");
        module = module ? module + strlen("Module") : text;
        module += strspn(module, " ");
        find(doctor, "driver", CLI_HEALTH_OK, "NVIDIA %.*s", (int)strcspn(module, " \n"), module);
    } else if (gpu_count > 0) {
        repair(find(doctor, "driver", CLI_HEALTH_FAIL, "%" PRIu32 " NVIDIA GPUs without a driver", gpu_count),
               "install the NVIDIA driver (and the kernel headers that it is built with), then restart");
    } else {
        find(doctor, "driver", CLI_HEALTH_OK, "not needed: there is no NVIDIA GPU");
    }
}

static void look_architecture(struct cli_doctor *doctor, uint32_t gpu_count)
{
    const char *const argv[] = {"nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader", NULL};
    char text[4096];
    if (gpu_count == 0) return;
    if (!read_program(argv, text, sizeof text)) {
        repair(find(doctor, "architecture", CLI_HEALTH_WARN, "nvidia-smi does not list the GPUs"),
               "put nvidia-smi, which comes with the driver, on PATH");
        return;
    }
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = '\0';
        char *comma = strrchr(line, ',');
        if (!comma) continue;
        *comma = '\0';
        double capability = strtod(comma + 1, NULL);
        if (capability >= least_capability)
            find(doctor, "architecture", CLI_HEALTH_OK, "%.200s: compute capability %.1f", line, capability);
        else
            repair(find(doctor, "architecture", CLI_HEALTH_FAIL, "%.200s: compute capability %.1f is older than %.1f",
                        line, capability, least_capability),
                   "leave this GPU out (CUDA_VISIBLE_DEVICES); CUDA 12 and newer compile for 7.5 and newer here");
    }
}

/* --- copies ---------------------------------------------------------------------------------- */

static void look_links(struct cli_doctor *doctor, const struct gpus *gpus)
{
    for (uint32_t i = 0; i < gpus->count; i++) {
        const struct gpu *gpu = &gpus->all[i];
        if (gpu->width == 0 || gpu->width >= gpu->width_max) continue;
        repair(find(doctor, "link", CLI_HEALTH_WARN, "GPU %s has %u of its %u lanes", gpu->address, gpu->width,
                    gpu->width_max),
               "put it into a slot with all lanes; some cards reduce lanes when idle: check again during a run");
    }
}

static void look_locked(struct cli_doctor *doctor, uint32_t gpu_count)
{
    enum { ENOUGH_BYTES = 1 << 30 };
    char text[QUANTITY_TEXT_BYTES];
    if (doctor->memlock_bytes == UINT64_MAX) {
        find(doctor, "pinned memory", CLI_HEALTH_OK, "any amount may be locked");
        return;
    }
    quantity_text((double)doctor->memlock_bytes, DIMENSION_BYTES, text);
    if (gpu_count == 0 || doctor->memlock_bytes >= ENOUGH_BYTES) {
        find(doctor, "pinned memory", CLI_HEALTH_OK, "%s may be locked", text);
        return;
    }
    repair(find(doctor, "pinned memory", CLI_HEALTH_WARN,
                "only %s may be locked (ulimit -l): copies may go through pageable memory", text),
           "'ulimit -l unlimited', or '* - memlock unlimited' in /etc/security/limits.conf; containers: "
           "--ulimit memlock=-1");
}

static void look_nodes(struct cli_doctor *doctor, const struct gpus *gpus)
{
    uint32_t nodes = 0, unknown = 0;
    char path[PATH_BYTES], text[64];
    for (; nodes < 1024; nodes++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%" PRIu32 "/cpulist", nodes);
        if (!read_text(doctor, path, text, sizeof text)) break;
    }
    for (uint32_t i = 0; i < gpus->count; i++) unknown += gpus->all[i].node < 0;
    if (nodes > 1 && unknown > 0)
        repair(find(doctor, "numa", CLI_HEALTH_WARN,
                    "%" PRIu32 " nodes; the nearest node is unknown for %" PRIu32 " of %" PRIu32 " GPUs", nodes,
                    unknown, gpus->count),
               "check the firmware's settings for NUMA; run with 'numactl --cpunodebind' near each GPU");
    else if (nodes > 1 && gpus->count > 0)
        find(doctor, "numa", CLI_HEALTH_OK, "%" PRIu32 " nodes; the first GPU is on node %d", nodes, gpus->all[0].node);
    else
        find(doctor, "numa", CLI_HEALTH_OK, nodes > 1 ? "%" PRIu32 " nodes" : "one node", nodes);
}

/* Reads rows of `nvidia-smi topo -p2p r`: GPU0  X  OK  NS ... */
static void look_peers(struct cli_doctor *doctor, uint32_t gpu_count)
{
    const char *const argv[] = {"nvidia-smi", "topo", "-p2p", "r", NULL};
    static char text[TEXT_BYTES];
    uint32_t with = 0, without = 0;
    if (gpu_count < 2) return;
    if (!read_program(argv, text, sizeof text)) {
        find(doctor, "p2p", CLI_HEALTH_WARN, "nvidia-smi does not say whether GPUs reach each other");
        return;
    }
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = '\0';
        line += strspn(line, " \t");
        if (strncmp(line, "GPU", 3) != 0) continue; /* the legend */
        strtok(line, " \t");
        for (char *cell; (cell = strtok(NULL, " \t")) != NULL;) {
            with += strcmp(cell, "OK") == 0;
            without += strcmp(cell, "NS") == 0 || strcmp(cell, "CNS") == 0 || strcmp(cell, "GNS") == 0 ||
                       strcmp(cell, "TNS") == 0;
        }
    }
    if (without > 0)
        repair(find(doctor, "p2p", CLI_HEALTH_WARN, "%" PRIu32 " of %" PRIu32 " pairs of GPUs do not reach each other",
                    without, with + without),
               "copies between such pairs go through host memory; plan for that with --no-p2p");
    else
        find(doctor, "p2p", CLI_HEALTH_OK, "%" PRIu32 " pairs of GPUs reach each other", with);
}

/* --- memory and disk --------------------------------------------------------------------------- */

/* Returns bytes; 0: not there. */
static double memory_line(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    return line ? strtod(line + strlen(key), NULL) * 1024 : 0;
}

static void look_memory(struct cli_doctor *doctor)
{
    char text[4096], limit[64], words[2][QUANTITY_TEXT_BYTES];
    if (!read_text(doctor, "/proc/meminfo", text, sizeof text)) {
        find(doctor, "memory", CLI_HEALTH_WARN, "/proc/meminfo cannot be read");
        return;
    }
    double total = memory_line(text, "MemTotal:"), left = memory_line(text, "MemAvailable:");
    if (read_text(doctor, "/sys/fs/cgroup/memory.max", limit, sizeof limit) && limit[0] >= '0' && limit[0] <= '9') {
        double most = strtod(limit, NULL);
        if (most < total) total = most;
        if (most < left) left = most;
    }
    quantity_text(left, DIMENSION_BYTES, words[0]);
    quantity_text(total, DIMENSION_BYTES, words[1]);
    if (left >= total / 5)
        find(doctor, "memory", CLI_HEALTH_OK, "%s of %s are free", words[0], words[1]);
    else
        repair(find(doctor, "memory", CLI_HEALTH_WARN, "only %s of %s are free", words[0], words[1]),
               "end programs that use it, or plan for less with --host-memory");
}

/* Writes to the disk before the clock stops. Returns bytes per second; 0 with errno. */
static double write_rate(const char *folder)
{
    enum { PIECE_BYTES = 1 << 20, PIECES = 64 };
    static char piece[PIECE_BYTES];
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/spillway-doctor-XXXXXX", folder);
    int file = mkstemp(path);
    if (file < 0) return 0;
    unlink(path);
    memset(piece, 0x5a, sizeof piece);
    double begun_s = clock_s();
    bool written = true;
    for (int i = 0; i < PIECES && written; i++) written = write(file, piece, sizeof piece) == (ssize_t)sizeof piece;
    if (fdatasync(file) != 0) written = false;
    double seconds = clock_s() - begun_s;
    close(file);
    return written && seconds > 0 ? (double)PIECES * PIECE_BYTES / seconds : 0;
}

static void look_storage(struct cli_doctor *doctor)
{
    enum { LEAST_BYTES = 1 << 30 };
    const double slow_bytes_per_s = 200e6;
    const char *folder = doctor->storage ? doctor->storage : ".";
    char words[2][QUANTITY_TEXT_BYTES];
    struct statvfs space;
    if (statvfs(folder, &space) != 0) {
        repair(find(doctor, "storage", CLI_HEALTH_FAIL, "'%.200s': %s", folder, strerror(errno)),
               "name an existing folder (--storage)");
        return;
    }
    double left = (double)space.f_bavail * (double)space.f_frsize;
    quantity_text(left, DIMENSION_BYTES, words[0]);
    if (left < LEAST_BYTES) {
        repair(find(doctor, "storage", CLI_HEALTH_WARN, "only %s are free in '%.200s'", words[0], folder),
               "checkpoints and stored states need room: name another folder (run --storage, --checkpoint)");
        return;
    }
    if (!doctor->storage) {
        find(doctor, "storage", CLI_HEALTH_OK, "%s are free in the current folder", words[0]);
        return;
    }
    double rate = write_rate(folder);
    if (!(rate > 0)) {
        repair(find(doctor, "storage", CLI_HEALTH_FAIL, "'%.200s' cannot be written to: %s", folder, strerror(errno)),
               "name a folder that may be written to");
        return;
    }
    quantity_text(rate, DIMENSION_BYTES_PER_S, words[1]);
    struct cli_finding *finding = find(doctor, "storage", rate < slow_bytes_per_s ? CLI_HEALTH_WARN : CLI_HEALTH_OK,
                                       "%s are free in '%.200s', written to at %s", words[0], folder, words[1]);
    if (rate < slow_bytes_per_s) repair(finding, "states that do not fit host memory need a local NVMe disk");
}

/* --- optional parts ------------------------------------------------------------------------------ */

static void look_profile(struct cli_doctor *doctor)
{
    char path[CLI_PATH_BYTES];
    struct error err = {0};
    if (cli_profile_path(path, &err) != STATUS_OK)
        repair(find(doctor, "profile", CLI_HEALTH_WARN, "%.300s", err.text), "set HOME");
    else if (access(path, R_OK) != 0)
        repair(find(doctor, "profile", CLI_HEALTH_WARN, "this machine was not measured: there is no '%.200s'", path),
               "spillway measure");
    else
        find(doctor, "profile", CLI_HEALTH_OK, "%.300s", path);
}

static void look_gnuplot(struct cli_doctor *doctor)
{
    if (on_path("gnuplot")) find(doctor, "gnuplot", CLI_HEALTH_OK, "on PATH");
    else
        repair(find(doctor, "gnuplot", CLI_HEALTH_WARN, "not on PATH: no pictures"),
               "install it: apt install gnuplot-nox");
}

static void look_history(struct cli_doctor *doctor)
{
    char path[CLI_PATH_BYTES];
    struct error err = {0};
    bool some = false;
    if (cli_history_path(path, &some, &err) != STATUS_OK) {
        repair(find(doctor, "history", CLI_HEALTH_WARN, "%.300s", err.text), "set SPILLWAY_HISTORY to a file's name");
        return;
    }
    if (!some) {
        find(doctor, "history", CLI_HEALTH_OK, "none is kept (SPILLWAY_HISTORY is empty, or there is no HOME)");
        return;
    }
    /* or the nearest existing folder above it */
    char there[CLI_PATH_BYTES];
    snprintf(there, sizeof there, "%s", path);
    while (access(there, F_OK) != 0) {
        char *slash = strrchr(there, '/');
        if (!slash || slash == there) break;
        *slash = '\0';
    }
    if (access(there, W_OK) == 0) find(doctor, "history", CLI_HEALTH_OK, "%.300s", path);
    else
        repair(find(doctor, "history", CLI_HEALTH_WARN, "'%.200s' cannot be written: no history is kept", there),
               "set SPILLWAY_HISTORY to a file's name, or to nothing");
}

/* --- public ---------------------------------------------------------------------------------- */

void cli_doctor_look(struct cli_doctor *doctor)
{
    char executor[CLI_PATH_BYTES];
    struct gpus gpus;
    doctor->count = 0;
    doctor->no_device = false;
    list_gpus(doctor, &gpus);
    bool cuda = look_executor(doctor, executor);
    look_driver(doctor, gpus.count);
    if (!doctor->no_device) look_cuda(doctor, executor, cuda, gpus.count);
    look_architecture(doctor, gpus.count);
    look_links(doctor, &gpus);
    look_peers(doctor, gpus.count);
    look_locked(doctor, gpus.count);
    look_nodes(doctor, &gpus);
    look_memory(doctor);
    look_storage(doctor);
    look_profile(doctor);
    look_gnuplot(doctor);
    look_history(doctor);
}

enum cli_health cli_doctor_health(const struct cli_doctor *doctor)
{
    enum cli_health worst = CLI_HEALTH_OK;
    for (uint32_t i = 0; i < doctor->count; i++)
        if (doctor->findings[i].health > worst) worst = doctor->findings[i].health;
    return worst;
}
