/*
 * From "shard 3 of job 1, backward, on device 0" to copies, a computation and arena ranges.
 *
 * A unit is written once per (shard, pass) and variant: whether its input is already on the device
 * because the job's previous unit ran there just before, and whether its output will be used there
 * next. Where it is on another device to which there is a direct link, and the schedule says so, it is
 * fetched from there, and has stayed in its edge until then. A forward pass always sends its output to
 * the host as well, for the backward pass starts from it; only the input of the loss and the gradients,
 * used once, can skip the host.
 *
 *     streamed backward of shard s:
 *       h2d  state of s            -> region
 *       h2d  boundary s            -> edge          (the shard's input: recomputation starts there)
 *       h2d  gradient s+1          -> edge          (unless it is here; or p2p from the device that has it)
 *       compute backward              workspace, edge: gradient s
 *       d2h  gradient s            -> host          (unless it is used here next)
 *       d2h  state of s            -> host, region free
 *
 * Where the host's processor has the optimizer, the parameters come instead of the state, and
 *
 *       d2h  gradient of the parameters  -> host, in turn one of a few buffers of the job; region free
 *       cpu  update                         state of s, on the host
 *
 * end the unit; the next forward pass of the shard then waits for that update. Both passes of such
 * a job's embedding run on the processor and have no part in regions and edges. Where a job clips, a norm
 * stands in place of the update, and units of updates alone follow the minibatch's last backward pass.
 *
 * A state on storage (partition_storage.h) takes one more step each way, through host memory:
 *
 *       read  state of s           -> staged         (or parameters, or the table)
 *       h2d   staged               -> region; staged free
 *       ...
 *       d2h   state of s           -> staged
 *       write staged               -> storage; staged free
 *
 * and where the processor has the optimizer, what was read stays until it is updated and written.
 *
 * The slots of an instance are the unit's, moved to the region and edge whose turn it is. Regions
 * and edges are taken in turn on each device; plan.h's rule 2 makes the next user of a region wait
 * for the last one, which is all the synchronisation that double buffering needs.
 *
 * An embedding that exceeds a region is cut into slices, each with a turn of its own: rows of the
 * parameters (forward) or of parameters, moments and table gradient (backward) come in, are used
 * and go out while the next slice comes in.
 */
#include "planner/emit.h"

#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "models/memory.h"
#include "planner/partition_storage.h"
#include "planner/plan_work.h"

/* Of a device's arena; and of that of staged states. */
enum area {
    AREA_WORKSPACE,
    AREA_EDGE,
    AREA_REGION,
    AREA_KEEP,
    AREA_PERSISTENT,
    AREA_TABLE,
    AREA_TRANSIENT,
    AREA_HELD
};

/* A slot of a unit, before it is moved to its turn and seat. */
struct acquire {
    enum area area;
    uint32_t turn; /* regions, staged states: counted from the instance's first turn */
    uint64_t offset_bytes, bytes;
};

/* What an instance of a unit needs beside the unit. */
struct unit_slots {
    uint32_t first_acquire, acquire_count;
    uint32_t region_turns, transient_turns, held_turns;
    bool uses_edge;
};

enum { ACCESSES_MAX = 12 };

/* Where a unit finds its input. */
enum origin { ORIGIN_HOST, ORIGIN_HERE, ORIGIN_PEER, ORIGINS };

/* Of a shard's pass: its origin, times these; its output stays, it is the last of its minibatch. */
enum { VARIANT_STAYS = 2, VARIANT_ENDS = 1, VARIANTS_OF_ORIGIN = 4 };
enum { UNIT_VARIANTS = ORIGINS * VARIANTS_OF_ORIGIN };

struct emitter {
    struct plan_builder *builder;
    const struct plan *plan;
    struct footprints *footprints;
    const struct partition *partition;
    enum status status;
    struct error *err;
    uint32_t *unit_ids;        /* [shard][forward, back, evaluate][UNIT_VARIANTS] */
    struct unit_slots *slots;  /* by unit id */
    size_t slots_count, slots_capacity;
    struct acquire *acquires;
    size_t acquire_count, acquire_capacity;
    uint32_t *edge_turn, *region_turn, *transient_turn, *held_turn; /* per device */
    uint32_t *slot_scratch;
    size_t slot_scratch_capacity;
    /* the unit being written */
    struct unit_slots current;
    uint64_t edge_used, region_used;
    struct plan_access accesses[ACCESSES_MAX];
    uint32_t access_count;
};

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

/* --- slots and accesses ---------------------------------------------------------------------- */

static uint64_t padded(uint64_t bytes) { return size_align(bytes, ARENA_ALIGNMENT); }

static void take_slot(struct emitter *e, enum area area, uint64_t offset_bytes, uint64_t bytes)
{
    if (!e->status)
        e->status = array_reserve(&e->acquires, &e->acquire_capacity, e->acquire_count,
                                  sizeof *e->acquires, PLAN_OPS_MAX, "arena ranges", e->err);
    if (e->status) return;
    struct acquire a = {.area = area, .offset_bytes = offset_bytes, .bytes = bytes};
    if (area == AREA_EDGE) {
        a.offset_bytes = e->edge_used;
        e->edge_used += padded(bytes);
        e->current.uses_edge = true;
        assert(e->edge_used <= e->partition->edge_bytes);
    } else if (area == AREA_REGION) {
        a.turn = e->current.region_turns;
        a.offset_bytes = e->region_used;
        e->region_used += padded(bytes);
    } else if (area == AREA_TRANSIENT) {
        a.turn = e->current.transient_turns++;
    } else if (area == AREA_HELD) {
        a.turn = e->current.held_turns++;
    }
    e->acquires[e->acquire_count++] = a;
    e->current.acquire_count++;
}

/* The next slice, or the end of the unit: what follows takes the next region. */
static void end_region_turn(struct emitter *e)
{
    assert(e->region_used <= e->partition->region_bytes);
    if (e->region_used > 0) e->current.region_turns++;
    e->region_used = 0;
}

static uint32_t buffer(struct emitter *e, const struct shard_view *v, uint32_t kind,
                       uint32_t shard, uint32_t variant, bool on_device, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind,
                            .job = v->job_index,
                            .shard = shard,
                            .variant = variant,
                            .on_device = on_device,
                            .bytes = bytes};
    return plan_builder_buffer(e->builder, &b);
}

static void use(struct emitter *e, uint32_t name, uint32_t flags)
{
    assert(e->access_count < ACCESSES_MAX);
    e->accesses[e->access_count++] = (struct plan_access){.buffer = name, .flags = flags};
}

/* A device buffer that comes to life here: in `area` (at `offset_bytes`, but for edges and regions,
 * which are filled in order). */
static void use_new(struct emitter *e, uint32_t name, uint32_t flags, enum area area,
                    uint64_t offset_bytes, uint64_t bytes)
{
    take_slot(e, area, offset_bytes, bytes);
    use(e, name, flags | ACCESS_WRITE | ACCESS_ACQUIRE);
}

static void add_copy(struct emitter *e, uint8_t stream, uint32_t from, uint64_t from_offset,
                     uint32_t from_flags, uint32_t to, uint64_t to_offset, uint32_t to_flags,
                     uint64_t bytes)
{
    struct plan_op op = {.kind = OP_COPY, .stream = stream, .work = PLAN_NONE, .bytes = bytes};
    struct plan_access accesses[2] = {
        {.buffer = from, .flags = from_flags | ACCESS_READ, .offset_bytes = from_offset},
        {.buffer = to, .flags = to_flags | ACCESS_WRITE, .offset_bytes = to_offset}};
    plan_builder_op(e->builder, &op, accesses, 2, NULL, 0);
}

/* Host buffer to a new device buffer. */
static void fetch(struct emitter *e, uint32_t host, uint64_t host_offset, uint32_t device,
                  enum area area, uint64_t slot_offset, uint64_t bytes)
{
    take_slot(e, area, slot_offset, bytes);
    add_copy(e, STREAM_H2D, host, host_offset, 0, device, 0, ACCESS_ACQUIRE, bytes);
}

/* The same buffer of another device to a new one here. */
static void fetch_from_peer(struct emitter *e, uint32_t device, enum area area, uint64_t bytes)
{
    take_slot(e, area, 0, bytes);
    add_copy(e, STREAM_P2P, device, 0, ACCESS_RELEASE, device, 0, ACCESS_ACQUIRE, bytes);
}

static void send(struct emitter *e, uint32_t device, uint32_t device_flags, uint32_t host,
                 uint64_t host_offset, uint64_t bytes)
{
    add_copy(e, STREAM_D2H, device, 0, device_flags, host, host_offset, 0, bytes);
}

/* --- states on storage ------------------------------------------------------------------------- */

/* Variants of staged buffers, for their sizes differ: held states, transient ones, and from the latter
 * on those of slices. */
enum { STAGED_HELD, STAGED_TRANSIENT };

/* Begin the life of a staged buffer; it takes all of its slot. */
static uint32_t stage(struct emitter *e, const struct shard_view *v, uint32_t shard,
                      uint32_t variant, enum area area, uint64_t bytes)
{
    const struct partition_storage *storage = &e->partition->storage;
    uint64_t room = area == AREA_HELD ? storage->held_bytes : storage->transient_bytes;
    assert(bytes <= room);
    take_slot(e, area, 0, room);
    return buffer(e, v, BUFFER_STAGED, shard, variant, false, bytes);
}

static bool is_stored(const struct emitter *e, const struct shard_view *v, uint32_t shard)
{
    return storage_has(e->partition, e->partition->job_first_shard[v->job_index] + shard);
}

/* A computation over the accesses gathered so far, of the unit's shard. */
static void add_op(struct emitter *e, const struct shard_view *v, struct plan_op op, uint32_t how)
{
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    const struct plan_shard *shard = &e->partition->shards[v->global];
    uint32_t count = plan_work_items(v->job, shard->first_layer, shard->layer_count,
                                     (enum plan_pass)op.pass, how, op.first_row, op.row_count,
                                     items);
    op.kind = OP_COMPUTE;
    op.work = plan_builder_work(e->builder, items, count);
    plan_builder_op(e->builder, &op, e->accesses, e->access_count, NULL, 0);
    e->access_count = 0;
}

/* The unit's pass, on the device, with its workspace. */
static void add_compute(struct emitter *e, const struct shard_view *v, enum plan_pass pass,
                        enum unit_pass unit_pass, uint32_t how, uint32_t slice, uint64_t first_row,
                        uint64_t row_count)
{
    uint64_t workspace = v->footprint->workspace_bytes[unit_pass][how];
    if (workspace > 0) {
        uint32_t variant = (uint32_t)unit_pass * UNIT_WAYS + how;
        uint32_t name = buffer(e, v, BUFFER_WORKSPACE, v->shard, variant, true, workspace);
        use_new(e, name, ACCESS_RELEASE, AREA_WORKSPACE, 0, workspace);
    }
    struct plan_op op = {.stream = STREAM_COMPUTE,
                         .pass = (uint8_t)pass,
                         .slice = slice,
                         .first_row = first_row,
                         .row_count = row_count};
    add_op(e, v, op, how);
}

/* The same on the host's processor. An embedding of a job that clips has two ways of its own: rows are
 * gathered on the host stream, and its gradient is left. */
static void add_cpu(struct emitter *e, const struct shard_view *v, enum plan_pass pass,
                    uint64_t workspace)
{
    bool gathers = pass == PLAN_FORWARD || pass == PLAN_EVALUATE, clips = job_clips(v->job);
    if (workspace > 0)
        use(e, buffer(e, v, BUFFER_WORKSPACE, v->shard, pass, false, workspace), ACCESS_WRITE);
    struct plan_op op = {.stream = clips && gathers ? STREAM_HOST : STREAM_CPU,
                         .pass = (uint8_t)pass};
    add_op(e, v, op, clips && pass == PLAN_BACKWARD ? UNIT_GRADIENTS_OUT : 0);
}

/* --- pieces that several units have ------------------------------------------------------------ */

static uint32_t host_state(struct emitter *e, const struct shard_view *v, uint32_t shard)
{
    const struct partition *p = e->partition;
    const struct plan_shard *s = &p->shards[p->job_first_shard[v->job_index] + shard];
    uint64_t bytes = job_state(v->job, s->first_layer, s->layer_count).bytes;
    uint32_t kind = is_stored(e, v, shard) ? BUFFER_STORED : BUFFER_STATE;
    return buffer(e, v, kind, shard, 0, false, bytes);
}

/* Bytes of a shard's state, from wherever it lives to a new device buffer. */
static void fetch_state(struct emitter *e, const struct shard_view *v, uint32_t shard,
                        uint32_t variant, uint64_t offset, uint32_t device, enum area area,
                        uint64_t bytes)
{
    uint32_t home = host_state(e, v, shard);
    if (!is_stored(e, v, shard)) {
        fetch(e, home, offset, device, area, 0, bytes);
        return;
    }
    uint32_t staged = stage(e, v, shard, variant, AREA_TRANSIENT, bytes);
    add_copy(e, STREAM_READ, home, offset, 0, staged, 0, ACCESS_ACQUIRE, bytes);
    take_slot(e, area, 0, bytes);
    add_copy(e, STREAM_H2D, staged, 0, ACCESS_RELEASE, device, 0, ACCESS_ACQUIRE, bytes);
}

/* The front of a shard's state, back from a device buffer. */
static void return_state(struct emitter *e, const struct shard_view *v, uint32_t shard,
                         uint32_t device, uint32_t device_flags, uint64_t bytes)
{
    uint32_t home = host_state(e, v, shard);
    if (!is_stored(e, v, shard)) {
        send(e, device, device_flags, home, 0, bytes);
        return;
    }
    uint32_t staged = stage(e, v, shard, STAGED_TRANSIENT, AREA_TRANSIENT, bytes);
    add_copy(e, STREAM_D2H, device, 0, device_flags, staged, 0, ACCESS_ACQUIRE, bytes);
    add_copy(e, STREAM_WRITE, staged, 0, ACCESS_RELEASE, home, 0, 0, bytes);
}

/* Of an embedding's tables, as the passes read them. */
static uint64_t weight_row_bytes(const struct job *job)
{
    return job->network.width * precision_bytes(job->precision);
}

/* The token table for a head, in pieces where the embedding is moved in slices. */
static void fetch_table(struct emitter *e, const struct shard_view *v, uint32_t device,
                        enum area area, uint64_t bytes)
{
    uint64_t slice = e->partition->slice_rows[v->job_index] * weight_row_bytes(v->job);
    if (!is_stored(e, v, 0) || slice == 0) {
        fetch_state(e, v, 0, STAGED_TRANSIENT, 0, device, area, bytes);
        return;
    }
    uint32_t acquire = ACCESS_ACQUIRE;
    for (uint64_t at = 0; at < bytes; at += slice, acquire = 0) {
        uint64_t piece = bytes - at < slice ? bytes - at : slice;
        uint32_t staged = stage(e, v, 0, STAGED_TRANSIENT + (uint32_t)(at / slice), AREA_TRANSIENT, piece);
        add_copy(e, STREAM_READ, host_state(e, v, 0), at, 0, staged, 0, ACCESS_ACQUIRE, piece);
        if (acquire) take_slot(e, area, 0, bytes); /* slots are in the order of the acquires */
        add_copy(e, STREAM_H2D, staged, 0, ACCESS_RELEASE, device, at, acquire, piece);
    }
}

static uint32_t device_state(struct emitter *e, const struct shard_view *v)
{
    return buffer(e, v, BUFFER_STATE, v->shard, 0, true, v->footprint->state_bytes);
}

/* What a backward pass works on: the state, which it changes, or parameters and their gradient. */
static uint32_t backward_state(struct emitter *e, const struct shard_view *v)
{
    const struct footprint *f = v->footprint;
    uint32_t state = v->on_cpu
                         ? buffer(e, v, BUFFER_PARAMETERS, v->shard, 0, true, f->weight_bytes)
                         : device_state(e, v);
    if (v->persistent) return state;
    if (v->on_cpu && is_stored(e, v, v->shard)) { /* held until it is updated */
        uint32_t staged = stage(e, v, v->shard, STAGED_HELD, AREA_HELD, f->state_bytes);
        add_copy(e, STREAM_READ, host_state(e, v, v->shard), 0, 0, staged, 0, ACCESS_ACQUIRE,
                 f->state_bytes);
        fetch(e, staged, 0, state, AREA_REGION, 0, f->weight_bytes);
    } else {
        fetch_state(e, v, v->shard, STAGED_TRANSIENT, 0, state, AREA_REGION,
                    v->on_cpu ? f->weight_bytes : f->state_bytes);
    }
    return state;
}

static uint32_t device_gradient(struct emitter *e, const struct shard_view *v)
{
    return buffer(e, v, BUFFER_GRADIENT, v->shard, 0, true, v->footprint->gradient_bytes);
}

static void use_state(struct emitter *e, const struct shard_view *v, uint32_t state)
{
    use(e, state, v->on_cpu ? ACCESS_READ | ACCESS_RELEASE : ACCESS_READ | ACCESS_WRITE);
    if (v->on_cpu)
        use_new(e, device_gradient(e, v), 0, AREA_REGION, 0, v->footprint->gradient_bytes);
}

static uint32_t host_gradient(struct emitter *e, const struct shard_view *v)
{
    uint32_t variant = job_clips(v->job) ? v->shard : v->shard % GRADIENT_TURNS;
    return buffer(e, v, BUFFER_GRADIENT, PLAN_NONE, variant, false, v->footprint->gradient_bytes);
}

static uint32_t norms(struct emitter *e, const struct shard_view *v)
{
    const struct network *network = &v->job->network;
    return buffer(e, v, BUFFER_NORMS, PLAN_NONE, 0, false,
                  memory_tensor_count(network, 0, network->layer_count) * sizeof(double));
}

/* What the shard's gradient, on the host, adds to the norm of all. */
static void add_norm(struct emitter *e, const struct shard_view *v)
{
    use(e, host_gradient(e, v), ACCESS_READ);
    use(e, norms(e, v), ACCESS_WRITE);
    add_cpu(e, v, PLAN_NORM, 0);
}

/* Of the state in host memory, or of the staged copy of one on storage. */
static void add_update(struct emitter *e, const struct shard_view *v)
{
    uint32_t home = host_state(e, v, v->shard), updated = home;
    uint64_t bytes = v->footprint->state_bytes;
    bool stored = is_stored(e, v, v->shard);
    if (stored) updated = buffer(e, v, BUFFER_STAGED, v->shard, STAGED_HELD, false, bytes);
    use(e, host_gradient(e, v), ACCESS_READ);
    if (job_clips(v->job)) use(e, norms(e, v), ACCESS_READ);
    use(e, updated, ACCESS_READ | ACCESS_WRITE);
    add_cpu(e, v, PLAN_UPDATE, 0);
    if (stored) add_copy(e, STREAM_WRITE, updated, 0, ACCESS_RELEASE, home, 0, 0, bytes);
}

/* The state goes back; or the gradient does, and is applied there. */
static void send_state(struct emitter *e, const struct shard_view *v, uint32_t state)
{
    const struct footprint *f = v->footprint;
    if (!v->on_cpu) {
        return_state(e, v, v->shard, state, ACCESS_RELEASE, f->state_bytes);
        return;
    }
    uint32_t host = host_gradient(e, v);
    send(e, device_gradient(e, v), ACCESS_RELEASE, host, 0, f->gradient_bytes);
    if (job_clips(v->job)) add_norm(e, v);
    else add_update(e, v);
}

static uint32_t boundary(struct emitter *e, const struct shard_view *v, uint32_t kind,
                         uint32_t shard, bool on_device, uint64_t bytes)
{
    return buffer(e, v, kind, shard, 0, on_device, bytes);
}

/* Batch, boundary or gradient that enters: fetched to an edge unless it is here ... */
static void fetch_input(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                        uint64_t bytes, enum origin origin)
{
    uint32_t device = boundary(e, v, kind, shard, true, bytes);
    if (origin == ORIGIN_PEER)
        fetch_from_peer(e, device, AREA_EDGE, bytes);
    else if (origin == ORIGIN_HOST)
        fetch(e, boundary(e, v, kind, shard, false, bytes), 0, device, AREA_EDGE, 0, bytes);
}

/* ... and used up. */
static void use_input(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                      uint64_t bytes)
{
    use(e, boundary(e, v, kind, shard, true, bytes), ACCESS_READ | ACCESS_RELEASE);
}

static void fetch_batch(struct emitter *e, const struct shard_view *v)
{
    uint64_t bytes = job_batch_bytes(v->job);
    if (bytes > 0) fetch_input(e, v, BUFFER_BATCH, PLAN_NONE, bytes, ORIGIN_HOST);
}

static void use_batch(struct emitter *e, const struct shard_view *v)
{
    uint64_t bytes = job_batch_bytes(v->job);
    if (bytes > 0) use_input(e, v, BUFFER_BATCH, PLAN_NONE, bytes);
}

/* Boundary or gradient that leaves: it stays for the job's next unit, goes to the host, or both. */
static void output(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                   uint64_t bytes, bool to_host)
{
    uint32_t device = boundary(e, v, kind, shard, true, bytes);
    if (to_host)
        send(e, device, v->stays ? 0 : ACCESS_RELEASE, boundary(e, v, kind, shard, false, bytes),
             0, bytes);
}

static uint32_t held_out_loss(struct emitter *e, const struct shard_view *v)
{
    return buffer(e, v, BUFFER_LOSS, PLAN_NONE, 1, false, sizeof(double));
}

/* Is the head's table the embedding's own state, on the same device? */
static bool table_is_here(const struct emitter *e, const struct shard_view *v)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[v->job_index];
    return v->resident && p->shard_device[first] == p->shard_device[first + v->shard_count - 1];
}

/* --- units ----------------------------------------------------------------------------------- */

static uint32_t activations_way(const struct emitter *e, const struct shard_view *v)
{
    if (v->last) return e->partition->shards[v->global].inputs_only ? UNIT_INPUTS : 0;
    return v->embedding ? UNIT_KEEP : plan_activations_way(v->activations);
}

/* Next minibatch's tokens, on the host. */
static void add_batch_op(struct emitter *e, const struct shard_view *v)
{
    uint64_t bytes = job_batch_bytes(v->job);
    if (bytes == 0) return;
    struct plan_op op = {
        .kind = OP_COMPUTE, .stream = STREAM_HOST, .pass = PLAN_BATCH, .work = PLAN_NONE};
    struct plan_access access = {.buffer = buffer(e, v, BUFFER_BATCH, PLAN_NONE, 0, false, bytes),
                                 .flags = ACCESS_WRITE};
    plan_builder_op(e->builder, &op, &access, 1, NULL, 0);
}

/* Rows of slice k: [*first, *first + *count). */
static uint32_t slice_range(const struct shard_view *v, uint32_t k, uint64_t *first,
                            uint64_t *count)
{
    uint64_t rows = job_embedding_rows(v->job);
    *first = k * v->slice_rows;
    *count = rows - *first < v->slice_rows ? rows - *first : v->slice_rows;
    return (uint32_t)((rows + v->slice_rows - 1) / v->slice_rows);
}

static void sliced_embedding_forward(struct emitter *e, const struct shard_view *v)
{
    uint64_t row = weight_row_bytes(v->job), first, count;
    uint32_t out = boundary(e, v, BUFFER_BOUNDARY, 1, true, v->footprint->output_bytes);
    uint32_t tokens = boundary(e, v, BUFFER_BATCH, PLAN_NONE, true, job_batch_bytes(v->job));
    uint32_t slices = slice_range(v, 0, &first, &count);
    fetch_batch(e, v);
    for (uint32_t k = 0; k < slices; k++) {
        slice_range(v, k, &first, &count);
        uint32_t rows = buffer(e, v, BUFFER_PARAMETERS, 0, 1 + k, true, count * row);
        fetch_state(e, v, 0, STAGED_TRANSIENT + k, first * row, rows, AREA_REGION, count * row);
        use(e, rows, ACCESS_READ | ACCESS_RELEASE);
        use(e, tokens, ACCESS_READ | (k + 1 == slices ? ACCESS_RELEASE : 0));
        if (k == 0) use_new(e, out, 0, AREA_EDGE, 0, v->footprint->output_bytes);
        else use(e, out, ACCESS_READ | ACCESS_WRITE);
        add_compute(e, v, v->pass, UNIT_FORWARD, true, k, first, count);
        end_region_turn(e);
    }
}

/* --- an embedding on the host's processor ------------------------------------------------------ */

static void cpu_embedding_forward(struct emitter *e, const struct shard_view *v)
{
    use(e, host_state(e, v, 0), ACCESS_READ);
    use(e, buffer(e, v, BUFFER_BATCH, PLAN_NONE, 0, false, job_batch_bytes(v->job)), ACCESS_READ);
    use(e, boundary(e, v, BUFFER_BOUNDARY, 1, false, v->footprint->output_bytes), ACCESS_WRITE);
    add_cpu(e, v, v->pass, v->footprint->workspace_bytes[UNIT_FORWARD][UNIT_KEEP]);
}

static void cpu_embedding_backward(struct emitter *e, const struct shard_view *v)
{
    bool clips = job_clips(v->job);
    if (clips) use(e, host_gradient(e, v), ACCESS_WRITE);
    else use(e, host_state(e, v, 0), ACCESS_READ | ACCESS_WRITE);
    if (job_has_table(v->job))
        use(e, buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false,
                      job_table_gradient_bytes(v->job)),
            ACCESS_READ);
    use(e, buffer(e, v, BUFFER_BATCH, PLAN_NONE, 0, false, job_batch_bytes(v->job)), ACCESS_READ);
    use(e, boundary(e, v, BUFFER_BOUNDARY_GRADIENT, 1, false, v->footprint->output_bytes),
        ACCESS_READ);
    uint32_t how = UNIT_KEEP | (clips ? UNIT_GRADIENTS_OUT : 0);
    add_cpu(e, v, PLAN_BACKWARD, v->footprint->workspace_bytes[UNIT_BACKWARD][how]);
    if (clips) add_norm(e, v);
}

/* --- passes ------------------------------------------------------------------------------------ */

/* Forward, of the training or of held-out data. */
static void write_forward(struct emitter *e, const struct shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool trains = v->pass == PLAN_FORWARD;
    /* the loss uses its input once; every other boundary is needed again by a backward pass */
    bool to_host = !v->stays || (trains && v->shard + 2 < v->shard_count);
    uint64_t kept_bytes = !trains || v->embedding ? 0 : f->kept_bytes[v->activations];
    if (v->shard == 0) add_batch_op(e, v);
    if (v->embedding && v->on_cpu) {
        cpu_embedding_forward(e, v);
        return;
    }
    if (v->embedding && v->slice_rows) {
        sliced_embedding_forward(e, v);
        output(e, v, BUFFER_BOUNDARY, 1, f->output_bytes, to_host);
        return;
    }
    uint32_t parameters = v->persistent ? device_state(e, v)
                                        : buffer(e, v, BUFFER_PARAMETERS, v->shard, 0, true,
                                                 f->weight_bytes);
    if (!v->persistent)
        fetch_state(e, v, v->shard, STAGED_TRANSIENT, 0, parameters, AREA_REGION, f->weight_bytes);
    if (v->shard == 0) fetch_batch(e, v);
    else fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, v->origin);

    use(e, parameters, ACCESS_READ | (v->persistent ? 0 : ACCESS_RELEASE));
    if (v->shard == 0) use_batch(e, v);
    else use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
    use_new(e, boundary(e, v, BUFFER_BOUNDARY, v->shard + 1, true, f->output_bytes), 0, AREA_EDGE,
            0, f->output_bytes);
    uint32_t acts = 0;
    if (kept_bytes > 0) {
        acts = buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, true, kept_bytes);
        use_new(e, acts, 0, plan_activations_spill(v->activations) ? AREA_REGION : AREA_KEEP,
                e->partition->keep_offset[v->global], kept_bytes);
    }
    uint32_t how = trains || v->embedding ? activations_way(e, v) : 0;
    add_compute(e, v, v->pass, UNIT_FORWARD, how, 0, 0, 0);
    output(e, v, BUFFER_BOUNDARY, v->shard + 1, f->output_bytes, to_host);
    if (kept_bytes > 0 && plan_activations_spill(v->activations))
        send(e, acts, ACCESS_RELEASE,
             buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, false, kept_bytes), 0, kept_bytes);
}

static void write_loss(struct emitter *e, const struct shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool first = v->shard == 0; /* a profile in one shard: no boundaries */
    bool table = job_has_table(v->job), text = job_batch_bytes(v->job) > 0;
    uint64_t table_bytes = table ? job_table_bytes(v->job) : 0;
    uint64_t table_gradient_bytes = table ? job_table_gradient_bytes(v->job) : 0;
    bool table_here = table && table_is_here(e, v);
    uint32_t table_name = 0, gradient = 0, loss = 0;
    enum area table_area = v->resident ? AREA_REGION : AREA_TABLE;
    /* A job alone has the table's area to itself, and can fetch the table while its state waits for a
     * region; among others the area is what is waited for, and the table would hold the state up. */
    bool state_first = e->partition->interleaved;
    uint32_t state = state_first ? backward_state(e, v) : 0;
    if (table && !table_here) {
        table_name = buffer(e, v, BUFFER_TABLE, PLAN_NONE, 0, true, table_bytes);
        fetch_table(e, v, table_name, table_area, table_bytes);
    }
    if (!state_first) state = backward_state(e, v);
    fetch_batch(e, v);
    if (!first) fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, v->origin);

    use_state(e, v, state);
    use_batch(e, v);
    if (!first) {
        use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
        use_new(e, boundary(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard, true, f->input_bytes), 0,
                AREA_EDGE, 0, f->input_bytes);
    }
    if (text) {
        loss = buffer(e, v, BUFFER_LOSS, PLAN_NONE, 0, true, sizeof(double));
        use_new(e, loss, 0, AREA_EDGE, 0, sizeof(double));
    }
    if (table) {
        if (table_here)
            use(e, buffer(e, v, BUFFER_STATE, 0, 0, true, 0), ACCESS_READ);
        else
            use(e, table_name, ACCESS_READ | ACCESS_RELEASE);
        gradient = buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, true, table_gradient_bytes);
        use_new(e, gradient, 0, table_area, padded(table_bytes), table_gradient_bytes);
    }
    add_compute(e, v, PLAN_LOSS, UNIT_LOSS,
                activations_way(e, v) | (v->on_cpu ? UNIT_GRADIENTS_OUT : 0), 0, 0, 0);
    if (!first)
        output(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard, f->input_bytes, !v->stays);
    if (text)
        send(e, loss, ACCESS_RELEASE,
             buffer(e, v, BUFFER_LOSS, PLAN_NONE, 0, false, sizeof(double)), 0, sizeof(double));
    if (table && !table_here)
        send(e, gradient, ACCESS_RELEASE,
             buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false, table_gradient_bytes), 0,
             table_gradient_bytes);
    if (!v->persistent) send_state(e, v, state);
}

/* Forward and loss of the last shard on held-out data; its scratch is that of a LOSS, less gradients. */
static void write_evaluation(struct emitter *e, const struct shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool table = job_has_table(v->job), table_here = table && table_is_here(e, v);
    uint32_t parameters = v->persistent ? device_state(e, v)
                                      : buffer(e, v, BUFFER_PARAMETERS, v->shard, 0, true,
                                               f->weight_bytes);
    uint32_t table_name = 0;
    if (!v->persistent)
        fetch_state(e, v, v->shard, STAGED_TRANSIENT, 0, parameters, AREA_REGION, f->weight_bytes);
    if (table && !table_here) {
        uint64_t bytes = job_table_bytes(v->job);
        table_name = buffer(e, v, BUFFER_TABLE, PLAN_NONE, 0, true, bytes);
        fetch_table(e, v, table_name, v->resident ? AREA_REGION : AREA_TABLE, bytes);
    }
    fetch_batch(e, v);
    fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, v->origin);

    use(e, parameters, ACCESS_READ | (v->persistent ? 0 : ACCESS_RELEASE));
    use_batch(e, v);
    use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
    uint32_t loss = buffer(e, v, BUFFER_LOSS, PLAN_NONE, 0, true, sizeof(double));
    use_new(e, loss, 0, AREA_EDGE, 0, sizeof(double));
    if (table_here) use(e, buffer(e, v, BUFFER_STATE, 0, 0, true, 0), ACCESS_READ);
    else if (table) use(e, table_name, ACCESS_READ | ACCESS_RELEASE);
    add_compute(e, v, PLAN_EVALUATE, UNIT_LOSS, activations_way(e, v) | UNIT_GRADIENTS_OUT, 0, 0, 0);
    send(e, loss, ACCESS_RELEASE, held_out_loss(e, v), 0, sizeof(double));
}

/* The values as they are behind an evaluation, in full. Those of a persistent shard are brought for it. */
static void write_keep(struct emitter *e, const struct shard_view *v)
{
    uint32_t state = host_state(e, v, v->shard);
    if (v->persistent) send(e, device_state(e, v), 0, state, 0, v->footprint->value_bytes);
    use(e, state, ACCESS_READ);
    use(e, held_out_loss(e, v), ACCESS_READ);
    use(e, buffer(e, v, BUFFER_KEPT, v->shard, 0, false, v->footprint->gradient_bytes), ACCESS_WRITE);
    struct plan_op op = {
        .kind = OP_COMPUTE, .stream = STREAM_HOST, .pass = PLAN_KEEP, .work = PLAN_NONE};
    plan_builder_op(e->builder, &op, e->accesses, e->access_count, NULL, 0);
    e->access_count = 0;
}

static void sliced_embedding_backward(struct emitter *e, const struct shard_view *v)
{
    const struct footprint *f = v->footprint;
    uint64_t row = v->job->network.width * sizeof(float), first, count; /* of a gradient */
    const struct state_layout whole = job_state(v->job, 0, 1);
    uint32_t last_part = STATE_PARTS - 1;
    while (whole.parts[last_part].bytes == 0) last_part--;
    uint32_t tokens = boundary(e, v, BUFFER_BATCH, PLAN_NONE, true, job_batch_bytes(v->job));
    uint32_t dx = boundary(e, v, BUFFER_BOUNDARY_GRADIENT, 1, true, f->output_bytes);
    uint32_t slices = slice_range(v, 0, &first, &count);
    uint32_t host = host_state(e, v, 0);
    fetch_batch(e, v);
    fetch_input(e, v, BUFFER_BOUNDARY_GRADIENT, 1, f->output_bytes, v->origin);
    for (uint32_t k = 0; k < slices; k++) {
        slice_range(v, k, &first, &count);
        const struct state_layout slice =
            memory_state_rows(&v->job->network, count, job_state_format(v->job));
        uint64_t vocabulary = v->job->network.vocabulary;
        uint32_t rows = buffer(e, v, BUFFER_STATE, 0, 1 + k, true, slice.bytes);
        uint32_t gradient = 0;
        uint64_t gradient_rows = 0;
        bool stored = is_stored(e, v, 0);
        uint32_t to = stored ? stage(e, v, 0, STAGED_TRANSIENT + k, AREA_TRANSIENT, slice.bytes) : rows;
        if (!stored) take_slot(e, AREA_REGION, 0, slice.bytes);
        for (uint32_t part = 0; part <= last_part; part++)
            if (slice.parts[part].bytes > 0)
                add_copy(e, stored ? STREAM_READ : STREAM_H2D, host,
                         whole.parts[part].offset_bytes + first * whole.parts[part].row_bytes, 0, to,
                         slice.parts[part].offset_bytes, part == 0 ? ACCESS_ACQUIRE : 0,
                         slice.parts[part].bytes);
        if (stored) {
            take_slot(e, AREA_REGION, 0, slice.bytes);
            add_copy(e, STREAM_H2D, to, 0, ACCESS_RELEASE, rows, 0, ACCESS_ACQUIRE, slice.bytes);
        }
        if (job_has_table(v->job) && first < vocabulary) {
            gradient_rows = vocabulary - first < count ? vocabulary - first : count;
            gradient = buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 1 + k, true,
                              gradient_rows * row);
            fetch(e, buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false, 0), first * row,
                  gradient, AREA_REGION, 0, gradient_rows * row);
        }
        uint32_t release = k + 1 == slices ? ACCESS_RELEASE : 0;
        use(e, rows, ACCESS_READ | ACCESS_WRITE);
        use(e, tokens, ACCESS_READ | release);
        use(e, dx, ACCESS_READ | release);
        if (gradient_rows) use(e, gradient, ACCESS_READ | ACCESS_RELEASE);
        add_compute(e, v, PLAN_BACKWARD, UNIT_BACKWARD, true, k, first, count);
        uint32_t from = rows;
        if (stored) {
            from = stage(e, v, 0, STAGED_TRANSIENT + k, AREA_TRANSIENT, slice.bytes);
            add_copy(e, STREAM_D2H, rows, 0, ACCESS_RELEASE, from, 0, ACCESS_ACQUIRE, slice.bytes);
        }
        for (uint32_t part = 0; part <= last_part; part++)
            if (slice.parts[part].bytes > 0)
                add_copy(e, stored ? STREAM_WRITE : STREAM_D2H, from, slice.parts[part].offset_bytes,
                         part == last_part ? ACCESS_RELEASE : 0, host,
                         whole.parts[part].offset_bytes + first * whole.parts[part].row_bytes, 0,
                         slice.parts[part].bytes);
        end_region_turn(e);
    }
}

static void write_backward(struct emitter *e, const struct shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool first = v->shard == 0;
    uint64_t kept_bytes = v->embedding ? 0 : f->kept_bytes[v->activations];
    bool table = v->embedding && job_has_table(v->job);
    bool table_here = table && table_is_here(e, v);
    uint64_t table_bytes = table ? job_table_gradient_bytes(v->job) : 0;
    if (v->embedding && v->on_cpu) {
        cpu_embedding_backward(e, v);
        return;
    }
    if (v->embedding && v->slice_rows) {
        sliced_embedding_backward(e, v);
        return;
    }
    uint32_t state = backward_state(e, v), acts = 0, gradient = 0;
    if (table) {
        gradient = buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, true, table_bytes);
        if (!table_here)
            fetch(e, buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false, table_bytes), 0,
                  gradient, AREA_REGION, 0, table_bytes);
    }
    if (kept_bytes > 0) {
        acts = buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, true, kept_bytes);
        if (plan_activations_spill(v->activations))
            fetch(e, buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, false, kept_bytes), 0, acts,
                  AREA_REGION, 0, kept_bytes);
    }
    if (v->embedding) fetch_batch(e, v);
    if (!first) fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, ORIGIN_HOST);
    fetch_input(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard + 1, f->output_bytes, v->origin);

    use_state(e, v, state);
    if (table) use(e, gradient, ACCESS_READ | ACCESS_RELEASE);
    if (kept_bytes > 0) use(e, acts, ACCESS_READ | ACCESS_RELEASE);
    if (v->embedding) use_batch(e, v);
    if (!first) use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
    use_input(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard + 1, f->output_bytes);
    if (!first)
        use_new(e, boundary(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard, true, f->input_bytes), 0,
                AREA_EDGE, 0, f->input_bytes);
    add_compute(e, v, PLAN_BACKWARD, UNIT_BACKWARD,
                activations_way(e, v) | (v->on_cpu ? UNIT_GRADIENTS_OUT : 0), 0, 0, 0);
    if (!first)
        output(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard, f->input_bytes, !v->stays);
    if (!v->persistent)
        send_state(e, v, state);
    else if (table && !table_here) /* the head's device fetches the new table */
        return_state(e, v, 0, state, 0, job_table_bytes(v->job));
}

static void write_load(struct emitter *e, const struct shard_view *v)
{
    uint64_t bytes = v->footprint->state_bytes;
    uint32_t from = host_state(e, v, v->shard), flags = 0;
    if (is_stored(e, v, v->shard)) {
        uint32_t staged = stage(e, v, v->shard, STAGED_TRANSIENT, AREA_TRANSIENT, bytes);
        add_copy(e, STREAM_READ, from, 0, 0, staged, 0, ACCESS_ACQUIRE, bytes);
        from = staged;
        flags = ACCESS_RELEASE;
    }
    take_slot(e, v->resident ? AREA_KEEP : AREA_PERSISTENT, e->partition->state_offset[v->global],
              bytes);
    add_copy(e, STREAM_H2D, from, 0, flags, device_state(e, v), 0, ACCESS_ACQUIRE, bytes);
}

static void write_store(struct emitter *e, const struct shard_view *v)
{
    return_state(e, v, v->shard, device_state(e, v), ACCESS_RELEASE, v->footprint->state_bytes);
}

/* --- instances ------------------------------------------------------------------------------- */

static struct shard_view view_of(struct emitter *e, uint32_t job, uint32_t shard)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[job];
    struct shard_view v = {.job = &e->plan->jobs.jobs[job],
                           .job_index = job,
                           .shard = shard,
                           .global = first + shard,
                           .shard_count = p->job_first_shard[job + 1] - first,
                           .resident = p->resident,
                           .persistent = p->persistent[first + shard],
                           .on_cpu = p->on_cpu[first + shard],
                           .activations = partition_activations(p, first + shard),
                           .slice_rows = shard == 0 ? p->slice_rows[job] : 0};
    v.embedding = shard == 0 && job_has_embedding(v.job);
    v.last = shard + 1 == v.shard_count;
    v.footprint = footprint_of(e->footprints, job, p->shards[v.global].first_layer,
                               p->shards[v.global].layer_count);
    if (!v.footprint && !e->status)
        e->status = error_memory(e->err, "the table of shard sizes", 1);
    return v;
}

static uint32_t end_unit(struct emitter *e)
{
    end_region_turn(e);
    uint32_t id = plan_builder_unit_end(e->builder);
    if (e->status) return id;
    if (id == PLAN_NONE) return id;
    while (!e->status && e->slots_count <= id) {
        e->status = array_reserve(&e->slots, &e->slots_capacity, e->slots_count, sizeof *e->slots,
                                  PLAN_UNITS_MAX, "units", e->err);
        if (!e->status) e->slots[e->slots_count++] = (struct unit_slots){0};
    }
    if (!e->status) e->slots[id] = e->current;
    return id;
}

static void begin_unit(struct emitter *e, const struct shard_view *v, enum plan_pass pass,
                       bool ends_minibatch)
{
    e->current = (struct unit_slots){.first_acquire = (uint32_t)e->acquire_count};
    e->edge_used = e->region_used = 0;
    plan_builder_unit_begin(e->builder, v->job_index, v->shard, pass, ends_minibatch);
}

static void add_instance(struct emitter *e, uint32_t id, uint32_t device, uint32_t seat)
{
    if (e->status || id == PLAN_NONE) return;
    const struct partition *p = e->partition;
    const struct unit_slots *slots = &e->slots[id];
    while (!e->status && e->slot_scratch_capacity < slots->acquire_count)
        e->status = array_reserve(&e->slot_scratch, &e->slot_scratch_capacity,
                                  e->slot_scratch_capacity, sizeof *e->slot_scratch, PLAN_OPS_MAX,
                                  "arena ranges of a unit", e->err);
    if (e->status) return;
    for (uint32_t i = 0; i < slots->acquire_count; i++) {
        const struct acquire *a = &e->acquires[slots->first_acquire + i];
        uint64_t base = 0;
        if (a->area == AREA_EDGE) base = partition_edge(p, e->edge_turn[device]);
        if (a->area == AREA_KEEP) base = partition_keep(p, seat);
        if (a->area == AREA_PERSISTENT) base = partition_persistent(p);
        if (a->area == AREA_TABLE) base = partition_table(p);
        if (a->area == AREA_REGION)
            base = partition_region(p, p->resident ? seat : e->region_turn[device] + a->turn);
        if (a->area == AREA_TRANSIENT)
            base = storage_transient(p, device, e->transient_turn[device] + a->turn);
        if (a->area == AREA_HELD) base = storage_held(p, device, e->held_turn[device] + a->turn);
        e->slot_scratch[i] = plan_builder_slot(e->builder, base + a->offset_bytes, a->bytes);
    }
    plan_builder_instance(e->builder, id, device, e->slot_scratch, slots->acquire_count);
    if (slots->uses_edge) e->edge_turn[device]++;
    e->region_turn[device] += slots->region_turns;
    e->transient_turn[device] += slots->transient_turns;
    e->held_turn[device] += slots->held_turns;
}

/* Is this the end of an evaluation after which weights are kept? */
static bool keeps_behind(const struct emitter *e, const struct scheduled_unit *unit)
{
    const struct partition *p = e->partition;
    uint32_t shards = p->job_first_shard[unit->job + 1] - p->job_first_shard[unit->job];
    return unit->ends && e->plan->jobs.jobs[unit->job].keep_best &&
           unit_pass_of(shards, unit->position) == PLAN_EVALUATE;
}

/* Is this the last backward pass of a minibatch whose updates follow? */
static bool updates_behind(const struct emitter *e, const struct scheduled_unit *unit)
{
    const struct partition *p = e->partition;
    uint32_t shards = p->job_first_shard[unit->job + 1] - p->job_first_shard[unit->job];
    return job_clips(&e->plan->jobs.jobs[unit->job]) && unit->position + 1 == unit_count_of(shards);
}

/* The unit of a shard's pass in this variant, written when it is first needed. */
static uint32_t unit_of(struct emitter *e, const struct scheduled_unit *unit, enum origin origin,
                        bool stays)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[unit->job];
    uint32_t shards = p->job_first_shard[unit->job + 1] - first;
    uint32_t shard = unit_shard(shards, unit->position);
    enum plan_pass pass = unit_pass_of(shards, unit->position);
    bool ends = unit->ends && !keeps_behind(e, unit) && !updates_behind(e, unit);
    uint32_t kind = pass == PLAN_FORWARD ? 0 : pass == PLAN_EVALUATE ? 2 : 1;
    uint32_t variant = (uint32_t)origin * VARIANTS_OF_ORIGIN + (stays ? VARIANT_STAYS : 0) +
                       (ends ? VARIANT_ENDS : 0);
    uint32_t *id = &e->unit_ids[((size_t)(first + shard) * 3 + kind) * UNIT_VARIANTS + variant];
    if (*id != PLAN_NONE) return *id;
    struct shard_view v = view_of(e, unit->job, shard);
    if (e->status) return PLAN_NONE;
    v.origin = origin;
    v.stays = stays;
    v.pass = pass;
    begin_unit(e, &v, pass, ends);
    if (pass == PLAN_LOSS) write_loss(e, &v);
    else if (pass == PLAN_BACKWARD) write_backward(e, &v);
    else if (pass == PLAN_EVALUATE && v.last) write_evaluation(e, &v);
    else write_forward(e, &v);
    *id = end_unit(e);
    return *id;
}

/* Bring the states of persistent shards in, or back. */
static void move_states(struct emitter *e, const struct scheduled_unit *unit, bool load)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[unit->job];
    for (uint32_t s = 0; first + s < p->job_first_shard[unit->job + 1]; s++) {
        if (!p->persistent[first + s]) continue;
        struct shard_view v = view_of(e, unit->job, s);
        if (e->status) return;
        begin_unit(e, &v, load ? PLAN_LOAD : PLAN_STORE, false);
        if (load) write_load(e, &v);
        else write_store(e, &v);
        add_instance(e, end_unit(e), p->resident ? p->shard_device[first + s] : unit->device,
                     unit->seat);
    }
}

static void keep_weights(struct emitter *e, const struct scheduled_unit *unit)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[unit->job], end = p->job_first_shard[unit->job + 1];
    for (uint32_t s = 0; first + s < end; s++) {
        struct shard_view v = view_of(e, unit->job, s);
        if (e->status) return;
        begin_unit(e, &v, PLAN_KEEP, first + s + 1 == end);
        write_keep(e, &v);
        add_instance(e, end_unit(e), p->resident ? p->shard_device[first + s] : unit->device,
                     unit->seat);
    }
}

static void update_shards(struct emitter *e, const struct scheduled_unit *unit)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[unit->job], end = p->job_first_shard[unit->job + 1];
    for (uint32_t s = 0; first + s < end; s++) {
        struct shard_view v = view_of(e, unit->job, s);
        if (e->status) return;
        begin_unit(e, &v, PLAN_UPDATE, unit->ends && first + s + 1 == end);
        add_update(e, &v);
        add_instance(e, end_unit(e), unit->device, unit->seat);
    }
}

/* An embedding of the host's processor leaves and finds everything in host memory. */
static bool on_host(const struct emitter *e, const struct scheduled_unit *unit)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[unit->job];
    uint32_t shards = p->job_first_shard[unit->job + 1] - first;
    return unit_shard(shards, unit->position) == 0 && p->on_cpu[first] &&
           job_has_embedding(&e->plan->jobs.jobs[unit->job]);
}

/* Is the job's next unit the device's as well, with its input on the device? */
static bool continues(const struct emitter *e, const struct schedule *schedule,
                      const struct scheduled_unit *unit)
{
    if (unit->next_here == PLAN_NONE) return false;
    const struct scheduled_unit *next = &schedule->units[unit->next_here];
    uint32_t shards = e->partition->job_first_shard[unit->job + 1] -
                      e->partition->job_first_shard[unit->job];
    return !unit_begins(shards, next->position) && !on_host(e, unit) && !on_host(e, next);
}

/* last_device: per job, filled in on the way. */
static void emit_schedule(struct emitter *e, const struct schedule *schedule, bool *continued,
                          uint32_t *last_device)
{
    for (uint32_t i = 0; i < schedule->count && !e->status; i++) {
        const struct scheduled_unit *unit = &schedule->units[i];
        bool here_out = continues(e, schedule, unit);
        enum origin origin = unit->fetches   ? ORIGIN_PEER
                             : continued[i] ? ORIGIN_HERE
                                            : ORIGIN_HOST;
        if (here_out) continued[unit->next_here] = true;
        if (unit->first) move_states(e, unit, true);
        add_instance(e, unit_of(e, unit, origin, here_out || unit->fetched), unit->device, unit->seat);
        if (unit->fetches && !e->status) plan_builder_peer(e->builder, last_device[unit->job]);
        last_device[unit->job] = unit->device;
        if (updates_behind(e, unit)) update_shards(e, unit);
        if (keeps_behind(e, unit)) keep_weights(e, unit);
        if (unit->last) move_states(e, unit, false);
    }
}

enum status emit_plan(struct plan_builder *builder, struct footprints *footprints,
                      const struct partition *partition, const struct schedule *schedule,
                      struct error *err)
{
    const struct plan *plan = plan_builder_plan(builder);
    struct emitter e = {.builder = builder,
                        .plan = plan,
                        .footprints = footprints,
                        .partition = partition,
                        .err = err};
    size_t ids = (size_t)partition->shard_count * 3 * UNIT_VARIANTS;
    uint32_t devices = plan->hardware.device_count;
    bool *continued = calloc(schedule->count + 1u, sizeof *continued);
    uint32_t *last_device = calloc(plan->jobs.count + 1u, sizeof *last_device);
    e.unit_ids = malloc((ids + 1) * sizeof *e.unit_ids);
    e.edge_turn = calloc(devices, sizeof *e.edge_turn);
    e.region_turn = calloc(devices, sizeof *e.region_turn);
    e.transient_turn = calloc(devices, sizeof *e.transient_turn);
    e.held_turn = calloc(devices, sizeof *e.held_turn);
    if (!continued || !last_device || !e.unit_ids || !e.edge_turn || !e.region_turn || !e.transient_turn ||
        !e.held_turn) {
        e.status = error_memory(err, "the table of units", ids * sizeof *e.unit_ids);
    } else {
        for (size_t i = 0; i < ids; i++) e.unit_ids[i] = PLAN_NONE;
        for (uint32_t s = 0; s < partition->shard_count; s++)
            plan_builder_shard(builder, partition->shards[s].job,
                               partition->shards[s].first_layer,
                               partition->shards[s].layer_count, partition->shards[s].inputs_only);
        emit_schedule(&e, schedule, continued, last_device);
    }
    free(continued);
    free(last_device);
    free(e.unit_ids);
    free(e.slots);
    free(e.acquires);
    free(e.edge_turn);
    free(e.region_turn);
    free(e.transient_turn);
    free(e.held_turn);
    free(e.slot_scratch);
    return e.status;
}
