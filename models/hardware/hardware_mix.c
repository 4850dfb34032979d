/*
 * Tables are joined one after the other, and indices into them are shifted. A link's name ends in its number among
 * its kind, which continues from part to part:
 *
 *     a: bridge-0 pcie-0 pcie-1      b: bridge-0 pcie-0      bridge-0 pcie-0 pcie-1 bridge-1 pcie-2
 *
 * Groups of networks are renumbered likewise, except the group that joins the parts, which comes last.
 */
#include "models/hardware/hardware_mix.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"

struct mix {
    const struct hardware *parts;
    uint32_t count;
    uint32_t outermost; /* joins the parts; 0: none */
    struct hardware *out;
};

static uint32_t groups_of(const struct hardware *part)
{
    uint32_t most = 0;
    for (uint32_t d = 0; d < part->device_count; d++)
        for (uint32_t n = 0; n < part->devices[d].network_count; n++)
            if (part->devices[d].networks[n].group > most) most = part->devices[d].networks[n].group;
    return most;
}

static enum status allocate(struct mix *m, struct error *err)
{
    uint64_t devices = 0, links = 0, types = 0, groups = 0;
    for (uint32_t p = 0; p < m->count; p++) {
        devices += m->parts[p].device_count;
        links += m->parts[p].link_count;
        types += m->parts[p].type_count;
        groups += groups_of(&m->parts[p]);
    }
    if (devices > HARDWARE_DEVICES_MAX)
        return error_set(err, STATUS_LIMIT, "machine '%s' has %" PRIu64 " devices (limit is %d)", m->out->name, devices,
                         HARDWARE_DEVICES_MAX);
    assert(links <= HARDWARE_LINKS_MAX && types <= HARDWARE_DEVICE_TYPES_MAX); /* a part has at most these per device */
    if (m->outermost > 0) m->outermost = (uint32_t)groups + 1;
    TRY(ARENA_NEW(&m->out->arena, devices, m->out->devices, err));
    TRY(ARENA_NEW(&m->out->arena, links, m->out->links, err));
    TRY(ARENA_NEW(&m->out->arena, types, m->out->types, err));
    return STATUS_OK;
}

/* Returns the length of the name without the number. */
static size_t kind_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    assert(dash);
    return (size_t)(dash - name);
}

static uint32_t kin_before(const struct hardware *out, uint32_t end, const char *name, size_t length)
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < end; l++)
        count += kind_of(out->links[l].name) == length && strncmp(out->links[l].name, name, length) == 0;
    return count;
}

/* Adds links; equal kinds are consecutive in a part. */
static enum status add_links(struct mix *m, const struct hardware *part, struct error *err)
{
    uint32_t before = m->out->link_count, kin = 0;
    for (uint32_t l = 0; l < part->link_count; l++) {
        const char *name = part->links[l].name;
        size_t length = kind_of(name);
        bool first = l == 0 || kind_of(part->links[l - 1].name) != length ||
                     strncmp(part->links[l - 1].name, name, length) != 0;
        kin = first ? kin_before(m->out, before, name, length) : kin + 1;
        char text[64];
        snprintf(text, sizeof text, "%.*s-%" PRIu32, (int)length, name, kin);
        struct hardware_link *link = &m->out->links[m->out->link_count++];
        *link = part->links[l];
        TRY(arena_string(&m->out->arena, text, &link->name, err));
    }
    return STATUS_OK;
}

static uint32_t add_type(struct mix *m, const struct device_type *type)
{
    uint32_t t = 0;
    while (t < m->out->type_count && strcmp(m->out->types[t].name, type->name) != 0) t++;
    if (t == m->out->type_count) m->out->types[m->out->type_count++] = *type;
    return t;
}

static void add_device(struct mix *m, const struct hardware *part, uint32_t first_link, uint32_t first_group,
                       const struct hardware_device *from)
{
    struct hardware_device *device = &m->out->devices[m->out->device_count++];
    *device = *from;
    device->type = add_type(m, &part->types[from->type]);
    device->host = 0; /* kinds have different hosts: one for all */
    for (uint32_t i = 0; i < device->path_count; i++) device->path[i] += first_link;
    for (uint32_t n = 0; n < device->network_count; n++) {
        struct hardware_network *network = &device->networks[n];
        bool joins = m->outermost > 0 && n + 1 == device->network_count;
        network->group = joins ? m->outermost : network->group + first_group;
        for (uint32_t i = 0; i < network->path_count; i++) network->path[i] += first_link;
    }
}

enum status hardware_mix(const struct hardware *parts, uint32_t count, const char *name, bool joined,
                         struct hardware *out, struct error *err)
{
    struct mix m = {.parts = parts, .count = count, .outermost = joined, .out = out};
    uint32_t first_group = 0;
    TRY(arena_string(&out->arena, name, &out->name, err));
    TRY(allocate(&m, err));
    out->backend = parts[0].backend;
    out->note = parts[0].note;
    for (uint32_t p = 0; p < count; p++) {
        const struct hardware *part = &parts[p];
        uint32_t first_link = out->link_count;
        assert(strcmp(part->backend, out->backend) == 0);
        TRY(add_links(&m, part, err));
        for (uint32_t d = 0; d < part->device_count; d++)
            add_device(&m, part, first_link, first_group, &part->devices[d]);
        first_group += groups_of(part);
        struct sourced_value memory = part->host_bytes, bandwidth = part->host_bandwidth;
        memory.value += out->host_bytes.value;
        bandwidth.value += out->host_bandwidth.value;
        out->host_bytes = memory;
        out->host_bandwidth = bandwidth;
        out->host_cores += part->host_cores;
    }
    hardware_note_p2p(out);
    return STATUS_OK;
}
