/* Timetables from orders of dispatch, by the rules of instance.h. */
#include "planner/solve/instance/timetable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/solve/instance/dispatch_streams.h"

/* --- dispatching ----------------------------------------------------------------------------- */

enum status dispatch_create(const struct instance *in, struct dispatch **out, struct error *err)
{
    size_t jobs = in->job_count * sizeof(struct dispatch_job);
    size_t devices = in->device_count * sizeof(struct dispatch_device);
    struct dispatch *dispatch = alloc_zeroed(1, sizeof *dispatch + jobs + devices);
    if (!dispatch)
        return error_memory(err, "the state of a schedule", sizeof *dispatch + jobs + devices);
    dispatch->in = in;
    dispatch->jobs = (struct dispatch_job *)(dispatch + 1);
    dispatch->devices = (struct dispatch_device *)(dispatch->jobs + in->job_count);
    if (in->streams && dispatch_streams_create(in, &dispatch->streams, err)) {
        free(dispatch);
        return err->status;
    }
    dispatch_clear(dispatch);
    *out = dispatch;
    return STATUS_OK;
}

void dispatch_destroy(struct dispatch *dispatch)
{
    if (dispatch) dispatch_streams_destroy(dispatch->streams);
    free(dispatch);
}

void dispatch_clear(struct dispatch *d)
{
    for (uint32_t i = 0; i < d->in->job_count; i++)
        d->jobs[i] = (struct dispatch_job){.device = TIMETABLE_NONE, .unit = d->in->jobs[i].first_unit};
    for (uint32_t g = 0; g < d->in->device_count; g++)
        d->devices[g] = (struct dispatch_device){.job = TIMETABLE_NONE};
    d->bytes = 0;
    if (d->streams) dispatch_streams_clear(d->streams);
}

void dispatch_copy(struct dispatch *to, const struct dispatch *from)
{
    memcpy(to->jobs, from->jobs, to->in->job_count * sizeof *to->jobs);
    memcpy(to->devices, from->devices, to->in->device_count * sizeof *to->devices);
    to->bytes = from->bytes;
    if (from->streams) dispatch_streams_copy(to->streams, from->streams);
}

int64_t dispatch_start(const struct dispatch *d, uint32_t job, uint32_t device)
{
    const struct instance *in = d->in;
    const struct dispatch_job *j = &d->jobs[job];
    const struct dispatch_device *last = &d->devices[device];
    uint32_t unit = j->unit;
    if (d->streams) return dispatch_streams_start(d, job, device);
    if (last->job == TIMETABLE_NONE) {
        int64_t in_ticks = in->units[unit].in;
        return in_ticks > j->ready ? in_ticks : j->ready;
    }
    int64_t free = last->start + instance_setup(in, last->unit, unit, in->device_class[device]);
    /* the last task of this device is the job's last one, if the job has not been elsewhere since */
    int64_t ready = last->job == job && j->device == device ? j->ended : j->ready;
    return free > ready ? free : ready;
}

int64_t dispatch_put(struct dispatch *d, uint32_t job, uint32_t device)
{
    int64_t start = dispatch_start(d, job, device);
    dispatch_put_at(d, job, device, start);
    return start;
}

void dispatch_put_at(struct dispatch *d, uint32_t job, uint32_t device, int64_t start)
{
    const struct instance *in = d->in;
    const struct instance_job *chain = &in->jobs[job];
    struct dispatch_job *j = &d->jobs[job];
    struct dispatch_device *last = &d->devices[device];
    uint32_t unit = j->unit;
    const struct instance_unit *u = &in->units[unit];
    int64_t ended = start + instance_compute(in, unit, in->device_class[device]);
    bool there = last->job != TIMETABLE_NONE && instance_resident(&in->units[last->unit], u);
    assert(j->next < instance_length(chain));
    if (d->streams) {
        dispatch_streams_put(d, job, device, start);
        return;
    }
    d->bytes += (there ? 0 : u->in_bytes) + (u->writes ? u->out_bytes : 0);
    j->next++;
    j->unit = unit + 1 < chain->first_unit + chain->unit_count ? unit + 1 : chain->first_unit;
    j->device = device;
    j->ended = j->ready = ended;
    if (j->next < instance_length(chain))
        j->ready += instance_through_host(in, unit, j->unit);
    if (ended + u->out > j->end) j->end = ended + u->out;
    *last = (struct dispatch_device){start, job, unit};
}

int64_t dispatch_value(const struct dispatch *d)
{
    const struct instance *in = d->in;
    int64_t *ends = alloca(in->job_count * sizeof *ends); /* at most 512 KiB, see the limits */
    for (uint32_t i = 0; i < in->job_count; i++) ends[i] = d->jobs[i].end;
    return instance_value(in, ends, d->bytes);
}

/* --- timetables ------------------------------------------------------------------------------ */

enum status timetable_place(const struct instance *in, const struct dispatch_step *steps,
                            const int64_t *starts, int64_t value, struct timetable *out,
                            struct error *err)
{
    struct timetable made = {
        .task_count = in->task_count, .device_count = in->device_count, .value = value};
    uint32_t *fill = alloc_zeroed(in->device_count, sizeof *fill);
    uint32_t *position = alloc_zeroed(in->job_count, sizeof *position);
    made.tasks = alloc_zeroed(in->task_count, sizeof *made.tasks);
    made.device_first = alloc_zeroed(in->device_count + 1, sizeof *made.device_first);
    if (!fill || !position || !made.tasks || !made.device_first) {
        error_memory(err, "a timetable", in->task_count * sizeof *made.tasks);
        goto out;
    }
    for (uint32_t t = 0; t < in->task_count; t++) made.device_first[steps[t].device + 1]++;
    for (uint32_t g = 0; g < in->device_count; g++) {
        made.device_first[g + 1] += made.device_first[g];
        fill[g] = made.device_first[g];
    }
    for (uint32_t t = 0; t < in->task_count; t++) {
        uint32_t job = steps[t].job;
        made.tasks[fill[steps[t].device]++] =
            (struct timetable_task){job, position[job]++, starts[t]};
    }
    *out = made;
    made = (struct timetable){0};
out:
    free(fill);
    free(position);
    timetable_release(&made);
    return err->status;
}

enum status timetable_make(const struct instance *in, const struct dispatch_step *steps,
                           struct timetable *out, struct error *err)
{
    struct dispatch *d = NULL;
    int64_t *starts = alloc_zeroed(in->task_count, sizeof *starts);
    if (!starts) return error_memory(err, "a timetable", in->task_count * sizeof *starts);
    if (!dispatch_create(in, &d, err)) {
        for (uint32_t t = 0; t < in->task_count; t++)
            starts[t] = dispatch_put(d, steps[t].job, steps[t].device);
        if (timetable_place(in, steps, starts, dispatch_value(d), out, err)) {}
    }
    dispatch_destroy(d);
    free(starts);
    return err->status;
}

void timetable_release(struct timetable *timetable)
{
    free(timetable->tasks);
    free(timetable->device_first);
    *timetable = (struct timetable){0};
}
