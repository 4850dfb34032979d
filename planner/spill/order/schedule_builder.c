#include "planner/spill/order/schedule_builder.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/random.h"
#include "models/cost/cost.h"
#include "models/job/evaluation.h"
#include "models/job/memory.h"

/* --- jobs ------------------------------------------------------------------------------------ */

static uint32_t next_device(const struct schedule_builder *p, uint32_t job)
{
    const struct partition *cut = p->times->partition;
    if (!cut->resident) return PLAN_NONE;
    uint32_t shard = schedule_unit_shard(partition_job_units(cut, job), p->jobs[job].position);
    return cut->shard_device[cut->job_first_shard[job] + shard];
}

/* Returns the seconds until a resident job is on its devices, which load in parallel. */
static double load_s(const struct schedule_builder *p, uint32_t job)
{
    const struct partition *cut = p->times->partition;
    double slowest = 0, sum = 0;
    uint32_t first = cut->job_first_shard[job];
    for (uint32_t i = first; cut->resident && i < cut->job_first_shard[job + 1]; i++) {
        bool another = i > first && cut->shard_device[i] != cut->shard_device[i - 1];
        sum = (another ? 0 : sum) + cost_table_shard(p->times, cut->shard_device[i], i)->load_s;
        slowest = max_s(slowest, sum);
    }
    return slowest;
}

/* --- host memory ------------------------------------------------------------------------------ */

static bool takes_turns(const struct schedule_builder *p) { return p->times->partition->host.need != NULL; }

static uint32_t node_of(const struct schedule_builder *p, uint32_t job) { return p->nodes ? p->nodes[job] : 0; }

/* Returns when a job could be in host memory if its range is free from free_s on. */
static double opened_s(const struct schedule_builder *p, uint32_t job, double free_s)
{
    return max_s(p->hosts[node_of(p, job)].file_free_s, free_s) + p->times->partition->host.open_s[job];
}

/* Answers of host_ranges_find(), for jobs that need equally much. */
struct schedule_builder_found {
    uint64_t need; /* 0: none */
    double ready_s;
    uint32_t node;
    bool found;
};
enum { FOUND_COUNT = 64 };

/* Returns when the job could have a range, from the table if an equal job was asked for. */
static const struct schedule_builder_found *find_range(const struct schedule_builder *p, uint32_t job,
                                                       struct schedule_builder_found *table)
{
    uint64_t need = p->times->partition->host.need[job];
    uint32_t node = node_of(p, job);
    struct schedule_builder_found *entry = &table[random_u64(need, node) % FOUND_COUNT];
    if (need > 0 && entry->need == need && entry->node == node) return entry;
    *entry = (struct schedule_builder_found){.need = need, .node = node};
    entry->found = host_ranges_find(&p->ranges, node, need, &entry->ready_s);
    return entry;
}

/* Finds the jobs without a range that could have one now. Resident ones get theirs in order (admit()). */
static void look_for_ranges(struct schedule_builder *p)
{
    struct schedule_builder_found table[FOUND_COUNT] = {{.need = 0}};
    if (!takes_turns(p) || p->times->partition->resident) return;
    for (uint32_t j = 0; j < p->times->jobs->count; j++) {
        struct schedule_builder_view *view = &p->view_jobs[j];
        if (p->jobs[j].has_range || view->last_device != PLAN_NONE) continue;
        const struct schedule_builder_found *range = find_range(p, j, table);
        view->admitted = range->found;
        view->ready_s = range->found ? opened_s(p, j, range->ready_s) : 0;
    }
}

static double allocate_range(struct schedule_builder *p, uint32_t job)
{
    struct schedule_builder_host *host = &p->hosts[node_of(p, job)];
    double ready;
    p->jobs[job].has_range = true;
    p->jobs[job].range_offset =
        host_ranges_allocate(&p->ranges, node_of(p, job), p->times->partition->host.need[job], job, &ready);
    return host->file_free_s = opened_s(p, job, ready);
}

void schedule_builder_allocate_range(struct schedule_builder *p, uint32_t job)
{
    const struct partition *cut = p->times->partition;
    if (!takes_turns(p) || p->jobs[job].has_range) return;
    assert(p->view_jobs[job].admitted);
    double ready = p->view_jobs[job].ready_s = allocate_range(p, job);
    for (uint32_t i = cut->job_first_shard[job]; i < cut->job_first_shard[job + 1]; i++) p->state_ready_s[i] = ready;
    look_for_ranges(p);
}

/* Ends the job; its last data arrive in host memory at home_s. */
static double give_range_back(struct schedule_builder *p, uint32_t job, double home_s)
{
    struct schedule_builder_host *host = &p->hosts[node_of(p, job)];
    double horizon = HUGE_VAL;
    for (uint32_t d = 0; d < p->device_count; d++) horizon = fmin(horizon, p->devices[d].compute_free_s);
    host->file_free_s = max_s(host->file_free_s, home_s) + p->times->partition->host.close_s[job];
    host_ranges_give_back(&p->ranges, job, host->file_free_s, horizon);
    return host->file_free_s;
}

void schedule_builder_set_nodes(struct schedule_builder *p, const uint32_t *nodes)
{
    p->nodes = nodes;
    look_for_ranges(p);
}

/* --- seats ------------------------------------------------------------------------------------ */

/* Gives seats, and ranges of host memory, to the next jobs in order; `at`: a seat became free. */
static void admit(struct schedule_builder *p, double at)
{
    while (p->seats_free_count > 0 && p->next_admitted < p->times->jobs->count) {
        uint32_t job = p->next_admitted;
        double ready = 0;
        if (takes_turns(p)) {
            if (!host_ranges_find(&p->ranges, 0, p->times->partition->host.need[job], &ready)) return;
            ready = allocate_range(p, job);
        }
        p->next_admitted++;
        p->jobs[job].seat = p->seats_free[--p->seats_free_count];
        p->view_jobs[job].admitted = true;
        p->view_jobs[job].ready_s = max_s(at, ready) + load_s(p, job);
    }
}

static void start_jobs(struct schedule_builder *p)
{
    const struct cost_table *t = p->times;
    const struct partition *cut = t->partition;
    for (uint32_t j = 0; j < t->jobs->count; j++) {
        struct schedule_builder_view *job = &p->view_jobs[j];
        const struct job *of = &t->jobs->jobs[j];
        uint32_t shards = partition_job_shards(cut, j), positions = schedule_unit_count(partition_job_units(cut, j));
        double minibatch_s = 0, held_out_s = 0;
        for (uint32_t i = 0; i < positions; i++) minibatch_s += cost_table_at(t, 0, j, i)->compute_s;
        for (uint32_t i = 0; i < shards; i++)
            held_out_s += cost_table_at(t, 0, j, positions + i)->compute_s;
        held_out_s *= (double)of->evaluation.minibatches * (double)evaluation_count(of);
        *job = (struct schedule_builder_view){.remaining_s = minibatch_s * (double)of->minibatches + held_out_s,
                                   .last_device = PLAN_NONE,
                                   .next_device = next_device(p, j),
                                   .admitted = !cut->resident};
        if (job->remaining_s <= 0) job->remaining_s = 1e-12;
    }
    if (takes_turns(p)) host_ranges_begin(&p->ranges, hardware_host_count(t->hardware), cut->host.room);
    look_for_ranges(p);
    if (!cut->resident) return;
    for (uint32_t seat = cut->seat_count; seat-- > 0;)
        p->seats_free[p->seats_free_count++] = seat;
    admit(p, 0);
}

/* --- placing a unit -------------------------------------------------------------------------- */

static uint32_t next_shard(const struct schedule_builder *p, uint32_t job)
{
    const struct partition *cut = p->times->partition;
    return cut->job_first_shard[job] + schedule_unit_shard(partition_job_units(cut, job), p->jobs[job].position);
}

static struct schedule_builder_host *host_of(const struct schedule_builder *p, uint32_t device)
{
    return &p->hosts[p->times->hardware->devices[device].host];
}

/* Returns when the next unit of a job would start on the host's processor, whose stream is free at free_s. */
static double start_on_cpu(const struct schedule_builder *p, uint32_t job, double free_s)
{
    const struct schedule_builder_job *own = &p->jobs[job];
    double ready = own->edge_ready_s;
    if (schedule_unit_begins(partition_job_units(p->times->partition, job), own->position))
        ready = max_s(p->view_jobs[job].ready_s, p->state_ready_s[next_shard(p, job)]);
    return max_s(free_s, ready);
}

/* Runs the unit there. Returns its start. */
static double place_on_cpu(struct schedule_builder *p, uint32_t job, uint32_t device, const struct cost_unit *time)
{
    struct schedule_builder_job *own = &p->jobs[job];
    struct schedule_builder_host *host = host_of(p, device);
    double *free_s = time->gathers ? &host->host_free_s : &host->cpu_free_s;
    double start = start_on_cpu(p, job, *free_s), end = start + time->cpu_s;
    p->earliest_s = min_s(p->earliest_s, start);
    *free_s = own->edge_ready_s = p->view_jobs[job].ready_s = end;
    own->edge_turn = PLAN_NONE;
    if (!schedule_unit_begins(partition_job_units(p->times->partition, job), own->position))
        p->state_ready_s[next_shard(p, job)] = end;
    return start;
}

/* Returns when the states that the unit fetches are in host memory. */
static double states_ready(const struct schedule_builder *p, uint32_t job)
{
    const struct partition *cut = p->times->partition;
    uint32_t first = cut->job_first_shard[job], shard = next_shard(p, job);
    double ready = p->state_ready_s[shard];
    bool loss = shard + 1 == cut->job_first_shard[job + 1];
    return loss ? max_s(ready, p->state_ready_s[first]) : ready; /* the token table */
}

/* Returns true if a copy from device to device leaves by a link that D2H copies cross. */
static bool leaves_alike(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    const struct p2p_route route = hardware_p2p_route(hardware, from, to);
    const struct hardware_device *device = &hardware->devices[from];
    for (uint32_t i = 0; i < route.up_count; i++)
        for (uint32_t l = 0; l < device->path_count; l++)
            if (route.links[i] == device->path[l]) return true;
    return false;
}

/*
 * Returns the seconds of fetching the job's boundary or gradient directly from its last device; 0: it goes through host
 * memory. Fetched data hold their edge there, so its next turn must come later in plan order. A forward pass sends its
 * boundary to the host in any case, for a backward pass: over a link that both copies cross, fetching it would cost
 * another copy out.
 */
static double fetch_s(const struct schedule_builder *p, uint32_t job, uint32_t device)
{
    const struct hardware *hw = p->times->hardware;
    const struct partition *cut = p->times->partition;
    const struct schedule_builder_job *own = &p->jobs[job];
    const struct partition_units units = partition_job_units(cut, job);
    uint32_t from = p->view_jobs[job].last_device;
    if (cut->apart || own->edge_turn == PLAN_NONE || from == PLAN_NONE || schedule_unit_begins(units, own->position) ||
        !hardware_p2p_pair(hw, from, device) ||
        p->devices[from].edge_turn - own->edge_turn > cut->edge_count)
        return 0;
    enum plan_pass pass = schedule_unit_pass(units, own->position);
    uint32_t shard = schedule_unit_shard(units, own->position) + (pass == PLAN_BACKWARD ? 1 : 0);
    uint64_t layer = cut->shards[cut->job_first_shard[job] + shard].first_layer;
    const struct job *of = &p->times->jobs->jobs[job];
    uint64_t bytes =
        memory_boundary_bytes(&of->network, layer - 1, job_samples(of), of->sequence, of->precision);
    double direct_s = cost_p2p_s(hw, from, device, bytes);
    double out_s = cost_copy_s(hw, from, COPY_D2H, bytes);
    double through_s = out_s + cost_copy_s(hw, device, COPY_H2D, bytes);
    bool sent_anyway = pass == PLAN_FORWARD && leaves_alike(hw, from, device);
    return bytes > 0 && direct_s + (sent_anyway ? out_s : 0) < through_s ? direct_s : 0;
}

struct schedule_builder_timing {
    double read_end;   /* storage has read the state */
    double in_end;     /* all data of the weight buffer are there ... */
    double edge_ready; /* ... and so is the boundary */
    double room;       /* the unit's output has room */
    double start;
    double earliest;   /* the earlier of the first copy's begin and the start */
    bool weight_buffer_used, edge_copied, fetched; /* the boundary: from the host, from another device */
};

static struct schedule_builder_timing timing_of(const struct schedule_builder *p, uint32_t job, uint32_t device,
                                                const struct cost_unit *time)
{
    const struct partition *cut = p->times->partition;
    const struct schedule_builder_job *own = &p->jobs[job];
    const struct schedule_builder_device *clocks = &p->devices[device];
    const struct schedule_builder_host *host = host_of(p, device);
    bool begins = schedule_unit_begins(partition_job_units(cut, job), own->position);
    bool here = !cut->apart && clocks->last_job == job && p->view_jobs[job].last_device == device && !begins &&
                !cost_table_at(p->times, device, job, own->position - 1)->cpu_alone;
    double fetched = states_ready(p, job); /* in host memory */
    double direct_s = fetch_s(p, job, device);
    struct schedule_builder_timing t = {
        .weight_buffer_used = !cut->persistent[next_shard(p, job)] || time->in_s > 0 || time->out_s > 0,
        .edge_copied = !here && !begins && direct_s <= 0,
        .fetched = direct_s > 0,
        .read_end = host->read_free_s,
        .in_end = fetched, /* without a weight buffer all data are here */
        .edge_ready = p->view_jobs[job].ready_s};
    t.earliest = HUGE_VAL;
    if (time->read_s > 0) {
        t.earliest = max_s(host->read_free_s, fetched);
        fetched = t.read_end = t.earliest + time->read_s;
    }
    if (t.weight_buffer_used) {
        uint32_t turn = clocks->turn % cut->weight_buffer_count;
        double buffer_free_s = time->in_apart ? clocks->weight_buffer_left_s[turn] : clocks->weight_buffer_free_s[turn];
        double begin = max_s(max_s(clocks->h2d_free_s, buffer_free_s), fetched);
        t.earliest = min_s(t.earliest, begin);
        t.in_end = begin + time->in_s;
        if (time->out_s > 0) t.room = clocks->weight_buffer_left_s[turn];
    }
    if (t.fetched || t.edge_copied) {
        double begin = t.edge_copied ? max_s(own->edge_ready_s, max_s(clocks->h2d_free_s, t.in_end))
                                     : max_s(clocks->p2p_free_s, p->view_jobs[job].ready_s);
        t.earliest = min_s(t.earliest, begin);
        t.edge_ready = begin + (t.edge_copied ? time->edge_in_s : direct_s);
    }
    t.start = max_s(max_s(clocks->compute_free_s, t.room), max_s(t.in_end, t.edge_ready));
    t.earliest = min_s(t.earliest, t.start);
    return t;
}

/* Places a unit on a device. Returns the start of its computation; *fetches: its input comes from another device. */
static double place_on_device(struct schedule_builder *p, uint32_t job, uint32_t device,
                              const struct cost_unit *time, bool *fetches)
{
    const struct partition *cut = p->times->partition;
    struct schedule_builder_timing t = timing_of(p, job, device, time);
    struct schedule_builder_device *clocks = &p->devices[device];
    struct schedule_builder_host *host = host_of(p, device);
    double end = t.start + time->compute_s, left = end; /* when it leaves its weight buffer */
    *fetches = t.fetched;
    p->earliest_s = min_s(p->earliest_s, t.earliest);
    if (t.fetched) clocks->p2p_free_s = t.edge_ready;
    p->jobs[job].edge_turn = clocks->edge_turn++;
    host->read_free_s = t.read_end;
    clocks->h2d_free_s = t.edge_copied ? t.edge_ready : max_s(clocks->h2d_free_s, t.in_end);
    clocks->compute_free_s = end;
    clocks->d2h_free_s = max_s(clocks->d2h_free_s, end) + time->edge_out_s;
    p->jobs[job].edge_ready_s = clocks->d2h_free_s;
    if (time->out_s > 0) left = clocks->d2h_free_s += time->out_s;
    if (t.weight_buffer_used) {
        uint32_t turn = clocks->turn++ % cut->weight_buffer_count;
        clocks->weight_buffer_left_s[turn] = left;
        clocks->weight_buffer_free_s[turn] = time->out_apart ? end : left;
    }
    if (time->cpu_s > 0) host->cpu_free_s = max_s(host->cpu_free_s, clocks->d2h_free_s) + time->cpu_s;
    enum plan_pass pass = schedule_unit_pass(partition_job_units(cut, job), p->jobs[job].position);
    double state_ready = time->cpu_s > 0 ? host->cpu_free_s : left;
    if (time->write_s > 0)
        state_ready = host->write_free_s = max_s(host->write_free_s, state_ready) + time->write_s;
    if ((pass == PLAN_LOSS || pass == PLAN_BACKWARD) && !cut->resident)
        p->state_ready_s[next_shard(p, job)] = state_ready;
    p->view_jobs[job].ready_s = end;
    p->makespan_s = max_s(p->makespan_s, max_s(left, host->write_free_s));
    return t.start;
}

/* Places the updates after a clipping job's last backward pass, shard by shard. The job goes on after the first. */
static void place_updates(struct schedule_builder *p, uint32_t job, uint32_t device)
{
    const struct partition *cut = p->times->partition;
    struct schedule_builder_host *host = host_of(p, device);
    for (uint32_t i = cut->job_first_shard[job]; i < cut->job_first_shard[job + 1]; i++)
        if (cut->trains[i])
            p->state_ready_s[i] = host->cpu_free_s += cost_table_shard(p->times, device, i)[COST_PASS_BACK].update_s;
}

/* Loads the job's persistent shards. (A resident job's are loaded when it is admitted.) */
static void load_states(struct schedule_builder *p, uint32_t job, uint32_t device)
{
    const struct partition *cut = p->times->partition;
    struct schedule_builder_device *clocks = &p->devices[device];
    for (uint32_t i = cut->job_first_shard[job]; i < cut->job_first_shard[job + 1]; i++)
        if (cut->persistent[i])
            p->state_ready_s[i] = clocks->h2d_free_s += cost_table_shard(p->times, device, i)->load_s;
}

struct schedule_builder_wait schedule_builder_wait(const struct schedule_builder *p, uint32_t job, uint32_t device)
{
    const struct cost_unit *time = cost_table_at(p->times, device, job, p->jobs[job].position);
    if (time->cpu_alone) return (struct schedule_builder_wait){0};
    const struct schedule_builder_device *clocks = &p->devices[device];
    struct schedule_builder_timing t = timing_of(p, job, device, time);
    double copied = (t.weight_buffer_used ? time->in_s : 0) + (t.edge_copied ? time->edge_in_s : 0);
    double h2d = (t.edge_copied ? t.edge_ready : t.in_end) - copied - clocks->h2d_free_s;
    return (struct schedule_builder_wait){.compute_s = t.start - clocks->compute_free_s,
                                          .h2d_s = copied > 0 ? max_s(h2d, 0) : 0};
}

double schedule_builder_put(struct schedule_builder *p, uint32_t job, uint32_t device, struct schedule_unit *unit)
{
    const struct cost_table *t = p->times;
    bool resident = t->partition->resident;
    struct schedule_builder_view *j = &p->view_jobs[job];
    struct schedule_builder_job *own = &p->jobs[job];
    uint32_t position = own->position;
    const struct cost_unit *time = cost_table_at(t, device, job, position);
    bool first = own->minibatch == 0 && position == 0;
    if (first) schedule_builder_allocate_range(p, job);
    if (first && !resident) load_states(p, job, device);
    bool fetches = false;
    double start = time->cpu_alone ? place_on_cpu(p, job, device, time)
                                   : place_on_device(p, job, device, time, &fetches);
    double end = j->ready_s;
    if (job_clips(&t->jobs->jobs[job]) &&
        position + 1 == schedule_unit_count(partition_job_units(t->partition, job)))
        place_updates(p, job, device);

    *unit = (struct schedule_unit){
        .job = job,
        .position = position,
        .device = device,
        .seat = own->seat,
        .next_here = PLAN_NONE,
        .first = first,
        .ends = position + 1 == cost_table_positions(t, job, own->minibatch),
        .fetches = fetches};
    own->position = unit->ends ? 0 : position + 1;
    if (unit->ends) own->minibatch++;
    j->last_device = device;
    j->remaining_s -= time->compute_s;
    unit->last = own->minibatch == t->jobs->jobs[job].minibatches;
    if (unit->last) {
        const struct schedule_builder_host *host = host_of(p, device);
        double home = max_s(max_s(end, p->devices[device].d2h_free_s), max_s(host->cpu_free_s, host->write_free_s));
        j->remaining_s = 0;
        if (takes_turns(p)) p->makespan_s = max_s(p->makespan_s, give_range_back(p, job, home));
        look_for_ranges(p);
        if (resident) {
            p->seats_free[p->seats_free_count++] = own->seat;
            admit(p, end);
        }
    } else {
        if (j->remaining_s <= 0) j->remaining_s = 1e-12; /* rounding must not end it early */
        j->next_device = next_device(p, job);
    }
    p->devices[device].last_job = job;
    p->makespan_s = max_s(p->makespan_s, max_s(end, host_of(p, device)->cpu_free_s));
    return start;
}

void schedule_builder_join(struct schedule_builder *p)
{
    uint32_t edges = p->times->partition->edge_count, buffers = p->times->partition->weight_buffer_count;
    for (uint32_t d = 0; d < p->device_count; d++) {
        struct schedule_builder_device *device = &p->devices[d];
        device->turn = (device->turn + buffers - 1) / buffers * buffers;
        device->edge_turn = (device->edge_turn / edges + 2) * edges; /* earlier edges are too far back to be fetched */
        device->last_job = PLAN_NONE;
    }
}

/* --- states ---------------------------------------------------------------------------------- */

/* Lays out one block for all arrays, so that one copy is enough. Returns its size; with `memory` NULL, does nothing
 * else. */
static size_t lay_out(struct schedule_builder *p, char *memory)
{
    const struct partition *cut = p->times->partition;
    uint32_t jobs = p->times->jobs->count;
    size_t devices = p->device_count * sizeof *p->devices, views = jobs * sizeof *p->view_jobs;
    size_t own = jobs * sizeof *p->jobs, states = cut->shard_count * sizeof *p->state_ready_s;
    size_t hosts = hardware_host_count(p->times->hardware) * sizeof *p->hosts;
    size_t seats = cut->seat_count * sizeof *p->seats_free;
    size_t segments = cut->host.need ? host_ranges_most(hardware_host_count(p->times->hardware), jobs) *
                                           sizeof *p->ranges.segments : 0;
    if (!memory) return devices + views + own + states + hosts + segments + seats;
    p->devices = (struct schedule_builder_device *)memory; /* in falling order of alignment */
    p->view_jobs = (struct schedule_builder_view *)(memory + devices);
    p->jobs = (struct schedule_builder_job *)(memory + devices + views);
    p->state_ready_s = (double *)(memory + devices + views + own);
    p->hosts = (struct schedule_builder_host *)(memory + devices + views + own + states);
    p->ranges.segments = (struct host_segment *)(memory + devices + views + own + states + hosts);
    p->seats_free = (uint32_t *)(memory + devices + views + own + states + hosts + segments);
    return 0;
}

enum status schedule_builder_create(const struct cost_table *times, bool one_device, struct schedule_builder **out,
                                    struct error *err)
{
    struct schedule_builder *p = alloc_zeroed(1, sizeof *p);
    *out = NULL;
    if (!p) return error_memory(err, "the schedule", sizeof *p);
    p->times = times;
    p->device_count = one_device ? 1 : times->hardware->device_count;
    p->bytes = lay_out(p, NULL);
    p->memory = alloc_zeroed(1, p->bytes + 1);
    if (!p->memory) {
        enum status status = error_memory(err, "the schedule", p->bytes);
        free(p);
        return status;
    }
    lay_out(p, p->memory);
    for (uint32_t d = 0; d < p->device_count; d++) p->devices[d].last_job = p->devices[d].ahead = PLAN_NONE;
    start_jobs(p);
    *out = p;
    return STATUS_OK;
}

void schedule_builder_destroy(struct schedule_builder *p)
{
    if (!p) return;
    free(p->memory);
    free(p);
}

void schedule_builder_copy(struct schedule_builder *to, const struct schedule_builder *from)
{
    void *memory = to->memory;
    memcpy(memory, from->memory, from->bytes);
    *to = *from;
    to->memory = memory;
    lay_out(to, memory);
}
