/*
 * An all-reduce has three meetings. At the first all values are there, and each member adds up its slice of them into
 * its own memory; at the second all slices are sums, and each member copies the others' slices; after the third nobody
 * reads them any more.
 *
 *     member 0   [ sum | x0  | x0  ]        [ sum | sum | sum ]
 *     member 1   [ x1  | sum | x1  ]   -->  [ sum | sum | sum ]        slices of 64-byte lines
 *     member 2   [ x2  | x2  | sum ]        [ sum | sum | sum ]
 */
#include "exec/run/run_collective.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clones.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/run/run_collective_time.h"

enum { LINE_FLOATS = 16, PIECE_FLOATS = 4096 };

struct run_collective {
    struct run_collective *next, **link; /* of those in flight */
    uint32_t members, arrived, meetings, left;
    uint32_t job;
    uint64_t minibatch, count;
    bool shut; /* beyond the job's limit; decided once, at the first meeting ... */
    double begun_s; /* ... when it begins for all members, as in the simulator */
    double paced_s; /* over paced links, the time that it takes */
    float **values; /* by member */
    pthread_cond_t met;
};

struct collective_call {
    struct run *run;
    struct run_collective *collective;
    struct device_stream *stream;
    uint32_t member;
    bool *omitted;
    struct device_timing *timing;
};

/* --- meetings --------------------------------------------------------------------------------- */

static struct run_collective *create(struct run *run, const struct plan_walk_op *op, uint64_t count)
{
    struct run_collective *const c = alloc_zeroed(1, sizeof *c);
    if (!c) return NULL;
    c->values = alloc_zeroed(op->join_count, sizeof *c->values);
    if (!c->values || pthread_cond_init(&c->met, NULL) != 0) {
        free(c->values);
        free(c);
        return NULL;
    }
    c->members = op->join_count;
    c->job = op->unit->job;
    c->minibatch = op->minibatch;
    c->count = count;
    pthread_mutex_lock(&run->lock);
    c->next = run->collectives;
    c->link = &run->collectives;
    if (c->next) c->next->link = &c->next;
    run->collectives = c;
    pthread_mutex_unlock(&run->lock);
    return c;
}

static void destroy(struct run_collective *c)
{
    pthread_cond_destroy(&c->met);
    free(c->values);
    free(c);
}

/* Returns false when the run ends before all members have come. */
static bool meet(struct run *run, struct run_collective *c)
{
    pthread_mutex_lock(&run->lock);
    const uint32_t meeting = c->meetings;
    if (++c->arrived == c->members) {
        if (c->meetings++ == 0) {
            c->shut = c->minibatch >= atomic_load(&run->jobs[c->job].limit);
            c->begun_s = clock_s();
        }
        c->arrived = 0;
        pthread_cond_broadcast(&c->met);
    }
    while (c->meetings == meeting && !run->cancelled) pthread_cond_wait(&c->met, &run->lock);
    const bool met = c->meetings > meeting;
    pthread_mutex_unlock(&run->lock);
    return met;
}

/* The last member frees the collective. */
static void leave(struct run *run, struct run_collective *c)
{
    pthread_mutex_lock(&run->lock);
    const bool last = ++c->left == c->members;
    if (last) {
        *c->link = c->next;
        if (c->next) c->next->link = c->link;
    }
    pthread_mutex_unlock(&run->lock);
    if (last) destroy(c);
}

void run_collective_cancel(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    run->cancelled = true;
    for (struct run_collective *c = run->collectives; c; c = c->next) pthread_cond_broadcast(&c->met);
    pthread_mutex_unlock(&run->lock);
}

void run_collective_release(struct run *run)
{
    while (run->collectives) {
        struct run_collective *const c = run->collectives;
        run->collectives = c->next;
        destroy(c);
    }
}

/* --- sums ------------------------------------------------------------------------------------- */

CLONES static void add(float *restrict sum, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) sum[i] += x[i];
}

/* The slices' borders are lines, so that no two members write to one. */
static uint64_t slice_begin(const struct run_collective *c, uint32_t member)
{
    const uint64_t lines = (c->count + LINE_FLOATS - 1) / LINE_FLOATS, begin = lines * member / c->members * LINE_FLOATS;
    return begin < c->count ? begin : c->count;
}

static void reduce_slice(const struct run_collective *c, uint32_t member)
{
    const uint64_t end = slice_begin(c, member + 1);
    float sum[PIECE_FLOATS];
    for (uint64_t at = slice_begin(c, member); at < end; at += PIECE_FLOATS) {
        const uint64_t n = end - at < PIECE_FLOATS ? end - at : PIECE_FLOATS;
        memcpy(sum, c->values[0] + at, n * sizeof *sum);
        for (uint32_t m = 1; m < c->members; m++) add(sum, c->values[m] + at, n);
        memcpy(c->values[member] + at, sum, n * sizeof *sum);
    }
}

static void copy_other_slices(const struct run_collective *c, uint32_t member)
{
    for (uint32_t m = 0; m < c->members; m++) {
        const uint64_t begin = slice_begin(c, m), bytes = (slice_begin(c, m + 1) - begin) * sizeof(float);
        if (m != member) memcpy(c->values[member] + begin, c->values[m] + begin, bytes);
    }
}

static void call_join(void *argument)
{
    const struct collective_call *const call = argument;
    struct run_collective *const c = call->collective;
    bool met = meet(call->run, c);
    if (met) call->timing->start_s = c->begun_s;
    if (met && c->shut) *call->omitted = true;
    if (met && !c->shut) {
        reduce_slice(c, call->member);
        met = meet(call->run, c);
        if (met) copy_other_slices(c, call->member);
        met = met && meet(call->run, c); /* a member's slice stays until all have it */
        if (met && c->paced_s > 0) device_hold(call->stream, c->begun_s, c->paced_s);
    }
    if (met) leave(call->run, c);
}

enum status run_collective_enqueue(struct run *run, const struct plan_walk_op *op, float *values, uint64_t count,
                                   bool *omitted, struct device_timing *timing, struct error *err)
{
    if (op->join_at == 0) run->joining = create(run, op, count);
    if (!run->joining) return error_memory(err, "a collective", op->join_count * sizeof values);
    if (op->join_at == 0) TRY(run_collective_time(run->plan, op, &run->joining->paced_s, err));
    run->joining->values[op->join_at] = values;
    const struct collective_call call = {
        .run = run, .collective = run->joining, .stream = run->streams[op->stream], .member = op->join_at,
        .omitted = omitted, .timing = timing};
    device_call(call.stream, call_join, &call, sizeof call, timing);
    return STATUS_OK;
}
