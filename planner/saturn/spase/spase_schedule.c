/*
 * A node's slots are sorted by the time at which they become free, so a gang of k starts when slot k - 1 is free:
 *
 *     slots  3 5 8 9 12     a gang of 3 for 4 ticks starts at 8 and takes 3 5 8, or of 2 starts at 5.
 *     of 2 on  3 5 8 9 12   it takes 3 5; of 1 at 9 with 3 5 8 9 free: it takes the 9
 *
 * It takes the last slots free by its start. Later slots that become free before it ends move up, and its slots go in
 * after them.
 */
#include "planner/saturn/spase/spase_schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"

enum status spase_list_init(struct spase_list *list, const struct spase *in, struct error *err)
{
    *list = (struct spase_list){.in = in, .slots = alloc_zeroed(in->device_count, sizeof *list->slots),
                                .taken = alloc_zeroed(in->node_count, sizeof *list->taken)};
    if (list->slots && list->taken) return STATUS_OK;
    spase_list_release(list);
    return error_memory(err, "a schedule", in->device_count * sizeof *list->slots);
}

void spase_list_release(struct spase_list *list)
{
    free(list->slots);
    free(list->taken);
    *list = (struct spase_list){0};
}

static int compare_slots(const void *a, const void *b)
{
    const struct spase_slot *x = a, *y = b;
    if (x->free != y->free) return x->free < y->free ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

void spase_list_clear(struct spase_list *list, const int64_t *free_at)
{
    const struct spase *in = list->in;
    for (uint32_t d = 0; d < in->device_count; d++)
        list->slots[d] = (struct spase_slot){free_at ? free_at[d] : 0, d};
    for (uint32_t n = 0; n < in->node_count && free_at; n++)
        qsort(list->slots + in->nodes[n].first_device, in->nodes[n].device_count, sizeof *list->slots,
              compare_slots);
}

/* --- gangs on one node ----------------------------------------------------------------------- */

/* Returns the number of slots that become free before `time`. */
static uint32_t free_before(const struct spase_slot *slots, uint32_t count, int64_t time)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (slots[middle].free < time) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Returns the number of slots that are free by `time`. */
static uint32_t free_by(const struct spase_slot *slots, uint32_t count, int64_t time)
{
    return free_before(slots, count, time + 1);
}

/* Assigns the last k of slots [0, free_count), free by the start, until `end`. */
static void assign(struct spase_slot *slots, uint32_t count, uint32_t free_count, uint32_t k, int64_t end,
                   uint32_t *devices)
{
    uint32_t gang[SPASE_DEVICES_MAX], at = free_count - k;
    uint32_t moving = free_before(slots + free_count, count - free_count, end);
    for (uint32_t i = 0; i < k; i++) gang[i] = slots[at + i].device;
    memmove(slots + at, slots + free_count, moving * sizeof *slots);
    at += moving;
    for (uint32_t i = 0; i < k; i++) slots[at + i] = (struct spase_slot){end, gang[i]};
    if (devices) memcpy(devices, gang, k * sizeof *gang);
}

/* Returns the node where a gang of k can start first; then the one that leaves devices idle least. */
static uint32_t first_node(const struct spase_list *list, const struct spase_mode *mode)
{
    const struct spase *in = list->in;
    uint32_t best = SPASE_ANY_NODE, k = mode->devices;
    int64_t best_start = INT64_MAX, best_idle = INT64_MAX;
    for (uint32_t n = 0; n < in->node_count; n++) {
        const struct spase_node *node = &in->nodes[n];
        const struct spase_slot *slots = list->slots + node->first_device;
        if (node->class != mode->class || node->device_count < k || slots[k - 1].free > best_start) continue;
        int64_t start = slots[k - 1].free, idle = 0;
        uint32_t at = free_by(slots, node->device_count, start) - k;
        for (uint32_t i = 0; i < k; i++) idle += start - slots[at + i].free;
        if (start == best_start && idle >= best_idle) continue;
        best = n;
        best_start = start;
        best_idle = idle;
    }
    return best;
}

/* --- gangs that span ------------------------------------------------------------------------- */

/* Returns when the k-th device of the class is free, over all nodes. */
static int64_t spanning_start(const struct spase_list *list, const struct spase_mode *mode)
{
    const struct spase *in = list->in;
    int64_t start = 0;
    memset(list->taken, 0, in->node_count * sizeof *list->taken);
    for (uint32_t i = 0; i < mode->devices; i++) {
        uint32_t best = SPASE_ANY_NODE;
        int64_t least = INT64_MAX;
        for (uint32_t n = 0; n < in->node_count; n++) {
            const struct spase_node *node = &in->nodes[n];
            if (node->class != mode->class || list->taken[n] == node->device_count) continue;
            int64_t at = list->slots[node->first_device + list->taken[n]].free;
            if (at >= least) continue;
            least = at;
            best = n;
        }
        assert(best != SPASE_ANY_NODE);
        list->taken[best]++;
        start = least;
    }
    return start;
}

/* Takes whole nodes of free devices, the fullest first, so that gangs divide few nodes. */
static int64_t put_spanning(struct spase_list *list, const struct spase_mode *mode, uint32_t *devices)
{
    const struct spase *in = list->in;
    int64_t start = spanning_start(list, mode);
    uint32_t left = mode->devices;
    for (uint32_t n = 0; n < in->node_count; n++) {
        const struct spase_node *node = &in->nodes[n];
        list->taken[n] = node->class == mode->class
                             ? free_by(list->slots + node->first_device, node->device_count, start) : 0;
    }
    while (left > 0) {
        uint32_t most = 0;
        for (uint32_t n = 1; n < in->node_count; n++)
            if (list->taken[n] > list->taken[most]) most = n;
        const struct spase_node *node = &in->nodes[most];
        uint32_t free_count = list->taken[most], k = free_count < left ? free_count : left;
        assert(k > 0);
        assign(list->slots + node->first_device, node->device_count, free_count, k, start + mode->ticks, devices);
        if (devices) devices += k;
        left -= k;
        list->taken[most] = 0;
    }
    return start;
}

int64_t spase_list_start(const struct spase_list *list, const struct spase_mode *mode, uint32_t node)
{
    if (mode->spans) return spanning_start(list, mode);
    if (node == SPASE_ANY_NODE) node = first_node(list, mode);
    return list->slots[list->in->nodes[node].first_device + mode->devices - 1].free;
}

int64_t spase_list_put(struct spase_list *list, const struct spase_mode *mode, uint32_t node,
                       uint32_t *devices)
{
    if (mode->spans) return put_spanning(list, mode, devices);
    if (node == SPASE_ANY_NODE) node = first_node(list, mode);
    const struct spase_node *where = &list->in->nodes[node];
    struct spase_slot *slots = list->slots + where->first_device;
    assert(where->class == mode->class && where->device_count >= mode->devices);
    int64_t start = slots[mode->devices - 1].free;
    assign(slots, where->device_count, free_by(slots, where->device_count, start), mode->devices,
           start + mode->ticks, devices);
    return start;
}

/* --- schedules ------------------------------------------------------------------------------- */

enum status spase_schedule_make(const struct spase *in, const struct spase_step *steps,
                                const int64_t *free_at, struct spase_schedule *out, struct error *err)
{
    struct spase_schedule made = {0};
    struct spase_list list;
    uint32_t total = 0;
    TRY(spase_list_init(&list, in, err));
    made.tasks = alloc_zeroed(in->job_count, sizeof *made.tasks);
    made.device_first = alloc_zeroed(in->job_count + 1u, sizeof *made.device_first);
    for (uint32_t s = 0; s < in->job_count; s++) total += in->modes[steps[s].mode].devices;
    made.devices = alloc_zeroed(total, sizeof *made.devices);
    if (!made.tasks || !made.device_first || !made.devices) {
        spase_schedule_release(&made);
        error_memory(err, "a schedule", total * sizeof *made.devices);
        goto out;
    }
    for (uint32_t s = 0; s < in->job_count; s++)
        made.device_first[steps[s].job + 1] = in->modes[steps[s].mode].devices;
    for (uint32_t j = 0; j < in->job_count; j++) made.device_first[j + 1] += made.device_first[j];
    spase_list_clear(&list, free_at);
    for (uint32_t s = 0; s < in->job_count; s++) {
        const struct spase_mode *mode = &in->modes[steps[s].mode];
        uint32_t job = steps[s].job;
        int64_t start = spase_list_put(&list, mode, steps[s].node, made.devices + made.device_first[job]);
        made.tasks[job] = (struct spase_task){mode->config, start, mode->ticks};
        if (start + mode->ticks > made.makespan) made.makespan = start + mode->ticks;
    }
    *out = made;
out:
    spase_list_release(&list);
    return err->status;
}

void spase_schedule_release(struct spase_schedule *schedule)
{
    free(schedule->tasks);
    free(schedule->device_first);
    free(schedule->devices);
    *schedule = (struct spase_schedule){0};
}

/* --- the way back ---------------------------------------------------------------------------- */

struct spase_schedule_started {
    int64_t start;
    struct spase_step step;
};

static int compare_started(const void *a, const void *b)
{
    const struct spase_schedule_started *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->step.job > y->step.job) - (x->step.job < y->step.job);
}

/* Returns a job's mode: its configuration on its devices' class, or one at least as good. */
static uint32_t mode_of(const struct spase *in, const struct spase_schedule *schedule, uint32_t job)
{
    const struct spase_job *of = &in->jobs[job];
    const struct spase_task *task = &schedule->tasks[job];
    uint32_t class = in->nodes[spase_node_of(in, schedule->devices[schedule->device_first[job]])].class;
    uint32_t devices = in->configs[task->config].devices;
    for (uint32_t m = of->first_mode; m < of->first_mode + of->mode_count; m++) {
        const struct spase_mode *mode = &in->modes[m];
        if (mode->class == class && mode->devices <= devices && mode->ticks <= task->ticks &&
            (!mode->spans || in->configs[task->config].spans))
            return m;
    }
    return of->first_mode;
}

enum status spase_schedule_steps(const struct spase *in, const struct spase_schedule *schedule,
                                 struct spase_step *steps, struct error *err)
{
    struct spase_schedule_started *started = alloc_zeroed(in->job_count, sizeof *started);
    if (!started) return error_memory(err, "an order", in->job_count * sizeof *started);
    for (uint32_t j = 0; j < in->job_count; j++) {
        uint32_t device = schedule->devices[schedule->device_first[j]];
        started[j] =
            (struct spase_schedule_started){schedule->tasks[j].start,
                                            {.job = j, .mode = mode_of(in, schedule, j),
                                             .node = spase_node_of(in, device)}};
    }
    qsort(started, in->job_count, sizeof *started, compare_started);
    for (uint32_t i = 0; i < in->job_count; i++) steps[i] = started[i].step;
    free(started);
    return STATUS_OK;
}
