/*
 * Greedy maximal shards for the best weight buffer size; on request with balanced boundaries.
 *
 * For a weight buffer size G the arena has k weight buffers and the edges; the rest is workspace and kept activations.
 * A shard grows while its state fits G and its scratch the workspace: the fewest shards, because parts of a fitting
 * shard fit too. A large G makes few shards, but little workspace and long first copies. So some dozens of sizes
 * between the largest layer's need and all memory are tried, with two and three weight buffers and each treatment of
 * activations, in the last shard and in the others. The least estimated time (partition_estimate.h) wins.
 *
 * Places of the optimizers are tried as well: on the device, a weight buffer holds a shard's state; with the host's
 * processor, parameters and gradient. Split optimizers are cut as for the device, and each job's last shards go to the
 * processor until both are balanced: their gradients are ready first, and the first shards' parameters are needed
 * first. (Without moments, parameters and gradient are larger than a state and count.)
 *
 * Only the best candidate gets balanced boundaries (partition_job.h). Its weight buffer shrinks to the new need, and
 * staying states and places of updates are chosen again.
 *
 * If nothing fits, the message has the missing bytes for shards of one layer and one weight buffer, and the neediest
 * layer.
 */
#include "base/alloc.h"
#include "planner/spill/cut/partition_job.h"
#include "planner/spill/cut/partition_kept.h"
#include "planner/spill/cut/partition_persistent.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/spill/cut/bound.h"

enum { WEIGHT_BUFFER_SIZES = 20 };

/* --- all jobs at one candidate ----------------------------------------------------------------- */

double partition_contention(const struct hardware *hardware, uint32_t busy_devices)
{
    struct hardware nodes = *hardware; /* up to the last busy node's end */
    nodes.device_count = busy_devices;
    while (nodes.device_count < hardware->device_count &&
           hardware->devices[nodes.device_count].host == hardware->devices[busy_devices - 1].host)
        nodes.device_count++;
    double wanted = 0, rate = bound_host_rate(&nodes);
    for (uint32_t d = 0; d < busy_devices; d++)
        wanted += cost_copy_bandwidth(hardware, d, COPY_H2D);
    return rate > 0 && wanted > rate ? wanted / rate : 1;
}

static void copy_shards(struct partition *out, const struct partition_job_cut *cut, uint32_t j)
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

/* Sums needs of all cuts, and traffic to host memory. */
static void total(const struct partition_cutter *cutter, const struct partition_job_cut *cuts, uint64_t *workspace,
                  uint64_t *keep, double *spilled)
{
    *workspace = *keep = 0;
    *spilled = 0;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct partition_job_cut *cut = &cuts[footprint_twin(cutter->footprints, j)];
        *workspace = max_u64(*workspace, cut->workspace_bytes);
        *keep = cutter->interleaved ? *keep + cut->keep_bytes : max_u64(*keep, cut->keep_bytes);
        *spilled += (double)cut->spilled_bytes;
    }
}

/* Returns how many jobs like the largest fit a host's memory, at most one per busy device. */
static double jobs_at_a_time(const struct partition_cutter *cutter, const struct partition_job_cut *cuts,
                             bool with_spilled)
{
    double largest = 1, host_bytes = (double)hardware_host_bytes(cutter->hardware);
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const double spilled = with_spilled ? (double)cuts[j].spilled_bytes : 0;
        if (footprint_twin(cutter->footprints, j) == j)
            largest = max_s(largest, cutter_host_bytes(&cutter->jobs->jobs[j]) + spilled);
    }
    return fmin(floor(host_bytes / largest), cutter->host_devices);
}

/* Returns true if spilled activations leave room for all jobs or, if jobs take turns, for one, and for one per device
 * if these fit without spilling. */
static bool host_has_room(const struct partition_cutter *cutter, const struct partition_job_cut *cuts, double spilled)
{
    double host_bytes = cutter->hosts * (double)hardware_host_bytes(cutter->hardware);
    if (!cutter->turns) return spilled + cutter->host_fixed_bytes <= host_bytes;
    double with_spilled = jobs_at_a_time(cutter, cuts, true);
    return with_spilled >= 1 && with_spilled >= jobs_at_a_time(cutter, cuts, false);
}

/* Returns the part of `bytes`, for workspace and kept activations, that others leave to job `j` and its equals. */
static struct partition_room room_of(const struct partition_cutter *cutter, const struct partition_job_cut *cuts,
                                     uint32_t j, uint64_t bytes)
{
    struct partition_room room = {.bytes = bytes, .copies = cutter->interleaved ? 0 : 1};
    for (uint32_t i = 0; i < cutter->jobs->count; i++) {
        uint32_t twin = footprint_twin(cutter->footprints, i);
        if (twin == j) {
            room.copies += cutter->interleaved;
            continue;
        }
        room.workspace_bytes = max_u64(room.workspace_bytes, cuts[twin].workspace_bytes);
        if (cutter->interleaved) room.bytes -= cuts[twin].keep_bytes;
        else room.keep_bytes = max_u64(room.keep_bytes, cuts[twin].keep_bytes);
    }
    return room;
}

/* Shrinks the weight buffer, too. */
static enum status balance(const struct partition_cutter *cutter, struct partition_candidate *c, uint64_t room,
                           struct partition_job_cut *cuts, struct error *err)
{
    uint64_t weight_buffer = 0, used;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        if (footprint_twin(cutter->footprints, j) != j) continue;
        const struct partition_room own = room_of(cutter, cuts, j, room);
        TRY(partition_cut_balanced(cutter, c, j, &own, &cuts[j], err));
        TRY(partition_weight_buffer_used(cutter, c, j, &cuts[j], &used, err));
        weight_buffer = max_u64(weight_buffer, used);
    }
    if (weight_buffer < c->weight_buffer_bytes) c->weight_buffer_bytes = weight_buffer;
    return STATUS_OK;
}

/* Cuts each job greedily. *fits is false if one does not fit. */
static enum status cut_all(struct partition_cutter *cutter, const struct partition_candidate *c, uint64_t room,
                           struct partition_job_cut *cuts, bool *fits, struct error *err)
{
    *fits = true;
    for (uint32_t j = 0; j < cutter->jobs->count && *fits; j++)
        if (footprint_twin(cutter->footprints, j) == j)
            TRY(partition_cut_greedy(cutter, c, j, room, &cuts[j], fits, err));
    return STATUS_OK;
}

static struct partition_seconds copy_all_shards(const struct partition_cutter *cutter,
                                                const struct partition_job_cut *cuts, struct partition *out)
{
    struct partition_seconds all = {0};
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct partition_job_cut *cut = &cuts[footprint_twin(cutter->footprints, j)];
        out->job_first_shard[j] = out->shard_count;
        out->slice_rows[j] = cut->slice_rows;
        copy_shards(out, cut, j);
        all.device += cut->minibatch.device * (double)cutter->jobs->jobs[j].minibatches;
        all.cpu += cut->minibatch.cpu * (double)cutter->jobs->jobs[j].minibatches;
    }
    return all;
}

/* Tries a candidate's greedy or balanced cuts and fills `out` up to partition_end(), with room for every layer of every
 * job. *fits is false if a job does not fit. */
static enum status try_candidate(struct partition_cutter *cutter, const struct partition_candidate *c, bool balanced,
                                 struct partition *out, struct partition_job_cut *cuts, bool *fits,
                                 struct error *err)
{
    uint32_t edge_count = c->weight_buffer_count + 1;
    uint64_t taken = c->weight_buffer_count * c->weight_buffer_bytes + edge_count * cutter->edge_bytes +
                     cutter->table_bytes;
    *fits = false;
    out->shard_count = 0;
    out->workspace_bytes = out->keep_bytes = 0;
    if (taken > cutter->capacity) return STATUS_OK;
    uint64_t room = cutter->capacity - taken, workspace = 0, keep = 0, persistent = 0;
    double spilled = 0;
    bool all_fit;
    TRY(cut_all(cutter, c, room, cuts, &all_fit, err));
    if (!all_fit) return STATUS_OK;
    total(cutter, cuts, &workspace, &keep, &spilled);
    if (workspace + keep > room) return STATUS_OK;
    struct partition_candidate fitted = *c;
    if (balanced) {
        TRY(balance(cutter, &fitted, room, cuts, err));
        room += c->weight_buffer_count * (c->weight_buffer_bytes - fitted.weight_buffer_bytes);
        total(cutter, cuts, &workspace, &keep, &spilled);
        if (workspace + keep > room) return STATUS_OK;
        c = &fitted;
    }
    if (c->keeps_first) TRY(kept_choose(cutter, c, cuts, room, 0, &workspace, &keep, err));
    TRY(persistent_choose(cutter, c, cuts, room, keep, &workspace, err));
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        uint64_t bytes = cuts[footprint_twin(cutter->footprints, j)].persistent_bytes;
        persistent = cutter->interleaved ? persistent + bytes : max_u64(persistent, bytes);
    }
    if (!c->keeps_first) TRY(kept_choose(cutter, c, cuts, room, persistent, &workspace, &keep, err));
    const struct partition_seconds all = copy_all_shards(cutter, cuts, out);
    if (spilled > 0 && !host_has_room(cutter, cuts, spilled)) return STATUS_OK;
    out->persistent_bytes = persistent;
    out->workspace_bytes = workspace;
    out->keep_bytes = keep;
    out->edge_bytes = cutter->edge_bytes;
    out->edge_count = edge_count;
    out->table_bytes = cutter->table_bytes;
    out->weight_buffer_bytes = c->weight_buffer_bytes;
    out->weight_buffer_count = c->weight_buffer_count;
    out->activations = c->activations;
    out->objective_s = estimate_together(cutter, all);
    *fits = true;
    return STATUS_OK;
}

/* Places kept activations and persistent states: one job after the other if jobs interleave. */
static void place_what_stays(const struct partition_cutter *cutter, struct partition *out)
{
    uint64_t at = 0, state_at = 0;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        if (!cutter->interleaved) at = state_at = 0;
        for (uint32_t s = out->job_first_shard[j]; s < out->job_first_shard[j + 1]; s++) {
            out->keep_offset[s] = at;
            bool embedding = footprint_has_embedding(&cutter->jobs->jobs[j]) &&
                             s == out->job_first_shard[j];
            bool last = s + 1 == out->job_first_shard[j + 1];
            uint32_t activations = partition_activations(out, s);
            bool keeps = plan_activations_stay(activations) && !last && !embedding;
            const struct footprint *f =
                footprint_of(cutter->footprints, j, out->shards[s].first_layer,
                             out->shards[s].layer_count);
            if (!f) return; /* the cut was made with it */
            out->state_offset[s] = state_at;
            if (keeps) at += partition_padded(f->kept_bytes[activations]);
            if (out->persistent[s]) state_at += partition_padded(f->state_bytes);
        }
    }
}

static void free_cuts(struct partition_job_cut *cuts, uint32_t count)
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

static struct partition_job_cut *make_cuts(const struct job_set *jobs, struct footprints *footprints)
{
    struct partition_job_cut *cuts = alloc_zeroed(jobs->count ? jobs->count : 1, sizeof *cuts);
    for (uint32_t j = 0; cuts && j < jobs->count; j++) {
        if (footprint_twin(footprints, j) != j) continue;
        cuts[j].shards = alloc_zeroed(jobs->jobs[j].network.layer_count, sizeof *cuts[j].shards);
        cuts[j].on_cpu = alloc_zeroed(jobs->jobs[j].network.layer_count, sizeof *cuts[j].on_cpu);
        cuts[j].persistent = alloc_zeroed(jobs->jobs[j].network.layer_count, sizeof *cuts[j].persistent);
        cuts[j].kept = alloc_zeroed(jobs->jobs[j].network.layer_count, sizeof *cuts[j].kept);
        cuts[j].ready_s = alloc_zeroed(jobs->jobs[j].network.layer_count, sizeof *cuts[j].ready_s);
        if (!cuts[j].shards || !cuts[j].on_cpu || !cuts[j].persistent || !cuts[j].kept ||
            !cuts[j].ready_s) {
            free_cuts(cuts, jobs->count);
            return NULL;
        }
    }
    return cuts;
}

/* Kept activations need one device and one order. */
static bool mode_possible(const struct partition_cutter *cutter, uint32_t activations)
{
    if (cutter->options->activations != PLANNER_AUTO &&
        cutter->options->activations != activations)
        return false;
    return !plan_activations_stay(activations) ||
           (!cutter->options->live && (cutter->hardware->device_count == 1 || !cutter->interleaved));
}

/* The processor's rate must be known, and a job have an optimizer for it. */
static bool place_possible(const struct partition_cutter *cutter, uint32_t place)
{
    if (cutter->options->optimizer != PLANNER_AUTO && cutter->options->optimizer != place)
        return false;
    if (place == PLANNER_PLACE_DEVICE) return true;
    if (!hardware_has_cpu(cutter->hardware)) return false;
    for (uint32_t j = 0; j < cutter->jobs->count; j++)
        if (footprint_can_use_cpu(&cutter->jobs->jobs[j])) return true;
    return cutter->options->optimizer == place;
}

static uint64_t layer_weight_buffer(const struct job *job, uint64_t layer, const struct footprint *f,
                                    uint32_t activations, uint32_t place)
{
    if (layer == 0 && footprint_has_embedding(job)) return partition_embedding_need(f, job, place);
    return partition_weight_buffer_need(f, job, partition_is_last(job, layer, 1), activations, place);
}

/* Finds the smallest weight buffer with each layer a shard; embeddings are cut into rows if needed. */
static enum status least_weight_buffer(const struct partition_cutter *cutter, uint32_t activations, uint32_t place,
                                       uint64_t *bytes, struct error *err)
{
    *bytes = 4 * PARTITION_ARENA_ALIGNMENT;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct job *job = &cutter->jobs->jobs[j];
        if (footprint_twin(cutter->footprints, j) != j) continue;
        for (uint64_t l = job_layers_begin(job); l < job_layers_end(job); l++) {
            const struct footprint *f = footprint_of(cutter->footprints, j, l, 1);
            if (!f) return cutter_out_of_memory(err);
            *bytes = max_u64(*bytes, layer_weight_buffer(job, l, f, activations, place));
        }
    }
    return STATUS_OK;
}

static uint64_t layer_workspace(const struct job *job, uint64_t layer, const struct footprint *f, uint32_t activations,
                                bool loss_inputs, uint32_t place)
{
    const struct partition_candidate c = {.activations = activations, .loss_inputs = loss_inputs, .place = place};
    bool last = partition_is_last(job, layer, 1), embedding = layer == 0 && footprint_has_embedding(job);
    if (embedding && estimate_embedding_on_cpu(job, place)) return 0;
    return cutter_workspace(f, job, last, embedding ? UNIT_KEEP : partition_unit_way(&c, job, last));
}

static uint64_t layer_keep(const struct job *job, uint64_t layer, const struct footprint *f, uint32_t activations)
{
    bool embedding = layer == 0 && footprint_has_embedding(job);
    if (embedding || partition_is_last(job, layer, 1) || !plan_activations_stay(activations)) return 0;
    return partition_padded(f->kept_bytes[activations]);
}

/* The least need for one treatment of activations and optimizers, and its neediest layer. */
struct partition_spilled_least {
    uint64_t bytes, layer;
    uint32_t job;
};

/* Finds the need with each layer a shard. */
static enum status least_need(const struct partition_cutter *cutter, uint32_t activations, bool loss_inputs,
                              uint32_t place, struct partition_spilled_least *out, struct error *err)
{
    uint32_t weight_buffers = cutter->options->weight_buffers ? cutter->options->weight_buffers : 1;
    uint64_t weight_buffer = 0, workspace = 0, most = 0, keep = 0;
    enum status status = least_weight_buffer(cutter, activations, place, &weight_buffer, err);
    for (uint32_t j = 0; j < cutter->jobs->count && !status; j++) {
        const struct job *of = &cutter->jobs->jobs[j];
        uint64_t kept = 0;
        for (uint64_t l = job_layers_begin(of); l < job_layers_end(of); l++) {
            const struct footprint *f = footprint_of(cutter->footprints, j, l, 1);
            if (!f) return cutter_out_of_memory(err);
            uint64_t own = layer_workspace(of, l, f, activations, loss_inputs, place);
            uint64_t sum = own + weight_buffers * layer_weight_buffer(of, l, f, activations, place) +
                           (partition_is_last(of, l, 1) && footprint_has_table(of) ? cutter_table_bytes(of) : 0);
            workspace = max_u64(workspace, own);
            kept += layer_keep(of, l, f, activations);
            if (sum <= most) continue;
            most = sum;
            out->job = j;
            out->layer = l;
        }
        keep = cutter->interleaved ? keep + kept : max_u64(keep, kept);
    }
    out->bytes = weight_buffers * weight_buffer + (weight_buffers + 1) * cutter->edge_bytes + cutter->table_bytes +
                 workspace + keep;
    return status;
}

/* Reports options that are impossible with any memory. */
static enum status impossible(const struct partition_cutter *cutter, struct error *err)
{
    uint32_t asked = cutter->options->activations;
    if (asked < ACTIVATIONS_COUNT && !mode_possible(cutter, asked))
        return error_set(err, STATUS_INFEASIBLE,
                         "activations cannot stay on a device ('%s') where jobs %s (expected %s, or "
                         "activations that move)",
                         plan_activations_names[asked],
                         cutter->options->live ? "are dispatched live" : "take turns on several devices",
                         cutter->options->live ? "an order that is planned" : "one device");
    return error_set(err, STATUS_INFEASIBLE,
                     "the host's processor can update no job here (expected optimizers on devices)");
}

static enum status infeasible(const struct partition_cutter *cutter, struct error *err)
{
    struct partition_spilled_least least = {.bytes = UINT64_MAX};
    for (uint32_t way = 0; way < ACTIVATIONS_COUNT * PLANNER_PLACE_COUNT * 2; way++) {
        struct partition_spilled_least need = {0};
        uint32_t mode = way / 2 / PLANNER_PLACE_COUNT, place = way / 2 % PLANNER_PLACE_COUNT;
        if (!mode_possible(cutter, mode) || !place_possible(cutter, place) || !cutter_may_hold(cutter, way % 2))
            continue;
        TRY(least_need(cutter, mode, way % 2, place, &need, err));
        if (need.bytes < least.bytes) least = need;
    }
    if (least.bytes == UINT64_MAX) return impossible(cutter, err);
    uint64_t missing = least.bytes > cutter->capacity ? least.bytes - cutter->capacity : 1;
    char given[QUANTITY_TEXT_BYTES], text[QUANTITY_TEXT_BYTES];
    if (cutter->options->missing_bytes) *cutter->options->missing_bytes = missing;
    return error_set(err, STATUS_INFEASIBLE,
                     "job '%s' needs devices of at least %s (its largest layer, %" PRIu64 " of 0 to %" PRIu64
                     "); %s was given",
                     cutter->jobs->jobs[least.job].name, quantity_bytes_at_least(cutter->capacity + missing, text),
                     least.layer, cutter->jobs->jobs[least.job].network.layer_count - 1,
                     quantity_text((double)cutter->capacity, DIMENSION_BYTES, given));
}

/* Returns sizes from all memory down to a 200th, in equal ratios; last the least possible one. */
static uint64_t weight_buffer_size(const struct partition_cutter *cutter, uint32_t weight_buffers, uint32_t step,
                                   uint64_t least)
{
    double size = (double)(cutter->capacity / weight_buffers);
    if (step == WEIGHT_BUFFER_SIZES) return least;
    for (uint32_t i = 0; i < step; i++) size /= 1.3216; /* 200^(1/19) */
    return (uint64_t)size & ~(uint64_t)(PARTITION_ARENA_ALIGNMENT - 1);
}

/* The best cut so far; a cut to try. */
struct partition_search {
    struct partition best, trial;
    struct partition_candidate candidate;
    struct partition_job_cut *cuts;
    bool found;
};

static enum status adopt(const struct partition_cutter *cutter, const struct partition_candidate *c,
                         struct partition_search *search, struct error *err)
{
    struct partition swap = search->best;
    search->best = search->trial;
    search->trial = swap;
    search->candidate = *c;
    search->found = true;
    return search->trial.shards ? STATUS_OK : partition_allocate(cutter->jobs, &search->trial, err);
}

static enum status try_sizes(struct partition_cutter *cutter, struct partition_candidate c,
                             struct partition_search *search, struct error *err)
{
    uint64_t least = 0;
    enum status status = least_weight_buffer(cutter, c.activations, c.place, &least, err);
    for (uint32_t step = 0; step <= WEIGHT_BUFFER_SIZES && !status; step++) {
        bool fits;
        c.weight_buffer_bytes = weight_buffer_size(cutter, c.weight_buffer_count, step, least);
        status = try_candidate(cutter, &c, false, &search->trial, search->cuts, &fits, err);
        if (status || !fits ||
            (search->found && search->trial.objective_s >= search->best.objective_s))
            continue;
        status = adopt(cutter, &c, search, err);
    }
    return status;
}

/* Balances the best candidate's cuts, unless that is estimated to take longer. */
static enum status try_balanced(struct partition_cutter *cutter, struct partition_search *search, struct error *err)
{
    bool fits;
    const struct partition_candidate c = search->candidate;
    TRY(try_candidate(cutter, &c, true, &search->trial, search->cuts, &fits, err));
    if (!fits || estimate_longer(search->trial.objective_s, search->best.objective_s)) return STATUS_OK;
    return adopt(cutter, &c, search, err);
}

enum status partition_spilled(const struct hardware *hardware, const struct job_set *jobs,
                              struct footprints *footprints,
                              const struct planner_options *options, bool interleaved,
                              struct partition *out, struct error *err)
{
    struct partition_cutter cutter = cutter_make(hardware, jobs, footprints, options, interleaved);
    uint32_t of_host = (jobs->count + cutter.hosts - 1) / cutter.hosts;
    uint32_t busy = of_host < cutter.host_devices ? of_host : cutter.host_devices;
    struct partition_search search = {.cuts = make_cuts(jobs, footprints)};
    cutter.contention = max_s(partition_contention(hardware, busy), options->contention);
    enum status status = search.cuts ? partition_allocate(jobs, &search.trial, err)
                                     : cutter_out_of_memory(err);
    uint32_t first = options->weight_buffers ? options->weight_buffers : options->no_double_buffer ? 1 : 2;
    uint32_t last = options->weight_buffers ? options->weight_buffers : options->no_double_buffer ? 1 : 3;
    for (uint32_t attempt = 0; attempt < 2 && !search.found && !status; attempt++) {
        if (attempt == 1) { /* without double buffering, if nothing else fits */
            if (options->weight_buffers || options->no_double_buffer) break;
            first = last = 1;
        }
        for (uint32_t way = 0; way < ACTIVATIONS_COUNT * PLANNER_PLACE_COUNT * 4 && !status; way++) {
            struct partition_candidate c = {.activations = way / 4 / PLANNER_PLACE_COUNT,
                                            .place = way / 4 % PLANNER_PLACE_COUNT,
                                            .loss_inputs = way / 2 % 2,
                                            .keeps_first = way % 2};
            if (!mode_possible(&cutter, c.activations) || !place_possible(&cutter, c.place) ||
                !cutter_may_hold(&cutter, c.loss_inputs) || (c.keeps_first && !kept_possible(&cutter, &c)))
                continue;
            for (c.weight_buffer_count = first; c.weight_buffer_count <= last && !status; c.weight_buffer_count++)
                status = try_sizes(&cutter, c, &search, err);
        }
    }
    if (!status && search.found && options->cuts == PLANNER_CUTS_BALANCED)
        status = try_balanced(&cutter, &search, err);
    free_cuts(search.cuts, jobs->count);
    partition_release(&search.trial);
    if (!status && !search.found) status = infeasible(&cutter, err);
    if (status) {
        partition_release(&search.best);
        return status;
    }
    search.best.seat_count = 1;
    search.best.interleaved = interleaved && jobs->count > 1;
    search.best.apart = options->live;
    search.best.contention = cutter.contention;
    partition_end(jobs, &search.best);
    place_what_stays(&cutter, &search.best);
    *out = search.best;
    return STATUS_OK;
}
