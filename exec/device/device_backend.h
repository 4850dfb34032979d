/*
 * A back end of exec/device/device.h; included only by exec/device, exec/cuda and exec/nccl.
 *
 * A back end defines how one command is carried out, and whether it ends when the function returns (the host) or later
 * (a GPU).
 */
#ifndef SPILLWAY_EXEC_DEVICE_DEVICE_BACKEND_H
#define SPILLWAY_EXEC_DEVICE_DEVICE_BACKEND_H

#include <pthread.h>

#include "exec/device/device.h"
#include "exec/device/pace.h"

enum command_kind { COMMAND_WAIT, COMMAND_COPY, COMMAND_COMPUTE, COMMAND_CALL, COMMAND_AHEAD, COMMAND_POISON };

struct device_command {
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
            struct device *from_device; /* P2P only */
            struct device_guard guard; /* limit NULL: none */
        } copy;
        struct {
            void *at;
            uint64_t bytes;
        } poison;
        device_compute_function compute;
        device_host_function call; /* COMMAND_CALL, COMMAND_AHEAD */
    } what;
    const void *argument;
    _Alignas(16) unsigned char inside[DEVICE_ARGUMENT_MAX];
};

/* A thread that sleeps until a counter reaches a value. */
struct device_waiter {
    pthread_cond_t wake;
    uint64_t event;
    bool for_taken; /* waits for `taken` instead of `ended` */
    bool waiting;   /* is on a stream's list */
    struct device_waiter *next;
};

struct device_stream_ops {
    /* on the stream's thread, before its first command */
    void (*attach)(struct device_stream *stream);
    /* on the stream's thread, after 20 ms without a command or while it waits for an event. May be NULL. */
    void (*rest)(struct device_stream *stream);
    /* Carries out a command or hands it to the device. COMMAND_WAIT comes only to streams with ahead_max > 0, when
     * its event was reached, or with waits_on_device also when it was handed over. */
    void (*carry_out)(struct device_stream *stream, struct device_command *command, uint64_t number,
                      bool back_to_back);
    /* 0: commands end when carry_out() returns. Otherwise the largest number handed over but not ended; the back
     * end calls device_queue_ended() for each, in order. */
    uint32_t ahead_max;
    /* A wait for another stream with ahead_max > 0 is carried out as soon as that stream has handed over the event. */
    bool waits_on_device;
    /* Continues when its device is lost. */
    bool survives;
};

struct device_stream {
    struct device *device;
    const struct device_stream_ops *ops;
    void *own;      /* the back end's */
    uint32_t kind;  /* enum plan_stream_kind */
    pthread_t thread;
    bool started;
    bool rests;     /* ops->rest() was called; the back end makes it false when it works again */
    atomic_bool quit;
    uint64_t enqueued;
    atomic_uint_fast64_t taken;
    atomic_uint_fast64_t ended; /* <= taken <= enqueued */
    struct device_waiter self;     /* waits for events and for work */
    struct device_waiter *waiters; /* for events of this stream */
    struct device_command *ring;
    struct device_pace pace;
    uint64_t delay_key;     /* 0: no delays */
};

struct device_ops {
    /* As device_move(); NULL: memcpy(). */
    void (*move)(struct device_stream *stream, void *to, const void *from, uint64_t bytes);
    /* After its thread has ended. May be NULL. */
    void (*stop_stream)(struct device_stream *stream);
    /* For direct copies. May be NULL. */
    enum status (*link)(struct device *to, struct device *from, struct error *err);
    /* Makes these copies go through host memory; their stream is idle. NULL: not supported. Errors: STATUS_DEVICE. */
    enum status (*stage)(struct device *to, struct device *from, struct error *err);
    /* After the streams have ended: frees all except the rings and the device itself. */
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

/* Makes a stream's queue and thread. Errors: STATUS_DEVICE. */
MUST_CHECK enum status device_queue_start(struct device *device, uint32_t kind,
                                          const struct device_stream_ops *ops, void *own, struct error *err);

/* Sleeps, for streams with ahead_max > 0, until `taken` is larger than `number`. False: the stream's thread has
 * ended. `self` belongs to the calling thread. */
bool device_queue_await_taken(struct device_stream *stream, struct device_waiter *self, uint64_t number);

/* Reports that all commands up to `ended` have ended; for streams with ahead_max > 0. */
void device_queue_ended(struct device_stream *stream, uint64_t ended);

/* Keeps the first message for device_failed(). From any thread. */
void device_fail(struct device *device, const char *text);

/* Returns seconds to pause; 0 without delays. */
double device_queue_delay_s(const struct device_stream *stream, uint64_t number);

bool device_command_is_shut(const struct device_command *command);

static inline void *device_command_argument(struct device_command *command)
{
    return command->argument_inside ? command->inside : (void *)command->argument;
}

/* The stream of host functions and batches. */
extern const struct device_stream_ops host_call_stream;

#endif
