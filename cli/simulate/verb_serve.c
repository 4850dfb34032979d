/*
 * `serve`: searches or reads a placement, and simulates it. The search uses other random requests than the report,
 * else it would know bursts in advance. Given times are equal.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/progress.h"
#include "base/size.h"
#include "base/text/number.h"
#include "base/try.h"
#include "cli/common/cli_machine.h"
#include "cli/simulate/cli_serving_report.h"
#include "sim/placement/placement_bound.h"
#include "sim/placement/serving_bound.h"
#include "sim/serving/serving_io.h"

struct request_options {
    const char *path, *placement, *output, *shape;
    struct cli_machine machine;
    uint64_t seed, iterations, batch;
    double rate_scale, objective_scale;
    double cv; /* NAN: the file's */
    bool admit_all;
};

struct serve_work {
    const struct request_options *wanted;
    struct hardware hardware;
    struct serving in;
    struct serving_shape shape; /* of all groups; 0 x 0: any */
    struct serving_cuts cuts;
    struct traffic traffic, planning;
    struct serving_placement placement;
    struct placement_found found;
    struct arena arena;
};

/* --- input ----------------------------------------------------------------------------------- */

/* Reads "2x4": two devices per stage, four stages. */
static enum status read_shape(const char *text, struct serving_shape *out, struct error *err)
{
    char first[8] = "";
    uint64_t tensor, pipeline;
    const char *x = text ? strchr(text, 'x') : NULL;
    *out = (struct serving_shape){0};
    if (!text) return STATUS_OK;
    if (x && (size_t)(x - text) < sizeof first) memcpy(first, text, (size_t)(x - text));
    if (!x || !number_read_u64(first, &tensor) || !number_read_u64(x + 1, &pipeline) || tensor < 1 ||
        tensor > SERVING_DEVICES_MAX || pipeline < 1 || pipeline > SERVING_STAGES_MAX)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--shape' is '%.40s' (expected devices of a stage x stages, such as 1x4)", text);
    *out = (struct serving_shape){(uint32_t)tensor, (uint32_t)pipeline};
    return STATUS_OK;
}

/* Replaces values of the file by options. */
static void change_models(const struct request_options *wanted, struct serving *in)
{
    for (uint32_t k = 0; k < in->kind_count; k++)
        if (wanted->batch > 0 && wanted->batch < in->kinds[k].batch_max)
            in->kinds[k].batch_max = (uint32_t)wanted->batch;
    for (uint32_t m = 0; m < in->model_count; m++) {
        struct serving_traffic *traffic = &in->models[m].traffic;
        in->models[m].objective_s *= wanted->objective_scale;
        if (isnan(wanted->cv) || (traffic->process != TRAFFIC_POISSON && traffic->process != TRAFFIC_GAMMA)) continue;
        traffic->process = TRAFFIC_GAMMA;
        traffic->cv = wanted->cv;
    }
}

static enum status read_problem(struct serve_work *w, struct error *err)
{
    const struct request_options *wanted = w->wanted;
    bool named = wanted->machine.name != NULL;
    uint64_t bytes;
    if (named) TRY(cli_machine_read(&wanted->machine, &w->hardware, err));
    TRY(serving_read(wanted->path, named ? &w->hardware : NULL, &w->in, err));
    TRY(cli_bytes(wanted->machine.device_memory_bytes, "device-memory", &bytes, err));
    if (bytes > 0) w->in.device_bytes = bytes;
    if (wanted->machine.devices > 0) w->in.device_count = (uint32_t)wanted->machine.devices;
    change_models(wanted, &w->in);
    if (serving_shape_devices(w->shape) > w->in.device_count)
        return error_set(err, STATUS_INFEASIBLE, "groups of %u x %u devices, but there are %u", w->shape.tensor,
                         w->shape.pipeline, w->in.device_count);
    if (!wanted->placement) return STATUS_OK;
    return placement_read(wanted->placement, &w->in, &w->placement, err);
}

static enum status make_cuts(struct serve_work *w, struct error *err)
{
    struct serving_shape *usual, *all;
    uint32_t count;
    TRY(placement_shapes(&w->arena, &w->in, &usual, &count, err));
    TRY(ARENA_NEW(&w->arena, count + 1 + (size_t)w->placement.group_count, all, err));
    memcpy(all, usual, count * sizeof *all);
    if (w->shape.tensor > 0) all[count++] = w->shape;
    for (uint32_t g = 0; g < w->placement.group_count; g++) {
        struct serving_shape shape = w->placement.groups[g].shape;
        uint32_t seen = 0;
        while (seen < count && !serving_shape_same(all[seen], shape)) seen++;
        if (seen == count) all[count++] = shape;
    }
    return serving_cuts_make(&w->arena, &w->in, all, count, &w->cuts, err);
}

/* --- placement ------------------------------------------------------------------------------- */

static enum status find_placement(struct serve_work *w, struct serving_shape shape, uint64_t simulations,
                                  struct placement_found *out, struct error *err)
{
    struct progress progress;
    struct placement_search_options options = {.seed = w->wanted->seed, .simulations = simulations, .shape = shape,
                                               .on_progress = progress_show, .context = &progress};
    progress_begin(&progress, "placing", (double)simulations);
    enum status status = placement_search(&w->arena, &w->cuts, &w->planning, &options, out, err);
    progress_end(&progress);
    return status;
}

static enum status simulate(struct serve_work *w, const struct serving_placement *placement, double *latency_s,
                            struct serve_state **server, struct serve_result *out, struct error *err)
{
    const struct serve_options options = {w->wanted->admit_all, latency_s};
    TRY(placement_check(&w->cuts, placement, err));
    TRY(serve_create(&w->arena, &w->cuts, w->in.device_count, server, err));
    return serve_requests(*server, placement, &w->traffic, &options, out, err);
}

/* Searches with whole models on single devices. */
static enum status replicate(struct serve_work *w, uint32_t *attained, struct error *err)
{
    struct placement_found found;
    struct serve_result result;
    struct serve_state *server = NULL;
    TRY(find_placement(w, (struct serving_shape){1, 1}, w->wanted->iterations, &found, err));
    if (!simulate(w, &found.placement, NULL, &server, &result, err)) *attained = result.attained;
    serve_destroy(server);
    return err->status;
}

static enum status write_placement(const struct serve_work *w, struct error *err)
{
    struct json_file file;
    if (!w->wanted->output) return STATUS_OK;
    TRY(json_file_begin(&file, w->wanted->output, "writing a placement", err));
    placement_write_json(&w->in, &w->placement, file.out);
    return json_file_end(&file, err);
}

/* --- the verb -------------------------------------------------------------------------------- */

static enum status prepare(struct serve_work *w, struct error *err)
{
    const struct request_options *wanted = w->wanted;
    TRY(read_shape(wanted->shape, &w->shape, err));
    TRY(read_problem(w, err));
    TRY(make_cuts(w, err));
    TRY(traffic_make(&w->in, wanted->seed, wanted->rate_scale, &w->traffic, err));
    if (wanted->placement) return STATUS_OK;
    TRY(traffic_make(&w->in, ~wanted->seed, wanted->rate_scale, &w->planning, err));
    TRY(find_placement(w, w->shape, wanted->iterations, &w->found, err));
    w->placement = w->found.placement;
    return STATUS_OK;
}

/* Bounds all placements: by the better of work, and of work and places. */
static enum status bound(const struct serve_work *w, struct serving_report *report, struct error *err)
{
    TRY(serving_bound(&w->in, &w->traffic, &report->work_bound, err));
    TRY(placement_bound(&w->in, &w->traffic, &report->placement_bound, err));
    report->bound = report->work_bound;
    if (report->placement_bound.known && report->placement_bound.attained < report->bound)
        report->bound = report->placement_bound.attained;
    return STATUS_OK;
}

static enum status answer(struct cli *cli, struct serve_work *w, struct error *err)
{
    const struct request_options *wanted = w->wanted;
    struct serve_result result;
    struct serve_state *server = NULL;
    struct serving_report report = {.path = wanted->path, .output = wanted->output, .in = &w->in,
                                    .traffic = &w->traffic, .placement = &w->placement, .result = &result,
                                    .seed = wanted->seed, .admit_all = wanted->admit_all,
                                    .found = wanted->placement ? NULL : &w->found, .planned = w->planning.count,
                                    .latency_s = alloc_zeroed(w->traffic.count + 1, sizeof(double))};
    if (!report.latency_s)
        error_memory(err, "latencies", w->traffic.count * sizeof(double));
    else if (!bound(w, &report, err) &&
             (!report.found || !replicate(w, &report.replicated, err)) &&
             !simulate(w, &w->placement, report.latency_s, &server, &result, err) && !write_placement(w, err)) {
        if ((cli->json ? serving_report_json : serving_report_text)(cli, &report, err)) {} /* the error is in err */
    }
    serve_destroy(server);
    free(report.latency_s);
    return err->status;
}

enum status verb_serve(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct request_options wanted = {.machine = CLI_MACHINE_NONE, .iterations = 1000, .rate_scale = 1,
                                     .objective_scale = 1, .cv = NAN};
    const struct option_spec specs[] = {
        CLI_MACHINE_OPTION(&wanted.machine.name,
                           "machine name ('hardware list') or file"),
        OPTION_U64("devices", 0, "N", 1, SERVING_DEVICES_MAX, &wanted.machine.devices, "number of devices to use"),
        OPTION_QUANTITY("device-memory", 0, "SIZE", DIMENSION_BYTES, &wanted.machine.device_memory_bytes,
                        "memory of each device for weights, such as 13GiB"),
        OPTION_STRING("placement", 0, "FILE", &wanted.placement, "placement to simulate (default: search for one)"),
        OPTION_STRING("shape", 0, "TxP", &wanted.shape,
                      "T devices per stage and P stages, for all groups (default: the best)"),
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_PLACEMENT, &wanted.output, "placement to write"),
        OPTION_DOUBLE("rate-scale", 0, "X", &wanted.rate_scale, "multiply the request rate by X (default 1)"),
        OPTION_DOUBLE("objective-scale", 0, "X", &wanted.objective_scale,
                      "multiply the latency objectives by X (default 1)"),
        OPTION_DOUBLE("cv", 0, "X", &wanted.cv,
                      "burstiness: coefficient of variation of the gaps between requests"),
        OPTION_U64("batch", 0, "N", 1, SERVING_BATCH_MAX, &wanted.batch,
                   "largest batch of requests; 1: no batching (default: the file's)"),
        OPTION_FLAG("admit-all", 0, &wanted.admit_all, "reject no request, however late it would be"),
        OPTION_U64("iterations", 0, "N", 0, UINT32_MAX, &wanted.iterations,
                   "simulations that the search for a placement may use (default 1000)"),
        OPTION_U64("seed", 0, "N", 0, UINT64_MAX, &wanted.seed, "random seed of requests and search (default 0)"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway serve docs/examples/serving.json",
                                          "spillway serve docs/examples/serving.json --shape 1x1 --objective-scale 2",
                                          "spillway serve models.json --hw '2x p3.16xlarge' -o placement.json", NULL},
        .details = "Trained models answer requests, each with a latency objective. Decides which models to keep on "
                   "which devices, in how many stages, and reports the share of requests that meet their objective. "
                   "The search and the report use different requests of the same processes.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    wanted.path = options.operands[0];
    if (wanted.cv < SERVING_CV_LEAST || wanted.cv > SERVING_CV_MAX)
        return error_set(err, STATUS_BAD_INPUT, "option '--cv' is %g (expected %g to %g)", wanted.cv,
                         SERVING_CV_LEAST, SERVING_CV_MAX);
    if (wanted.rate_scale <= 0 || wanted.objective_scale <= 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' is 0 (expected more)",
                         wanted.rate_scale <= 0 ? "rate-scale" : "objective-scale");
    if (wanted.placement && wanted.shape)
        return error_set(err, STATUS_BAD_INPUT, "option '--shape' is for placements that are to be found, and "
                         "'--placement' gives one");
    struct serve_work w = {.wanted = &wanted};
    if (!prepare(&w, err) && answer(cli, &w, err)) {} /* the error is in err */
    traffic_release(&w.planning);
    traffic_release(&w.traffic);
    serving_release(&w.in);
    hardware_release(&w.hardware);
    arena_release(&w.arena);
    return err->status;
}
