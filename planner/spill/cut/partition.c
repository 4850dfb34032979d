/*
 * Shared by both ways of cutting: edges, scratch and host memory for any cut, and the message if nothing fits. It names
 * the layer that lacks least, because a slightly larger device would hold it.
 */
#include "base/try.h"
#include "planner/spill/cut/partition_cutter.h"

#include <string.h>

#include "models/job/memory.h"
#include "planner/spill/cut/node_assignment.h"
#include "planner/spill/cut/host_need.h"

static uint64_t smallest_device(const struct hardware *hardware)
{
    uint64_t bytes = UINT64_MAX;
    for (uint32_t d = 0; d < hardware->device_count; d++)
        if (hardware->devices[d].memory_bytes < bytes) bytes = hardware->devices[d].memory_bytes;
    return bytes;
}

/* Returns room for four boundaries of the widest layer, batch and loss: a unit never has more. */
static uint64_t edge_bytes_of(const struct job *job)
{
    uint64_t widest = 0;
    uint64_t layers = network_is_listed(&job->network) ? job->network.layer_count : 1;
    for (uint64_t layer = 0; layer < layers; layer++)
        widest = max_u64(widest, memory_boundary_bytes(&job->network, layer, job_samples(job),
                                                       job->sequence, job->precision));
    return 4 * partition_padded(widest) + partition_padded(job_batch_bytes(job)) + partition_padded(sizeof(double));
}

double cutter_host_bytes(const struct job *job)
{
    uint64_t layers = job_layers_end(job);
    uint64_t bytes = job_state(job, 0, layers).bytes;
    if (footprint_has_table(job)) bytes += footprint_table_gradient_bytes(job);
    if (job_makes_outputs(job)) bytes += job_outputs_bytes(job);
    if (job->keep_best) bytes += memory_parameter_bytes(&job->network, 0, layers);
    if (job_clips(job)) bytes += memory_parameter_bytes(&job->network, 0, layers); /* all gradients */
    return (double)bytes + 2.0 * (double)layers *
                               (double)memory_boundary_bytes(&job->network, 0, job_samples(job),
                                                             job->sequence, job->precision);
}

uint64_t cutter_table_bytes(const struct job *job)
{
    return partition_padded(footprint_table_bytes(job)) + partition_padded(footprint_table_gradient_bytes(job));
}

void cutter_note_fixed(struct partition_cutter *cutter, uint64_t taken)
{
    const struct job_set *jobs = cutter->jobs;
    uint32_t job = 0; /* the largest table is most of every cut's need */
    for (uint32_t j = 0; j < jobs->count; j++)
        if (footprint_has_table(&jobs->jobs[j]) &&
            cutter_table_bytes(&jobs->jobs[j]) == cutter->table_bytes) {
            job = j;
            break;
        }
    cutter_note_failure(cutter, job, jobs->jobs[job].network.layer_count - 1,
                        taken - cutter->capacity);
}

uint64_t cutter_workspace(const struct footprint *f, const struct job *job, bool last, uint32_t how)
{
    if (last) return partition_padded(f->workspace_bytes[UNIT_LOSS][how]);
    uint64_t bytes = max_u64(f->workspace_bytes[UNIT_FORWARD][how],
                             f->workspace_bytes[f->goes_back ? UNIT_BACKWARD : UNIT_FORWARD][f->goes_back ? how : 0]);
    /* evaluations keep nothing, however training treats activations */
    if (job->evaluation.every > 0) bytes = max_u64(bytes, f->workspace_bytes[UNIT_FORWARD][0]);
    return partition_padded(bytes);
}

void cutter_note_failure(struct partition_cutter *cutter, uint32_t job, uint64_t layer, uint64_t missing)
{
    if (missing < cutter->missing_bytes) {
        cutter->failed_job = job;
        cutter->failed_layer = layer;
        cutter->missing_bytes = missing;
    }
}

enum status cutter_out_of_memory(struct error *err)
{
    return error_memory(err, "the table of shard sizes", 1);
}

enum status partition_allocate(const struct job_set *jobs, struct partition *out,
                               struct error *err)
{
    size_t layers = 0;
    for (uint32_t j = 0; j < jobs->count; j++) layers += jobs->jobs[j].network.layer_count;
    struct {
        size_t count, size;
        void *out;
    } arrays[] = {
        {layers, sizeof *out->shards, &out->shards},
        {jobs->count + 1u, sizeof *out->job_first_shard, &out->job_first_shard},
        {jobs->count, sizeof *out->job_frozen, &out->job_frozen},
        {jobs->count, sizeof *out->slice_rows, &out->slice_rows},
        {layers, sizeof *out->keep_offset, &out->keep_offset},
        {layers, sizeof *out->state_offset, &out->state_offset},
        {layers, sizeof *out->shard_device, &out->shard_device},
        {layers, sizeof *out->on_cpu, &out->on_cpu},
        {layers, sizeof *out->trains, &out->trains},
        {layers, sizeof *out->persistent, &out->persistent},
        {layers, sizeof *out->kept, &out->kept},
    };
    for (size_t i = 0; i < ARRAY_COUNT(arrays); i++)
        TRY(arena_array(&out->arena, arrays[i].count, arrays[i].size, arrays[i].out, err));
    return STATUS_OK;
}

void partition_end(const struct job_set *jobs, struct partition *out)
{
    out->job_first_shard[jobs->count] = out->shard_count;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const uint64_t trained = network_first_trained(&jobs->jobs[j].network);
        out->job_frozen[j] = 0;
        for (uint32_t s = out->job_first_shard[j]; s < out->job_first_shard[j + 1]; s++) {
            out->job_frozen[j] += out->shards[s].first_layer + out->shards[s].layer_count <= trained;
            const struct state_layout state = job_state(&jobs->jobs[j], out->shards[s].first_layer,
                                                        out->shards[s].layer_count);
            out->trains[s] = state_trained_bytes(&state) > 0;
        }
    }
}

struct partition_cutter cutter_make(const struct hardware *hardware, const struct job_set *jobs,
                                    struct footprints *footprints, const struct planner_options *options,
                                    bool interleaved)
{
    struct partition_cutter cutter = {.hardware = hardware,
                                      .jobs = jobs,
                                      .footprints = footprints,
                                      .options = options,
                                      .interleaved = interleaved,
                                      .hosts = interleaved ? node_assignment_count(hardware, jobs) : 1,
                                      .host_devices =
                                          interleaved ? hardware_most_on_host(hardware, 0, hardware->device_count) : 1,
                                      .capacity = smallest_device(hardware),
                                      .contention = 1,
                                      .shares_cpu = strcmp(hardware->backend, "host") == 0,
                                      .missing_bytes = UINT64_MAX};
    const struct compute_profile *profile = hardware_profile(hardware, 0);
    if (profile && profile->interference.copy_reference_rate.value > 0)
        cutter.copy_slows_s = profile->interference.compute_by_copy.value /
                              profile->interference.copy_reference_rate.value;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        if (footprint_twin(footprints, j) == j)
            cutter.edge_bytes = max_u64(cutter.edge_bytes, edge_bytes_of(job));
        if (footprint_has_table(job))
            cutter.table_bytes = max_u64(cutter.table_bytes, cutter_table_bytes(job));
        cutter.host_fixed_bytes += cutter_host_bytes(job);
    }
    cutter.turns = options->host == PLANNER_HOST_TURNS ||
                   (!hardware_has_storage(hardware) && host_states_exceed(hardware, jobs, cutter.hosts));
    return cutter;
}

void partition_release(struct partition *partition)
{
    arena_release(&partition->arena);
    *partition = (struct partition){0};
}
