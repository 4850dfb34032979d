/*
 * The plan in its order, once, following what every buffer holds.
 *
 * Nothing is timed here. The position in plan order is enough, because operations that touch the
 * same bytes are kept in that order by rule 2 of plan.h: "after the last writer", "after the
 * readers" and "after earlier lifetimes" are exactly the pairs whose exchange would change what is
 * read.
 *
 * For each instance: is it what its job needs next? For each operation in it:
 *
 *     orderings point backward  ->  acquire (free range, large enough)  ->  all accesses are live
 *       ->  copy contents, or find claims and leave what was made       ->  release
 *
 * A job is at a position of a minibatch: forward 0 .. S-2, loss, backward S-2 .. 0, update 0 .. S-1 if it
 * clips, where an evaluation
 * follows so many times evaluate 0 .. S-1, where weights are kept keep 0 .. S-1; then the next
 * minibatch. LOAD comes before its first unit and STORE behind its last, each once per shard, a
 * BATCH unit before the first unit of a minibatch; so the walk ends however often segments repeat.
 *
 * Where all instances are on gangs and no device in two of them, the devices of a gang go through the same
 * accesses with the same slots, and fetch from places of peers that do so too. Then the first place is
 * followed for all of them, with the memory of the smallest: 3072 devices in 64 gangs are 64 to follow.
 *
 * Live buffers of a device are kept in a list sorted by offset; a device has a few dozen, and two
 * neighbours show whether a new one fits between them.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/evaluation.h"
#include "models/try.h"
#include "planner/plan_checker.h"
#include "planner/plan_contents.h"
#include "planner/plan_gang.h"

#define NOT_LIVE 0u

struct live {
    uint32_t buffer, device, slot;
    uint32_t next_free;
    struct contents contents;
};

struct range {
    uint64_t first, end;
    uint32_t live;
};
struct range_list {
    struct range *ranges; /* ascending by first */
    size_t count, capacity;
};

struct job_progress {
    uint64_t position;  /* in the minibatch: 0 .. 2 S - 2, and on in what is behind it */
    uint64_t held_out;  /* held-out minibatches that have begun */
    uint64_t minibatch; /* completed ones */
    bool batch_made;    /* by a BATCH unit, for the next minibatch */
    uint32_t loss, held_out_loss; /* their buffers on the host; PLAN_NONE: it has none */
};

struct run {
    struct checker *c;
    const struct plan *plan;
    uint32_t *index_of;       /* per buffer: among those that stay, or those that live and end */
    uint32_t host_count, device_buffer_count;
    struct contents *hosts;
    uint32_t *live_at;        /* [place][such buffer]: index into lives + 1, or NOT_LIVE; the places
                                 are the devices and the host's arena of staged buffers */
    struct live *lives;
    size_t live_count, live_capacity;
    uint32_t live_free;       /* PLAN_NONE: none */
    uint64_t live_now;
    struct range_list *ranges; /* per such place */
    struct job_progress *jobs;
    uint8_t *moved;           /* per shard: LOADED, STORED, FOUND */
    uint64_t *segment_start;  /* position of each segment's first instance */
    struct spread_progress *spread; /* per shard; of jobs that are spread */
    const struct plan_instance *instance;
    bool one_place;           /* of each gang the first is followed for all */
    uint32_t *smallest;       /* then per device: that with the least memory which it is followed for; else
                                 the device itself */
    struct plan_gang_peers *peers; /* then per gang: whose direct links were looked at */
    uint32_t device, peer;    /* of the operation at hand */
    uint32_t segment;
    uint32_t acquire;         /* next entry of the instance's layout */
};

enum { LOADED = 1, STORED = 2, FOUND = 4 };

static enum status no_memory(struct run *r)
{
    return error_memory(r->c->err, "checking a plan", r->live_count * sizeof *r->lives);
}

/* --- live buffers --------------------------------------------------------------------------- */

/* Where the accessed buffer would live: on the instance's device, where a copy between devices starts
 * on its peer, or behind all devices on the host. */
static uint32_t place_of(const struct run *r, const struct plan_access *access)
{
    if (!r->plan->buffers[access->buffer].on_device) return r->plan->hardware.device_count;
    bool fetched = r->c->op->stream == STREAM_P2P && (access->flags & ACCESS_READ);
    return fetched ? r->peer : r->device;
}

static const char *place_text(const struct run *r, uint32_t place, char text[32])
{
    snprintf(text, 32, place < r->plan->hardware.device_count ? "device %u" : "the host", place);
    return text;
}

static uint32_t *live_cell(struct run *r, const struct plan_access *access)
{
    assert(plan_buffer_lives(&r->plan->buffers[access->buffer]));
    size_t row = (size_t)place_of(r, access) * r->device_buffer_count;
    return &r->live_at[row + r->index_of[access->buffer]];
}

static const char *buffer_text(struct run *r, uint32_t buffer, char text[PLAN_TEXT_BYTES])
{
    return plan_buffer_text(r->plan, buffer, text);
}

/* Where a range that begins at `first` belongs: behind all that begin before it. */
static size_t range_place(const struct range_list *list, uint64_t first)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->ranges[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum status insert_range(struct run *r, struct range added)
{
    char text[PLAN_TEXT_BYTES], other_text[PLAN_TEXT_BYTES], where[32];
    uint32_t place = r->lives[added.live].device;
    struct range_list *list = &r->ranges[place];
    size_t at = range_place(list, added.first);
    const struct range *other = NULL;
    if (at < list->count && list->ranges[at].first < added.end) other = &list->ranges[at];
    if (at > 0 && list->ranges[at - 1].end > added.first) other = &list->ranges[at - 1];
    if (other)
        return check_fail(r->c, RULE_MEMORY,
                          "the %s at bytes %" PRIu64 " to %" PRIu64 " of %s overlaps the %s "
                          "at %" PRIu64 " to %" PRIu64,
                          buffer_text(r, r->lives[added.live].buffer, text), added.first,
                          added.end, place_text(r, place, where),
                          buffer_text(r, r->lives[other->live].buffer, other_text), other->first,
                          other->end);
    TRY(array_reserve(&list->ranges, &list->capacity, list->count, sizeof *list->ranges,
                      PLAN_ACCESSES_MAX, "live buffers", r->c->err));
    memmove(list->ranges + at + 1, list->ranges + at, (list->count - at) * sizeof *list->ranges);
    list->ranges[at] = added;
    list->count++;
    return STATUS_OK;
}

static void remove_range(struct run *r, uint32_t device, uint64_t first)
{
    struct range_list *list = &r->ranges[device];
    size_t at = range_place(list, first);
    assert(at < list->count && list->ranges[at].first == first);
    list->count--;
    memmove(list->ranges + at, list->ranges + at + 1, (list->count - at) * sizeof *list->ranges);
}

static enum status take_live(struct run *r, uint32_t *out)
{
    if (r->live_free != PLAN_NONE) {
        *out = r->live_free;
        r->live_free = r->lives[*out].next_free;
        return STATUS_OK;
    }
    TRY(array_reserve(&r->lives, &r->live_capacity, r->live_count, sizeof *r->lives,
                      PLAN_ACCESSES_MAX, "live buffers", r->c->err));
    *out = (uint32_t)r->live_count++;
    r->lives[*out] = (struct live){0};
    return STATUS_OK;
}

static enum status acquire(struct run *r, const struct plan_access *access)
{
    const struct plan *plan = r->plan;
    char text[PLAN_TEXT_BYTES], where[32];
    uint32_t buffer = access->buffer, place = place_of(r, access), index;
    uint32_t slot_index = plan->layouts[r->instance->layout + r->acquire++];
    const struct plan_slot *slot = &plan->slots[slot_index];
    uint64_t end = slot->offset_bytes + slot->bytes;
    if (*live_cell(r, access) != NOT_LIVE)
        return check_fail(r->c, RULE_LIFETIMES, "acquires the %s, which is live on %s",
                          buffer_text(r, buffer, text), place_text(r, place, where));
    if (slot->bytes < plan->buffers[buffer].bytes)
        return check_fail(r->c, RULE_MEMORY,
                          "slot %u has %" PRIu64 " bytes, the %s %" PRIu64, slot_index, slot->bytes,
                          buffer_text(r, buffer, text), plan->buffers[buffer].bytes);
    if (plan->buffers[buffer].on_device) {
        uint32_t device = r->smallest[place];
        if (end > plan->hardware.devices[device].memory_bytes)
            return check_fail(r->c, RULE_MEMORY,
                              "slot %u ends at byte %" PRIu64 ", device %u at %" PRIu64, slot_index,
                              end, device, plan->hardware.devices[device].memory_bytes);
    }
    TRY(take_live(r, &index));
    struct live *live = &r->lives[index];
    live->buffer = buffer;
    live->device = place;
    live->slot = slot_index;
    contents_clear(&live->contents);
    *live_cell(r, access) = index + 1;
    r->live_now++;
    if (slot->bytes == 0) return STATUS_OK;
    return insert_range(r, (struct range){slot->offset_bytes, end, index});
}

static void release(struct run *r, const struct plan_access *access)
{
    uint32_t *cell = live_cell(r, access);
    uint32_t index = *cell - 1;
    const struct plan_slot *slot = &r->plan->slots[r->lives[index].slot];
    if (slot->bytes > 0) remove_range(r, r->lives[index].device, slot->offset_bytes);
    *cell = NOT_LIVE;
    r->lives[index].next_free = r->live_free;
    r->live_free = index;
    r->live_now--;
}

/* NULL: a buffer that is not live. */
static struct contents *contents_of(struct run *r, const struct plan_access *access)
{
    if (!plan_buffer_lives(&r->plan->buffers[access->buffer]))
        return &r->hosts[r->index_of[access->buffer]];
    uint32_t cell = *live_cell(r, access);
    return cell == NOT_LIVE ? NULL : &r->lives[cell - 1].contents;
}

/* --- contents ------------------------------------------------------------------------------- */

static enum status copy(struct run *r)
{
    const struct plan_op *op = r->c->op;
    const struct plan_access *from = &r->plan->accesses[op->first_access], *to = from + 1;
    char text[PLAN_TEXT_BYTES];
    bool complete;
    if (!contents_copy(contents_of(r, from), from->offset_bytes, op->bytes, contents_of(r, to),
                       to->offset_bytes, &complete))
        return no_memory(r);
    if (complete) return STATUS_OK;
    return check_fail(r->c, RULE_LIFETIMES, "copies from the %s what was never written",
                      buffer_text(r, from->buffer, text));
}

static enum status fail_claim(struct run *r, uint32_t buffer, const struct extent *wanted,
                              const struct extent *found)
{
    char text[PLAN_TEXT_BYTES], found_text[PLAN_TEXT_BYTES], wanted_text[PLAN_TEXT_BYTES];
    check_thing_text(r->c, wanted->thing, wanted->version, wanted_text);
    buffer_text(r, buffer, text);
    if (!found)
        return check_fail(r->c, RULE_LIFETIMES,
                          "reads what was never written of the %s (expected %s)", text,
                          wanted_text);
    check_thing_text(r->c, found->thing, found->version, found_text);
    if (found->thing == wanted->thing && found->version == wanted->version)
        return check_fail(r->c, RULE_TRAINING, "finds other bytes of %s than expected",
                          wanted_text);
    return check_fail(r->c, RULE_TRAINING, "finds %s (expected %s)", found_text, wanted_text);
}

/* Of a computation or a collective. */
static enum status claims(struct run *r)
{
    const struct checker *c = r->c;
    const struct plan_op *op = c->op;
    size_t op_index = (size_t)(op - r->plan->ops);
    const struct job_progress *progress = &r->jobs[c->unit->job];
    uint64_t minibatch = progress->minibatch;
    const struct job *job = &r->plan->jobs.jobs[c->unit->job];
    bool spread = parallel_is_set(&job->parallel);
    const struct spread_progress *passed = spread ? &r->spread[c->jobs[c->unit->job].first_shard + c->unit->shard]
                                                  : NULL;
    for (uint32_t i = c->first_claim[op_index]; i < c->first_claim[op_index + 1]; i++) {
        const struct claim *claim = &c->claims[i];
        const struct plan_access *access = &r->plan->accesses[op->first_access + claim->access];
        struct contents *contents = contents_of(r, access);
        struct extent extent = {.first = claim->offset_bytes,
                                .end = claim->offset_bytes + claim->bytes,
                                .thing_offset = claim->thing_offset,
                                .version = claim->held_out ? HELD_OUT_VERSION | progress->held_out
                                                           : minibatch + claim->version_delta,
                                .thing = claim->thing};
        const struct extent *found;
        if (spread) extent.version = check_spread_version(job, passed, c->unit->pass, claim);
        if (claim->makes && !contents_put(contents, &extent)) return no_memory(r);
        if (!claim->makes && !contents_hold(contents, &extent, &found))
            return fail_claim(r, access->buffer, &extent, found);
    }
    return STATUS_OK;
}

/* --- waiting -------------------------------------------------------------------------------- */

static uint32_t find_segment(const struct run *r, uint64_t position)
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

static enum status check_after(struct run *r, const struct plan_after *after)
{
    const struct checker *c = r->c;
    uint32_t own_op = (uint32_t)(c->op - r->plan->ops) - c->unit->first_op;
    if (after->instances > c->position)
        return check_fail(r->c, RULE_WAITING,
                          "waits for an operation %u instances back (there are %" PRIu64 ")",
                          after->instances, c->position);
    uint64_t position = c->position - after->instances;
    uint32_t s = find_segment(r, position);
    const struct plan_segment *segment = &r->plan->segments[s];
    uint64_t index = segment->first_instance +
                     (position - r->segment_start[s]) % segment->instance_count;
    const struct plan_unit *unit = &r->plan->units[r->plan->instances[index].unit];
    if (after->op >= unit->op_count)
        return check_fail(r->c, RULE_WAITING,
                          "waits for operation %u of instance %" PRIu64 " (it has %u)", after->op,
                          position, unit->op_count);
    if (after->instances == 0 && after->op >= own_op)
        return check_fail(r->c, RULE_WAITING,
                          "waits for operation %u of its own instance (deadlock)", after->op);
    return STATUS_OK;
}

/* --- operations ----------------------------------------------------------------------------- */

static enum status check_link(struct run *r, uint32_t device, uint32_t peer)
{
    if (hardware_p2p_pair(&r->plan->hardware, peer, device)) return STATUS_OK;
    return check_fail(r->c, RULE_FORM, "device %u has no direct link to device %u", device, peer);
}

/* A copy between devices must have a peer that the machine has a direct link to, at every place. */
static enum status check_peer(struct run *r)
{
    const struct plan *plan = r->plan;
    const struct plan_instance *instance = r->instance;
    if (r->c->op->stream != STREAM_P2P) return STATUS_OK;
    if (r->peer == PLAN_NONE)
        return check_fail(r->c, RULE_FORM, "a copy between devices in an instance without a peer");
    if (!r->one_place) return check_link(r, r->device, r->peer);
    if (plan_gang_peers_note(&r->peers[instance->gang], instance->peer)) return STATUS_OK;
    const struct plan_gang *own = &plan->gangs[instance->gang], *from = &plan->gangs[instance->peer];
    for (uint32_t i = 0; i < plan_gang_size(own); i++)
        TRY(check_link(r, plan->gang_devices[own->first + i], plan->gang_devices[from->first + i]));
    return STATUS_OK;
}

static enum status run_op(struct run *r)
{
    const struct plan *plan = r->plan;
    const struct plan_op *op = r->c->op;
    const struct plan_access *accesses = plan->accesses + op->first_access;
    char text[PLAN_TEXT_BYTES], where[32];
    TRY(check_peer(r));
    for (uint32_t i = 0; i < op->after_count; i++)
        TRY(check_after(r, &plan->afters[op->first_after + i]));
    for (uint32_t a = 0; a < op->access_count; a++)
        if (accesses[a].flags & ACCESS_ACQUIRE) TRY(acquire(r, &accesses[a]));
    for (uint32_t a = 0; a < op->access_count; a++)
        if (!contents_of(r, &accesses[a]))
            return check_fail(r->c, RULE_LIFETIMES,
                              "accesses the %s, which is not live on %s",
                              buffer_text(r, accesses[a].buffer, text),
                              place_text(r, place_of(r, &accesses[a]), where));
    TRY(op->kind == OP_COPY ? copy(r) : claims(r));
    for (uint32_t a = 0; a < op->access_count; a++)
        if (accesses[a].flags & ACCESS_RELEASE) release(r, &accesses[a]);
    return STATUS_OK;
}

/* --- the order of units --------------------------------------------------------------------- */

/* Units that train, of a minibatch. */
static uint64_t trained_positions(const struct run *r, uint32_t job)
{
    uint64_t shards = r->c->jobs[job].shard_count;
    return 2 * shards - 1 + (job_clips(&r->plan->jobs.jobs[job]) ? shards : 0);
}

/* Units of the minibatch that the job is in, what follows it included. */
static uint64_t positions_of(const struct run *r, uint32_t job)
{
    const struct job *of = &r->plan->jobs.jobs[job];
    uint64_t shards = r->c->jobs[job].shard_count, behind = 0;
    if (evaluation_follows(of, r->jobs[job].minibatch))
        behind = of->evaluation.minibatches + (of->keep_best ? 1 : 0);
    return trained_positions(r, job) + behind * shards;
}

/* What the job needs next. */
static void expected_unit(const struct run *r, uint32_t job, uint32_t *shard, uint32_t *pass)
{
    uint64_t shards = r->c->jobs[job].shard_count, position = r->jobs[job].position;
    if (position < 2 * shards - 1) {
        *shard = (uint32_t)(position < shards ? position : 2 * shards - 2 - position);
        *pass = position + 1 < shards    ? PLAN_FORWARD
                : position + 1 == shards ? PLAN_LOSS
                                         : PLAN_BACKWARD;
        return;
    }
    uint64_t trained = trained_positions(r, job), behind = position - trained;
    if (position < trained) { /* the updates of a job that clips */
        *shard = (uint32_t)(position - (2 * shards - 1));
        *pass = PLAN_UPDATE;
        return;
    }
    *shard = (uint32_t)(behind % shards);
    *pass = behind / shards < r->plan->jobs.jobs[job].evaluation.minibatches ? PLAN_EVALUATE
                                                                             : PLAN_KEEP;
}

static enum status fail_order(struct run *r, uint32_t job)
{
    uint32_t shard, pass;
    expected_unit(r, job, &shard, &pass);
    return check_fail(r->c, RULE_TRAINING, "expected %s of %s shard %u, minibatch %" PRIu64,
                      plan_pass_names[pass], r->plan->jobs.jobs[job].name, shard,
                      r->jobs[job].minibatch);
}

static enum status begin_training_unit(struct run *r, uint32_t job)
{
    const struct plan_unit *unit = r->c->unit;
    struct job_progress *progress = &r->jobs[job];
    uint32_t shard, pass;
    uint64_t minibatches = r->plan->jobs.jobs[job].minibatches;
    if (progress->minibatch >= minibatches)
        return check_fail(r->c, RULE_TRAINING,
                          "%s begins minibatch %" PRIu64 " (expected only %" PRIu64 ")",
                          r->plan->jobs.jobs[job].name, progress->minibatch, minibatches);
    expected_unit(r, job, &shard, &pass);
    if (unit->pass != pass || unit->shard != shard) return fail_order(r, job);
    bool ends = progress->position + 1 == positions_of(r, job);
    if (unit->ends_minibatch != ends)
        return check_fail(r->c, RULE_FORM, ends ? "does not end the minibatch"
                                                : "ends the minibatch too early");
    if (pass == PLAN_EVALUATE && shard == 0) progress->held_out++;
    return STATUS_OK;
}

static enum status move_unit(struct run *r, uint32_t job, bool in_time, uint8_t flag)
{
    const struct plan_unit *unit = r->c->unit;
    uint8_t *moved = &r->moved[r->c->jobs[job].first_shard + unit->shard];
    if (!in_time) return fail_order(r, job);
    if (*moved & flag)
        return check_fail(r->c, RULE_TRAINING, "a second %s of shard %u",
                          plan_pass_names[unit->pass], unit->shard);
    *moved |= flag;
    return STATUS_OK;
}

static enum status begin_unit(struct run *r)
{
    const struct plan_unit *unit = r->c->unit;
    uint32_t job = unit->job;
    struct job_progress *progress = &r->jobs[job];
    if (check_is_spread(r->c, job)) return STATUS_OK;
    uint64_t minibatches = r->plan->jobs.jobs[job].minibatches;
    bool outside = unit->pass == PLAN_LOAD || unit->pass == PLAN_STORE || unit->pass == PLAN_BATCH;
    if (outside && unit->ends_minibatch)
        return check_fail(r->c, RULE_FORM, "ends the minibatch too early");
    switch (unit->pass) {
    case PLAN_LOAD:
        return move_unit(r, job, progress->minibatch == 0 && progress->position == 0, LOADED);
    case PLAN_STORE:
        return move_unit(r, job, progress->minibatch == minibatches, STORED);
    case PLAN_BATCH:
        if (progress->position != 0 || progress->batch_made || progress->minibatch >= minibatches)
            return check_fail(r->c, RULE_TRAINING, "no batch is expected here");
        progress->batch_made = true;
        return STATUS_OK;
    default: return begin_training_unit(r, job);
    }
}

/* The loss of each minibatch must reach the host before the next one begins; likewise of held-out
 * ones. */
static enum status check_loss(struct run *r, uint32_t job, bool held_out)
{
    if (!r->c->jobs[job].text) return STATUS_OK;
    const struct job_progress *progress = &r->jobs[job];
    uint64_t version = held_out ? progress->held_out : progress->minibatch;
    uint32_t loss = held_out ? progress->held_out_loss : progress->loss;
    struct extent wanted = {.end = sizeof(double),
                            .thing = check_job_thing(r->c, job, THING_LOSS),
                            .version = version | (held_out ? HELD_OUT_VERSION : 0)};
    const struct extent *found;
    if (loss != PLAN_NONE && contents_hold(&r->hosts[r->index_of[loss]], &wanted, &found))
        return STATUS_OK;
    return check_fail(r->c, RULE_TRAINING, "the loss of %sminibatch %" PRIu64 " is not on the host",
                      held_out ? "held-out " : "", version);
}

/* A minibatch ends with the last update of a run. */
static enum status end_spread_unit(struct run *r)
{
    const struct plan_unit *unit = r->c->unit;
    uint32_t first = r->c->jobs[unit->job].first_shard, runs = r->c->jobs[unit->job].shard_count;
    struct spread_progress *progress = &r->spread[first + unit->shard];
    uint64_t least = UINT64_MAX;
    progress->forward += unit->pass == PLAN_FORWARD;
    progress->backward += unit->pass == PLAN_BACKWARD || unit->pass == PLAN_BACKWARD_INPUT;
    progress->weight += unit->pass == PLAN_BACKWARD || unit->pass == PLAN_BACKWARD_WEIGHT;
    progress->updates += unit->pass == PLAN_UPDATE;
    progress->gathered += unit->pass == PLAN_GATHER;
    progress->reduced += unit->pass == PLAN_REDUCE;
    for (uint32_t s = 0; unit->pass == PLAN_UPDATE && s < runs; s++)
        if (r->spread[first + s].updates < least) least = r->spread[first + s].updates;
    bool ends = unit->pass == PLAN_UPDATE && least > r->jobs[unit->job].minibatch;
    if (ends != unit->ends_minibatch)
        return check_fail(r->c, RULE_FORM, ends ? "does not end the minibatch" : "ends the minibatch too early");
    r->jobs[unit->job].minibatch += ends;
    return STATUS_OK;
}

static enum status end_unit(struct run *r)
{
    const struct plan_unit *unit = r->c->unit;
    struct job_progress *progress = &r->jobs[unit->job];
    r->c->op = NULL;
    if (check_is_spread(r->c, unit->job)) return end_spread_unit(r);
    bool last = unit->shard + 1 == r->c->jobs[unit->job].shard_count;
    if (unit->pass == PLAN_LOAD || unit->pass == PLAN_STORE || unit->pass == PLAN_BATCH)
        return STATUS_OK;
    if (unit->pass == PLAN_EVALUATE && last) TRY(check_loss(r, unit->job, true));
    progress->position++;
    if (!unit->ends_minibatch) return STATUS_OK;
    TRY(check_loss(r, unit->job, false));
    progress->position = 0;
    progress->batch_made = false;
    progress->minibatch++;
    return STATUS_OK;
}

/* On the instance's device, or on each of its gang, with the same slots. */
static enum status run_on_devices(struct run *r)
{
    const struct plan *plan = r->plan;
    const struct plan_instance *instance = r->instance;
    uint32_t acquire = r->acquire;
    r->device = instance->device;
    r->peer = instance->peer;
    if (instance->gang == PLAN_NONE) return run_op(r);
    const uint32_t *devices = plan->gang_devices + plan->gangs[instance->gang].first;
    uint32_t places = r->one_place ? 1 : plan_gang_size(&plan->gangs[instance->gang]);
    for (uint32_t i = 0; i < places; i++) {
        r->acquire = acquire;
        r->device = devices[i];
        if (instance->peer != PLAN_NONE)
            r->peer = plan->gang_devices[plan->gangs[instance->peer].first + i];
        TRY(run_op(r));
    }
    return STATUS_OK;
}

static enum status run_instance(struct run *r)
{
    struct checker *c = r->c;
    c->unit = &r->plan->units[r->instance->unit];
    c->op = NULL;
    r->acquire = 0;
    TRY(begin_unit(r));
    for (uint32_t o = 0; o < c->unit->op_count; o++) {
        c->op = &r->plan->ops[c->unit->first_op + o];
        TRY(run_on_devices(r));
    }
    TRY(end_unit(r));
    c->position++;
    return STATUS_OK;
}

static enum status run_order(struct run *r)
{
    const struct plan *plan = r->plan;
    r->c->in_order = true;
    r->c->op_readable = true;
    for (r->segment = 0; r->segment < plan->segment_count; r->segment++) {
        const struct plan_segment *segment = &plan->segments[r->segment];
        r->segment_start[r->segment] = r->c->position;
        for (uint32_t repeat = 0; repeat < segment->repeat_count; repeat++)
            for (uint32_t i = 0; i < segment->instance_count; i++) {
                r->instance = &plan->instances[segment->first_instance + i];
                TRY(run_instance(r));
            }
    }
    r->c->unit = NULL;
    r->c->op = NULL;
    return STATUS_OK;
}

/* --- the end -------------------------------------------------------------------------------- */

static enum status check_nothing_lives(struct run *r)
{
    const struct plan *plan = r->plan;
    if (r->live_now == 0) return STATUS_OK;
    size_t cells = (plan->hardware.device_count + (size_t)1) * r->device_buffer_count, at = 0;
    while (at < cells && r->live_at[at] == NOT_LIVE) at++;
    assert(at < cells);
    const struct live *live = &r->lives[r->live_at[at] - 1];
    char text[PLAN_TEXT_BYTES], where[32];
    return check_fail(r->c, RULE_LIFETIMES, "the %s is live on %s at the end",
                      buffer_text(r, live->buffer, text), place_text(r, live->device, where));
}

static enum status check_job_done(struct run *r, uint32_t job)
{
    const struct job *about = &r->plan->jobs.jobs[job];
    const struct job_progress *progress = &r->jobs[job];
    uint32_t first = r->c->jobs[job].first_shard;
    for (uint32_t s = 0; check_is_spread(r->c, job) && s < r->c->jobs[job].shard_count; s++)
        TRY(check_spread_done(r->c, about, s, &r->spread[first + s]));
    if (progress->position > 0) {
        uint32_t shard, pass;
        expected_unit(r, job, &shard, &pass);
        return check_fail(r->c, RULE_TRAINING,
                          "%s ends in minibatch %" PRIu64 ", before %s of shard %u", about->name,
                          progress->minibatch, plan_pass_names[pass], shard);
    }
    if (progress->minibatch != about->minibatches)
        return check_fail(r->c, RULE_TRAINING,
                          "%s ends after %" PRIu64 " of %" PRIu64 " minibatches", about->name,
                          progress->minibatch, about->minibatches);
    return STATUS_OK;
}

/* Does this buffer hold a shard's state from the beginning to the end? */
static bool keeps_state(const struct plan_buffer *buffer)
{
    return buffer->variant == 0 && !buffer->on_device &&
           (buffer->kind == BUFFER_STATE || buffer->kind == BUFFER_STORED);
}

/* That state, all parts, padding left out. */
static enum status check_final_state(struct run *r, uint32_t buffer)
{
    const struct plan_buffer *b = &r->plan->buffers[buffer];
    uint32_t global = r->c->jobs[b->job].first_shard + b->shard;
    const struct shard_facts *f = &r->c->shards[global];
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        uint64_t first = f->state.parts[part].offset_bytes;
        if (f->used_bytes[part] == 0) continue;
        struct extent wanted = {.first = first,
                                .end = first + f->used_bytes[part],
                                .thing_offset = first,
                                .thing = check_shard_thing(global, THING_STATE),
                                .version = r->jobs[b->job].minibatch};
        const struct extent *found;
        char text[PLAN_TEXT_BYTES];
        if (contents_hold(&r->hosts[r->index_of[buffer]], &wanted, &found)) continue;
        return check_fail(r->c, RULE_TRAINING,
                          "at the end %s has version %" PRIu64 " of the %s (expected %" PRIu64 ")",
                          b->kind == BUFFER_STORED ? "storage" : "the host",
                          found ? found->version : 0, buffer_text(r, buffer, text),
                          wanted.version);
    }
    return STATUS_OK;
}

static enum status check_end(struct run *r)
{
    const struct plan *plan = r->plan;
    for (uint32_t j = 0; j < plan->jobs.count; j++) TRY(check_job_done(r, j));
    TRY(check_nothing_lives(r));
    uint32_t states = 0, streamed = 0; /* shards whose states begin and end on the host */
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        streamed += check_is_spread(r->c, j) ? 0 : r->c->jobs[j].shard_count;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        char text[PLAN_TEXT_BYTES];
        if (!keeps_state(buffer)) continue;
        uint8_t *flags = &r->moved[r->c->jobs[buffer->job].first_shard + buffer->shard];
        if (*flags & FOUND)
            return check_fail(r->c, RULE_TRAINING, "the %s is there twice, in host memory and on "
                              "storage", buffer_text(r, b, text));
        *flags |= FOUND;
        TRY(check_final_state(r, b));
        states++;
    }
    if (states != streamed)
        return check_fail(r->c, RULE_TRAINING, "the host has the states of %u shards of %u", states, streamed);
    return STATUS_OK;
}

/* --- making --------------------------------------------------------------------------------- */

/* At the beginning host memory and storage have all states, version 0, and nothing else. */
static enum status fill_hosts(struct run *r)
{
    for (uint32_t j = 0; j < r->plan->jobs.count; j++)
        r->jobs[j].loss = r->jobs[j].held_out_loss = PLAN_NONE;
    for (uint32_t b = 0; b < r->plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &r->plan->buffers[b];
        if (buffer->on_device) continue;
        if (buffer->kind == BUFFER_LOSS && buffer->variant == 1)
            r->jobs[buffer->job].held_out_loss = b;
        if (buffer->variant != 0) continue;
        if (buffer->kind == BUFFER_LOSS) r->jobs[buffer->job].loss = b;
        if (!keeps_state(buffer)) continue;
        uint32_t global = r->c->jobs[buffer->job].first_shard + buffer->shard;
        struct extent extent = {.end = buffer->bytes,
                                .thing = check_shard_thing(global, THING_STATE)};
        if (!contents_put(&r->hosts[r->index_of[b]], &extent)) return no_memory(r);
    }
    return STATUS_OK;
}

/* Are all instances on gangs, peers as large as they, and no device in two gangs? gang_of: zeroed, per
 * device. Instances of gangs only, so a device's gang is noted where it is first seen. */
static bool gangs_are_apart(const struct plan *plan, uint32_t *gang_of)
{
    if (plan->gang_count == 0) return false;
    for (uint32_t g = 0; g < plan->gang_count; g++)
        for (uint32_t i = 0; i < plan_gang_size(&plan->gangs[g]); i++) {
            uint32_t *mine = &gang_of[plan->gang_devices[plan->gangs[g].first + i]];
            if (*mine != 0) return false;
            *mine = 1 + g;
        }
    for (uint32_t i = 0; i < plan->instance_count; i++) {
        const struct plan_instance *instance = &plan->instances[i];
        if (instance->gang == PLAN_NONE) return false;
        if (instance->peer != PLAN_NONE && plan_gang_size(&plan->gangs[instance->gang]) !=
                                               plan_gang_size(&plan->gangs[instance->peer]))
            return false;
    }
    return true;
}

static enum status find_places(struct run *r)
{
    const struct plan *plan = r->plan;
    uint32_t devices = plan->hardware.device_count;
    r->smallest = alloc_zeroed(devices, sizeof *r->smallest);
    r->peers = alloc_zeroed(plan->gang_count, sizeof *r->peers);
    if (!r->smallest || !r->peers) return no_memory(r);
    r->one_place = gangs_are_apart(plan, r->smallest);
    for (uint32_t d = 0; d < devices; d++) r->smallest[d] = d;
    for (uint32_t g = 0; g < plan->gang_count && r->one_place; g++) {
        const uint32_t *of = plan->gang_devices + plan->gangs[g].first;
        r->peers[g] = PLAN_GANG_NO_PEERS;
        for (uint32_t i = 1; i < plan_gang_size(&plan->gangs[g]); i++)
            if (plan->hardware.devices[of[i]].memory_bytes <
                plan->hardware.devices[r->smallest[of[0]]].memory_bytes)
                r->smallest[of[0]] = of[i];
    }
    return STATUS_OK;
}

static enum status prepare(struct run *r)
{
    const struct plan *plan = r->plan;
    TRY(find_places(r));
    r->index_of = alloc_zeroed(plan->buffer_count, sizeof *r->index_of);
    if (!r->index_of) return no_memory(r);
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        r->index_of[b] = plan_buffer_lives(&plan->buffers[b]) ? r->device_buffer_count++
                                                              : r->host_count++;
    size_t places = plan->hardware.device_count + (size_t)1;
    size_t cells = places * r->device_buffer_count;
    r->hosts = alloc_zeroed(r->host_count, sizeof *r->hosts);
    r->live_at = alloc_zeroed(cells, sizeof *r->live_at);
    r->ranges = alloc_zeroed(places, sizeof *r->ranges);
    r->jobs = alloc_zeroed(plan->jobs.count, sizeof *r->jobs);
    r->moved = alloc_zeroed(plan->shard_count, sizeof *r->moved);
    r->segment_start = alloc_zeroed(plan->segment_count, sizeof *r->segment_start);
    r->spread = alloc_zeroed(plan->shard_count, sizeof *r->spread);
    if (!r->spread) return no_memory(r);
    if (!r->hosts || !r->live_at || !r->ranges || !r->jobs || !r->moved || !r->segment_start)
        return no_memory(r);
    return fill_hosts(r);
}

static void run_release(struct run *r)
{
    for (uint32_t h = 0; r->hosts && h < r->host_count; h++) contents_release(&r->hosts[h]);
    for (size_t i = 0; i < r->live_count; i++) contents_release(&r->lives[i].contents);
    for (uint32_t d = 0; r->ranges && d <= r->plan->hardware.device_count; d++)
        free(r->ranges[d].ranges);
    free(r->index_of);
    free(r->hosts);
    free(r->live_at);
    free(r->lives);
    free(r->ranges);
    free(r->jobs);
    free(r->moved);
    free(r->segment_start);
    free(r->spread);
    free(r->smallest);
    free(r->peers);
}

enum status check_run(struct checker *c)
{
    struct run r = {.c = c, .plan = c->plan, .live_free = PLAN_NONE};
    enum status status = prepare(&r);
    if (status == STATUS_OK) status = run_order(&r);
    if (status == STATUS_OK) status = check_end(&r);
    run_release(&r);
    return status;
}
