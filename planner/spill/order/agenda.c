/* Heaps of jobs, each job in at most one, linked by index. */
#include "planner/spill/order/agenda.h"

#include <assert.h>
#include <stdbool.h>

#include "base/try.h"

/* --- heaps ----------------------------------------------------------------------------------- */

static bool is_before(const struct agenda *a, uint32_t left, uint32_t right)
{
    double x = a->jobs[left].key, y = a->jobs[right].key;
    return x < y || (x <= y && left < right);
}

static uint32_t meld(struct agenda *a, uint32_t left, uint32_t right)
{
    if (left == AGENDA_NONE) return right;
    if (right == AGENDA_NONE) return left;
    uint32_t above = is_before(a, left, right) ? left : right, below = above == left ? right : left;
    a->jobs[below].sibling = a->jobs[above].child;
    a->jobs[above].child = below;
    return above;
}

static uint32_t push(struct agenda *a, uint32_t root, uint32_t job, double key)
{
    a->jobs[job] = (struct agenda_job){key, AGENDA_NONE, AGENDA_NONE};
    return meld(a, root, job);
}

/* Returns the heap without its root: melds children in pairs from the first, then the pairs from the last. */
static uint32_t pop(struct agenda *a, uint32_t root)
{
    uint32_t pairs = AGENDA_NONE, heap = AGENDA_NONE;
    for (uint32_t left = a->jobs[root].child; left != AGENDA_NONE;) {
        uint32_t right = a->jobs[left].sibling;
        uint32_t rest = right == AGENDA_NONE ? AGENDA_NONE : a->jobs[right].sibling;
        uint32_t pair = meld(a, left, right);
        a->jobs[pair].sibling = pairs;
        pairs = pair;
        left = rest;
    }
    while (pairs != AGENDA_NONE) {
        uint32_t rest = a->jobs[pairs].sibling;
        heap = meld(a, heap, pairs);
        pairs = rest;
    }
    return heap;
}

/* --- groups ---------------------------------------------------------------------------------- */

/* Finds the group's next device and time after a change. */
static void decide(struct agenda *a, struct agenda_group *group)
{
    if (group->next != AGENDA_NONE) tournament_set(&a->next_s, group->next, HUGE_VAL);
    group->next = AGENDA_NONE;
    if (group->ranked == AGENDA_NONE && group->waiting == AGENDA_NONE) return;
    double ready = group->ranked == AGENDA_NONE ? HUGE_VAL : group->woken_s;
    if (group->waiting != AGENDA_NONE) ready = min_s(ready, a->jobs[group->waiting].key);
    double at = max_s(tournament_least(&group->free_s), ready);
    group->next = group->devices[tournament_first(&group->free_s, at)];
    tournament_set(&a->next_s, group->next, at);
}

static enum status create_groups(struct arena *arena, struct agenda *a, uint32_t devices, uint32_t groups,
                                 struct error *err)
{
    for (uint32_t d = 0; d < devices; d++) a->place_in_group[d] = a->groups[a->group_of[d]].device_count++;
    for (uint32_t g = 0; g < groups; g++) {
        struct agenda_group *group = &a->groups[g];
        TRY(ARENA_NEW(arena, group->device_count, group->devices, err));
        TRY(tournament_create(arena, group->device_count, 0, &group->free_s, err));
        group->waiting = group->ranked = group->next = AGENDA_NONE;
    }
    for (uint32_t d = 0; d < devices; d++) a->groups[a->group_of[d]].devices[a->place_in_group[d]] = d;
    return STATUS_OK;
}

/* --- public ---------------------------------------------------------------------------------- */

enum status agenda_create(struct arena *arena, uint32_t job_count, uint32_t device_count, uint32_t *group_of,
                          uint32_t group_count, struct agenda *out, struct error *err)
{
    struct agenda a = {.group_of = group_of, .group_count = group_count};
    TRY(ARENA_NEW(arena, job_count, a.jobs, err));
    TRY(ARENA_NEW(arena, group_count, a.groups, err));
    TRY(ARENA_NEW(arena, device_count, a.place_in_group, err));
    TRY(tournament_create(arena, device_count, HUGE_VAL, &a.next_s, err));
    TRY(create_groups(arena, &a, device_count, group_count, err));
    *out = a;
    return STATUS_OK;
}

void agenda_clear(struct agenda *agenda)
{
    for (uint32_t g = 0; g < agenda->group_count; g++) {
        struct agenda_group *group = &agenda->groups[g];
        group->waiting = group->ranked = AGENDA_NONE;
        decide(agenda, group);
    }
}

void agenda_add(struct agenda *agenda, uint32_t job, uint32_t group, double ready_s)
{
    struct agenda_group *g = &agenda->groups[group];
    g->waiting = push(agenda, g->waiting, job, ready_s);
    decide(agenda, g);
}

void agenda_set_free(struct agenda *agenda, uint32_t device, double free_s)
{
    struct agenda_group *group = &agenda->groups[agenda->group_of[device]];
    tournament_set(&group->free_s, agenda->place_in_group[device], free_s);
    decide(agenda, group);
}

double agenda_free(const struct agenda *agenda, uint32_t device)
{
    return tournament_get(&agenda->groups[agenda->group_of[device]].free_s, agenda->place_in_group[device]);
}

uint32_t agenda_next(const struct agenda *agenda, double *at)
{
    *at = tournament_least(&agenda->next_s);
    return *at < HUGE_VAL ? tournament_first(&agenda->next_s, *at) : AGENDA_NONE;
}

uint32_t agenda_wake(struct agenda *agenda, uint32_t group, double at)
{
    struct agenda_group *g = &agenda->groups[group];
    uint32_t job = g->waiting;
    g->woken_s = at;
    if (job == AGENDA_NONE || agenda->jobs[job].key > at) return AGENDA_NONE;
    g->waiting = pop(agenda, job);
    return job;
}

void agenda_rank(struct agenda *agenda, uint32_t job, uint32_t group, double rank)
{
    struct agenda_group *g = &agenda->groups[group];
    g->ranked = push(agenda, g->ranked, job, -rank);
}

uint32_t agenda_pop(struct agenda *agenda, uint32_t group)
{
    struct agenda_group *g = &agenda->groups[group];
    uint32_t job = g->ranked;
    assert(job != AGENDA_NONE);
    g->ranked = pop(agenda, job);
    decide(agenda, g);
    return job;
}

double agenda_highest(const struct agenda *agenda, uint32_t group)
{
    uint32_t job = agenda->groups[group].ranked;
    return job == AGENDA_NONE ? -HUGE_VAL : -agenda->jobs[job].key;
}
