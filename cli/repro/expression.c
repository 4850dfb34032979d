/*
 * Evaluation of expressions. A missing operand makes the result missing, except in exists() and in the branch of if()
 * that is not taken. So a run that answered no leaves a gap in a table instead of failing.
 *
 * Lists of equal length are combined element by element, and scalars with every element:
 *
 *     all(hydra >= 0.9 * gpipe)      three lists of rows, one truth
 *
 * A function of a list takes several arguments as one list; lists among them are flattened.
 */
#include "cli/repro/expression.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/text/suggest.h"
#include "cli/repro/expression_tree.h"

struct evaluation {
    const struct expression_scope *scope;
    struct arena *arena;
    struct error *err;
};

typedef struct value (*operation)(struct evaluation *e, const struct expression *at, struct value a, struct value b);

static struct value evaluate(struct evaluation *e, const struct expression *x);

/* --- helpers ------------------------------------------------------------------------------------- */

static const char *const kind_names[] = {"missing", "a number", "a text", "true or false", "a list",
                                         "an object or array"};

static struct value fail_kind(struct evaluation *e, const struct expression *x, const char *expected, struct value found)
{
    error_set(e->err, STATUS_BAD_INPUT, "character %zu: found %s (expected %s)", x->place, kind_names[found.kind],
              expected);
    return value_missing("an error");
}

/* Makes a number, or a missing value if it is not finite. */
static struct value number_or_missing(double number, const char *why)
{
    return isfinite(number) ? value_of_number(number) : value_missing(why);
}

struct value value_of_json(const json_t *json)
{
    if (!json || json_is_null(json)) return value_missing("null");
    if (json_is_number(json)) return number_or_missing(json_number_value(json), "not finite");
    if (json_is_string(json)) return value_of_text(json_string_value(json));
    if (json_is_boolean(json)) return value_of_truth(json_is_true(json));
    return (struct value){.kind = VALUE_JSON, .json = json};
}

static struct value *new_items(struct evaluation *e, size_t count)
{
    struct value *items = NULL;
    return ARENA_NEW(e->arena, count, items, e->err) == STATUS_OK ? items : NULL;
}

static struct value list_of(const struct value *items, size_t count)
{
    return items ? (struct value){.kind = VALUE_LIST, .items = items, .count = count} : value_missing("no memory");
}

/* --- members and elements ------------------------------------------------------------------------ */

static struct value fail_member(struct evaluation *e, const struct expression *x, const json_t *object)
{
    const char *keys[64], *key;
    size_t count = 0;
    json_t *child;
    json_object_foreach((json_t *)object, key, child)
        if (count < sizeof keys / sizeof *keys) keys[count++] = key;
    char ending[SUGGEST_BYTES];
    error_set(e->err, STATUS_BAD_INPUT, "character %zu: there is no member '%s'%s", x->place, x->text,
              suggest_ending(x->text, keys, count, ending));
    return value_missing("an error");
}

static struct value member_of(struct evaluation *e, const struct expression *x, struct value of)
{
    if (of.kind == VALUE_MISSING) return of;
    if (of.kind == VALUE_LIST) {
        struct value *items = new_items(e, of.count);
        for (size_t i = 0; items && i < of.count && !e->err->status; i++) items[i] = member_of(e, x, of.items[i]);
        return list_of(items, of.count);
    }
    if (of.kind != VALUE_JSON || !json_is_object(of.json)) return fail_kind(e, x, "an object", of);
    const json_t *member = json_object_get(of.json, x->text);
    return member ? value_of_json(member) : fail_member(e, x, of.json);
}

/* Finds the length of a list or a JSON array. Returns false for other values, with the error set. */
static bool length_of(struct evaluation *e, const struct expression *x, struct value of, size_t *count)
{
    if (of.kind == VALUE_LIST)
        *count = of.count;
    else if (of.kind == VALUE_JSON && json_is_array(of.json))
        *count = json_array_size(of.json);
    else {
        (void)fail_kind(e, x, "a list", of);
        return false;
    }
    return true;
}

static struct value item_of(struct value of, size_t index)
{
    return of.kind == VALUE_LIST ? of.items[index] : value_of_json(json_array_get(of.json, index));
}

static struct value pick_item(struct evaluation *e, const struct expression *x, struct value of)
{
    struct value index = evaluate(e, x->parts[1]);
    size_t count;
    if (index.kind == VALUE_MISSING || !length_of(e, x, of, &count)) return value_missing(index.text);
    if (index.kind != VALUE_NUMBER || index.number < 0 || index.number != floor(index.number))
        return fail_kind(e, x, "an index, from 0", index);
    if (index.number >= (double)count) {
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: there is no element %.0f (there are %zu)", x->place,
                  index.number, count);
        return value_missing("an error");
    }
    return item_of(of, (size_t)index.number);
}

static bool is_same(struct value a, struct value b)
{
    if (a.kind != b.kind) return false;
    if (a.kind == VALUE_NUMBER) return a.number == b.number;
    if (a.kind == VALUE_TRUTH) return a.truth == b.truth;
    return a.kind == VALUE_TEXT && strcmp(a.text, b.text) == 0;
}

/* Evaluates x[member = value]; for lists, `member` is a list of the scope with the same length (a column). */
static struct value pick_where(struct evaluation *e, const struct expression *x, struct value of)
{
    struct value wanted = evaluate(e, x->parts[1]), column = {0};
    size_t count;
    if (wanted.kind == VALUE_MISSING || !length_of(e, x, of, &count)) return value_missing(wanted.text);
    bool by_column = of.kind == VALUE_LIST && e->scope->find(e->scope->context, x->text, &column) &&
                     column.kind == VALUE_LIST && column.count == count;
    for (size_t i = 0; i < count && !e->err->status; i++) {
        struct value item = item_of(of, i);
        if (is_same(by_column ? column.items[i] : member_of(e, x, item), wanted)) return item;
    }
    if (wanted.kind == VALUE_TEXT)
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: nothing has '%s' as its '%s'", x->place, wanted.text, x->text);
    else
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: nothing has %g as its '%s'", x->place, wanted.number, x->text);
    return value_missing("an error");
}

static struct value all_items(struct evaluation *e, const struct expression *x, struct value of)
{
    size_t count;
    if (!length_of(e, x, of, &count)) return value_missing("an error");
    struct value *items = new_items(e, count);
    for (size_t i = 0; items && i < count; i++) items[i] = item_of(of, i);
    return list_of(items, count);
}

static struct value evaluate_suffix(struct evaluation *e, const struct expression *x)
{
    struct value of = evaluate(e, x->parts[0]);
    if (of.kind == VALUE_MISSING || e->err->status) return of;
    if (x->kind == EXPRESSION_MEMBER) return member_of(e, x, of);
    if (x->kind == EXPRESSION_EACH) return all_items(e, x, of);
    return x->kind == EXPRESSION_ITEM ? pick_item(e, x, of) : pick_where(e, x, of);
}

/* --- operators --------------------------------------------------------------------------------- */

static struct value apply(struct evaluation *e, const struct expression *x, operation apply_one, struct value a, struct value b)
{
    if (a.kind == VALUE_JSON && json_is_array(a.json)) a = all_items(e, x, a);
    if (b.kind == VALUE_JSON && json_is_array(b.json)) b = all_items(e, x, b);
    if (a.kind != VALUE_LIST && b.kind != VALUE_LIST) {
        if (a.kind == VALUE_MISSING) return a;
        return b.kind == VALUE_MISSING ? b : apply_one(e, x, a, b);
    }
    size_t count = a.kind == VALUE_LIST ? a.count : b.count;
    if (a.kind == VALUE_LIST && b.kind == VALUE_LIST && a.count != b.count) {
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: lists of %zu and %zu elements do not go together", x->place,
                  a.count, b.count);
        return value_missing("an error");
    }
    struct value *items = new_items(e, count);
    for (size_t i = 0; items && i < count && !e->err->status; i++)
        items[i] = apply(e, x, apply_one, a.kind == VALUE_LIST ? a.items[i] : a, b.kind == VALUE_LIST ? b.items[i] : b);
    return list_of(items, count);
}

static struct value arithmetic(struct evaluation *e, const struct expression *x, struct value a, struct value b)
{
    if (a.kind != VALUE_NUMBER) return fail_kind(e, x, "a number", a);
    if (b.kind != VALUE_NUMBER) return fail_kind(e, x, "a number", b);
    switch (x->kind) {
    case EXPRESSION_PLUS: return number_or_missing(a.number + b.number, "past all numbers");
    case EXPRESSION_LESS_OF: return number_or_missing(a.number - b.number, "past all numbers");
    case EXPRESSION_TIMES: return number_or_missing(a.number * b.number, "past all numbers");
    case EXPRESSION_OVER: return b.number == 0 ? value_missing("a division by zero")
                                               : number_or_missing(a.number / b.number, "past all numbers");
    default: return number_or_missing(pow(a.number, b.number), "a power that is no number");
    }
}

static struct value comparison(struct evaluation *e, const struct expression *x, struct value a, struct value b)
{
    if (x->kind == EXPRESSION_EQUAL || x->kind == EXPRESSION_UNEQUAL)
        return value_of_truth(is_same(a, b) == (x->kind == EXPRESSION_EQUAL));
    if (a.kind != VALUE_NUMBER) return fail_kind(e, x, "a number", a);
    if (b.kind != VALUE_NUMBER) return fail_kind(e, x, "a number", b);
    switch (x->kind) {
    case EXPRESSION_BELOW: return value_of_truth(a.number < b.number);
    case EXPRESSION_AT_MOST: return value_of_truth(a.number <= b.number);
    case EXPRESSION_ABOVE: return value_of_truth(a.number > b.number);
    default: return value_of_truth(a.number >= b.number);
    }
}

static struct value logic(struct evaluation *e, const struct expression *x, struct value a, struct value b)
{
    if (a.kind != VALUE_TRUTH) return fail_kind(e, x, "true or false", a);
    if (b.kind != VALUE_TRUTH) return fail_kind(e, x, "true or false", b);
    return value_of_truth(x->kind == EXPRESSION_AND ? a.truth && b.truth : a.truth || b.truth);
}

static struct value evaluate_operator(struct evaluation *e, const struct expression *x)
{
    struct value a = evaluate(e, x->parts[0]);
    if (e->err->status) return a;
    if (x->kind == EXPRESSION_NOT) {
        if (a.kind == VALUE_MISSING) return a;
        return a.kind == VALUE_TRUTH ? value_of_truth(!a.truth) : fail_kind(e, x, "true or false", a);
    }
    if (x->kind == EXPRESSION_MINUS) {
        const struct expression times = {.kind = EXPRESSION_TIMES, .place = x->place};
        return apply(e, &times, arithmetic, value_of_number(-1), a);
    }
    struct value b = evaluate(e, x->parts[1]);
    if (e->err->status) return b;
    operation one = x->kind <= EXPRESSION_OR ? logic : x->kind <= EXPRESSION_POWER ? arithmetic : comparison;
    return apply(e, x, one, a, b);
}

/* --- functions --------------------------------------------------------------------------------- */

/* Counts the scalars in a value, or stores them at `items`. */
static size_t spread(struct evaluation *e, const struct expression *x, struct value value, struct value *items)
{
    if (value.kind == VALUE_JSON && json_is_array(value.json)) value = all_items(e, x, value);
    if (value.kind != VALUE_LIST) {
        if (items) *items = value;
        return 1;
    }
    size_t count = 0;
    for (size_t i = 0; i < value.count; i++) count += spread(e, x, value.items[i], items ? items + count : NULL);
    return count;
}

/* Collects all arguments in one list. */
static struct value gather(struct evaluation *e, const struct expression *x)
{
    struct value parts[EXPRESSION_PARTS_MAX];
    size_t count = 0, at = 0;
    for (size_t i = 0; i < x->part_count; i++) {
        parts[i] = evaluate(e, x->parts[i]);
        if (e->err->status) return parts[i];
        count += spread(e, x, parts[i], NULL);
    }
    struct value *items = new_items(e, count);
    for (size_t i = 0; items && i < x->part_count; i++) at += spread(e, x, parts[i], items + at);
    return list_of(items, count);
}

static struct value of_truths(struct evaluation *e, const struct expression *x, struct value list)
{
    bool all = x->function == FUNCTION_ALL, result = all;
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].kind == VALUE_MISSING) return list.items[i];
        if (list.items[i].kind != VALUE_TRUTH) return fail_kind(e, x, "true or false", list.items[i]);
        result = all ? result && list.items[i].truth : result || list.items[i].truth;
    }
    return value_of_truth(result);
}

static struct value is_ordered(const struct expression *x, struct value list)
{
    double sign = x->function == FUNCTION_INCREASING ? 1 : -1;
    for (size_t i = 1; i < list.count; i++)
        if (sign * list.items[i].number <= sign * list.items[i - 1].number) return value_of_truth(false);
    return value_of_truth(true);
}

static struct value of_numbers(struct evaluation *e, const struct expression *x, struct value list)
{
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].kind == VALUE_MISSING) return list.items[i];
        if (list.items[i].kind != VALUE_NUMBER) return fail_kind(e, x, "a number", list.items[i]);
    }
    if (x->function == FUNCTION_INCREASING || x->function == FUNCTION_DECREASING) return is_ordered(x, list);
    if (list.count == 0 && x->function != FUNCTION_SUM) return value_missing("of an empty list");
    double result = list.count > 0 ? list.items[0].number : 0;
    for (size_t i = 1; i < list.count; i++) {
        double next = list.items[i].number;
        if (x->function == FUNCTION_MIN) result = fmin(result, next);
        if (x->function == FUNCTION_MAX) result = fmax(result, next);
        if (x->function == FUNCTION_SUM || x->function == FUNCTION_MEAN) result += next;
    }
    if (x->function == FUNCTION_MEAN) result /= (double)list.count;
    return number_or_missing(result, "past all numbers");
}

static struct value of_one(struct evaluation *e, const struct expression *x, struct value a, struct value unused)
{
    (void)unused;
    if (a.kind != VALUE_NUMBER) return fail_kind(e, x, "a number", a);
    switch ((enum expression_function)x->function) {
    case FUNCTION_ABS: return value_of_number(fabs(a.number));
    case FUNCTION_SQRT: return number_or_missing(sqrt(a.number), "a root of a negative number");
    case FUNCTION_ROUND: return value_of_number(round(a.number));
    case FUNCTION_FLOOR: return value_of_number(floor(a.number));
    case FUNCTION_CEIL: return value_of_number(ceil(a.number));
    default: return number_or_missing(log(a.number), "a logarithm of no positive number");
    }
}

static struct value choose(struct evaluation *e, const struct expression *x)
{
    struct value condition = evaluate(e, x->parts[0]);
    if (condition.kind == VALUE_MISSING || e->err->status) return condition;
    if (condition.kind != VALUE_TRUTH) return fail_kind(e, x, "true or false", condition);
    return evaluate(e, x->parts[condition.truth ? 1 : 2]);
}

static struct value evaluate_call(struct evaluation *e, const struct expression *x)
{
    if (x->function == FUNCTION_IF) return choose(e, x);
    if (x->function == FUNCTION_EXISTS) return value_of_truth(evaluate(e, x->parts[0]).kind != VALUE_MISSING);
    if (x->function >= FUNCTION_ABS)
        return apply(e, x, of_one, evaluate(e, x->parts[0]), value_of_number(0));
    struct value list = gather(e, x);
    if (list.kind != VALUE_LIST || e->err->status) return list;
    switch ((enum expression_function)x->function) {
    case FUNCTION_COUNT: return value_of_number((double)list.count);
    case FUNCTION_FIRST: return list.count > 0 ? list.items[0] : value_missing("of an empty list");
    case FUNCTION_LAST: return list.count > 0 ? list.items[list.count - 1] : value_missing("of an empty list");
    case FUNCTION_ALL:
    case FUNCTION_ANY: return of_truths(e, x, list);
    default: return of_numbers(e, x, list);
    }
}

/* --- evaluation ---------------------------------------------------------------------------------- */

static struct value evaluate_name(struct evaluation *e, const struct expression *x)
{
    struct value value = {0};
    if (e->scope->find(e->scope->context, x->text, &value)) return value;
    if (expression_check(x, e->scope->names, e->scope->name_count, e->err) == STATUS_OK)
        error_set(e->err, STATUS_BAD_INPUT, "character %zu: '%s' has no value here", x->place, x->text);
    return value_missing("an error");
}

static struct value evaluate(struct evaluation *e, const struct expression *x)
{
    if (e->err->status) return value_missing("an error");
    switch (x->kind) {
    case EXPRESSION_NUMBER: return value_of_number(x->number);
    case EXPRESSION_TEXT: return value_of_text(x->text);
    case EXPRESSION_TRUTH: return value_of_truth(x->number != 0);
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
                             struct arena *arena, struct value *out, struct error *err)
{
    struct evaluation evaluation = {.scope = scope, .arena = arena, .err = err};
    struct value value = evaluate(&evaluation, expression);
    if (err->status) return err->status;
    *out = value;
    return STATUS_OK;
}
