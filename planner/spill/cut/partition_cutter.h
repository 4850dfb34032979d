/* What the two ways of cutting share (partition.c); nobody else includes this. */
#ifndef SPILLWAY_PLANNER_PARTITION_CUTTER_H
#define SPILLWAY_PLANNER_PARTITION_CUTTER_H

#include "base/extreme.h"
#include "base/size.h"
#include "planner/spill/cut/partition.h"

/* What all candidates share. */
struct cutter {
    const struct hardware *hardware;
    const struct job_set *jobs;
    struct footprints *footprints;
    const struct planner_options *options;
    bool interleaved;
    uint32_t hosts;        /* that have some of the jobs; a spilled one is on one of them (node_assignment.h) */
    uint32_t host_devices; /* that jobs of a host may be on */
    uint64_t capacity; /* of the smallest device */
    uint64_t edge_bytes;
    uint64_t table_bytes; /* token table and its gradient, of the largest vocabulary */
    double contention;
    double copy_slows_s; /* seconds that a copied byte takes from computations: host devices */
    bool shares_cpu;     /* the host's processor is what the devices compute with */
    double host_fixed_bytes; /* states, table gradients, boundaries: whatever the cut */
    bool turns;            /* jobs take turns in host memory (host_need.h) */
    /* where the least hopeless failure was, for the message */
    uint32_t failed_job;
    uint64_t failed_layer;
    uint64_t missing_bytes;
};

struct cutter cutter_make(const struct hardware *hardware, const struct job_set *jobs,
                          struct footprints *footprints, const struct planner_options *options,
                          bool interleaved);

/* May last shards hold all of their activations, or only the inputs of layers (`inputs`)? */
static inline bool cutter_may_hold(const struct cutter *cutter, bool inputs)
{
    uint32_t last = cutter->options->last;
    return last == LAST_AUTO || inputs == (last == LAST_HOLDS_INPUTS);
}

/* Remember a layer that did not fit, if it lacks less than those before. */
void cutter_note_failure(struct cutter *cutter, uint32_t job, uint64_t layer, uint64_t missing);

/* Remember that what every cut takes, `taken` bytes, exceeds the device already. */
void cutter_note_fixed(struct cutter *cutter, uint64_t taken);

/* The arrays of a partition, with room for every layer of every job. */
MUST_CHECK enum status partition_allocate(const struct job_set *jobs, struct partition *out,
                                          struct error *err);

/* Host memory of a job without spilled activations; a boundary and its gradient per layer, at most. */
double cutter_host_bytes(const struct job *job);

/* Token table and its gradient, side by side. */
uint64_t cutter_table_bytes(const struct job *job);

/* Scratch of the greediest unit of a shard that computes this way; see partition_way(). */
uint64_t cutter_workspace(const struct footprint *f, const struct job *job, bool last, uint32_t how);

/* The message of a footprint that could not be had. */
enum status cutter_out_of_memory(struct error *err);

static inline uint64_t padded(uint64_t bytes) { return size_align(bytes, ARENA_ALIGNMENT); }
static inline bool is_last(const struct job *job, uint64_t first, uint64_t count)
{
    return first + count == job->network.layer_count;
}

#endif
