#include "cli/machine/cli_runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/file_kind.h"
#include "base/try.h"
#include "models/hardware/hardware.h"
#include "models/job/parallel.h"

enum { FILE_BYTES_MAX = 64 << 20, FIELDS_MAX = 32, FIELD_BYTES = 64, NO_COLUMN = -1, TIME_COLUMN = -2 };

static const struct column {
    const char *name;
    uint32_t absent, most; /* absent: default value; 0 and not optional: required */
    bool optional;
} columns[RUN_COLUMNS] = {
    [RUN_DEVICES] = {"# GPUs", 0, 1 << 20, false},
    [RUN_BATCH] = {"global batch", 0, 1 << 24, false},
    [RUN_MICROBATCH] = {"micro batch", 0, 1 << 20, false},
    [RUN_WIDTH] = {"hidden size", 0, 1 << 20, false},
    [RUN_HEADS] = {"attention heads", 0, 1 << 16, false},
    [RUN_LAYERS] = {"# layers", 0, 1 << 16, false},
    [RUN_SEQUENCE] = {"sequence length", 0, 1 << 20, false},
    [RUN_TENSOR] = {"tensor parallelism", 0, PARALLEL_DEGREE_MAX, false},
    [RUN_DATA] = {"data parallelism", 0, PARALLEL_DEGREE_MAX, false},
    [RUN_PIPELINE] = {"pipeline parallelism", 0, PARALLEL_DEGREE_MAX, false},
    [RUN_RECOMPUTE] = {"recompute", RECOMPUTE_NONE, 0, true},
    [RUN_CHUNKS] = {"chunks", 1, PARALLEL_CHUNKS_MAX, true},
    [RUN_SEQUENCE_PARALLEL] = {"sequence parallelism", 0, 1, true},
    [RUN_SCATTER] = {"scatter", 0, 1, true},
    [RUN_EXPOSED] = {"exposed", 0, 1, true},
    [RUN_VOCABULARY] = {"vocabulary", 50257, 1 << 24, true},
    [RUN_ZERO] = {"zero", ZERO_NOTHING, ZERO_WEIGHTS, true},
    [RUN_OVERLAP] = {"overlap", 0, 1, true},
    [RUN_STACK] = {"stack", STACK_FRAMEWORKS, 0, true},
};
static const char time_name[] = "iteration time (ms)", ignored_name[] = "Parameters (billion)";

/* --- columns ---------------------------------------------------------------------------------- */

bool measured_runs_column(const char *name, enum run_column *out)
{
    for (int c = 0; c < RUN_COLUMNS; c++) {
        if (strcmp(name, columns[c].name) != 0) continue;
        *out = (enum run_column)c;
        return true;
    }
    return false;
}

const char *measured_runs_column_name(enum run_column column)
{
    return columns[column].name;
}

static unsigned long least_of(enum run_column column)
{
    return columns[column].most == 1 || column == RUN_ZERO ? 0 : 1;
}

bool measured_runs_value(enum run_column column, const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    for (uint32_t r = 0; r < RECOMPUTE_COUNT && column == RUN_RECOMPUTE; r++) {
        if (strcmp(text, recompute_names[r]) != 0) continue;
        *out = r;
        return true;
    }
    for (uint32_t s = STACK_FRAMEWORKS; s < STACK_COUNT && column == RUN_STACK; s++) {
        if (strcmp(text, hardware_stack_names[s]) != 0) continue;
        *out = s;
        return true;
    }
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < least_of(column) || value > columns[column].most)
        return false;
    *out = (uint32_t)value;
    return true;
}

void measured_runs_value_text(enum run_column column, uint32_t value, char *text, size_t text_bytes)
{
    if (column == RUN_RECOMPUTE) snprintf(text, text_bytes, "%s", recompute_names[value]);
    else if (column == RUN_STACK) snprintf(text, text_bytes, "%s", hardware_stack_names[value]);
    else snprintf(text, text_bytes, "%" PRIu32, value);
}

/* --- fields ----------------------------------------------------------------------------------- */

struct runs_place {
    const char *path;
    uint32_t line;
};

struct runs_field {
    char text[FIELD_BYTES]; /* without spaces around */
    uint32_t column;        /* from 1 */
};

static enum status fail(struct runs_place at, const struct runs_field *field, struct error *err, const char *what,
                        const char *expected)
{
    return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu32 ":%" PRIu32 ": %s '%s' (expected %s)", at.path, at.line,
                     field->column, what, field->text, expected);
}

static enum status split(struct runs_place at, const char *line, size_t length, struct runs_field fields[FIELDS_MAX],
                         uint32_t *count, struct error *err)
{
    *count = 0;
    for (size_t begin = 0; begin <= length;) {
        const char *comma = memchr(line + begin, ',', length - begin);
        size_t end = comma ? (size_t)(comma - line) : length, first = begin, last = end;
        while (first < last && line[first] == ' ') first++;
        while (last > first && line[last - 1] == ' ') last--;
        if (*count == FIELDS_MAX || last - first >= FIELD_BYTES)
            return error_set(err, STATUS_LIMIT,
                             "%s:%" PRIu32 ":%zu: too many or too long fields (limits are %d of %d bytes)", at.path,
                             at.line, first + 1, FIELDS_MAX, FIELD_BYTES - 1);
        struct runs_field *field = &fields[(*count)++];
        memcpy(field->text, line + first, last - first);
        field->text[last - first] = '\0';
        field->column = (uint32_t)(first + 1);
        begin = end + 1;
    }
    return STATUS_OK;
}

/* --- the first line --------------------------------------------------------------------------- */

struct runs_layout {
    int of[FIELDS_MAX]; /* enum run_column, NO_COLUMN or TIME_COLUMN */
    uint32_t count;
};

static enum status find_column(struct runs_place at, const struct runs_field *field, int *out, struct error *err)
{
    enum run_column column;
    *out = NO_COLUMN;
    if (strcmp(field->text, ignored_name) == 0) return STATUS_OK;
    if (strcmp(field->text, time_name) == 0) *out = TIME_COLUMN;
    else if (measured_runs_column(field->text, &column)) *out = (int)column;
    return *out == NO_COLUMN
             ? fail(at, field, err, "unknown column", "a column of measured runs, such as 'global batch'")
             : STATUS_OK;
}

static enum status read_layout(struct runs_place at, const struct runs_field *fields, uint32_t count,
                               struct runs_layout *out, struct error *err)
{
    bool there[RUN_COLUMNS] = {false}, timed = false;
    out->count = count;
    for (uint32_t i = 0; i < count; i++) {
        TRY(find_column(at, &fields[i], &out->of[i], err));
        bool again = out->of[i] == TIME_COLUMN ? timed : out->of[i] >= 0 && there[out->of[i]];
        if (again) return fail(at, &fields[i], err, "second column", "each once");
        if (out->of[i] == TIME_COLUMN) timed = true;
        else if (out->of[i] >= 0) there[out->of[i]] = true;
    }
    for (int c = 0; c < RUN_COLUMNS; c++)
        if (!there[c] && !columns[c].optional)
            return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu32 ":1: missing column '%s'", at.path, at.line,
                             columns[c].name);
    if (!timed)
        return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu32 ":1: missing column '%s'", at.path, at.line, time_name);
    return STATUS_OK;
}

/* --- the other lines ---------------------------------------------------------------------------- */

static enum status parse_value(struct runs_place at, const struct runs_field *field, enum run_column column,
                               uint32_t *out, struct error *err)
{
    char expected[64];
    if (measured_runs_value(column, field->text, out)) return STATUS_OK;
    if (column == RUN_RECOMPUTE) return fail(at, field, err, "recompute is", "none, selective, full or stage");
    if (column == RUN_STACK) return fail(at, field, err, "stack is", "frameworks or megatron-core");
    snprintf(expected, sizeof expected, "a whole number from %lu to %" PRIu32, least_of(column), columns[column].most);
    return fail(at, field, err, columns[column].name, expected);
}

static enum status parse_time(struct runs_place at, const struct runs_field *field, double *out, struct error *err)
{
    char *end;
    double milliseconds = strtod(field->text, &end);
    if (end == field->text || *end != '\0' || !isfinite(milliseconds) || milliseconds <= 0)
        return fail(at, field, err, time_name, "a number above 0");
    *out = milliseconds * 1e-3;
    return *out > 0 ? STATUS_OK : fail(at, field, err, time_name, "a number above 0");
}

/* Checks that degrees multiply to devices, batches to whole microbatches, heads to the width. */
static enum status check_run(struct runs_place at, const struct measured_run *run, struct error *err)
{
    uint64_t devices = (uint64_t)run->of[RUN_TENSOR] * run->of[RUN_DATA] * run->of[RUN_PIPELINE];
    uint64_t step = (uint64_t)run->of[RUN_MICROBATCH] * run->of[RUN_DATA];
    if (devices != run->of[RUN_DEVICES])
        return error_set(err, STATUS_BAD_INPUT,
                         "%s:%" PRIu32 ":1: %" PRIu32 " GPUs, but tensor x data x pipeline is %" PRIu64, at.path,
                         at.line, run->of[RUN_DEVICES], devices);
    if (run->of[RUN_BATCH] % step != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s:%" PRIu32 ":1: global batch %" PRIu32 " is not a multiple of micro batch x data, %" PRIu64,
                         at.path, at.line, run->of[RUN_BATCH], step);
    if (run->of[RUN_WIDTH] % run->of[RUN_HEADS] != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s:%" PRIu32 ":1: hidden size %" PRIu32 " is not a multiple of %" PRIu32 " attention heads",
                         at.path, at.line, run->of[RUN_WIDTH], run->of[RUN_HEADS]);
    return STATUS_OK;
}

static enum status read_run(struct runs_place at, const struct runs_layout *layout, const struct runs_field *fields,
                            uint32_t count, struct measured_run *out, struct error *err)
{
    if (count != layout->count)
        return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu32 ":1: %" PRIu32 " fields (expected %" PRIu32 ")", at.path,
                         at.line, count, layout->count);
    *out = (struct measured_run){.line = at.line};
    for (int c = 0; c < RUN_COLUMNS; c++) out->of[c] = columns[c].absent;
    for (uint32_t i = 0; i < count; i++) {
        int column = layout->of[i];
        if (column == TIME_COLUMN) TRY(parse_time(at, &fields[i], &out->seconds, err));
        else if (column != NO_COLUMN) TRY(parse_value(at, &fields[i], (enum run_column)column, &out->of[column], err));
    }
    return check_run(at, out, err);
}

/* --- the file ---------------------------------------------------------------------------------- */

static bool is_comment(const char *line, size_t length)
{
    return length == 0 || line[0] == '\r' || (length > 1 && line[0] == '#' && line[1] == '#');
}

static enum status read_lines(const char *path, const char *text, struct measured_runs *out, struct error *err)
{
    struct runs_field fields[FIELDS_MAX];
    struct runs_layout layout = {.count = 0};
    struct runs_place at = {path, 0};
    for (const char *line = text, *next; *line != '\0'; line = next) {
        size_t length = strcspn(line, "\n"), end = length;
        next = line[length] == '\n' ? line + length + 1 : line + length;
        at.line++;
        uint32_t count;
        if (end > 0 && line[end - 1] == '\r') end--;
        if (is_comment(line, end)) continue;
        TRY(split(at, line, end, fields, &count, err));
        if (layout.count == 0) TRY(read_layout(at, fields, count, &layout, err));
        else TRY(read_run(at, &layout, fields, count, &out->runs[out->count++], err));
    }
    if (out->count > 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu32 ":1: no measured runs", path, at.line + 1);
}

enum status measured_runs_read(const char *path, struct arena *arena, struct measured_runs *out, struct error *err)
{
    char *text = NULL;
    size_t length, lines = 1;
    char found[FILE_READING_BYTES];
    struct file_look look;
    if (file_kind_look(path, &look) && !look.text && file_reading_refusal_at(path, "a table of measured runs", found))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is %s", path, found);
    TRY(file_read(path, FILE_BYTES_MAX, &text, &length, err));
    for (const char *c = text; *c; c++) lines += *c == '\n';
    struct measured_runs read = {.path = path};
    enum status status = lines <= MEASURED_RUNS_MAX
                           ? ARENA_NEW(arena, lines, read.runs, err)
                           : error_set(err, STATUS_LIMIT, "%s: too many lines (limit is %d)", path, MEASURED_RUNS_MAX);
    if (status == STATUS_OK) {
        status = read_lines(path, text, &read, err);
    }
    if (status == STATUS_OK) *out = read;
    free(text);
    return status;
}
