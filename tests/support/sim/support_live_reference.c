/* See support_live_reference.h: the rules at the top of sim/live/live.h, written as simply as possible. */
#include "tests/support/sim/support_live_reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum phase { COPY_IN, COMPUTING, COPY_OUT, PHASES };

struct unit {
    uint32_t job, device, unit, loaded;
    uint64_t number;
    enum phase phase;
    bool waits;         /* for its turn to compute */
    double latency_s;   /* left */
    double left, rate;  /* seconds, or bytes */
};

struct chain {
    uint32_t next;      /* task */
    bool runs;
    double left;        /* ticks */
    double ready_s;
    uint32_t last_device;
};

struct device {
    uint32_t slots, computing; /* computing: number of units that do, at most 1 */
    uint64_t memory;
    uint32_t job, shard;
};

struct run {
    const struct instance *in;
    const struct hardware *hw;
    enum live_ref_rule rule;
    struct live_ref *out;
    struct unit units[LIVE_REF_DEVICES_MAX * 8];
    uint32_t count, loads;
    struct chain *jobs;
    struct device devices[LIVE_REF_DEVICES_MAX];
    struct sim_link links[LIVE_REF_LINKS_MAX];
    struct sim_path paths[LIVE_REF_DEVICES_MAX * 2];
    double now_s;
    uint64_t chosen;
};

static const struct instance_unit *unit_of(const struct run *r, const struct unit *u)
{
    return &r->in->units[u->unit];
}

/* --- choosing -------------------------------------------------------------------------------- */

static const struct instance_unit *next_of(const struct run *r, uint32_t job)
{
    return &r->in->units[instance_unit_at(&r->in->jobs[job], r->jobs[job].next)];
}

static bool may_run(const struct run *r, uint32_t job, uint32_t device)
{
    return r->devices[device].slots > 0 && next_of(r, job)->memory <= r->devices[device].memory;
}

static uint32_t place_for(const struct run *r, uint32_t job)
{
    uint32_t best = UINT32_MAX, last = r->jobs[job].last_device;
    if (r->rule != LIVE_REF_LRTF_EMPTIEST && last != UINT32_MAX && may_run(r, job, last)) return last;
    for (uint32_t d = 0; d < r->in->device_count; d++) {
        if (!may_run(r, job, d)) continue;
        if (best == UINT32_MAX ||
            (r->rule == LIVE_REF_LRTF_EMPTIEST && r->devices[d].slots > r->devices[best].slots))
            best = d;
    }
    return best;
}

static bool better(const struct run *r, uint32_t a, uint32_t b)
{
    const struct chain *x = &r->jobs[a], *y = &r->jobs[b];
    switch (r->rule) {
    case LIVE_REF_SRTF: return x->left < y->left;
    case LIVE_REF_FIFO: return x->ready_s < y->ready_s;
    default: return x->left > y->left;
    }
}

static void load(struct run *r, struct unit *u)
{
    u->waits = true;
    u->phase = COMPUTING;
    u->loaded = r->loads++;
    u->latency_s = 0;
    u->left = (double)instance_compute(r->in, u->unit, r->in->device_class[u->device]) * r->in->tick_s;
}

static void copy(struct run *r, struct unit *u, enum phase phase)
{
    const struct hardware_device *d = &r->hw->devices[u->device];
    uint64_t bytes = phase == COPY_IN ? unit_of(r, u)->in_bytes : unit_of(r, u)->out_bytes;
    u->phase = phase;
    u->latency_s = 0;
    u->left = (double)bytes;
    for (uint32_t h = 0; h < d->path_count; h++) {
        u->latency_s += r->hw->links[d->path[h]].latency.value;
        r->out->link_bytes[d->path[h]][phase == COPY_OUT] += (double)bytes;
    }
}

static void start(struct run *r, uint32_t job, uint32_t device)
{
    struct chain *j = &r->jobs[job];
    struct device *d = &r->devices[device];
    const struct instance_unit *next = next_of(r, job);
    struct unit *u = &r->units[r->count++];
    *u = (struct unit){.job = job, .device = device, .unit = instance_unit_at(&r->in->jobs[job], j->next),
                       .number = r->chosen++};
    bool there = d->job == job && d->shard == next->shard;
    d->job = job;
    d->shard = next->shard;
    d->slots--;
    d->memory -= next->memory;
    j->runs = true;
    j->last_device = device;
    j->left -= (double)instance_compute_min(r->in, u->unit);
    j->next++;
    if (there || next->in_bytes == 0) load(r, u);
    else copy(r, u, COPY_IN);
}

static void choose(struct run *r)
{
    for (;;) {
        uint32_t best = UINT32_MAX;
        for (uint32_t j = 0; j < r->in->job_count; j++) {
            if (r->jobs[j].runs || r->jobs[j].next == instance_length(&r->in->jobs[j])) continue;
            if (place_for(r, j) != UINT32_MAX && (best == UINT32_MAX || better(r, j, best))) best = j;
        }
        if (best == UINT32_MAX) return;
        start(r, best, place_for(r, best));
    }
}

/* Begins the first loaded unit of every idle device. */
static void compute_next(struct run *r)
{
    for (uint32_t d = 0; d < r->in->device_count; d++) {
        struct unit *first = NULL;
        if (r->devices[d].computing) continue;
        for (uint32_t i = 0; i < r->count; i++)
            if (r->units[i].device == d && r->units[i].waits && (!first || r->units[i].loaded < first->loaded))
                first = &r->units[i];
        if (!first) continue;
        first->waits = false;
        r->devices[d].computing = 1;
    }
}

/* --- time ------------------------------------------------------------------------------------ */

static bool flows(const struct unit *u)
{
    return u->phase != COMPUTING && !(u->latency_s > 0);
}

static void rate(struct run *r)
{
    struct sim_test_flow table[LIVE_REF_DEVICES_MAX * 8];
    uint32_t at[LIVE_REF_DEVICES_MAX * 8], count = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct unit *u = &r->units[i];
        u->rate = u->phase == COMPUTING && !u->waits ? 1 : 0;
        if (!flows(u)) continue;
        const struct sim_path *path = &r->paths[2 * u->device + (u->phase == COPY_OUT)];
        at[count] = i;
        table[count++] = (struct sim_test_flow){.path = path, .cap = path->cap_bytes_per_s};
    }
    sim_test_slow_share(r->links, r->hw->link_count, table, count);
    for (uint32_t f = 0; f < count; f++) r->units[at[f]].rate = table[f].rate;
}

static double seconds_left(const struct unit *u)
{
    if (u->latency_s > 0) return u->latency_s;
    return u->rate > 0 ? u->left / u->rate : INFINITY;
}

/* Returns the first event: by time, ends before latencies, then by number and phase. */
static struct unit *first_event(struct run *r)
{
    struct unit *first = NULL;
    for (uint32_t i = 0; i < r->count; i++) {
        struct unit *u = &r->units[i];
        double t = seconds_left(u);
        if (isinf(t)) continue;
        if (!first || t < seconds_left(first) ||
            (!(t > seconds_left(first)) &&
             (u->latency_s > 0) * UINT64_C(1) * (UINT64_C(1) << 60) + u->number * 3 + u->phase <
                 (first->latency_s > 0) * UINT64_C(1) * (UINT64_C(1) << 60) + first->number * 3 + first->phase))
            first = u;
    }
    return first;
}

/* Returns true if another event comes so soon after the first that rounding may swap them. Events at the same
 * instant have a fixed order and do not count. */
static bool has_rival(const struct run *r, const struct unit *first)
{
    double at_s = seconds_left(first);
    for (uint32_t i = 0; i < r->count; i++) {
        double after_s = seconds_left(&r->units[i]) - at_s;
        if (after_s > 0 && after_s <= 1e-12 * (r->now_s + at_s)) return true;
    }
    return false;
}

static void note_use(struct run *r, double elapsed_s)
{
    double load[2 * LIVE_REF_LINKS_MAX] = {0};
    bool busy[LIVE_REF_LINKS_MAX] = {0};
    for (uint32_t i = 0; i < r->count; i++) {
        const struct unit *u = &r->units[i];
        if (u->phase == COMPUTING && !u->waits) r->out->compute_busy_s[u->device] += elapsed_s;
        if (!flows(u)) continue;
        const struct sim_path *path = &r->paths[2 * u->device + (u->phase == COPY_OUT)];
        for (uint32_t h = 0; h < path->hop_count; h++) {
            load[sim_link_dir(r->links, &path->hops[h])] += u->rate;
            busy[path->hops[h].link] = true;
        }
    }
    for (uint32_t l = 0; l < r->hw->link_count; l++) {
        if (busy[l]) r->out->link_busy_s[l] += elapsed_s;
        for (uint32_t dir = 2 * l; dir < 2 * l + 2; dir++)
            if (load[dir] >= r->links[l].bytes_per_s * (1 - 1e-9)) r->out->link_dir_full_s[dir] += elapsed_s;
    }
}

static void end_unit(struct run *r, struct unit *u)
{
    const struct instance_unit *unit = unit_of(r, u);
    r->devices[u->device].slots++;
    r->devices[u->device].memory += unit->memory;
    r->jobs[u->job].runs = false;
    r->jobs[u->job].ready_s = r->now_s;
    r->out->units++;
    *u = r->units[--r->count];
}

static void handle_event(struct run *r, struct unit *u)
{
    const struct instance_unit *unit = unit_of(r, u);
    if (u->latency_s > 0) {
        u->latency_s = 0;
    } else if (u->phase == COPY_IN) {
        load(r, u);
    } else if (u->phase == COMPUTING && unit->writes && unit->out_bytes > 0) {
        r->devices[u->device].computing = 0;
        copy(r, u, COPY_OUT);
    } else {
        if (u->phase == COMPUTING) r->devices[u->device].computing = 0;
        compute_next(r);
        end_unit(r, u);
        choose(r);
    }
    compute_next(r);
}

void live_reference_run(const struct instance *in, const struct hardware *hardware, enum live_ref_rule rule,
                        struct live_ref *out)
{
    struct run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    assert_true(in->device_count <= LIVE_REF_DEVICES_MAX && hardware->link_count <= LIVE_REF_LINKS_MAX);
    *out = (struct live_ref){0};
    r->in = in;
    r->hw = hardware;
    r->rule = rule;
    r->out = out;
    r->jobs = calloc(in->job_count, sizeof *r->jobs);
    assert_non_null(r->jobs);
    for (uint32_t l = 0; l < hardware->link_count; l++)
        r->links[l] = (struct sim_link){hardware->links[l].bandwidth.value, hardware->links[l].duplex};
    for (uint32_t d = 0; d < in->device_count; d++) {
        const struct instance_class *class = &in->classes[in->device_class[d]];
        r->devices[d] = (struct device){class->slots, 0, class->memory, UINT32_MAX, UINT32_MAX};
        for (uint32_t p = 2 * d; p < 2 * d + 2; p++) {
            r->paths[p] = (struct sim_path){.hop_count = hardware->devices[d].path_count, .cap_bytes_per_s = 1e18};
            for (uint32_t h = 0; h < r->paths[p].hop_count; h++)
                r->paths[p].hops[h] = (struct sim_hop){hardware->devices[d].path[h], p % 2};
        }
    }
    for (uint32_t j = 0; j < in->job_count; j++) {
        r->jobs[j].last_device = UINT32_MAX;
        for (uint32_t t = 0; t < instance_length(&in->jobs[j]); t++)
            r->jobs[j].left += (double)instance_compute_min(in, instance_unit_at(&in->jobs[j], t));
    }
    choose(r);
    compute_next(r);
    for (;;) {
        rate(r);
        struct unit *first = first_event(r);
        if (!first) break;
        double elapsed_s = seconds_left(first);
        note_use(r, elapsed_s);
        out->unclear |= has_rival(r, first);
        for (uint32_t i = 0; i < r->count; i++) {
            struct unit *u = &r->units[i];
            if (u == first) continue;
            if (u->latency_s > 0) u->latency_s = fmax(u->latency_s - elapsed_s, 1e-300);
            else u->left = fmax(u->left - u->rate * elapsed_s, 0);
        }
        r->now_s += elapsed_s;
        handle_event(r, first);
    }
    assert_int_equal(r->count, 0);
    out->makespan_s = r->now_s;
    free(r->jobs);
    free(r);
}
