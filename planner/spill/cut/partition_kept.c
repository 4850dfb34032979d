/* Jobs that interleave share the bytes evenly; jobs that take turns have all. */
#include "planner/spill/cut/partition_kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/chain/chain.h"
#include "planner/chain/chain_keep.h"

bool kept_possible(const struct partition_cutter *cutter, const struct partition_candidate *c)
{
    return cutter->options->mixed && !cutter->options->live && !plan_activations_stay(c->activations) &&
           (cutter->hardware->device_count == 1 || !cutter->interleaved);
}

/* The last shard does both passes at once, so it keeps nothing. */
static bool may_keep(const struct job *job, const struct partition_job_cut *cut, uint32_t s)
{
    return s + 1 < cut->count && !(s == 0 && footprint_has_embedding(job));
}

/* Returns what keeping saves: computation, or a link's time in each direction. */
static int64_t saved_ns(const struct partition_cutter *cutter, const struct partition_candidate *c,
                        const struct footprint *f, uint32_t kept)
{
    double seconds = f->backward_s[c->activations] - f->backward_s[kept];
    if (plan_activations_spill(c->activations))
        seconds += 2 * (double)f->kept_bytes[kept] / cost_copy_bandwidth(cutter->hardware, 0, COPY_H2D);
    return seconds > 0 ? (int64_t)(1e9 * seconds) + 1 : 0;
}

/* Grows *workspace to the neediest keeping shard. */
static enum status grow_workspace(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                  uint32_t job, const struct partition_job_cut *cut, uint64_t *workspace,
                                  struct error *err)
{
    const struct job *of = &cutter->jobs->jobs[job];
    uint32_t way = plan_activations_way(partition_kept_way(c->activations));
    for (uint32_t s = 0; s < cut->count; s++) {
        if (!may_keep(of, cut, s)) continue;
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, job, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        uint32_t out = cut->on_cpu[s] && !cut->persistent[s] ? UNIT_GRADIENTS_OUT : 0;
        *workspace = max_u64(*workspace, cutter_workspace(f, of, false, way | out));
    }
    return STATUS_OK;
}

/* Marks a job's best shards for `bytes`. */
static enum status mark(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t job,
                        struct partition_job_cut *cut, uint64_t bytes, struct error *err)
{
    const struct job *of = &cutter->jobs->jobs[job];
    uint32_t kept = partition_kept_way(c->activations);
    struct chain_need *needs = alloc_zeroed(cut->count, sizeof *needs);
    uint8_t *choices = alloc_zeroed(cut->count, sizeof *choices);
    bool fits;
    if (!needs || !choices) {
        error_memory(err, "needs of shards", cut->count * sizeof *needs);
        goto out;
    }
    for (uint32_t s = 0; s < cut->count; s++) {
        if (!may_keep(of, cut, s)) continue;
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, job, shard->first_layer, shard->layer_count);
        if (!f) {
            cutter_out_of_memory(err);
            goto out;
        }
        needs[s] = (struct chain_need){.kept = partition_padded(f->kept_bytes[kept]),
                                       .again = saved_ns(cutter, c, f, kept)};
    }
    if (chain_keep_best(needs, cut->count, bytes, choices, &fits, err)) goto out;
    uint32_t some = 0, all = 0;
    for (uint32_t s = 0; s < cut->count; s++) {
        all += needs[s].kept > 0;
        some += needs[s].kept > 0 && choices[s] == CHAIN_KEEP;
    }
    if (!fits || some == all) goto out; /* keeping all is tried separately */
    for (uint32_t s = 0; s < cut->count; s++) {
        cut->kept[s] = needs[s].kept > 0 && choices[s] == CHAIN_KEEP;
        if (cut->kept[s]) cut->keep_bytes += needs[s].kept;
    }
out:
    free(needs);
    free(choices);
    return err->status;
}

enum status kept_choose(const struct partition_cutter *cutter, const struct partition_candidate *c,
                        struct partition_job_cut *cuts, uint64_t room, uint64_t persistent, uint64_t *workspace,
                        uint64_t *keep, struct error *err)
{
    uint64_t needed = *workspace, sum = 0;
    uint32_t sharing = cutter->interleaved ? cutter->jobs->count : 1;
    if (!kept_possible(cutter, c)) return STATUS_OK;
    for (uint32_t j = 0; j < cutter->jobs->count; j++)
        if (footprint_twin(cutter->footprints, j) == j &&
            grow_workspace(cutter, c, j, &cuts[j], &needed, err))
            return err->status;
    if (needed + persistent >= room) return STATUS_OK;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        struct partition_job_cut *cut = &cuts[footprint_twin(cutter->footprints, j)];
        struct partition_seconds kept;
        if (footprint_twin(cutter->footprints, j) == j) {
            TRY(mark(cutter, c, j, cut, (room - needed - persistent) / sharing, err));
            TRY(estimate_minibatch(cutter, c, j, cut, &kept, err));
            if (estimate_together(cutter, kept) < estimate_together(cutter, cut->minibatch)) {
                cut->minibatch = kept;
            } else {
                memset(cut->kept, 0, cut->count * sizeof *cut->kept);
                cut->keep_bytes = 0;
            }
        }
        sum = cutter->interleaved ? sum + cut->keep_bytes : max_u64(sum, cut->keep_bytes);
    }
    if (sum == 0) return STATUS_OK;
    *workspace = needed;
    *keep = sum;
    return STATUS_OK;
}
