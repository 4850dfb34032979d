/*
 * The unit that is being written: its operations, and the ranges of the arena that they acquire.
 *
 * A range is noted as an area and an offset in it, for the unit is written once and its instances take
 * weight buffers, edges and staged states in turn (emit.c). Accesses are gathered by emit_use() until the
 * computation that makes them is added; a copy brings its own two. The first error stays in the emitter,
 * and what follows it does nothing.
 */
#ifndef SPILLWAY_PLANNER_EMIT_UNIT_H
#define SPILLWAY_PLANNER_EMIT_UNIT_H

#include "base/size.h"
#include "planner/spill/order/schedule.h"
#include "planner/walk/plan_build.h"

/* Of a device's arena; and of that of staged states. */
enum area {
    AREA_WORKSPACE,
    AREA_EDGE,
    AREA_WEIGHT_BUFFER,
    AREA_KEEP,
    AREA_PERSISTENT,
    AREA_TABLE,
    AREA_TRANSIENT,
    AREA_HELD
};

/* A slot of a unit, before it is moved to its turn and seat. */
struct acquire {
    enum area area;
    uint32_t turn; /* weight buffers, staged states: counted from the instance's first turn */
    uint64_t offset_bytes, bytes;
};

/* What an instance of a unit needs beside the unit. */
struct unit_slots {
    uint32_t first_acquire, acquire_count;
    uint32_t weight_buffer_turns, transient_turns, held_turns;
    bool uses_edge;
};

enum { ACCESSES_MAX = 12 };

struct emitter {
    struct plan_builder *builder;
    const struct plan *plan;
    struct footprints *footprints;
    const struct partition *partition;
    enum status status;
    struct error *err;
    uint32_t *unit_ids;        /* [shard][forward, back, evaluate][variant], see emit.c */
    struct unit_slots *slots;  /* by unit id */
    size_t slots_count, slots_capacity;
    struct acquire *acquires;
    size_t acquire_count, acquire_capacity;
    uint32_t *edge_turn, *weight_buffer_turn, *transient_turn, *held_turn; /* per device */
    uint32_t *host_seat; /* likewise: how many of its host's come before it */
    uint32_t *slot_scratch;
    size_t slot_scratch_capacity;
    /* the unit being written */
    struct unit_slots current;
    uint64_t edge_used, weight_buffer_used;
    struct plan_access accesses[ACCESSES_MAX];
    uint32_t access_count;
};

/* Where a unit finds its input. */
enum origin { ORIGIN_HOST, ORIGIN_HERE, ORIGIN_PEER, ORIGINS };

/* The shard that a unit is about, and what it takes to write it. */
struct shard_view {
    const struct job *job;
    const struct footprint *footprint;
    uint32_t job_index, shard, global; /* shard within the job; index in the plan */
    uint32_t shard_count;
    bool embedding, last;
    bool resident;   /* so are all shards of the job */
    bool persistent; /* the state is on the device, and stays */
    bool on_cpu; /* the optimizer; of an embedding, both passes */
    enum origin origin; /* of boundary or gradient that enter; from the host always the rest */
    bool stays;         /* the output, in its edge, for the job's next unit */
    enum plan_pass pass; /* of the unit */
    uint32_t activations;
    uint64_t slice_rows; /* 0: whole */
};

/* What a slot of so many bytes takes of an area that is filled in order. */
static inline uint64_t emit_padded(uint64_t bytes) { return size_align(bytes, ARENA_ALIGNMENT); }

/* The next slot; offset_bytes is for areas other than edges and weight buffers, which are filled in order. */
void emit_slot(struct emitter *e, enum area area, uint64_t offset_bytes, uint64_t bytes);

/* The next slice, or the end of the unit: what follows takes the next weight buffer. */
void emit_turn_end(struct emitter *e);

/* The name of a buffer of the unit's job. */
uint32_t emit_buffer(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                     uint32_t variant, bool on_device, uint64_t bytes);

/* An access of the next operation but for copies; a buffer of the device that comes to life with it. */
void emit_use(struct emitter *e, uint32_t name, uint32_t flags);
void emit_use_new(struct emitter *e, uint32_t name, uint32_t flags, enum area area,
                  uint64_t offset_bytes, uint64_t bytes);

/* Copies: any; host buffer to a new device buffer; device buffer to the host. */
void emit_copy(struct emitter *e, uint8_t stream, uint32_t from, uint64_t from_offset,
               uint32_t from_flags, uint32_t to, uint64_t to_offset, uint32_t to_flags,
               uint64_t bytes);
void emit_fetch(struct emitter *e, uint32_t host, uint64_t host_offset, uint32_t device,
                enum area area, uint64_t slot_offset, uint64_t bytes);
void emit_send(struct emitter *e, uint32_t device, uint32_t device_flags, uint32_t host,
               uint64_t host_offset, uint64_t bytes);

/* Computations over the accesses gathered: the pass on the device, with its workspace; the same on the
 * host's processor; what the host stream does without a kernel. */
void emit_compute(struct emitter *e, const struct shard_view *v, enum plan_pass pass,
                  enum unit_pass unit_pass, uint32_t how, uint32_t slice, uint64_t first_row,
                  uint64_t row_count);
void emit_cpu(struct emitter *e, const struct shard_view *v, enum plan_pass pass,
              uint64_t workspace);
void emit_host(struct emitter *e, enum plan_pass pass);
void emit_files(struct emitter *e, enum plan_pass pass); /* likewise on the file stream */

#endif
