/* Latencies are sorted once by model, for quantiles. */
#include "cli/simulate/cli_serving_report.h"

#include <gsl/gsl_statistics_double.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/order.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"

/* Ascending latencies; model m has sorted[first[m] .. first[m + 1]). */
struct latencies {
    double *sorted, *all;
    uint32_t *first;
    uint32_t count;
};

static void latencies_release(struct latencies *l)
{
    free(l->sorted);
    free(l->all);
    free(l->first);
}

static enum status latencies_make(const struct serving_report *r, struct latencies *out, struct error *err)
{
    uint32_t models = r->in->model_count;
    *out = (struct latencies){alloc_zeroed(r->traffic->count + 1, sizeof(double)),
                              alloc_zeroed(r->traffic->count + 1, sizeof(double)),
                              alloc_zeroed((size_t)models + 2, sizeof(uint32_t)), 0};
    if (!out->sorted || !out->all || !out->first) {
        latencies_release(out);
        return error_memory(err, "latencies", r->traffic->count * sizeof(double));
    }
    uint32_t *next = out->first + 1; /* becomes each model's begin */
    for (uint32_t m = 0; m < models; m++) next[m + 1] = next[m] + r->result->models[m].served;
    for (uint32_t i = 0; i < r->traffic->count; i++) {
        if (isnan(r->latency_s[i])) continue;
        out->all[out->count++] = r->latency_s[i];
        out->sorted[next[r->traffic->requests[i].model]++] = r->latency_s[i];
    }
    qsort(out->all, out->count, sizeof *out->all, order_double);
    for (uint32_t m = 0; m < models; m++)
        qsort(&out->sorted[out->first[m]], out->first[m + 1] - out->first[m], sizeof(double), order_double);
    return STATUS_OK;
}

static double quantile(const double *sorted, uint32_t count, double share)
{
    return gsl_stats_quantile_from_sorted_data(sorted, 1, count, share);
}

static double share_of(uint32_t part, uint32_t whole)
{
    return whole > 0 ? (double)part / whole : 1;
}

static double busy(const struct serving_report *r, uint32_t group)
{
    return r->result->groups[group].busy_s /
           (serving_shape_devices(r->placement->groups[group].shape) * r->in->horizon_s);
}

static uint32_t groups_of(const struct serving_report *r, uint32_t model)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < r->placement->group_count; g++)
        for (uint32_t i = 0; i < r->placement->groups[g].model_count; i++)
            count += r->placement->groups[g].models[i] == model;
    return count;
}

/* --- text ------------------------------------------------------------------------------------ */

static void time_cell(struct cli_table *table, bool there, double seconds)
{
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", there ? quantity_text(seconds, DIMENSION_SECONDS, text) : "-");
}

static enum status print_models(const struct serving_report *r, const struct latencies *l, FILE *out,
                                struct error *err)
{
    struct cli_table table;
    char text[CLI_PERCENT_BYTES];
    uint32_t shown = r->in->model_count < CLI_ROWS_MAX ? r->in->model_count : CLI_ROWS_MAX;
    cli_table_begin(&table, (const char *const[]){"MODEL", ">OBJECTIVE", ">REQUESTS", ">ATTAINED", ">MEAN", ">P50",
                                                  ">P99", ">GROUPS", NULL});
    for (uint32_t m = 0; m < shown; m++) {
        const struct serving_share *share = &r->result->models[m];
        const double *sorted = &l->sorted[l->first[m]];
        bool any = share->served > 0;
        cli_table_cell(&table, "%.40s", r->in->models[m].name);
        time_cell(&table, r->in->models[m].objective_s < HUGE_VAL, r->in->models[m].objective_s);
        cli_table_cell(&table, "%u", share->requests);
        cli_table_cell(&table, "%s", cli_percent(share_of(share->attained, share->requests), text));
        time_cell(&table, any, any ? gsl_stats_mean(sorted, 1, share->served) : 0);
        time_cell(&table, any, any ? quantile(sorted, share->served, 0.5) : 0);
        time_cell(&table, any, any ? quantile(sorted, share->served, 0.99) : 0);
        cli_table_cell(&table, "%u", groups_of(r, m));
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, r->in->model_count);
    return STATUS_OK;
}

static enum status print_groups(const struct serving_report *r, FILE *out, struct error *err)
{
    struct cli_table table;
    char text[CLI_PERCENT_BYTES];
    uint32_t shown = r->placement->group_count < CLI_ROWS_MAX ? r->placement->group_count : CLI_ROWS_MAX;
    cli_table_begin(&table, (const char *const[]){"GROUP", ">DEVICES", ">TENSOR", ">STAGES", ">MODELS", ">ANSWERED",
                                                  ">BUSY", NULL});
    for (uint32_t g = 0; g < shown; g++) {
        const struct serving_group *group = &r->placement->groups[g];
        cli_table_cell(&table, "%u", g);
        cli_table_cell(&table, "%u", serving_shape_devices(group->shape));
        cli_table_cell(&table, "%u", group->shape.tensor);
        cli_table_cell(&table, "%u", group->shape.pipeline);
        cli_table_cell(&table, "%u", group->model_count);
        cli_table_cell(&table, "%u", r->result->groups[g].served);
        cli_table_cell(&table, "%s", cli_percent(busy(r, g), text));
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, r->placement->group_count);
    return STATUS_OK;
}

static void print_totals(const struct serving_report *r, const struct latencies *l, FILE *out)
{
    char a[QUANTITY_TEXT_BYTES], b[QUANTITY_TEXT_BYTES], c[QUANTITY_TEXT_BYTES];
    uint32_t requests = r->traffic->count;
    fprintf(out, "attained    %s of %u requests (simulated); no placement exceeds %s\n",
            cli_percent(share_of(r->result->attained, requests), a), requests,
            cli_percent(share_of(r->bound, requests), b));
    if (l->count > 0)
        fprintf(out, "latency     mean %s, half within %s, 99 %% within %s, of the %u that are answered\n",
                quantity_text(gsl_stats_mean(l->all, 1, l->count), DIMENSION_SECONDS, a),
                quantity_text(quantile(l->all, l->count, 0.5), DIMENSION_SECONDS, b),
                quantity_text(quantile(l->all, l->count, 0.99), DIMENSION_SECONDS, c), l->count);
    if (r->found) {
        fprintf(out, "replicated  %s with whole models on single devices\n",
                cli_percent(share_of(r->replicated, requests), a));
        fprintf(out, "search      %s, %s; %s of the %u requests it planned for\n", CLI_COUNT(r->found->shapes, "shape"),
                CLI_COUNT(r->found->simulations, "simulation"),
                cli_percent(share_of(r->found->attained, r->planned), a), r->planned);
    }
}

enum status serving_report_text(struct cli *cli, const struct serving_report *r, struct error *err)
{
    struct latencies l;
    char memory[QUANTITY_TEXT_BYTES], span[QUANTITY_TEXT_BYTES];
    TRY(latencies_make(r, &l, err));
    fprintf(cli->out, "%s: %s on %s with %s for weights; %s in %s\n\n", r->in->name,
            CLI_COUNT(r->in->model_count, "model"), CLI_COUNT(r->in->device_count, "device"),
            quantity_text((double)r->in->device_bytes, DIMENSION_BYTES, memory),
            CLI_COUNT(r->traffic->count, "request"), quantity_text(r->in->horizon_s, DIMENSION_SECONDS, span));
    enum status status = print_models(r, &l, cli->out, err);
    fputc('\n', cli->out);
    if (!status) status = print_groups(r, cli->out, err);
    fputc('\n', cli->out);
    if (!status) print_totals(r, &l, cli->out);
    latencies_release(&l);
    if (status || !r->output) return status;
    fprintf(cli->out, "written to  %s\n", r->output);
    cli_next(cli, (const char *const[]){"serve", r->path, "--placement", r->output, NULL});
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void latency_json(const double *sorted, uint32_t count, struct json_out *json)
{
    if (count == 0) return;
    json_out_object_begin(json, "latency_s", true);
    json_out_double(json, "mean", gsl_stats_mean(sorted, 1, count));
    json_out_double(json, "p50", quantile(sorted, count, 0.5));
    json_out_double(json, "p90", quantile(sorted, count, 0.9));
    json_out_double(json, "p99", quantile(sorted, count, 0.99));
    json_out_double(json, "most", sorted[count - 1]);
    json_out_object_end(json);
}

static void models_json(const struct serving_report *r, const struct latencies *l, struct json_out *json)
{
    json_out_array_begin(json, "models", false);
    for (uint32_t m = 0; m < r->in->model_count; m++) {
        const struct serving_share *share = &r->result->models[m];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", r->in->models[m].name);
        if (r->in->models[m].objective_s < HUGE_VAL)
            json_out_double(json, "objective_s", r->in->models[m].objective_s);
        json_out_u64(json, "requests", share->requests);
        json_out_u64(json, "attained", share->attained);
        json_out_u64(json, "answered", share->served);
        latency_json(&l->sorted[l->first[m]], share->served, json);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void groups_json(const struct serving_report *r, struct json_out *json)
{
    json_out_array_begin(json, "groups", false);
    for (uint32_t g = 0; g < r->placement->group_count; g++) {
        const struct serving_group *group = &r->placement->groups[g];
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "tensor", group->shape.tensor);
        json_out_u64(json, "pipeline", group->shape.pipeline);
        json_out_array_begin(json, "models", true);
        for (uint32_t i = 0; i < group->model_count; i++)
            json_out_string(json, NULL, r->in->models[group->models[i]].name);
        json_out_array_end(json);
        json_out_u64(json, "answered", r->result->groups[g].served);
        json_out_double(json, "busy", busy(r, g));
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

enum status serving_report_json(struct cli *cli, const struct serving_report *r, struct error *err)
{
    struct latencies l;
    struct json_out *json;
    TRY(latencies_make(r, &l, err));
    if (cli_report_begin(cli, "serve", &json, err)) {
        latencies_release(&l);
        return err->status;
    }
    json_out_string(json, "file", r->path);
    if (r->output) json_out_string(json, "placement_file", r->output);
    json_out_string(json, "name", r->in->name);
    json_out_u64(json, "devices", r->in->device_count);
    json_out_u64(json, "device_bytes", r->in->device_bytes);
    json_out_double(json, "horizon_s", r->in->horizon_s);
    json_out_u64(json, "seed", r->seed);
    json_out_bool(json, "admit_all", r->admit_all);
    json_out_u64(json, "requests", r->traffic->count);
    json_out_u64(json, "attained", r->result->attained);
    json_out_double(json, "attainment", share_of(r->result->attained, r->traffic->count));
    json_out_u64(json, "bound", r->bound);
    json_out_u64(json, "work_bound", r->work_bound);
    if (r->placement_bound.known) json_out_u64(json, "placement_bound", r->placement_bound.attained);
    latency_json(l.all, l.count, json);
    if (r->found) {
        json_out_u64(json, "replicated", r->replicated);
        json_out_object_begin(json, "search", true);
        json_out_u64(json, "shapes", r->found->shapes);
        json_out_u64(json, "simulations", r->found->simulations);
        json_out_u64(json, "requests", r->planned);
        json_out_u64(json, "attained", r->found->attained);
        json_out_object_end(json);
    }
    models_json(r, &l, json);
    groups_json(r, json);
    latencies_release(&l);
    return cli_report_end(cli, json, err);
}
