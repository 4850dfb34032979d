/*
 * A job under way has a row of its last operation on each stream. A stream's first operation waits for the job's first
 * OPEN; the first CLOSE waits for the whole row, which is then free.
 *
 * Cost: one comparison and store per operation. A row has an entry per stream of the plan.
 */
#include "planner/walk/plan_walk_range.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct range_users {
    const struct plan *plan;
    uint32_t stream_count;
    uint64_t *opened;     /* per job: time of its first OPEN; 0: none yet */
    uint64_t **rows;      /* per job: NULL while it is not under way */
    uint64_t **spare;     /* (job count): free rows */
    uint32_t spare_count;
    uint64_t *first;      /* a row with one entry, for first operations */
    uint32_t first_stream; /* ... on this stream */
    uint32_t *file_stream; /* per job: stream of its OPENs */
};

struct range_users *range_users_create(const struct plan *plan)
{
    struct range_users *users = alloc_zeroed(1, sizeof *users);
    if (!users) return NULL;
    users->plan = plan;
    users->stream_count = plan_stream_count(plan);
    users->opened = alloc_zeroed(plan->jobs.count, sizeof *users->opened);
    users->rows = alloc_zeroed(plan->jobs.count, sizeof *users->rows);
    users->spare = alloc_zeroed(plan->jobs.count, sizeof *users->spare);
    users->first = alloc_zeroed(users->stream_count, sizeof *users->first);
    users->file_stream = alloc_zeroed(plan->jobs.count, sizeof *users->file_stream);
    if (users->opened && users->rows && users->spare && users->first && users->file_stream) return users;
    range_users_destroy(users);
    return NULL;
}

void range_users_destroy(struct range_users *users)
{
    if (!users) return;
    for (uint32_t j = 0; users->rows && j < users->plan->jobs.count; j++) free(users->rows[j]);
    for (uint32_t i = 0; users->spare && i < users->spare_count; i++) free(users->spare[i]);
    free(users->opened);
    free(users->rows);
    free(users->spare);
    free(users->first);
    free(users->file_stream);
    free(users);
}

static void release_row(struct range_users *users, uint32_t job)
{
    users->spare[users->spare_count++] = users->rows[job];
    users->rows[job] = NULL;
}

void range_users_clear(struct range_users *users)
{
    for (uint32_t j = 0; j < users->plan->jobs.count; j++) {
        users->opened[j] = 0;
        if (users->rows[j]) release_row(users, j);
    }
}

static bool allocate_row(struct range_users *users, uint32_t job)
{
    if (users->spare_count > 0) {
        users->rows[job] = users->spare[--users->spare_count];
        memset(users->rows[job], 0, users->stream_count * sizeof *users->rows[job]);
        return true;
    }
    users->rows[job] = alloc_zeroed(users->stream_count, sizeof *users->rows[job]);
    return users->rows[job] != NULL;
}

uint32_t range_users_note(struct range_users *users, const struct plan_unit *unit, uint32_t stream, uint64_t time,
                          const uint64_t **out)
{
    uint32_t job = unit->job;
    if (!plan_has_range(users->plan, job)) return 0;
    if (unit->pass == PLAN_OPEN) {
        if (users->opened[job] > 0) return 0;
        users->opened[job] = time;
        users->file_stream[job] = stream;
        return allocate_row(users, job) ? 0 : UINT32_MAX;
    }
    uint64_t *row = users->rows[job];
    if (!row) return 0; /* later CLOSEs of the job, on the stream of the first */
    if (unit->pass == PLAN_CLOSE) {
        release_row(users, job);
        *out = row;
        return users->stream_count;
    }
    bool first = row[stream] == 0;
    row[stream] = time;
    if (!first) return 0;
    users->first[users->first_stream] = 0;
    users->first_stream = users->file_stream[job];
    users->first[users->first_stream] = users->opened[job];
    *out = users->first;
    return users->first_stream + 1;
}
