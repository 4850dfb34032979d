/*
 * The layers of the dynamic programs (planner/parallel/pipeline/stage_partition.h) are the units of chunks: blocks, the
 * first with the embedding and the last with the head, or layers of a profile.
 *
 * Balanced: a worker for each chunk. Memory counts with 1F1B, whose s-th stage from the end keeps s microbatches; with
 * other schedules planner/parallel/parallel_job_layout.h may later refuse the cut. If devices differ, each chunk has
 * its stage's times and memory: per layer the slowest device, and the least memory.
 *
 * PipeDream: the workers are all replicas, a tensor group counting as one, over the levels of the machine: a node's
 * devices and the nodes, if all nodes have equally many workers; else one level. Rates are rates of a single copy.
 * Stages are on consecutive devices, whatever levels divide them.
 *
 * If a job gives several stages' replicas, such as 15-1, both choose only the cuts
 * (planner/parallel/pipeline/stage_cuts.h): balanced by computation, PipeDream by its formula with all workers on one
 * level, the slowest that they are on.
 */
#include "planner/parallel/parallel_job_cut.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "planner/parallel/pipeline/stage_cuts.h"

static void join(struct stage_layer *into, const struct stage_layer *layer)
{
    into->forward_s += layer->forward_s;
    into->backward_s += layer->backward_s;
    into->held_bytes += layer->held_bytes;
    into->kept_bytes += layer->kept_bytes;
}

static void join_ends(struct stage_chain *chain)
{
    join(&chain->layers[1], &chain->layers[0]);
    join(&chain->layers[chain->count - 2], &chain->layers[chain->count - 1]);
    chain->layers++;
    chain->count -= 2;
}

enum status parallel_job_cut_chain(struct arena *arena, const struct job *job, const struct hardware *hardware,
                                   uint32_t device, struct stage_chain *out, struct error *err)
{
    TRY(stage_chain_of_job(arena, job, hardware, device, out, err));
    if (!network_is_listed(&job->network)) join_ends(out);
    return STATUS_OK;
}

/* --- stages that differ ----------------------------------------------------------------------- */

struct kinds {
    const struct hardware *hardware;
    const struct job *job;
    struct arena *arena;
    struct stage_chain *of_type; /* by device type; no layers: not made yet */
};

static enum status chain_on(struct kinds *k, uint32_t device, const struct stage_chain **out, struct error *err)
{
    struct stage_chain *chain = &k->of_type[k->hardware->devices[device].type];
    *out = chain;
    if (chain->count > 0) return STATUS_OK;
    return parallel_job_cut_chain(k->arena, k->job, k->hardware, device, chain, err);
}

static void slow_down(struct stage_chain *chain, const struct stage_chain *by)
{
    for (uint32_t l = 0; l < chain->count; l++) {
        struct stage_layer *layer = &chain->layers[l];
        layer->forward_s = max_s(layer->forward_s, by->layers[l].forward_s);
        layer->backward_s = max_s(layer->backward_s, by->layers[l].backward_s);
    }
}

static enum status enter_stage(struct kinds *k, uint32_t stage, const struct stage_chain **out, uint64_t *memory_bytes,
                               struct error *err)
{
    const struct parallel *p = &k->job->parallel;
    uint32_t size = p->tensor * parallel_replicas(p, stage);
    uint32_t first = p->first_device + p->tensor * (uint32_t)parallel_replicas_before(p, stage);
    struct stage_chain *slowest = NULL;
    TRY(chain_on(k, first, out, err));
    *memory_bytes = k->hardware->devices[first].memory_bytes;
    for (uint32_t d = first + 1; d < first + size; d++) {
        const struct stage_chain *other;
        struct stage_layer *layers;
        TRY(chain_on(k, d, &other, err));
        *memory_bytes = min_u64(*memory_bytes, k->hardware->devices[d].memory_bytes);
        if (other == *out) continue;
        if (!slowest) {
            TRY(ARENA_NEW(k->arena, 1, slowest, err));
            TRY(ARENA_NEW(k->arena, (*out)->count, layers, err));
            *slowest = **out;
            slowest->layers = memcpy(layers, (*out)->layers, (*out)->count * sizeof *slowest->layers);
            *out = slowest;
        }
        slow_down(slowest, other);
    }
    return STATUS_OK;
}

static bool differ(const struct hardware *hardware, uint32_t first, uint64_t end)
{
    for (uint32_t d = first + 1; d < end; d++)
        if (hardware->devices[d].type != hardware->devices[first].type ||
            hardware->devices[d].memory_bytes != hardware->devices[first].memory_bytes)
            return true;
    return false;
}

/* Gives each chunk its own times and memory. */
static enum status tell_apart(struct arena *arena, const struct hardware *hardware, const struct job *job,
                              struct stage_request *request, struct error *err)
{
    const struct parallel *p = &job->parallel;
    uint64_t end = p->first_device + parallel_devices(p);
    if (end > hardware->device_count || !differ(hardware, p->first_device, end)) return STATUS_OK;
    struct kinds k = {.hardware = hardware, .job = job, .arena = arena};
    uint32_t chunks = parallel_chunks(p);
    TRY(ARENA_NEW(arena, hardware->type_count, k.of_type, err));
    const struct stage_chain **chain_of_chunk;
    TRY(ARENA_NEW(arena, chunks, chain_of_chunk, err));
    uint64_t *memory_of_chunk;
    TRY(ARENA_NEW(arena, chunks, memory_of_chunk, err));
    for (uint32_t r = 0; r < chunks; r++)
        TRY(enter_stage(&k, parallel_place(p, r).stage, &chain_of_chunk[r], &memory_of_chunk[r], err));
    request->chain_of_stage = chain_of_chunk;
    if (request->memory_bytes > 0) request->memory_of_stage = memory_of_chunk;
    return STATUS_OK;
}

/* --- a machine's levels ----------------------------------------------------------------------- */

static uint32_t worker_count(const struct parallel *p)
{
    return (uint32_t)parallel_replicas_before(p, p->pipeline);
}

static enum status find_levels(struct arena *arena, const struct hardware *hardware, const struct job *job,
                               struct stage_request *request, struct error *err)
{
    const struct parallel *p = &job->parallel;
    uint32_t workers = worker_count(p), lacking[2], *devices;
    struct collective_finder finder;
    struct collective_group group;
    if (p->first_device + parallel_devices(p) > hardware->device_count)
        return error_set(err, STATUS_BAD_INPUT, "job '%s' runs on devices %" PRIu32 " to %" PRIu64
                         ", and machine '%s' has %" PRIu32, job->name, p->first_device,
                         p->first_device + parallel_devices(p) - 1, hardware->name, hardware->device_count);
    TRY(ARENA_NEW(arena, workers, devices, err));
    TRY(collective_finder_init(arena, hardware, &finder, err));
    for (uint32_t i = 0; i < workers; i++) devices[i] = p->first_device + i * p->tensor;
    if (!collective_groups_find(&finder, devices, workers, 1, &group, lacking))
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' needs a way from device %" PRIu32 " to device %" PRIu32
                         ", and machine '%s' has none: they are on different hosts (--p2p-rate joins them)",
                         job->name, lacking[0], lacking[1], hardware->name);
    uint32_t inner = group.inner.members, outer = group.outer.members;
    if (inner > 1 || outer <= 1) {
        double rate = inner > 1 ? cost_p2p_bandwidth(hardware, devices[0], devices[1]) : 1;
        request->levels[request->level_count++] = (struct stage_level){inner, rate};
    }
    if (outer > 1)
        request->levels[request->level_count++] =
            (struct stage_level){outer, cost_p2p_bandwidth(hardware, devices[0], devices[inner])};
    return STATUS_OK;
}

/* --- both ------------------------------------------------------------------------------------- */

static enum status apply_stages(struct job *job, const struct stage_partition *found, struct error *err)
{
    struct parallel *p = &job->parallel;
    char text[STAGE_TEXT_BYTES];
    if (found->count > PARALLEL_CUTS_MAX)
        return error_set(err, STATUS_LIMIT, "job '%s' has %" PRIu32 " stages (limit is %d)", job->name, found->count,
                         PARALLEL_CUTS_MAX);
    p->cuts = found->count;
    for (uint32_t r = 0; r < found->count; r++) p->cut_lengths[r] = found->stages[r].count;
    if (p->partition != PARALLEL_PIPEDREAM) return STATUS_OK;
    p->pipeline = p->replicated = found->count;
    for (uint32_t r = 0; r < found->count; r++) p->replicas[r] = found->stages[r].replicas;
    if (parallel_check(job, err) == STATUS_OK) return STATUS_OK;
    return error_add(err, "job '%s' divided as %s", job->name, stage_partition_text(found, text));
}

static double slowest_rate(const struct stage_request *request)
{
    double slowest = INFINITY;
    for (uint32_t k = 0; k < request->level_count; k++)
        if (request->levels[k].components > 1) slowest = fmin(slowest, request->levels[k].bytes_per_s);
    return slowest;
}

static enum status choose_cuts(struct arena *arena, const struct stage_chain *chain, const struct job *job,
                               const struct stage_request *like, struct stage_partition *out, struct error *err)
{
    const struct parallel *p = &job->parallel;
    const struct stage_cuts_request request = {
        .replicas = p->replicas, .stages = p->replicated, .memory_bytes = like->memory_bytes,
        .bytes_per_s = p->partition == PARALLEL_PIPEDREAM ? slowest_rate(like) : INFINITY,
        .chain_of_stage = like->chain_of_stage, .memory_of_stage = like->memory_of_stage};
    return stage_cuts_find(arena, chain, &request, out, err);
}

static enum status choose(struct arena *arena, const struct hardware *hardware, struct job *job, struct error *err)
{
    struct parallel *p = &job->parallel;
    struct stage_chain chain;
    struct stage_partition found;
    struct stage_request request = {.method = STAGE_BALANCED, .levels = {{parallel_chunks(p), 1}}, .level_count = 1,
                                    .stages = parallel_chunks(p), .microbatches = 1};
    if (p->partition == PARALLEL_PIPEDREAM) {
        request = (struct stage_request){.method = STAGE_PIPEDREAM, .microbatches = 1};
        TRY(find_levels(arena, hardware, job, &request, err));
    }
    uint32_t device = p->first_device < hardware->device_count ? p->first_device : 0; /* too large a number is
                                                                                         reported later */
    if (p->schedule == PIPELINE_1F1B && p->chunks == 1 && p->first_device < hardware->device_count)
        request.memory_bytes = hardware->devices[device].memory_bytes;
    TRY(parallel_job_cut_chain(arena, job, hardware, device, &chain, err));
    if (p->partition == PARALLEL_BALANCED) TRY(tell_apart(arena, hardware, job, &request, err));
    if (p->replicated > 1)
        TRY(choose_cuts(arena, &chain, job, &request, &found, err));
    else
        TRY(stage_partition_find(arena, &chain, &request, &found, err));
    return apply_stages(job, &found, err);
}

enum status parallel_job_cut_choose(const struct hardware *hardware, struct job *job, struct error *err)
{
    struct arena arena = {0};
    uint32_t buckets = job->parallel.buckets;
    job->parallel.buckets = 0; /* the cut replaces buckets */
    enum status status = choose(&arena, hardware, job, err);
    job->parallel.buckets = buckets;
    if (!status && buckets > 1 && parallel_check(job, err)) status = error_add(err, "job '%s'", job->name);
    arena_release(&arena);
    return status;
}
