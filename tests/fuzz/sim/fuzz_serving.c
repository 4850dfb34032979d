/*
 * Serving problems on any bytes: refused with a message, or requests that can be made, placed and simulated,
 * within the bound, by a placement that writes itself as a text that reads back to the same text.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/json/json_out.h"
#include "sim/placement/placement_bound.h"
#include "sim/placement/placement_search.h"
#include "sim/placement/serving_bound.h"
#include "sim/serving/serving_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger files are only read. */
enum { MODELS_MAX = 12, DEVICES_MAX_HERE = 16, REQUESTS_MAX_HERE = 2000, LAYERS_MAX_HERE = 64 };

struct problem {
    struct serving in;
    struct serving_placement placement;
};

static bool is_small(const struct serving *in)
{
    double requests = 0;
    for (uint32_t m = 0; m < in->model_count; m++)
        requests += in->models[m].traffic.rate * in->horizon_s + in->models[m].traffic.time_count;
    for (uint32_t k = 0; k < in->kind_count; k++)
        if (in->kinds[k].layer_count > LAYERS_MAX_HERE) return false;
    return requests < REQUESTS_MAX_HERE && in->model_count <= MODELS_MAX && in->device_count <= DEVICES_MAX_HERE;
}

static void place(struct problem *problem)
{
    struct serving *in = &problem->in;
    struct traffic traffic;
    struct serving_cuts cuts;
    struct serving_shape *shapes;
    struct placement_found found;
    struct placement_search_options options = {.simulations = 20};
    struct placement_bound placed;
    struct error err = {0};
    uint32_t count, bound;
    if (!is_small(in)) return;
    enum status status = traffic_make(in, 1, 1, &traffic, &err);
    if (!status) status = placement_shapes(&in->arena, in, &shapes, &count, &err);
    if (!status) status = serving_cuts_make(&in->arena, in, shapes, count, &cuts, &err);
    if (!status) status = serving_bound(in, &traffic, &bound, &err);
    if (!status) status = placement_bound(in, &traffic, &placed, &err);
    if (!status) status = placement_search(&in->arena, &cuts, &traffic, &options, &found, &err);
    if (!status) status = placement_check(&cuts, &found.placement, &err);
    assert(status == STATUS_OK && found.attained <= bound && bound <= traffic.count);
    assert(!placed.known || found.attained <= placed.attained);
    problem->placement = found.placement;
    traffic_release(&traffic);
}

/* The text of a placement, read and written again. */
static void check_placement(struct problem *problem)
{
    struct error err = {0};
    struct json_input *input;
    struct serving_placement again;
    struct json_out *first = json_out_create(NULL), *second = json_out_create(NULL);
    size_t length;
    assert(first && second);
    placement_write_json(&problem->in, &problem->placement, first);
    const char *text = json_out_text(first, &length);
    enum status status = json_input_parse("fuzz", text, length, &input, &err);
    if (!status) status = placement_parse(input, &problem->in, &again, &err);
    assert(status == STATUS_OK);
    placement_write_json(&problem->in, &again, second);
    assert(strcmp(text, json_out_text(second, &length)) == 0);
    json_input_destroy(input);
    json_out_destroy(first);
    json_out_destroy(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {0};
    struct error err = {0};
    struct json_input *input = NULL;
    enum status status = json_input_parse("fuzz", (const char *)data, size, &input, &err);
    if (!status) status = serving_parse(input, NULL, &problem.in, &err);
    json_input_destroy(input);
    if (status == STATUS_OK) {
        place(&problem);
        check_placement(&problem);
    } else {
        assert(err.status == status && strncmp(err.text, "fuzz:", strlen("fuzz:")) == 0);
    }
    serving_release(&problem.in);
    return 0;
}
