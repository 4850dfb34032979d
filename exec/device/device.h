/*
 * Devices: an arena of memory, ordered streams, copies, computations, events.
 *
 * Code above this interface (run.c: spilling, double buffering, many jobs) is the same for every back end. Work is
 * enqueued without waiting. A stream runs its work in order. An event recorded on one stream can be waited for by
 * another. The host back end is a real device: it has a bounded arena, a thread per stream, and real copies between
 * host memory and the arena, optionally paced to a given rate to represent a PCIe link.
 *
 * A computation is a function over a kernel table (exec/kernels/kernels.h), called on the stream's thread. The host's
 * kernels are complete when they return. A GPU's kernels enqueue themselves, and the function is called slightly
 * before its turn, when all work that it waits for has been handed to the GPUs.
 */
#ifndef SPILLWAY_EXEC_DEVICE_DEVICE_H
#define SPILLWAY_EXEC_DEVICE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "planner/plan.h"

struct device;
struct device_stream;
struct kernels;

/* The time at which a piece of work ran; valid after device_synchronize(). */
struct device_timing {
    double start_s, end_s; /* clock_s() */
    bool left_out;         /* a guarded copy that was skipped; both times are then its turn */
};

struct device_options {
    uint32_t index;
    uint64_t arena_bytes;
    uint32_t threads;           /* threads of the compute stream */
    bool compute_only;          /* no streams for copies and calls: used for the host's processor */
    double h2d_bytes_per_s;     /* paced rate; 0: not paced */
    double d2h_bytes_per_s;
    bool p2p;                   /* has a stream for copies from other devices ... */
    double p2p_bytes_per_s;     /* ... paced likewise */
    bool poison;                /* tests: fill released ranges with NaN */
    uint64_t delay_seed;        /* tests: not 0: random pauses before work on every stream */
    bool tf32;                  /* CUDA: products round their operands to 10 bits of mantissa */
    bool pageable;              /* CUDA: host memory of copies is not pinned: slower, but correct */
};

typedef void (*device_compute_function)(const struct kernels *kernels, void *argument);
typedef void (*device_host_function)(void *argument);

/* Opens a host device. The arena is mapped with huge pages if available and touched before the call returns.
 * Errors: STATUS_NO_MEMORY, STATUS_DEVICE. The caller closes it with device_close(). */
MUST_CHECK enum status device_open_host(const struct device_options *options, struct device **out,
                                        struct error *err);

/* Opens GPU number options->index in the driver's order; `threads` is ignored. Copies are between the arena and
 * pinned host memory unless options.pageable is set. Only in a program built with CUDA.
 * Errors: STATUS_DEVICE; STATUS_NO_MEMORY with the bytes needed and available. */
MUST_CHECK enum status device_open_cuda(const struct device_options *options, struct device **out,
                                        struct error *err);

/* Stops the streams: finishes running work and drops queued work. If work of one device waits for events of another,
 * stop all devices before closing the first. NULL does nothing. */
void device_stop(struct device *device);

/* Stops the device and frees all its resources. NULL does nothing. */
void device_close(struct device *device);

/* Returns STATUS_OK, or STATUS_DEVICE with the cause when the device is lost. Copies and computations enqueued on a
 * lost device are skipped, so that waiting threads do not hang; they must call this function. Host functions are
 * still called and must check too. A host device is never lost, nor is the host stream of device 0. From any thread. */
MUST_CHECK enum status device_failed(struct device *device, struct error *err);

/* Returns the device's kernel table. Borrowed. */
const struct kernels *device_kernels(const struct device *device);

/* Memory allocated when the device was opened. */
struct device_memory {
    uint64_t arena_bytes;
    uint64_t workspace_bytes; /* CUDA: for matrix products and partial sums, in addition to the arena */
    uint64_t driver_bytes;    /* CUDA: further decrease of free memory: kernels, streams, events, and use by other
                                 programs */
};
struct device_memory device_memory(const struct device *device);

/* Returns the address of the arena's first byte, for arguments of copies and kernels. */
void *device_arena(const struct device *device);

/* Returns a stream of a device by enum plan_stream_kind; STREAM_P2P only with options.p2p. STREAM_HOST runs host
 * functions and batches and exists only on device 0 (NULL on others). */
struct device_stream *device_stream(struct device *device, uint32_t kind);

/* --- enqueueing: cheap, from one thread; blocks only while the stream's queue is full ---------- */

/* Entries of a stream's queue. Each call below takes one entry; device_wait() takes none for an event that was
 * reached, and device_record() takes none. */
enum { DEVICE_QUEUE_MAX = 4096 };

/* An event is a number on a stream's counter. Returns the number that the stream reaches when all work enqueued so
 * far has ended. */
uint64_t device_record(const struct device_stream *stream);

/* Returns the stream's progress: it has passed every event up to this number. Never blocks. */
uint64_t device_passed(const struct device_stream *stream);

void device_wait(struct device_stream *stream, struct device_stream *other, uint64_t event);

/* Enqueue work: a copy between host and arena; a computation (not on the host stream, which has no kernels); a call
 * of a host function. `timing` may be NULL and must stay valid until the work has run. The same holds for `argument`,
 * unless argument_bytes > 0 (at most DEVICE_ARGUMENT_MAX): then it is copied. */
enum { DEVICE_ARGUMENT_MAX = 256 };
void device_copy(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                 struct device_timing *timing);
/* A guard skips a copy if, at its turn, value >= *limit, for runs that end early. A GPU gets copies slightly before
 * their turn, and checks the guard then (device_cuda.c). */
struct device_guard {
    const atomic_uint_fast64_t *limit;
    uint64_t value;
};
void device_copy_guarded(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                         struct device_guard guard, struct device_timing *timing);
/* Copies from the arena of another device of the same back end, on this device's STREAM_P2P, after device_link()
 * (device_p2p.h). Both devices' arenas must outlive it. */
void device_copy_p2p(struct device_stream *stream, void *to, struct device *from_device,
                     const void *from, uint64_t bytes, struct device_guard guard,
                     struct device_timing *timing);
void device_compute(struct device_stream *stream, device_compute_function function,
                    const void *argument, size_t argument_bytes, struct device_timing *timing);
void device_call(struct device_stream *stream, device_host_function function, const void *argument,
                 size_t argument_bytes, struct device_timing *timing);
/* Fills memory with NaN in stream order; does nothing unless options.poison is set. */
void device_poison(struct device_stream *stream, void *at, uint64_t bytes);

/* Returns true when the stream has passed this event. Never blocks. */
static inline bool device_reached(const struct device_stream *stream, uint64_t event)
{
    return device_passed(stream) >= event;
}

/* Blocks until the stream has passed the event. Returns false after `timeout_s` seconds. */
bool device_synchronize(struct device_stream *stream, uint64_t event, double timeout_s);

#endif
