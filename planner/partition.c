/*
 * Greedy maximal shards, for the best region size.
 *
 * For a given region size G the arena is settled: k regions and the edges are taken off, what is
 * left is workspace (and room for kept activations). A shard may grow while its state fits G and
 * its scratch fits the workspace; the greedy cut has the fewest shards, because whatever fits, each
 * part of it fits too. G itself trades: a large one makes few shards but leaves little workspace
 * and long first copies. So some dozens of sizes between the smallest that any layer needs and all
 * of the memory are tried, with two and three regions and each way of treating activations, and the
 * cut with the least estimated time is taken: per unit, the largest of its computation, its copies
 * in and its copies out (with two regions, in and out take turns; with one, everything does).
 *
 * When nothing fits, the message names the layer that fits least and what it lacks, found by asking
 * what a shard of that layer alone would need with the least of everything else.
 */
#include "planner/partition.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "models/cost.h"
#include "models/memory.h"
#include "planner/bound.h"

enum { REGION_SIZES = 20 };

static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static double max_s(double a, double b) { return a > b ? a : b; }
static uint64_t padded(uint64_t bytes) { return size_align(bytes, ARENA_ALIGNMENT); }

/* What all candidates share. */
struct cutter {
    const struct hardware *hardware;
    const struct job_set *jobs;
    struct footprints *footprints;
    const struct planner_options *options;
    bool interleaved;
    uint64_t capacity; /* of the smallest device */
    uint64_t edge_bytes;
    double contention;
    double host_fixed_bytes; /* states, table gradients, boundaries: whatever the cut */
    /* where the least hopeless failure was, for the message */
    uint32_t failed_job;
    uint64_t failed_layer;
    uint64_t missing_bytes;
};

struct candidate {
    uint32_t region_count;
    uint64_t region_bytes;
    uint32_t activations;
};

static uint64_t smallest_device(const struct hardware *hardware)
{
    uint64_t bytes = UINT64_MAX;
    for (uint32_t d = 0; d < hardware->device_count; d++)
        if (hardware->devices[d].memory_bytes < bytes) bytes = hardware->devices[d].memory_bytes;
    return bytes;
}

/* --- edges ----------------------------------------------------------------------------------- */

/* Four boundaries of the widest layer, batch and loss: more than any unit has at once. */
static uint64_t edge_bytes_of(const struct job *job)
{
    uint64_t widest = 0;
    uint64_t layers = job->network.family == NETWORK_PROFILE ? job->network.layer_count : 1;
    for (uint64_t layer = 0; layer < layers; layer++)
        widest = max_u64(widest, memory_boundary_bytes(&job->network, layer, job->microbatch,
                                                       job->sequence));
    return 4 * padded(widest) + padded(job_batch_bytes(job)) + padded(sizeof(double));
}

/* Host memory of a job without spilled activations; a boundary and its gradient per layer, at most. */
static double host_bytes_of(const struct job *job)
{
    uint64_t layers = job->network.layer_count;
    uint64_t bytes = memory_state_bytes(&job->network, 0, layers, job->optimizer.kind);
    if (job_has_table(job)) bytes += job_table_bytes(job);
    return (double)bytes + 2.0 * (double)layers *
                               (double)memory_boundary_bytes(&job->network, 0, job->microbatch,
                                                             job->sequence);
}

/* --- one job at one region size ---------------------------------------------------------------- */

static bool is_last(const struct job *job, uint64_t first, uint64_t count)
{
    return first + count == job->network.layer_count;
}

/* Bytes of the region for the greediest unit of this shard. */
static uint64_t region_need(const struct job *job, const struct footprint *f, bool last,
                            uint32_t activations)
{
    uint64_t need = padded(f->state_bytes);
    if (last && job_has_table(job)) need += 2 * padded(job_table_bytes(job));
    if (!last && activations == ACTIVATIONS_SPILL) need += padded(f->activation_bytes);
    return need;
}

static uint64_t workspace_need(const struct footprint *f, bool last, uint32_t activations)
{
    bool kept = activations != ACTIVATIONS_RECOMPUTE;
    if (last) return padded(f->workspace_bytes[UNIT_LOSS][0]);
    return padded(max_u64(f->workspace_bytes[UNIT_FORWARD][kept],
                          f->workspace_bytes[UNIT_BACKWARD][kept]));
}

static uint64_t slice_row_bytes(const struct job *job)
{
    uint64_t row = job->network.width * sizeof(float);
    return row * (1 + optimizer_state_words(job->optimizer.kind) + (job_has_table(job) ? 1 : 0));
}

/* Rows of the embedding that fit a region, or 0 when not even one does; all of them if possible. */
static uint64_t slice_rows_for(const struct job *job, uint64_t region_bytes)
{
    uint64_t pad = 2 * ARENA_ALIGNMENT; /* state and gradient each start on a boundary */
    if (region_bytes <= pad) return 0;
    uint64_t rows = (region_bytes - pad) / slice_row_bytes(job);
    uint64_t all = job_embedding_rows(job);
    if (rows >= all) return all;
    uint64_t slices = rows ? (all + rows - 1) / rows : 0;
    return slices ? (all + slices - 1) / slices : 0; /* even slices */
}

/* Seconds of a unit that computes for `compute` while copies in and out of others go on. */
static double unit_s(const struct candidate *c, double compute, double in, double out)
{
    if (c->region_count == 1) return in + compute + out;
    return c->region_count == 2 ? max_s(compute, in + out) : max_s(compute, max_s(in, out));
}

static double copy_s(const struct cutter *cutter, enum copy_direction direction, uint64_t bytes)
{
    return bytes ? cost_copy_s(cutter->hardware, 0, direction, bytes) * cutter->contention : 0;
}

/* How much longer copies take when all devices that will be busy copy at once. */
static double contention_of(const struct hardware *hardware, uint32_t busy_devices)
{
    double wanted = 0, rate = bound_host_rate(hardware);
    for (uint32_t d = 0; d < busy_devices; d++)
        wanted += cost_copy_bandwidth(hardware, d, COPY_H2D);
    return rate > 0 && wanted > rate ? wanted / rate : 1;
}

static double shard_s(const struct cutter *cutter, const struct candidate *c,
                      const struct job *job, const struct footprint *f, bool last)
{
    uint64_t spilled = c->activations == ACTIVATIONS_SPILL && !last ? f->activation_bytes : 0;
    double state_in = copy_s(cutter, COPY_H2D, f->state_bytes + f->input_bytes + f->output_bytes);
    double state_out = copy_s(cutter, COPY_D2H, f->state_bytes + f->input_bytes);
    if (last) {
        uint64_t table = job_has_table(job) ? job_table_bytes(job) : 0;
        return unit_s(c, f->loss_s, state_in + copy_s(cutter, COPY_H2D, table),
                      state_out + copy_s(cutter, COPY_D2H, table));
    }
    double forward = unit_s(c, f->forward_s,
                            copy_s(cutter, COPY_H2D, f->parameter_bytes + f->input_bytes),
                            copy_s(cutter, COPY_D2H, f->output_bytes + spilled));
    double backward = unit_s(c, c->activations == ACTIVATIONS_RECOMPUTE ? f->backward_recompute_s
                                                                        : f->backward_kept_s,
                             state_in + copy_s(cutter, COPY_H2D, spilled), state_out);
    return forward + backward;
}

/* What one job's cut comes to. */
struct job_cut {
    struct plan_shard *shards; /* room for layer_count of them */
    uint32_t count;
    uint64_t slice_rows;
    uint64_t workspace_bytes;
    uint64_t keep_bytes;
    uint64_t spilled_bytes; /* activations in host memory */
    double minibatch_s;
};

static void note_failure(struct cutter *cutter, uint32_t job, uint64_t layer, uint64_t missing)
{
    if (missing < cutter->missing_bytes) {
        cutter->failed_job = job;
        cutter->failed_layer = layer;
        cutter->missing_bytes = missing;
    }
}

static enum status out_of_memory(struct error *err)
{
    return error_memory(err, "the table of shard sizes", 1);
}

/* Cut one job greedily. *fits false: it does not, and why was noted. `room` is what is left for
 * workspace and kept activations together. */
static enum status cut_job(struct cutter *cutter, const struct candidate *c, uint32_t j,
                           uint64_t room, struct job_cut *cut, bool *fits, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    uint64_t layers = job->network.layer_count, first = 0;
    uint64_t most = layers;
    *fits = false;
    cut->count = 0;
    cut->workspace_bytes = cut->keep_bytes = cut->spilled_bytes = 0;
    cut->slice_rows = 0;
    cut->minibatch_s = 0;
    if (cutter->options->shards > 1) {
        uint64_t parts = cutter->options->shards - (job_has_embedding(job) ? 1 : 0);
        uint64_t whole = layers - (job_has_embedding(job) ? 1 : 0);
        most = parts ? (whole + parts - 1) / parts : whole;
    }
    if (job_has_embedding(job)) {
        const struct footprint *f = footprint_of(cutter->footprints, j, 0, 1);
        if (!f) return out_of_memory(err);
        uint64_t need = padded(f->state_bytes) +
                        (job_has_table(job) ? padded(job_table_bytes(job)) : 0);
        uint64_t workspace = workspace_need(f, false, ACTIVATIONS_KEEP);
        if (job_slices(job)) {
            cut->slice_rows = slice_rows_for(job, c->region_bytes);
            if (cut->slice_rows == 0 || workspace > room) {
                note_failure(cutter, j, 0, workspace > room ? workspace - room : 1);
                return STATUS_OK;
            }
            if (cut->slice_rows == job_embedding_rows(job) && need <= c->region_bytes)
                cut->slice_rows = 0;
        } else if (need > c->region_bytes || workspace > room) {
            note_failure(cutter, j, 0, need > c->region_bytes ? need - c->region_bytes
                                                              : workspace - room);
            return STATUS_OK;
        }
        cut->workspace_bytes = workspace;
        cut->shards[cut->count++] = (struct plan_shard){.job = j, .layer_count = 1};
        cut->minibatch_s += shard_s(cutter, c, job, f, false);
        first = 1;
    }
    while (first < layers) {
        uint64_t count = 0;
        struct footprint best = {0};
        for (uint64_t n = 1; first + n <= layers && n <= most; n++) {
            const struct footprint *f = footprint_of(cutter->footprints, j, first, n);
            if (!f) return out_of_memory(err);
            bool last = is_last(job, first, n);
            uint64_t region = region_need(job, f, last, c->activations);
            uint64_t workspace = max_u64(cut->workspace_bytes,
                                         workspace_need(f, last, c->activations));
            uint64_t keep = cut->keep_bytes;
            if (c->activations == ACTIVATIONS_KEEP && !last) keep += padded(f->activation_bytes);
            if (region > c->region_bytes || workspace + keep > room) {
                if (n == 1)
                    note_failure(cutter, j, first,
                                 (region > c->region_bytes ? region - c->region_bytes : 0) +
                                     (workspace + keep > room ? workspace + keep - room : 0));
                break;
            }
            count = n;
            best = *f;
        }
        if (count == 0) return STATUS_OK;
        bool last = is_last(job, first, count);
        cut->workspace_bytes =
            max_u64(cut->workspace_bytes, workspace_need(&best, last, c->activations));
        if (c->activations == ACTIVATIONS_KEEP && !last)
            cut->keep_bytes += padded(best.activation_bytes);
        if (c->activations == ACTIVATIONS_SPILL && !last)
            cut->spilled_bytes += best.activation_bytes;
        cut->minibatch_s += shard_s(cutter, c, job, &best, last);
        cut->shards[cut->count++] =
            (struct plan_shard){.job = j, .first_layer = first, .layer_count = count};
        first += count;
    }
    *fits = true;
    return STATUS_OK;
}

/* --- all jobs at one candidate ----------------------------------------------------------------- */

/* Copy a twin's cut, for job `j`. */
static uint32_t copy_shards(struct plan_shard *to, const struct plan_shard *from, uint32_t count,
                            uint32_t j)
{
    for (uint32_t s = 0; s < count; s++) {
        to[s] = from[s];
        to[s].job = j;
    }
    return count;
}

/* Try a candidate; *fits false when some job does not. Fills what it finds into `out`, whose arrays
 * have room for every layer of every job. */
static enum status try_candidate(struct cutter *cutter, const struct candidate *c,
                                 struct partition *out, struct job_cut *cuts, bool *fits,
                                 struct error *err)
{
    uint32_t edge_count = c->region_count + 1;
    uint64_t taken = c->region_count * c->region_bytes + edge_count * cutter->edge_bytes;
    *fits = false;
    out->objective_s = 0;
    out->shard_count = 0;
    out->workspace_bytes = out->keep_bytes = 0;
    if (taken > cutter->capacity) return STATUS_OK;
    uint64_t room = cutter->capacity - taken, workspace = 0, keep = 0;
    double spilled = 0;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        uint32_t twin = footprint_twin(cutter->footprints, j);
        struct job_cut *cut = &cuts[twin];
        if (twin == j) {
            bool job_fits;
            enum status status = cut_job(cutter, c, j, room, cut, &job_fits, err);
            if (status || !job_fits) return status;
        }
        out->job_first_shard[j] = out->shard_count;
        out->slice_rows[j] = cut->slice_rows;
        out->shard_count += copy_shards(out->shards + out->shard_count, cut->shards, cut->count, j);
        out->objective_s += cut->minibatch_s * (double)cutter->jobs->jobs[j].minibatches;
        workspace = max_u64(workspace, cut->workspace_bytes);
        keep = cutter->interleaved ? keep + cut->keep_bytes : max_u64(keep, cut->keep_bytes);
        spilled += (double)cut->spilled_bytes;
    }
    /* a plan that would exceed host memory by its spilled activations alone is none */
    if (spilled > 0 && spilled + cutter->host_fixed_bytes > cutter->hardware->host_bytes.value)
        return STATUS_OK;
    out->job_first_shard[cutter->jobs->count] = out->shard_count;
    if (workspace + keep > room) return STATUS_OK;
    out->workspace_bytes = workspace;
    out->keep_bytes = keep;
    out->edge_bytes = cutter->edge_bytes;
    out->edge_count = edge_count;
    out->region_bytes = c->region_bytes;
    out->region_count = c->region_count;
    out->activations = c->activations;
    *fits = true;
    return STATUS_OK;
}

/* Where each shard's kept activations lie: jobs behind each other when they interleave. */
static void place_activations(const struct cutter *cutter, struct partition *out)
{
    uint64_t at = 0;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        if (!cutter->interleaved) at = 0;
        for (uint32_t s = out->job_first_shard[j]; s < out->job_first_shard[j + 1]; s++) {
            out->keep_offset[s] = at;
            bool embedding = job_has_embedding(&cutter->jobs->jobs[j]) &&
                             s == out->job_first_shard[j];
            bool last = s + 1 == out->job_first_shard[j + 1];
            if (out->activations != ACTIVATIONS_KEEP || last || embedding) continue;
            const struct footprint *f =
                footprint_of(cutter->footprints, j, out->shards[s].first_layer,
                             out->shards[s].layer_count);
            if (f) at += padded(f->activation_bytes);
        }
    }
}

static enum status allocate(const struct job_set *jobs, struct partition *out, struct error *err)
{
    size_t layers = 0;
    for (uint32_t j = 0; j < jobs->count; j++) layers += jobs->jobs[j].network.layer_count;
    struct {
        size_t count, size;
        void *out;
    } arrays[] = {
        {layers, sizeof *out->shards, &out->shards},
        {jobs->count + 1u, sizeof *out->job_first_shard, &out->job_first_shard},
        {jobs->count, sizeof *out->slice_rows, &out->slice_rows},
        {layers, sizeof *out->keep_offset, &out->keep_offset},
        {layers, sizeof *out->state_offset, &out->state_offset},
        {layers, sizeof *out->shard_device, &out->shard_device},
    };
    for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) {
        void *array;
        enum status status =
            arena_array(&out->arena, arrays[i].count, arrays[i].size, &array, err);
        if (status) return status;
        memcpy(arrays[i].out, &array, sizeof array);
    }
    return STATUS_OK;
}

static enum status infeasible(const struct cutter *cutter, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[cutter->failed_job];
    char device[QUANTITY_TEXT_BYTES], missing[QUANTITY_TEXT_BYTES];
    return error_set(err, STATUS_INFEASIBLE,
                     "job '%s' fits a device of %s at no sharding: layer %" PRIu64
                     " of %" PRIu64 " alone lacks %s (%" PRIu64 " bytes)",
                     job->name,
                     quantity_text((double)cutter->capacity, DIMENSION_BYTES, device),
                     cutter->failed_layer, job->network.layer_count,
                     quantity_text((double)cutter->missing_bytes, DIMENSION_BYTES, missing),
                     cutter->missing_bytes);
}

static struct cutter cutter_make(const struct hardware *hardware, const struct job_set *jobs,
                                 struct footprints *footprints,
                                 const struct planner_options *options, bool interleaved)
{
    struct cutter cutter = {.hardware = hardware,
                            .jobs = jobs,
                            .footprints = footprints,
                            .options = options,
                            .interleaved = interleaved,
                            .capacity = smallest_device(hardware),
                            .contention = 1,
                            .missing_bytes = UINT64_MAX};
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        if (footprint_twin(footprints, j) == j)
            cutter.edge_bytes = max_u64(cutter.edge_bytes, edge_bytes_of(job));
        cutter.host_fixed_bytes += host_bytes_of(job);
    }
    return cutter;
}

static void free_cuts(struct job_cut *cuts, uint32_t count)
{
    if (!cuts) return;
    for (uint32_t j = 0; j < count; j++) free(cuts[j].shards);
    free(cuts);
}

static struct job_cut *make_cuts(const struct job_set *jobs, struct footprints *footprints)
{
    struct job_cut *cuts = calloc(jobs->count ? jobs->count : 1, sizeof *cuts);
    for (uint32_t j = 0; cuts && j < jobs->count; j++) {
        if (footprint_twin(footprints, j) != j) continue;
        cuts[j].shards = calloc(jobs->jobs[j].network.layer_count, sizeof *cuts[j].shards);
        if (!cuts[j].shards) {
            free_cuts(cuts, jobs->count);
            return NULL;
        }
    }
    return cuts;
}

/* Kept activations stay on a device, so they need a plan that uses one device only. */
static bool mode_possible(const struct cutter *cutter, uint32_t activations)
{
    if (cutter->options->activations != PLANNER_AUTO &&
        cutter->options->activations != activations)
        return false;
    return activations != ACTIVATIONS_KEEP || cutter->hardware->device_count == 1 ||
           !cutter->interleaved;
}

/* The smallest region that every layer fits on its own (an embedding is cut as finely as needed). */
static enum status least_region(const struct cutter *cutter, uint32_t activations, uint64_t *bytes,
                                struct error *err)
{
    *bytes = 4 * ARENA_ALIGNMENT;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct job *job = &cutter->jobs->jobs[j];
        if (footprint_twin(cutter->footprints, j) != j) continue;
        for (uint64_t l = job_slices(job) ? 1 : 0; l < job->network.layer_count; l++) {
            const struct footprint *f = footprint_of(cutter->footprints, j, l, 1);
            if (!f) return out_of_memory(err);
            *bytes = max_u64(*bytes, region_need(job, f, is_last(job, l, 1), activations));
        }
    }
    return STATUS_OK;
}

/* From all of the memory down to a 200th of it, in equal ratios; the least possible size last. */
static uint64_t region_size(const struct cutter *cutter, uint32_t regions, uint32_t step,
                            uint64_t least)
{
    double size = (double)(cutter->capacity / regions);
    if (step == REGION_SIZES) return least;
    for (uint32_t i = 0; i < step; i++) size /= 1.3216; /* 200^(1/19) */
    return (uint64_t)size & ~(uint64_t)(ARENA_ALIGNMENT - 1);
}

/* Try region sizes; the best cut so far is kept in `best`, and `trial` is scratch of its kind. */
static enum status try_sizes(struct cutter *cutter, uint32_t mode, uint32_t regions,
                             struct partition *best, struct partition *trial,
                             struct job_cut *cuts, bool *found, struct error *err)
{
    uint64_t least = 0;
    enum status status = least_region(cutter, mode, &least, err);
    for (uint32_t step = 0; step <= REGION_SIZES && !status; step++) {
        struct candidate c = {.region_count = regions,
                              .region_bytes = region_size(cutter, regions, step, least),
                              .activations = mode};
        bool fits;
        status = try_candidate(cutter, &c, trial, cuts, &fits, err);
        if (status || !fits || (*found && trial->objective_s >= best->objective_s)) continue;
        struct partition swap = *best;
        *best = *trial;
        *trial = swap;
        *found = true;
        if (!trial->shards) status = allocate(cutter->jobs, trial, err);
    }
    return status;
}

enum status partition_streamed(const struct hardware *hardware, const struct job_set *jobs,
                               struct footprints *footprints,
                               const struct planner_options *options, bool interleaved,
                               struct partition *out, struct error *err)
{
    struct cutter cutter = cutter_make(hardware, jobs, footprints, options, interleaved);
    uint32_t busy = jobs->count < hardware->device_count ? jobs->count : hardware->device_count;
    struct partition best = {0}, trial = {0};
    cutter.contention = contention_of(hardware, interleaved ? busy : 1);
    struct job_cut *cuts = make_cuts(jobs, footprints);
    enum status status = cuts ? allocate(jobs, &trial, err) : out_of_memory(err);
    bool found = false;
    uint32_t first = options->regions ? options->regions : options->no_double_buffer ? 1 : 2;
    uint32_t last = options->regions ? options->regions : options->no_double_buffer ? 1 : 3;
    for (uint32_t attempt = 0; attempt < 2 && !found && !status; attempt++) {
        if (attempt == 1) { /* better without double buffer than not at all */
            if (options->regions || options->no_double_buffer) break;
            first = last = 1;
            cutter.missing_bytes = UINT64_MAX;
        }
        for (uint32_t mode = 0; mode < ACTIVATIONS_COUNT && !status; mode++) {
            if (!mode_possible(&cutter, mode)) continue;
            for (uint32_t regions = first; regions <= last && !status; regions++)
                status = try_sizes(&cutter, mode, regions, &best, &trial, cuts, &found, err);
        }
    }
    free_cuts(cuts, jobs->count);
    partition_release(&trial);
    if (!status && !found) status = infeasible(&cutter, err);
    if (status) {
        partition_release(&best);
        return status;
    }
    best.seat_count = 1;
    best.contention = cutter.contention;
    place_activations(&cutter, &best);
    *out = best;
    return STATUS_OK;
}

/* --- residence --------------------------------------------------------------------------------- */

/* The stages of a job on D devices, balanced: least largest stage time among the contiguous cuts
 * whose stages fit, by dynamic programming over (stages, layers). */
struct stage_problem {
    struct cutter *cutter;
    uint32_t job;
    uint32_t activations;
    uint32_t seats;
    uint64_t room;
};

static uint64_t seat_need(const struct stage_problem *p, const struct footprint *f, bool last)
{
    bool keep = p->activations == ACTIVATIONS_KEEP && !last;
    return padded(f->state_bytes) + (keep ? padded(f->activation_bytes) : 0);
}

/* Bytes that a stage of layers [first, first + count) on the first or another device lacks. */
static enum status stage_lacks(const struct stage_problem *p, uint64_t first, uint64_t count,
                               bool with_embedding, uint64_t *lacks, double *seconds,
                               struct error *err)
{
    const struct job *job = &p->cutter->jobs->jobs[p->job];
    const struct footprint *f = footprint_of(p->cutter->footprints, p->job, first, count);
    if (!f) return out_of_memory(err);
    bool last = is_last(job, first, count);
    uint64_t need = p->seats * seat_need(p, f, last) + workspace_need(f, last, p->activations);
    *seconds = last ? f->loss_s
                    : f->forward_s + (p->activations == ACTIVATIONS_KEEP ? f->backward_kept_s
                                                                         : f->backward_recompute_s);
    if (with_embedding) {
        const struct footprint *e = footprint_of(p->cutter->footprints, p->job, 0, 1);
        if (!e) return out_of_memory(err);
        need += p->seats * padded(e->state_bytes);
        *seconds += e->forward_s + e->backward_kept_s;
    }
    *lacks = need > p->room ? need - p->room : 0;
    return STATUS_OK;
}

/* ends[k] is the layer behind stage k; *fits false when no cut fits. */
static enum status cut_stages(const struct stage_problem *p, uint64_t first, uint64_t layers,
                              uint32_t stages, uint64_t *ends, bool *fits, struct error *err)
{
    size_t width = (size_t)layers + 1;
    double *best = calloc((stages + 1u) * width, sizeof *best);
    uint64_t *from = calloc((stages + 1u) * width, sizeof *from);
    enum status status = best && from ? STATUS_OK : out_of_memory(err);
    bool embedding = job_has_embedding(&p->cutter->jobs->jobs[p->job]);
    *fits = false;
    for (size_t i = 0; best && i < (stages + 1u) * width; i++) best[i] = HUGE_VAL;
    if (!status) best[0] = 0; /* no stages, no layers */
    for (uint32_t k = 1; k <= stages && !status; k++) {
        for (uint64_t end = k; end <= layers && !status; end++) {
            if (k == stages && end < layers) continue;
            for (uint64_t start = end; start-- > k - 1 && !status;) {
                double before = best[(k - 1) * width + start], seconds = 0;
                uint64_t lacks = 0;
                status = stage_lacks(p, first + start, end - start, embedding && k == 1, &lacks,
                                     &seconds, err);
                if (status) break;
                if (lacks > 0) {
                    if (end - start == 1)
                        note_failure(p->cutter, p->job, first + start, lacks);
                    break; /* longer stages lack more */
                }
                if (before >= HUGE_VAL) continue;
                double worst = max_s(before, seconds);
                if (worst < best[k * width + end]) {
                    best[k * width + end] = worst;
                    from[k * width + end] = start;
                }
            }
        }
    }
    if (!status && best[stages * width + layers] < HUGE_VAL) {
        *fits = true;
        uint64_t end = layers;
        for (uint32_t k = stages; k > 0; k--) {
            ends[k - 1] = first + end;
            end = from[k * width + end];
        }
    }
    free(best);
    free(from);
    return status;
}

/* Bytes of a seat's region: a copied table and the gradient of the table. */
static uint64_t table_region(const struct cutter *cutter)
{
    uint64_t bytes = 0;
    for (uint32_t j = 0; j < cutter->jobs->count; j++)
        if (job_has_table(&cutter->jobs->jobs[j]))
            bytes = max_u64(bytes, 2 * padded(job_table_bytes(&cutter->jobs->jobs[j])));
    return bytes;
}

/* Place the shards of all jobs for this many seats; *fits false when some job does not. */
static enum status try_seats(struct cutter *cutter, uint32_t seats, uint32_t activations,
                             struct partition *out, uint64_t *ends, bool *fits, struct error *err)
{
    uint32_t edges = 4; /* both directions of two neighbours */
    uint64_t taken = edges * cutter->edge_bytes + seats * out->region_bytes;
    *fits = false;
    out->shard_count = 0;
    out->workspace_bytes = out->keep_bytes = 0;
    if (taken >= cutter->capacity) return STATUS_OK;
    struct stage_problem p = {.cutter = cutter,
                              .activations = activations,
                              .seats = seats,
                              .room = cutter->capacity - taken};
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct job *job = &cutter->jobs->jobs[j];
        uint64_t first = job_has_embedding(job) ? 1 : 0;
        uint64_t layers = job->network.layer_count - first;
        uint32_t stages = cutter->hardware->device_count;
        bool job_fits;
        if (stages > layers) stages = (uint32_t)layers;
        p.job = j;
        enum status status = cut_stages(&p, first, layers, stages, ends, &job_fits, err);
        if (status || !job_fits) return status;
        out->job_first_shard[j] = out->shard_count;
        uint64_t seat = 0;
        for (uint32_t k = first ? 0 : 1; k <= stages; k++) {
            uint32_t s = out->shard_count++, device = k ? k - 1 : 0;
            uint64_t start = k == 0 ? 0 : k == 1 ? first : ends[k - 2];
            uint64_t end = k == 0 ? 1 : ends[k - 1];
            const struct footprint *f =
                footprint_of(cutter->footprints, j, start, end - start);
            if (!f) return out_of_memory(err);
            bool last = end == job->network.layer_count;
            if (k != 1 || !first) seat = 0; /* the embedding shares its device with stage 1 */
            out->shards[s] = (struct plan_shard){
                .job = j, .first_layer = start, .layer_count = end - start};
            out->shard_device[s] = device;
            out->state_offset[s] = seat;
            out->keep_offset[s] = seat + padded(f->state_bytes);
            bool embedding = k == 0;
            seat += embedding ? padded(f->state_bytes) : seat_need(&p, f, last);
            out->keep_bytes = max_u64(out->keep_bytes, seat);
            out->workspace_bytes = max_u64(
                out->workspace_bytes,
                workspace_need(f, last, embedding ? ACTIVATIONS_KEEP : activations));
        }
    }
    out->job_first_shard[cutter->jobs->count] = out->shard_count;
    out->edge_bytes = cutter->edge_bytes;
    out->edge_count = edges;
    out->activations = activations;
    out->seat_count = out->region_count = seats;
    *fits = out->workspace_bytes + seats * out->keep_bytes <= p.room;
    if (!*fits)
        note_failure(cutter, 0, 0, out->workspace_bytes + seats * out->keep_bytes - p.room);
    return STATUS_OK;
}

enum status partition_resident(const struct hardware *hardware, const struct job_set *jobs,
                               struct footprints *footprints,
                               const struct planner_options *options, uint32_t seats_max,
                               struct partition *out, struct error *err)
{
    struct cutter cutter = cutter_make(hardware, jobs, footprints, options, true);
    struct partition made = {.resident = true, .contention = 1};
    if (options->activations == ACTIVATIONS_SPILL)
        return error_set(err, STATUS_BAD_INPUT,
                         "activations of resident shards cannot be spilled (expected keep or "
                         "recompute)");
    uint64_t *ends = calloc(hardware->device_count, sizeof *ends);
    enum status status = ends ? allocate(jobs, &made, err) : out_of_memory(err);
    bool fits = false;
    made.region_bytes = table_region(&cutter);
    uint32_t seats = seats_max < jobs->count ? seats_max : jobs->count;
    for (; seats > 0 && !fits && !status; seats--) {
        const uint32_t modes[] = {ACTIVATIONS_KEEP, ACTIVATIONS_RECOMPUTE};
        for (size_t m = 0; m < ARRAY_COUNT(modes) && !fits && !status; m++) {
            if (options->activations != PLANNER_AUTO && options->activations != modes[m]) continue;
            cutter.missing_bytes = UINT64_MAX; /* what the least demanding attempt lacks */
            status = try_seats(&cutter, seats, modes[m], &made, ends, &fits, err);
        }
    }
    free(ends);
    if (!status && !fits) {
        const struct job *job = &jobs->jobs[cutter.failed_job];
        char missing[QUANTITY_TEXT_BYTES];
        status = error_set(err, STATUS_INFEASIBLE,
                           "job '%s' does not fit %" PRIu32 " devices without spilling: layer "
                           "%" PRIu64 " and its stage lack %s (%" PRIu64 " bytes)",
                           job->name, hardware->device_count, cutter.failed_layer,
                           quantity_text((double)cutter.missing_bytes, DIMENSION_BYTES, missing),
                           cutter.missing_bytes);
    }
    if (status) {
        partition_release(&made);
        return status;
    }
    *out = made;
    return STATUS_OK;
}

void partition_release(struct partition *partition)
{
    arena_release(&partition->arena);
    *partition = (struct partition){0};
}
