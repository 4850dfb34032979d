/*
 * Minimises the busy time of storage, one more link, shared by all devices.
 *
 * Per freed byte of host memory, a spilled shard moves 7/3 bytes per minibatch (AdamW: parameters in; state in and
 * out), the last shard 2, an embedding with a tied head 8/3, a persistent shard 2 in all. Shards sorted by seconds per
 * byte are chosen until there is room; then superfluous ones are given back. Shards of equal cost are chosen spread
 * over their job, so that reads run while their neighbours compute:
 *
 *     position by the golden ratio:   0 . . 3 . 1 . . 4 . 2 . . 5      (numbers: order of choice)
 *
 * The missing room is estimated from above (host_need.h). These states stay in host memory: embeddings on the host's
 * processor, which uses single rows; states of jobs that keep their best evaluation's weights, because a KEEP copies
 * whole states; states of jobs that clip, whose updates wait for the last gradient and would read the states again.
 *
 * The arena of staged states takes memory for the largest shard on storage. Fewer turns leave more room; four let
 * reading, copying, updating and writing run in parallel.
 *
 * This greedy knapsack loses less than one shard's cost against the best choice.
 */
#include "planner/spill/cut/partition_storage.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "models/job/memory.h"
#include "planner/spill/cut/node_assignment.h"
#include "planner/spill/cut/host_need.h"

enum { TURNS_MOST = 4, TURNS_LEAST = 2, BLOCK = 4096 };

struct partition_storage_candidate {
    uint32_t shard, order;
    uint64_t bytes;           /* of its state */
    uint64_t transient, held; /* bytes of the arena */
    double cost_s;            /* seconds of storage per byte, all minibatches */
};

struct chooser {
    const struct hardware *hardware;
    const struct job_set *jobs;
    struct footprints *footprints;
    struct partition *p;
    uint32_t devices; /* of hosts that have jobs */
    struct partition_storage_candidate *candidates;
    uint32_t count;
};

static uint64_t blocks(uint64_t bytes) { return size_align(bytes, BLOCK); }

static const struct footprint *footprint_at(const struct chooser *c, uint32_t shard)
{
    const struct plan_shard *s = &c->p->shards[shard];
    return footprint_of(c->footprints, s->job, s->first_layer, s->layer_count);
}

static bool is_embedding(const struct chooser *c, uint32_t shard)
{
    const struct plan_shard *s = &c->p->shards[shard];
    return s->first_layer == 0 && footprint_has_embedding(&c->jobs->jobs[s->job]);
}

static enum status no_memory(struct error *err)
{
    return error_memory(err, "choosing states for storage", 1);
}

/* --- candidates ------------------------------------------------------------------------------- */

struct storage_traffic storage_traffic_of(const struct partition *p, const struct job *job,
                                          const struct footprint *f, uint32_t shard)
{
    const struct plan_shard *s = &p->shards[shard];
    bool last = s->first_layer + s->layer_count == job->network.layer_count;
    if (!storage_has(p, shard) || p->persistent[shard]) return (struct storage_traffic){0};
    return (struct storage_traffic){.forward_read = last ? 0 : f->weight_bytes,
                                    .back_read = f->goes_back ? f->state_bytes : 0,
                                    .back_written = f->trained_bytes};
}

static double cost_of(const struct chooser *c, uint32_t shard, const struct footprint *f)
{
    const struct plan_shard *s = &c->p->shards[shard];
    const struct job *job = &c->jobs->jobs[s->job];
    bool last = s->first_layer + s->layer_count == job->network.layer_count;
    double read = (f->goes_back ? (double)f->state_bytes : 0) + (last ? 0 : (double)f->weight_bytes);
    double written = (double)f->trained_bytes, times = (double)job->minibatches;
    if (is_embedding(c, shard) && footprint_has_table(job)) read += (double)footprint_table_bytes(job);
    if (c->p->persistent[shard]) { /* once in and once out */
        read = (double)f->state_bytes;
        times = 1;
    }
    double seconds = read / cost_storage_bandwidth(c->hardware, STORAGE_READ) +
                     written / cost_storage_bandwidth(c->hardware, STORAGE_WRITE);
    return seconds * times / (double)f->state_bytes;
}

static enum status add_candidate(struct chooser *c, uint32_t shard, struct error *err)
{
    const struct partition *p = c->p;
    uint32_t j = p->shards[shard].job;
    const struct job *job = &c->jobs->jobs[j];
    bool embedding = is_embedding(c, shard), on_cpu = p->on_cpu[shard];
    const struct footprint *f = footprint_at(c, shard);
    if (!f) return no_memory(err);
    if ((embedding && on_cpu) || job->keep_best || job_clips(job) || f->state_bytes == 0)
        return STATUS_OK;
    uint64_t transient = on_cpu ? f->weight_bytes : f->state_bytes;
    if (embedding && p->slice_rows[j] > 0)
        transient =
            memory_state_rows(&job->network, p->slice_rows[j], job_state_format(job)).bytes;
    c->candidates[c->count++] = (struct partition_storage_candidate){
        .shard = shard,
        .order = (shard - p->job_first_shard[j]) * UINT32_C(2654435769), /* 2^32 / golden ratio */
        .bytes = f->state_bytes,
        .transient = blocks(transient),
        .held = on_cpu ? blocks(f->state_bytes) : 0,
        .cost_s = cost_of(c, shard, f)};
    return STATUS_OK;
}

static int compare(const void *left, const void *right)
{
    const struct partition_storage_candidate *a = left, *b = right;
    if (a->cost_s < b->cost_s || a->cost_s > b->cost_s) return a->cost_s < b->cost_s ? -1 : 1;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    return a->shard < b->shard ? -1 : 1; /* never equal */
}

/* --- choosing --------------------------------------------------------------------------------- */

static void store(struct chooser *c, const struct partition_storage_candidate *candidate, uint64_t *stored)
{
    struct partition_storage *storage = &c->p->storage;
    storage->stored[candidate->shard] = true;
    storage->transient_bytes = max_u64(storage->transient_bytes, candidate->transient);
    storage->held_bytes = max_u64(storage->held_bytes, candidate->held);
    *stored += candidate->bytes;
}

static uint64_t arena_bytes(const struct chooser *c)
{
    return storage_device_bytes(c->p) * c->devices;
}

/* Chooses states until `missing` bytes and the arena have room. *lacking: still missing. */
static void choose(struct chooser *c, uint64_t missing, uint32_t turns, bool all, uint64_t *lacking)
{
    struct partition_storage *storage = &c->p->storage;
    uint64_t stored = 0;
    uint32_t taken = 0;
    for (uint32_t s = 0; s < c->p->shard_count; s++) storage->stored[s] = false;
    storage->transient_bytes = storage->held_bytes = 0;
    storage->turns = turns;
    while (taken < c->count && (all || stored < missing + arena_bytes(c)))
        store(c, &c->candidates[taken++], &stored);
    uint64_t wanted = missing + arena_bytes(c);
    *lacking = stored < wanted ? wanted - stored : 0;
    for (uint32_t i = taken; i-- > 0 && !all && *lacking == 0;) {
        const struct partition_storage_candidate *candidate = &c->candidates[i];
        if (stored - candidate->bytes < wanted) continue;
        stored -= candidate->bytes;
        storage->stored[candidate->shard] = false;
    }
    storage->stored_bytes = stored;
}

static enum status too_small(const char *what, uint64_t missing, struct error *err)
{
    char text[QUANTITY_TEXT_BYTES];
    return error_set(err, STATUS_INFEASIBLE, "%s: %s are missing (%llu bytes)", what,
                     quantity_text((double)missing, DIMENSION_BYTES, text),
                     (unsigned long long)missing);
}

static enum status choose_all(struct chooser *c, const struct planner_options *options,
                              struct error *err)
{
    struct host_need need = {0};
    uint32_t hosts = c->p->resident      ? hardware_hosts_in_use(c->hardware)
                     : c->p->interleaved ? node_assignment_count(c->hardware, c->jobs) : 1;
    c->devices = hosts * hardware_most_on_host(c->hardware, 0, c->hardware->device_count);
    uint64_t have = hosts * hardware_host_bytes(c->hardware), lacking = 0;
    uint64_t capacity = hosts * hardware_storage_bytes(c->hardware);
    bool all = options->storage == PLANNER_STORAGE_ALL;
    for (uint32_t j = 0; j < c->jobs->count; j++) TRY(host_need_add(c->jobs, c->footprints, c->p, j, &need, err));
    uint64_t wanted = need.states + need.others;
    if (wanted <= have && !all) return STATUS_OK;
    TRY(ARENA_NEW(&c->p->arena, c->p->shard_count, c->p->storage.stored, err));
    for (uint32_t s = 0; s < c->p->shard_count; s++) TRY(add_candidate(c, s, err));
    qsort(c->candidates, c->count, sizeof *c->candidates, compare);
    uint64_t missing = wanted > have ? wanted - have : 0;
    uint32_t turns = TURNS_MOST;
    do choose(c, missing, turns, all, &lacking);
    while (lacking > 0 && turns-- > TURNS_LEAST);
    if (lacking > 0 && !all)
        return too_small("host memory is too small even with states on storage", lacking, err);
    if (c->p->storage.stored_bytes > capacity)
        return too_small("storage is too small for the states that host memory has no room for",
                         c->p->storage.stored_bytes - capacity, err);
    return STATUS_OK;
}

enum status storage_choose(const struct hardware *hardware, const struct job_set *jobs,
                           struct footprints *footprints, const struct planner_options *options,
                           struct partition *partition, struct error *err)
{
    partition->storage = (struct partition_storage){.turns = 1};
    if (options->storage == PLANNER_STORAGE_ALL && !hardware_has_storage(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' has no storage (measure it with --storage DIR, or give "
                         "--storage-memory and --storage-rate)", hardware->name);
    if (options->storage == PLANNER_STORAGE_NONE || !hardware_has_storage(hardware)) return STATUS_OK;
    struct chooser c = {.hardware = hardware,
                        .jobs = jobs,
                        .footprints = footprints,
                        .p = partition,
                        .candidates = alloc_zeroed(partition->shard_count + 1u, sizeof *c.candidates)};
    enum status status = c.candidates ? choose_all(&c, options, err) : no_memory(err);
    free(c.candidates);
    return status;
}
