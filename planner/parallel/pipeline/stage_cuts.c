/* Cell (s, i) has the slowest of the stages from s on, which cover the layers from i on, and the end of stage s. */
#include "planner/parallel/pipeline/stage_cuts.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/extreme.h"
#include "base/text/quantity.h"
#include "base/try.h"

struct stage_cuts_cell {
    double slowest_s;
    uint32_t end; /* the layer after stage s */
};

struct stage_cuts_cutter {
    const struct stage_chain *chain;
    const struct stage_cuts_request *request;
    struct stage_cuts_cell *cells; /* [s][i], i up to the number of layers */
};

struct stage_cuts_sums {
    double seconds, weight_bytes;
    uint64_t held_bytes, kept_bytes;
};

static struct stage_cuts_cell *cell_of(const struct stage_cuts_cutter *c, uint32_t s, uint32_t i)
{
    return &c->cells[(size_t)s * (c->chain->count + 1) + i];
}

static void add_layer(const struct stage_cuts_cutter *c, uint32_t s, uint32_t l, struct stage_cuts_sums *sums)
{
    const struct stage_layer *layer = &c->chain->layers[l];
    const struct stage_layer *own = c->request->chain_of_stage ? &c->request->chain_of_stage[s]->layers[l] : layer;
    sums->seconds += own->forward_s + own->backward_s;
    sums->weight_bytes += (double)layer->weight_bytes;
    sums->held_bytes += layer->held_bytes;
    sums->kept_bytes += layer->kept_bytes;
}

static uint64_t depth_of(const struct stage_cuts_request *request, uint32_t s)
{
    uint64_t workers = 0;
    for (uint32_t t = s; t < request->stages; t++) workers += request->replicas[t];
    return (workers + request->replicas[s] - 1) / request->replicas[s];
}

static bool fits(const struct stage_cuts_request *request, uint32_t s, uint64_t depth,
                 const struct stage_cuts_sums *sums)
{
    uint64_t memory_bytes = request->memory_of_stage ? request->memory_of_stage[s] : request->memory_bytes;
    if (memory_bytes == 0) return true;
    return sums->held_bytes <= memory_bytes &&
           (sums->kept_bytes == 0 || depth <= (memory_bytes - sums->held_bytes) / sums->kept_bytes);
}

static double stage_s(const struct stage_cuts_request *request, uint32_t s, const struct stage_cuts_sums *sums)
{
    uint32_t replicas = request->replicas[s];
    return fmax(sums->seconds, 2.0 * (replicas - 1) * sums->weight_bytes / request->bytes_per_s) / replicas;
}

/* Fills in from the last stage to the first. A stage leaves at least one layer to each later stage. */
static void fill(struct stage_cuts_cutter *c)
{
    const struct stage_cuts_request *request = c->request;
    uint32_t n = c->chain->count;
    for (uint32_t s = request->stages; s-- > 0;) {
        bool last = s + 1 == request->stages;
        uint64_t depth = depth_of(request, s);
        for (uint32_t i = 0; i < n; i++) {
            struct stage_cuts_cell *cell = cell_of(c, s, i);
            struct stage_cuts_sums sums = {0};
            *cell = (struct stage_cuts_cell){INFINITY, n};
            for (uint32_t end = i + 1; end <= n; end++) {
                add_layer(c, s, end - 1, &sums);
                if (!fits(request, s, depth, &sums)) break;
                if (last != (end == n)) continue;
                double slowest_s = stage_s(request, s, &sums);
                if (!last) {
                    double sent_s = 2.0 * (double)c->chain->layers[end - 1].cut_bytes / request->bytes_per_s;
                    slowest_s = fmax(fmax(slowest_s, sent_s), cell_of(c, s + 1, end)->slowest_s);
                }
                if (slowest_s < cell->slowest_s) *cell = (struct stage_cuts_cell){slowest_s, end};
            }
        }
        *cell_of(c, s, n) = (struct stage_cuts_cell){INFINITY, n};
    }
}

static enum status nothing_fits(const struct stage_cuts_cutter *c, struct error *err)
{
    const struct stage_cuts_request *request = c->request;
    uint64_t memory_bytes = request->memory_bytes;
    char have[QUANTITY_TEXT_BYTES];
    if (c->chain->count < request->stages)
        return error_set(err, STATUS_INFEASIBLE, "'%s' has %" PRIu32 " layers for %" PRIu32 " stages", c->chain->name,
                         c->chain->count, request->stages);
    for (uint32_t s = 0; request->memory_of_stage && s < request->stages; s++)
        memory_bytes = max_u64(s > 0 ? memory_bytes : 0, request->memory_of_stage[s]);
    return error_set(err, STATUS_INFEASIBLE, "no cut of '%s' into %" PRIu32 " stages fits workers with %s %s",
                     c->chain->name, request->stages, quantity_text((double)memory_bytes, DIMENSION_BYTES, have),
                     request->memory_of_stage ? "at most" : "each");
}

static enum status find(struct stage_cuts_cutter *c, struct arena *arena, struct arena *scratch,
                        struct stage_partition *out, struct error *err)
{
    const struct stage_cuts_request *request = c->request;
    uint32_t n = c->chain->count;
    TRY(ARENA_NEW(scratch, (size_t)request->stages * (n + 1), c->cells, err));
    fill(c);
    if (isinf(cell_of(c, 0, 0)->slowest_s)) return nothing_fits(c, err);
    struct stage_partition found = {.count = request->stages, .interval_s = cell_of(c, 0, 0)->slowest_s};
    TRY(ARENA_NEW(arena, request->stages, found.stages, err));
    for (uint32_t s = 0, i = 0; s < request->stages; s++) {
        uint32_t end = cell_of(c, s, i)->end;
        found.stages[s] = (struct stage){i, end - i, request->replicas[s]};
        found.workers += request->replicas[s];
        i = end;
    }
    struct stage_cuts_sums all = {0};
    for (uint32_t l = 0; l < n; l++) add_layer(c, 0, l, &all);
    found.data_parallel_s = fmax(all.seconds, 2.0 * (found.workers - 1) * all.weight_bytes / request->bytes_per_s) /
                            found.workers;
    *out = found;
    return STATUS_OK;
}

enum status stage_cuts_find(struct arena *arena, const struct stage_chain *chain,
                            const struct stage_cuts_request *request, struct stage_partition *out, struct error *err)
{
    struct arena scratch = {0};
    struct stage_cuts_cutter c = {.chain = chain, .request = request};
    assert(request->stages > 0 && request->bytes_per_s > 0);
    enum status status = find(&c, arena, &scratch, out, err);
    arena_release(&scratch);
    return status;
}
