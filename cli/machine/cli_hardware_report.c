/*
 * Every value with its source, to judge a prediction, then links. One list of (what, value, dimension) rows is a table
 * in text and objects in JSON.
 */
#include "cli/machine/cli_hardware_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "models/hardware/collective_rate.h"

static const char *const unit_names[] = {
    [DIMENSION_BYTES] = "B",         [DIMENSION_BYTES_PER_S] = "B/s",
    [DIMENSION_SECONDS] = "s",       [DIMENSION_FLOP_PER_S] = "FLOP/s",
    [DIMENSION_WATTS] = "W",         [DIMENSION_COUNT_OF] = "ratio",
};

struct value_row {
    const char *what;
    const struct sourced_value *sourced;
    enum dimension dimension;
};

enum { TYPE_ROWS = 12 };

static void list_type(const struct device_type *type, struct value_row rows[TYPE_ROWS])
{
    const struct value_row list[TYPE_ROWS] = {
        {"memory", &type->memory_bytes, DIMENSION_BYTES},
        {"usable memory", &type->usable_bytes, DIMENSION_BYTES},
        {"peak fp32", &type->peak_fp32, DIMENSION_FLOP_PER_S},
        {"peak tf32", &type->peak_tf32, DIMENSION_FLOP_PER_S},
        {"peak bf16", &type->peak_bf16, DIMENSION_FLOP_PER_S},
        {"memory bandwidth", &type->memory_bandwidth, DIMENSION_BYTES_PER_S},
        {"matmul efficiency", &type->matmul_efficiency, DIMENSION_COUNT_OF},
        {"memory efficiency", &type->memory_efficiency, DIMENSION_COUNT_OF},
        {"launch latency", &type->launch_latency, DIMENSION_SECONDS},
        {"board power", &type->board_power, DIMENSION_WATTS},
        {type->fp32_efficiency.value > 0 ? "fp32 efficiency" : NULL, &type->fp32_efficiency, DIMENSION_COUNT_OF},
        {NULL, NULL, DIMENSION_COUNT_OF},
    };
    memcpy(rows, list, sizeof list);
}

static void value_cells(struct cli_table *table, const char *owner, const struct value_row *row)
{
    const struct sourced_value *sourced = row->sourced;
    char value[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", owner);
    cli_table_cell(table, "%s", row->what);
    if (!sourced->source) { /* only zero has none */
        cli_table_cell(table, "none");
        for (int i = 0; i < 4; i++) cli_table_cell(table, "%s", "");
        return;
    }
    cli_table_cell(table, "%s", quantity_text(sourced->value, row->dimension, value));
    if (sourced->spread > 0) cli_table_cell(table, "%.1f %%", 100 * sourced->spread);
    else cli_table_cell(table, "%s", "");
    cli_table_cell(table, "%s", source_kind_names[sourced->kind]);
    cli_table_cell(table, "%s", sourced->as_of ? sourced->as_of : "");
    cli_table_cell(table, "%s", sourced->source);
}

static uint32_t measured_kernels(const struct compute_profile *profile)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) count += profile->kernels[k].point_count > 0;
    return count;
}

static void interference_rows(const struct hardware_interference *interference, struct value_row rows[6])
{
    rows[0] = (struct value_row){"computing slowed by computing",
                                 &interference->compute_by_compute, DIMENSION_COUNT_OF};
    rows[1] = (struct value_row){"computing slowed by a copy", &interference->compute_by_copy,
                                 DIMENSION_COUNT_OF};
    rows[5] = (struct value_row){"computing slowed by a collective", &interference->compute_by_collective,
                                 DIMENSION_COUNT_OF};
    rows[2] = (struct value_row){"a copy slowed by computing", &interference->copy_by_compute,
                                 DIMENSION_COUNT_OF};
    rows[3] = (struct value_row){"a copy slowed by a copy", &interference->copy_by_copy,
                                 DIMENSION_COUNT_OF};
    rows[4] = (struct value_row){"one copy without others", &interference->copy_reference_rate,
                                 DIMENSION_BYTES_PER_S};
}

/* Beyond this a row stands for all links of a kind. */
enum { LINKS_SHOWN = 128 };

static bool same_sourced(const struct sourced_value *a, const struct sourced_value *b)
{
    return !(a->value < b->value) && !(a->value > b->value) && a->source && b->source &&
           strcmp(a->source, b->source) == 0;
}

/* Returns true for "nic-0" and "nic-1" with one value. */
static bool same_link(const struct hardware_link *a, const struct hardware_link *b)
{
    size_t kind = strcspn(a->name, "0123456789");
    return kind > 0 && strncmp(a->name, b->name, kind) == 0 && same_sourced(&a->bandwidth, &b->bandwidth) &&
           same_sourced(&a->latency, &b->latency);
}

static enum status print_values(struct cli *cli, const struct hardware *hardware,
                                struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"OF", "PROPERTY", ">VALUE", ">SPREAD", "KIND",
                                                  "AS OF", "SOURCE", NULL});
    value_cells(&table, "host",
                &(struct value_row){"memory", &hardware->host_bytes, DIMENSION_BYTES});
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        const struct device_type *type = &hardware->types[t];
        struct value_row rows[TYPE_ROWS];
        list_type(type, rows);
        for (const struct value_row *row = rows; row->what; row++)
            value_cells(&table, type->name, row);
        for (uint32_t p = 0; p < type->profile_count; p++) {
            char owner[128];
            struct value_row slow[6];
            snprintf(owner, sizeof owner, "%s, %u threads", type->name, type->profiles[p].threads);
            interference_rows(&type->profiles[p].interference, slow);
            for (size_t i = 0; i < ARRAY_COUNT(slow); i++)
                if (slow[i].sourced->source) value_cells(&table, owner, &slow[i]);
        }
    }
    for (uint32_t l = 0, last; l < hardware->link_count; l = last + 1) {
        const struct hardware_link *link = &hardware->links[l];
        char owner[128];
        for (last = l; last + 1 < hardware->link_count && hardware->link_count > LINKS_SHOWN; last++)
            if (!same_link(link, &hardware->links[last + 1])) break;
        if (last == l) snprintf(owner, sizeof owner, "link %s", link->name);
        else snprintf(owner, sizeof owner, "links %s to %s", link->name, hardware->links[last].name);
        value_cells(&table, owner,
                    &(struct value_row){"bandwidth", &link->bandwidth, DIMENSION_BYTES_PER_S});
        value_cells(&table, owner,
                    &(struct value_row){"latency", &link->latency, DIMENSION_SECONDS});
    }
    return cli_table_end(&table, cli->out, err);
}

/* Prints the shortest collective of each kind and the bytes of the largest over its seconds; nothing without
 * collectives. */
static enum status print_collectives(FILE *out, const struct hardware *hardware, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    uint32_t rows = 0;
    for (uint32_t t = 0; t < hardware->type_count; t++) rows += hardware->types[t].collective_count;
    if (rows == 0) return STATUS_OK;
    cli_table_begin(&table,
                    (const char *const[]){"MEASURED COLLECTIVES", "OF", ">MEMBERS", ">PROCESSES",
                                          ">COMPUTING MEANWHILE", ">SMALLEST", ">TAKES", ">LARGEST", ">RATE", NULL});
    for (uint32_t t = 0; t < hardware->type_count; t++)
        for (uint32_t i = 0; i < hardware->types[t].collective_count; i++) {
            const struct collective_rate *rate = &hardware->types[t].collectives[i];
            const struct copy_point *first = &rate->points[0], *last = &rate->points[rate->point_count - 1];
            cli_table_cell(&table, "%s", collective_kind_names[rate->kind]);
            cli_table_cell(&table, "%s", hardware->types[t].name);
            cli_table_cell(&table, "%" PRIu32, rate->members);
            cli_table_cell(&table, "%" PRIu32, rate->processes > 0 ? rate->processes : 1);
            cli_table_cell(&table, "%" PRIu32, rate->computing);
            cli_table_cell(&table, "%s", quantity_text((double)first->bytes, DIMENSION_BYTES, text));
            cli_table_cell(&table, "%s", quantity_text(first->seconds, DIMENSION_SECONDS, text));
            cli_table_cell(&table, "%s", quantity_text((double)last->bytes, DIMENSION_BYTES, text));
            cli_table_cell(&table, "%s",
                           quantity_text((double)last->bytes / last->seconds, DIMENSION_BYTES_PER_S, text));
        }
    TRY(cli_table_end(&table, out, err));
    fputc('\n', out);
    return STATUS_OK;
}

/* Prints points, kernels and threads. */
static void print_measured(FILE *out, const struct hardware *hardware)
{
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        const struct device_type *type = &hardware->types[t];
        for (uint32_t p = 0; p < type->profile_count; p++) {
            const struct compute_profile *profile = &type->profiles[p];
            uint32_t points = 0;
            for (uint32_t k = 0; k < KERNEL_COUNT; k++) points += profile->kernels[k].point_count;
            fprintf(out, "%s", type->name);
            if (profile->threads > 0) fprintf(out, " with %u threads", profile->threads);
            fprintf(out, ": %u points of %u kernels measured\n", points, measured_kernels(profile));
        }
        if (type->h2d_count + type->d2h_count > 0)
            fprintf(out, "%s: copies measured at %u sizes to the device, %u back\n\n", type->name,
                    type->h2d_count, type->d2h_count);
    }
}

/* --json has all. */
enum { DEVICES_SHOWN = 64 };

/* Prints host --(link, rate)-- ... -- device. */
static void print_links(FILE *out, const struct hardware *hardware)
{
    for (uint32_t d = 0; d < hardware->device_count; d++) {
        const struct hardware_device *device = &hardware->devices[d];
        char memory[QUANTITY_TEXT_BYTES];
        if (d == DEVICES_SHOWN) {
            fprintf(out, "... and %u more devices\n", hardware->device_count - d);
            return;
        }
        fputs("host", out);
        cli_networks_print_path(out, hardware, device->path, device->path_count);
        fprintf(out, " device %u (%s, %s)\n", d, hardware->types[device->type].name,
                quantity_text((double)device->memory_bytes, DIMENSION_BYTES, memory));
    }
}

enum status cli_hardware_text(struct cli *cli, const struct hardware *hardware,
                              const struct cli_route *route, struct error *err)
{
    FILE *out = cli->out;
    fprintf(out, "%s, %u %s, back end %s\n", hardware->name, hardware->device_count,
            hardware->device_count == 1 ? "device" : "devices", hardware->backend);
    if (hardware->measured_on) fprintf(out, "measured on %s\n", hardware->measured_on);
    uint32_t hosts = hardware_host_count(hardware);
    if (hardware->host_cores > 0 && hosts == 1) fprintf(out, "%u cores on the host\n", hardware->host_cores);
    if (hardware->host_cores > 0 && hosts > 1)
        fprintf(out,
                "%u cores on %u hosts, one for each node: values of the host are totals, in equal shares\n",
                hardware->host_cores, hosts);
    if (hardware->note) fprintf(out, "note: %s\n", hardware->note);
    fputc('\n', out);
    TRY(print_values(cli, hardware, err));
    fputc('\n', out);
    print_measured(out, hardware);
    TRY(print_collectives(out, hardware, err));
    fputs("links, each way where duplex:\n", out);
    print_links(out, hardware);
    TRY(cli_networks_print(out, hardware, err));
    return route ? cli_route_print(out, hardware, *route, err) : STATUS_OK;
}

static void value_json(struct json_out *json, const char *owner, const struct value_row *row)
{
    const struct sourced_value *sourced = row->sourced;
    if (!sourced->source) return;
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "of", owner);
    json_out_string(json, "name", row->what);
    json_out_double(json, "value", sourced->value);
    json_out_string(json, "unit", unit_names[row->dimension]);
    json_out_double(json, "spread", sourced->spread);
    json_out_string(json, "kind", source_kind_names[sourced->kind]);
    json_out_string(json, "source", sourced->source);
    if (sourced->as_of) json_out_string(json, "as_of", sourced->as_of);
    else json_out_null(json, "as_of");
    json_out_object_end(json);
}

enum status cli_hardware_json(struct cli *cli, const char *report, const struct hardware *hardware,
                              const struct cli_route *route, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, report, &json, err));
    json_out_string(json, "name", hardware->name);
    json_out_array_begin(json, "values", false);
    value_json(json, "host",
               &(struct value_row){"memory", &hardware->host_bytes, DIMENSION_BYTES});
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        struct value_row rows[TYPE_ROWS];
        list_type(&hardware->types[t], rows);
        for (const struct value_row *row = rows; row->what; row++)
            value_json(json, hardware->types[t].name, row);
    }
    for (uint32_t l = 0; l < hardware->link_count; l++) {
        const struct hardware_link *link = &hardware->links[l];
        value_json(json, link->name,
                   &(struct value_row){"bandwidth", &link->bandwidth, DIMENSION_BYTES_PER_S});
        value_json(json, link->name,
                   &(struct value_row){"latency", &link->latency, DIMENSION_SECONDS});
    }
    json_out_array_end(json);
    if (route) cli_route_json(json, hardware, *route);
    /* in the format of hardware files */
    hardware_write(hardware, json, "hardware");
    return cli_report_end(cli, json, err);
}
