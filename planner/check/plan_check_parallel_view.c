#include "planner/check/plan_check_parallel_view.h"

#include <assert.h>

#include "base/size.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"

const char *const check_operand_names[CHECK_OPERANDS] = {
    "state", "gradient", "boundary", "boundary of the next", "activations", "gradient of the next boundary",
    "gradient of the boundary", "workspace", "gathered weights", "gradient of the microbatch",
    "next version of the weights", "batch", "loss", "held-out loss", "norms", "partial sums",
    "state of the first chunk", 
    "gradient of the last chunk", "handover"};

/* Returns the unit's slice, or 0 if there is none. */
static uint32_t slice_of(const struct checker *c)
{
    uint32_t slice = check_parallel_slice_of(c->plan, c->unit);
    return slice < parallel_slices(&c->plan->jobs.jobs[c->unit->job].parallel) ? slice : 0;
}

static struct rank_state whole_of(const struct job *job, struct parallel_layers layers, struct check_shard_facts *facts)
{
    if (!facts->whole_known) facts->whole = parallel_whole_state(job, layers);
    facts->whole_known = true;
    return facts->whole;
}

/* Returns true if an operation of the unit accesses a buffer of the kind like this, from the device. */
static bool accesses_like(const struct checker *c, const struct plan_unit *unit, uint32_t op_kind, uint32_t kind,
                          uint32_t flag)
{
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_op *op = &c->plan->ops[o];
        for (uint32_t a = op->first_access; op->kind == op_kind && a < op->first_access + op->access_count; a++) {
            const struct plan_access *access = &c->plan->accesses[a];
            if (check_buffer_of(c, access)->kind == kind && (access->flags & flag)) return true;
        }
    }
    return false;
}

bool check_begins_sum(const struct checker *c, const struct plan_unit *unit)
{
    return unit->pass == PLAN_BACKWARD && accesses_like(c, unit, OP_COMPUTE, BUFFER_GRADIENT, ACCESS_ACQUIRE);
}

bool check_ends_sum(const struct checker *c, const struct plan_unit *unit)
{
    return unit->pass == PLAN_BACKWARD && accesses_like(c, unit, OP_COPY, BUFFER_LOSS, ACCESS_READ);
}

struct check_parallel_view check_parallel_view(const struct checker *c, struct job *room)
{
    const struct job *job = &c->plan->jobs.jobs[c->unit->job];
    struct parallel_layers layers = parallel_layers(job, c->unit->shard);
    uint32_t global = c->plan->job_first_shard[c->unit->job] + c->unit->shard;
    struct rank_state whole = whole_of(job, layers, &c->shards[global]);
    bool asynchronous = pipeline_is_asynchronous(job->parallel.schedule);
    bool apart = parallel_splits(&job->parallel, ZERO_GRADIENTS) || parallel_drains(job);
    bool carried_out = check_is_carried_out(c, c->unit->job);
    uint32_t chunks = parallel_chunks(&job->parallel);
    return (struct check_parallel_view){
        .unit = c->unit,
        .op = c->op,
        .job = job,
        .slice = parallel_slice_in(job, slice_of(c), room),
        .layers = layers,
        .chunk = c->unit->shard,
        .chunks = chunks,
        .carried_out = carried_out,
        .shares_table = carried_out && parallel_shares_table(job),
        .batch_thing = check_job_thing(c, c->unit->job, CHECK_THING_BATCH),
        .loss_thing = check_job_thing(c, c->unit->job, CHECK_THING_LOSS),
        .norms_thing = check_job_thing(c, c->unit->job, CHECK_THING_NORMS),
        .share_norms_thing = check_job_thing(c, c->unit->job, CHECK_THING_NORMS_OF_SHARES),
        .gathers_table = carried_out && parallel_fetches_weights(&job->parallel) && c->unit->shard + 1 == chunks &&
                         parallel_shares_table(job),
        .global = global,
        .ranks = parallel_replicas(&job->parallel, parallel_place(&job->parallel, c->unit->shard).stage),
        .whole = whole,
        .gradients = parallel_gradient_count(job, c->unit->shard),
        .begins_sum = check_begins_sum(c, c->unit),
        .ends_sum = check_ends_sum(c, c->unit),
        .versions = asynchronous ? parallel_staleness(&job->parallel, c->unit->shard) + 1 : 0,
        .gathers = parallel_fetches_weights(&job->parallel) && whole.weight_bytes > 0,
        .scatters = apart && whole.gradient_bytes > 0,
        .drains = parallel_drains(job)};
}

bool check_brings_batch(const struct check_parallel_view *v)
{
    const struct parallel *p = &v->job->parallel;
    if (!v->carried_out) return false;
    if (v->chunk == 0) return true;
    return v->chunk + 1 == v->chunks && parallel_place(p, v->chunk).stage != parallel_place(p, 0).stage;
}

bool check_brings_norms(const struct check_parallel_view *v)
{
    const struct parallel *p = &v->job->parallel;
    const uint32_t stage = parallel_place(p, v->chunk).stage;
    for (uint32_t earlier = 0; earlier < v->chunk; earlier++)
        if (parallel_place(p, earlier).stage == stage) return false;
    return v->carried_out && job_clips(v->job);
}

bool check_holds_place(const struct checker *c, uint32_t index)
{
    const struct plan *plan = c->plan;
    const struct plan_op *op = &plan->ops[c->unit->first_op + index], *copy = op + 1;
    if (!plan->jobs.jobs[c->unit->job].parallel.blocking || index + 1 >= c->unit->op_count) return false;
    if (op->kind != OP_COMPUTE || op->stream != STREAM_COMPUTE || op->pass != c->unit->pass || op->work != PLAN_NONE ||
        op->access_count != 1 || copy->stream != STREAM_P2P || copy->access_count != 2)
        return false;
    if (!check_in_table(op->first_access, 1, plan->access_count) ||
        !check_in_table(copy->first_access, 2, plan->access_count))
        return false;
    const struct plan_access *place = &plan->accesses[op->first_access], *to = &plan->accesses[copy->first_access + 1];
    return place->flags == (ACCESS_WRITE | ACCESS_ACQUIRE) && place->buffer == to->buffer;
}

bool check_operand_exists(const struct check_parallel_view *v, enum check_operand operand)
{
    if (operand == CHECK_OPERAND_INPUT || operand == CHECK_OPERAND_INPUT_GRADIENT) return v->chunk > 0;
    if (operand == CHECK_OPERAND_OUTPUT || operand == CHECK_OPERAND_OUTPUT_GRADIENT) return v->chunk + 1 < v->chunks;
    if (operand == CHECK_OPERAND_GRADIENT) return !v->drains;
    if (operand == CHECK_OPERAND_LEVELS)
        return job_sums_as_tree(v->job) && v->carried_out && chunk_memory(v->job, v->layers).level_bytes > 0;
    return true;
}

enum check_operand check_operand_of(const struct check_parallel_view *v, const struct plan_buffer *b)
{
    bool own = b->shard == v->chunk, next = b->shard == v->chunk + 1;
    switch (b->kind) {
    case BUFFER_BATCH: return CHECK_OPERAND_BATCH;
    case BUFFER_NORMS: return CHECK_OPERAND_NORMS;
    case BUFFER_LOSS: return b->variant == 0 ? CHECK_OPERAND_LOSS : CHECK_OPERAND_HELD_OUT_LOSS;
    case BUFFER_STATE: return own ? CHECK_OPERAND_STATE : b->shard == 0 ? CHECK_OPERAND_TABLE : CHECK_OPERANDS;
    case BUFFER_PARAMETERS: return own ? CHECK_OPERAND_WEIGHTS : CHECK_OPERANDS;
    case BUFFER_GRADIENT:
        if (!own) return b->shard + 1 == v->chunks && b->variant == 0 ? CHECK_OPERAND_TABLE_GRADIENT : CHECK_OPERANDS;
        if (b->variant == PLAN_GRADIENT_LEVELS) return CHECK_OPERAND_LEVELS;
        if (b->variant > PLAN_GRADIENT_TURNS)
            return b->variant - PLAN_GRADIENT_TURNS < v->gradients ? CHECK_OPERAND_GRADIENT : CHECK_OPERANDS;
        return b->variant == 0 ? CHECK_OPERAND_GRADIENT : CHECK_OPERAND_WHOLE_GRADIENT;
    case BUFFER_ACTIVATIONS: return own ? CHECK_OPERAND_ACTIVATIONS : CHECK_OPERANDS;
    case BUFFER_WORKSPACE:
        if (!own) return CHECK_OPERANDS;
        return b->variant == 0 ? CHECK_OPERAND_WORKSPACE : CHECK_OPERAND_HANDOVER;
    case BUFFER_BOUNDARY: return own ? CHECK_OPERAND_INPUT : next ? CHECK_OPERAND_OUTPUT : CHECK_OPERANDS;
    case BUFFER_BOUNDARY_GRADIENT:
        return own ? CHECK_OPERAND_INPUT_GRADIENT : next ? CHECK_OPERAND_OUTPUT_GRADIENT : CHECK_OPERANDS;
    default: return CHECK_OPERANDS;
    }
}

/* Takes the sizes of the executor's buffers. */
static void find_carried_out(const struct check_parallel_view *v, uint64_t bytes[CHECK_OPERANDS])
{
    const struct chunk_memory own = chunk_memory(v->job, v->layers);
    bytes[CHECK_OPERAND_STATE] = own.device_state_bytes;
    bytes[CHECK_OPERAND_GRADIENT] = own.gradient_bytes;
    bytes[CHECK_OPERAND_WHOLE_GRADIENT] = own.whole_gradient_bytes;
    if (own.splits_states) bytes[CHECK_OPERAND_WEIGHTS] = own.whole_weight_bytes;
    if (v->versions > 0) bytes[CHECK_OPERAND_WEIGHTS] = bytes[CHECK_OPERAND_NEXT_WEIGHTS] = own.version_bytes;
    bytes[CHECK_OPERAND_ACTIVATIONS] = own.activation_bytes;
    bytes[CHECK_OPERAND_WORKSPACE] = own.workspace_bytes;
    bytes[CHECK_OPERAND_HANDOVER] = own.handover_bytes;
    bytes[CHECK_OPERAND_BATCH] = job_replica_batch_bytes(v->job);
    bytes[CHECK_OPERAND_LOSS] = bytes[CHECK_OPERAND_HELD_OUT_LOSS] = sizeof(double);
    bytes[CHECK_OPERAND_LEVELS] = own.level_bytes;
    bytes[CHECK_OPERAND_NORMS] = memory_norm_bytes(&v->job->network);
    bytes[CHECK_OPERAND_TABLE] = chunk_memory(v->job, parallel_layers(v->job, 0)).device_state_bytes;
    bytes[CHECK_OPERAND_TABLE_GRADIENT] = chunk_memory(v->job, parallel_layers(v->job, v->chunks - 1)).gradient_bytes;
}

/* Boundaries before the first chunk and after the last have no bytes. */
static void find_boundaries(const struct check_parallel_view *v, uint64_t bytes[CHECK_OPERANDS])
{
    uint64_t first = v->layers.first, last = first + v->layers.count - 1;
    if (v->chunk > 0)
        bytes[CHECK_OPERAND_INPUT] = bytes[CHECK_OPERAND_INPUT_GRADIENT] = parallel_boundary_bytes(v->slice, first - 1);
    if (v->chunk + 1 < v->chunks)
        bytes[CHECK_OPERAND_OUTPUT] = bytes[CHECK_OPERAND_OUTPUT_GRADIENT] = parallel_boundary_bytes(v->slice, last);
}

static void find_bytes(const struct check_parallel_view *v, uint64_t bytes[CHECK_OPERANDS])
{
    struct rank_state state = parallel_state(v->job, v->layers);
    bytes[CHECK_OPERAND_STATE] = (v->versions > 0 ? 0 : state.weight_bytes) + state.state_bytes;
    bytes[CHECK_OPERAND_GRADIENT] = state.gradient_bytes;
    bytes[CHECK_OPERAND_WEIGHTS] = bytes[CHECK_OPERAND_NEXT_WEIGHTS] = v->versions > 0 ? state.weight_bytes
                                                                          : v->whole.weight_bytes;
    bytes[CHECK_OPERAND_WHOLE_GRADIENT] = v->whole.gradient_bytes;
    bytes[CHECK_OPERAND_ACTIVATIONS] = parallel_kept_bytes(v->slice, v->layers, false);
    bytes[CHECK_OPERAND_WORKSPACE] = parallel_workspace_bytes(v->slice, v->layers);
    find_boundaries(v, bytes);
    if (v->carried_out) find_carried_out(v, bytes);
}

uint64_t check_operand_bytes(const struct checker *c, const struct check_parallel_view *v, enum check_operand operand)
{
    struct check_shard_facts *facts = &c->shards[v->global];
    static_assert(CHECK_OPERANDS <= ARRAY_COUNT(facts->parallel_bytes), "room for each");
    const bool sliced = v->job->parallel.slices > 1;
    if (!facts->parallel_known || (sliced && !v->carried_out)) find_bytes(v, facts->parallel_bytes);
    else if (sliced) find_boundaries(v, facts->parallel_bytes); /* the only ones of a slice */
    facts->parallel_known = true;
    return facts->parallel_bytes[operand];
}

uint64_t check_gathered_table_bytes(const struct check_parallel_view *v)
{
    const struct chunk_memory own = chunk_memory(v->job, v->layers);
    return own.whole_weight_bytes - own.table_weights_offset;
}

uint64_t check_buffer_bytes(const struct checker *c, const struct check_parallel_view *v, enum check_operand operand)
{
    const bool loss = operand == CHECK_OPERAND_LOSS || operand == CHECK_OPERAND_HELD_OUT_LOSS;
    const bool levels = loss && v->carried_out && job_sums_as_tree(v->job);
    return levels ? chunk_memory(v->job, v->layers).loss_bytes : check_operand_bytes(c, v, operand);
}
