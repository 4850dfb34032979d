/*
 * Hardware files on any bytes: refused with a message, or a machine whose costs are finite and
 * which writes itself as a text that reads back to the same text.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "models/cost/cost.h"
#include "tests/support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const void *what)
{
    const struct hardware *h = what;
    struct error err = {0};
    if (hardware_check(h, &err) != STATUS_OK) {
        assert(err.status == STATUS_CHECK);
        return;
    }
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        struct work_item item = {kernel, 3, 37, 5, 11};
        double spread, s = cost_work_s(h, 0, &item, 1, &spread);
        assert(isfinite(s) && s >= 0 && isfinite(spread) && spread >= 0);
    }
    for (uint64_t bytes = 0; bytes < UINT64_C(1) << 40; bytes = bytes * 1000 + 7) {
        double s = cost_copy_s(h, h->device_count - 1, COPY_H2D, bytes);
        assert(isfinite(s) && s >= 0);
    }
    assert(cost_copy_bandwidth(h, 0, COPY_D2H) > 0);
    assert(cost_copy_latency_s(h, 0, COPY_D2H) >= 0);
}

static enum status parse(const struct json_input *in, void *out, struct error *err)
{
    return hardware_parse(in, json_input_root(in), out, err);
}

static void write_what(const void *what, struct json_out *out)
{
    hardware_write(what, out, NULL);
}

static void release(void *what) { hardware_release(what); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_reader reader = {sizeof(struct hardware), parse, write_what, ask, release, "fuzz:"};
    fuzz_reader_run(&reader, data, size);
    return 0;
}
