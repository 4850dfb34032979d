/*
 * One forward, one backward, without a flush. In *tick* n stage p of P passes forward over microbatch n, if there
 * is one, and back over n - (P - 1 - p); N microbatches take N + P - 1 ticks:
 *
 *     P = 3    tick   0    1     2      3      4     ...  N - 1 |  N      N + 1
 *     stage 0         F0   F1    F2 B0  F3 B1  F4 B2      ...   |  B N-2  B N-1
 *     stage 1         F0   F1 B0 F2 B1  F3 B2  F4 B3            |  B N-1
 *     stage 2         F0 B0 F1 B1 F2 B2 F3 B3  F4 B4            |
 *
 * A forward pass needs the one of the stage in front in the same tick, a backward pass the one of the stage behind
 * in the tick before: so this is an order in which everything comes behind what it needs. Stage by stage it is that
 * of 1F1B with P - 1 - p forward passes to begin with. No stage keeps more than P - p microbatches, and the slowest
 * is never idle once the pipeline is full: every cycle of waiting leads up some stages and down again over as many
 * ticks, so it is no longer than its slowest stage's.
 *
 * Updates. Behind the last backward pass of a minibatch (of pipedream each) the gradients of data-parallel ranks are
 * added up, and the update comes when it must: in front of the stage's next backward pass, which adds to the
 * gradient again, but with pipedream in front of the next forward pass, which wants the new version. So with 2bw a
 * forward pass hides a part of that exchange.
 *
 * Versions. Minibatch b reads version max(b - staleness, 0); the update behind minibatch b reads version b and makes
 * b + 1, in the slot that the minibatch has just left, or in place where there is one slot. A version ends with the
 * last pass that reads it, or, where none is left to, with the update.
 *
 * Repetition. Slots and variants are taken in turn, of 1 ... P of them, and of two in minibatches with 2bw. So
 * ticks repeat with the period lcm(1, ..., P) (2bw: and 2 m). What lies between the first ticks and the end is
 * stored once; where that is not twice as long, everything is written out.
 *
 * Source: PipeDream, Narayanan et al., SOSP 2019, sections 3.2 and 3.3; arXiv 2006.09503, section 3.
 */
#include "planner/spread_async.h"

#include <assert.h>

#include "planner/spread_units.h"

struct ticks {
    struct spread *s;
    uint64_t minibatches, microbatches; /* that are written down: those between are repetitions */
};

/* --- versions ------------------------------------------------------------------------------- */

/* The last minibatch that reads the version; false: none does. */
static bool last_reader(const struct ticks *t, uint32_t r, uint64_t version, uint64_t *out)
{
    uint64_t reader = version + t->s->of[r].versions - 1, last = t->minibatches - 1;
    if (reader > last && version > 0) return false;
    *out = reader < last ? reader : last;
    return true;
}

static void read_for_pass(struct ticks *t, uint32_t r, uint64_t microbatch, bool backward)
{
    struct spread_run *run = &t->s->of[r];
    uint64_t m = t->microbatches / t->minibatches, minibatch = microbatch / m, staleness = run->versions - 1, last;
    run->version = minibatch > staleness ? minibatch - staleness : 0;
    bool ends_minibatch = backward && microbatch % m == m - 1;
    run->version_ends = ends_minibatch && last_reader(t, r, run->version, &last) && last == minibatch &&
                        run->version < minibatch;
}

static void update(struct ticks *t, uint32_t r, uint64_t minibatch)
{
    struct spread_run *run = &t->s->of[r];
    uint64_t last;
    run->version = minibatch;
    run->version_ends = run->versions > 1 && (!last_reader(t, r, minibatch, &last) || last == minibatch);
    spread_emit_update(t->s, r, r == 0);
}

/* --- ticks ---------------------------------------------------------------------------------- */

static void take_turn(struct spread_pool *pool, uint32_t in_table, uint64_t microbatch)
{
    if (pool->made > 0) pool->variant_of[in_table] = (uint32_t)(microbatch % pool->made);
}

static struct pipeline_step step_of(const struct ticks *t, uint32_t pass, uint32_t r, uint64_t microbatch)
{
    return (struct pipeline_step){.pass = pass, .run = r, .microbatch = (uint32_t)(microbatch % t->s->runs)};
}

static void forward(struct ticks *t, uint32_t r, uint64_t microbatch)
{
    struct spread *s = t->s;
    struct pipeline_step step = step_of(t, PIPELINE_FORWARD, r, microbatch);
    read_for_pass(t, r, microbatch, false);
    take_turn(&s->of[r].pools[SPREAD_ACTIVATIONS], step.microbatch, microbatch);
    if (r + 1 < s->runs) take_turn(&s->of[r + 1].pools[SPREAD_BOUNDARY], step.microbatch, microbatch);
    spread_emit_pass(s, &step);
}

static void backward(struct ticks *t, uint32_t r, uint64_t microbatch)
{
    struct spread *s = t->s;
    struct pipeline_step step = step_of(t, PIPELINE_BACKWARD, r, microbatch);
    uint64_t m = t->microbatches / t->minibatches, minibatch = microbatch / m;
    bool lagging = s->parallel->schedule == PIPELINE_2BW;
    if (lagging && microbatch % m == 0 && minibatch > 0) update(t, r, minibatch - 1);
    read_for_pass(t, r, microbatch, true);
    if (r > 0) take_turn(&s->of[r].pools[SPREAD_GRADIENT], step.microbatch, microbatch);
    spread_emit_pass(s, &step);
    if (microbatch % m < m - 1) return;
    if (s->of[r].joins) spread_emit_reduce(s, r);
    if (!lagging || minibatch + 1 == t->minibatches) update(t, r, minibatch);
}

static void emit_ticks(struct ticks *t, uint64_t first, uint64_t end)
{
    uint32_t stages = t->s->parallel->pipeline;
    for (uint64_t n = first; n < end; n++)
        for (uint32_t r = 0; r < stages; r++) {
            uint64_t behind = stages - 1 - r;
            if (n < t->microbatches) forward(t, r, n);
            if (n >= behind && n - behind < t->microbatches) backward(t, r, n - behind);
        }
}

/* --- a training ----------------------------------------------------------------------------- */

/* The least common multiple; `most` and above: of no interest. */
static uint64_t common_multiple(uint64_t a, uint64_t b, uint64_t most)
{
    uint64_t x = a, y = b;
    while (y > 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x >= most / b ? most : a / x * b;
}

static uint64_t period_of(const struct spread *s, uint64_t most)
{
    uint64_t m = s->job->microbatches / s->parallel->data, period = s->parallel->schedule == PIPELINE_2BW ? 2 * m : 1;
    for (uint32_t i = 2; i <= s->parallel->pipeline && period < most; i++) period = common_multiple(period, i, most);
    return period;
}

void spread_async_emit(struct spread *s)
{
    uint64_t m = s->job->microbatches / s->parallel->data, all = s->job->minibatches * m;
    /* until all stages pass back over minibatches that read no longer the first version; the last m ticks of
     * microbatches see the end come */
    uint64_t fill = s->parallel->pipeline + parallel_staleness(s->parallel, 0) * m;
    uint64_t period = period_of(s, all), repeats = 1;
    if (all > fill + m + period) repeats = (all - fill - m) / period;
    uint64_t written = all - (repeats - 1) * period;
    struct ticks t = {.s = s, .minibatches = written / m, .microbatches = written};
    assert(written % m == 0);
    if (repeats > 1) {
        emit_ticks(&t, 0, fill);
        plan_builder_segment(s->builder, 1);
        emit_ticks(&t, fill, fill + period);
        plan_builder_segment(s->builder, (uint32_t)repeats);
    }
    emit_ticks(&t, repeats > 1 ? fill + period : 0, written + s->parallel->pipeline - 1);
    plan_builder_segment(s->builder, 1);
    for (uint32_t r = 0; r < s->runs; r++) s->of[r].version = t.minibatches; /* what is stored */
}

double spread_async_estimate_s(const struct spread *s)
{
    double fill_s = 0, slowest_s = 0;
    for (uint32_t r = 0; r < s->runs; r++) {
        const struct pipeline_times *times = &s->times.runs[r];
        double stage_s = times->pass_s[PIPELINE_FORWARD] + times->pass_s[PIPELINE_BACKWARD];
        fill_s += stage_s + 2 * times->send_s;
        if (stage_s > slowest_s) slowest_s = stage_s;
    }
    double m = (double)(s->job->microbatches / s->parallel->data), minibatches = (double)s->job->minibatches;
    return fill_s + (minibatches * m - 1) * slowest_s + minibatches * s->times.update_s;
}
