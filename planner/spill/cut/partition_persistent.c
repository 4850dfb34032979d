#include "planner/spill/cut/partition_persistent.h"

#include <string.h>

#include "base/try.h"

struct need {
    uint64_t bytes, workspace_bytes;
};

static bool possible(const struct partition_cutter *cutter)
{
    return !cutter->options->no_persistence && !cutter->options->live &&
           (cutter->hardware->device_count == 1 || !cutter->interleaved);
}

static uint32_t first_shard(const struct partition_cutter *cutter, uint32_t job)
{
    return footprint_has_embedding(&cutter->jobs->jobs[job]) ? 1 : 0;
}

/* Marks `part` of `whole` shards, evenly spread. */
static enum status mark(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t job,
                        struct partition_job_cut *cut, uint32_t part, uint32_t whole,
                        uint64_t *workspace_bytes, struct error *err)
{
    uint32_t first = first_shard(cutter, job), count = cut->count - first;
    /* if a job clips, the host updates */
    bool clips = job_clips(&cutter->jobs->jobs[job]);
    uint32_t chosen = clips ? 0 : (uint32_t)((uint64_t)count * part / whole);
    memset(cut->persistent, 0, cut->count * sizeof *cut->persistent);
    cut->persistent_bytes = 0;
    for (uint32_t i = 0; i < chosen; i++) {
        uint32_t s = first + (uint32_t)((uint64_t)i * count / chosen);
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, job, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        const struct job *of = &cutter->jobs->jobs[job];
        bool last = partition_is_last(of, shard->first_layer, shard->layer_count);
        cut->persistent[s] = true;
        cut->persistent_bytes += partition_padded(f->state_bytes);
        uint32_t how = partition_way(c->activations, c->loss_inputs, last);
        *workspace_bytes = max_u64(*workspace_bytes, cutter_workspace(f, of, last, how));
    }
    return STATUS_OK;
}

static enum status mark_all(const struct partition_cutter *cutter, const struct partition_candidate *c,
                            struct partition_job_cut *cuts, uint32_t part, uint32_t whole, struct need *need,
                            struct error *err)
{
    need->bytes = 0;
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        uint32_t twin = footprint_twin(cutter->footprints, j);
        struct partition_job_cut *cut = &cuts[twin];
        if (twin == j) {
            TRY(mark(cutter, c, j, cut, part, whole, &need->workspace_bytes, err));
        }
        need->bytes = cutter->interleaved ? need->bytes + cut->persistent_bytes
                                          : max_u64(need->bytes, cut->persistent_bytes);
    }
    return STATUS_OK;
}

/* Sums all minibatches of all jobs, by their twins. */
static double total_s(const struct partition_cutter *cutter, const struct partition_job_cut *cuts, bool persistent)
{
    struct partition_seconds sum = {0};
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        const struct partition_job_cut *cut = &cuts[footprint_twin(cutter->footprints, j)];
        struct partition_seconds one = persistent ? cut->persistent_minibatch : cut->minibatch;
        sum.device += one.device * (double)cutter->jobs->jobs[j].minibatches;
        sum.cpu += one.cpu * (double)cutter->jobs->jobs[j].minibatches;
    }
    return estimate_together(cutter, sum);
}

/* Updates the cuts' estimates if the marks make the minibatch faster; else removes all marks. */
static enum status judge(const struct partition_cutter *cutter, const struct partition_candidate *c,
                         struct partition_job_cut *cuts, uint64_t workspace_bytes, uint64_t *workspace,
                         struct error *err)
{
    for (uint32_t j = 0; j < cutter->jobs->count; j++) {
        if (footprint_twin(cutter->footprints, j) != j) continue;
        TRY(estimate_minibatch(cutter, c, j, &cuts[j], &cuts[j].persistent_minibatch, err));
    }
    if (total_s(cutter, cuts, true) < total_s(cutter, cuts, false)) {
        for (uint32_t j = 0; j < cutter->jobs->count; j++)
            cuts[j].minibatch = cuts[j].persistent_minibatch;
        *workspace = workspace_bytes;
        return STATUS_OK;
    }
    struct need none;
    return mark_all(cutter, c, cuts, 0, 1, &none, err);
}

enum status persistent_choose(const struct partition_cutter *cutter, const struct partition_candidate *c,
                              struct partition_job_cut *cuts, uint64_t room, uint64_t keep,
                              uint64_t *workspace, struct error *err)
{
    uint32_t whole = 0, least = 0;
    struct need need = {0};
    if (!possible(cutter)) return STATUS_OK;
    for (uint32_t j = 0; j < cutter->jobs->count; j++)
        if (footprint_twin(cutter->footprints, j) == j &&
            cuts[j].count - first_shard(cutter, j) > whole)
            whole = cuts[j].count - first_shard(cutter, j);
    /* largest share: `least` fits, `most` does not */
    for (uint32_t most = whole + 1; most - least > 1;) {
        uint32_t middle = least + (most - least) / 2;
        need.workspace_bytes = *workspace;
        TRY(mark_all(cutter, c, cuts, middle, whole, &need, err));
        if (need.workspace_bytes + keep + need.bytes <= room) least = middle;
        else most = middle;
    }
    need.workspace_bytes = *workspace;
    enum status status = mark_all(cutter, c, cuts, least, whole ? whole : 1, &need, err);
    if (status || least == 0) return status;
    return judge(cutter, c, cuts, need.workspace_bytes, workspace, err);
}
