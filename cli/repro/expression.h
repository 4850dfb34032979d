/*
 * Expressions over what runs answered: "mp.makespan_s / hydra.makespan_s".
 *
 *     numbers 1.5e9, texts 'a', true, false          names: columns, runs, series
 *     run.jobs[0].name   run.jobs[*].makespan_s      members, elements, of all elements
 *     run.policies[policy='optimal'].makespan_s      the element whose member is that; hours[gpus=8]: of lists,
 *                                                    the value in the row whose column is that
 *     + - * / ^   < <= > >= == !=   not and or       with lists: element by element, a scalar with each
 *     min max sum mean count first last              of a list, or of several arguments
 *     abs sqrt round floor ceil log if(c, a, b)      log is natural
 *     all any increasing decreasing exists           of lists; exists(x): it is not missing
 *
 * A value can be missing: a null in a table, a run that answered no, a division by zero. What is computed
 * from a missing value is missing, and carries the reason.
 */
#ifndef SPILLWAY_REPRO_EXPRESSION_H
#define SPILLWAY_REPRO_EXPRESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum value_kind { VALUE_MISSING, VALUE_NUMBER, VALUE_TEXT, VALUE_TRUTH, VALUE_LIST, VALUE_JSON };

struct value {
    enum value_kind kind;
    double number;             /* NUMBER: finite */
    bool truth;                /* TRUTH */
    const char *text;          /* TEXT; MISSING: why */
    const struct value *items; /* LIST */
    size_t count;              /* LIST */
    const json_t *json;        /* JSON: an object or an array */
};

static inline struct value value_of_number(double number)
{
    return (struct value){.kind = VALUE_NUMBER, .number = number};
}
static inline struct value value_of_text(const char *text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text};
}
static inline struct value value_of_truth(bool truth)
{
    return (struct value){.kind = VALUE_TRUTH, .truth = truth};
}
static inline struct value value_missing(const char *why)
{
    return (struct value){.kind = VALUE_MISSING, .text = why};
}

/* A scalar of JSON as a value of its own kind; null is missing. */
struct value value_of_json(const json_t *json);

/* What names stand for. `find` returns false for a name that is not known. */
struct expression_scope {
    bool (*find)(const void *context, const char *name, struct value *out);
    const void *context;
    const char *const *names; /* all that are known, for suggestions */
    size_t name_count;
};

struct expression; /* opaque: the parsed form; lives in an arena */

enum { EXPRESSION_LENGTH_MAX = 2000, EXPRESSION_DEPTH_MAX = 100 };

/* Parse `text`, which must outlive the result. Errors: STATUS_BAD_INPUT with the character,
 * STATUS_NO_MEMORY. */
MUST_CHECK enum status expression_parse(const char *text, struct arena *arena, const struct expression **out,
                                        struct error *err);

/* Is every name it begins with one of names[0 .. count)? Errors: STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status expression_check(const struct expression *expression, const char *const *names, size_t count,
                                        struct error *err);

/*
 * Its value; lists and texts live in `arena` or where the scope has them.
 * Errors: STATUS_BAD_INPUT when a member is not there or a kind is wrong, with a suggestion and the character.
 */
MUST_CHECK enum status expression_value(const struct expression *expression, const struct expression_scope *scope,
                                        struct arena *arena, struct value *out, struct error *err);

#endif
