/*
 * Memory of hosts, and jobs that have a range of it. Shares no code with planner/plan_hosts.h, the planner's count.
 *
 * One host's memory is added up from the tables. With several, each buffer is on the hosts of the devices whose
 * tasks access it:
 *
 *     host memory  =  buffers of jobs without a range  +  end of the highest range  +  arenas of staged buffers
 *
 * A range belongs to its job from the first OPEN to the last CLOSE. A host's OPENs and CLOSEs are on one stream, and by
 * rule 2 of plan.h a job's other operations come between its first OPEN and its CLOSEs in every timing. So jobs with
 * overlapping ranges must only never be under way together in plan order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/check/plan_check_walk.h"

/* --- ranges, as tables ---------------------------------------------------------------------- */

static bool in_host_memory(const struct plan_buffer *buffer)
{
    return !buffer->on_device && buffer->kind != BUFFER_STORED && buffer->kind != BUFFER_STAGED;
}

static enum status check_range(struct checker *c, uint32_t job, uint64_t used)
{
    const struct plan_host_range *range = &c->plan->host_ranges[job];
    const char *name = c->plan->jobs.jobs[job].name;
    uint64_t end;
    if (!size_add(range->offset_bytes, range->bytes, &end))
        return check_fail(c, CHECK_RULE_MEMORY, "the range of %s in host memory ends beyond 2^64 bytes", name);
    if (range->bytes == 0) return STATUS_OK;
    if (range->offset_bytes % PLAN_HOST_ALIGNMENT != 0)
        return check_fail(c, CHECK_RULE_MEMORY,
                          "the range of %s begins at byte %" PRIu64 " of host memory, not at a multiple of %d", name,
                          range->offset_bytes, PLAN_HOST_ALIGNMENT);
    if (check_is_parallel(c, job) && (!check_is_carried_out(c, job) || hardware_host_count(&c->plan->hardware) > 1))
        return check_fail(c, CHECK_RULE_FORM, "%s has a range of host memory, and is parallel %s", name,
                          check_is_carried_out(c, job) ? "on a machine of several nodes" : "and only simulated");
    if (used > range->bytes)
        return check_fail(c, CHECK_RULE_MEMORY,
                          "%s has a range of %" PRIu64 " bytes of host memory, and its buffers take %" PRIu64, name,
                          range->bytes, used);
    return STATUS_OK;
}

enum status check_ranges(struct checker *c)
{
    const struct plan *plan = c->plan;
    enum status status = STATUS_OK;
    if (!plan->host_ranges) return STATUS_OK;
    uint64_t *used = alloc_zeroed(plan->jobs.count, sizeof *used);
    if (!used) return error_memory(c->err, "checking a plan", plan->jobs.count * sizeof *used);
    for (uint32_t b = 0; b < plan->buffer_count && !status; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        uint64_t *sum = &used[buffer->job], bytes = buffer->bytes;
        char text[PLAN_TEXT_BYTES];
        if (buffer->on_device || plan->host_ranges[buffer->job].bytes == 0) continue;
        if (!in_host_memory(buffer))
            status = check_fail(c, CHECK_RULE_FORM, "the %s, of a job that has a range of host memory",
                                plan_buffer_text(plan, b, text));
        else if (bytes > UINT64_MAX - PLAN_HOST_ALIGNMENT ||
                 !size_mul(size_align(bytes, PLAN_HOST_ALIGNMENT), plan_buffer_ranks(plan, buffer), &bytes) ||
                 !size_add(*sum, bytes, sum))
            status = check_fail(c, CHECK_RULE_MEMORY, "the %s is too large", plan_buffer_text(plan, b, text));
    }
    for (uint32_t j = 0; j < plan->jobs.count && !status; j++) status = check_range(c, j, used[j]);
    free(used);
    return status;
}

/* --- sums by host --------------------------------------------------------------------------- */

struct host_sum {
    uint64_t memory, stored, range_end;
};

/* A buffer on a host other than its first. */
struct again {
    size_t entry;
    uint32_t host;
};

struct summing {
    struct checker *c;
    struct host_sum *sums;  /* by host */
    uint64_t *staged_end;   /* by device, of ranks of gangs; then by host */
    size_t *first_entry;    /* per buffer */
    uint32_t *host_of;      /* by entry: 1 + its host; 0: not seen */
    struct again *again;
    size_t again_count, again_capacity;
    bool too_much;
};

static void add_to(struct summing *s, uint64_t *sum, uint64_t bytes)
{
    if (!size_add(*sum, bytes, sum)) s->too_much = true;
}

static void add_buffer(struct summing *s, const struct plan_buffer *buffer, uint32_t host)
{
    struct host_sum *sum = &s->sums[host];
    if (buffer->kind == BUFFER_STORED) {
        add_to(s, &sum->stored, buffer->bytes);
    } else if (s->c->plan->host_ranges && s->c->plan->host_ranges[buffer->job].bytes > 0) {
        const struct plan_host_range *range = &s->c->plan->host_ranges[buffer->job];
        if (range->offset_bytes + range->bytes > sum->range_end) sum->range_end = range->offset_bytes + range->bytes;
    } else {
        add_to(s, &sum->memory, buffer->bytes);
    }
}

/* Returns true for data that each host reads itself, or that a resident job's stages hand on. */
static bool each_host_has_its_own(const struct summing *s, const struct plan_buffer *buffer)
{
    static const bool own[BUFFER_KIND_COUNT] = {[BUFFER_BATCH] = true, [BUFFER_LOSS] = true, [BUFFER_BOUNDARY] = true,
                                                [BUFFER_BOUNDARY_GRADIENT] = true, [BUFFER_TABLE_GRADIENT] = true};
    bool ranged = s->c->plan->host_ranges && s->c->plan->host_ranges[buffer->job].bytes > 0;
    return own[buffer->kind] && !ranged;
}

static enum status note_again(struct summing *s, uint32_t buffer, size_t entry, uint32_t device)
{
    const struct plan *plan = s->c->plan;
    uint32_t host = plan->hardware.devices[device].host;
    char text[PLAN_TEXT_BYTES];
    if (!each_host_has_its_own(s, &plan->buffers[buffer]))
        return check_fail(s->c, CHECK_RULE_MEMORY,
                          "the %s is on node %" PRIu32 ", and device %" PRIu32 " of node %" PRIu32 " uses it",
                          plan_buffer_text(plan, buffer, text), s->host_of[entry] - 1, device, host);
    for (size_t i = 0; i < s->again_count; i++)
        if (s->again[i].entry == entry && s->again[i].host == host) return STATUS_OK;
    TRY(array_reserve(&s->again, &s->again_capacity, s->again_count, sizeof *s->again, PLAN_ACCESSES_MAX,
                      "buffers of hosts", s->c->err));
    s->again[s->again_count++] = (struct again){entry, host};
    add_buffer(s, &plan->buffers[buffer], host);
    return STATUS_OK;
}

static enum status note_buffer(struct summing *s, uint32_t buffer, uint32_t place, uint32_t device)
{
    const struct plan *plan = s->c->plan;
    const struct plan_buffer *about = &plan->buffers[buffer];
    uint32_t host = plan->hardware.devices[device].host;
    size_t entry = s->first_entry[buffer] + place % plan_buffer_ranks(plan, about);
    if (s->host_of[entry] == host + 1) return STATUS_OK;
    if (s->host_of[entry] > 0) return note_again(s, buffer, entry, device);
    s->host_of[entry] = host + 1;
    add_buffer(s, about, host);
    return STATUS_OK;
}

/* Borrowed. */
static const uint32_t *devices_of(const struct plan *plan, const struct plan_task *task, uint32_t *count)
{
    const struct plan_gang *gang = task->gang == PLAN_NONE ? NULL : &plan->gangs[task->gang];
    *count = gang ? plan_gang_size(gang) : 1;
    return gang ? plan->gang_devices + gang->first : &task->device;
}

static void note_staged(struct summing *s, const struct plan_task *task, const struct plan_slot *slot)
{
    const struct plan *plan = s->c->plan;
    uint64_t end = slot->offset_bytes + slot->bytes;
    uint32_t count;
    const uint32_t *devices = devices_of(plan, task, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = task->gang != PLAN_NONE
                           ? devices[i] : plan->hardware.device_count + plan->hardware.devices[devices[i]].host;
        if (end > s->staged_end[row]) s->staged_end[row] = end;
    }
}

static enum status note_task(struct summing *s, const struct plan_task *task, bool several)
{
    const struct plan *plan = s->c->plan;
    const struct plan_unit *unit = &plan->units[task->unit];
    const uint32_t *layout = plan->layouts + task->layout;
    uint32_t count;
    const uint32_t *devices = devices_of(plan, task, &count);
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = plan->ops[o].first_access; a < plan->ops[o].first_access + plan->ops[o].access_count; a++) {
            const struct plan_access *access = &plan->accesses[a];
            const struct plan_buffer *buffer = &plan->buffers[access->buffer];
            bool acquires = access->flags & ACCESS_ACQUIRE;
            uint32_t slot = acquires ? *layout++ : PLAN_NONE;
            if (buffer->on_device) continue;
            if (buffer->kind == BUFFER_STAGED) {
                if (acquires) note_staged(s, task, &plan->slots[slot]);
                continue;
            }
            for (uint32_t i = 0; i < count && several; i++) TRY(note_buffer(s, access->buffer, i, devices[i]));
        }
    return STATUS_OK;
}

/* Notes the host buffers that units access: once for consecutive tasks on one device or gang, but staged buffers
 * for every task. */
static enum status note_tasks(struct summing *s, uint32_t *last)
{
    const struct plan *plan = s->c->plan;
    bool several = hardware_host_count(&plan->hardware) > 1;
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        last[u] = PLAN_NONE;
        for (uint32_t o = plan->units[u].first_op; o < plan->units[u].first_op + plan->units[u].op_count; o++)
            for (uint32_t a = 0; a < plan->ops[o].access_count; a++) {
                const struct plan_buffer *buffer = &plan->buffers[plan->accesses[plan->ops[o].first_access + a].buffer];
                if (buffer->kind == BUFFER_STAGED) last[u] = PLAN_NONE - 1;
                else if (several && !buffer->on_device && last[u] == PLAN_NONE) last[u] = 0;
            }
    }
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        uint32_t *seen = &last[task->unit], key = 1 + (task->gang == PLAN_NONE ? task->device : task->gang);
        if (*seen == PLAN_NONE || *seen == key) continue;
        if (*seen != PLAN_NONE - 1) *seen = key;
        TRY(note_task(s, task, several));
    }
    return STATUS_OK;
}

/* Adds up all buffers for the only host. */
static void sum_tables(struct summing *s)
{
    const struct plan *plan = s->c->plan;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        for (uint32_t r = 0; !buffer->on_device && buffer->kind != BUFFER_STAGED && r < plan_buffer_ranks(plan, buffer);
             r++)
            add_buffer(s, buffer, 0);
    }
}

static enum status compare_sums(struct summing *s)
{
    const struct hardware *hardware = &s->c->plan->hardware;
    uint32_t hosts = hardware_host_count(hardware);
    for (uint32_t d = 0; d < hardware->device_count; d++)
        add_to(s, &s->sums[hardware->devices[d].host].memory, s->staged_end[d]);
    for (uint32_t h = 0; h < hosts && !s->too_much; h++) {
        char node[32] = "";
        add_to(s, &s->sums[h].memory, s->staged_end[hardware->device_count + h]);
        add_to(s, &s->sums[h].memory, s->sums[h].range_end);
        if (hosts > 1) snprintf(node, sizeof node, " of node %" PRIu32, h);
        if (s->sums[h].memory > hardware_host_bytes(hardware))
            return check_fail(s->c, CHECK_RULE_MEMORY,
                              "the host buffers%s are %" PRIu64 " bytes (host memory is %" PRIu64 ")", node,
                              s->sums[h].memory, hardware_host_bytes(hardware));
        if (s->sums[h].stored > hardware_storage_bytes(hardware))
            return check_fail(s->c, CHECK_RULE_MEMORY,
                              "the stored states%s are %" PRIu64 " bytes (the storage has %" PRIu64 ")", node,
                              s->sums[h].stored, hardware_storage_bytes(hardware));
    }
    return s->too_much ? error_set(s->c->err, STATUS_LIMIT, "host buffers of more than 2^64 bytes") : STATUS_OK;
}

enum status check_host_memory(struct checker *c)
{
    const struct plan *plan = c->plan;
    struct summing s = {.c = c};
    uint32_t hosts = hardware_host_count(&plan->hardware);
    size_t entries = 0;
    uint32_t *last = alloc_zeroed(plan->unit_count, sizeof *last);
    s.sums = alloc_zeroed(hosts, sizeof *s.sums);
    s.staged_end = alloc_zeroed((size_t)plan->hardware.device_count + hosts, sizeof *s.staged_end);
    s.first_entry = alloc_zeroed(plan->buffer_count, sizeof *s.first_entry);
    for (uint32_t b = 0; s.first_entry && b < plan->buffer_count; b++) {
        s.first_entry[b] = entries;
        entries += plan_buffer_ranks(plan, &plan->buffers[b]);
    }
    s.host_of = alloc_zeroed(entries, sizeof *s.host_of);
    enum status status = STATUS_OK;
    if (!last || !s.sums || !s.staged_end || !s.first_entry || !s.host_of)
        status = error_memory(c->err, "checking a plan", entries * sizeof *s.host_of);
    if (!status && hosts == 1) sum_tables(&s);
    if (!status) status = note_tasks(&s, last);
    if (!status) status = compare_sums(&s);
    free(last);
    free(s.sums);
    free(s.staged_end);
    free(s.first_entry);
    free(s.host_of);
    free(s.again);
    return status;
}

/* --- operations ----------------------------------------------------------------------------- */

/* An OPEN leaves the state before the first minibatch; a CLOSE finds the state after the last one, and the kept
 * weights. */
enum status check_file_op(struct checker *c)
{
    const struct plan_op *op = c->op;
    const struct plan_access *state = &c->plan->accesses[op->first_access], *kept = state + 1;
    uint32_t job = c->unit->job, global = c->jobs[job].first_shard + c->unit->shard;
    const struct check_shard_facts *f = &c->shards[global];
    bool parallel = check_is_parallel(c, job), opens = op->pass == PLAN_OPEN;
    bool keeps = c->plan->jobs.jobs[job].keep_best && !opens && (parallel || f->trains);
    const struct plan_buffer *b = check_buffer_of(c, state);
    if (op->pass != c->unit->pass || c->unit->op_count != 1 || c->unit->ends_minibatch || op->kind != OP_COMPUTE ||
        op->stream != STREAM_FILE || op->work != PLAN_NONE || op->row_count > 0)
        return check_fail(c, CHECK_RULE_FORM, "a %s in a unit that is about more", plan_pass_names[op->pass]);
    if (op->access_count != (keeps ? 2u : 1u) || b->kind != BUFFER_STATE || b->on_device ||
        b->shard != c->unit->shard || state->flags != (opens ? ACCESS_WRITE : ACCESS_READ))
        return check_fail(c, CHECK_RULE_FORM, "%s something else than the shard's state on the host",
                          opens ? "opens" : "closes");
    if (keeps && (check_buffer_of(c, kept)->kind != BUFFER_KEPT || check_buffer_of(c, kept)->shard != c->unit->shard ||
                  kept->flags != ACCESS_READ))
        return check_fail(c, CHECK_RULE_FORM, "closes something else than the shard's best weights");
    if (parallel) /* each rank's state, whole or a share */
        return check_add_claim(c, state, (struct check_claim){.thing = check_shard_thing(global, CHECK_THING_STATE),
                                                              .clock = CHECK_CLOCK_STEP, .makes = opens,
                                                              .bytes = b->bytes});
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        uint64_t first = f->state.parts[part].offset_bytes;
        TRY(check_add_claim(c, state,
                            (struct check_claim){.thing = check_shard_thing(global, CHECK_THING_STATE), .makes = opens,
                                                 .frozen = part == STATE_FROZEN, .offset_bytes = first,
                                                 .bytes = opens ? f->state.parts[part].bytes : f->used_bytes[part],
                                                 .thing_offset = first}));
    }
    return STATUS_OK;
}

/* --- order ---------------------------------------------------------------------------------- */

static bool ranges_overlap(const struct plan_host_range *a, const struct plan_host_range *b)
{
    return a->offset_bytes < b->offset_bytes + b->bytes && b->offset_bytes < a->offset_bytes + a->bytes;
}

static enum status begin_job(struct check_walk *r, uint32_t job)
{
    const struct plan *plan = r->plan;
    uint32_t host = plan->hardware.devices[r->task->device].host;
    for (uint32_t i = 0; i < r->under_way_count; i++) {
        uint32_t other = r->under_way[i];
        if (r->jobs[other].host != host || !ranges_overlap(&plan->host_ranges[job], &plan->host_ranges[other]))
            continue;
        return check_fail(r->c, CHECK_RULE_MEMORY, "%s takes host memory that %s has", plan->jobs.jobs[job].name,
                          plan->jobs.jobs[other].name);
    }
    r->jobs[job].host = host;
    r->under_way[r->under_way_count++] = job;
    return STATUS_OK;
}

static void end_job(struct check_walk *r, uint32_t job)
{
    uint32_t at = 0;
    while (r->under_way[at] != job) at++;
    r->under_way[at] = r->under_way[--r->under_way_count];
}

enum status check_range_turn(struct check_walk *r)
{
    const struct plan_unit *unit = r->c->unit;
    uint32_t job = unit->job, shards = r->c->jobs[job].shard_count;
    struct check_job_progress *progress = &r->jobs[job];
    const char *name = r->plan->jobs.jobs[job].name;
    bool files = unit->pass == PLAN_OPEN || unit->pass == PLAN_CLOSE;
    if (!r->plan->host_ranges || r->plan->host_ranges[job].bytes == 0)
        return files ? check_fail(r->c, CHECK_RULE_FORM, "%s has no range of host memory", name) : STATUS_OK;
    if (unit->pass == PLAN_OPEN) {
        if (unit->shard != progress->opened)
            return check_fail(r->c, CHECK_RULE_TRAINING, "opens shard %u of %s (expected each once, in order)",
                              unit->shard, name);
        return progress->opened++ == 0 ? begin_job(r, job) : STATUS_OK;
    }
    if (progress->opened < shards)
        return check_fail(r->c, CHECK_RULE_TRAINING, "%s is not in host memory yet (%u of %u shards are)", name,
                          progress->opened, shards);
    if (unit->pass == PLAN_CLOSE) {
        if (unit->shard != progress->closed || progress->position > 0 ||
            progress->minibatch != r->plan->jobs.jobs[job].minibatches)
            return check_fail(r->c, CHECK_RULE_TRAINING,
                              "closes shard %u of %s (expected each once, in order, at its end)", unit->shard, name);
        if (++progress->closed == shards) end_job(r, job);
        return STATUS_OK;
    }
    return progress->closed > 0 ? check_fail(r->c, CHECK_RULE_TRAINING, "%s is in its files again", name) : STATUS_OK;
}
