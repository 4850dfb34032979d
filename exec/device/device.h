/*
 * Devices: an arena of memory, ordered streams, copies, computations, events.
 *
 * Everything above this interface (run.c: spilling, double buffering, many jobs) is the same code
 * on every back end. Work is enqueued without waiting; a stream runs its work in order; an event
 * recorded on one stream can be waited for by another. The host back end is a real device: a
 * bounded arena of its own, a thread per stream, real copies between host memory and the arena,
 * optionally paced to a stated rate to stand in for a PCIe link.
 *
 * A computation is a function over a kernel table (exec/kernels/kernels.h), called on the stream's thread. The
 * kernels of the host are done when they return; those of a GPU enqueue themselves, and the function
 * is called somewhat before its turn, when all that it waits for has been handed to the GPUs.
 */
#ifndef SPILLWAY_EXEC_DEVICE_H
#define SPILLWAY_EXEC_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "planner/plan.h"

struct device;
struct device_stream;
struct kernels;

/* When one piece of work ran; filled in by the time device_synchronize() returns. */
struct device_timing {
    double start_s, end_s; /* clock_s() */
    bool left_out;         /* a guarded copy whose guard was shut; both times are its turn then */
};

struct device_options {
    uint32_t index;
    uint64_t arena_bytes;
    uint32_t threads;           /* of the compute stream */
    bool compute_only;          /* no streams for copies and calls: the host's processor */
    double h2d_bytes_per_s;     /* paced; 0: as fast as it goes */
    double d2h_bytes_per_s;
    bool p2p;                   /* there is a stream for copies from other devices ... */
    double p2p_bytes_per_s;     /* ... paced likewise */
    bool poison;                /* tests: fill released ranges with NaN */
    uint64_t delay_seed;        /* tests: not 0: random pauses before work on every stream */
    bool tf32;                  /* CUDA: products of operands rounded to 10 bits of mantissa */
    bool pageable;              /* CUDA: the host's side of copies is not pinned: slower, but right */
};

typedef void (*device_compute_function)(const struct kernels *kernels, void *argument);
typedef void (*device_host_function)(void *argument);

/* The arena is mapped with huge pages where there are any and touched before the call returns.
 * Errors: STATUS_NO_MEMORY, STATUS_DEVICE. The caller closes it with device_close(). */
MUST_CHECK enum status device_open_host(const struct device_options *options, struct device **out,
                                        struct error *err);

/* GPU number options->index, as the driver counts them; `threads` is not used. Copies are between the
 * arena and pinned host memory unless options.pageable. Errors: STATUS_DEVICE; STATUS_NO_MEMORY with
 * what is needed and what there is. Only in a program that was built with CUDA. */
MUST_CHECK enum status device_open_cuda(const struct device_options *options, struct device **out,
                                        struct error *err);

/* Ends the streams: what runs is finished, what is queued is dropped. Where work of one device waits
 * for events of another, stop all of them before the first is closed. NULL is fine. */
void device_stop(struct device *device);

/* device_stop() and give everything back. NULL is fine. */
void device_close(struct device *device);

/* STATUS_OK, or STATUS_DEVICE with what went wrong once a device is lost. Copies and computations
 * enqueued on it since then are passed over, so whoever waits for it does not hang and must ask here;
 * host functions are called nevertheless, and must ask as well. A host device is never lost, nor is
 * the host stream of device 0. From any thread. */
MUST_CHECK enum status device_failed(struct device *device, struct error *err);

/* The device's own kernel table; what computed, for messages. Borrowed. */
const struct kernels *device_kernels(const struct device *device);

/* Memory that was taken when the device was opened. */
struct device_memory {
    uint64_t arena_bytes;
    uint64_t workspace_bytes; /* CUDA: of matrix products and partial sums, beside the arena */
    uint64_t driver_bytes;    /* CUDA: by how much more free memory became less meanwhile: kernels,
                                 streams, events, and whatever others took */
};
struct device_memory device_memory(const struct device *device);

/* Address of the arena's first byte, for arguments of copies and kernels. */
void *device_arena(const struct device *device);

/* Streams of a device by enum plan_stream_kind; STREAM_P2P where options.p2p. STREAM_HOST runs host
 * functions and batches and belongs to device 0 alone (NULL elsewhere). */
struct device_stream *device_stream(struct device *device, uint32_t kind);

/* --- enqueueing: cheap, from one thread; blocks only while the stream's queue is full ---------- */

/* Entries of a stream's queue. Each call below takes one, device_wait() none when the event has
 * been reached; device_record() takes none. */
enum { DEVICE_QUEUE_MAX = 4096 };

/* An event is a counter per stream: record returns the number that the stream will have reached
 * when everything enqueued so far has ended. */
uint64_t device_record(const struct device_stream *stream);

/* How far the stream is: it has passed every event up to this one. Never blocks. */
uint64_t device_passed(const struct device_stream *stream);

void device_wait(struct device_stream *stream, struct device_stream *other, uint64_t event);

/* Copy between host and arena; a computation (not on the host stream, which has no kernels); a call
 * of a host function. `timing` may be NULL and must stay valid until the work has run, like
 * `argument`, which is copied instead when argument_bytes > 0 (at most DEVICE_ARGUMENT_MAX). */
enum { DEVICE_ARGUMENT_MAX = 256 };
void device_copy(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                 struct device_timing *timing);
/* A copy that is left out when, at its turn, value >= *limit: for runs that end early. A GPU is handed
 * copies a little before their turn, and that is then when the guard is looked at (device_cuda.c). */
struct device_guard {
    const atomic_uint_fast64_t *limit;
    uint64_t value;
};
void device_copy_guarded(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                         struct device_guard guard, struct device_timing *timing);
/* A copy from the arena of another device of the same back end, on this device's STREAM_P2P; after
 * device_link() (device_p2p.h). Both devices' arenas must outlive it. */
void device_copy_p2p(struct device_stream *stream, void *to, struct device *from_device,
                     const void *from, uint64_t bytes, struct device_guard guard,
                     struct device_timing *timing);
void device_compute(struct device_stream *stream, device_compute_function function,
                    const void *argument, size_t argument_bytes, struct device_timing *timing);
void device_call(struct device_stream *stream, device_host_function function, const void *argument,
                 size_t argument_bytes, struct device_timing *timing);
/* Fill with NaN in stream order; does nothing unless options.poison. */
void device_poison(struct device_stream *stream, void *at, uint64_t bytes);

/* Has the stream passed this event? Never blocks. */
static inline bool device_reached(const struct device_stream *stream, uint64_t event)
{
    return device_passed(stream) >= event;
}

/* Block until the stream has passed the event, or until `timeout_s` went by (false). */
bool device_synchronize(struct device_stream *stream, uint64_t event, double timeout_s);

#endif
