/* Requests from a file: the requests that are read, and the errors of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "sim/serving/arrivals_file.h"
#include "sim/serving/serving_io.h"
#include "sim/serving/traffic.h"
#include "tests/support/support_folder.h"

static void lines_are_requests(void **state)
{
    (void)state;
    static const char text[] = "# seconds, model\n0.25 1\n\n 0.5\t0 # the first again\r\n0.5,2\n1e0 , 1\n3 1";
    struct arena arena = {0};
    struct serving_traffic traffic[3];
    struct error err = {0};
    assert_int_equal(arrivals_parse("t", text, &arena, 3, traffic, &err), STATUS_OK);
    assert_int_equal(traffic[0].time_count, 1);
    assert_int_equal(traffic[1].time_count, 3);
    assert_int_equal(traffic[2].time_count, 1);
    assert_true(traffic[0].times[0] == 0.5 && traffic[2].times[0] == 0.5);
    assert_true(traffic[1].times[0] == 0.25 && traffic[1].times[1] == 1 && traffic[1].times[2] == 3);
    for (int m = 0; m < 3; m++) assert_int_equal(traffic[m].process, TRAFFIC_TIMES);
    assert_int_equal(arrivals_parse("t", "1\n2 0\n2", &arena, 1, traffic, &err), STATUS_OK);
    assert_int_equal(traffic[0].time_count, 3);
    assert_int_equal(arrivals_parse("t", "", &arena, 2, traffic, &err), STATUS_OK);
    assert_int_equal(traffic[0].time_count + traffic[1].time_count, 0);
    arena_release(&arena);
}

static const struct {
    const char *text, *message;
    uint32_t models;
} refused[] = {
    {"0.5\nabc\n", "t:2:1: found 'abc' (expected seconds, 0 to 1e9)", 1},
    {" -1 0", "t:1:2: found '-1' (expected seconds, 0 to 1e9)", 1},
    {"nan", "t:1:1: found 'nan' (expected seconds, 0 to 1e9)", 1},
    {"2e9", "t:1:1: found '2e9' (expected seconds, 0 to 1e9)", 1},
    {"1 0\n2\n", "t:2:2: found nothing (expected a model's number, 0 to 2)", 3},
    {"1 3", "t:1:3: found '3' (expected a model's number, 0 to 2)", 3},
    {"1,x", "t:1:3: found 'x' (expected a model's number, 0 to 2)", 3},
    {"1x", "t:1:2: found 'x' (expected a model's number, 0 to 0)", 1},
    {"1,\n", "t:1:3: found nothing (expected a model's number, 0 to 1)", 2},
    {"1 0 7", "t:1:5: found '7' (expected the end of the line)", 1},
    {"1\n# no\n 0.5", "t:3:2: 0.5 comes after 1 (expected ascending times)", 1},
    {"1 99999999999999999999999999999999999999999999999999",
     "t:1:3: found '9999999999999999999999999999999999999999' (expected a model's number, 0 to 1)", 2},
};

static void lines_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct arena arena = {0};
        struct serving_traffic traffic[3];
        struct error err = {0};
        assert_int_equal(arrivals_parse("t", refused[i].text, &arena, refused[i].models, traffic, &err),
                         STATUS_BAD_INPUT);
        assert_string_equal(err.text, refused[i].message);
        arena_release(&arena);
    }
}

struct folder {
    char path[SUPPORT_FOLDER_BYTES], problem[96], arrivals[96];
};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(struct folder *out)
{
    support_folder_make(out->path);
    snprintf(out->problem, sizeof out->problem, "%s/serving.json", out->path);
    snprintf(out->arrivals, sizeof out->arrivals, "%s/requests.txt", out->path);
    write_text(out->problem, "{\"spillway_serving\": 1, \"devices\": 1, \"memory\": \"4 B\", \"horizon\": \"10s\",\n"
                             " \"models\": [{\"name\": \"m\", \"count\": 2, \"latency\": \"1s\", "
                             "\"weights\": \"1 B\",\n"
                             "   \"arrivals\": {\"file\": \"requests.txt\"}}]}");
}

static void remove_folder(const struct folder *folder)
{
    unlink(folder->problem);
    unlink(folder->arrivals);
    support_folder_remove(folder->path);
}

/* The file is found relative to the problem; messages have the places in both files. */
static void files_are_beside_the_problem(void **state)
{
    (void)state;
    struct folder folder;
    struct serving in = {0};
    struct traffic traffic;
    struct error err = {0};
    char expected[400];
    make_folder(&folder);
    write_text(folder.arrivals, "0.5 1\n2 0\n9 1\n12 0\n");
    if (serving_read(folder.problem, NULL, &in, &err)) fail_msg("%s", err.text);
    assert_int_equal(traffic_make(&in, 0, 2, &traffic, &err), STATUS_OK); /* twice the requests: in half the time */
    assert_int_equal(traffic.count, 4);
    assert_true(traffic.requests[0].at_s == 0.25 && traffic.requests[0].model == 1);
    assert_true(traffic.requests[3].at_s == 6 && traffic.requests[3].model == 0);
    traffic_release(&traffic);
    serving_release(&in);
    write_text(folder.arrivals, "0.5 1\n2 2\n");
    assert_int_equal(serving_read(folder.problem, NULL, &in, &err), STATUS_BAD_INPUT);
    snprintf(expected, sizeof expected, "%s:3:25: %s:2:3: found '2' (expected a model's number, 0 to 1)",
             folder.problem, folder.arrivals);
    assert_string_equal(err.text, expected);
    serving_release(&in);
    unlink(folder.arrivals);
    err = (struct error){0};
    assert_int_equal(serving_read(folder.problem, NULL, &in, &err), STATUS_BAD_INPUT);
    snprintf(expected, sizeof expected, "%s:3:25: ", folder.problem);
    assert_memory_equal(err.text, expected, strlen(expected));
    assert_non_null(strstr(err.text, "requests.txt"));
    serving_release(&in);
    remove_folder(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_requests),
        cmocka_unit_test(lines_are_refused),
        cmocka_unit_test(files_are_beside_the_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
