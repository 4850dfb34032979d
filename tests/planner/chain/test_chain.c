/*
 * Keep, swap and recompute: the rules of time by hand and against schedules made tick by tick; the
 * judge on broken schedules; files right and wrong; limits of time. Optima: test_chain_optimum.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_out.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/chain/chain_certify.h"
#include "planner/chain/chain_check.h"
#include "planner/chain/chain_io.h"
#include "tests/support/solve/support_chain.h"
#include "tests/support/solve/support_chain_json.h"
#include "tests/support/support_json.h"
#include "tests/support/support_seed.h"

/* --- the rules of time ------------------------------------------------------------------------ */

/* Three layers of 10 bytes in 22, links of 2 bytes a tick: a copy takes 5. */
static const char *const three =
    "{'spillway_chain': 1, 'memory': 22, 'out_bytes_per_tick': 2, 'in_bytes_per_tick': 2, 'layers': "
    "[{'forward': 3, 'backward': 7, 'saved': 10, 'boundary': 1}, "
    "{'forward': 4, 'backward': 6, 'saved': 10, 'boundary': 1}, "
    "{'forward': 5, 'backward': 8, 'saved': 10, 'boundary': 1}]}";

/*
 * Swap layer 0: forward 0-3, out 3-8; layer 1 3-7; layer 2 needs 30 bytes and waits for the copy: 8-13,
 * the turnaround. Backward of 2 13-21; only now do 10 bytes come in: 21-26, during the backward of 1, 21-27;
 * backward of 0 27-34.
 * Recompute layer 0: no wait. 3 + 4 + 5, then 8 + 6 + (3 + 7): 36.
 * Keep all: 30 bytes do not fit 22.
 */
static void by_hand(void **state)
{
    (void)state;
    struct chain chain;
    struct chain_schedule s = {0};
    struct error err = {0};
    test_chain(three, &chain);
    const uint8_t swap[] = {CHAIN_SWAP, CHAIN_KEEP, CHAIN_KEEP};
    assert_int_equal(chain_schedule_make(&chain, swap, &s, &err), STATUS_OK);
    assert_int_equal(s.out[0], 3);
    assert_int_equal(s.forward[2], 8);
    assert_int_equal(s.turnaround, 13);
    assert_int_equal(s.in[0] + 5, s.backward[0]); /* as late as it can be */
    assert_int_equal(s.backward[0], 27);
    assert_int_equal(s.makespan, 34);
    assert_int_equal(chain_check(&chain, &s, &err), STATUS_OK);
    chain_schedule_release(&s);
    const uint8_t again[] = {CHAIN_RECOMPUTE, CHAIN_KEEP, CHAIN_KEEP};
    assert_int_equal(chain_schedule_make(&chain, again, &s, &err), STATUS_OK);
    assert_int_equal(s.makespan, 36);
    assert_int_equal(chain_check(&chain, &s, &err), STATUS_OK);
    chain_schedule_release(&s);
    const uint8_t keep[] = {CHAIN_KEEP, CHAIN_KEEP, CHAIN_KEEP};
    assert_int_equal(chain_schedule_make(&chain, keep, &s, &err), STATUS_INFEASIBLE);
    assert_int_equal(test_chain_brute_force(&chain, NULL), 34);
    chain_release(&chain);
}

/* Makes the choices of a chain that fits: all layers are kept. */
static void all_kept(void **state)
{
    (void)state;
    struct chain chain;
    struct chain_schedule s = {0};
    struct chain_certificate c;
    struct error err = {0};
    char text[CERTIFICATE_TEXT_BYTES];
    test_chain("{'spillway_chain': 1, 'memory': 30, 'layers': [{'forward': 3, 'backward': 7, 'saved': 10, "
               "'count': 3}]}", &chain);
    assert_int_equal(chain_certify(&chain, &(struct chain_certify_options){.limit_s = 1}, &s, &c, &err), STATUS_OK);
    assert_int_equal(c.value, 30);
    assert_int_equal(c.status, CERTIFICATE_BOUND);
    assert_string_equal(chain_certificate_text(&c, text),
                        "makespan 30 is optimal: it equals the bound of computation");
    chain_schedule_release(&s);
    chain_release(&chain);
}

/*
 * Another road to the length of a pass: tick by tick, end what ends, then start whatever may start.
 */
struct ticking {
    const struct chain *chain;
    const uint8_t *choices;
};

static bool tick(const struct ticking *t, bool mirrored, int64_t *length)
{
    const struct chain *chain = t->chain;
    int64_t clock = 0, busy = 0, link = 0, held = 0;
    uint32_t layer = 0, copied = 0;
    bool running = false, copying = false;
    for (; clock < 100000; clock++) {
        if (running && busy == clock) {
            if (t->choices[layer] == CHAIN_RECOMPUTE)
                held -= (int64_t)(chain->layers[layer].saved - chain->layers[layer].boundary);
            running = false;
            layer++;
        }
        if (copying && link == clock) {
            held -= (int64_t)chain->layers[copied++].saved;
            copying = false;
        }
        for (bool again = true; again;) {
            again = false;
            while (!copying && copied < layer && t->choices[copied] != CHAIN_SWAP) copied++;
            if (!copying && copied < layer) {
                int64_t ticks = mirrored ? chain->layers[copied].in : chain->layers[copied].out;
                copying = ticks > 0;
                link = clock + ticks;
                if (!copying) copied++;
                again = !copying;
            }
        }
        if (!running && layer < chain->layer_count &&
            held + (int64_t)chain->layers[layer].saved <= (int64_t)chain->memory) {
            const struct chain_layer *l = &chain->layers[layer];
            held += (int64_t)l->saved;
            running = true;
            busy = clock + (mirrored ? l->backward + (t->choices[layer] == CHAIN_RECOMPUTE ? l->again : 0)
                                     : l->forward);
        }
        if (!running && !copying && layer == chain->layer_count) break;
        if (!running && !copying) return false;
    }
    *length = clock;
    return true;
}

static void tick_by_tick(void **state)
{
    (void)state;
    uint64_t seed = support_seed("ticks");
    for (uint32_t i = 0; i < 2000; i++) {
        struct chain chain;
        struct chain_pass pass;
        struct chain_schedule s = {0};
        struct error err = {0};
        uint8_t choices[8];
        int64_t there, back, makespan;
        test_chain_tiny(random_u64(seed, i), 8, &chain);
        for (uint32_t l = 0; l < chain.layer_count; l++)
            choices[l] = (uint8_t)random_below(seed ^ i, 100 + l, CHAIN_CHOICES);
        for (uint32_t l = 0; l < chain.layer_count; l++)
            if (choices[l] == CHAIN_SWAP && !chain_swaps(&chain)) choices[l] = CHAIN_RECOMPUTE;
        const struct ticking t = {&chain, choices};
        assert_int_equal(chain_pass_create(chain.layer_count, &pass, &err), STATUS_OK);
        bool fits = chain_makespan(&chain, choices, &pass, &makespan);
        bool ticked = tick(&t, false, &there) && tick(&t, true, &back);
        if (fits != ticked || (fits && makespan != there + back)) {
            test_chain_print(&chain);
            fail_msg("seed %" PRIu64 ", case %u: %d %" PRId64 ", tick by tick %d %" PRId64, seed, i, fits,
                     makespan, ticked, there + back);
        }
        if (fits) {
            assert_int_equal(chain_schedule_make(&chain, choices, &s, &err), STATUS_OK);
            if (chain_check(&chain, &s, &err)) fail_msg("seed %" PRIu64 ", case %u: %s", seed, i, err.text);
            assert_int_equal(s.makespan, makespan);
            chain_schedule_release(&s);
        }
        chain_pass_destroy(&pass);
        chain_release(&chain);
    }
}

/* --- the judge -------------------------------------------------------------------------------- */

static void expect_complaint(const struct chain *chain, const struct chain_schedule *s, const char *text)
{
    struct error err = {0};
    assert_int_equal(chain_check(chain, s, &err), STATUS_CHECK);
    assert_string_equal(err.text, text);
}

static void broken(void **state)
{
    (void)state;
    struct chain chain;
    struct chain_schedule s = {0};
    struct error err = {0};
    test_chain(three, &chain);
    const uint8_t choices[] = {CHAIN_SWAP, CHAIN_KEEP, CHAIN_KEEP};
    assert_int_equal(chain_schedule_make(&chain, choices, &s, &err), STATUS_OK);
    s.forward[2] = 7; /* its memory is layer 0's, still being copied out */
    expect_complaint(&chain, &s, "layer 2: 30 bytes at tick 7, and the device has 22");
    s.forward[2] = 6;
    expect_complaint(&chain, &s, "layer 2 runs forward before the previous layer has ended");
    s.forward[2] = 9;
    expect_complaint(&chain, &s, "layer 2 runs on the wrong side of the turnaround");
    s.forward[2] = 8;
    s.in[0] = 20;
    expect_complaint(&chain, &s, "layer 0: 30 bytes at tick 20, and the device has 22");
    s.in[0] = 23;
    expect_complaint(&chain, &s, "layer 0 is copied in too early or too late");
    s.in[0] = 22;
    s.out[0] = 2;
    expect_complaint(&chain, &s, "layer 0 is copied out too early or too late");
    s.out[0] = 3;
    s.makespan = 35;
    expect_complaint(&chain, &s, "a makespan of 34 ticks, claimed are 35");
    s.makespan = 34;
    s.backward[1] = 22;
    expect_complaint(&chain, &s, "layer 1 ends after what follows it has begun");
    s.backward[1] = 21;
    s.choices[1] = CHAIN_SWAP;
    s.out[1] = 7;
    expect_complaint(&chain, &s, "layer 1 is copied in too early or too late");
    s.in[1] = 14;
    expect_complaint(&chain, &s, "layers 0 and 1 are copied at the same time");
    chain_schedule_release(&s);
    chain_release(&chain);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void limits(void **state)
{
    (void)state;
    static const double limits_s[] = {0, 0.05, 0.3};
    struct test_chain_random options = {.family = CHAIN_RANDOM, .seed = 3, .layers = 512, .memory = 0.2, .link = 0.3};
    struct chain chain;
    struct error err = {0};
    assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
    int64_t before = INT64_MAX;
    for (uint32_t i = 0; i < ARRAY_COUNT(limits_s); i++) {
        struct chain_schedule s = {0};
        struct chain_certificate c;
        double started = clock_s();
        assert_int_equal(chain_certify(&chain, &(struct chain_certify_options){.limit_s = limits_s[i]}, &s, &c, &err),
                         STATUS_OK);
        assert_true(clock_s() - started < limits_s[i] + 2); /* one step of each method, on a busy machine */
        assert_true(c.value <= before && c.bound <= c.value && c.bound >= chain.compute);
        before = c.value;
        chain_schedule_release(&s);
    }
    chain_release(&chain);
}

/* Every allocation of a small search fails once: the error is reported, and nothing leaks. */
static void memory_ends(void **state)
{
    (void)state;
    struct chain chain;
    test_chain(three, &chain);
    for (uint64_t n = 1;; n++) {
        struct chain_schedule s = {0};
        struct chain_certificate c;
        struct error err = {0};
        alloc_test_fail_at(n);
        enum status status = chain_certify(
            &chain, &(struct chain_certify_options){.limit_s = 5, .memory_bytes = 1 << 16}, &s, &c, &err);
        bool reached = alloc_test_fail_at(0) >= n;
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        if (status == STATUS_OK) assert_int_equal(c.value, 34);
        chain_schedule_release(&s);
        if (!reached) break;
    }
    chain_release(&chain);
}

/* --- files ------------------------------------------------------------------------------------ */

static enum status parse(const char *text, struct chain *out, struct error *err)
{
    struct json_input *in;
    enum status status = test_json_parse(text, &in, err);
    if (!status) status = chain_parse(in, out, err);
    json_input_destroy(in);
    return status;
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        enum status status;
    } cases[] = {
        {"{'spillway_chain': 1, 'memory': 5, 'layers': []}",
         "test:1:46: an empty chain (expected at least one layer)", STATUS_BAD_INPUT},
        {"{'spillway_chain': 2, 'memory': 5, 'layers': []}",
         "test:1:20: 'spillway_chain' is 2 (expected 1)", STATUS_BAD_INPUT},
        {"{'spillway_chain': 1, 'memory': 5, 'layers': [{'forward': 0, 'backward': 1, 'saved': 1}]}",
         "test:1:59: 'forward' is 0 (expected 1 to 1000000000000)", STATUS_BAD_INPUT},
        {"{'spillway_chain': 1, 'memory': 5, 'layers': [{'forward': 1, 'backward': 1e300, 'saved': 1}]}",
         "test:1:74: 'backward' is 1e300 (expected a whole number)", STATUS_BAD_INPUT},
        {"{'spillway_chain': 1, 'memory': 5, 'layers': [{'forward': 1, 'backward': 1, 'saved': 3, 'boundary': 4}]}",
         "test:1:101: 'boundary' is 4 (expected 0 to 3)", STATUS_BAD_INPUT},
        {"{'spillway_chain': 1, 'memory': 5, 'layers': [{'forward': 1, 'backward': 1, 'saved': 6}]}",
         "test: layer 0: needs 6 bytes, and the device has 5", STATUS_INFEASIBLE},
        {"{'spillway_chain': 1, 'memory': 8, 'layers': [{'forward': 1, 'backward': 1, 'saved': 6, 'boundary': 3, "
         "'count': 2}]}",
         "test: layer 1: needs 9 bytes with the boundaries before it, and the device has 8", STATUS_INFEASIBLE},
        {"{'spillway_chain': 1, 'memory': 8, 'layers': [{'forward': 1000000000000, 'backward': 1000000000000, "
         "'saved': 6, 'count': 1000}]}",
         "test: the durations add up to more than 281474976710656 ticks", STATUS_LIMIT},
        {"{'spillway_chain': 1, 'memory': 8, 'layers': [{'forward': 1, 'backward': 1, 'saved': 6, 'count': 1024}, "
         "{'forward': 1, 'backward': 1, 'saved': 6}]}",
         "test:1:105: too many layers (limit is 1024)", STATUS_BAD_INPUT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct chain chain = {0};
        struct error err = {0};
        assert_int_equal(parse(cases[i].text, &chain, &err), cases[i].status);
        assert_string_equal(err.text, cases[i].message);
        chain_release(&chain);
    }
}

static char *text_of(const struct chain *chain)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert_non_null(out);
    test_chain_write(chain, out);
    char *copy = strdup(json_out_text(out, &length));
    json_out_destroy(out);
    assert_non_null(copy);
    return copy;
}

static void round_trip(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < CHAIN_FAMILIES; f++) {
        struct test_chain_random options = {.family = (enum chain_family)f, .seed = 5, .layers = 13, .memory = 0.4,
                                            .link = 0.2};
        struct chain chain, again = {0};
        struct error err = {0};
        assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
        char *first = text_of(&chain);
        assert_int_equal(parse(first, &again, &err), STATUS_OK);
        assert_int_equal(again.layer_count, 13);
        assert_memory_equal(chain.layers, again.layers, 13 * sizeof *chain.layers);
        char *second = text_of(&again);
        assert_string_equal(first, second);
        free(first);
        free(second);
        chain_release(&chain);
        chain_release(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand), cmocka_unit_test(all_kept), cmocka_unit_test(tick_by_tick),
        cmocka_unit_test(broken),  cmocka_unit_test(limits),   cmocka_unit_test(memory_ends),
        cmocka_unit_test(refused), cmocka_unit_test(round_trip),
    };
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
