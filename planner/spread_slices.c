/*
 * Behind the last forward pass the last stage passes back at once, and so does each stage in front of it: with stages
 * that take equally long a minibatch of M microbatches ends after
 *
 *     M sum of (f + b) + (K - 1)(max f + max b)
 *
 * for slices of f and b seconds, which is what planner/slice_partition.h makes small, with t = f + b.
 *
 * Gradients of boundaries have as many variants as live at once in this order. Stages come one after the other with all
 * slices of a microbatch: so a short slice behind a long one need not wait for a place until the long one has been used.
 */
#include "planner/spread_slices.h"

#include "models/cost.h"
#include "planner/slice_partition.h"

struct costs {
    const struct hardware *hardware;
    struct job job; /* with one or two slices: what is in front, and the one to time */
};

static double work_s(const struct costs *c, const struct job *slice, struct parallel_layers layers,
                     enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(slice, layers, pass, items);
    return cost_work_s(c->hardware, c->job.parallel.first_device, items, count, NULL);
}

/* Of stages only the first, the second and the last differ. */
static double slowest_s(void *context, uint32_t begin, uint32_t end)
{
    struct costs *c = context;
    struct parallel *p = &c->job.parallel;
    uint32_t last = p->pipeline - 1, middle = p->pipeline > 2 ? 1 : 0;
    const uint32_t runs[] = {0, middle, last};
    uint32_t tokens = (uint32_t)c->job.sequence, parts = 0, own;
    if (begin > 0) p->slice_tokens[parts++] = begin;
    own = parts;
    p->slice_tokens[parts++] = end - begin;
    if (end < tokens) p->slice_tokens[parts++] = tokens - end;
    p->slices = parts;
    struct job slice = parallel_slice(&c->job, own);
    double most_s = 1e-12; /* a time is above 0 */
    for (uint32_t i = 0; i < 3; i++) {
        struct parallel_layers layers = parallel_layers(&slice, runs[i]);
        double one_s = work_s(c, &slice, layers, PARALLEL_FORWARD) + work_s(c, &slice, layers, PARALLEL_BACKWARD);
        if (one_s > most_s) most_s = one_s;
    }
    return most_s;
}

enum status spread_slices_choose(const struct hardware *hardware, struct job *job, struct error *err)
{
    struct costs costs = {.hardware = hardware, .job = *job};
    struct slice_partition found = {0};
    uint32_t tokens = (uint32_t)job->sequence, least = (tokens + PARALLEL_SLICES_MAX - 1) / PARALLEL_SLICES_MAX;
    const struct slice_request request = {.tokens = tokens, .granularity = least > 8 ? least : 8,
                                          .stages = job->parallel.pipeline,
                                          .repeats = job->microbatches / job->parallel.data,
                                          .seconds = slowest_s, .context = &costs};
    if (slice_partition_find(&request, &found, err)) return err->status;
    job->parallel.slices = found.count;
    for (uint32_t i = 0; i < found.count; i++) job->parallel.slice_tokens[i] = found.tokens[i];
    return STATUS_OK;
}

enum status spread_slices_order(struct spread *s, struct arena *arena, struct error *err)
{
    uint32_t slices = parallel_slices(s->parallel), count = 0;
    double slowest_s = 0;
    void *memory;
    struct pipeline_order order = {.count = 2 * (uint64_t)s->runs * s->microbatches};
    if (order.count > PIPELINE_STEPS_MAX)
        return error_set(err, STATUS_LIMIT, "too many passes of slices (limit is %d)", PIPELINE_STEPS_MAX);
    enum status status = arena_array(arena, order.count, sizeof *order.steps, &memory, err);
    if (status) return status;
    order.steps = memory;
    for (uint32_t n = 0; n < s->microbatches; n++)
        for (uint32_t r = 0; r < s->runs; r++)
            order.steps[count++] = (struct pipeline_step){.pass = PIPELINE_FORWARD, .run = r, .microbatch = n};
    for (uint32_t n = 0; n < s->microbatches; n += slices)
        for (uint32_t r = s->runs; r-- > 0;)
            for (uint32_t slice = slices; slice-- > 0;)
                order.steps[count++] = (struct pipeline_step){.pass = PIPELINE_BACKWARD, .run = r,
                                                              .microbatch = n + slice};
    for (uint32_t r = 0; r < s->runs; r++) {
        double one_s = s->times.runs[r].pass_s[PIPELINE_FORWARD] + s->times.runs[r].pass_s[PIPELINE_BACKWARD];
        if (one_s > slowest_s) slowest_s = one_s;
    }
    order.end_s = (s->microbatches + s->runs - 1) * slowest_s;
    s->order = order;
    return STATUS_OK;
}
