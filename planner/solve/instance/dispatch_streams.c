#include "planner/solve/instance/dispatch_streams.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"

enum status dispatch_streams_create(const struct instance *in, struct dispatch_streams **out, struct error *err)
{
    size_t devices = in->device_count * sizeof(struct stream_device), jobs = in->job_count * sizeof(int64_t);
    size_t units = in->unit_count * sizeof(int64_t), bytes = devices + 2 * jobs + units;
    size_t table = in->unit_count * sizeof(uint32_t);
    struct dispatch_streams *s = alloc_zeroed(1, sizeof *s + bytes + table);
    if (!s) return error_memory(err, "the state of a schedule", sizeof *s + bytes + table);
    s->devices = (struct stream_device *)(s + 1);
    s->boundary = (int64_t *)((char *)s->devices + devices);
    s->home = s->boundary + in->job_count;
    s->ready = s->home + in->job_count;
    s->state_of = (uint32_t *)(s->ready + in->unit_count);
    s->moving_bytes = bytes;
    for (uint32_t u = 0; u < in->unit_count; u++) {
        uint32_t first = in->jobs[in->units[u].job].first_unit;
        while (!instance_resident(&in->units[first], &in->units[u])) first++;
        s->state_of[u] = first;
        s->host_works |= in->units[u].host_before + in->units[u].host_after + in->units[u].update > 0;
    }
    *out = s;
    return STATUS_OK;
}

void dispatch_streams_destroy(struct dispatch_streams *streams) { free(streams); }

void dispatch_streams_clear(struct dispatch_streams *s)
{
    memset(s->devices, 0, s->moving_bytes);
    s->host = 0;
    s->last_start = -1;
    s->last_device = 0;
}

void dispatch_streams_copy(struct dispatch_streams *to, const struct dispatch_streams *from)
{
    memcpy(to->devices, from->devices, from->moving_bytes);
    to->host = from->host;
    to->last_start = from->last_start;
    to->last_device = from->last_device;
}

struct stream_arrival {
    int64_t host;    /* when the processor is free */
    int64_t loaded;  /* when the job's load is there */
    int64_t in_free; /* when the stream in is */
    int64_t start;   /* earliest */
    bool keeps;      /* its boundary is on the device already */
};

static bool has_edge(const struct instance_class *class, const struct instance_unit *u)
{
    return class->edges > 0 && (u->edge_in > 0 || u->edge_out > 0);
}

/* Returns true if the job's last task was the device's last, and the host does not work between. */
static bool is_here(const struct dispatch *d, uint32_t job, uint32_t device, const struct instance_unit *u)
{
    const struct dispatch_device *last = &d->devices[device];
    return d->jobs[job].next > 0 && last->job == job && d->jobs[job].device == device && u->host_before == 0 &&
           d->in->units[last->unit].host_after == 0;
}

static struct stream_arrival arrival_of(const struct dispatch *d, uint32_t job, uint32_t device)
{
    const struct dispatch_streams *s = d->streams;
    const struct stream_device *place = &s->devices[device];
    const struct instance_class *class = &d->in->classes[d->in->device_class[device]];
    const struct dispatch_job *j = &d->jobs[job];
    const struct instance_unit *u = &d->in->units[j->unit];
    int64_t arrives = j->ended, boundary = s->boundary[job], in_end = s->ready[s->state_of[j->unit]], room = 0;
    int64_t home = u->after_host ? s->home[job] : 0;
    int64_t edge = has_edge(class, u) ? place->edge[place->edge_turn % class->edges] : 0;
    struct stream_arrival a = {.host = s->host, .keeps = u->edge_in > 0 && is_here(d, job, device, u)};
    a.loaded = place->in + (j->next == 0 ? d->in->jobs[job].load : 0);
    if (u->host_before > 0) arrives = boundary = a.host = max_i64(s->host, arrives) + u->host_before;
    if (u->table == 0) in_end = max_i64(in_end, home);
    if (u->memory > 0) {
        uint32_t buffer = place->turn % class->slots;
        int64_t free = u->in_apart || u->memory > place->memory[buffer] ? place->left[buffer] : place->buffer[buffer];
        in_end = max_i64(in_end, max_i64(a.loaded, free)) + u->in;
        if (u->out > 0) room = place->left[buffer];
    } else if (j->next == 0 && d->in->jobs[job].load > 0) {
        in_end = max_i64(in_end, a.loaded);
    }
    if (u->table > 0) in_end = max_i64(max_i64(in_end, a.loaded), max_i64(place->table, home)) + u->table;
    a.in_free = max_i64(a.loaded, in_end);
    if (u->edge_in > 0 && !a.keeps)
        arrives = a.in_free = max_i64(max_i64(a.in_free, edge), boundary) + u->edge_in;
    a.start = max_i64(max_i64(place->compute, max_i64(room, edge)), max_i64(in_end, arrives));
    if (s->host_works) a.start = max_i64(a.start, s->last_start + (device <= s->last_device ? 1 : 0));
    return a;
}

int64_t dispatch_streams_start(const struct dispatch *d, uint32_t job, uint32_t device)
{
    return arrival_of(d, job, device).start;
}

void dispatch_streams_put(struct dispatch *d, uint32_t job, uint32_t device, int64_t start)
{
    const struct instance_job *chain = &d->in->jobs[job];
    struct dispatch_streams *s = d->streams;
    struct stream_device *place = &s->devices[device];
    struct dispatch_job *j = &d->jobs[job];
    const struct instance_unit *u = &d->in->units[j->unit];
    const struct instance_class *class = &d->in->classes[d->in->device_class[device]];
    const struct stream_arrival a = arrival_of(d, job, device);
    assert(start >= a.start && j->next < instance_length(chain));
    int64_t end = start + instance_compute(d->in, j->unit, d->in->device_class[device]), left = end;
    s->host = a.host;
    if (j->next == 0 && chain->load > 0)
        for (uint32_t i = chain->first_unit; i < chain->first_unit + chain->unit_count; i++)
            if (d->in->units[i].memory == 0) s->ready[s->state_of[i]] = a.loaded;
    place->in = a.in_free;
    place->compute = end;
    if (a.keeps && place->edge_turn > 0 && has_edge(class, &d->in->units[d->devices[device].unit])) {
        int64_t *kept = &place->edge[(place->edge_turn - 1) % class->edges];
        *kept = max_i64(*kept, end);
    }
    place->out = max_i64(place->out, end) + u->edge_out;
    const int64_t boundary_out = s->boundary[job] = place->out;
    if (has_edge(class, u)) place->edge[place->edge_turn++ % class->edges] = boundary_out;
    if (u->table > 0) place->table = boundary_out + min_i64(u->out, u->table);
    if (u->out > 0) left = place->out += u->out;
    if (u->memory > 0) {
        uint32_t buffer = place->turn++ % class->slots;
        place->left[buffer] = left;
        place->memory[buffer] = u->memory;
        place->buffer[buffer] = u->out_apart ? end : left;
    }
    if (u->update > 0) left = s->host = max_i64(s->host, place->out) + u->update;
    j->end = max_i64(j->end, left);
    if (u->writes) s->ready[s->state_of[j->unit]] = left;
    j->ended = end;
    if (u->host_after > 0) s->host = max_i64(s->host, boundary_out) + u->host_after;
    if (u->host_after > 0) j->ended = s->boundary[job] = s->home[job] = s->host;
    if (j->next + 1 == instance_length(chain) && chain->store > 0) left = place->out += chain->store;
    j->end = max_i64(j->end, max_i64(j->ended, left));
    j->ready = j->ended;
    d->devices[device] = (struct dispatch_device){start, job, j->unit};
    j->unit = j->unit + 1 < chain->first_unit + chain->unit_count ? j->unit + 1 : chain->first_unit;
    j->next++;
    j->device = device;
    s->last_start = start;
    s->last_device = device;
}
