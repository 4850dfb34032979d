/*
 * Local search on the makespan: another choice for one layer, then for two, because a second one often has to take the
 * memory that the first gives up.
 */
#include "planner/chain/chain_search.h"

#include "base/process/clock.h"
#include "base/try.h"

/* Tries every other choice for `layer` and keeps the first better one. */
static bool change_one(const struct chain *chain, struct chain_pass *pass, uint8_t *choices,
                       uint32_t layer, int64_t *best)
{
    uint8_t before = choices[layer];
    int64_t now;
    for (uint8_t choice = 0; choice < CHAIN_CHOICES; choice++) {
        choices[layer] = choice;
        if (choice == before || (choice == CHAIN_SWAP && !chain_swaps(chain))) continue;
        if (chain_makespan(chain, choices, pass, &now) && now < *best) {
            *best = now;
            return true;
        }
    }
    choices[layer] = before;
    return false;
}

/* Tries a pair: each other choice of `a`, then change_one() of `b`. */
static bool change_two(const struct chain *chain, struct chain_pass *pass, uint8_t *choices, uint32_t a,
                       uint32_t b, int64_t *best)
{
    uint8_t before = choices[a];
    for (uint8_t choice = 0; choice < CHAIN_CHOICES; choice++) {
        choices[a] = choice;
        if (choice == before || (choice == CHAIN_SWAP && !chain_swaps(chain))) continue;
        if (change_one(chain, pass, choices, b, best)) return true;
    }
    choices[a] = before;
    return false;
}

enum status chain_improve(const struct chain *chain, double until_s, uint8_t *choices, int64_t *makespan,
                          struct error *err)
{
    struct chain_pass pass;
    uint32_t layers = chain->layer_count;
    TRY(chain_pass_create(layers, &pass, err));
    for (bool better = true; better;) {
        better = false;
        for (uint32_t l = 0; l < layers; l++) better |= change_one(chain, &pass, choices, l, makespan);
        for (uint32_t a = 0; a < layers && !better && clock_s() < until_s; a++)
            for (uint32_t b = a + 1; b < layers; b++)
                better |= change_two(chain, &pass, choices, a, b, makespan);
        if (clock_s() >= until_s) break;
    }
    chain_pass_destroy(&pass);
    return STATUS_OK;
}
