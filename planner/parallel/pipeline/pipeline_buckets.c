#include "planner/parallel/pipeline/pipeline_buckets.h"

#include <assert.h>

#include "base/try.h"

/* Makes the times of each stage: the passes over all its chunks, and the send of the last chunk. */
static enum status stage_times(struct arena *arena, const struct parallel *parallel,
                               const struct pipeline_times *chunks, struct pipeline_times **out, struct error *err)
{
    uint32_t buckets = parallel_buckets(parallel);
    TRY(ARENA_NEW(arena, parallel->pipeline, *out, err));
    for (uint32_t r = 0; r < parallel_chunks(parallel); r++) {
        struct pipeline_times *stage = &(*out)[r / buckets];
        for (uint32_t pass = 0; pass < PIPELINE_PASSES; pass++) stage->pass_s[pass] += chunks[r].pass_s[pass];
        stage->send_s = chunks[r].send_s;
    }
    return STATUS_OK;
}

/* Divides a pass over a stage into passes over its chunks. */
static void divide(const struct pipeline_step *whole, uint32_t buckets, const struct pipeline_times *chunks,
                   struct pipeline_step *out)
{
    double at_s = whole->start_s;
    for (uint32_t b = 0; b < buckets; b++) {
        uint32_t chunk = whole->chunk * buckets + (whole->pass == PIPELINE_FORWARD ? b : buckets - 1 - b);
        double end_s = b + 1 == buckets ? whole->end_s : at_s + chunks[chunk].pass_s[whole->pass];
        out[b] = (struct pipeline_step){whole->pass, chunk, whole->microbatch, at_s, end_s};
        at_s = end_s;
    }
}

enum status pipeline_buckets_order(struct arena *arena, const struct parallel *parallel, uint32_t microbatches,
                                   const struct pipeline_times *times, struct pipeline_order *out, struct error *err)
{
    struct arena scratch = {0};
    struct parallel whole = *parallel;
    struct pipeline_times *of_stage;
    struct pipeline_order stages;
    uint32_t buckets = parallel_buckets(parallel);
    struct pipeline_step *steps;
    assert(!pipeline_splits(parallel) && parallel->chunks == 1);
    whole.buckets = 1;
    enum status status = stage_times(&scratch, parallel, times, &of_stage, err);
    if (!status) status = pipeline_order(&scratch, &whole, microbatches, of_stage, &stages, err);
    if (!status && stages.count > PIPELINE_STEPS_MAX / buckets)
        status = error_set(err, STATUS_LIMIT, "too many passes of microbatches (limit is %d)", PIPELINE_STEPS_MAX);
    if (!status) status = ARENA_NEW(arena, stages.count * buckets, steps, err);
    if (!status) {
        *out = (struct pipeline_order){.steps = steps, .count = stages.count * buckets, .end_s = stages.end_s};
        for (uint64_t i = 0; i < stages.count; i++) divide(&stages.steps[i], buckets, times, &out->steps[i * buckets]);
    }
    arena_release(&scratch);
    return status;
}
