/*
 * Real set-ups of figures, with a program of our own in place of spillway that returns simulated and measured values:
 * errors against the measurement and orders computed by hand; steps; kept files; mistakes with their places.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/size.h"
#include "cli/repro/figure_change.h"
#include "cli/repro/figure_report.h"
#include "tests/support/support_figure.h"
#include "tests/support/support_folder.h"

/* The program answers with its two arguments in units of steps: simulated, measured. The root's body would fail. */
static const char good[] =
    "{\"spillway_figure\": 1, \"id\": \"t-1\",\n"
    " \"paper\": {\"title\": \"T\", \"authors\": \"A\", \"version\": \"v2\", \"id\": \"arXiv 1\"},\n"
    " \"figure\": \"Fig. 1\", \"title\": \"hours\", \"kind\": \"bars\", \"quantity\": {\"name\": \"hours\", "
    "\"unit\": \"h\"},\n"
    " \"columns\": [\"system\"], \"rows\": [[\"other\"]], \"series\": [{\"name\": \"hours\", \"simulated\": \"1\"}],\n"
    " \"real\": {\"steps\": 3, \"host_memory\": \"2MiB\", \"quantity\": {\"name\": \"seconds\"}, "
    "\"set_up\": [\"small\"],\n"
    "  \"columns\": [\"system\", \"s\", \"m_s\", \"paper\"], \"label\": [\"system\"],\n"
    "  \"published\": {\"paper\": {\"source\": \"Fig. 1\", \"reading\": \"printed\"}},\n"
    "  \"rows\": [[\"a\", 11, 10, 7], [\"b\", 8, 20, 9], [\"c\", 30, 30, null]],\n"
    "  \"runs\": {\"own\": [\"{s * steps}\", \"{m_s * steps}\"]},\n"
    "  \"series\": [{\"name\": \"t\", \"published\": \"paper\", \"simulated\": \"own.s\", \"measured\": \"own.m\"},\n"
    "   {\"name\": \"u\", \"simulated\": \"own.s + 1\"}]}}";

static char folder[SUPPORT_FOLDER_BYTES];
static char program[128], kept[128];

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(program, sizeof program, "%s/program", folder);
    snprintf(kept, sizeof kept, "%s/kept", folder);
    FILE *file = fopen(program, "w");
    if (!file) return -1;
    fputs("#!/bin/sh\necho left >trace\necho \"{\\\"s\\\": $1, \\\"m\\\": $2}\"\n", file);
    return fclose(file) != 0 || chmod(program, 0700) != 0 || mkdir(kept, 0700) != 0;
}

static int remove_folder(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

/* A row that the machine cannot do (exit code 3) is reported, and the others are done. */
static void test_an_impossible_row(void **state)
{
    struct support_ran ran = {0};
    struct error err = {0};
    char other[160];
    (void)state;
    snprintf(other, sizeof other, "%s/impossible", folder);
    FILE *file = fopen(other, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\nif [ $1 = 24 ]; then echo '{\"error\": 1, \"schema\": \"spillway-error-1\"}'\n"
          "echo 'error: no device left' >&2; exit 3; fi\necho \"{\\\"s\\\": $1, \\\"m\\\": $2}\"\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(other, 0700), 0);
    struct run_set_options options = {.program = other, .workers = 1, .limit_s = 20};
    assert_int_equal(figure_parse_real("t.json", good, strlen(good), &ran.figure, &err), STATUS_OK);
    assert_int_equal(support_ran_execute(&ran, &options, &err), STATUS_DEVICE); /* the whole figure, unless asked
                                                                                   otherwise */
    support_ran_release(&ran);
    ran = (struct support_ran){0};
    err = (struct error){0};
    options.go_on = true;
    assert_int_equal(figure_parse_real("t.json", good, strlen(good), &ran.figure, &err), STATUS_OK);
    if (support_ran_execute(&ran, &options, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_string_equal(figure_point_at(&ran.result, 1, 0)->simulated.text, "no device left");
    assert_true(fabs(figure_point_at(&ran.result, 2, 0)->measured.number - 90) < 1e-12);
    assert_int_equal(ran.result.counted, 2);
    support_ran_release(&ran);
}

/* Steps are a parameter and no option. */
static enum figure_option no_option(void *context, const char *verb, const char *option)
{
    (void)context, (void)verb, (void)option;
    return FIGURE_OPTION_NONE;
}

static void run_real(const char *change, struct support_ran *ran)
{
    struct error err = {0};
    const struct figure_verbs verbs = {no_option, NULL};
    const struct run_set_options options = {.program = program, .workers = 1, .limit_s = 20, .keep = kept};
    *ran = (struct support_ran){0};
    if (figure_parse_real("t.json", good, strlen(good), &ran->figure, &err) != STATUS_OK ||
        (change && figure_change(ran->figure, change, &verbs, &err) != STATUS_OK) ||
        support_ran_execute(ran, &options, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

/* 33/30 - 1 = 10 %, 24/60 - 1 = -60 %, 90/90 - 1 = 0. Measured a < b < c, simulated b < a < c: two of three pairs. */
static void test_errors_are_against_the_measurement(void **state)
{
    struct support_ran ran;
    (void)state;
    run_real(NULL, &ran);
    const struct figure_result *r = &ran.result;
    assert_string_equal(ran.figure->quantity.name, "seconds");
    assert_int_equal(ran.figure->set_up.count, 1);
    assert_int_equal(r->counted, 3);
    assert_int_equal(r->within, 2);
    assert_true(fabs(figure_point_at(r, 0, 0)->measured.number - 30) < 1e-12);
    assert_true(fabs(figure_point_at(r, 0, 0)->published.number - 7) < 1e-12);
    assert_true(fabs(figure_point_at(r, 1, 0)->error + 0.6) < 1e-12);
    assert_true(fabs(r->mean - 0.7 / 3) < 1e-12);
    assert_int_equal(r->pairs, 3);
    assert_int_equal(r->alike, 2);
    assert_false(figure_point_at(r, 0, 1)->compared); /* of "u" nothing is measured */
    assert_string_equal(r->verdict, "2 of 3 points within 10 %, mean 23.3 %, worst -60.0 % (t, b); 2 of 3 pairs are "
                                    "in the measured order");
    support_ran_release(&ran);
}

static void test_steps(void **state)
{
    struct support_ran ran;
    (void)state;
    run_real("steps=7", &ran);
    assert_true(fabs(figure_point_at(&ran.result, 1, 0)->simulated.number - 8 * 7) < 1e-12);
    assert_true(fabs(figure_point_at(&ran.result, 1, 0)->measured.number - 20 * 7) < 1e-12);
    assert_string_equal(ran.figure->changes.items[0], "steps=7");
    support_ran_release(&ran);
}

/* A column with '_' is found by the name of an option, with '-'. */
static void test_columns_like_options(void **state)
{
    struct support_ran ran;
    (void)state;
    run_real("m-s=4", &ran);
    for (uint32_t r = 0; r < 3; r++)
        assert_true(fabs(figure_point_at(&ran.result, r, 0)->measured.number - 4 * 3) < 1e-12);
    assert_int_equal(ran.result.pairs, 0); /* all are equal */
    support_ran_release(&ran);
}

static void test_csv(void **state)
{
    struct support_ran ran;
    char *text = NULL;
    size_t length;
    (void)state;
    run_real(NULL, &ran);
    FILE *out = open_memstream(&text, &length);
    figure_write_csv(&ran.result, out);
    fclose(out);
    assert_memory_equal(text, "system,s,m_s,steps,series,published,measured,simulated,error\n"
                              "\"a\",11,10,3,\"t\",7,30,33,0.1\n\"a\",11,10,3,\"u\",,,34,\n", 111);
    free(text);
    support_ran_release(&ran);
}

/* Runs twice: the second run replaces the files of the first. */
static void test_what_runs_leave_is_kept(void **state)
{
    struct support_ran ran;
    char name[RUN_FOLDER_BYTES], path[RUN_FOLDER_BYTES + 256];
    (void)state;
    for (int i = 0; i < 2; i++) {
        run_real(NULL, &ran);
        run_set_folder(ran.set, ran.indexes[1], name);
        assert_string_equal(name, "t-1-row-1-run-own");
        snprintf(path, sizeof path, "%s/%s/trace", kept, name);
        assert_int_equal(access(path, R_OK), 0);
        assert_int_equal(unlink(path), 0);
        support_ran_release(&ran);
    }
}

/* Long changes still give each run its own folder. */
static void test_folders_of_long_changes(void **state)
{
    char change[400], names[2][RUN_FOLDER_BYTES];
    struct support_ran ran;
    (void)state;
    int length = snprintf(change, sizeof change, "system=%0300d", 7);
    assert_true(length > RUN_FOLDER_BYTES);
    run_real(change, &ran);
    for (uint32_t r = 0; r < 2; r++) run_set_folder(ran.set, ran.indexes[r], names[r]);
    assert_string_not_equal(names[0], names[1]);
    assert_non_null(strstr(names[1], "-row-1-run-own"));
    support_ran_release(&ran);
}

/* Without "real" a figure is read as before, with the root's body. */
static void test_the_rest_of_the_figure_stays(void **state)
{
    struct figure *figure;
    struct error err = {0};
    (void)state;
    if (figure_parse("t.json", good, strlen(good), &figure, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(figure->real.offered && !figure->real.read);
    assert_int_equal(figure->column_count, 1);
    assert_string_equal(figure->quantity.name, "hours");
    figure_destroy(figure);
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *from, *to, *message;
        enum status status;
    } cases[] = {
        {" \"real\": {", " \"_comment\": {", "figure 't-1' has no real set-up", STATUS_INFEASIBLE},
        {"\"steps\": 3, ", "", "t.json:5:10: missing key 'steps'", STATUS_BAD_INPUT},
        {"\"title\": \"hours\", ", "", "t.json:1:1: missing key 'title'", STATUS_BAD_INPUT},
        {"\"steps\": 3", "\"steps\": 0", "t.json:5:20: 'steps' is 0 (expected 1 to 1000000)", STATUS_BAD_INPUT},
        {"\"2MiB\"", "2", "t.json:5:38: 'host_memory' is a number (expected a size such as 96MiB)", STATUS_BAD_INPUT},
        {"\"s\", \"m_s\"", "\"s\", \"steps\"", "t.json:6:30: the name 'steps' is used twice", STATUS_BAD_INPUT},
        {"[\"b\", 8, 20, 9]", "[\"b\", 8, 20]", "t.json:8:30: element 1 has 3 elements (expected 4)", STATUS_BAD_INPUT},
        {"\"own.m\"", "\"our.m\"", "t.json:10:84: character 1: unknown name 'our'", STATUS_BAD_INPUT},
        {"\"set_up\": [\"small\"]", "\"setup\": [\"small\"]",
         "t.json:5:79: unknown key 'setup' (did you mean 'set_up'?)", STATUS_BAD_INPUT},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[sizeof good + 64];
        struct figure *figure = NULL;
        struct error err = {0};
        const char *at = strstr(good, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].to, at + strlen(cases[i].from));
        assert_int_equal(figure_parse_real("t.json", text, strlen(text), &figure, &err), cases[i].status);
        assert_null(figure);
        assert_string_equal(err.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_against_the_measurement),
        cmocka_unit_test(test_an_impossible_row), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_columns_like_options), cmocka_unit_test(test_csv),
        cmocka_unit_test(test_what_runs_leave_is_kept), cmocka_unit_test(test_folders_of_long_changes),
        cmocka_unit_test(test_the_rest_of_the_figure_stays), cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests_name("figure.h: real set-ups", tests, make_folder, remove_folder);
}
