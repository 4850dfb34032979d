#include "planner/spill/shared/shared_cut.h"

#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "models/jobs/job_base.h"
#include "planner/spill/cut/host_need.h"
#include "planner/spill/cut/partition_job.h"
#include "planner/spill/shared/shared_base.h"

struct shared_cutter {
    const struct hardware *hardware;
    const struct job_set *jobs;
    struct footprints *footprints;
    const struct shared_candidate *candidate;
    struct partition *out;
    struct error *err;
};

static uint64_t shard_bytes(const struct job *job, uint64_t first, uint64_t count)
{
    return job_base_bytes(job, first, count) + job_state(job, first, count).bytes;
}

uint64_t shared_cut_least(const struct job_set *jobs)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t j = 0; j < jobs->count; j++)
        for (uint64_t l = footprint_has_embedding(&jobs->jobs[j]) ? 1 : 0; l < jobs->jobs[j].network.layer_count; l++)
            least = min_u64(least, shard_bytes(&jobs->jobs[j], l, 1));
    return least;
}

/* Sets *out to the number of jobs with the most popular base. */
static enum status count_most(const struct shared_cutter *c, uint32_t *out)
{
    uint32_t *counts;
    *out = 0;
    TRY(ARENA_NEW(&c->out->arena, c->jobs->count, counts, c->err));
    for (uint32_t j = 0; j < c->jobs->count; j++) {
        const uint32_t now = ++counts[c->out->base.owner[j]];
        if (now > *out) *out = now;
    }
    return STATUS_OK;
}

/* Returns true if the host's processor gathers the rows of the job's embedding. */
static bool gathers(const struct shared_cutter *c, const struct job *job)
{
    if (!hardware_has_cpu(c->hardware) || !footprint_has_embedding(job) || !footprint_can_slice(job)) return false;
    return network_first_trained(&job->network) > 0 || estimate_embedding_on_cpu(job, c->candidate->place);
}

/* --- shards ------------------------------------------------------------------------------------ */

static void add_shard(struct shared_cutter *c, uint32_t job, uint64_t first, uint64_t count)
{
    const struct job *about = &c->jobs->jobs[job];
    struct partition *p = c->out;
    const bool embedding = first == 0 && footprint_has_embedding(about);
    const bool last = first + count == about->network.layer_count;
    const bool inputs = last ? c->candidate->loss_inputs
                             : plan_activations_way(c->candidate->activations) & UNIT_INPUTS;
    const uint32_t s = p->shard_count++;
    p->shards[s] = (struct plan_shard){.job = job, .first_layer = first, .layer_count = count,
                                       .inputs_only = !embedding && inputs};
    p->on_cpu[s] = embedding ? gathers(c, about)
                             : estimate_place(about, c->candidate->place) == PLANNER_PLACE_CPU &&
                                   footprint_can_use_cpu(about);
}

/* Cuts the owner of a base: as many layers to a shard as the candidate allows. */
static void cut_owner(struct shared_cutter *c, uint32_t job)
{
    const struct job *about = &c->jobs->jobs[job];
    uint64_t at = 0, end = about->network.layer_count;
    if (footprint_has_embedding(about)) add_shard(c, job, at++, 1);
    while (at < end) {
        uint64_t count = 1;
        while (at + count < end && shard_bytes(about, at, count + 1) <= c->candidate->shard_bytes) count++;
        add_shard(c, job, at, count);
        at += count;
    }
}

static void cut_jobs(struct shared_cutter *c)
{
    struct partition *p = c->out;
    for (uint32_t j = 0; j < c->jobs->count; j++) {
        const uint32_t owner = p->base.owner[j];
        p->job_first_shard[j] = p->shard_count;
        if (owner == j) cut_owner(c, j);
        for (uint32_t s = p->job_first_shard[owner]; owner != j && s < p->job_first_shard[owner + 1]; s++)
            add_shard(c, j, p->shards[s].first_layer, p->shards[s].layer_count);
        p->job_first_shard[j + 1] = p->shard_count;
    }
    partition_end(c->jobs, p);
    for (uint32_t s = 0; s < p->shard_count; s++) p->on_cpu[s] &= p->trains[s] || p->shards[s].first_layer == 0;
}

/* Gives each shard of an owner a device, consecutive shards consecutive devices; other jobs' shards have their base's,
 * although not all may leave the same embeddings to the host. */
static void choose_devices(struct shared_cutter *c)
{
    struct partition *p = c->out;
    for (uint32_t j = 0; j < c->jobs->count; j++) {
        const uint32_t owner = p->base.owner[j], first = p->job_first_shard[j];
        for (uint32_t s = first, n = 0; s < p->job_first_shard[j + 1]; s++) {
            const bool on_host = p->on_cpu[s] && p->shards[s].first_layer == 0;
            p->base.device[s] = owner == j ? n % c->hardware->device_count
                                           : p->base.device[p->job_first_shard[owner] + s - first];
            if (!on_host) n++;
        }
    }
}

/* --- memory ------------------------------------------------------------------------------------ */

static const struct footprint *footprint_at(struct shared_cutter *c, uint32_t s)
{
    const struct plan_shard *shard = &c->out->shards[s];
    return footprint_of(c->footprints, shard->job, shard->first_layer, shard->layer_count);
}

/* Returns what a unit of the shard needs of a weight buffer. */
static uint64_t buffer_need(const struct shared_cutter *c, const struct job *job, const struct footprint *f, bool last,
                            bool embedding)
{
    if (!embedding) return partition_weight_buffer_need(f, job, last, c->candidate->activations, c->candidate->place);
    return partition_padded(f->state_bytes) +
           (footprint_has_table(job) ? partition_padded(footprint_table_gradient_bytes(job)) : 0);
}

/* Counts workspace and weight buffers over all shards that devices compute. False: no memory to count. */
static bool count_needs(struct shared_cutter *c)
{
    struct partition *p = c->out;
    const struct partition_candidate way = {.activations = c->candidate->activations, .place = c->candidate->place,
                                            .loss_inputs = c->candidate->loss_inputs};
    p->weight_buffer_bytes = PARTITION_ARENA_ALIGNMENT;
    for (uint32_t s = 0; s < p->shard_count; s++) {
        const uint32_t j = p->shards[s].job;
        const struct job *job = &c->jobs->jobs[j];
        const bool embedding = p->shards[s].first_layer == 0 && footprint_has_embedding(job);
        const bool last = s + 1 == p->job_first_shard[j + 1];
        const struct footprint *f = footprint_at(c, s);
        if (!f) return false;
        if (embedding && p->on_cpu[s]) continue;
        p->weight_buffer_bytes = max_u64(p->weight_buffer_bytes, buffer_need(c, job, f, last, embedding));
        const uint32_t how = embedding ? UNIT_KEEP : partition_unit_way(&way, job, last);
        p->workspace_bytes = max_u64(p->workspace_bytes, cutter_workspace(f, job, last, how));
        if (job->evaluation.every == 0 || !last) continue;
        const uint32_t held_out = (how & UNIT_INPUTS) | UNIT_GRADIENTS_OUT;
        p->workspace_bytes = max_u64(p->workspace_bytes, partition_padded(f->workspace_bytes[UNIT_LOSS][held_out]));
    }
    return true;
}

/* Returns the bytes of the base's shard that go to a device, with their padding; 0: none do. */
static uint64_t base_on_device(const struct shared_cutter *c, uint32_t s)
{
    const struct partition *p = c->out;
    const struct plan_shard *shard = &p->shards[s];
    if (p->base.owner[shard->job] != shard->job || (p->on_cpu[s] && shard->first_layer == 0)) return 0;
    return partition_padded(job_base_bytes(&c->jobs->jobs[shard->job], shard->first_layer, shard->layer_count));
}

/* Sums, of an owner's shards on a device, those of a base: their bytes, number, and largest. */
struct base_sum {
    uint64_t bytes, most;
};

static struct base_sum sum_base(const struct shared_cutter *c, uint32_t owner, uint32_t device)
{
    const struct partition *p = c->out;
    struct base_sum sum = {0};
    for (uint32_t s = p->job_first_shard[owner]; s < p->job_first_shard[owner + 1]; s++) {
        const uint64_t bytes = p->base.device[s] == device ? base_on_device(c, s) : 0;
        sum.bytes += bytes;
        sum.most = max_u64(sum.most, bytes);
    }
    return sum;
}

/* Lets shards of a base stay on a device that has `room` bytes for them, spread evenly over its shards. */
static void let_stay(struct shared_cutter *c, uint32_t owner, uint32_t device, struct base_sum sum, uint64_t room)
{
    struct partition *p = c->out;
    uint64_t used = 0;
    const double share = sum.bytes > room ? (double)room / (double)sum.bytes : 1;
    double due = 0;
    for (uint32_t s = p->job_first_shard[owner]; s < p->job_first_shard[owner + 1]; s++) {
        const uint64_t bytes = p->base.device[s] == device ? base_on_device(c, s) : 0;
        due += share * (double)bytes;
        if (bytes == 0 || used + bytes > room || (double)used + 0.5 * (double)bytes > due) continue;
        p->base.stays[s] = true;
        p->base.offset[s] = used;
        used += bytes;
    }
    p->base.stay_bytes = max_u64(p->base.stay_bytes, used);
}

/* Divides the rest of the memory among bases. Returns the missing bytes. */
static uint64_t place_bases(struct shared_cutter *c, uint64_t taken, uint64_t capacity)
{
    struct partition *p = c->out;
    uint64_t turn = 0, most = 0;
    for (uint32_t j = 0; j < c->jobs->count; j++)
        for (uint32_t d = 0; d < c->hardware->device_count && p->base.owner[j] == j; d++) {
            const struct base_sum sum = sum_base(c, j, d);
            turn = max_u64(turn, sum.most);
            most = max_u64(most, sum.bytes);
        }
    p->base.turns = c->candidate->turns;
    p->base.turn_bytes = taken + most <= capacity ? 0 : turn; /* all stay */
    const uint64_t all = taken + p->base.turns * p->base.turn_bytes;
    if (all > capacity) return all - capacity;
    for (uint32_t j = 0; j < c->jobs->count; j++)
        for (uint32_t d = 0; d < c->hardware->device_count && p->base.owner[j] == j; d++)
            let_stay(c, j, d, sum_base(c, j, d), capacity - all);
    return 0;
}

/* Returns the bytes that host memory lacks for all jobs and their bases. */
static uint64_t host_lacks(struct shared_cutter *c)
{
    struct partition *p = c->out;
    uint64_t bytes = 0;
    for (uint32_t j = 0; j < c->jobs->count; j++) {
        struct host_need need = {0};
        struct error ignored = {0};
        if (host_need_add(c->jobs, c->footprints, p, j, &need, &ignored)) return UINT64_MAX;
        bytes += need.states + need.others;
        if (p->base.owner[j] == j) bytes += job_base_bytes(&c->jobs->jobs[j], 0, c->jobs->jobs[j].network.layer_count);
    }
    const uint64_t given = hardware_host_bytes(c->hardware);
    return bytes > given ? bytes - given : 0;
}

/* --- all --------------------------------------------------------------------------------------- */

static enum status allocate(struct shared_cutter *c)
{
    struct partition *p = c->out;
    size_t layers = 0;
    TRY(partition_allocate(c->jobs, p, c->err));
    for (uint32_t j = 0; j < c->jobs->count; j++) layers += c->jobs->jobs[j].network.layer_count;
    TRY(shared_base_owners(c->jobs, &p->arena, &p->base.owner, c->err));
    TRY(ARENA_NEW(&p->arena, layers, p->base.device, c->err));
    TRY(ARENA_NEW(&p->arena, layers, p->base.stays, c->err));
    return ARENA_NEW(&p->arena, layers, p->base.offset, c->err);
}

enum status shared_cut_make(const struct hardware *hardware, const struct job_set *jobs, struct footprints *footprints,
                            const struct planner_options *options, const struct shared_candidate *candidate,
                            struct partition *out, uint64_t *missing_bytes, struct error *err)
{
    struct shared_cutter c = {.hardware = hardware, .jobs = jobs, .footprints = footprints, .candidate = candidate,
                              .out = out, .err = err};
    const struct partition_cutter cutter = cutter_make(hardware, jobs, footprints, options, true);
    *out = (struct partition){.activations = candidate->activations, .interleaved = true, .seat_count = 1};
    *missing_bytes = 0;
    uint32_t most = 0;
    enum status status = allocate(&c);
    if (!status) {
        cut_jobs(&c);
        choose_devices(&c);
        if (!count_needs(&c)) status = cutter_out_of_memory(err);
    }
    if (!status) status = count_most(&c, &most);
    out->edge_bytes = cutter.edge_bytes;
    out->table_bytes = cutter.table_bytes;
    out->weight_buffer_count = candidate->weight_buffers;
    out->contention = max_s(partition_contention(hardware, hardware->device_count), options->contention);
    if (!status) {
        out->edge_count = candidate->carries ? most + 2 : candidate->weight_buffers + 1;
        const uint64_t taken = out->workspace_bytes + out->edge_count * out->edge_bytes + out->table_bytes +
                               out->weight_buffer_count * out->weight_buffer_bytes;
        *missing_bytes = place_bases(&c, taken, cutter.capacity);
        if (*missing_bytes == 0) *missing_bytes = host_lacks(&c);
    }
    if (status || *missing_bytes > 0) partition_release(out);
    return status;
}
