#include "sim/placement/regroup.h"

static uint32_t repeat(struct serving_shape shape, uint32_t *devices, struct serving_shape *out)
{
    uint32_t count = *devices / serving_shape_devices(shape);
    *devices %= serving_shape_devices(shape);
    for (uint32_t i = 0; i < count; i++) out[i] = shape;
    return count;
}

uint32_t regroup_even(struct serving_shape shape, uint32_t devices, struct serving_shape *out)
{
    uint32_t count = repeat(shape, &devices, out);
    return count + repeat((struct serving_shape){1, 1}, &devices, &out[count]);
}

static void put_somewhere(struct placement_draft *draft, uint32_t first, uint32_t offset, uint32_t model)
{
    uint32_t count = draft->placement.group_count - first;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = first + (offset + i) % count;
        if (!placement_draft_fits(draft, group, model)) continue;
        placement_draft_put(draft, group, model);
        return;
    }
}

uint32_t regroup(const struct placement_draft *from, const struct regroup_choice *choice, struct serving_shape *shapes,
                 struct placement_draft *to)
{
    const struct serving_placement *old = &from->placement;
    uint32_t kept = 0, devices = 0, count, group = 0;
    for (uint32_t g = 0; g < old->group_count; g++) {
        if (g == choice->first || g == choice->second)
            devices += serving_shape_devices(old->groups[g].shape);
        else
            shapes[kept++] = old->groups[g].shape;
    }
    count = kept;
    if (serving_shape_devices(choice->shape) <= devices) {
        shapes[count++] = choice->shape;
        devices -= serving_shape_devices(choice->shape);
    }
    count += regroup_even(choice->rest, devices, &shapes[count]);
    placement_draft_lay_out(to, shapes, count);
    for (uint32_t g = 0; g < old->group_count; g++) {
        bool anew = g == choice->first || g == choice->second;
        for (uint32_t i = 0; i < old->groups[g].model_count; i++)
            if (anew)
                put_somewhere(to, kept, choice->offset + i, old->groups[g].models[i]);
            else
                placement_draft_put(to, group, old->groups[g].models[i]);
        group += !anew;
    }
    return kept;
}
