#include "exec/group/run_split.h"

#include "base/process/clock.h"
#include "base/try.h"
#include "exec/group/run_collective_time.h"
#include "exec/ranks/rank_sum.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_shares.h"

const struct unit_split *run_split_of(const struct run *run, const struct plan_walk_op *op)
{
    const struct unit_split *const ranks = run->splits[run->plan->job_first_shard[op->unit->job] + op->unit->shard];
    return ranks ? &ranks[op->rank] : NULL;
}

struct split_call {
    const struct unit_split *split;
    struct run_flight *flight;
    struct device_stream *stream;
    double paced_s; /* over paced links, the time that it takes */
    bool meets;     /* the links' time begins for all members of a paced group at once */
    enum collective_kind kind; /* of the collectives that it stands for ... */
    uint64_t bytes;            /* ... and the bytes of each; 0: all that are left */
};

/* Takes the links' time when all members have ended the pass. */
static void hold_links(const struct split_call *call)
{
    struct run_flight *const flight = call->flight;
    const double came_s = flight->timing.start_s;
    if (!unit_group_meet(call->split->group, &flight->timing.start_s)) return;
    flight->timing.waited_s = flight->timing.start_s - came_s;
    flight->exchanged_s = call->paced_s;
    device_hold(call->stream, flight->timing.start_s, call->paced_s);
}

/* Places it after the pass, whose time ends before its exchanges (run_flight.exchanged_s), and after its waits. */
static void call_exchanged(void *argument)
{
    const struct split_call *const call = argument;
    struct run_flight *const flight = call->flight;
    flight->omitted = !unit_group_began(call->split->group);
    const double left_s = unit_group_exchanged_s(call->split->group, call->split->rank);
    const struct unit_group_seconds taken = unit_group_take(call->split->group, call->split->rank, call->kind,
                                                            call->bytes);
    flight->exchanged_s = taken.moved_s;
    flight->timing.waited_s = taken.waited_s;
    flight->timing.start_s += taken.waited_s - left_s;
    if (!flight->omitted && call->meets) {
        hold_links(call);
        return;
    }
    if (flight->omitted || flight->exchanged_s >= call->paced_s) return;
    device_hold(call->stream, clock_s(), call->paced_s - flight->exchanged_s);
    flight->exchanged_s = call->paced_s;
}

/* Returns true for the unit's last collective of the tensor group. */
static bool is_last(const struct plan_walk_op *op)
{
    for (uint32_t i = 1; op->op_index + i < op->unit->op_count; i++)
        if (op->op[i].kind == OP_COLLECTIVE && op->op[i].axes == op->op->axes) return false;
    return true;
}

enum status run_split_enqueue(struct run *run, const struct plan_walk_op *op, struct run_flight *flight,
                              struct error *err)
{
    struct split_call call = {.split = run_split_of(run, op), .flight = flight, .stream = run->streams[op->stream],
                              .kind = (enum collective_kind)op->op->collective,
                              .bytes = is_last(op) ? 0 : op->op->bytes};
    TRY(run_collective_time(run->plan, op, &call.paced_s, err));
    call.meets = call.paced_s > 0 && unit_group_is_paced(call.split->group) && op->op->stream == STREAM_COMPUTE;
    flight->within = true;
    device_call(call.stream, call_exchanged, &call, sizeof call, &flight->timing);
    return STATUS_OK;
}

/* --- several processes ------------------------------------------------------------------------ */

struct split_reach {
    struct ranks *ranks;
    uint64_t number; /* messages before the exchange */
    uint32_t members, here; /* here: of this process */
    uint32_t *ranks_of;
};

static bool reach(void *context, const struct unit_group_exchange *exchange)
{
    const struct split_reach *const reach = context;
    const struct rank_sum sum = {.ranks = reach->ranks, .number = reach->number + exchange->number,
                                 .members = reach->members, .ranks_of = reach->ranks_of,
                                 .values = (float *const *)(const void *)exchange->values, .add = exchange->combine,
                                 .count = exchange->count, .workers = reach->here, .tree = exchange->tree,
                                 .halves = exchange->halves};
    const bool owned = exchange->tree || exchange->halves; /* one rank adds up a piece */
    if (exchange->combine) return (owned ? rank_tree_work : rank_sum_work)(&sum, exchange->worker);
    return exchange->worker > 0 || rank_sum_doubles(&sum);
}

enum status run_split_divide(struct run *run, uint32_t shard, uint32_t first, struct unit_group *group,
                             struct error *err)
{
    const uint32_t members = run_slices_members(run, shard);
    struct split_reach *context;
    bool *here;
    if (!run->peers) return STATUS_OK;
    TRY(ARENA_NEW(&run->arena, 1, context, err));
    TRY(ARENA_NEW(&run->arena, members, here, err));
    *context = (struct split_reach){.ranks = run->peers->ranks, .members = members};
    context->number = run_peers_number(PEERS_EXCHANGES, (uint64_t)(run->peers->first_home[shard] + first) << 32);
    TRY(ARENA_NEW(&run->arena, members, context->ranks_of, err));
    for (uint32_t m = 0; m < members; m++) {
        context->ranks_of[m] = run_peers_home(run, shard, first + m);
        here[m] = context->ranks_of[m] == run->peers->own;
        context->here += here[m];
    }
    if (context->here < members) unit_group_divide(group, here, reach, context);
    return STATUS_OK;
}
