/*
 * The groups' model lists are one array. A group needs a place per fitting model. The shape with the most places per
 * device sizes the array for every layout.
 */
#include "sim/placement/draft.h"

#include <assert.h>
#include <string.h>

#include "base/try.h"

/* Returns the maximum number of models in the memory of the first stage. */
static uint32_t room(const struct serving_cuts *cuts, struct serving_shape shape)
{
    uint32_t most = 0;
    uint64_t least_bytes = UINT64_MAX;
    for (uint32_t m = 0; m < cuts->in->model_count; m++) {
        const struct stage_cut *cut = serving_cut(cuts, shape, cuts->in->models[m].kind);
        if (!cut) continue;
        most++;
        if (cut->stage_bytes[0] < least_bytes) least_bytes = cut->stage_bytes[0];
    }
    uint64_t count = least_bytes > 0 && most > 0 ? cuts->in->device_bytes / least_bytes : most;
    return count < most ? (uint32_t)count : most;
}

enum status placement_draft_rooms(struct arena *arena, const struct serving_cuts *cuts, const uint32_t **out,
                                  struct error *err)
{
    uint32_t *rooms;
    TRY(ARENA_NEW(arena, cuts->shape_count, rooms, err));
    for (uint32_t s = 0; s < cuts->shape_count; s++) rooms[s] = room(cuts, cuts->shapes[s]);
    *out = rooms;
    return STATUS_OK;
}

enum status placement_draft_make(struct arena *arena, const struct serving_cuts *cuts, const uint32_t *rooms,
                                 struct placement_draft *out, struct error *err)
{
    uint32_t devices = cuts->in->device_count, places = 0;
    for (uint32_t s = 0; s < cuts->shape_count; s++) {
        uint32_t size = serving_shape_devices(cuts->shapes[s]), each = (rooms[s] + size - 1) / size;
        if (size <= devices && each > places) places = each;
    }
    *out = (struct placement_draft){.cuts = cuts, .rooms = rooms};
    TRY(ARENA_NEW(arena, devices, out->placement.groups, err));
    TRY(ARENA_NEW(arena, devices, out->used_bytes, err));
    TRY(ARENA_NEW(arena, devices, out->first_stage, err));
    return ARENA_NEW(arena, (size_t)devices * places, out->models, err);
}

static uint32_t shape_number(const struct serving_cuts *cuts, struct serving_shape shape)
{
    uint32_t s = 0;
    while (s < cuts->shape_count && !serving_shape_same(cuts->shapes[s], shape)) s++;
    assert(s < cuts->shape_count);
    return s;
}

void placement_draft_lay_out(struct placement_draft *draft, const struct serving_shape *shapes, uint32_t count)
{
    uint32_t stage = 0, devices = 0, *next = draft->models;
    for (uint32_t g = 0; g < count; g++) {
        draft->placement.groups[g] = (struct serving_group){shapes[g], next, 0};
        draft->first_stage[g] = stage;
        next += draft->rooms[shape_number(draft->cuts, shapes[g])];
        stage += shapes[g].pipeline;
        devices += serving_shape_devices(shapes[g]);
    }
    assert(devices <= draft->cuts->in->device_count);
    draft->placement.group_count = count;
    memset(draft->used_bytes, 0, stage * sizeof *draft->used_bytes);
}

void placement_draft_copy(struct placement_draft *to, const struct placement_draft *from)
{
    for (uint32_t g = 0; g < from->placement.group_count; g++) {
        const struct serving_group *group = &from->placement.groups[g];
        uint32_t *row = to->models + (group->models - from->models);
        memcpy(row, group->models, group->model_count * sizeof *row);
        to->placement.groups[g] = (struct serving_group){group->shape, row, group->model_count};
    }
    to->placement.group_count = from->placement.group_count;
    memcpy(to->first_stage, from->first_stage, from->placement.group_count * sizeof *from->first_stage);
    memcpy(to->used_bytes, from->used_bytes, from->cuts->in->device_count * sizeof *from->used_bytes);
    to->attained = from->attained;
    to->strain = from->strain;
}

/* Returns the position of the model in the group, present or not. */
static uint32_t find(const struct serving_group *group, uint32_t model)
{
    uint32_t low = 0, high = group->model_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (group->models[middle] < model)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct stage_cut *cut_of(const struct placement_draft *draft, uint32_t group, uint32_t model)
{
    return serving_cut(draft->cuts, draft->placement.groups[group].shape, draft->cuts->in->models[model].kind);
}

static bool placement_draft_has(const struct placement_draft *draft, uint32_t group, uint32_t model)
{
    const struct serving_group *one = &draft->placement.groups[group];
    uint32_t at = find(one, model);
    return at < one->model_count && one->models[at] == model;
}

bool placement_draft_fits(const struct placement_draft *draft, uint32_t group, uint32_t model)
{
    const struct stage_cut *cut = cut_of(draft, group, model);
    if (!cut || placement_draft_has(draft, group, model)) return false;
    for (uint32_t s = 0; s < draft->placement.groups[group].shape.pipeline; s++)
        if (draft->used_bytes[draft->first_stage[group] + s] + cut->stage_bytes[s] > draft->cuts->in->device_bytes)
            return false;
    return true;
}

void placement_draft_put(struct placement_draft *draft, uint32_t group, uint32_t model)
{
    struct serving_group *one = &draft->placement.groups[group];
    const struct stage_cut *cut = cut_of(draft, group, model);
    uint32_t at = find(one, model);
    memmove(&one->models[at + 1], &one->models[at], (one->model_count - at) * sizeof *one->models);
    one->models[at] = model;
    one->model_count++;
    for (uint32_t s = 0; s < one->shape.pipeline; s++)
        draft->used_bytes[draft->first_stage[group] + s] += cut->stage_bytes[s];
}

uint32_t placement_draft_remove(struct placement_draft *draft, uint32_t group, uint32_t at)
{
    struct serving_group *one = &draft->placement.groups[group];
    uint32_t model = one->models[at];
    const struct stage_cut *cut = cut_of(draft, group, model);
    one->model_count--;
    memmove(&one->models[at], &one->models[at + 1], (one->model_count - at) * sizeof *one->models);
    for (uint32_t s = 0; s < one->shape.pipeline; s++)
        draft->used_bytes[draft->first_stage[group] + s] -= cut->stage_bytes[s];
    return model;
}
