/* label: medium
 * Keep or recompute against Checkmate's full program, solved by GLPK: never better than it, because it may compute
 * several layers again in a row; equal where that cannot help. See support_checkmate.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/chain/chain_certify.h"
#include "planner/chain/chain_keep.h"
#include "tests/support/solve/support_chain.h"
#include "tests/support/solve/support_checkmate.h"
#include "tests/support/support_seed.h"

enum { NETWORK_LAYERS_MAX = 8 };

/* Finds the recomputed ticks of the full program, for which GLPK's value must be its solution's. Returns false if
 * memory is too small for anything. */
static bool full(const struct chain *chain, int64_t *again)
{
    struct milp *milp = checkmate_program(chain);
    struct milp_result result = {0};
    struct error err = {0};
    int64_t forward = 0;
    assert_non_null(milp);
    for (uint32_t l = 0; l < chain->layer_count; l++) forward += chain->layers[l].forward;
    if (milp_solve(milp, &(struct milp_options){.limit_s = 300}, &result, &err)) fail_msg("%s", err.text);
    assert_int_not_equal(result.status, MILP_STOPPED);
    if (result.found) {
        *again = checkmate_play(chain, result.x) - forward;
        assert_true(result.value > (double)(*again + forward) - 1e-3 &&
                    result.value < (double)(*again + forward) + 1e-3);
    }
    free(result.x);
    milp_destroy(milp);
    return result.found;
}

/* Does the same for keep or recompute, layer by layer; a boundary is made while its layer's bytes are there. */
static bool single(const struct chain *chain, int64_t *again)
{
    struct chain_need needs[NETWORK_LAYERS_MAX];
    uint8_t choices[NETWORK_LAYERS_MAX];
    struct error err = {0};
    bool fits;
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        uint64_t next = l + 1 < chain->layer_count ? layer[1].boundary : 0;
        needs[l] = (struct chain_need){layer->saved, layer->boundary, layer->saved + next, layer->forward};
    }
    needs[chain->layer_count - 1].recomputed = needs[chain->layer_count - 1].kept; /* it runs backward at once */
    assert_int_equal(chain_keep_best(needs, chain->layer_count, chain->memory, choices, &fits, &err), STATUS_OK);
    *again = 0;
    for (uint32_t l = 0; fits && l < chain->layer_count; l++)
        if (choices[l] == CHAIN_RECOMPUTE) *again += chain->layers[l].forward;
    return fits;
}

/* Small numbers; boundaries up to `boundary_max`; memory from too little to enough, of longer chains from
 * two fifths of all on: short of that GLPK may take minutes. */
static void draw(uint64_t seed, uint32_t layers, uint64_t boundary_max, struct chain *chain)
{
    struct error err = {0};
    uint64_t c = 0, kept = 0;
    *chain = (struct chain){0};
    assert_int_equal(chain_init(chain, layers, &err), STATUS_OK);
    for (uint32_t l = 0; l < layers; l++) {
        uint64_t boundary = boundary_max ? random_below(seed, c++, boundary_max + 1) : 0;
        chain->layers[l] = (struct chain_layer){.forward = 1 + (int64_t)random_below(seed, c++, 9),
                                                .backward = 3,
                                                .boundary = boundary,
                                                .saved = boundary + 1 + random_below(seed, c++, 12)};
        kept += chain->layers[l].saved;
    }
    chain->memory = chain->layers[0].saved + random_below(seed, c++, kept);
    if (layers > 4 && chain->memory < kept * 2 / 5) chain->memory = kept * 2 / 5;
}

struct tally {
    uint32_t equal, better, alone;
};

/*
 * On equal terms the full program is never worse. It is not worse than the certificate either, by the rules of chain.h
 * and without a link, when it is given the extra memory of the widest boundary, which is needed while the boundary is
 * made.
 */
static void compare(struct chain *chain, uint64_t seed, struct tally *tally)
{
    struct chain_schedule s = {0};
    struct chain_certificate certificate;
    struct error err = {0};
    int64_t full_ticks, single_ticks;
    uint64_t widest = 0;
    bool is_full = full(chain, &full_ticks), is_single = single(chain, &single_ticks);
    if (is_single && (!is_full || single_ticks < full_ticks)) {
        test_chain_print(chain);
        fail_msg("seed %" PRIu64 ": %" PRId64 " ticks again, of the full program %" PRId64, seed, single_ticks,
                 is_full ? full_ticks : -1);
    }
    tally->equal += is_single && single_ticks == full_ticks;
    tally->better += is_single && single_ticks > full_ticks;
    tally->alone += is_full && !is_single;
    if (chain_finish(chain, &err)) return; /* too little memory by the rules of chain.h */
    if (chain_certify(chain, &(struct chain_certify_options){.limit_s = 60}, &s, &certificate, &err))
        fail_msg("%s", err.text);
    assert_int_not_equal(certificate.status, CERTIFICATE_GAP);
    for (uint32_t l = 1; l < chain->layer_count; l++)
        if (chain->layers[l].boundary > widest) widest = chain->layers[l].boundary;
    chain->memory += widest;
    assert_true(full(chain, &full_ticks));
    assert_true(full_ticks <= certificate.value - chain->compute);
    chain_schedule_release(&s);
}

static void never_worse(void **state)
{
    (void)state;
    uint64_t seed = support_seed("never worse");
    struct tally tally = {0};
    for (uint32_t i = 0; i < 30; i++) {
        struct chain chain;
        draw(random_u64(seed, i), 2 + i % 3, 12, &chain);
        compare(&chain, random_u64(seed, i), &tally);
        chain_release(&chain);
    }
    printf("%u equal, %u better, %u where single layers do not fit\n", tally.equal, tally.better, tally.alone);
    assert_true(tally.equal > 0);
}

/* Does the same for more layers, where it is better by some. The chains are fixed, because GLPK's time varies. */
static void longer(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {3, 6, 6, 1}; /* 5, 6, 7, 8 layers */
    struct tally tally = {0};
    for (uint32_t i = 0; i < ARRAY_COUNT(seeds); i++) {
        struct chain chain;
        draw(seeds[i], 5 + i, 12, &chain);
        compare(&chain, seeds[i], &tally);
        chain_release(&chain);
    }
    assert_true(tally.equal > 0 && tally.better > 0);
}

/*
 * They agree where boundaries have no bytes: then every layer can be computed again, once, from resident data, directly
 * before its backward pass, and nothing is gained by doing more. They agree for two layers: the last one and its
 * boundary are needed from one pass to the other.
 */
static void agree(void **state)
{
    (void)state;
    uint64_t seed = support_seed("agree");
    uint32_t again = 0;
    for (uint32_t i = 0; i < 40; i++) {
        struct chain chain;
        int64_t free_ticks = 0, single_ticks = 0;
        draw(random_u64(seed, i), i % 2 ? 2 : 4 + i / 2 % 5, i % 2 ? 12 : 0, &chain);
        bool is_full = full(&chain, &free_ticks), is_single = single(&chain, &single_ticks);
        if (is_full != is_single || (is_full && free_ticks != single_ticks)) {
            test_chain_print(&chain);
            fail_msg("seed %" PRIu64 ", case %u: %" PRId64 " ticks again, of the full program %" PRId64, seed, i,
                     is_single ? single_ticks : -1, is_full ? free_ticks : -1);
        }
        again += is_full && free_ticks > 0;
        chain_release(&chain);
    }
    assert_true(again > 0);
}

/*
 * Two layers again in a row. Four layers of 2 ticks save 10 + 4 bytes (inner, boundary; the batch has
 * none), and 28 bytes are there.
 *
 * One at a time: boundaries 1, 2 and 3 stay, 12 bytes, so that next to layer 3's 10 inner bytes all of 0, 1 and 2 have
 * to be dropped: 6 ticks. And while boundary 3 is made 4 + 4 + 10 + 4 = 22 bytes are there: it fits. With memory for 21
 * bytes it does not, whatever is dropped. But boundary 1 may go when layer 1 has run:
 * then 4 + 10 + 4 = 18 are there. When layer 1's turn backward comes, layers 0 and 1 run again in a row, with
 * what layer 0 saved dropped in between, 10 + 4 + 10 being too much, so that it runs once more for its own
 * turn: with layer 2 four times, 8 ticks.
 */
static void two_in_a_row(void **state)
{
    (void)state;
    struct chain chain = {0};
    struct error err = {0};
    int64_t ticks;
    assert_int_equal(chain_init(&chain, 4, &err), STATUS_OK);
    for (uint32_t l = 0; l < 4; l++)
        chain.layers[l] = (struct chain_layer){.forward = 2, .backward = 3, .boundary = l > 0 ? 4 : 0,
                                               .saved = l > 0 ? 14 : 10};
    chain.memory = 22;
    assert_true(single(&chain, &ticks));
    assert_int_equal(ticks, 6);
    assert_true(full(&chain, &ticks));
    assert_int_equal(ticks, 6);
    chain.memory = 21;
    assert_false(single(&chain, &ticks));
    assert_true(full(&chain, &ticks));
    assert_int_equal(ticks, 8);
    chain_release(&chain);
}

/* Every row and column has its own name, also in the file. */
static void named(void **state)
{
    (void)state;
    struct chain chain;
    draw(5, 3, 4, &chain);
    struct milp *milp = checkmate_program(&chain);
    /* 8 nodes: R 36, S 28, U 36; FREE of 8 nodes from stage k on, 1 + needs: inner_0 8, bound_1 7 * 2,
       inner_1 6 * 2, bound_2 5 * 2, inner_2 4 * 2, back_2 3 * 3, back_1 2 * 3, back_0 1 * 2 */
    assert_non_null(milp);
    assert_int_equal(checkmate_node_count(&chain), 8);
    assert_int_equal(milp_column_count(milp), 36 + 28 + 36 + 8 + 14 + 12 + 10 + 8 + 9 + 6 + 2);
    milp_destroy(milp);
    chain_release(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(never_worse), cmocka_unit_test(longer),
                                       cmocka_unit_test(agree), cmocka_unit_test(two_in_a_row),
                                       cmocka_unit_test(named)};
    return cmocka_run_group_tests_name("chain_checkmate", tests, NULL, NULL);
}
