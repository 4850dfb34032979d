/*
 * Orders of pipelines (label: fast): bubbles by their closed forms, every step after the steps that it needs,
 * microbatches kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "planner/parallel/pipeline/pipeline.h"
#include "tests/support/support_seed.h"

static struct pipeline_order make(struct arena *arena, struct parallel p, uint32_t microbatches,
                                  struct pipeline_times *times)
{
    struct pipeline_order order;
    struct error err = {0};
    if (pipeline_order(arena, &p, microbatches, times, &order, &err)) fail_msg("%s", err.text);
    return order;
}

static struct pipeline_times *uniform(struct arena *arena, uint32_t chunks, double forward_s, double input_s,
                                      double weight_s, double send_s)
{
    struct error err = {0};
    struct pipeline_times *times;
    assert_int_equal(ARENA_NEW(arena, chunks, times, &err), STATUS_OK);
    for (uint32_t r = 0; r < chunks; r++)
        times[r] = (struct pipeline_times){{forward_s, input_s + weight_s, input_s, weight_s}, send_s};
    return times;
}

/* From its first step to its last; the most that any stage takes beyond its steps. */
static double worst_bubble(const struct pipeline_order *order, struct parallel p)
{
    double worst = 0;
    for (uint32_t stage = 0; stage < p.pipeline; stage++) {
        double first_s = INFINITY, last_s = 0, busy_s = 0;
        for (uint64_t i = 0; i < order->count; i++) {
            const struct pipeline_step *s = &order->steps[i];
            if (parallel_place(&p, s->chunk).stage != stage) continue;
            if (s->start_s < first_s) first_s = s->start_s;
            if (s->end_s > last_s) last_s = s->end_s;
            busy_s += s->end_s - s->start_s;
        }
        if (last_s - first_s - busy_s > worst) worst = last_s - first_s - busy_s;
    }
    return worst;
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected) + 1e-12)) fail_msg("%.17g, expected %.17g", found, expected);
}

/* (m + P - 1)(f + b); interleaved: m (f + b) + (P - 1)(f + b) / v, f and b of all chunks.
 * Sources: arXiv 1811.06965, 2006.09503; 2104.04473, section 2.2. */
static void closed_forms(void **state)
{
    (void)state;
    for (uint32_t stages = 1; stages <= 8; stages++)
        for (uint32_t times = 1; times <= 4; times++)
            for (uint32_t chunks = 1; chunks <= 4; chunks++) {
                struct arena arena = {0};
                uint32_t m = stages * times;
                struct parallel p = {.tensor = 1, .pipeline = stages, .data = 1, .chunks = chunks,
                                     .schedule = chunks == 1 ? PIPELINE_1F1B : PIPELINE_INTERLEAVED};
                struct pipeline_times *t = uniform(&arena, stages * chunks, 1.25 / chunks, 1.5 / chunks,
                                                   1.75 / chunks, 0);
                double whole = 1.25 + 1.5 + 1.75, bubble = (stages - 1) * whole / chunks;
                assert_near(make(&arena, p, m, t).end_s, m * whole + bubble);
                p.schedule = PIPELINE_GPIPE;
                if (chunks == 1) assert_near(make(&arena, p, m, t).end_s, m * whole + bubble);
                arena_release(&arena);
            }
}

/* With all passes equally long stages idle for (P - 1)(F + B - W) by H1, and not at all by H2 and V.
 * Source: arXiv 2401.10241, sections 2 and 6. */
static void zero_bubbles(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 8; stages++)
        for (uint32_t m = 2 * stages; m <= 6 * stages; m += stages) {
            struct arena arena = {0};
            struct parallel p = {.tensor = 1, .pipeline = stages, .data = 1, .chunks = 1};
            struct pipeline_times *t = uniform(&arena, 2 * stages, 1, 1, 1, 0);
            p.schedule = PIPELINE_ZB_H1;
            struct pipeline_order order = make(&arena, p, m, t);
            assert_near(worst_bubble(&order, p), stages - 1);
            assert_near(order.end_s, 3 * m + stages - 1);
            p.schedule = PIPELINE_ZB_H2;
            order = make(&arena, p, m, t);
            assert_near(worst_bubble(&order, p), 0);
            assert_near(order.end_s, 3 * m + stages - 1);
            p.schedule = PIPELINE_ZB_V;
            p.chunks = 2;
            order = make(&arena, p, m, t);
            assert_near(worst_bubble(&order, p), 0);
            assert_near(order.end_s, 6 * m + stages - 1);
            arena_release(&arena);
        }
}

/* One stage, v chunks: each microbatch there and back, then the next; so at most v are kept. */
static void one_stage(void **state)
{
    (void)state;
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_INTERLEAVED};
    for (uint32_t chunks = 1; chunks <= 4; chunks++)
        for (uint32_t s = 0; s < 3; s++) {
            struct arena arena = {0};
            const uint32_t m = 3;
            struct parallel p = {.tensor = 1, .pipeline = 1, .data = 1, .chunks = chunks, .schedule = schedules[s]};
            struct pipeline_order order = make(&arena, p, m, uniform(&arena, chunks, 1.25, 1.5, 1.75, 2));
            assert_int_equal(order.count, 2 * m * chunks);
            for (uint32_t i = 0; i < order.count; i++) {
                uint32_t at = i % (2 * chunks);
                bool forward = at < chunks;
                assert_int_equal(order.steps[i].microbatch, i / (2 * chunks));
                assert_int_equal(order.steps[i].pass, forward ? PIPELINE_FORWARD : PIPELINE_BACKWARD);
                assert_int_equal(order.steps[i].chunk, forward ? at : 2 * chunks - 1 - at);
            }
            assert_near(order.end_s, m * chunks * (1.25 + 1.5 + 1.75));
            arena_release(&arena);
        }
}

static double end_of(const struct pipeline_order *order, uint32_t pass, uint32_t chunk, uint32_t microbatch)
{
    for (uint64_t i = 0; i < order->count; i++)
        if (order->steps[i].pass == pass && order->steps[i].chunk == chunk && order->steps[i].microbatch == microbatch)
            return order->steps[i].end_s;
    return INFINITY;
}

static void check_order(const struct pipeline_order *order, struct parallel p, uint32_t m,
                        const struct pipeline_times *t)
{
    uint32_t chunks = parallel_chunks(&p), back = pipeline_splits(&p) ? PIPELINE_INPUT : PIPELINE_BACKWARD;
    double free_s[8] = {0}, before_s = 0;
    uint32_t kept[8] = {0}, most[8] = {0};
    assert_int_equal(order->count, (uint64_t)chunks * m * (pipeline_splits(&p) ? 3 : 2));
    for (uint64_t i = 0; i < order->count; i++) {
        const struct pipeline_step *s = &order->steps[i];
        uint32_t stage = parallel_place(&p, s->chunk).stage;
        double needs_s = free_s[stage];
        assert_true(s->start_s >= before_s);
        before_s = s->start_s;
        if (s->pass == PIPELINE_FORWARD && s->chunk > 0) {
            bool sent = parallel_place(&p, s->chunk - 1).stage != stage;
            needs_s = fmax(needs_s, end_of(order, PIPELINE_FORWARD, s->chunk - 1, s->microbatch) +
                                        (sent ? t[s->chunk - 1].send_s : 0));
        }
        if (s->pass == back) {
            needs_s = fmax(needs_s, end_of(order, PIPELINE_FORWARD, s->chunk, s->microbatch));
            bool sent = s->chunk + 1 < chunks && parallel_place(&p, s->chunk + 1).stage != stage;
            if (s->chunk + 1 < chunks)
                needs_s = fmax(needs_s,
                               end_of(order, back, s->chunk + 1, s->microbatch) + (sent ? t[s->chunk].send_s : 0));
        }
        if (s->pass == PIPELINE_WEIGHT)
            needs_s = fmax(needs_s, end_of(order, PIPELINE_INPUT, s->chunk, s->microbatch));
        assert_near(s->start_s, needs_s);
        assert_near(s->end_s, s->start_s + t[s->chunk].pass_s[s->pass]);
        free_s[stage] = s->end_s;
        if (s->pass == PIPELINE_FORWARD && ++kept[stage] > most[stage]) most[stage] = kept[stage];
        if (s->pass == PIPELINE_BACKWARD || s->pass == PIPELINE_WEIGHT) kept[stage]--;
    }
    for (uint32_t stage = 0; stage < p.pipeline; stage++) {
        uint32_t limit = p.pipeline == 1 && !pipeline_splits(&p) ? p.chunks
                         : p.schedule == PIPELINE_1F1B   ? p.pipeline - stage
                         : p.schedule == PIPELINE_ZB_H1  ? p.pipeline
                         : p.schedule == PIPELINE_ZB_H2  ? 2 * p.pipeline - 1
                         : p.schedule == PIPELINE_ZB_V   ? 2 * p.pipeline
                                                         : m * p.chunks;
        assert_int_equal(kept[stage], 0);
        assert_true(most[stage] <= limit);
    }
}

/* Random durations: each step starts when its stage is free and its inputs have come, no stage does two things at
 * once, steps come by their starts, and no more microbatches are kept than the schedule says. */
static void steps_are_legal(void **state)
{
    (void)state;
    uint64_t seed = support_seed("steps are legal");
    for (uint32_t c = 0; c < 400; c++) {
        uint64_t key = random_u64(seed, c);
        struct arena arena = {0};
        struct parallel p = {.tensor = 1, .data = 1, .schedule = c % PIPELINE_PIPEDREAM, /* synchronous */
                             .pipeline = 1 + (uint32_t)random_below(key, 0, 6), .chunks = 1};
        if (p.pipeline == 1 && !pipeline_splits(&p)) p.chunks = 1 + (uint32_t)random_below(key, 4, 3);
        if (p.schedule == PIPELINE_INTERLEAVED) p.chunks = 2 + (uint32_t)random_below(key, 1, 3);
        if (p.schedule == PIPELINE_ZB_V) p.chunks = 2;
        uint32_t m = 1 + (uint32_t)random_below(key, 2, 20), chunks = parallel_chunks(&p);
        if (p.schedule == PIPELINE_INTERLEAVED) m *= p.pipeline;
        struct pipeline_times *t = uniform(&arena, chunks, 0, 0, 0, 0);
        for (uint32_t r = 0; r < chunks; r++)
            for (uint32_t k = 0; k < PIPELINE_PASSES; k++) {
                t[r].pass_s[k] = 1 + (double)random_below(key, 100 + r * 10 + k, 9);
                t[r].send_s = (double)random_below(key, 5 + r, 3);
            }
        struct pipeline_order order = make(&arena, p, m, t);
        check_order(&order, p, m, t);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(zero_bubbles),
        cmocka_unit_test(one_stage),
        cmocka_unit_test(steps_are_legal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
