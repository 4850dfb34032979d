/* Units at a minibatch's ends: its data, norm, update and evaluation, and the load and end of states. */
#include "base/extreme.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_memory.h"
#include "planner/parallel/parallel_job_gang.h"
#include "planner/parallel/parallel_job_units.h"

/* Copies the minibatch's loss to the host, unless its last backward pass has. */
static void add_loss(struct gang_unit *u)
{
    if (u->chunk->gradients == 1) gang_copy_loss(u);
}

static uint64_t own_norm_bytes(const struct gang_unit *u)
{
    const struct parallel_layers layers = u->chunk->layers;
    return memory_tensor_count(&u->s->job->network, layers.first, layers.count) * sizeof(double);
}

/* Copies squares of gradients between host and device: the chunk's to the host, or all to the device. */
static void add_norms_copy(struct gang_unit *u, bool up)
{
    const struct network *network = &u->s->job->network;
    const uint64_t all = memory_norm_bytes(network);
    const uint64_t offset = up ? 0 : memory_tensor_count(network, 0, u->chunk->layers.first) * sizeof(double);
    const uint64_t bytes = up ? all : own_norm_bytes(u);
    const uint32_t host = gang_job_buffer(u, BUFFER_NORMS, false, all);
    const uint32_t device = gang_job_buffer(u, BUFFER_NORMS, true, all);
    struct gang_accesses a = {.of = {{.buffer = up ? host : device, .flags = ACCESS_READ, .offset_bytes = offset},
                                {.buffer = up ? device : host, .flags = ACCESS_WRITE, .offset_bytes = offset}},
                         .count = 2};
    gang_copy(u, up ? STREAM_H2D : STREAM_D2H, bytes, &a);
}

/* Accesses the head's gradient of a tied table on the first chunk's stage, which the first chunk adds to its own. */
static void access_table_gradient(struct gang_unit *u, struct gang_accesses *a)
{
    const struct parallel_job *s = u->s;
    if (u->r == 0 && gang_shares_table(s) && parallel_trains_table(s->job))
        gang_access_other(u, a, BUFFER_GRADIENT, s->chunks - 1, s->of[s->chunks - 1].gradient_bytes);
}

/* Brings a chunk's gradient to the host's update: copies the sum down, or adds up those of all ranks that are there. */
static void bring_gradient(struct gang_unit *u, uint32_t on_host)
{
    const uint64_t bytes = u->chunk->host.gradient_bytes;
    struct gang_accesses down = {0}, joined = {0};
    if (!parallel_drains(u->s->job)) {
        gang_access_gradient(u, &down, ACCESS_READ);
        gang_access(&down, on_host, ACCESS_WRITE);
        gang_copy(u, STREAM_D2H, bytes, &down);
        return;
    }
    gang_access(&joined, on_host, GANG_CHANGE);
    if (u->chunk->joins && parallel_joins_on_hosts(u->s->job))
        gang_in_data_group(u, COLLECTIVE_ALL_REDUCE, bytes, &joined);
}

/* Emits an update by the host's processor, after the gradient is there; where the first chunk adds the head's gradient
 * of a tied table on its stage, the last chunk's is there already. A job that clips has added it for the norm, and its
 * norms are on the host. */
static void emit_update_below(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    struct gang_unit u = gang_begin(s, r, PLAN_UPDATE, ends_minibatch);
    struct gang_accesses step = {0};
    const uint32_t gradient = gang_host_buffer(&u, BUFFER_GRADIENT, 0, u.chunk->host.gradient_bytes);
    bring_gradient(&u, gradient);
    gang_access_stepped(&u, &step);
    gang_access(&step, gradient, GANG_CHANGE);
    if (job_clips(s->job)) {
        gang_access(&step, gang_job_buffer(&u, BUFFER_NORMS, false, memory_norm_bytes(&s->job->network)), ACCESS_READ);
    } else if (r == 0 && gang_shares_table(s) && parallel_trains_table(s->job)) {
        struct gang_unit last = u;
        last.r = s->chunks - 1;
        gang_access(&step, gang_host_buffer(&last, BUFFER_GRADIENT, 0, s->of[last.r].host.gradient_bytes), ACCESS_READ);
    }
    gang_host_compute(&u, PLAN_UPDATE, PARALLEL_UPDATE, &step);
    gang_write_stepped(&u);
    if (!job_clips(s->job)) add_loss(&u);
    gang_end(&u);
}

/* Emits a norm. If ranks have shares of states, they add up the squares of their shares. */
void parallel_job_emit_norm(struct parallel_job *s, uint32_t r)
{
    struct gang_unit u = gang_begin(s, r, PLAN_NORM, false);
    struct gang_accesses a = {0}, norms = {0};
    gang_access_gradient(&u, &a, r == 0 && gang_shares_table(s) ? GANG_CHANGE : ACCESS_READ);
    gang_access_norms(&u, &a, ACCESS_WRITE);
    access_table_gradient(&u, &a);
    gang_compute(&u, PLAN_NORM, gang_work(&u, PARALLEL_NORM), &a);
    gang_tensor_collectives(&u, PARALLEL_NORM, false, STREAM_COMPUTE, a.of[1].buffer);
    gang_access(&norms, a.of[1].buffer, GANG_CHANGE);
    if (parallel_splits(s->parallel, ZERO_STATES) && own_norm_bytes(&u) > 0)
        gang_in_data_group(&u, COLLECTIVE_ALL_REDUCE, own_norm_bytes(&u), &norms);
    add_loss(&u);
    add_norms_copy(&u, false);
    gang_end(&u);
}

/* Emits an update. If ranks have shares of states but whole weights, weights are gathered after it. */
void parallel_job_emit_update(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    if (parallel_offloads(s->parallel)) {
        if (s->carried_out) emit_update_below(s, r, ends_minibatch);
        else parallel_job_emit_host_update(s, r, ends_minibatch);
        return;
    }
    struct gang_unit u = gang_begin(s, r, PLAN_UPDATE, ends_minibatch);
    struct gang_accesses a = {0}, state = {0};
    gang_access_state(&u, &a, GANG_CHANGE);
    gang_access_gradient(&u, &a, GANG_CHANGE | (u.chunk->gradients > 1 ? ACCESS_RELEASE : 0));
    if (u.chunk->versions == 1) {
        gang_access_version(&u, &a, u.chunk->version, GANG_CHANGE);
    } else if (u.chunk->versions > 1) {
        gang_access_version(&u, &a, u.chunk->version, ACCESS_READ | (u.chunk->version_ends ? ACCESS_RELEASE : 0));
        gang_access_version(&u, &a, u.chunk->version + 1, GANG_MAKE);
    }
    if (job_clips(s->job)) add_norms_copy(&u, true);
    else access_table_gradient(&u, &a);
    gang_access_norms(&u, &a, ACCESS_READ);
    gang_tensor_collectives(&u, PARALLEL_UPDATE, false, STREAM_COMPUTE, a.of[1].buffer);
    gang_tensor_collectives(&u, PARALLEL_UPDATE, true, STREAM_COMPUTE, a.of[1].buffer);
    gang_compute(&u, PLAN_UPDATE, gang_work(&u, PARALLEL_UPDATE), &a);
    if (!job_clips(s->job)) add_loss(&u);
    gang_access_state(&u, &state, GANG_CHANGE);
    if (parallel_splits(s->parallel, ZERO_STATES) && !u.chunk->gathers && u.chunk->whole_weight_bytes > 0)
        gang_in_data_group(&u, COLLECTIVE_ALL_GATHER, u.chunk->whole_weight_bytes, &state);
    gang_end(&u);
}

/* Reads a minibatch's data and copies them to the device. */
static void add_batch(struct gang_unit *u)
{
    uint64_t bytes = job_replica_batch_bytes(u->s->job);
    uint32_t read = gang_job_buffer(u, BUFFER_BATCH, false, bytes);
    struct gang_accesses made = {0}, up = {0};
    gang_access(&made, read, ACCESS_WRITE);
    gang_host_stream(u, STREAM_HOST, PLAN_BATCH, &made);
    gang_access(&up, read, ACCESS_READ);
    gang_access_batch(u, &up, pipeline_is_asynchronous(u->s->parallel->schedule) ? GANG_MAKE : ACCESS_WRITE);
    gang_copy(u, STREAM_H2D, bytes, &up);
}

void parallel_job_emit_batch(struct parallel_job *s, uint32_t r)
{
    struct gang_unit u = gang_begin(s, r, PLAN_BATCH, false);
    if (parallel_has_own_pace(s->parallel)) u.gang = gang_in_turn(s, u.stage); /* the minibatch is this replica's */
    add_batch(&u);
    gang_end(&u);
}

/* --- evaluation ----------------------------------------------------------------------------- */

/* Counts the passes over a replica's held-out microbatches, or over their slices; those of asynchronous schedules use
 * the tables of passes in turn. */
static uint32_t held_out_passes(const struct parallel_job *s)
{
    return (uint32_t)(s->job->microbatches / s->parallel->data) * parallel_slices(s->parallel);
}

/* Returns ACCESS_RELEASE for the last pass that reads held-out data that are there only for one minibatch. */
static uint32_t ends_held_out(const struct gang_unit *u, uint32_t n)
{
    const bool turns = pipeline_is_asynchronous(u->s->parallel->schedule);
    return turns && n + 1 == held_out_passes(u->s) ? ACCESS_RELEASE : 0;
}

/* Passes forward over a held-out microbatch; the last chunk's pass adds to the loss. A replica's first pass brings the
 * data, and its last one copies the loss to the host. */
static void emit_evaluate(struct parallel_job *s, uint32_t r, uint32_t n, bool ends_minibatch)
{
    struct gang_unit u = gang_begin(s, r, PLAN_EVALUATE, ends_minibatch);
    struct gang_accesses a = {0}, loss = {0};
    gang_pass_over(&u, n);
    const uint32_t at = n % s->microbatches; /* in the tables */
    if (u.chunk->brings_batch && n < u.stage->turns) add_batch(&u);
    gang_fetch(&u, PARALLEL_JOB_BOUNDARY, r, at, r - 1);
    gang_access_weights(&u, &a);
    gang_access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r, at, GANG_LAST);
    gang_access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r + 1, at, GANG_MAKE);
    uint32_t output = a.of[a.count - 1].buffer;
    gang_access_context(&u, &a, at);
    gang_access_batch(&u, &a, ACCESS_READ | ends_held_out(&u, n));
    gang_access_held_out_loss(&u, &a, GANG_CHANGE);
    if (u.chunk->has_loss) output = a.of[a.count - 1].buffer;
    gang_access_table(&u, &a);
    gang_access_workspace(&u, &a, GANG_MAKE | ACCESS_RELEASE);
    gang_compute(&u, PLAN_EVALUATE, gang_work(&u, PARALLEL_EVALUATE), &a);
    gang_tensor_collectives(&u, PARALLEL_EVALUATE, false, STREAM_COMPUTE, output);
    if (u.chunk->has_loss && n + u.stage->turns >= held_out_passes(s)) {
        gang_access_held_out_loss(&u, &loss, ACCESS_READ);
        gang_access(&loss, gang_held_out_loss(&u, false), ACCESS_WRITE);
        gang_copy(&u, STREAM_D2H, sizeof(double), &loss);
    }
    gang_end(&u);
}

/* Brings the values of each rank's state to the host, unless they are there, and keeps them if the evaluation was the
 * best so far. */
static void emit_keep(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    struct gang_unit u = gang_begin(s, r, PLAN_KEEP, ends_minibatch);
    struct gang_accesses down = {0}, a = {0};
    const struct chunk_memory memory = chunk_memory(s->job, u.chunk->layers);
    const uint32_t state = gang_host_buffer(&u, BUFFER_STATE, 0, memory.state_bytes), kept = gang_best_on_host(&u);
    if (!parallel_offloads(s->parallel)) {
        gang_access_state(&u, &down, ACCESS_READ);
        gang_access(&down, state, ACCESS_WRITE);
        gang_copy(&u, STREAM_D2H, memory.value_bytes, &down);
    }
    gang_access(&a, state, ACCESS_READ);
    gang_access(&a, gang_held_out_loss(&u, false), ACCESS_READ);
    gang_access(&a, kept, ACCESS_WRITE);
    gang_host_stream(&u, STREAM_HOST, PLAN_KEEP, &a);
    gang_end(&u);
}

/* Returns how many microbatches pass a chunk before the next chunk begins: a turn of the stages, as far as there are
 * places for boundaries. */
static uint32_t held_out_at_once(const struct parallel_job *s)
{
    uint32_t count = s->parallel->pipeline;
    for (uint32_t r = 1; r < s->chunks; r++) count = min_u32(count, s->of[r].pools[PARALLEL_JOB_BOUNDARY].made);
    return count;
}

/* Assigns the places of what a pass over chunk r uses and makes. None is in use between minibatches. Boundaries use
 * theirs in turn. A chunk's microbatches come one after the other, and so use one place for the keys and values of
 * their slices. */
static void assign_places(struct parallel_job *s, uint32_t r, uint32_t n)
{
    if (s->parallel->slices > 1) s->of[r].pools[PARALLEL_JOB_HANDOVER].variant_of[n % s->microbatches] = 0;
    if (r + 1 == s->chunks) return;
    struct parallel_job_pool *pool = &s->of[r + 1].pools[PARALLEL_JOB_BOUNDARY];
    if (s->parallel->replicated > 0) parallel_job_assign_place(s, r + 1, PARALLEL_JOB_BOUNDARY, n);
    else pool->variant_of[n % s->microbatches] = n % pool->made;
}

void parallel_job_emit_evaluation(struct parallel_job *s)
{
    const uint64_t minibatches = s->job->evaluation.minibatches;
    const uint32_t group = held_out_at_once(s), m = held_out_passes(s);
    for (uint64_t h = 0; h < minibatches; h++)
        for (uint32_t first = 0; first < m; first += group)
            for (uint32_t r = 0; r < s->chunks; r++)
                for (uint32_t n = first; n < min_u32(first + group, m); n++) {
                    s->microbatch = n;
                    assign_places(s, r, n);
                    const struct pipeline_step step = {.pass = PIPELINE_FORWARD, .chunk = r, .microbatch = n};
                    if (s->of[r].gathers) parallel_job_emit_gather(s, &step);
                    const bool last = h + 1 == minibatches && r + 1 == s->chunks && n + 1 == m;
                    emit_evaluate(s, r, n, last && !s->job->keep_best);
                }
    for (uint32_t r = 0; r < s->chunks && s->job->keep_best; r++) emit_keep(s, r, r + 1 == s->chunks);
}

/* Copies a chunk's state from the host, or back. */
static void add_state_copy(struct gang_unit *u, bool load)
{
    struct gang_accesses a = {0};
    const bool offloads = parallel_offloads(u->s->parallel);
    if (load && offloads) gang_access_raised(u, &a);
    else if (load) gang_access(&a, gang_host_buffer(u, BUFFER_STATE, 0, u->chunk->state_bytes), ACCESS_READ);
    gang_access_state(u, &a, load ? GANG_MAKE : GANG_LAST);
    if (!load) gang_access(&a, gang_host_buffer(u, BUFFER_STATE, 0, u->chunk->state_bytes), ACCESS_WRITE);
    gang_copy(u, load ? STREAM_H2D : STREAM_D2H, u->chunk->state_bytes, &a);
}

void parallel_job_emit_resident(struct parallel_job *s, uint32_t r, bool load)
{
    struct gang_unit u = gang_begin(s, r, load ? PLAN_LOAD : PLAN_STORE, false);
    struct gang_accesses a = {0};
    /* else hosts have the newest */
    const bool copies = s->carried_out && u.chunk->state_bytes > 0 && (load || !parallel_offloads(s->parallel));
    if (copies) add_state_copy(&u, load);
    else gang_access_state(&u, &a, load ? GANG_MAKE : GANG_LAST);
    /* copied to the version */
    if (s->carried_out && load && u.chunk->versions > 0) gang_access_state(&u, &a, ACCESS_READ);
    if (!parallel_drains(s->job) && u.chunk->gradients == 1) gang_access_gradient(&u, &a, load ? GANG_MAKE : GANG_LAST);
    gang_access_levels(&u, &a, load ? GANG_MAKE : GANG_LAST);
    if (u.chunk->versions > 0) gang_access_version(&u, &a, u.chunk->version, load ? GANG_MAKE : GANG_LAST);
    if (u.chunk->brings_batch && !pipeline_is_asynchronous(s->parallel->schedule))
        gang_access_batch(&u, &a, load ? GANG_MAKE : GANG_LAST);
    gang_access_loss(&u, &a, load ? GANG_MAKE : GANG_LAST);
    gang_access_held_out_loss(&u, &a, load ? GANG_MAKE : GANG_LAST);
    if (u.chunk->brings_norms) gang_access_norms(&u, &a, load ? GANG_MAKE : GANG_LAST);
    gang_compute(&u, load ? PLAN_LOAD : PLAN_STORE, PLAN_NONE, &a);
    gang_end(&u);
}
