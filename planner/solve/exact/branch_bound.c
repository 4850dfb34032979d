/*
 * A node is a partial schedule. A child puts some job's next task on some device, as early as the rules allow but not
 * before the last placed task. This loses nothing: tasks dispatched in the order of a schedule's starts start no later
 * than in it. The search is complete with dominance. Suppose a schedule of the wanted value exists, and take a deepest
 * opened node that can be completed to one. That completion's first task is a child. Either it was opened, or another
 * node of its depth that can do all that it can: a deeper node, unless it is a whole schedule. (All compared nodes have
 * the current limit: the memo is emptied when a better schedule lowers it.)
 *
 * The future slack has two estimates. A device whose last task started at s ends (then it idles until the makespan) or
 * runs a remaining unit k next, no earlier than its chain, the set-up and the present allow; the least over k, beyond
 * the duals, will be spent. The residual bound (residual_bound.h) assigns the remaining tasks again, which leaves an
 * eighth to a half of the nodes.
 *
 * A node dominates another if none of these is later or larger: the present; the starts of the last tasks of devices
 * (devices of a class in the order of their last task, since they are interchangeable); the times at which unfinished
 * jobs become ready (not before the present) and finished ones ended; for sums of ends, the earliest ends of unfinished
 * jobs, copies out included; cost already caused; bytes over the bridge.
 */
#include "planner/solve/exact/branch_bound.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/process/anytime.h"
#include "base/random.h"
#include "base/try.h"
#include "planner/solve/exact/branch_node.h"
#include "planner/solve/exact/residual_bound.h"
#include "planner/solve/instance/bridge_bytes.h"

enum { TIMES_MAX = 2 * BRANCH_BOUND_JOBS_MAX + BRANCH_BOUND_DEVICES_MAX + 1 };

struct branch_choice {
    int64_t slack;
    int32_t start;
    uint8_t job, device;
};

struct branch_search {
    const struct instance *in;
    const struct instance_bounds *bounds;
    const struct branch_bound_options *options;
    int64_t limit;       /* values above are not wanted */
    int64_t makespan_max;
    int64_t budget;      /* slack */
    int64_t ends_max[BRANCH_BOUND_JOBS_MAX];
    int64_t *remaining;  /* (job_count, longest + 1) computation and last copy out */
    uint32_t stride;
    int32_t *setup;      /* (class_count, unit_count, unit_count) */
    struct residual_bound *rest; /* NULL: the instance is too large for it */
    uint32_t first_task[BRANCH_BOUND_JOBS_MAX];
    struct branch_node *nodes;  /* (task_count + 1) */
    struct branch_choice *choices; /* (task_count, job_count * device_count) */
    struct dispatch_step *path, *best; /* (task_count) */
    int64_t *value;
    struct branch_bound_result *result;
    struct anytime limits; /* a step is a node */
    /* the memo: consecutive records of fixed size, chained by hash */
    size_t key_bytes, record_bytes, record_count, record_max;
    uint32_t time_count;
    unsigned char *records;
    uint32_t *heads;     /* (head_count), 1 + index of the newest record */
    size_t head_count;
};

struct record_head {
    uint32_t older; /* 1 + index */
    int64_t cost;
    uint64_t bytes;
};

/* --- limits ---------------------------------------------------------------------------------- */

static void set_limit(struct branch_search *s, int64_t below)
{
    const struct instance *in = s->in;
    s->limit = below - 1;
    s->makespan_max = in->horizon;
    if (in->objective == OBJECTIVE_MAKESPAN && s->limit < in->horizon) s->makespan_max = s->limit;
    for (uint32_t i = 0; i < in->job_count; i++) {
        s->ends_max[i] = s->makespan_max;
        int64_t due = in->jobs[i].deadline + s->limit;
        if (in->objective == OBJECTIVE_TARDINESS && due < in->horizon) s->ends_max[i] = due;
    }
    int64_t each = s->makespan_max - s->bounds->row_start - s->bounds->column_end;
    s->budget = (each >= 0 ? in->device_count * each : each) - s->bounds->sum;
}

static inline int64_t remaining(const struct branch_search *s, uint32_t job, uint32_t position)
{
    return s->remaining[(size_t)job * s->stride + position];
}

/* --- dominance ------------------------------------------------------------------------------- */

struct branch_key {
    unsigned char bytes[3 * BRANCH_BOUND_JOBS_MAX + 4 * BRANCH_BOUND_DEVICES_MAX];
    int32_t times[TIMES_MAX];
};

static int compare_places(const struct branch_place *a, const struct branch_place *b)
{
    if (a->job != b->job) return a->job < b->job ? -1 : 1;
    if (a->unit != b->unit) return a->unit < b->unit ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

static bool is_sum(const struct instance *in)
{
    return in->objective == OBJECTIVE_MEAN || in->objective == OBJECTIVE_WEIGHTED;
}

/* Returns the earliest end of an unfinished job, for sums of ends: an early task's copy out may end last. */
static int32_t least_end(const struct branch_search *s, const struct branch_node *node, uint32_t job)
{
    int64_t rest = node->now + remaining(s, job, node->next[job]);
    return node->end[job] > rest ? node->end[job] : (int32_t)rest;
}

static void make_key(const struct branch_search *s, const struct branch_node *node, struct branch_key *key)
{
    const struct instance *in = s->in;
    uint8_t order[BRANCH_BOUND_DEVICES_MAX];
    unsigned char *to = key->bytes;
    int32_t *times = key->times;
    for (uint32_t g = 0; g < in->device_count; g++) {
        uint32_t at = g;
        while (at > 0 && in->device_class[order[at - 1]] == in->device_class[g] &&
               compare_places(&node->places[g], &node->places[order[at - 1]]) < 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (uint8_t)g;
    }
    *times++ = node->now;
    for (uint32_t i = 0; i < in->job_count; i++) {
        bool done = node->next[i] == instance_length(&in->jobs[i]);
        *to++ = (unsigned char)node->next[i];
        *to++ = (unsigned char)(node->next[i] >> 8);
        *times++ = done ? node->end[i] : node->ready[i] > node->now ? node->ready[i] : node->now;
        if (is_sum(in)) *times++ = done ? 0 : least_end(s, node, i);
    }
    for (uint32_t g = 0; g < in->device_count; g++) {
        const struct branch_place *place = &node->places[order[g]];
        *to++ = place->job;
        *to++ = (unsigned char)place->unit;
        *to++ = (unsigned char)(place->unit >> 8);
        *to++ = place->job != BRANCH_NO_JOB && node->device[place->job] == order[g];
        *times++ = place->start;
    }
}

/* Returns true if an earlier node can do everything that this one can. Otherwise remembers this node. */
static bool dominated(struct branch_search *s, const struct branch_node *node)
{
    struct branch_key key;
    make_key(s, node, &key);
    uint64_t hash = hash_bytes(0, key.bytes, s->key_bytes);
    uint32_t *head = &s->heads[random_mix(hash) % s->head_count];
    for (uint32_t at = *head; at > 0;) {
        const unsigned char *record = s->records + (size_t)(at - 1) * s->record_bytes;
        struct record_head first;
        memcpy(&first, record, sizeof first);
        const unsigned char *stored = record + sizeof first;
        if (memcmp(stored, key.bytes, s->key_bytes) == 0 && first.cost <= node->cost &&
            first.bytes <= node->bytes) {
            bool later = false;
            const unsigned char *time = stored + s->key_bytes;
            for (uint32_t t = 0; t < s->time_count && !later; t++, time += sizeof(int32_t)) {
                int32_t other;
                memcpy(&other, time, sizeof other);
                later = other > key.times[t];
            }
            if (!later) return true;
        }
        at = first.older;
    }
    if (s->record_count == s->record_max) return false;
    unsigned char *record = s->records + s->record_count * s->record_bytes;
    struct record_head first = {*head, node->cost, node->bytes};
    memcpy(record, &first, sizeof first);
    memcpy(record + sizeof first, key.bytes, s->key_bytes);
    memcpy(record + sizeof first + s->key_bytes, key.times, s->time_count * sizeof *key.times);
    *head = (uint32_t)++s->record_count;
    return false;
}

/* --- bounds of a node ------------------------------------------------------------------------ */

/* Returns the slack that this device will waste at least. */
static int64_t waste(const struct branch_search *s, const struct branch_node *node, uint32_t device)
{
    const struct instance *in = s->in;
    const struct instance_bounds *b = s->bounds;
    const struct branch_place *place = &node->places[device];
    uint32_t class = in->device_class[device];
    bool empty = place->job == BRANCH_NO_JOB;
    int64_t from = empty ? b->row_start : place->start + b->row[place->unit];
    int64_t least = s->makespan_max - from - b->column_end;
    if (least <= 0) return 0;
    const int32_t *setup =
        empty ? NULL : s->setup + ((size_t)class * in->unit_count + place->unit) * in->unit_count;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint32_t length = instance_length(job), end = node->next[i] + job->unit_count;
        if (end > length) end = length;
        int64_t all = remaining(s, i, node->next[i]);
        bool own = place->job == i && node->device[i] == device;
        int64_t ended = node->ended[i] > node->now ? node->ended[i] : node->now;
        for (uint32_t t = node->next[i]; t < end; t++) {
            uint32_t unit = instance_unit_at(job, t);
            int64_t start = ended + all - remaining(s, i, t);
            if (t == node->next[i] && !own && node->ready[i] > start) start = node->ready[i];
            int64_t free = empty ? in->units[unit].in : place->start + setup[unit];
            if (free > start) start = free;
            int64_t spent = start - from - b->column[unit];
            if (spent < least) least = spent;
        }
        if (least <= 0) return 0;
    }
    return least;
}

/* Returns true if the bridge needs longer than the limit for these bytes. */
static bool too_many_bytes(const struct branch_search *s, uint64_t bytes)
{
    return s->in->objective == OBJECTIVE_MAKESPAN && bridge_bytes_ticks(s->in, bytes) > s->limit;
}

/* Returns true if this node cannot be completed below the limit. */
static bool hopeless(const struct branch_search *s, const struct branch_node *node)
{
    const struct instance *in = s->in;
    bool sums = is_sum(in);
    int64_t cost = node->cost;
    if (too_many_bytes(s, node->bytes)) return true;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        if (node->end[i] > s->ends_max[i]) return true; /* the limit has fallen since this copy out was decided */
        if (node->next[i] == instance_length(job)) continue;
        int64_t end = (node->ended[i] > node->now ? node->ended[i] : node->now) +
                      remaining(s, i, node->next[i]);
        if (end > s->ends_max[i]) return true;
        cost += end * (in->objective == OBJECTIVE_WEIGHTED ? job->weight : 1);
    }
    if (sums) return cost > s->limit;
    int64_t slack = node->slack;
    for (uint32_t g = 0; g < in->device_count && slack <= s->budget; g++) slack += waste(s, node, g);
    return slack > s->budget;
}

/* --- branching ------------------------------------------------------------------------------- */

static int64_t start_of(const struct branch_search *s, const struct branch_node *node, uint32_t job, uint32_t device)
{
    const struct instance *in = s->in;
    const struct branch_place *place = &node->places[device];
    uint32_t unit = instance_unit_at(&in->jobs[job], node->next[job]);
    int64_t ready = node->ready[job], free;
    if (place->job == BRANCH_NO_JOB) {
        free = in->units[unit].in;
    } else {
        size_t row = (size_t)in->device_class[device] * in->unit_count + place->unit;
        free = place->start + s->setup[row * in->unit_count + unit];
        if (place->job == job && node->device[job] == device) ready = node->ended[job];
    }
    if (ready < node->now) ready = node->now;
    return free > ready ? free : ready;
}

static bool before(const struct branch_choice *a, const struct branch_choice *b)
{
    if (a->start != b->start) return a->start < b->start;
    if (a->slack != b->slack) return a->slack < b->slack;
    if (a->job != b->job) return a->job < b->job;
    return a->device < b->device;
}

/* Lists children worth opening, in the order of their starts. Returns their number. */
static uint32_t list_choices(const struct branch_search *s, const struct branch_node *node,
                             struct branch_choice *choices)
{
    const struct instance *in = s->in;
    uint32_t count = 0;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        if (node->next[i] == instance_length(job)) continue;
        uint32_t unit = instance_unit_at(job, node->next[i]);
        uint64_t tried = 0; /* classes of which an empty device was tried */
        for (uint32_t g = 0; g < in->device_count; g++) {
            uint32_t class = in->device_class[g];
            const struct branch_place *place = &node->places[g];
            if (!instance_fits(in, unit, class)) continue;
            if (place->job == BRANCH_NO_JOB) {
                if (tried & (uint64_t)1 << class) continue;
                tried |= (uint64_t)1 << class;
            }
            int64_t start = start_of(s, node, i, g);
            int64_t compute = instance_compute(in, unit, class), own = start + compute + in->units[unit].out;
            int64_t longer = in->class_count > 1 ? compute - instance_compute_min(in, unit) : 0;
            int64_t end = start + longer + remaining(s, i, node->next[i]);
            if (end > s->ends_max[i] || own > s->ends_max[i]) continue;
            int64_t from = place->job == BRANCH_NO_JOB ? s->bounds->row_start
                                                : place->start + s->bounds->row[place->unit];
            int64_t slack = node->slack + start - from - s->bounds->column[unit];
            if (slack > s->budget) continue;
            struct branch_choice made = {slack, (int32_t)start, (uint8_t)i, (uint8_t)g};
            uint32_t at = count++;
            for (; at > 0 && before(&made, &choices[at - 1]); at--) choices[at] = choices[at - 1];
            choices[at] = made;
        }
    }
    return count;
}

/* Returns the bytes that a node gains when a job's next task goes to a device. */
static uint64_t bytes_rise(const struct branch_search *s, const struct branch_node *node, uint32_t job, uint32_t device)
{
    const struct instance *in = s->in;
    const struct instance_unit *units = in->units;
    const struct branch_place *place = &node->places[device];
    uint32_t unit = instance_unit_at(&in->jobs[job], node->next[job]), last = UINT32_MAX, position = 0;
    bool held = false, kept = false;
    if (in->bridge_bytes_per_tick == 0) return 0;
    if (place->job != BRANCH_NO_JOB) {
        last = place->unit;
        position = node->next[place->job] + (place->job == job ? 1u : 0);
    }
    for (uint32_t g = 0; g < in->device_count; g++) {
        if (g == device || node->places[g].job == BRANCH_NO_JOB) continue;
        const struct instance_unit *other = &units[node->places[g].unit];
        held |= instance_resident(other, &units[unit]);
        kept |= last != UINT32_MAX && instance_resident(other, &units[last]);
    }
    return bridge_bytes_rise(in, last, unit, held, kept, position);
}

static void open_child(const struct branch_search *s, const struct branch_node *from,
                       const struct branch_choice *choice, struct branch_node *to)
{
    const struct instance *in = s->in;
    uint32_t i = choice->job, g = choice->device;
    const struct instance_job *job = &in->jobs[i];
    uint32_t unit = instance_unit_at(job, from->next[i]);
    const struct instance_unit *u = &in->units[unit];
    *to = *from;
    to->now = choice->start;
    to->slack = choice->slack;
    to->bytes += bytes_rise(s, from, i, g);
    to->next[i]++;
    to->device[i] = (uint8_t)g;
    to->places[g] = (struct branch_place){choice->start, (uint16_t)unit,
                                             (uint16_t)(s->first_task[i] + from->next[i]), (uint8_t)i};
    int64_t ended = choice->start + instance_compute(in, unit, in->device_class[g]);
    to->ended[i] = to->ready[i] = (int32_t)ended;
    if (ended + u->out > to->end[i]) to->end[i] = (int32_t)(ended + u->out);
    if (to->next[i] < instance_length(job))
        to->ready[i] += (int32_t)instance_through_host(in, unit, instance_unit_at(job, to->next[i]));
    else if (is_sum(in))
        to->cost += to->end[i] * (int64_t)(in->objective == OBJECTIVE_WEIGHTED ? job->weight : 1);
}

static void keep_best(struct branch_search *s, const struct branch_node *node)
{
    int64_t ends[BRANCH_BOUND_JOBS_MAX];
    for (uint32_t i = 0; i < s->in->job_count; i++) ends[i] = node->end[i];
    int64_t value = instance_value(s->in, ends, node->bytes);
    if (value > s->limit) return;
    memcpy(s->best, s->path, s->in->task_count * sizeof *s->path);
    *s->value = value;
    set_limit(s, value);
    /* the compared nodes had the old limit; their schedules may break the new one */
    memset(s->heads, 0, s->head_count * sizeof *s->heads);
    s->record_count = 0;
}

static bool out_of_time(struct branch_search *s)
{
    s->result->nodes++;
    return !anytime_step(&s->limits);
}

static void branch(struct branch_search *s, uint32_t depth)
{
    const struct instance *in = s->in;
    const struct branch_node *node = &s->nodes[depth];
    if (depth == in->task_count) {
        keep_best(s, node);
        return;
    }
    if (out_of_time(s) || hopeless(s, node) || dominated(s, node)) return;
    if (s->rest && residual_bound_breaks(s->rest, node, depth, depth > s->options->fixed, s->limit)) return;
    struct branch_choice *choices = s->choices + (size_t)depth * in->job_count * in->device_count;
    uint32_t count = list_choices(s, node, choices);
    for (uint32_t c = 0; c < count && !s->limits.over; c++) {
        if (choices[c].slack > s->budget) continue; /* the limit has fallen meanwhile */
        s->path[depth] = (struct dispatch_step){choices[c].job, choices[c].device};
        open_child(s, node, &choices[c], &s->nodes[depth + 1]);
        branch(s, depth + 1);
    }
}

/* --- a run ----------------------------------------------------------------------------------- */

/* Places the fixed steps in their order, each as early as possible. */
static uint32_t open_fixed(struct branch_search *s, const struct dispatch_step *steps)
{
    const struct instance *in = s->in;
    for (uint32_t t = 0; t < s->options->fixed; t++) {
        const struct branch_node *node = &s->nodes[t];
        uint32_t i = steps[t].job, g = steps[t].device;
        const struct branch_place *place = &node->places[g];
        uint32_t unit = instance_unit_at(&in->jobs[i], node->next[i]);
        int64_t start = start_of(s, node, i, g);
        int64_t from = place->job == BRANCH_NO_JOB ? s->bounds->row_start
                                            : place->start + s->bounds->row[place->unit];
        struct branch_choice choice = {node->slack + start - from - s->bounds->column[unit], (int32_t)start,
                                       (uint8_t)i, (uint8_t)g};
        s->path[t] = steps[t];
        open_child(s, node, &choice, &s->nodes[t + 1]);
    }
    return s->options->fixed;
}

static enum status make_tables(struct branch_search *s, struct error *err)
{
    const struct instance *in = s->in;
    uint32_t n = in->unit_count;
    for (uint32_t i = 0; i < in->job_count; i++)
        if (instance_length(&in->jobs[i]) >= s->stride) s->stride = instance_length(&in->jobs[i]) + 1;
    size_t memory = s->options->memory_bytes ? s->options->memory_bytes : (size_t)256 << 20;
    s->key_bytes = 2 * in->job_count + 4 * in->device_count;
    s->time_count = 1 + (is_sum(in) ? 2 : 1) * in->job_count + in->device_count;
    s->record_bytes = sizeof(struct record_head) + s->key_bytes + s->time_count * sizeof(int32_t);
    s->record_max = memory / (s->record_bytes + sizeof *s->heads);
    s->head_count = s->record_max + 1;
    s->remaining = alloc_zeroed((size_t)in->job_count * s->stride, sizeof *s->remaining);
    s->setup = alloc_zeroed((size_t)in->class_count * n * n, sizeof *s->setup);
    s->nodes = alloc_zeroed(in->task_count + 1u, sizeof *s->nodes);
    s->choices = alloc_zeroed((size_t)in->task_count * in->job_count * in->device_count, sizeof *s->choices);
    s->path = alloc_zeroed(in->task_count, sizeof *s->path);
    s->records = alloc_zeroed(s->record_max + 1, s->record_bytes);
    s->heads = alloc_zeroed(s->head_count, sizeof *s->heads);
    if (!s->remaining || !s->setup || !s->nodes || !s->choices || !s->path || !s->records || !s->heads)
        return error_memory(err, "branch and bound", memory);
    if (residual_bound_takes(in)) TRY(residual_bound_create(in, &s->rest, err));
    for (uint32_t i = 0, first = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint32_t length = instance_length(job);
        s->first_task[i] = first;
        first += length;
        int64_t sum = in->units[job->first_unit + job->unit_count - 1].out;
        for (uint32_t t = length; t-- > 0;) {
            sum += instance_compute_min(in, instance_unit_at(job, t));
            s->remaining[(size_t)i * s->stride + t] = sum;
        }
    }
    for (uint32_t c = 0; c < in->class_count; c++)
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t k = 0; k < n; k++)
                s->setup[((size_t)c * n + j) * n + k] = (int32_t)instance_setup(in, j, k, c);
    for (uint32_t g = 0; g < in->device_count; g++) s->nodes[0].places[g].job = BRANCH_NO_JOB;
    s->nodes[0].bytes = bridge_bytes_least(in);
    return STATUS_OK;
}

enum status branch_bound_run(const struct instance *in, const struct instance_bounds *bounds,
                             const struct branch_bound_options *options, struct dispatch_step *steps,
                             int64_t *value, struct branch_bound_result *result, struct error *err)
{
    struct branch_search s = {.in = in, .bounds = bounds, .options = options, .best = steps, .value = value,
                              .result = result, .limits = {.until_s = options->until_s, .steps_max = options->nodes_max,
                                                           .clock_every = 256}};
    *result = (struct branch_bound_result){0};
    if (!branch_bound_takes(in))
        return error_set(err, STATUS_LIMIT,
                         "branch and bound takes at most %d jobs, %d devices, %d tasks and %d ticks",
                         BRANCH_BOUND_JOBS_MAX, BRANCH_BOUND_DEVICES_MAX, BRANCH_BOUND_TASKS_MAX,
                         INT32_MAX / 2);
    if (!make_tables(&s, err)) {
        set_limit(&s, *value);
        branch(&s, open_fixed(&s, steps));
        result->proven = !s.limits.over;
    }
    residual_bound_destroy(s.rest);
    free(s.remaining);
    free(s.setup);
    free(s.nodes);
    free(s.choices);
    free(s.path);
    free(s.records);
    free(s.heads);
    return err->status;
}
