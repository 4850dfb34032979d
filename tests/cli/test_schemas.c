/* docs/schemas: the checker of the tests finds faults; printed JSON and the examples fit their schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support_schema.h"

static const char schemas[] = SOURCE_DIR "/docs/schemas", cases[] = SOURCE_DIR "/tests/golden/cli",
                  examples[] = SOURCE_DIR "/docs/examples";

static json_t *must_parse(const char *text)
{
    json_error_t why;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &why);
    if (!value) fail_msg("'%s': %s", text, why.text);
    return value;
}

/* The schema of that name; NULL: there is none. */
static json_t *read_schema(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.schema.json", schemas, name);
    return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

/* --- the checker ------------------------------------------------------------------------------- */

static void the_checker_sees_mistakes(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\": \"object\", \"required\": [\"a\"], \"additionalProperties\": false, \"properties\": {"
        "\"a\": {\"type\": [\"integer\", \"null\"], \"minimum\": 2}, \"b\": {\"enum\": [\"x\", 7]}, \"c\": {\"const\": true},"
        "\"d\": {\"type\": \"array\", \"minItems\": 1, \"items\": {\"type\": \"string\", \"pattern\": \"^y+$\"}}}}";
    static const struct {
        const char *value, *why; /* NULL: it fits */
    } tries[] = {
        {"{\"a\": 2}", NULL},
        {"{\"a\": null, \"b\": 7, \"c\": true, \"d\": [\"y\", \"yy\"]}", NULL},
        {"[]", "the root: of another type"},
        {"{}", "the root: a"},
        {"{\"a\": 1}", "/a: below the minimum"},
        {"{\"a\": 2.5}", "/a: of another type"},
        {"{\"a\": 2, \"e\": 1}", "/e: no such key"},
        {"{\"a\": 2, \"b\": \"z\"}", "/b: none of the values"},
        {"{\"a\": 2, \"c\": false}", "/c: another value"},
        {"{\"a\": 2, \"d\": []}", "/d: too few items"},
        {"{\"a\": 2, \"d\": [\"y\", \"n\"]}", "/d/1: not of the pattern"},
    };
    json_t *rules = must_parse(schema);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        char why[512] = "";
        json_t *value = must_parse(tries[i].value);
        assert_int_equal(support_schema_fits(rules, value, why, sizeof why), tries[i].why == NULL);
        assert_string_equal(why, tries[i].why ? tries[i].why : "");
        json_decref(value);
    }
    json_object_set_new(rules, "maxItems", json_integer(3));
    char why[512];
    json_t *value = must_parse("{\"a\": 2}");
    assert_false(support_schema_fits(rules, value, why, sizeof why)); /* a rule that nobody checks */
    json_decref(value);
    json_decref(rules);
}

/* --- what the programs print --------------------------------------------------------------------- */

static void must_fit(const char *schema, const json_t *value, const char *where)
{
    char why[512] = "";
    json_t *rules = read_schema(schema);
    assert_non_null(rules);
    if (!support_schema_fits(rules, value, why, sizeof why)) fail_msg("%s: not as in %s: %s", where, schema, why);
    json_decref(rules);
}

/* A report fits what all have in common, and its own schema, where it has one. */
static unsigned check_report(const json_t *report, const char *where)
{
    static const char begin[] = "spillway-";
    const char *name = json_string_value(json_object_get(report, "schema"));
    char own[128];
    if (!name || strncmp(name, begin, strlen(begin)) != 0) return 0;
    if (!json_object_get(report, "tool_version")) return 0; /* a case that leaves out what changes; see test_cli_reports.c */
    must_fit("report", report, where);
    snprintf(own, sizeof own, "%s", name + strlen(begin));
    if (strrchr(own, '-')) *strrchr(own, '-') = '\0'; /* the version */
    json_t *rules = read_schema(own);
    if (rules) must_fit(own, report, where);
    json_decref(rules);
    return 1;
}

/* Objects stand alone between lines "{" and "}"; those with figures masked are no JSON and are left out. */
static unsigned check_text(FILE *file, const char *where)
{
    char *line = NULL, *text = NULL;
    size_t size = 0, length = 0;
    unsigned found = 0;
    FILE *object = NULL;
    while (getline(&line, &size, file) >= 0) {
        if (!object && strcmp(line, "{\n") == 0) object = open_memstream(&text, &length);
        if (object) fputs(line, object);
        if (!object || strcmp(line, "}\n") != 0) continue;
        fclose(object);
        object = NULL;
        json_t *report = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (report) found += check_report(report, where);
        json_decref(report);
        free(text);
        text = NULL;
    }
    if (object) fclose(object);
    free(text);
    free(line);
    return found;
}

static void printed_reports_fit(void **state)
{
    (void)state;
    unsigned found = 0;
    DIR *folder = opendir(cases);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s/expected", cases, entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        found += check_text(file, entry->d_name);
        fclose(file);
    }
    closedir(folder);
    assert_true(found >= 10);
}

/* --- files ---------------------------------------------------------------------------------------- */

static void jobs_files_fit(void **state)
{
    (void)state;
    unsigned found = 0;
    DIR *folder = opendir(examples);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", examples, entry->d_name);
        const char *ending = strrchr(path, '.');
        json_t *file = ending && strcmp(ending, ".json") == 0 ? json_load_file(path, 0, NULL) : NULL;
        if (json_object_get(file, "spillway_jobs")) {
            must_fit("jobs-file", file, entry->d_name);
            found++;
        }
        json_decref(file);
    }
    closedir(folder);
    assert_true(found >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_sees_mistakes),
        cmocka_unit_test(printed_reports_fit),
        cmocka_unit_test(jobs_files_fit),
    };
    return cmocka_run_group_tests_name("schemas", tests, NULL, NULL);
}
