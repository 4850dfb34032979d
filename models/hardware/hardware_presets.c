/*
 * Machines by name, built from the catalogue (models/hardware/hardware_catalogue.h):
 *
 *     "a100-sxm4-40gb", "4x a100-sxm4-40gb"       devices in one machine, memory and cores assumed
 *     "dgx-a100-80gb", "384x dgx-a100-80gb"       a node; nodes of a cluster
 *     "64x dgx-a100-80gb 2:1"                     the same with oversubscribed leaf switches
 *     "aws:p4d.24xlarge"                          with a price list's prefix for the cloud
 *     "rtx3090", "A100 80GB"                      names that start with these letters and digits, or have these
 *                                                 words; one candidate is taken, several are listed
 */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/text/number.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "models/hardware/hardware_build.h"
#include "models/hardware/hardware_catalogue.h"
#include "models/hardware/hardware_mix.h"

static const char host_name[] = "host-2-cores";
static const char host_summary[] =
    "a 2-core Xeon (Emerald Rapids) as its own device: for trying things without a GPU";

static uint32_t gpu_count(void)
{
    uint32_t count = 0;
    while (catalogue_gpu(count)) count++;
    return count;
}

static uint32_t node_count(void)
{
    uint32_t count = 0;
    while (catalogue_node(count)) count++;
    return count;
}

const char *hardware_preset_name(uint32_t index)
{
    uint32_t gpus = gpu_count(), nodes = node_count();
    if (index < gpus) return catalogue_gpu(index)->name;
    if (index < gpus + nodes) return catalogue_node(index - gpus)->name;
    return index == gpus + nodes ? host_name : NULL;
}

const char *hardware_preset_summary(uint32_t index)
{
    uint32_t gpus = gpu_count(), nodes = node_count();
    assert(index <= gpus + nodes);
    if (index < gpus) return catalogue_gpu(index)->summary;
    return index < gpus + nodes ? catalogue_node(index - gpus)->summary : host_summary;
}

/* --- the host -------------------------------------------------------------------------------- */

/* Measured in 2026-11 on two cores of an Emerald Rapids Xeon. */
static enum status build_host(struct hardware *out, struct error *err)
{
    TRY(ARENA_NEW(&out->arena, 1, out->types, err));
    TRY(ARENA_NEW(&out->arena, 1, out->links, err));
    TRY(ARENA_NEW(&out->arena, 1, out->devices, err));
    out->name = host_name;
    out->backend = "host";
    out->note = "measure your own machine: this one stands in for it";
    out->host_bytes = sourced_assumed(16 * HW_GIB, 0, "of 24 GiB");
    out->host_cores = out->threads = 2;
    out->types[0] = (struct device_type){
        .name = host_name,
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

/* "rtx-3090" of "rtx-3090-24gb". */
static bool is_all_but_memory(const char *name, const char *full)
{
    size_t length = strlen(name);
    if (length == 0 || strncmp(full, name, length) != 0 || full[length] != '-') return false;
    const char *memory = full + length + 1;
    size_t digits = strspn(memory, "0123456789");
    return digits > 0 && strcmp(memory + digits, "gb") == 0;
}

/* Finds a device with only one size of memory. */
static const struct hardware_gpu *find_short(const char *name)
{
    const struct hardware_gpu *found = NULL;
    for (uint32_t i = 0; catalogue_gpu(i); i++) {
        if (!is_all_but_memory(name, catalogue_gpu(i)->name)) continue;
        if (found) return NULL;
        found = catalogue_gpu(i);
    }
    return found;
}

static const struct hardware_gpu *find_gpu(const char *name)
{
    for (uint32_t i = 0; catalogue_gpu(i); i++)
        if (strcmp(catalogue_gpu(i)->name, name) == 0 || strcmp(catalogue_gpu(i)->driver_name, name) == 0)
            return catalogue_gpu(i);
    return find_short(name);
}

static const char cloud_prefix[] = "aws:", cloud_summary[] = "AWS: ";

/* Only AWS's nodes may have the prefix "aws:". */
static const struct hardware_node *find_node(const char *name)
{
    bool cloud = strncmp(name, cloud_prefix, strlen(cloud_prefix)) == 0;
    if (cloud) name += strlen(cloud_prefix);
    for (uint32_t i = 0; catalogue_node(i); i++) {
        const struct hardware_node *node = catalogue_node(i);
        if (strcmp(node->name, name) != 0) continue;
        if (!cloud || strncmp(node->summary, cloud_summary, strlen(cloud_summary) - 2) == 0) return node;
    }
    return NULL;
}

/* Splits "4x NAME", "4xNAME" or "4 x NAME"; without a count returns 1 and the whole text. */
static const char *split_count(const char *text, uint64_t *count)
{
    *count = 1;
    if (!isdigit((unsigned char)text[0])) return text;
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    while (*end == ' ') end++;
    if (*end != 'x' && *end != 'X') return text;
    *count = number;
    for (end++; *end == ' ';) end++;
    return end;
}

/* Cuts "NAME 2:1" at the blank and returns the ratio; 1 without a ratio, 0 for an invalid one. */
static double cut_oversubscription(char *name)
{
    char *blank = strrchr(name, ' ');
    const char *end;
    double ratio;
    if (!blank || !number_read(blank + 1, &end, &ratio) || strcmp(end, ":1") != 0) return 1;
    if (!(ratio >= 1 && ratio <= 1e6)) return 0;
    *blank = '\0';
    return ratio;
}

/* --- names that are nearly right -------------------------------------------------------------- */

enum { PRESETS_MAX = 128, NAME_BYTES = 128, CANDIDATE_LETTERS_MIN = 2 };

/* Copies letters and digits in lower case; returns their number. */
static size_t squeeze(const char *name, char out[NAME_BYTES])
{
    size_t length = 0;
    for (; *name && length + 1 < NAME_BYTES; name++)
        if (isalnum((unsigned char)*name)) out[length++] = (char)tolower((unsigned char)*name);
    out[length] = '\0';
    return length;
}

static bool has_every_word(const char *preset, const char *name)
{
    for (const char *at = name; *at;) {
        size_t length = 0;
        char word[NAME_BYTES];
        while (isalnum((unsigned char)at[length])) length++;
        if (length > 0) {
            if (length >= sizeof word) return false;
            snprintf(word, sizeof word, "%.*s", (int)length, at);
            if (!strcasestr(preset, word)) return false;
        }
        at += length > 0 ? length : 1;
    }
    return true;
}

/* Returns presets in the catalogue's order. */
static size_t find_candidates(const char *name, const char *out[PRESETS_MAX])
{
    char letters[NAME_BYTES], preset_letters[NAME_BYTES];
    const char *preset;
    size_t count = 0, length = squeeze(name, letters);
    if (length < CANDIDATE_LETTERS_MIN) return 0;
    for (uint32_t i = 0; count < PRESETS_MAX && (preset = hardware_preset_name(i)); i++) {
        squeeze(preset, preset_letters);
        if (strncmp(preset_letters, letters, length) == 0 || has_every_word(preset, name)) out[count++] = preset;
    }
    return count;
}

/* Takes the only candidate. A name with a colon has a cloud or a ratio. */
static bool complete_name(char name[NAME_BYTES])
{
    const char *candidates[PRESETS_MAX];
    if (strchr(name, ':') || strcmp(name, host_name) == 0 || find_gpu(name) || find_node(name)) return false;
    if (find_candidates(name, candidates) != 1) return false;
    snprintf(name, NAME_BYTES, "%s", candidates[0]);
    return true;
}

/* "'a100' does not say which"; false when there is no candidate. */
static bool fail_candidates(const char *name, struct error *err)
{
    const char *candidates[PRESETS_MAX];
    char list[512];
    size_t used = 0, count = find_candidates(name, candidates);
    for (size_t i = 0; i < count; i++) {
        int length = snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", candidates[i]);
        used += (size_t)length < sizeof list - used ? (size_t)length : sizeof list - used - 1;
    }
    if (count > 0)
        error_set(err, STATUS_BAD_INPUT, "'%.100s' does not say which machine is meant (expected one of %s)", name, list);
    return count > 0;
}

/* Finds "t4-16gb" for "tesla-t4"; NULL: none, or several. */
static const char *find_by_word(const char *name)
{
    const char *found = NULL, *preset;
    for (const char *at = name; *at; at += *at ? 1 : 0) {
        size_t length = strcspn(at, "- _");
        bool digits = strcspn(at, "0123456789") < length && length >= CANDIDATE_LETTERS_MIN;
        for (uint32_t i = 0; digits && (preset = hardware_preset_name(i)); i++) {
            if (strncasecmp(preset, at, length) != 0 || preset[length] != '-') continue;
            if (found) return NULL;
            found = preset;
        }
        at += length;
    }
    return found;
}

static enum status fail_unknown(const char *name, struct error *err)
{
    const char *names[PRESETS_MAX];
    size_t count = 0;
    if (fail_candidates(name, err)) return err->status;
    while (count < PRESETS_MAX && hardware_preset_name((uint32_t)count)) {
        names[count] = hardware_preset_name((uint32_t)count);
        count++;
    }
    const char *meant = strncmp(name, cloud_prefix, strlen(cloud_prefix)) == 0 ? name + strlen(cloud_prefix) : name;
    const char *near = suggest(meant, names, count);
    if (!near) near = find_by_word(meant);
    if (near)
        return error_set(err, STATUS_BAD_INPUT, "unknown machine '%.100s' (did you mean '%s'?)", name, near);
    return error_set(err, STATUS_BAD_INPUT,
                     "unknown machine '%.100s' (expected a preset such as a100-sxm4-40gb, '4x rtx-3090-24gb', "
                     "'2x dgx-a100-80gb', or the path of a hardware file)", name);
}

static enum status check_count(const char *text, uint64_t count, uint32_t most, const char *what,
                               struct error *err)
{
    if (count > 0 && count <= most) return STATUS_OK;
    return error_set(err, count ? STATUS_LIMIT : STATUS_BAD_INPUT,
                     "'%.100s' has %" PRIu64 " %s (expected 1 to %" PRIu32 ")", text, count, what, most);
}

/* All parts of a machine are of one kind. */
enum part_kind { PART_ALONE, PART_DEVICES, PART_NODES };

static enum status find_nodes(const char *text, const struct hardware_node *node, uint64_t count, double oversubscription,
                              bool joins, struct hardware *out, struct error *err)
{
    if (joins && node->nic_count == 0)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' has no NIC: nothing joins it to other nodes", node->name);
    uint32_t most = node->nic_count > 0 ? DEVICES_MAX / node->device_count : 1;
    TRY(check_count(text, count, most, "nodes", err));
    if (oversubscription > 1 && node->leaf_nodes < 2)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%.100s': nodes '%s' meet in one switch, which cannot be oversubscribed", text,
                         node->name);
    return hardware_build(find_gpu(node->gpu), node, (uint32_t)count, oversubscription, joins, out, err);
}

static enum status fail_kind(const char *text, enum part_kind kind, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "'%.100s' is not a %s: a machine of several kinds has either GPUs of one host or nodes of a cluster",
                     text, kind == PART_NODES ? "node" : "GPU");
}

static enum status find_part(const char *text, enum part_kind kind, struct hardware *out, struct error *err)
{
    uint64_t count;
    char name[NAME_BYTES];
    const char *rest = split_count(text, &count);
    if ((size_t)snprintf(name, sizeof name, "%s", rest) >= sizeof name) return fail_unknown(text, err);
    complete_name(name);
    if (strcmp(name, host_name) == 0 && rest != text)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s': '%s' is one machine (expected it without a count; --devices "
                         "makes several devices of it)", text, host_name);
    if (strcmp(name, host_name) == 0)
        return kind == PART_ALONE ? build_host(out, err) : fail_kind(text, kind, err);
    if (find_gpu(name)) {
        if (kind == PART_NODES) return fail_kind(text, kind, err);
        TRY(check_count(text, count, DEVICES_MAX, "devices", err));
        const struct hardware_node node = {.device_count = (uint32_t)count,
                                           .host_bytes = sourced_assumed(128 * HW_GIB * (double)count, 0,
                                                                         "128 GiB for each device"),
                                           .host_cores = 16 * (uint32_t)count};
        return hardware_build(find_gpu(name), &node, 1, 1, false, out, err);
    }
    double oversubscription = cut_oversubscription(name);
    if (!(oversubscription > 0))
        return error_set(err, STATUS_BAD_INPUT, "'%.100s': unknown oversubscription (expected 1:1 to "
                         "1000000:1)", text);
    complete_name(name);
    const struct hardware_node *node = find_node(name);
    if (node && kind == PART_DEVICES) return fail_kind(text, kind, err);
    if (!node) return fail_unknown(name, err);
    return find_nodes(text, node, count, oversubscription, kind == PART_NODES, out, err);
}

/* Copies the text up to the next '+', without blanks; returns the position of that '+', or of the end. */
static const char *parse_part(const char *text, char part[NAME_BYTES], bool *fits)
{
    size_t blanks = strspn(text, " "), length = strcspn(text, "+");
    size_t begin = blanks < length ? blanks : length, end = length;
    while (end > begin && text[end - 1] == ' ') end--;
    *fits = end - begin < NAME_BYTES;
    snprintf(part, NAME_BYTES, "%.*s", (int)(*fits ? end - begin : NAME_BYTES - 1), text + begin);
    return text + length;
}

static bool is_device(const char *part)
{
    uint64_t count;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s", split_count(part, &count));
    complete_name(name);
    return find_gpu(name) != NULL;
}

static enum status find_mix(const char *text, struct hardware *parts, struct hardware *out, struct error *err)
{
    uint32_t count = 0;
    enum part_kind kind = PART_ALONE;
    char name[HARDWARE_PARTS_MAX * 40] = "";
    size_t used = 0;
    for (const char *rest = text;; rest++, count++) {
        char part[NAME_BYTES];
        bool fits;
        rest = parse_part(rest, part, &fits);
        if (!fits) return fail_unknown(part, err);
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

static bool is_path(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".json") == 0) ||
           (length > 8 && strcmp(name + length - 8, ".json.gz") == 0);
}

bool hardware_name_completed(const char *text, char said[HARDWARE_SAID_BYTES])
{
    for (const char *rest = text; !is_path(text); rest++) {
        char part[NAME_BYTES], given[NAME_BYTES], name[NAME_BYTES];
        bool fits;
        uint64_t count;
        rest = parse_part(rest, part, &fits);
        snprintf(name, sizeof name, "%s", split_count(part, &count));
        bool completed = complete_name(name);
        snprintf(given, sizeof given, "%s", split_count(part, &count));
        if (!completed && cut_oversubscription(given) > 0) {
            snprintf(name, sizeof name, "%s", given);
            completed = complete_name(name);
        }
        if (completed) {
            snprintf(said, HARDWARE_SAID_BYTES, "machine '%s' is taken for '%s'", given, name);
            return true;
        }
        if (*rest == '\0') break;
    }
    return false;
}

enum status hardware_find(const char *name_or_path, struct hardware *out, struct error *err)
{
    if (is_path(name_or_path)) return hardware_read(name_or_path, out, err);
    struct hardware hardware = {0};
    enum status status = find_preset(name_or_path, &hardware, err);
    if (status == STATUS_OK)
        *out = hardware;
    else
        hardware_release(&hardware);
    return status;
}
