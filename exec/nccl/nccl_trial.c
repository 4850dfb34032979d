/*
 * Small whole numbers go through each kind of collective. Their sums are exact in any order.
 *
 *     a member's arena   [ in: a number for each element, of each member ] [ out ]
 *
 * NCCL connects devices and loads kernels at the first call of a kind. After this nothing is left to be loaded while
 * kernels of a group wait for each other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/cuda/device_cuda.h"
#include "exec/device/device_backend.h"
#include "exec/nccl/nccl_groups.h"

enum { ELEMENTS_MAX = 64 };
static const double PATIENCE_S = 60;

static const struct kind {
    const char *name;
    uint32_t kind, type;
} kinds[] = {
    {"all-reduce", GROUP_ALL_REDUCE, GROUP_FP32}, {"all-reduce in fp64", GROUP_ALL_REDUCE, GROUP_FP64},
    {"reduce-scatter", GROUP_REDUCE_SCATTER, GROUP_FP32}, {"all-gather", GROUP_ALL_GATHER, GROUP_BYTES},
    {"reduce", GROUP_REDUCE, GROUP_FP32}, {"broadcast", GROUP_BROADCAST, GROUP_BYTES},
};

struct trial {
    struct groups_session *groups;
    const struct nccl_communicator *communicator;
    const struct kind *kind;
    uint32_t root;
    uint64_t elements;   /* of a share */
    uint64_t room_bytes; /* of in, and of out */
    unsigned char *host; /* room_bytes */
};

static uint64_t size_of(uint32_t type)
{
    return type == GROUP_FP32 ? sizeof(float) : type == GROUP_FP64 ? sizeof(double) : 1;
}

static double number(uint64_t member, uint64_t element)
{
    return (double)((member * 7 + element * 3) % 97 + 1);
}

static void put(unsigned char *at, uint32_t type, double value)
{
    const float single = (float)value;
    if (type == GROUP_FP32) memcpy(at, &single, sizeof single);
    else if (type == GROUP_FP64) memcpy(at, &value, sizeof value);
    else *at = (unsigned char)value;
}

static double get(const unsigned char *at, uint32_t type)
{
    float single;
    double value;
    if (type == GROUP_BYTES) return *at;
    memcpy(&single, at, sizeof single);
    if (type == GROUP_FP32) return (double)single;
    memcpy(&value, at, sizeof value);
    return value;
}

static double sum(const struct trial *t, uint64_t element)
{
    double all = 0;
    for (uint32_t m = 0; m < t->communicator->count; m++) all += number(m, element);
    return all;
}

static double expected(const struct trial *t, uint32_t member, uint64_t element)
{
    switch (t->kind->kind) {
    case GROUP_REDUCE_SCATTER: return sum(t, member * t->elements + element);
    case GROUP_ALL_GATHER: return number(element / t->elements, element % t->elements);
    case GROUP_BROADCAST: return number(t->root, element);
    default: return sum(t, element);
    }
}

static unsigned char *arena(const struct trial *t, uint32_t member)
{
    return device_arena(t->groups->devices[t->communicator->devices[member]]);
}

static enum status fill(const struct trial *t, struct error *err)
{
    const uint64_t size = size_of(t->kind->type);
    for (uint32_t m = 0; m < t->communicator->count; m++) {
        for (uint64_t i = 0; i < t->elements * t->communicator->count; i++)
            put(t->host + i * size, t->kind->type, number(m, i));
        CUDA_TRY(cudaSetDevice((int)t->communicator->devices[m]));
        CUDA_TRY(cudaMemcpy(arena(t, m), t->host, t->room_bytes, cudaMemcpyHostToDevice));
        CUDA_TRY(cudaMemset(arena(t, m) + t->room_bytes, 0xff, t->room_bytes));
        CUDA_TRY(cudaDeviceSynchronize());
    }
    return STATUS_OK;
}

static enum status refused(const struct trial *t, int result, struct error *err)
{
    char why[200];
    nccl_library_reason(&t->groups->library, NULL, result, why, sizeof why);
    return error_set(err, STATUS_DEVICE, "%s: %s", t->kind->name, why);
}

static enum status enqueue(const struct trial *t, struct error *err)
{
    const struct nccl_communicator *const c = t->communicator;
    int result = t->groups->library.group_start();
    for (uint32_t m = 0; m < c->count && result == NCCL_SUCCESS; m++) {
        const struct group_call call = {.kind = t->kind->kind, .type = t->kind->type, .member = m, .root = t->root,
                                        .from = arena(t, m), .to = arena(t, m) + t->room_bytes, .count = t->elements};
        result = nccl_communicator_enqueue(t->groups, c, &call);
    }
    const int ended = t->groups->library.group_end();
    if (result == NCCL_SUCCESS) result = ended;
    if (result != NCCL_SUCCESS) return refused(t, result, err);
    for (uint32_t m = 0; m < c->count; m++) {
        const struct nccl_place *const place = &t->groups->places[c->devices[m]];
        CUDA_TRY(cudaEventRecord(place->done, place->stream));
    }
    return STATUS_OK;
}

/* Waits without a call that a kernel which hangs would keep. */
static enum status await(const struct trial *t, struct error *err)
{
    const double end_s = clock_s() + PATIENCE_S;
    const struct timespec pause = {.tv_nsec = 200000};
    for (uint32_t m = 0; m < t->communicator->count; m++) {
        const cudaEvent_t done = t->groups->places[t->communicator->devices[m]].done;
        cudaError_t status;
        while ((status = cudaEventQuery(done)) == cudaErrorNotReady) {
            int result = NCCL_SUCCESS;
            cudaGetLastError(); /* else it would be blamed on the next launch */
            t->groups->library.get_async_error(t->communicator->comms[m], &result);
            if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS) return refused(t, result, err);
            if (clock_s() > end_s)
                return error_set(err, STATUS_DEVICE, "%s: it has not ended after %g s", t->kind->name, PATIENCE_S);
            nanosleep(&pause, NULL);
        }
        CUDA_TRY(status);
    }
    return STATUS_OK;
}

static enum status compare(const struct trial *t, struct error *err)
{
    const uint64_t size = size_of(t->kind->type);
    const uint64_t count = t->kind->kind == GROUP_ALL_GATHER ? t->elements * t->communicator->count : t->elements;
    for (uint32_t m = 0; m < t->communicator->count; m++) {
        if (t->kind->kind == GROUP_REDUCE && m != t->root) continue;
        CUDA_TRY(cudaMemcpy(t->host, arena(t, m) + t->room_bytes, t->room_bytes, cudaMemcpyDeviceToHost));
        for (uint64_t i = 0; i < count; i++) {
            const double found = get(t->host + i * size, t->kind->type);
            if (found != expected(t, m, i))
                return error_set(err, STATUS_DEVICE, "%s: device %" PRIu32 " has %g at element %" PRIu64 ", not %g",
                                 t->kind->name, t->communicator->devices[m], found, i, expected(t, m, i));
        }
    }
    return STATUS_OK;
}

static enum status try_kinds(struct trial *t, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        t->kind = &kinds[i];
        t->root = t->kind->kind == GROUP_REDUCE ? t->communicator->count - 1 : 0;
        TRY(fill(t, err));
        TRY(enqueue(t, err));
        TRY(await(t, err));
        TRY(compare(t, err));
    }
    return STATUS_OK;
}

enum status nccl_trial(struct groups_session *groups, struct nccl_communicator *communicator, struct error *err)
{
    struct trial t = {.groups = groups, .communicator = communicator, .elements = ELEMENTS_MAX};
    const uint64_t each = 2 * sizeof(double) * communicator->count;
    for (uint32_t m = 0; m < communicator->count; m++) {
        const uint64_t room = groups->devices[communicator->devices[m]]->options.arena_bytes / each;
        if (room < t.elements) t.elements = room;
    }
    if (t.elements == 0) return error_set(err, STATUS_LIMIT, "a trial needs %" PRIu64 " bytes of each device", each);
    t.room_bytes = t.elements * sizeof(double) * communicator->count;
    t.host = alloc_zeroed(t.room_bytes, 1);
    if (!t.host) return error_memory(err, "a trial of collectives", t.room_bytes);
    const enum status status = try_kinds(&t, err);
    free(t.host);
    for (uint32_t m = 0; m < communicator->count && status == STATUS_OK; m++) {
        struct device *const device = groups->devices[communicator->devices[m]];
        struct device_stream *const stream = device_stream(device, STREAM_H2D);
        device_poison(stream, device_arena(device), 2 * t.room_bytes);
        if (!device_synchronize(stream, device_record(stream), PATIENCE_S))
            return error_set(err, STATUS_DEVICE, "device %" PRIu32 " does not answer", communicator->devices[m]);
    }
    if (status != STATUS_OK) {
        for (uint32_t m = 0; m < communicator->count; m++) groups->library.abort(communicator->comms[m]);
        memset(communicator->comms, 0, communicator->count * sizeof *communicator->comms);
    }
    return status;
}
