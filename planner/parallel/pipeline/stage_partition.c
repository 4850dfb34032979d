/*
 * PipeDream: cell (i, j, m) of a level has the value, and the last stage's first layer and number of components. A
 * stage of a level is a solution of the level below, so the answer is read from the top level down:
 *
 *     level 2, 4 servers      layers 0..30 on 3 of them      | 31..40 on 1
 *     level 1, 4 workers      0..30 on 4                     | 31..37 on 3, 38..40 on 1
 *     flat                    0..30 on 12                    | 31..37 on 3 | 38..40 on 1        "12-3-1"
 *
 * Balanced: cell (s, i, d) has the slowest of s stages that cover the layers from i on with d workers. The table starts
 * at the last stage because the d workers from a stage on tell the minibatches that each of its r workers keeps,
 * ceil(d / r). If devices differ, the number of stages is given, so the s-th stage from the end is known. Of many cuts
 * with equally slow slowest stages, the least sum of squares wins.
 */
#include "planner/parallel/pipeline/stage_partition.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"
#include "base/text/quantity.h"
#include "base/try.h"

const char *const stage_method_names[STAGE_METHOD_COUNT] = {
    [STAGE_PIPEDREAM] = "pipedream",
    [STAGE_PIPEDREAM_SUM] = "pipedream-sum",
    [STAGE_BALANCED] = "balanced",
};

struct stage_partition_cell {
    double value;
    uint32_t split, part; /* the last stage: its first layer, its components (workers) */
};

struct stage_partition_finder {
    const struct stage_chain *chain;
    const struct stage_request *request;
    uint32_t layers, workers;
    double *seconds;   /* of the layers before the index, layers + 1 entries; likewise below */
    double *seconds_of_stage; /* likewise, stage by stage; NULL: stages have equal devices */
    uint64_t *weights, *held, *kept;
    struct stage_partition_cell *levels[STAGE_LEVELS_MAX]; /* [i][j][m - 1]; of the highest level only i = 0 */
    struct stage *stages;                                  /* from the last stage on */
    uint32_t stage_count;
};

static double seconds_of(const struct stage_partition_finder *f, uint32_t i, uint32_t j)
{
    return f->seconds[j + 1] - f->seconds[i];
}

/* --- PipeDream ------------------------------------------------------------------------------ */

static struct stage_partition_cell *cell_of(const struct stage_partition_finder *f, uint32_t level, uint32_t i,
                                            uint32_t j, uint32_t m)
{
    return &f->levels[level][((size_t)i * f->layers + j) * f->request->levels[level].components + m - 1];
}

/* Returns A of the level below with all its components: the time of one component. */
static double inside_s(const struct stage_partition_finder *f, uint32_t level, uint32_t i, uint32_t j)
{
    if (level == 0) return seconds_of(f, i, j);
    return cell_of(f, level - 1, i, j, f->request->levels[level - 1].components)->value;
}

static double replicated_s(const struct stage_partition_finder *f, uint32_t level, double one_s, uint32_t i, uint32_t j,
                           uint32_t m)
{
    double weights_s = (double)(f->weights[j + 1] - f->weights[i]) / f->request->levels[level].bytes_per_s;
    if (!(seconds_of(f, i, j) > 0) && f->seconds[f->layers] > 0) return INFINITY;
    if (f->request->method == STAGE_PIPEDREAM_SUM) return (one_s + 4.0 * (m - 1) / m * weights_s) / m;
    return fmax(one_s, 2.0 * (m - 1) * weights_s) / m;
}

static double sent_s(const struct stage_partition_finder *f, uint32_t level, uint32_t layer)
{
    if (f->request->method == STAGE_PIPEDREAM_SUM) return 0;
    return 2.0 * (double)f->chain->layers[layer].cut_bytes / f->request->levels[level].bytes_per_s;
}

/* Returns the number of first layers whose ranges a level needs: all, or one where no level above asks for others. */
static uint32_t begins_of(const struct stage_partition_finder *f, uint32_t level)
{
    return level + 1 == f->request->level_count ? 1 : f->layers;
}

/* Fills short ranges before long ones, because a range needs both of its parts. */
static void fill_level(struct stage_partition_finder *f, uint32_t level)
{
    uint32_t components = f->request->levels[level].components, begins = begins_of(f, level);
    for (uint32_t length = 1; length <= f->layers; length++)
        for (uint32_t i = 0; i < begins && i + length <= f->layers; i++) {
            uint32_t j = i + length - 1;
            double one_s = inside_s(f, level, i, j);
            for (uint32_t m = 1; m <= components; m++)
                *cell_of(f, level, i, j, m) = (struct stage_partition_cell){replicated_s(f, level, one_s, i, j, m), i,
                                                                            m};
            for (uint32_t split = i + 1; split <= j; split++) {
                double send_s = sent_s(f, level, split - 1), last_s = inside_s(f, level, split, j);
                for (uint32_t part = 1; part < components; part++) {
                    double floor_s = fmax(send_s, replicated_s(f, level, last_s, split, j, part));
                    for (uint32_t m = part + 1; m <= components; m++) {
                        struct stage_partition_cell *cell = cell_of(f, level, i, j, m);
                        double value = fmax(cell_of(f, level, i, split - 1, m - part)->value, floor_s);
                        if (value < cell->value) *cell = (struct stage_partition_cell){value, split, part};
                    }
                }
            }
        }
}

/* Lists the stages of a solution from the end. Each is replicated `times` times by the levels above. */
static void read_off(struct stage_partition_finder *f, uint32_t level, uint32_t i, uint32_t j, uint32_t m,
                     uint32_t times)
{
    for (bool first = false; !first;) {
        const struct stage_partition_cell *cell = cell_of(f, level, i, j, m);
        first = cell->split == i;
        if (level == 0)
            f->stages[f->stage_count++] = (struct stage){cell->split, j - cell->split + 1, cell->part * times};
        else
            read_off(f, level - 1, cell->split, j, f->request->levels[level - 1].components, cell->part * times);
        if (first) return;
        j = cell->split - 1;
        m -= cell->part;
    }
}

static double data_parallel_s(const struct stage_partition_finder *f)
{
    double value = seconds_of(f, 0, f->layers - 1);
    for (uint32_t level = 0; level < f->request->level_count; level++)
        value = replicated_s(f, level, value, 0, f->layers - 1, f->request->levels[level].components);
    return value;
}

static enum status find_pipedream(struct stage_partition_finder *f, struct arena *scratch, struct stage_partition *out,
                                  struct error *err)
{
    uint32_t top = f->request->level_count - 1;
    for (uint32_t level = 0; level <= top; level++) {
        size_t ranges = (size_t)f->layers * begins_of(f, level);
        TRY(ARENA_NEW(scratch, ranges * f->request->levels[level].components, f->levels[level], err));
        fill_level(f, level);
    }
    read_off(f, top, 0, f->layers - 1, f->request->levels[top].components, 1);
    out->interval_s = cell_of(f, top, 0, f->layers - 1, f->request->levels[top].components)->value;
    out->data_parallel_s = data_parallel_s(f);
    return STATUS_OK;
}

/* --- balanced ------------------------------------------------------------------------------- */

/* Returns the index of the s-th stage from the end. */
static uint32_t place_of(const struct stage_partition_finder *f, uint32_t s)
{
    assert(s <= f->request->stages);
    return f->request->stages - s;
}

/* Returns the minibatches for which a worker of the s-th stage from the end has memory, with layers i..j; capped. */
static uint32_t room_for(const struct stage_partition_finder *f, uint32_t i, uint32_t j, uint32_t s)
{
    const struct stage_request *request = f->request;
    uint64_t held = f->held[j + 1] - f->held[i], kept = f->kept[j + 1] - f->kept[i];
    uint64_t memory = request->memory_of_stage ? request->memory_of_stage[place_of(f, s)] : request->memory_bytes;
    if (memory == 0) return UINT32_MAX;
    if (held > memory) return 0;
    return kept == 0 ? UINT32_MAX : (uint32_t)min_u64((memory - held) / kept, UINT32_MAX);
}

static double stage_s(const struct stage_partition_finder *f, uint32_t i, uint32_t j, uint32_t s)
{
    if (!f->seconds_of_stage) return seconds_of(f, i, j);
    const double *seconds = f->seconds_of_stage + (size_t)place_of(f, s) * (f->layers + 1);
    return seconds[j + 1] - seconds[i];
}

/* Returns the value of a stage and the later stages: the slowest or, if `limit_s` is finite, the sum of squares. */
static double join_stages(double one_s, double behind, double limit_s)
{
    if (isinf(limit_s)) return fmax(one_s, behind);
    return one_s <= limit_s ? one_s * one_s + behind : INFINITY;
}

/* Fills in s stages from each layer on; `behind` has s - 1 stages and is NULL if s is 1. */
static void fill_stages(const struct stage_partition_finder *f, uint32_t s, double limit_s,
                        const struct stage_partition_cell *behind, struct stage_partition_cell *out)
{
    uint32_t n = f->layers, width = f->workers + 1;
    uint32_t in_front = f->request->stages > 0 ? place_of(f, s) : 0; /* earlier stages, each with at least one worker */
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t d = 0; d < width; d++) out[(size_t)i * width + d] = (struct stage_partition_cell){INFINITY, 0, 0};
        for (uint32_t next = i + 1; next <= n; next++) {
            double one_s = stage_s(f, i, next - 1, s);
            uint32_t room = room_for(f, i, next - 1, s);
            if (room == 0) break;
            if ((next == n) != !behind) continue;
            for (uint32_t d = s; d + in_front <= f->workers; d++)
                for (uint32_t r = behind ? 1 : d; r + s - 1 <= d; r++) {
                    if (d > (uint64_t)room * r) continue;
                    struct stage_partition_cell *cell = &out[(size_t)i * width + d];
                    double rest = behind ? behind[(size_t)next * width + d - r].value : 0;
                    double value = join_stages(one_s / r, rest, limit_s);
                    if (value < cell->value) *cell = (struct stage_partition_cell){value, next, r};
                }
        }
    }
}

static enum status nothing_fits(const struct stage_partition_finder *f, struct error *err)
{
    uint32_t worst = 0;
    uint64_t most = 0;
    char need[QUANTITY_TEXT_BYTES], have[QUANTITY_TEXT_BYTES];
    uint64_t memory_bytes = f->request->memory_bytes;
    for (uint32_t s = 0; f->request->memory_of_stage && s < f->request->stages; s++)
        memory_bytes = s == 0 ? f->request->memory_of_stage[0] : max_u64(memory_bytes, f->request->memory_of_stage[s]);
    for (uint32_t i = 0; i < f->layers; i++) {
        uint64_t bytes = f->chain->layers[i].held_bytes + f->chain->layers[i].kept_bytes;
        if (bytes > most) {
            most = bytes;
            worst = i;
        }
    }
    return error_set(err, STATUS_INFEASIBLE,
                     "'%s' fits no %" PRIu32 " workers with %s %s (layer %" PRIu32 ", the largest, needs %s)",
                     f->chain->name, f->workers,
                     quantity_text((double)memory_bytes, DIMENSION_BYTES, have),
                     f->request->memory_of_stage ? "at most" : "each", worst,
                     quantity_text((double)most, DIMENSION_BYTES, need));
}

/* Tables for 1, 2, ... stages. */
struct balanced {
    struct stage_partition_cell *tables;
    size_t size;   /* of each */
    uint32_t most; /* stages */
};

static struct stage_partition_cell *table_of(const struct balanced *b, uint32_t s)
{
    return s == 0 ? NULL : b->tables + b->size * (s - 1);
}

static enum status fill_balanced(const struct stage_partition_finder *f, struct arena *scratch, struct balanced *b,
                                 struct error *err)
{
    b->most = min_u32(f->workers, f->layers);
    if (f->request->stages > 0) b->most = min_u32(b->most, f->request->stages);
    b->size = (size_t)f->layers * (f->workers + 1);
    TRY(ARENA_NEW(scratch, b->size * b->most, b->tables, err));
    for (uint32_t s = 1; s <= b->most; s++) fill_stages(f, s, INFINITY, table_of(b, s - 1), table_of(b, s));
    return STATUS_OK;
}

static double slowest_s(const struct stage_partition_finder *f, const struct balanced *b, uint32_t s)
{
    return table_of(b, s)[f->workers].value;
}

static void read_balanced(struct stage_partition_finder *f, const struct balanced *b, uint32_t stages)
{
    for (uint32_t s = stages, i = 0, d = f->workers; s > 0; s--) {
        const struct stage_partition_cell *cell = &table_of(b, s)[(size_t)i * (f->workers + 1) + d];
        f->stages[s - 1] = (struct stage){i, cell->split - i, cell->part};
        i = cell->split;
        d -= cell->part;
    }
    f->stage_count = stages;
}

static enum status find_balanced(struct stage_partition_finder *f, struct arena *scratch, struct stage_partition *out,
                                 struct error *err)
{
    uint32_t wanted = f->request->stages, best = 0;
    double best_s = INFINITY;
    struct balanced b;
    TRY(fill_balanced(f, scratch, &b, err));
    for (uint32_t s = 1; s <= b.most; s++) {
        double end_s = (double)(f->request->microbatches + s - 1) * slowest_s(f, &b, s);
        if ((wanted > 0 && wanted != s) || !(end_s < best_s)) continue;
        best_s = end_s;
        best = s;
    }
    if (best == 0) return nothing_fits(f, err);
    out->interval_s = slowest_s(f, &b, best);
    out->data_parallel_s = seconds_of(f, 0, f->layers - 1) / f->workers;
    for (uint32_t s = 1; f->seconds_of_stage && s <= best; s++)
        fill_stages(f, s, out->interval_s, table_of(&b, s - 1), table_of(&b, s));
    read_balanced(f, &b, best);
    return STATUS_OK;
}

/* --- both ----------------------------------------------------------------------------------- */

static enum status check_size(const struct stage_partition_finder *f, struct error *err)
{
    double n = f->layers, steps = 0;
    for (uint32_t k = 0; k < f->request->level_count; k++)
        steps += n * n * (begins_of(f, k) > 1 ? n / 3 : 1) * pow(f->request->levels[k].components, 2) / 4;
    if (f->request->method == STAGE_BALANCED)
        steps = n * n * pow(f->workers, 2) * fmin(f->workers, n) / 4;
    if (f->workers <= STAGE_WORKERS_MAX && steps <= STAGE_STEPS_MAX) return STATUS_OK;
    return error_set(err, STATUS_LIMIT, "%" PRIu32 " layers on %" PRIu32 " workers are too many to divide (limit is "
                     "%.0e steps, these are %.1e; more levels take fewer)", f->layers, f->workers, STAGE_STEPS_MAX,
                     steps);
}

static enum status add_up_stages(struct stage_partition_finder *f, struct arena *scratch, struct error *err)
{
    TRY(ARENA_NEW(scratch, (size_t)f->request->stages * (f->layers + 1u), f->seconds_of_stage, err));
    double *seconds = f->seconds_of_stage;
    for (uint32_t s = 0; s < f->request->stages; s++, seconds += f->layers + 1) {
        assert(f->request->chain_of_stage[s]->count == f->layers);
        for (uint32_t i = 0; i < f->layers; i++) {
            const struct stage_layer *layer = &f->request->chain_of_stage[s]->layers[i];
            seconds[i + 1] = seconds[i] + layer->forward_s + layer->backward_s;
        }
    }
    return STATUS_OK;
}

static enum status add_up(struct stage_partition_finder *f, struct arena *scratch, struct error *err)
{
    size_t n = f->layers;
    TRY(ARENA_NEW(scratch, n + 1, f->seconds, err));
    TRY(ARENA_NEW(scratch, n + 1, f->weights, err));
    TRY(ARENA_NEW(scratch, n + 1, f->held, err));
    TRY(ARENA_NEW(scratch, n + 1, f->kept, err));
    for (size_t i = 0; i < n; i++) {
        const struct stage_layer *layer = &f->chain->layers[i];
        f->seconds[i + 1] = f->seconds[i] + layer->forward_s + layer->backward_s;
        f->weights[i + 1] = f->weights[i] + layer->weight_bytes;
        f->held[i + 1] = f->held[i] + layer->held_bytes;
        f->kept[i + 1] = f->kept[i] + layer->kept_bytes;
    }
    TRY(ARENA_NEW(scratch, n, f->stages, err));
    return f->request->chain_of_stage ? add_up_stages(f, scratch, err) : STATUS_OK;
}

static enum status begin(struct stage_partition_finder *f, struct arena *scratch, const struct stage_chain *chain,
                         const struct stage_request *request, struct error *err)
{
    assert(request->level_count > 0 && request->level_count <= STAGE_LEVELS_MAX);
    *f = (struct stage_partition_finder){.chain = chain, .request = request, .layers = chain->count, .workers = 1};
    for (uint32_t k = 0; k < request->level_count; k++) f->workers *= request->levels[k].components;
    TRY(check_size(f, err));
    return add_up(f, scratch, err);
}

/* Copies the stages, which were found from the end, in ascending order. */
static enum status hand_over(const struct stage_partition_finder *f, struct arena *arena, struct stage_partition *out,
                             struct error *err)
{
    TRY(ARENA_NEW(arena, f->stage_count, out->stages, err));
    out->workers = f->workers;
    out->count = f->stage_count;
    for (uint32_t s = 0; s < out->count; s++) out->stages[s] = f->stages[out->count - 1 - s];
    return STATUS_OK;
}

enum status stage_partition_find(struct arena *arena, const struct stage_chain *chain,
                                 const struct stage_request *request, struct stage_partition *out, struct error *err)
{
    struct arena scratch = {0};
    struct stage_partition_finder f;
    struct stage_partition found = {0};
    enum status status = begin(&f, &scratch, chain, request, err);
    if (!status)
        status = (request->method == STAGE_BALANCED ? find_balanced : find_pipedream)(&f, &scratch, &found, err);
    if (!status) status = hand_over(&f, arena, &found, err);
    if (!status) *out = found;
    arena_release(&scratch);
    return status;
}

enum status stage_partition_each(struct arena *arena, const struct stage_chain *chain,
                                 const struct stage_request *request, struct stage_partition *out, struct error *err)
{
    struct arena scratch = {0};
    struct stage_partition_finder f;
    struct balanced b;
    assert(request->method == STAGE_BALANCED && request->stages == 0);
    enum status status = begin(&f, &scratch, chain, request, err);
    if (!status) status = fill_balanced(&f, &scratch, &b, err);
    for (uint32_t s = 1; s <= f.workers && !status; s++) {
        struct stage_partition *own = &out[s - 1];
        *own = (struct stage_partition){0};
        if (s > b.most || isinf(slowest_s(&f, &b, s))) continue;
        own->interval_s = slowest_s(&f, &b, s);
        own->data_parallel_s = seconds_of(&f, 0, f.layers - 1) / f.workers;
        read_balanced(&f, &b, s);
        status = hand_over(&f, arena, own, err);
    }
    arena_release(&scratch);
    return status;
}

uint32_t stage_partition_depth(const struct stage_partition *partition)
{
    uint32_t replicas = partition->stages[0].replicas;
    return (partition->workers + replicas - 1) / replicas;
}

const char *stage_partition_text(const struct stage_partition *partition, char text[STAGE_TEXT_BYTES])
{
    size_t used = 0;
    bool straight = partition->count > 1;
    for (uint32_t s = 0; s < partition->count; s++) straight &= partition->stages[s].replicas == 1;
    if (straight) {
        snprintf(text, STAGE_TEXT_BYTES, "straight");
    } else if (partition->count == 1) {
        snprintf(text, STAGE_TEXT_BYTES, "%" PRIu32 " (data parallel)", partition->workers);
    } else {
        for (uint32_t s = 0; s < partition->count && used < STAGE_TEXT_BYTES; s++)
            used += (size_t)snprintf(text + used, STAGE_TEXT_BYTES - used, "%s%" PRIu32, s > 0 ? "-" : "",
                                     partition->stages[s].replicas);
    }
    return text;
}
