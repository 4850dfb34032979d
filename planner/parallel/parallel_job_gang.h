/*
 * The parts of a unit on a stage's gang: accesses to the job's buffers, whose slots have the places of its layout, and
 * operations on them. A unit's slots are collected in the order of the accesses that acquire them.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_GANG_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_GANG_H

#include "planner/parallel/parallel_job_layout.h"

enum {
    GANG_CHANGE = ACCESS_READ | ACCESS_WRITE,
    GANG_MAKE = ACCESS_WRITE | ACCESS_ACQUIRE,
    GANG_LAST = ACCESS_READ | ACCESS_RELEASE
};

/* A unit that is being put together, between gang_begin() and gang_end(). */
struct gang_unit {
    struct parallel_job *s;
    struct parallel_job_chunk *chunk;
    struct parallel_job_stage *stage;
    const struct job *job; /* the job, or a slice of it ... */
    uint32_t slice;        /* ... and the index of the slice */
    enum plan_pass pass;
    uint32_t r, gang;      /* the chunk; its gang */
    uint32_t peer;         /* the gang it fetches from, or PLAN_NONE */
    uint32_t slots[16];
    uint32_t slot_count;
};

struct gang_accesses {
    struct plan_access of[12];
    uint32_t count;
};

struct gang_unit gang_begin(struct parallel_job *s, uint32_t r, enum plan_pass pass, bool ends_minibatch);

/* Returns the gang of the current microbatch. */
uint32_t gang_in_turn(const struct parallel_job *s, const struct parallel_job_stage *stage);

/* Makes the unit a pass over microbatch n, or slice n. */
void gang_pass_over(struct gang_unit *u, uint32_t n);

/* Begins such a pass. */
struct gang_unit gang_begin_pass(struct parallel_job *s, uint32_t r, enum plan_pass pass, uint32_t n);

void gang_end(struct gang_unit *u);

uint32_t gang_buffer(const struct gang_unit *u, uint32_t kind, uint32_t chunk, uint32_t variant, uint64_t bytes);

/* Returns a buffer of host memory or storage, one per rank. */
uint32_t gang_host_buffer(const struct gang_unit *u, uint32_t kind, uint32_t variant, uint64_t bytes);

/* Returns the chunk's state on the host, of each rank. */
uint32_t gang_state_on_host(const struct gang_unit *u);

/* Returns the chunk's best weights on the host, which all ranks share. */
uint32_t gang_best_on_host(const struct gang_unit *u);

void gang_access(struct gang_accesses *a, uint32_t buffer_index, uint32_t flags);

void gang_access_state(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

void gang_access_gradient(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

/* Accesses the partial sums of the gradient, where it is added up as a tree. */
void gang_access_levels(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

/* Accesses whole weights or a gradient in slot `turn` of a ring. */
void gang_access_ring(struct gang_unit *u, struct gang_accesses *a, uint32_t kind, const struct parallel_job_ring *ring,
                      uint32_t turn, uint64_t bytes, uint32_t flags);

/* Returns the chunk's sum of gradients whose turn it is. */
uint32_t gang_gradient(const struct gang_unit *u, uint32_t chunk);

void gang_access_version(struct gang_unit *u, struct gang_accesses *a, uint64_t version, uint32_t flags);

void gang_access_weights(struct gang_unit *u, struct gang_accesses *a);

void gang_access_sum(struct gang_unit *u, struct gang_accesses *a);

/* Returns a buffer of the whole job. */
uint32_t gang_job_buffer(const struct gang_unit *u, uint32_t kind, bool on_device, uint64_t bytes);

/* Returns the loss of a held-out minibatch; on the device with its partial sums. */
uint32_t gang_held_out_loss(const struct gang_unit *u, bool on_device);

/* Accesses the minibatch's data, on a stage of the first or the last chunk of a job that is carried out. In
 * asynchronous schedules minibatches take turns. */
void gang_access_batch(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

/* Returns ACCESS_RELEASE for a backward pass of an asynchronous schedule that reads a minibatch's data last. */
uint32_t gang_ends_batch(const struct gang_unit *u);

/* Accesses the minibatch's loss, on the last chunk's stage. */
void gang_access_loss(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

/* Copies the minibatch's loss to the host. */
void gang_copy_loss(struct gang_unit *u);

/* Accesses the loss of a held-out minibatch, on the last chunk's stage of a job that is evaluated. */
void gang_access_held_out_loss(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

/* Accesses the squares of all tensors' gradients, on each stage of a job that clips. */
void gang_access_norms(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

/* Returns true if the head reads the embedding's table, and the embedding's step the head's gradient of it. */
bool gang_shares_table(const struct parallel_job *s);

/* Reads another chunk's state or gradient. */
void gang_access_other(struct gang_unit *u, struct gang_accesses *a, uint32_t kind, uint32_t chunk, uint64_t bytes);

/* Reads the embedding's table for a head on its stage, unless it is gathered with the head's weights. */
void gang_access_table(struct gang_unit *u, struct gang_accesses *a);

void gang_access_workspace(struct gang_unit *u, struct gang_accesses *a, uint32_t flags);

/* Accesses data of chunk r; none enters chunk 0 or leaves the last chunk. */
void gang_access_thing(struct gang_unit *u, struct gang_accesses *a, enum parallel_job_thing thing, uint32_t r,
                       uint32_t microbatch, uint32_t flags);

/* Accesses what the slices of a microbatch hand over: the first one's forward pass makes it, its backward pass ends it,
 * or in an evaluation the last one's pass. */
void gang_access_context(struct gang_unit *u, struct gang_accesses *a, uint32_t n);

/* Accesses a backward pass's inputs. `release`: for the last time. */
void gang_access_inputs(struct gang_unit *u, struct gang_accesses *a, uint32_t n, uint32_t release);

void gang_compute(struct gang_unit *u, enum plan_pass pass, uint32_t work, const struct gang_accesses *a);

/* Adds work of the host's processor. */
void gang_host_compute(struct gang_unit *u, enum plan_pass pass, enum parallel_pass work,
                       const struct gang_accesses *a);

/* Adds a computation without work to the host's stream, where it reads data or keeps weights, or its file stream. */
void gang_host_stream(struct gang_unit *u, enum plan_stream_kind stream, enum plan_pass pass,
                      const struct gang_accesses *a);

uint32_t gang_work(const struct gang_unit *u, enum parallel_pass pass);

void gang_collective(struct gang_unit *u, enum collective_kind kind, enum plan_axis axis, uint32_t stream,
                     uint32_t rounds, uint64_t bytes, const struct gang_accesses *a);

void gang_in_data_group(struct gang_unit *u, enum collective_kind kind, uint64_t bytes, const struct gang_accesses *a);

/* Adds the tensor group's overlapping or other collectives, which change the buffer `on` in place. */
void gang_tensor_collectives(struct gang_unit *u, enum parallel_pass pass, bool overlapping, uint32_t stream,
                             uint32_t on);

/* Fetches data of chunk `from` from another stage. Ranks that receive parts gather them. */
void gang_fetch(struct gang_unit *u, enum parallel_job_thing thing, uint32_t r, uint32_t microbatch,
                uint32_t from);

void gang_copy(struct gang_unit *u, enum plan_stream_kind stream, uint64_t bytes, const struct gang_accesses *a);

void gang_access_raised(struct gang_unit *u, struct gang_accesses *a);

/* Does the same for the first chunk's tied table, which goes up to the head. */
void gang_access_raised_table(struct gang_unit *u, struct gang_accesses *a);

/* Accesses the rank's whole state for a step by the host, after it was read from storage if it is there; and writes it
 * back there. */
void gang_access_stepped(struct gang_unit *u, struct gang_accesses *a);
void gang_write_stepped(struct gang_unit *u);

/* Copies activations to the rank's host and frees their place; gang_swap_in() copies them back. */
void gang_swap_out(struct gang_unit *u, uint32_t n);

void gang_swap_in(struct gang_unit *u, uint32_t n);

#endif
