/*
 * Resident stages: each job has one stage per device, balanced by time, and all fitting jobs are on the devices at
 * once.
 *
 * A stage's state (and, with room, its activations or its layers' inputs) times the number of seats must fit with the
 * scratch of the current computation. Numbers of seats are tried from the largest down, each with the least time's
 * treatment of activations: over all stages if one job runs at a time, else of the longest stage. The embedding is a
 * shard of its own on the first stage's device.
 */
#include "base/alloc.h"
#include "planner/spill/cut/partition_cutter.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Balances a job's stages on D devices: the least largest time among fitting contiguous cuts, by dynamic programming
 * over (stages, layers). */
struct stage_problem {
    struct partition_cutter *cutter;
    uint32_t job;
    uint32_t activations;
    bool loss_inputs; /* the last stage holds only inputs of layers */
    uint32_t seats;
    uint64_t room;
    bool by_lack; /* find the cut that lacks least, for the message */
};

static uint64_t seat_need(const struct stage_problem *p, const struct footprint *f, bool last)
{
    return partition_padded(f->state_bytes) + (last ? 0 : partition_padded(f->kept_bytes[p->activations]));
}

static double stage_s(const struct stage_problem *p, const struct footprint *f, bool last)
{
    return last ? f->loss_s[p->loss_inputs] : f->forward_s + f->backward_s[p->activations];
}

/* Finds the bytes that stage [first, first + count) lacks on the first or another device. */
static enum status stage_lacks(const struct stage_problem *p, uint64_t first, uint64_t count,
                               bool with_embedding, uint64_t *lacks, double *seconds,
                               struct error *err)
{
    const struct job *job = &p->cutter->jobs->jobs[p->job];
    const struct footprint *f = footprint_of(p->cutter->footprints, p->job, first, count);
    if (!f) return cutter_out_of_memory(err);
    bool last = partition_is_last(job, first, count);
    uint32_t how = partition_way(p->activations, p->loss_inputs, last);
    uint64_t need = p->seats * seat_need(p, f, last) + cutter_workspace(f, job, last, how);
    *seconds = stage_s(p, f, last);
    if (with_embedding) {
        const struct footprint *e = footprint_of(p->cutter->footprints, p->job, 0, 1);
        if (!e) return cutter_out_of_memory(err);
        need += p->seats * partition_padded(e->state_bytes);
        *seconds += stage_s(p, e, false);
    }
    *lacks = need > p->room ? need - p->room : 0;
    return STATUS_OK;
}

/* ends[k]: one past the last layer of stage k. *fits is false if nothing fits. */
static enum status cut_stages(const struct stage_problem *p, uint64_t first, uint64_t layers,
                              uint32_t stages, uint64_t *ends, bool *fits, struct error *err)
{
    size_t width = (size_t)layers + 1;
    double *best = alloc_zeroed((stages + 1u) * width, sizeof *best);
    uint64_t *from = alloc_zeroed((stages + 1u) * width, sizeof *from);
    enum status status = best && from ? STATUS_OK : cutter_out_of_memory(err);
    bool embedding = footprint_has_embedding(&p->cutter->jobs->jobs[p->job]);
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
                if (lacks > 0 && !p->by_lack) break; /* longer stages lack more */
                if (p->by_lack) seconds = (double)lacks;
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
            if (p->by_lack && best[k * width + ends[k - 1] - first] > best[(k - 1) * width + end])
                cutter_note_failure(p->cutter, p->job, first + end,
                                    (uint64_t)best[stages * width + layers]);
        }
    }
    free(best);
    free(from);
    return status;
}

/* Places a shard of p->job, with its state at `seat` bytes; `f`: its footprint. */
static void place_shard(const struct stage_problem *p, const struct footprint *f, uint64_t start, uint64_t end,
                        uint32_t device, uint64_t seat, struct partition *out)
{
    const struct job *job = &p->cutter->jobs->jobs[p->job];
    uint32_t s = out->shard_count++;
    bool last = end == job->network.layer_count, embedding = start == 0 && footprint_has_embedding(job);
    uint32_t way = embedding ? UNIT_KEEP : partition_way(p->activations, p->loss_inputs, last);
    out->shards[s] = (struct plan_shard){.job = p->job, .first_layer = start, .layer_count = end - start,
                                         .inputs_only = way & UNIT_INPUTS};
    out->shard_device[s] = device;
    out->persistent[s] = true;
    out->state_offset[s] = seat;
    out->keep_offset[s] = seat + partition_padded(f->state_bytes);
    out->workspace_bytes = max_u64(out->workspace_bytes, cutter_workspace(f, job, last, way));
}

/* Places the stages of p->job, which end before the layers `ends`; the first one with the embedding. */
static enum status place_job(const struct stage_problem *p, uint64_t first, uint32_t stages, const uint64_t *ends,
                             struct partition *out, struct error *err)
{
    const struct job *job = &p->cutter->jobs->jobs[p->job];
    uint64_t seat = 0;
    double stage = 0, longest = 0, sum = 0;
    out->job_first_shard[p->job] = out->shard_count;
    for (uint32_t k = first ? 0 : 1; k <= stages; k++) {
        uint64_t start = k == 0 ? 0 : k == 1 ? first : ends[k - 2];
        uint64_t end = k == 0 ? 1 : ends[k - 1];
        const struct footprint *f = footprint_of(p->cutter->footprints, p->job, start, end - start);
        if (!f) return cutter_out_of_memory(err);
        bool last = end == job->network.layer_count;
        if (k != 1 || !first) seat = 0;
        place_shard(p, f, start, end, k ? k - 1 : 0, seat, out);
        stage = (k == 1 ? stage : 0) + stage_s(p, f, last);
        longest = max_s(longest, stage);
        sum += stage_s(p, f, last);
        seat += k == 0 ? partition_padded(f->state_bytes) : seat_need(p, f, last);
        out->keep_bytes = max_u64(out->keep_bytes, seat);
    }
    out->objective_s += (p->seats == 1 ? sum : longest) * (double)job->minibatches;
    return STATUS_OK;
}

/* Places all jobs' shards for this number of seats. *fits is false if a job does not fit. */
static enum status try_seats(struct partition_cutter *cutter, uint32_t seats, uint32_t activations,
                             bool loss_inputs, struct partition *out, uint64_t *ends, bool *fits,
                             struct error *err)
{
    uint32_t edges = 4; /* both directions of two neighbours */
    uint64_t taken = edges * cutter->edge_bytes + seats * out->weight_buffer_bytes;
    *fits = false;
    out->shard_count = 0;
    out->workspace_bytes = out->keep_bytes = 0;
    out->objective_s = 0;
    if (taken > cutter->capacity) {
        cutter_note_fixed(cutter, taken);
        return STATUS_OK;
    }
    struct stage_problem p = {.cutter = cutter,
                              .activations = activations,
                              .loss_inputs = loss_inputs,
                              .seats = seats,
                              .room = cutter->capacity - taken};
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct job *job = &cutter->jobs->jobs[j];
        uint64_t first = footprint_has_embedding(job) ? 1 : 0;
        uint64_t layers = job->network.layer_count - first;
        uint32_t stages = cutter->hardware->device_count;
        bool job_fits;
        if (stages > layers) stages = (uint32_t)layers;
        p.job = j;
        enum status status = cut_stages(&p, first, layers, stages, ends, &job_fits, err);
        if (!status && !job_fits) {
            p.by_lack = true;
            return cut_stages(&p, first, layers, stages, ends, &job_fits, err);
        }
        if (!status) status = place_job(&p, first, stages, ends, out, err);
        if (status) return status;
    }
    partition_end(cutter->jobs, out);
    out->edge_bytes = cutter->edge_bytes;
    out->edge_count = edges;
    out->activations = activations;
    out->seat_count = out->weight_buffer_count = seats;
    *fits = out->workspace_bytes + seats * out->keep_bytes <= p.room;
    if (!*fits)
        cutter_note_failure(cutter, 0, 0, out->workspace_bytes + seats * out->keep_bytes - p.room);
    return STATUS_OK;
}

enum status partition_resident(const struct hardware *hardware, const struct job_set *jobs,
                               struct footprints *footprints,
                               const struct planner_options *options, uint32_t seats_max,
                               struct partition *out, struct error *err)
{
    struct partition_cutter cutter = cutter_make(hardware, jobs, footprints, options, true);
    struct partition made = {.resident = true, .contention = 1}, trial = made;
    if (options->activations != PLANNER_AUTO && plan_activations_spill(options->activations))
        return error_set(err, STATUS_BAD_INPUT,
                         "activations of resident shards cannot be spilled (expected keep, "
                         "keep-inputs or recompute)");
    uint64_t *ends = alloc_zeroed(hardware->device_count, sizeof *ends);
    enum status status = ends ? partition_allocate(jobs, &made, err) : cutter_out_of_memory(err);
    if (!status) status = partition_allocate(jobs, &trial, err);
    bool found = false;
    made.weight_buffer_bytes = trial.weight_buffer_bytes = cutter.table_bytes; /* of a seat */
    uint32_t seats = seats_max < jobs->count ? seats_max : jobs->count;
    for (; seats > 0 && !found && !status; seats--) {
        const uint32_t modes[] = {ACTIVATIONS_KEEP, ACTIVATIONS_RECOMPUTE, ACTIVATIONS_KEEP_INPUTS};
        cutter.missing_bytes = UINT64_MAX; /* the least lack of all attempts */
        for (size_t way = 0; way < ARRAY_COUNT(modes) * 2 && !status; way++) {
            uint32_t mode = modes[way / 2];
            bool fits;
            if (options->activations != PLANNER_AUTO && options->activations != mode) continue;
            if (!cutter_may_hold(&cutter, way % 2)) continue;
            status = try_seats(&cutter, seats, mode, way % 2, &trial, ends, &fits, err);
            if (status || !fits || (found && trial.objective_s >= made.objective_s)) continue;
            struct partition swap = made;
            made = trial;
            trial = swap;
            found = true;
        }
    }
    free(ends);
    partition_release(&trial);
    if (!status && !found) {
        const struct job *job = &jobs->jobs[cutter.failed_job];
        char missing[QUANTITY_TEXT_BYTES];
        if (options->missing_bytes) *options->missing_bytes = cutter.missing_bytes;
        status = error_set(err, STATUS_INFEASIBLE,
                           "job '%s' does not fit %" PRIu32 " devices without spilling: the stage "
                           "that begins with layer %" PRIu64 " lacks %s (%" PRIu64 " bytes)",
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
