/*
 * Tasks are equal when unit, devices and slots are; plans that were read have a layout of slots for each task, so its
 * place does not tell. A hash table has the place of each distinct task; it is given up when there are too many.
 *
 * Cost: linear. Memory: 16 bytes a task.
 */
#include "planner/walk/plan_turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

enum {
    TASKS_MIN = 4096, /* shorter plans are written for people */
    COMES_AGAIN = 2,  /* how often a task must come, on average */
};

struct turns_maker {
    const struct plan *plan;
    struct plan_turns *turns;
    uint32_t *cells; /* number of a distinct task + 1; 0: empty */
    size_t mask;
};

static uint32_t slot_count(const struct plan *plan, const struct plan_task *task)
{
    return plan->units[task->unit].acquire_count;
}

static uint64_t task_hash(const struct plan *plan, const struct plan_task *task)
{
    uint64_t hash = random_u64((uint64_t)task->unit << 32 | task->device, (uint64_t)task->gang << 32 | task->peer);
    for (uint32_t i = 0; i < slot_count(plan, task); i++) hash = random_mix(hash ^ plan->layouts[task->layout + i]);
    return hash;
}

static bool task_equal(const struct plan *plan, const struct plan_task *a, const struct plan_task *b)
{
    if (a->unit != b->unit || a->device != b->device || a->gang != b->gang || a->peer != b->peer) return false;
    for (uint32_t i = 0; i < slot_count(plan, a); i++)
        if (plan->layouts[a->layout + i] != plan->layouts[b->layout + i]) return false;
    return true;
}

/* Returns the task's number among distinct ones; PLAN_NONE: there are too many. */
static uint32_t number_of(struct turns_maker *m, uint32_t place)
{
    const struct plan *plan = m->plan;
    struct plan_turns *turns = m->turns;
    const struct plan_task *task = &plan->tasks[place];
    size_t at = (size_t)task_hash(plan, task) & m->mask;
    for (; m->cells[at] != 0; at = (at + 1) & m->mask)
        if (task_equal(plan, &plan->tasks[turns->distinct[m->cells[at] - 1]], task)) return m->cells[at] - 1;
    if (turns->distinct_count == turns->count / COMES_AGAIN) return PLAN_NONE;
    turns->distinct[turns->distinct_count] = place;
    m->cells[at] = ++turns->distinct_count;
    return m->cells[at] - 1;
}

static uint64_t count_tasks(const struct plan *plan)
{
    uint64_t count = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) count += plan->segments[s].task_count;
    return count;
}

/* Sets lane_end[d] to the beginning of d's lane. */
static void find_lanes(const struct plan *plan, struct plan_turns *turns)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < turns->count; i++) turns->lane_end[turns->turns[i]]++;
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        uint32_t length = turns->lane_end[d];
        turns->lane_end[d] = first;
        first += length;
    }
}

/* Fills in turns, then lanes. Returns false where too few tasks come again. */
static bool fill(struct turns_maker *m)
{
    const struct plan *plan = m->plan;
    struct plan_turns *turns = m->turns;
    uint32_t at = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++)
            turns->turns[at++] = plan->tasks[plan->segments[s].first_task + i].device;
    find_lanes(plan, turns);
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            uint32_t place = plan->segments[s].first_task + i, number = number_of(m, place);
            if (number == PLAN_NONE) return false;
            turns->lanes[turns->lane_end[plan->tasks[place].device]++] = number;
        }
    return true;
}

bool plan_turns_make(const struct plan *plan, struct plan_turns *out)
{
    uint64_t count = count_tasks(plan);
    size_t capacity = 1;
    if (count < TASKS_MIN || count > PLAN_TURNS_MAX) return false;
    while (capacity < count) capacity *= 2; /* COMES_AGAIN leaves half of the table empty */
    *out = (struct plan_turns){.count = (uint32_t)count};
    struct turns_maker m = {.plan = plan, .turns = out, .mask = capacity - 1};
    m.cells = alloc_zeroed(capacity, sizeof *m.cells);
    out->distinct = alloc_zeroed(count / COMES_AGAIN, sizeof *out->distinct);
    out->lane_end = alloc_zeroed(plan->hardware.device_count, sizeof *out->lane_end);
    out->lanes = alloc_zeroed(count, sizeof *out->lanes);
    out->turns = alloc_zeroed(count, sizeof *out->turns);
    bool made = m.cells && out->distinct && out->lane_end && out->lanes && out->turns && fill(&m);
    free(m.cells);
    if (!made) plan_turns_release(out);
    return made;
}

void plan_turns_release(struct plan_turns *turns)
{
    free(turns->distinct);
    free(turns->lane_end);
    free(turns->lanes);
    free(turns->turns);
    *turns = (struct plan_turns){0};
}
