/*
 * Consecutive tasks of a unit are mostly on the same devices, so it is examined once per change of devices. A
 * buffer is on the host of its first task; others must agree, rank by rank.
 */
#include "planner/plan_hosts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/order.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"

struct survey {
    const struct plan *plan;
    uint32_t *first;         /* per buffer: 1 + the first task that uses it */
    uint32_t *own;           /* per buffer that several hosts may have: 1 + the row of `has` of its first rank */
    uint32_t own_count;
    bool *has;               /* [row][host] */
    uint64_t *staged_end;    /* per device: of ranks' arenas */
    uint64_t *end_byte;      /* per host: of the arena of jobs that are not parallel */
    uint64_t *range_end;     /* per host: of the highest range of a job */
    struct plan_host_use *uses;
    bool overflows;
    struct error *err;
};

/* Borrowed. */
static const uint32_t *devices_of(const struct plan *plan, const struct plan_task *task, uint32_t *count)
{
    *count = 1;
    if (task->gang == PLAN_NONE) return &task->device;
    *count = plan_gang_size(&plan->gangs[task->gang]);
    return plan->gang_devices + plan->gangs[task->gang].first;
}

static uint32_t host_of(const struct survey *s, uint32_t device)
{
    return s->plan->hardware.devices[device].host;
}

static void add(struct survey *s, uint64_t *sum, uint64_t bytes)
{
    if (!size_add(*sum, bytes, sum)) s->overflows = true;
}

static void add_buffer(struct survey *s, uint32_t buffer, uint32_t host)
{
    const struct plan_buffer *about = &s->plan->buffers[buffer];
    struct plan_host_use *use = &s->uses[host];
    if (about->kind == BUFFER_STAGED) return;
    if (plan_has_range(s->plan, about->job) && about->kind != BUFFER_STORED) {
        const struct plan_host_range *range = &s->plan->host_ranges[about->job];
        uint64_t end = range->offset_bytes + range->bytes;
        if (end > s->range_end[host]) s->range_end[host] = end;
        return;
    }
    add(s, about->kind == BUFFER_STORED ? &use->stored_bytes : &use->memory_bytes, about->bytes);
}

static enum status compare(struct survey *s, uint32_t buffer, const struct plan_task *task)
{
    const struct plan *plan = s->plan;
    uint32_t count, before_count;
    const uint32_t *devices = devices_of(plan, task, &count);
    const uint32_t *before = devices_of(plan, &plan->tasks[s->first[buffer] - 1], &before_count);
    uint32_t i = 0;
    while (i < count && i < before_count && host_of(s, devices[i]) == host_of(s, before[i])) i++;
    if (i == count || i == before_count) return STATUS_OK;
    char text[PLAN_TEXT_BYTES];
    return error_set(s->err, STATUS_CHECK,
                     "the %s is on node %" PRIu32 ", and device %" PRIu32 " of node %" PRIu32 " uses it",
                     plan_buffer_text(plan, buffer, text), host_of(s, before[i]), devices[i],
                     host_of(s, devices[i]));
}

static enum status use_buffer(struct survey *s, uint32_t buffer, uint32_t index)
{
    const struct plan_task *task = &s->plan->tasks[index];
    uint32_t count;
    const uint32_t *devices = devices_of(s->plan, task, &count);
    for (uint32_t i = 0; i < count && s->own[buffer] > 0; i++) {
        const size_t entry = s->own[buffer] - 1 + i % plan_buffer_ranks(s->plan, &s->plan->buffers[buffer]);
        bool *has = &s->has[entry * hardware_host_count(&s->plan->hardware) + host_of(s, devices[i])];
        if (!*has) add_buffer(s, buffer, host_of(s, devices[i]));
        *has = true;
    }
    if (s->own[buffer] > 0) return STATUS_OK;
    if (s->first[buffer] > 0) return compare(s, buffer, task);
    s->first[buffer] = index + 1;
    for (uint32_t i = 0; i < count; i++) add_buffer(s, buffer, host_of(s, devices[i]));
    return STATUS_OK;
}

static void use_slot(struct survey *s, const struct plan_task *task, const struct plan_slot *slot)
{
    uint64_t end = slot->offset_bytes + slot->bytes;
    uint32_t count, host = host_of(s, task->device);
    const uint32_t *devices = devices_of(s->plan, task, &count);
    if (task->gang == PLAN_NONE) {
        if (end > s->end_byte[host]) s->end_byte[host] = end;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        if (end > s->staged_end[devices[i]]) s->staged_end[devices[i]] = end;
}

static enum status look_into(struct survey *s, uint32_t index)
{
    const struct plan *plan = s->plan;
    const struct plan_task *task = &plan->tasks[index];
    const struct plan_unit *unit = &plan->units[task->unit];
    uint32_t next = task->layout;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_access *accesses = plan->accesses + plan->ops[o].first_access;
        for (uint32_t a = 0; a < plan->ops[o].access_count; a++) {
            const struct plan_buffer *buffer = &plan->buffers[accesses[a].buffer];
            bool acquires = accesses[a].flags & ACCESS_ACQUIRE;
            uint32_t slot = acquires ? plan->layouts[next++] : PLAN_NONE;
            if (buffer->on_device) continue;
            if (acquires) use_slot(s, task, &plan->slots[slot]);
            TRY(use_buffer(s, accesses[a].buffer, index));
        }
    }
    return STATUS_OK;
}

static bool has_host_buffers(const struct plan *plan, const struct plan_unit *unit)
{
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = 0; a < plan->ops[o].access_count; a++)
            if (!plan->buffers[plan->accesses[plan->ops[o].first_access + a].buffer].on_device) return true;
    return false;
}

/* `seen`: per unit, 1 + the gang or device of its last examined task; a staged slot may differ by task. */
static enum status survey_tasks(struct survey *s, uint32_t *seen, bool staged)
{
    const struct plan *plan = s->plan;
    for (uint32_t u = 0; u < plan->unit_count; u++)
        seen[u] = has_host_buffers(plan, &plan->units[u]) ? 0 : PLAN_NONE;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        uint32_t *last = &seen[task->unit];
        uint32_t key = 1 + (task->gang == PLAN_NONE ? task->device : task->gang);
        if (*last == PLAN_NONE || (*last == key && !staged)) continue;
        *last = key;
        TRY(look_into(s, i));
    }
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        add(s, &s->uses[host_of(s, d)].memory_bytes, s->staged_end[d]);
    for (uint32_t h = 0; h < hardware_host_count(&plan->hardware); h++)
        add(s, &s->uses[h].memory_bytes, s->end_byte[h]);
    for (uint32_t h = 0; h < hardware_host_count(&plan->hardware); h++)
        add(s, &s->uses[h].memory_bytes, s->range_end[h]);
    return s->overflows ? error_set(s->err, STATUS_LIMIT, "host buffers of more than 2^64 bytes") : STATUS_OK;
}

static_assert(BUFFER_OUTPUTS + 1 == BUFFER_KIND_COUNT,
              "a new kind of buffer: may several hosts have it? Look at host_need.c and walk/memory_breakdown.c, too");

/* Returns true for data that each host reads itself, and for boundaries that stages of a resident job hand on. */
static bool may_be_on_several(uint32_t kind)
{
    return kind == BUFFER_BATCH || kind == BUFFER_LOSS || kind == BUFFER_BOUNDARY ||
           kind == BUFFER_BOUNDARY_GRADIENT || kind == BUFFER_TABLE_GRADIENT;
}

/* `staged`: out, the ends of all arenas of staged buffers, device by device, then host by host; or NULL. */
static enum status survey(const struct plan *plan, struct plan_host_use *uses, uint64_t *staged_ends, struct error *err)
{
    uint32_t hosts = hardware_host_count(&plan->hardware), devices = plan->hardware.device_count;
    struct survey s = {.plan = plan, .uses = uses, .err = err};
    uint32_t *seen = alloc_zeroed(plan->unit_count, sizeof *seen);
    bool staged = false;
    s.first = alloc_zeroed(plan->buffer_count, sizeof *s.first);
    s.own = alloc_zeroed(plan->buffer_count, sizeof *s.own);
    s.staged_end = alloc_zeroed(devices, sizeof *s.staged_end);
    s.end_byte = alloc_zeroed(hosts, sizeof *s.end_byte);
    s.range_end = alloc_zeroed(hosts, sizeof *s.range_end);
    for (uint32_t b = 0; s.own && b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        staged |= buffer->kind == BUFFER_STAGED;
        if (buffer->on_device || !may_be_on_several(buffer->kind)) continue;
        s.own[b] = s.own_count + 1;
        s.own_count += plan_buffer_ranks(plan, buffer);
    }
    s.has = alloc_zeroed((size_t)s.own_count * hosts, sizeof *s.has);
    enum status status = STATUS_OK;
    if (!seen || !s.first || !s.own || !s.staged_end || !s.end_byte || !s.range_end || !s.has)
        status = error_memory(err, "what hosts have", plan->buffer_count * sizeof *s.first);
    else
        status = survey_tasks(&s, seen, staged);
    for (uint32_t i = 0; staged_ends && status == STATUS_OK && i < devices + hosts; i++)
        staged_ends[i] = i < devices ? s.staged_end[i] : s.end_byte[i - devices];
    free(seen);
    free(s.first);
    free(s.own);
    free(s.has);
    free(s.staged_end);
    free(s.end_byte);
    free(s.range_end);
    return status;
}

enum status plan_host_staged(const struct plan *plan, uint64_t *offsets, struct error *err)
{
    const uint32_t hosts = hardware_host_count(&plan->hardware), count = plan->hardware.device_count + hosts;
    struct plan_host_use *uses = alloc_zeroed(hosts, sizeof *uses);
    if (!uses) return error_memory(err, "what hosts have", hosts * sizeof *uses);
    const enum status status = survey(plan, uses, offsets, err);
    uint64_t at = 0;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        const uint64_t bytes = offsets[i];
        offsets[i] = at;
        at += bytes;
    }
    free(uses);
    return status;
}

enum status plan_host_uses(const struct plan *plan, struct plan_host_use *uses, struct error *err)
{
    uint32_t hosts = hardware_host_count(&plan->hardware);
    for (uint32_t h = 0; h < hosts; h++) uses[h] = (struct plan_host_use){0};
    if (hosts > 1) return survey(plan, uses, NULL, err);
    uses[0] = (struct plan_host_use){plan_host_bytes(plan), plan_stored_bytes(plan)};
    return STATUS_OK;
}

struct plan_host_use plan_host_fullest(const struct plan *plan)
{
    uint32_t hosts = hardware_host_count(&plan->hardware);
    struct plan_host_use *uses = alloc_zeroed(hosts, sizeof *uses), most = {0};
    struct error unknown = {0};
    if (!uses || plan_host_uses(plan, uses, &unknown)) most = (struct plan_host_use){UINT64_MAX, UINT64_MAX};
    for (uint32_t h = 0; uses && h < hosts; h++) {
        if (uses[h].memory_bytes > most.memory_bytes) most.memory_bytes = uses[h].memory_bytes;
        if (uses[h].stored_bytes > most.stored_bytes) most.stored_bytes = uses[h].stored_bytes;
    }
    free(uses);
    return most;
}

/* Returns how many jobs, whichever they are, have room in `have` bytes together. A job counts with its bytes on all
 * hosts, so several hosts may have room for more. */
static uint32_t jobs_at_a_time(const struct plan *plan, bool stored, uint64_t have)
{
    uint64_t *needs = alloc_zeroed(plan->jobs.count, sizeof *needs), sum = stored ? 0 : plan_staged_bytes(plan);
    uint32_t fitting = 0;
    if (!needs) return 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        uint64_t all;
        if (buffer->on_device || buffer->kind == BUFFER_STAGED || (buffer->kind == BUFFER_STORED) != stored) continue;
        if (!size_mul(buffer->bytes, plan_buffer_ranks(plan, buffer), &all) ||
            !size_add(needs[buffer->job], all, &needs[buffer->job]))
            needs[buffer->job] = UINT64_MAX;
    }
    qsort(needs, plan->jobs.count, sizeof *needs, order_u64_descending);
    while (fitting < plan->jobs.count && size_add(sum, needs[fitting], &sum) && sum <= have) fitting++;
    free(needs);
    return fitting;
}

/* Returns "; any 3 of the 7 jobs have room at a time", or "" if it is unknown. */
static const char *fewer_text(const struct plan *plan, bool stored, uint64_t have, char *text, size_t size)
{
    const uint32_t fitting = plan->jobs.count > 1 ? jobs_at_a_time(plan, stored, have) : 0;
    text[0] = '\0';
    if (fitting > 0)
        snprintf(text, size, "; any %" PRIu32 " of the %" PRIu32 " jobs %s room at a time", fitting, plan->jobs.count,
                 fitting == 1 ? "has" : "have");
    else if (plan->jobs.count > 1 && hardware_host_count(&plan->hardware) == 1 &&
             (stored || plan_staged_bytes(plan) == 0))
        snprintf(text, size, "; the largest of the %" PRIu32 " jobs has no room, even by itself", plan->jobs.count);
    return text;
}

static enum status compare_bytes(const struct plan *plan, uint32_t host, bool stored, uint64_t need, uint64_t have,
                                 struct error *err)
{
    char need_text[QUANTITY_TEXT_BYTES], have_text[QUANTITY_TEXT_BYTES], node[32] = "", fewer[96];
    if (need <= have) return STATUS_OK;
    bool several = hardware_host_count(&plan->hardware) > 1;
    if (several) snprintf(node, sizeof node, " on node %" PRIu32, host);
    return error_set(err, STATUS_INFEASIBLE,
                     "the jobs need at least %s of %s%s; %s was given%s (--%s sets it%s)",
                     quantity_bytes_at_least(need, need_text), stored ? "storage" : "host memory", node,
                     quantity_text((double)have, DIMENSION_BYTES, have_text), several ? " on each node" : "",
                     stored ? "storage-memory" : "host-memory", fewer_text(plan, stored, have, fewer, sizeof fewer));
}

enum status plan_host_fits(const struct plan *plan, struct error *err)
{
    const struct hardware *hardware = &plan->hardware;
    uint32_t hosts = hardware_host_count(hardware);
    struct plan_host_use *uses = alloc_zeroed(hosts, sizeof *uses);
    if (!uses) return error_memory(err, "what hosts have", hosts * sizeof *uses);
    struct error why = {0};
    enum status status = plan_host_uses(plan, uses, &why);
    if (status == STATUS_CHECK)
        status = error_set(err, STATUS_INFEASIBLE, "%s: no node has the memory of another's host", why.text);
    else if (status) error_set(err, status, "%s", why.text);
    for (uint32_t h = 0; h < hosts && !status; h++)
        status = compare_bytes(plan, h, false, uses[h].memory_bytes, hardware_host_bytes(hardware), err);
    for (uint32_t h = 0; h < hosts && !status; h++)
        status = compare_bytes(plan, h, true, uses[h].stored_bytes, hardware_storage_bytes(hardware), err);
    free(uses);
    return status;
}

/* Goes by plan order, in which ranges are acquired and released. */
enum status plan_host_jobs(const struct plan *plan, uint32_t *out, struct error *err)
{
    *out = plan->jobs.count;
    if (!plan->host_ranges) return STATUS_OK;
    bool *const has = alloc_zeroed(plan->jobs.count, sizeof *has);
    if (!has) return error_memory(err, "jobs in host memory", plan->jobs.count * sizeof *has);
    uint32_t now = 0, most = 0, outside = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) outside += !plan_has_range(plan, j);
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *const unit = &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            const bool last = plan->job_first_shard[unit->job] + unit->shard + 1 ==
                              plan->job_first_shard[unit->job + 1];
            if (unit->pass == PLAN_OPEN && !has[unit->job]) {
                has[unit->job] = true;
                most = max_u32(most, ++now);
            } else if (unit->pass == PLAN_CLOSE && last && has[unit->job]) {
                has[unit->job] = false;
                now--;
            }
        }
    free(has);
    *out = outside + most;
    return STATUS_OK;
}
