#include "tests/support/sim/support_serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "sim/placement/placement_search.h"
#include "sim/serving/serving_io.h"
#include "tests/support/support_json.h"

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

struct draws {
    uint64_t seed, next;
};

static uint32_t below(struct draws *d, uint32_t bound) { return (uint32_t)random_below(d->seed, d->next++, bound); }
static double unit(struct draws *d) { return random_unit(d->seed, d->next++); }

void support_serving_random(struct serving *out, uint64_t seed, uint64_t drawn, bool objectives)
{
    struct draws d = {seed, drawn};
    char objective[2][48] = {"", ""};
    for (int i = 0; i < 2 && objectives; i++)
        snprintf(objective[i], sizeof objective[i], "'objective_scale': %.3f, ", 1 + 4 * unit(&d));
    support_serving(out,
                    "{'spillway_serving': 1, 'devices': %u, 'memory': '%u B', 'horizon': '20s', 'overhead': '%.1fms', "
                    "'models': [{'name': 'a', 'count': %u, 'latency': '%.4fs', 'layers': %u, 'weights': '12 B', "
                    "'hop': '%.4fs', 'tensor': {'2': '%.4fs'}, %s'skew': %.2f, "
                    "'arrivals': {'process': 'gamma', 'rate': %.3f, 'cv': 2}}, "
                    "{'name': 'b', 'latency': '%.4fs', 'layers': 4, 'weights': '20 B', %s"
                    "'arrivals': {'process': '%s', 'rate': %.3f}}]}",
                    1 + below(&d, 4), 20 + below(&d, 60), 10 * unit(&d), 1 + below(&d, 3), 0.2 + unit(&d),
                    1 + below(&d, 6), 0.05 * unit(&d), 0.1 + 0.6 * unit(&d), objective[0], 2 * unit(&d),
                    1 + 2 * unit(&d), 0.2 + unit(&d), objective[1], below(&d, 2) ? "even" : "poisson",
                    0.3 + unit(&d));
}

void support_serving_cuts(struct serving *in, struct serving_cuts *out)
{
    struct serving_shape *shapes;
    struct error err = {0};
    uint32_t count;
    assert_int_equal(placement_shapes(&in->arena, in, &shapes, &count, &err), STATUS_OK);
    assert_int_equal(serving_cuts_make(&in->arena, in, shapes, count, out, &err), STATUS_OK);
}

/* Runs one simulation; latencies must be released. */
uint32_t support_serve(const struct serving_cuts *cuts, const struct serving_placement *placement,
                         const struct traffic *traffic, bool admit_all, double **latency_s)
{
    struct arena arena = {0};
    struct error err = {0};
    struct serve_state *server;
    struct serve_result result;
    *latency_s = calloc(traffic->count + 1, sizeof **latency_s);
    struct serve_options options = {admit_all, *latency_s};
    assert_int_equal(serve_create(&arena, cuts, cuts->in->device_count, &server, &err), STATUS_OK);
    assert_int_equal(serve_requests(server, placement, traffic, &options, &result, &err), STATUS_OK);
    serve_destroy(server);
    arena_release(&arena);
    return result.attained;
}

void support_serving_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g is not within %g of %.17g", a, tolerance, b);
}
