/*
 * One walk over the plan writes all ranks, or as many ranks as files may be open; a plan with more ranks takes a walk
 * for each RANKS_AT_ONCE. Every walk numbers nodes in the same way, with N operations in total:
 *
 *     n              operation n of the plan; of a copy between devices its RECV, of a collective its last
 *                    round
 *     N + n          the SEND of that copy
 *     2 N + k        in sequence: signals (both ends have one number) and earlier rounds
 *
 * The exporter stores only the place of an operation: two bytes for its rank and two for the source of a copy.
 *
 *     rank 0   compute 7 ----> SEND N+9               compute 12          12 acquires the slot that 9 leaves
 *     rank 1                   RECV 9 ---> compute 11   ^
 *                                 \___________________  | SEND N+9 is on rank 0 already: no signal
 *
 * Several operations of a rank that wait for one operation elsewhere share a signal while the cache holds it; a
 * repeated signal is harmless.
 */
#include "sim/chakra/chakra_export.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json_out.h"
#include "base/try.h"
#include "models/kernel/work.h"
#include "planner/plan_gang.h"
#include "planner/walk/plan_walk.h"
#include "sim/duration.h"
#include "sim/engine/allocate.h"
#include "traces/exchange/chakra.h"

enum { RANKS_AT_ONCE = 256, SIGNALS_KEPT = 1 << 12, DEPS_MAX = 2 * (HARDWARE_DEVICES_MAX * STREAM_HOST + 8) };
static const uint64_t operations_max = (uint64_t)1 << 40;

static_assert(HARDWARE_DEVICES_MAX <= UINT16_MAX, "a rank is two bytes");

/* A group's collectives on different streams may run at once, so each set of axes and stream has its own process
 * groups: COMMUNICATORS sets. */
enum { COMMUNICATORS = STREAM_HOST << AXIS_COUNT };
static_assert(COMMUNICATORS <= 64, "a set of them fits a number");
static uint32_t communicator_of(const struct plan_op *op)
{
    assert(op->stream < STREAM_HOST);
    return (uint32_t)op->stream << AXIS_COUNT | op->axes;
}
static uint32_t axes_of(uint32_t communicator)
{
    return communicator % (1u << AXIS_COUNT);
}

struct chakra_export_placed {
    uint16_t rank, source; /* source: of a copy between devices; else equal to rank */
};

struct signal {
    uint64_t operation, id;
    uint32_t to;
    bool some;
};

/* Dependencies of the node being written. */
struct deps {
    uint64_t *ids;
    uint32_t count;
};

struct exporter {
    const struct plan *plan;
    const char *prefix;
    struct arena arena;
    struct sim_durations *durations;
    struct plan_walk *walk;
    struct chakra_writer writer;
    struct file_out *files[RANKS_AT_ONCE];
    uint32_t first_rank, end_rank;
    uint64_t total;                         /* operations */
    struct chakra_export_placed *placed;    /* by operation */
    uint64_t *last;                         /* by stream: its last operation, or total */
    struct signal *signals;                 /* by hash */
    uint32_t (*first_group)[COMMUNICATORS]; /* per gang, see communicator_of(): the number of the first group */
    uint32_t (*families)[COMMUNICATORS];
    struct deps deps, source; /* source: of the SEND */
    uint64_t next_id;
    struct sim_chakra_written *written;
};

static bool writes(const struct exporter *e, uint32_t rank)
{
    return rank >= e->first_rank && rank < e->end_rank;
}

static enum status write_node(struct exporter *e, uint32_t rank, const struct chakra_node *node,
                              struct error *err)
{
    if (!writes(e, rank)) return STATUS_OK;
    e->written->nodes++;
    return chakra_write_node(&e->writer, e->files[rank - e->first_rank], node, err);
}

/* --- dependencies -------------------------------------------------------------------------- */

/* Makes one end of a message; the ends have two nodes' ids, or one for both. */
static struct chakra_node message_end(uint32_t type, uint64_t id, uint32_t from, uint32_t to, uint64_t tag)
{
    return (struct chakra_node){.id = id,
                                .type = type,
                                .comm_src = from,
                                .comm_dst = to,
                                .comm_tag = (uint32_t)(tag & INT32_MAX),
                                .family = CHAKRA_NONE};
}

/* Returns the id, on rank `to`, of the signal that `operation` has ended. */
static enum status signal_of(struct exporter *e, uint64_t operation, uint32_t to, uint64_t *id,
                             struct error *err)
{
    struct signal *kept = &e->signals[(operation * 31 + to) % SIGNALS_KEPT];
    uint32_t from = e->placed[operation].rank;
    if (!kept->some || kept->operation != operation || kept->to != to) {
        *kept = (struct signal){.some = true, .operation = operation, .to = to, .id = e->next_id++};
        struct chakra_node node = message_end(CHAKRA_SEND, kept->id, from, to, kept->id);
        node.name = "signal";
        node.comm_size = 1;
        node.is_signal = true;
        node.data_deps = &operation;
        node.data_count = 1;
        TRY(write_node(e, from, &node, err));
        node.type = CHAKRA_RECV;
        node.data_count = 0;
        TRY(write_node(e, to, &node, err));
        e->written->signals += writes(e, from);
    }
    *id = kept->id;
    return STATUS_OK;
}

/* Adds the operation that `rank` waits for, as a node of that rank. */
static enum status depend(struct exporter *e, uint32_t rank, uint64_t operation, struct deps *deps,
                          struct error *err)
{
    const struct chakra_export_placed *placed = &e->placed[operation];
    uint64_t id = operation;
    if (placed->rank != rank && placed->source == rank) id = e->total + operation;
    else if (placed->rank != rank && signal_of(e, operation, rank, &id, err) != STATUS_OK) return err->status;
    for (uint32_t i = 0; i < deps->count; i++) /* ASTRA-sim waits for ever if a dependency is listed twice */
        if (deps->ids[i] == id) return STATUS_OK;
    assert(deps->count < DEPS_MAX);
    deps->ids[deps->count++] = id;
    return STATUS_OK;
}

/* Finds dependencies. The source of a copy waits itself for its own operations. */
static enum status find_deps(struct exporter *e, const struct plan_walk_op *op, struct error *err)
{
    uint64_t before = e->last[op->stream];
    e->deps.count = e->source.count = 0;
    e->last[op->stream] = op->number;
    if (before < e->total) TRY(depend(e, op->device, before, &e->deps, err));
    for (uint32_t w = 0; w < op->wait_count; w++) {
        const struct chakra_export_placed *placed = &e->placed[op->waits[w]];
        bool at_source = op->peer != PLAN_NONE && placed->rank != op->device && placed->source != op->device &&
                         (placed->rank == op->peer || placed->source == op->peer);
        TRY(depend(e, at_source ? op->peer : op->device, op->waits[w], at_source ? &e->source : &e->deps, err));
    }
    return STATUS_OK;
}

/* --- nodes ---------------------------------------------------------------------------------- */

static const uint32_t collective_types[COLLECTIVE_KIND_COUNT] = {
    [COLLECTIVE_ALL_REDUCE] = CHAKRA_ALL_REDUCE, [COLLECTIVE_REDUCE_SCATTER] = CHAKRA_REDUCE_SCATTER,
    [COLLECTIVE_ALL_GATHER] = CHAKRA_ALL_GATHER, [COLLECTIVE_BROADCAST] = CHAKRA_BROADCAST,
    [COLLECTIVE_ALL_TO_ALL] = CHAKRA_ALL_TO_ALL};

static void fill_work(const struct exporter *e, const struct plan_op *op, struct chakra_node *node)
{
    double flops = 0, bytes = 0;
    if (op->work == PLAN_NONE) return;
    const struct plan_work *work = &e->plan->works[op->work];
    for (uint32_t i = 0; i < work->item_count; i++) {
        const struct work_item *item = &e->plan->items[work->first_item + i];
        flops += work_item_flops(item);
        bytes += work_item_bytes(item, sizeof(float));
    }
    node->num_ops = flops < 0x1p62 ? (uint64_t)flops : (uint64_t)1 << 62;
    node->tensor_size = bytes < (double)CHAKRA_BYTES_MAX ? (uint64_t)bytes : CHAKRA_BYTES_MAX;
}

static enum status write_compute(struct exporter *e, const struct plan_walk_op *op, struct chakra_node *node,
                                 struct error *err)
{
    bool host = plan_stream_is_host(op->op->stream);
    uint32_t device = host ? hardware_cpu(&e->plan->hardware) : op->device;
    uint32_t index = op->unit->first_op + op->op_index;
    node->type = CHAKRA_COMP;
    node->is_cpu_op = host;
    node->seconds = sim_durations_alone_s(e->durations, device, index);
    node->has_seconds = true;
    node->duration_micros = (uint64_t)llround(node->seconds * 1e6);
    fill_work(e, op->op, node);
    return write_node(e, op->device, node, err);
}

static enum status write_copy(struct exporter *e, const struct plan_walk_op *op, struct chakra_node *node,
                              struct error *err)
{
    bool in = op->op->stream == STREAM_H2D || op->op->stream == STREAM_READ;
    node->type = in ? CHAKRA_MEM_LOAD : CHAKRA_MEM_STORE;
    node->tensor_size = op->op->bytes;
    return write_node(e, op->device, node, err);
}

static enum status write_message(struct exporter *e, const struct plan_walk_op *op, struct chakra_node *node,
                                 struct error *err)
{
    struct chakra_node end = message_end(CHAKRA_RECV, op->number, op->peer, op->device, op->number);
    end.name = node->name;
    end.stream = node->stream;
    end.comm_size = op->op->bytes;
    end.data_deps = node->data_deps;
    end.data_count = node->data_count;
    TRY(write_node(e, op->device, &end, err));
    end.type = CHAKRA_SEND;
    end.id = e->total + op->number;
    end.data_deps = e->source.ids;
    end.data_count = e->source.count;
    return write_node(e, op->peer, &end, err);
}

/* Writes the rounds as a chain: the first has the dependencies, and others wait for the last. */
static enum status write_collective(struct exporter *e, const struct plan_walk_op *op, struct chakra_node *node,
                                    struct error *err)
{
    char group[16];
    if (op->op->collective == COLLECTIVE_SEND)
        return error_set(err, STATUS_BAD_INPUT, "operation %" PRIu64 " sends among the devices of a gang, "
                         "which execution traces have no node for", op->number);
    const struct plan_gang *gang = &e->plan->gangs[op->gang];
    uint32_t members = plan_gang_group_size(gang, op->op->axes), algorithm =
        parallel_algorithm(&e->plan->jobs.jobs[op->unit->job].parallel);
    snprintf(group, sizeof group, "%" PRIu32, e->first_group[op->gang][communicator_of(op->op)] + op->group);
    node->type = CHAKRA_COLLECTIVE;
    node->comm_type = collective_types[op->op->collective];
    node->comm_size = op->op->bytes;
    if (op->op->collective == COLLECTIVE_ALL_GATHER) /* the bytes of each member before the collective */
        node->comm_size = (op->op->bytes + members - 1) / members;
    node->pg_name = group;
    node->family = e->families[op->gang][communicator_of(op->op)];
    if (algorithm < COLLECTIVE_ALGORITHM_COUNT) node->algorithm = collective_algorithm_names[algorithm];
    for (uint32_t round = 1; round < op->op->rounds; round++) {
        uint64_t id = e->next_id++;
        node->id = id;
        TRY(write_node(e, op->device, node, err));
        node->data_count = 1;
        e->deps.ids[0] = id;
    }
    node->id = op->number;
    return write_node(e, op->device, node, err);
}

static enum status write_op(struct exporter *e, const struct plan_walk_op *op, struct error *err)
{
    char text[PLAN_TEXT_BYTES];
    e->placed[op->number] =
        (struct chakra_export_placed){(uint16_t)op->device, (uint16_t)(op->peer == PLAN_NONE ? op->device : op->peer)};
    TRY(find_deps(e, op, err));
    struct chakra_node node = {.id = op->number,
                               .name = plan_op_text(e->plan, op->unit, op->op, text),
                               .stream = plan_stream_names[op->op->stream],
                               .family = CHAKRA_NONE,
                               .data_deps = e->deps.ids,
                               .data_count = e->deps.count};
    if (op->op->kind == OP_COLLECTIVE) return write_collective(e, op, &node, err);
    if (op->op->kind == OP_COMPUTE) return write_compute(e, op, &node, err);
    if (op->peer != PLAN_NONE && op->op->stream == STREAM_P2P) return write_message(e, op, &node, err);
    return write_copy(e, op, &node, err);
}

/* --- process groups ------------------------------------------------------------------------- */

/* Numbers the groups of every gang and named communicator, from 1; the groups of one gang and communicator are a
 * family. */
static enum status number_groups(struct exporter *e, struct error *err)
{
    const struct plan *plan = e->plan;
    enum status status = STATUS_OK;
    uint64_t used = 0;
    uint32_t family = 0;
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].kind == OP_COLLECTIVE) used |= UINT64_C(1) << communicator_of(&plan->ops[o]);
    e->first_group = sim_allocate(&e->arena, plan->gang_count, sizeof *e->first_group, &status, err);
    e->families = sim_allocate(&e->arena, plan->gang_count, sizeof *e->families, &status, err);
    for (uint32_t g = 0; status == STATUS_OK && g < plan->gang_count; g++)
        for (uint32_t c = 0; c < COMMUNICATORS; c++) {
            const struct plan_gang *gang = &plan->gangs[g];
            if (!(used & UINT64_C(1) << c)) continue;
            e->first_group[g][c] = 1 + e->written->groups;
            e->families[g][c] = family++;
            e->written->groups += plan_gang_size(gang) / plan_gang_group_size(gang, axes_of(c));
        }
    return status;
}

static void put_groups(const struct exporter *e, uint32_t gang, uint32_t communicator, uint32_t *places,
                       struct json_out *json)
{
    const struct plan_gang *of = &e->plan->gangs[gang];
    uint32_t axes = axes_of(communicator);
    uint32_t members = plan_gang_group_size(of, axes);
    plan_gang_order(of, axes, places);
    for (uint32_t g = 0; g < plan_gang_size(of) / members; g++) {
        char name[16];
        snprintf(name, sizeof name, "%" PRIu32, e->first_group[gang][communicator] + g);
        json_out_array_begin(json, name, true);
        for (uint32_t i = 0; i < members; i++)
            json_out_u64(json, NULL, e->plan->gang_devices[of->first + places[g * members + i]]);
        json_out_array_end(json);
    }
}

static enum status write_groups(struct exporter *e, struct error *err)
{
    char path[CHAKRA_PATH_BYTES];
    enum status status = STATUS_OK;
    if (e->written->groups == 0) return STATUS_OK;
    TRY(chakra_groups_path(e->prefix, path, err));
    uint32_t *places = sim_allocate(&e->arena, e->plan->hardware.device_count, sizeof *places, &status, err);
    struct json_file json;
    if (status == STATUS_OK) status = json_file_begin(&json, path, "writing process groups", err);
    if (status != STATUS_OK) return status;
    json_out_object_begin(json.out, NULL, false);
    for (uint32_t g = 0; g < e->plan->gang_count; g++)
        for (uint32_t c = 0; c < COMMUNICATORS; c++)
            if (e->first_group[g][c] > 0) put_groups(e, g, c, places, json.out);
    json_out_object_end(json.out);
    return json_file_end(&json, err);
}

/* --- files ---------------------------------------------------------------------------------- */

static enum status open_files(struct exporter *e, struct error *err)
{
    char path[CHAKRA_PATH_BYTES];
    for (uint32_t r = e->first_rank; r < e->end_rank; r++) {
        struct file_out **file = &e->files[r - e->first_rank];
        TRY(chakra_path(e->prefix, r, path, err));
        TRY(file_out_create(path, file, err));
        TRY(chakra_write_header(&e->writer, *file, err));
    }
    return STATUS_OK;
}

/* Closes all open files; after the first failure no file is committed. */
static enum status close_files(struct exporter *e, enum status status, struct error *err)
{
    for (uint32_t i = 0; i < RANKS_AT_ONCE; i++) {
        struct file_out *file = e->files[i];
        e->files[i] = NULL;
        if (!file) continue;
        if (status == STATUS_OK) status = file_out_commit(file, err);
        else file_out_discard(file);
    }
    return status;
}

static enum status write_ranks(struct exporter *e, struct error *err)
{
    struct plan_walk_op op;
    e->next_id = 2 * e->total;
    memset(e->signals, 0, SIGNALS_KEPT * sizeof *e->signals);
    for (uint32_t s = 0; s < plan_stream_count(e->plan); s++) e->last[s] = e->total;
    plan_walk_rewind(e->walk);
    enum status status = open_files(e, err);
    while (status == STATUS_OK && plan_walk_next(e->walk, &op)) status = write_op(e, &op, err);
    if (status == STATUS_OK && plan_walk_failed(e->walk))
        status = error_set(err, STATUS_NO_MEMORY, "not enough memory to walk the plan");
    return close_files(e, status, err);
}

/* Removes further ranks' files of an earlier export, which readers would take for this plan's. */
static enum status remove_further(const struct exporter *e, struct error *err)
{
    char path[CHAKRA_PATH_BYTES];
    for (uint32_t r = e->written->ranks;; r++) {
        TRY(chakra_path(e->prefix, r, path, err));
        if (unlink(path) == 0) continue;
        if (errno != ENOENT) return error_io(err, "cannot remove '%s', a rank of an earlier plan", path);
        break;
    }
    if (e->written->groups > 0) return STATUS_OK;
    TRY(chakra_groups_path(e->prefix, path, err));
    if (unlink(path) == 0 || errno == ENOENT) return STATUS_OK;
    return error_io(err, "cannot remove '%s', of an earlier plan", path);
}

static enum status create(struct exporter *e, struct error *err)
{
    enum status status = STATUS_OK;
    e->total = plan_operations(e->plan);
    if (e->total > operations_max)
        return error_set(err, STATUS_LIMIT, "too many operations (limit is %" PRIu64 ")", operations_max);
    e->placed = sim_allocate(&e->arena, e->total, sizeof *e->placed, &status, err);
    e->last = sim_allocate(&e->arena, plan_stream_count(e->plan), sizeof *e->last, &status, err);
    e->signals = sim_allocate(&e->arena, SIGNALS_KEPT, sizeof *e->signals, &status, err);
    e->deps.ids = sim_allocate(&e->arena, DEPS_MAX, sizeof *e->deps.ids, &status, err);
    e->source.ids = sim_allocate(&e->arena, DEPS_MAX, sizeof *e->source.ids, &status, err);
    if (status == STATUS_OK)
        status = sim_durations_create(&e->arena, e->plan, &e->plan->hardware, NULL, &e->durations, err);
    if (status == STATUS_OK) status = number_groups(e, err);
    if (status == STATUS_OK) status = plan_walk_create(e->plan, NULL, &e->walk, err);
    return status;
}

enum status sim_chakra_export(const struct plan *plan, const char *prefix, struct sim_chakra_written *out,
                              struct error *err)
{
    struct sim_chakra_written written = {.ranks = plan->hardware.device_count};
    struct exporter e = {.plan = plan, .prefix = prefix, .written = &written};
    enum status status = create(&e, err);
    for (uint32_t first = 0; status == STATUS_OK && first < written.ranks; first = e.end_rank) {
        e.first_rank = first;
        e.end_rank = first + RANKS_AT_ONCE < written.ranks ? first + RANKS_AT_ONCE : written.ranks;
        status = write_ranks(&e, err);
    }
    if (status == STATUS_OK) status = write_groups(&e, err);
    if (status == STATUS_OK) status = remove_further(&e, err);
    if (status == STATUS_OK) *out = written;
    plan_walk_destroy(e.walk);
    chakra_writer_release(&e.writer);
    arena_release(&e.arena);
    return status;
}
