/*
 * A group on the streams of two devices. What is not in brackets is given to the streams by the last member to come:
 *
 *     stream of exec/device, of 0   [work] ready 0    wait ready 1, begun 0      wait done 0 [work]
 *     collectives of 0                                     wait begun 0, kernel, done 0
 *     collectives of 1                                     wait begun 1, kernel, done 1
 *     stream of exec/device, of 1   [work] ready 1    wait ready 0, begun 1      wait done 1 [work]
 *
 * So no kernel of a group begins, and takes multiprocessors from computations, before all members have come, and the
 * time from `begun` to the end is that of the transfer. The lock is held from the first wait to the last, so that the
 * kernels of all communicators have one order on all devices.
 *
 * One event of each kind suffices for a device: a wait is for what was recorded last when it was given.
 */
#include "exec/nccl/nccl_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/cuda/device_cuda.h"
#include "exec/cuda/gpu_library.h"
#include "exec/cuda/kernels_cuda_launch.h"
#include "exec/device/backend.h"

static const double GRACE_S = 2; /* for groups that are under way when a run ends */

/* --- failures --------------------------------------------------------------------------------- */

/* Keeps the first failure for end(): communicators cannot be aborted within a group. */
static bool worked(struct groups_session *groups, nccl_comm comm, int result)
{
    if (result == NCCL_SUCCESS) return true;
    if (groups->why[0] == '\0') nccl_library_reason(&groups->library, comm, result, groups->why, sizeof groups->why);
    groups->worked = false;
    return false;
}

/* --- groups ----------------------------------------------------------------------------------- */

static struct device *device_of(const struct groups_session *groups, uint32_t member)
{
    return groups->devices[groups->at->devices[member]];
}

/* Lets each member's stream wait for all others. */
static bool meet(struct groups_session *groups)
{
    const struct nccl_communicator *const c = groups->at;
    for (uint32_t m = 0; m < c->count; m++)
        if (!CUDA_WORKED(device_of(groups, m),
                         cudaEventRecord(groups->places[c->devices[m]].ready, device_cuda_stream(groups->streams[m]))))
            return false;
    for (uint32_t m = 0; m < c->count; m++) {
        cudaStream_t const stream = device_cuda_stream(groups->streams[m]);
        for (uint32_t k = 0; k < c->count; k++)
            if (k != m &&
                !CUDA_WORKED(device_of(groups, k), cudaStreamWaitEvent(stream, groups->places[c->devices[k]].ready, 0)))
                return false;
        const cudaEvent_t begun = device_cuda_begin(groups->streams[m]);
        if (!CUDA_WORKED(device_of(groups, m), cudaStreamWaitEvent(groups->places[c->devices[m]].stream, begun, 0)))
            return false;
    }
    return true;
}

static void begin(struct groups_session *groups, uint32_t number, struct device_stream *const *streams)
{
    pthread_mutex_lock(&gpu_library_launching);
    groups->at = &groups->communicators[number];
    groups->streams = streams;
    groups->why[0] = '\0';
    groups->started = false;
    groups->worked = !groups->at->failed && meet(groups);
    if (groups->worked) groups->started = worked(groups, NULL, groups->library.group_start());
}

static void call(struct groups_session *groups, const struct group_call *call)
{
    if (groups->worked)
        worked(groups, groups->at->comms[call->member], nccl_communicator_enqueue(groups, groups->at, call));
}

static void go_on(struct groups_session *groups)
{
    for (uint32_t m = 0; m < groups->at->count; m++) {
        const struct nccl_place *const place = &groups->places[groups->at->devices[m]];
        struct device *const device = device_of(groups, m);
        if (CUDA_WORKED(device, cudaEventRecord(place->done, place->stream)))
            CUDA_WORKED(device, cudaStreamWaitEvent(device_cuda_stream(groups->streams[m]), place->done, 0));
    }
}

static bool end(struct groups_session *groups)
{
    if (groups->started) worked(groups, groups->at->comms[0], groups->library.group_end());
    if (groups->started) go_on(groups);
    if (groups->why[0]) nccl_communicator_fail(groups, groups->at, groups->why);
    const bool all = groups->worked;
    pthread_mutex_unlock(&gpu_library_launching);
    return all;
}

static void accumulate(struct device_stream *stream, float *to, const float *from, uint64_t count)
{
    if (count > 0)
        CUDA_WORKED(stream->device, cuda_residual(device_cuda_stream(stream), to, to, from, (int64_t)count));
}

/* --- opening and closing ---------------------------------------------------------------------- */

static enum status find(char *version, size_t size, struct error *err)
{
    struct nccl_library library;
    char text[NCCL_VERSION_BYTES];
    TRY(nccl_library_open(&library, err));
    nccl_library_text(&library, text);
    snprintf(version, size, "%s", text);
    return STATUS_OK;
}

static bool is_idle(const struct groups_session *groups)
{
    for (uint32_t d = 0; d < groups->device_count; d++) {
        const struct nccl_place *const place = &groups->places[d];
        if (!place->stream || cudaEventQuery(place->done) != cudaErrorNotReady) continue;
        cudaGetLastError(); /* else it would be blamed on the next launch */
        return false;
    }
    return true;
}

static void stop(struct groups_session *groups)
{
    if (!groups) return;
    const double end_s = clock_s() + GRACE_S;
    const struct timespec pause = {.tv_nsec = 1000000};
    while (!is_idle(groups) && clock_s() < end_s) nanosleep(&pause, NULL);
    pthread_mutex_lock(&gpu_library_launching);
    for (uint32_t i = 0; i < groups->count && !is_idle(groups); i++)
        nccl_communicator_fail(groups, &groups->communicators[i], "a collective did not end");
    pthread_mutex_unlock(&gpu_library_launching);
}

static void release(struct groups_session *groups, struct nccl_communicator *communicator)
{
    for (uint32_t m = 0; m < communicator->count && !communicator->failed; m++)
        if (communicator->comms[m]) groups->library.destroy(communicator->comms[m]);
    free(communicator->devices);
    free(communicator->comms);
}

static void close_groups(struct groups_session *groups)
{
    if (!groups) return;
    nccl_watch_stop(groups);
    for (uint32_t i = 0; i < groups->count; i++) release(groups, &groups->communicators[i]);
    for (uint32_t d = 0; groups->places && d < groups->device_count; d++) {
        struct nccl_place *const place = &groups->places[d];
        if (place->ready) cudaEventDestroy(place->ready);
        if (place->done) cudaEventDestroy(place->done);
        if (place->stream) cudaStreamDestroy(place->stream);
    }
    free(groups->places);
    free(groups->communicators);
    free(groups);
}

static enum status open_groups(struct device *const *devices, uint32_t device_count, bool ordered,
                               struct groups_session **out, struct error *err)
{
    struct groups_session *const groups = alloc_zeroed(1, sizeof *groups);
    if (groups) groups->places = alloc_zeroed(device_count, sizeof *groups->places);
    if (!groups || !groups->places) {
        free(groups);
        return error_memory(err, "the streams of collectives", device_count * sizeof *groups->places);
    }
    groups->devices = devices;
    groups->device_count = device_count;
    /* The order along a ring is fixed for a machine; a tree's depends on the size and the switch. */
    if (ordered) setenv("NCCL_ALGO", "Ring", 0);
    enum status status = nccl_library_open(&groups->library, err);
    if (status == STATUS_OK) status = nccl_watch_start(groups, err);
    if (status == STATUS_OK) *out = groups;
    else close_groups(groups);
    return status;
}

static enum status open_place(struct groups_session *groups, uint32_t device, struct error *err)
{
    struct nccl_place *const place = &groups->places[device];
    if (place->stream) return STATUS_OK;
    CUDA_TRY(cudaSetDevice((int)device));
    CUDA_TRY(cudaStreamCreateWithFlags(&place->stream, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreateWithFlags(&place->ready, cudaEventDisableTiming));
    CUDA_TRY(cudaEventCreateWithFlags(&place->done, cudaEventDisableTiming));
    return STATUS_OK;
}

static enum status connect(struct groups_session *groups, struct nccl_communicator *communicator, struct error *err)
{
    int *const numbers = alloc_zeroed(communicator->count, sizeof *numbers);
    if (!numbers) return error_memory(err, "a communicator", communicator->count * sizeof *numbers);
    for (uint32_t m = 0; m < communicator->count; m++) numbers[m] = (int)communicator->devices[m];
    const int failed = groups->library.init_all(communicator->comms, (int)communicator->count, numbers);
    free(numbers);
    if (failed == NCCL_SUCCESS) return nccl_trial(groups, communicator, err);
    memset(communicator->comms, 0, communicator->count * sizeof *communicator->comms);
    char why[200];
    nccl_library_reason(&groups->library, NULL, failed, why, sizeof why);
    return error_set(err, STATUS_DEVICE, "no communicator: %s", why);
}

static enum status add(struct groups_session *groups, const uint32_t *members, uint32_t count, uint32_t *number,
                       struct error *err)
{
    struct nccl_communicator made = {.count = count};
    char version[NCCL_VERSION_BYTES];
    for (uint32_t m = 0; m < count; m++) TRY(open_place(groups, members[m], err));
    made.devices = alloc_zeroed(count, sizeof *made.devices);
    made.comms = alloc_zeroed(count, sizeof *made.comms);
    pthread_mutex_lock(&gpu_library_launching);
    struct nccl_communicator *const more = realloc(groups->communicators, (groups->count + 1) * sizeof *more);
    if (more) groups->communicators = more;
    pthread_mutex_unlock(&gpu_library_launching);
    enum status status = STATUS_OK;
    if (!more || !made.devices || !made.comms) status = error_memory(err, "a communicator", count * sizeof *made.comms);
    else memcpy(made.devices, members, count * sizeof *members);
    if (status == STATUS_OK) status = connect(groups, &made, err);
    if (status != STATUS_OK) {
        release(groups, &made);
        nccl_library_text(&groups->library, version);
        return error_add(err, "%s between %u devices, the first of them %u", version, count, members[0]);
    }
    pthread_mutex_lock(&gpu_library_launching);
    groups->communicators[groups->count] = made;
    *number = groups->count++;
    pthread_mutex_unlock(&gpu_library_launching);
    return STATUS_OK;
}

const struct group_library group_library_nccl = {
    .find = find,
    .open = open_groups,
    .add = add,
    .begin = begin,
    .call = call,
    .end = end,
    .accumulate = accumulate,
    .stop = stop,
    .close = close_groups,
};
