/*
 * Balanced cuts minimise
 *
 *     sum of t_i + e * (2 T * shards + sum of t_i^2 / T)
 *
 * with t_i the estimate of shard i (partition_estimate.h), T their sum in the greedy cut and e = `tie`. One dynamic
 * program solves it, because each term is a sum over shards. The terms with e are a few millionths of the first and
 * decide between equal times: fewer shards before even ones, because the second sum is at most T.
 *
 * Equal layers make many cuts of equal time: greedy shards of 5, 5 and 2 blocks become shards of 4 with a smaller
 * weight buffer, and the freed memory may keep states on the device.
 *
 * The sum ignores gaps and the processor's work; the estimate of the whole minibatch includes them, and a balanced cut
 * is used only if it is not longer.
 */
#include "planner/spill/cut/partition_job.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "models/job/memory.h"
#include "planner/spill/cut/boundaries.h"

static const double tie = 1e-6;

uint64_t partition_weight_buffer_need(const struct footprint *f, const struct job *job, bool last, uint32_t activations,
                                      uint32_t place)
{
    uint64_t pair = partition_padded(f->weight_bytes) + partition_padded(f->gradient_bytes),
             need = partition_padded(f->state_bytes);
    if (estimate_uses_cpu(job, place))
        need = estimate_place(job, place) == PLANNER_PLACE_CPU ? pair : max_u64(pair, need);
    if (!last && plan_activations_spill(activations)) need += partition_padded(f->kept_bytes[activations]);
    return need;
}

uint32_t partition_unit_way(const struct partition_candidate *c, const struct job *job, bool last)
{
    bool out = estimate_place(job, c->place) == PLANNER_PLACE_CPU && footprint_can_use_cpu(job);
    return partition_way(c->activations, c->loss_inputs, last) | (out ? UNIT_GRADIENTS_OUT : 0);
}

static uint64_t slice_row_bytes(const struct job *job)
{
    return memory_state_rows(&job->network, 1, job_state_format(job)).bytes +
           (footprint_has_table(job) && footprint_table_gradient_bytes(job) > 0 ? job->network.width * sizeof(float)
                                                                                : 0);
}

/* A slice's state and gradient are both aligned. */
enum { SLICE_PADDING = 2 * PARTITION_ARENA_ALIGNMENT };

/* Returns the embedding rows that fit a weight buffer, at most all. */
static uint64_t slice_rows_for(const struct job *job, uint64_t weight_buffer_bytes)
{
    if (weight_buffer_bytes <= SLICE_PADDING) return 0;
    uint64_t rows = (weight_buffer_bytes - SLICE_PADDING) / slice_row_bytes(job);
    uint64_t all = footprint_embedding_rows(job);
    if (rows >= all) return all;
    uint64_t slices = rows ? (all + rows - 1) / rows : 0;
    return slices ? (all + slices - 1) / slices : 0; /* slices of equal size */
}

/* Returns the state and, if a head reads the table, its gradient. */
static uint64_t embedding_bytes(const struct job *job, const struct footprint *f)
{
    return partition_padded(f->state_bytes) +
           (footprint_has_table(job) ? partition_padded(footprint_table_gradient_bytes(job)) : 0);
}

uint64_t partition_embedding_need(const struct footprint *f, const struct job *job, uint32_t place)
{
    if (estimate_embedding_on_cpu(job, place)) return 0;
    return footprint_can_slice(job) ? partition_padded(SLICE_PADDING + slice_row_bytes(job)) : embedding_bytes(job, f);
}

static void append_shard(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                         uint64_t first, uint64_t count, const struct footprint *f,
                         struct partition_job_cut *cut)
{
    const struct job *job = &cutter->jobs->jobs[j];
    bool embedding = first == 0 && footprint_has_embedding(job);
    bool on_cpu = embedding ? estimate_embedding_on_cpu(job, c->place)
                            : (partition_unit_way(c, job, false) & UNIT_GRADIENTS_OUT) && f->trained_bytes > 0;
    uint32_t way = embedding ? 0 : partition_unit_way(c, job, partition_is_last(job, first, count));
    struct plan_shard shard = {.job = j,
                               .first_layer = first,
                               .layer_count = count,
                               .inputs_only = way & UNIT_INPUTS};
    struct partition_seconds seconds = estimate_shard(cutter, c, j, &shard, f, on_cpu);
    cut->minibatch.device += seconds.device;
    cut->minibatch.cpu += seconds.cpu;
    cut->on_cpu[cut->count] = on_cpu;
    cut->persistent[cut->count] = cut->kept[cut->count] = false;
    cut->shards[cut->count++] = shard;
}

/* Moves last shards to the processor while that shortens the minibatch. */
static enum status share_updates(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                                 struct partition_job_cut *cut, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    if (estimate_place(job, c->place) != PLANNER_PLACE_SPLIT || !footprint_can_use_cpu(job)) return STATUS_OK;
    struct partition_seconds best = cut->minibatch, sum = cut->minibatch;
    uint32_t best_first = cut->count, least = footprint_has_embedding(job) ? 1 : 0;
    for (uint32_t s = cut->count; s-- > least;) {
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, j, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        struct partition_seconds here = estimate_shard(cutter, c, j, shard, f, false);
        struct partition_seconds there = estimate_shard(cutter, c, j, shard, f, true);
        sum.device += there.device - here.device;
        sum.cpu += there.cpu;
        if (f->trained_bytes == 0) continue;
        if (estimate_together(cutter, sum) >= estimate_together(cutter, best)) continue;
        best = sum;
        best_first = s;
    }
    for (uint32_t s = best_first; s < cut->count; s++) {
        const struct footprint *f =
            footprint_of(cutter->footprints, j, cut->shards[s].first_layer, cut->shards[s].layer_count);
        if (!f) return cutter_out_of_memory(err);
        cut->on_cpu[s] = f->trained_bytes > 0;
    }
    cut->minibatch = best;
    return STATUS_OK;
}

/* --- what a shard needs ------------------------------------------------------------------------ */

/* A shard without embedding. */
struct shard_need {
    uint64_t weight_buffer, workspace, keep, spilled;
};

static enum status need_of(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                           uint64_t first, uint64_t count, struct shard_need *out, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    const struct footprint *f = footprint_of(cutter->footprints, j, first, count);
    if (!f) return cutter_out_of_memory(err);
    bool last = partition_is_last(job, first, count);
    *out = (struct shard_need){
        .weight_buffer = partition_weight_buffer_need(f, job, last, c->activations, c->place),
        .workspace = cutter_workspace(f, job, last, partition_unit_way(c, job, last))};
    if (plan_activations_stay(c->activations) && !last) out->keep = partition_padded(f->kept_bytes[c->activations]);
    if (plan_activations_spill(c->activations) && !last) out->spilled = f->kept_bytes[c->activations];
    return STATUS_OK;
}

static uint64_t most_layers(const struct partition_cutter *cutter, const struct job *job)
{
    uint64_t layers = job_layers_end(job);
    if (cutter->options->shards <= 1) return layers;
    uint64_t parts = cutter->options->shards - (footprint_has_embedding(job) ? 1 : 0);
    uint64_t whole = layers - (footprint_has_embedding(job) ? job_first_shard_layers(job) : 0);
    return parts ? (whole + parts - 1) / parts : whole;
}

/* --- cuts -------------------------------------------------------------------------------------- */

/* Returns the end of a cut's shards so far. */
static uint64_t end_of(const struct partition_job_cut *cut)
{
    const struct plan_shard *last = cut->count > 0 ? &cut->shards[cut->count - 1] : NULL;
    return last ? last->first_layer + last->layer_count : 0;
}

/* Begins a cut with the embedding, if any. *fits is false if it does not fit. */
static enum status begin(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                         uint64_t room, struct partition_job_cut *cut, bool *fits, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    *fits = true;
    cut->count = 0;
    cut->workspace_bytes = cut->keep_bytes = cut->spilled_bytes = cut->persistent_bytes = 0;
    cut->slice_rows = 0;
    cut->minibatch = (struct partition_seconds){0};
    if (!footprint_has_embedding(job)) return STATUS_OK;
    const struct footprint *f = footprint_of(cutter->footprints, j, 0, job_first_shard_layers(job));
    if (!f) return cutter_out_of_memory(err);
    uint64_t need = embedding_bytes(job, f), workspace = cutter_workspace(f, job, false, UNIT_KEEP);
    if (estimate_embedding_on_cpu(job, c->place)) {
        workspace = 0;
    } else if (footprint_can_slice(job)) {
        cut->slice_rows = slice_rows_for(job, c->weight_buffer_bytes);
        *fits = cut->slice_rows > 0 && workspace <= room;
        if (cut->slice_rows == footprint_embedding_rows(job) && need <= c->weight_buffer_bytes) cut->slice_rows = 0;
    } else {
        *fits = need <= c->weight_buffer_bytes && workspace <= room;
    }
    if (!*fits) return STATUS_OK;
    cut->workspace_bytes = workspace;
    append_shard(cutter, c, j, 0, job_first_shard_layers(job), f, cut);
    return STATUS_OK;
}

static enum status add_layers(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                              uint64_t first, uint64_t count, struct partition_job_cut *cut, struct error *err)
{
    struct shard_need need;
    TRY(need_of(cutter, c, j, first, count, &need, err));
    const struct footprint *f = footprint_of(cutter->footprints, j, first, count);
    if (!f) return cutter_out_of_memory(err);
    cut->workspace_bytes = max_u64(cut->workspace_bytes, need.workspace);
    cut->keep_bytes += need.keep;
    cut->spilled_bytes += need.spilled;
    append_shard(cutter, c, j, first, count, f, cut);
    return STATUS_OK;
}

/* Makes the decisions that need all shards. */
static enum status finish(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                          struct partition_job_cut *cut, struct error *err)
{
    TRY(share_updates(cutter, c, j, cut, err));
    return estimate_minibatch(cutter, c, j, cut, &cut->minibatch, err);
}

enum status partition_cut_greedy(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                                 uint64_t room, struct partition_job_cut *cut, bool *fits, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    uint64_t layers = job_layers_end(job), most = most_layers(cutter, job);
    TRY(begin(cutter, c, j, room, cut, fits, err));
    for (uint64_t first = end_of(cut), count; first < layers && *fits; first += count) {
        for (count = 0; first + count < layers && count < most; count++) {
            struct shard_need need;
            TRY(need_of(cutter, c, j, first, count + 1, &need, err));
            uint64_t workspace = max_u64(cut->workspace_bytes, need.workspace);
            if (need.weight_buffer > c->weight_buffer_bytes || workspace + cut->keep_bytes + need.keep > room) break;
        }
        *fits = count > 0;
        if (*fits) TRY(add_layers(cutter, c, j, first, count, cut, err));
    }
    return *fits ? finish(cutter, c, j, cut, err) : STATUS_OK;
}

/* --- balanced ---------------------------------------------------------------------------------- */

struct balancing {
    const struct partition_cutter *cutter;
    const struct partition_candidate *candidate;
    const struct partition_room *room;
    uint32_t job;
    uint64_t skipped; /* layers of the embedding */
    double greedy_s;  /* sum over the greedy cut's shards without embedding */
};

/* Computes a shard's seconds; the processor counts only while the devices wait for it. */
static enum status shard_s(const struct balancing *b, uint64_t first, uint64_t count, double *out,
                           struct error *err)
{
    const struct partition_candidate *c = b->candidate;
    const struct plan_shard shard = {.job = b->job, .first_layer = first, .layer_count = count};
    const struct footprint *f = footprint_of(b->cutter->footprints, b->job, first, count);
    if (!f) return cutter_out_of_memory(err);
    bool on_cpu = partition_unit_way(c, &b->cutter->jobs->jobs[b->job], false) & UNIT_GRADIENTS_OUT;
    struct partition_seconds s = estimate_shard(b->cutter, c, b->job, &shard, f, on_cpu);
    *out = b->cutter->shares_cpu ? s.device + s.cpu : s.device;
    return STATUS_OK;
}

static enum status part_of(void *context, uint64_t first, uint64_t count, struct boundaries_part *out,
                           struct error *err)
{
    const struct balancing *b = context;
    const struct partition_candidate *c = b->candidate;
    struct shard_need need;
    first += b->skipped;
    TRY(need_of(b->cutter, c, b->job, first, count, &need, err));
    double seconds;
    TRY(shard_s(b, first, count, &seconds, err));
    bool stays = plan_activations_stay(c->activations);
    *out = (struct boundaries_part){
        .fits = need.weight_buffer <= c->weight_buffer_bytes && need.workspace + b->room->keep_bytes <= b->room->bytes,
        .cost = seconds + tie * (2 * b->greedy_s + seconds * seconds / b->greedy_s),
        .workspace_bytes = stays ? need.workspace : 0, /* else it fits without conditions */
        .keep_bytes = b->room->copies * need.keep};
    return STATUS_OK;
}

static enum status cut_at(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t j,
                          uint64_t room, const uint64_t *counts, uint32_t count, struct partition_job_cut *cut,
                          struct error *err)
{
    bool fits;
    TRY(begin(cutter, c, j, room, cut, &fits, err));
    uint64_t first = end_of(cut);
    for (uint32_t i = 0; i < count; i++) {
        TRY(add_layers(cutter, c, j, first, counts[i], cut, err));
        first += counts[i];
    }
    return finish(cutter, c, j, cut, err);
}

enum status partition_cut_balanced(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                   uint32_t j, const struct partition_room *room, struct partition_job_cut *cut,
                                   struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    struct balancing balancing = {.cutter = cutter,
                                  .candidate = c,
                                  .room = room,
                                  .job = j,
                                  .skipped = footprint_has_embedding(job) ? job_first_shard_layers(job) : 0};
    uint64_t layers = job_layers_end(job) - balancing.skipped;
    struct partition_seconds greedy = cut->minibatch;
    uint32_t count = 0;
    bool found = false, stays = plan_activations_stay(c->activations);
    for (uint32_t i = balancing.skipped > 0; i < cut->count; i++) {
        const struct plan_shard *shard = &cut->shards[i];
        double seconds;
        TRY(shard_s(&balancing, shard->first_layer, shard->layer_count, &seconds, err));
        balancing.greedy_s += seconds;
    }
    if (!(balancing.greedy_s > 0)) return STATUS_OK;
    TRY(begin(cutter, c, j, room->bytes, cut, &found, err));
    const struct boundaries_problem problem = {
        .part = part_of,
        .context = &balancing,
        .layers = layers,
        .most = most_layers(cutter, job),
        .memory_bytes = room->bytes,
        .workspace_bytes = stays ? max_u64(room->workspace_bytes, cut->workspace_bytes) : 0};
    uint64_t *counts = alloc_zeroed(layers, sizeof *counts);
    if (!counts) return error_memory(err, "boundaries of shards", layers * sizeof *counts);
    if (boundaries_best(&problem, counts, &count, &found, err)) goto out;
    if (found && cut_at(cutter, c, j, room->bytes, counts, count, cut, err)) goto out;
    if ((!found || estimate_longer(estimate_together(cutter, cut->minibatch),
                                   estimate_together(cutter, greedy))) &&
        partition_cut_greedy(cutter, c, j, room->bytes, cut, &found, err)) {}
out:
    free(counts);
    return err->status;
}

enum status partition_weight_buffer_used(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                         uint32_t j, const struct partition_job_cut *cut, uint64_t *bytes,
                                         struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    *bytes = 4 * PARTITION_ARENA_ALIGNMENT;
    for (uint32_t s = 0; s < cut->count; s++) {
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, j, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        bool last = partition_is_last(job, shard->first_layer, shard->layer_count);
        uint64_t need = partition_weight_buffer_need(f, job, last, c->activations, c->place);
        if (s == 0 && footprint_has_embedding(job))
            need = estimate_embedding_on_cpu(job, c->place) ? 0
                   : cut->slice_rows ? cut->slice_rows * slice_row_bytes(job) + 2 * PARTITION_ARENA_ALIGNMENT
                                     : embedding_bytes(job, f);
        *bytes = max_u64(*bytes, partition_padded(need));
    }
    return STATUS_OK;
}
