/*
 * A GPU as a device.
 *
 * Three streams of the GPU (computing, H2D, D2H; a fourth for P2P where devices copy directly, and two for collectives
 * where a plan has parallel jobs) have a queue of exec/device/device.c and two threads each:
 *
 *     enqueueing thread        feeder (stream_main)          GPU                  reaper
 *     ------------------       ---------------------------   ------------------   ------------------
 *     device_copy() ---------> [ring] cudaMemcpyAsync,   --> copy, then    -----> sleeps for the event,
 *                                     record an event        reach the event      notes times, moves
 *                                                                                 `ended` on
 *
 * Only the reaper waits for the GPU. The feeder hands over at most AHEAD commands before their turn. Launch costs thus
 * overlap with work, and few commands are in the GPU's queue when a run is stopped. The feeder never waits for the end
 * of its own commands, unless copies are paced or host memory is pageable (below).
 *
 * device.c shows why no wait can end in a deadlock; it relies here on the fact that a GPU is only given a wait for
 * work that a GPU already has. A flag that the host sets and the GPU polls (cuStreamWaitValue32) would allow earlier
 * handing over, but the value may never come when a run ends early, and the GPU would be lost.
 *
 * Events. Each stream has a ring of RING pairs; a pair belongs to command number % RING. RING is larger than AHEAD, so
 * a pair is reused long after its command has ended. Between the check whether a command has ended and the wait for
 * its event, the event must not be recorded again: the stream's `events_lock` is held for both.
 *
 * Collectives by a library (exec/nccl) are calls that the feeder makes when their turn is handed over: it meets the
 * feeders of the other members, and the last one to come enqueues the collective for all of them.
 *
 * Host functions on these streams (the arrival of a loss, a checkpoint's steps) are carried out by the feeder after
 * all earlier commands have ended; they are few. cudaLaunchHostFunc() would run them on a thread of the driver that
 * streams may share, where no function may wait for another, as a checkpoint's do. A driver whose device is lost would
 * drop them, and threads that wait for them would hang.
 *
 * A lost device. An error of a call or of a wait of the reaper is the end of the device (device_fail()): from then on
 * commands are skipped, except host functions. An event of another device that cannot be waited for is that device's
 * failure.
 *
 * Guards. A guard is checked when its copy is handed over, at most AHEAD commands before its turn: copies already
 * handed over are carried out even if their guard has closed since. This changes nothing that is kept. A computation
 * is handed over after the copies that it waits for and before the copies that wait for it, and then counts as begun;
 * a guard is closed only for minibatches that have not begun. A copy to the device whose computation is skipped has
 * filled a slot that is never read.
 *
 * Paced copies go chunk by chunk, each awaited, with sleeps in between (exec/device/pace.h). On such a stream the
 * feeder carries out a command from start to end. So do both copy streams when host memory is pageable: the driver
 * then accesses the host's side when it is called, not at the stream's turn. Such copies reach about a third of the
 * link's rate.
 *
 * Copies from another GPU. The fetching GPU's P2P stream is given cudaMemcpyPeerAsync(), with peer access enabled if
 * the driver allows it; otherwise the driver goes through the host. A GPU whose copies arrived changed (device_p2p.h)
 * is staged: peer access is disabled, and copies go through a pinned buffer piece by piece, in and out on the same
 * stream. This costs half of the rate.
 *
 * Times. An event's time is the time of an anchor plus the difference by cudaEventElapsedTime(). The error is at most
 * half of the round trip of that calibration (some 10 us), plus 0.5 us of resolution. That function returns float
 * milliseconds, so an event further than ANCHOR_S away becomes the new anchor. Clocks of GPU and host drift apart by
 * some millionths. A time before its command was handed over, or after the reaper saw it, moves the anchor by the
 * excess.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "exec/cuda/device_cuda.h"
#include "exec/cuda/kernels_cuda.h"
#include "exec/cuda/kernels_cuda_launch.h"
#include "exec/cuda/kernels_cuda_products.h"
#include "exec/device/backend.h"
#include "exec/device/device_backend.h"
#include "exec/device/device_groups.h"
#include "exec/device/host_memory.h"

enum { AHEAD = 16, RING = 32, CALIBRATIONS = 20, TEXT_BYTES = 256, STAGE_BYTES = 4 << 20 };
static const double ANCHOR_S = 4;

struct slot {
    cudaEvent_t start, end;
    cudaEvent_t begun; /* of a collective: all members have come */
    double handed_s; /* clock_s() */
    bool timed, left_out, begins;
};

struct cuda_stream {
    cudaStream_t stream;
    bool waits_for_host; /* paced or pageable */
    struct slot slots[RING];
    struct slot *called; /* of the call ahead that is being handed over */
    pthread_mutex_t events_lock;
    cudaEvent_t anchor;
    double anchor_s, last_s;
    pthread_t reaper;
    bool reaping;
    struct device_waiter waiter; /* the reaper's */
};

struct cuda_device {
    int index;
    struct cuda_stream streams[STREAM_HOST]; /* compute, H2D, D2H, P2P, of groups, of data */
    struct device *from; /* of the P2P copy being handed over */
    char *stage;         /* STAGE_BYTES, pinned; NULL: no copies are staged */
    bool staged[HARDWARE_DEVICES_MAX];
};

static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static char text[TEXT_BYTES] = "no CUDA device was opened";

/* --- errors ---------------------------------------------------------------------------------------- */

bool device_cuda_worked(struct device *device, const char *call, cudaError_t status)
{
    if (status == cudaSuccess) return true;
    char what[TEXT_BYTES];
    snprintf(what, sizeof what, "%.120s: %s", call, cudaGetErrorString(status));
    device_fail(device, what);
    return false;
}

/* --- times ----------------------------------------------------------------------------------------- */

/* Takes the quickest of some round trips. */
static cudaError_t calibrate(struct cuda_stream *own)
{
    double quickest_s = 1e9;
    for (int i = 0; i < CALIBRATIONS; i++) {
        struct slot *const spare = &own->slots[0];
        const double before_s = clock_s();
        cudaError_t status = cudaEventRecord(spare->end, own->stream);
        while (status == cudaSuccess && (status = cudaEventQuery(spare->end)) == cudaErrorNotReady) {
            cudaGetLastError(); /* else it would be blamed on the next launch */
            status = cudaSuccess;
        }
        const double after_s = clock_s();
        if (status != cudaSuccess) return status;
        if (after_s - before_s >= quickest_s) continue;
        quickest_s = after_s - before_s;
        own->anchor_s = before_s + quickest_s / 2;
        const cudaEvent_t swap = own->anchor;
        own->anchor = spare->end;
        spare->end = swap;
    }
    own->last_s = own->anchor_s;
    return cudaSuccess;
}

/* Returns the time of an event that has been reached. */
static double time_of(struct device *device, struct cuda_stream *own, cudaEvent_t event,
                      double earliest_s, double latest_s)
{
    float since_ms = 0;
    if (!CUDA_WORKED(device, cudaEventElapsedTime(&since_ms, own->anchor, event))) return latest_s;
    double at_s = own->anchor_s + (double)since_ms * 1e-3;
    const double bounded_s = at_s < earliest_s ? earliest_s : at_s > latest_s ? latest_s : at_s;
    own->anchor_s += bounded_s - at_s;
    at_s = bounded_s > own->last_s ? bounded_s : own->last_s;
    own->last_s = at_s;
    return at_s;
}

static void note_times(struct device_stream *stream, struct slot *slot, struct device_command *command)
{
    struct cuda_stream *const own = stream->own;
    struct device_timing *const timing = command->timing;
    const double now_s = clock_s();
    timing->left_out = slot->left_out;
    timing->start_s = time_of(stream->device, own, slot->start, slot->handed_s, now_s);
    if (slot->begins) {
        const double came_s = timing->start_s;
        timing->start_s = time_of(stream->device, own, slot->begun, came_s, now_s);
        timing->waited_s = timing->start_s - came_s;
    }
    timing->end_s = slot->left_out
                        ? timing->start_s
                        : time_of(stream->device, own, slot->end, timing->start_s, now_s);
    if (timing->end_s - own->anchor_s < ANCHOR_S) return;
    /* A thread that waits for the slot's event now gets one that was reached long ago, which is correct. */
    pthread_mutex_lock(&own->events_lock);
    const cudaEvent_t swap = own->anchor;
    own->anchor = slot->end;
    own->anchor_s = timing->end_s;
    slot->end = swap;
    pthread_mutex_unlock(&own->events_lock);
}

/* A call's times are the host's; times of earlier work came from events. */
static void keep_order(struct cuda_stream *own, struct device_timing *timing)
{
    if (timing->start_s < own->last_s) timing->start_s = own->last_s;
    if (timing->end_s < timing->start_s) timing->end_s = timing->start_s;
    own->last_s = timing->end_s;
}

static void *reaper_main(void *pointer)
{
    struct device_stream *const stream = pointer;
    struct device *const device = stream->device;
    struct cuda_stream *const own = stream->own;
    CUDA_WORKED(device, cudaSetDevice(((struct cuda_device *)device->own)->index));
    for (uint64_t number = 0; device_queue_await_taken(stream, &own->waiter, number); number++) {
        struct slot *const slot = &own->slots[number % RING];
        struct device_command *const command = &stream->ring[number % DEVICE_QUEUE_MAX];
        /* After the device is lost nothing is recorded, and all commands have ended. */
        if (!atomic_load(&device->failed)) CUDA_WORKED(device, cudaEventSynchronize(slot->end));
        if (command->timing && command->kind == COMMAND_CALL) {
            keep_order(own, command->timing);
        } else if (command->timing && command->kind != COMMAND_WAIT) {
            if (!atomic_load(&device->failed) && slot->timed)
                note_times(stream, slot, command);
            else
                *command->timing = (struct device_timing){.start_s = clock_s(), .end_s = clock_s(), .left_out = true};
        }
        device_queue_ended(stream, number + 1);
    }
    return NULL;
}

/* --- carrying out ----------------------------------------------------------------------------------- */

static enum cudaMemcpyKind direction_of(const struct device_stream *stream)
{
    switch (stream->kind) {
    case STREAM_H2D: return cudaMemcpyHostToDevice;
    case STREAM_D2H: return cudaMemcpyDeviceToHost;
    default: return cudaMemcpyDefault;
    }
}

static bool give_staged(struct device_stream *stream, char *to, const char *from, uint64_t bytes)
{
    struct cuda_stream *const own = stream->own;
    char *const stage = ((struct cuda_device *)stream->device->own)->stage;
    for (uint64_t done = 0; done < bytes; done += STAGE_BYTES) {
        const uint64_t piece = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
        if (!CUDA_WORKED(stream->device, cudaMemcpyAsync(stage, from + done, piece,
                                                    cudaMemcpyDeviceToHost, own->stream)) ||
            !CUDA_WORKED(stream->device, cudaMemcpyAsync(to + done, stage, piece,
                                                    cudaMemcpyHostToDevice, own->stream)))
            return false;
    }
    return true;
}

/* Copies at least a byte. */
static bool give_copy(struct device_stream *stream, void *to, const void *from, uint64_t bytes)
{
    struct cuda_stream *const own = stream->own;
    const struct cuda_device *const cuda = stream->device->own;
    if (stream->kind != STREAM_P2P)
        return CUDA_WORKED(stream->device,
                      cudaMemcpyAsync(to, from, bytes, direction_of(stream), own->stream));
    if (cuda->staged[cuda->from->options.index]) return give_staged(stream, to, from, bytes);
    const int peer = ((const struct cuda_device *)cuda->from->own)->index;
    return CUDA_WORKED(stream->device,
                  cudaMemcpyPeerAsync(to, cuda->index, from, peer, bytes, own->stream));
}

static void copy_and_wait(void *context, void *to, const void *from, uint64_t bytes)
{
    struct device_stream *const stream = context;
    struct cuda_stream *const own = stream->own;
    if (give_copy(stream, to, from, bytes))
        CUDA_WORKED(stream->device, cudaStreamSynchronize(own->stream));
}

static void attach(struct device_stream *stream)
{
    struct cuda_device *const device = stream->device->own;
    CUDA_WORKED(stream->device, cudaSetDevice(device->index));
    device_pace_attach(&stream->pace);
    stream->pace.copy = copy_and_wait;
    stream->pace.context = stream;
}

static void hand_over_wait(struct device_stream *stream, struct device_command *command)
{
    struct cuda_stream *const own = stream->own;
    struct device_stream *const on = command->what.wait.on;
    struct cuda_stream *const other = on->own;
    const uint64_t event = command->what.wait.event;
    if (device_reached(on, event)) return; /* always so on a stream of a host */
    pthread_mutex_lock(&other->events_lock);
    if (!device_reached(on, event) && !atomic_load(&on->device->failed))
        CUDA_WORKED(on->device,
               cudaStreamWaitEvent(own->stream, other->slots[(event - 1) % RING].end, 0));
    pthread_mutex_unlock(&other->events_lock);
}

static void hand_over_copy(struct device_stream *stream, struct device_command *command,
                           bool back_to_back)
{
    if (stream->kind == STREAM_P2P)
        ((struct cuda_device *)stream->device->own)->from = command->what.copy.from_device;
    if (stream->pace.bytes_per_s > 0)
        device_pace_copy(&stream->pace, command->what.copy.to, command->what.copy.from,
                         command->what.copy.bytes, back_to_back, &stream->quit);
    else if (command->what.copy.bytes > 0)
        give_copy(stream, command->what.copy.to, command->what.copy.from, command->what.copy.bytes);
}

/* The function may move its beginning, as on a host device. */
static void call_timed(struct device_command *command)
{
    struct device_timing *const timing = command->timing;
    if (timing) *timing = (struct device_timing){.start_s = clock_s()};
    command->what.call(device_command_argument(command));
    if (timing) timing->end_s = clock_s();
}

static void hand_over(struct device_stream *stream, struct device_command *command, uint64_t number,
                      bool back_to_back)
{
    struct device *const device = stream->device;
    struct cuda_stream *const own = stream->own;
    struct slot *const slot = &own->slots[number % RING];
    const bool work = command->kind != COMMAND_WAIT;
    slot->left_out = device_command_is_shut(command);
    slot->timed = work && command->kind != COMMAND_CALL && command->timing;
    slot->begins = false;
    const double pause_s = work && !slot->left_out ? device_queue_delay_s(stream, number) : 0;
    if (pause_s > 0) CUDA_WORKED(device, cuda_pause(own->stream, (uint64_t)(pause_s * 1e9)));
    slot->handed_s = clock_s();
    if (slot->timed) CUDA_WORKED(device, cudaEventRecord(slot->start, own->stream));
    switch ((enum command_kind)command->kind) {
    case COMMAND_WAIT:
        hand_over_wait(stream, command);
        break;
    case COMMAND_COPY:
        if (!slot->left_out) hand_over_copy(stream, command, back_to_back);
        break;
    case COMMAND_COMPUTE: {
        command->what.compute(device->kernels, device_command_argument(command));
        const char *const failed = kernels_cuda_failure(device->kernels);
        if (failed) device_fail(device, failed);
        break;
    }
    case COMMAND_CALL:
        CUDA_WORKED(device, cudaStreamSynchronize(own->stream));
        call_timed(command);
        break;
    case COMMAND_AHEAD:
        own->called = slot;
        command->what.call(device_command_argument(command));
        break;
    case COMMAND_POISON: /* all bits set is a NaN in every format */
        CUDA_WORKED(device, cudaMemsetAsync(command->what.poison.at, 0xff, command->what.poison.bytes,
                                       own->stream));
        break;
    }
    pthread_mutex_lock(&own->events_lock);
    CUDA_WORKED(device, cudaEventRecord(slot->end, own->stream));
    pthread_mutex_unlock(&own->events_lock);
    if (own->waits_for_host) CUDA_WORKED(device, cudaStreamSynchronize(own->stream));
}

cudaStream_t device_cuda_stream(const struct device_stream *stream)
{
    return ((const struct cuda_stream *)stream->own)->stream;
}

cudaEvent_t device_cuda_begin(struct device_stream *stream)
{
    struct cuda_stream *const own = stream->own;
    own->called->begins = CUDA_WORKED(stream->device, cudaEventRecord(own->called->begun, own->stream));
    return own->called->begun;
}

static const struct device_stream_ops cuda_stream_ops = {
    .attach = attach, .carry_out = hand_over, .ahead_max = AHEAD, .waits_on_device = true};
/* Paced or pageable. */
static const struct device_stream_ops cuda_slow_stream_ops = {
    .attach = attach, .carry_out = hand_over, .ahead_max = AHEAD, .waits_on_device = false};

/* --- opening and closing ------------------------------------------------------------------------------ */

static bool has_stream(const struct device *device, uint32_t kind)
{
    if (kind == STREAM_GROUP || kind == STREAM_DATA) return device->options.gangs;
    return kind != STREAM_P2P || device->options.p2p;
}

static enum status open_stream(struct device *device, uint32_t kind, struct error *err)
{
    struct cuda_device *const cuda = device->own;
    struct cuda_stream *const own = &cuda->streams[kind];
    const struct device_options *const options = &device->options;
    const bool paced = (kind == STREAM_H2D && options->h2d_bytes_per_s > 0) ||
                       (kind == STREAM_D2H && options->d2h_bytes_per_s > 0) ||
                       (kind == STREAM_P2P && options->p2p_bytes_per_s > 0);
    const bool of_host = kind == STREAM_H2D || kind == STREAM_D2H;
    own->waits_for_host = paced || (of_host && options->pageable);
    pthread_mutex_init(&own->events_lock, NULL);
    CUDA_TRY(cudaStreamCreateWithFlags(&own->stream, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreateWithFlags(&own->anchor, cudaEventBlockingSync));
    for (int i = 0; i < RING; i++) {
        CUDA_TRY(cudaEventCreateWithFlags(&own->slots[i].start, cudaEventBlockingSync));
        CUDA_TRY(cudaEventCreateWithFlags(&own->slots[i].end, cudaEventBlockingSync));
        CUDA_TRY(cudaEventCreateWithFlags(&own->slots[i].begun, cudaEventBlockingSync));
    }
    CUDA_TRY(calibrate(own));
    if (kind == STREAM_COMPUTE) {
        TRY(kernels_cuda_create(own->stream, options->tf32, &device->kernels, err));
    }
    return STATUS_OK;
}

static enum status start_stream(struct device *device, uint32_t kind, struct error *err)
{
    struct cuda_device *const cuda = device->own;
    struct cuda_stream *const own = &cuda->streams[kind];
    const struct device_stream_ops *const ops =
        own->waits_for_host ? &cuda_slow_stream_ops : &cuda_stream_ops;
    TRY(device_queue_start(device, kind, ops, own, err));
    if (pthread_cond_init(&own->waiter.wake, NULL) != 0)
        return error_set(err, STATUS_DEVICE, "cannot make a condition variable");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&own->reaper, NULL, reaper_main, &device->streams[kind]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        pthread_cond_destroy(&own->waiter.wake);
        return error_set(err, STATUS_DEVICE, "cannot start a thread for the %s stream of device %u: %s",
                         plan_stream_names[kind], device->options.index, strerror(failed));
    }
    own->reaping = true;
    return STATUS_OK;
}

/* Completes the commands that were handed over first. */
static void stop_stream(struct device_stream *stream)
{
    struct cuda_stream *const own = stream->own;
    if (!own || !own->reaping) return; /* the host's stream has none */
    pthread_join(own->reaper, NULL);
    pthread_cond_destroy(&own->waiter.wake);
    own->reaping = false;
    /* Copies from a peer's arena must have ended before it is freed. */
    if (cudaStreamSynchronize(own->stream) != cudaSuccess) cudaGetLastError(); /* a lost device reports an error */
    cudaStreamDestroy(own->stream);
    own->stream = NULL;
}

static void close_cuda(struct device *device)
{
    struct cuda_device *const cuda = device->own;
    if (!cuda) return;
    cudaSetDevice(cuda->index);
    kernels_cuda_destroy(device->kernels);
    for (uint32_t kind = 0; kind < STREAM_HOST; kind++) {
        struct cuda_stream *const own = &cuda->streams[kind];
        for (int i = 0; i < RING; i++) {
            if (own->slots[i].start) cudaEventDestroy(own->slots[i].start);
            if (own->slots[i].end) cudaEventDestroy(own->slots[i].end);
            if (own->slots[i].begun) cudaEventDestroy(own->slots[i].begun);
        }
        if (own->anchor) cudaEventDestroy(own->anchor);
        if (own->stream) cudaStreamDestroy(own->stream);
    }
    if (cuda->stage) cudaFreeHost(cuda->stage);
    cudaFree(device->arena);
    free(cuda);
}

static enum status link_cuda(struct device *to, struct device *from, struct error *err)
{
    const int device = ((struct cuda_device *)to->own)->index;
    const int peer = ((struct cuda_device *)from->own)->index;
    int possible = 0;
    CUDA_TRY(cudaDeviceCanAccessPeer(&possible, device, peer));
    if (!possible) return STATUS_OK;
    CUDA_TRY(cudaSetDevice(device));
    const cudaError_t failed = cudaDeviceEnablePeerAccess(peer, 0);
    if (failed != cudaSuccess) cudaGetLastError(); /* it was already, or copies work without */
    return STATUS_OK;
}

static enum status stage_cuda(struct device *to, struct device *from, struct error *err)
{
    struct cuda_device *const cuda = to->own;
    CUDA_TRY(cudaSetDevice(cuda->index));
    if (cudaDeviceDisablePeerAccess(((struct cuda_device *)from->own)->index) != cudaSuccess)
        cudaGetLastError(); /* it was not enabled */
    if (!cuda->stage) {
        void *memory;
        const cudaError_t failed = cudaMallocHost(&memory, STAGE_BYTES);
        if (failed != cudaSuccess) {
            cudaGetLastError(); /* it is told here */
            return error_set(err, STATUS_NO_MEMORY, "no pinned buffer of %d bytes for copies between "
                             "devices: %s", STAGE_BYTES, cudaGetErrorString(failed));
        }
        cuda->stage = memory;
    }
    cuda->staged[from->options.index] = true;
    return STATUS_OK;
}

static void move_cuda(struct device_stream *stream, void *to, const void *from, uint64_t bytes)
{
    struct cuda_stream *const own = stream->own;
    if (bytes == 0 || atomic_load(&stream->device->failed)) return;
    if (CUDA_WORKED(stream->device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, own->stream)))
        CUDA_WORKED(stream->device, cudaStreamSynchronize(own->stream));
}

static const struct device_ops cuda_ops = {
    .move = move_cuda, .stop_stream = stop_stream, .link = link_cuda, .stage = stage_cuda, .close = close_cuda};

static enum status map_arena(struct device *device, const char *name, struct error *err)
{
    const struct device_options *const options = &device->options;
    const uint64_t needed = options->arena_bytes + CUDA_WORKSPACE_BYTES;
    size_t available = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&available, &total));
    char words[3][QUANTITY_TEXT_BYTES];
    if (needed > available)
        return error_set(err, STATUS_NO_MEMORY,
                         "the plan needs %s (%" PRIu64 " bytes) of device memory, but %s has %s of "
                         "%s left (%zu bytes)",
                         quantity_text((double)needed, DIMENSION_BYTES, words[0]), needed, name,
                         quantity_text((double)available, DIMENSION_BYTES, words[1]),
                         quantity_text((double)total, DIMENSION_BYTES, words[2]), available);
    if (options->arena_bytes == 0) return STATUS_OK;
    /* Free memory may be fragmented, or taken since. */
    device->memory.arena_bytes = options->arena_bytes;
    const cudaError_t failed = cudaMalloc(&device->arena, options->arena_bytes);
    if (failed != cudaSuccess) {
        cudaGetLastError(); /* it is told here */
        return error_set(err, STATUS_NO_MEMORY,
                         "%s has %s of %s left, but does not give %s in one piece (%" PRIu64
                         " bytes): %s",
                         name, quantity_text((double)available, DIMENSION_BYTES, words[1]),
                         quantity_text((double)total, DIMENSION_BYTES, words[2]),
                         quantity_text((double)options->arena_bytes, DIMENSION_BYTES, words[0]),
                         options->arena_bytes, cudaGetErrorString(failed));
    }
    CUDA_TRY(cudaMemset(device->arena, options->poison ? 0xff : 0, options->arena_bytes));
    CUDA_TRY(cudaDeviceSynchronize());
    return STATUS_OK;
}

/* `before` is the free memory before opening. */
static enum status note_memory(struct device *device, size_t before, struct error *err)
{
    struct device_memory *const memory = &device->memory;
    size_t after = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&after, &total));
    memory->workspace_bytes = CUDA_WORKSPACE_BYTES;
    const uint64_t known = memory->arena_bytes + memory->workspace_bytes;
    const uint64_t taken = before > after ? before - after : 0;
    memory->driver_bytes = taken > known ? taken - known : 0;
    return STATUS_OK;
}

static void describe(const char *name, bool tf32)
{
    int driver = 0;
    cudaDriverGetVersion(&driver);
    pthread_mutex_lock(&text_lock);
    snprintf(text, sizeof text, "%.120s, driver for CUDA %d.%d, cuBLASLt %u, %s products", name,
             driver / 1000, driver % 1000 / 10, cuda_products_version(), tf32 ? "tf32" : "fp32");
    pthread_mutex_unlock(&text_lock);
}

static enum status open_all(struct device *device, struct error *err)
{
    struct cuda_device *const cuda = device->own;
    uint32_t count = 0;
    TRY(backend_cuda.count(&count, err));
    if (device->options.index >= count)
        return error_set(err, STATUS_DEVICE, "there is no CUDA device %u (found %u)",
                         device->options.index, count);
    cuda->index = (int)device->options.index;
    struct cudaDeviceProp properties;
    size_t available = 0, total = 0;
    CUDA_TRY(cudaSetDevice(cuda->index));
    /* Waiting threads should sleep, because cores are few. */
    if (cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess) cudaGetLastError();
    CUDA_TRY(cudaGetDeviceProperties(&properties, cuda->index));
    describe(properties.name, device->options.tf32);
    CUDA_TRY(cudaMemGetInfo(&available, &total));
    enum status status = map_arena(device, properties.name, err);
    for (uint32_t kind = 0; kind < STREAM_HOST && status == STATUS_OK; kind++)
        if (has_stream(device, kind)) status = open_stream(device, kind, err);
    if (status == STATUS_OK) status = note_memory(device, available, err);
    for (uint32_t kind = 0; kind < STREAM_HOST && status == STATUS_OK; kind++)
        if (has_stream(device, kind)) status = start_stream(device, kind, err);
    if (status == STATUS_OK && device->options.index == 0)
        status = device_queue_start(device, STREAM_HOST, &host_call_stream, NULL, err);
    return status;
}

enum status device_open_cuda(const struct device_options *options, struct device **out,
                             struct error *err)
{
    struct device *const device = alloc_zeroed(1, sizeof *device);
    struct cuda_device *const cuda = alloc_zeroed(1, sizeof *cuda);
    if (!device || !cuda) {
        free(device);
        free(cuda);
        return error_memory(err, "a device", sizeof *device + sizeof *cuda);
    }
    device->ops = &cuda_ops;
    device->own = cuda;
    device->options = *options;
    const enum status status = open_all(device, err);
    if (status == STATUS_OK)
        *out = device;
    else
        device_close(device);
    return status;
}

/* --- the back end --------------------------------------------------------------------------------------- */

static enum status count_devices(uint32_t *out, struct error *err)
{
    int count = 0;
    const cudaError_t failed = cudaGetDeviceCount(&count);
    if (failed != cudaSuccess)
        return error_set(err, STATUS_DEVICE, "no CUDA device: %s", cudaGetErrorString(failed));
    if (count == 0) return error_set(err, STATUS_DEVICE, "no CUDA device: the driver has none");
    *out = (uint32_t)count;
    return STATUS_OK;
}

static const char *unsupported(const struct job *job)
{
    return job->network.head_width > CUDA_HEAD_WIDTH_MAX
               ? "its heads are wider than 256, for which there is no CUDA kernel"
               : NULL;
}

static const char *device_text(void)
{
    static _Thread_local char copy[TEXT_BYTES];
    pthread_mutex_lock(&text_lock);
    memcpy(copy, text, sizeof copy);
    pthread_mutex_unlock(&text_lock);
    return copy;
}

/* Locked memory cannot be swapped out: some must be left. */
static const uint64_t UNPINNED_MIN_BYTES = UINT64_C(1) << 30;

static bool pin(void *memory, uint64_t bytes, char *why, uint32_t size)
{
    const uint64_t total = host_memory_total();
    char words[2][QUANTITY_TEXT_BYTES];
    if (total > 0 && (bytes > total || total - bytes < UNPINNED_MIN_BYTES)) {
        snprintf(why, size, "%s of the machine's %s would leave less than 1 GiB",
                 quantity_text((double)bytes, DIMENSION_BYTES, words[0]),
                 quantity_text((double)total, DIMENSION_BYTES, words[1]));
        return false;
    }
    const cudaError_t failed = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
    if (failed == cudaSuccess) return true;
    cudaGetLastError(); /* it is told here */
    snprintf(why, size, "%s", cudaGetErrorString(failed));
    return false;
}

static void unpin(void *memory)
{
    cudaHostUnregister(memory);
}

const struct backend backend_cuda = {
    .name = "cuda",
    .open = device_open_cuda,
    .count = count_devices,
    .unsupported = unsupported,
    .text = device_text,
    .pin = pin,
    .unpin = unpin,
    .groups = &group_library_nccl,
};
