/* label: medium
 * Keep, swap and recompute: the optimum by trying everything = by search = by the sets that the fluid
 * program leaves; bounds below it, rules and annealing above; larger chains that are proven.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/chain/chain_anneal.h"
#include "planner/chain/chain_certify.h"
#include "planner/chain/chain_formulation.h"
#include "planner/chain/chain_search.h"
#include "tests/support/solve/support_chain.h"
#include "tests/support/support_seed.h"

/* Every other one with copies of many ticks. */
static void draw_chain(uint64_t seed, uint32_t i, struct chain *chain)
{
    if (i % 2)
        test_chain_rounded(random_u64(seed, i), 9, chain);
    else
        test_chain_tiny(random_u64(seed, i), 9, chain);
}

static void tiny(void **state)
{
    (void)state;
    uint64_t seed = support_seed("chains");
    for (uint32_t i = 0; i < SUPPORT_ROUNDS(250); i++) {
        struct chain chain;
        struct chain_schedule s = {0};
        struct chain_certificate c;
        struct error err = {0};
        draw_chain(seed, i, &chain);
        int64_t optimum = test_chain_brute_force(&chain, NULL);
        if (chain_certify(&chain, &(struct chain_certify_options){.limit_s = 100}, &s, &c, &err))
            fail_msg("seed %" PRIu64 ", case %u: %s", seed, i, err.text);
        bool wrong = c.value != optimum || c.status == CERTIFICATE_GAP || c.price_bound > optimum;
        for (uint32_t r = 0; r < CHAIN_RULES; r++) wrong |= c.rule_fits[r] && c.rule_values[r] < optimum;
        if (wrong) {
            test_chain_print(&chain);
            fail_msg("seed %" PRIu64 ", case %u: %" PRId64 " (status %d, prices %" PRId64 "), optimum %" PRId64,
                     seed, i, c.value, c.status, c.price_bound, optimum);
        }
        chain_schedule_release(&s);
        chain_release(&chain);
    }
}

/* Draws sets of allowed choices, each with the choice of the rule swap-all or, without a link, recompute. */
static void draw_allowed(uint64_t seed, const struct chain *chain, uint8_t *allowed)
{
    uint8_t way_out = 1 << (chain_swaps(chain) ? CHAIN_SWAP : CHAIN_RECOMPUTE);
    for (uint32_t l = 0; l < chain->layer_count; l++)
        allowed[l] = way_out | (uint8_t)random_below(seed, 1000 + l, CHAIN_EVERY_CHOICE + 1);
    allowed[chain->layer_count - 1] = CHAIN_EVERY_CHOICE;
}

/*
 * A few states a layer: bounds of those left out are bounds, whatever prices say, and whatever is
 * allowed. Prices at the places that the search was at are bounds as well: with them it says the same,
 * and more.
 */
static void narrow(void **state)
{
    (void)state;
    uint64_t seed = support_seed("narrow");
    uint32_t sharper = 0;
    for (uint32_t i = 0; i < 200; i++) {
        struct chain chain;
        struct chain_bound bound = {0};
        struct chain_search_result result;
        struct chain_place places[64];
        struct chain_pass pass;
        struct error err = {0};
        uint8_t choices[9], allowed[9];
        bool fits;
        int64_t value, again, before = 0;
        draw_chain(seed, i, &chain);
        draw_allowed(random_u64(seed, i), &chain, allowed);
        const uint8_t *sets = i % 3 ? NULL : allowed;
        int64_t optimum = test_chain_brute_force(&chain, sets);
        struct chain_search_options options = {.width_min = 1, .width_max = 1 + i % 3, .until_s = HUGE_VAL,
                                               .places = places, .places_max = ARRAY_COUNT(places)};
        assert_int_equal(chain_bound_make(&chain, sets, i % 2 ? 0 : 10, &bound, &err), STATUS_OK);
        assert_int_equal(chain_pass_create(chain.layer_count, &pass, &err), STATUS_OK);
        for (uint32_t round = 0; round < 3; round++) {
            enum chain_rule rule = chain_swaps(&chain) ? CHAIN_RULE_SWAP_ALL : CHAIN_RULE_RECOMPUTE;
            assert_int_equal(chain_rule_run(&chain, rule, choices, &value, &fits, &err), STATUS_OK);
            assert_true(fits);
            assert_int_equal(chain_search(&chain, &bound, &options, choices, &value, &result, &err), STATUS_OK);
            assert_true(chain_makespan(&chain, choices, &pass, &again));
            assert_int_equal(again, value);
            if (result.bound > optimum || (result.proven && value > optimum) || (!sets && value < optimum) ||
                chain_bound_ticks(&chain, &bound) > optimum) {
                test_chain_print(&chain);
                fail_msg("seed %" PRIu64 ", case %u, round %u: bound %" PRId64 ", prices %" PRId64 ", optimum %" PRId64,
                         seed, i, round, result.bound, chain_bound_ticks(&chain, &bound), optimum);
            }
            if (round > 0 && result.bound > before) sharper++;
            before = result.bound;
            assert_int_equal(chain_bound_sharpen(&chain, places, result.place_count, 10, &bound, &err), STATUS_OK);
        }
        chain_pass_destroy(&pass);
        chain_bound_release(&bound);
        chain_release(&chain);
    }
    assert_true(sharper > 0);
}

/* The search is made useless, so that the sets that the fluid program leaves are all tried. */
static void sets(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sets");
    uint32_t by_sets = 0;
    for (uint32_t i = 0; i < 400; i++) {
        struct chain chain;
        struct chain_schedule s = {0};
        struct chain_certificate c;
        struct error err = {0};
        char text[CERTIFICATE_TEXT_BYTES];
        draw_chain(seed, i, &chain);
        int64_t optimum = test_chain_brute_force(&chain, NULL);
        const struct chain_certify_options options = {.limit_s = 100, .width_max = 1 + i % 4};
        if (chain_certify(&chain, &options, &s, &c, &err)) fail_msg("seed %" PRIu64 ", case %u: %s", seed, i, err.text);
        if (c.bound > optimum || c.value < optimum || (c.status != CERTIFICATE_GAP && c.value != optimum)) {
            test_chain_print(&chain);
            fail_msg("seed %" PRIu64 ", case %u: %s; optimum %" PRId64, seed, i, chain_certificate_text(&c, text),
                     optimum);
        }
        if (strcmp(c.proved_by, "sets") == 0) by_sets++;
        chain_schedule_release(&s);
        chain_release(&chain);
    }
    printf("%u by sets\n", by_sets);
    assert_true(by_sets > 0);
}

/* The fluid program's optimum lies between the prices' bound and the optimum; prices from its duals attain the
 * relaxed program's value. */
static void fluid(void **state)
{
    (void)state;
    uint64_t seed = support_seed("fluid");
    for (uint32_t i = 0; i < SUPPORT_ROUNDS(60); i++) {
        struct chain chain;
        struct chain_bound bound = {0};
        struct milp_result whole, relaxed;
        struct error err = {0};
        draw_chain(seed, i, &chain);
        int64_t optimum = test_chain_brute_force(&chain, NULL);
        struct milp *milp = chain_fluid(&chain, NULL);
        assert_non_null(milp);
        assert_int_equal(milp_solve(milp, &(struct milp_options){.limit_s = 60}, &whole, &err), STATUS_OK);
        assert_int_equal(whole.status, MILP_OPTIMAL);
        assert_int_equal(milp_solve(milp, &(struct milp_options){.limit_s = 60, .relaxed = true}, &relaxed, &err),
                         STATUS_OK);
        assert_non_null(relaxed.duals);
        assert_int_equal(chain_bound_make(&chain, NULL, 60, &bound, &err), STATUS_OK);
        assert_non_null(bound.duals);
        if (fabs(chain_bound_at(&bound, &(struct chain_place){0}) - relaxed.bound) > 1e-4 ||
            whole.value < relaxed.bound - 1e-4 ||
            chain_bound_round(&chain, whole.value) > optimum) {
            test_chain_print(&chain);
            fail_msg("seed %" PRIu64 ", case %u: prices %g, relaxed %g, fluid %g, optimum %" PRId64, seed, i,
                     chain_bound_at(&bound, &(struct chain_place){0}), relaxed.bound, whole.value,
                     optimum - chain.compute);
        }
        chain_bound_release(&bound);
        free(whole.x);
        free(relaxed.x);
        free(relaxed.duals);
        milp_destroy(milp);
        chain_release(&chain);
    }
}

/*
 * Memory for one layer at a time: each but the last is waited for while it leaves, and while it comes
 * back. 1001 bytes at 10 a tick are 101 ticks, so that three layers wait 2 * (101 + 101) ticks; a bound from bytes
 * would say 400.4. The bound counts whole ticks, and for very short copies bytes.
 */
static void whole_ticks(void **state)
{
    (void)state;
    static const struct {
        uint64_t saved;
        double excess;
    } cases[] = {{1001, 404}, {31, 12.4}};
    for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct chain chain = {.memory = cases[i].saved, .out_bytes_per_tick = 10, .in_bytes_per_tick = 10};
        struct chain_bound bound = {0};
        struct error err = {0};
        assert_int_equal(chain_init(&chain, 3, &err), STATUS_OK);
        for (uint32_t l = 0; l < 3; l++)
            chain.layers[l] = (struct chain_layer){
                .forward = 7, .backward = 11, .saved = cases[i].saved, .boundary = cases[i].saved};
        assert_int_equal(chain_finish(&chain, &err), STATUS_OK);
        assert_int_equal(chain_bound_make(&chain, NULL, 60, &bound, &err), STATUS_OK);
        assert_true(fabs(chain_bound_at(&bound, &(struct chain_place){0}) - cases[i].excess) < 1e-6);
        if (i == 0) assert_int_equal(chain_bound_ticks(&chain, &bound), test_chain_brute_force(&chain, NULL));
        chain_bound_release(&bound);
        chain_release(&chain);
    }
}

/* Annealing returns the time that the schedule of its choices takes, and these choices are allowed; it is never
 * below the optimum, and mostly there; the same seed gives the same result. */
static void annealed(void **state)
{
    (void)state;
    uint64_t seed = support_seed("annealed");
    uint32_t optimal = 0, count = 0;
    for (uint32_t i = 0; i < 200; i++) {
        struct chain chain;
        struct chain_pass pass;
        struct error err = {0};
        uint8_t allowed[9], start[9], choices[2][9];
        int64_t value[2], from, again;
        draw_chain(seed, i, &chain);
        draw_allowed(random_u64(seed, i), &chain, allowed);
        const uint8_t *sets = i % 3 ? NULL : allowed;
        for (uint32_t l = 0; l < chain.layer_count; l++) { /* the first choice that may be, swap and recompute first */
            uint8_t may = chain_allowed(&chain, sets, l);
            start[l] = may & 1 << CHAIN_SWAP ? CHAIN_SWAP : may & 1 << CHAIN_RECOMPUTE ? CHAIN_RECOMPUTE : CHAIN_KEEP;
        }
        assert_int_equal(chain_pass_create(chain.layer_count, &pass, &err), STATUS_OK);
        if (chain_makespan(&chain, start, &pass, &from)) {
            int64_t optimum = test_chain_brute_force(&chain, sets);
            for (uint32_t k = 0; k < 2; k++) {
                const struct chain_anneal_options options = {.allowed = sets, .seed = i, .moves = 3000, .hot = 5,
                                                             .cold = 0.2, .enough = i % 2 ? optimum : 0,
                                                             .until_s = HUGE_VAL};
                memcpy(choices[k], start, chain.layer_count);
                value[k] = from;
                assert_int_equal(chain_anneal(&chain, &options, choices[k], &value[k], &err), STATUS_OK);
                assert_true(chain_makespan(&chain, choices[k], &pass, &again));
                assert_int_equal(again, value[k]);
                for (uint32_t l = 0; l < chain.layer_count; l++)
                    assert_true(chain_allowed(&chain, sets, l) >> choices[k][l] & 1);
            }
            assert_memory_equal(choices[0], choices[1], chain.layer_count);
            if (value[0] < optimum) {
                test_chain_print(&chain);
                fail_msg("seed %" PRIu64 ", case %u: %" PRId64 " below %" PRId64, seed, i, value[0], optimum);
            }
            optimal += value[0] == optimum;
            count++;
        }
        chain_pass_destroy(&pass);
        chain_release(&chain);
    }
    printf("%u of %u\n", optimal, count);
    assert_true(optimal * 4 > count * 3);
}

/* Without a link, Checkmate's rule (keep or recompute) is the optimum. */
static void no_link(void **state)
{
    (void)state;
    uint64_t seed = support_seed("no link");
    for (uint32_t i = 0; i < SUPPORT_ROUNDS(300); i++) {
        struct chain chain;
        struct error err = {0};
        uint8_t choices[9];
        int64_t value;
        bool fits;
        draw_chain(seed, i, &chain);
        if (!chain_swaps(&chain)) {
            assert_int_equal(chain_rule_run(&chain, CHAIN_RULE_CHECKMATE, choices, &value, &fits, &err), STATUS_OK);
            assert_true(fits);
            assert_int_equal(value, test_chain_brute_force(&chain, NULL));
        }
        chain_release(&chain);
    }
}

/* Chains of 48 layers in stages, and of equal ones, are proven, and of 24 that all differ; no rule is
 * better on any; the same search gives the same. */
static void families(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < CHAIN_FAMILIES; f++) {
        struct test_chain_random options = {.family = (enum chain_family)f, .seed = 7,
                                       .layers = f == CHAIN_RANDOM ? 24 : 48,
                                       .memory = 0.3, .link = 0.3};
        struct chain chain;
        struct chain_schedule s[2] = {{0}, {0}};
        struct chain_certificate c[2];
        struct error err = {0};
        assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
        for (uint32_t i = 0; i < 2; i++)
            if (chain_certify(&chain, &(struct chain_certify_options){.limit_s = 30}, &s[i], &c[i], &err))
                fail_msg("%s", err.text);
        for (uint32_t r = 0; r < CHAIN_RULES; r++)
            if (c[0].rule_fits[r]) assert_true(c[0].value <= c[0].rule_values[r]);
        assert_int_not_equal(c[0].status, CERTIFICATE_GAP);
        assert_int_equal(c[0].value, c[1].value);
        assert_memory_equal(s[0].choices, s[1].choices, chain.layer_count);
        for (uint32_t i = 0; i < 2; i++) chain_schedule_release(&s[i]);
        chain_release(&chain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiny),  cmocka_unit_test(narrow),
                                       cmocka_unit_test(sets),  cmocka_unit_test(fluid),
                                       cmocka_unit_test(whole_ticks),
                                       cmocka_unit_test(annealed), cmocka_unit_test(no_link),
                                       cmocka_unit_test(families)};
    return cmocka_run_group_tests_name("chain_optimum", tests, NULL, NULL);
}
