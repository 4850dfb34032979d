/* Rows are evaluated in order; claims see all rows as lists. */
#include "cli/repro/figure_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"

/* --- scopes ------------------------------------------------------------------------------------ */

struct figure_result_row_scope {
    struct figure_result *result;
    const struct run_set *set;
    const uint32_t *indexes; /* of the current row */
    uint32_t row, series_count; /* series with values so far */
};

static bool find_in_row(const void *context, const char *name, struct expression_value *out)
{
    const struct figure_result_row_scope *scope = context;
    const struct figure *figure = scope->result->figure;
    for (uint32_t c = 0; c < figure->column_count; c++)
        if (strcmp(figure->columns[c].name, name) == 0) return *out = *figure_cell(figure, scope->row, c), true;
    for (uint32_t k = 0; k < figure->run_count; k++)
        if (strcmp(figure->runs[k].name, name) == 0) {
            const struct run_answer *answer = run_set_answer(scope->set, scope->indexes[k]);
            *out = answer->json ? expression_of_json(answer->json) : expression_missing(answer->why);
            return true;
        }
    for (uint32_t s = 0; s < scope->series_count; s++)
        if (strcmp(figure->series[s].name, name) == 0)
            return *out = figure_point_at(scope->result, scope->row, s)->simulated, true;
    return false;
}

struct list_scope {
    struct expression_value lists[FIGURE_NAMES_MAX];
    const char *names[FIGURE_NAMES_MAX];
    uint32_t count;
};

static bool find_list(const void *context, const char *name, struct expression_value *out)
{
    const struct list_scope *scope = context;
    for (uint32_t i = 0; i < scope->count; i++)
        if (strcmp(scope->names[i], name) == 0) return *out = scope->lists[i], true;
    return false;
}

/* --- points ------------------------------------------------------------------------------------ */

/* Reports an error with its place. */
static enum status fail_expression(const struct figure *figure, const json_t *object, const char *key,
                                   const char *label, const struct error *inner, struct error *err)
{
    if (inner->status != STATUS_BAD_INPUT) {
        *err = *inner;
        return err->status;
    }
    return json_fail_key(figure->input, object, key, err, "%s%s%s", label, *label ? ": " : "", inner->text);
}

static enum status evaluate_number(struct figure_result_row_scope *context, const struct expression_scope *scope,
                                   const struct figure_series *series, const char *key, const struct expression *from,
                                   struct expression_value *out, struct error *err)
{
    struct figure_result *result = context->result;
    const struct figure *figure = result->figure;
    struct error inner = {0};
    char label[FIGURE_LABEL_BYTES];
    if (expression_value(from, scope, &result->arena, out, &inner) == STATUS_OK &&
        out->kind != EXPRESSION_VALUE_NUMBER && out->kind != EXPRESSION_VALUE_MISSING)
        error_set(&inner, STATUS_BAD_INPUT, "the %s value is not a number", key);
    if (!inner.status) return STATUS_OK;
    return fail_expression(figure, series->object, key, figure_row_label(figure, context->row, label), &inner, err);
}

static enum status evaluate_point(struct figure_result_row_scope *context, const struct expression_scope *scope,
                                  uint32_t s, struct error *err)
{
    struct figure_result *result = context->result;
    const struct figure *figure = result->figure;
    const struct figure_series *series = &figure->series[s];
    struct figure_point *point = &result->points[(size_t)context->row * figure->series_count + s];
    point->measured = expression_missing("not measured");
    if (evaluate_number(context, scope, series, "simulated", series->simulated, &point->simulated, err) != STATUS_OK ||
        (series->measured &&
         evaluate_number(context, scope, series, "measured", series->measured, &point->measured, err) != STATUS_OK))
        return err->status;
    point->published = series->published == FIGURE_NONE ? expression_missing("not published")
                                                        : *figure_cell(figure, context->row, series->published);
    const struct expression_value *reference = figure_reference(figure, point);
    point->compared = reference->kind == EXPRESSION_VALUE_NUMBER && point->simulated.kind == EXPRESSION_VALUE_NUMBER &&
                      (series->absolute || reference->number != 0);
    if (point->compared)
        point->error = series->absolute ? point->simulated.number - reference->number
                                        : point->simulated.number / reference->number - 1;
    return STATUS_OK;
}

static enum status evaluate_row(struct figure_result *result, const struct run_set *set, const uint32_t *indexes,
                                uint32_t row, struct error *err)
{
    const struct figure *figure = result->figure;
    struct figure_result_row_scope context = {result, set, indexes + (size_t)row * figure->run_count, row, 0};
    const char *names[FIGURE_NAMES_MAX];
    for (uint32_t s = 0; s < figure->series_count; s++) {
        context.series_count = s;
        struct expression_scope scope = {find_in_row, &context, names, figure_names(figure, true, s, names)};
        TRY(evaluate_point(&context, &scope, s, err));
    }
    return STATUS_OK;
}

/* --- claims ------------------------------------------------------------------------------------ */

static enum status make_lists(struct figure_result *result, struct list_scope *scope, struct error *err)
{
    const struct figure *figure = result->figure;
    scope->count = figure_names(figure, false, figure->series_count, scope->names);
    for (uint32_t i = 0; i < scope->count; i++) {
        struct expression_value *values;
        TRY(ARENA_NEW(&result->arena, figure->row_count, values, err));
        for (uint32_t r = 0; r < figure->row_count; r++)
            values[r] = i < figure->column_count ? *figure_cell(figure, r, i)
                                                 : figure_point_at(result, r, i - figure->column_count)->simulated;
        scope->lists[i] = (struct expression_value){.kind = EXPRESSION_VALUE_LIST, .items = values,
                                                    .count = figure->row_count};
    }
    return STATUS_OK;
}

static enum status judge(struct figure_result *result, struct error *err)
{
    struct list_scope lists;
    TRY(make_lists(result, &lists, err));
    const struct expression_scope scope = {find_list, &lists, lists.names, lists.count};
    for (uint32_t i = 0; i < result->figure->claim_count; i++) {
        const struct figure_claim *claim = &result->figure->claims[i];
        struct figure_judged *judged = &result->claims[i];
        struct error inner = {0};
        struct expression_value value = {0};
        if (expression_value(claim->holds, &scope, &result->arena, &value, &inner) == STATUS_OK &&
            value.kind != EXPRESSION_VALUE_TRUTH && value.kind != EXPRESSION_VALUE_MISSING)
            error_set(&inner, STATUS_BAD_INPUT, "a claim is true or false, and this is neither (for lists: all(...))");
        if (inner.status) return fail_expression(result->figure, claim->object, "holds", "", &inner, err);
        judged->known = value.kind == EXPRESSION_VALUE_TRUTH;
        judged->holds = judged->known && value.truth;
        judged->why = judged->known ? NULL : value.text;
        result->claims_held += judged->holds;
    }
    return STATUS_OK;
}

/* --- sums -------------------------------------------------------------------------------------- */

static void count_points(struct figure_result *result)
{
    const struct figure *figure = result->figure;
    double sum = 0;
    for (uint32_t r = 0; r < figure->row_count; r++)
        for (uint32_t s = 0; s < figure->series_count; s++) {
            const struct figure_point *point = figure_point_at(result, r, s);
            if (!figure->series[s].counted || figure_reference(figure, point)->kind != EXPRESSION_VALUE_NUMBER)
                continue;
            if (!point->compared) {
                result->missing++;
                continue;
            }
            double size = fabs(point->error);
            sum += size;
            result->counted++;
            /* despite rounding */
            result->within += size <= figure->accuracy.within * (1 + 1e-12);
            if (result->counted > 1 && size <= fabs(result->worst)) continue;
            result->worst = point->error;
            result->worst_row = r;
            result->worst_series = s;
        }
    result->mean = result->counted > 0 ? sum / result->counted : 0;
    const struct figure_accuracy *marks = &figure->accuracy;
    result->met = result->claims_held == figure->claim_count &&
                  (marks->mean <= 0 || (result->mean <= marks->mean && result->missing == 0)) &&
                  (marks->worst <= 0 || (fabs(result->worst) <= marks->worst && result->missing == 0));
}

/* Counts pairs in the same order; equal values have none. */
static void count_order(struct figure_result *result, uint32_t series)
{
    for (uint32_t a = 0; a < result->figure->row_count; a++)
        for (uint32_t b = a + 1; b < result->figure->row_count; b++) {
            const struct figure_point *one = figure_point_at(result, a, series);
            const struct figure_point *other = figure_point_at(result, b, series);
            if (!one->compared || !other->compared) continue;
            double measured = one->measured.number - other->measured.number;
            double simulated = one->simulated.number - other->simulated.number;
            if (!(fabs(measured) > 0)) continue;
            result->pairs++;
            result->alike += (measured > 0 && simulated > 0) || (measured < 0 && simulated < 0);
        }
}

static void write_verdict(struct figure_result *result)
{
    const struct figure *figure = result->figure;
    char *text = result->verdict;
    size_t room = sizeof result->verdict;
    int at = 0;
    char label[FIGURE_LABEL_BYTES];
    if (result->counted > 0)
        at = snprintf(text, room, "%u of %u points within %g %%, mean %.1f %%, worst %+.1f %% (%s, %s)",
                      (unsigned)result->within, (unsigned)result->counted, figure->accuracy.within * 100,
                      result->mean * 100, result->worst * 100, figure->series[result->worst_series].label,
                      figure_row_label(figure, result->worst_row, label));
    if (result->missing > 0 && at < (int)room)
        at += snprintf(text + at, room - (size_t)at, "%s%u %s without a simulated value", at ? "; " : "",
                       (unsigned)result->missing, figure->real.read ? "measured" : "published");
    if (result->pairs > 0 && at < (int)room)
        at += snprintf(text + at, room - (size_t)at, "%s%u of %u pairs are in the measured order", at ? "; " : "",
                       (unsigned)result->alike, (unsigned)result->pairs);
    if (figure->claim_count > 0 && at < (int)room)
        at += snprintf(text + at, room - (size_t)at, "%s%u of %u claims hold", at ? "; " : "",
                       (unsigned)result->claims_held, (unsigned)figure->claim_count);
    if (figure->accuracy.known && at < (int)room)
        at += snprintf(text + at, room - (size_t)at, "; the mark is %s", result->met ? "met" : "missed");
    if (at == 0) snprintf(text, room, "nothing %s to compare with", figure->real.read ? "measured" : "published");
}

/* --- public -------------------------------------------------------------------------------------- */

/* Returns texts, and numbers after their columns' names. */
const char *figure_row_label(const struct figure *figure, uint32_t row, char label[FIGURE_LABEL_BYTES])
{
    size_t at = 0;
    label[0] = '\0';
    for (uint32_t c = 0; c < figure->column_count && at + 1 < FIGURE_LABEL_BYTES; c++) {
        const struct expression_value *cell = figure_cell(figure, row, c);
        const char *comma = at > 0 ? ", " : "";
        int length = 0;
        if (!figure->columns[c].named) continue;
        if (cell->kind == EXPRESSION_VALUE_TEXT && *cell->text)
            length = snprintf(label + at, FIGURE_LABEL_BYTES - at, "%s%s", comma, cell->text);
        if (cell->kind == EXPRESSION_VALUE_NUMBER)
            length = snprintf(label + at, FIGURE_LABEL_BYTES - at, "%s%s %g", comma, figure->columns[c].name,
                              cell->number);
        at += length > 0 ? (size_t)length : 0;
    }
    return label;
}

enum status figure_evaluate(const struct figure *figure, const struct run_set *set, const uint32_t *indexes,
                            struct figure_result *result, struct error *err)
{
    *result = (struct figure_result){.figure = figure};
    TRY(ARENA_NEW(&result->arena, (size_t)figure->row_count * figure->series_count, result->points, err));
    for (uint32_t r = 0; r < figure->row_count && !err->status; r++) (void)evaluate_row(result, set, indexes, r, err);
    for (size_t i = 0; i < (size_t)figure->row_count * figure->run_count; i++)
        result->cpu_s += run_set_answer(set, indexes[i])->cpu_s;
    if (err->status || judge(result, err) != STATUS_OK) {
        figure_result_release(result);
        return err->status;
    }
    count_points(result);
    for (uint32_t s = 0; s < figure->series_count && figure->real.read; s++)
        if (figure->series[s].counted) count_order(result, s);
    write_verdict(result);
    return STATUS_OK;
}

void figure_result_release(struct figure_result *result)
{
    arena_release(&result->arena);
    *result = (struct figure_result){0};
}
