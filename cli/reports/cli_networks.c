/* A cluster has hundreds of equal networks, told apart by their devices and the rates to the first. */
#include "cli/reports/cli_networks.h"

#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "cli/common/cli_table.h"
#include "models/cost/cost.h"

/* --- networks ------------------------------------------------------------------------------- */

struct networks_network {
    const struct hardware_network *first; /* of its first device; NULL: no devices */
    uint32_t first_device, last_device, devices;
    uint32_t alike;      /* networks of this row; 0: in another row */
    uint32_t last_alike; /* of these */
};

void cli_networks_print_path(FILE *out, const struct hardware *hardware, const uint32_t *path, uint32_t count)
{
    char rate[QUANTITY_TEXT_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        const struct hardware_link *link = &hardware->links[path[i]];
        fprintf(out, " --[%s %s %s%s]--", link->name,
                quantity_text(link->bandwidth.value, DIMENSION_BYTES_PER_S, rate),
                link->duplex ? "duplex" : "simplex", link->paced ? ", paced" : "");
    }
}

static void find_networks(const struct hardware *hardware, struct networks_network *of)
{
    for (uint32_t d = 0; d < hardware->device_count; d++)
        for (uint32_t n = 0; n < hardware->devices[d].network_count; n++) {
            struct networks_network *network = &of[hardware->devices[d].networks[n].group];
            if (!network->first) {
                network->first = &hardware->devices[d].networks[n];
                network->first_device = d;
            }
            network->last_device = d;
            network->devices++;
        }
}

static bool alike(const struct hardware *hardware, const struct networks_network *a, const struct networks_network *b)
{
    if (a->devices != b->devices || a->first->path_count != b->first->path_count) return false;
    for (uint32_t i = 0; i < a->first->path_count; i++) {
        const struct hardware_link *left = &hardware->links[a->first->path[i]];
        const struct hardware_link *right = &hardware->links[b->first->path[i]];
        if (fabs(left->bandwidth.value - right->bandwidth.value) > 0 || left->duplex != right->duplex)
            return false;
    }
    return true;
}

/* Merges consecutive equal networks. */
static void merge_networks(const struct hardware *hardware, struct networks_network *of)
{
    struct networks_network *row = NULL;
    for (uint32_t g = 1; g <= HARDWARE_NETWORK_GROUPS_MAX; g++) {
        if (!of[g].first) continue;
        if (!row || !alike(hardware, row, &of[g])) row = &of[g];
        row->alike++;
        row->last_alike = g;
    }
}

static void print_row(struct cli_table *table, const struct hardware *hardware, const struct networks_network *row)
{
    char path[CLI_CELL_BYTES] = "", rate[QUANTITY_TEXT_BYTES];
    size_t used = 0;
    for (uint32_t i = 0; i < row->first->path_count && used < sizeof path; i++) {
        const struct hardware_link *link = &hardware->links[row->first->path[i]];
        used += (size_t)snprintf(path + used, sizeof path - used, "%s%s %s", i > 0 ? ", " : "", link->name,
                                 quantity_text(link->bandwidth.value, DIMENSION_BYTES_PER_S, rate));
    }
    uint32_t group = row->first->group;
    if (row->alike > 1) cli_table_cell(table, "%" PRIu32 " to %" PRIu32, group, row->last_alike);
    else cli_table_cell(table, "%" PRIu32, group);
    cli_table_cell(table, "%" PRIu32 "%s", row->devices, row->alike > 1 ? " each" : "");
    cli_table_cell(table, "%" PRIu32 " to %" PRIu32, row->first_device, row->last_device);
    cli_table_cell(table, "%s", used > 0 ? path : "none, one memory");
}

enum status cli_networks_print(FILE *out, const struct hardware *hardware, struct error *err)
{
    if (!hardware_has_p2p(hardware)) return STATUS_OK;
    struct networks_network *of = alloc_zeroed(HARDWARE_NETWORK_GROUPS_MAX + 1, sizeof *of);
    struct cli_table table;
    if (!of) return error_memory(err, "networks", (HARDWARE_NETWORK_GROUPS_MAX + 1) * sizeof *of);
    find_networks(hardware, of);
    merge_networks(hardware, of);
    fputs("direct copies go over the innermost network that both devices are in:\n", out);
    cli_table_begin(&table, (const char *const[]){"NETWORK", ">DEVICES", "THE FIRST'S",
                                                  "LINKS TO ITS FIRST, EACH WAY", NULL});
    for (uint32_t g = 1; g <= HARDWARE_NETWORK_GROUPS_MAX; g++)
        if (of[g].alike > 0) print_row(&table, hardware, &of[g]);
    free(of);
    return cli_table_end(&table, out, err);
}

/* --- a route -------------------------------------------------------------------------------- */

static bool device_at(const char **text, uint32_t count, char behind, uint32_t *out)
{
    double number;
    if (!number_read(*text, text, &number) || **text != behind) return false;
    if (!(number >= 0 && number < count) || floor(number) < number) return false;
    *out = (uint32_t)number;
    *text += behind != '\0';
    return true;
}

enum status cli_route_parse(const char *text, const struct hardware *hardware, struct cli_route *out,
                            struct error *err)
{
    const char *at = text;
    uint32_t count = hardware->device_count;
    if (count == 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "route '%.100s' in machine '%s', which has one device (expected several)", text,
                         hardware->name);
    if (!device_at(&at, count, ',', &out->from) || !device_at(&at, count, '\0', &out->to) || out->from == out->to)
        return error_set(err, STATUS_BAD_INPUT,
                         "route '%.100s' (expected two of %" PRIu32 " devices, such as 0,%" PRIu32 ")", text,
                         count, count - 1);
    return STATUS_OK;
}

/* Returns links from the first device on. */
static struct p2p_route links_of(const struct hardware *hardware, struct cli_route route)
{
    if (hardware_reaches(hardware, route.from, route.to)) return hardware_p2p_route(hardware, route.from, route.to);
    const struct hardware_device *from = &hardware->devices[route.from], *to = &hardware->devices[route.to];
    struct p2p_route links = {.up_count = from->path_count, .down_count = to->path_count};
    for (uint32_t i = 0; i < from->path_count; i++) links.links[i] = from->path[from->path_count - 1 - i];
    for (uint32_t i = 0; i < to->path_count; i++) links.links[from->path_count + i] = to->path[i];
    return links;
}

static void print_way(FILE *out, const struct hardware *hardware, struct cli_route route)
{
    char rate[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES];
    fprintf(out, "device %" PRIu32 " to device %" PRIu32, route.from, route.to);
    if (hardware_p2p_pair(hardware, route.from, route.to))
        fprintf(out, " over network %" PRIu32 ": %s, after %s\n",
                hardware_network_of(hardware, route.from, route.to)->group,
                quantity_text(cost_p2p_bandwidth(hardware, route.from, route.to), DIMENSION_BYTES_PER_S, rate),
                quantity_text(cost_p2p_latency_s(hardware, route.from, route.to), DIMENSION_SECONDS, latency));
    else if (hardware_reaches(hardware, route.from, route.to))
        fprintf(out, " through host memory, which both reach: %s, after %s\n",
                quantity_text(cost_p2p_bandwidth(hardware, route.from, route.to), DIMENSION_BYTES_PER_S, rate),
                quantity_text(cost_p2p_latency_s(hardware, route.from, route.to), DIMENSION_SECONDS, latency));
    else
        fputs(": no network joins their hosts\n", out);
}

enum status cli_route_print(FILE *out, const struct hardware *hardware, struct cli_route route,
                            struct error *err)
{
    const struct p2p_route links = links_of(hardware, route);
    char rate[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES];
    struct cli_table table;
    print_way(out, hardware, route);
    cli_table_begin(&table, (const char *const[]){"LINK", "WAY", ">RATE", ">LATENCY", NULL});
    for (uint32_t i = 0; i < links.up_count + links.down_count; i++) {
        const struct hardware_link *link = &hardware->links[links.links[i]];
        cli_table_cell(&table, "%s", link->name);
        cli_table_cell(&table, "%s", i < links.up_count ? "out" : "in");
        cli_table_cell(&table, "%s", quantity_text(link->bandwidth.value, DIMENSION_BYTES_PER_S, rate));
        cli_table_cell(&table, "%s", quantity_text(link->latency.value, DIMENSION_SECONDS, latency));
    }
    return cli_table_end(&table, out, err);
}

void cli_route_json(struct json_out *json, const struct hardware *hardware, struct cli_route route)
{
    const struct p2p_route links = links_of(hardware, route);
    json_out_object_begin(json, "route", false);
    json_out_u64(json, "from", route.from);
    json_out_u64(json, "to", route.to);
    bool direct = hardware_p2p_pair(hardware, route.from, route.to);
    json_out_bool(json, "direct", direct);
    if (direct) json_out_u64(json, "network", hardware_network_of(hardware, route.from, route.to)->group);
    if (hardware_reaches(hardware, route.from, route.to)) {
        json_out_double(json, "bytes_per_s", cost_p2p_bandwidth(hardware, route.from, route.to));
        json_out_double(json, "latency_s", cost_p2p_latency_s(hardware, route.from, route.to));
    }
    json_out_array_begin(json, "out", true);
    for (uint32_t i = 0; i < links.up_count; i++)
        json_out_string(json, NULL, hardware->links[links.links[i]].name);
    json_out_array_end(json);
    json_out_array_begin(json, "in", true);
    for (uint32_t i = 0; i < links.down_count; i++)
        json_out_string(json, NULL, hardware->links[links.links[links.up_count + i]].name);
    json_out_array_end(json);
    json_out_object_end(json);
}
