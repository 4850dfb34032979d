/* The reader of execution traces on any bytes; accepted traces must be simulated or refused. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "models/hardware/hardware.h"
#include "sim/chakra/chakra_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hardware *machine(void)
{
    static struct hardware hardware;
    struct error err = {0};
    if (hardware.device_count == 0 && hardware_find("2x a100-sxm4-80gb", &hardware, &err)) abort();
    return &hardware;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chakra_rank rank = {0};
    struct error err = {0};
    enum status status = chakra_rank_parse("input.0.et", data, size, &rank, &err);
    if (status == STATUS_OK) {
        struct chakra_trace chakra = {.prefix = "input", .ranks = &rank, .rank_count = 1};
        struct sim_result result = {0};
        struct trace trace = {0};
        const struct sim_graph_options options = {.record_spans = true};
        status = sim_chakra_run(&chakra, machine(), &options, &result, &trace, &err);
        if (status == STATUS_OK && result.operations < (rank.count > 0)) abort();
        sim_result_release(&result);
        trace_release(&trace);
    }
    if (status != STATUS_OK) assert(err.text[0] && strncmp(err.text, "input", 5) == 0);
    chakra_rank_release(&rank);
    return 0;
}
