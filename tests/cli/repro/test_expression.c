/*
 * Expressions and templates: values against arithmetic done by hand and, for random trees, by C itself; every kind of
 * mistake with its message.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "cli/repro/expression.h"
#include "cli/repro/template.h"
#include "tests/support/support_seed.h"

/* The names that expressions use here. */
static const char *const names[] = {"gpus", "system", "run", "hours", "failed", "models"};

struct world {
    json_t *run;
    struct expression_value hours[3], models[3];
};

static bool find(const void *context, const char *name, struct expression_value *out)
{
    const struct world *world = context;
    if (strcmp(name, "gpus") == 0) return *out = expression_of_number(8), true;
    if (strcmp(name, "system") == 0) return *out = expression_of_text("Hydra"), true;
    if (strcmp(name, "run") == 0) return *out = expression_of_json(world->run), true;
    if (strcmp(name, "failed") == 0) return *out = expression_missing("it does not fit"), true;
    struct expression_value list = {.kind = EXPRESSION_VALUE_LIST, .count = 3};
    list.items = strcmp(name, "models") == 0 ? world->models : world->hours;
    return *out = list, strcmp(name, "hours") == 0 || strcmp(name, "models") == 0;
}

static void make_world(struct world *world)
{
    const double hours[] = {2.5, 3.75, 11}, models[] = {4, 12, 16};
    world->run = json_loads("{\"makespan_s\": 6.25, \"fits\": true, \"jobs\": [{\"name\": \"a\", \"end_s\": 1.5},"
                            "{\"name\": \"b\", \"end_s\": 4.25}], \"none\": null, \"rates\": [3, 4, 5.5]}", 0, NULL);
    assert_non_null(world->run);
    for (int i = 0; i < 3; i++)
        world->hours[i] = expression_of_number(hours[i]), world->models[i] = expression_of_number(models[i]);
}

/* Returns the value of `text`, or the message. */
static enum status evaluate(const char *text, struct arena *arena, struct expression_value *value, struct error *err)
{
    struct world world;
    make_world(&world);
    const struct expression_scope scope = {find, &world, names, ARRAY_COUNT(names)};
    const struct expression *tree;
    if (expression_parse(text, arena, &tree, err) == STATUS_OK &&
        expression_check(tree, names, ARRAY_COUNT(names), err) == STATUS_OK)
        (void)!expression_value(tree, &scope, arena, value, err);
    json_decref(world.run); /* results here are scalars */
    return err->status;
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"10 - 4 - 3", 3}, /* from the left */
        {"2 ^ 3 ^ 2", 512}, /* from the right */
        {"-2 ^ 2", -4},
        {"2 ^ -1", 0.5},
        {"1.5e3 / gpus", 187.5},
        {"run.makespan_s / run.jobs[1].end_s", 6.25 / 4.25},
        {"run.jobs[name='a'].end_s", 1.5},
        {"sum(run.jobs[*].end_s)", 5.75},
        {"max(run.rates, 5.25)", 5.5},
        {"mean(hours)", 5.75},
        {"count(run.jobs)", 2},
        {"min(2 * hours)", 5},
        {"sum(run.rates - hours)", 12.5 - 17.25},
        {"hours[models=12]", 3.75},
        {"hours[2]", 11},
        {"last(hours) - first(hours)", 8.5},
        {"if(system == 'Hydra', 3, failed)", 3},
        {"if(exists(failed), 1, 2)", 2},
        {"sqrt(16) + abs(-2.5) + floor(2.9) + ceil(2.1) + round(2.5)", 4 + 2.5 + 2 + 3 + 3},
        {"log(1)", 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct expression_value value = {0};
        if (evaluate(cases[i].text, &arena, &value, &err) != STATUS_OK) fail_msg("%s: %s", cases[i].text, err.text);
        if (value.kind != EXPRESSION_VALUE_NUMBER || fabs(value.number - cases[i].value) > 1e-12)
            fail_msg("%s is %g (expected %g)", cases[i].text, value.number, cases[i].value);
        arena_release(&arena);
    }
}

static void test_truths(void **state)
{
    static const struct {
        const char *text;
        bool value;
    } cases[] = {
        {"all(hours > 2)", true},
        {"all(hours > 2.5)", false},
        {"any(hours == 11) and not (gpus < 8)", true},
        {"increasing(hours)", true},
        {"increasing(1, 1)", false},
        {"decreasing(hours)", false},
        {"run.fits", true},
        {"system != 'GPipe' or false", true},
        {"exists(run.none)", false},
        {"all(hours <= models)", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct expression_value value = {0};
        if (evaluate(cases[i].text, &arena, &value, &err) != STATUS_OK) fail_msg("%s: %s", cases[i].text, err.text);
        if (value.kind != EXPRESSION_VALUE_TRUTH || value.truth != cases[i].value)
            fail_msg("%s: another truth", cases[i].text);
        arena_release(&arena);
    }
}

/* A missing value passes through, with the reason. */
static void test_missing(void **state)
{
    static const char *const cases[][2] = {
        {"failed.makespan_s / 2", "it does not fit"}, {"1 / 0", "a division by zero"}, {"run.none + 1", "null"},
        {"max(hours, failed)", "it does not fit"},    {"0 - failed", "it does not fit"},
    {"sqrt(-1)", "a root of a negative number"},
        {"10 ^ 400", "a power that is not a number"},    {"failed < 3", "it does not fit"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct expression_value value = {0};
        if (evaluate(cases[i][0], &arena, &value, &err) != STATUS_OK) fail_msg("%s: %s", cases[i][0], err.text);
        assert_int_equal(value.kind, EXPRESSION_VALUE_MISSING);
        assert_string_equal(value.text, cases[i][1]);
        arena_release(&arena);
    }
}

static void test_mistakes(void **state)
{
    static const char *const cases[][2] = {
        {"", "character 1: the text ends (expected a number, a name or '(')"},
        {"1 +", "character 4: the text ends (expected a number, a name or '(')"},
        {"(1", "character 3: the text ends (expected ')')"},
        {"1 2", "character 3: found '2' (expected an operator or the end)"},
        {"gpu + 1", "character 1: unknown name 'gpu' (did you mean 'gpus'?)"},
        {"maxx(1)", "character 1: unknown function 'maxx' (did you mean 'max'?)"},
        {"if(true, 1)", "character 11: found ')' (expected ',' and more arguments)"},
        {"abs(1, 2)", "character 8: found '2)' (expected ')' after the last argument)"},
        {"run.makespan", "character 4: there is no member 'makespan' (did you mean 'makespan_s'?)"},
        {"run.jobs[2]", "character 9: there is no element 2 (there are 2)"},
        {"run.jobs[name='c'].end_s", "character 9: nothing has 'c' as its 'name'"},
        {"run.jobs[0.5]", "character 9: found a number (expected an index, from 0)"},
        {"system + 1", "character 8: found a text (expected a number)"},
        {"hours + run.jobs[*].end_s", "character 7: lists of 3 and 2 elements do not go together"},
        {"gpus.x", "character 5: found a number (expected an object)"},
        {"not 3", "character 1: found a number (expected true or false)"},
        {"'open", "character 1: found ''open' (expected a closing \"'\")"},
        {"1 < 2 < 3", "character 7: found '< 3' (expected an operator or the end)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct expression_value value = {0};
        assert_int_equal(evaluate(cases[i][0], &arena, &value, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i][1]);
        arena_release(&arena);
    }
}

static void test_depth(void **state)
{
    char text[EXPRESSION_LENGTH_MAX + 2];
    struct arena arena = {0};
    struct error err = {0};
    struct expression_value value;
    (void)state;
    memset(text, '(', 1000);
    text[1000] = '\0';
    assert_int_equal(evaluate(text, &arena, &value, &err), STATUS_BAD_INPUT);
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    err = (struct error){0};
    assert_int_equal(evaluate(text, &arena, &value, &err), STATUS_LIMIT);
    arena_release(&arena);
}

/* --- two roads: a random tree, written down and computed at once ----------------------------------- */

struct tree {
    uint64_t seed, counter;
    char text[EXPRESSION_LENGTH_MAX];
    size_t length;
    bool undefined; /* something was past all numbers, or divided by zero: then all of it is missing */
};

static uint64_t draw(struct tree *tree, uint64_t below)
{
    return random_mix(tree->seed + 0x9e3779b97f4a7c15u * ++tree->counter) % below;
}

static void put(struct tree *tree, const char *text)
{
    tree->length += (size_t)snprintf(tree->text + tree->length, sizeof tree->text - tree->length, "%s", text);
}

static double grow(struct tree *tree, unsigned depth)
{
    char number[32];
    if (depth == 0 || tree->length > 1200) {
        double value = 1 + (double)draw(tree, 64) / 8;
        snprintf(number, sizeof number, "%g", value);
        put(tree, number);
        return value;
    }
    static const char *const signs[] = {" + ", " - ", "*", "/"};
    uint64_t kind = draw(tree, 5);
    put(tree, kind == 4 ? "max(" : "(");
    double a = grow(tree, depth - 1);
    put(tree, kind == 4 ? ", " : signs[kind]);
    double b = grow(tree, depth - 1);
    put(tree, ")");
    double value = kind == 0 ? a + b : kind == 1 ? a - b : kind == 2 ? a * b : kind == 3 ? a / b : fmax(a, b);
    tree->undefined = tree->undefined || !isfinite(value);
    return value;
}

static void test_random_trees(void **state)
{
    (void)state;
    uint64_t seed = support_seed("expression");
    for (uint64_t i = 0; i < 2000; i++) {
        struct tree tree = {.seed = seed + i};
        struct arena arena = {0};
        struct error err = {0};
        struct expression_value value = {0};
        double expected = grow(&tree, (unsigned)draw(&tree, 6));
        assert_int_equal(evaluate(tree.text, &arena, &value, &err), STATUS_OK);
        assert_int_equal(value.kind, tree.undefined ? EXPRESSION_VALUE_MISSING : EXPRESSION_VALUE_NUMBER);
        if (!tree.undefined && value.number != expected)
            fail_msg("%s is %.17g (expected %.17g)", tree.text, value.number, expected);
        arena_release(&arena);
    }
}

/* --- templates --------------------------------------------------------------------------------- */

/* `text` with values in place, or the message. */
static char *expand(const char *text)
{
    struct world world;
    make_world(&world);
    const struct expression_scope scope = {find, &world, names, ARRAY_COUNT(names)};
    struct arena arena = {0};
    struct error err = {0};
    struct json_input *input;
    json_t *out = NULL;
    assert_int_equal(json_input_parse("t.json", text, strlen(text), &input, &err), STATUS_OK);
    const struct template_place place = {input, json_input_root(input), NULL, JSON_SELF};
    char *result;
    if (template_check(json_input_root(input), place, names, ARRAY_COUNT(names), &err) == STATUS_OK &&
        template_expand(json_input_root(input), place, &scope, &arena, &out, &err) == STATUS_OK)
        result = json_dumps(out, 0);
    else
        result = strdup(err.text);
    json_decref(out);
    json_input_destroy(input);
    json_decref(world.run);
    arena_release(&arena);
    return result;
}

static void test_templates(void **state)
{
    static const char *const cases[][2] = {
        {"{\"a\": \"{gpus}\", \"b\": \"pp={gpus/4},{system}\", \"c\": 3.5}",
         "{\"a\": 8, \"b\": \"pp=2,Hydra\", \"c\": 3.5}"},
        {"[\"{gpus / 3}\", \"{{x}\", \"{gpus/16}x\"]", "[2.6666666666666665, \"{x}\", \"0.5x\"]"},
        {"[{\"$repeat\": \"{gpus/4}\", \"$as\": \"i\", \"$item\": {\"name\": \"m{i}\", \"x\": \"{i * gpus}\"}}, 7]",
         "[{\"name\": \"m0\", \"x\": 0}, {\"name\": \"m1\", \"x\": 8}, 7]"},
        {"[{\"$repeat\": 2, \"$item\": {\"$repeat\": 1}}]", "[{\"$repeat\": 1}, {\"$repeat\": 1}]"},
        {"{\"a\": [1, \"{gpu}\"]}", "t.json:1:11: character 1: unknown name 'gpu' (did you mean 'gpus'?)"},
        {"{\"a\": \"x{gpus\"}", "t.json:1:7: '{gpus' has no closing '}' ('{{' is a brace)"},
        {"{\"a\": \"{failed}\"}", "t.json:1:7: '{failed}' is missing (expected a number or a text)"},
        {"[{\"$repeat\": \"{gpus/3}\", \"$item\": 1}]", "t.json:1:14: not a whole number from 0 to 100000"},
        {"[{\"$repeat\": 2, \"item\": 1}]", "t.json:1:14: a repetition has '$repeat', '$item' and perhaps '$as', a "
                                            "name"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char *found = expand(cases[i][0]);
        assert_string_equal(found, cases[i][1]);
        free(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_truths),       cmocka_unit_test(test_missing),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_depth),       cmocka_unit_test(test_random_trees),
        cmocka_unit_test(test_templates),
    };
    return cmocka_run_group_tests_name("expression.h", tests, NULL, NULL);
}
