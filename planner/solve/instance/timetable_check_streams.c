/*
 * The rules of dispatch_streams.h, written again from its sentences and without its functions. All events of every task
 * are kept in a table, and each is found from the earlier tasks' events, not from clocks that move on.
 */
#include "planner/solve/instance/timetable_check_streams.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { NO_TASK = UINT32_MAX };

struct stream_event { /* a task, in the order of starts */
    int64_t start;
    uint32_t device, job, position, index; /* index: in the timetable */
    int64_t in_free, end, boundary, left, buffer_free, out_free, host; /* ticks */
    int64_t ready;                         /* when its shard is in host memory; when the job goes on */
    int64_t goes_on, loaded, all_out, edge_free, table_free;
    bool keeps;
    uint32_t edge;                         /* number of its place for boundaries; NO_TASK: it has none */
    uint32_t before, before_of_job;        /* events; NO_TASK */
    uint32_t buffer;                       /* number of its buffer; NO_TASK: it has none */
};

static int compare_events(const void *a, const void *b)
{
    const struct stream_event *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static const struct instance_unit *unit_of(const struct instance *in, const struct stream_event *e)
{
    const struct instance_job *job = &in->jobs[e->job];
    return &in->units[job->first_unit + e->position % job->unit_count];
}

/* Looks back from event k for the task before it on its device, and for the job's. */
static void look_back(struct stream_event *events, uint32_t k)
{
    struct stream_event *e = &events[k];
    e->before = e->before_of_job = NO_TASK;
    for (uint32_t i = k; i-- > 0 && (e->before == NO_TASK || (e->position > 0 && e->before_of_job == NO_TASK));) {
        if (e->before == NO_TASK && events[i].device == e->device) e->before = i;
        if (e->before_of_job == NO_TASK && events[i].job == e->job) e->before_of_job = i;
    }
}

/* Returns the last earlier event of the device with this buffer, or NO_TASK; *used: number of the device's tasks with a
 * buffer so far. */
static uint32_t last_with_buffer(const struct stream_event *events, uint32_t k, uint32_t buffer)
{
    for (uint32_t i = events[k].before; i != NO_TASK; i = events[i].before)
        if (events[i].buffer == buffer) return i;
    return NO_TASK;
}

/* Returns when a place for boundaries is free again: its last user's is out, and read where it stayed. */
static int64_t edge_free(const struct stream_event *events, uint32_t k, uint32_t edge)
{
    for (uint32_t i = events[k].before; i != NO_TASK; i = events[i].before)
        if (events[i].edge == edge) return events[i].edge_free;
    return 0;
}

/* Returns when the device's place for tables is free. */
static int64_t table_free(const struct instance *in, const struct stream_event *events, uint32_t k)
{
    for (uint32_t i = events[k].before; i != NO_TASK; i = events[i].before)
        if (unit_of(in, &events[i])->table > 0) return events[i].table_free;
    return 0;
}

/* Returns when the host did the job's last work after a task. */
static int64_t host_done(const struct instance *in, const struct stream_event *events, uint32_t k)
{
    for (uint32_t i = events[k].before_of_job; i != NO_TASK; i = events[i].before_of_job)
        if (unit_of(in, &events[i])->host_after > 0) return events[i].goes_on;
    return 0;
}

/* Returns when the shard of event k is in host memory: after the job's last task that wrote it. */
static int64_t shard_ready(const struct instance *in, const struct stream_event *events, uint32_t k)
{
    uint32_t shard = unit_of(in, &events[k])->shard;
    for (uint32_t i = events[k].before_of_job; i != NO_TASK; i = events[i].before_of_job)
        if (unit_of(in, &events[i])->writes && unit_of(in, &events[i])->shard == shard) return events[i].ready;
    uint32_t first = k;
    while (events[first].before_of_job != NO_TASK) first = events[first].before_of_job;
    bool loads = in->jobs[events[k].job].load > 0 && unit_of(in, &events[k])->memory == 0;
    return loads ? events[first].loaded : 0;
}

/* Fills in the events before the computation of event k. Returns its earliest start. */
static int64_t arrive(const struct instance *in, struct stream_event *events, uint32_t k, uint32_t *turns)
{
    struct stream_event *e = &events[k];
    const struct instance_unit *u = unit_of(in, e);
    const struct stream_event *before = e->before != NO_TASK ? &events[e->before] : NULL;
    const struct stream_event *own = e->before_of_job != NO_TASK ? &events[e->before_of_job] : NULL;
    const struct instance_class *class = &in->classes[in->device_class[e->device]];
    int64_t in_free = before ? before->in_free : 0, host = k > 0 ? events[k - 1].host : 0;
    if (e->position == 0) in_free += in->jobs[e->job].load;
    e->loaded = in_free;
    e->edge = NO_TASK;
    int64_t edge = 0;
    if (class->edges > 0 && u->edge_in + u->edge_out > 0) {
        e->edge = turns[in->device_count + e->device]++ % class->edges;
        edge = edge_free(events, k, e->edge);
    }
    int64_t ready = shard_ready(in, events, k), arrived = own ? own->goes_on : 0, boundary = 0, room = 0;
    if (own) boundary = later(own->boundary, unit_of(in, own)->host_after > 0 ? own->goes_on : 0);
    bool on_device = own && own == before && unit_of(in, own)->host_after == 0 && u->host_before == 0;
    if (u->host_before > 0) host = arrived = boundary = later(host, arrived) + u->host_before;
    int64_t home = u->after_host ? host_done(in, events, k) : 0;
    if (u->table == 0) ready = later(ready, home);
    e->buffer = NO_TASK;
    if (u->memory > 0) {
        e->buffer = turns[e->device]++ % class->slots;
        uint32_t last = last_with_buffer(events, k, e->buffer);
        bool larger = last != NO_TASK && u->memory > unit_of(in, &events[last])->memory;
        int64_t free = last == NO_TASK ? 0 : u->in_apart || larger ? events[last].left : events[last].buffer_free;
        ready = later(later(in_free, free), ready) + u->in;
        if (u->out > 0 && last != NO_TASK) room = events[last].left;
    }
    if (u->table > 0) ready = later(later(in_free, ready), later(table_free(in, events, k), home)) + u->table;
    e->in_free = later(in_free, ready);
    e->keeps = u->edge_in > 0 && on_device;
    if (u->edge_in > 0 && !on_device) e->in_free = arrived = later(later(e->in_free, edge), boundary) + u->edge_in;
    e->host = host;
    return later(later(before ? before->end : 0, later(room, edge)), later(ready, arrived));
}

/* Fills in the events after its start. */
static void leave(const struct instance *in, struct stream_event *events, uint32_t k)
{
    struct stream_event *e = &events[k];
    const struct instance_unit *u = unit_of(in, e);
    uint32_t class = in->device_class[e->device], unit = (uint32_t)(u - in->units);
    e->end = e->start + in->compute[(size_t)unit * in->class_count + class];
    e->boundary = later(e->before != NO_TASK ? events[e->before].out_free : 0, e->end) + u->edge_out;
    e->out_free = e->boundary + u->out;
    e->edge_free = e->boundary;
    if (e->keeps && events[e->before].edge != NO_TASK) {
        struct stream_event *kept = &events[e->before];
        kept->edge_free = later(kept->edge_free, e->end);
    }
    e->table_free = e->boundary + (u->out < u->table ? u->out : u->table);
    e->left = u->out > 0 ? e->out_free : e->end;
    e->buffer_free = u->out_apart ? e->end : e->left;
    e->ready = e->left;
    if (u->update > 0) e->ready = e->host = later(e->host, e->out_free) + u->update;
    e->goes_on = e->end;
    if (u->host_after > 0) e->goes_on = e->host = later(e->host, e->boundary) + u->host_after;
    const struct instance_job *job = &in->jobs[e->job];
    e->all_out = 0;
    if (e->position + 1 == job->unit_count * job->repeat && job->store > 0) e->all_out = e->out_free += job->store;
}

static enum status check_events(const struct instance *in, struct stream_event *events, uint32_t count,
                                uint32_t *turns, int64_t *ends, uint32_t *task, struct error *err)
{
    for (uint32_t k = 0; k < count; k++) {
        struct stream_event *e = &events[k];
        look_back(events, k);
        *task = e->index;
        if (e->position > 0 &&
            (e->before_of_job == NO_TASK || events[e->before_of_job].position + 1 != e->position))
            return error_set(err, STATUS_CHECK, "job '%.80s', task %u: starts before its job's previous task",
                             in->jobs[e->job].name, e->position);
        int64_t earliest = arrive(in, events, k, turns);
        if (e->start < earliest)
            return error_set(err, STATUS_CHECK,
                             "job '%.80s', task %u: starts at %" PRId64 " on device %u, which cannot before %" PRId64,
                             in->jobs[e->job].name, e->position, e->start, e->device, earliest);
        leave(in, events, k);
        ends[e->job] = later(ends[e->job], later(later(e->ready, e->all_out), later(e->left, e->goes_on)));
    }
    *task = TIMETABLE_NONE;
    return STATUS_OK;
}

enum status timetable_check_streams(const struct instance *in, const struct timetable *table, int64_t *ends,
                                    uint32_t *task, struct error *err)
{
    struct stream_event *events = alloc_zeroed(table->task_count, sizeof *events);
    uint32_t *turns = alloc_zeroed(2 * (size_t)table->device_count, sizeof *turns);
    if (!events || !turns) {
        error_memory(err, "checking a timetable", table->task_count * sizeof *events);
        goto out;
    }
    for (uint32_t g = 0; g < table->device_count; g++)
        for (uint32_t t = table->device_first[g]; t < table->device_first[g + 1]; t++)
            events[t] = (struct stream_event){.start = table->tasks[t].start, .device = g, .job = table->tasks[t].job,
                                              .position = table->tasks[t].position, .index = t};
    qsort(events, table->task_count, sizeof *events, compare_events);
    (void)!check_events(in, events, table->task_count, turns, ends, task, err);
out:
    free(events);
    free(turns);
    return err->status;
}
