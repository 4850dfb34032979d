/*
 * Parallel jobs that offload (models/job/parallel_offload.h): ranks' data in host memory and on storage, and the
 * operations that change shares there.
 *
 * Copies are followed byte by byte, so these claims find a step with a share of the wrong version, a gradient that has
 * not come down, or a wrong version of weights.
 *
 *     REDUCE     pass makes n   [reduce-scatter: share of n]   copy down   [add: sum of n leaves one of n + 1]
 *                UPDATE finds n, or the sum of m for minibatches of m microbatches
 *     whole      REDUCE: pass makes n   copy down    UPDATE [hosts' all-reduce: sum of all ranks' n]
 *     states     UPDATE finds version v of the share, leaves v + 1   copy up   [all-gather: all of v + 1]  = REFRESH
 *     weights    GATHER: copy up v [all-gather: weights v], for one pass
 *
 * Jobs that are carried out add up gradients on the device, as without offloading; a minibatch's comes down within its
 * UPDATE. The REFRESH then gives the device's buffer to the next sum.
 *
 *     UPDATE     copy down   step: version v, sum of the minibatch -> v + 1
 *     REFRESH    gradient: complete -> sum so far   copy up   [all-gather: all of v + 1]
 *
 * Offloaded weights come up in a GATHER instead, with the first chunk's table for a tied head of another chunk. Where
 * gradients go down after each pass, there is no sum on the device, and no REFRESH.
 *
 * Swapped activations are copied out after a FORWARD and in within a GATHER, as the planner chooses: a pass without its
 * microbatch's activations is refused.
 *
 * With delayed updates a pass claims the version of one update less (parallel_staleness()), on the device until the
 * next REFRESH. A REFRESH too early or too late breaks the claims of passes. Where they are carried out, a REFRESH
 * before the minibatch's UPDATE leaves the gradient alone, which one of its own gives to the next sum before the next
 * backward pass; where the job flushes, another one after the UPDATE is as without a delay.
 */
#include <inttypes.h>

#include "base/try.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "planner/check/plan_checker.h"

struct plan_check_offload_shares {
    const struct job *job;
    const struct parallel *parallel;
    uint32_t chunk, global;
    struct rank_state host, whole; /* of each rank there; of all together */
    uint64_t refreshed_bytes;      /* of the device's state, once shares of its weights are gathered */
    uint64_t step_bytes;           /* of the gradient, or sum, that a rank steps by */
    bool carried_out;
    bool adds_table;               /* the step adds the last chunk's gradient of a tied table */
    uint32_t last;                 /* chunk */
    uint64_t table_bytes, raised_table_bytes; /* of the first chunk's table in the weights of a pass, and from each
                                                 rank ... */
    uint64_t raised_table_offset;             /* ... whose state has it there */
};

/* Takes the sizes of the executor's buffers. The weights of a rank are those that go up after a step. */
static void find_carried_out(struct plan_check_offload_shares *s, struct parallel_layers layers)
{
    const struct chunk_memory own = chunk_memory(s->job, layers);
    const uint32_t chunks = parallel_chunks(s->parallel);
    s->carried_out = true;
    s->host = (struct rank_state){.weight_bytes = own.raised_bytes, .state_bytes = own.state_bytes - own.raised_bytes,
                                  .gradient_bytes = own.gradient_bytes};
    s->whole = (struct rank_state){.weight_bytes = own.whole_weight_bytes};
    if (own.gathers_table) s->table_bytes = own.whole_weight_bytes - own.table_weights_offset;
    s->raised_table_bytes = own.raised_table_bytes;
    s->raised_table_offset = own.raised_table_offset;
    s->refreshed_bytes = own.device_state_bytes;
    s->step_bytes = own.gradient_bytes;
    s->last = chunks - 1;
    s->adds_table = s->chunk == 0 && chunks > 1 && parallel_trains_table(s->job) &&
                    parallel_joined_bytes(s->job) == 0 && !job_clips(s->job); /* its NORM does */
}

static struct plan_check_offload_shares closed_forms(const struct checker *c, uint32_t job, uint32_t shard)
{
    const struct job *of = &c->plan->jobs.jobs[job];
    struct parallel_layers layers = parallel_layers(of, shard);
    return (struct plan_check_offload_shares){.job = of,
                                              .parallel = &of->parallel,
                                              .chunk = shard,
                                              .global = c->plan->job_first_shard[job] + shard,
                                              .host = parallel_host_state(of, layers),
                                              .whole = parallel_whole_state(of, layers),
                                              .refreshed_bytes = parallel_whole_state(of, layers).weight_bytes,
                                              .step_bytes = parallel_host_gradient_bytes(of, layers)};
}

static struct plan_check_offload_shares shares_of(const struct checker *c, uint32_t job, uint32_t shard)
{
    struct plan_check_offload_shares s = closed_forms(c, job, shard);
    if (check_is_carried_out(c, job)) find_carried_out(&s, parallel_layers(s.job, shard));
    return s;
}

uint64_t check_host_state_bytes(const struct checker *c, uint32_t job, uint32_t shard)
{
    const struct job *of = &c->plan->jobs.jobs[job];
    struct rank_state host = closed_forms(c, job, shard).host;
    if (check_is_carried_out(c, job)) return chunk_memory(of, parallel_layers(of, shard)).state_bytes;
    return host.weight_bytes + host.state_bytes;
}

bool check_offload_copies(const struct checker *c)
{
    const struct parallel *p = &c->plan->jobs.jobs[c->unit->job].parallel;
    uint32_t pass = c->unit->pass, stream = c->op->stream;
    bool moves = pass == PLAN_GATHER || pass == PLAN_REDUCE || pass == PLAN_UPDATE || pass == PLAN_REFRESH;
    if (p->swap && pass == PLAN_FORWARD && stream == STREAM_D2H) return true;
    if (!parallel_offloads(p) || !moves) return false;
    return stream == STREAM_H2D || stream == STREAM_D2H ||
           (p->storage && (stream == STREAM_READ || stream == STREAM_WRITE));
}

bool check_is_offload_op(const struct checker *c)
{
    const struct job *job = &c->plan->jobs.jobs[c->unit->job];
    uint32_t pass = c->unit->pass;
    if (!parallel_offloads(&job->parallel)) return false;
    if (check_is_carried_out(c, c->unit->job))
        return pass == PLAN_REFRESH || (pass == PLAN_GATHER && job->parallel.offload == OFFLOAD_WEIGHTS) ||
               (pass == PLAN_UPDATE && (c->op->kind == OP_COMPUTE || parallel_joins_on_hosts(job)));
    if (c->op->kind == OP_COMPUTE) return pass == PLAN_UPDATE || pass == PLAN_REDUCE;
    return pass == PLAN_REFRESH || (pass == PLAN_GATHER && job->parallel.offload == OFFLOAD_WEIGHTS) ||
           pass == PLAN_REDUCE || (pass == PLAN_UPDATE && parallel_joins_on_hosts(job));
}

bool check_is_reset(const struct checker *c)
{
    const struct plan_unit *unit = c->unit;
    return unit->pass == PLAN_REFRESH && check_is_carried_out(c, unit->job) &&
           c->plan->jobs.jobs[unit->job].parallel.delayed && unit->op_count == 1 &&
           c->plan->ops[unit->first_op].kind == OP_COMPUTE;
}

/* --- claims --------------------------------------------------------------------------------- */

static enum status claim(struct checker *c, const struct plan_check_offload_shares *s, const struct plan_access *access,
                         enum check_shard_thing thing, enum check_claim_clock clock, bool makes, uint64_t bytes)
{
    return check_add_claim(c, access,
                           (struct check_claim){.thing = check_shard_thing(s->global, thing), .clock = clock,
                                                .makes = makes,
                                                .bytes = bytes});
}

/* Returns the thing that copies bring for a microbatch. */
static enum check_shard_thing arrived(const struct plan_check_offload_shares *s)
{
    return parallel_splits(s->parallel, ZERO_GRADIENTS) ? CHECK_THING_REDUCED_GRADIENT : CHECK_THING_PARAMETER_GRADIENT;
}

/* --- steps ---------------------------------------------------------------------------------- */

/* Checks the size of the last chunk's gradient on the host. */
static enum status check_table_gradient(struct checker *c, const struct plan_check_offload_shares *s,
                                        const struct plan_buffer *b)
{
    const uint64_t wanted = chunk_memory(s->job, parallel_layers(s->job, s->last)).gradient_bytes;
    if (b->bytes >= wanted) return STATUS_OK;
    return check_fail(c, CHECK_RULE_MEMORY,
                      "the gradient of the last chunk has %" PRIu64 " bytes (expected %" PRIu64 ")", b->bytes, wanted);
}

static enum status check_step_access(struct checker *c, const struct plan_check_offload_shares *s,
                                     const struct plan_access *access, bool *state)
{
    const struct plan_buffer *b = check_buffer_of(c, access);
    uint32_t flags = access->flags & (ACCESS_READ | ACCESS_WRITE);
    uint32_t home = s->parallel->storage ? BUFFER_STAGED : BUFFER_STATE;
    uint64_t wanted;
    char text[PLAN_TEXT_BYTES];
    const bool of_table = s->adds_table && b->shard == s->last && b->kind == BUFFER_GRADIENT;
    *state = b->kind == home;
    if (b->on_device || (b->shard != s->chunk && !of_table) || access->offset_bytes != 0 ||
        (!*state && b->kind != BUFFER_GRADIENT))
        return check_fail(c, CHECK_RULE_FORM, "has no use for the %s", check_access_text(c, access, text));
    if (!*state && b->variant != 0)
        return check_fail(c, CHECK_RULE_FORM, "steps by the %s", check_access_text(c, access, text));
    const bool changes = *state || (s->carried_out && !of_table);
    if (flags != (changes ? (uint32_t)(ACCESS_READ | ACCESS_WRITE) : (uint32_t)ACCESS_READ))
        return check_fail(c, CHECK_RULE_FORM, "%s the %s", changes ? "does not change" : "writes",
                          check_access_text(c, access, text));
    if (of_table) return check_table_gradient(c, s, b);
    wanted = *state ? s->host.weight_bytes + s->host.state_bytes : s->step_bytes;
    if (b->bytes >= wanted) return STATUS_OK;
    return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                      check_access_text(c, access, text), b->bytes, wanted);
}

/* Returns the complete gradient of a minibatch of a job that is carried out, of chunk `chunk`. */
static uint32_t complete_gradient(const struct plan_check_offload_shares *s, uint32_t chunk)
{
    const uint32_t global = s->global - s->chunk + chunk;
    if (parallel_joins_chunk(s->job, chunk)) return check_shard_thing(global, CHECK_THING_JOINED_GRADIENT);
    return check_shard_thing(global,
                             s->parallel->data > 1 ? CHECK_THING_REDUCED_GRADIENT : CHECK_THING_PARAMETER_GRADIENT);
}

/* Claims the gradient of a carried-out step: the chunk's own, or the last one's. */
static enum status claim_gradient(struct checker *c, const struct plan_check_offload_shares *s,
                                  const struct plan_access *access, uint32_t chunk)
{
    const bool drained = parallel_drains(s->job); /* each minibatch has one microbatch */
    struct check_claim claim = {.thing = complete_gradient(s, chunk),
                                .clock = drained ? CHECK_CLOCK_MICROBATCH : CHECK_CLOCK_SUM,
                                .bytes = s->step_bytes};
    if (chunk != s->chunk) claim.bytes = chunk_memory(s->job, parallel_layers(s->job, chunk)).gradient_bytes;
    TRY(check_add_claim(c, access, claim));
    claim.makes = true;
    return chunk == s->chunk ? check_add_claim(c, access, claim) : STATUS_OK;
}

/* Checks the computation without work that gives a gradient's buffer to the next minibatch's sum. */
static enum status check_reset(struct checker *c, const struct plan_check_offload_shares *s)
{
    const struct plan_op *op = c->op;
    const struct plan_access *access = &c->plan->accesses[op->first_access];
    const struct plan_buffer *b = check_buffer_of(c, access);
    const bool shares = parallel_splits(s->parallel, ZERO_GRADIENTS);
    char text[PLAN_TEXT_BYTES];
    if (op->stream != STREAM_COMPUTE || op->work != PLAN_NONE || op->access_count != 1 || b->kind != BUFFER_GRADIENT ||
        !b->on_device || b->shard != s->chunk || b->variant != 0 || access->flags != (ACCESS_READ | ACCESS_WRITE) ||
        access->offset_bytes != 0 || b->bytes < s->step_bytes)
        return check_fail(c, CHECK_RULE_FORM, "a refresh computes on the %s", check_access_text(c, access, text));
    TRY(check_add_claim(c, access, (struct check_claim){.thing = complete_gradient(s, s->chunk),
                                                        .clock = CHECK_CLOCK_SUM,
                                                        .bytes = s->step_bytes}));
    return claim(c, s, access, shares ? CHECK_THING_REDUCED_GRADIENT : CHECK_THING_PARAMETER_GRADIENT, CHECK_CLOCK_SUM,
                 true, s->step_bytes);
}

/* Checks the squares of all tensors' gradients that a step of a job that clips reads. */
static enum status check_norms(struct checker *c, const struct plan_check_offload_shares *s,
                               const struct plan_access *access)
{
    const struct plan_buffer *b = check_buffer_of(c, access);
    const uint64_t wanted = memory_norm_bytes(&s->job->network);
    char text[PLAN_TEXT_BYTES];
    if (!s->carried_out || !job_clips(s->job) || b->on_device || access->flags != ACCESS_READ ||
        access->offset_bytes != 0)
        return check_fail(c, CHECK_RULE_FORM, "has no use for the %s", check_access_text(c, access, text));
    if (b->bytes < wanted)
        return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                          check_access_text(c, access, text), b->bytes, wanted);
    return check_add_claim(c, access, (struct check_claim){.thing = check_job_thing(c, c->unit->job, CHECK_THING_NORMS),
                                                           .clock = CHECK_CLOCK_STEP, .bytes = wanted});
}

/* Checks a host's optimizer step on the rank's share of weights and states, with its share of all ranks' gradient. */
static enum status check_step(struct checker *c, const struct plan_check_offload_shares *s)
{
    const struct plan_op *op = c->op;
    bool sums = parallel_sums_on_host(s->job), found[2] = {false, false};
    bool joined = parallel_joins_on_hosts(s->job), table = false, norms = false;
    enum check_shard_thing gradient = sums   ? CHECK_THING_GRADIENT_SUM
                                    : joined ? CHECK_THING_REDUCED_GRADIENT
                                             : arrived(s);
    uint64_t bytes = s->host.weight_bytes + s->host.state_bytes;
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &c->plan->accesses[op->first_access + a];
        char text[PLAN_TEXT_BYTES];
        bool state;
        if (check_buffer_of(c, access)->kind == BUFFER_NORMS && !norms) {
            norms = true;
            TRY(check_norms(c, s, access));
            continue;
        }
        TRY(check_step_access(c, s, access, &state));
        const uint32_t shard = check_buffer_of(c, access)->shard;
        if (shard != s->chunk) {
            if (table)
                return check_fail(c, CHECK_RULE_FORM, "has no use for the %s", check_access_text(c, access, text));
            table = true;
            TRY(claim_gradient(c, s, access, shard));
            continue;
        }
        if (found[state])
            return check_fail(c, CHECK_RULE_FORM, "has no use for the %s", check_access_text(c, access, text));
        found[state] = true;
        if (state) {
            TRY(claim(c, s, access, CHECK_THING_STATE, CHECK_CLOCK_STEP, false, bytes));
            TRY(check_add_claim(c, access,
                                (struct check_claim){.thing = check_shard_thing(s->global, CHECK_THING_STATE),
                                                     .clock = CHECK_CLOCK_STEP,
                                                     .makes = true,
                                                     .version_delta = 1,
                                                     .bytes = bytes}));
        } else if (s->carried_out) {
            TRY(claim_gradient(c, s, access, shard));
        } else {
            TRY(claim(c, s, access, gradient, sums ? CHECK_CLOCK_SUM : CHECK_CLOCK_MICROBATCH, false, s->step_bytes));
        }
    }
    if (s->carried_out && job_clips(s->job) && !norms) return check_fail(c, CHECK_RULE_FORM, "lacks the norms");
    if (table != s->adds_table) return check_fail(c, CHECK_RULE_FORM, "lacks the gradient of the last chunk");
    if (found[0] && found[1]) return STATUS_OK;
    return check_fail(c, CHECK_RULE_FORM, "lacks the %s on the host", found[1] ? "gradient" : "state");
}

/* --- sums ----------------------------------------------------------------------------------- */

/* A microbatch's data (variant 1) is added to the sum (0), which then holds one more. */
static enum status check_sum(struct checker *c, const struct plan_check_offload_shares *s)
{
    const struct plan_op *op = c->op;
    bool found[2] = {false, false};
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &c->plan->accesses[op->first_access + a];
        const struct plan_buffer *b = check_buffer_of(c, access);
        char text[PLAN_TEXT_BYTES];
        uint32_t flags = access->flags & (ACCESS_READ | ACCESS_WRITE);
        uint64_t bytes = b->variant == 0 ? s->step_bytes : s->host.gradient_bytes;
        if (b->kind != BUFFER_GRADIENT || b->on_device || b->shard != s->chunk || b->variant > 1 ||
            access->offset_bytes != 0 || found[b->variant] ||
            flags != (b->variant == 0 ? (uint32_t)(ACCESS_READ | ACCESS_WRITE) : (uint32_t)ACCESS_READ))
            return check_fail(c, CHECK_RULE_FORM, "adds up the %s", check_access_text(c, access, text));
        if (b->bytes < bytes)
            return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                              check_access_text(c, access, text), b->bytes, bytes);
        found[b->variant] = true;
        if (b->variant == 1) {
            TRY(claim(c, s, access, arrived(s), CHECK_CLOCK_MICROBATCH, false, bytes));
            continue;
        }
        TRY(claim(c, s, access, CHECK_THING_GRADIENT_SUM, CHECK_CLOCK_SUM, false, bytes));
        TRY(check_add_claim(c, access,
                            (struct check_claim){.thing = check_shard_thing(s->global, CHECK_THING_GRADIENT_SUM),
                                                 .clock = CHECK_CLOCK_SUM, .makes = true, .version_delta = 1,
                                                 .bytes = bytes}));
    }
    if (found[0] && found[1]) return STATUS_OK;
    return check_fail(c, CHECK_RULE_FORM, "adds nothing to a sum of gradients");
}

static enum status check_host_compute(struct checker *c, const struct plan_check_offload_shares *s)
{
    const struct plan_op *op = c->op;
    if (s->carried_out && op->pass == PLAN_REFRESH && c->unit->pass == PLAN_REFRESH) return check_reset(c, s);
    if (op->stream != STREAM_CPU)
        return check_fail(c, CHECK_RULE_FORM, "a computation on the %s stream (expected %s: its states are offloaded)",
                          plan_stream_names[op->stream], plan_stream_names[STREAM_CPU]);
    if (op->pass != c->unit->pass || op->slice != 0 || op->row_count != 0 || op->first_row != 0)
        return check_fail(c, CHECK_RULE_FORM, "a %s in a unit that is about %s", plan_pass_names[op->pass],
                          plan_pass_names[c->unit->pass]);
    return op->pass == PLAN_UPDATE ? check_step(c, s) : check_sum(c, s);
}

/* --- collectives ---------------------------------------------------------------------------- */

/* Claims the gathering of the first chunk's table, of which each rank has brought its share, at `offset` of the
 * weights. */
static enum status claim_table(struct checker *c, const struct plan_check_offload_shares *s,
                               const struct plan_access *access, uint64_t offset)
{
    TRY(check_add_claim(c, access,
                        (struct check_claim){.thing = check_shard_thing(s->global - s->chunk, CHECK_THING_STATE),
                                                        .clock = CHECK_CLOCK_STEP, .offset_bytes = offset,
                                                        .thing_offset = s->raised_table_offset,
                                                        .bytes = s->raised_table_bytes}));
    return check_add_claim(c, access, (struct check_claim){.thing = check_shard_thing(s->global, CHECK_THING_WEIGHTS),
                                                           .clock = CHECK_CLOCK_STEP, .makes = true,
                                                           .offset_bytes = offset,
                                                           .thing_offset = offset, .bytes = s->table_bytes});
}

/* Checks a collective in place that gathers ranks' shares or reduces to them. */
static enum status check_exchange(struct checker *c, const struct plan_check_offload_shares *s)
{
    const struct plan_op *op = c->op;
    const struct plan_access *access = &c->plan->accesses[op->first_access];
    const struct plan_buffer *b = check_buffer_of(c, access);
    uint32_t pass = c->unit->pass;
    bool reduces = pass == PLAN_REDUCE;
    uint32_t kind = reduces ? BUFFER_GRADIENT : pass == PLAN_GATHER ? BUFFER_PARAMETERS : BUFFER_STATE;
    uint64_t whole = reduces ? s->whole.gradient_bytes : s->whole.weight_bytes - s->table_bytes;
    const bool of_table = s->table_bytes > 0 && access->offset_bytes == whole;
    char text[PLAN_TEXT_BYTES];
    if (op->axes != 1u << AXIS_DATA || op->stream != STREAM_DATA || op->rounds != 1 || op->access_count != 1)
        return check_fail(c, CHECK_RULE_FORM, "%u collectives over axes 0x%x on %u buffers, on the %s stream",
                          op->rounds, op->axes, op->access_count, plan_stream_names[op->stream]);
    if (b->kind != kind || !b->on_device || b->shard != s->chunk || (access->offset_bytes != 0 && !of_table) ||
        (access->flags & (ACCESS_READ | ACCESS_WRITE)) != (ACCESS_READ | ACCESS_WRITE) ||
        (reduces && b->variant == 0))
        return check_fail(c, CHECK_RULE_FORM, "a collective on the %s", check_access_text(c, access, text));
    if (b->bytes < whole + s->table_bytes)
        return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                          check_access_text(c, access, text), b->bytes, whole + s->table_bytes);
    if (of_table) return claim_table(c, s, access, whole);
    if (reduces) {
        TRY(claim(c, s, access, CHECK_THING_PARAMETER_GRADIENT, CHECK_CLOCK_MICROBATCH, false, whole));
        return claim(c, s, access, CHECK_THING_REDUCED_GRADIENT, CHECK_CLOCK_MICROBATCH, true, s->host.gradient_bytes);
    }
    TRY(claim(c, s, access, CHECK_THING_STATE, CHECK_CLOCK_STEP, false, s->host.weight_bytes));
    if (pass == PLAN_GATHER) return claim(c, s, access, CHECK_THING_WEIGHTS, CHECK_CLOCK_STEP, true, whole);
    return claim(c, s, access, CHECK_THING_STATE, CHECK_CLOCK_STEP, true, s->refreshed_bytes);
}

/* Checks the hosts' all-reduce in place, for states that are not split: ranks' gradients become their sum. */
static enum status check_join(struct checker *c, const struct plan_check_offload_shares *s)
{
    const struct plan_op *op = c->op;
    const struct plan_access *access = &c->plan->accesses[op->first_access];
    const struct plan_buffer *b = check_buffer_of(c, access);
    uint64_t bytes = s->host.gradient_bytes;
    char text[PLAN_TEXT_BYTES];
    if (op->axes != 1u << AXIS_DATA || op->stream != STREAM_DATA || op->rounds != 1 || op->access_count != 1)
        return check_fail(c, CHECK_RULE_FORM, "%u collectives over axes 0x%x on %u buffers, on the %s stream",
                          op->rounds, op->axes, op->access_count, plan_stream_names[op->stream]);
    if (b->kind != BUFFER_GRADIENT || b->on_device || b->shard != s->chunk || b->variant != 0 ||
        access->offset_bytes != 0 ||
        (access->flags & (ACCESS_READ | ACCESS_WRITE)) != (ACCESS_READ | ACCESS_WRITE))
        return check_fail(c, CHECK_RULE_FORM, "a collective on the %s", check_access_text(c, access, text));
    if (b->bytes < bytes)
        return check_fail(c, CHECK_RULE_MEMORY, "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                          check_access_text(c, access, text), b->bytes, bytes);
    TRY(claim(c, s, access, arrived(s), CHECK_CLOCK_MICROBATCH, false, bytes));
    return claim(c, s, access, CHECK_THING_REDUCED_GRADIENT, CHECK_CLOCK_MICROBATCH, true, bytes);
}

enum status check_offload_op(struct checker *c)
{
    struct plan_check_offload_shares s = shares_of(c, c->unit->job, c->unit->shard);
    if (c->op->kind == OP_COLLECTIVE && c->unit->pass == PLAN_UPDATE) return check_join(c, &s);
    return c->op->kind == OP_COMPUTE ? check_host_compute(c, &s) : check_exchange(c, &s);
}
