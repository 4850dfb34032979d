/*
 * Recursive descent, from the lowest precedence:
 *
 *     or, and, not, comparison (one, not a chain), sum, product, minus, power (right to left), suffixes
 *
 * Nodes have a fixed array of parts. The depth is limited, because files may come from anywhere.
 */
#include <ctype.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/repro/expression_tree.h"

static const struct expression_function_row expression_functions[EXPRESSION_FUNCTION_TOTAL] = {
    [EXPRESSION_FUNCTION_MIN] = {"min", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_MAX] = {"max", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_SUM] = {"sum", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_MEAN] = {"mean", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_COUNT] = {"count", 1, 1},
    [EXPRESSION_FUNCTION_FIRST] = {"first", 1, 1},
    [EXPRESSION_FUNCTION_LAST] = {"last", 1, 1},
    [EXPRESSION_FUNCTION_ALL] = {"all", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_ANY] = {"any", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_INCREASING] = {"increasing", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_DECREASING] = {"decreasing", 1, EXPRESSION_PARTS_MAX},
    [EXPRESSION_FUNCTION_ABS] = {"abs", 1, 1},
    [EXPRESSION_FUNCTION_SQRT] = {"sqrt", 1, 1},
    [EXPRESSION_FUNCTION_ROUND] = {"round", 1, 1},
    [EXPRESSION_FUNCTION_FLOOR] = {"floor", 1, 1},
    [EXPRESSION_FUNCTION_CEIL] = {"ceil", 1, 1},
    [EXPRESSION_FUNCTION_LOG] = {"log", 1, 1},
    [EXPRESSION_FUNCTION_IF] = {"if", 3, 3},
    [EXPRESSION_FUNCTION_EXISTS] = {"exists", 1, 1},
};

struct parser {
    const char *text, *at;
    struct arena *arena;
    unsigned depth;
    struct error *err;
};

/* Returns NULL on failure, with the error set. */
typedef const struct expression *(*parse)(struct parser *p);

static const struct expression *parse_or(struct parser *p);

/* --- characters and words ------------------------------------------------------------------------ */

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n') p->at++;
}

static bool accepts(struct parser *p, const char *sign)
{
    skip_blanks(p);
    size_t length = strlen(sign);
    if (strncmp(p->at, sign, length) != 0) return false;
    p->at += length;
    return true;
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    if (!isalpha((unsigned char)*at) && *at != '_') return 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    return length;
}

static bool accepts_word(struct parser *p, const char *word)
{
    skip_blanks(p);
    size_t length = word_length(p->at);
    if (length != strlen(word) || strncmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static size_t place_of(const struct parser *p)
{
    return (size_t)(p->at - p->text) + 1;
}

static const struct expression *fail_expected(struct parser *p, const char *expected)
{
    skip_blanks(p);
    if (*p->at)
        error_set(p->err, STATUS_BAD_INPUT, "character %zu: found '%.12s' (expected %s)", place_of(p), p->at, expected);
    else
        error_set(p->err, STATUS_BAD_INPUT, "character %zu: the text ends (expected %s)", place_of(p), expected);
    return NULL;
}

/* --- nodes ----------------------------------------------------------------------------------- */

static struct expression *make(struct parser *p, enum expression_kind kind, size_t place)
{
    struct expression *expression;
    if (ARENA_NEW(p->arena, 1, expression, p->err) != STATUS_OK) return NULL;
    expression->kind = kind;
    expression->place = place;
    return expression;
}

static const struct expression *make_pair(struct parser *p, enum expression_kind kind, size_t place,
                                          const struct expression *a, const struct expression *b)
{
    struct expression *node = a && b ? make(p, kind, place) : NULL;
    if (!node) return NULL;
    node->parts[0] = a;
    node->parts[1] = b;
    node->part_count = 2;
    return node;
}

static const struct expression *make_one(struct parser *p, enum expression_kind kind, size_t place,
                                         const struct expression *a)
{
    struct expression *node = a ? make(p, kind, place) : NULL;
    if (!node) return NULL;
    node->parts[0] = a;
    node->part_count = 1;
    return node;
}

static const char *copy(struct parser *p, const char *from, size_t length)
{
    char *text = NULL;
    if (ARENA_NEW(p->arena, length + 1, text, p->err) != STATUS_OK) return NULL;
    memcpy(text, from, length);
    return text;
}

static const char *parse_word(struct parser *p)
{
    skip_blanks(p);
    size_t length = word_length(p->at);
    if (length == 0) {
        (void)fail_expected(p, "a name");
        return NULL;
    }
    const char *word = copy(p, p->at, length);
    p->at += length;
    return word;
}

/* --- primary expressions ------------------------------------------------------------------------- */

static const struct expression *parse_number(struct parser *p)
{
    struct expression *node = make(p, EXPRESSION_NUMBER, place_of(p));
    if (!node) return NULL;
    const char *end;
    if (!number_read(p->at, &end, &node->number)) return fail_expected(p, "a number");
    p->at = end;
    return node;
}

static const struct expression *parse_text(struct parser *p)
{
    const char *close = strchr(p->at + 1, '\'');
    if (!close) return fail_expected(p, "a closing \"'\"");
    struct expression *node = make(p, EXPRESSION_TEXT, place_of(p));
    if (!node) return NULL;
    node->text = copy(p, p->at + 1, (size_t)(close - p->at - 1));
    p->at = close + 1;
    return node->text ? node : NULL;
}

static const struct expression *parse_call(struct parser *p, const char *name, size_t place)
{
    const char *names[EXPRESSION_FUNCTION_TOTAL];
    struct expression *node = make(p, EXPRESSION_CALL, place);
    if (!node) return NULL;
    for (node->function = 0; node->function < EXPRESSION_FUNCTION_TOTAL; node->function++) {
        names[node->function] = expression_functions[node->function].name;
        if (strcmp(names[node->function], name) == 0) break;
    }
    if (node->function == EXPRESSION_FUNCTION_TOTAL) {
        char ending[SUGGEST_BYTES];
        error_set(p->err, STATUS_BAD_INPUT, "character %zu: unknown function '%s'%s", place, name,
                  suggest_ending_or(name, names, EXPRESSION_FUNCTION_TOTAL, "", ending));
        return NULL;
    }
    const struct expression_function_row *row = &expression_functions[node->function];
    do {
        if (node->part_count == row->most) return fail_expected(p, "')' after the last argument");
        const struct expression *part = parse_or(p);
        if (!part) return NULL;
        node->parts[node->part_count++] = part;
    } while (accepts(p, ","));
    if (node->part_count < row->least) return fail_expected(p, "',' and more arguments");
    return accepts(p, ")") ? node : fail_expected(p, "',' or ')'");
}

static const struct expression *parse_primary(struct parser *p)
{
    skip_blanks(p);
    size_t place = place_of(p);
    if (isdigit((unsigned char)*p->at)) return parse_number(p);
    if (*p->at == '\'') return parse_text(p);
    if (accepts(p, "(")) {
        const struct expression *inner = parse_or(p);
        if (!inner) return NULL;
        return accepts(p, ")") ? inner : fail_expected(p, "')'");
    }
    bool truth = accepts_word(p, "true");
    if (truth || accepts_word(p, "false")) {
        struct expression *node = make(p, EXPRESSION_TRUTH, place);
        if (node) node->number = truth;
        return node;
    }
    if (word_length(p->at) == 0) return fail_expected(p, "a number, a name or '('");
    const char *name = parse_word(p);
    if (!name) return NULL;
    if (accepts(p, "(")) return parse_call(p, name, place);
    struct expression *node = make(p, EXPRESSION_NAME, place);
    if (node) node->text = name;
    return node;
}

static const struct expression *parse_index(struct parser *p, const struct expression *of, size_t place)
{
    const struct expression *node = NULL;
    skip_blanks(p);
    size_t length = word_length(p->at);
    size_t behind = length + strspn(p->at + length, " ");
    if (accepts(p, "*"))
        node = make_one(p, EXPRESSION_EACH, place, of);
    else if (length > 0 && p->at[behind] == '=' && p->at[behind + 1] != '=') {
        const char *member = parse_word(p);
        if (!member || !accepts(p, "=")) return NULL;
        struct expression *where = (struct expression *)make_pair(p, EXPRESSION_WHERE, place, of, parse_or(p));
        if (where) where->text = member;
        node = where;
    } else
        node = make_pair(p, EXPRESSION_ITEM, place, of, parse_or(p));
    if (!node) return NULL;
    return accepts(p, "]") ? node : fail_expected(p, "']'");
}

static const struct expression *parse_suffixes(struct parser *p)
{
    const struct expression *node = parse_primary(p);
    unsigned count = 0;
    while (node) {
        skip_blanks(p);
        size_t place = place_of(p);
        if (*p->at != '.' && *p->at != '[') return node;
        if (++count > EXPRESSION_DEPTH_MAX) return fail_expected(p, "fewer members of members");
        if (accepts(p, "[")) {
            node = parse_index(p, node, place);
            continue;
        }
        p->at++;
        struct expression *member = (struct expression *)make_one(p, EXPRESSION_MEMBER, place, node);
        if (member && !(member->text = parse_word(p))) return NULL;
        node = member;
    }
    return NULL;
}

/* --- operators --------------------------------------------------------------------------------- */

static const struct expression *parse_minus(struct parser *p)
{
    if (++p->depth > EXPRESSION_DEPTH_MAX) return fail_expected(p, "fewer levels");
    skip_blanks(p);
    size_t place = place_of(p);
    const struct expression *node;
    if (accepts(p, "-"))
        node = make_one(p, EXPRESSION_MINUS, place, parse_minus(p));
    else {
        node = parse_suffixes(p);
        if (node && accepts(p, "^")) node = make_pair(p, EXPRESSION_POWER, place, node, parse_minus(p));
    }
    p->depth--;
    return node;
}

struct operator {
    const char *sign;
    enum expression_kind kind;
};

/* Joins operands from the left by `operators`, which end with a NULL sign. */
static const struct expression *parse_chain(struct parser *p, parse below, const struct operator *operators)
{
    const struct expression *node = below(p);
    while (node) {
        const struct operator *found = operators;
        skip_blanks(p);
        size_t place = place_of(p);
        while (found->sign && !(isalpha((unsigned char)*found->sign) ? accepts_word(p, found->sign)
                                                                      : accepts(p, found->sign)))
            found++;
        if (!found->sign) return node;
        node = make_pair(p, found->kind, place, node, below(p));
    }
    return NULL;
}

static const struct expression *parse_product(struct parser *p)
{
    static const struct operator operators[] = {{"*", EXPRESSION_TIMES}, {"/", EXPRESSION_OVER}, {0}};
    return parse_chain(p, parse_minus, operators);
}

static const struct expression *parse_sum(struct parser *p)
{
    static const struct operator operators[] = {{"+", EXPRESSION_PLUS}, {"-", EXPRESSION_LESS_OF}, {0}};
    return parse_chain(p, parse_product, operators);
}

static const struct expression *parse_comparison(struct parser *p)
{
    static const struct operator operators[] = {
        {"<=", EXPRESSION_AT_MOST}, {">=", EXPRESSION_AT_LEAST}, {"==", EXPRESSION_EQUAL},
        {"!=", EXPRESSION_UNEQUAL}, {"<", EXPRESSION_BELOW},     {">", EXPRESSION_ABOVE}, {0}};
    const struct expression *node = parse_sum(p);
    skip_blanks(p);
    size_t place = place_of(p);
    for (const struct operator *o = operators; node && o->sign; o++)
        if (accepts(p, o->sign)) return make_pair(p, o->kind, place, node, parse_sum(p));
    return node;
}

static const struct expression *parse_not(struct parser *p)
{
    if (++p->depth > EXPRESSION_DEPTH_MAX) return fail_expected(p, "fewer levels");
    skip_blanks(p);
    size_t place = place_of(p);
    const struct expression *node =
        accepts_word(p, "not") ? make_one(p, EXPRESSION_NOT, place, parse_not(p)) : parse_comparison(p);
    p->depth--;
    return node;
}

static const struct expression *parse_and(struct parser *p)
{
    static const struct operator operators[] = {{"and", EXPRESSION_AND}, {0}};
    return parse_chain(p, parse_not, operators);
}

static const struct expression *parse_or(struct parser *p)
{
    static const struct operator operators[] = {{"or", EXPRESSION_OR}, {0}};
    if (++p->depth > EXPRESSION_DEPTH_MAX) return fail_expected(p, "fewer levels");
    const struct expression *node = parse_chain(p, parse_and, operators);
    p->depth--;
    return node;
}

/* --- public -------------------------------------------------------------------------------------- */

enum status expression_parse(const char *text, struct arena *arena, const struct expression **out,
                             struct error *err)
{
    if (strlen(text) > EXPRESSION_LENGTH_MAX)
        return error_set(err, STATUS_LIMIT, "an expression of %zu characters is too long (limit is %d)",
                         strlen(text), EXPRESSION_LENGTH_MAX);
    struct parser parser = {.text = text, .at = text, .arena = arena, .err = err};
    const struct expression *tree = parse_or(&parser);
    skip_blanks(&parser);
    if (tree && *parser.at) tree = fail_expected(&parser, "an operator or the end");
    if (!tree) return err->status;
    *out = tree;
    return STATUS_OK;
}

enum status expression_check(const struct expression *expression, const char *const *names, size_t count,
                             struct error *err)
{
    if (expression->kind == EXPRESSION_NAME) {
        for (size_t i = 0; i < count; i++)
            if (strcmp(names[i], expression->text) == 0) return STATUS_OK;
        char ending[SUGGEST_BYTES];
        return error_set(err, STATUS_BAD_INPUT, "character %zu: unknown name '%s'%s", expression->place,
                         expression->text, suggest_ending_or(expression->text, names, count, "", ending));
    }
    for (size_t i = 0; i < expression->part_count; i++)
        TRY(expression_check(expression->parts[i], names, count, err));
    return STATUS_OK;
}
