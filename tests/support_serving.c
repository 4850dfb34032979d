#include "tests/support_serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "serving/placement_search.h"
#include "serving/serving_io.h"
#include "tests/support_json.h"

enum status support_serving_parse(const char *text, struct serving *out, struct error *err)
{
    struct json_input *input;
    enum status status = test_json_parse(text, &input, err);
    if (!status) status = serving_parse(input, NULL, out, err);
    json_input_destroy(input);
    return status;
}

void support_serving(struct serving *out, const char *format, ...)
{
    char text[4096];
    struct error err = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    *out = (struct serving){0};
    if (support_serving_parse(text, out, &err)) fail_msg("%s", err.text);
}

void support_serving_cuts(struct serving *in, struct serving_cuts *out)
{
    struct serving_shape *shapes;
    struct error err = {0};
    uint32_t count;
    assert_int_equal(placement_shapes(&in->arena, in, &shapes, &count, &err), STATUS_OK);
    assert_int_equal(serving_cuts_make(&in->arena, in, shapes, count, out, &err), STATUS_OK);
}

/* One simulation; latencies must be released. */
uint32_t support_serve(const struct serving_cuts *cuts, const struct serving_placement *placement,
                         const struct traffic *traffic, bool admit_all, double **latency_s)
{
    struct arena arena = {0};
    struct error err = {0};
    struct server *server;
    struct serve_result result;
    *latency_s = calloc(traffic->count + 1, sizeof **latency_s);
    struct serve_options options = {admit_all, *latency_s};
    assert_int_equal(server_create(&arena, cuts, cuts->in->device_count, &server, &err), STATUS_OK);
    assert_int_equal(server_run(server, placement, traffic, &options, &result, &err), STATUS_OK);
    server_destroy(server);
    arena_release(&arena);
    return result.attained;
}
