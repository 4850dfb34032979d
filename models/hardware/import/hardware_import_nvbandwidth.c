/* Reads nvbandwidth's JSON: matrices of bandwidths. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/text/number.h"
#include "base/try.h"
#include "models/hardware/import/hardware_import_parts.h"

/* nvbandwidth's default, which the file lacks. */
static const uint64_t buffer_bytes = UINT64_C(512) << 20;

enum what { WHAT_H2D, WHAT_D2H, WHAT_P2P };
static const struct {
    const char *name;
    enum what what;
} known[] = {
    {"host_to_device_memcpy_ce", WHAT_H2D},
    {"device_to_host_memcpy_ce", WHAT_D2H},
    {"device_to_device_memcpy_read_ce", WHAT_P2P},
    {"device_to_device_memcpy_write_ce", WHAT_P2P},
};

struct matrix {
    const char *name;
    enum what what;
    const json_t *rows;
    double *cells; /* GB/s; 0: none */
    uint32_t devices;
};

/* --- cells ------------------------------------------------------------------------------------ */

static enum status read_cell(const struct json_input *in, const json_t *row, size_t index, double *out,
                             struct error *err)
{
    const char *text, *end;
    TRY(json_item_string(in, row, index, &text, err));
    *out = 0;
    if (strcmp(text, "N/A") == 0) return STATUS_OK;
    if (number_read(text, &end, out) && *end == '\0' && *out >= 1e-6 && *out < 1e6) return STATUS_OK;
    return json_fail_index(in, row, index, err, "the cell is '%.40s' (expected GB/s such as \"26.03\", or \"N/A\")",
                           text);
}

/* Reads a row for the host, or one per device; a column per device. */
static enum status read_matrix(const struct json_input *in, struct matrix *m, struct error *err)
{
    uint32_t rows = m->what == WHAT_P2P ? m->devices : 1;
    if (json_array_size(m->rows) != rows)
        return json_fail_index(in, m->rows, JSON_SELF, err,
                               "%s has %zu rows (expected %" PRIu32 ", of a machine with %" PRIu32 " devices)", m->name,
                               json_array_size(m->rows), rows, m->devices);
    for (uint32_t r = 0; r < rows; r++) {
        const json_t *row;
        TRY(json_item_array(in, m->rows, r, m->devices, &row, err));
        for (uint32_t c = 0; c < m->devices; c++)
            TRY(read_cell(in, row, c, &m->cells[(size_t)r * m->devices + c], err));
    }
    return STATUS_OK;
}

/* --- onto the machine -------------------------------------------------------------------------- */

static enum status set_curve(struct import *import, const struct copy_point **points, uint32_t *count,
                             struct import_middle middle, struct error *err)
{
    struct copy_point *point;
    TRY(ARENA_NEW(&import->machine->arena, 1, point, err));
    *point = (struct copy_point){.bytes = buffer_bytes, .seconds = (double)buffer_bytes / (middle.value * 1e9),
                                 .spread = middle.spread};
    *points = point;
    *count = 1;
    return STATUS_OK;
}

/* Sets the device's own link on the way from the host to the better of both directions. */
static void set_pcie(struct import *import, const struct matrix *m)
{
    struct hardware *h = import->machine;
    for (uint32_t d = 0; d < m->devices; d++) {
        struct sourced_value *link = &h->links[h->devices[d].path[h->devices[d].path_count - 1]].bandwidth;
        double rate = m->cells[d] * 1e9;
        bool other = link->kind == SOURCE_MEASURED && link->source && strncmp(link->source, "nvbandwidth", 11) == 0 &&
                     strstr(link->source, m->what == WHAT_H2D ? "device_to_host" : "host_to_device");
        if (!(rate > 0) || (other && link->value >= rate)) continue;
        *link = import_sourced(import, rate, 0, m->what == WHAT_H2D ? "nvbandwidth, host_to_device_memcpy_ce"
                                                                    : "nvbandwidth, device_to_host_memcpy_ce");
    }
}

/* Gives a network with one link per device the median of the rates at which others read from the device. */
static void set_network(struct import *import, const struct matrix *m, double *scratch)
{
    struct hardware *h = import->machine;
    for (uint32_t d = 0; d < m->devices; d++) {
        const struct hardware_network *network = h->devices[d].network_count ? &h->devices[d].networks[0] : NULL;
        uint32_t count = 0;
        for (uint32_t c = 0; c < m->devices; c++)
            if (m->cells[(size_t)d * m->devices + c] > 0) scratch[count++] = m->cells[(size_t)d * m->devices + c];
        if (count == 0 || !network || network->path_count != 1) continue;
        struct import_middle middle = import_middle(scratch, count);
        h->links[network->path[0]].bandwidth =
            import_sourced(import, middle.value * 1e9, middle.spread, "nvbandwidth, device_to_device_memcpy_ce");
    }
}

static enum status apply(struct import *import, const struct matrix *m, double *scratch, struct error *err)
{
    struct device_type *type = &import->machine->types[0];
    uint32_t count = 0;
    size_t cells = (size_t)m->devices * (m->what == WHAT_P2P ? m->devices : 1);
    for (size_t i = 0; i < cells; i++)
        if (m->cells[i] > 0) scratch[count++] = m->cells[i];
    if (count == 0) {
        import_say(import, "%s: no bandwidth in it", m->name);
        return STATUS_OK;
    }
    struct import_middle middle = import_middle(scratch, count);
    import_say(import, "%s: %.4g GB/s, +- %.1f %%", m->name, middle.value, 100 * middle.spread);
    if (m->what == WHAT_H2D) TRY(set_curve(import, &type->h2d, &type->h2d_count, middle, err));
    if (m->what == WHAT_D2H) TRY(set_curve(import, &type->d2h, &type->d2h_count, middle, err));
    if (m->what == WHAT_P2P) TRY(set_curve(import, &type->p2p, &type->p2p_count, middle, err));
    if (m->what == WHAT_P2P) set_network(import, m, scratch);
    else set_pcie(import, m);
    return STATUS_OK;
}

static bool find(const char *name, enum what *out)
{
    for (size_t k = 0; k < ARRAY_COUNT(known); k++) {
        if (strcmp(known[k].name, name) != 0) continue;
        *out = known[k].what;
        return true;
    }
    return false;
}

uint32_t import_bandwidth_rows(const struct import *import, const char *name)
{
    enum what what;
    if (!find(name, &what)) return 0;
    return what == WHAT_P2P ? import->machine->device_count : 1;
}

enum status import_bandwidths(struct import *import, const char *name, double *cells, struct error *err)
{
    struct matrix m = {.name = name, .cells = cells, .devices = import->machine->device_count};
    if (!find(name, &m.what)) return STATUS_OK;
    return apply(import, &m, cells + (size_t)m.devices * m.devices, err);
}

static enum status read_testcase(struct import *import, const struct json_input *in, const json_t *cases, size_t index,
                                 double *cells, bool *used, struct error *err)
{
    struct json_object object;
    struct matrix m = {.devices = import->machine->device_count, .cells = cells};
    TRY(json_object_open_at(&object, in, cases, index, "a test case", err));
    json_object_ignore_others(&object);
    TRY(json_take_string(&object, "name", JSON_REQUIRED, &m.name, err));
    TRY(json_take_array(&object, "bandwidth_matrix", JSON_OPTIONAL, &m.rows, err));
    if (!m.rows || !find(m.name, &m.what)) {
        import_say(import, "%s: not used", m.name);
        return STATUS_OK;
    }
    TRY(read_matrix(in, &m, err));
    *used = true;
    return import_bandwidths(import, m.name, cells, err);
}

enum status import_nvbandwidth(struct import *import, const struct json_input *in, struct error *err)
{
    struct json_object root, object;
    const json_t *value, *cases;
    size_t devices = import->machine->device_count;
    bool used = false;
    TRY(json_object_open(&root, in, json_input_root(in), "nvbandwidth's report", err));
    json_object_ignore_others(&root);
    TRY(json_take_object(&root, "nvbandwidth", JSON_REQUIRED, &value, err));
    TRY(json_object_open(&object, in, value, "nvbandwidth's report", err));
    json_object_ignore_others(&object);
    TRY(json_take_array(&object, "testcases", JSON_REQUIRED, &cases, err));
    if (import->machine->type_count != 1)
        return json_fail_key(in, value, "testcases", err, "the machine has devices of several types (expected one)");
    double *cells = alloc_zeroed(2 * devices * devices, sizeof *cells);
    if (!cells) return error_memory(err, "bandwidths", 2 * devices * devices * sizeof *cells);
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < json_array_size(cases); i++)
        status = read_testcase(import, in, cases, i, cells, &used, err);
    free(cells);
    if (!status && !used)
        return json_fail_key(in, value, "testcases", err, "no test case can be used (expected one of "
                                                          "host_to_device_memcpy_ce, device_to_host_memcpy_ce, "
                                                          "device_to_device_memcpy_read_ce)");
    return status;
}
