/* parallel_check() excludes the combinations that the job's shape does not allow. */
#include "planner/capacity/what_if_ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"

enum { TENSOR_MOST = 8, CHUNKS_MOST = 128, MICROBATCH_MOST = 16, FEW_DEVICES = 64 };

struct what_if_ways_list {
    const struct hardware *hardware;
    const struct job *job;
    struct what_if_way *ways;
    uint32_t count;
};

static uint32_t blocks_of(const struct job *job)
{
    const struct network *n = &job->network;
    uint64_t blocks = n->family == NETWORK_PROFILE ? n->layer_count : n->blocks;
    return blocks > UINT32_MAX ? UINT32_MAX : max_u32((uint32_t)blocks, 1);
}

static bool is_possible(const struct job *job, const struct what_if_way *way)
{
    struct job own = *job;
    struct error ignored = {0};
    own.microbatch = way->microbatch;
    own.microbatches = way->microbatches;
    own.parallel = way->fit.parallel;
    return parallel_check(&own, &ignored) == STATUS_OK;
}

static bool is_listed(const struct what_if_ways_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->ways[i].fit.name, name) == 0) return true;
    return false;
}

static void name_way(const struct job *job, struct what_if_way *way)
{
    const struct parallel *p = &way->fit.parallel;
    char text[PARALLEL_TEXT_BYTES], microbatch[32] = "";
    const char *schedule = p->pipeline > 1 && p->schedule != PIPELINE_1F1B ? pipeline_schedule_names[p->schedule] : "";
    if (way->microbatch != job->microbatch) snprintf(microbatch, sizeof microbatch, " mb=%" PRIu64, way->microbatch);
    snprintf(way->fit.name, sizeof way->fit.name, "%.120s%s%.12s%s", parallel_text(p, text), *schedule ? " " : "",
             schedule, microbatch);
}

static void add(struct what_if_ways_list *list, struct parallel parallel, uint64_t microbatch)
{
    if (list->count == WHAT_IF_WAYS_MAX) return;
    struct what_if_way *way = &list->ways[list->count];
    *way = (struct what_if_way){.fit = {.devices = (uint32_t)parallel_devices(&parallel), .parallel = parallel},
                                .microbatch = microbatch,
                                .microbatches = job_samples(list->job) / microbatch,
                                .keeps_less = true};
    if (!is_possible(list->job, way)) return;
    name_way(list->job, way);
    if (!is_listed(list, way->fit.name)) list->count++;
}

/* --- the grid --------------------------------------------------------------------------------- */

static void add_stages(struct what_if_ways_list *list, struct parallel p, uint64_t microbatch)
{
    uint32_t levels = p.data > 1 ? ZERO_STATES : ZERO_NOTHING;
    for (p.zero = ZERO_NOTHING; p.zero <= levels; p.zero++) {
        p.schedule = PIPELINE_1F1B;
        p.chunks = 1;
        add(list, p, microbatch);
        if (list->hardware->device_count > FEW_DEVICES) continue;
        p.schedule = PIPELINE_ZB_H1;
        add(list, p, microbatch);
        p.schedule = PIPELINE_INTERLEAVED;
        p.chunks = 2;
        if (blocks_of(list->job) >= p.pipeline * p.chunks) add(list, p, microbatch);
    }
}

/* Adds the same offloading as feasibility_ways(). */
static void add_offloaded(struct what_if_ways_list *list, struct parallel p, uint64_t microbatch)
{
    p.offload = OFFLOAD_STATES;
    p.zero = ZERO_GRADIENTS;
    add(list, p, microbatch);
    p.offload = OFFLOAD_WEIGHTS;
    p.zero = ZERO_WEIGHTS;
    add(list, p, microbatch);
    p.storage = true;
    if (hardware_has_storage(list->hardware)) add(list, p, microbatch);
}

static void add_replicas(struct what_if_ways_list *list, struct parallel p, uint64_t microbatch)
{
    p.chunks = p.data > 1 ? min_u32(blocks_of(list->job), CHUNKS_MOST) : 1;
    uint32_t levels = p.data > 1 ? ZERO_WEIGHTS : ZERO_NOTHING;
    for (p.zero = ZERO_NOTHING; p.zero <= levels; p.zero++) add(list, p, microbatch);
    if (p.data > 1 && p.tensor == 1 && hardware_has_cpu(list->hardware)) add_offloaded(list, p, microbatch);
}

static void add_microbatches(struct what_if_ways_list *list, struct parallel p)
{
    const struct job *job = list->job;
    bool timed = job->network.family == NETWORK_PROFILE;
    for (uint64_t m = timed ? job->microbatch : 1; m <= max_u64(MICROBATCH_MOST, job->microbatch); m *= 2) {
        if (job_samples(job) % m == 0) (p.pipeline > 1 ? add_stages : add_replicas)(list, p, m);
        if (timed) break;
    }
}

static void add_degrees(struct what_if_ways_list *list, uint32_t tensor, uint32_t pipeline, uint32_t data)
{
    struct parallel p = {.tensor = tensor, .pipeline = pipeline, .data = data, .chunks = 1,
                         .schedule = PIPELINE_1F1B, .prefetch = 1};
    p.sequence = parallel_divides_tokens(list->job, tensor);
    add_microbatches(list, p);
    if (!p.sequence || list->hardware->device_count > FEW_DEVICES) return;
    p.sequence = false; /* fewer collectives, which pays where their latency counts */
    add_microbatches(list, p);
}

static void add_grid(struct what_if_ways_list *list, uint32_t devices)
{
    uint32_t node = list->hardware->host_nodes > 1 ? list->hardware->node_devices : list->hardware->device_count;
    for (uint32_t tensor = 1; tensor <= TENSOR_MOST && tensor <= node; tensor *= 2) {
        if (devices % tensor != 0) continue;
        uint32_t rest = devices / tensor;
        for (uint32_t pipeline = 1; pipeline <= rest && pipeline <= blocks_of(list->job); pipeline++)
            if (rest % pipeline == 0) add_degrees(list, tensor, pipeline, rest / pipeline);
    }
}

/* --- all -------------------------------------------------------------------------------------- */

static void add_fit(struct what_if_ways_list *list, const struct feasibility_way *fit, uint64_t microbatch)
{
    char own[32];
    if (list->count == WHAT_IF_WAYS_MAX) return;
    struct what_if_way *way = &list->ways[list->count++];
    *way = (struct what_if_way){.fit = *fit, .microbatch = microbatch,
                                .microbatches = job_samples(list->job) / microbatch};
    if (microbatch == list->job->microbatch) return;
    snprintf(own, sizeof own, " mb=%" PRIu64, microbatch);
    strncat(way->fit.name, own, sizeof way->fit.name - strlen(way->fit.name) - 1);
}

/* Adds ways on one device at a time: larger microbatches move states less often, smaller ones leave more memory. */
static void add_listed(struct what_if_ways_list *list)
{
    struct feasibility_way ways[FEASIBILITY_WAYS_MAX];
    const struct job *job = list->job;
    uint32_t count = feasibility_ways(list->hardware, job, ways);
    bool timed = job->network.family == NETWORK_PROFILE;
    for (uint32_t i = 0; i < count; i++) add_fit(list, &ways[i], job->microbatch);
    uint64_t most = 1;
    while (2 * most <= max_u64(MICROBATCH_MOST, job->microbatch)) most *= 2;
    for (uint64_t m = timed ? 0 : most; m > 0; m /= 2) { /* the smallest need comes last */
        if (m == job->microbatch || job_samples(job) % m != 0) continue;
        for (uint32_t i = 0; i < count; i++)
            if (!parallel_is_set(&ways[i].parallel)) add_fit(list, &ways[i], m);
    }
}

static void add_as_given(struct what_if_ways_list *list)
{
    struct what_if_way *way = &list->ways[list->count++];
    *way = (struct what_if_way){.fit = {.devices = list->hardware->device_count, .parallel = list->job->parallel},
                                .microbatch = list->job->microbatch,
                                .microbatches = list->job->microbatches};
    name_way(list->job, way);
}

uint32_t what_if_ways(const struct hardware *hardware, const struct job *job, struct what_if_way out[WHAT_IF_WAYS_MAX])
{
    struct what_if_ways_list list = {.hardware = hardware, .job = job, .ways = out};
    if (parallel_is_set(&job->parallel)) {
        add_as_given(&list);
        return list.count;
    }
    add_listed(&list);
    if (hardware->device_count == 1 && job_samples(job) == job->microbatch && job->microbatch == 1) return list.count;
    add_grid(&list, hardware->device_count);
    if (hardware->host_nodes > 1) add_grid(&list, hardware->node_devices);
    return list.count;
}
