/* Adds replicas to drafts and removes them; a simulation of all requests judges each. */
#include "sim/placement/placement_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/try.h"
#include "sim/placement/regroup.h"

/* Maximum number of simulations of a greedy placement; with many replicas, several are added between two. */
enum { GREEDY_ROUNDS_MAX = 256 };
/* Greedy placements from which the search continues, and the share of simulations for choosing among them. */
enum { SEARCHED_DRAFTS = 4 };
#define CHOOSING_SHARE 0.25
/* Number of tried pairs of shapes, and of divisions of the devices between them. */
enum { MIXED_PAIRS = 4, MIXED_PARTS = 4, MIXED_DRAFTS = MIXED_PAIRS * (MIXED_PARTS - 1) };
/* One in this number of changes regroups devices. */
enum { REGROUP_ONE_IN = 8 };

struct searcher {
    const struct serving_cuts *cuts;
    const struct traffic *traffic;
    const struct placement_search_options *options;
    struct serve_state *server;
    struct serve_result result; /* of the last simulation */
    const uint32_t *rooms;
    const struct serving_shape *shapes; /* allowed shapes: all shapes of cuts, or the requested one */
    uint32_t shape_count;
    struct serving_shape *layout; /* scratch: one per device */
    uint64_t simulations, drawn;
    struct error *err;
};

static uint64_t draw(struct searcher *s, uint64_t bound)
{
    return random_below(s->options->seed, s->drawn++, bound);
}

static enum status judge(struct searcher *s, struct placement_draft *draft)
{
    const struct serve_options options = {0};
    s->simulations++;
    if (serve_requests(s->server, &draft->placement, s->traffic, &options, &s->result, s->err)) return s->err->status;
    draft->attained = s->result.attained;
    draft->strain = s->result.strain;
    return STATUS_OK;
}

static bool worse(const struct placement_draft *a, const struct placement_draft *b)
{
    return a->attained != b->attained ? a->attained < b->attained : a->strain > b->strain;
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

/* Returns the least loaded group with room for the model, by the last simulation and replicas added since (each counts
 * as a request); group_count: none. */
static uint32_t idlest(const struct searcher *s, const struct placement_draft *draft, const double *added_s,
                       uint32_t model)
{
    uint32_t best = draft->placement.group_count;
    double best_s = 0;
    for (uint32_t g = 0; g < draft->placement.group_count; g++) {
        double busy_s = (s->result.groups[g].busy_s + added_s[g]) /
                        serving_shape_devices(draft->placement.groups[g].shape);
        if (best < draft->placement.group_count && busy_s >= best_s) continue;
        if (!placement_draft_fits(draft, g, model)) continue;
        best = g;
        best_s = busy_s;
    }
    return best;
}

static uint32_t add_replicas(const struct searcher *s, struct placement_draft *draft, struct failing *failing,
                             double *added_s, uint32_t most)
{
    uint32_t models = s->cuts->in->model_count, added = 0;
    memset(added_s, 0, draft->placement.group_count * sizeof *added_s);
    for (uint32_t m = 0; m < models; m++)
        failing[m] = (struct failing){m, s->result.models[m].requests - s->result.models[m].attained};
    qsort(failing, models, sizeof *failing, by_failing);
    for (uint32_t i = 0; i < models && added < most && failing[i].requests > 0; i++) {
        uint32_t group = idlest(s, draft, added_s, failing[i].model);
        if (group == draft->placement.group_count) continue;
        placement_draft_put(draft, group, failing[i].model);
        added_s[group] += failing[i].requests * serving_cut(s->cuts, draft->placement.groups[group].shape,
                                                             s->cuts->in->models[failing[i].model].kind)->latency_s;
        added++;
    }
    return added;
}

/* Adds replicas until nothing more fits or fails; `best` is the best draft on the way. */
static enum status fill(struct searcher *s, struct arena *scratch, struct placement_draft *draft,
                        struct placement_draft *best)
{
    uint32_t models = s->cuts->in->model_count, groups = draft->placement.group_count;
    double *added_s;
    struct failing *failing;
    if (ARENA_NEW(scratch, models, failing, s->err) ||
        ARENA_NEW(scratch, groups, added_s, s->err) || judge(s, draft))
        return s->err->status;
    uint64_t most = ((uint64_t)models * groups + GREEDY_ROUNDS_MAX - 1) / GREEDY_ROUNDS_MAX;
    placement_draft_copy(best, draft);
    while (add_replicas(s, draft, failing, added_s, (uint32_t)most) > 0) {
        if (judge(s, draft)) return s->err->status;
        if (!worse(draft, best)) placement_draft_copy(best, draft);
    }
    return STATUS_OK;
}

/* --- search ---------------------------------------------------------------------------------- */

/* Draws a replica, all with equal probability. Returns false if there is none. */
static bool draw_replica(struct searcher *s, const struct placement_draft *draft, uint32_t *group, uint32_t *at)
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

/* Fills a group with models in random order, until a few in sequence do not fit. */
static void refill(struct searcher *s, struct placement_draft *draft, uint32_t group)
{
    enum { MISSES_MAX = 8 };
    for (uint32_t misses = 0; misses < MISSES_MAX;) {
        uint32_t model = (uint32_t)draw(s, s->cuts->in->model_count);
        if (placement_draft_fits(draft, group, model))
            placement_draft_put(draft, group, model);
        else
            misses++;
    }
}

static void change_models(struct searcher *s, struct placement_draft *draft)
{
    uint32_t from, at, other, other_at;
    if (!draw_replica(s, draft, &from, &at)) return;
    uint32_t model = placement_draft_remove(draft, from, at);
    switch (draw(s, 3)) {
    case 0: /* exchange */
        if (!draw_replica(s, draft, &other, &other_at) || other == from) break;
        uint32_t second = placement_draft_remove(draft, other, other_at);
        if (placement_draft_fits(draft, other, model) && placement_draft_fits(draft, from, second)) {
            placement_draft_put(draft, other, model);
            placement_draft_put(draft, from, second);
            return;
        }
        placement_draft_put(draft, other, second);
        break;
    case 1: /* move */
        other = (uint32_t)draw(s, draft->placement.group_count);
        if (other == from || !placement_draft_fits(draft, other, model)) break;
        placement_draft_put(draft, other, model);
        refill(s, draft, from);
        return;
    default: /* replace */
        refill(s, draft, from);
        return;
    }
    placement_draft_put(draft, from, model);
}

static struct serving_shape draw_shape(struct searcher *s) { return s->shapes[draw(s, s->shape_count)]; }

static void change_groups(struct searcher *s, const struct placement_draft *from, struct placement_draft *to)
{
    uint32_t groups = from->placement.group_count;
    struct regroup_choice choice = {.first = (uint32_t)draw(s, groups)};
    choice.second = draw(s, 2) ? (uint32_t)draw(s, groups) : choice.first;
    choice.shape = draw_shape(s);
    choice.rest = draw_shape(s);
    choice.offset = (uint32_t)draw(s, s->cuts->in->device_count);
    for (uint32_t g = regroup(from, &choice, s->layout, to); g < to->placement.group_count; g++) refill(s, to, g);
}

static void change(struct searcher *s, const struct placement_draft *from, struct placement_draft *to)
{
    if (s->shape_count > 1 && draw(s, REGROUP_ONE_IN) == 0) {
        change_groups(s, from, to);
        return;
    }
    placement_draft_copy(to, from);
    change_models(s, to);
}

static enum status improve(struct searcher *s, struct arena *scratch, struct placement_draft *best,
                           uint64_t simulations)
{
    struct placement_draft now, next;
    if (best->placement.group_count == 0) return STATUS_OK;
    if (placement_draft_make(scratch, s->cuts, s->rooms, &now, s->err) ||
        placement_draft_make(scratch, s->cuts, s->rooms, &next, s->err))
        return s->err->status;
    placement_draft_copy(&now, best);
    for (uint64_t i = 0; i < simulations; i++) {
        change(s, &now, &next);
        if (judge(s, &next)) return s->err->status;
        if (worse(&next, &now)) continue;
        struct placement_draft kept = now;
        now = next;
        next = kept;
        if (worse(best, &now)) placement_draft_copy(best, &now);
        if (s->options->on_progress)
            s->options->on_progress(s->options->context, (double)i, (double)simulations);
    }
    return STATUS_OK;
}

static int best_first(const void *a, const void *b)
{
    const struct placement_draft *x = a, *y = b;
    return worse(x, y) - worse(y, x);
}

/* --- initial placements ---------------------------------------------------------------------- */

static enum status begin_with(struct searcher *s, struct arena *arena, uint32_t groups, struct placement_draft *out)
{
    struct arena scratch = {0};
    struct placement_draft draft;
    enum status status = placement_draft_make(arena, s->cuts, s->rooms, out, s->err);
    if (!status) status = placement_draft_make(&scratch, s->cuts, s->rooms, &draft, s->err);
    if (!status) {
        placement_draft_lay_out(&draft, s->layout, groups);
        status = fill(s, &scratch, &draft, out);
    }
    arena_release(&scratch);
    return status;
}

/* Two shapes side by side, and the requests attained if each model used the better one. */
struct placement_pair {
    uint32_t first, second;
    uint64_t hope;
};

static int most_hope(const void *a, const void *b)
{
    const struct placement_pair *x = a, *y = b;
    if (x->hope != y->hope) return x->hope > y->hope ? -1 : 1;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->second > y->second) - (x->second < y->second);
}

/* Lists pairs. `attained`: (shape_count, model_count) of the greedy placements. *count: pairs that attain more than
 * either shape. */
static enum status list_pairs(const struct searcher *s, struct arena *scratch, const uint32_t *attained,
                              const struct placement_draft *even, struct placement_pair **out, uint32_t *count)
{
    uint32_t models = s->cuts->in->model_count, best = 0;
    *count = 0;
    if (ARENA_NEW(scratch, (size_t)s->shape_count * s->shape_count, *out, s->err))
        return s->err->status;
    for (uint32_t i = 0; i < s->shape_count; i++) best = even[i].attained > best ? even[i].attained : best;
    for (uint32_t i = 0; i < s->shape_count; i++)
        for (uint32_t j = i + 1; j < s->shape_count; j++) {
            const uint32_t *a = &attained[(size_t)i * models], *b = &attained[(size_t)j * models];
            struct placement_pair pair = {i, j, 0};
            for (uint32_t m = 0; m < models; m++) pair.hope += a[m] > b[m] ? a[m] : b[m];
            if (pair.hope > best) (*out)[(*count)++] = pair;
        }
    if (*count > 0) qsort(*out, *count, sizeof **out, most_hope);
    if (*count > MIXED_PAIRS) *count = MIXED_PAIRS;
    return STATUS_OK;
}

static enum status begin_pair(struct searcher *s, struct arena *arena, const struct placement_pair *pair,
                              struct placement_draft *drafts, uint32_t *count)
{
    uint32_t devices = s->cuts->in->device_count;
    for (uint32_t part = 1; part < MIXED_PARTS; part++) {
        uint32_t first = (uint32_t)((uint64_t)devices * part / MIXED_PARTS);
        uint32_t groups = regroup_even(s->shapes[pair->first], first, s->layout);
        groups += regroup_even(s->shapes[pair->second], devices - first, &s->layout[groups]);
        if (begin_with(s, arena, groups, &drafts[(*count)++])) return s->err->status;
    }
    return STATUS_OK;
}

/* Makes placements with groups of one shape, for each shape; then with two shapes, for promising pairs. */
static enum status begin_all(struct searcher *s, struct arena *arena, struct arena *scratch,
                             struct placement_draft *drafts, uint32_t *count)
{
    uint32_t models = s->cuts->in->model_count, pair_count, *attained;
    struct placement_pair *pairs;
    if (ARENA_NEW(scratch, (size_t)s->shape_count * models, attained, s->err))
        return s->err->status;
    for (*count = 0; *count < s->shape_count; (*count)++) {
        uint32_t groups = regroup_even(s->shapes[*count], s->cuts->in->device_count, s->layout);
        if (begin_with(s, arena, groups, &drafts[*count]) || judge(s, &drafts[*count])) return s->err->status;
        for (uint32_t m = 0; m < models; m++) attained[*count * models + m] = s->result.models[m].attained;
    }
    if (list_pairs(s, scratch, attained, drafts, &pairs, &pair_count)) return s->err->status;
    for (uint32_t p = 0; p < pair_count; p++)
        if (begin_pair(s, arena, &pairs[p], drafts, count)) return s->err->status;
    return STATUS_OK;
}

static enum status run(struct searcher *s, struct arena *arena, struct arena *scratch, struct placement_found *out)
{
    uint32_t devices = s->cuts->in->device_count, count = 0;
    struct placement_draft *drafts;
    if (serve_create(scratch, s->cuts, devices, &s->server, s->err) ||
        placement_draft_rooms(scratch, s->cuts, &s->rooms, s->err) ||
        ARENA_NEW(scratch, devices, s->layout, s->err) ||
        ARENA_NEW(scratch, s->shape_count + MIXED_DRAFTS, drafts, s->err))
        return s->err->status;
    if (begin_all(s, arena, scratch, drafts, &count)) return s->err->status;
    qsort(drafts, count, sizeof *drafts, best_first);
    uint32_t searched = count < SEARCHED_DRAFTS ? count : SEARCHED_DRAFTS;
    uint64_t choosing = count > 1 ? (uint64_t)((double)s->options->simulations * CHOOSING_SHARE) : 0;
    for (uint32_t i = 0; i < searched && choosing > 0; i++)
        if (improve(s, scratch, &drafts[i], choosing / searched)) return s->err->status;
    qsort(drafts, searched, sizeof *drafts, best_first);
    if (improve(s, scratch, &drafts[0], s->options->simulations - choosing)) return s->err->status;
    *out = (struct placement_found){drafts[0].placement, drafts[0].attained, s->simulations, s->shape_count};
    return STATUS_OK;
}

enum status placement_shapes(struct arena *arena, const struct serving *in, struct serving_shape **out,
                             uint32_t *count, struct error *err)
{
    enum { PIPELINES_MAX = 16 };
    size_t most = 1 + (size_t)in->kind_count * SERVING_DEGREES_MAX * PIPELINES_MAX;
    TRY(ARENA_NEW(arena, most, *out, err));
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
    struct serving_shape *shapes = NULL;
    uint32_t count = 0;
    *out = (struct placement_found){0};
    enum status status = placement_shapes(&scratch, cuts->in, &shapes, &count, err);
    if (!status && options->shape.tensor > 0) {
        shapes[0] = options->shape;
        count = 1;
    }
    s.shapes = shapes;
    s.shape_count = count;
    if (!status) status = run(&s, arena, &scratch, out);
    serve_destroy(s.server);
    arena_release(&scratch);
    return status;
}
