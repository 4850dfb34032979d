/*
 * The host as a device: an arena, a thread per stream, memcpy as the link, matrix products on cores.
 *
 * A stream is a ring of commands between the one thread that enqueues and the one that works. Two
 * counters run upward for ever: how many commands were enqueued, how many have ended. An event is a
 * value of the second counter, so recording one costs nothing, and an event is never freed.
 *
 *     ended          enqueued
 *       |                |
 *   ... [copy][wait][poison] ...        ring of DEVICE_QUEUE_MAX, index = counter % size
 *
 * Whoever must wait - a stream for another's event, a stream for work, the enqueueing thread for
 * room or for an event - sleeps on a condition variable of its own and hangs its name on the list of
 * the stream it waits for; that stream wakes exactly those whose event it has reached. Nobody spins:
 * with few cores a spinning thread takes the time of a computing one.
 *
 * One lock guards all queues and lists of the process. A command takes it twice, for well under a
 * microsecond, and commands take tens of microseconds at least; with a lock per stream, a stream
 * that waits for another and is closed meanwhile would need two of them, in some order.
 * device_passed() reads the counter without the lock.
 *
 * For tests, `delay_seed` puts a pause of up to 2 ms in front of work, different for every stream
 * and command but the same for a seed: a missing wait then shows as wrong numbers. `poison` writes
 * NaN over released memory: so does a use after release.
 */
#include "exec/device.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "base/random.h"
#include "exec/host_memory.h"
#include "exec/kernels.h"
#include "exec/pace.h"

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

/* A thread that sleeps until a stream reaches an event. */
struct waiter {
    pthread_cond_t wake;
    uint64_t event;
    bool waiting; /* on some stream's list */
    struct waiter *next;
};

struct device_stream {
    struct device *device;
    uint32_t kind;  /* enum plan_stream_kind */
    pthread_t thread;
    bool started;
    atomic_bool quit;
    uint64_t enqueued;
    atomic_uint_fast64_t ended;
    struct waiter self;     /* for events of other streams, and for work */
    struct waiter *waiters; /* those who wait for events of this one */
    struct command *ring;
    struct pace pace;
    uint64_t delay_key;     /* 0: no delays */
};

struct device {
    struct device_options options;
    void *arena;
    struct kernels *kernels;
    struct device_stream streams[STREAM_KIND_COUNT];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const double DELAY_MAX_S = 2e-3;

/* --- waiting, all under the lock ------------------------------------------------------------- */

static bool waiter_init(struct waiter *waiter)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return false;
    const bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(&waiter->wake, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return made;
}

static void waiter_hang(struct waiter *waiter, struct device_stream *on, uint64_t event)
{
    waiter->event = event;
    waiter->waiting = true;
    waiter->next = on->waiters;
    on->waiters = waiter;
}

static void waiter_take_off(struct waiter *waiter, struct device_stream *on)
{
    struct waiter **link = &on->waiters;
    while (*link != waiter) link = &(*link)->next;
    *link = waiter->next;
    waiter->waiting = false;
}

/* Wake those whose event is at most `reached`. */
static void wake_waiters(struct device_stream *stream, uint64_t reached)
{
    struct waiter **link = &stream->waiters;
    while (*link) {
        struct waiter *waiter = *link;
        if (waiter->event > reached) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        waiter->waiting = false;
        pthread_cond_signal(&waiter->wake);
    }
}

/* --- the stream's thread --------------------------------------------------------------------- */

/* A copy that is to be left out. */
static bool is_shut(const struct command *command)
{
    const struct device_guard *const guard = &command->what.copy.guard;
    return command->kind == COMMAND_COPY && guard->limit &&
           guard->value >= atomic_load(guard->limit);
}

static void pause_at_random(const struct device_stream *stream, uint64_t number)
{
    const double pause_s = DELAY_MAX_S * random_unit(stream->delay_key, number);
    const struct timespec pause = {.tv_nsec = (long)(pause_s * 1e9)};
    nanosleep(&pause, NULL);
}

static void carry_out(struct device_stream *stream, struct command *command, bool back_to_back)
{
    void *const argument = command->argument_inside ? command->inside : (void *)command->argument;
    bool left_out = false;
    if (command->timing) command->timing->start_s = clock_s();
    switch (command->kind) {
    case COMMAND_COPY:
        left_out = is_shut(command);
        if (!left_out)
            pace_copy(&stream->pace, command->what.copy.to, command->what.copy.from,
                      command->what.copy.bytes, back_to_back, &stream->quit);
        break;
    case COMMAND_COMPUTE:
        command->what.compute(stream->device->kernels, argument);
        break;
    case COMMAND_CALL:
        command->what.call(argument);
        break;
    case COMMAND_POISON: /* all bits set is a NaN in every format */
        memset(command->what.poison.at, 0xff, command->what.poison.bytes);
        break;
    }
    if (command->timing) {
        command->timing->end_s = left_out ? command->timing->start_s : clock_s();
        command->timing->left_out = left_out;
    }
}

static void *stream_main(void *pointer)
{
    struct device_stream *const stream = pointer;
    if (stream->kind == STREAM_COMPUTE) kernels_host_attach(stream->device->kernels);
    pace_attach(&stream->pace);
    bool back_to_back = false;

    pthread_mutex_lock(&lock);
    for (;;) {
        const uint64_t number = atomic_load(&stream->ended);
        while (!atomic_load(&stream->quit) && number == stream->enqueued) {
            back_to_back = false;
            pthread_cond_wait(&stream->self.wake, &lock);
        }
        struct command *const command = &stream->ring[number % DEVICE_QUEUE_MAX];
        if (!atomic_load(&stream->quit) && command->kind == COMMAND_WAIT) {
            struct device_stream *const on = command->what.wait.on;
            if (!device_reached(on, command->what.wait.event)) {
                back_to_back = false;
                waiter_hang(&stream->self, on, command->what.wait.event);
                while (stream->self.waiting && !atomic_load(&stream->quit))
                    pthread_cond_wait(&stream->self.wake, &lock);
                if (stream->self.waiting) waiter_take_off(&stream->self, on);
            }
        }
        if (atomic_load(&stream->quit)) break;
        if (command->kind != COMMAND_WAIT) {
            pthread_mutex_unlock(&lock);
            if (stream->delay_key && !is_shut(command)) pause_at_random(stream, number);
            carry_out(stream, command, back_to_back);
            pthread_mutex_lock(&lock);
            back_to_back = true;
        }
        atomic_store(&stream->ended, number + 1);
        wake_waiters(stream, number + 1);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* --- opening and closing --------------------------------------------------------------------- */

static enum status stream_start(struct device_stream *stream, struct device *device, uint32_t kind,
                                struct error *err)
{
    const struct device_options *const options = &device->options;
    stream->device = device;
    stream->kind = kind;
    if (kind == STREAM_H2D) stream->pace.bytes_per_s = options->h2d_bytes_per_s;
    if (kind == STREAM_D2H) stream->pace.bytes_per_s = options->d2h_bytes_per_s;
    if (options->delay_seed)
        stream->delay_key = random_u64(options->delay_seed, options->index * 16u + kind) | 1;
    stream->ring = alloc_zeroed(DEVICE_QUEUE_MAX, sizeof *stream->ring);
    if (!stream->ring)
        return error_memory(err, "the queue of a stream", DEVICE_QUEUE_MAX * sizeof *stream->ring);
    if (!waiter_init(&stream->self))
        return error_set(err, STATUS_DEVICE, "cannot make a condition variable");

    /* Signals are the main thread's: a handler there wakes it from its waiting. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&stream->thread, NULL, stream_main, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        pthread_cond_destroy(&stream->self.wake);
        return error_set(err, STATUS_DEVICE, "cannot start a thread for the %s stream of device %u: %s",
                         plan_stream_names[kind], options->index, strerror(failed));
    }
    stream->started = true;
    char name[16];
    snprintf(name, sizeof name, "gpu%u %s", options->index % 1000, plan_stream_names[kind]);
    pthread_setname_np(stream->thread, name);
    return STATUS_OK;
}

enum status device_open_host(const struct device_options *options, struct device **out,
                             struct error *err)
{
    struct device *device = alloc_zeroed(1, sizeof *device);
    if (!device) return error_memory(err, "a device", sizeof *device);
    device->options = *options;
    enum status status = host_memory_map("the arena of a device", options->arena_bytes,
                                         &device->arena, err);
    if (status != STATUS_OK) goto out;
    if (options->poison && device->arena) memset(device->arena, 0xff, options->arena_bytes);
    status = kernels_host_create(options->threads, &device->kernels, err);
    if (status != STATUS_OK) goto out;
    for (uint32_t kind = 0; kind < STREAM_KIND_COUNT; kind++) {
        if (kind == STREAM_CPU || (kind == STREAM_HOST && options->index != 0)) continue;
        if (kind != STREAM_COMPUTE && options->compute_only) continue;
        status = stream_start(&device->streams[kind], device, kind, err);
        if (status != STATUS_OK) goto out;
    }
    *out = device;
out:
    if (status != STATUS_OK) device_close(device);
    return status;
}

void device_stop(struct device *device)
{
    if (!device) return;
    pthread_mutex_lock(&lock);
    for (uint32_t kind = 0; kind < STREAM_KIND_COUNT; kind++) {
        struct device_stream *const stream = &device->streams[kind];
        if (!stream->started) continue;
        atomic_store(&stream->quit, true);
        pthread_cond_signal(&stream->self.wake);
    }
    pthread_mutex_unlock(&lock);
    for (uint32_t kind = 0; kind < STREAM_KIND_COUNT; kind++) {
        struct device_stream *const stream = &device->streams[kind];
        if (!stream->started) continue;
        pthread_join(stream->thread, NULL);
        stream->started = false;
        /* Nobody waits for what will not happen. */
        pthread_mutex_lock(&lock);
        wake_waiters(stream, UINT64_MAX);
        pthread_mutex_unlock(&lock);
        pthread_cond_destroy(&stream->self.wake);
    }
}

void device_close(struct device *device)
{
    if (!device) return;
    device_stop(device);
    for (uint32_t kind = 0; kind < STREAM_KIND_COUNT; kind++) free(device->streams[kind].ring);
    kernels_host_destroy(device->kernels);
    host_memory_unmap(device->arena, device->options.arena_bytes);
    free(device);
}

const struct kernels *device_kernels(const struct device *device)
{
    return device->kernels;
}

void *device_arena(const struct device *device)
{
    return device->arena;
}

struct device_stream *device_stream(struct device *device, uint32_t kind)
{
    assert(kind < STREAM_KIND_COUNT);
    return device->streams[kind].ring ? &device->streams[kind] : NULL;
}

/* --- enqueueing ------------------------------------------------------------------------------ */

uint64_t device_record(const struct device_stream *stream)
{
    return stream->enqueued; /* changed by the calling thread alone */
}

uint64_t device_passed(const struct device_stream *stream)
{
    return atomic_load(&stream->ended);
}

bool device_synchronize(struct device_stream *stream, uint64_t event, double timeout_s)
{
    if (device_reached(stream, event)) return true;
    struct waiter waiter = {.event = event};
    if (!waiter_init(&waiter)) return false;
    const double end_s = clock_s() + (timeout_s < 1e9 ? timeout_s : 1e9);
    const struct timespec end = {.tv_sec = (time_t)end_s,
                                 .tv_nsec = (long)((end_s - (double)(time_t)end_s) * 1e9)};
    pthread_mutex_lock(&lock);
    int failed = 0;
    if (!device_reached(stream, event)) {
        waiter_hang(&waiter, stream, event);
        while (waiter.waiting && !failed) failed = pthread_cond_timedwait(&waiter.wake, &lock, &end);
        if (waiter.waiting) waiter_take_off(&waiter, stream);
    }
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&waiter.wake);
    return device_reached(stream, event);
}

/* The next free command of the ring; waits for room. Filled in without the lock, for the thread
 * does not look at it before push() has counted it. */
static struct command *next_command(struct device_stream *stream, enum command_kind kind,
                                    struct device_timing *timing)
{
    if (stream->enqueued >= DEVICE_QUEUE_MAX) {
        const uint64_t oldest = stream->enqueued - DEVICE_QUEUE_MAX + 1;
        while (!device_synchronize(stream, oldest, 1e9)) assert(stream->started);
    }
    struct command *const command = &stream->ring[stream->enqueued % DEVICE_QUEUE_MAX];
    command->kind = kind;
    command->timing = timing;
    command->argument = NULL;
    command->argument_inside = false;
    return command;
}

static void set_argument(struct command *command, const void *argument, size_t argument_bytes)
{
    assert(argument_bytes <= DEVICE_ARGUMENT_MAX);
    command->argument = argument;
    command->argument_inside = argument_bytes > 0;
    if (argument_bytes > 0) memcpy(command->inside, argument, argument_bytes);
}

static void push(struct device_stream *stream)
{
    pthread_mutex_lock(&lock);
    const bool idle = atomic_load(&stream->ended) == stream->enqueued;
    stream->enqueued++;
    if (idle) pthread_cond_signal(&stream->self.wake);
    pthread_mutex_unlock(&lock);
}

void device_wait(struct device_stream *stream, struct device_stream *other, uint64_t event)
{
    if (stream == other || device_reached(other, event)) return;
    struct command *const command = next_command(stream, COMMAND_WAIT, NULL);
    command->what.wait.on = other;
    command->what.wait.event = event;
    push(stream);
}

void device_copy(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                 struct device_timing *timing)
{
    device_copy_guarded(stream, to, from, bytes, (struct device_guard){.limit = NULL}, timing);
}

void device_copy_guarded(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                         struct device_guard guard, struct device_timing *timing)
{
    struct command *const command = next_command(stream, COMMAND_COPY, timing);
    command->what.copy.to = to;
    command->what.copy.from = from;
    command->what.copy.bytes = bytes;
    command->what.copy.guard = guard;
    push(stream);
}

void device_compute(struct device_stream *stream, device_compute_function function,
                    const void *argument, size_t argument_bytes, struct device_timing *timing)
{
    assert(stream->kind == STREAM_COMPUTE);
    struct command *const command = next_command(stream, COMMAND_COMPUTE, timing);
    command->what.compute = function;
    set_argument(command, argument, argument_bytes);
    push(stream);
}

void device_call(struct device_stream *stream, device_host_function function, const void *argument,
                 size_t argument_bytes, struct device_timing *timing)
{
    struct command *const command = next_command(stream, COMMAND_CALL, timing);
    command->what.call = function;
    set_argument(command, argument, argument_bytes);
    push(stream);
}

void device_poison(struct device_stream *stream, void *at, uint64_t bytes)
{
    if (!stream->device->options.poison) return;
    struct command *const command = next_command(stream, COMMAND_POISON, NULL);
    command->what.poison.at = at;
    command->what.poison.bytes = bytes;
    push(stream);
}
