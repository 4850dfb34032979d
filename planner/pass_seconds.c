#include "planner/pass_seconds.h"

double pass_seconds(const struct hardware *hardware, uint32_t device, const struct job *job, uint64_t first,
                    uint64_t count, enum plan_pass pass, uint32_t how)
{
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    uint32_t item_count = plan_work_items(job, first, count, pass, how, 0, 0, items);
    return cost_work_s(hardware, device, items, item_count, NULL);
}

double pass_seconds_copy(const struct hardware *hardware, uint32_t device, enum copy_direction direction,
                         uint64_t bytes)
{
    return bytes > 0 ? cost_copy_s(hardware, device, direction, bytes) : 0;
}

double pass_seconds_parallel(const struct hardware *hardware, uint32_t device, const struct job *job,
                             struct parallel_layers layers, enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(job, layers, pass, items);
    return cost_work_s(hardware, device, items, count, NULL);
}

double pass_seconds_collective(const struct parallel *parallel, enum collective_kind kind,
                               const struct collective_group *group, uint64_t bytes)
{
    return bytes > 0 ? collective_seconds(kind, parallel_algorithm(parallel), group, bytes) : 0;
}

struct pass_exchanges pass_seconds_exchanges(const struct job *job, const struct collective_group *group,
                                             struct parallel_layers layers, enum parallel_pass pass)
{
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
    struct pass_exchanges sum = {0};
    uint32_t count = parallel_collectives(job, layers, pass, list);
    for (uint32_t i = 0; i < count; i++)
        *(list[i].overlaps ? &sum.beside_s : &sum.exposed_s) +=
            list[i].count * pass_seconds_collective(&job->parallel, list[i].kind, group, list[i].bytes);
    return sum;
}
