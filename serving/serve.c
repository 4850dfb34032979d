/* See serve.h. What a simulation works with is kept from one placement to the next. */
#include "serving/serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Of requests under way: when they end, the next first, in a ring whose size is a power of two. */
struct queue {
    double *ends;
    uint32_t size, first, count;
};

struct group_state {
    struct serving_shape shape;
    const struct stage_cut *cuts; /* by kind */
    double *free_s;               /* (pipeline) */
    struct queue under_way;
};

struct server {
    const struct serving_cuts *cuts;
    struct group_state *groups; /* (groups_max) */
    double *free_s;             /* (device_count): those of all groups' stages */
    uint32_t *host_first;       /* (model_count + 1), into hosts */
    uint32_t *hosts;            /* the groups of each model */
    size_t host_capacity;
    struct serving_share *shares;
    struct serving_load *loads;
    double strain;
    uint32_t groups_max;
};

enum status server_create(struct arena *arena, const struct serving_cuts *cuts, uint32_t groups_max,
                          struct server **out, struct error *err)
{
    const struct serving *in = cuts->in;
    void *server, *groups, *free_s, *host_first, *shares, *loads;
    if (arena_array(arena, 1, sizeof(struct server), &server, err) ||
        arena_array(arena, groups_max, sizeof(struct group_state), &groups, err) ||
        arena_array(arena, in->device_count, sizeof(double), &free_s, err) ||
        arena_array(arena, (size_t)in->model_count + 1, sizeof(uint32_t), &host_first, err) ||
        arena_array(arena, in->model_count, sizeof(struct serving_share), &shares, err) ||
        arena_array(arena, groups_max, sizeof(struct serving_load), &loads, err))
        return err->status;
    *out = server;
    **out = (struct server){.cuts = cuts, .groups = groups, .free_s = free_s, .host_first = host_first,
                            .shares = shares, .loads = loads, .groups_max = groups_max};
    return STATUS_OK;
}

void server_destroy(struct server *server)
{
    if (!server) return;
    for (uint32_t g = 0; g < server->groups_max; g++) free(server->groups[g].under_way.ends);
    free(server->hosts);
}

/* --- requests under way ---------------------------------------------------------------------- */

static enum status queue_add(struct queue *queue, double end_s, struct error *err)
{
    if (queue->count == queue->size) {
        uint32_t size = queue->size ? 2 * queue->size : 16;
        double *ends = alloc_zeroed(size, sizeof *ends);
        if (!ends) return error_memory(err, "requests under way", size * sizeof *ends);
        for (uint32_t i = 0; i < queue->count; i++) ends[i] = queue->ends[(queue->first + i) & (queue->size - 1)];
        free(queue->ends);
        *queue = (struct queue){ends, size, 0, queue->count};
    }
    queue->ends[(queue->first + queue->count++) & (queue->size - 1)] = end_s;
    return STATUS_OK;
}

/* How many are under way at `now_s`. */
static uint32_t queue_length(struct queue *queue, double now_s)
{
    while (queue->count > 0 && queue->ends[queue->first] <= now_s) {
        queue->first = (queue->first + 1) & (queue->size - 1);
        queue->count--;
    }
    return queue->count;
}

/* --- a placement ----------------------------------------------------------------------------- */

static enum status list_hosts(struct server *server, const struct serving_placement *placement, struct error *err)
{
    uint32_t models = server->cuts->in->model_count, *first = server->host_first;
    size_t total = 0;
    memset(first, 0, ((size_t)models + 1) * sizeof *first);
    for (uint32_t g = 0; g < placement->group_count; g++) {
        total += placement->groups[g].model_count;
        for (uint32_t i = 0; i < placement->groups[g].model_count; i++) first[placement->groups[g].models[i] + 1]++;
    }
    if (total > server->host_capacity) {
        uint32_t *hosts = alloc_resize(server->hosts, total * sizeof *hosts);
        if (!hosts) return error_memory(err, "the groups of models", total * sizeof *hosts);
        server->hosts = hosts;
        server->host_capacity = total;
    }
    for (uint32_t m = 0; m < models; m++) first[m + 1] += first[m];
    /* from the last group to the first, each in front of those that are there */
    for (uint32_t g = placement->group_count; g-- > 0;)
        for (uint32_t i = 0; i < placement->groups[g].model_count; i++)
            server->hosts[--first[placement->groups[g].models[i] + 1]] = g;
    /* each entry has gone down to its model's first: one to the left */
    memmove(first, first + 1, (size_t)models * sizeof *first);
    first[models] = (uint32_t)total;
    return STATUS_OK;
}

static enum status begin(struct server *server, const struct serving_placement *placement, struct error *err)
{
    const struct serving *in = server->cuts->in;
    uint32_t stage = 0;
    server->strain = 0;
    memset(server->free_s, 0, in->device_count * sizeof *server->free_s);
    memset(server->shares, 0, in->model_count * sizeof *server->shares);
    memset(server->loads, 0, placement->group_count * sizeof *server->loads);
    for (uint32_t g = 0; g < placement->group_count; g++) {
        struct group_state *group = &server->groups[g];
        group->shape = placement->groups[g].shape;
        group->cuts = serving_cuts_of(server->cuts, group->shape);
        group->free_s = &server->free_s[stage];
        group->under_way.first = group->under_way.count = 0;
        stage += group->shape.pipeline;
    }
    return list_hosts(server, placement, err);
}

/* --- requests -------------------------------------------------------------------------------- */

/* The group with the fewest under way; NULL: none has the model. */
static struct group_state *choose(struct server *server, const struct request *request)
{
    struct group_state *best = NULL;
    for (uint32_t i = server->host_first[request->model]; i < server->host_first[request->model + 1]; i++) {
        struct group_state *group = &server->groups[server->hosts[i]];
        uint32_t length = queue_length(&group->under_way, request->at_s);
        if (!best || length < best->under_way.count) best = group;
        if (length == 0) break;
    }
    return best;
}

/* The request's latency, NAN if it is turned away. */
static enum status answer(struct server *server, const struct request *request, bool admit_all,
                          struct group_state *group, double *latency_s, struct error *err)
{
    const struct serving *in = server->cuts->in;
    const struct serving_model *model = &in->models[request->model];
    const struct stage_cut *cut = &group->cuts[model->kind];
    double ends[SERVING_STAGES_MAX], end_s = request->at_s;
    for (uint32_t s = 0; s < group->shape.pipeline; s++)
        ends[s] = end_s = fmax(end_s, group->free_s[s]) + cut->stage_s[s];
    *latency_s = end_s - request->at_s + in->overhead_s;
    bool attained = *latency_s <= model->objective_s * (1 + SERVING_OBJECTIVE_SLACK);
    if (!attained && !admit_all) {
        *latency_s = NAN;
        return STATUS_OK;
    }
    struct serving_share *share = &server->shares[request->model];
    double strain = *latency_s / (model->objective_s < HUGE_VAL ? model->objective_s : 1);
    struct serving_load *load = &server->loads[group - server->groups];
    server->strain += strain * strain;
    share->attained += attained;
    share->served++;
    load->served++;
    load->busy_s += group->shape.tensor * cut->latency_s;
    memcpy(group->free_s, ends, group->shape.pipeline * sizeof *ends);
    return queue_add(&group->under_way, end_s, err);
}

enum status server_run(struct server *server, const struct serving_placement *placement,
                       const struct traffic *traffic, const struct serve_options *options,
                       struct serve_result *out, struct error *err)
{
    if (begin(server, placement, err)) return err->status;
    *out = (struct serve_result){.models = server->shares, .groups = server->loads};
    for (uint32_t r = 0; r < traffic->count; r++) {
        const struct request *request = &traffic->requests[r];
        struct group_state *group = choose(server, request);
        double latency_s = NAN;
        server->shares[request->model].requests++;
        if (group && answer(server, request, options->admit_all, group, &latency_s, err)) return err->status;
        if (options->latency_s) options->latency_s[r] = latency_s;
    }
    for (uint32_t m = 0; m < server->cuts->in->model_count; m++) out->attained += server->shares[m].attained;
    out->strain = server->strain;
    return STATUS_OK;
}
