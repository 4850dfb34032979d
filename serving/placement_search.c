/* Drafts grow and shrink replica by replica; each is judged by a simulation of all requests. */
#include "serving/placement_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"

/* Greedy placements of many replicas add several between two simulations: these many in all at most. */
enum { GREEDY_ROUNDS_MAX = 256 };
/* How many of the shapes are searched from, and which part of the simulations is for choosing among them. */
enum { SEARCHED_SHAPES = 4 };
#define CHOOSING_SHARE 0.25

/* A placement that grows and shrinks. */
struct draft {
    const struct serving_cuts *cuts;
    struct serving_placement placement; /* each group with room for all models that fit */
    uint64_t *used_bytes;               /* of each stage of each group */
    uint32_t *first_stage;              /* (group_count): into used_bytes */
    uint32_t attained;
    double strain; /* decides between placements that attain as many: how little is left in reserve */
};

struct searcher {
    const struct serving_cuts *cuts;
    const struct traffic *traffic;
    const struct placement_search_options *options;
    struct server *server;
    struct serve_result result; /* of the last simulation */
    uint64_t simulations, drawn;
    struct error *err;
};

static uint64_t draw(struct searcher *s, uint64_t bound)
{
    return random_below(s->options->seed, s->drawn++, bound);
}

static enum status judge(struct searcher *s, struct draft *draft)
{
    const struct serve_options options = {0};
    s->simulations++;
    if (server_run(s->server, &draft->placement, s->traffic, &options, &s->result, s->err)) return s->err->status;
    draft->attained = s->result.attained;
    draft->strain = s->result.strain;
    return STATUS_OK;
}

static bool worse(const struct draft *a, const struct draft *b)
{
    return a->attained != b->attained ? a->attained < b->attained : a->strain > b->strain;
}

/* --- drafts ---------------------------------------------------------------------------------- */

/* As many models as a group of the shape can have at most, by the first stage's memory. */
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

/* Groups of the shape, and devices that stand alone where they do not fill one more. */
static enum status draft_begin(struct arena *arena, const struct serving_cuts *cuts, struct serving_shape shape,
                               struct draft *out, struct error *err)
{
    const struct serving *in = cuts->in;
    uint32_t size = serving_shape_devices(shape), whole = in->device_count / size;
    uint32_t groups = whole + in->device_count % size;
    uint32_t rooms = room(cuts, shape), single = room(cuts, (struct serving_shape){1, 1});
    size_t models_max = (size_t)whole * rooms + (size_t)(groups - whole) * single;
    void *group, *used, *first, *models;
    *out = (struct draft){.cuts = cuts};
    if (arena_array(arena, groups, sizeof *out->placement.groups, &group, err) ||
        arena_array(arena, in->device_count, sizeof *out->used_bytes, &used, err) ||
        arena_array(arena, groups, sizeof *out->first_stage, &first, err) ||
        arena_array(arena, models_max, sizeof *out->placement.groups->models, &models, err))
        return err->status;
    out->placement = (struct serving_placement){group, groups};
    out->used_bytes = used;
    out->first_stage = first;
    uint32_t stage = 0, *next = models;
    for (uint32_t g = 0; g < groups; g++) {
        struct serving_group *one = &out->placement.groups[g];
        one->shape = g < whole ? shape : (struct serving_shape){1, 1};
        one->models = next;
        next += g < whole ? rooms : single;
        out->first_stage[g] = stage;
        stage += one->shape.pipeline;
    }
    return STATUS_OK;
}

/* What is in `from`, whose shape is the same. */
static void draft_copy(struct draft *to, const struct draft *from)
{
    for (uint32_t g = 0; g < from->placement.group_count; g++) {
        const struct serving_group *group = &from->placement.groups[g];
        to->placement.groups[g].model_count = group->model_count;
        memcpy(to->placement.groups[g].models, group->models, group->model_count * sizeof *group->models);
    }
    memcpy(to->used_bytes, from->used_bytes, from->cuts->in->device_count * sizeof *from->used_bytes);
    to->attained = from->attained;
    to->strain = from->strain;
}

/* Where the model is in the group, or would be. */
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

static const struct stage_cut *cut_of(const struct draft *draft, uint32_t group, uint32_t model)
{
    return serving_cut(draft->cuts, draft->placement.groups[group].shape, draft->cuts->in->models[model].kind);
}

static bool fits(const struct draft *draft, uint32_t group, uint32_t model)
{
    const struct serving_group *one = &draft->placement.groups[group];
    const struct stage_cut *cut = cut_of(draft, group, model);
    uint32_t at = find(one, model);
    if (!cut || (at < one->model_count && one->models[at] == model)) return false;
    for (uint32_t s = 0; s < one->shape.pipeline; s++)
        if (draft->used_bytes[draft->first_stage[group] + s] + cut->stage_bytes[s] > draft->cuts->in->device_bytes)
            return false;
    return true;
}

static void put(struct draft *draft, uint32_t group, uint32_t model)
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

static uint32_t take_at(struct draft *draft, uint32_t group, uint32_t at)
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

/* --- greedy ---------------------------------------------------------------------------------- */

struct failing {
    uint32_t model, requests;
};

static int by_failing(const void *a, const void *b)
{
    const struct failing *x = a, *y = b;
    if (x->requests != y->requests) return x->requests > y->requests ? -1 : 1;
    return (x->model > y->model) - (x->model < y->model);
}

/* The group with room for the model that has least to do for its devices, by the last simulation and what was
 * put there since (each replica taken for a request of its own); group_count: none. */
static uint32_t idlest(const struct searcher *s, const struct draft *draft, const double *added_s, uint32_t model)
{
    uint32_t best = draft->placement.group_count;
    double best_s = 0;
    for (uint32_t g = 0; g < draft->placement.group_count; g++) {
        double busy_s = (s->result.groups[g].busy_s + added_s[g]) /
                        serving_shape_devices(draft->placement.groups[g].shape);
        if (best < draft->placement.group_count && busy_s >= best_s) continue;
        if (!fits(draft, g, model)) continue;
        best = g;
        best_s = busy_s;
    }
    return best;
}

/* Up to `most` replicas; how many there were. */
static uint32_t add_replicas(const struct searcher *s, struct draft *draft, struct failing *failing, double *added_s,
                             uint32_t most)
{
    uint32_t models = s->cuts->in->model_count, added = 0;
    memset(added_s, 0, draft->placement.group_count * sizeof *added_s);
    for (uint32_t m = 0; m < models; m++)
        failing[m] = (struct failing){m, s->result.models[m].requests - s->result.models[m].attained};
    qsort(failing, models, sizeof *failing, by_failing);
    for (uint32_t i = 0; i < models && added < most && failing[i].requests > 0; i++) {
        uint32_t group = idlest(s, draft, added_s, failing[i].model);
        if (group == draft->placement.group_count) continue;
        put(draft, group, failing[i].model);
        added_s[group] += failing[i].requests * cut_of(draft, group, failing[i].model)->latency_s;
        added++;
    }
    return added;
}

/* From what is in the draft on until nothing more fits or fails; the best on the way is in `best`. */
static enum status fill(struct searcher *s, struct arena *scratch, struct draft *draft, struct draft *best)
{
    uint32_t models = s->cuts->in->model_count, groups = draft->placement.group_count;
    void *failing, *added_s;
    if (arena_array(scratch, models, sizeof(struct failing), &failing, s->err) ||
        arena_array(scratch, groups, sizeof(double), &added_s, s->err) || judge(s, draft))
        return s->err->status;
    uint64_t most = ((uint64_t)models * groups + GREEDY_ROUNDS_MAX - 1) / GREEDY_ROUNDS_MAX;
    draft_copy(best, draft);
    while (add_replicas(s, draft, failing, added_s, (uint32_t)most) > 0) {
        if (judge(s, draft)) return s->err->status;
        if (!worse(draft, best)) draft_copy(best, draft);
    }
    return STATUS_OK;
}

/* --- search ---------------------------------------------------------------------------------- */

/* A replica, all alike; false: there is none. */
static bool draw_replica(struct searcher *s, const struct draft *draft, uint32_t *group, uint32_t *at)
{
    uint64_t count = 0, chosen;
    for (uint32_t g = 0; g < draft->placement.group_count; g++) count += draft->placement.groups[g].model_count;
    if (count == 0) return false;
    chosen = draw(s, count);
    for (*group = 0; chosen >= draft->placement.groups[*group].model_count; (*group)++)
        chosen -= draft->placement.groups[*group].model_count;
    *at = (uint32_t)chosen;
    return true;
}

/* Fill a group with models in an order by chance, until a few in a row find no room. */
static void refill(struct searcher *s, struct draft *draft, uint32_t group)
{
    enum { MISSES_MAX = 8 };
    for (uint32_t misses = 0; misses < MISSES_MAX;) {
        uint32_t model = (uint32_t)draw(s, s->cuts->in->model_count);
        if (fits(draft, group, model))
            put(draft, group, model);
        else
            misses++;
    }
}

/* Exchange, move or replace: one small change. */
static void change(struct searcher *s, struct draft *draft)
{
    uint32_t from, at, other, other_at;
    if (!draw_replica(s, draft, &from, &at)) return;
    uint32_t model = take_at(draft, from, at);
    switch (draw(s, 3)) {
    case 0: /* exchange */
        if (!draw_replica(s, draft, &other, &other_at) || other == from) break;
        uint32_t second = take_at(draft, other, other_at);
        if (fits(draft, other, model) && fits(draft, from, second)) {
            put(draft, other, model);
            put(draft, from, second);
            return;
        }
        put(draft, other, second);
        break;
    case 1: /* move */
        other = (uint32_t)draw(s, draft->placement.group_count);
        if (other == from || !fits(draft, other, model)) break;
        put(draft, other, model);
        refill(s, draft, from);
        return;
    default: /* replace */
        refill(s, draft, from);
        return;
    }
    put(draft, from, model);
}

static enum status improve(struct searcher *s, struct arena *scratch, struct draft *best, uint64_t simulations)
{
    struct draft now, next;
    const struct serving_placement *placement = &best->placement;
    if (placement->group_count == 0) return STATUS_OK;
    if (draft_begin(scratch, s->cuts, placement->groups[0].shape, &now, s->err) ||
        draft_begin(scratch, s->cuts, placement->groups[0].shape, &next, s->err))
        return s->err->status;
    draft_copy(&now, best);
    for (uint64_t i = 0; i < simulations; i++) {
        draft_copy(&next, &now);
        change(s, &next);
        if (judge(s, &next)) return s->err->status;
        if (worse(&next, &now)) continue;
        struct draft kept = now;
        now = next;
        next = kept;
        if (worse(best, &now)) draft_copy(best, &now);
        if (s->options->on_progress)
            s->options->on_progress(s->options->context, (double)i, (double)simulations);
    }
    return STATUS_OK;
}

static int best_first(const void *a, const void *b)
{
    const struct draft *x = a, *y = b;
    return worse(x, y) - worse(y, x);
}

/* The greedy placement of each shape. */
static enum status begin_all(struct searcher *s, struct arena *arena, const struct serving_shape *shapes,
                             uint32_t count, struct draft *drafts)
{
    for (uint32_t i = 0; i < count; i++) {
        struct arena scratch = {0};
        struct draft draft;
        enum status status = draft_begin(arena, s->cuts, shapes[i], &drafts[i], s->err);
        if (!status) status = draft_begin(&scratch, s->cuts, shapes[i], &draft, s->err);
        if (!status) status = fill(s, &scratch, &draft, &drafts[i]);
        arena_release(&scratch);
        if (status) return status;
    }
    return STATUS_OK;
}

static enum status run(struct searcher *s, struct arena *arena, struct arena *scratch,
                       const struct serving_shape *shapes, uint32_t count, struct placement_found *out)
{
    void *memory;
    if (server_create(scratch, s->cuts, s->cuts->in->device_count, &s->server, s->err) ||
        arena_array(scratch, count, sizeof(struct draft), &memory, s->err) ||
        begin_all(s, arena, shapes, count, memory))
        return s->err->status;
    struct draft *drafts = memory;
    qsort(drafts, count, sizeof *drafts, best_first);
    uint32_t searched = count < SEARCHED_SHAPES ? count : SEARCHED_SHAPES;
    uint64_t choosing = count > 1 ? (uint64_t)((double)s->options->simulations * CHOOSING_SHARE) : 0;
    for (uint32_t i = 0; i < searched && choosing > 0; i++)
        if (improve(s, scratch, &drafts[i], choosing / searched)) return s->err->status;
    qsort(drafts, searched, sizeof *drafts, best_first);
    if (improve(s, scratch, &drafts[0], s->options->simulations - choosing)) return s->err->status;
    *out = (struct placement_found){drafts[0].placement, drafts[0].attained, s->simulations, count};
    return STATUS_OK;
}

enum status placement_shapes(struct arena *arena, const struct serving *in, struct serving_shape **out,
                             uint32_t *count, struct error *err)
{
    enum { PIPELINES_MAX = 16 };
    void *memory;
    size_t most = 1 + (size_t)in->kind_count * SERVING_DEGREES_MAX * PIPELINES_MAX;
    if (arena_array(arena, most, sizeof **out, &memory, err)) return err->status;
    *out = memory;
    *count = 0;
    (*out)[(*count)++] = (struct serving_shape){1, 1};
    for (uint32_t k = 0; k < in->kind_count; k++) {
        const struct serving_kind *kind = &in->kinds[k];
        for (uint32_t d = 0; d < kind->degree_count && kind->degrees[d].tensor <= in->device_count; d++) {
            uint32_t tensor = kind->degrees[d].tensor, longest = in->device_count / tensor;
            if (longest > kind->layer_count) longest = kind->layer_count;
            if (longest > SERVING_STAGES_MAX) longest = SERVING_STAGES_MAX;
            for (uint32_t p = 1, step; p <= longest; p = step) {
                struct serving_shape shape = {tensor, p};
                uint32_t seen = 0;
                while (seen < *count && !serving_shape_same((*out)[seen], shape)) seen++;
                if (seen == *count) (*out)[(*count)++] = shape;
                step = p < longest && 2 * p > longest ? longest : 2 * p;
            }
        }
    }
    return STATUS_OK;
}

enum status placement_search(struct arena *arena, const struct serving_cuts *cuts, const struct traffic *traffic,
                             const struct placement_search_options *options, struct placement_found *out,
                             struct error *err)
{
    struct searcher s = {.cuts = cuts, .traffic = traffic, .options = options, .err = err};
    struct arena scratch = {0};
    struct serving_shape *shapes;
    uint32_t count;
    *out = (struct placement_found){0};
    enum status status = placement_shapes(&scratch, cuts->in, &shapes, &count, err);
    if (!status && options->shape.tensor > 0) {
        shapes[0] = options->shape;
        count = 1;
    }
    if (!status) status = run(&s, arena, &scratch, shapes, count, out);
    server_destroy(s.server);
    arena_release(&scratch);
    return status;
}
