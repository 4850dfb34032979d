/*
 * A tick is a millionth of the computation, so a hundred layers' rounding is less than a thousandth of it. A copy takes
 * models/cost/cost.h's time for its two pieces. The chain's rate is the link's, which no copy exceeds, so bounds by it
 * hold.
 */
#include "planner/swap/swap_chain.h"

#include <inttypes.h>
#include <math.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/pass_seconds.h"
#include "planner/plan_work.h"
#include "planner/spill/cut/partition.h"

static const double ticks_of_computation = 1e6;

/* --- sizes ----------------------------------------------------------------------------------- */

static uint64_t padded(uint64_t bytes) { return size_align(bytes, PARTITION_ARENA_ALIGNMENT); }

static bool is_last(const struct swap_job *j, uint32_t l) { return l + 1 == j->layer_count; }

/* Returns the bytes of a layer's input that stay for its backward pass. */
static uint64_t boundary_bytes(const struct swap_job *j, uint32_t l)
{
    return l < swap_lowest(j) ? 0 : j->layers[l].bytes.input_bytes;
}

static uint64_t saved_bytes(const struct swap_job *j, uint32_t l)
{
    return padded(boundary_bytes(j, l)) + padded(swap_kept_bytes(j, l));
}

/* Returns the other bytes while the layer runs: scratch, output, gradients on both sides, an input that does not
 * stay. */
static uint64_t passing_bytes(const struct swap_job *j, uint32_t l)
{
    const struct footprint *f = &j->layers[l].bytes;
    uint64_t kept = swap_kept_bytes(j, l), gradients = padded(f->input_bytes) + padded(f->output_bytes);
    if (is_last(j, l)) return padded(f->workspace_bytes[UNIT_LOSS][0]) + gradients;
    uint64_t forward = padded(f->workspace_bytes[UNIT_FORWARD][UNIT_KEEP]) + padded(f->output_bytes);
    uint64_t back = padded(f->workspace_bytes[UNIT_BACKWARD][UNIT_KEEP]) + gradients;
    uint64_t light = padded(f->workspace_bytes[UNIT_FORWARD][0]) + padded(f->output_bytes);
    uint64_t again = padded(f->workspace_bytes[UNIT_BACKWARD][0]) + gradients;
    bool embedding = l == 0 && footprint_has_embedding(j->job); /* an embedding keeps nothing */
    if (l < swap_lowest(j)) return padded(f->input_bytes) + (embedding ? forward : light);
    if (embedding || kept == 0) return max_u64(forward, back);
    uint64_t recomputed = max_u64(light, again) > kept ? max_u64(light, again) - kept : 0;
    return max_u64(max_u64(forward, back), recomputed);
}

static void measure_memory(struct swap_job *j)
{
    uint64_t table = footprint_has_table(j->job) ? padded(footprint_table_gradient_bytes(j->job)) : 0;
    uint64_t batches = 2 * padded(job_batch_bytes(j->job));
    for (uint32_t l = 0; l < j->layer_count; l++) {
        j->state_bytes += padded(j->layers[l].bytes.state_bytes);
        if (!is_last(j, l)) j->reserve_bytes = max_u64(j->reserve_bytes, passing_bytes(j, l));
    }
    j->fixed_bytes = j->state_bytes + table + batches + padded(sizeof(double));
}

/* --- durations ------------------------------------------------------------------------------- */

static double pass_s(const struct swap_job *j, uint32_t layer, enum plan_pass pass, uint32_t how)
{
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    uint32_t count = plan_work_items(j->job, layer, 1, pass, how, 0, 0, items);
    return cost_work_s(j->hardware, j->device, items, count, NULL);
}

static double copies_s(const struct swap_job *j, uint32_t l, enum copy_direction direction)
{
    const uint64_t pieces[] = {boundary_bytes(j, l), swap_kept_bytes(j, l)};
    double sum_s = 0;
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++)
        if (pieces[i] > 0) sum_s += cost_copy_s(j->hardware, j->device, direction, pieces[i]);
    return sum_s;
}

static void measure_layer(struct swap_job *j, uint32_t l)
{
    struct swap_layer *layer = &j->layers[l];
    if (is_last(j, l)) {
        layer->forward_s = pass_s(j, l, PLAN_FORWARD, 0);
        layer->backward_s = max_s(pass_s(j, l, PLAN_LOSS, 0) - layer->forward_s, 0);
    } else if (l < swap_lowest(j)) {
        layer->forward_s = pass_s(j, l, PLAN_FORWARD, 0);
    } else {
        layer->forward_s = pass_s(j, l, PLAN_FORWARD, UNIT_KEEP);
        layer->backward_s = pass_s(j, l, PLAN_BACKWARD, UNIT_KEEP);
        layer->again_s = max_s(pass_s(j, l, PLAN_BACKWARD, 0) - layer->backward_s, 0);
    }
    layer->out_s = copies_s(j, l, COPY_D2H);
    layer->in_s = copies_s(j, l, COPY_H2D);
    j->compute_s += layer->forward_s + layer->backward_s;
    j->load_s += cost_copy_s(j->hardware, j->device, COPY_H2D, layer->bytes.state_bytes);
    j->store_s += pass_seconds_copy(j->hardware, j->device, COPY_D2H, layer->bytes.trained_bytes);
}

/* --- the job --------------------------------------------------------------------------------- */

static enum status check_job(const struct job *job, struct error *err)
{
    const char *what = job_clips(job)             ? "clips gradients by their norm"
                       : job->evaluation.every > 0 ? "is evaluated on held-out data"
                                                   : NULL;
    if (what)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' %s, which plans with swapped activations do not (see --activations)",
                         job->name, what);
    if (job->network.layer_count <= CHAIN_LAYERS_MAX) return STATUS_OK;
    return error_set(err, STATUS_LIMIT, "job '%s' has too many layers to swap (limit is %d)", job->name,
                     CHAIN_LAYERS_MAX);
}

static enum status check_states(const struct swap_job *j, struct error *err)
{
    char states[QUANTITY_TEXT_BYTES], have[QUANTITY_TEXT_BYTES];
    if (j->fixed_bytes < j->capacity) return STATUS_OK;
    return error_set(err, STATUS_INFEASIBLE,
                     "the states of job '%s' take %s, and device %" PRIu32 " has %s (%" PRIu64
                     " bytes missing); swapping moves only activations",
                     j->job->name, quantity_text((double)j->fixed_bytes, DIMENSION_BYTES, states), j->device,
                     quantity_text((double)j->capacity, DIMENSION_BYTES, have), j->fixed_bytes - j->capacity);
}

enum status swap_job_make(const struct hardware *hardware, const struct job_set *jobs,
                          struct footprints *footprints, uint32_t index, uint32_t device,
                          struct swap_job *out, struct error *err)
{
    *out = (struct swap_job){.job = &jobs->jobs[index],
                             .hardware = hardware,
                             .index = index,
                             .device = device,
                             .capacity = hardware->devices[device].memory_bytes};
    TRY(check_job(out->job, err));
    out->layer_count = (uint32_t)out->job->network.layer_count;
    TRY(ARENA_NEW(&out->arena, out->layer_count, out->layers, err));
    for (uint32_t l = 0; l < out->layer_count; l++) {
        const struct footprint *f = footprint_of(footprints, index, l, 1);
        if (!f) return error_memory(err, "the table of shard sizes", 1);
        out->layers[l].bytes = *f;
    }
    for (uint32_t l = 0; l < out->layer_count; l++) measure_layer(out, l);
    measure_memory(out);
    out->tick_s = out->compute_s > 0 ? out->compute_s / ticks_of_computation : 1e-9;
    return check_states(out, err);
}

void swap_job_release(struct swap_job *job)
{
    arena_release(&job->arena);
    *job = (struct swap_job){0};
}

/* --- the chain ------------------------------------------------------------------------------- */

static int64_t ticks_of(const struct swap_job *j, double seconds)
{
    return (int64_t)ceil(seconds / j->tick_s);
}

static uint64_t rate_of(const struct swap_job *j, enum copy_direction direction)
{
    return (uint64_t)ceil(cost_copy_bandwidth(j->hardware, j->device, direction) * j->tick_s);
}

static uint64_t chain_saved(const struct swap_job *j, uint32_t l)
{
    uint64_t passing = is_last(j, l) ? passing_bytes(j, l) : 0;
    return saved_bytes(j, l) + (passing > j->reserve_bytes ? passing - j->reserve_bytes : 0);
}

uint64_t swap_chain_least(const struct swap_job *job)
{
    uint64_t least = 0;
    for (uint32_t l = 0; l < job->layer_count; l++) least = max_u64(least, chain_saved(job, l));
    return least;
}

enum status swap_chain_make(const struct swap_job *job, uint64_t memory, struct chain *out, struct error *err)
{
    *out = (struct chain){.name = job->job->name, .memory = memory,
                          .out_bytes_per_tick = rate_of(job, COPY_D2H),
                          .in_bytes_per_tick = rate_of(job, COPY_H2D)};
    TRY(chain_init(out, job->layer_count, err));
    for (uint32_t l = 0; l < job->layer_count; l++) {
        const struct swap_layer *layer = &job->layers[l];
        out->layers[l] = (struct chain_layer){
            .forward = max_i64(ticks_of(job, layer->forward_s), 1),
            .again = max_i64(ticks_of(job, layer->again_s), 1),
            .backward = max_i64(ticks_of(job, layer->backward_s), 1),
            .saved = chain_saved(job, l),
            .boundary = padded(boundary_bytes(job, l))};
    }
    TRY(chain_finish(out, err));
    for (uint32_t l = 0; l < job->layer_count && chain_swaps(out); l++) { /* including latencies */
        struct chain_layer *layer = &out->layers[l];
        layer->out = max_i64(layer->out, ticks_of(job, job->layers[l].out_s));
        layer->in = max_i64(layer->in, ticks_of(job, job->layers[l].in_s));
    }
    return STATUS_OK;
}
