/* Forward, for each task's unit, buffer and whether it copies its boundary in; then backward, task by task: each of its
 * events gets the longest path to the end, from the events and clocks that wait for it. */
#include "planner/solve/exact/stream_tails.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"

enum { NEVER = -1 };

struct stream_step {
    uint32_t job, device, unit, buffer;
    bool copies; /* its boundary in */
};

/* Returns the path through an edge of `ticks` to an event with this path. */
static int64_t through(int64_t path, int64_t ticks) { return path < 0 ? NEVER : path + ticks; }

static void raise(int64_t *path, int64_t other) { *path = max_i64(*path, other); }

/* The paths from a task's computation's end and later events. Changes the clocks that the task sets. */
static int64_t after_computing(const struct instance_unit *u, const struct stream_step *step, uint32_t state,
                               struct stream_tails *t)
{
    struct stream_device_tails *on = &t->devices[step->device];
    int64_t boundary = t->boundary[step->job], end = max_i64(on->compute, 0), left = 0, out = on->out;
    if (u->host_after > 0) {
        int64_t host = max_i64(max_i64(boundary, t->ended[step->job]), max_i64(t->host, 0));
        boundary = t->host = through(host, u->host_after);
    } else {
        raise(&end, t->ended[step->job]);
    }
    if (u->update > 0) {
        int64_t host = max_i64(t->host, 0);
        if (u->writes) raise(&host, t->ready[state]);
        t->host = through(host, u->update);
        raise(&out, t->host);
    } else if (u->writes) {
        raise(&left, t->ready[state]);
    }
    if (u->memory > 0) {
        raise(&left, on->left[step->buffer]);
        raise(u->out_apart ? &end : &left, on->buffer[step->buffer]);
        on->left[step->buffer] = on->buffer[step->buffer] = NEVER;
    }
    if (u->writes) t->ready[state] = NEVER;
    raise(u->out > 0 ? &out : &end, left);
    int64_t boundary_out = max_i64(boundary, through(out, u->out));
    on->out = through(boundary_out, u->edge_out);
    raise(&end, on->out);
    return end;
}

/* Sets the paths of the clocks that the task waits for. `start`: the path from its start. */
static void before_computing(const struct instance_unit *u, const struct stream_step *step, uint32_t state,
                             int64_t start, struct stream_tails *t)
{
    struct stream_device_tails *on = &t->devices[step->device];
    int64_t in_end = max_i64(start, on->in), arrives = start, boundary = NEVER;
    on->compute = start;
    if (step->copies) {
        boundary = on->in = through(in_end, u->edge_in);
        in_end = max_i64(start, on->in);
        arrives = NEVER;
    }
    if (u->memory > 0) {
        int64_t copy = through(in_end, u->in);
        raise(&on->in, copy);
        raise(u->in_apart ? &on->left[step->buffer] : &on->buffer[step->buffer], copy);
        if (u->out > 0) raise(&on->left[step->buffer], start);
        raise(&t->ready[state], copy);
    } else {
        raise(&t->ready[state], in_end);
    }
    if (u->host_before > 0) {
        t->host = through(max_i64(t->host, max_i64(arrives, boundary)), u->host_before);
        arrives = t->host;
        boundary = NEVER;
    }
    t->ended[step->job] = arrives;
    t->boundary[step->job] = boundary;
}

/* Looks up the units and buffers of the steps. */
static enum status read_steps(const struct dispatch *from, const struct dispatch_step *steps, uint32_t count,
                              struct stream_step *out, struct error *err)
{
    struct dispatch *d = NULL;
    if (dispatch_create(from->in, &d, err)) return err->status;
    dispatch_copy(d, from);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t job = steps[k].job, device = steps[k].device, unit = d->jobs[job].unit;
        const struct instance_unit *u = &d->in->units[unit];
        const struct dispatch_device *last = &d->devices[device];
        bool here = d->jobs[job].next > 0 && last->job == job && d->jobs[job].device == device &&
                    u->host_before == 0 && d->in->units[last->unit].host_after == 0;
        uint32_t slots = d->in->classes[d->in->device_class[device]].slots;
        out[k] = (struct stream_step){.job = job, .device = device, .unit = unit,
                                      .buffer = d->streams->devices[device].turn % slots,
                                      .copies = u->edge_in > 0 && !here};
        dispatch_put(d, job, device);
    }
    dispatch_destroy(d);
    return STATUS_OK;
}

/* Numbers the buffers by their next uses. */
static void turn_buffers(const struct dispatch *from, struct stream_tails *t)
{
    for (uint32_t g = 0; g < from->in->device_count; g++) {
        struct stream_device_tails old = t->devices[g];
        uint32_t slots = from->in->classes[from->in->device_class[g]].slots;
        for (uint32_t i = 0; i < slots; i++) {
            uint32_t buffer = (from->streams->devices[g].turn + i) % slots;
            t->devices[g].buffer[i] = old.buffer[buffer];
            t->devices[g].left[i] = old.left[buffer];
        }
    }
}

enum status stream_tails_make(const struct dispatch *from, const struct dispatch_step *steps, uint32_t count,
                              struct stream_tails *out, struct error *err)
{
    const struct instance *in = from->in;
    struct stream_tails t = {.host = NEVER};
    struct stream_step *made = alloc_zeroed(count + 1u, sizeof *made);
    t.devices = alloc_zeroed(in->device_count, sizeof *t.devices);
    t.ended = alloc_zeroed(in->job_count, sizeof *t.ended);
    t.boundary = alloc_zeroed(in->job_count, sizeof *t.boundary);
    t.ready = alloc_zeroed(in->unit_count, sizeof *t.ready);
    if (!made || !t.devices || !t.ended || !t.boundary || !t.ready) {
        error_memory(err, "the rest of a schedule", in->unit_count * sizeof *t.ready);
        goto out;
    }
    memset(t.devices, 0xff, in->device_count * sizeof *t.devices); /* NEVER */
    memset(t.ended, 0xff, in->job_count * sizeof *t.ended);
    memset(t.boundary, 0xff, in->job_count * sizeof *t.boundary);
    memset(t.ready, 0xff, in->unit_count * sizeof *t.ready);
    if (read_steps(from, steps, count, made, err)) goto out;
    for (uint32_t k = count; k-- > 0;) {
        const struct instance_unit *u = &in->units[made[k].unit];
        uint32_t state = from->streams->state_of[made[k].unit];
        int64_t end = after_computing(u, &made[k], state, &t);
        int64_t compute = instance_compute(in, made[k].unit, in->device_class[made[k].device]);
        before_computing(u, &made[k], state, through(end, compute), &t);
    }
    turn_buffers(from, &t);
    *out = t;
    t = (struct stream_tails){0};
out:
    free(made);
    stream_tails_release(&t);
    return err->status;
}

void stream_tails_release(struct stream_tails *t)
{
    free(t->devices);
    free(t->ended);
    free(t->boundary);
    free(t->ready);
    *t = (struct stream_tails){0};
}
