/*
 * Two dynamic programs over one table: cell (b, i) has b blocks that cover the layers from i on. The first finds the
 * heaviest block's least computation; the second the fewest bytes sent by cuts whose blocks compute no more.
 *
 *     layers of 3 1 1 3 s, sending 9 5 9, two blocks:  3 1 | 1 3  sends 5, the heaviest 4 s;  3 | 1 1 3  has one of 5 s
 */
#include "planner/parallel/pipeline/stage_blocks.h"

#include <assert.h>
#include <math.h>

#include "base/try.h"

struct stage_blocks_cell {
    double value;
    uint32_t next; /* the first layer after the block */
};

struct joiner {
    const struct stage_chain *chain;
    uint32_t layers, most;
    double *seconds;                 /* of the layers before the index, layers + 1 entries */
    struct stage_blocks_cell *cells; /* [b - 1][i] */
};

static struct stage_blocks_cell *cell_of(const struct joiner *j, uint32_t blocks, uint32_t layer)
{
    return &j->cells[(size_t)(blocks - 1) * j->layers + layer];
}

/* Returns the value of a block [layer, next) and the best blocks after it: the heaviest's seconds or, if `limit_s` is
 * finite, the bytes sent (INFINITY if the block takes longer). */
static double with_block(const struct joiner *j, uint32_t blocks, uint32_t layer, uint32_t next, double limit_s)
{
    double own_s = j->seconds[next] - j->seconds[layer];
    double behind = blocks > 1 ? cell_of(j, blocks - 1, next)->value : 0;
    if (isinf(limit_s)) return fmax(own_s, behind);
    if (own_s > limit_s) return INFINITY;
    return behind + (blocks > 1 ? (double)j->chain->layers[next - 1].cut_bytes : 0);
}

static void fill(const struct joiner *j, double limit_s)
{
    for (uint32_t blocks = 1; blocks <= j->most; blocks++)
        for (uint32_t i = 0; i < j->layers; i++) {
            struct stage_blocks_cell *cell = cell_of(j, blocks, i);
            uint32_t end = j->layers - (blocks - 1); /* a layer for each later block */
            *cell = (struct stage_blocks_cell){INFINITY, 0};
            for (uint32_t next = blocks == 1 ? j->layers : i + 1; next <= end; next++) {
                double value = with_block(j, blocks, i, next, limit_s);
                if (value < cell->value) *cell = (struct stage_blocks_cell){value, next};
            }
        }
}

static struct stage_layer joined(const struct stage_chain *chain, uint32_t first, uint32_t next)
{
    struct stage_layer block = chain->layers[first];
    for (uint32_t l = first + 1; l < next; l++) {
        const struct stage_layer *layer = &chain->layers[l];
        block.forward_s += layer->forward_s;
        block.backward_s += layer->backward_s;
        block.weight_bytes += layer->weight_bytes;
        block.held_bytes += layer->held_bytes;
        block.kept_bytes += layer->kept_bytes;
        block.cut_bytes = layer->cut_bytes;
    }
    return block;
}

static enum status prepare(struct joiner *j, struct arena *scratch, struct error *err)
{
    TRY(ARENA_NEW(scratch, j->layers + 1u, j->seconds, err));
    TRY(ARENA_NEW(scratch, (size_t)j->layers * j->most, j->cells, err));
    j->seconds[0] = 0;
    for (uint32_t l = 0; l < j->layers; l++)
        j->seconds[l + 1] = j->seconds[l] + j->chain->layers[l].forward_s + j->chain->layers[l].backward_s;
    return STATUS_OK;
}

enum status stage_blocks_join(struct arena *arena, const struct stage_chain *chain, uint32_t most,
                              struct stage_chain *out, struct error *err)
{
    struct arena scratch = {0};
    struct joiner j = {.chain = chain, .layers = chain->count, .most = most};
    struct stage_layer *blocks;
    assert(most > 0);
    if (chain->count <= most) {
        *out = *chain;
        return STATUS_OK;
    }
    enum status status = prepare(&j, &scratch, err);
    if (!status) status = ARENA_NEW(arena, most, blocks, err);
    if (!status) {
        fill(&j, INFINITY);
        fill(&j, cell_of(&j, most, 0)->value);
        *out = (struct stage_chain){chain->name, blocks, most};
        for (uint32_t b = 0, i = 0; b < most; b++) {
            uint32_t next = cell_of(&j, most - b, i)->next;
            out->layers[b] = joined(chain, i, next);
            i = next;
        }
    }
    arena_release(&scratch);
    return status;
}
