/* Both forms become one table: a constant part of the latency, or some batches' latencies with linear interpolation. */
#include "sim/serving/batch_growth.h"

#include <stdlib.h>

#include "base/text/number.h"
#include "base/try.h"

struct batch_growth_point {
    uint32_t requests;
    double latency_s;
};

struct points {
    struct batch_growth_point at[SERVING_BATCH_MAX];
    uint32_t count;
};

static int by_requests(const void *a, const void *b)
{
    const struct batch_growth_point *x = a, *y = b;
    return (x->requests > y->requests) - (x->requests < y->requests);
}

static enum status read_table(const struct json_input *in, const json_t *object, struct points *out,
                              struct error *err)
{
    struct json_object table;
    const char *key;
    json_t *ignored;
    TRY(json_object_open(&table, in, object, "latencies by requests of a batch", err));
    json_object_foreach((json_t *)object, key, ignored) {
        uint64_t requests;
        double latency_s = 0;
        if (key[0] == '_') continue;
        if (!number_read_u64(key, &requests) || requests < 2 || requests > SERVING_BATCH_MAX || key[0] == '0')
            return json_fail_key(in, object, key, err, "'%.40s' is not a batch size (expected 2 to %d)", key,
                                 SERVING_BATCH_MAX);
        TRY(json_take_quantity(&table, key, JSON_REQUIRED, DIMENSION_SECONDS, 0, 1e9, &latency_s, err));
        out->at[out->count++] = (struct batch_growth_point){(uint32_t)requests, latency_s};
    }
    TRY(json_object_close(&table, err));
    qsort(out->at, out->count, sizeof *out->at, by_requests);
    for (uint32_t i = 1; i < out->count; i++)
        if (out->at[i].latency_s < out->at[i - 1].latency_s)
            return json_fail_key(in, object, NULL, err,
                                 "%u requests take %g s, and %u take %g s (expected ascending times)",
                                 out->at[i].requests, out->at[i].latency_s, out->at[i - 1].requests,
                                 out->at[i - 1].latency_s);
    return STATUS_OK;
}

/* Makes two points, for one request and for `most`: base + requests (latency - base). */
static enum status read_line(struct json_object *batch, double latency_s, struct points *out, struct error *err)
{
    uint32_t most = 1;
    double base_s = 0;
    TRY(json_take_u32(batch, "most", JSON_REQUIRED, 1, SERVING_BATCH_MAX, &most, err));
    TRY(json_take_quantity(batch, "base", JSON_REQUIRED, DIMENSION_SECONDS, 0, latency_s, &base_s, err));
    if (most > 1) out->at[out->count++] = (struct batch_growth_point){most, base_s + most * (latency_s - base_s)};
    return STATUS_OK;
}

/* Fills the table; `points` begins with one request and ends with the most. */
static void fill(const struct points *points, double *growth)
{
    const struct batch_growth_point *at = points->at;
    growth[0] = 1;
    for (uint32_t i = 1; i < points->count; i++) {
        uint32_t span = at[i].requests - at[i - 1].requests;
        for (uint32_t k = 1; k <= span; k++)
            growth[at[i - 1].requests + k - 1] =
                (at[i - 1].latency_s + (at[i].latency_s - at[i - 1].latency_s) * k / span) / at[0].latency_s;
    }
}

enum status batch_growth_read(struct json_object *entry, struct arena *arena, double latency_s, uint32_t *most,
                              const double **growth, struct error *err)
{
    const json_t *object, *table = NULL;
    struct json_object batch;
    struct points points = {.at = {{1, latency_s}}, .count = 1};
    double *seconds;
    TRY(json_take_object(entry, "batch", JSON_OPTIONAL, &object, err));
    if (object) {
        TRY(json_object_open(&batch, entry->input, object, "a batch object", err));
        TRY(json_take_object(&batch, "latency", JSON_OPTIONAL, &table, err));
        if (table)
            TRY(read_table(entry->input, table, &points, err));
        else
            TRY(read_line(&batch, latency_s, &points, err));
        TRY(json_object_close(&batch, err));
    }
    *most = points.at[points.count - 1].requests;
    TRY(ARENA_NEW(arena, *most, seconds, err));
    fill(&points, seconds);
    *growth = seconds;
    return STATUS_OK;
}

enum status batch_most_read(struct json_object *entry, uint32_t *most, struct error *err)
{
    const json_t *object;
    struct json_object batch;
    *most = 1;
    TRY(json_take_object(entry, "batch", JSON_OPTIONAL, &object, err));
    if (!object) return STATUS_OK;
    TRY(json_object_open(&batch, entry->input, object, "a batch object", err));
    TRY(json_take_u32(&batch, "most", JSON_REQUIRED, 1, SERVING_BATCH_MAX, most, err));
    return json_object_close(&batch, err);
}
