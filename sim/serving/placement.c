/* Every kind is cut once in every shape; placements look the cuts up. */
#include "sim/serving/placement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text/quantity.h"
#include "base/try.h"

enum status serving_cuts_make(struct arena *arena, const struct serving *in, const struct serving_shape *shapes,
                              uint32_t shape_count, struct serving_cuts *out, struct error *err)
{
    struct serving_shape *own;
    *out = (struct serving_cuts){.in = in, .shape_count = shape_count};
    TRY(ARENA_NEW(arena, shape_count, own, err));
    TRY(ARENA_NEW(arena, (size_t)shape_count * in->kind_count, out->cuts, err));
    memcpy(own, shapes, shape_count * sizeof *shapes);
    out->shapes = own;
    for (uint32_t s = 0; s < shape_count; s++)
        for (uint32_t k = 0; k < in->kind_count; k++)
            TRY(stage_cut_make(arena, &in->kinds[k], shapes[s], &out->cuts[(size_t)s * in->kind_count + k], err));
    return STATUS_OK;
}

const struct stage_cut *serving_cuts_of(const struct serving_cuts *cuts, struct serving_shape shape)
{
    for (uint32_t s = 0; s < cuts->shape_count; s++)
        if (serving_shape_same(cuts->shapes[s], shape)) return &cuts->cuts[(size_t)s * cuts->in->kind_count];
    return NULL;
}

const struct stage_cut *serving_cut(const struct serving_cuts *cuts, struct serving_shape shape, uint32_t kind)
{
    const struct stage_cut *row = serving_cuts_of(cuts, shape);
    return row && row[kind].stage_s ? &row[kind] : NULL;
}

/* Checks a group. `stage_bytes`: (pipeline), zeroed before. */
static enum status check_group(const struct serving_cuts *cuts, const struct serving_placement *placement,
                               uint32_t number, uint64_t *stage_bytes, struct error *err)
{
    const struct serving *in = cuts->in;
    const struct serving_group *group = &placement->groups[number];
    char need[QUANTITY_TEXT_BYTES], have[QUANTITY_TEXT_BYTES];
    for (uint32_t i = 0; i < group->model_count; i++) {
        const struct serving_model *model = &in->models[group->models[i]];
        const struct stage_cut *cut = serving_cut(cuts, group->shape, model->kind);
        if (i > 0 && group->models[i] <= group->models[i - 1])
            return error_set(err, STATUS_BAD_INPUT, "group %u has model '%s' twice", number, model->name);
        if (!cut)
            return error_set(err, STATUS_INFEASIBLE,
                             "group %u has %u devices per stage and %u stages, "
                             "but model '%s' cannot be cut in this way",
                             number, group->shape.tensor, group->shape.pipeline, model->name);
        for (uint32_t s = 0; s < group->shape.pipeline; s++) {
            stage_bytes[s] += cut->stage_bytes[s];
            if (stage_bytes[s] > in->device_bytes)
                return error_set(err, STATUS_INFEASIBLE,
                                 "stage %u of group %u needs %s for the models up to '%s', but a device has %s", s,
                                 number, quantity_text((double)stage_bytes[s], DIMENSION_BYTES, need), model->name,
                                 quantity_text((double)in->device_bytes, DIMENSION_BYTES, have));
        }
    }
    return STATUS_OK;
}

enum status placement_check(const struct serving_cuts *cuts, const struct serving_placement *placement,
                            struct error *err)
{
    uint64_t devices = 0;
    for (uint32_t g = 0; g < placement->group_count; g++)
        devices += serving_shape_devices(placement->groups[g].shape);
    if (devices > cuts->in->device_count)
        return error_set(err, STATUS_INFEASIBLE, "the groups have %" PRIu64 " devices, but there are %u", devices,
                         cuts->in->device_count);
    for (uint32_t g = 0; g < placement->group_count; g++) {
        uint64_t *bytes = alloc_zeroed(placement->groups[g].shape.pipeline, sizeof *bytes);
        if (!bytes) return error_memory(err, "a group's stages", sizeof *bytes);
        enum status status = check_group(cuts, placement, g, bytes, err);
        free(bytes);
        if (status) return status;
    }
    return STATUS_OK;
}
