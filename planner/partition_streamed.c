/*
 * Greedy maximal shards, for the best region size.
 *
 * For a given region size G the arena is settled: k regions and the edges are taken off, what is
 * left is workspace (and room for kept activations). A shard may grow while its state fits G and
 * its scratch fits the workspace; the greedy cut has the fewest shards, because whatever fits, each
 * part of it fits too. G itself trades: a large one makes few shards but leaves little workspace
 * and long first copies. So some dozens of sizes between the smallest that any layer needs and all
 * of the memory are tried, with two and three regions and each way of treating activations, in the
 * shards that go back later and in the one with the loss, and the cut with the least estimated time
 * (partition_estimate.h) is taken.
 *
 * The place of the optimizers is tried like the rest. On the device a region holds a shard's state,
 * on the host's processor parameters and gradient. Split, it is cut as for the device, and of each
 * job as many shards as balance both go to the processor, the last ones: their gradients are there
 * first, and the first shards' parameters are wanted first. (Without moments, a state is less than
 * parameters and gradient; then a region holds these.)
 *
 * When nothing fits, the message says what is missing when each layer is a shard of its own and there
 * is one region, and names the layer that needs most.
 */
#include "planner/partition_kept.h"
#include "planner/partition_persistent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "models/cost.h"
#include "models/memory.h"
#include "planner/bound.h"

enum { REGION_SIZES = 20 };

/* --- one job at one region size ---------------------------------------------------------------- */

/* Bytes of the region for the greediest unit of this shard. */
static uint64_t region_need(const struct footprint *f, const struct job *job, bool embedding,
                            bool last, uint32_t activations, uint32_t place)
{
    uint64_t pair = padded(f->weight_bytes) + padded(f->gradient_bytes), need = padded(f->state_bytes);
    if (estimate_uses_cpu(job, place) && !embedding)
        need = estimate_place(job, place) == PLACE_CPU ? pair : max_u64(pair, need);
    if (!last && plan_activations_spill(activations)) need += padded(f->kept_bytes[activations]);
    return need;
}

/* How the greediest unit of a shard computes. */
static uint32_t way_of(const struct candidate *c, const struct job *job, bool last)
{
    bool out = estimate_place(job, c->place) == PLACE_CPU && job_can_use_cpu(job);
    return partition_way(c->activations, c->loss_inputs, last) | (out ? UNIT_GRADIENTS_OUT : 0);
}

static uint64_t slice_row_bytes(const struct job *job)
{
    return memory_state_rows(&job->network, 1, job_state_format(job)).bytes +
           (job_has_table(job) ? job->network.width * sizeof(float) : 0);
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

/* How much longer copies take when all devices that will be busy copy at once. */
static double contention_of(const struct hardware *hardware, uint32_t busy_devices)
{
    double wanted = 0, rate = bound_host_rate(hardware);
    for (uint32_t d = 0; d < busy_devices; d++)
        wanted += cost_copy_bandwidth(hardware, d, COPY_H2D);
    return rate > 0 && wanted > rate ? wanted / rate : 1;
}

/* Add a shard at the end of the cut. */
static void append_shard(const struct cutter *cutter, const struct candidate *c, uint32_t j,
                         uint64_t first, uint64_t count, const struct footprint *f,
                         struct job_cut *cut)
{
    const struct job *job = &cutter->jobs->jobs[j];
    bool embedding = first == 0 && job_has_embedding(job);
    bool on_cpu = embedding ? estimate_embedding_on_cpu(job, c->place)
                            : way_of(c, job, false) & UNIT_GRADIENTS_OUT;
    uint32_t way = embedding ? 0 : way_of(c, job, is_last(job, first, count));
    struct plan_shard shard = {.job = j,
                               .first_layer = first,
                               .layer_count = count,
                               .inputs_only = way & UNIT_INPUTS};
    struct seconds seconds = estimate_shard(cutter, c, j, &shard, f, on_cpu);
    cut->minibatch.device += seconds.device;
    cut->minibatch.cpu += seconds.cpu;
    cut->on_cpu[cut->count] = on_cpu;
    cut->persistent[cut->count] = cut->kept[cut->count] = false;
    cut->shards[cut->count++] = shard;
}

/* Give the processor as many of the last shards as shorten the minibatch. */
static enum status balance(struct cutter *cutter, const struct candidate *c, uint32_t j,
                           struct job_cut *cut, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    if (estimate_place(job, c->place) != PLACE_SPLIT || !job_can_use_cpu(job)) return STATUS_OK;
    struct seconds best = cut->minibatch, sum = cut->minibatch;
    uint32_t best_first = cut->count, least = job_has_embedding(job) ? 1 : 0;
    for (uint32_t s = cut->count; s-- > least;) {
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, j, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        struct seconds here = estimate_shard(cutter, c, j, shard, f, false);
        struct seconds there = estimate_shard(cutter, c, j, shard, f, true);
        sum.device += there.device - here.device;
        sum.cpu += there.cpu;
        if (estimate_together(cutter, sum) >= estimate_together(cutter, best)) continue;
        best = sum;
        best_first = s;
    }
    for (uint32_t s = best_first; s < cut->count; s++) cut->on_cpu[s] = true;
    cut->minibatch = best;
    return STATUS_OK;
}

/* Cut one job greedily. *fits false: it does not. `room` is what is left for
 * workspace and kept activations together. */
static enum status cut_job(struct cutter *cutter, const struct candidate *c, uint32_t j,
                           uint64_t room, struct job_cut *cut, bool *fits, struct error *err)
{
    const struct job *job = &cutter->jobs->jobs[j];
    uint64_t layers = job->network.layer_count, first = 0;
    uint64_t most = layers;
    *fits = false;
    cut->count = 0;
    cut->workspace_bytes = cut->keep_bytes = cut->spilled_bytes = cut->persistent_bytes = 0;
    cut->slice_rows = 0;
    cut->minibatch = (struct seconds){0};
    if (cutter->options->shards > 1) {
        uint64_t parts = cutter->options->shards - (job_has_embedding(job) ? 1 : 0);
        uint64_t whole = layers - (job_has_embedding(job) ? 1 : 0);
        most = parts ? (whole + parts - 1) / parts : whole;
    }
    if (job_has_embedding(job)) {
        const struct footprint *f = footprint_of(cutter->footprints, j, 0, 1);
        if (!f) return cutter_out_of_memory(err);
        uint64_t need = padded(f->state_bytes) +
                        (job_has_table(job) ? padded(job_table_gradient_bytes(job)) : 0);
        uint64_t workspace = cutter_workspace(f, job, false, UNIT_KEEP);
        if (estimate_embedding_on_cpu(job, c->place)) {
            workspace = 0;
        } else if (job_slices(job)) {
            cut->slice_rows = slice_rows_for(job, c->region_bytes);
            if (cut->slice_rows == 0 || workspace > room) return STATUS_OK;
            if (cut->slice_rows == job_embedding_rows(job) && need <= c->region_bytes)
                cut->slice_rows = 0;
        } else if (need > c->region_bytes || workspace > room) {
            return STATUS_OK;
        }
        cut->workspace_bytes = workspace;
        append_shard(cutter, c, j, 0, 1, f, cut);
        first = 1;
    }
    while (first < layers) {
        uint64_t count = 0;
        struct footprint best = {0};
        for (uint64_t n = 1; first + n <= layers && n <= most; n++) {
            const struct footprint *f = footprint_of(cutter->footprints, j, first, n);
            if (!f) return cutter_out_of_memory(err);
            bool last = is_last(job, first, n);
            uint64_t region = region_need(f, job, false, last, c->activations, c->place);
            uint64_t workspace =
                max_u64(cut->workspace_bytes,
                        cutter_workspace(f, job, last, way_of(c, job, last)));
            uint64_t keep = cut->keep_bytes;
            if (plan_activations_stay(c->activations) && !last)
                keep += padded(f->kept_bytes[c->activations]);
            if (region > c->region_bytes || workspace + keep > room) break;
            count = n;
            best = *f;
        }
        if (count == 0) return STATUS_OK;
        bool last = is_last(job, first, count);
        cut->workspace_bytes =
            max_u64(cut->workspace_bytes,
                    cutter_workspace(&best, job, last, way_of(c, job, last)));
        if (plan_activations_stay(c->activations) && !last)
            cut->keep_bytes += padded(best.kept_bytes[c->activations]);
        if (plan_activations_spill(c->activations) && !last)
            cut->spilled_bytes += best.kept_bytes[c->activations];
        append_shard(cutter, c, j, first, count, &best, cut);
        first += count;
    }
    *fits = true;
    enum status status = balance(cutter, c, j, cut, err);
    return status ? status : estimate_minibatch(cutter, c, j, cut, &cut->minibatch, err);
}

/* --- all jobs at one candidate ----------------------------------------------------------------- */

/* Add a twin's shards, for job `j`. */
static void copy_shards(struct partition *out, const struct job_cut *cut, uint32_t j)
{
    for (uint32_t i = 0; i < cut->count; i++) {
        uint32_t s = out->shard_count++;
        out->shards[s] = cut->shards[i];
        out->shards[s].job = j;
        out->persistent[s] = cut->persistent[i];
        out->kept[s] = cut->kept[i];
        out->on_cpu[s] = cut->on_cpu[i] && !cut->persistent[i];
    }
}

/* Try a candidate; *fits false when some job does not. Fills what it finds into `out`, whose arrays
 * have room for every layer of every job. */
static enum status try_candidate(struct cutter *cutter, const struct candidate *c,
                                 struct partition *out, struct job_cut *cuts, bool *fits,
                                 struct error *err)
{
    uint32_t edge_count = c->region_count + 1;
    uint64_t taken = c->region_count * c->region_bytes + edge_count * cutter->edge_bytes +
                     cutter->table_bytes;
    *fits = false;
    out->shard_count = 0;
    out->workspace_bytes = out->keep_bytes = 0;
    if (taken > cutter->capacity) return STATUS_OK;
    uint64_t room = cutter->capacity - taken, workspace = 0, keep = 0, persistent = 0;
    double spilled = 0;
    struct seconds all = {0};
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        struct job_cut *cut = &cuts[footprint_twin(cutter->footprints, j)];
        if (footprint_twin(cutter->footprints, j) == j) {
            bool job_fits;
            enum status status = cut_job(cutter, c, j, room, cut, &job_fits, err);
            if (status || !job_fits) return status;
        }
        workspace = max_u64(workspace, cut->workspace_bytes);
        keep = cutter->interleaved ? keep + cut->keep_bytes : max_u64(keep, cut->keep_bytes);
        spilled += (double)cut->spilled_bytes;
    }
    if (workspace + keep > room) return STATUS_OK;
    if (c->keeps_first && kept_choose(cutter, c, cuts, room, 0, &workspace, &keep, err))
        return err->status;
    if (persistent_choose(cutter, c, cuts, room, keep, &workspace, err)) return err->status;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        uint64_t bytes = cuts[footprint_twin(cutter->footprints, j)].persistent_bytes;
        persistent = cutter->interleaved ? persistent + bytes : max_u64(persistent, bytes);
    }
    if (!c->keeps_first && kept_choose(cutter, c, cuts, room, persistent, &workspace, &keep, err))
        return err->status;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct job_cut *cut = &cuts[footprint_twin(cutter->footprints, j)];
        out->job_first_shard[j] = out->shard_count;
        out->slice_rows[j] = cut->slice_rows;
        copy_shards(out, cut, j);
        all.device += cut->minibatch.device * (double)cutter->jobs->jobs[j].minibatches;
        all.cpu += cut->minibatch.cpu * (double)cutter->jobs->jobs[j].minibatches;
    }
    /* a plan that would exceed host memory by its spilled activations alone is none */
    if (spilled > 0 && spilled + cutter->host_fixed_bytes > cutter->hardware->host_bytes.value)
        return STATUS_OK;
    out->job_first_shard[cutter->jobs->count] = out->shard_count;
    out->persistent_bytes = persistent;
    out->workspace_bytes = workspace;
    out->keep_bytes = keep;
    out->edge_bytes = cutter->edge_bytes;
    out->edge_count = edge_count;
    out->table_bytes = cutter->table_bytes;
    out->region_bytes = c->region_bytes;
    out->region_count = c->region_count;
    out->activations = c->activations;
    out->objective_s = estimate_together(cutter, all);
    *fits = true;
    return STATUS_OK;
}

/* Where each shard's kept activations and persistent states lie: jobs behind each other when they
 * interleave. */
static void place_what_stays(const struct cutter *cutter, struct partition *out)
{
    uint64_t at = 0, state_at = 0;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        if (!cutter->interleaved) at = state_at = 0;
        for (uint32_t s = out->job_first_shard[j]; s < out->job_first_shard[j + 1]; s++) {
            out->keep_offset[s] = at;
            bool embedding = job_has_embedding(&cutter->jobs->jobs[j]) &&
                             s == out->job_first_shard[j];
            bool last = s + 1 == out->job_first_shard[j + 1];
            uint32_t activations = partition_activations(out, s);
            bool keeps = plan_activations_stay(activations) && !last && !embedding;
            const struct footprint *f =
                footprint_of(cutter->footprints, j, out->shards[s].first_layer,
                             out->shards[s].layer_count);
            if (!f) return; /* it was there when the cut was made */
            out->state_offset[s] = state_at;
            if (keeps) at += padded(f->kept_bytes[activations]);
            if (out->persistent[s]) state_at += padded(f->state_bytes);
        }
    }
}

static void free_cuts(struct job_cut *cuts, uint32_t count)
{
    if (!cuts) return;
    for (uint32_t j = 0; j < count; j++) {
        free(cuts[j].shards);
        free(cuts[j].on_cpu);
        free(cuts[j].persistent);
        free(cuts[j].kept);
        free(cuts[j].ready_s);
    }
    free(cuts);
}

static struct job_cut *make_cuts(const struct job_set *jobs, struct footprints *footprints)
{
    struct job_cut *cuts = calloc(jobs->count ? jobs->count : 1, sizeof *cuts);
    for (uint32_t j = 0; cuts && j < jobs->count; j++) {
        if (footprint_twin(footprints, j) != j) continue;
        cuts[j].shards = calloc(jobs->jobs[j].network.layer_count, sizeof *cuts[j].shards);
        cuts[j].on_cpu = calloc(jobs->jobs[j].network.layer_count, sizeof *cuts[j].on_cpu);
        cuts[j].persistent = calloc(jobs->jobs[j].network.layer_count, sizeof *cuts[j].persistent);
        cuts[j].kept = calloc(jobs->jobs[j].network.layer_count, sizeof *cuts[j].kept);
        cuts[j].ready_s = calloc(jobs->jobs[j].network.layer_count, sizeof *cuts[j].ready_s);
        if (!cuts[j].shards || !cuts[j].on_cpu || !cuts[j].persistent || !cuts[j].kept ||
            !cuts[j].ready_s) {
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
    return !plan_activations_stay(activations) || cutter->hardware->device_count == 1 ||
           !cutter->interleaved;
}

/* The processor's rate must be known, and some job must have an optimizer to give it. */
static bool place_possible(const struct cutter *cutter, uint32_t place)
{
    if (cutter->options->optimizer != PLANNER_AUTO && cutter->options->optimizer != place)
        return false;
    if (place == PLACE_DEVICE) return true;
    if (!hardware_has_cpu(cutter->hardware)) return false;
    for (uint32_t j = 0; j < cutter->jobs->count; j++)
        if (job_can_use_cpu(&cutter->jobs->jobs[j])) return true;
    return cutter->options->optimizer == place;
}

/* The smallest region that every layer fits on its own (an embedding is cut as finely as needed). */
static enum status least_region(const struct cutter *cutter, uint32_t activations, uint32_t place,
                                uint64_t *bytes, struct error *err)
{
    *bytes = 4 * ARENA_ALIGNMENT;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct job *job = &cutter->jobs->jobs[j];
        if (footprint_twin(cutter->footprints, j) != j) continue;
        for (uint64_t l = job_slices(job) ? 1 : 0; l < job->network.layer_count; l++) {
            const struct footprint *f = footprint_of(cutter->footprints, j, l, 1);
            if (!f) return cutter_out_of_memory(err);
            bool embedding = l == 0 && job_has_embedding(job);
            *bytes = max_u64(*bytes, region_need(f, job, embedding, is_last(job, l, 1), activations,
                                                 place));
        }
    }
    return STATUS_OK;
}

/* What the jobs need with activations treated this way when each layer is a shard of its own, and
 * the layer that needs most of it. */
static enum status least_need(const struct cutter *cutter, uint32_t activations, uint32_t place,
                              uint64_t *need, uint32_t *job, uint64_t *layer, struct error *err)
{
    uint32_t regions = cutter->options->regions ? cutter->options->regions : 1;
    uint64_t region = 0, workspace = 0, most = 0;
    enum status status = least_region(cutter, activations, place, &region, err);
    for (uint32_t j = 0; j < cutter->jobs->count && !status; j++) {
        const struct job *of = &cutter->jobs->jobs[j];
        if (footprint_twin(cutter->footprints, j) != j) continue;
        for (uint64_t l = 0; l < of->network.layer_count; l++) {
            const struct footprint *f = footprint_of(cutter->footprints, j, l, 1);
            if (!f) return cutter_out_of_memory(err);
            bool last = is_last(of, l, 1), sliced = l == 0 && job_slices(of);
            if (l == 0 && estimate_embedding_on_cpu(of, place)) continue;
            bool embedding = l == 0 && job_has_embedding(of);
            const struct candidate c = {.activations = activations, .place = place};
            uint64_t own =
                cutter_workspace(f, of, last, embedding ? UNIT_KEEP : way_of(&c, of, last));
            uint64_t region_own = region_need(f, of, embedding, last, activations, place);
            uint64_t sum = own + (sliced ? 0 : regions * region_own) +
                           (last && job_has_table(of) ? cutter_table_bytes(of) : 0);
            workspace = max_u64(workspace, own);
            if (sum <= most) continue;
            most = sum;
            *job = j;
            *layer = l;
        }
    }
    *need = regions * region + (regions + 1) * cutter->edge_bytes + cutter->table_bytes + workspace;
    return status;
}

/* Nothing fits: by how much, at best. */
static enum status infeasible(const struct cutter *cutter, struct error *err)
{
    uint64_t least = UINT64_MAX, layer = 0;
    uint32_t job = 0;
    for (uint32_t way = 0; way < ACTIVATIONS_COUNT * PLACE_COUNT; way++) {
        uint64_t need = 0, mode_layer = 0;
        uint32_t mode_job = 0, mode = way / PLACE_COUNT, place = way % PLACE_COUNT;
        if (!mode_possible(cutter, mode) || !place_possible(cutter, place)) continue;
        enum status status = least_need(cutter, mode, place, &need, &mode_job, &mode_layer, err);
        if (status) return status;
        if (need >= least) continue;
        least = need;
        job = mode_job;
        layer = mode_layer;
    }
    uint64_t missing = least > cutter->capacity ? least - cutter->capacity : 1;
    char device[QUANTITY_TEXT_BYTES], text[QUANTITY_TEXT_BYTES];
    return error_set(err, STATUS_INFEASIBLE,
                     "job '%s' fits a device of %s at no sharding: with each layer a shard of its "
                     "own, layer %" PRIu64 " of 0 to %" PRIu64 " the largest, %s are missing (%" PRIu64
                     " bytes)",
                     cutter->jobs->jobs[job].name,
                     quantity_text((double)cutter->capacity, DIMENSION_BYTES, device), layer,
                     cutter->jobs->jobs[job].network.layer_count - 1,
                     quantity_text((double)missing, DIMENSION_BYTES, text), missing);
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
static enum status try_sizes(struct cutter *cutter, struct candidate c, struct partition *best,
                             struct partition *trial, struct job_cut *cuts, bool *found,
                             struct error *err)
{
    uint64_t least = 0;
    enum status status = least_region(cutter, c.activations, c.place, &least, err);
    for (uint32_t step = 0; step <= REGION_SIZES && !status; step++) {
        bool fits;
        c.region_bytes = region_size(cutter, c.region_count, step, least);
        status = try_candidate(cutter, &c, trial, cuts, &fits, err);
        if (status || !fits || (*found && trial->objective_s >= best->objective_s)) continue;
        struct partition swap = *best;
        *best = *trial;
        *trial = swap;
        *found = true;
        if (!trial->shards) status = partition_allocate(cutter->jobs, trial, err);
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
    enum status status = cuts ? partition_allocate(jobs, &trial, err) : cutter_out_of_memory(err);
    bool found = false;
    uint32_t first = options->regions ? options->regions : options->no_double_buffer ? 1 : 2;
    uint32_t last = options->regions ? options->regions : options->no_double_buffer ? 1 : 3;
    for (uint32_t attempt = 0; attempt < 2 && !found && !status; attempt++) {
        if (attempt == 1) { /* better without double buffer than not at all */
            if (options->regions || options->no_double_buffer) break;
            first = last = 1;
        }
        for (uint32_t way = 0; way < ACTIVATIONS_COUNT * PLACE_COUNT * 4 && !status; way++) {
            struct candidate c = {.activations = way / 4 / PLACE_COUNT,
                                  .place = way / 4 % PLACE_COUNT,
                                  .loss_inputs = way / 2 % 2,
                                  .keeps_first = way % 2};
            if (!mode_possible(&cutter, c.activations) || !place_possible(&cutter, c.place) ||
                (c.keeps_first && !kept_possible(&cutter, &c)))
                continue;
            for (c.region_count = first; c.region_count <= last && !status; c.region_count++)
                status = try_sizes(&cutter, c, &best, &trial, cuts, &found, err);
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
    best.interleaved = interleaved && jobs->count > 1;
    best.contention = cutter.contention;
    place_what_stays(&cutter, &best);
    *out = best;
    return STATUS_OK;
}
