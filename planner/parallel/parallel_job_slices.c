/*
 * Each stage passes backward right after its last forward pass. With equally fast stages a minibatch of M microbatches
 * ends after
 *
 *     M sum of (f + b) + (K - 1)(max f + max b)
 *
 * for slices of f and b seconds. planner/parallel/pipeline/slice_partition.h minimizes this, with t = f + b. These
 * seconds include a tensor group's collectives that passes wait for: a slice has as many as a whole sequence, and their
 * latency does not shrink. Boundaries and gradients are sent during other slices' passes; only the first and last
 * count, for the K - 1 hops. All devices of a stage send at once.
 *
 * Gradients of boundaries have a variant for each alive at once in this order. Each stage is a microbatch of slices
 * later than its sender, so a short slice after a long one does not wait for the long one's place. One more variant
 * receives a gradient while the previous one is sent.
 */
#include "planner/parallel/parallel_job_slices.h"

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "planner/parallel/pipeline/slice_partition.h"
#include "planner/pass_seconds.h"

struct parallel_job_slices_costs {
    const struct hardware *hardware;
    struct job job; /* with one or two slices: the tokens before, and the slice to time */
    struct collective_group group; /* of the first stage, which stands for all */
    double send_latency_s, send_s_per_byte; /* to the next stage, the most of any two; 0: no links */
};

static double work_s(const struct parallel_job_slices_costs *c, const struct job *slice, struct parallel_layers layers,
                     enum parallel_pass pass)
{
    return pass_seconds_parallel(c->hardware, c->job.parallel.first_device, slice, layers, pass);
}

/* Returns the seconds that a pass waits for collectives; `hidden_s` of computation hides some. */
static double collectives_s(const struct parallel_job_slices_costs *c, const struct job *slice,
                            struct parallel_layers layers, enum parallel_pass pass, double hidden_s)
{
    const struct pass_exchanges sum = pass_seconds_exchanges(slice, &c->group, layers, pass);
    return sum.exposed_s + max_s(0, sum.beside_s - hidden_s);
}

/* Returns both passes' seconds. Collectives of weight gradients belong to sequence parallelism, which excludes
 * slices. */
static double both_s(const struct parallel_job_slices_costs *c, const struct job *slice, struct parallel_layers layers)
{
    double work = work_s(c, slice, layers, PARALLEL_FORWARD) + work_s(c, slice, layers, PARALLEL_BACKWARD);
    if (c->group.inner.members == 0) return work; /* no tensor group, or no links */
    return work + collectives_s(c, slice, layers, PARALLEL_FORWARD, 0) +
           collectives_s(c, slice, layers, PARALLEL_INPUT, work_s(c, slice, layers, PARALLEL_WEIGHT));
}

static double both_ways_s(void *context, uint32_t begin, uint32_t end)
{
    const struct parallel_job_slices_costs *c = context;
    const struct parallel *p = &c->job.parallel;
    uint64_t bytes = parallel_sent_bytes(&c->job, parallel_layers(&c->job, 0).count - 1);
    double share = (double)(end - begin) / (double)c->job.sequence;
    double gather_s = 0;
    if (p->scatter && c->group.inner.members > 0)
        gather_s = collective_seconds(COLLECTIVE_ALL_GATHER, parallel_algorithm(p), &c->group,
                                      (uint64_t)(share * (double)bytes * p->tensor));
    return 2 * (c->send_latency_s + share * (double)bytes * c->send_s_per_byte + gather_s);
}

/* Only the first, the second and the last stage differ. Blocking stages add their fetches. */
static double slowest_s(void *context, uint32_t begin, uint32_t end)
{
    struct parallel_job_slices_costs *c = context;
    struct parallel *p = &c->job.parallel;
    uint32_t last = p->pipeline - 1, middle = p->pipeline > 2 ? 1 : 0;
    const uint32_t chunks[] = {0, middle, last};
    uint32_t tokens = (uint32_t)c->job.sequence, parts = 0, own;
    if (begin > 0) p->slice_tokens[parts++] = begin;
    own = parts;
    p->slice_tokens[parts++] = end - begin;
    if (end < tokens) p->slice_tokens[parts++] = tokens - end;
    p->slices = parts;
    struct job slice = parallel_slice(&c->job, own);
    double most_s = 1e-12; /* positive, as slice_seconds requires */
    for (uint32_t i = 0; i < 3; i++) {
        struct parallel_layers layers = parallel_layers(&slice, chunks[i]);
        double one_s = both_s(c, &slice, layers);
        if (one_s > most_s) most_s = one_s;
    }
    return most_s + (p->blocking ? both_ways_s(c, begin, end) : 0);
}

/* Returns the copies from a stage to the next that cross the link direction at once. */
static uint32_t copies_across(const struct parallel_job_slices_costs *c, uint32_t stage, uint32_t link_dir)
{
    uint32_t size = c->job.parallel.tensor * c->job.parallel.data, first = c->job.parallel.first_device + stage * size;
    uint32_t count = 0;
    for (uint32_t d = first; d < first + size; d++) {
        struct p2p_route route = hardware_p2p_route(c->hardware, d, d + size);
        for (uint32_t i = 0; i < route.up_count + route.down_count; i++)
            count += hardware_route_link_dir(c->hardware, &route, i) == link_dir;
    }
    return count;
}

static void find_sends(struct parallel_job_slices_costs *c)
{
    const struct parallel *p = &c->job.parallel;
    uint32_t size = p->tensor * p->data;
    for (uint32_t stage = 0; stage + 1 < p->pipeline; stage++) {
        uint32_t from = p->first_device + stage * size;
        for (uint32_t d = from; d < from + size; d++)
            if (!hardware_reaches(c->hardware, d, d + size)) return;
        struct p2p_route route = hardware_p2p_route(c->hardware, from, from + size);
        c->send_latency_s = max_s(c->send_latency_s, cost_p2p_latency_s(c->hardware, from, from + size));
        for (uint32_t i = 0; i < route.up_count + route.down_count; i++) {
            uint32_t copies = copies_across(c, stage, hardware_route_link_dir(c->hardware, &route, i));
            c->send_s_per_byte = max_s(c->send_s_per_byte, copies / c->hardware->links[route.links[i]].bandwidth.value);
        }
    }
}

/* Finds the first stage's first tensor group, while its other groups communicate too. Missing links or devices are
 * reported later. */
static enum status find_group(struct parallel_job_slices_costs *c, struct arena *arena, struct error *err)
{
    const struct parallel *p = &c->job.parallel;
    uint32_t count = p->tensor * p->data, lacking[2];
    struct collective_finder finder;
    struct collective_group *groups;
    uint32_t *devices;
    if (p->tensor == 1 || p->first_device + count > c->hardware->device_count) return STATUS_OK;
    TRY(ARENA_NEW(arena, count, devices, err));
    TRY(ARENA_NEW(arena, p->data, groups, err));
    TRY(collective_finder_init(arena, c->hardware, &finder, err));
    for (uint32_t i = 0; i < count; i++) devices[i] = p->first_device + i;
    if (collective_groups_find(&finder, devices, p->tensor, p->data, groups, lacking)) c->group = *groups;
    return STATUS_OK;
}

enum status parallel_job_slices_choose(const struct hardware *hardware, struct job *job, struct error *err)
{
    struct parallel_job_slices_costs costs = {.hardware = hardware, .job = *job};
    struct arena arena = {0};
    struct slice_partition found = {0};
    uint32_t tokens = (uint32_t)job->sequence, least = (tokens + PARALLEL_SLICES_MAX - 1) / PARALLEL_SLICES_MAX;
    const struct slice_request request = {.tokens = tokens, .granularity = least > 8 ? least : 8,
                                          .stages = job->parallel.pipeline,
                                          .repeats = job->microbatches / job->parallel.data,
                                          .seconds = slowest_s, .sends = job->parallel.blocking ? NULL : both_ways_s,
                                          .context = &costs};
    enum status status = find_group(&costs, &arena, err);
    if (job->parallel.first_device + parallel_devices(&job->parallel) <= hardware->device_count) find_sends(&costs);
    if (!status) status = slice_partition_find(&request, &found, err);
    arena_release(&arena);
    if (status) return status;
    job->parallel.slices = found.count;
    for (uint32_t i = 0; i < found.count; i++) job->parallel.slice_tokens[i] = found.tokens[i];
    return STATUS_OK;
}

enum status parallel_job_slices_order(struct parallel_job *s, struct arena *arena, struct error *err)
{
    uint32_t slices = parallel_slices(s->parallel), count = 0;
    double slowest_s = 0, sent_s = 0;
    struct pipeline_order order = {.count = 2 * (uint64_t)s->chunks * s->microbatches};
    if (order.count > PIPELINE_STEPS_MAX)
        return error_set(err, STATUS_LIMIT, "too many passes of slices (limit is %d)", PIPELINE_STEPS_MAX);
    TRY(ARENA_NEW(arena, order.count, order.steps, err));
    for (uint32_t n = 0; n < s->microbatches; n++)
        for (uint32_t r = 0; r < s->chunks; r++)
            order.steps[count++] = (struct pipeline_step){.pass = PIPELINE_FORWARD, .chunk = r, .microbatch = n};
    for (uint64_t wave = 0; wave < s->microbatches + (uint64_t)slices * (s->chunks - 1); wave++)
        for (uint32_t r = s->chunks; r-- > 0;) {
            uint64_t behind = (uint64_t)slices * (s->chunks - 1 - r);
            if (wave < behind || wave - behind >= s->microbatches) continue;
            uint32_t n = (uint32_t)(wave - behind);
            order.steps[count++] = (struct pipeline_step){.pass = PIPELINE_BACKWARD, .chunk = r,
                                                          .microbatch = n - n % slices + slices - 1 - n % slices};
        }
    for (uint32_t r = 0; r < s->chunks; r++) {
        double one_s = s->times.chunks[r].pass_s[PIPELINE_FORWARD] + s->times.chunks[r].pass_s[PIPELINE_BACKWARD];
        slowest_s = max_s(slowest_s, one_s);
        sent_s = max_s(sent_s, 2 * s->times.chunks[r].send_s);
    }
    /* a blocking stage waits for every slice's sends; others for the K - 1 hops */
    order.end_s = (s->microbatches + s->chunks - 1) * slowest_s +
                  ((s->parallel->blocking ? s->microbatches - 1 : 0) + s->chunks - 1) * sent_s;
    s->order = order;
    return STATUS_OK;
}
