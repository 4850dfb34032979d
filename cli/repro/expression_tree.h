/* For expression_parse.c and expression.c. */
#ifndef SPILLWAY_CLI_REPRO_EXPRESSION_TREE_H
#define SPILLWAY_CLI_REPRO_EXPRESSION_TREE_H

#include "cli/repro/expression.h"

enum expression_kind {
    EXPRESSION_NUMBER, /* number */
    EXPRESSION_TEXT,   /* text */
    EXPRESSION_TRUTH,  /* number 0 or 1 */
    EXPRESSION_NAME,   /* text */
    EXPRESSION_MEMBER, /* of parts[0]: text */
    EXPRESSION_ITEM,   /* of parts[0]: number parts[1] */
    EXPRESSION_EACH,   /* of parts[0]: all elements */
    EXPRESSION_WHERE,  /* of parts[0]: where member `text` is parts[1] */
    EXPRESSION_CALL,   /* function (expression_functions) of its parts */
    EXPRESSION_MINUS,
    EXPRESSION_NOT,
    EXPRESSION_AND,
    EXPRESSION_OR,
    EXPRESSION_PLUS,
    EXPRESSION_LESS_OF, /* a - b */
    EXPRESSION_TIMES,
    EXPRESSION_OVER,
    EXPRESSION_POWER,
    EXPRESSION_BELOW, /* < */
    EXPRESSION_AT_MOST,
    EXPRESSION_ABOVE,
    EXPRESSION_AT_LEAST,
    EXPRESSION_EQUAL,
    EXPRESSION_UNEQUAL
};

enum { EXPRESSION_PARTS_MAX = 16 };

struct expression {
    enum expression_kind kind;
    size_t place; /* in characters from 1 */
    double number;
    const char *text;
    size_t function;
    size_t part_count;
    const struct expression *parts[EXPRESSION_PARTS_MAX];
};

enum expression_function {
    EXPRESSION_FUNCTION_MIN,
    EXPRESSION_FUNCTION_MAX,
    EXPRESSION_FUNCTION_SUM,
    EXPRESSION_FUNCTION_MEAN,
    EXPRESSION_FUNCTION_COUNT,
    EXPRESSION_FUNCTION_FIRST,
    EXPRESSION_FUNCTION_LAST,
    EXPRESSION_FUNCTION_ALL,
    EXPRESSION_FUNCTION_ANY,
    EXPRESSION_FUNCTION_INCREASING,
    EXPRESSION_FUNCTION_DECREASING,
    EXPRESSION_FUNCTION_ABS,
    EXPRESSION_FUNCTION_SQRT,
    EXPRESSION_FUNCTION_ROUND,
    EXPRESSION_FUNCTION_FLOOR,
    EXPRESSION_FUNCTION_CEIL,
    EXPRESSION_FUNCTION_LOG,
    EXPRESSION_FUNCTION_IF,
    EXPRESSION_FUNCTION_EXISTS,
    EXPRESSION_FUNCTION_TOTAL
};

struct expression_function_row {
    const char *name;
    size_t least, most; /* arguments */
};

#endif
