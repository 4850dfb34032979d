/* For plans and instances that are dispatched live. */
#include "cli/reports/cli_simulated.h"

#include <inttypes.h>

#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"
#include "cli/ways/cli_predict.h"

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double operations_per_s(const struct sim_result *result)
{
    return ratio((double)(result->operations - result->skipped), result->wall_s);
}

enum status cli_simulated_check(const struct cli_simulated *s, uint32_t devices, double *compute_share,
                                struct error *err)
{
    double busy_s = 0;
    for (uint32_t i = 0; i < s->trace->stream_count; i++) {
        char what[160];
        snprintf(what, sizeof what, "the use of stream '%s'", s->trace->streams[i].name);
        TRY(cli_check_peak(what, s->result->streams[i].busy_s, s->result->makespan_s, err));
        if (s->trace->streams[i].kind == STREAM_COMPUTE) busy_s += s->result->streams[i].busy_s;
    }
    *compute_share = ratio(busy_s, s->result->makespan_s * devices);
    return STATUS_OK;
}

/* --- text ------------------------------------------------------------------------------------ */

static enum status print_streams(FILE *out, const struct cli_simulated *s, struct error *err)
{
    const struct trace *trace = s->trace;
    const struct sim_result *result = s->result;
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"STREAM", ">BUSY", ">OF THE TIME",
                                                  ">OPERATIONS", NULL});
    uint32_t shown = trace->stream_count < CLI_ROWS_MAX ? trace->stream_count : CLI_ROWS_MAX;
    for (uint32_t i = 0; i < shown; i++) {
        const struct sim_stream_use *use = &result->streams[i];
        cli_table_cell(&table, "%s", trace->streams[i].name);
        cli_table_cell(&table, "%s", quantity_text(use->busy_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%.1f %%", 100 * ratio(use->busy_s, result->makespan_s));
        cli_table_cell(&table, "%" PRIu64, use->operations);
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, trace->stream_count);
    return STATUS_OK;
}

/* Counts each node's storage as a link. */
static uint32_t link_count(const struct hardware *hardware)
{
    return hardware->link_count + hardware_storage_count(hardware);
}

static struct hardware_link link_at(const struct hardware *hardware, uint32_t index)
{
    if (index < hardware->link_count) return hardware->links[index];
    return (struct hardware_link){.name = "storage",
                                  .bandwidth = {.value = hardware_storage_rate(hardware)}};
}

static enum status print_links(FILE *out, const struct cli_simulated *s, struct error *err)
{
    const struct sim_result *result = s->result;
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"LINK", ">BANDWIDTH", ">TO DEVICES", ">BACK",
                                                  ">IN USE", ">SATURATED", NULL});
    uint32_t links = link_count(s->hardware), shown = links < CLI_ROWS_MAX ? links : CLI_ROWS_MAX;
    for (uint32_t l = 0; l < shown; l++) {
        const struct hardware_link link = link_at(s->hardware, l);
        const struct sim_link_use *use = &result->links[l];
        cli_table_cell(&table, "%s", link.name);
        cli_table_cell(&table, "%s", quantity_text(link.bandwidth.value, DIMENSION_BYTES_PER_S,
                                                   text));
        cli_table_cell(&table, "%s", quantity_text(use->bytes[0], DIMENSION_BYTES, text));
        cli_table_cell(&table, "%s", quantity_text(use->bytes[1], DIMENSION_BYTES, text));
        cli_table_cell(&table, "%.1f %%", 100 * ratio(use->busy_s, result->makespan_s));
        cli_table_cell(&table, "%.1f %%", 100 * ratio(use->saturated_s, result->makespan_s));
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, links);
    return STATUS_OK;
}

enum status cli_simulated_tables(FILE *out, const struct cli_simulated *s, struct error *err)
{
    TRY(print_streams(out, s, err));
    fputc('\n', out);
    TRY(print_links(out, s, err));
    if (s->hardware->link_count > 0) fputc('\n', out);
    return STATUS_OK;
}

void cli_simulated_end(FILE *out, const struct cli_simulated *s)
{
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES];
    fprintf(out, "bound by    %s\n", s->result->binds);
    fprintf(out, "simulated   %s operations in %s, %.3g operations/s\n",
            quantity_text((double)(s->result->operations - s->result->skipped), DIMENSION_COUNT_OF, text),
            quantity_text(s->result->wall_s, DIMENSION_SECONDS, other), operations_per_s(s->result));
    if (s->result->skipped > 0)
        fprintf(out, "steady      %s more repeat earlier operations, which is proven\n",
                quantity_text((double)s->result->skipped, DIMENSION_COUNT_OF, text));
}

enum status cli_simulated_print(struct cli *cli, const struct cli_simulated *s, double compute_share,
                                const char *trace_path, struct error *err)
{
    char text[QUANTITY_TEXT_BYTES];
    TRY(cli_simulated_tables(cli->out, s, err));
    fprintf(cli->out, "makespan    %s on '%s' (predicted); compute %.1f %% busy\n",
            quantity_text(s->result->makespan_s, DIMENSION_SECONDS, text), s->hardware->name, 100 * compute_share);
    cli_simulated_end(cli->out, s);
    cli_trace_written(cli, trace_path);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

void cli_simulated_json(struct json_out *json, const struct cli_simulated *s)
{
    const struct sim_result *result = s->result;
    const struct trace *trace = s->trace;
    json_out_array_begin(json, "streams", false);
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", trace->streams[i].name);
        json_out_double(json, "busy_s", result->streams[i].busy_s);
        json_out_double(json, "utilisation", ratio(result->streams[i].busy_s, result->makespan_s));
        json_out_u64(json, "operations", result->streams[i].operations);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "links", false);
    for (uint32_t l = 0; l < link_count(s->hardware); l++) {
        const struct hardware_link link = link_at(s->hardware, l);
        const struct sim_link_use *use = &result->links[l];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", link.name);
        json_out_double(json, "bandwidth_bytes_per_s", link.bandwidth.value);
        json_out_double(json, "to_device_bytes", use->bytes[0]);
        json_out_double(json, "to_host_bytes", use->bytes[1]);
        json_out_double(json, "busy_s", use->busy_s);
        json_out_double(json, "saturated_s", use->saturated_s);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

void cli_simulated_speed_json(struct json_out *json, const struct cli_simulated *s)
{
    json_out_u64(json, "operations", s->result->operations);
    if (s->result->skipped > 0) json_out_u64(json, "operations_not_simulated", s->result->skipped);
    json_out_double(json, "wall_s", s->result->wall_s);
    json_out_double(json, "operations_per_s", operations_per_s(s->result));
}

/* --- caching allocators ----------------------------------------------------------------------- */

static uint64_t held_back(const struct sim_reserved *r) { return r->reserved_peak_bytes - r->allocated_peak_bytes; }

void cli_simulated_reserved(FILE *out, const struct cli_simulated *s)
{
    const struct sim_reserved *all = s->result->reserved;
    char a[QUANTITY_TEXT_BYTES], b[QUANTITY_TEXT_BYTES];
    uint32_t worst = 0, lacking = 0;
    if (!all) return;
    for (uint32_t d = 0; d < s->hardware->device_count; d++) {
        if (held_back(&all[d]) > held_back(&all[worst])) worst = d;
        lacking += all[d].short_bytes > 0;
    }
    fprintf(out, "allocator   reserves %s of device %u for %s in use, %.1f %% more",
            quantity_text((double)all[worst].reserved_peak_bytes, DIMENSION_BYTES, a), worst,
            quantity_text((double)all[worst].allocated_peak_bytes, DIMENSION_BYTES, b),
            all[worst].allocated_peak_bytes > 0
                ? 100 * (double)held_back(&all[worst]) / (double)all[worst].allocated_peak_bytes : 0);
    if (lacking > 0) fprintf(out, "; beyond the memory of %u of the devices", lacking);
    fputc('\n', out);
}

void cli_simulated_reserved_json(struct json_out *json, const struct cli_simulated *s)
{
    if (!s->result->reserved) return;
    json_out_array_begin(json, "reserved", false);
    for (uint32_t d = 0; d < s->hardware->device_count; d++) {
        const struct sim_reserved *r = &s->result->reserved[d];
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "allocated_peak_bytes", r->allocated_peak_bytes);
        json_out_u64(json, "reserved_peak_bytes", r->reserved_peak_bytes);
        json_out_u64(json, "segments", r->segments);
        json_out_u64(json, "given_back", r->given_back);
        json_out_u64(json, "short_bytes", r->short_bytes);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}
