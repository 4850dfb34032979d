#include "planner/capacity/feasibility_largest.h"

#include <assert.h>

#include "base/try.h"
#include "models/job/job.h"

static_assert(FEASIBILITY_BLOCKS_MOST <= NETWORK_LAYERS_MAX - 2,
              "a network has room for FEASIBILITY_BLOCKS_MOST blocks");

struct job feasibility_job_of_blocks(const struct job *job, uint64_t blocks)
{
    struct job own = *job;
    own.network.layer_count = own.network.layer_count - own.network.blocks + blocks;
    if (own.network.encoder_blocks > 0) /* encoder blocks in proportion, or all but one */
        own.network.encoder_blocks = blocks * own.network.encoder_blocks / own.network.blocks;
    own.network.blocks = blocks;
    return own;
}

/* Returns the way with no more chunks than blocks in a stage. */
static struct feasibility_way way_of_blocks(const struct feasibility_way *way, uint64_t blocks)
{
    struct feasibility_way own = *way;
    struct parallel *p = &own.parallel;
    if (!parallel_is_set(p) || parallel_chunks(p) <= blocks) return own;
    p->chunks = (uint32_t)(blocks / p->pipeline);
    if (p->chunks == 0) p->chunks = 1;
    return own;
}

static enum status ask(const struct hardware *hardware, const struct job *job, const struct feasibility_way *way,
                       uint64_t blocks, enum feasibility_verdict *out, struct error *err)
{
    struct feasibility fit;
    const struct job own = feasibility_job_of_blocks(job, blocks);
    const struct feasibility_way as = way_of_blocks(way, blocks);
    TRY(feasibility_find(hardware, &own, &as, &fit, err));
    *out = fit.verdict;
    return STATUS_OK;
}

enum status feasibility_find_largest(const struct hardware *hardware, const struct job *job,
                                     const struct feasibility_way *way, struct feasibility_largest *out,
                                     struct error *err)
{
    uint64_t fits = 0, fails = (uint64_t)FEASIBILITY_BLOCKS_MOST + 1, next = job->network.blocks;
    enum feasibility_verdict verdict, one_more = FEASIBILITY_YES;
    if (job->network.family == NETWORK_PROFILE)
        return error_set(err, STATUS_BAD_INPUT, "'%s' is known by measurement only and has no blocks to add",
                         job->network.name);
    if (job->network.trained)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' has frozen tensors, and the largest network is searched for without "
                         "(expected no '--lora-rank')",
                         job->network.name);
    while (fails - fits > 1) {
        TRY(ask(hardware, job, way, next, &verdict, err));
        if (verdict == FEASIBILITY_YES) {
            fits = next;
        } else {
            fails = next;
            one_more = verdict;
        }
        bool open = fails > FEASIBILITY_BLOCKS_MOST; /* no size has failed yet */
        next = open && fits <= FEASIBILITY_BLOCKS_MOST / 2 ? 2 * fits : fits + (fails - fits) / 2;
    }
    *out = (struct feasibility_largest){.blocks = fits, .one_more = one_more};
    if (fits > 0) {
        const struct job largest = feasibility_job_of_blocks(job, fits);
        out->parameters = network_parameters(&largest.network);
    }
    return STATUS_OK;
}
