/*
 * nccl-tests: how long a collective takes by size.
 *
 * The table does not name the collective, but its two bandwidths do: bus over algorithm bandwidth is 2 (n - 1) / n of
 * an all-reduce, (n - 1) / n of an all-gather and a reduce-scatter. The largest row, with most digits, decides.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"
#include "base/try.h"
#include "models/hardware/import/hardware_import_parts.h"

enum { TABLE_COLUMNS = 13, COLUMN_SIZE = 0, COLUMN_TIME = 5, COLUMN_ALG_BW = 6, COLUMN_BUS_BW = 7, COLUMN_BYTES = 64 };

/* Limits of hardware files. */
static const double seconds_min = 1e-12, seconds_max = 1e6;

/* --- rings ------------------------------------------------------------------------------------ */

/* Returns 0 when no ring fits the bandwidths. */
static uint32_t steps_of(const struct import_nccl_row *row, uint32_t ranks)
{
    double ratio = row->bus_bw / row->alg_bw, once = (ranks - 1.0) / ranks;
    if (fabs(ratio - 2 * once) < 0.05 * once) return 2 * (ranks - 1);
    return fabs(ratio - once) < 0.05 * once ? ranks - 1 : 0;
}

static int compare_points(const void *left, const void *right)
{
    const struct copy_point *a = left, *b = right;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Stores rows as the type's ring; `line`: the first row's. Errors: STATUS_BAD_INPUT. */
static enum status import_ring(struct import *import, const struct import_nccl_row *rows, uint32_t count,
                               uint32_t ranks, unsigned long line, struct error *err)
{
    struct device_type *type = &import->machine->types[0];
    uint32_t points = 0, largest = 0;
    if (ranks < 2 || ranks > import->machine->device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s:%lu:1: %" PRIu32 " ranks (expected 2 to the %" PRIu32 " devices of the machine)",
                         import->name, line, ranks, import->machine->device_count);
    if (import->machine->type_count != 1)
        return error_set(err, STATUS_BAD_INPUT, "%s:%lu:1: the machine has devices of several types (expected one)",
                         import->name, line);
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].bytes > rows[largest].bytes) largest = i;
    uint32_t steps = count > 0 && rows[largest].alg_bw > 0 ? steps_of(&rows[largest], ranks) : 0;
    if (steps == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s:%lu:1: neither an all-reduce nor an all-gather of %" PRIu32 " ranks by its bandwidths",
                         import->name, line, ranks);
    struct copy_point *ring;
    TRY(ARENA_NEW(&import->machine->arena, count, ring, err));
    for (uint32_t i = 0; i < count && points < HARDWARE_COPY_POINTS_MAX; i++) {
        if (rows[i].bytes < ranks || !(rows[i].time_us > 0)) continue;
        struct copy_point point = {.bytes = rows[i].bytes / ranks, .seconds = rows[i].time_us * 1e-6 / steps};
        if (point.seconds < seconds_min || point.seconds > seconds_max)
            return error_set(err, STATUS_BAD_INPUT,
                             "%s:%lu:1: a step of %" PRIu64 " bytes takes %g s (expected %g to %g)", import->name, line,
                             point.bytes, point.seconds, seconds_min, seconds_max);
        ring[points++] = point;
    }
    qsort(ring, points, sizeof *ring, compare_points);
    for (uint32_t i = 1; i < points; i++)
        if (ring[i].bytes == ring[i - 1].bytes)
            return error_set(err, STATUS_BAD_INPUT, "%s:%lu:1: two rows for messages of %" PRIu64 " bytes",
                             import->name, line, ring[i].bytes);
    type->ring = ring;
    type->ring_count = points;
    import_say(import, "%s of %" PRIu32 " ranks: %" PRIu32 " sizes, %.4g GB/s on the bus at the largest",
               steps == 2 * (ranks - 1) ? "all-reduce" : "all-gather or reduce-scatter", ranks, points,
               rows[largest].bus_bw);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static enum status read_result(const struct json_input *in, const json_t *array, size_t index,
                               struct import_nccl_row *out, struct error *err)
{
    struct json_object object, inner;
    const json_t *value;
    TRY(json_object_open_at(&object, in, array, index, "a result", err));
    json_object_ignore_others(&object);
    TRY(json_take_u64(&object, "size", JSON_REQUIRED, 0, UINT64_C(1) << 50, &out->bytes, err));
    TRY(json_take_object(&object, "out_of_place", JSON_REQUIRED, &value, err));
    TRY(json_object_open(&inner, in, value, "times", err));
    json_object_ignore_others(&inner);
    TRY(json_take_double(&inner, "time", JSON_REQUIRED, 0, 1e12, &out->time_us, err));
    TRY(json_take_double(&inner, "alg_bw", JSON_REQUIRED, 0, 1e9, &out->alg_bw, err));
    return json_take_double(&inner, "bus_bw", JSON_REQUIRED, 0, 1e9, &out->bus_bw, err);
}

enum status import_nccl_json(struct import *import, const struct json_input *in, struct error *err)
{
    struct json_object root;
    const json_t *results, *devices;
    static const size_t most = HARDWARE_COPY_POINTS_MAX;
    struct import_nccl_row rows[HARDWARE_COPY_POINTS_MAX];
    TRY(json_object_open(&root, in, json_input_root(in), "nccl-tests' report", err));
    json_object_ignore_others(&root);
    TRY(json_take_array(&root, "results", JSON_REQUIRED, &results, err));
    TRY(json_take_array(&root, "devices", JSON_REQUIRED, &devices, err));
    size_t count = json_array_size(results), ranks = json_array_size(devices);
    if (count == 0 || count > most)
        return json_fail_key(in, json_input_root(in), "results", err, "%zu results (expected 1 to %zu)", count, most);
    for (size_t i = 0; i < count; i++) TRY(read_result(in, results, i, &rows[i], err));
    return import_ring(import, rows, (uint32_t)count,
                       ranks > HARDWARE_DEVICES_MAX ? HARDWARE_DEVICES_MAX + 1 : (uint32_t)ranks, 1, err);
}

/* --- the table -------------------------------------------------------------------------------- */

struct hardware_import_nccl_table {
    struct import *import;
    const char *at; /* of the current line */
    unsigned long line;
    uint32_t ranks, count;
    unsigned long first_line;
    struct import_nccl_row rows[HARDWARE_COPY_POINTS_MAX];
};

/* Splits at blanks, with positions; returns the number of words. */
static uint32_t split(const char *line, size_t length, const char *words[TABLE_COLUMNS], size_t lengths[TABLE_COLUMNS])
{
    uint32_t count = 0;
    for (size_t i = 0; i < length && count < TABLE_COLUMNS;) {
        while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) i++;
        size_t begin = i;
        while (i < length && line[i] != ' ' && line[i] != '\t' && line[i] != '\r') i++;
        if (i == begin) break;
        words[count] = line + begin;
        lengths[count++] = i - begin;
    }
    return count;
}

static enum status parse_column(const struct hardware_import_nccl_table *t, const char *const *words,
                                const size_t *lengths, uint32_t column, double *out, struct error *err)
{
    static const char *const names[TABLE_COLUMNS] = {[COLUMN_SIZE] = "size", [COLUMN_TIME] = "time",
                                                     [COLUMN_ALG_BW] = "algbw", [COLUMN_BUS_BW] = "busbw"};
    char text[COLUMN_BYTES];
    const char *end;
    size_t length = lengths[column] < COLUMN_BYTES ? lengths[column] : COLUMN_BYTES - 1;
    snprintf(text, sizeof text, "%.*s", (int)length, words[column]);
    if (number_read(text, &end, out) && *end == '\0' && *out >= 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s:%lu:%zu: %s is '%s' (expected a number)", t->import->name, t->line,
                     (size_t)(words[column] - t->at) + 1, names[column], text);
}

static enum status parse_line(struct hardware_import_nccl_table *t, size_t length, struct error *err)
{
    const char *words[TABLE_COLUMNS];
    size_t lengths[TABLE_COLUMNS];
    uint32_t count = split(t->at, length, words, lengths);
    if (count == 0) return STATUS_OK;
    if (words[0][0] == '#') {
        t->ranks += count > 2 && lengths[1] == 4 && strncmp(words[1], "Rank", 4) == 0;
        return STATUS_OK;
    }
    if (count < COLUMN_BUS_BW + 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s:%lu:1: no row of nccl-tests (expected size, count, type, redop, root, time, "
                         "algbw, busbw)",
                         t->import->name, t->line);
    if (t->count == HARDWARE_COPY_POINTS_MAX)
        return error_set(err, STATUS_LIMIT, "%s:%lu:1: too many rows (limit is %d)", t->import->name, t->line,
                         HARDWARE_COPY_POINTS_MAX);
    struct import_nccl_row *row = &t->rows[t->count];
    double bytes;
    TRY(parse_column(t, words, lengths, COLUMN_SIZE, &bytes, err));
    TRY(parse_column(t, words, lengths, COLUMN_TIME, &row->time_us, err));
    TRY(parse_column(t, words, lengths, COLUMN_ALG_BW, &row->alg_bw, err));
    TRY(parse_column(t, words, lengths, COLUMN_BUS_BW, &row->bus_bw, err));
    if (bytes > 0x1p50)
        return error_set(err, STATUS_BAD_INPUT, "%s:%lu:1: size is %g (expected at most 2^50)", t->import->name,
                         t->line, bytes);
    row->bytes = (uint64_t)bytes;
    if (t->count++ == 0) t->first_line = t->line;
    return STATUS_OK;
}

enum status import_nccl_table(struct import *import, const char *text, size_t length, struct error *err)
{
    struct hardware_import_nccl_table t = {.import = import, .at = text, .line = 1};
    for (const char *end = text + length, *next; t.at < end; t.at = next, t.line++) {
        const char *newline = memchr(t.at, '\n', (size_t)(end - t.at));
        next = newline ? newline + 1 : end;
        TRY(parse_line(&t, (size_t)((newline ? newline : end) - t.at), err));
    }
    if (t.count == 0)
        return error_set(err, STATUS_BAD_INPUT, "%s:1:1: neither JSON nor a table of nccl-tests with results",
                         import->name);
    if (t.ranks == 0)
        return error_set(err, STATUS_BAD_INPUT, "%s:1:1: the table names no ranks (expected lines '#  Rank  0 ...')",
                         import->name);
    return import_ring(import, t.rows, t.count, t.ranks, t.first_line, err);
}
