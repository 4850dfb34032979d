/*
 * When a batch begins is not known when a request joins it: a later one may join a batch in front. So requests
 * wait in a line of batches, and only what has begun has ends.
 *
 * With admission control nothing may make anybody late who was admitted. A batch's first request is the one
 * with the least time left, for all are of one model and objective; so a change is tried, all behind it are
 * carried through the stages in their order, their first requests are looked at, and it is undone if one is
 * late, or if the one that joins would be over sooner in a batch of its own. O(batches waiting x stages) a
 * request; objectives bound how many wait. Without admission control or objectives there is nothing to look at.
 */
#include "sim/serving/serve_batches.h"

#include <math.h>
#include <string.h>

/* The batch passes through all stages; when it ends. */
static double pass(const struct server *server, const struct group_state *group, const struct batch *batch,
                   double *free_s)
{
    const struct stage_cut *cut = server_cut(server, group, batch->model);
    double end_s = server->traffic->requests[batch->first].at_s, growth = cut->growth[batch->count - 1];
    for (uint32_t s = 0; s < group->shape.pipeline; s++)
        free_s[s] = end_s = fmax(end_s, free_s[s]) + cut->stage_s[s] * growth;
    return end_s;
}

/* Batch number `from` of the line and all behind it. */
static bool all_in_time(const struct server *server, const struct group_state *group, uint32_t from)
{
    double free_s[SERVING_STAGES_MAX];
    memcpy(free_s, group->free_s, group->shape.pipeline * sizeof *free_s);
    for (uint32_t i = group->line.first; i < group->line.end; i++) {
        const struct batch *batch = &group->line.items[i];
        double end_s = pass(server, group, batch, free_s);
        if (i >= from && !server_in_time(server, batch->first, end_s)) return false;
    }
    return true;
}

/* The last batch of the model that waits; `end`: there is none. */
static uint32_t last_of(const struct batch_line *line, uint32_t model)
{
    for (uint32_t i = line->end; i-- > line->first;)
        if (line->items[i].model == model) return i;
    return line->end;
}

/* When a batch of this request alone, behind all others, would end. */
static double end_alone(const struct server *server, const struct group_state *group, uint32_t request)
{
    double free_s[SERVING_STAGES_MAX];
    const struct batch alone = {server->traffic->requests[request].model, request, request, 1};
    memcpy(free_s, group->free_s, group->shape.pipeline * sizeof *free_s);
    for (uint32_t i = group->line.first; i < group->line.end; i++)
        pass(server, group, &group->line.items[i], free_s);
    return pass(server, group, &alone, free_s);
}

/* Is the batch number `at`, which has one more, still in time with all behind it, and over by `until_s`? */
static bool keeps(const struct server *server, const struct group_state *group, uint32_t at, double until_s)
{
    double free_s[SERVING_STAGES_MAX], end_s = 0;
    memcpy(free_s, group->free_s, group->shape.pipeline * sizeof *free_s);
    for (uint32_t i = group->line.first; i <= at; i++) end_s = pass(server, group, &group->line.items[i], free_s);
    return end_s <= until_s && all_in_time(server, group, at);
}

static bool join(struct server *server, struct group_state *group, uint32_t request)
{
    uint32_t model = server->traffic->requests[request].model, at = last_of(&group->line, model);
    if (at == group->line.end) return false;
    struct batch *batch = &group->line.items[at];
    if (batch->count == server->cuts->in->kinds[server->cuts->in->models[model].kind].batch_max) return false;
    double alone_s = server->promises ? end_alone(server, group, request) : HUGE_VAL;
    batch->count++;
    if (server->promises && !keeps(server, group, at, alone_s)) {
        batch->count--;
        return false;
    }
    server->after[batch->last] = request;
    batch->last = request;
    return true;
}

static enum status append(struct server *server, struct group_state *group, uint32_t request, bool *admitted,
                          struct error *err)
{
    struct batch_line *line = &group->line;
    *admitted = false;
    if (line->end == line->capacity && 2 * line->first > line->end) { /* those that have begun make room */
        memmove(line->items, &line->items[line->first], (line->end - line->first) * sizeof *line->items);
        line->end -= line->first;
        line->first = 0;
    }
    if (array_reserve(&line->items, &line->capacity, line->end, sizeof *line->items, SERVING_REQUESTS_MAX,
                      "batches of requests", err))
        return err->status;
    line->items[line->end++] = (struct batch){server->traffic->requests[request].model, request, request, 1};
    *admitted = !server->promises || all_in_time(server, group, line->end - 1);
    if (!*admitted) line->end--;
    return STATUS_OK;
}

enum status batches_begin(struct server *server, struct group_state *group, double now_s, struct error *err)
{
    struct batch_line *line = &group->line;
    for (; line->first < line->end; line->first++) {
        const struct batch *batch = &line->items[line->first];
        if (fmax(server->traffic->requests[batch->first].at_s, group->free_s[0]) > now_s) break;
        double end_s = pass(server, group, batch, group->free_s);
        const struct stage_cut *cut = server_cut(server, group, batch->model);
        server->loads[group - server->groups].busy_s +=
            group->shape.tensor * cut->latency_s * cut->growth[batch->count - 1];
        line->requests -= batch->count;
        for (uint32_t i = 0, request = batch->first; i < batch->count; i++, request = server->after[request])
            if (server_answered(server, group, request, end_s, err)) return err->status;
    }
    if (line->first == line->end) line->first = line->end = 0;
    return STATUS_OK;
}

enum status batches_add(struct server *server, struct group_state *group, uint32_t request, bool *admitted,
                        struct error *err)
{
    *admitted = join(server, group, request);
    if (!*admitted && append(server, group, request, admitted, err)) return err->status;
    if (*admitted) group->line.requests++;
    return STATUS_OK;
}
