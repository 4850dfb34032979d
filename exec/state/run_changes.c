/*
 * External sorting: a full buffer is sorted and appended to the spool as a run. At the end the runs are merged, each
 * through its part of the buffer:
 *
 *     file    [ run 0: sorted ][ run 1: sorted ][ run 2 ]
 *     buffer  [ of run 0 | of run 1 | of run 2 ]        the least of the three heads comes next
 *
 * With one run, the usual case, nothing is written. Source: Knuth, The Art of Computer Programming, vol. 3, sec. 5.4.
 */
#include "exec/state/run_changes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/files/spool.h"

/* Remaining bytes in the file, entries in the buffer. */
struct sorted_run {
    uint64_t at, end;   /* bytes of the spool */
    size_t first, last; /* entries of the buffer */
};

struct run_changes {
    struct run_change *buffer;
    size_t count, capacity;
    uint64_t added;
    struct spool *spool;
    bool reading;
    struct sorted_run *runs;
    size_t run_count;
    size_t *heap; /* runs that have not ended, the least head first */
    size_t heap_count, part;
};

static int compare(const void *left, const void *right)
{
    const struct run_change *const a = left, *const b = right;
    if (a->time_s < b->time_s || a->time_s > b->time_s) return a->time_s < b->time_s ? -1 : 1;
    if ((a->bytes < 0) != (b->bytes < 0)) return a->bytes < 0 ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

enum status run_changes_create(size_t capacity, struct run_changes **out, struct error *err)
{
    struct run_changes *changes = alloc_zeroed(1, sizeof *changes);
    if (!changes) return error_memory(err, "the record of a run", sizeof *changes);
    changes->capacity = capacity > 0 ? capacity : 1;
    changes->buffer = alloc_zeroed(changes->capacity, sizeof *changes->buffer);
    enum status status = spool_create(NULL, &changes->spool, err);
    if (status == STATUS_OK && !changes->buffer)
        status = error_memory(err, "the record of a run", changes->capacity * sizeof *changes->buffer);
    if (status == STATUS_OK) *out = changes;
    else run_changes_destroy(changes);
    return status;
}

void run_changes_destroy(struct run_changes *changes)
{
    if (!changes) return;
    spool_destroy(changes->spool);
    free(changes->buffer);
    free(changes->runs);
    free(changes->heap);
    free(changes);
}

static void write_run(struct run_changes *changes)
{
    qsort(changes->buffer, changes->count, sizeof *changes->buffer, compare);
    spool_write(changes->spool, changes->buffer, changes->count * sizeof *changes->buffer);
    changes->count = 0;
}

void run_changes_add(struct run_changes *changes, double time_s, uint32_t place, int64_t bytes)
{
    assert(!changes->reading);
    if (changes->count == changes->capacity) write_run(changes);
    changes->buffer[changes->count++] =
        (struct run_change){.time_s = time_s, .order = changes->added++, .bytes = bytes, .place = place};
}

/* --- merging -------------------------------------------------------------------------------- */

/* Fills the run's empty part of the buffer, unless it has ended. */
static enum status refill(struct run_changes *changes, size_t r, struct error *err)
{
    struct sorted_run *const run = &changes->runs[r];
    if (run->first < run->last || run->at == run->end) return STATUS_OK;
    uint64_t left = (run->end - run->at) / sizeof *changes->buffer;
    size_t part = left < changes->part ? (size_t)left : changes->part;
    run->first = r * changes->part;
    run->last = run->first + part;
    const uint64_t at = run->at;
    run->at += part * sizeof *changes->buffer;
    return spool_read(changes->spool, at, changes->buffer + run->first, part * sizeof *changes->buffer, err);
}

static bool before(const struct run_changes *changes, size_t a, size_t b)
{
    return compare(&changes->buffer[changes->runs[a].first], &changes->buffer[changes->runs[b].first]) < 0;
}

static void sink(struct run_changes *changes, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < changes->heap_count; child++)
            if (before(changes, changes->heap[child], changes->heap[least])) least = child;
        if (least == at) return;
        const size_t r = changes->heap[at];
        changes->heap[at] = changes->heap[least];
        changes->heap[least] = r;
        at = least;
    }
}

static enum status begin_reading(struct run_changes *changes, struct error *err)
{
    changes->reading = true;
    changes->run_count = spool_length(changes->spool) == 0
                           ? 1
                           : (size_t)((changes->added + changes->capacity - 1) / changes->capacity);
    changes->runs = alloc_zeroed(changes->run_count, sizeof *changes->runs);
    changes->heap = alloc_zeroed(changes->run_count, sizeof *changes->heap);
    if (!changes->runs || !changes->heap)
        return error_memory(err, "the record of a run", changes->run_count * sizeof *changes->runs);
    if (changes->run_count == 1) {
        qsort(changes->buffer, changes->count, sizeof *changes->buffer, compare);
        changes->runs[0].last = changes->count;
    } else {
        write_run(changes);
    }
    changes->part = changes->capacity / changes->run_count;
    if (changes->part == 0)
        return error_set(err, STATUS_LIMIT, "too many changes of memory in use in one run");
    enum status status = STATUS_OK;
    for (size_t r = 0; r < changes->run_count && status == STATUS_OK; r++) {
        const uint64_t length = spool_length(changes->spool), bytes = changes->capacity * sizeof *changes->buffer;
        if (changes->run_count > 1) {
            changes->runs[r].at = r * bytes;
            changes->runs[r].end = (r + 1) * bytes < length ? (r + 1) * bytes : length;
        }
        status = refill(changes, r, err);
        if (changes->runs[r].first < changes->runs[r].last) changes->heap[changes->heap_count++] = r;
    }
    for (size_t i = changes->heap_count; status == STATUS_OK && i-- > 0;) sink(changes, i);
    return status;
}

enum status run_changes_next(struct run_changes *changes, struct run_change *out, bool *more, struct error *err)
{
    *more = false;
    enum status status = changes->reading ? STATUS_OK : begin_reading(changes, err);
    if (status != STATUS_OK || changes->heap_count == 0) return status;
    const size_t r = changes->heap[0];
    struct sorted_run *const run = &changes->runs[r];
    *out = changes->buffer[run->first++];
    *more = true;
    status = refill(changes, r, err);
    if (run->first == run->last) changes->heap[0] = changes->heap[--changes->heap_count];
    if (changes->heap_count > 0) sink(changes, 0);
    return status;
}
