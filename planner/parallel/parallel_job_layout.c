/*
 * A minibatch's order is walked once without emitting, to count variants. Every minibatch frees all that it takes, so
 * all are like the first.
 *
 * Rings. A pass frees its slot of weights after computing, and the gather for the pass `prefetch` ahead takes that one:
 * `prefetch` + 1 slots. A gradient is made while the previous one is reduced: two slots. Data from storage is read
 * while earlier data is copied on: two slots.
 */
#include "planner/parallel/parallel_job_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/job/chunk_memory.h"
#include "models/job/parallel_memory.h"

enum { GRADIENT_SLOTS = 2, STAGED_SLOTS = 2 };

/* --- sizes ---------------------------------------------------------------------------------- */

/* Takes the sizes of the executor's buffers. */
static void size_carried_out(struct parallel_job *s, uint32_t r)
{
    struct parallel_job_chunk *chunk = &s->of[r];
    const struct chunk_memory memory = chunk_memory(s->job, chunk->layers);
    chunk->state_bytes = memory.device_state_bytes;
    if (parallel_offloads(s->parallel))
        chunk->host = (struct rank_state){.weight_bytes = memory.raised_bytes, .gradient_bytes = memory.gradient_bytes,
                                          .state_bytes = memory.state_bytes - memory.raised_bytes};
    chunk->gradient_bytes = parallel_drains(s->job) ? 0 : memory.gradient_bytes;
    chunk->whole_gradient_bytes = memory.whole_gradient_bytes;
    if (memory.splits_states) chunk->whole_weight_bytes = memory.whole_weight_bytes;
    chunk->raised_table_bytes = memory.raised_table_bytes;
    chunk->raised_table_offset = memory.raised_table_offset;
    if (memory.gathers_table) chunk->gathered_table_bytes = memory.whole_weight_bytes - memory.table_weights_offset;
    chunk->level_bytes = memory.level_bytes;
    chunk->loss_bytes = memory.loss_bytes;
    chunk->version_bytes = memory.version_bytes;
    chunk->workspace_bytes = memory.workspace_bytes;
    chunk->pools[PARALLEL_JOB_ACTIVATIONS].bytes = memory.activation_bytes;
    chunk->pools[PARALLEL_JOB_HANDOVER].bytes = memory.handover_bytes;
    if (chunk->scatters && pipeline_has_halves(s->parallel->schedule))
        chunk->pools[PARALLEL_JOB_APART].bytes = memory.whole_gradient_bytes;
    chunk->has_batch = memory.has_embedding || memory.has_head;
    chunk->brings_batch = chunk->has_batch && (r == 0 || chunk->stage != s->of[0].stage);
    chunk->has_loss = memory.has_head;
    chunk->brings_norms = job_clips(s->job);
    for (uint32_t earlier = 0; earlier < r; earlier++)
        if (s->of[earlier].stage == chunk->stage) chunk->brings_norms = false;
}

static void size_chunk(struct parallel_job *s, uint32_t r)
{
    struct parallel_job_chunk *chunk = &s->of[r];
    chunk->layers = parallel_layers(s->job, r);
    chunk->stage = parallel_place(s->parallel, r).stage;
    struct rank_state state = parallel_state(s->job, chunk->layers);
    struct rank_state whole = parallel_whole_state(s->job, chunk->layers);
    chunk->state_bytes = state.weight_bytes + state.state_bytes;
    chunk->gradient_bytes = state.gradient_bytes;
    chunk->whole_weight_bytes = whole.weight_bytes;
    chunk->whole_gradient_bytes = whole.gradient_bytes;
    chunk->host = parallel_host_state(s->job, chunk->layers);
    chunk->gathers = parallel_fetches_weights(s->parallel) && whole.weight_bytes > 0;
    chunk->scatters = (parallel_splits(s->parallel, ZERO_GRADIENTS) || parallel_drains(s->job)) &&
                    whole.gradient_bytes > 0;
    chunk->tied = parallel_joins_chunk(s->job, r);
    chunk->joins = parallel_replicas(s->parallel, chunk->stage) > 1 && whole.gradient_bytes > 0;
    chunk->gradients = parallel_gradient_count(s->job, r);
    if (pipeline_is_asynchronous(s->parallel->schedule)) {
        chunk->versions = parallel_staleness(s->parallel, r) + 1;
        chunk->staleness = parallel_chunk_staleness(s->job, r);
        chunk->version_bytes = state.weight_bytes;
        chunk->state_bytes = state.state_bytes;
    }
    for (uint32_t slice = 0; slice < parallel_slices(s->parallel); slice++) {
        struct job job = parallel_slice(s->job, slice);
        chunk->workspace_bytes = max_u64(chunk->workspace_bytes, parallel_workspace_bytes(&job, chunk->layers));
        uint64_t kept = parallel_kept_bytes(&job, chunk->layers, false);
        chunk->pools[PARALLEL_JOB_ACTIVATIONS].bytes = max_u64(chunk->pools[PARALLEL_JOB_ACTIVATIONS].bytes, kept);
        if (r == 0) continue;
        uint64_t boundary = parallel_boundary_bytes(&job, chunk->layers.first - 1);
        chunk->pools[PARALLEL_JOB_BOUNDARY].bytes = max_u64(chunk->pools[PARALLEL_JOB_BOUNDARY].bytes, boundary);
        chunk->pools[PARALLEL_JOB_GRADIENT].bytes = chunk->pools[PARALLEL_JOB_BOUNDARY].bytes;
    }
    if (s->carried_out) size_carried_out(s, r);
    chunk->read_bytes = s->carried_out ? max_u64(chunk->state_bytes, chunk->host.weight_bytes)
                                       : chunk->host.weight_bytes;
}

uint64_t parallel_job_range_bytes(uint64_t bytes)
{
    return size_align(bytes > 0 ? bytes : 1, MEMORY_ALIGNMENT);
}

/* Adds a slot to a ring, up to `most` slots. */
static void widen(struct parallel_job_ring *ring, uint64_t bytes, uint32_t most)
{
    if (parallel_job_range_bytes(bytes) > ring->bytes) ring->bytes = parallel_job_range_bytes(bytes);
    if (ring->slots < most) ring->slots++;
}

/* Links each step to its stage's next gathering one, and counts what rings hold. */
static enum status size_rings(struct parallel_job *s, struct arena *arena, struct error *err)
{
    uint64_t none = s->order.count;
    TRY(ARENA_NEW(arena, s->order.count, s->gathering_behind, err));
    for (uint32_t stage = 0; stage < s->parallel->pipeline; stage++) s->stages[stage].first_gathering = none;
    for (uint64_t i = s->order.count; i-- > 0;) {
        const struct pipeline_step *step = &s->order.steps[i];
        const struct parallel_job_chunk *chunk = &s->of[step->chunk];
        struct parallel_job_stage *stage = &s->stages[chunk->stage];
        stage->steps++;
        s->gathering_behind[i] = stage->first_gathering;
        if (chunk->scatters && parallel_job_makes_gradient(step->pass) && chunk->pools[PARALLEL_JOB_APART].bytes == 0)
            widen(&stage->gradients, chunk->whole_gradient_bytes, GRADIENT_SLOTS);
        if (!chunk->gathers || !parallel_job_uses_weights(s, step)) continue;
        widen(&stage->weights, chunk->whole_weight_bytes, s->parallel->prefetch + 1);
        stage->first_gathering = i;
    }
    return STATUS_OK;
}

static enum status make_pools(struct parallel_job *s, struct arena *arena, struct error *err)
{
    size_t cells = (size_t)s->chunks * PARALLEL_JOB_THINGS * s->microbatches;
    size_t passes = (size_t)PIPELINE_PASSES * s->microbatches;
    uint32_t *next;
    struct parallel_job_variant *variants;
    struct parallel_job_cached_pass *emitted;
    TRY(ARENA_NEW(arena, 2 * cells, next, err));
    TRY(ARENA_NEW(arena, cells, variants, err));
    TRY(ARENA_NEW(arena, s->chunks * passes, emitted, err));
    for (uint32_t r = 0; r < s->chunks; r++) s->of[r].emitted = emitted + r * passes;
    for (uint32_t r = 0; r < s->chunks; r++)
        for (uint32_t t = 0; t < PARALLEL_JOB_THINGS; t++, next += 2 * s->microbatches, variants += s->microbatches) {
            struct parallel_job_pool *pool = &s->of[r].pools[t];
            pool->variant_of = next;
            pool->free = next + s->microbatches;
            pool->variants = variants;
            pool->variant_room = s->microbatches;
        }
    return STATUS_OK;
}

enum status parallel_job_size(struct parallel_job *s, struct arena *arena, struct error *err)
{
    for (uint32_t r = 0; r < s->chunks; r++) size_chunk(s, r);
    enum status status = make_pools(s, arena, err);
    return status ? status : size_rings(s, arena, err);
}

/* --- variants ------------------------------------------------------------------------------- */

enum { WORD_BITS = 32 };

static void acquire_variant(struct parallel_job_pool *pool, uint32_t microbatch)
{
    uint32_t word = 0;
    if (pool->free_count == 0) {
        pool->variant_of[microbatch] = pool->made++;
        return;
    }
    while (pool->free[word] == 0) word++;
    pool->variant_of[microbatch] = word * WORD_BITS + (uint32_t)__builtin_ctz(pool->free[word]);
    pool->free[word] &= pool->free[word] - 1;
    pool->free_count--;
}

static void give_variant_back(struct parallel_job_pool *pool, uint32_t microbatch)
{
    uint32_t variant = pool->variant_of[microbatch];
    pool->free[variant / WORD_BITS] |= UINT32_C(1) << variant % WORD_BITS;
    pool->free_count++;
}

void parallel_job_assign_place(struct parallel_job *s, uint32_t r, enum parallel_job_thing thing, uint32_t in_table)
{
    struct parallel_job_pool *pool = &s->of[r].pools[thing];
    if (pool->made == 0) return;
    pool->variant_of[in_table] = (uint32_t)(s->microbatch / parallel_job_stage_of(s, r)->turns % pool->made);
    if (pool->front == 0) return;
    uint32_t place_in_front = (uint32_t)(s->microbatch / parallel_job_stage_of(s, r - 1)->turns % pool->front);
    pool->variant_of[in_table] = pool->variant_of[in_table] * pool->front + place_in_front;
}

static void acquire(struct parallel_job *s, uint32_t r, enum parallel_job_thing thing, uint32_t microbatch)
{
    if (s->parallel->replicated > 0) parallel_job_assign_place(s, r, thing, microbatch);
    else acquire_variant(&s->of[r].pools[thing], microbatch);
}

/* Take and free what the chunk's backward passes hand over, in two units. */
static void acquire_handed(struct parallel_job *s, uint32_t r, uint32_t microbatch)
{
    for (uint32_t t = PARALLEL_JOB_HANDOVER; t <= PARALLEL_JOB_APART && s->parallel->slices <= 1; t++)
        if (s->of[r].pools[t].bytes > 0) acquire(s, r, (enum parallel_job_thing)t, microbatch);
}
static void release_handed(struct parallel_job *s, uint32_t r, uint32_t microbatch)
{
    for (uint32_t t = PARALLEL_JOB_HANDOVER; t <= PARALLEL_JOB_APART && s->parallel->slices <= 1; t++)
        if (s->of[r].pools[t].bytes > 0) give_variant_back(&s->of[r].pools[t], microbatch);
}

/* Takes the handover of a microbatch's slices with the first of them. */
static void acquire_context(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct parallel_job_pool *pool = &s->of[r].pools[PARALLEL_JOB_HANDOVER];
    const uint32_t slice = n % parallel_slices(s->parallel);
    if (pool->bytes == 0 || s->parallel->slices <= 1) return;
    if (slice == 0) acquire_variant(pool, n);
    else pool->variant_of[n] = pool->variant_of[n - slice];
}

/* Gives it back after the first slice's backward pass, the last one. */
static void release_context(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct parallel_job_pool *pool = &s->of[r].pools[PARALLEL_JOB_HANDOVER];
    if (pool->bytes > 0 && s->parallel->slices > 1 && n % s->parallel->slices == 0) give_variant_back(pool, n);
}

void parallel_job_acquire(struct parallel_job *s, const struct pipeline_step *step)
{
    uint32_t r = step->chunk, n = step->microbatch;
    s->microbatch = n;
    if (step->pass == PIPELINE_FORWARD) {
        acquire(s, r, PARALLEL_JOB_ACTIVATIONS, n);
        acquire_context(s, r, n);
        if (r + 1 < s->chunks) acquire(s, r + 1, PARALLEL_JOB_BOUNDARY, n);
    } else if (step->pass != PIPELINE_WEIGHT) {
        if (r > 0) acquire(s, r, PARALLEL_JOB_GRADIENT, n);
        acquire_handed(s, r, n);
    }
}

void parallel_job_release(struct parallel_job *s, const struct pipeline_step *step)
{
    uint32_t r = step->chunk, n = step->microbatch;
    if (!parallel_job_makes_gradient(step->pass) || s->parallel->replicated > 0) return;
    give_variant_back(&s->of[r].pools[PARALLEL_JOB_ACTIVATIONS], n);
    release_handed(s, r, n);
    release_context(s, r, n);
    if (r > 0) give_variant_back(&s->of[r].pools[PARALLEL_JOB_BOUNDARY], n);
    if (r + 1 < s->chunks) give_variant_back(&s->of[r + 1].pools[PARALLEL_JOB_GRADIENT], n);
}

static void count_variants(struct parallel_job *s)
{
    for (uint64_t i = 0; i < s->order.count; i++) {
        parallel_job_acquire(s, &s->order.steps[i]);
        parallel_job_release(s, &s->order.steps[i]);
    }
    for (uint32_t r = 0; r < s->chunks; r++)
        for (uint32_t t = 0; t < PARALLEL_JOB_THINGS; t++)
            assert(s->of[r].pools[t].free_count == s->of[r].pools[t].made);
}

static bool stays_on_stage(const struct parallel_job *s, uint32_t r)
{
    return r > 0 && s->of[r - 1].stage == s->of[r].stage;
}

/* Returns the boundaries or gradients that a replica of `stage` makes until another stage uses the first, `ticks`
 * later. */
static uint32_t waiting(uint32_t ticks, const struct parallel_job_stage *stage)
{
    return ticks / stage->turns + 1;
}

static void count_passed_on(const struct parallel_job *s, uint32_t r, enum parallel_job_thing thing, uint32_t own,
                            uint32_t front)
{
    struct parallel_job_pool *pool = &s->of[r].pools[thing];
    bool same = own == front && parallel_job_stage_of(s, r)->turns == parallel_job_stage_of(s, r - 1)->turns;
    pool->made = own;
    pool->front = same ? 0 : front;
}

/*
 * Asynchronous: a replica keeps parallel_depth() microbatches. One more boundary is fetched during the backward pass
 * over the oldest; a gradient is fetched while the previous one is used. Both wait on the replica that made them. If
 * the stages' numbers of replicas differ, a late replica needs a place for one more gradient. Between buckets of a
 * stage nothing is fetched, and the next pass uses a gradient.
 */
static void count_under_way(struct parallel_job *s)
{
    for (uint32_t r = 0; r < s->chunks; r++) {
        uint32_t stage = s->of[r].stage, kept = parallel_depth(s->parallel, stage);
        const struct parallel_job_stage *own = &s->stages[stage], *front = own - 1;
        s->of[r].pools[PARALLEL_JOB_ACTIVATIONS].made = kept;
        if (r == 0) continue;
        if (stays_on_stage(s, r)) {
            s->of[r].pools[PARALLEL_JOB_BOUNDARY].made = kept;
            s->of[r].pools[PARALLEL_JOB_GRADIENT].made = 1;
            continue;
        }
        uint32_t boundaries = waiting(own->start - front->start, front);
        uint32_t gradients = waiting(front->start + front->lag - own->start - own->lag, own);
        count_passed_on(s, r, PARALLEL_JOB_BOUNDARY, kept + 1,
                        max_u32(boundaries, parallel_depth(s->parallel, stage - 1)));
        count_passed_on(s, r, PARALLEL_JOB_GRADIENT, max_u32(gradients, 2) + (own->turns != front->turns), 2);
    }
}

/* The passes that begin and end each thing's life. */
static const struct {
    uint32_t made_by, used_by;     /* enum pipeline_pass */
    uint32_t made_ahead, used_ahead; /* 1: on the previous chunk */
} lives[PARALLEL_JOB_THINGS] = {
    [PARALLEL_JOB_ACTIVATIONS] = {PIPELINE_FORWARD, PIPELINE_BACKWARD, 0, 0},
    [PARALLEL_JOB_BOUNDARY] = {PIPELINE_FORWARD, PIPELINE_BACKWARD, 1, 0},
    [PARALLEL_JOB_GRADIENT] = {PIPELINE_BACKWARD, PIPELINE_BACKWARD, 0, 1},
};

/* Returns the places that the neediest of `turns` replicas takes in a minibatch, keeping all microbatches from the
 * oldest unfinished to the newest. Scratch: `used`, a flag per microbatch; `oldest`, a number per replica. */
static uint32_t count_places(const struct parallel_job *s, uint32_t r, enum parallel_job_thing thing, uint32_t turns,
                             uint32_t *used, uint32_t *oldest)
{
    uint32_t most = 0;
    memset(used, 0, s->microbatches * sizeof *used);
    for (uint32_t d = 0; d < turns; d++) oldest[d] = d;
    for (uint64_t i = 0; i < s->order.count; i++) {
        const struct pipeline_step *step = &s->order.steps[i];
        uint32_t n = step->microbatch, d = n % turns;
        if (step->pass == lives[thing].made_by && step->chunk == r - lives[thing].made_ahead && n >= oldest[d])
            most = max_u32(most, (n - oldest[d]) / turns + 1);
        if (step->pass != lives[thing].used_by || step->chunk != r - lives[thing].used_ahead) continue;
        used[n] = 1;
        while (oldest[d] < s->microbatches && used[oldest[d]]) oldest[d] += turns;
    }
    return most;
}

static void count_in_turn(struct parallel_job *s)
{
    for (uint32_t r = 0; r < s->chunks; r++)
        for (uint32_t t = 0; t < PARALLEL_JOB_THINGS; t++) {
            struct parallel_job_pool *pool = &s->of[r].pools[t]; /* the pool's tables are not in use yet */
            if (t == PARALLEL_JOB_HANDOVER || t == PARALLEL_JOB_APART || (r == 0 && t != PARALLEL_JOB_ACTIVATIONS))
                continue;
            uint32_t own = count_places(s, r, t, parallel_job_stage_of(s, r)->turns, pool->variant_of, pool->free);
            pool->made = own;
            if (t == PARALLEL_JOB_ACTIVATIONS) continue;
            uint32_t front = count_places(s, r, t, parallel_job_stage_of(s, r - 1)->turns, pool->variant_of,
                                          pool->free);
            count_passed_on(s, r, t, own, front);
        }
}

/* --- places --------------------------------------------------------------------------------- */

static uint64_t reserve(struct parallel_job_stage *stage, uint64_t bytes)
{
    uint64_t offset = stage->end;
    stage->end += bytes;
    return offset;
}

static uint64_t least_memory(const struct parallel_job *s, const struct parallel_job_stage *stage)
{
    const struct plan_gang *gang = &s->plan->gangs[stage->gang];
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < plan_gang_size(gang); i++)
        least = min_u64(least, s->plan->hardware.devices[s->plan->gang_devices[gang->first + i]].memory_bytes);
    return least;
}

static void place_ring(struct parallel_job_stage *stage, struct parallel_job_ring *ring)
{
    ring->offset = reserve(stage, ring->slots * ring->bytes);
}

/* Places staged data in an arena of each rank's host memory. */
static void place_staged(struct parallel_job *s, uint32_t index)
{
    struct parallel_job_stage *stage = &s->stages[index];
    struct parallel_job_ring *weights = &stage->staged_weights, *states = &stage->staged_states;
    stage->staged_end = s->staged_base_bytes;
    if (!s->parallel->storage) return;
    for (uint32_t r = 0; r < s->chunks; r++) {
        const struct rank_state *host = &s->of[r].host;
        if (s->of[r].stage != index) continue;
        weights->bytes = max_u64(weights->bytes,
                                 parallel_job_range_bytes(max_u64(s->of[r].read_bytes,
                                                                  s->of[r].raised_table_offset +
                                                                      s->of[r].raised_table_bytes)));
        states->bytes = max_u64(states->bytes, parallel_job_range_bytes(host->weight_bytes + host->state_bytes));
    }
    weights->slots = states->slots = STAGED_SLOTS;
    weights->offset = stage->staged_end;
    states->offset = weights->offset + weights->slots * weights->bytes;
    stage->staged_end = states->offset + states->slots * states->bytes;
}

/* Lists the chunks that share places for activations: those not recomputed, without a last chunk that the head makes
 * larger than all others; that one stays on the device. */
static uint32_t find_turns(struct parallel_job *s, uint32_t *turns, uint64_t *each)
{
    uint32_t count = 0, last = s->chunks - 1;
    *each = 1;
    for (uint32_t r = 0; r < s->chunks; r++) {
        uint64_t bytes = s->of[r].pools[PARALLEL_JOB_ACTIVATIONS].bytes, range = parallel_job_range_bytes(bytes);
        bool again = s->parallel->chosen > 0 && s->parallel->choices[r] == PARALLEL_AGAIN;
        if (bytes == 0 || again || (r == last && range > *each)) continue;
        *each = max_u64(*each, range);
        turns[count++] = r;
    }
    return count;
}

/* Gives swapped runs the places that fit, but at least `prefetch` + 1, because activations come back that long before
 * their passes. Scratch: s->completed. */
static void place_swapped(struct parallel_job *s, struct parallel_job_stage *stage)
{
    uint32_t *turns = s->completed;
    uint64_t each, have = least_memory(s, stage);
    uint32_t count = find_turns(s, turns, &each), least = min_u32(count, s->parallel->prefetch + 1), t = 0;
    for (uint32_t r = 0; r < s->chunks; r++) {
        struct parallel_job_pool *pool = &s->of[r].pools[PARALLEL_JOB_ACTIVATIONS];
        if (t < count && turns[t] == r) t++;
        else pool->offset[0] = reserve(stage, parallel_job_range_bytes(pool->bytes));
    }
    uint64_t fit = have > stage->end ? (have - stage->end) / each : 0;
    uint32_t places = fit < least ? least : fit < count ? (uint32_t)fit : count;
    uint64_t offset = reserve(stage, places * each);
    for (t = 0; t < count; t++) {
        s->of[turns[t]].pools[PARALLEL_JOB_ACTIVATIONS].offset[0] = offset + t % places * each;
        s->of[turns[t]].swaps = t + places < count;
    }
}

/*
 * Returns true if gradients of a stage's boundaries alternate between two places: each is made by the pass that uses up
 * the next boundary's. That holds if backward passes over a microbatch go chunk by chunk. If gradients wait, as with
 * split backward passes, each chunk has its own places.
 */
static bool gradients_alternate(const struct parallel_job *s)
{
    uint32_t live[2] = {0, 0};
    if (parallel_buckets(s->parallel) > 1) return true;
    if (s->parallel->pipeline > 1) return false;
    for (uint64_t i = 0; i < s->order.count; i++) {
        const struct pipeline_step *step = &s->order.steps[i];
        uint32_t r = step->chunk;
        if (step->pass != PIPELINE_FORWARD && step->pass != PIPELINE_WEIGHT && r > 0 && live[r % 2]++ > 0) return false;
        if (parallel_job_makes_gradient(step->pass) && r + 1 < s->chunks) live[(r + 1) % 2]--;
    }
    return true;
}

static void place_alternating(struct parallel_job *s, uint32_t index)
{
    uint64_t each = 0;
    uint32_t places = 0;
    for (uint32_t r = 1; r < s->chunks; r++) {
        if (s->of[r].stage != index || !stays_on_stage(s, r)) continue;
        each = max_u64(each, parallel_job_range_bytes(s->of[r].pools[PARALLEL_JOB_GRADIENT].bytes));
        places = min_u32(places + 1, 2);
    }
    uint64_t offset = reserve(&s->stages[index], places * each);
    for (uint32_t r = 1; r < s->chunks; r++)
        if (s->of[r].stage == index && stays_on_stage(s, r))
            s->of[r].pools[PARALLEL_JOB_GRADIENT].offset[0] = offset + r % places * each;
}

/* Returns the minibatches of which a stage keeps the data. In asynchronous schedules it keeps parallel_depth()
 * microbatches, but the last of several stages reads data only in backward passes. */
static uint32_t count_batches(const struct parallel_job *s, uint32_t stage)
{
    const uint64_t each = parallel_microbatches_of(s->job, stage, 0).count;
    if (!pipeline_is_asynchronous(s->parallel->schedule) || stage > 0) return 1;
    return (uint32_t)((parallel_depth(s->parallel, stage) - 1 + each - 1) / each + 1);
}

static void place_stage(struct parallel_job *s, uint32_t index)
{
    bool alternate = gradients_alternate(s), has_batch = false, has_loss = false;
    struct parallel_job_stage *stage = &s->stages[index];
    uint64_t workspace = 0;
    stage->end = s->base_bytes;
    for (uint32_t r = 0; r < s->chunks; r++) {
        struct parallel_job_chunk *chunk = &s->of[r];
        if (chunk->stage != index) continue;
        chunk->state_offset = reserve(stage, parallel_job_range_bytes(chunk->state_bytes));
        chunk->gradient_offset = reserve(stage, chunk->gradients * parallel_job_range_bytes(chunk->gradient_bytes));
        chunk->level_offset = stage->end;
        if (chunk->level_bytes > 0) reserve(stage, parallel_job_range_bytes(chunk->level_bytes));
        chunk->version_offset = reserve(stage, chunk->versions * parallel_job_range_bytes(chunk->version_bytes));
        if (chunk->workspace_bytes > workspace) workspace = chunk->workspace_bytes;
        has_batch |= chunk->has_batch;
        has_loss |= chunk->has_loss;
    }
    stage->batches = count_batches(s, index);
    if (has_batch)
        stage->batch_offset = reserve(stage,
                                      stage->batches * parallel_job_range_bytes(job_replica_batch_bytes(s->job)));
    const uint64_t loss = parallel_job_range_bytes(s->of[s->chunks - 1].loss_bytes);
    if (has_loss) stage->loss_offset = reserve(stage, loss);
    if (has_loss && s->job->evaluation.every > 0)
        stage->held_out_offset = reserve(stage, loss);
    if (s->carried_out && job_clips(s->job))
        stage->norms_offset = reserve(stage, parallel_job_range_bytes(memory_norm_bytes(&s->job->network)));
    stage->workspace_offset = reserve(stage, parallel_job_range_bytes(workspace));
    place_ring(stage, &stage->weights);
    place_ring(stage, &stage->gradients);
    for (uint32_t r = 0; r < s->chunks; r++)
        for (uint32_t t = 0; t < PARALLEL_JOB_THINGS; t++) {
            struct parallel_job_pool *pool = &s->of[r].pools[t];
            uint64_t each = parallel_job_range_bytes(pool->bytes);
            bool own = s->of[r].stage == index, swapped = s->parallel->swap && t == PARALLEL_JOB_ACTIVATIONS;
            if (alternate && t == PARALLEL_JOB_GRADIENT && stays_on_stage(s, r)) continue;
            if (own && !swapped) pool->offset[0] = reserve(stage, pool->made * each);
            bool crosses = t == PARALLEL_JOB_BOUNDARY || t == PARALLEL_JOB_GRADIENT;
            if (!own && crosses && r > 0 && s->of[r - 1].stage == index)
                pool->offset[1] = reserve(stage, (pool->front > 0 ? pool->front : pool->made) * each);
        }
    if (alternate) place_alternating(s, index);
    if (s->parallel->swap) place_swapped(s, stage);
}

static enum status check_memory(const struct parallel_job *s, uint32_t index, struct error *err)
{
    const struct parallel_job_stage *stage = &s->stages[index];
    const struct plan_gang *gang = &s->plan->gangs[stage->gang];
    for (uint32_t i = 0; i < plan_gang_size(gang); i++) {
        uint32_t device = s->plan->gang_devices[gang->first + i];
        uint64_t have = s->plan->hardware.devices[device].memory_bytes;
        char need_text[QUANTITY_TEXT_BYTES], have_text[QUANTITY_TEXT_BYTES];
        if (stage->end <= have) continue;
        return error_set(err, STATUS_INFEASIBLE,
                         "job '%s' needs %s on each device of stage %" PRIu32 ", and device %" PRIu32
                         " has %s (%" PRIu64 " bytes missing)",
                         s->job->name, quantity_text((double)stage->end, DIMENSION_BYTES, need_text), index, device,
                         quantity_text((double)have, DIMENSION_BYTES, have_text), stage->end - have);
    }
    return STATUS_OK;
}

static enum status check_swapped(const struct parallel_job *s, struct error *err)
{
    for (uint32_t r = 0; r < s->chunks; r++)
        if (s->of[r].swaps && !s->of[r].gathers)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' swaps the activations of chunk %" PRIu32
                             ", which has no weights (expected some: they come back together)",
                             s->job->name, r);
    return STATUS_OK;
}

enum status parallel_job_lay_out(struct parallel_job *s, struct error *err)
{
    if (pipeline_is_asynchronous(s->parallel->schedule)) count_under_way(s);
    else if (s->parallel->replicated > 0) count_in_turn(s);
    else count_variants(s);
    for (uint32_t stage = 0; stage < s->parallel->pipeline; stage++) {
        place_stage(s, stage);
        place_staged(s, stage);
        TRY(check_memory(s, stage, err));
    }
    return check_swapped(s, err);
}
