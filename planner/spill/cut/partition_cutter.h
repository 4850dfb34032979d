/* Shared by the two ways of cutting (partition.c). */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_CUTTER_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_CUTTER_H

#include "base/extreme.h"
#include "base/size.h"
#include "planner/spill/cut/partition.h"

/* The constants of all candidates. */
struct partition_cutter {
    const struct hardware *hardware;
    const struct job_set *jobs;
    struct footprints *footprints;
    const struct planner_options *options;
    bool interleaved;
    uint32_t hosts;        /* hosts with jobs (node_assignment.h) */
    uint32_t host_devices; /* devices that jobs of a host may use */
    uint64_t capacity; /* bytes of the smallest device */
    uint64_t edge_bytes;
    uint64_t table_bytes; /* the largest token table and its gradient */
    double contention;
    double copy_slows_s; /* that a copied byte takes from computations on host devices */
    bool shares_cpu;     /* the devices compute with the host's processor */
    double host_fixed_bytes; /* states, table gradients, boundaries: equal for all cuts */
    bool turns;            /* jobs take turns in host memory (host_need.h) */
    /* lacks least, for the message */
    uint32_t failed_job;
    uint64_t failed_layer;
    uint64_t missing_bytes;
};

struct partition_cutter cutter_make(const struct hardware *hardware, const struct job_set *jobs,
                                    struct footprints *footprints, const struct planner_options *options,
                                    bool interleaved);

/* Returns true if last shards may hold all activations, or only inputs of layers (`inputs`). */
static inline bool cutter_may_hold(const struct partition_cutter *cutter, bool inputs)
{
    uint32_t last = cutter->options->last;
    return last == PLANNER_LAST_AUTO || inputs == (last == PLANNER_LAST_HOLDS_INPUTS);
}

/* Remembers a layer that did not fit if it lacks least so far. */
void cutter_note_failure(struct partition_cutter *cutter, uint32_t job, uint64_t layer, uint64_t missing);

/* Remembers that every cut's fixed needs, `taken` bytes, exceed the device. */
void cutter_note_fixed(struct partition_cutter *cutter, uint64_t taken);

/* Allocates a partition's arrays, for every layer of every job. */
MUST_CHECK enum status partition_allocate(const struct job_set *jobs, struct partition *out,
                                          struct error *err);

/* Notes the end of all shards, and which of them train. */
void partition_end(const struct job_set *jobs, struct partition *out);

/* Returns a job's host memory without spilled activations: at most a boundary and its gradient per layer. */
double cutter_host_bytes(const struct job *job);

uint64_t cutter_table_bytes(const struct job *job);

/* Returns the largest scratch of a shard's units (partition_way()). */
uint64_t cutter_workspace(const struct footprint *f, const struct job *job, bool last, uint32_t how);

/* Returns the error of a footprint without memory. */
enum status cutter_out_of_memory(struct error *err);

static inline uint64_t partition_padded(uint64_t bytes) { return size_align(bytes, PARTITION_ARENA_ALIGNMENT); }
static inline bool partition_is_last(const struct job *job, uint64_t first, uint64_t count)
{
    return first + count == job->network.layer_count;
}

#endif
