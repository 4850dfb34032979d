/*
 * The unit under construction: operations, and acquired ranges of the arena.
 *
 * A range is an area and an offset, because the unit's tasks use weight buffers, edges and staged states in turn
 * (emit.c). emit_use() gathers accesses until their computation is added; a copy adds its own two. The first error
 * stays in the emit context, and later calls do nothing.
 */
#ifndef SPILLWAY_PLANNER_SPILL_EMIT_EMIT_UNIT_H
#define SPILLWAY_PLANNER_SPILL_EMIT_EMIT_UNIT_H

#include "base/size.h"
#include "planner/spill/order/schedule.h"
#include "planner/walk/plan_build.h"

/* Areas of a device's arena, and of the arena of staged states. */
enum emit_area {
    EMIT_AREA_WORKSPACE,
    EMIT_AREA_EDGE,
    EMIT_AREA_WEIGHT_BUFFER,
    EMIT_AREA_KEEP,
    EMIT_AREA_PERSISTENT,
    EMIT_AREA_TABLE,
    EMIT_AREA_TRANSIENT,
    EMIT_AREA_HELD,
    EMIT_AREA_BASE,      /* in turn */
    EMIT_AREA_BASE_STAYS
};

/* A slot of a unit, before it is moved to its turn and seat. */
struct emit_acquire {
    enum emit_area area;
    uint32_t turn; /* weight buffers, staged states: counted from the task's first turn */
    uint64_t offset_bytes, bytes;
};

/* The slots of a unit's tasks. */
struct emit_unit_slots {
    uint32_t first_acquire, acquire_count;
    uint32_t weight_buffer_turns, transient_turns, held_turns, base_turns;
    bool uses_edge;
};

enum { EMIT_ACCESSES_MAX = 12 };

struct emit_context {
    struct plan_builder *builder;
    const struct plan *plan;
    struct footprints *footprints;
    const struct partition *partition;
    enum status status;
    struct error *err;
    uint32_t *unit_ids;        /* [shard][forward, back, evaluate][variant], see emit.c */
    struct emit_unit_slots *slots; /* by unit id */
    size_t slots_count, slots_capacity;
    struct emit_acquire *acquires;
    size_t acquire_count, acquire_capacity;
    uint32_t *edge_turn, *weight_buffer_turn, *transient_turn, *held_turn, *base_turn; /* per device */
    uint32_t *host_seat; /* per device: number of its host's devices before it */
    uint32_t *slot_scratch;
    size_t slot_scratch_capacity;
    /* the unit under construction */
    struct emit_unit_slots current;
    uint64_t edge_used, weight_buffer_used;
    struct plan_access accesses[EMIT_ACCESSES_MAX];
    uint32_t access_count;
};

/* The origin of a unit's input. */
enum emit_origin { EMIT_ORIGIN_HOST, EMIT_ORIGIN_HERE, EMIT_ORIGIN_PEER, EMIT_ORIGINS };

/* The shard of a unit, with the data for writing the unit. */
struct emit_shard_view {
    const struct job *job;
    const struct footprint *footprint;
    uint32_t job_index, shard, global; /* shard: within the job; global: index in the plan */
    uint32_t shard_count;
    bool embedding, last;
    bool makes_outputs; /* the shard's output is kept */
    bool trains;     /* else the shard is frozen: its passes only read its weights */
    bool goes_back, lowest; /* it has a backward pass; no shard before it has */
    bool resident;   /* all shards of the job are resident */
    bool persistent;         /* the state stays on the device */
    bool on_cpu;             /* the host's processor has the optimizer; for an embedding, both passes too */
    enum emit_origin origin; /* origin of the input boundary or gradient; all other data come from the host */
    bool stays;         /* the output stays in its edge for the job's next unit */
    const struct schedule_base *base; /* NULL: the job shares none, or the unit has no part in it */
    uint64_t base_bytes, table_base_bytes; /* of the shard's frozen weights in a base; of the first shard's */
    enum plan_pass pass;     /* of the unit */
    uint32_t activations;
    uint64_t slice_rows; /* 0: whole */
};

/* Returns the bytes of a slot for `bytes` in an area that is filled in order. */
static inline uint64_t emit_padded(uint64_t bytes) { return size_align(bytes, PARTITION_ARENA_ALIGNMENT); }

/* Adds the next slot. Edges and weight buffers are filled in order; offset_bytes is for the other areas. */
void emit_slot(struct emit_context *e, enum emit_area area, uint64_t offset_bytes, uint64_t bytes);

/* Ends a slice, or the unit: the next one uses the next weight buffer. */
void emit_turn_end(struct emit_context *e);

/* Returns the number of a buffer of the job that owns the base of the unit's job. */
uint32_t emit_base_buffer(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                          bool on_device, uint64_t bytes);

/* Returns the number of a buffer of the unit's job. */
uint32_t emit_buffer(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                     uint32_t variant, bool on_device, uint64_t bytes);

/* Add an access of the next operation, unless it is a copy; acquire a device buffer with it. */
void emit_use(struct emit_context *e, uint32_t name, uint32_t flags);
void emit_use_new(struct emit_context *e, uint32_t name, uint32_t flags, enum emit_area area,
                  uint64_t offset_bytes, uint64_t bytes);

/* Add copies: any; host buffer to a new device buffer; device buffer to the host. */
void emit_copy(struct emit_context *e, uint8_t stream, uint32_t from, uint64_t from_offset,
               uint32_t from_flags, uint32_t to, uint64_t to_offset, uint32_t to_flags,
               uint64_t bytes);
void emit_fetch(struct emit_context *e, uint32_t host, uint64_t host_offset, uint32_t device,
                enum emit_area area, uint64_t slot_offset, uint64_t bytes);
void emit_send(struct emit_context *e, uint32_t device, uint32_t device_flags, uint32_t host,
               uint64_t host_offset, uint64_t bytes);

/* Add computations over the gathered accesses: the pass on the device, with its workspace; on the host's processor; of
 * the host stream without a kernel. */
void emit_compute(struct emit_context *e, const struct emit_shard_view *v, enum plan_pass pass,
                  enum unit_pass unit_pass, uint32_t how, uint32_t slice, uint64_t first_row,
                  uint64_t row_count);
void emit_cpu(struct emit_context *e, const struct emit_shard_view *v, enum plan_pass pass,
              uint64_t workspace);
void emit_host(struct emit_context *e, enum plan_pass pass);
void emit_files(struct emit_context *e, enum plan_pass pass); /* on the file stream */
void emit_end(struct emit_context *e, enum plan_pass pass); /* on the device, without a kernel: only lives end */

#endif
