#include "planner/parallel/parallel_job_recompute.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/cost.h"

enum { GRADIENT_SLOTS = 2, CHUNKS_MAX = PARALLEL_CUTS_MAX, STEPS_MAX = 2 * CHUNKS_MAX };

static bool is_again(const char *choices, uint32_t r) { return choices[r] == PARALLEL_AGAIN; }

/* --- places ----------------------------------------------------------------------------------- */

/* The chunks that share places for activations, in order. */
struct parallel_job_recompute_turns {
    uint32_t of[CHUNKS_MAX]; /* a chunk's index among them; CHUNKS_MAX: not shared */
    uint32_t chunks[CHUNKS_MAX];
    uint32_t count, places;
};

/* Finds places as parallel_job_layout.c does: a last chunk larger than all others has its own. */
static bool find_places(const struct parallel_job_choice_problem *p, const char *choices,
                        struct parallel_job_recompute_turns *out)
{
    uint64_t each = 1, own = 0, work = 0;
    out->count = 0;
    for (uint32_t r = 0; r < p->count; r++) {
        bool again = is_again(choices, r);
        uint64_t kept = p->chunks[r].kept_bytes[again], range = parallel_job_range_bytes(kept);
        work = max_u64(work, p->chunks[r].work_bytes[again]);
        out->of[r] = CHUNKS_MAX;
        if (kept == 0 || again || (r + 1 == p->count && range > each)) {
            own += range;
            continue;
        }
        each = max_u64(each, range);
        out->of[r] = out->count;
        out->chunks[out->count++] = r;
    }
    uint64_t taken = own + parallel_job_range_bytes(work),
             fit = p->have_bytes > taken ? (p->have_bytes - taken) / each : 0;
    out->places = fit < out->count ? (uint32_t)fit : out->count;
    return p->have_bytes >= taken && out->places >= min_u32(out->count, p->slots);
}

/* --- the clock -------------------------------------------------------------------------------- */

struct parallel_job_recompute_clock {
    const struct parallel_job_choice_problem *problem;
    const char *choices;
    struct parallel_job_recompute_turns turns;
    double compute_s, up_s, down_s;            /* when each stream is free */
    double passed_s[STEPS_MAX], ready_s[STEPS_MAX]; /* per step: end of computation; arrival of its data */
    double out_s[CHUNKS_MAX], back_s[CHUNKS_MAX];  /* per chunk: end of the copy out; end of its backward pass */
    double drained_s[CHUNKS_MAX];                /* per backward pass in order: its gradient is on the host */
    uint32_t fetching[STEPS_MAX], fetching_count, fetched; /* steps with weights, in order; number already begun */
};

static uint32_t chunk_of(const struct parallel_job_recompute_clock *c, uint32_t step)
{
    uint32_t count = c->problem->count;
    return step < count ? step : 2 * count - 1 - step;
}

static bool leaves(const struct parallel_job_recompute_clock *c, uint32_t r)
{
    return c->turns.of[r] < c->turns.count && c->turns.of[r] + c->turns.places < c->turns.count;
}

/* Fetches weights for the next step, and its chunk's swapped activations. */
static void fetch_next(struct parallel_job_recompute_clock *c)
{
    if (c->fetched == c->fetching_count) return;
    uint32_t at = c->fetched++, step = c->fetching[at], r = chunk_of(c, step);
    const struct parallel_job_choice_chunk *chunk = &c->problem->chunks[r];
    if (at >= c->problem->slots) c->up_s = fmax(c->up_s, c->passed_s[c->fetching[at - c->problem->slots]]);
    c->up_s += chunk->weights_s;
    if (step >= c->problem->count && leaves(c, r)) {
        uint32_t user = c->turns.chunks[c->turns.of[r] + c->turns.places]; /* of the place, before the chunk comes
                                                                              back */
        c->up_s = fmax(c->up_s, fmax(c->out_s[r], c->back_s[user])) + chunk->copy_s[COPY_H2D];
    }
    c->ready_s[step] = c->up_s;
}

static void pass_forward(struct parallel_job_recompute_clock *c, uint32_t step)
{
    const struct parallel_job_choice_chunk *chunk = &c->problem->chunks[step];
    uint32_t turn = c->turns.of[step];
    double begin_s = fmax(c->compute_s, c->ready_s[step]);
    if (turn < c->turns.count && turn >= c->turns.places)
        begin_s = fmax(begin_s, c->out_s[c->turns.chunks[turn - c->turns.places]]);
    c->compute_s = c->passed_s[step] = begin_s + chunk->forward_s;
    if (leaves(c, step)) c->out_s[step] = c->down_s = fmax(c->down_s, c->compute_s) + chunk->copy_s[COPY_D2H];
}

static void pass_back(struct parallel_job_recompute_clock *c, uint32_t step)
{
    uint32_t r = chunk_of(c, step), at = step - c->problem->count;
    const struct parallel_job_choice_chunk *chunk = &c->problem->chunks[r];
    double begin_s = fmax(c->compute_s, c->ready_s[step]);
    if (at >= GRADIENT_SLOTS) begin_s = fmax(begin_s, c->drained_s[at - GRADIENT_SLOTS]);
    c->compute_s = c->passed_s[step] = c->back_s[r] = begin_s + chunk->backward_s[is_again(c->choices, r)];
    c->down_s = c->drained_s[at] = fmax(c->down_s, c->compute_s) + chunk->down_s;
}

double parallel_job_choice_clock_s(const struct parallel_job_choice_problem *problem, const char *choices, bool *fits)
{
    struct parallel_job_recompute_clock c = {.problem = problem, .choices = choices};
    uint32_t steps = 2 * problem->count;
    assert(problem->count <= CHUNKS_MAX && problem->slots > 0);
    *fits = find_places(problem, choices, &c.turns);
    for (uint32_t r = 0; r < problem->count && *fits; r++) *fits = problem->chunks[r].gathers || !leaves(&c, r);
    if (!*fits) return 0;
    for (uint32_t step = 0; step < steps; step++)
        if (problem->chunks[chunk_of(&c, step)].gathers) c.fetching[c.fetching_count++] = step;
    for (uint32_t slot = 0; slot < problem->slots; slot++) fetch_next(&c);
    for (uint32_t step = 0; step < steps; step++) {
        if (step < problem->count) pass_forward(&c, step);
        else pass_back(&c, step);
        if (problem->chunks[chunk_of(&c, step)].gathers) fetch_next(&c);
    }
    return fmax(c.compute_s, c.down_s);
}

/* --- the search ------------------------------------------------------------------------------- */

struct parallel_job_recompute_search {
    const struct parallel_job_choice_problem *problem;
    uint32_t may[CHUNKS_MAX], may_count; /* chunks that can be recomputed */
    char best[CHUNKS_MAX];
    double best_s;
    bool any;
};

/* Keeps the shortest minibatch so far. */
static bool try_choices(struct parallel_job_recompute_search *s, const char *choices)
{
    bool fits;
    double seconds = parallel_job_choice_clock_s(s->problem, choices, &fits);
    if (!fits || (s->any && seconds >= s->best_s)) return false;
    memcpy(s->best, choices, s->problem->count);
    s->best_s = seconds;
    return s->any = true;
}

static void try_all(struct parallel_job_recompute_search *s)
{
    char choices[CHUNKS_MAX];
    memset(choices, PARALLEL_SWAPPED, sizeof choices);
    for (uint32_t set = 0; set < UINT32_C(1) << s->may_count; set++) {
        for (uint32_t i = 0; i < s->may_count; i++)
            choices[s->may[i]] = set >> i & 1 ? PARALLEL_AGAIN : PARALLEL_SWAPPED;
        try_choices(s, choices);
    }
}

/* The first k, the last k, every k-th, and all but every k-th recomputable chunk. */
enum { FAMILIES = 4 };
static void try_family(struct parallel_job_recompute_search *s, uint32_t family)
{
    for (uint32_t k = 0; k <= s->may_count; k++) {
        char choices[CHUNKS_MAX];
        memset(choices, PARALLEL_SWAPPED, sizeof choices);
        for (uint32_t i = 0; i < s->may_count; i++) {
            bool kth = k > 0 && i % k == 0;
            const bool again[FAMILIES] = {i < k, i + k >= s->may_count, kth, !kth};
            if (again[family]) choices[s->may[i]] = PARALLEL_AGAIN;
        }
        try_choices(s, choices);
    }
}

static void change(char *choice)
{
    *choice = *choice == PARALLEL_AGAIN ? PARALLEL_SWAPPED : PARALLEL_AGAIN;
}

/* Changes one chunk, or two with `pairs`; keeps the first improvement. */
static bool better(struct parallel_job_recompute_search *s, bool pairs)
{
    char choices[CHUNKS_MAX];
    memcpy(choices, s->best, sizeof choices);
    for (uint32_t i = 0; i < s->may_count; i++) {
        change(&choices[s->may[i]]);
        if (!pairs && try_choices(s, choices)) return true;
        for (uint32_t j = 0; pairs && j < i; j++) {
            change(&choices[s->may[j]]);
            if (try_choices(s, choices)) return true;
            change(&choices[s->may[j]]);
        }
        change(&choices[s->may[i]]);
    }
    return false;
}

static void search_all(struct parallel_job_recompute_search *s)
{
    for (uint32_t family = 0; family < FAMILIES; family++) {
        struct parallel_job_recompute_search own = *s;
        own.any = false;
        try_family(&own, family);
        while (own.any && (better(&own, false) || better(&own, true))) {}
        if (own.any) try_choices(s, own.best);
    }
}

bool parallel_job_choice_best(const struct parallel_job_choice_problem *problem, char *choices, double *best_s,
                              bool *exact)
{
    struct parallel_job_recompute_search s = {.problem = problem};
    for (uint32_t r = 0; r < problem->count; r++)
        if (problem->chunks[r].kept_bytes[1] < problem->chunks[r].kept_bytes[0]) s.may[s.may_count++] = r;
    *exact = s.may_count <= PARALLEL_JOB_CHOICE_EXACT;
    if (*exact) try_all(&s);
    else search_all(&s);
    if (!s.any) return false;
    memcpy(choices, s.best, problem->count);
    *best_s = s.best_s;
    return true;
}

/* --- the job ---------------------------------------------------------------------------------- */

/* All the job's ranks on a link share it. */
static double shared_copy_s(const struct parallel_job *s, enum copy_direction direction, uint64_t bytes)
{
    const struct hardware *hardware = &s->plan->hardware;
    uint32_t first = s->parallel->first_device, ranks = (uint32_t)parallel_devices(s->parallel);
    const struct hardware_device *device = &hardware->devices[first];
    double rate = cost_copy_bandwidth(hardware, first, direction), alone = rate;
    if (bytes == 0) return 0;
    for (uint32_t l = 0; l < device->path_count; l++) {
        uint32_t users = 0;
        for (uint32_t d = first; d < first + ranks; d++)
            for (uint32_t i = 0; i < hardware->devices[d].path_count; i++)
                users += hardware->devices[d].path[i] == device->path[l];
        rate = fmin(rate, hardware->links[device->path[l]].bandwidth.value / users);
    }
    return cost_copy_s(hardware, first, direction, bytes) + (double)bytes * (1 / rate - 1 / alone);
}

/* Sizes, times and lays out the job with one choice for all chunks. */
static enum status measure(const struct parallel_job *s, struct job *job, uint32_t choice, struct arena *arena,
                           struct parallel_job *out, struct error *err)
{
    struct error unfit = {0};
    *out = *s;
    out->job = job;
    out->parallel = &job->parallel;
    memset(job->parallel.choices, (int)choice, s->chunks);
    job->parallel.chosen = s->chunks;
    TRY(ARENA_NEW(arena, s->chunks, out->of, err));
    TRY(ARENA_NEW(arena, 1, out->stages, err));
    TRY(ARENA_NEW(arena, s->chunks, out->completed, err));
    out->stages[0] = s->stages[0];
    TRY(parallel_job_times_make(arena, &s->plan->hardware, job, &out->times, err));
    TRY(pipeline_order(arena, &job->parallel, out->microbatches, out->times.chunks, &out->order, err));
    TRY(parallel_job_size(out, arena, err));
    enum status placed = parallel_job_lay_out(out, &unfit); /* no error: the clock decides which choices fit */
    assert(placed == STATUS_OK || placed == STATUS_INFEASIBLE || placed == STATUS_BAD_INPUT);
    return STATUS_OK;
}

/* Returns the memory without activations and workspace. `again`: all chunks are recomputed, each in its own place. */
static uint64_t fixed_bytes(const struct parallel_job *again)
{
    uint64_t bytes = again->stages[0].end, work = 0;
    for (uint32_t r = 0; r < again->chunks; r++) {
        bytes -= parallel_job_range_bytes(again->of[r].pools[PARALLEL_JOB_ACTIVATIONS].bytes);
        work = max_u64(work, again->of[r].workspace_bytes);
    }
    return bytes - parallel_job_range_bytes(work);
}

static struct parallel_job_choice_chunk chunk_like(const struct parallel_job *s, const struct parallel_job *const of[2],
                                                   uint32_t r)
{
    struct parallel_job_choice_chunk chunk = {.forward_s = of[0]->times.chunks[r].pass_s[PIPELINE_FORWARD],
                                          .gathers = of[0]->of[r].gathers};
    for (int again = 0; again < 2; again++) {
        const struct parallel_job_chunk *like = &of[again]->of[r];
        chunk.backward_s[again] = of[again]->times.chunks[r].pass_s[PIPELINE_BACKWARD];
        chunk.kept_bytes[again] = like->pools[PARALLEL_JOB_ACTIVATIONS].bytes;
        chunk.work_bytes[again] = like->workspace_bytes;
    }
    chunk.weights_s = shared_copy_s(s, COPY_H2D, of[0]->of[r].host.weight_bytes);
    chunk.down_s = shared_copy_s(s, COPY_D2H, of[0]->of[r].host.gradient_bytes);
    chunk.copy_s[COPY_H2D] = shared_copy_s(s, COPY_H2D, chunk.kept_bytes[0]);
    chunk.copy_s[COPY_D2H] = shared_copy_s(s, COPY_D2H, chunk.kept_bytes[0]);
    return chunk;
}

static enum status choose(struct parallel_job *s, struct job *job, struct arena *arena, struct error *err)
{
    struct job alike[2] = {*job, *job};
    struct parallel_job of[2];
    double best_s;
    bool exact;
    TRY(measure(s, &alike[0], PARALLEL_SWAPPED, arena, &of[0], err));
    TRY(measure(s, &alike[1], PARALLEL_AGAIN, arena, &of[1], err));
    uint64_t have = hardware_least_memory(&s->plan->hardware, s->parallel->first_device, parallel_devices(s->parallel));
    uint64_t fixed = fixed_bytes(&of[1]);
    struct parallel_job_choice_problem problem = {.count = s->chunks, .slots = s->parallel->prefetch + 1,
                                                  .have_bytes = have > fixed ? have - fixed : 0};
    TRY(ARENA_NEW(arena, s->chunks, problem.chunks, err));
    for (uint32_t r = 0; r < s->chunks; r++)
        problem.chunks[r] = chunk_like(s, (const struct parallel_job *const[]){&of[0], &of[1]}, r);
    if (!parallel_job_choice_best(&problem, job->parallel.choices, &best_s, &exact))
        memset(job->parallel.choices, PARALLEL_SWAPPED, s->chunks);
    job->parallel.chosen = s->chunks;
    return STATUS_OK;
}

enum status parallel_job_choose_recompute(struct parallel_job *s, struct job *job, struct error *err)
{
    struct arena scratch = {0};
    enum status status = choose(s, job, &scratch, err);
    arena_release(&scratch);
    return status;
}
