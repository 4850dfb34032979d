/* The table of policies, and the rank that several of them have. */
#include "planner/policy/policies.h"

#include <string.h>

#include "base/size.h"

#define POLICY_ADDRESS(name) &policy_##name,
static const struct policy *const policies[] = {POLICIES(POLICY_ADDRESS)};
#undef POLICY_ADDRESS

const struct policy *policy_at(uint32_t index)
{
    return index < ARRAY_COUNT(policies) ? policies[index] : NULL;
}

const struct policy *policy_find(const char *name)
{
    for (uint32_t i = 0; i < ARRAY_COUNT(policies); i++)
        if (strcmp(policies[i]->name, name) == 0) return policies[i];
    return strcmp(policy_milp.name, name) == 0          ? &policy_milp
           : strcmp(policy_shared_base.name, name) == 0 ? &policy_shared_base
                                                        : NULL;
}

const char *policy_name_at(uint32_t index)
{
    const struct policy *policy = policy_at(index);
    return policy ? policy->name : NULL;
}

