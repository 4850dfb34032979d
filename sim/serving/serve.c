/* The workspace of a simulation is reused for the next placement. */
#include "sim/serving/serve_batches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"

enum status serve_create(struct arena *arena, const struct serving_cuts *cuts, uint32_t groups_max,
                          struct serve_state **out, struct error *err)
{
    const struct serving *in = cuts->in;
    struct serve_state *server;
    TRY(ARENA_NEW(arena, 1, server, err));
    server->cuts = cuts;
    TRY(ARENA_NEW(arena, groups_max, server->groups, err));
    TRY(ARENA_NEW(arena, in->device_count, server->free_s, err));
    TRY(ARENA_NEW(arena, (size_t)in->model_count + 1, server->host_first, err));
    TRY(ARENA_NEW(arena, in->model_count, server->shares, err));
    TRY(ARENA_NEW(arena, groups_max, server->loads, err));
    server->groups_max = groups_max;
    *out = server;
    return STATUS_OK;
}

void serve_destroy(struct serve_state *server)
{
    if (!server) return;
    for (uint32_t g = 0; g < server->groups_max; g++) {
        free(server->groups[g].under_way.ends);
        free(server->groups[g].line.items);
    }
    free(server->hosts);
    free(server->after);
}

/* --- active requests ------------------------------------------------------------------------- */

static enum status queue_add(struct serve_queue *queue, double end_s, struct error *err)
{
    if (queue->count == queue->size) {
        uint32_t size = queue->size ? 2 * queue->size : 16;
        double *ends = alloc_zeroed(size, sizeof *ends);
        if (!ends) return error_memory(err, "requests under way", size * sizeof *ends);
        for (uint32_t i = 0; i < queue->count; i++) ends[i] = queue->ends[(queue->first + i) & (queue->size - 1)];
        free(queue->ends);
        *queue = (struct serve_queue){ends, size, 0, queue->count};
    }
    queue->ends[(queue->first + queue->count++) & (queue->size - 1)] = end_s;
    return STATUS_OK;
}

/* Returns the number of active requests at `now_s`. */
static uint32_t queue_length(struct serve_queue *queue, double now_s)
{
    while (queue->count > 0 && queue->ends[queue->first] <= now_s) {
        queue->first = (queue->first + 1) & (queue->size - 1);
        queue->count--;
    }
    return queue->count;
}

/* --- a placement ----------------------------------------------------------------------------- */

static enum status list_hosts(struct serve_state *server, const struct serving_placement *placement, struct error *err)
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
    /* from the last group to the first, each before the entries that are there */
    for (uint32_t g = placement->group_count; g-- > 0;)
        for (uint32_t i = 0; i < placement->groups[g].model_count; i++)
            server->hosts[--first[placement->groups[g].models[i] + 1]] = g;
    /* each entry is now at its model's first host: one position to the left */
    memmove(first, first + 1, (size_t)models * sizeof *first);
    first[models] = (uint32_t)total;
    return STATUS_OK;
}

static bool batches(const struct serving *in, const struct serving_group *group)
{
    for (uint32_t i = 0; i < group->model_count; i++)
        if (in->kinds[in->models[group->models[i]].kind].batch_max > 1) return true;
    return false;
}

static enum status reserve_lists(struct serve_state *server, struct error *err)
{
    size_t count = server->traffic->count;
    if (count <= server->after_capacity) return STATUS_OK;
    uint32_t *after = alloc_resize(server->after, count * sizeof *after);
    if (!after) return error_memory(err, "batches of requests", count * sizeof *after);
    server->after = after;
    server->after_capacity = count;
    return STATUS_OK;
}

static enum status begin(struct serve_state *server, const struct serving_placement *placement, struct error *err)
{
    const struct serving *in = server->cuts->in;
    uint32_t stage = 0;
    bool any = false;
    server->promises = false;
    for (uint32_t m = 0; m < in->model_count && !server->options->admit_all; m++)
        server->promises = server->promises || in->models[m].objective_s < HUGE_VAL;
    server->strain = 0;
    memset(server->free_s, 0, in->device_count * sizeof *server->free_s);
    memset(server->shares, 0, in->model_count * sizeof *server->shares);
    memset(server->loads, 0, placement->group_count * sizeof *server->loads);
    for (uint32_t g = 0; g < placement->group_count; g++) {
        struct serve_group *group = &server->groups[g];
        group->shape = placement->groups[g].shape;
        group->cuts = serving_cuts_of(server->cuts, group->shape);
        group->free_s = &server->free_s[stage];
        group->under_way.first = group->under_way.count = 0;
        group->line.first = group->line.end = group->line.requests = 0;
        group->batches = batches(in, &placement->groups[g]);
        any = any || group->batches;
        stage += group->shape.pipeline;
    }
    if (any) TRY(reserve_lists(server, err));
    return list_hosts(server, placement, err);
}

/* --- requests -------------------------------------------------------------------------------- */

bool serve_in_time(const struct serve_state *server, uint32_t request, double end_s)
{
    const struct traffic_request *one = &server->traffic->requests[request];
    double latency_s = end_s - one->at_s + server->cuts->in->overhead_s;
    return latency_s <= server->cuts->in->models[one->model].objective_s * (1 + SERVING_OBJECTIVE_SLACK);
}

enum status serve_answered(struct serve_state *server, struct serve_group *group, uint32_t request, double end_s,
                            struct error *err)
{
    const struct traffic_request *one = &server->traffic->requests[request];
    const struct serving_model *model = &server->cuts->in->models[one->model];
    struct serving_share *share = &server->shares[one->model];
    double latency_s = end_s - one->at_s + server->cuts->in->overhead_s;
    double strain = latency_s / (model->objective_s < HUGE_VAL ? model->objective_s : 1);
    server->strain += strain * strain;
    share->attained += serve_in_time(server, request, end_s);
    share->served++;
    server->loads[group - server->groups].served++;
    if (server->options->latency_s) server->options->latency_s[request] = latency_s;
    return queue_add(&group->under_way, end_s, err);
}

/* Finds the group with the fewest active or waiting requests; *out NULL: no group has the model. */
static enum status choose(struct serve_state *server, const struct traffic_request *request, struct serve_group **out,
                          struct error *err)
{
    uint32_t fewest = UINT32_MAX;
    *out = NULL;
    for (uint32_t i = server->host_first[request->model]; i < server->host_first[request->model + 1]; i++) {
        struct serve_group *group = &server->groups[server->hosts[i]];
        if (group->batches) TRY(serve_batches_begin(server, group, request->at_s, err));
        uint32_t length = queue_length(&group->under_way, request->at_s) + group->line.requests;
        if (length < fewest) {
            *out = group;
            fewest = length;
        }
        if (length == 0) break;
    }
    return STATUS_OK;
}

/* Answers a request in a group without batches: earlier requests are settled, so its end is known. */
static enum status answer(struct serve_state *server, uint32_t request, struct serve_group *group, struct error *err)
{
    const struct traffic_request *one = &server->traffic->requests[request];
    const struct stage_cut *cut = serve_group_cut(server, group, one->model);
    double ends[SERVING_STAGES_MAX], end_s = one->at_s;
    for (uint32_t s = 0; s < group->shape.pipeline; s++)
        ends[s] = end_s = fmax(end_s, group->free_s[s]) + cut->stage_s[s];
    if (!server->options->admit_all && !serve_in_time(server, request, end_s)) return STATUS_OK;
    server->loads[group - server->groups].busy_s += group->shape.tensor * cut->latency_s;
    memcpy(group->free_s, ends, group->shape.pipeline * sizeof *ends);
    return serve_answered(server, group, request, end_s, err);
}

static enum status admit(struct serve_state *server, uint32_t request, struct error *err)
{
    const struct traffic_request *one = &server->traffic->requests[request];
    struct serve_group *group;
    bool admitted;
    server->shares[one->model].requests++;
    if (server->options->latency_s) server->options->latency_s[request] = NAN;
    TRY(choose(server, one, &group, err));
    if (!group) return STATUS_OK;
    return group->batches ? serve_batches_add(server, group, request, &admitted, err)
                          : answer(server, request, group, err);
}

enum status serve_requests(struct serve_state *server, const struct serving_placement *placement,
                       const struct traffic *traffic, const struct serve_options *options,
                       struct serve_result *out, struct error *err)
{
    server->traffic = traffic;
    server->options = options;
    TRY(begin(server, placement, err));
    *out = (struct serve_result){.models = server->shares, .groups = server->loads};
    for (uint32_t r = 0; r < traffic->count; r++)
        TRY(admit(server, r, err));
    for (uint32_t g = 0; g < placement->group_count; g++)
        if (server->groups[g].batches && serve_batches_begin(server, &server->groups[g], HUGE_VAL, err))
            return err->status;
    for (uint32_t m = 0; m < server->cuts->in->model_count; m++) out->attained += server->shares[m].attained;
    out->strain = server->strain;
    return STATUS_OK;
}
