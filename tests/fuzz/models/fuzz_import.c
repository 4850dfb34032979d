/*
 * Measurements of nvbandwidth and nccl-tests on any bytes: refused with a message, or a machine that is a machine,
 * written and read back.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "models/hardware/import/hardware_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct hardware *machine)
{
    struct hardware again = {0};
    struct json_input *in;
    struct error err = {0};
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    hardware_write(machine, out, NULL);
    assert(json_out_complete(out));
    const char *text = json_out_text(out, &length);
    enum status status = json_input_parse("again", text, length, &in, &err);
    assert(status == STATUS_OK);
    status = hardware_parse(in, json_input_root(in), &again, &err);
    assert(status == STATUS_OK);
    assert(again.device_count == machine->device_count && again.type_count == machine->type_count);
    json_input_destroy(in);
    json_out_destroy(out);
    hardware_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const machines[] = {"2x a100-sxm4-40gb", "4x a100-sxm4-40gb"};
    static struct import_report report;
    struct error err = {0};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct hardware machine = {0};
        if (hardware_find(machines[m], &machine, &err) != STATUS_OK) abort();
        report.count = 0;
        enum status status =
            hardware_import_text("fuzz", (const char *)data, size, "2026-11-22", &machine, &report, &err);
        assert(report.count <= IMPORT_LINES_MAX);
        if (status == STATUS_OK) check_round_trip(&machine);
        else assert(strncmp(err.text, "fuzz", 4) == 0);
        hardware_release(&machine);
        err = (struct error){0};
    }
    return 0;
}
