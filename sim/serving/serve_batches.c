/*
 * A batch's begin is unknown when a request joins, because a later one may join an earlier batch. So requests wait in a
 * queue of batches, and only started ones have ends.
 *
 * With admission control no admitted request may become late. A batch's first request has the least time left, because
 * all have one model and objective. So later batches are passed through the stages for trial, and their first requests
 * are checked. The change is undone if one is late, or if the joining request would end sooner in its own batch. Cost:
 * O(waiting batches x stages) per request; objectives limit the waiting batches. Without admission control or
 * objectives there is nothing to check.
 */
#include "sim/serving/serve_batches.h"

#include <math.h>
#include <string.h>

#include "base/try.h"

static double pass(const struct serve_state *server, const struct serve_group *group, const struct serve_batch *batch,
                   double *free_s)
{
    const struct stage_cut *cut = serve_group_cut(server, group, batch->model);
    double end_s = server->traffic->requests[batch->first].at_s, growth = cut->growth[batch->count - 1];
    for (uint32_t s = 0; s < group->shape.pipeline; s++)
        free_s[s] = end_s = fmax(end_s, free_s[s]) + cut->stage_s[s] * growth;
    return end_s;
}

/* Checks batch number `from` of the queue and all later ones. */
static bool all_in_time(const struct serve_state *server, const struct serve_group *group, uint32_t from)
{
    double free_s[SERVING_STAGES_MAX];
    memcpy(free_s, group->free_s, group->shape.pipeline * sizeof *free_s);
    for (uint32_t i = group->line.first; i < group->line.end; i++) {
        const struct serve_batch *batch = &group->line.items[i];
        double end_s = pass(server, group, batch, free_s);
        if (i >= from && !serve_in_time(server, batch->first, end_s)) return false;
    }
    return true;
}

/* Returns the last waiting batch of the model; `end`: there is none. */
static uint32_t last_of(const struct serve_batch_line *line, uint32_t model)
{
    for (uint32_t i = line->end; i-- > line->first;)
        if (line->items[i].model == model) return i;
    return line->end;
}

/* Returns the end of a new batch with only this request, after all others. */
static double end_alone(const struct serve_state *server, const struct serve_group *group, uint32_t request)
{
    double free_s[SERVING_STAGES_MAX];
    const struct serve_batch alone = {server->traffic->requests[request].model, request, request, 1};
    memcpy(free_s, group->free_s, group->shape.pipeline * sizeof *free_s);
    for (uint32_t i = group->line.first; i < group->line.end; i++)
        pass(server, group, &group->line.items[i], free_s);
    return pass(server, group, &alone, free_s);
}

/* Checks that batch `at`, with one more request, ends by `until_s`, and that it and later ones are in time. */
static bool keeps(const struct serve_state *server, const struct serve_group *group, uint32_t at, double until_s)
{
    double free_s[SERVING_STAGES_MAX], end_s = 0;
    memcpy(free_s, group->free_s, group->shape.pipeline * sizeof *free_s);
    for (uint32_t i = group->line.first; i <= at; i++) end_s = pass(server, group, &group->line.items[i], free_s);
    return end_s <= until_s && all_in_time(server, group, at);
}

static bool join(struct serve_state *server, struct serve_group *group, uint32_t request)
{
    uint32_t model = server->traffic->requests[request].model, at = last_of(&group->line, model);
    if (at == group->line.end) return false;
    struct serve_batch *batch = &group->line.items[at];
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

static enum status append(struct serve_state *server, struct serve_group *group, uint32_t request, bool *admitted,
                          struct error *err)
{
    struct serve_batch_line *line = &group->line;
    *admitted = false;
    if (line->end == line->capacity && 2 * line->first > line->end) { /* started batches make room */
        memmove(line->items, &line->items[line->first], (line->end - line->first) * sizeof *line->items);
        line->end -= line->first;
        line->first = 0;
    }
    TRY(array_reserve(&line->items, &line->capacity, line->end, sizeof *line->items, SERVING_REQUESTS_MAX,
                      "batches of requests", err));
    line->items[line->end++] = (struct serve_batch){server->traffic->requests[request].model, request, request, 1};
    *admitted = !server->promises || all_in_time(server, group, line->end - 1);
    if (!*admitted) line->end--;
    return STATUS_OK;
}

enum status serve_batches_begin(struct serve_state *server, struct serve_group *group, double now_s, struct error *err)
{
    struct serve_batch_line *line = &group->line;
    for (; line->first < line->end; line->first++) {
        const struct serve_batch *batch = &line->items[line->first];
        if (fmax(server->traffic->requests[batch->first].at_s, group->free_s[0]) > now_s) break;
        double end_s = pass(server, group, batch, group->free_s);
        const struct stage_cut *cut = serve_group_cut(server, group, batch->model);
        server->loads[group - server->groups].busy_s +=
            group->shape.tensor * cut->latency_s * cut->growth[batch->count - 1];
        line->requests -= batch->count;
        for (uint32_t i = 0, request = batch->first; i < batch->count; i++, request = server->after[request])
            TRY(serve_answered(server, group, request, end_s, err));
    }
    if (line->first == line->end) line->first = line->end = 0;
    return STATUS_OK;
}

enum status serve_batches_add(struct serve_state *server, struct serve_group *group, uint32_t request, bool *admitted,
                              struct error *err)
{
    *admitted = join(server, group, request);
    if (!*admitted) TRY(append(server, group, request, admitted, err));
    if (*admitted) group->line.requests++;
    return STATUS_OK;
}
