/*
 * Expressions over the answers of runs: "mp.makespan_s / hydra.makespan_s".
 *
 *     numbers 1.5e9, texts 'a', true, false          names: columns, runs, series
 *     run.jobs[0].name   run.jobs[*].makespan_s      members, elements, members of all elements
 *     run.policies[policy='optimal'].makespan_s      the element whose member has this value; of lists, as in
 *                                                    hours[gpus=8], the value in the row whose column has it
 *     + - * / ^   < <= > >= == !=   not and or       with lists: element by element, a scalar with each
 *     min max sum mean count first last              of a list, or of several arguments
 *     abs sqrt round floor ceil log if(c, a, b)      log is natural
 *     all any increasing decreasing exists           of lists; exists(x): x is not missing
 *
 * A value can be missing: a null in a table, a run that answered no, a division by zero. A result computed
 * from it is missing too, with the reason.
 */
#ifndef SPILLWAY_CLI_REPRO_EXPRESSION_H
#define SPILLWAY_CLI_REPRO_EXPRESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum expression_value_kind {
    EXPRESSION_VALUE_MISSING,
    EXPRESSION_VALUE_NUMBER,
    EXPRESSION_VALUE_TEXT,
    EXPRESSION_VALUE_TRUTH,
    EXPRESSION_VALUE_LIST,
    EXPRESSION_VALUE_JSON
};

struct expression_value {
    enum expression_value_kind kind;
    double number;             /* NUMBER: finite */
    bool truth;                /* TRUTH */
    const char *text;          /* TEXT; MISSING: the reason */
    const struct expression_value *items; /* LIST */
    size_t count;              /* LIST */
    const json_t *json;        /* an object or an array */
};

static inline struct expression_value expression_of_number(double number)
{
    return (struct expression_value){.kind = EXPRESSION_VALUE_NUMBER, .number = number};
}
static inline struct expression_value expression_of_text(const char *text)
{
    return (struct expression_value){.kind = EXPRESSION_VALUE_TEXT, .text = text};
}
static inline struct expression_value expression_of_truth(bool truth)
{
    return (struct expression_value){.kind = EXPRESSION_VALUE_TRUTH, .truth = truth};
}
static inline struct expression_value expression_missing(const char *why)
{
    return (struct expression_value){.kind = EXPRESSION_VALUE_MISSING, .text = why};
}

/* Converts a scalar; null becomes missing. */
struct expression_value expression_of_json(const json_t *json);

/* `find` returns false for an unknown name. */
struct expression_scope {
    bool (*find)(const void *context, const char *name, struct expression_value *out);
    const void *context;
    const char *const *names; /* for suggestions */
    size_t name_count;
};

struct expression; /* in an arena */

enum { EXPRESSION_LENGTH_MAX = 2000, EXPRESSION_DEPTH_MAX = 100 };

/* Parses `text`, which must outlive the result. Errors: STATUS_BAD_INPUT with the position. */
MUST_CHECK enum status expression_parse(const char *text, struct arena *arena, const struct expression **out,
                                        struct error *err);

/* Checks that every path starts with one of names[0 .. count). Errors: STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status expression_check(const struct expression *expression, const char *const *names, size_t count,
                                        struct error *err);

/*
 * Lists and texts live in `arena` or in the scope. Errors: STATUS_BAD_INPUT with a suggestion and the position, if a
 * member is missing or a kind is wrong.
 */
MUST_CHECK enum status expression_value(const struct expression *expression, const struct expression_scope *scope,
                                        struct arena *arena, struct expression_value *out, struct error *err);

#endif
