#include "planner/policy/trial/policy_cases.h"

#include "base/random.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/solve/instance/instance_change.h"
#include "planner/solve/instance/instance_random.h"

enum status policy_case(uint64_t seed, uint32_t number, struct instance *out, struct error *err)
{
    static const enum instance_family families[] = {INSTANCE_FAMILY_COMPUTE,  INSTANCE_FAMILY_HIDDEN,
                                                    INSTANCE_FAMILY_TIGHT,    INSTANCE_FAMILY_COPY,
                                                    INSTANCE_FAMILY_FEW_LONG, INSTANCE_FAMILY_MANY_SHORT};
    uint64_t key = random_u64(seed, number);
    struct instance_random options = {.family = families[number % ARRAY_COUNT(families)],
                                      .seed = key >> 8, /* leaves room for the family's number */
                                      .devices = {1, 4},
                                      .jobs = {1, 6},
                                      .shards = {1, 4},
                                      .minibatches = {1, 3}};
    struct instance in = {0};
    TRY(instance_random(&options, &in, err));
    if (random_below(key, 0, 4) == 0) in.bridge_bytes_per_tick = 1 + random_below(key, 1, 4);
    if (random_below(key, 2, 2) == 0) {
        *out = in;
        return STATUS_OK;
    }
    if (instance_mix(&in, key, out, err)) {}
    instance_release(&in);
    return err->status;
}
