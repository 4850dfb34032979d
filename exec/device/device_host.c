/*
 * The host as a device; memcpy is the link.
 *
 * The thread of the fetching device copies from another arena. Times of a piece of work come from the stream's thread.
 *
 * Products take their scratch from malloc() and free it after each call. The first touch of its pages made the first
 * backward pass of a stage 7 to 14 % longer (1286 page faults for 5 MiB), which a dilated device dilates. So a
 * computing thread touches such memory before any clock runs, and malloc() keeps what is freed.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "exec/device/device_backend.h"
#include "exec/device/host_memory.h"
#include "exec/kernels/kernels.h"

/* --- streams ----------------------------------------------------------------------------------- */

enum { SCRATCH_BYTES = 8 << 20, KEPT_BYTES = 32 << 20 }; /* glibc maps larger blocks one by one */

static void keep_freed_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

static void touch_scratch(void)
{
    void *volatile scratch = malloc(SCRATCH_BYTES);
    if (scratch) memset(scratch, 0, SCRATCH_BYTES);
    free(scratch);
}

static void attach(struct device_stream *stream)
{
    if (stream->kind == STREAM_COMPUTE) touch_scratch();
    if (stream->kind == STREAM_COMPUTE) kernels_host_attach(stream->device->kernels);
    device_pace_attach(&stream->pace);
}

static void rest(struct device_stream *stream)
{
    if (stream->kind == STREAM_COMPUTE && stream->device->kernels->threads > 1) kernels_host_detach();
}

static _Thread_local double left_out_s; /* of the processor time of this thread's computation */

void device_leave_out(double processor_s)
{
    left_out_s += processor_s;
}

static void compute(struct device_stream *stream, struct device_command *command, bool back_to_back)
{
    const double dilation = stream->device->options.dilation;
    if (stream->rests) {
        kernels_host_attach(stream->device->kernels);
        stream->rests = false;
    }
    const double begun_s = clock_s(), before_s = clock_thread_s();
    left_out_s = 0;
    command->what.compute(stream->device->kernels, device_command_argument(command));
    const double computed_s = clock_thread_s() - before_s - left_out_s;
    if (dilation > 1) device_pace_hold(&stream->pace, begun_s, dilation * computed_s, back_to_back, &stream->quit);
}

static void carry_out(struct device_stream *stream, struct device_command *command, uint64_t number,
                      bool back_to_back)
{
    bool left_out = false;
    if (stream->delay_key && !device_command_is_shut(command)) {
        const double pause_s = device_queue_delay_s(stream, number);
        const struct timespec pause = {.tv_nsec = (long)(pause_s * 1e9)};
        if (pause_s > 0) nanosleep(&pause, NULL);
    }
    if (command->timing) command->timing->start_s = clock_s();
    switch ((enum command_kind)command->kind) {
    case COMMAND_COPY:
        left_out = device_command_is_shut(command);
        if (!left_out)
            device_pace_copy(&stream->pace, command->what.copy.to, command->what.copy.from,
                             command->what.copy.bytes, back_to_back, &stream->quit);
        break;
    case COMMAND_COMPUTE:
        compute(stream, command, back_to_back);
        break;
    case COMMAND_CALL:
    case COMMAND_AHEAD:
        command->what.call(device_command_argument(command));
        break;
    case COMMAND_POISON: /* all bits set is a NaN in every format */
        memset(command->what.poison.at, 0xff, command->what.poison.bytes);
        break;
    case COMMAND_WAIT: /* settled by the queue */
        break;
    }
    if (command->timing) {
        command->timing->end_s = left_out ? command->timing->start_s : clock_s();
        command->timing->left_out = left_out;
    }
}

const struct device_stream_ops host_call_stream = {
    .attach = attach, .rest = rest, .carry_out = carry_out, .survives = true};

/* --- the device -------------------------------------------------------------------------------- */

static void close_host(struct device *device)
{
    kernels_host_destroy(device->kernels);
    host_memory_unmap(device->arena, device->options.arena_bytes);
}

static const struct device_ops host_ops = {.close = close_host};

enum status device_open_host(const struct device_options *options, struct device **out,
                             struct error *err)
{
    struct device *device = alloc_zeroed(1, sizeof *device);
    if (!device) return error_memory(err, "a device", sizeof *device);
    device->ops = &host_ops;
    device->options = *options;
    keep_freed_memory();
    enum status status = host_memory_map("the arena of a device", options->arena_bytes,
                                         &device->arena, err);
    if (status != STATUS_OK) goto out;
    device->memory.arena_bytes = options->arena_bytes;
    if (options->poison && device->arena) memset(device->arena, 0xff, options->arena_bytes);
    status = kernels_host_create(options->threads, &device->kernels, err);
    if (status != STATUS_OK) goto out;
    if (options->dilation > 1) kernels_host_take_turns(device->kernels);
    for (uint32_t kind = 0; kind < STREAM_KIND_COUNT; kind++) {
        if (options->stands_in && kind != STREAM_COMPUTE && kind != STREAM_P2P && kind != STREAM_HOST) continue;
        if (kind == STREAM_CPU || kind == STREAM_FILE || (kind == STREAM_HOST && options->index != 0)) continue;
        if (kind != STREAM_COMPUTE && options->compute_only) continue;
        if (kind == STREAM_P2P && !options->p2p) continue;
        status = device_queue_start(device, kind, &host_call_stream, NULL, err);
        if (status != STATUS_OK) goto out;
    }
    *out = device;
out:
    if (status != STATUS_OK) device_close(device);
    return status;
}
