/*
 * A missing operand makes the result missing, except in exists() and in the branch of if() that is not taken: a run
 * that answered no leaves a gap in a table.
 *
 * Lists of equal length are combined by element, scalars with every element:
 *
 *     all(hydra >= 0.9 * gpipe)      three lists of rows, one truth
 *
 * Several arguments of a function of a list are one flattened list.
 */
#include "cli/repro/expression.h"

#include <math.h>
#include <string.h>

#include "base/text/suggest.h"
#include "cli/repro/expression_tree.h"

struct expression_evaluation {
    const struct expression_scope *scope;
    struct arena *arena;
    struct error *err;
};

typedef struct expression_value (*operation)(struct expression_evaluation *e, const struct expression *at,
                                             struct expression_value a, struct expression_value b);

static struct expression_value evaluate(struct expression_evaluation *e, const struct expression *x);

/* --- helpers ------------------------------------------------------------------------------------- */

static const char *const kind_names[] = {"missing", "a number", "a text", "true or false", "a list",
                                         "an object or array"};

static struct expression_value fail_kind(struct expression_evaluation *e, const struct expression *x,
                                         const char *expected, struct expression_value found)
{
    error_set(e->err, STATUS_BAD_INPUT, "character %zu: found %s (expected %s)", x->place, kind_names[found.kind],
              expected);
    return expression_missing("an error");
}

/* Makes a number, or a missing value if it is not finite. */
static struct expression_value number_or_missing(double number, const char *why)
{
    return isfinite(number) ? expression_of_number(number) : expression_missing(why);
}

struct expression_value expression_of_json(const json_t *json)
{
    if (!json || json_is_null(json)) return expression_missing("null");
    if (json_is_number(json)) return number_or_missing(json_number_value(json), "not finite");
    if (json_is_string(json)) return expression_of_text(json_string_value(json));
    if (json_is_boolean(json)) return expression_of_truth(json_is_true(json));
    return (struct expression_value){.kind = EXPRESSION_VALUE_JSON, .json = json};
}

static struct expression_value *new_items(struct expression_evaluation *e, size_t count)
{
    struct expression_value *items = NULL;
    return ARENA_NEW(e->arena, count, items, e->err) == STATUS_OK ? items : NULL;
}

static struct expression_value list_of(const struct expression_value *items, size_t count)
{
    return items ? (struct expression_value){.kind = EXPRESSION_VALUE_LIST, .items = items, .count = count}
                 : expression_missing("no memory");
}

/* --- members and elements ------------------------------------------------------------------------ */

static struct expression_value fail_member(struct expression_evaluation *e, const struct expression *x,
                                           const json_t *object)
{
    const char *keys[64], *key;
    size_t count = 0;
    json_t *child;
    json_object_foreach((json_t *)object, key, child)
        if (count < sizeof keys / sizeof *keys) keys[count++] = key;
    char ending[SUGGEST_BYTES];
    error_set(e->err, STATUS_BAD_INPUT, "character %zu: there is no member '%s'%s", x->place, x->text,
              suggest_ending(x->text, keys, count, ending));
    return expression_missing("an error");
}

static struct expression_value member_of(struct expression_evaluation *e, const struct expression *x,
                                         struct expression_value of)
{
    if (of.kind == EXPRESSION_VALUE_MISSING) return of;
    if (of.kind == EXPRESSION_VALUE_LIST) {
        struct expression_value *items = new_items(e, of.count);
        for (size_t i = 0; items && i < of.count && !e->err->status; i++) items[i] = member_of(e, x, of.items[i]);
        return list_of(items, of.count);
    }
    if (of.kind != EXPRESSION_VALUE_JSON || !json_is_object(of.json)) return fail_kind(e, x, "an object", of);
    const json_t *member = json_object_get(of.json, x->text);
    return member ? expression_of_json(member) : fail_member(e, x, of.json);
}

/* Returns false for other values than lists, with the error set. */
static bool length_of(struct expression_evaluation *e, const struct expression *x, struct expression_value of,
                      size_t *count)
{
    if (of.kind == EXPRESSION_VALUE_LIST)
        *count = of.count;
    else if (of.kind == EXPRESSION_VALUE_JSON && json_is_array(of.json))
        *count = json_array_size(of.json);
    else {
        (void)fail_kind(e, x, "a list", of);
        return false;
    }
    return true;
}

static struct expression_value item_of(struct expression_value of, size_t index)
{
    return of.kind == EXPRESSION_VALUE_LIST ? of.items[index] : expression_of_json(json_array_get(of.json, index));
}

static struct expression_value pick_item(struct expression_evaluation *e, const struct expression *x,
                                         struct expression_value of)
{
    struct expression_value index = evaluate(e, x->parts[1]);
    size_t count;
    if (index.kind == EXPRESSION_VALUE_MISSING || !length_of(e, x, of, &count)) return expression_missing(index.text);
    if (index.kind != EXPRESSION_VALUE_NUMBER || index.number < 0 || index.number != floor(index.number))
        return fail_kind(e, x, "an index, from 0", index);
    if (index.number >= (double)count) {
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: there is no element %.0f (there are %zu)", x->place,
                  index.number, count);
        return expression_missing("an error");
    }
    return item_of(of, (size_t)index.number);
}

static bool is_same(struct expression_value a, struct expression_value b)
{
    if (a.kind != b.kind) return false;
    if (a.kind == EXPRESSION_VALUE_NUMBER) return a.number == b.number;
    if (a.kind == EXPRESSION_VALUE_TRUTH) return a.truth == b.truth;
    return a.kind == EXPRESSION_VALUE_TEXT && strcmp(a.text, b.text) == 0;
}

/* Evaluates x[member = value]; for lists, `member` is an equally long list of the scope (a column). */
static struct expression_value pick_where(struct expression_evaluation *e, const struct expression *x,
                                          struct expression_value of)
{
    struct expression_value wanted = evaluate(e, x->parts[1]), column = {0};
    size_t count;
    if (wanted.kind == EXPRESSION_VALUE_MISSING || !length_of(e, x, of, &count)) return expression_missing(wanted.text);
    bool by_column = of.kind == EXPRESSION_VALUE_LIST && e->scope->find(e->scope->context, x->text, &column) &&
                     column.kind == EXPRESSION_VALUE_LIST && column.count == count;
    for (size_t i = 0; i < count && !e->err->status; i++) {
        struct expression_value item = item_of(of, i);
        if (is_same(by_column ? column.items[i] : member_of(e, x, item), wanted)) return item;
    }
    if (wanted.kind == EXPRESSION_VALUE_TEXT)
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: nothing has '%s' as its '%s'", x->place, wanted.text,
                  x->text);
    else
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: nothing has %g as its '%s'", x->place, wanted.number,
                  x->text);
    return expression_missing("an error");
}

static struct expression_value all_items(struct expression_evaluation *e, const struct expression *x,
                                         struct expression_value of)
{
    size_t count;
    if (!length_of(e, x, of, &count)) return expression_missing("an error");
    struct expression_value *items = new_items(e, count);
    for (size_t i = 0; items && i < count; i++) items[i] = item_of(of, i);
    return list_of(items, count);
}

static struct expression_value evaluate_suffix(struct expression_evaluation *e, const struct expression *x)
{
    struct expression_value of = evaluate(e, x->parts[0]);
    if (of.kind == EXPRESSION_VALUE_MISSING || e->err->status) return of;
    if (x->kind == EXPRESSION_MEMBER) return member_of(e, x, of);
    if (x->kind == EXPRESSION_EACH) return all_items(e, x, of);
    return x->kind == EXPRESSION_ITEM ? pick_item(e, x, of) : pick_where(e, x, of);
}

/* --- operators --------------------------------------------------------------------------------- */

static struct expression_value apply(struct expression_evaluation *e, const struct expression *x, operation apply_one,
                                     struct expression_value a, struct expression_value b)
{
    if (a.kind == EXPRESSION_VALUE_JSON && json_is_array(a.json)) a = all_items(e, x, a);
    if (b.kind == EXPRESSION_VALUE_JSON && json_is_array(b.json)) b = all_items(e, x, b);
    if (a.kind != EXPRESSION_VALUE_LIST && b.kind != EXPRESSION_VALUE_LIST) {
        if (a.kind == EXPRESSION_VALUE_MISSING) return a;
        return b.kind == EXPRESSION_VALUE_MISSING ? b : apply_one(e, x, a, b);
    }
    size_t count = a.kind == EXPRESSION_VALUE_LIST ? a.count : b.count;
    if (a.kind == EXPRESSION_VALUE_LIST && b.kind == EXPRESSION_VALUE_LIST && a.count != b.count) {
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: lists of %zu and %zu elements do not go together", x->place,
                  a.count, b.count);
        return expression_missing("an error");
    }
    struct expression_value *items = new_items(e, count);
    for (size_t i = 0; items && i < count && !e->err->status; i++)
        items[i] = apply(e, x, apply_one, a.kind == EXPRESSION_VALUE_LIST ? a.items[i] : a,
                         b.kind == EXPRESSION_VALUE_LIST ? b.items[i] : b);
    return list_of(items, count);
}

static struct expression_value arithmetic(struct expression_evaluation *e, const struct expression *x,
                                          struct expression_value a, struct expression_value b)
{
    if (a.kind != EXPRESSION_VALUE_NUMBER) return fail_kind(e, x, "a number", a);
    if (b.kind != EXPRESSION_VALUE_NUMBER) return fail_kind(e, x, "a number", b);
    switch (x->kind) {
    case EXPRESSION_PLUS: return number_or_missing(a.number + b.number, "past all numbers");
    case EXPRESSION_LESS_OF: return number_or_missing(a.number - b.number, "past all numbers");
    case EXPRESSION_TIMES: return number_or_missing(a.number * b.number, "past all numbers");
    case EXPRESSION_OVER: return b.number == 0 ? expression_missing("a division by zero")
                                               : number_or_missing(a.number / b.number, "past all numbers");
    default: return number_or_missing(pow(a.number, b.number), "a power that is not a number");
    }
}

static struct expression_value comparison(struct expression_evaluation *e, const struct expression *x,
                                          struct expression_value a, struct expression_value b)
{
    if (x->kind == EXPRESSION_EQUAL || x->kind == EXPRESSION_UNEQUAL)
        return expression_of_truth(is_same(a, b) == (x->kind == EXPRESSION_EQUAL));
    if (a.kind != EXPRESSION_VALUE_NUMBER) return fail_kind(e, x, "a number", a);
    if (b.kind != EXPRESSION_VALUE_NUMBER) return fail_kind(e, x, "a number", b);
    switch (x->kind) {
    case EXPRESSION_BELOW: return expression_of_truth(a.number < b.number);
    case EXPRESSION_AT_MOST: return expression_of_truth(a.number <= b.number);
    case EXPRESSION_ABOVE: return expression_of_truth(a.number > b.number);
    default: return expression_of_truth(a.number >= b.number);
    }
}

static struct expression_value logic(struct expression_evaluation *e, const struct expression *x,
                                     struct expression_value a, struct expression_value b)
{
    if (a.kind != EXPRESSION_VALUE_TRUTH) return fail_kind(e, x, "true or false", a);
    if (b.kind != EXPRESSION_VALUE_TRUTH) return fail_kind(e, x, "true or false", b);
    return expression_of_truth(x->kind == EXPRESSION_AND ? a.truth && b.truth : a.truth || b.truth);
}

static struct expression_value evaluate_operator(struct expression_evaluation *e, const struct expression *x)
{
    struct expression_value a = evaluate(e, x->parts[0]);
    if (e->err->status) return a;
    if (x->kind == EXPRESSION_NOT) {
        if (a.kind == EXPRESSION_VALUE_MISSING) return a;
        return a.kind == EXPRESSION_VALUE_TRUTH ? expression_of_truth(!a.truth) : fail_kind(e, x, "true or false", a);
    }
    if (x->kind == EXPRESSION_MINUS) {
        const struct expression times = {.kind = EXPRESSION_TIMES, .place = x->place};
        return apply(e, &times, arithmetic, expression_of_number(-1), a);
    }
    struct expression_value b = evaluate(e, x->parts[1]);
    if (e->err->status) return b;
    operation one = x->kind <= EXPRESSION_OR ? logic : x->kind <= EXPRESSION_POWER ? arithmetic : comparison;
    return apply(e, x, one, a, b);
}

/* --- functions --------------------------------------------------------------------------------- */

/* Counts scalars, or stores them at `items`. */
static size_t spread(struct expression_evaluation *e, const struct expression *x, struct expression_value value,
                     struct expression_value *items)
{
    if (value.kind == EXPRESSION_VALUE_JSON && json_is_array(value.json)) value = all_items(e, x, value);
    if (value.kind != EXPRESSION_VALUE_LIST) {
        if (items) *items = value;
        return 1;
    }
    size_t count = 0;
    for (size_t i = 0; i < value.count; i++) count += spread(e, x, value.items[i], items ? items + count : NULL);
    return count;
}

/* Makes one list of all arguments. */
static struct expression_value gather(struct expression_evaluation *e, const struct expression *x)
{
    struct expression_value parts[EXPRESSION_PARTS_MAX];
    size_t count = 0, at = 0;
    for (size_t i = 0; i < x->part_count; i++) {
        parts[i] = evaluate(e, x->parts[i]);
        if (e->err->status) return parts[i];
        count += spread(e, x, parts[i], NULL);
    }
    struct expression_value *items = new_items(e, count);
    for (size_t i = 0; items && i < x->part_count; i++) at += spread(e, x, parts[i], items + at);
    return list_of(items, count);
}

static struct expression_value of_truths(struct expression_evaluation *e, const struct expression *x,
                                         struct expression_value list)
{
    bool all = x->function == EXPRESSION_FUNCTION_ALL, result = all;
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].kind == EXPRESSION_VALUE_MISSING) return list.items[i];
        if (list.items[i].kind != EXPRESSION_VALUE_TRUTH) return fail_kind(e, x, "true or false", list.items[i]);
        result = all ? result && list.items[i].truth : result || list.items[i].truth;
    }
    return expression_of_truth(result);
}

static struct expression_value is_ordered(const struct expression *x, struct expression_value list)
{
    double sign = x->function == EXPRESSION_FUNCTION_INCREASING ? 1 : -1;
    for (size_t i = 1; i < list.count; i++)
        if (sign * list.items[i].number <= sign * list.items[i - 1].number) return expression_of_truth(false);
    return expression_of_truth(true);
}

static struct expression_value of_numbers(struct expression_evaluation *e, const struct expression *x,
                                          struct expression_value list)
{
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].kind == EXPRESSION_VALUE_MISSING) return list.items[i];
        if (list.items[i].kind != EXPRESSION_VALUE_NUMBER) return fail_kind(e, x, "a number", list.items[i]);
    }
    if (x->function == EXPRESSION_FUNCTION_INCREASING || x->function == EXPRESSION_FUNCTION_DECREASING)
        return is_ordered(x, list);
    if (list.count == 0 && x->function != EXPRESSION_FUNCTION_SUM) return expression_missing("of an empty list");
    double result = list.count > 0 ? list.items[0].number : 0;
    for (size_t i = 1; i < list.count; i++) {
        double next = list.items[i].number;
        if (x->function == EXPRESSION_FUNCTION_MIN) result = fmin(result, next);
        if (x->function == EXPRESSION_FUNCTION_MAX) result = fmax(result, next);
        if (x->function == EXPRESSION_FUNCTION_SUM || x->function == EXPRESSION_FUNCTION_MEAN) result += next;
    }
    if (x->function == EXPRESSION_FUNCTION_MEAN) result /= (double)list.count;
    return number_or_missing(result, "past all numbers");
}

static struct expression_value of_one(struct expression_evaluation *e, const struct expression *x,
                                      struct expression_value a, struct expression_value unused)
{
    (void)unused;
    if (a.kind != EXPRESSION_VALUE_NUMBER) return fail_kind(e, x, "a number", a);
    switch ((enum expression_function)x->function) {
    case EXPRESSION_FUNCTION_ABS: return expression_of_number(fabs(a.number));
    case EXPRESSION_FUNCTION_SQRT: return number_or_missing(sqrt(a.number), "a root of a negative number");
    case EXPRESSION_FUNCTION_ROUND: return expression_of_number(round(a.number));
    case EXPRESSION_FUNCTION_FLOOR: return expression_of_number(floor(a.number));
    case EXPRESSION_FUNCTION_CEIL: return expression_of_number(ceil(a.number));
    default: return number_or_missing(log(a.number), "a logarithm of a number that is not positive");
    }
}

static struct expression_value choose(struct expression_evaluation *e, const struct expression *x)
{
    struct expression_value condition = evaluate(e, x->parts[0]);
    if (condition.kind == EXPRESSION_VALUE_MISSING || e->err->status) return condition;
    if (condition.kind != EXPRESSION_VALUE_TRUTH) return fail_kind(e, x, "true or false", condition);
    return evaluate(e, x->parts[condition.truth ? 1 : 2]);
}

static struct expression_value evaluate_call(struct expression_evaluation *e, const struct expression *x)
{
    if (x->function == EXPRESSION_FUNCTION_IF) return choose(e, x);
    if (x->function == EXPRESSION_FUNCTION_EXISTS)
        return expression_of_truth(evaluate(e, x->parts[0]).kind != EXPRESSION_VALUE_MISSING);
    if (x->function >= EXPRESSION_FUNCTION_ABS)
        return apply(e, x, of_one, evaluate(e, x->parts[0]), expression_of_number(0));
    struct expression_value list = gather(e, x);
    if (list.kind != EXPRESSION_VALUE_LIST || e->err->status) return list;
    switch ((enum expression_function)x->function) {
    case EXPRESSION_FUNCTION_COUNT: return expression_of_number((double)list.count);
    case EXPRESSION_FUNCTION_FIRST: return list.count > 0 ? list.items[0] : expression_missing("of an empty list");
    case EXPRESSION_FUNCTION_LAST:
        return list.count > 0 ? list.items[list.count - 1] : expression_missing("of an empty list");
    case EXPRESSION_FUNCTION_ALL:
    case EXPRESSION_FUNCTION_ANY: return of_truths(e, x, list);
    default: return of_numbers(e, x, list);
    }
}

/* --- evaluation ---------------------------------------------------------------------------------- */

static struct expression_value evaluate_name(struct expression_evaluation *e, const struct expression *x)
{
    struct expression_value value = {0};
    if (e->scope->find(e->scope->context, x->text, &value)) return value;
    if (expression_check(x, e->scope->names, e->scope->name_count, e->err) == STATUS_OK)
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: '%s' has no value here", x->place, x->text);
    return expression_missing("an error");
}

static struct expression_value evaluate(struct expression_evaluation *e, const struct expression *x)
{
    if (e->err->status) return expression_missing("an error");
    switch (x->kind) {
    case EXPRESSION_NUMBER: return expression_of_number(x->number);
    case EXPRESSION_TEXT: return expression_of_text(x->text);
    case EXPRESSION_TRUTH: return expression_of_truth(x->number != 0);
    case EXPRESSION_NAME: return evaluate_name(e, x);
    case EXPRESSION_MEMBER:
    case EXPRESSION_ITEM:
    case EXPRESSION_EACH:
    case EXPRESSION_WHERE: return evaluate_suffix(e, x);
    case EXPRESSION_CALL: return evaluate_call(e, x);
    default: return evaluate_operator(e, x);
    }
}

enum status expression_value(const struct expression *expression, const struct expression_scope *scope,
                             struct arena *arena, struct expression_value *out, struct error *err)
{
    struct expression_evaluation evaluation = {.scope = scope, .arena = arena, .err = err};
    struct expression_value value = evaluate(&evaluation, expression);
    if (err->status) return err->status;
    *out = value;
    return STATUS_OK;
}
