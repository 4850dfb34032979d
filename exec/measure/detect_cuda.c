/*
 * GPUs as the driver describes them. Offered access between GPUs is tested (exec/device/device_p2p.h); copies without
 * such an offer are staged by the driver, not direct.
 */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <string.h>

#include "base/try.h"
#include "exec/device/backend.h"
#include "exec/device/device_p2p.h"
#include "exec/measure/detect.h"

/* Returns 0 if unknown. */
static int attribute(enum cudaDeviceAttr which, int device)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess && value > 0 ? value : 0;
}

/* Returns the fp32 multiplications and additions that a multiprocessor starts in a cycle. */
static int lanes_of(int device)
{
    const int version = 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
                        attribute(cudaDevAttrComputeCapabilityMinor, device);
    return version == 60 || (version >= 70 && version <= 80) ? 64 : 128;
}

double detect_gpu_peak_fp32(int device)
{
    return 2.0 * lanes_of(device) * attribute(cudaDevAttrMultiProcessorCount, device) *
           attribute(cudaDevAttrClockRate, device) * 1e3;
}

/* Both edges of the clock carry a bit of each line. */
static double memory_rate(int device)
{
    return 2.0 * attribute(cudaDevAttrMemoryClockRate, device) * 1e3 *
           attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8;
}

static enum status describe(const char *root, uint32_t device, struct detect_gpu_list *out, struct error *err)
{
    struct cudaDeviceProp properties;
    size_t available = 0, total = 0;
    char address[32] = "";
    if (cudaSetDevice((int)device) != cudaSuccess || cudaMemGetInfo(&available, &total) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, (int)device) != cudaSuccess)
        return error_set(err, STATUS_DEVICE, "cannot ask about GPU %" PRIu32 ": %s", device,
                         cudaGetErrorString(cudaGetLastError()));
    snprintf(out->names[device], sizeof out->names[device], "%.*s", DETECT_NAME_BYTES - 1, properties.name);
    struct hardware_detected_gpu *const gpu = &out->all[device];
    *gpu = (struct hardware_detected_gpu){.name = out->names[device],
                                          .total_bytes = total,
                                          .free_bytes = available,
                                          .fp32_flops_per_s = detect_gpu_peak_fp32((int)device),
                                          .memory_bytes_per_s = memory_rate((int)device)};
    if (cudaDeviceGetPCIBusId(address, (int)sizeof address, (int)device) != cudaSuccess) return STATUS_OK;
    for (char *c = address; *c; c++)
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    detect_pcie(root, address, &gpu->pcie, &gpu->lanes);
    return STATUS_OK;
}

/* Tests all pairs. Errors: a pair that cannot be tested. */
static enum status try_pairs(FILE *notes, struct device *const *devices, struct detect_gpu_list *out,
                             struct error *err)
{
    for (uint32_t to = 0; to < out->count; to++)
        for (uint32_t from = 0; from < out->count; from++) {
            char why[P2P_WHY_BYTES] = "";
            enum p2p_way way = P2P_STAGED;
            int offered = 0;
            if (to == from || cudaDeviceCanAccessPeer(&offered, (int)to, (int)from) != cudaSuccess || !offered)
                continue;
            TRY(device_link(devices[to], devices[from], &way, why, err));
            out->reaches[(size_t)to * out->count + from] = way == P2P_DIRECT;
            if (way != P2P_DIRECT && notes)
                fprintf(notes, "note: no direct copies from GPU %" PRIu32 " to GPU %" PRIu32 ": %s\n", from,
                        to, why);
        }
    return STATUS_OK;
}

static enum status try_peers(FILE *notes, struct detect_gpu_list *out, struct error *err)
{
    struct device *devices[DETECT_GPUS_MAX] = {NULL};
    enum status status = STATUS_OK;
    if (out->count < 2) return STATUS_OK;
    for (uint32_t d = 0; d < out->count && status == STATUS_OK; d++) {
        const struct device_options options = {
            .index = d, .arena_bytes = UINT64_C(4) << 20, .threads = 1, .p2p = true};
        status = backend_cuda.open(&options, &devices[d], err);
    }
    if (status == STATUS_OK) status = try_pairs(notes, devices, out, err);
    for (uint32_t d = 0; d < out->count; d++) device_stop(devices[d]);
    for (uint32_t d = 0; d < out->count; d++) device_close(devices[d]);
    return status;
}

enum status detect_gpus(const char *root, FILE *notes, struct detect_gpu_list *out, struct error *err)
{
    struct error none = {0};
    if (backend_cuda.count(&out->count, &none) != STATUS_OK) {
        out->count = 0;
        if (notes) fprintf(notes, "note: %s\n", none.text);
        return STATUS_OK;
    }
    if (out->count > DETECT_GPUS_MAX)
        return error_set(err, STATUS_LIMIT, "%" PRIu32 " GPUs (limit is %d)", out->count, (int)DETECT_GPUS_MAX);
    for (uint32_t d = 0; d < out->count; d++) TRY(describe(root, d, out, err));
    return try_peers(notes, out, err);
}
