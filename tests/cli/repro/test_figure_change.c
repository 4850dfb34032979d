/*
 * Changes of a figure's set-up: the effects of each kind of name on the cells, files and commands of runs, and the
 * message for every name that changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "cli/repro/figure_change.h"

static const char text[] =
    "{\"spillway_figure\": 1, \"id\": \"t-1\",\n"
    " \"paper\": {\"title\": \"T\", \"authors\": \"A\", \"version\": \"v2\", \"id\": \"arXiv 1\"},\n"
    " \"figure\": \"Fig. 1\", \"title\": \"hours\", \"kind\": \"bars\", \"quantity\": {\"name\": \"hours\", "
    "\"unit\": \"h\"},\n"
    " \"columns\": [\"devices\", \"machine\", \"paper\"],\n"
    " \"published\": {\"paper\": {\"source\": \"Fig. 1\", \"reading\": \"printed\"}},\n"
    " \"rows\": [[1, \"a\", 10.8], [2, \"b\", 6]],\n"
    " \"files\": {\"jobs.json\": {\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"x\", \"count\": 3},\n"
    "     {\"$repeat\": \"{devices}\", \"$as\": \"i\", \"$item\": {\"name\": \"y{i}\"}}]}, "
    "\"other.json\": {\"jobs\": [{}]}},\n"
    " \"runs\": {\"run\": [\"plan\", \"jobs.json\", \"--hw\", \"{machine}\", \"--link-rate=1GB/s\", \"--json\"],\n"
    "   \"chain\": [[\"partition\", \"jobs.json\"], [\"plan\", \"jobs.json\", \"--no-p2p\"]],\n"
    "   \"twice\": [\"plan\", \"--hw\", \"a\", \"jobs.json\", \"--hw=b\", \"--json\", \"--hw\", \"c\"]},\n"
    " \"series\": [{\"name\": \"hours\", \"published\": \"paper\", \"simulated\": \"run.hours\"}]}";

/* `plan` has options hw, link-rate and threads and the flag no-p2p; `partition` has only threads. */
static enum figure_option option_of(void *context, const char *verb, const char *option)
{
    bool plan = strcmp(verb, "plan") == 0;
    (void)context;
    if (strcmp(option, "threads") == 0) return FIGURE_OPTION_VALUE;
    if (!plan) return FIGURE_OPTION_NONE;
    if (strcmp(option, "no-p2p") == 0) return FIGURE_OPTION_FLAG;
    return strcmp(option, "hw") == 0 || strcmp(option, "link-rate") == 0 ? FIGURE_OPTION_VALUE : FIGURE_OPTION_NONE;
}

static const struct figure_verbs verbs = {option_of, NULL};

static struct figure *figure_changed(const char *const *changes)
{
    struct figure *figure = NULL;
    struct error err = {0};
    assert_int_equal(figure_parse("t.json", text, sizeof text - 1, &figure, &err), STATUS_OK);
    for (; *changes; changes++) {
        enum status status = figure_change(figure, *changes, &verbs, &err);
        if (status != STATUS_OK) fail_msg("%s: %s", *changes, err.text);
    }
    return figure;
}

static void check_json(const json_t *json, const char *expected)
{
    char *dumped = json_dumps(json, JSON_COMPACT);
    assert_string_equal(dumped, expected);
    free(dumped);
}

static void test_nothing_else(void **state)
{
    (void)state;
    struct figure *figure = figure_changed((const char *const[]){NULL});
    check_json(figure->runs[0].commands,
               "[\"plan\",\"jobs.json\",\"--hw\",\"{machine}\",\"--link-rate=1GB/s\",\"--json\"]");
    assert_int_equal(figure->changes.count, 0);
    figure_destroy(figure);
}

static void test_columns(void **state)
{
    (void)state;
    struct figure *figure = figure_changed((const char *const[]){"devices=7", "machine=true", NULL});
    for (uint32_t r = 0; r < 2; r++) {
        assert_true(figure_cell(figure, r, 0)->kind == EXPRESSION_VALUE_NUMBER &&
                    figure_cell(figure, r, 0)->number == 7);
        assert_int_equal(figure_cell(figure, r, 1)->kind, EXPRESSION_VALUE_TEXT);
        assert_string_equal(figure_cell(figure, r, 1)->text, "true");
    }
    assert_true(figure_cell(figure, 0, 2)->number == 10.8);
    assert_int_equal(figure->changes.count, 2);
    assert_string_equal(figure->changes.items[1], "machine=true");
    figure_destroy(figure);
}

static void test_jobs(void **state)
{
    (void)state;
    struct figure *figure = figure_changed((const char *const[]){"jobs.count=4", "jobs.network.n_layer=2", NULL});
    check_json(json_object_get(figure->files[0].content, "jobs"),
               "[{\"name\":\"x\",\"count\":4,\"network\":{\"n_layer\":2}},{\"$repeat\":\"{devices}\",\"$as\":\"i\","
               "\"$item\":{\"name\":\"y{i}\",\"count\":4,\"network\":{\"n_layer\":2}}}]");
    check_json(figure->files[1].content, "{\"jobs\":[{}]}"); /* no jobs file */
    figure_destroy(figure);
}

static void test_options(void **state)
{
    (void)state;
    struct figure *figure =
        figure_changed((const char *const[]){"hw=2x {a}", "link.rate=6GB/s", "no_p2p=no", "threads=2", NULL});
    check_json(figure->runs[0].commands,
               "[\"plan\",\"jobs.json\",\"--hw\",\"2x {{a}\",\"--link-rate\",\"6GB/s\",\"--json\","
                                         "\"--threads\",\"2\"]");
    check_json(figure->runs[1].commands,
               "[[\"partition\",\"jobs.json\",\"--threads\",\"2\"],[\"plan\",\"jobs.json\",\"--hw\",\"2x {{a}\","
               "\"--link-rate\",\"6GB/s\",\"--threads\",\"2\"]]");
    check_json(figure->runs[2].commands, /* once, for all three */
               "[\"plan\",\"--hw\",\"2x "
               "{{a}\",\"jobs.json\",\"--json\",\"--link-rate\",\"6GB/s\",\"--threads\",\"2\"]");
    figure_destroy(figure);
    figure = figure_changed((const char *const[]){"no-p2p=yes", "no-p2p=yes", NULL});
    check_json(json_array_get(figure->runs[1].commands, 1), "[\"plan\",\"jobs.json\",\"--no-p2p\"]");
    figure_destroy(figure);
}

/* Runs have folders of their own: a file that is there is named by its whole path, and told of as it was typed. */
static void test_file_of_users(void **state)
{
    (void)state;
    struct figure *figure = figure_changed((const char *const[]){"hw=/usr/../etc/passwd", NULL});
    assert_string_equal(json_string_value(json_array_get(figure->runs[0].commands, 3)), "/etc/passwd");
    assert_string_equal(figure->changes.items[0], "hw=/usr/../etc/passwd");
    figure_destroy(figure);
}

static void test_refused(void **state)
{
    static const struct {
        const char *change, *message;
    } cases[] = {
        {"hw", "'hw' is not a change (expected NAME=VALUE)"},
        {"=3", "'=3' is not a change (expected NAME=VALUE)"},
        {"paper=3", "'paper' has published values (expected a parameter)"},
        {"device=3", "'t-1' has no 'device' (did you mean 'devices'?)"},
        {"speed=3", "'t-1' has no 'speed' (expected a parameter of its rows, jobs.KEY, or an option of its commands)"},
        {"no-p2p=1", "'no-p2p' is a flag and cannot be '1' (expected yes or no)"},
        {"jobs.=1", "'jobs.' is not a key (expected names with '.' between them)"},
        {"jobs.name.x=1", "'name' of 'jobs.name.x' is not an object"},
    };
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct figure *figure = figure_changed((const char *const[]){NULL});
        struct error err = {0};
        assert_int_equal(figure_change(figure, cases[c].change, &verbs, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[c].message);
        figure_destroy(figure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_else), cmocka_unit_test(test_columns),       cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_options),      cmocka_unit_test(test_file_of_users), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("figure_change", tests, NULL, NULL);
}
