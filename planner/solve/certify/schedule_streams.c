/* See schedule_streams.h. Streams share the instance and its bounds, which nobody changes, and who is to stop. */
#include "planner/solve/certify/schedule_streams.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

struct stream {
    const struct instance *in;
    const struct instance_bounds *bounds;
    struct schedule_search_options options;
    struct dispatch_step *steps;
    int64_t value;
    uint32_t iterations;
    bool may_stop; /* the others, when it meets the bound */
    bool threaded;
    atomic_bool *stop;
    pthread_t thread;
    struct error err;
};

static void *run(void *of_stream)
{
    struct stream *s = of_stream;
    if (schedule_search(s->in, s->bounds, &s->options, s->steps, &s->value, &s->iterations, &s->err) ||
        (s->may_stop && s->value <= instance_bounds_best(s->bounds)))
        atomic_store_explicit(s->stop, true, memory_order_relaxed);
    return NULL;
}

/* All at once; they have ended when it returns. The first runs on the caller's thread. */
static void run_all(struct stream *streams, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++)
        streams[k].threaded = pthread_create(&streams[k].thread, NULL, run, &streams[k]) == 0;
    run(&streams[0]);
    for (uint32_t k = 1; k < count; k++) {
        if (streams[k].threaded) pthread_join(streams[k].thread, NULL);
        else run(&streams[k]);
    }
}

static void begin(struct stream *s, const struct stream *first, uint32_t number)
{
    bool timed = first->options.until_s < HUGE_VAL;
    *s = *first;
    s->options.seed = number == 0 ? first->options.seed : random_mix(random_u64(first->options.seed, number));
    s->options.stop = number == 0 && !timed ? NULL : first->stop;
    s->may_stop = number == 0 || timed;
}

/* The best of them to the first's steps. */
static void keep_best(struct stream *streams, uint32_t count, uint32_t task_count)
{
    for (uint32_t k = 1; k < count; k++) {
        if (streams[k].value >= streams[0].value) continue;
        streams[0].value = streams[k].value;
        memcpy(streams[0].steps, streams[k].steps, task_count * sizeof *streams[k].steps);
    }
}

enum status schedule_streams(const struct instance *in, const struct instance_bounds *bounds,
                             const struct schedule_search_options *options, uint32_t streams,
                             struct dispatch_step *steps, int64_t *value, uint32_t *iterations, struct error *err)
{
    struct stream all[SCHEDULE_STREAMS_MAX];
    atomic_bool stop = false;
    struct stream first = {.in = in, .bounds = bounds, .options = *options, .steps = steps, .value = *value,
                           .stop = &stop};
    size_t n = in->task_count;
    assert(streams > 0 && streams <= SCHEDULE_STREAMS_MAX);
    if (!schedule_search_is_local(in)) streams = 1;
    struct dispatch_step *more = alloc_zeroed((streams - 1) * n, sizeof *more);
    if (!more) return error_memory(err, "schedules", (streams - 1) * n * sizeof *more);
    for (uint32_t k = 0; k < streams; k++) {
        begin(&all[k], &first, k);
        if (k == 0) continue;
        all[k].steps = more + (k - 1) * n;
        memcpy(all[k].steps, steps, n * sizeof *steps);
    }
    run_all(all, streams);
    for (uint32_t k = 0; k < streams && !err->status; k++) *err = all[k].err;
    if (!err->status) {
        keep_best(all, streams, in->task_count);
        *value = all[0].value;
        *iterations = all[0].iterations;
    }
    free(more);
    return err->status;
}
