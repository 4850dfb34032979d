#include <stdio.h>

#include "exec/cuda/device_cuda.h"
#include "exec/nccl/nccl_groups.h"

/* Returns the status of the last group on a device; success while it is under way. */
static cudaError_t status_of(const struct nccl_place *place)
{
    const cudaError_t status = cudaEventQuery(place->done);
    if (status != cudaErrorNotReady) return status;
    cudaGetLastError(); /* else it would be blamed on the next launch */
    return cudaSuccess;
}

/* Looks for a device whose loss is the cause of a failure: then the others are not lost. */
static bool has_lost_device(struct groups_session *groups, const struct nccl_communicator *communicator)
{
    bool any = false;
    for (uint32_t m = 0; m < communicator->count; m++) {
        struct device *const device = groups->devices[communicator->devices[m]];
        const bool works = !atomic_load(&device->failed);
        any = any || !works || !CUDA_WORKED(device, status_of(&groups->places[communicator->devices[m]]));
    }
    return any;
}

void nccl_communicator_fail(struct groups_session *groups, struct nccl_communicator *communicator, const char *why)
{
    char version[NCCL_VERSION_BYTES], text[256];
    if (communicator->failed) return;
    communicator->failed = true;
    nccl_library_text(&groups->library, version);
    snprintf(text, sizeof text, "%s: %s", version, why);
    const bool device = has_lost_device(groups, communicator);
    for (uint32_t m = 0; m < communicator->count && !device; m++)
        device_fail(groups->devices[communicator->devices[m]], text);
    for (uint32_t m = 0; m < communicator->count; m++) groups->library.abort(communicator->comms[m]);
}

int nccl_communicator_enqueue(struct groups_session *groups, const struct nccl_communicator *communicator,
                              const struct group_call *call)
{
    static const int types[] = {[GROUP_FP32] = NCCL_FLOAT32, [GROUP_FP64] = NCCL_FLOAT64, [GROUP_BYTES] = NCCL_INT8};
    const struct nccl_library *const library = &groups->library;
    const nccl_comm comm = communicator->comms[call->member];
    cudaStream_t const stream = groups->places[communicator->devices[call->member]].stream;
    const int type = types[call->type], root = (int)call->root;
    switch ((enum group_call_kind)call->kind) {
    case GROUP_ALL_REDUCE:
        return library->all_reduce(call->from, call->to, call->count, type, NCCL_SUM, comm, stream);
    case GROUP_REDUCE_SCATTER:
        return library->reduce_scatter(call->from, call->to, call->count, type, NCCL_SUM, comm, stream);
    case GROUP_ALL_GATHER: return library->all_gather(call->from, call->to, call->count, type, comm, stream);
    case GROUP_REDUCE: return library->reduce(call->from, call->to, call->count, type, NCCL_SUM, root, comm, stream);
    case GROUP_BROADCAST: return library->broadcast(call->from, call->to, call->count, type, root, comm, stream);
    }
    return NCCL_SUCCESS;
}
