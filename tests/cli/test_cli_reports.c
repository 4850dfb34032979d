/*
 * What `--json` promises: each verb prints one object with its keys, and the numbers in it fit
 * together. Verbs are called in this process, on jobs small enough to plan in milliseconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "tests/support/support_folder.h"

/* Two jobs of 860 k parameters; a device of 6 MiB holds neither (adamw: 10.3 MB of state). */
static const char jobs_text[] =
    "{\"spillway_jobs\": 1,\n"
    " \"defaults\": {\"network\": \"gpt2-tiny-bytes\", \"sequence\": 32, \"microbatch\": 2},\n"
    " \"jobs\": [{\"name\": \"a\", \"minibatches\": 3}, {\"name\": \"b\", \"minibatches\": 5}]}\n";

static char folder[SUPPORT_FOLDER_BYTES];

static int enter_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    if (chdir(folder) != 0) return -1;
    FILE *file = fopen("jobs.json", "w");
    if (!file || fputs(jobs_text, file) < 0 || fclose(file) != 0) return -1;
    return setenv("XDG_CONFIG_HOME", folder, 1);
}

static int leave_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"jobs.json", "plan.json", "p.json.gz", "chrome.json.gz",
                                        "hw.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

/* --- calling verbs ---------------------------------------------------------------------------- */

enum { WORDS_MAX = 32 };

/* Returns the output of a command line, whose words are separated by spaces; the caller frees it. */
static char *run_verb(const char *line, enum status expected)
{
    char copy[512], *words[WORDS_MAX];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word && count < WORDS_MAX - 1; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    char *text = NULL;
    size_t length = 0;
    struct error err = {0};
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    enum status status = cli_dispatch(count, words, out, &err);
    assert_int_equal(fclose(out), 0);
    if (status != expected) fail_msg("'%s' ended with %d: %s", line, (int)status, err.text);
    return text;
}

static json_t *run_json(const char *line)
{
    char *text = run_verb(line, STATUS_OK);
    json_error_t why;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!root) fail_msg("'%s': not JSON: %s", line, why.text);
    free(text);
    assert_true(json_is_string(json_object_get(root, "schema")));
    assert_true(json_is_string(json_object_get(root, "tool_version")));
    assert_true(json_is_string(json_object_get(root, "verb")));
    assert_true(json_is_array(json_object_get(root, "warnings")));
    return root;
}

/* Checks "error" of a command that ends with `expected`; the caller frees the root. */
static json_t *run_json_error(const char *line, enum status expected)
{
    static const char *const names[] = {[STATUS_INFEASIBLE] = "infeasible", [STATUS_CHECK] = "check",
                                        [STATUS_BAD_INPUT] = "bad-input"};
    char *text = run_verb(line, expected);
    json_error_t why;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!root) fail_msg("'%s': not JSON: %s", line, why.text);
    free(text);
    const json_t *error = json_object_get(root, "error");
    assert_true(json_is_object(error));
    assert_string_equal(json_string_value(json_object_get(error, "status")), names[expected]);
    assert_int_equal(json_integer_value(json_object_get(error, "exit_code")), expected == STATUS_BAD_INPUT ? 2 : 1);
    assert_true(strlen(json_string_value(json_object_get(error, "message"))) > 0);
    assert_true(json_is_array(json_object_get(root, "warnings")));
    return root;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("there is no number '%s'", key);
    return json_number_value(value);
}

static const char *string(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) fail_msg("there is no string '%s'", key);
    return json_string_value(value);
}

static const json_t *array(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_array(value)) fail_msg("there is no array '%s'", key);
    return value;
}

#define MACHINE "--hw host-2-cores --devices 2 --device-memory 6MiB --link-rate 2GB/s"

/* --- errors ----------------------------------------------------------------------------------- */

/* Whatever goes wrong, --json has one object on standard output. */
static void errors_are_json_too(void **state)
{
    (void)state;
    const char *const lines[] = {
        "plan none.json " MACHINE " --json", "modles --json", "models --json", "plan --json --nonsense",
        "plan --nonsense --json", "mem gpt2 --hw rtx-none --json", "--json",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        json_t *root = run_json_error(lines[i], STATUS_BAD_INPUT);
        assert_string_equal(string(root, "schema"), "spillway-error-1");
        json_decref(root);
    }
    json_t *root = run_json_error("plan none.json " MACHINE " --json", STATUS_BAD_INPUT);
    assert_string_equal(string(root, "verb"), "plan");
    assert_string_equal(string(json_object_get(root, "error"), "message"),
                        "cannot open 'none.json': No such file or directory");
    json_decref(root);
    char *text = run_verb("plan none.json " MACHINE, STATUS_BAD_INPUT);
    assert_string_equal(text, "");
    free(text);
}

/* An answer that is "no" keeps its numbers, and says so. */
static void no_keeps_its_numbers(void **state)
{
    (void)state;
    json_t *root = run_json_error("mem gpt2-xl --hw v100-sxm2-16gb --device-memory 64MiB --way dp=1 --json",
                                  STATUS_INFEASIBLE);
    assert_string_equal(string(root, "schema"), "spillway-mem-1");
    json_decref(root);
}

static void the_version_is_json_too(void **state)
{
    (void)state;
    char *text = run_verb("--version --json", STATUS_OK);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(string(root, "schema"), "spillway-version-1");
    assert_string_equal(string(root, "tool_version"), SPILLWAY_VERSION);
    assert_null(json_object_get(root, "error"));
    json_decref(root);
    free(text);
    json_decref(run_json_error("--version --json more", STATUS_BAD_INPUT));
}

/* --- verbs ------------------------------------------------------------------------------------ */

static void models_list_counts_parameters(void **state)
{
    (void)state;
    json_t *root = run_json("models list --json");
    bool found = false;
    size_t i;
    json_t *model;
    json_array_foreach(array(root, "models"), i, model)
    {
        if (strcmp(string(model, "name"), "gpt2") != 0) continue;
        found = true; /* 124 439 808: see models/network/network.c for the sum */
        assert_true(number(model, "parameter_count") == 124439808);
    }
    assert_true(found);
    json_decref(root);
}

static void models_show_adds_up(void **state)
{
    (void)state;
    json_t *root = run_json("models show gpt2 --json --microbatch 3 --sequence 100");
    assert_string_equal(string(root, "schema"), "spillway-models-show-1");
    assert_true(number(root, "parameter_count") == 124439808);
    static const char *const keys[] = {"parameter_count", "forward_flops", "backward_flops",
                                       "parameter_bytes", "gradient_bytes", "optimizer_bytes",
                                       "activation_bytes"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        double sum = 0;
        size_t i;
        json_t *layer;
        json_array_foreach(array(root, "layers"), i, layer) sum += number(layer, keys[k]);
        assert_true(fabs(sum - number(root, keys[k])) <= 1e-12 * sum);
    }
    assert_int_equal(json_array_size(array(root, "layers")), 14);
    assert_true(number(root, "parameter_bytes") == 4 * 124439808.0);
    assert_true(number(root, "optimizer_bytes") == 8 * 124439808.0);
    /* 300 rows of 768 words of 4 bytes go from layer to layer */
    assert_true(number(root, "boundary_bytes") == 300 * 768 * 4);
    json_decref(root);

    root = run_json("models show gpt2 --json --precision bf16 --optimizer sgd");
    /* all weights have a master, and what goes from layer to layer has 16 bits */
    assert_true(number(root, "parameter_bytes") == 2 * 124439808.0);
    assert_true(number(root, "gradient_bytes") == 4 * 124439808.0);
    assert_true(number(root, "optimizer_bytes") == 4 * 124439808.0);
    json_decref(root);

    root = run_json("models show gpt2 --json --precision bf16-weights --optimizer sgd");
    /* vectors stay fp32: 9984 in each of 12 blocks, 1536 in the head; of the others there is a master */
    const double vectors = 12 * 9984 + 1536, matrices = 124439808 - vectors;
    assert_true(number(root, "parameter_bytes") == 2 * matrices + 4 * vectors);
    assert_true(number(root, "gradient_bytes") == 4 * 124439808.0);
    assert_true(number(root, "optimizer_bytes") == 4 * matrices);
    json_decref(root);
}

static void hardware_show_is_a_hardware_file(void **state)
{
    (void)state;
    json_decref(run_json("hardware list --json"));
    json_t *root = run_json("hardware show rtx-3090-24gb --json");
    assert_true(json_array_size(array(root, "values")) > 5);
    const json_t *hardware = json_object_get(root, "hardware");
    assert_int_equal(json_dump_file(hardware, "hw.json", 0), 0);
    json_decref(root);
    root = run_json("hardware check hw.json --json");
    assert_true(json_is_true(json_object_get(root, "ok")));
    json_decref(root);
}

static void plan_stays_above_its_bound(void **state)
{
    (void)state;
    json_t *root = run_json("plan jobs.json " MACHINE " -o plan.json --json");
    double makespan_s = number(root, "makespan_s"), bound_s = number(root, "lower_bound_s");
    assert_true(bound_s > 0);
    assert_true(makespan_s >= bound_s);
    assert_true(fabs(number(root, "gap") - (makespan_s / bound_s - 1)) < 1e-12);
    assert_true(number(root, "estimated_makespan_s") > 0);
    const json_t *proof = json_object_get(root, "proof");
    assert_true(strlen(string(proof, "kind")) > 0);
    assert_true(strlen(string(proof, "text")) > 0);
    assert_int_equal(json_array_size(array(root, "jobs")), 2);
    assert_int_equal(json_array_size(array(root, "places")), 3);
    const json_t *place = json_array_get(array(root, "places"), 1);
    assert_true(number(place, "planned_bytes") <= number(place, "capacity_bytes"));
    assert_true(number(place, "capacity_bytes") == 6 * 1024 * 1024);
    const json_t *job = json_array_get(array(root, "jobs"), 0);
    assert_true(number(job, "shard_count") > 1);
    assert_true(number(job, "largest_shard_bytes") < number(place, "capacity_bytes"));
    /* jobs a and b: 3 + 5 minibatches of 2 x 32 tokens */
    assert_true(fabs(number(root, "tokens_per_s") * makespan_s - 8 * 2 * 32) < 1e-6);
    json_decref(root);
}

static void plan_all_names_the_best(void **state)
{
    (void)state;
    json_t *root = run_json("plan jobs.json " MACHINE " --policy all --json");
    double best_s = INFINITY;
    const char *best = NULL;
    size_t i;
    json_t *policy;
    json_array_foreach(array(root, "policies"), i, policy)
    {
        if (!json_is_true(json_object_get(policy, "feasible"))) {
            assert_true(strlen(string(policy, "reason")) > 0);
            continue;
        }
        double utilisation = number(policy, "compute_utilisation");
        assert_true(utilisation > 0 && utilisation <= 1);
        if (number(policy, "makespan_s") >= best_s) continue;
        best_s = number(policy, "makespan_s");
        best = string(policy, "policy");
    }
    assert_string_equal(string(root, "best_policy"), best);
    assert_string_equal(string(root, "policy"), best);
    assert_true(number(root, "makespan_s") == best_s);
    json_decref(root);
}

static void simulate_stays_within_what_is_possible(void **state)
{
    (void)state;
    free(run_verb("plan jobs.json " MACHINE " -o plan.json --quiet", STATUS_OK));
    json_t *root = run_json("simulate plan.json --trace p.json.gz --json");
    double makespan_s = number(root, "makespan_s");
    size_t i;
    json_t *item;
    json_array_foreach(array(root, "jobs"), i, item)
    {
        assert_true(number(item, "tokens_per_s") > 0);
        assert_true(number(item, "samples_per_s") > 0);
    }
    json_array_foreach(array(root, "places"), i, item)
    {
        assert_true(number(item, "peak_bytes") <= number(item, "capacity_bytes"));
        assert_true(number(item, "peak_time_s") <= makespan_s);
    }
    json_array_foreach(array(root, "streams"), i, item)
    {
        double utilisation = number(item, "utilisation");
        assert_true(utilisation >= 0 && utilisation <= 1 + 1e-9);
    }
    assert_int_equal(json_array_size(array(root, "streams")), 8);
    json_array_foreach(array(root, "links"), i, item)
    {
        double most = number(item, "bandwidth_bytes_per_s") * makespan_s * (1 + 1e-9);
        assert_true(number(item, "to_device_bytes") <= most);
        assert_true(number(item, "to_host_bytes") <= most);
    }
    assert_true(strlen(string(root, "binds")) > 0);
    assert_true(number(root, "operations") > 0);
    assert_true(number(root, "wall_s") >= 0);
    number(root, "operations_per_s");
    json_decref(root);

    root = run_json("trace show p.json.gz --json");
    assert_string_equal(string(root, "source"), "predicted");
    assert_true(number(root, "makespan_s") == makespan_s);
    json_decref(root);
    root = run_json("trace export p.json.gz -o chrome.json.gz --json");
    assert_true(number(root, "file_bytes") > 0);
    json_decref(root);
    /* Two predictions are no comparison. */
    free(run_verb("compare p.json.gz p.json.gz", STATUS_BAD_INPUT));
}

static void equal_input_gives_equal_output(void **state)
{
    (void)state;
    static const char *const lines[] = {"plan jobs.json " MACHINE " --policy all",
                                        "plan jobs.json " MACHINE " --policy random --seed 7 --json",
                                        "help --json"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *first = run_verb(lines[i], STATUS_OK), *second = run_verb(lines[i], STATUS_OK);
        assert_string_equal(first, second);
        free(second);
        free(first);
    }
}

static void help_lists_every_command(void **state)
{
    (void)state;
    json_t *root = run_json("help --json");
    size_t rows = 0;
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) rows++;
    assert_int_equal(json_array_size(array(root, "commands")), rows);
    json_decref(root);
    root = run_json("help models --json");
    assert_int_equal(json_array_size(array(root, "commands")), 2);
    json_decref(root);
    root = run_json("help models show --json");
    assert_int_equal(json_array_size(array(root, "commands")), 1);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_json_too),
        cmocka_unit_test(no_keeps_its_numbers),
        cmocka_unit_test(the_version_is_json_too),
        cmocka_unit_test(models_list_counts_parameters),
        cmocka_unit_test(models_show_adds_up),
        cmocka_unit_test(hardware_show_is_a_hardware_file),
        cmocka_unit_test(plan_stays_above_its_bound),
        cmocka_unit_test(plan_all_names_the_best),
        cmocka_unit_test(simulate_stays_within_what_is_possible),
        cmocka_unit_test(equal_input_gives_equal_output),
        cmocka_unit_test(help_lists_every_command),
    };
    return cmocka_run_group_tests_name("cli reports", tests, enter_folder, leave_folder);
}
