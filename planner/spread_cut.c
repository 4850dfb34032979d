/*
 * planner/stage_partition.h's balanced programme, with a worker for each run. Its layers are what runs are made of:
 * blocks, the embedding with the first of them and the head with the last, or layers of a profile. Memory counts with
 * 1F1B, whose s-th stage from the end keeps s microbatches; with other schedules places are refused later where they
 * do not suffice (planner/spread_places.h).
 */
#include "planner/spread_cut.h"

#include "models/try.h"
#include "planner/stage_partition.h"

static void join(struct stage_layer *into, const struct stage_layer *layer)
{
    into->forward_s += layer->forward_s;
    into->backward_s += layer->backward_s;
    into->held_bytes += layer->held_bytes;
    into->kept_bytes += layer->kept_bytes;
}

/* Blocks and what goes with them. */
static void join_ends(struct stage_chain *chain)
{
    join(&chain->layers[1], &chain->layers[0]);
    join(&chain->layers[chain->count - 2], &chain->layers[chain->count - 1]);
    chain->layers++;
    chain->count -= 2;
}

static enum status choose(struct arena *arena, const struct hardware *hardware, struct job *job, struct error *err)
{
    struct parallel *p = &job->parallel;
    struct stage_chain chain;
    struct stage_partition found;
    struct stage_request request = {.method = STAGE_BALANCED, .levels = {{parallel_runs(p), 1}}, .level_count = 1,
                                    .stages = parallel_runs(p), .microbatches = 1};
    if (p->schedule == PIPELINE_1F1B && p->chunks == 1 && p->first_device < hardware->device_count)
        request.memory_bytes = hardware->devices[p->first_device].memory_bytes;
    TRY(stage_chain_of_job(arena, job, hardware, &chain, err));
    if (job->network.family != NETWORK_PROFILE) join_ends(&chain);
    TRY(stage_partition_find(arena, &chain, &request, &found, err));
    p->cuts = found.count;
    for (uint32_t r = 0; r < found.count; r++) p->cut_lengths[r] = found.stages[r].count;
    return STATUS_OK;
}

enum status spread_cut_choose(const struct hardware *hardware, struct job *job, struct error *err)
{
    struct arena arena = {0};
    enum status status = choose(&arena, hardware, job, err);
    arena_release(&arena);
    return status;
}
