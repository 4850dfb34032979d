/*
 * Results of `plan`, `simulate` and `run` are compared with physical limits: a stream is busy for at most the
 * makespan, a link carries at most its bandwidth times the makespan, a place holds at most its capacity, devices
 * compute at most at their peak, and no plan ends before its lower bound. An excess is a fault of this program or of
 * the profile, and an error.
 */
#include "cli/ways/cli_predict.h"

#include <string.h>

#include "base/process/progress.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli_trace.h"
#include "planner/plan_flops.h"

/* Sums of millions of doubles differ in their last digits. */
static const double rounding = 1e-6;

enum status cli_check_peak(const char *what, double part, double whole, struct error *err)
{
    if (part <= whole * (1 + rounding)) return STATUS_OK;
    return error_set(err, STATUS_CHECK,
                     "%s would be %.1f %% of its limit (%g of %g): a figure of the machine "
                     "is wrong, see 'spillway hardware check'",
                     what, whole > 0 ? 100 * part / whole : 100.0, part, whole);
}

double cli_best_matmul_flops_per_s(const struct compute_profile *profile)
{
    double best = 0;
    for (uint32_t k = KERNEL_MATMUL_FORWARD; k <= KERNEL_MATMUL_WEIGHT; k++)
        for (uint32_t p = 0; p < profile->kernels[k].point_count; p++) {
            const struct rate_point *point = &profile->kernels[k].points[p];
            struct work_item item = {
                .kernel = k, .count = 1, .m = point->m, .n = point->n, .k = point->k};
            double rate = work_item_flops(&item) / point->seconds;
            if (rate > best) best = rate;
        }
    return best;
}

/*
 * Adds up peaks. Host devices each have the peak of the host's cores. If it was measured on a busy machine, it may be
 * below the rates of single devices, which are then used.
 */
double cli_peak_flops_per_s(const struct plan *plan, const struct hardware *hardware)
{
    bool shared = strcmp(hardware->backend, "host") == 0;
    double sum = 0, largest = 0, seen = 0;
    for (uint32_t d = 0; d < hardware->device_count; d++) {
        const struct compute_profile *profile = hardware_profile(hardware, d);
        double peak = plan_peak_flops_per_s(plan, &hardware->types[hardware->devices[d].type]);
        if (!(peak > 0)) return 0;
        sum += peak;
        if (peak > largest) largest = peak;
        if (profile) seen += cli_best_matmul_flops_per_s(profile);
    }
    if (!shared) return sum;
    return seen > largest ? seen : largest;
}

static enum status check_links(const struct hardware *hardware, const struct sim_result *result,
                               struct error *err)
{
    for (uint32_t l = 0; l < hardware->link_count; l++) {
        const struct hardware_link *link = &hardware->links[l];
        const struct sim_link_use *use = &result->links[l];
        double most = link->bandwidth.value * result->makespan_s;
        char what[160];
        snprintf(what, sizeof what, "the use of link '%s'", link->name);
        double used = use->bytes[0] > use->bytes[1] ? use->bytes[0] : use->bytes[1];
        if (!link->duplex) used = use->bytes[0] + use->bytes[1];
        TRY(cli_check_peak(what, used, most, err));
    }
    for (uint32_t i = 0; i < hardware_storage_count(hardware); i++) {
        const struct sim_link_use *use = &result->links[hardware->link_count + i];
        TRY(cli_check_peak("the use of storage", use->bytes[0] + use->bytes[1],
                           hardware_storage_rate(hardware) * result->makespan_s, err));
    }
    return STATUS_OK;
}

/* Checks the bound, which was proven for the plan's own machine without changes. */
static enum status check_bound(const struct plan *plan, double makespan_s, struct error *err)
{
    char bound[QUANTITY_TEXT_BYTES], seconds[QUANTITY_TEXT_BYTES];
    if (plan->lower_bound_s <= makespan_s * (1 + rounding)) return STATUS_OK;
    return error_set(err, STATUS_CHECK,
                     "the plan is simulated to end after %s, before its lower bound of %s: the bound is wrong (%s), "
                     "or a "
                     "figure of the machine is, see 'spillway hardware check'",
                     quantity_text(makespan_s, DIMENSION_SECONDS, seconds),
                     quantity_text(plan->lower_bound_s, DIMENSION_SECONDS, bound),
                     plan->bound_text ? plan->bound_text : "");
}

/* Checks that the trace's use of memory and its computing rates stay within the machine's peaks. */
static enum status check_trace(const struct plan *plan, const struct hardware *hardware,
                               const struct trace *trace, struct error *err)
{
    for (uint32_t p = 0; p < trace->place_count; p++) {
        const struct trace_place *place = &trace->places[p];
        char what[160];
        snprintf(what, sizeof what, "the memory in use of %s", place->name);
        TRY(cli_check_peak(what, (double)place->peak_bytes, (double)place->capacity_bytes, err));
    }
    double peak = cli_peak_flops_per_s(plan, hardware);
    if (!trace->complete || !(peak > 0)) return STATUS_OK;
    return cli_check_peak("the computing speed", plan_least_flops(plan, hardware), peak * trace->makespan_s,
                          err);
}

static enum status check(const struct plan *plan, const struct hardware *hardware,
                         const struct cli_predict_options *how, const struct cli_prediction *prediction,
                         struct error *err)
{
    const struct sim_result *result = &prediction->result;
    for (uint32_t s = 0; s < plan_stream_count(plan); s++) {
        char what[160];
        snprintf(what, sizeof what, "the use of stream '%s'", prediction->trace.streams[s].name);
        TRY(cli_check_peak(what, result->streams[s].busy_s, result->makespan_s, err));
    }
    TRY(check_links(hardware, result, err));
    if (hardware == &plan->hardware && !how->slow && !(how->noise > 0)) TRY(check_bound(plan, result->makespan_s, err));
    return check_trace(plan, hardware, &prediction->trace, err);
}

struct sim_options cli_predict_sim_options(const struct hardware *hardware, const struct cli_predict_options *how)
{
    return (struct sim_options){
        .hardware = hardware,
        .live = how->live,
        .collectives = how->collectives,
        .slow = how->slow,
        .noise = how->noise,
        .demand_first = how->demand_first,
        .seed = how->seed,
        .record_spans = how->spans,
        .writer = how->writer,
        .on_span = how->on_span,
        .spans = how->on_span_context,
        .caching = how->caching,
        .no_fold = how->every_device,
        .no_skip = how->every_device,
    };
}

const char *const cli_unit_rates[] =
    {[JOB_TOKENS] = "tokens/s", [JOB_IMAGES] = "images/s", [JOB_SAMPLES] = "samples/s"};
const char *const cli_unit_headings[] =
    {[JOB_TOKENS] = "TOKENS/S", [JOB_IMAGES] = "IMAGES/S", [JOB_SAMPLES] = "SAMPLES/S"};

enum job_unit cli_unit_of(const struct job_set *jobs)
{
    enum job_unit unit = JOB_UNIT_COUNT - 1;
    for (uint32_t j = 0; j < jobs->count; j++)
        if (job_unit(&jobs->jobs[j]) < unit) unit = job_unit(&jobs->jobs[j]);
    return unit;
}

enum status cli_predict(const struct plan *plan, const struct hardware *hardware,
                        const struct cli_predict_options *how, struct cli_prediction *out, struct error *err)
{
    struct progress progress;
    const struct cli_predict_options off = {.spans = false};
    if (!how) how = &off;
    struct sim_options options = cli_predict_sim_options(hardware, how);
    options.on_progress = progress_show;
    options.context = &progress;
    progress_begin(&progress, "simulating", (double)plan_operations(plan));
    enum status status = sim_run(plan, &options, &out->result, &out->trace, err);
    progress_end(&progress);
    if (status != STATUS_OK) return status;

    if (!hardware) hardware = &plan->hardware;
    out->tokens_per_s = trace_tokens_per_s(&out->trace);
    out->samples_per_s = cli_samples_per_s(&out->trace);
    out->model_flops = plan_model_flops(plan);
    out->hardware_flops = plan_hardware_flops(plan);
    out->least_flops = plan_least_flops(plan, hardware);
    out->peak_flops_per_s = cli_peak_flops_per_s(plan, hardware);
    double busy_s = 0;
    for (uint32_t d = 0; d < hardware->device_count; d++)
        busy_s += out->result.streams[plan_stream(plan, d, STREAM_COMPUTE)].busy_s;
    double time_s = out->result.makespan_s * (double)hardware->device_count;
    out->compute_share = time_s > 0 ? busy_s / time_s : 0;
    return check(plan, hardware, how, out, err);
}

void cli_prediction_release(struct cli_prediction *prediction)
{
    sim_result_release(&prediction->result);
    trace_release(&prediction->trace);
}
