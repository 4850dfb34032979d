/*
 * Machines by name, built from the catalogue (models/hardware/hardware_catalogue.h):
 *
 *     "a100-sxm4-40gb", "4x a100-sxm4-40gb"       devices in one machine, host memory and cores assumed
 *     "dgx-a100-80gb", "384x dgx-a100-80gb"       a node; nodes of a cluster
 *     "64x dgx-a100-80gb 2:1"                     the same with oversubscribed leaf switches
 *     "aws:p4d.24xlarge"                          with a price list's prefix for the cloud
 *
 * models/hardware/hardware_names.h has other spellings of counts and names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "models/hardware/hardware_build.h"
#include "models/hardware/hardware_mix.h"
#include "models/hardware/hardware_names.h"

/* --- the host -------------------------------------------------------------------------------- */

/* Measured in 2026-11 on two cores of an Emerald Rapids Xeon. */
static enum status build_host(struct hardware *out, struct error *err)
{
    TRY(ARENA_NEW(&out->arena, 1, out->types, err));
    TRY(ARENA_NEW(&out->arena, 1, out->links, err));
    TRY(ARENA_NEW(&out->arena, 1, out->devices, err));
    out->name = machine_name_host;
    out->backend = "host";
    out->note = "measure your own machine: this one stands in for it";
    out->host_bytes = sourced_assumed(16 * HW_GIB, 0, "of 24 GiB");
    out->host_cores = out->threads = 2;
    out->types[0] = (struct device_type){
        .name = machine_name_host,
        .memory_bytes = sourced_assumed(8 * HW_GIB, 0, "a part of host memory"),
        .usable_bytes = sourced_assumed(8 * HW_GIB, 0, "a part of host memory"),
        .peak_fp32 = sourced_measured(0.4 * HW_TFLOP, 0.04, "AVX-512 multiply-adds on both cores"),
        .memory_bandwidth = sourced_measured(29 * HW_GB, 0.05, "triad on both cores"),
        .matmul_efficiency = sourced_measured(0.82, 0.05, "oneDNN's sgemm over the shapes of GPT-2"),
        .memory_efficiency = sourced_assumed(0.9, 0.1, "of the triad"),
        .launch_latency = sourced_assumed(2e-6, 0.5, "waking a team of threads"),
    };
    out->links[0] = (struct hardware_link){
        .name = "memory",
        .bandwidth = sourced_measured(11.4 * HW_GB, 0.05, "memcpy of 1 GiB by one thread"),
        .latency = sourced_assumed(2e-6, 0.5, "waking a thread"),
        .duplex = true,
    };
    out->devices[0].memory_bytes = (uint64_t)(8 * HW_GIB);
    out->devices[0].path_count = 1;
    out->type_count = out->link_count = out->device_count = 1;
    return STATUS_OK;
}

/* --- finding -------------------------------------------------------------------------------- */

static enum status check_count(const char *text, uint64_t count, uint32_t most, const char *what,
                               struct error *err)
{
    if (count > 0 && count <= most) return STATUS_OK;
    return error_set(err, count ? STATUS_LIMIT : STATUS_BAD_INPUT,
                     "'%.100s' has %" PRIu64 " %s (expected 1 to %" PRIu32 ")", text, count, what, most);
}

/* All parts of a machine are of one kind. */
enum part_kind { PART_ALONE, PART_DEVICES, PART_NODES };

static enum status find_nodes(const char *text, const struct hardware_node *node, uint64_t count,
                              double oversubscription, bool joins, struct hardware *out, struct error *err)
{
    if ((joins || count > 1) && node->nic_count == 0)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' has no NIC: nothing joins it to other nodes", node->name);
    uint32_t most = node->nic_count > 0 ? HARDWARE_DEVICES_MAX / node->device_count : 1;
    TRY(check_count(text, count, most, "nodes", err));
    if (oversubscription > 1 && node->leaf_nodes < 2)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%.100s': nodes '%s' meet in one switch, which cannot be oversubscribed", text,
                         node->name);
    return hardware_build(machine_name_gpu(node->gpu), node, (uint32_t)count, oversubscription, joins, out, err);
}

static enum status fail_kind(const char *text, enum part_kind kind, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "'%.100s' is not a %s: a machine of several kinds has either GPUs of one host or nodes of a "
                     "cluster",
                     text, kind == PART_NODES ? "node" : "GPU");
}

/* Builds a part that is a name, not a file, with its count: devices of one host. */
static enum status find_devices(const char *text, const struct machine_name *part, struct hardware *out,
                                struct error *err)
{
    if (part->oversubscription != 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%.100s': '%s' is a GPU, and only nodes have switches that can be oversubscribed", text,
                         part->name);
    TRY(check_count(text, part->count, HARDWARE_DEVICES_MAX, "devices", err));
    uint32_t count = (uint32_t)part->count;
    const struct hardware_node node = {
        .device_count = count,
        .host_bytes = sourced_assumed(128 * HW_GIB * (double)count, 0, "128 GiB for each device"),
        .host_cores = 16 * count,
    };
    return hardware_build(machine_name_gpu(part->name), &node, 1, 1, false, out, err);
}

static enum status find_host(const char *text, const struct machine_name *part, enum part_kind kind,
                             struct hardware *out, struct error *err)
{
    if (part->counted)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s': '%s' is one machine (expected it without a count; --devices "
                         "makes several devices of it)", text, machine_name_host);
    return kind == PART_ALONE ? build_host(out, err) : fail_kind(text, kind, err);
}

static enum status find_part(const char *text, enum part_kind kind, struct hardware *out, struct error *err)
{
    struct machine_name part;
    if (!machine_name_split(text, &part)) return machine_name_fail(text, err);
    if (part.counted && part.name[0] == '\0')
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' is a count without a machine (expected its name, as in "
                         "'4x rtx-3090-24gb')", text);
    if (strcmp(part.name, machine_name_host) == 0) return find_host(text, &part, kind, out, err);
    if (machine_name_gpu(part.name))
        return kind == PART_NODES ? fail_kind(text, kind, err) : find_devices(text, &part, out, err);
    if (!(part.oversubscription > 0))
        return error_set(err, STATUS_BAD_INPUT, "'%.100s': unknown oversubscription (expected 1:1 to "
                         "1000000:1)", text);
    const struct hardware_node *node = machine_name_node(part.name);
    if (node && kind == PART_DEVICES) return fail_kind(text, kind, err);
    if (!node) return machine_name_fail(part.name, err);
    return find_nodes(text, node, part.count, part.oversubscription, kind == PART_NODES, out, err);
}

/* Copies the text up to the next '+', without blanks around it. Returns the position of that '+', or of the end. */
static const char *parse_part(const char *text, char part[MACHINE_NAME_BYTES], bool *fits)
{
    size_t blanks = strspn(text, " "), length = strcspn(text, "+");
    size_t begin = blanks < length ? blanks : length, end = length;
    while (end > begin && text[end - 1] == ' ') end--;
    *fits = end - begin < MACHINE_NAME_BYTES;
    snprintf(part, MACHINE_NAME_BYTES, "%.*s", (int)(*fits ? end - begin : MACHINE_NAME_BYTES - 1), text + begin);
    return text + length;
}

static bool is_device(const char *text)
{
    struct machine_name part;
    return machine_name_split(text, &part) && machine_name_gpu(part.name);
}

static enum status find_mix(const char *text, struct hardware *parts, struct hardware *out, struct error *err)
{
    uint32_t count = 0;
    enum part_kind kind = PART_ALONE;
    char name[HARDWARE_PARTS_MAX * 40] = "";
    size_t used = 0;
    for (const char *rest = text;; rest++, count++) {
        char part[MACHINE_NAME_BYTES];
        bool fits;
        rest = parse_part(rest, part, &fits);
        if (!fits) return machine_name_fail(part, err);
        if (count == HARDWARE_PARTS_MAX)
            return error_set(err, STATUS_LIMIT, "machine '%.100s' has too many parts (limit is %d)", text,
                             HARDWARE_PARTS_MAX);
        if (count == 0) kind = is_device(part) ? PART_DEVICES : PART_NODES;
        TRY(find_part(part, kind, &parts[count], err));
        int length = snprintf(name + used, sizeof name - used, "%s%s", count ? " + " : "", parts[count].name);
        used += (size_t)length < sizeof name - used ? (size_t)length : sizeof name - used - 1;
        if (*rest == '\0') break;
    }
    return hardware_mix(parts, count + 1, name, kind == PART_NODES, out, err);
}

static enum status find_preset(const char *text, struct hardware *out, struct error *err)
{
    struct hardware parts[HARDWARE_PARTS_MAX] = {0};
    if (!strchr(text, '+')) return find_part(text, PART_ALONE, out, err);
    enum status status = find_mix(text, parts, out, err);
    for (uint32_t p = 0; p < HARDWARE_PARTS_MAX; p++) hardware_release(&parts[p]);
    return status;
}

bool hardware_name_completed(const char *text, char said[HARDWARE_SAID_BYTES])
{
    for (const char *rest = text; !machine_name_is_path(text); rest++) {
        char part[MACHINE_NAME_BYTES];
        struct machine_name name;
        bool fits;
        rest = parse_part(rest, part, &fits);
        if (fits && machine_name_split(part, &name) && strcmp(name.given, name.name) != 0) {
            snprintf(said, HARDWARE_SAID_BYTES, "using '%s' for '%s'", name.name, name.given);
            return true;
        }
        if (*rest == '\0') break;
    }
    return false;
}

enum status hardware_find(const char *name_or_path, struct hardware *out, struct error *err)
{
    if (machine_name_is_path(name_or_path)) return hardware_read(name_or_path, out, err);
    struct hardware hardware = {0};
    enum status status = find_preset(name_or_path, &hardware, err);
    if (status == STATUS_OK)
        *out = hardware;
    else
        hardware_release(&hardware);
    return status;
}
