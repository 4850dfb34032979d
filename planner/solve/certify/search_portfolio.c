/* The searches share the instance and its bounds, which do not change, and the flag to stop. */
#include "planner/solve/certify/search_portfolio.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

struct portfolio_search {
    const struct instance *in;
    const struct instance_bounds *bounds;
    struct schedule_search_options options;
    struct dispatch_step *steps;
    int64_t value;
    uint32_t iterations;
    bool may_stop; /* it ends the other searches when it meets the bound */
    bool threaded;
    atomic_bool *stop;
    pthread_t thread;
    struct error err;
};

static void *run(void *of_search)
{
    struct portfolio_search *s = of_search;
    if (schedule_search(s->in, s->bounds, &s->options, s->steps, &s->value, &s->iterations, &s->err) ||
        (s->may_stop && s->value <= instance_bounds_best(s->bounds)))
        atomic_store_explicit(s->stop, true, memory_order_relaxed);
    return NULL;
}

/* Runs all searches to their ends in parallel, the first on the caller's thread. */
static void run_all(struct portfolio_search *searches, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++)
        searches[k].threaded = pthread_create(&searches[k].thread, NULL, run, &searches[k]) == 0;
    run(&searches[0]);
    for (uint32_t k = 1; k < count; k++) {
        if (searches[k].threaded) pthread_join(searches[k].thread, NULL);
        else run(&searches[k]);
    }
}

static void begin(struct portfolio_search *s, const struct portfolio_search *first, uint32_t number)
{
    bool timed = first->options.until_s < HUGE_VAL;
    *s = *first;
    s->options.seed = number == 0 ? first->options.seed : random_mix(random_u64(first->options.seed, number));
    s->options.stop = number == 0 && !timed ? NULL : first->stop;
    s->may_stop = number == 0 || timed;
}

/* Copies the best search's steps to the first search. */
static void keep_best(struct portfolio_search *searches, uint32_t count, uint32_t task_count)
{
    for (uint32_t k = 1; k < count; k++) {
        if (searches[k].value >= searches[0].value) continue;
        searches[0].value = searches[k].value;
        memcpy(searches[0].steps, searches[k].steps, task_count * sizeof *searches[k].steps);
    }
}

enum status search_portfolio(const struct instance *in, const struct instance_bounds *bounds,
                             const struct schedule_search_options *options, uint32_t searches,
                             struct dispatch_step *steps, int64_t *value, uint32_t *iterations, struct error *err)
{
    struct portfolio_search all[SEARCH_PORTFOLIO_MAX];
    atomic_bool stop = false;
    struct portfolio_search first = {.in = in, .bounds = bounds, .options = *options, .steps = steps, .value = *value,
                                     .stop = &stop};
    size_t n = in->task_count;
    assert(searches > 0 && searches <= SEARCH_PORTFOLIO_MAX);
    if (!schedule_search_is_local(in)) searches = 1;
    struct dispatch_step *more = alloc_zeroed((searches - 1) * n, sizeof *more);
    if (!more) return error_memory(err, "schedules", (searches - 1) * n * sizeof *more);
    for (uint32_t k = 0; k < searches; k++) {
        begin(&all[k], &first, k);
        if (k == 0) continue;
        all[k].steps = more + (k - 1) * n;
        memcpy(all[k].steps, steps, n * sizeof *steps);
    }
    run_all(all, searches);
    for (uint32_t k = 0; k < searches && !err->status; k++) *err = all[k].err;
    if (!err->status) {
        keep_best(all, searches, in->task_count);
        *value = all[0].value;
        *iterations = all[0].iterations;
    }
    free(more);
    return err->status;
}
