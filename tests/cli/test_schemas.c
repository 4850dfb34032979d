/* docs/schemas: the tests' checker finds each kind of mistake, in made-up and in real values. check_schemas.sh and
 * check_cli_golden.sh compare the output and the files of the verbs with the schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/common/cli.h"
#include "cli/explain/causes.h"
#include "models/cost/collective.h"
#include "models/job/job.h"
#include "models/jobs/job_keys.h"
#include "planner/plan.h"
#include "planner/solve/instance/instance.h"
#include "tests/support/support_schema.h"

static json_t *must_parse(const char *text)
{
    json_error_t why;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &why);
    if (!value) fail_msg("'%s': %s", text, why.text);
    return value;
}

static json_t *must_read_schemas(void)
{
    json_t *schemas = support_schemas_read(SOURCE_DIR "/docs/schemas");
    assert_non_null(schemas);
    assert_true(json_object_size(schemas) > 50);
    return schemas;
}

/* --- the checker ------------------------------------------------------------------------------- */

static void check_tries(const char *schemas_text, const char *const (*tries)[2], size_t count)
{
    json_t *schemas = must_parse(schemas_text);
    for (size_t i = 0; i < count; i++) {
        char why[512] = "";
        json_t *value = must_parse(tries[i][0]);
        assert_int_equal(support_schema_fits(schemas, "one", value, why, sizeof why), tries[i][1] == NULL);
        assert_string_equal(why, tries[i][1] ? tries[i][1] : "");
        json_decref(value);
    }
    json_decref(schemas);
}

static void the_checker_sees_mistakes(void **state)
{
    (void)state;
    static const char schemas[] =
        "{\"one\": {\"type\": \"object\", \"required\": [\"a\"], \"additionalProperties\": false, \"properties\": {"
        "\"a\": {\"type\": [\"integer\", \"null\"], \"minimum\": 2, \"maximum\": 9}, \"b\": {\"enum\": [\"x\", 7]}, "
        "\"c\": {\"const\": true},\"d\": {\"type\": \"array\", \"minItems\": 1, \"maxItems\": 2, "
        "\"items\": {\"type\": \"string\", \"pattern\": \"^y+$\"}},\"e\": {\"exclusiveMinimum\": 0}}}}";
    static const char *const tries[][2] = {
        {"{\"a\": 2}", NULL},
        {"{\"a\": 3.0}", NULL}, /* whole, as in draft 2020-12 */
        {"{\"a\": null, \"b\": 7, \"c\": true, \"d\": [\"y\", \"yy\"], \"e\": 0.5}", NULL},
        {"[]", "the root: another type"},
        {"{}", "the root: missing key 'a'"},
        {"{\"a\": 1}", "/a: below the minimum"},
        {"{\"a\": 10}", "/a: above the maximum"},
        {"{\"a\": 2.5}", "/a: another type"},
        {"{\"a\": 2, \"f\": 1}", "/f: unknown key"},
        {"{\"a\": 2, \"b\": \"z\"}", "/b: none of the values"},
        {"{\"a\": 2, \"c\": false}", "/c: another value"},
        {"{\"a\": 2, \"d\": []}", "/d: too few items"},
        {"{\"a\": 2, \"d\": [\"y\", \"y\", \"y\"]}", "/d: too many items"},
        {"{\"a\": 2, \"d\": [\"y\", \"n\"]}", "/d/1: another pattern"},
        {"{\"a\": 2, \"e\": 0}", "/e: below the minimum"},
    };
    check_tries(schemas, tries, ARRAY_COUNT(tries));
}

static void the_checker_follows_references_and_alternatives(void **state)
{
    (void)state;
    static const char schemas[] =
        "{\"one\": {\"properties\": {\"far\": {\"$ref\": \"other.schema.json#/$defs/text\"}, "
        "\"near\": {\"$ref\": \"#/$defs/count\"},\"whole\": {\"$ref\": \"other.schema.json\"}, "
        "\"none\": {\"$ref\": \"#/$defs/nothing\"},\"any\": {\"anyOf\": [{\"type\": \"string\"}, {\"enum\": [4]}]}, "
        "\"bad\": {\"uniqueItems\": true}},\"additionalProperties\": {\"type\": \"boolean\"}, "
        "\"$defs\": {\"count\": {\"type\": \"integer\"}}},\"other\": {\"type\": \"array\", "
        "\"$defs\": {\"text\": {\"type\": \"string\"}}}}";
    static const char *const tries[][2] = {
        {"{\"far\": \"t\", \"near\": 3, \"whole\": [], \"any\": 4, \"more\": true}", NULL},
        {"{\"any\": \"t\"}", NULL},
        {"{\"far\": 3}", "/far: another type"},
        {"{\"near\": \"t\"}", "/near: another type"},
        {"{\"whole\": {}}", "/whole: another type"},
        {"{\"none\": 1}", "/none: the schema refers to nothing: '#/$defs/nothing'"},
        {"{\"any\": 5}", "/any: none of the values"},
        {"{\"bad\": []}", "/bad: the schema has a rule that is not checked: 'uniqueItems'"},
        {"{\"more\": 1}", "/more: another type"},
    };
    check_tries(schemas, tries, ARRAY_COUNT(tries));
}

/* --- mistakes in files that fit ---------------------------------------------------------------- */

/* Sets the value at a path such as "jobs/0/name" and gives back whether the file still fits. NULL deletes the key. */
static bool fits_with(const json_t *schemas, const char *file, const char *path, const char *value, char why[512])
{
    char copy[256], name[128], *last = copy;
    json_t *root = json_load_file(file, 0, NULL), *at = root;
    assert_non_null(root);
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash; (slash = strchr(last, '/')) != NULL; last = slash + 1) {
        *slash = '\0';
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(last)) : json_object_get(at, last);
        assert_non_null(at);
    }
    if (value) json_object_set_new(at, last, must_parse(value));
    else assert_int_equal(json_object_del(at, last), 0);
    assert_non_null(support_schema_name(root, name, sizeof name));
    const bool fits = support_schema_fits(schemas, name, root, why, 512);
    json_decref(root);
    return fits;
}

/* A missing key, a wrong type, an unknown key and a value that is none of a list, in a file of each kind that is
 * shipped. */
static void mistakes_in_shipped_files_are_found(void **state)
{
    (void)state;
    static const char examples[] = SOURCE_DIR "/docs/examples/", papers[] = SOURCE_DIR "/plots/papers/",
                      problems[] = SOURCE_DIR "/docs/instances/";
    static const struct {
        const char *folder, *file, *path, *value, *why;
    } tries[] = {
        {examples, "jobs.json", "jobs", NULL, "the root: missing key 'jobs'"},
        {examples, "jobs.json", "jobs/0/minibatches", "\"ten\"", "/jobs/0/minibatches: another type"},
        {examples, "jobs.json", "jobs/0/rounds", "3", "/jobs/0/rounds: unknown key"},
        {examples, "jobs.json", "jobs/0/data_format", "\"parquet\"", "/jobs/0/data_format: none of the values"},
        {examples, "parallel.json", "jobs/0/parallel", "{\"tensors\": 2}", "/jobs/0/parallel/tensors: unknown key"},
        {examples, "serving.json", "horizon", NULL, "the root: missing key 'horizon'"},
        {examples, "serving.json", "horizon", "\"9 parsecs\"", "/horizon: another pattern"},
        {examples, "swarm.json", "wiring", "\"star\"", "/wiring: none of the values"},
        {examples, "failures.json", "spares", "-1", "/spares: below the minimum"},
        {problems, "tight-1.json", "jobs/0/units/0/compute", NULL, "/jobs/0/units/0: missing key 'compute'"},
        {problems, "best/tight-1.json", "value", "1.5", "/value: another type"},
        {papers, "hydra-fig8-text.json", "kind", "\"pie\"", "/kind: none of the values"},
        {papers, "hydra-fig8-text.json", "paper/year", "2022", "/paper/year: unknown key"},
        {papers, "hydra-fig8-text.json", "claims/0/holds", NULL, "/claims/0: missing key 'holds'"},
        {examples, "gpt-tiny/config.json", "model_type", "\"gpt5\"", "/model_type: none of the values"},
    };
    json_t *schemas = must_read_schemas();
    for (size_t i = 0; i < ARRAY_COUNT(tries); i++) {
        char file[512], why[512] = "";
        snprintf(file, sizeof file, "%s%s", tries[i].folder, tries[i].file);
        if (fits_with(schemas, file, tries[i].path, tries[i].value, why))
            fail_msg("%s: nobody saw %s", file, tries[i].path);
        assert_string_equal(why, tries[i].why);
    }
    json_decref(schemas);
}

/* --- required keys ------------------------------------------------------------------------------ */

/* One file, its schema, and how often a required key of it was deleted. */
struct sweep {
    const json_t *schemas;
    json_t *root;
    const char *file;
    unsigned deleted;
};

static const json_t *follow(const struct sweep *sweep, const json_t *schema, const json_t **home)
{
    const char *reference;
    while ((reference = json_string_value(json_object_get(schema, "$ref"))) != NULL) {
        const char *end = strstr(reference, ".schema.json"), *inside = strstr(reference, "#/$defs/");
        char name[128];
        snprintf(name, sizeof name, "%.*s", end ? (int)(end - reference) : 0, reference);
        if (end) *home = json_object_get(sweep->schemas, name);
        schema = inside ? json_object_get(json_object_get(*home, "$defs"), inside + strlen("#/$defs/")) : *home;
    }
    return schema;
}

/* Checks that the reader refuses the file and names the key. */
static void must_miss(const struct sweep *sweep, const char *key)
{
    static const char path[] = "missing-key.json";
    static char check[] = "check", file[] = "missing-key.json";
    char *words[] = {check, file, NULL}, *text = NULL, named[128];
    size_t length = 0;
    struct error err = {0};
    assert_int_equal(json_dump_file(sweep->root, path, JSON_INDENT(1)), 0);
    FILE *out = open_memstream(&text, &length);
    const enum status status = cli_dispatch(2, words, out, &err);
    fclose(out);
    free(text);
    assert_int_equal(unlink(path), 0);
    snprintf(named, sizeof named, "'%s'", key);
    if (status != STATUS_BAD_INPUT || !strstr(err.text, "missing key") || !strstr(err.text, named))
        fail_msg("%s without '%s': %s", sweep->file, key, status == STATUS_OK ? "is taken" : err.text);
}

/* Deletes each required key that the schema knows and puts it back. Only the first element of an array is tried. */
static void delete_required(struct sweep *sweep, const json_t *schema, const json_t *home, json_t *value)
{
    schema = follow(sweep, schema, &home);
    if (json_is_array(value) && json_array_size(value) > 0 && json_object_get(schema, "items"))
        delete_required(sweep, json_object_get(schema, "items"), home, json_array_get(value, 0));
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; json_is_object(value) && i < json_array_size(required); i++) {
        const char *key = json_string_value(json_array_get(required, i));
        json_t *kept = json_copy(value), *child;
        const bool marks = strncmp(key, "spillway_", strlen("spillway_")) == 0; /* the reader cannot recognise the
                                                                                   file without it */
        if (!marks) {
            json_object_del(value, key);
            must_miss(sweep, key);
            json_object_clear(value);
            json_object_update(value, kept); /* in the same order */
            sweep->deleted++;
        }
        child = json_object_get(value, key);
        delete_required(sweep, json_object_get(json_object_get(schema, "properties"), key), home, child);
        json_decref(kept);
    }
}

/* The reader requires every key that a schema requires: it never replaces a missing key by a stand-in's value
 * (json_in.h). */
static void readers_miss_each_required_key(void **state)
{
    (void)state;
    static const char *const files[] = {
        "docs/examples/serving.json", "docs/examples/swarm.json",      "docs/examples/failures.json",
        "docs/examples/jobs.json",    "docs/examples/saturn-txt.json", "docs/instances/tight-1.json",
        "plots/papers/hydra-fig8-text.json", "tests/fuzz/corpus/hardware/measured.json",
        "tests/fuzz/corpus/plan/stored.json", "tests/fuzz/corpus/trace/scene.json",
    "tests/fuzz/corpus/chain/three.json"};
    json_t *schemas = must_read_schemas();
    unsigned deleted = 0;
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        char path[512], name[128];
        snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, files[i]);
        struct sweep sweep = {.schemas = schemas, .root = json_load_file(path, 0, NULL), .file = files[i]};
        if (!sweep.root) fail_msg("%s cannot be read", path);
        assert_non_null(support_schema_name(sweep.root, name, sizeof name));
        const json_t *schema = json_object_get(schemas, name);
        delete_required(&sweep, schema, schema, sweep.root);
        deleted += sweep.deleted;
        json_decref(sweep.root);
    }
    assert_true(deleted > 50);
    json_decref(schemas);
}

/* --- words ---------------------------------------------------------------------------------------- */

/* Returns true when the list has the word. */
static bool lists(const json_t *list, const char *word)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), word) == 0) return true;
    return false;
}

/* A list of words in a schema has the program's table, and `more` words. */
static void must_list(const json_t *schemas, const char *name, const char *path, const char *const *table, size_t count,
                      size_t more)
{
    char copy[128], *step = copy;
    const json_t *at = json_object_get(schemas, name);
    snprintf(copy, sizeof copy, "%s", path);
    for (char *next; step; step = next) {
        next = strchr(step, '/');
        if (next) *next++ = '\0';
        at = json_object_get(at, step);
    }
    if (json_array_size(at) != count + more)
        fail_msg("%s: %s has %zu words (expected %zu)", name, path, json_array_size(at), count + more);
    for (size_t i = 0; i < count; i++)
        if (!lists(at, table[i])) fail_msg("%s: %s does not have '%s'", name, path, table[i]);
}

static void words_are_those_of_the_program(void **state)
{
    (void)state;
    json_t *schemas = must_read_schemas();
    static const char job[] = "$defs/defaults/properties/parallel/properties/";
    char path[128];
#define PARALLEL(key, table, count, more) \
    (snprintf(path, sizeof path, "%s%s/enum", job, key), must_list(schemas, "jobs-file", path, table, count, more))
    PARALLEL("collective", collective_algorithm_names, COLLECTIVE_ALGORITHM_COUNT, 1); /* "fastest" */
    PARALLEL("schedule", pipeline_schedule_names, PIPELINE_SCHEDULE_COUNT, 0);
    PARALLEL("recompute", recompute_names, RECOMPUTE_COUNT, 0);
    must_list(schemas, "jobs-file", "$defs/defaults/properties/data_format/enum", data_format_names, DATA_FORMAT_COUNT,
              0);
    must_list(schemas, "network-file", "properties/model_type/enum", network_family_names, NETWORK_FAMILY_COUNT, 0);
    must_list(schemas, "models-list", "properties/models/items/properties/model_type/enum", network_family_names,
              NETWORK_FAMILY_COUNT, 0);
    must_list(schemas, "plan-file", "properties/bound/properties/kind/enum", plan_bound_names, BOUND_KIND_COUNT, 0);
    must_list(schemas, "plan-file", "properties/units/items/properties/pass/enum", plan_pass_names, PLAN_PASS_COUNT, 0);
    must_list(schemas, "plan-file", "properties/units/items/properties/ops/items/properties/collective/enum",
              collective_kind_names, COLLECTIVE_KIND_COUNT, 0);
    must_list(schemas, "trace-file", "properties/streams/items/properties/kind/enum", plan_stream_names,
              STREAM_KIND_COUNT, 0);
    must_list(schemas, "instance-file", "properties/objective/enum", instance_objective_names, OBJECTIVE_COUNT, 0);
    must_list(schemas, "explain", "properties/causes/items/properties/cause/enum", explain_cause_names,
              EXPLAIN_CAUSE_COUNT, 0);
    json_decref(schemas);
}

/* Each key of a job is in the schema, for jobs and for defaults. */
static void keys_of_jobs_are_those_of_the_program(void **state)
{
    (void)state;
    json_t *schemas = must_read_schemas();
    const json_t *defs = json_object_get(json_object_get(schemas, "jobs-file"), "$defs");
    for (size_t key = 0; key < JOB_KEY_COUNT; key++) {
        const char *name = job_key_rows[key].name;
        const json_t *in_job = json_object_get(json_object_get(json_object_get(defs, "job"), "properties"), name);
        const json_t *in_defaults = json_object_get(json_object_get(json_object_get(defs, "defaults"), "properties"),
                                                    name);
        if (!in_job || (!in_defaults && key != JOB_KEY_NAME)) fail_msg("jobs-file.schema.json has no key '%s'", name);
    }
    json_decref(schemas);
}

/* --- verbs --------------------------------------------------------------------------------------- */

struct seen {
    bool json;
};

static void look_for_json(void *context, const struct options *options)
{
    struct seen *seen = context;
    for (size_t i = 0; i < options->spec_count; i++)
        if (strcmp(options->specs[i].name, "json") == 0) seen->json = true;
}

/* Returns true if the verb is the "verb" of an answer's schema. */
static bool has_schema(const json_t *schemas, const char *verb)
{
    const char *name;
    json_t *schema;
    json_object_foreach((json_t *)schemas, name, schema)
    {
        const json_t *rule = json_object_get(json_object_get(schema, "properties"), "verb");
        const char *only = json_string_value(json_object_get(rule, "const"));
        if (only && strcmp(only, verb) == 0) return true;
        for (size_t i = 0; i < json_array_size(json_object_get(rule, "enum")); i++)
            if (strcmp(json_string_value(json_array_get(json_object_get(rule, "enum"), i)), verb) == 0) return true;
    }
    return false;
}

static void each_verb_with_json_has_a_schema(void **state)
{
    (void)state;
    json_t *schemas = must_read_schemas();
    unsigned found = 0;
    assert_false(has_schema(schemas, "dance"));
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        static char word[] = "look";
        char *words[] = {word, NULL}, command[CLI_COMMAND_BYTES];
        struct seen seen = {false};
        struct error err = {0};
        struct cli cli = {.verb = verb, .look = look_for_json, .look_context = &seen};
        assert_int_equal(verb->run(&cli, 1, words, &err), STATUS_OK);
        const char *name = cli_command(verb, command) + strlen("spillway ");
        if (!seen.json || strcmp(name, "completion") == 0) continue; /* a script has no JSON form */
        if (!has_schema(schemas, name)) fail_msg("no schema in docs/schemas has the verb '%s'", name);
        found++;
    }
    assert_true(found > 35);
    json_decref(schemas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_sees_mistakes),
        cmocka_unit_test(the_checker_follows_references_and_alternatives),
        cmocka_unit_test(mistakes_in_shipped_files_are_found),
        cmocka_unit_test(readers_miss_each_required_key),
        cmocka_unit_test(words_are_those_of_the_program),
        cmocka_unit_test(keys_of_jobs_are_those_of_the_program),
        cmocka_unit_test(each_verb_with_json_has_a_schema),
    };
    return cmocka_run_group_tests_name("schemas", tests, NULL, NULL);
}
