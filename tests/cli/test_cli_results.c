/* Ranks of jobs: what decides, what comes last, and which columns there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cli/reports/cli_results.h"

static char *printed_in(const struct cli_result *results, uint32_t count, enum job_unit unit)
{
    char *text = NULL;
    size_t length = 0;
    struct error err = {0};
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_int_equal(cli_results_print(out, results, count, unit, &err), STATUS_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static char *printed(const struct cli_result *results, uint32_t count)
{
    return printed_in(results, count, JOB_TOKENS);
}

static void images_are_no_tokens(void **state)
{
    (void)state;
    const struct cli_result results[] = {{.name = "vit", .tokens_per_s = 1700, .rate = 100, .seconds = 2}};
    char *text = printed_in(results, ARRAY_COUNT(results), JOB_IMAGES);
    assert_non_null(strstr(text, "IMAGES/S"));
    assert_non_null(strstr(text, " 100 "));
    assert_null(strstr(text, "TOKENS"));
    assert_null(strstr(text, "1700"));
    free(text);
}

static void the_last_loss_decides(void **state)
{
    (void)state;
    const struct cli_result results[] = {
        {.name = "none", .tokens_per_s = 1, .rate = 1, .seconds = 2},
        {.name = "done", .complete_before = true, .has_loss = true, .final_loss = 4.5},
        {.name = "worse", .has_loss = true, .final_loss = 3.5, .tokens_per_s = 120.5, .rate = 120.5, .seconds = 61},
        {.name = "diverged", .nonfinite = true, .tokens_per_s = 99, .rate = 99, .seconds = 7},
        {.name = "better", .has_loss = true, .final_loss = 3.25, .tokens_per_s = 80, .rate = 80, .seconds = 9,
         .weights_path = "w"},
        {.name = "equal", .has_loss = true, .final_loss = 3.5,
         .evaluation = {.some = true, .last_finite = true, .best = 1, .best_step = 20, .last = 2},
         .tokens_per_s = 10, .rate = 10, .seconds = 8},
    };
    char *text = printed(results, ARRAY_COUNT(results));
    assert_string_equal(
        text,
        "RANK  JOB       BEST EVALUATION  AFTER STEP  LAST EVALUATION   LAST LOSS  TOKENS/S       TIME  WEIGHTS\n"
        "   1  better                  -           -                -      3.2500        80        9 s  w\n"
        "   2  worse                   -           -                -      3.5000     120.5  1 min 1 s\n"
        "   3  equal              1.0000          20           2.0000      3.5000        10        8 s\n"
        "   4  done                    -           -                -      4.5000    before          -\n"
        "   5  none                    -           -                -           -         1        2 s\n"
        "   6  diverged                -           -                -  not finite        99        7 s\n");
    free(text);
}

static void held_out_losses_decide_when_all_have_one(void **state)
{
    (void)state;
    const struct cli_result results[] = {
        {.name = "a", .has_loss = true, .final_loss = 1.5,
         .evaluation = {.some = true, .last_finite = true, .best = 2.5, .best_step = 30, .last = 2.75},
         .tokens_per_s = 10, .rate = 10, .seconds = 8},
        {.name = "b", .has_loss = true, .final_loss = 2.5,
         .evaluation = {.some = true, .last_finite = true, .best = 2.25, .best_step = 20, .last = 2.5,
                        .weights_path = "w.best"},
         .tokens_per_s = 20, .rate = 20, .seconds = 4,
         .weights_path = "w"},
    };
    char *text = printed(results, ARRAY_COUNT(results));
    assert_string_equal(
        text,
        "RANK  JOB  BEST EVALUATION  AFTER STEP  LAST EVALUATION  LAST LOSS  TOKENS/S  TIME  WEIGHTS\n"
        "   1  b             2.2500          20           2.5000     2.5000        20   4 s  w.best, w\n"
        "   2  a             2.5000          30           2.7500     1.5000        10   8 s\n");
    free(text);

    struct error err = {0};
    struct json_out *json = json_out_create(NULL);
    json_out_object_begin(json, NULL, false);
    assert_int_equal(cli_results_json(json, results, 2, &err), STATUS_OK);
    json_out_object_end(json);
    assert_true(json_out_complete(json));
    size_t length;
    const char *data = json_out_text(json, &length);
    json_t *root = json_loadb(data, length, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(root, "ranked_by")), "best_evaluation");
    const json_t *first = json_array_get(json_object_get(root, "results"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "b");
    assert_int_equal(json_integer_value(json_object_get(first, "best_step")), 20);
    json_decref(root);
    json_out_destroy(json);
}

static void without_evaluations_there_are_no_columns_for_them(void **state)
{
    (void)state;
    const struct cli_result result = {
        .name = "a", .has_loss = true, .final_loss = 1.5, .tokens_per_s = 10, .rate = 10, .seconds = 8};
    char *text = printed(&result, 1);
    assert_string_equal(text, "RANK  JOB  LAST LOSS  TOKENS/S  TIME\n"
                              "   1  a       1.5000        10   8 s\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_no_tokens),
        cmocka_unit_test(the_last_loss_decides),
        cmocka_unit_test(held_out_losses_decide_when_all_have_one),
        cmocka_unit_test(without_evaluations_there_are_no_columns_for_them),
    };
    return cmocka_run_group_tests_name("cli/reports/cli_results.h", tests, NULL, NULL);
}
