/* See stage_cut.h: computes F row by row, then the stages from the last to the first. */
#include "sim/serving/stage_cut.h"

#include <math.h>
#include <stddef.h>

#include "base/try.h"

struct stage_cut_cutter {
    const struct serving_degree *degree;
    uint32_t layers;
    double *before_s; /* (layers + 1): seconds of all earlier layers */
    double *best_s;   /* (pipeline, layers + 1): F */
    uint32_t *from;   /* (pipeline, layers + 1): begin of the last stage */
};

static double span_s(const struct stage_cut_cutter *c, uint32_t from, uint32_t to)
{
    return c->before_s[to] - c->before_s[from] + (to < c->layers ? c->degree->hop_s[to - 1] : 0);
}

static void fill_stage(struct stage_cut_cutter *c, uint32_t stage)
{
    size_t width = c->layers + 1;
    double *best_s = &c->best_s[stage * width], *front_s = stage ? best_s - width : NULL;
    for (uint32_t k = stage + 1; k <= c->layers; k++) {
        best_s[k] = HUGE_VAL;
        if (!front_s) {
            best_s[k] = span_s(c, 0, k);
            c->from[k] = 0;
            continue;
        }
        for (uint32_t i = stage; i < k; i++) {
            double s = fmax(front_s[i], span_s(c, i, k));
            if (s >= best_s[k]) continue;
            best_s[k] = s;
            c->from[stage * width + k] = i;
        }
    }
}

static void read_back(const struct stage_cut_cutter *c, uint32_t pipeline, struct stage_cut *out)
{
    uint32_t end = c->layers;
    for (uint32_t stage = pipeline; stage-- > 0;) {
        uint32_t begin = c->from[(size_t)stage * (c->layers + 1) + end];
        out->stage_s[stage] = span_s(c, begin, end);
        out->latency_s += out->stage_s[stage];
        out->slowest_s = fmax(out->slowest_s, out->stage_s[stage]);
        for (uint32_t l = begin; l < end; l++) out->stage_bytes[stage] += c->degree->layer_bytes[l];
        end = begin;
    }
}

static enum status cut(struct arena *arena, struct arena *scratch, struct stage_cut_cutter *c, uint32_t pipeline,
                       struct stage_cut *out, struct error *err)
{
    size_t cells = (size_t)pipeline * (c->layers + 1);
    TRY(ARENA_NEW(scratch, c->layers + 1, c->before_s, err));
    TRY(ARENA_NEW(scratch, cells, c->best_s, err));
    TRY(ARENA_NEW(scratch, cells, c->from, err));
    TRY(ARENA_NEW(arena, pipeline, out->stage_s, err));
    TRY(ARENA_NEW(arena, pipeline, out->stage_bytes, err));
    out->growth = c->degree->growth;
    for (uint32_t l = 0; l < c->layers; l++) c->before_s[l + 1] = c->before_s[l] + c->degree->layer_s[l];
    for (uint32_t stage = 0; stage < pipeline; stage++) fill_stage(c, stage);
    read_back(c, pipeline, out);
    return STATUS_OK;
}

enum status stage_cut_make(struct arena *arena, const struct serving_kind *kind, struct serving_shape shape,
                           struct stage_cut *out, struct error *err)
{
    struct stage_cut_cutter c = {.degree = serving_degree_of(kind, shape.tensor), .layers = kind->layer_count};
    struct arena scratch = {0};
    *out = (struct stage_cut){0};
    if (!c.degree || shape.pipeline > c.layers) return STATUS_OK;
    enum status status = cut(arena, &scratch, &c, shape.pipeline, out, err);
    arena_release(&scratch);
    return status;
}
