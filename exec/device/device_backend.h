/*
 * The functions and state of a back end of exec/device/device.h; included only by exec/device and exec/cuda.
 *
 * The queues, events and waits of exec/device/device.c are the same on every back end. A back end says how
 * one command of a stream is carried out, and whether its end comes with the function's return (the
 * host) or later (a GPU, to which commands are handed a few ahead of their turn).
 */
#ifndef SPILLWAY_EXEC_DEVICE_BACKEND_H
#define SPILLWAY_EXEC_DEVICE_BACKEND_H

#include <pthread.h>

#include "exec/device/device.h"
#include "exec/device/pace.h"

enum command_kind { COMMAND_WAIT, COMMAND_COPY, COMMAND_COMPUTE, COMMAND_CALL, COMMAND_POISON };

struct command {
    uint32_t kind; /* enum command_kind */
    bool argument_inside;
    struct device_timing *timing; /* may be NULL */
    union {
        struct {
            struct device_stream *on;
            uint64_t event;
        } wait;
        struct {
            void *to;
            const void *from;
            uint64_t bytes;
            struct device *from_device; /* P2P; else NULL */
            struct device_guard guard; /* without a limit: none */
        } copy;
        struct {
            void *at;
            uint64_t bytes;
        } poison;
        device_compute_function compute;
        device_host_function call;
    } what;
    const void *argument;
    _Alignas(16) unsigned char inside[DEVICE_ARGUMENT_MAX];
};

/* A thread that sleeps until a stream's counter reaches a value. */
struct waiter {
    pthread_cond_t wake;
    uint64_t event;
    bool for_taken; /* it waits for `taken`, not for `ended` */
    bool waiting;   /* on some stream's list */
    struct waiter *next;
};

/* What a kind of stream does; constant tables of the back ends. */
struct stream_ops {
    /* On the stream's thread, before its first command. */
    void (*attach)(struct device_stream *stream);
    /* Carry out command `number`, or hand it to the device. A COMMAND_WAIT comes only to streams with
     * ahead_max, when its event has been reached, or handed over too (see waits_on_device). */
    void (*carry_out)(struct device_stream *stream, struct command *command, uint64_t number,
                      bool back_to_back);
    /* 0: a command has ended when carry_out() returns. Otherwise so many commands may have been
     * handed over and not have ended, and the back end says queue_ended() for each, in order. */
    uint32_t ahead_max;
    /* A wait for another stream with ahead_max need not wait until the event has been reached: it is
     * carried out as soon as the other stream has handed over what it waits for. */
    bool waits_on_device;
    /* Goes on when its device is lost, as a stream of the host's does. */
    bool survives;
};

struct device_stream {
    struct device *device;
    const struct stream_ops *ops;
    void *own;      /* the back end's */
    uint32_t kind;  /* enum plan_stream_kind */
    pthread_t thread;
    bool started;
    atomic_bool quit;
    uint64_t enqueued;
    atomic_uint_fast64_t taken; /* carried out or handed over */
    atomic_uint_fast64_t ended; /* <= taken <= enqueued */
    struct waiter self;     /* for events of other streams, and for work */
    struct waiter *waiters; /* those who wait for events of this one */
    struct command *ring;
    struct pace pace;
    uint64_t delay_key;     /* 0: no delays */
};

struct device_ops {
    /* The stream's thread has ended; end what belongs to it. May be NULL. */
    void (*stop_stream)(struct device_stream *stream);
    /* Direct copies to `to` from `from` are to come. May be NULL. */
    enum status (*link)(struct device *to, struct device *from, struct error *err);
    /* They are to go through host memory from now on; their stream is idle. May be NULL: there is no
     * other way. Errors: STATUS_NO_MEMORY, STATUS_DEVICE. */
    enum status (*stage)(struct device *to, struct device *from, struct error *err);
    /* Streams have ended. Gives back everything but the rings and the device itself. */
    void (*close)(struct device *device);
};

struct device {
    const struct device_ops *ops;
    void *own; /* the back end's */
    struct device_options options;
    void *arena;
    struct device_memory memory;
    struct kernels *kernels;
    struct device_stream streams[STREAM_KIND_COUNT];
    atomic_bool failed;
    struct error failure;
};

/* --- of device.c, for the back ends ------------------------------------------------------------ */

/* Make the queue and start the thread of a stream, whose `ops` and `own` are given. Errors:
 * STATUS_NO_MEMORY, STATUS_DEVICE. */
MUST_CHECK enum status queue_start(struct device *device, uint32_t kind,
                                   const struct stream_ops *ops, void *own, struct error *err);

/* Streams with ahead_max: sleep until `taken` is larger than `number`; false when the stream's thread
 * has ended without. `self` is the calling thread's, see waiter_init(). */
bool queue_await_taken(struct device_stream *stream, struct waiter *self, uint64_t number);

/* Streams with ahead_max: everything up to `ended` has ended. */
void queue_ended(struct device_stream *stream, uint64_t ended);

/* False when there is no memory for a condition variable, which the caller destroys. */
bool waiter_init(struct waiter *waiter);

/* The device is lost: the first message is kept for device_failed(). From any thread. */
void device_fail(struct device *device, const char *text);

/* Seconds to pause in front of command `number`; 0 without delays. */
double queue_delay_s(const struct device_stream *stream, uint64_t number);

/* Is this a copy that is to be left out? */
bool command_is_shut(const struct command *command);

static inline void *command_argument(struct command *command)
{
    return command->argument_inside ? command->inside : (void *)command->argument;
}

/* The stream of host functions and batches: runs what it is given on its own thread. */
extern const struct stream_ops host_call_stream;

#endif
