#include "models/hardware/collective_rate.h"

#include "base/size.h"

const char *const collective_kind_names[] = {
    [COLLECTIVE_ALL_REDUCE] = "all-reduce", [COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
    [COLLECTIVE_ALL_GATHER] = "all-gather", [COLLECTIVE_BROADCAST] = "broadcast",
    [COLLECTIVE_ALL_TO_ALL] = "all-to-all", [COLLECTIVE_SEND] = "send"};
static_assert(ARRAY_COUNT(collective_kind_names) == COLLECTIVE_KIND_COUNT, "a name per kind");

bool collective_rate_alike(const struct collective_rate *a, const struct collective_rate *b)
{
    return a->kind == b->kind && a->members == b->members && a->computing == b->computing &&
           a->processes == b->processes;
}

bool collective_rate_around(const struct device_type *type, uint32_t kind, uint32_t members,
                            const struct collective_rate *both[2])
{
    both[0] = both[1] = NULL;
    for (uint32_t i = 0; i < type->collective_count; i++) {
        const struct collective_rate *rate = &type->collectives[i];
        if (rate->kind != kind || rate->computing > 0 || rate->processes > 0) continue;
        if (rate->members <= members && (!both[0] || rate->members > both[0]->members)) both[0] = rate;
        if (rate->members >= members && (!both[1] || rate->members < both[1]->members)) both[1] = rate;
    }
    return both[0] && both[1];
}
