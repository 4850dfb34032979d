/*
 * A stream is a ring of commands with three counters that only increase: commands enqueued, taken from the ring, and
 * ended. An event is a value of the last counter: recording costs nothing, and an event is never freed.
 *
 *     ended      taken      enqueued
 *       |          |            |
 *   ... [copy][wait][poison][copy] ...        ring of DEVICE_QUEUE_MAX, index = counter % size
 *
 * On the host `taken` and `ended` are equal. A GPU is given a few commands ahead of their turn (stream_ops.ahead_max),
 * and its back end raises `ended` as they end there.
 *
 * Waiting. On the host, a wait ends when the event is reached. Between two GPU streams it suffices that the other
 * stream's commands were handed over. Neither can deadlock: an event is recorded before it is waited for, so all
 * streams' commands have one order. A thread only waits for earlier commands, and the first command that has not ended
 * waits for none.
 *
 * A waiting thread sleeps on its own condition variable and registers with the stream that it waits for, which wakes
 * exactly the threads whose event it has reached. No thread spins: with few cores that takes time from computations.
 *
 * One lock guards all queues and lists of the process. A command takes it twice, for well under a microsecond, and
 * lasts at least tens of microseconds. With a lock per stream, closing a stream that waits for another would need two.
 * device_passed() takes no lock.
 *
 * A lost device's commands are skipped, so that no thread hangs, except host functions, since threads may wait for
 * their results.
 *
 * For tests, `delay_seed` adds seeded pauses of up to 1 ms before work: a missing wait then shows as wrong numbers.
 * `poison` writes NaN over released memory.
 */
#include "exec/device/device.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "exec/device/device_backend.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const double DELAY_MAX_S = 1e-3;
static const double REST_S = 20e-3;
static const double DELAY_MIN_S = 1e-5; /* sleeping for less costs a switch of threads and delays nothing */

/* --- waiting, all under the lock ------------------------------------------------------------- */

static void waiter_hang(struct device_waiter *waiter, struct device_stream *on, uint64_t event,
                        bool for_taken)
{
    waiter->event = event;
    waiter->for_taken = for_taken;
    waiter->waiting = true;
    waiter->next = on->waiters;
    on->waiters = waiter;
}

static void waiter_take_off(struct device_waiter *waiter, struct device_stream *on)
{
    struct device_waiter **link = &on->waiters;
    while (*link != waiter) link = &(*link)->next;
    *link = waiter->next;
    waiter->waiting = false;
}

static void wake_waiters(struct device_stream *stream, uint64_t taken, uint64_t ended)
{
    struct device_waiter **link = &stream->waiters;
    while (*link) {
        struct device_waiter *waiter = *link;
        if (waiter->event > (waiter->for_taken ? taken : ended)) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        waiter->waiting = false;
        pthread_cond_signal(&waiter->wake);
    }
}

/* --- the stream's thread --------------------------------------------------------------------- */

bool device_command_is_shut(const struct device_command *command)
{
    const struct device_guard *const guard = &command->what.copy.guard;
    return command->kind == COMMAND_COPY && guard->limit &&
           guard->value >= atomic_load(guard->limit);
}

/* Pauses have all magnitudes: streams overtake each other by a little and by much. The mean is a ninth of the
 * maximum. */
double device_queue_delay_s(const struct device_stream *stream, uint64_t number)
{
    if (!stream->delay_key) return 0;
    const double delay_s = DELAY_MAX_S * pow(random_unit(stream->delay_key, number), 8);
    return delay_s < DELAY_MIN_S ? 0 : delay_s;
}

/* Sleeps, under the lock, until the stream is woken, or has rested. */
static void sleep_or_rest(struct device_stream *stream)
{
    if (!stream->ops->rest || stream->rests) {
        pthread_cond_wait(&stream->self.wake, &lock);
        return;
    }
    if (clock_wait_until(&stream->self.wake, &lock, clock_s() + REST_S)) return;
    pthread_mutex_unlock(&lock);
    stream->ops->rest(stream);
    pthread_mutex_lock(&lock);
    stream->rests = true;
}

/* Sleeps, under the lock, until `on` has reached the event. Returns true when the stream must quit. */
static bool await_event(struct device_stream *stream, struct device_stream *on, uint64_t event,
                        bool for_taken)
{
    if (atomic_load(for_taken ? &on->taken : &on->ended) >= event) return false;
    waiter_hang(&stream->self, on, event, for_taken);
    while (stream->self.waiting && !atomic_load(&stream->quit)) sleep_or_rest(stream);
    if (stream->self.waiting) waiter_take_off(&stream->self, on);
    return true;
}

static void *stream_main(void *pointer)
{
    struct device_stream *const stream = pointer;
    const struct device_stream_ops *const ops = stream->ops;
    ops->attach(stream);
    bool back_to_back = false;

    pthread_mutex_lock(&lock);
    for (;;) {
        const uint64_t number = atomic_load(&stream->taken);
        while (!atomic_load(&stream->quit) && number == stream->enqueued) {
            back_to_back = false;
            sleep_or_rest(stream);
        }
        struct device_command *const command = &stream->ring[number % DEVICE_QUEUE_MAX];
        const bool lost = atomic_load(&stream->device->failed) && !ops->survives;
        const bool calls = command->kind == COMMAND_CALL || command->kind == COMMAND_AHEAD;
        bool work = !atomic_load(&stream->quit) && (!lost || calls);
        if (work && ops->ahead_max > 0 && number >= ops->ahead_max)
            await_event(stream, stream, number - ops->ahead_max + 1, false);
        if (work && command->kind == COMMAND_WAIT) {
            struct device_stream *const on = command->what.wait.on;
            const bool on_device = ops->waits_on_device && on->ops->ahead_max > 0;
            if (await_event(stream, on, command->what.wait.event, on_device)) back_to_back = false;
            work = ops->ahead_max > 0; /* who waits for this command must find it handed over */
        }
        if (atomic_load(&stream->quit)) break;
        if (work) {
            pthread_mutex_unlock(&lock);
            ops->carry_out(stream, command, number, back_to_back);
            pthread_mutex_lock(&lock);
            back_to_back = true;
        }
        const bool ends = ops->ahead_max == 0;
        atomic_store(&stream->taken, number + 1);
        if (ends) atomic_store(&stream->ended, number + 1);
        wake_waiters(stream, number + 1, ends ? number + 1 : atomic_load(&stream->ended));
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool device_queue_await_taken(struct device_stream *stream, struct device_waiter *self, uint64_t number)
{
    pthread_mutex_lock(&lock);
    while (atomic_load(&stream->taken) <= number && stream->started) {
        waiter_hang(self, stream, number + 1, true);
        while (self->waiting) pthread_cond_wait(&self->wake, &lock);
    }
    const bool taken = atomic_load(&stream->taken) > number;
    pthread_mutex_unlock(&lock);
    return taken;
}

void device_queue_ended(struct device_stream *stream, uint64_t ended)
{
    pthread_mutex_lock(&lock);
    assert(ended <= atomic_load(&stream->taken));
    atomic_store(&stream->ended, ended);
    wake_waiters(stream, atomic_load(&stream->taken), ended);
    pthread_mutex_unlock(&lock);
}

/* --- opening and closing --------------------------------------------------------------------- */

enum status device_queue_start(struct device *device, uint32_t kind, const struct device_stream_ops *ops,
                               void *own, struct error *err)
{
    const struct device_options *const options = &device->options;
    struct device_stream *const stream = &device->streams[kind];
    stream->device = device;
    stream->ops = ops;
    stream->own = own;
    stream->kind = kind;
    if (kind == STREAM_H2D) stream->pace.bytes_per_s = options->h2d_bytes_per_s;
    if (kind == STREAM_D2H) stream->pace.bytes_per_s = options->d2h_bytes_per_s;
    if (kind == STREAM_P2P) stream->pace.bytes_per_s = options->p2p_bytes_per_s;
    if (options->delay_seed)
        stream->delay_key = random_u64(options->delay_seed, options->index * 16u + kind) | 1;
    stream->ring = alloc_zeroed(DEVICE_QUEUE_MAX, sizeof *stream->ring);
    if (!stream->ring)
        return error_memory(err, "the queue of a stream", DEVICE_QUEUE_MAX * sizeof *stream->ring);
    if (pthread_cond_init(&stream->self.wake, NULL) != 0)
        return error_set(err, STATUS_DEVICE, "cannot make a condition variable");

    /* Signals belong to the main thread. */
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
        pthread_mutex_lock(&lock);
        stream->started = false;
        wake_waiters(stream, UINT64_MAX, UINT64_MAX);
        pthread_mutex_unlock(&lock);
        pthread_cond_destroy(&stream->self.wake);
        if (device->ops->stop_stream) device->ops->stop_stream(stream);
    }
}

void device_close(struct device *device)
{
    if (!device) return;
    device_stop(device);
    device->ops->close(device);
    for (uint32_t kind = 0; kind < STREAM_KIND_COUNT; kind++) free(device->streams[kind].ring);
    free(device);
}

void device_fail(struct device *device, const char *text)
{
    pthread_mutex_lock(&lock);
    if (!atomic_load(&device->failed)) {
        error_set(&device->failure, STATUS_DEVICE, "device %u was lost: %s", device->options.index, text);
        atomic_store(&device->failed, true);
    }
    pthread_mutex_unlock(&lock);
}

enum status device_failed(struct device *device, struct error *err)
{
    if (!atomic_load(&device->failed)) return STATUS_OK;
    pthread_mutex_lock(&lock);
    const enum status status = error_set(err, device->failure.status, "%s", device->failure.text);
    pthread_mutex_unlock(&lock);
    return status;
}

const struct kernels *device_kernels(const struct device *device)
{
    return device->kernels;
}

struct device_memory device_memory(const struct device *device)
{
    return device->memory;
}

struct device_pacing device_pacing(const struct device *device)
{
    struct device_pacing all = {0, 0};
    for (uint32_t kind = 0; kind < STREAM_KIND_COUNT; kind++) {
        all.asked_s += device->streams[kind].pace.asked_s;
        all.late_s += device->streams[kind].pace.late_s;
    }
    return all;
}

void device_hold(struct device_stream *stream, double begun_s, double duration_s)
{
    device_pace_hold(&stream->pace, begun_s, duration_s, false, &stream->quit);
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
    return stream->enqueued; /* changed only by the calling thread */
}

uint64_t device_passed(const struct device_stream *stream)
{
    return atomic_load(&stream->ended);
}

bool device_synchronize(struct device_stream *stream, uint64_t event, double timeout_s)
{
    if (device_reached(stream, event)) return true;
    struct device_waiter waiter = {.event = event};
    if (pthread_cond_init(&waiter.wake, NULL) != 0) return false;
    const double end_s = clock_s() + (timeout_s < 1e9 ? timeout_s : 1e9);
    pthread_mutex_lock(&lock);
    if (!device_reached(stream, event)) {
        waiter_hang(&waiter, stream, event, false);
        while (waiter.waiting && clock_wait_until(&waiter.wake, &lock, end_s))
            ;
        if (waiter.waiting) waiter_take_off(&waiter, stream);
    }
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&waiter.wake);
    return device_reached(stream, event);
}

/* Waits for room. The command is filled in without the lock: the thread does not read it before push() has counted
 * it. */
static struct device_command *next_command(struct device_stream *stream, enum command_kind kind,
                                           struct device_timing *timing)
{
    if (stream->enqueued >= DEVICE_QUEUE_MAX) {
        const uint64_t oldest = stream->enqueued - DEVICE_QUEUE_MAX + 1;
        while (!device_synchronize(stream, oldest, 1e9)) assert(stream->started);
    }
    struct device_command *const command = &stream->ring[stream->enqueued % DEVICE_QUEUE_MAX];
    command->kind = kind;
    command->timing = timing;
    command->argument = NULL;
    command->argument_inside = false;
    return command;
}

static void set_argument(struct device_command *command, const void *argument, size_t argument_bytes)
{
    assert(argument_bytes <= DEVICE_ARGUMENT_MAX);
    command->argument = argument;
    command->argument_inside = argument_bytes > 0;
    if (argument_bytes > 0) memcpy(command->inside, argument, argument_bytes);
}

static void push(struct device_stream *stream)
{
    pthread_mutex_lock(&lock);
    const bool idle = atomic_load(&stream->taken) == stream->enqueued;
    stream->enqueued++;
    if (idle) pthread_cond_signal(&stream->self.wake);
    pthread_mutex_unlock(&lock);
}

void device_wait(struct device_stream *stream, struct device_stream *other, uint64_t event)
{
    if (stream == other || device_reached(other, event)) return;
    struct device_command *const command = next_command(stream, COMMAND_WAIT, NULL);
    command->what.wait.on = other;
    command->what.wait.event = event;
    push(stream);
}

void device_copy(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                 struct device_timing *timing)
{
    device_copy_guarded(stream, to, from, bytes, (struct device_guard){.limit = NULL}, timing);
}

static void push_copy(struct device_stream *stream, void *to, struct device *from_device,
                      const void *from, uint64_t bytes, struct device_guard guard,
                      struct device_timing *timing)
{
    struct device_command *const command = next_command(stream, COMMAND_COPY, timing);
    command->what.copy.to = to;
    command->what.copy.from = from;
    command->what.copy.bytes = bytes;
    command->what.copy.from_device = from_device;
    command->what.copy.guard = guard;
    push(stream);
}

void device_copy_guarded(struct device_stream *stream, void *to, const void *from, uint64_t bytes,
                         struct device_guard guard, struct device_timing *timing)
{
    push_copy(stream, to, NULL, from, bytes, guard, timing);
}

void device_copy_p2p(struct device_stream *stream, void *to, struct device *from_device,
                     const void *from, uint64_t bytes, struct device_guard guard,
                     struct device_timing *timing)
{
    assert(stream->kind == STREAM_P2P);
    assert(from_device && from_device != stream->device);
    push_copy(stream, to, from_device, from, bytes, guard, timing);
}

void device_compute(struct device_stream *stream, device_compute_function function,
                    const void *argument, size_t argument_bytes, struct device_timing *timing)
{
    assert(stream->kind == STREAM_COMPUTE);
    struct device_command *const command = next_command(stream, COMMAND_COMPUTE, timing);
    command->what.compute = function;
    set_argument(command, argument, argument_bytes);
    push(stream);
}

void device_move(struct device_stream *stream, void *to, const void *from, uint64_t bytes)
{
    const struct device_ops *const ops = stream->device->ops;
    if (ops->move) ops->move(stream, to, from, bytes);
    else memcpy(to, from, bytes);
}

static void push_call(struct device_stream *stream, enum command_kind kind, device_host_function function,
                      const void *argument, size_t argument_bytes, struct device_timing *timing)
{
    struct device_command *const command = next_command(stream, kind, timing);
    command->what.call = function;
    set_argument(command, argument, argument_bytes);
    push(stream);
}

void device_call(struct device_stream *stream, device_host_function function, const void *argument,
                 size_t argument_bytes, struct device_timing *timing)
{
    push_call(stream, COMMAND_CALL, function, argument, argument_bytes, timing);
}

void device_call_ahead(struct device_stream *stream, device_host_function function, const void *argument,
                       size_t argument_bytes, struct device_timing *timing)
{
    push_call(stream, COMMAND_AHEAD, function, argument, argument_bytes, timing);
}

void device_poison(struct device_stream *stream, void *at, uint64_t bytes)
{
    if (!stream->device->options.poison) return;
    struct device_command *const command = next_command(stream, COMMAND_POISON, NULL);
    command->what.poison.at = at;
    command->what.poison.bytes = bytes;
    push(stream);
}
