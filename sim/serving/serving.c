#include "sim/serving/serving.h"

#include <math.h>

const char *const traffic_process_names[TRAFFIC_PROCESS_COUNT] = {"poisson", "gamma", "even", "times"};

void serving_release(struct serving *in)
{
    arena_release(&in->arena);
    *in = (struct serving){0};
}

const struct serving_degree *serving_degree_of(const struct serving_kind *kind, uint32_t tensor)
{
    for (uint32_t d = 0; d < kind->degree_count; d++)
        if (kind->degrees[d].tensor == tensor) return &kind->degrees[d];
    return NULL;
}

static double whole_s(const struct serving_kind *kind, const struct serving_degree *degree)
{
    double sum_s = 0;
    for (uint32_t l = 0; l < kind->layer_count; l++) sum_s += degree->layer_s[l];
    return sum_s;
}

double serving_least_s(const struct serving_kind *kind, uint32_t devices)
{
    double least_s = HUGE_VAL;
    for (uint32_t d = 0; d < kind->degree_count && kind->degrees[d].tensor <= devices; d++)
        least_s = fmin(least_s, whole_s(kind, &kind->degrees[d]));
    return least_s;
}

double serving_least_growth(const struct serving_kind *kind, const struct serving_degree *degree, double longest)
{
    double least = 1;
    for (uint32_t b = 1; b < kind->batch_max && degree->growth[b] <= longest; b++)
        least = fmin(least, degree->growth[b] / (b + 1));
    return least;
}

double serving_least_work_s(const struct serving_kind *kind, uint32_t devices)
{
    double least_s = HUGE_VAL;
    for (uint32_t d = 0; d < kind->degree_count && kind->degrees[d].tensor <= devices; d++)
        least_s = fmin(least_s, kind->degrees[d].tensor * whole_s(kind, &kind->degrees[d]) *
                                    serving_least_growth(kind, &kind->degrees[d], HUGE_VAL));
    return least_s < HUGE_VAL ? least_s : 0;
}
