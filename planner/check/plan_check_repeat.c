/*
 * Repetitions of a segment that provably pass like earlier ones are left out of the walk.
 *
 *     repetitions   0   1   2   3   4                                   n-2 n-1
 *     walked        .   .   a   b   c   - - - - - left out - - - - - -       .
 *
 * a, b and c are what the walk knows after three consecutive repetitions of all that the segment touches: the shape
 * (live buffers with slots and contents, positions within a minibatch), and the numbers (versions, minibatches and
 * passes done).
 *
 * This is proven as follows. The shapes are equal, and each number grows by the same amount from a to b as from b to c.
 * A repetition's checks compare found versions with versions that counts of minibatches and passes mean. These are the
 * same sums in every repetition that has whole minibatches where they depend on them (grows_evenly()). A comparison
 * that held twice between evenly growing numbers holds always. All else that a check looks at is the shape, or fixed
 * within a segment: units, slots, and orderings, which must not reach back before it. The last repetition is always
 * walked, and no count passes its limit before it, so a plan with too many repetitions still fails.
 *
 * If repetitions do not go like this, they are walked, and it is tried again after 16, 128, ...
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/try.h"
#include "planner/check/plan_check_walk.h"

enum {
    REPEATS_MIN = 16, /* below, there is little to leave out */
    FIRST_TRY = 2,    /* repetitions walked before */
    LATER_TRIES = 8,  /* factor from one try to the next */
    TOUCHED_MAX = 1 << 24 /* of a repetition; what touches more is walked */
};

/* --- lists ------------------------------------------------------------------------------------ */

static enum status put(struct check_walk *r, struct check_words *words, uint64_t word)
{
    if (words->count == words->capacity)
        TRY(array_reserve(&words->words, &words->capacity, words->count, sizeof *words->words, PLAN_ACCESSES_MAX,
                          "the accesses of a segment", r->c->err));
    words->words[words->count++] = word;
    return STATUS_OK;
}

static void sort_once(struct check_words *words)
{
    size_t kept = 0;
    if (words->count == 0) return;
    qsort(words->words, words->count, sizeof *words->words, order_u64);
    for (size_t i = 0; i < words->count; i++)
        if (i == 0 || words->words[i] != words->words[kept - 1]) words->words[kept++] = words->words[i];
    words->count = kept;
}

/* --- touched buffers -------------------------------------------------------------------------- */

enum { OF_CELL, OF_HOST };

enum status check_repeat_note(struct check_walk *r, uint64_t index, bool lives)
{
    if (!r->repeats.noting) return STATUS_OK;
    if (r->repeats.touched.count == TOUCHED_MAX) {
        r->repeats.noting = false;
        r->repeats.next_try = UINT32_MAX;
        return STATUS_OK;
    }
    return put(r, &r->repeats.touched, index << 1 | (lives ? OF_CELL : OF_HOST));
}

/* NULL: it is not live. */
static struct buffer_contents *contents_of(const struct check_walk *r, uint64_t touched)
{
    if ((touched & 1) == OF_HOST) return &r->hosts[touched >> 1];
    uint32_t live = r->live_at[touched >> 1].live;
    return live > 0 ? &r->lives[live - 1].contents : NULL;
}

static enum status find_jobs(struct check_walk *r, const struct plan_segment *segment)
{
    struct check_repeats *repeats = &r->repeats;
    repeats->jobs.count = 0;
    repeats->farthest = 0;
    for (uint32_t i = 0; i < segment->task_count; i++) {
        const struct plan_unit *unit = &r->plan->units[r->plan->tasks[segment->first_task + i].unit];
        TRY(put(r, &repeats->jobs, unit->job));
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
            const struct plan_op *op = &r->plan->ops[o];
            for (uint32_t a = op->first_after; a < op->first_after + op->after_count; a++)
                if (r->plan->afters[a].tasks > repeats->farthest) repeats->farthest = r->plan->afters[a].tasks;
        }
    }
    sort_once(&repeats->jobs);
    return STATUS_OK;
}

/* --- looks ------------------------------------------------------------------------------------ */

/* Puts a number into the look, or reads it from there. */
typedef enum status (*number_use)(struct check_walk *r, uint64_t *number);

static enum status note_number(struct check_walk *r, uint64_t *number)
{
    return put(r, &r->repeats.numbers[r->repeats.look], *number);
}

/* Advances a number by the skipped repetitions. */
static enum status move_number(struct check_walk *r, uint64_t *number)
{
    struct check_repeats *repeats = &r->repeats;
    size_t at = repeats->moved++;
    *number += repeats->left_out * (repeats->numbers[2].words[at] - repeats->numbers[1].words[at]);
    return STATUS_OK;
}

static enum status use_parallel_numbers(struct check_walk *r, uint32_t job, number_use use)
{
    static_assert(sizeof(struct check_parallel_progress) == 11 * sizeof(uint64_t),
                  "all are used, here and in turn_grows_evenly()");
    uint32_t first = r->c->jobs[job].first_shard;
    for (uint32_t i = r->first_turn[first]; i < r->first_turn[first + r->c->jobs[job].shard_count]; i++) {
        struct check_parallel_progress *progress = &r->parallel[i];
        TRY(use(r, &progress->forward));
        TRY(use(r, &progress->backward));
        TRY(use(r, &progress->weight));
        TRY(use(r, &progress->updates));
        TRY(use(r, &progress->gathered));
        TRY(use(r, &progress->reduced));
        TRY(use(r, &progress->evaluated));
        TRY(use(r, &progress->normed));
        TRY(use(r, &progress->batches));
        TRY(use(r, &progress->refreshed));
        TRY(use(r, &progress->kept));
    }
    return STATUS_OK;
}

/* Visits all numbers that the segment may change, in a fixed order. */
static enum status use_numbers(struct check_walk *r, number_use use)
{
    const struct check_repeats *repeats = &r->repeats;
    for (size_t j = 0; j < repeats->jobs.count; j++) {
        uint32_t job = (uint32_t)repeats->jobs.words[j];
        TRY(use(r, &r->jobs[job].minibatch));
        TRY(use(r, &r->jobs[job].held_out));
        if (check_is_parallel(r->c, job)) TRY(use_parallel_numbers(r, job, use));
    }
    for (size_t i = 0; i < repeats->touched.count; i++) {
        const struct buffer_contents *contents = contents_of(r, repeats->touched.words[i]);
        for (uint32_t e = 0; contents && e < contents->count; e++) TRY(use(r, &contents->extents[e].version));
    }
    return STATUS_OK;
}

static enum status note_job(struct check_walk *r, uint32_t job, struct check_words *shape)
{
    const struct check_job_progress *progress = &r->jobs[job];
    const struct check_job_facts *facts = &r->c->jobs[job];
    TRY(put(r, shape, progress->position << 1 | progress->batch_made));
    TRY(put(r, shape, (uint64_t)progress->opened << 32 | progress->closed));
    if (r->plan->reservation_count > 0) TRY(put(r, shape, r->reservation_states[r->plan->job_reservation[job]]));
    for (uint32_t s = facts->first_shard; s < facts->first_shard + facts->shard_count; s++)
        TRY(put(r, shape, r->moved[s]));
    return STATUS_OK;
}

static enum status note_contents(struct check_walk *r, uint64_t touched, struct check_words *shape)
{
    const struct buffer_contents *contents = contents_of(r, touched);
    if (!contents) return put(r, shape, UINT64_MAX);
    if ((touched & 1) == OF_CELL) TRY(put(r, shape, r->lives[r->live_at[touched >> 1].live - 1].slot));
    TRY(put(r, shape, contents->count));
    for (uint32_t e = 0; e < contents->count; e++) {
        const struct buffer_extent *extent = &contents->extents[e];
        TRY(put(r, shape, extent->first));
        TRY(put(r, shape, extent->end));
        TRY(put(r, shape, extent->thing_offset));
        TRY(put(r, shape, extent->thing));
    }
    return STATUS_OK;
}

static enum status look(struct check_walk *r, uint32_t number)
{
    struct check_repeats *repeats = &r->repeats;
    struct check_words *shape = &repeats->shapes[number];
    shape->count = repeats->numbers[number].count = 0;
    repeats->look = number;
    for (size_t j = 0; j < repeats->jobs.count; j++) TRY(note_job(r, (uint32_t)repeats->jobs.words[j], shape));
    for (size_t i = 0; i < repeats->touched.count; i++) TRY(note_contents(r, repeats->touched.words[i], shape));
    return use_numbers(r, note_number);
}

static bool words_equal(const struct check_words *a, const struct check_words *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->words, b->words, a->count * sizeof *a->words) == 0);
}

static bool looks_agree(const struct check_repeats *repeats)
{
    const struct check_words *numbers = repeats->numbers;
    if (!words_equal(&repeats->shapes[0], &repeats->shapes[1]) ||
        !words_equal(&repeats->shapes[1], &repeats->shapes[2]) || numbers[0].count != numbers[1].count ||
        numbers[1].count != numbers[2].count)
        return false;
    for (size_t i = 0; i < numbers[0].count; i++)
        if (numbers[1].words[i] - numbers[0].words[i] != numbers[2].words[i] - numbers[1].words[i]) return false;
    return true;
}

/* --- growing evenly --------------------------------------------------------------------------- */

/* A number of use_numbers(): growth per repetition, and the value at look 0. */
struct growth {
    uint64_t by, from;
};

static struct growth next_growth(const struct check_repeats *repeats, size_t *at)
{
    const struct check_words *numbers = repeats->numbers;
    struct growth growth = {numbers[2].words[*at] - numbers[1].words[*at], numbers[0].words[*at]};
    ++*at;
    return growth;
}

/* A parallel job's shard, or a replica in turn, needs whole minibatches per repetition, so that versions counted by
 * them (check_parallel_versions()) grow evenly from the first counting update on. */
static bool turn_grows_evenly(const struct job *job, uint32_t chunk, uint32_t turn, uint64_t minibatches,
                              const struct check_repeats *repeats, size_t *at)
{
    const struct parallel *p = &job->parallel;
    uint32_t stage = parallel_place(p, chunk).stage;
    uint64_t m = parallel_microbatches_in_turn(job, stage, turn) * parallel_slices(p);
    uint64_t stale = parallel_chunk_staleness(job, chunk);
    bool even = m > 0;
    for (uint32_t i = 0; i < 3; i++) { /* forward, backward, weight */
        struct growth passes = next_growth(repeats, at);
        even = even && passes.by % m == 0 && (passes.by == 0 || passes.from / m >= stale);
    }
    struct growth updates = next_growth(repeats, at), gathered = next_growth(repeats, at);
    struct growth reduced = next_growth(repeats, at), evaluated = next_growth(repeats, at);
    even = even && (m == 0 || evaluated.by % m == 0);
    struct growth normed = next_growth(repeats, at), batches = next_growth(repeats, at);
    (void)normed; /* follows the updates */
    /* a replica reads its own minibatches */
    const uint64_t turns = parallel_has_own_pace(p) ? parallel_turns(p, stage) : 1;
    even = even && batches.by * turns == (batches.from > 0 ? minibatches : 0);
    struct growth refreshed = next_growth(repeats, at), kept = next_growth(repeats, at);
    (void)kept; /* follows the evaluations */
    even = even && refreshed.by == (refreshed.from > 0 ? minibatches : 0);
    (void)gathered; /* is compared at the end only */
    bool reduces_evenly = parallel_turns(p, stage) == 1 ? reduced.by % parallel_slices(p) == 0
                                                        : even && reduced.by % m == 0;
    return even && reduces_evenly && (parallel_has_own_pace(p) || updates.by == minibatches);
}

static bool job_grows_evenly(struct check_walk *r, uint32_t job, uint64_t *times, size_t *at)
{
    const struct check_repeats *repeats = &r->repeats;
    const struct job *about = &r->plan->jobs.jobs[job];
    uint64_t by = next_growth(repeats, at).by, done = r->jobs[job].minibatch;
    uint64_t left = done < about->minibatches ? about->minibatches - done : 0;
    bool even = true;
    ++*at; /* held-out minibatches are counted as they are */
    if (by > 0 && left / by < *times + 1) *times = left / by > 0 ? left / by - 1 : 0;
    even = by == 0 || about->evaluation.every == 0 || by % about->evaluation.every == 0;
    even = even && (by == 0 || about->parallel.flush == 0 || by % about->parallel.flush == 0);
    if (!check_is_parallel(r->c, job)) return even;
    uint32_t first = r->c->jobs[job].first_shard;
    for (uint32_t s = 0; s < r->c->jobs[job].shard_count; s++)
        for (uint32_t t = 0; t < r->first_turn[first + s + 1] - r->first_turn[first + s]; t++)
            if (!turn_grows_evenly(about, s, t, by, repeats, at)) even = false;
    return even;
}

/* Returns whether all numbers grow evenly. Lowers *times so that no job passes its limit. */
static bool grows_evenly(struct check_walk *r, uint64_t *times)
{
    size_t at = 0;
    bool even = true;
    for (size_t j = 0; j < r->repeats.jobs.count; j++)
        if (!job_grows_evenly(r, (uint32_t)r->repeats.jobs.words[j], times, &at)) even = false;
    return even;
}

/* --- public ----------------------------------------------------------------------------------- */

void check_repeat_enter(struct check_walk *r)
{
    r->repeats.next_try = FIRST_TRY;
    r->repeats.noting = false;
}

static enum status leave_out(struct check_walk *r, const struct plan_segment *segment, uint32_t done,
                             uint32_t *left_out)
{
    struct check_repeats *repeats = &r->repeats;
    uint64_t times = segment->repeat_count - done - 1;
    bool walked = (uint64_t)(done - 2) * segment->task_count >= repeats->farthest;
    if (!walked || !looks_agree(repeats) || !grows_evenly(r, &times) || times == 0) return STATUS_OK;
    repeats->left_out = times;
    repeats->moved = 0;
    TRY(use_numbers(r, move_number));
    r->c->position += times * segment->task_count;
    r->versions_position = 0;
    *left_out = (uint32_t)times;
    return STATUS_OK;
}

enum status check_repeat_done(struct check_walk *r, const struct plan_segment *segment, uint32_t done,
                              uint32_t *left_out)
{
    struct check_repeats *repeats = &r->repeats;
    *left_out = 0;
    if (segment->repeat_count < REPEATS_MIN || done + 1 < repeats->next_try || segment->repeat_count - done < 2)
        return STATUS_OK;
    uint32_t since = done + 1 - repeats->next_try; /* repetitions of this try, with the noted one */
    if (since == 0) {
        repeats->touched.count = 0;
        repeats->noting = true;
        return STATUS_OK;
    }
    if (since == 1) {
        repeats->noting = false;
        sort_once(&repeats->touched);
        TRY(find_jobs(r, segment));
    }
    TRY(look(r, since - 1));
    if (since < 3) return STATUS_OK;
    repeats->next_try = repeats->next_try > UINT32_MAX / LATER_TRIES ? UINT32_MAX : repeats->next_try * LATER_TRIES;
    TRY(leave_out(r, segment, done, left_out));
    if (*left_out > 0) repeats->next_try = UINT32_MAX;
    return STATUS_OK;
}

void check_repeat_release(struct check_repeats *repeats)
{
    free(repeats->touched.words);
    free(repeats->jobs.words);
    for (uint32_t i = 0; i < 3; i++) {
        free(repeats->shapes[i].words);
        free(repeats->numbers[i].words);
    }
}
