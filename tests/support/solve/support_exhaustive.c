/*
 * A schedule is a list of tasks for each device. All schedules are made, by putting each task at every place of every
 * list. For complete lists, the rules of planner/solve/instance/instance.h, written out again here, give the least
 * times between the starts of tasks. The starts are the longest paths, found by applying all rules until nothing moves.
 * Lists that contradict a chain never come to rest and are no schedules.
 */
#include "tests/support/solve/support_exhaustive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct task {
    const struct instance_unit *unit;
    uint32_t number; /* of the unit */
    uint32_t position;
};

struct exhaustive {
    const struct instance *in;
    struct task tasks[EXHAUSTIVE_TASKS_MAX];
    uint32_t count;
    uint32_t list[EXHAUSTIVE_TASKS_MAX][EXHAUSTIVE_TASKS_MAX], length[EXHAUSTIVE_TASKS_MAX]; /* by device */
    int64_t best;
};

static bool shares(const struct task *j, const struct task *k)
{
    return j->unit->job == k->unit->job && j->unit->shard == k->unit->shard;
}

/* Updates the best makespan with the lists' makespan. */
static void judge(struct exhaustive *e)
{
    const struct instance *in = e->in;
    uint32_t device[EXHAUSTIVE_TASKS_MAX], before[EXHAUSTIVE_TASKS_MAX];
    int64_t start[EXHAUSTIVE_TASKS_MAX] = {0}, compute[EXHAUSTIVE_TASKS_MAX], end = 0;
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < in->device_count; g++)
        for (uint32_t at = 0; at < e->length[g]; at++) {
            uint32_t k = e->list[g][at];
            device[k] = g;
            before[k] = at > 0 ? e->list[g][at - 1] : UINT32_MAX;
            compute[k] = in->compute[e->tasks[k].number * in->class_count + in->device_class[g]];
        }
    bool moved = true;
    for (uint32_t round = 0; moved; round++) {
        if (round > e->count) return; /* a cycle */
        moved = false;
        for (uint32_t k = 0; k < e->count; k++) {
            const struct task *task = &e->tasks[k];
            const struct instance_class *class = &in->classes[in->device_class[device[k]]];
            int64_t least = task->unit->in;
            if (before[k] != UINT32_MAX) {
                const struct task *last = &e->tasks[before[k]];
                int64_t p = compute[before[k]], wait = p + last->unit->out + task->unit->in;
                if (class->slots > 1 && last->unit->memory + task->unit->memory <= class->memory)
                    wait = p > task->unit->in ? p : task->unit->in;
                if (shares(last, task)) wait = p;
                least = start[before[k]] + wait;
            }
            if (task->position > 0) { /* tasks are in the order of their chains */
                const struct task *last = task - 1;
                int64_t ready = start[k - 1] + compute[k - 1];
                if (last->unit->writes && shares(last, task) && before[k] != k - 1)
                    ready += last->unit->out + task->unit->in;
                if (ready > least) least = ready;
            }
            if (start[k] < least) {
                start[k] = least;
                moved = true;
            }
        }
    }
    for (uint32_t k = 0; k < e->count; k++) {
        const struct task *task = &e->tasks[k];
        if (start[k] + compute[k] + task->unit->out > end) end = start[k] + compute[k] + task->unit->out;
        if (before[k] == UINT32_MAX || !shares(&e->tasks[before[k]], task)) bytes += task->unit->in_bytes;
        if (task->unit->writes) bytes += task->unit->out_bytes;
    }
    uint64_t rate = in->bridge_bytes_per_tick;
    if (rate > 0 && (int64_t)((bytes + rate - 1) / rate) > end) end = (int64_t)((bytes + rate - 1) / rate);
    if (end < e->best) e->best = end;
}

static void place(struct exhaustive *e, uint32_t k)
{
    if (k == e->count) {
        judge(e);
        return;
    }
    for (uint32_t g = 0; g < e->in->device_count; g++) {
        if (e->tasks[k].unit->memory > e->in->classes[e->in->device_class[g]].memory) continue;
        for (uint32_t at = e->length[g] + 1; at-- > 0;) {
            if (at < e->length[g] && e->tasks[e->list[g][at]].unit->job == e->tasks[k].unit->job)
                break; /* it would run before a task of its own chain */
            for (uint32_t m = e->length[g]; m > at; m--) e->list[g][m] = e->list[g][m - 1];
            e->list[g][at] = k;
            e->length[g]++;
            place(e, k + 1);
            e->length[g]--;
            for (uint32_t m = at; m < e->length[g]; m++) e->list[g][m] = e->list[g][m + 1];
        }
    }
}

int64_t test_exhaustive(const struct instance *in)
{
    struct exhaustive e = {.in = in, .best = INT64_MAX};
    assert_int_equal(in->objective, OBJECTIVE_MAKESPAN);
    assert_in_range(in->task_count, 1, EXHAUSTIVE_TASKS_MAX);
    assert_in_range(in->device_count, 1, EXHAUSTIVE_TASKS_MAX);
    for (uint32_t i = 0; i < in->job_count; i++)
        for (uint32_t t = 0; t < in->jobs[i].unit_count * in->jobs[i].repeat; t++) {
            uint32_t number = in->jobs[i].first_unit + t % in->jobs[i].unit_count;
            e.tasks[e.count++] = (struct task){&in->units[number], number, t};
        }
    place(&e, 0);
    return e.best;
}
