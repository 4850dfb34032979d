/*
 * The plan in its order, once, with every buffer's contents.
 *
 * Plan order is enough, because rule 2 of plan.h keeps operations that touch the same bytes in it: "after the last
 * writer", "after the readers" and "after earlier lifetimes" are the pairs whose exchange would change bytes that are
 * read.
 *
 * Each task must be its job's next one (plan_check_order.c). Then each operation:
 *
 *     orderings point backward  ->  acquire (free range, large enough)  ->  all accesses are live
 *       ->  copy contents, or find the claimed contents and leave new ones  ->  release
 *
 * plan_check_live.c knows places of live buffers. plan_check_repeat.c leaves out repetitions.
 *
 * If all tasks are on gangs, no device is in two gangs, and there are no reservations, a gang's devices make the
 * same accesses with the same slots, also on peers. Then the first place is followed for all, with the smallest one's
 * memory: 3072 devices in 64 gangs are 64 to follow.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "models/job/parallel_offload.h"
#include "planner/check/plan_check_walk.h"

/* --- contents ------------------------------------------------------------------------------- */

static enum status copy(struct check_walk *r)
{
    const struct plan_op *op = r->c->op;
    const struct plan_access *from = &r->plan->accesses[op->first_access], *to = from + 1;
    char text[PLAN_TEXT_BYTES];
    bool complete;
    if (!buffer_contents_copy(r->contents[0], from->offset_bytes, op->bytes, r->contents[1], to->offset_bytes,
                              &complete))
        return check_no_memory(r);
    if (complete) return STATUS_OK;
    return check_fail(r->c, CHECK_RULE_LIFETIMES, "copies unwritten bytes from the %s",
                      plan_buffer_text(r->plan, from->buffer, text));
}

static enum status fail_claim(struct check_walk *r, uint32_t buffer, const struct buffer_extent *wanted,
                              const struct buffer_extent *found)
{
    char text[PLAN_TEXT_BYTES], found_text[PLAN_TEXT_BYTES], wanted_text[PLAN_TEXT_BYTES];
    check_thing_text(r->c, wanted->thing, wanted->version, wanted_text);
    plan_buffer_text(r->plan, buffer, text);
    if (!found)
        return check_fail(r->c, CHECK_RULE_LIFETIMES,
                          "reads unwritten bytes of the %s (expected %s)", text,
                          wanted_text);
    check_thing_text(r->c, found->thing, found->version, found_text);
    if (found->thing == wanted->thing && found->version == wanted->version)
        return check_fail(r->c, CHECK_RULE_TRAINING, "finds other bytes of %s than expected",
                          wanted_text);
    return check_fail(r->c, CHECK_RULE_TRAINING, "finds %s (expected %s)", found_text, wanted_text);
}

/* Finds the versions that all operations of a task share. */
static void find_versions(struct check_walk *r)
{
    const struct checker *c = r->c;
    if (r->versions_position == c->position + 1 && r->versions_rank == r->rank) return;
    struct check_rank rank = check_parallel_rank(r->plan, r->task, r->rank);
    const struct check_parallel_progress *passed = check_progress(r, c->jobs[c->unit->job].first_shard + rank.chunk,
                                                                  rank.turn);
    r->versions = check_parallel_versions(&r->plan->jobs.jobs[c->unit->job], rank, passed, c->unit->pass);
    r->versions_position = c->position + 1;
    r->versions_rank = r->rank;
}

static enum status claims(struct check_walk *r)
{
    const struct checker *c = r->c;
    const struct plan_op *op = c->op;
    const struct check_job_progress *progress = &r->jobs[c->unit->job];
    uint64_t minibatch = progress->minibatch;
    bool parallel = check_is_parallel(c, c->unit->job);
    if (parallel) find_versions(r);
    const struct check_claim_list *list = &c->claims_of[op - r->plan->ops];
    for (uint32_t i = 0; i < list->count; i++) {
        const struct check_claim *claim = &c->claims[list->first + i];
        const struct plan_access *access = &r->plan->accesses[op->first_access + claim->access];
        if (claim->access < r->own_first || claim->access >= r->own_end) continue;
        struct buffer_contents *contents = r->contents[claim->access];
        struct buffer_extent extent = {.first = claim->offset_bytes,
                                       .end = claim->offset_bytes + claim->bytes,
                                       .thing_offset = claim->thing_offset,
                                       .version = claim->held_out ? CHECK_HELD_OUT_VERSION | progress->held_out
                                                                  : minibatch + claim->version_delta,
                                       .thing = claim->thing};
        const struct buffer_extent *found;
        if (parallel) extent.version = check_version_of(&r->versions, claim);
        if (claim->frozen) extent.version = 0;
        if (claim->kept)
            extent.version = r->plan->jobs.jobs[r->plan->jobs.jobs[c->unit->job].outputs.maker].minibatches - 1;
        if (claim->makes && !buffer_contents_put(contents, &extent)) return check_no_memory(r);
        if (!claim->makes && !buffer_contents_hold(contents, &extent, &found))
            return fail_claim(r, access->buffer, &extent, found);
    }
    return STATUS_OK;
}

/* --- waiting -------------------------------------------------------------------------------- */

static uint32_t find_segment(const struct check_walk *r, uint64_t position)
{
    uint32_t low = 0, high = r->segment + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (r->segment_start[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static enum status check_after(struct check_walk *r, const struct plan_after *after)
{
    const struct checker *c = r->c;
    uint32_t own_op = (uint32_t)(c->op - r->plan->ops) - c->unit->first_op;
    if (after->tasks > c->position)
        return check_fail(r->c, CHECK_RULE_WAITING,
                          "waits for an operation %u tasks back (there are %" PRIu64 ")",
                          after->tasks, c->position);
    uint64_t position = c->position - after->tasks;
    uint32_t s = find_segment(r, position);
    const struct plan_segment *segment = &r->plan->segments[s];
    uint64_t index = segment->first_task +
                     (position - r->segment_start[s]) % segment->task_count;
    const struct plan_unit *unit = &r->plan->units[r->plan->tasks[index].unit];
    if (after->op >= unit->op_count)
        return check_fail(r->c, CHECK_RULE_WAITING,
                          "waits for operation %u of task %" PRIu64 " (it has %u)", after->op,
                          position, unit->op_count);
    if (after->tasks == 0 && after->op >= own_op)
        return check_fail(r->c, CHECK_RULE_WAITING,
                          "waits for operation %u of its own task (deadlock)", after->op);
    return STATUS_OK;
}

/* --- operations ----------------------------------------------------------------------------- */

static enum status check_link(struct check_walk *r, uint32_t device, uint32_t peer)
{
    bool parallel = r->task->gang != PLAN_NONE;
    if (hardware_p2p_pair(&r->plan->hardware, peer, device)) return STATUS_OK;
    if (parallel && hardware_reaches(&r->plan->hardware, peer, device)) return STATUS_OK;
    return check_fail(r->c, CHECK_RULE_FORM, "device %u %s device %u", device,
                      parallel ? "does not reach" : "has no direct link to", peer);
}

/* A copy between devices needs a peer that the device reaches from each place: directly or, for parallel jobs, staged
 * through host memory. Other jobs' copies through host memory are D2H and H2D. */
static enum status check_peer(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    const struct plan_task *task = r->task;
    if (r->c->op->stream != STREAM_P2P) return STATUS_OK;
    if (r->peer == PLAN_NONE)
        return check_fail(r->c, CHECK_RULE_FORM, "a copy between devices in a task without a peer");
    if (!r->one_place) return check_link(r, r->device, r->peer);
    if (plan_gang_peers_note(&r->peers[task->gang], task->peer)) return STATUS_OK;
    const struct plan_gang *own = &plan->gangs[task->gang], *from = &plan->gangs[task->peer];
    for (uint32_t i = 0; i < plan_gang_size(own); i++)
        TRY(check_link(r, plan->gang_devices[own->first + i], plan->gang_devices[from->first + i]));
    return STATUS_OK;
}

static enum status run_op(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    const struct plan_op *op = r->c->op;
    const struct plan_access *accesses = plan->accesses + op->first_access;
    TRY(check_peer(r));
    plan_gang_own_accesses(plan, r->task, op, r->rank, &r->own_first, &r->own_end);
    for (uint32_t i = 0; i < op->after_count; i++)
        TRY(check_after(r, &plan->afters[op->first_after + i]));
    for (uint32_t a = r->own_first; a < r->own_end; a++)
        if (accesses[a].flags & ACCESS_ACQUIRE) TRY(check_acquire(r, &accesses[a]));
    for (uint32_t a = r->own_first; a < r->own_end; a++)
        TRY(check_is_live(r, &accesses[a], &r->contents[a]));
    TRY(op->kind == OP_COPY ? copy(r) : claims(r));
    for (uint32_t a = r->own_first; a < r->own_end; a++)
        if (accesses[a].flags & ACCESS_RELEASE) check_release(r, &accesses[a]);
    return STATUS_OK;
}

/* --- tasks -------------------------------------------------------------------------------- */

/* Runs an operation on its device, or on each of its gang, with the same slots. */
static enum status run_on_devices(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    const struct plan_task *task = r->task;
    uint32_t acquire = r->acquire;
    r->device = task->device;
    r->peer = task->peer;
    r->rank = 0;
    if (task->gang == PLAN_NONE) return run_op(r);
    const uint32_t *devices = plan->gang_devices + plan->gangs[task->gang].first;
    const struct plan_gang *gang = &plan->gangs[task->gang];
    const uint32_t first = plan_gang_first_rank(plan, task);
    uint32_t places = plan_gang_size(gang), step = r->one_place ? places / gang->extents[AXIS_ENDS] : 1;
    for (uint32_t i = 0; i < places; i += step) {
        r->acquire = acquire;
        r->device = devices[i];
        r->rank = first + i;
        if (task->peer != PLAN_NONE)
            r->peer = plan->gang_devices[plan->gangs[task->peer].first + i];
        TRY(run_op(r));
    }
    return STATUS_OK;
}

static enum status run_task(struct check_walk *r)
{
    struct checker *c = r->c;
    c->unit = &r->plan->units[r->task->unit];
    c->op = NULL;
    r->acquire = 0;
    TRY(check_reservation_turn(r));
    TRY(check_range_turn(r));
    TRY(check_unit_begins(r));
    for (uint32_t o = 0; o < c->unit->op_count; o++) {
        c->op = &r->plan->ops[c->unit->first_op + o];
        TRY(run_on_devices(r));
    }
    TRY(check_unit_ends(r));
    c->position++;
    return STATUS_OK;
}

static enum status run_order(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    r->c->in_order = true;
    r->c->op_readable = true;
    for (r->segment = 0; r->segment < plan->segment_count; r->segment++) {
        const struct plan_segment *segment = &plan->segments[r->segment];
        r->segment_start[r->segment] = r->c->position;
        check_repeat_enter(r);
        for (uint32_t done = 0, left_out; done < segment->repeat_count; done += left_out) {
            for (uint32_t i = 0; i < segment->task_count; i++) {
                r->task = &plan->tasks[segment->first_task + i];
                TRY(run_task(r));
            }
            TRY(check_repeat_done(r, segment, ++done, &left_out));
        }
    }
    r->c->unit = NULL;
    r->c->op = NULL;
    return STATUS_OK;
}

/* --- the end -------------------------------------------------------------------------------- */

static bool keeps_state(const struct plan_buffer *buffer)
{
    return buffer->variant == 0 && !buffer->on_device &&
           (buffer->kind == BUFFER_STATE || buffer->kind == BUFFER_STORED);
}

/* Checks a parallel job's final state on each tracked rank. */
static enum status check_final_shares(struct check_walk *r, uint32_t buffer)
{
    const struct plan_buffer *b = &r->plan->buffers[buffer];
    const struct parallel *p = &r->plan->jobs.jobs[b->job].parallel;
    /* of an update */
    const uint64_t own = parallel_has_own_pace(p) ? p->replicas[parallel_place(p, b->shard).stage] : 1;
    struct buffer_extent wanted = {.end = b->bytes,
                                   .thing = check_shard_thing(r->c->jobs[b->job].first_shard + b->shard,
                                                              CHECK_THING_STATE),
                                   .version = r->jobs[b->job].minibatch / own};
    for (uint32_t i = 0; b->bytes > 0 && i < (r->one_place ? 1 : plan_buffer_ranks(r->plan, b)); i++) {
        const struct buffer_extent *found;
        char text[PLAN_TEXT_BYTES];
        if (buffer_contents_hold(&r->hosts[r->index_of[buffer] + i], &wanted, &found)) continue;
        return check_fail(r->c, CHECK_RULE_TRAINING,
                          "at the end %s has version %" PRIu64 " of the %s (expected %" PRIu64 ")",
                          b->kind == BUFFER_STORED ? "storage" : "the host", found ? found->version : 0,
                          plan_buffer_text(r->plan, buffer, text), wanted.version);
    }
    return STATUS_OK;
}

/* Checks all parts of the final state, without padding. */
static enum status check_final_state(struct check_walk *r, uint32_t buffer)
{
    const struct plan_buffer *b = &r->plan->buffers[buffer];
    uint32_t global = r->c->jobs[b->job].first_shard + b->shard;
    const struct check_shard_facts *f = &r->c->shards[global];
    if (check_is_parallel(r->c, b->job)) return check_final_shares(r, buffer);
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        uint64_t first = f->state.parts[part].offset_bytes;
        if (f->used_bytes[part] == 0) continue;
        struct buffer_extent wanted = {.first = first,
                                       .end = first + f->used_bytes[part],
                                       .thing_offset = first,
                                       .thing = check_shard_thing(global, CHECK_THING_STATE),
                                       .version = part == STATE_FROZEN ? 0 : r->jobs[b->job].minibatch};
        const struct buffer_extent *found;
        char text[PLAN_TEXT_BYTES];
        if (buffer_contents_hold(&r->hosts[r->index_of[buffer]], &wanted, &found)) continue;
        return check_fail(r->c, CHECK_RULE_TRAINING,
                          "at the end %s has version %" PRIu64 " of the %s (expected %" PRIu64 ")",
                          b->kind == BUFFER_STORED ? "storage" : "the host",
                          found ? found->version : 0, plan_buffer_text(r->plan, buffer, text),
                          wanted.version);
    }
    return STATUS_OK;
}

static enum status check_end(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    for (uint32_t j = 0; j < plan->jobs.count; j++) TRY(check_job_done(r, j));
    TRY(check_nothing_lives(r));
    uint32_t states = 0, spilled = 0; /* shards whose states begin and end on the host */
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (!check_is_parallel(r->c, j) || parallel_offloads(&plan->jobs.jobs[j].parallel) ||
            check_is_carried_out(r->c, j))
            spilled += r->c->jobs[j].shard_count;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        char text[PLAN_TEXT_BYTES];
        if (!keeps_state(buffer)) continue;
        uint8_t *flags = &r->moved[r->c->jobs[buffer->job].first_shard + buffer->shard];
        if (*flags & CHECK_FOUND)
            return check_fail(r->c, CHECK_RULE_TRAINING, "the %s is there twice, in host memory and on "
                              "storage", plan_buffer_text(r->plan, b, text));
        *flags |= CHECK_FOUND;
        TRY(check_final_state(r, b));
        states++;
    }
    if (states != spilled)
        return check_fail(r->c, CHECK_RULE_TRAINING, "the host has the states of %u shards of %u", states, spilled);
    return STATUS_OK;
}

/* --- making --------------------------------------------------------------------------------- */

/* A sum of gradients on the host begins empty. */
static enum status fill_sum(struct check_walk *r, uint32_t b)
{
    const struct plan_buffer *buffer = &r->plan->buffers[b];
    const struct job *job = &r->plan->jobs.jobs[buffer->job];
    uint32_t global = r->c->jobs[buffer->job].first_shard + buffer->shard;
    struct buffer_extent extent = {.end = buffer->bytes, .thing = check_shard_thing(global, CHECK_THING_GRADIENT_SUM)};
    bool sum = buffer->kind == BUFFER_GRADIENT && check_is_parallel(r->c, buffer->job) && parallel_sums_on_host(job);
    for (uint32_t i = 0; sum && extent.end > 0 && i < plan_buffer_ranks(r->plan, buffer); i++)
        if (!buffer_contents_put(&r->hosts[r->index_of[b] + i], &extent)) return check_no_memory(r);
    return STATUS_OK;
}

static enum status fill_base(struct check_walk *r, uint32_t b)
{
    const struct plan_buffer *buffer = &r->plan->buffers[b];
    uint32_t global = r->c->jobs[buffer->job].first_shard + buffer->shard;
    if (buffer->kind != BUFFER_BASE) return STATUS_OK;
    const struct buffer_extent extent = {.end = buffer->bytes, .thing = check_shard_thing(global, CHECK_THING_BASE)};
    return buffer_contents_put(&r->hosts[r->index_of[b]], &extent) ? STATUS_OK : check_no_memory(r);
}

/* Fills host memory and storage with the states that are not in files, version 0. */
static enum status fill_hosts(struct check_walk *r)
{
    for (uint32_t j = 0; j < r->plan->jobs.count; j++)
        r->jobs[j].loss = r->jobs[j].held_out_loss = r->jobs[j].outputs = PLAN_NONE;
    for (uint32_t b = 0; b < r->plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &r->plan->buffers[b];
        if (buffer->on_device) continue;
        if (buffer->kind == BUFFER_LOSS && buffer->variant == 1)
            r->jobs[buffer->job].held_out_loss = b;
        if (buffer->variant != 0) continue;
        if (buffer->kind == BUFFER_LOSS) r->jobs[buffer->job].loss = b;
        if (buffer->kind == BUFFER_OUTPUTS) r->jobs[buffer->job].outputs = b;
        TRY(fill_sum(r, b));
        TRY(fill_base(r, b));
        if (!keeps_state(buffer) || plan_has_range(r->plan, buffer->job)) continue;
        uint32_t global = r->c->jobs[buffer->job].first_shard + buffer->shard;
        struct buffer_extent extent = {.end = buffer->bytes,
                                       .thing = check_shard_thing(global, CHECK_THING_STATE)};
        for (uint32_t i = 0; extent.end > 0 && i < plan_buffer_ranks(r->plan, buffer); i++)
            if (!buffer_contents_put(&r->hosts[r->index_of[b] + i], &extent)) return check_no_memory(r);
    }
    return STATUS_OK;
}

/* Returns true if all tasks are on gangs, peers have equal sizes, and no device is in two. `gang_of`: per device,
 * zeroed. */
static bool gangs_are_apart(const struct plan *plan, uint32_t *gang_of)
{
    if (plan->gang_count == 0 || plan->reservation_count > 0) return false;
    for (uint32_t g = 0; g < plan->gang_count; g++)
        for (uint32_t i = 0; i < plan_gang_size(&plan->gangs[g]) && plan->gangs[g].extents[AXIS_ENDS] == 1; i++) {
            uint32_t *mine = &gang_of[plan->gang_devices[plan->gangs[g].first + i]];
            if (*mine != 0) return false;
            *mine = 1 + g;
        }
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        if (task->gang == PLAN_NONE) return false;
        if (task->peer != PLAN_NONE && plan_gang_size(&plan->gangs[task->gang]) !=
                                               plan_gang_size(&plan->gangs[task->peer]))
            return false;
    }
    return true;
}

static enum status find_places(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    uint32_t devices = plan->hardware.device_count;
    r->smallest = alloc_zeroed(devices, sizeof *r->smallest);
    r->peers = alloc_zeroed(plan->gang_count, sizeof *r->peers);
    if (!r->smallest || !r->peers) return check_no_memory(r);
    r->one_place = gangs_are_apart(plan, r->smallest);
    for (uint32_t d = 0; d < devices; d++) r->smallest[d] = d;
    for (uint32_t g = 0; g < plan->gang_count && r->one_place; g++) {
        const uint32_t *of = plan->gang_devices + plan->gangs[g].first;
        r->peers[g] = PLAN_GANG_NO_PEERS;
        if (plan->gangs[g].extents[AXIS_ENDS] > 1) continue;
        for (uint32_t i = 1; i < plan_gang_size(&plan->gangs[g]); i++)
            if (plan->hardware.devices[of[i]].memory_bytes <
                plan->hardware.devices[r->smallest[of[0]]].memory_bytes)
                r->smallest[of[0]] = of[i];
    }
    return STATUS_OK;
}

static enum status count_turns(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    r->first_turn = alloc_zeroed(plan->shard_count + (size_t)1, sizeof *r->first_turn);
    if (!r->first_turn) return check_no_memory(r);
    for (uint32_t s = 0; s < plan->shard_count; s++) {
        const struct parallel *p = &plan->jobs.jobs[plan->shards[s].job].parallel;
        uint32_t chunk = s - r->c->jobs[plan->shards[s].job].first_shard;
        uint32_t turns = parallel_is_set(p) ? parallel_turns(p, parallel_place(p, chunk).stage) : 1;
        r->first_turn[s + 1] = r->first_turn[s] + turns;
    }
    r->parallel = alloc_zeroed(r->first_turn[plan->shard_count], sizeof *r->parallel);
    return r->parallel ? STATUS_OK : check_no_memory(r);
}

/* Numbers acquired buffers shard by shard, so that a device's are neighbours in its row of live_at. */
static enum status number_living(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    uint32_t *first = alloc_zeroed((size_t)plan->shard_count + 2, sizeof *first);
    if (!first) return check_no_memory(r);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t b = 0; b < plan->buffer_count; b++) {
            const struct plan_buffer *buffer = &plan->buffers[b];
            if (!plan_buffer_lives(buffer)) continue;
            uint32_t shard = buffer->shard == PLAN_NONE ? plan->shard_count
                                                        : r->c->jobs[buffer->job].first_shard + buffer->shard;
            if (pass == 0) first[shard + 1]++;
            else r->index_of[b] = first[shard]++;
        }
        for (uint32_t s = 0; pass == 0 && s <= plan->shard_count; s++) first[s + 1] += first[s];
    }
    r->device_buffer_count = first[plan->shard_count];
    free(first);
    return STATUS_OK;
}

static enum status prepare(struct check_walk *r)
{
    const struct plan *plan = r->plan;
    TRY(find_places(r));
    r->index_of = alloc_zeroed(plan->buffer_count, sizeof *r->index_of);
    if (!r->index_of) return check_no_memory(r);
    bool staged = false; /* by ranks of gangs */
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        bool lives = plan_buffer_lives(buffer);
        if (!lives) r->index_of[b] = r->host_count;
        if (!lives) r->host_count += plan_buffer_ranks(plan, buffer);
        staged |= buffer->kind == BUFFER_STAGED && check_is_parallel(r->c, buffer->job);
    }
    TRY(number_living(r));
    r->places = plan->hardware.device_count * (staged ? 2 : 1) + 1;
    size_t places = r->places, cells = places * r->device_buffer_count;
    r->hosts = alloc_zeroed(r->host_count, sizeof *r->hosts);
    r->live_at = alloc_zeroed(cells, sizeof *r->live_at);
    r->ranges = alloc_zeroed(places, sizeof *r->ranges);
    r->jobs = alloc_zeroed(plan->jobs.count, sizeof *r->jobs);
    r->moved = alloc_zeroed(plan->shard_count, sizeof *r->moved);
    r->segment_start = alloc_zeroed(plan->segment_count, sizeof *r->segment_start);
    TRY(count_turns(r));
    r->holders = alloc_zeroed(plan->hardware.device_count, sizeof *r->holders);
    r->reservation_states = alloc_zeroed(plan->reservation_count, sizeof *r->reservation_states);
    r->under_way = alloc_zeroed(plan->jobs.count, sizeof *r->under_way);
    if (!r->holders || !r->reservation_states || !r->under_way) return check_no_memory(r);
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) r->holders[d] = PLAN_NONE;
    if (!r->hosts || !r->live_at || !r->ranges || !r->jobs || !r->moved || !r->segment_start)
        return check_no_memory(r);
    return fill_hosts(r);
}

static void run_release(struct check_walk *r)
{
    for (uint32_t h = 0; r->hosts && h < r->host_count; h++) buffer_contents_release(&r->hosts[h]);
    for (size_t i = 0; i < r->live_count; i++) buffer_contents_release(&r->lives[i].contents);
    for (uint32_t p = 0; r->ranges && p < r->places; p++) free(r->ranges[p].ranges);
    free(r->index_of);
    free(r->hosts);
    free(r->live_at);
    free(r->lives);
    free(r->ranges);
    free(r->jobs);
    free(r->moved);
    free(r->segment_start);
    free(r->parallel);
    free(r->holders);
    free(r->reservation_states);
    free(r->under_way);
    free(r->first_turn);
    free(r->smallest);
    free(r->peers);
    check_repeat_release(&r->repeats);
}

enum status check_run(struct checker *c)
{
    struct check_walk r = {.c = c, .plan = c->plan, .live_free = PLAN_NONE};
    enum status status = prepare(&r);
    if (status == STATUS_OK) status = run_order(&r);
    if (status == STATUS_OK) status = check_end(&r);
    run_release(&r);
    return status;
}
