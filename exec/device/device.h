/*
 * Devices: an arena of memory, ordered streams, copies, computations, events.
 *
 * Work is enqueued without waiting; a stream runs it in order. Events of one stream can be awaited by another. The
 * host back end is a real device: a bounded arena, a thread per stream, and real copies, optionally paced to represent
 * a PCIe link.
 *
 * A computation is a function over a kernel table (exec/kernels/kernels.h), called on the stream's thread. The host's
 * kernels are complete when they return. A GPU's kernels enqueue themselves: the function is called slightly before
 * its turn, when all work that it waits for was handed to the GPUs.
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

/* Valid after device_synchronize(). */
struct device_timing {
    double start_s, end_s; /* clock_s() */
    double waited_s;       /* of collectives: seconds before start_s in which the stream waited for other members */
    bool left_out;         /* skipped by its guard; both times are its turn */
};

struct device_options {
    uint32_t index;
    uint64_t arena_bytes;
    uint32_t threads;           /* of the compute stream */
    bool stands_in;             /* for a device of another process: one stream for all but copies from other devices */
    bool compute_only;          /* no streams for copies and calls: the host's processor */
    double h2d_bytes_per_s;     /* paced rate; 0: not paced */
    double d2h_bytes_per_s;
    bool p2p;                   /* has a stream for copies from other devices ... */
    double p2p_bytes_per_s;     /* ... paced likewise */
    bool gangs;                 /* CUDA: has streams for collectives; a host device always has */
    bool poison;                /* tests: fill released ranges with NaN */
    uint64_t delay_seed;        /* tests: not 0: random pauses before work */
    double dilation;            /* computations take this many times their processor time; 0: as long as they take */
    bool tf32;                  /* CUDA: products round their operands to 10 bits of mantissa */
    bool pageable;              /* CUDA: unpinned host memory: slower, but correct */
};

typedef void (*device_compute_function)(const struct kernels *kernels, void *argument);
typedef void (*device_host_function)(void *argument);

/* Opens a host device. The arena is mapped with huge pages if available and touched. Errors: STATUS_DEVICE. The
 * caller closes it with device_close(). */
MUST_CHECK enum status device_open_host(const struct device_options *options, struct device **out,
                                        struct error *err);

/* Opens GPU number options->index in the driver's order; `threads` is ignored. Host memory is pinned unless
 * options.pageable is set. Only in a program built with CUDA.
 * Errors: STATUS_DEVICE; STATUS_NO_MEMORY with the bytes needed and available. */
MUST_CHECK enum status device_open_cuda(const struct device_options *options, struct device **out,
                                        struct error *err);

/* Finishes running work and drops queued work. If work of one device waits for events of another, stop all devices
 * before closing the first. NULL does nothing. */
void device_stop(struct device *device);

/* Frees the device. NULL does nothing. */
void device_close(struct device *device);

/* Returns STATUS_OK, or STATUS_DEVICE with the cause when the device is lost. Work enqueued on a lost device is
 * skipped, except host functions; waiting threads must call this function. A host device is never lost, nor is the
 * host stream of device 0. From any thread. */
MUST_CHECK enum status device_failed(struct device *device, struct error *err);

const struct kernels *device_kernels(const struct device *device);

/* Memory allocated when the device was opened. */
struct device_memory {
    uint64_t arena_bytes;
    uint64_t workspace_bytes; /* CUDA: products and partial sums, outside the arena */
    uint64_t driver_bytes;    /* CUDA: further decrease of free memory: kernels, streams, other programs */
};
struct device_memory device_memory(const struct device *device);

/* Time of paced copies, dilated computations and device_hold(), over all streams, and by how much it was exceeded.
 * After device_synchronize() of all streams. */
struct device_pacing {
    double asked_s, late_s;
};
struct device_pacing device_pacing(const struct device *device);

/* Returns the share in [0, 1] by which all this work was late. */
static inline double device_pacing_late(const struct device_pacing *pacing)
{
    if (!(pacing->late_s > 0)) return 0;
    return pacing->late_s < pacing->asked_s ? pacing->late_s / pacing->asked_s : 1;
}

void *device_arena(const struct device *device);

/* Returns a stream by enum plan_stream_kind; STREAM_P2P only with options.p2p. STREAM_HOST runs host functions and
 * batches, only on device 0 (else NULL). */
struct device_stream *device_stream(struct device *device, uint32_t kind);

/* --- enqueueing: cheap, from one thread; blocks only while the stream's queue is full ---------- */

/* Each call below takes one entry of a stream's queue, except device_record() and a device_wait() for a reached
 * event. */
enum { DEVICE_QUEUE_MAX = 4096 };

/* An event is a number on a stream's counter. Returns the number that the stream reaches when all work enqueued so
 * far has ended. */
uint64_t device_record(const struct device_stream *stream);

/* Returns the last event that the stream has passed. Never blocks. */
uint64_t device_passed(const struct device_stream *stream);

void device_wait(struct device_stream *stream, struct device_stream *other, uint64_t event);

/* Enqueue work: a copy between host and arena; a computation (not on the host stream, which has no kernels); a call
 * of a host function. `timing` may be NULL and must stay valid until the work has run. The same holds for `argument`,
 * unless argument_bytes > 0 (at most DEVICE_ARGUMENT_MAX): then it is copied. */
enum { DEVICE_ARGUMENT_MAX = 384 };
void device_copy(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                 struct device_timing *timing);
/* A guard skips a copy if, at its turn, value >= *limit. A GPU checks it slightly earlier (device_cuda.c). */
struct device_guard {
    const atomic_uint_fast64_t *limit;
    uint64_t value;
};
void device_copy_guarded(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                         struct device_guard guard, struct device_timing *timing);
/* Copies from another device's arena (same back end), on this device's STREAM_P2P, after device_link()
 * (device_p2p.h). Both devices' arenas must outlive it. */
void device_copy_p2p(struct device_stream *stream, void *to, struct device *from_device,
                     const void *from, uint64_t bytes, struct device_guard guard,
                     struct device_timing *timing);
void device_compute(struct device_stream *stream, device_compute_function function,
                    const void *argument, size_t argument_bytes, struct device_timing *timing);
void device_call(struct device_stream *stream, device_host_function function, const void *argument,
                 size_t argument_bytes, struct device_timing *timing);
/* As device_call(), but a GPU's function is called when its turn is handed over, and enqueues its work itself
 * (device_groups.h). */
void device_call_ahead(struct device_stream *stream, device_host_function function, const void *argument,
                       size_t argument_bytes, struct device_timing *timing);
/* Fills memory with NaN if options.poison is set. */
void device_poison(struct device_stream *stream, void *at, uint64_t bytes);

static inline bool device_reached(const struct device_stream *stream, uint64_t event)
{
    return device_passed(stream) >= event;
}

/* From a call on the stream's own thread: returns duration_s after begun_s (clock_s()), or when the stream is
 * stopped. */
void device_hold(struct device_stream *stream, double begun_s, double duration_s);

/* From a computation on the stream's own thread: these seconds of its processor time, which exchange data with other
 * devices, are not dilated. */
void device_leave_out(double processor_s);

/* From a call on the stream's own thread: copies between host memory and the arena, and waits for it. */
void device_move(struct device_stream *stream, void *to, const void *from, uint64_t bytes);

/* Returns false after `timeout_s` seconds. */
bool device_synchronize(struct device_stream *stream, uint64_t event, double timeout_s);

#endif
