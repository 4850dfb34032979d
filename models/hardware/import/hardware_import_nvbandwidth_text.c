/*
 * Reads nvbandwidth's output for people. A test has a line "Running NAME.", a title, a line with the devices' numbers,
 * and numbered rows:
 *
 *     Running host_to_device_memcpy_ce.
 *     memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
 *                0         1
 *      0     26.03     26.01
 *
 * Other lines are skipped. A test that is used must have every row.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text/number.h"
#include "base/try.h"
#include "models/hardware/import/hardware_import_parts.h"

enum { WORD_BYTES = 64 };

struct hardware_import_nvbandwidth_text_reading {
    struct import *import;
    unsigned long line;
    char name[WORD_BYTES]; /* of the current test */
    uint32_t rows, row;    /* total, and the next; rows 0: no test */
    bool headed;           /* the line of numbers was there */
    bool used;             /* some test was */
    double *cells;
};

struct hardware_import_nvbandwidth_text_cursor {
    const char *at, *end;
};

/* Returns false at the end of the line. A word that is too long is cut; no number is. */
static bool parse_word(struct hardware_import_nvbandwidth_text_cursor *cursor, char word[WORD_BYTES])
{
    while (cursor->at < cursor->end && strchr(" \t\r", *cursor->at)) cursor->at++;
    size_t length = 0;
    for (; cursor->at < cursor->end && !strchr(" \t\r", *cursor->at); cursor->at++)
        if (length + 1 < WORD_BYTES) word[length++] = *cursor->at;
    word[length] = '\0';
    return length > 0;
}

static enum status fail_cells(const struct hardware_import_nvbandwidth_text_reading *r, uint32_t found,
                              struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "%s:%lu:1: %s has %" PRIu32 " columns (expected %" PRIu32 ", of the machine's devices)",
                     r->import->name, r->line, r->name, found, r->import->machine->device_count);
}

/* Reads one cell per device after the row's number. */
static enum status parse_row(struct hardware_import_nvbandwidth_text_reading *r,
                             struct hardware_import_nvbandwidth_text_cursor cursor, struct error *err)
{
    const uint32_t devices = r->import->machine->device_count;
    char word[WORD_BYTES];
    const char *end;
    uint32_t count = 0;
    while (parse_word(&cursor, word)) {
        if (count == devices) return fail_cells(r, count + 1, err);
        double *cell = &r->cells[(size_t)r->row * devices + count++];
        *cell = 0;
        if (strcmp(word, "N/A") == 0 || (number_read(word, &end, cell) && !*end && *cell >= 1e-6 && *cell < 1e6))
            continue;
        return error_set(err, STATUS_BAD_INPUT, "%s:%lu:1: the cell is '%s' (expected GB/s such as 26.03, or N/A)",
                         r->import->name, r->line, word);
    }
    if (count != devices) return fail_cells(r, count, err);
    if (++r->row < r->rows) return STATUS_OK;
    r->rows = 0;
    r->used = true;
    return import_bandwidths(r->import, r->name, r->cells, err);
}

static enum status fail_ended(const struct hardware_import_nvbandwidth_text_reading *r, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT, "%s:%lu:1: %s ends after %" PRIu32 " of %" PRIu32 " rows", r->import->name,
                     r->line, r->name, r->row, r->rows);
}

/* Begins a test; a full stop follows `name`. */
static enum status begin_test(struct hardware_import_nvbandwidth_text_reading *r, const char *name, struct error *err)
{
    if (r->rows > 0) return fail_ended(r, err);
    snprintf(r->name, sizeof r->name, "%.*s", (int)strcspn(name, "."), name);
    r->rows = import_bandwidth_rows(r->import, r->name);
    r->row = 0;
    r->headed = false;
    if (r->rows == 0) import_say(r->import, "%s: not used", r->name);
    return STATUS_OK;
}

static enum status parse_line(struct hardware_import_nvbandwidth_text_reading *r, const char *at, const char *end,
                              struct error *err)
{
    struct hardware_import_nvbandwidth_text_cursor cursor = {at, end};
    char word[WORD_BYTES];
    uint64_t number;
    if (!parse_word(&cursor, word)) return STATUS_OK;
    if (strcmp(word, "Running") == 0) return parse_word(&cursor, word) ? begin_test(r, word, err) : STATUS_OK;
    if (r->rows == 0) return STATUS_OK;
    if (!number_read_u64(word, &number)) return r->headed ? fail_ended(r, err) : STATUS_OK; /* its title */
    if (r->headed) return parse_row(r, cursor, err);
    r->headed = true;
    return STATUS_OK;
}

enum status import_nvbandwidth_text(struct import *import, const char *text, size_t length, struct error *err)
{
    struct hardware_import_nvbandwidth_text_reading r = {.import = import, .line = 1};
    const size_t devices = import->machine->device_count;
    if (import->machine->type_count != 1)
        return error_set(err, STATUS_BAD_INPUT, "%s:1:1: the machine has devices of several types (expected one)",
                         import->name);
    r.cells = alloc_zeroed(2 * devices * devices, sizeof *r.cells);
    if (!r.cells) return error_memory(err, "bandwidths", 2 * devices * devices * sizeof *r.cells);
    enum status status = STATUS_OK;
    for (const char *at = text, *end = text + length, *next; at < end && !status; at = next, r.line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        status = parse_line(&r, at, newline ? newline : end, err);
    }
    if (!status && r.rows > 0) status = fail_ended(&r, err);
    if (!status && !r.used)
        status = error_set(err, STATUS_BAD_INPUT,
                           "%s:1:1: no test can be used (expected one of host_to_device_memcpy_ce, "
                           "device_to_host_memcpy_ce, device_to_device_memcpy_read_ce)",
                           import->name);
    free(r.cells);
    return status;
}
