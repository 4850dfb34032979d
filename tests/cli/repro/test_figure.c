/*
 * Figures of papers: a small one from file to verdict, with a program of our own in place of spillway, against errors
 * computed by hand; every mistake in a file with its place; the ends that a run can come to.
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
#include "cli/repro/figure_report.h"
#include "cli/repro/figure_result.h"
#include "tests/support/support_figure.h"
#include "tests/support/support_folder.h"

/* Three devices; the program (below) answers 12 / devices, and no for more than 4. Published: 10 % less, exact,
 * twice. */
static const char good[] =
    "{\"spillway_figure\": 1, \"id\": \"t-1\",\n"
    " \"paper\": {\"title\": \"T\", \"authors\": \"A\", \"version\": \"v2\", \"id\": \"arXiv 1\"},\n"
    " \"figure\": \"Fig. 1\", \"title\": \"hours\", \"kind\": \"bars\", \"quantity\": {\"name\": \"hours\", "
    "\"unit\": \"h\"},\n"
    " \"columns\": [\"devices\", \"paper\"],\n"
    " \"published\": {\"paper\": {\"source\": \"Fig. 1\", \"reading\": \"printed\"}},\n"
    " \"rows\": [[1, 10.8], [2, 6], [3, 2], [4, null], [5, 7]],\n"
    " \"files\": {\"in.json\": {\"devices\": \"{devices}\"}, \"other.json\": {\"x\": 1}},\n"
    " \"runs\": {\"run\": [\"in.json\"]},\n"
    " \"series\": [{\"name\": \"hours\", \"published\": \"paper\", \"simulated\": \"run.hours\"}],\n"
    " \"claims\": [{\"text\": \"falls\", \"holds\": \"decreasing(hours[0], hours[1], hours[2])\"},\n"
    "   {\"text\": \"rises\", \"holds\": \"increasing(hours[0], hours[1])\"}, {\"text\": \"all\", "
    "\"holds\": \"all(hours > 0)\"}],\n"
    " \"accuracy\": {\"mean\": 0.2}}";

static char folder[SUPPORT_FOLDER_BYTES];
static char program[128];

static void write_program(const char *script)
{
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(program, 0700), 0);
}

static const char divides[] = "echo x >> '%s/calls'\n"
                              "n=$(tr -dc 0-9 < \"$1\")\n"
                              "if [ $n -gt 4 ]; then echo '{\"schema\": \"spillway-error-1\"}'; echo 'error: it does "
                              "not fit' >&2; exit 1; fi\n"
                              "echo \"{\\\"hours\\\": $((12 / n))}\"";

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(program, sizeof program, "%s/program", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

static enum status run_figure(const char *text, struct support_ran *ran, struct error *err)
{
    const struct run_set_options options = {.program = program, .workers = 3, .limit_s = 20};
    *ran = (struct support_ran){0};
    if (figure_parse("t.json", text, strlen(text), &ran->figure, err)) return err->status;
    return support_ran_execute(ran, &options, err);
}

static void test_from_file_to_verdict(void **state)
{
    char script[1024];
    struct support_ran ran;
    struct error err = {0};
    (void)state;
    snprintf(script, sizeof script, divides, folder);
    write_program(script);
    if (run_figure(good, &ran, &err) != STATUS_OK) fail_msg("%s", err.text);
    const struct figure_result *result = &ran.result;
    /* 12 / 10.8 - 1 = 11.1 %, 6 / 6, 4 / 2 - 1 = 100 %; the fourth is not published, the fifth answers no */
    assert_int_equal(result->counted, 3);
    assert_int_equal(result->missing, 1);
    assert_int_equal(result->within, 1);
    assert_true(fabs(figure_point_at(result, 0, 0)->error - (12 / 10.8 - 1)) < 1e-12);
    assert_true(fabs(result->mean - (12 / 10.8 - 1 + 0 + 1) / 3) < 1e-12);
    assert_true(fabs(result->worst - 1) < 1e-12);
    assert_int_equal(result->worst_row, 2);
    assert_false(figure_point_at(result, 3, 0)->compared);
    assert_string_equal(figure_point_at(result, 4, 0)->simulated.text, "it does not fit");
    assert_true(result->claims[0].holds && !result->claims[1].holds && result->claims[1].known);
    assert_false(result->claims[2].known);
    assert_string_equal(result->claims[2].why, "it does not fit");
    assert_false(result->met);
    assert_string_equal(result->verdict, "1 of 3 points within 10 %, mean 37.0 %, worst +100.0 % (hours, devices 3); "
                                         "1 published without a simulated value; 1 of 3 claims hold; the mark is "
                                         "missed");
    support_ran_release(&ran);
}

static void test_csv(void **state)
{
    struct support_ran ran;
    struct error err = {0};
    char *text = NULL;
    size_t length;
    (void)state;
    if (run_figure(good, &ran, &err) != STATUS_OK) fail_msg("%s", err.text);
    FILE *out = open_memstream(&text, &length);
    figure_write_csv(&ran.result, out);
    fclose(out);
    assert_string_equal(text, "devices,series,published,simulated,error\n1,\"hours\",10.800000000000001,12,0.111111\n"
                              "2,\"hours\",6,6,0\n3,\"hours\",2,4,1\n4,\"hours\",,3,\n5,\"hours\",7,,\n");
    free(text);
    support_ran_release(&ran);
}

/* Equal runs are done once: rows with the same devices, whatever else differs. */
static void test_runs_are_shared(void **state)
{
    char path[128], *text = strdup(good), *rows = strstr(text, "[[1, 10.8], [2, 6], [3, 2]");
    struct support_ran ran;
    struct error err = {0};
    int calls = 0;
    (void)state;
    memcpy(rows, "[[1, 10.8], [1, 6], [1, 2]", 26);
    snprintf(path, sizeof path, "%s/calls", folder);
    unlink(path);
    if (run_figure(text, &ran, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(run_set_count(ran.set), 3);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c; (c = fgetc(file)) != EOF;) calls += c == 'x';
    fclose(file);
    assert_int_equal(calls, 3);
    support_ran_release(&ran);
    free(text);
}

static void test_ends(void **state)
{
    static const struct {
        const char *script;
        enum status status;
        const char *message;
    } cases[] = {
        {"echo 'error: in.json:1:2: no' >&2; exit 2", STATUS_BAD_INPUT, "t-1: row 0, run 'run': in.json:1:2: no"},
        {"echo 'error: no device' >&2; exit 3", STATUS_DEVICE, "t-1: row 0, run 'run': no device"},
        {"kill -9 $$", STATUS_DEVICE, "t-1: row 0, run 'run': ended by signal 9"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char *text = strdup(good), *rows = strstr(text, "[[1, 10.8], [2, 6], [3, 2], [4, null], [5, 7]]");
        struct support_ran ran;
        struct error err = {0};
        memset(rows, ' ', strlen("[[1, 10.8], [2, 6], [3, 2], [4, null], [5, 7]]"));
        memcpy(rows, "[[1, 2]]", 8);
        write_program(cases[i].script);
        assert_int_equal(run_figure(text, &ran, &err), cases[i].status);
        assert_string_equal(err.text, cases[i].message);
        support_ran_release(&ran);
        free(text);
    }
}

static void test_no_json(void **state)
{
    struct support_ran ran;
    struct error err = {0};
    (void)state;
    write_program("echo hello");
    assert_int_equal(run_figure(good, &ran, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "no JSON was printed"));
    support_ran_release(&ran);
}

/* --- mistakes in files ----------------------------------------------------------------------------- */

static void test_mistakes(void **state)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"kind\": \"bars\"", "\"kind\": \"pies\"", "t.json:3:48: unknown kind 'pies' (expected bars, lines or "
                                                     "table)"},
        {"\"claims\"", "\"clams\"", "t.json:10:2: unknown key 'clams' (did you mean 'claims'?)"},
        {"[2, 6]", "[2, 6, 1]", "t.json:6:22: element 1 has 3 elements (expected 2)"},
        {"[2, 6]", "[2, \"6\"]", "t.json:6:26: column 'paper' is published: expected a number or null"},
        {"run.hours", "rum.hours", "t.json:9:66: character 1: unknown name 'rum' (did you mean 'run'?)"},
        {"\"{devices}\"", "\"{device}\"", "t.json:7:35: character 1: unknown name 'device' (did you mean 'devices'?)"},
        {"\"columns\": [\"devices\"", "\"columns\": [\"dev ices\"",
         "t.json:4:14: 'dev ices' is not a name (expected letters, digits and '_')"},
        {"{\"name\": \"hours\", \"pub", "{\"name\": \"devices\", \"pub",
         "t.json:9:22: the name 'devices' is used twice"},
        {"\"published\": \"paper\"", "\"published\": \"devices\"",
         "t.json:9:44: column 'devices' has no entry in 'published' (expected its source and reading)"},
        {"\"published\": {\"paper\"", "\"published\": {\"papers\"",
         "t.json:5:26: there is no column 'papers' (did you mean 'paper'?)"},
        {"\"rows\":", "\"label\": [\"device\"], \"rows\":", "t.json:6:11: there is no column 'device' (did you mean "
                                                            "'devices'?)"},
        {"\"t-1\"", "\"T 1\"", "t.json:1:30: 'T 1' is not an id (expected small letters, digits and '-')"},
        {"\"in.json\": {", "\"../in.json\": {", "t.json:7:26: '../in.json' is not the name of a file (expected "
                                                "letters, digits, '.', '_' and '-')"},
        {"[\"in.json\"]", "[]", "t.json:8:18: a run without arguments"},
        {"decreasing(", "decreasin(", "t.json:10:40: character 1: unknown function 'decreasin' (did you mean "
                                      "'decreasing'?)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[sizeof good + 64];
        struct figure *figure = NULL;
        struct error err = {0};
        const char *at = strstr(good, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].to, at + strlen(cases[i].from));
        assert_int_equal(figure_parse("t.json", text, strlen(text), &figure, &err), STATUS_BAD_INPUT);
        assert_null(figure);
        assert_string_equal(err.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_file_to_verdict), cmocka_unit_test(test_csv), cmocka_unit_test(test_runs_are_shared),
        cmocka_unit_test(test_ends), cmocka_unit_test(test_no_json), cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests_name("figure.h", tests, make_folder, remove_folder);
}
