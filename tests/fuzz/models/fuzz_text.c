/*
 * Texts of the command line, on any bytes: refused with a message of one line, or a value that is one. The first byte
 * chooses the reader (`readers`).
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_change.h"
#include "base/text/quantity.h"
#include "cli/repro/expression.h"
#include "cli/sweep/axis.h"
#include "cli/sweep/report_figure.h"
#include "models/cost/compression.h"
#include "models/hardware/hardware.h"
#include "models/job/parallel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES_MAX = 4096 };

static void check_told(enum status status, const struct error *err)
{
    assert((status == STATUS_OK) == (err->text[0] == '\0'));
    for (const char *c = err->text; *c; c++) assert((unsigned char)*c >= ' ' && *c != 0x7f);
}

static void read_quantity(char *text)
{
    for (unsigned d = 0; d < DIMENSION_COUNT; d++) {
        struct error err = {0};
        double value = -1;
        char printed[QUANTITY_TEXT_BYTES];
        const enum status status = quantity_parse(text, (enum dimension)d, &value, &err);
        check_told(status, &err);
        if (status != STATUS_OK) continue;
        assert(isfinite(value) && value >= 0);
        quantity_text(value, (enum dimension)d, printed);
        assert(strlen(printed) < sizeof printed);
    }
}

static void read_axis(char *text)
{
    struct error err = {0};
    struct arena arena = {0};
    struct sweep_axis axis;
    const enum status status = sweep_axis_parse(text, &arena, &axis, &err);
    check_told(status, &err);
    if (status == STATUS_OK) {
        assert(axis.name[0] && axis.count >= 1 && axis.count <= SWEEP_VALUES_MAX);
        for (size_t i = 0; i < axis.count; i++) {
            assert(axis.values[i].text && axis.values[i].text[0]);
            assert(!axis.numeric || isfinite(axis.values[i].number));
        }
    }
    arena_release(&arena);
}

static void read_parallel(char *text)
{
    struct error err = {0};
    struct parallel parallel = {0};
    check_told(parallel_parse_text(text, &parallel, &err), &err);
}

static void read_compression(char *text)
{
    struct error err = {0};
    struct compression compression[COMPRESSION_COUNT] = {{0}};
    check_told(compression_parse_text(text, compression, &err), &err);
}

/* Names of machines and sums of them, not of files. */
static void read_hardware(char *text)
{
    struct error err = {0};
    struct hardware hardware = {0};
    if (strchr(text, '/') || strstr(text, ".json")) return;
    const enum status status = hardware_find(text, &hardware, &err);
    check_told(status, &err);
    assert(status != STATUS_OK || hardware.device_count >= 1);
    hardware_release(&hardware);
}

static const char *const names[] = {"run", "x", "list", "text", "truth", "missing"};
enum { NAME_COUNT = sizeof names / sizeof *names };

static json_t *document(void)
{
    static json_t *made;
    if (!made)
        made = json_loads("{\"a\": 1.5, \"jobs\": [{\"name\": \"x\", \"v\": 2.5, \"n\": null}, {\"name\": \"y\", "
                          "\"v\": 3}], \"t\": {\"columns\": [\"gpus\", \"hours\"], \"rows\": [[8, 1], [16, 2]]}, "
                          "\"s\": \"text\", \"l\": [1, 2, [3, 4]]}", 0, NULL);
    assert(made);
    return made;
}

static bool find_name(const void *context, const char *name, struct expression_value *out)
{
    static struct expression_value items[3];
    (void)context;
    items[0] = expression_of_number(2.25);
    items[1] = expression_of_number(7);
    items[2] = expression_missing("not measured");
    if (strcmp(name, "run") == 0) *out = (struct expression_value){.kind = EXPRESSION_VALUE_JSON, .json = document()};
    else if (strcmp(name, "x") == 0) *out = expression_of_number(3.5);
    else if (strcmp(name, "list") == 0)
        *out = (struct expression_value){.kind = EXPRESSION_VALUE_LIST, .items = items, .count = 3};
    else if (strcmp(name, "text") == 0) *out = expression_of_text("a");
    else if (strcmp(name, "truth") == 0) *out = expression_of_truth(true);
    else if (strcmp(name, "missing") == 0) *out = expression_missing("why");
    else return false;
    return true;
}

static void read_expression(char *text)
{
    struct error err = {0};
    struct arena arena = {0};
    const struct expression *expression = NULL;
    const struct expression_scope scope = {find_name, NULL, names, NAME_COUNT};
    struct expression_value value;
    enum status status = expression_parse(text, &arena, &expression, &err);
    if (status == STATUS_OK) status = expression_check(expression, names, NAME_COUNT, &err);
    if (status == STATUS_OK) status = expression_value(expression, &scope, &arena, &value, &err);
    check_told(status, &err);
    assert(status != STATUS_OK || value.kind != EXPRESSION_VALUE_NUMBER || isfinite(value.number));
    arena_release(&arena);
}

/* Reads FIGURE of `sweep -f`. */
static void read_figure(char *text)
{
    struct error err = {0};
    const enum status status = sweep_figure_check(text, &err);
    check_told(status, &err);
    if (status == STATUS_OK) sweep_figure_read(document(), text);
}

/* Reads KEY=VALUE of --set and --vary. */
static void read_change(char *text)
{
    struct error err = {0};
    char *value = strchr(text, '=');
    if (!value) return;
    *value++ = '\0';
    json_t *copy = json_deep_copy(document());
    assert(copy);
    check_told(json_change(copy, text, value, "KEY=VALUE", &err), &err);
    json_decref(copy);
}

static const struct {
    char letter;
    void (*read)(char *text);
} readers[] = {{'q', read_quantity},    {'a', read_axis},       {'p', read_parallel}, {'c', read_compression},
               {'h', read_hardware},    {'e', read_expression}, {'f', read_figure},   {'s', read_change}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > TEXT_BYTES_MAX) return 0;
    for (size_t r = 0; r < sizeof readers / sizeof *readers; r++) {
        if (data[0] != (uint8_t)readers[r].letter) continue;
        char *text = malloc(size); /* of this size, so that reading past its end is seen */
        assert(text);
        memcpy(text, data + 1, size - 1);
        text[size - 1] = '\0';
        readers[r].read(text);
        free(text);
    }
    return 0;
}
