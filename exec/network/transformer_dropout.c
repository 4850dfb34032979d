/*
 * Dropout of a layer. Its mask depends on the job's seed, the step, the layer and the place, and then on the sample's
 * number in the minibatch, the token and the number: a recomputation makes the same mask, and so does every cut.
 */
#include "base/random.h"
#include "exec/network/transformer.h"
#include "models/network/network_ignored.h"

struct kernel_dropout transformer_dropout(const struct transformer_unit *unit, uint64_t layer,
                                          enum transformer_dropped place)
{
    static const enum network_dropped kinds[] = {[TRANSFORMER_EMBEDDED] = NETWORK_DROPS_EMBEDDING,
                                                 [TRANSFORMER_SCORES] = NETWORK_DROPS_SCORES,
                                                 [TRANSFORMER_ATTENDED] = NETWORK_DROPS_RESULTS,
                                                 [TRANSFORMER_MADE] = NETWORK_DROPS_RESULTS};
    const struct unit_arguments *const a = unit->arguments;
    const uint64_t masks = 0x64726f70; /* apart from other streams of the seed */
    struct kernel_dropout dropout = {.p = 0};
    if (a->pass == PLAN_EVALUATE) return dropout;
    dropout.p = (float)network_dropout(unit->network, kinds[place]);
    if (!(dropout.p > 0)) return dropout;
    dropout.key = random_u64(random_u64(random_u64(random_u64(a->job->seed, masks), a->minibatch), layer), place);
    dropout.samples = (int64_t)unit->microbatch * (int64_t)a->job->microbatch;
    dropout.begin = transformer_first_token(unit);
    dropout.rows = unit->gathered ? unit->split->rank * unit->own : 0;
    dropout.heads = unit->split ? unit->split->rank * unit->h : 0;
    return dropout;
}

void transformer_drop(const struct transformer_unit *unit, kernel_number *x, uint64_t layer,
                      enum transformer_dropped place)
{
    (void)transformer_dropped_gradient(unit, x, x, layer, place);
}

const kernel_number *transformer_dropped_gradient(const struct transformer_unit *unit, kernel_number *room,
                                                  const kernel_number *d, uint64_t layer,
                                                  enum transformer_dropped place)
{
    const struct kernel_dropout dropout = transformer_dropout(unit, layer, place);
    if (!(dropout.p > 0)) return d;
    unit->kernels->dropout(unit->kernels, room, d, unit->own, unit->t, unit->c, &dropout);
    return room;
}
