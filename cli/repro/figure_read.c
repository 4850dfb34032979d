/*
 * Parts are read in the order of dependencies: columns, rows, files, runs, series, claims. Templates and expressions
 * are checked against known names: later only answers of runs can fail.
 */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/repro/figure.h"
#include "cli/repro/template.h"

static const char figure_steps[] = "steps";
enum { FIGURE_STEPS_MAX = 1000000 };

/* --- names and texts ------------------------------------------------------------------------------- */

uint32_t figure_names(const struct figure *figure, bool runs, uint32_t series_count,
                      const char *names[FIGURE_NAMES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < figure->column_count; i++) names[count++] = figure->columns[i].name;
    for (uint32_t i = 0; runs && i < figure->run_count; i++) names[count++] = figure->runs[i].name;
    for (uint32_t i = 0; i < series_count; i++) names[count++] = figure->series[i].name;
    return count;
}

static bool is_name(const char *text)
{
    static const char *const words[] = {"and", "or", "not", "true", "false"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (strcmp(text, words[i]) == 0) return false;
    if (!isalpha((unsigned char)*text) && *text != '_') return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_') return false;
    return true;
}

/* Checks that the name suits expressions and is new. */
static enum status check_name(const struct figure *figure, const char *name, const json_t *container, const char *key,
                              size_t index, struct error *err)
{
    const char *names[FIGURE_NAMES_MAX + 1];
    uint32_t count = figure_names(figure, true, figure->series_count, names);
    char message[256] = "";
    if (!is_name(name))
        snprintf(message, sizeof message, "'%s' is not a name (expected letters, digits and '_')", name);
    if (figure->real.read) names[count++] = figure_steps;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) snprintf(message, sizeof message, "the name '%s' is used twice", name);
    if (!*message) return STATUS_OK;
    if (key) return json_fail_key(figure->input, container, key, err, "%s", message);
    return json_fail_index(figure->input, container, index, err, "%s", message);
}

static enum status read_texts(const struct figure *figure, struct json_object *object, const char *key,
                              struct figure_texts *texts, struct error *err)
{
    const json_t *array;
    TRY(json_take_array(object, key, JSON_OPTIONAL, &array, err));
    if (!array) return STATUS_OK;
    if (json_array_size(array) > FIGURE_TEXTS_MAX)
        return error_set(err, STATUS_LIMIT, "too many '%s' (limit is %d)", key, FIGURE_TEXTS_MAX);
    for (size_t i = 0; i < json_array_size(array); i++)
        TRY(json_item_string(figure->input, array, i, &texts->items[texts->count++], err));
    return STATUS_OK;
}

/* --- head -------------------------------------------------------------------------------------- */

static enum status read_paper(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *value;
    struct json_object object;
    TRY(json_take_object(root, "paper", JSON_REQUIRED, &value, err));
    TRY(json_object_open(&object, figure->input, value, "a paper", err));
    TRY(json_take_string(&object, "title", JSON_REQUIRED, &figure->paper.title, err));
    TRY(json_take_string(&object, "authors", JSON_REQUIRED, &figure->paper.authors, err));
    TRY(json_take_string(&object, "version", JSON_REQUIRED, &figure->paper.version, err));
    TRY(json_take_string(&object, "id", JSON_REQUIRED, &figure->paper.id, err));
    return json_object_close(&object, err);
}

static enum status read_quantity(struct figure *figure, struct json_object *root, enum json_need need,
                                 struct error *err)
{
    const json_t *value = NULL;
    struct json_object object;
    TRY(json_take_object(root, "quantity", need, &value, err));
    if (!value) return STATUS_OK;
    figure->quantity.unit = "";
    TRY(json_object_open(&object, figure->input, value, "a quantity", err));
    TRY(json_take_string(&object, "name", JSON_REQUIRED, &figure->quantity.name, err));
    TRY(json_take_string(&object, "unit", JSON_OPTIONAL, &figure->quantity.unit, err));
    TRY(json_take_bool(&object, "log", JSON_OPTIONAL, &figure->quantity.log, err));
    return json_object_close(&object, err);
}

static enum status read_head(struct figure *figure, struct json_object *root, struct error *err)
{
    static const char *const kinds[] = {[FIGURE_BARS] = "bars", [FIGURE_LINES] = "lines", [FIGURE_TABLE] = "table"};
    size_t kind = 0;
    uint32_t version;
    TRY(json_take_u32(root, "spillway_figure", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(root, "id", JSON_REQUIRED, &figure->id, err));
    TRY(read_paper(figure, root, err));
    TRY(json_take_string(root, "figure", JSON_REQUIRED, &figure->figure, err));
    TRY(json_take_string(root, "title", JSON_REQUIRED, &figure->title, err));
    TRY(json_take_choice(root, "kind", JSON_REQUIRED, kinds, ARRAY_COUNT(kinds), &kind, err));
    TRY(read_quantity(figure, root, JSON_REQUIRED, err));
    figure->kind = (enum figure_kind)kind;
    if (!*figure->id || strspn(figure->id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(figure->id))
        return json_fail_key(figure->input, root->value, "id", err,
                             "'%s' is not an id (expected small letters, digits and '-')", figure->id);
    return STATUS_OK;
}

static enum status read_remarks(struct figure *figure, struct json_object *body, struct error *err)
{
    TRY(read_texts(figure, body, "set_up", &figure->set_up, err));
    TRY(read_texts(figure, body, "assumptions", &figure->assumptions, err));
    TRY(read_texts(figure, body, "not_modelled", &figure->not_modelled, err));
    return read_texts(figure, body, "notes", &figure->notes, err);
}

/* --- columns and rows ---------------------------------------------------------------------------- */

static uint32_t find_column(const struct figure *figure, const char *name)
{
    for (uint32_t i = 0; i < figure->column_count; i++)
        if (strcmp(figure->columns[i].name, name) == 0) return i;
    return FIGURE_NONE;
}

static enum status fail_column(const struct figure *figure, const char *name, const json_t *container, const char *key,
                               struct error *err)
{
    const char *names[FIGURE_NAMES_MAX];
    char ending[SUGGEST_BYTES];
    return json_fail_key(figure->input, container, key, err, "there is no column '%s'%s", name,
                         suggest_ending_or(name, names, figure_names(figure, false, 0, names), "", ending));
}

static enum status read_columns(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *array;
    TRY(json_take_array(root, "columns", JSON_REQUIRED, &array, err));
    size_t count = json_array_size(array), most = FIGURE_COLUMNS_MAX - figure->real.read;
    if (count == 0 || count > most)
        return json_fail_key(figure->input, root->value, "columns", err, "%zu columns (expected 1 to %zu)", count,
                             most);
    for (size_t i = 0; i < count; i++) {
        const char *name;
        TRY(json_item_string(figure->input, array, i, &name, err));
        TRY(check_name(figure, name, array, NULL, i, err));
        figure->columns[figure->column_count++].name = name;
    }
    if (figure->real.read) figure->columns[figure->column_count++].name = figure_steps;
    return STATUS_OK;
}

static enum status read_published(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *value;
    const char *name;
    json_t *child;
    TRY(json_take_object(root, "published", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;
    json_object_foreach((json_t *)value, name, child) {
        struct json_object object;
        uint32_t column = find_column(figure, name);
        if (strcmp(name, "_comment") == 0) continue;
        if (column == FIGURE_NONE) return fail_column(figure, name, value, name, err);
        struct figure_column *c = &figure->columns[column];
        TRY(json_object_open(&object, figure->input, child, "an object with 'source' and 'reading'", err));
        TRY(json_take_string(&object, "source", JSON_REQUIRED, &c->source, err));
        TRY(json_take_string(&object, "reading", JSON_REQUIRED, &c->reading, err));
        TRY(json_object_close(&object, err));
    }
    return STATUS_OK;
}

/* Reads columns that name rows, by default all parameters. */
static enum status read_label(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *array;
    TRY(json_take_array(root, "label", JSON_OPTIONAL, &array, err));
    for (uint32_t c = 0; !array && c < figure->column_count; c++)
        figure->columns[c].named = figure->columns[c].source == NULL && figure->columns[c].name != figure_steps;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *name;
        TRY(json_item_string(figure->input, array, i, &name, err));
        uint32_t column = find_column(figure, name);
        if (column == FIGURE_NONE) return fail_column(figure, name, root->value, "label", err);
        figure->columns[column].named = true;
    }
    return STATUS_OK;
}

static enum status read_row(struct figure *figure, const json_t *rows, size_t row, struct error *err)
{
    const json_t *array;
    uint32_t count = figure->column_count - figure->real.read; /* no row has steps */
    TRY(json_item_array(figure->input, rows, row, count, &array, err));
    if (figure->real.read)
        figure->cells[row * figure->column_count + count] = (struct expression_value){.kind = EXPRESSION_VALUE_NUMBER,
                                                                                      .number = figure->real.steps};
    for (uint32_t c = 0; c < count; c++) {
        const json_t *cell = json_array_get(array, c);
        bool published = figure->columns[c].source != NULL;
        if (!json_is_null(cell) && !json_is_number(cell) && (published || !json_is_string(cell)))
            return json_fail_index(figure->input, array, c, err, "column '%s' is %s", figure->columns[c].name,
                                   published ? "published: expected a number or null"
                                             : "neither a number, a text nor null");
        figure->cells[row * figure->column_count + c] =
            json_is_null(cell) ? expression_missing(published ? "not published" : "null") : expression_of_json(cell);
    }
    return STATUS_OK;
}

static enum status read_rows(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *rows;
    TRY(json_take_array(root, "rows", JSON_REQUIRED, &rows, err));
    size_t count = json_array_size(rows);
    if (count == 0 || count > FIGURE_ROWS_MAX)
        return json_fail_key(figure->input, root->value, "rows", err, "%zu rows (expected 1 to %d)", count,
                             FIGURE_ROWS_MAX);
    TRY(ARENA_NEW(&figure->arena, count * figure->column_count, figure->cells, err));
    figure->row_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        TRY(read_row(figure, rows, i, err));
    return STATUS_OK;
}

/* Reads the axis; without one, the first column names the rows. */
static enum status read_x(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *value;
    struct json_object object;
    const char *name = figure->columns[0].name;
    figure->x.unit = "";
    TRY(json_take_object(root, "x", figure->kind == FIGURE_LINES ? JSON_REQUIRED : JSON_OPTIONAL, &value, err));
    figure->x.name = name;
    if (!value) return STATUS_OK;
    TRY(json_object_open(&object, figure->input, value, "an axis", err));
    TRY(json_take_string(&object, "column", JSON_REQUIRED, &name, err));
    figure->x.name = name;
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &figure->x.name, err));
    TRY(json_take_string(&object, "unit", JSON_OPTIONAL, &figure->x.unit, err));
    TRY(json_take_bool(&object, "log", JSON_OPTIONAL, &figure->x.log, err));
    TRY(json_object_close(&object, err));
    figure->x.column = find_column(figure, name);
    if (figure->x.column == FIGURE_NONE) return fail_column(figure, name, value, "column", err);
    for (uint32_t r = 0; r < figure->row_count && figure->kind == FIGURE_LINES; r++) {
        const struct expression_value *cell = figure_cell(figure, r, figure->x.column);
        if (cell->kind != EXPRESSION_VALUE_NUMBER || (figure->x.log && cell->number <= 0))
            return json_fail_key(figure->input, value, "column", err,
                                 "row %u has no %snumber in column '%s', where lines have their x", (unsigned)r,
                                 figure->x.log ? "positive " : "", name);
    }
    return STATUS_OK;
}

/* --- files and runs ------------------------------------------------------------------------------ */

static enum status read_files(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *value;
    const char *name, *names[FIGURE_NAMES_MAX];
    uint32_t name_count = figure_names(figure, false, 0, names);
    json_t *child;
    TRY(json_take_object(root, "files", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;
    json_object_foreach((json_t *)value, name, child) {
        struct template_place place = {figure->input, value, name, 0};
        if (strcmp(name, "_comment") == 0) continue;
        if (figure->file_count == FIGURE_FILES_MAX)
            return error_set(err, STATUS_LIMIT, "too many files (limit is %d)", FIGURE_FILES_MAX);
        if (!*name || *name == '.' || strlen(name) > 100 ||
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != strlen(name))
            return json_fail_key(figure->input, value, name, err,
                                 "'%.100s' is not the name of a file (expected letters, digits, '.', '_' and '-')",
                                 name);
        if (!json_is_object(child) && !json_is_string(child))
            return json_fail_key(figure->input, value, name, err,
                                 "expected an object, which is the file, or a string, which is a path to it");
        TRY(template_check(child, place, names, name_count, err));
        figure->files[figure->file_count++] = (struct figure_file){.name = name, .content = child};
    }
    return STATUS_OK;
}

static enum status check_arguments(const struct figure *figure, const json_t *arguments, struct error *err)
{
    const char *text;
    size_t count = json_array_size(arguments);
    if (count == 0) return json_fail_index(figure->input, arguments, JSON_SELF, err, "a run without arguments");
    for (size_t i = 0; i < count; i++)
        TRY(json_item_string(figure->input, arguments, i, &text, err));
    return STATUS_OK;
}

static enum status check_commands(const struct figure *figure, struct figure_run *run, struct error *err)
{
    const json_t *first = json_array_get(run->commands, 0), *arguments;
    run->chained = json_is_array(first);
    if (!run->chained) return check_arguments(figure, run->commands, err);
    for (size_t i = 0; i < json_array_size(run->commands); i++)
        if (json_item_array(figure->input, run->commands, i, SIZE_MAX, &arguments, err) != STATUS_OK ||
            check_arguments(figure, arguments, err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

static enum status read_runs(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *value;
    const char *name, *names[FIGURE_NAMES_MAX];
    uint32_t name_count = figure_names(figure, false, 0, names);
    json_t *child;
    TRY(json_take_object(root, "runs", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;
    json_object_foreach((json_t *)value, name, child) {
        struct template_place place = {figure->input, value, name, 0};
        if (strcmp(name, "_comment") == 0) continue;
        if (figure->run_count == FIGURE_RUNS_MAX)
            return error_set(err, STATUS_LIMIT, "too many runs (limit is %d)", FIGURE_RUNS_MAX);
        TRY(check_name(figure, name, value, name, 0, err));
        if (!json_is_array(child))
            return json_fail_key(figure->input, value, name, err, "expected an array of arguments");
        struct figure_run *run = &figure->runs[figure->run_count];
        *run = (struct figure_run){.name = name, .commands = child};
        TRY(check_commands(figure, run, err));
        TRY(template_check(child, place, names, name_count, err));
        figure->run_count++;
    }
    return STATUS_OK;
}

/* --- series and claims ------------------------------------------------------------------------- */

/* Names must be known; errors have the string's place. */
static enum status read_expression(struct figure *figure, struct json_object *object, const char *key, bool runs,
                                   uint32_t series_count, const struct expression **out, struct error *err)
{
    const char *text, *names[FIGURE_NAMES_MAX];
    uint32_t count = figure_names(figure, runs, series_count, names);
    struct error inner = {0};
    TRY(json_take_string(object, key, JSON_REQUIRED, &text, err));
    if (expression_parse(text, &figure->arena, out, &inner) == STATUS_OK &&
        expression_check(*out, names, count, &inner) == STATUS_OK)
        return STATUS_OK;
    if (inner.status == STATUS_BAD_INPUT)
        return json_fail_key(figure->input, object->value, key, err, "%s", inner.text);
    *err = inner;
    return err->status;
}

/* Reads measured values of real set-ups. A hidden series may lack them. */
static enum status read_measured(struct figure *figure, struct json_object *object, struct figure_series *series,
                                 struct error *err)
{
    if (!figure->real.read || !json_object_get(object->value, "measured")) return STATUS_OK;
    return read_expression(figure, object, "measured", true, figure->series_count, &series->measured, err);
}

static enum status read_series_one(struct figure *figure, const json_t *array, size_t index, struct error *err)
{
    struct json_object object;
    const char *column = NULL;
    struct figure_series series = {.published = FIGURE_NONE, .counted = true, .shown = true};
    TRY(json_object_open_at(&object, figure->input, array, index, "a series", err));
    TRY(json_take_string(&object, "name", JSON_REQUIRED, &series.name, err));
    TRY(check_name(figure, series.name, object.value, "name", 0, err));
    series.label = series.name;
    series.object = object.value;
    TRY(json_take_string(&object, "label", JSON_OPTIONAL, &series.label, err));
    TRY(json_take_string(&object, "published", JSON_OPTIONAL, &column, err));
    TRY(read_expression(figure, &object, "simulated", true, figure->series_count, &series.simulated, err));
    TRY(read_measured(figure, &object, &series, err));
    TRY(json_take_bool(&object, "counted", JSON_OPTIONAL, &series.counted, err));
    TRY(json_take_bool(&object, "shown", JSON_OPTIONAL, &series.shown, err));
    TRY(json_take_bool(&object, "absolute", JSON_OPTIONAL, &series.absolute, err));
    TRY(json_object_close(&object, err));
    if (column) {
        series.published = find_column(figure, column);
        if (series.published == FIGURE_NONE) return fail_column(figure, column, object.value, "published", err);
        if (!figure->columns[series.published].source)
            return json_fail_key(figure->input, object.value, "published", err,
                                 "column '%s' has no entry in 'published' (expected its source and reading)", column);
    }
    series.counted = series.counted && (series.measured || (column && !figure->real.read)) && !series.absolute;
    figure->series[figure->series_count++] = series;
    return STATUS_OK;
}

static enum status read_series(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *array;
    TRY(json_take_array(root, "series", JSON_REQUIRED, &array, err));
    size_t count = json_array_size(array);
    if (count == 0 || count > FIGURE_SERIES_MAX)
        return json_fail_key(figure->input, root->value, "series", err, "%zu series (expected 1 to %d)", count,
                             FIGURE_SERIES_MAX);
    for (size_t i = 0; i < count; i++)
        TRY(read_series_one(figure, array, i, err));
    return STATUS_OK;
}

static enum status read_claims(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *array;
    TRY(json_take_array(root, "claims", JSON_OPTIONAL, &array, err));
    if (!array) return STATUS_OK;
    if (json_array_size(array) > FIGURE_TEXTS_MAX)
        return error_set(err, STATUS_LIMIT, "too many claims (limit is %d)", FIGURE_TEXTS_MAX);
    for (size_t i = 0; i < json_array_size(array); i++) {
        struct json_object object;
        struct figure_claim *claim = &figure->claims[i];
        TRY(json_object_open_at(&object, figure->input, array, i, "a claim", err));
        TRY(json_take_string(&object, "text", JSON_REQUIRED, &claim->text, err));
        TRY(read_expression(figure, &object, "holds", false, figure->series_count, &claim->holds, err));
        TRY(json_object_close(&object, err));
        claim->object = object.value;
        figure->claim_count++;
    }
    return STATUS_OK;
}

static enum status read_accuracy(struct figure *figure, struct json_object *root, struct error *err)
{
    const json_t *value;
    struct json_object object;
    figure->accuracy.within = 0.1;
    TRY(json_take_object(root, "accuracy", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;
    TRY(json_object_open(&object, figure->input, value, "marks of accuracy", err));
    TRY(json_take_double(&object, "within", JSON_OPTIONAL, DBL_MIN, 10, &figure->accuracy.within, err));
    TRY(json_take_double(&object, "mean", JSON_OPTIONAL, DBL_MIN, 10, &figure->accuracy.mean, err));
    TRY(json_take_double(&object, "worst", JSON_OPTIONAL, DBL_MIN, 10, &figure->accuracy.worst, err));
    figure->accuracy.known = figure->accuracy.mean > 0 || figure->accuracy.worst > 0;
    return json_object_close(&object, err);
}

/* --- the whole file ------------------------------------------------------------------------------ */

static enum status read_body(struct figure *figure, struct json_object *body, struct error *err)
{
    figure->body = body->value;
    TRY(read_remarks(figure, body, err));
    TRY(read_columns(figure, body, err));
    TRY(read_published(figure, body, err));
    TRY(read_label(figure, body, err));
    TRY(read_rows(figure, body, err));
    TRY(read_x(figure, body, err));
    TRY(read_files(figure, body, err));
    TRY(read_runs(figure, body, err));
    TRY(read_series(figure, body, err));
    TRY(read_claims(figure, body, err));
    TRY(read_accuracy(figure, body, err));
    return json_object_close(body, err);
}

static enum status read_real(struct figure *figure, const json_t *value, struct error *err)
{
    struct json_object object;
    if (!value)
        return error_set(err, STATUS_INFEASIBLE, "figure '%s' has no real set-up", figure->id);
    figure->real.read = true;
    TRY(json_object_open(&object, figure->input, value, "a real set-up", err));
    TRY(json_take_u32(&object, figure_steps, JSON_REQUIRED, 1, FIGURE_STEPS_MAX, &figure->real.steps, err));
    TRY(json_take_quantity(&object, "host_memory", JSON_REQUIRED, DIMENSION_BYTES, 1, 1e15, &figure->real.host_bytes,
                           err));
    TRY(read_quantity(figure, &object, JSON_OPTIONAL, err));
    return read_body(figure, &object, err);
}

/* Reads all parts; with `real`, all but the head from "real". */
static enum status read_all(struct figure *figure, bool real, struct error *err)
{
    struct json_object root;
    const json_t *value = NULL;
    TRY(json_object_open(&root, figure->input, json_input_root(figure->input), "a figure", err));
    if (real) json_object_ignore_others(&root);
    TRY(read_head(figure, &root, err));
    TRY(json_take_object(&root, "real", JSON_OPTIONAL, &value, err));
    figure->real.offered = value != NULL;
    return real ? read_real(figure, value, err) : read_body(figure, &root, err);
}

/* Takes `input` over, also on failure. */
static enum status build(const char *path, struct json_input *input, bool real, struct figure **out, struct error *err)
{
    struct figure *figure = alloc_zeroed(1, sizeof *figure);
    if (!figure) {
        json_input_destroy(input);
        return error_memory(err, "a figure", sizeof *figure);
    }
    figure->input = input;
    if (arena_string(&figure->arena, path, &figure->path, err) != STATUS_OK ||
        read_all(figure, real, err) != STATUS_OK) {
        figure_destroy(figure);
        return err->status;
    }
    *out = figure;
    return STATUS_OK;
}

static enum status read_file(const char *path, bool real, struct figure **out, struct error *err)
{
    struct json_input *input = NULL;
    TRY(json_input_read(path, &input, err));
    return build(path, input, real, out, err);
}

static enum status parse_text(const char *name, const char *text, size_t length, bool real, struct figure **out,
                              struct error *err)
{
    struct json_input *input = NULL;
    TRY(json_input_parse(name, text, length, &input, err));
    return build(name, input, real, out, err);
}

enum status figure_read(const char *path, struct figure **out, struct error *err)
{
    return read_file(path, false, out, err);
}

enum status figure_read_real(const char *path, struct figure **out, struct error *err)
{
    return read_file(path, true, out, err);
}

enum status figure_parse(const char *name, const char *text, size_t length, struct figure **out, struct error *err)
{
    return parse_text(name, text, length, false, out, err);
}

enum status figure_parse_real(const char *name, const char *text, size_t length, struct figure **out,
                              struct error *err)
{
    return parse_text(name, text, length, true, out, err);
}

void figure_destroy(struct figure *figure)
{
    if (!figure) return;
    json_input_destroy(figure->input);
    arena_release(&figure->arena);
    free(figure);
}
