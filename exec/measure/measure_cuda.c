/*
 * The kernels, copies and experiments of measure.c, with larger operands. Further GPUs are entered as devices of the
 * first one's type, each with a link of its own; shared links are not found.
 *
 * The peak is computed from multiprocessors, operations per cycle and clock; if a product is faster, its rate is the
 * peak. The bandwidth of host memory is measured by an optimizer step on all cores.
 */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "exec/device/host_memory.h"
#include "exec/kernels/kernels.h"
#include "exec/measure/detect.h"
#include "exec/measure/measure_state.h"

static const double HOST_SHARE = 0.05; /* of the budget */

/* --- the host's memory ------------------------------------------------------------------------------ */

enum { STEP_FLOATS = 16 << 20 }; /* of four arrays: 256 MiB */

struct step_timing {
    float *arrays; /* 4 * STEP_FLOATS */
    double seconds;
    double budget_s;
};

static void time_step(const struct kernels *kernels, void *argument)
{
    static const struct job_optimizer adamw = {.kind = OPTIMIZER_ADAMW,
                                               .learning_rate = 1e-6,
                                               .beta1 = 0.9,
                                               .beta2 = 0.95,
                                               .epsilon = 1e-8};
    struct step_timing *const t = argument;
    struct measure_samples samples = {.count = 0};
    const double start_s = clock_s();
    for (uint32_t i = 0; i < MEASURE_SAMPLES_MAX; i++) {
        const double before_s = clock_s();
        if (i > 3 && before_s - start_s > t->budget_s) break;
        const struct kernel_parameters parameters = {
            .p = t->arrays, .m = t->arrays + STEP_FLOATS, .v = t->arrays + 2 * STEP_FLOATS};
        kernels->update(kernels, &parameters, t->arrays + 3 * STEP_FLOATS, STEP_FLOATS, &adamw, true,
                        1);
        if (i > 0) measure_samples_add(&samples, clock_s() - before_s);
    }
    t->seconds = measure_samples_median(&samples);
}

static enum status measure_host_bandwidth(struct measure *measure, uint32_t cores,
                                          struct error *err)
{
    void *memory = NULL;
    struct device *host = NULL;
    const uint64_t bytes = 4 * (uint64_t)STEP_FLOATS * sizeof(float);
    const struct device_options options = {.threads = cores, .compute_only = true};
    enum status status = host_memory_map("the measurement", bytes, &memory, err);
    if (status == STATUS_OK) status = device_open_host(&options, &host, err);
    if (status == STATUS_OK) {
        struct step_timing timing = {.arrays = memory, .budget_s = measure->budget_s * HOST_SHARE};
        struct device_stream *const stream = device_stream(host, STREAM_COMPUTE);
        device_compute(stream, time_step, &timing, 0, NULL);
        while (!device_synchronize(stream, device_record(stream), 1))
            ;
        const struct work_item item = {KERNEL_ADAMW, 1, STEP_FLOATS, 0, 0};
        measure->hardware->host_bandwidth =
            measure_sourced(measure, work_item_bytes(&item, sizeof(float)) / timing.seconds, 0);
        measure_progress(measure, "host memory");
    }
    device_close(host);
    host_memory_unmap(memory, bytes);
    return status;
}

/* --- the GPU ----------------------------------------------------------------------------------------- */

/* Returns the host's sizes if the GPU has too little memory. */
static enum measure_bench_size size_for(size_t available)
{
    return measure_bench_bytes(MEASURE_BENCH_GPU) + (UINT64_C(1) << 30) < available ? MEASURE_BENCH_GPU
                                                                                    : MEASURE_BENCH_WHOLE;
}

static enum status open_parts(struct measure *measure, size_t available, uint32_t count, struct measure_parts *parts,
                              struct error *err)
{
    const struct backend *const cuda = &backend_cuda;
    const struct measure_bench_options bench = {.backend = cuda, .size = size_for(available)};
    TRY(measure_bench_open(&bench, &parts->benches[0], err));
    parts->profile_count = 1;
    TRY(measure_kernel_visits_open(measure, parts->benches[0], &parts->kernels[0], err));
    TRY(measure_laboratory_open(measure, &(struct measure_laboratory_options){.backend = cuda}, &parts->labs[0], err));
    TRY(measure_copy_visits_open(measure, parts->benches[0], &parts->copies, err));
    return count > 1 ? measure_p2p_visits_open(measure, cuda, &parts->p2p, err) : STATUS_OK;
}

static enum status measure_type(struct measure *measure, struct device_type *type,
                                struct compute_profile *profile, size_t available,
                                uint32_t count, struct sourced_value *handover_s, struct error *err)
{
    struct measure_parts parts = {.profile_count = 0};
    enum status status = open_parts(measure, available, count, &parts, err);
    measure_watch_begin(&measure->watch);
    if (status == STATUS_OK) status = measure_rounds(measure, &parts, err);
    if (status == STATUS_OK) status = measure_kernel_visits_keep(parts.kernels[0], profile, err);
    if (status == STATUS_OK) status = measure_laboratory_keep(parts.labs[0], &profile->interference, err);
    if (status == STATUS_OK) status = measure_copy_visits_keep(parts.copies, type, handover_s, err);
    if (status == STATUS_OK && parts.p2p) status = measure_p2p_visits_keep(parts.p2p, type, err);
    measure_parts_close(&parts);
    type->profiles = profile;
    type->profile_count = 1;
    return status;
}

static void set_peaks(struct measure *measure, struct device_type *type, double peak)
{
    const double product = measure_best_product(type, KERNEL_MATMUL_FORWARD);
    type->peak_fp32 = measure_sourced(measure, fmax(peak, product), 0);
    type->peak_fp32.kind = SOURCE_DERIVED;
    type->peak_bf16 =
        measure_sourced(measure, measure_best_product(type, KERNEL_MATMUL_BF16_FORWARD), 0);
    type->peak_bf16.kind = SOURCE_DERIVED;
    type->matmul_efficiency = measure_sourced(measure, product / type->peak_fp32.value, 0);
    type->memory_bandwidth = measure_sourced(measure, measure_step_bandwidth(type->profiles), 0);
    type->memory_efficiency = measure_sourced(measure, 1, 0);
    type->launch_latency = measure_sourced(measure, measure_shortest(type->profiles), 0);
    type->speed = measure_speed(measure);
}

/* Returns the rate of the largest copy, the faster direction. */
static double link_rate(const struct device_type *type)
{
    const struct copy_point *const in = &type->h2d[type->h2d_count - 1];
    const struct copy_point *const out = &type->d2h[type->d2h_count - 1];
    return fmax((double)in->bytes / in->seconds, (double)out->bytes / out->seconds);
}

/* Places links of their own if copies are faster than the links to the host, else those. */
static enum status place_p2p(struct measure *measure, const struct device_type *type,
                             struct error *err)
{
    struct hardware *const hardware = measure->hardware;
    const struct copy_point *const last = &type->p2p[type->p2p_count - 1];
    const double rate = (double)last->bytes / last->seconds;
    const bool own = rate > 1.05 * hardware->links[0].bandwidth.value;
    enum status status = STATUS_OK;
    for (uint32_t d = 0; d < hardware->device_count && status == STATUS_OK; d++) {
        struct hardware_network *const network = hardware_join(&hardware->devices[d], 1);
        network->path[network->path_count++] = own ? hardware->link_count : d;
        if (!own) continue;
        char name[32];
        struct hardware_link *const link = &hardware->links[hardware->link_count++];
        snprintf(name, sizeof name, "p2p-%" PRIu32, d);
        *link = (struct hardware_link){.bandwidth = measure_sourced(measure, rate, 0),
                                       .latency = hardware->links[0].latency,
                                       .duplex = true};
        status = arena_string(&hardware->arena, name, &link->name, err);
    }
    return status;
}

static enum status place_devices(struct measure *measure, const struct device_type *type,
                                 uint32_t count, struct sourced_value handover_s, struct error *err)
{
    struct hardware *const hardware = measure->hardware;
    enum status status = ARENA_NEW(&hardware->arena, count, hardware->devices, err);
    if (status == STATUS_OK)
        status = ARENA_NEW(&hardware->arena, 2 * (size_t)count, hardware->links, err);
    if (status == STATUS_OK)
        status = ARENA_NEW(&hardware->arena, 1, hardware->types, err);
    if (status != STATUS_OK) return status;
    hardware->types[0] = *type;
    hardware->type_count = 1;
    for (uint32_t d = 0; d < count && status == STATUS_OK; d++) {
        char name[32];
        snprintf(name, sizeof name, "link-%" PRIu32, d);
        hardware->devices[d] = (struct hardware_device){
            .memory_bytes = (uint64_t)type->usable_bytes.value, .path = {d}, .path_count = 1};
        hardware->links[d] = (struct hardware_link){
            .bandwidth = measure_sourced(measure, link_rate(type), 0),
            .latency = handover_s,
            .duplex = true};
        status = arena_string(&hardware->arena, name, &hardware->links[d].name, err);
    }
    hardware->device_count = hardware->link_count = count;
    if (status == STATUS_OK && type->p2p_count > 0) status = place_p2p(measure, type, err);
    hardware_note_p2p(hardware);
    return status;
}

/* Writes, for example, "cuda-nvidia-h200". */
static void name_of(const char *device, char *out, size_t size)
{
    snprintf(out, size, "cuda-%s", device);
    for (char *c = out; *c; c++) {
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '.')) *c = '-';
    }
}

static enum status describe(struct measure *measure, const struct measure_machine *machine,
                            const char *device, uint32_t count, struct error *err)
{
    struct hardware *const hardware = measure->hardware;
    char text[512];
    snprintf(text, sizeof text, "%s, %" PRIu32 " core%s, %" PRIu32 " GPU%s; %s", machine->cpu,
             machine->cores, machine->cores == 1 ? "" : "s", count, count == 1 ? "" : "s",
             backend_cuda.text());
    enum status status = arena_string(&hardware->arena, text, &hardware->measured_on, err);
    name_of(device, text, sizeof text);
    if (status == STATUS_OK) status = arena_string(&hardware->arena, text, &hardware->name, err);
    hardware->backend = "cuda";
    hardware->host_cores = machine->cores;
    hardware->threads = 0;
    return status;
}

enum status measure_cuda(const struct measure_options *options, struct hardware *out,
                         struct error *err)
{
    struct measure measure;
    struct measure_machine machine;
    uint32_t count = 0;
    TRY(backend_cuda.count(&count, err));
    measure_machine_look(&machine);
    if (options->notes) measure_machine_warn(&machine, options->notes);
    TRY(measure_begin(&measure, options, out, err));

    struct cudaDeviceProp properties;
    size_t available = 0, total = 0;
    if (cudaSetDevice(0) != cudaSuccess || cudaMemGetInfo(&available, &total) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, 0) != cudaSuccess)
        return error_set(err, STATUS_DEVICE, "cannot ask about the GPU: %s",
                         cudaGetErrorString(cudaGetLastError()));
    struct compute_profile *profile;
    struct sourced_value handover_s = {0};
    struct device_type type = {.memory_bytes = measure_sourced(&measure, (double)total, 0),
                               .usable_bytes = measure_sourced(&measure, (double)available, 0)};
    TRY(ARENA_NEW(&out->arena, 1, profile, err));
    TRY(arena_string(&out->arena, properties.name, &type.name, err));
    TRY(measure_host_bandwidth(&measure, machine.cores, err));
    TRY(measure_type(&measure, &type, profile, available, count, &handover_s, err));
    set_peaks(&measure, &type, detect_gpu_peak_fp32(0));
    enum status status = place_devices(&measure, &type, count, handover_s, err);
    if (status == STATUS_OK && options->storage)
        status = measure_storage(&measure, options->storage, &out->storage, err);
    if (status == STATUS_OK) status = describe(&measure, &machine, properties.name, count, err);
    if (status == STATUS_OK) status = hardware_check(out, err);
    if (status == STATUS_OK && options->notes) fprintf(options->notes, "%s\n", out->measured_on);
    return status;
}
