/*
 * Rules of others for a chain (label: fast): SuperNeurons' by hand, and on random chains what makes it that
 * rule; KARMA's two steps. That no rule is better than the optimum is asked in test_chain_optimum.c, of all rules
 * alike.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>

#include "planner/chain/chain_rules.h"
#include "tests/support/solve/support_chain.h"
#include "tests/support/support_seed.h"

static void expect(struct chain *chain, uint64_t memory, const char *choices, int64_t makespan)
{
    static const char letters[CHAIN_CHOICES] = {[CHAIN_KEEP] = 'k', [CHAIN_SWAP] = 's', [CHAIN_RECOMPUTE] = 'r'};
    uint8_t found[16];
    char text[17] = "";
    int64_t value = 0;
    bool fits;
    struct error err = {0};
    chain->memory = memory;
    assert_int_equal(chain_rule_run(chain, CHAIN_RULE_SUPERNEURONS, found, &value, &fits, &err), STATUS_OK);
    for (uint32_t l = 0; fits && l < chain->layer_count; l++) text[l] = letters[found[l]];
    assert_string_equal(text, choices);
    assert_int_equal(value, makespan);
}

/*
 * The first four layers take 15 ticks to recompute for 34 bytes: 1 and 3 take less than half of that for a byte. All is
 * computed in 53 ticks, 1 and 3 are recomputed in 2 more.
 *
 *   44 bytes  all are kept
 *   36        10 + 3 + 10 + 2 are left before the last layer, 35 with it: nothing leaves
 *   26        when layer 3 runs, 10 + 3 + 10 are left and 6 are wanted: layer 0 leaves, 6-11, long before that (14),
 *             and is back in time: 5 ticks during the 11 of layer 2's backward pass
 *   20        already when layer 2 runs, 10 + 3 are left and 10 wanted, which wait for layer 0's copy: 11 in place of
 *             7. The last layer wants 10 besides 3 + 10 + 2: layer 2 leaves too, 18-23, and all wait for it, 23 in
 *             place of 19. On the way back 2 comes in after the last layer, whose 10 bytes and 3 + 2 leave no room:
 *             36-41, during layer 3, 37-41. Then 0 when 2 has left: its pass is over at 52, copy 52-57, during
 *             layer 1, 54-57; it runs 57-66.
 */
static void by_hand(void **state)
{
    (void)state;
    struct chain chain;
    test_chain("{'spillway_chain': 1, 'memory': 44, 'out_bytes_per_tick': 2, 'in_bytes_per_tick': 2, 'layers': "
               "[{'forward': 6, 'backward': 9, 'saved': 10, 'boundary': 2}, "
               "{'forward': 1, 'backward': 2, 'saved': 8, 'boundary': 3}, "
               "{'forward': 7, 'backward': 11, 'saved': 10, 'boundary': 4}, "
               "{'forward': 1, 'backward': 3, 'saved': 6, 'boundary': 2}, "
               "{'forward': 5, 'backward': 8, 'saved': 10, 'boundary': 1}]}", &chain);
    expect(&chain, 44, "kkkkk", 53);
    expect(&chain, 36, "krkrk", 55);
    expect(&chain, 26, "srkrk", 55);
    expect(&chain, 20, "srsrk", 66);
    chain.out_bytes_per_tick = 0; /* nowhere to go */
    expect(&chain, 36, "krkrk", 55);
    expect(&chain, 26, "", 0);
    chain_release(&chain);
}

/* Returns the bytes with which no forward pass waits for a copy. */
static uint64_t needed(const struct chain *chain, const uint8_t *choices)
{
    uint64_t most = 0, left = 0;
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        if (left + chain->layers[l].saved > most) most = left + chain->layers[l].saved;
        left += chain_left(&chain->layers[l], (enum chain_choice)choices[l]);
    }
    return most;
}

/* Swapped layers are the first that are not recomputed, and no more than necessary; of equal layers none is cheap. */
static void evicted(void **state)
{
    (void)state;
    uint64_t seed = support_seed("evicted");
    uint32_t recomputed = 0, swapped = 0;
    for (uint32_t i = 0; i < 60; i++) {
        struct test_chain_random options = {.family = (enum chain_family)(i % CHAIN_FAMILIES), .seed = seed + i,
                                            .layers = 24,
                                       .memory = 0.1 + 0.1 * (i / 6), .link = 0.3};
        struct chain chain;
        uint8_t choices[24];
        int64_t value;
        bool fits, kept = false;
        struct error err = {0};
        assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
        assert_int_equal(chain_rule_run(&chain, CHAIN_RULE_SUPERNEURONS, choices, &value, &fits, &err), STATUS_OK);
        assert_true(fits);
        uint32_t youngest = UINT32_MAX, cheap = 0;
        for (uint32_t l = 0; l < chain.layer_count; l++) {
            kept |= choices[l] == CHAIN_KEEP;
            cheap += choices[l] == CHAIN_RECOMPUTE;
            if (choices[l] != CHAIN_SWAP) continue;
            if (kept) fail_msg("seed %" PRIu64 ", case %u: layer %u leaves, and an older one stays", seed, i, l);
            youngest = l;
            swapped++;
        }
        recomputed += cheap;
        if (options.family == CHAIN_IDENTICAL) assert_int_equal(cheap, 0);
        assert_true(needed(&chain, choices) <= chain.memory);
        if (youngest != UINT32_MAX) {
            choices[youngest] = CHAIN_KEEP;
            assert_true(needed(&chain, choices) > chain.memory);
        }
        chain_release(&chain);
    }
    printf("%u layers recomputed, %u swapped\n", recomputed, swapped);
    assert_true(recomputed > 0 && swapped > 0);
}

/* The first step swaps the first layers and keeps the others; the second recomputes some of the first, and is no
 * slower. */
static void two_steps(void **state)
{
    (void)state;
    uint64_t seed = support_seed("two steps");
    uint32_t swapped = 0, recomputed = 0, faster = 0;
    for (uint32_t i = 0; i < 60; i++) {
        struct test_chain_random options = {.family = (enum chain_family)(i % CHAIN_FAMILIES), .seed = seed + i,
                                            .layers = 24,
                                       .memory = 0.1 + 0.1 * (i / 6), .link = 0.3};
        struct chain chain;
        uint8_t one[24], both[24];
        int64_t one_value, both_value;
        bool one_fits, both_fit;
        struct error err = {0};
        assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
        assert_int_equal(chain_rule_run(&chain, CHAIN_RULE_CAPACITY, one, &one_value, &one_fits, &err), STATUS_OK);
        assert_int_equal(chain_rule_run(&chain, CHAIN_RULE_KARMA, both, &both_value, &both_fit, &err), STATUS_OK);
        assert_int_equal(one_fits, both_fit);
        for (uint32_t l = 0; one_fits && l < chain.layer_count; l++) {
            assert_true(one[l] == CHAIN_SWAP || one[l] == CHAIN_KEEP);
            if (l > 0 && one[l - 1] == CHAIN_KEEP) assert_int_equal(one[l], CHAIN_KEEP);
            if (both[l] != one[l]) assert_true(one[l] == CHAIN_SWAP && both[l] == CHAIN_RECOMPUTE);
            swapped += one[l] == CHAIN_SWAP;
            recomputed += both[l] == CHAIN_RECOMPUTE;
        }
        if (one_fits) assert_true(both_value <= one_value);
        faster += one_fits && both_value < one_value;
        chain_release(&chain);
    }
    print_message("%u layers swapped, %u of them recomputed, %u chains faster\n", swapped, recomputed, faster);
    assert_true(swapped > recomputed && recomputed > 0 && faster > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(evicted),
                                       cmocka_unit_test(two_steps)};
    return cmocka_run_group_tests_name("chain_rules", tests, NULL, NULL);
}
