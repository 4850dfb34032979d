/* Tens of thousands of links' names are looked up in a sorted table. */
#include "models/hardware/hardware_topology.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_rows.h"
#include "base/size.h"
#include "base/try.h"
#include "models/hardware/sourced_value.h"

static const struct sourced_value_spec link_values[] = {
    SOURCED_VALUE(hardware_link, "bandwidth", bandwidth, DIMENSION_BYTES_PER_S, JSON_REQUIRED, 1e-9, 1e18),
    SOURCED_VALUE(hardware_link, "latency", latency, DIMENSION_SECONDS, JSON_OPTIONAL, 0, 1e6),
};

/* --- links -------------------------------------------------------------------------------- */

static enum status parse_link(const struct json_row *row, void *context, struct error *err)
{
    struct hardware *hardware = context;
    struct arena *arena = &hardware->arena;
    struct hardware_link *out = &hardware->links[row->index];
    struct json_object object;
    TRY(json_row_open(&object, row, "a link object", err));
    TRY(sourced_values_read_text(&object, "name", arena, &out->name, err));
    TRY(sourced_values_read(&object, link_values, ARRAY_COUNT(link_values), arena, out, err));
    TRY(json_take_bool(&object, "duplex", JSON_REQUIRED, &out->duplex, err));
    TRY(json_take_bool(&object, "paced", JSON_OPTIONAL, &out->paced, err));
    return json_object_close(&object, err);
}

struct link_name {
    const char *name;
    uint32_t link;
};
struct link_names {
    struct link_name *of; /* sorted by name, then link */
    uint32_t count;
};

static int compare_link_names(const void *left, const void *right)
{
    const struct link_name *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : a->link < b->link ? -1 : a->link > b->link;
}

/* Returns the first link whose name is not below `name`. */
static uint32_t find_link(const struct link_names *names, const char *name)
{
    uint32_t low = 0, high = names->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(names->of[middle].name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static enum status parse_links(struct json_object *object, struct hardware *out,
                               struct link_names *names, struct error *err)
{
    const json_t *array;
    uint32_t twice = UINT32_MAX;
    TRY(sourced_values_read_table(object, "links", HARDWARE_LINKS_MAX, sizeof *out->links, &out->arena, &array,
                   &out->link_count, &out->links, err));
    *names = (struct link_names){.count = out->link_count};
    TRY(ARENA_NEW(&out->arena, out->link_count, names->of, err));
    TRY(json_rows_each(object->input, array, parse_link, out, err));
    for (uint32_t i = 0; i < out->link_count; i++) names->of[i] = (struct link_name){out->links[i].name, i};
    qsort(names->of, names->count, sizeof *names->of, compare_link_names);
    for (uint32_t i = 1; i < names->count; i++)
        if (strcmp(names->of[i - 1].name, names->of[i].name) == 0 && names->of[i].link < twice)
            twice = names->of[i].link;
    if (twice == UINT32_MAX) return STATUS_OK;
    return json_fail_index(object->input, array, twice, err, "two links '%s'", out->links[twice].name);
}

/* --- devices ------------------------------------------------------------------------------ */

/* Writes at least `least` links into links[HARDWARE_PATH_LINKS_MAX]. */
static enum status parse_path(const struct json_input *in, const json_t *path, const char *key,
                              size_t least, const struct link_names *names, uint32_t *links,
                              uint32_t *link_count, struct error *err)
{
    size_t count = json_array_size(path);
    if (count < least || count > HARDWARE_PATH_LINKS_MAX)
        return json_fail_key(in, path, NULL, err, "'%s' has %zu links (expected %zu to %d)", key,
                             count, least, HARDWARE_PATH_LINKS_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *name;
        TRY(json_item_string(in, path, i, &name, err));
        uint32_t at = find_link(names, name);
        if (at == names->count || strcmp(names->of[at].name, name) != 0)
            return json_fail_index(in, path, i, err, "unknown link '%.100s'", name);
        uint32_t link = names->of[at].link;
        for (uint32_t j = 0; j < *link_count; j++)
            if (links[j] == link)
                return json_fail_index(in, path, i, err, "link '%.100s' is on the path twice",
                                       name);
        links[(*link_count)++] = link;
    }
    return STATUS_OK;
}

static enum status parse_network(const struct json_input *in, const json_t *array, size_t index,
                                 const struct link_names *names, struct hardware_device *out,
                                 struct error *err)
{
    struct json_object object;
    const json_t *path;
    uint32_t group;
    TRY(json_object_open_at(&object, in, array, index, "a network object", err));
    TRY(json_take_u32(&object, "group", JSON_REQUIRED, 1, HARDWARE_NETWORK_GROUPS_MAX, &group, err));
    for (uint32_t n = 0; n < out->network_count; n++)
        if (out->networks[n].group == group)
            return json_fail_key(in, object.value, "group", err, "network %" PRIu32 " is listed twice",
                                 group);
    TRY(json_take_array(&object, "path", JSON_REQUIRED, &path, err));
    struct hardware_network *network = hardware_join(out, group);
    TRY(parse_path(in, path, "path", 0, names, network->path, &network->path_count, err));
    return json_object_close(&object, err);
}

static enum status parse_networks(struct json_object *object, const struct link_names *names,
                                  struct hardware_device *out, struct error *err)
{
    const json_t *array = NULL;
    TRY(json_take_array(object, "networks", JSON_OPTIONAL, &array, err));
    size_t count = json_array_size(array);
    if (count > HARDWARE_NETWORKS_MAX)
        return json_fail_key(object->input, object->value, "networks", err,
                             "'networks' has %zu elements (expected at most %d)", count, HARDWARE_NETWORKS_MAX);
    for (size_t i = 0; i < count; i++)
        TRY(parse_network(object->input, array, i, names, out, err));
    return STATUS_OK;
}

struct device_reader {
    struct hardware *hardware;
    const struct link_names *names;
};

static enum status parse_device(const struct json_row *row, void *context, struct error *err)
{
    const struct device_reader *reader = context;
    const struct hardware *hardware = reader->hardware;
    const struct json_input *in = row->in;
    struct hardware_device *out = &hardware->devices[row->index];
    struct json_object object;
    const json_t *path;
    const char *type_name;
    TRY(json_row_open(&object, row, "a device object", err));
    TRY(json_take_string(&object, "type", JSON_REQUIRED, &type_name, err));
    while (out->type < hardware->type_count &&
           strcmp(hardware->types[out->type].name, type_name) != 0)
        out->type++;
    if (out->type == hardware->type_count)
        return json_fail_key(in, object.value, "type", err, "unknown device type '%.100s'",
                             type_name);
    TRY(json_take_array(&object, "path", JSON_REQUIRED, &path, err));
    TRY(parse_path(in, path, "path", 1, reader->names, out->path, &out->path_count, err));
    TRY(parse_networks(&object, reader->names, out, err));
    uint64_t usable = (uint64_t)hardware->types[out->type].usable_bytes.value;
    out->memory_bytes = usable;
    TRY(json_take_u64(&object, "memory_bytes", JSON_OPTIONAL, 1, usable, &out->memory_bytes, err));
    return json_object_close(&object, err);
}

/* Places devices node by node; the last nodes may have none. */
static enum status place_on_hosts(const struct json_input *in, const json_t *array, struct hardware *out,
                                  struct error *err)
{
    for (uint32_t i = 0; i < out->device_count; i++) {
        out->devices[i].host = i / out->node_devices;
        if (out->devices[i].host >= out->host_nodes)
            return json_fail_index(in, array, i, err,
                                   "device %" PRIu32 " is on none of the %" PRIu32 " nodes of %" PRIu32
                                   " devices that the host has",
                                   i, out->host_nodes, out->node_devices);
    }
    return STATUS_OK;
}

static enum status parse_devices(struct json_object *object, const struct link_names *names,
                                 struct hardware *out, struct error *err)
{
    const json_t *array;
    TRY(sourced_values_read_table(object, "devices", HARDWARE_DEVICES_MAX, sizeof *out->devices, &out->arena, &array,
                   &out->device_count, &out->devices, err));
    struct device_reader reader = {.hardware = out, .names = names};
    TRY(json_rows_each(object->input, array, parse_device, &reader, err));
    if (hardware_host_count(out) > 1) TRY(place_on_hosts(object->input, array, out, err));
    hardware_note_p2p(out);
    return STATUS_OK;
}

static void write_link(struct json_out *out, const struct hardware_link *link)
{
    json_out_object_begin(out, NULL, false);
    json_out_string(out, "name", link->name);
    sourced_values_write(out, link_values, ARRAY_COUNT(link_values), link);
    json_out_bool(out, "duplex", link->duplex);
    if (link->paced) json_out_bool(out, "paced", true);
    json_out_object_end(out);
}

static void write_path(struct json_out *out, const char *key, const struct hardware *hardware,
                       const uint32_t *links, uint32_t count)
{
    json_out_array_begin(out, key, true);
    for (uint32_t i = 0; i < count; i++) json_out_string(out, NULL, hardware->links[links[i]].name);
    json_out_array_end(out);
}

static void write_device(struct json_out *out, const struct hardware *hardware,
                         const struct hardware_device *device)
{
    json_out_object_begin(out, NULL, true);
    json_out_string(out, "type", hardware->types[device->type].name);
    write_path(out, "path", hardware, device->path, device->path_count);
    json_out_u64(out, "memory_bytes", device->memory_bytes);
    if (device->network_count > 0) {
        json_out_array_begin(out, "networks", true);
        for (uint32_t n = 0; n < device->network_count; n++) {
            const struct hardware_network *network = &device->networks[n];
            json_out_object_begin(out, NULL, true);
            json_out_u64(out, "group", network->group);
            write_path(out, "path", hardware, network->path, network->path_count);
            json_out_object_end(out);
        }
        json_out_array_end(out);
    }
    json_out_object_end(out);
}

/* --- public -------------------------------------------------------------------------------- */

enum status topology_read(struct json_object *object, struct hardware *out, struct error *err)
{
    struct link_names names;
    TRY(parse_links(object, out, &names, err));
    return parse_devices(object, &names, out, err);
}

void topology_write(const struct hardware *hardware, struct json_out *out)
{
    json_out_array_begin(out, "links", false);
    for (uint32_t i = 0; i < hardware->link_count; i++) write_link(out, &hardware->links[i]);
    json_out_array_end(out);
    json_out_array_begin(out, "devices", false);
    for (uint32_t i = 0; i < hardware->device_count; i++)
        write_device(out, hardware, &hardware->devices[i]);
    json_out_array_end(out);
}
