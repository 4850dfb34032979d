/* `simulate` and `trace show` print the same tables. The column of losses is printed only if a job has one. */
#include "cli/common/cli_trace.h"

#include <inttypes.h>

#include "base/try.h"
#include "cli/common/cli_table.h"
#include "models/job/job.h"

void cli_more_rows(FILE *out, uint32_t shown, uint32_t count)
{
    if (shown < count) fprintf(out, "... and %" PRIu32 " more, all of them with --json\n", count - shown);
}

static uint32_t rows(uint32_t count)
{
    return count < CLI_ROWS_MAX ? count : CLI_ROWS_MAX;
}

static bool has_losses(const struct trace *trace)
{
    for (uint32_t j = 0; j < trace->job_count; j++)
        if (trace->jobs[j].has_loss) return true;
    return false;
}

enum status cli_trace_jobs(FILE *out, const struct trace *trace, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    const bool losses = has_losses(trace), tokens = trace_unit(trace) == JOB_TOKENS;
    const char *const texts[] = {"JOB", ">TOKENS/S", ">SAMPLES/S", ">START", ">END", ">MINIBATCHES",
                                 losses ? ">LAST LOSS" : NULL, NULL};
    const char *const images[] = {"JOB", ">SAMPLES/S", ">START", ">END", ">MINIBATCHES", losses ? ">LAST LOSS" : NULL,
                                  NULL};
    cli_table_begin(&table, tokens ? texts : images);
    for (uint32_t j = 0; j < rows(trace->job_count); j++) {
        const struct trace_job *job = &trace->jobs[j];
        cli_table_cell(&table, "%s", job->name);
        if (tokens) cli_table_cell(&table, "%.4g", trace_job_tokens_per_s(trace, j));
        cli_table_cell(&table, "%.4g", trace_job_samples_per_s(trace, j));
        cli_table_cell(&table, "%s", quantity_text(job->start_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(job->end_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%" PRIu64, job->minibatches);
        if (losses && job->has_loss) cli_table_cell(&table, "%.4f", job->final_loss);
        else if (losses) cli_table_cell(&table, "-");
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, rows(trace->job_count), trace->job_count);
    return STATUS_OK;
}

void cli_trace_written(struct cli *cli, const char *path)
{
    if (!path) return;
    fprintf(cli->out, "written to  %s\n", path);
    cli_next(cli, (const char *const[]){"plot", "timeline", path, "-o", "timeline.svg", NULL});
}

enum status cli_trace_places(FILE *out, const struct trace *trace, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"MEMORY", ">PEAK", ">OF", ">USED", ">FIRST AT",
                                                  NULL});
    for (uint32_t p = 0; p < rows(trace->place_count); p++) {
        const struct trace_place *place = &trace->places[p];
        double peak = (double)place->peak_bytes, most = (double)place->capacity_bytes;
        cli_table_cell(&table, "%s", place->name);
        cli_table_cell(&table, "%s", quantity_text(peak, DIMENSION_BYTES, text));
        cli_table_cell(&table, "%s", quantity_text(most, DIMENSION_BYTES, text));
        cli_table_cell(&table, "%.1f %%", most > 0 ? 100 * peak / most : 0);
        cli_table_cell(&table, "%s", quantity_text(place->peak_time_s, DIMENSION_SECONDS, text));
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, rows(trace->place_count), trace->place_count);
    return STATUS_OK;
}

void cli_trace_jobs_json(struct json_out *json, const struct trace *trace)
{
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < trace->job_count; j++) {
        const struct trace_job *job = &trace->jobs[j];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", job->name);
        json_out_double(json, "tokens_per_s", trace_job_tokens_per_s(trace, j));
        json_out_double(json, "samples_per_s", trace_job_samples_per_s(trace, j));
        json_out_u64(json, "tokens", job->tokens);
        json_out_u64(json, "samples", job->samples);
        json_out_u64(json, "minibatches", job->minibatches);
        json_out_double(json, "start_s", job->start_s);
        json_out_double(json, "end_s", job->end_s);
        if (job->has_loss) json_out_double(json, "final_loss", job->final_loss);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

double cli_samples_per_s(const struct trace *trace)
{
    double samples = 0;
    for (uint32_t j = 0; j < trace->job_count; j++) samples += (double)trace->jobs[j].samples;
    return trace->makespan_s > 0 ? samples / trace->makespan_s : 0;
}
