/*
 * A policy writes thousands of minibatches as tasks, most of them equal. This file finds stretches of the form
 * u u u ... u  and stores u once.
 *
 * Greedy, from the left. At position i, a period p can only begin if the task at i comes again at i + p. So each
 * position has its next equal one, and that chain's first CANDIDATES are tried. Prefix hashes (a polynomial modulo the
 * prime 2^61 - 1) compare [i, i + p) with [i + p, i + 2 p) in constant time. The period that saves most is verified
 * task by task, and the search goes on after it. A collision of hashes only loses the period.
 *
 *     a b c a b c a b c d d d d a e      i = 0: p = 3 repeats 3 times, saves 6
 *     [a b c] x3  [d] x4  [a e] x1       i = 9: p = 1 repeats 4 times, saves 3; then no period
 *
 * Cost. Each position costs at most CANDIDATES comparisons. Counting a period's repetitions takes one step each, and
 * the chosen stretch is the longest: linear altogether, on periodic, random and hostile sequences. 240 000 distinct
 * tasks take about 20 ms.
 *
 * There are no segments inside segments: schedules of many jobs repeat as a whole or not at all.
 */
#include "planner/walk/plan_fold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/try.h"

enum {
    CANDIDATES = 12,  /* most often that a period may contain its first task */
    SAVING_MIN = 3,   /* a repetition may split one segment into three: two records more */
};

static const uint64_t prime = ((uint64_t)1 << 61) - 1;
static const uint64_t base = 0x0b5ad4eceda1ce2au; /* any number below the prime */

struct plan_fold_folder {
    const struct plan_task *tasks; /* as given: unchanged from the reading end on */
    uint32_t count;
    uint32_t *next;    /* the next equal task; PLAN_NONE at the last */
    uint64_t *prefix;  /* count + 1: hash of [0, i) */
    uint64_t *power;   /* count + 1: base^i */
};

struct repetition {
    uint32_t period, repeats; /* repeats 1: none */
};

/* --- arithmetic modulo 2^61 - 1 ------------------------------------------------------------- */

static uint64_t reduce(uint64_t x)
{
    x = (x & prime) + (x >> 61);
    return x >= prime ? x - prime : x;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return reduce((uint64_t)(product & prime) + (uint64_t)(product >> 61));
}

static uint64_t range_hash(const struct plan_fold_folder *f, uint32_t first, uint32_t length)
{
    uint64_t shifted = multiply(f->prefix[first], f->power[length]);
    return reduce(f->prefix[first + length] + prime - shifted);
}

/* --- equal tasks ------------------------------------------------------------------------ */

static uint64_t task_hash(const struct plan_task *i)
{
    return random_u64((uint64_t)i->unit << 32 | i->device,
                      ((uint64_t)i->peer << 32 | i->layout) ^ (uint64_t)~i->gang << 16);
}

static bool task_equal(const struct plan_task *a, const struct plan_task *b)
{
    return a->unit == b->unit && a->device == b->device && a->gang == b->gang && a->peer == b->peer &&
           a->layout == b->layout;
}

static void hash_prefixes(struct plan_fold_folder *f)
{
    f->power[0] = 1;
    f->prefix[0] = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t symbol = reduce(task_hash(&f->tasks[i]));
        f->power[i + 1] = multiply(f->power[i], base);
        f->prefix[i + 1] = reduce(multiply(f->prefix[i], base) + symbol);
    }
}

/* From the end: the table has the last position of each distinct task. */
static enum status link_equal(struct plan_fold_folder *f, struct error *err)
{
    size_t capacity = 16;
    while (capacity < (size_t)f->count * 2) capacity *= 2;
    uint32_t *cells = alloc_zeroed(capacity, sizeof *cells); /* position + 1; 0: empty */
    if (!cells) return error_memory(err, "equal tasks", capacity * sizeof *cells);
    for (uint32_t i = f->count; i-- > 0;) {
        const struct plan_task *task = &f->tasks[i];
        size_t cell = (size_t)task_hash(task) & (capacity - 1);
        while (cells[cell] != 0 && !task_equal(&f->tasks[cells[cell] - 1], task))
            cell = (cell + 1) & (capacity - 1);
        f->next[i] = cells[cell] != 0 ? cells[cell] - 1 : PLAN_NONE;
        cells[cell] = i + 1;
    }
    free(cells);
    return STATUS_OK;
}

/* --- periods -------------------------------------------------------------------------------- */

static uint32_t count_repeats(const struct plan_fold_folder *f, uint32_t first, uint32_t period)
{
    uint64_t hash = range_hash(f, first, period);
    uint32_t repeats = 1;
    uint32_t at = first + period;
    while (period <= f->count - at && range_hash(f, at, period) == hash) {
        repeats++;
        at += period;
    }
    return repeats;
}

static uint32_t verify_repeats(const struct plan_fold_folder *f, uint32_t first, uint32_t period,
                               uint32_t repeats)
{
    uint32_t length = period * (repeats - 1); /* fits: it lies within count */
    for (uint32_t i = 0; i < length; i++)
        if (!task_equal(&f->tasks[first + i], &f->tasks[first + period + i]))
            return 1 + i / period;
    return repeats;
}

static uint32_t saving(struct repetition r)
{
    return (r.repeats - 1) * r.period;
}

static struct repetition best_repetition(const struct plan_fold_folder *f, uint32_t first)
{
    struct repetition best = {.period = 1, .repeats = 1};
    uint32_t later = f->next[first];
    for (int tried = 0; tried < CANDIDATES && later != PLAN_NONE; tried++) {
        struct repetition r = {.period = later - first};
        if (r.period > f->count - later) break; /* longer ones do not fit twice either */
        r.repeats = count_repeats(f, first, r.period);
        if (saving(r) > saving(best)) best = r;
        later = f->next[later];
    }
    if (saving(best) < SAVING_MIN) return (struct repetition){.period = 1, .repeats = 1};
    best.repeats = verify_repeats(f, first, best.period, best.repeats);
    return best;
}

/* --- segments ------------------------------------------------------------------------------- */

struct writer {
    struct plan_task *tasks; /* the same array, filled from the front */
    uint32_t used;
    struct plan_segment *segments;
    size_t segment_count, segment_capacity;
};

/* The reading end is never before the writing end, so moving down is safe. */
static enum status write_segment(struct writer *w, uint32_t first, struct repetition r,
                                 struct error *err)
{
    if (r.period == 0) return STATUS_OK;
    TRY(array_reserve(&w->segments, &w->segment_capacity, w->segment_count,
                                       sizeof *w->segments, PLAN_SEGMENTS_MAX, "segments", err));
    assert(w->used <= first);
    memmove(w->tasks + w->used, w->tasks + first, r.period * sizeof *w->tasks);
    w->segments[w->segment_count++] = (struct plan_segment){
        .first_task = w->used,
        .task_count = r.period,
        .repeat_count = r.repeats,
    };
    w->used += r.period;
    return STATUS_OK;
}

static enum status write_all(const struct plan_fold_folder *f, struct writer *w, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t plain = 0; /* [plain, at) repeats nothing */
    for (uint32_t at = 0; at < f->count && status == STATUS_OK;) {
        struct repetition r = {.period = 1, .repeats = 1};
        if (w->segment_count + 3 < PLAN_SEGMENTS_MAX) r = best_repetition(f, at);
        if (r.repeats == 1) {
            at++;
            continue;
        }
        status = write_segment(w, plain, (struct repetition){at - plain, 1}, err);
        if (status == STATUS_OK) status = write_segment(w, at, r, err);
        at += r.period * r.repeats;
        plain = at;
    }
    if (status == STATUS_OK)
        status = write_segment(w, plain, (struct repetition){f->count - plain, 1}, err);
    return status;
}

/* --- public --------------------------------------------------------------------------------- */

enum status plan_fold(struct plan_task *tasks, uint32_t count, struct plan_folded *out,
                      struct error *err)
{
    struct plan_fold_folder f = {.tasks = tasks, .count = count};
    struct writer w = {.tasks = tasks};
    enum status status;
    size_t places = (size_t)count + 1;
    f.next = alloc_zeroed(places, sizeof *f.next);
    f.prefix = alloc_zeroed(places, sizeof *f.prefix);
    f.power = alloc_zeroed(places, sizeof *f.power);
    if (!f.next || !f.prefix || !f.power) {
        status = error_memory(err, "folding the plan", places * 20);
        goto out;
    }
    hash_prefixes(&f);
    status = link_equal(&f, err);
    if (status != STATUS_OK) goto out;
    status = write_all(&f, &w, err);
    if (status != STATUS_OK) goto out;
    *out = (struct plan_folded){
        .task_count = w.used,
        .segments = w.segments,
        .segment_count = (uint32_t)w.segment_count,
    };
    w.segments = NULL;
out:
    free(w.segments);
    free(f.power);
    free(f.prefix);
    free(f.next);
    return status;
}

/* --- repeats -------------------------------------------------------------------------------- */

struct joiner {
    const struct plan_task *given;
    const struct plan_repeat *repeats;
    struct plan_task *tasks; /* the front is filled */
    struct plan_folded folded;       /* so far */
    size_t capacity;
    struct error *err;
};

static enum status join_segment(struct joiner *j, uint32_t first, uint32_t count, uint64_t repeats)
{
    while (repeats > 0) {
        uint32_t some = repeats < UINT32_MAX ? (uint32_t)repeats : UINT32_MAX;
        TRY(array_reserve(&j->folded.segments, &j->capacity, j->folded.segment_count,
                          sizeof *j->folded.segments, PLAN_SEGMENTS_MAX, "segments", j->err));
        j->folded.segments[j->folded.segment_count++] = (struct plan_segment){first, count, some};
        repeats -= some;
    }
    return STATUS_OK;
}

/* Appends a separately folded piece, with the repetitions that its repeats add to its segments; takes both over. */
static enum status join_folded(struct joiner *j, const struct plan_task *tasks, struct plan_folded *piece,
                               const uint64_t *more)
{
    uint32_t front = j->folded.task_count;
    enum status status = STATUS_OK;
    memcpy(j->tasks + front, tasks, piece->task_count * sizeof *tasks);
    j->folded.task_count += piece->task_count;
    for (uint32_t s = 0; s < piece->segment_count && !status; s++) {
        const struct plan_segment *segment = &piece->segments[s];
        status = join_segment(j, front + segment->first_task, segment->task_count, segment->repeat_count + more[s]);
    }
    return status;
}

static enum status join_repeat(struct joiner *j, const struct plan_repeat *repeat)
{
    uint32_t front = j->folded.task_count;
    memcpy(j->tasks + front, j->given + repeat->first, repeat->count * sizeof *j->given);
    j->folded.task_count += repeat->count;
    return join_segment(j, front, repeat->count, repeat->times + 1);
}

/* Lengthens segments by whole periods of the repeats inside them. more: zeroed, per segment of the piece from `begin`
 * on; outside: the repeats that lengthen none; returns their number. */
static uint32_t lengthen(const struct joiner *j, uint32_t begin, const struct plan_folded *piece, uint32_t first_repeat,
                         uint32_t end_repeat, uint64_t *more, bool *outside)
{
    uint32_t at = begin, s = 0, count = 0;
    for (uint32_t r = first_repeat; r < end_repeat; r++) {
        const struct plan_repeat *repeat = &j->repeats[r];
        while (at + piece->segments[s].task_count * piece->segments[s].repeat_count <= repeat->first) {
            at += piece->segments[s].task_count * piece->segments[s].repeat_count;
            s++;
        }
        uint32_t period = piece->segments[s].task_count, end = at + period * piece->segments[s].repeat_count;
        outside[r] = repeat->first + repeat->count > end || repeat->count % period != 0;
        if (outside[r]) count++;
        else more[s] += repeat->times * (repeat->count / period);
    }
    return count;
}

static enum status join_piece(struct joiner *j, uint32_t begin, uint32_t end, uint32_t first_repeat,
                              uint32_t end_repeat, bool *outside);

/* Divides the piece into the repeats outside of its segments, and the tasks between them. */
static enum status join_parts(struct joiner *j, uint32_t begin, uint32_t end, uint32_t first_repeat,
                              uint32_t end_repeat, bool *outside)
{
    enum status status = STATUS_OK;
    for (uint32_t r = first_repeat; r < end_repeat && !status; r++) {
        if (!outside[r]) continue;
        status = join_piece(j, begin, j->repeats[r].first, first_repeat, r, outside);
        if (!status) status = join_repeat(j, &j->repeats[r]);
        begin = j->repeats[r].first + j->repeats[r].count;
        first_repeat = r + 1;
    }
    return status ? status : join_piece(j, begin, end, first_repeat, end_repeat, outside);
}

/* Folds tasks [begin, end) in their original order, with the repeats among them. */
static enum status join_piece(struct joiner *j, uint32_t begin, uint32_t end, uint32_t first_repeat,
                              uint32_t end_repeat, bool *outside)
{
    struct plan_folded piece = {0};
    uint64_t *more = NULL;
    if (begin == end) return STATUS_OK;
    struct plan_task *tasks = alloc_zeroed(end - begin, sizeof *tasks);
    if (!tasks) return error_memory(j->err, "folding the plan", (end - begin) * sizeof *tasks);
    memcpy(tasks, j->given + begin, (end - begin) * sizeof *tasks);
    enum status status = plan_fold(tasks, end - begin, &piece, j->err);
    if (!status) more = alloc_zeroed(piece.segment_count, sizeof *more);
    if (!status && !more) status = error_memory(j->err, "folding the plan", piece.segment_count * sizeof *more);
    bool parts = !status && lengthen(j, begin, &piece, first_repeat, end_repeat, more, outside) > 0;
    if (!status && !parts) status = join_folded(j, tasks, &piece, more);
    free(tasks);
    free(more);
    free(piece.segments);
    return status || !parts ? status : join_parts(j, begin, end, first_repeat, end_repeat, outside);
}

enum status plan_fold_repeats(struct plan_task *tasks, uint32_t count, const struct plan_repeat *repeats,
                              uint32_t repeat_count, struct plan_folded *out, struct error *err)
{
    if (repeat_count == 0) return plan_fold(tasks, count, out, err);
    size_t bytes = count * sizeof *tasks;
    struct joiner j = {.repeats = repeats, .tasks = tasks, .err = err};
    struct plan_task *given = alloc_zeroed(count, sizeof *given);
    bool *outside = alloc_zeroed(repeat_count, sizeof *outside);
    enum status status = given && outside ? STATUS_OK : error_memory(err, "folding the plan", bytes);
    if (!status) {
        memcpy(given, tasks, bytes);
        j.given = given;
        status = join_piece(&j, 0, count, 0, repeat_count, outside);
    }
    free(given);
    free(outside);
    if (status) free(j.folded.segments);
    else *out = j.folded;
    return status;
}
