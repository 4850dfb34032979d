/*
 * Hardware files on any bytes: refused with a message, or a machine whose costs are finite and
 * which writes itself as a text that reads back to the same text.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "models/cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct hardware *h)
{
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

static enum status parse(const char *text, size_t size, struct hardware *out, struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("fuzz", text, size, &in, err);
    if (status != STATUS_OK) return status;
    status = hardware_parse(in, json_input_root(in), out, err);
    json_input_destroy(in);
    return status;
}

/* As a text; the caller frees it. */
static char *text_of(const struct hardware *hardware)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    hardware_write(hardware, out, NULL);
    assert(json_out_complete(out));
    char *copy = strdup(json_out_text(out, &length));
    assert(copy);
    json_out_destroy(out);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hardware h = {0}, again = {0};
    struct error err = {0};
    if (parse((const char *)data, size, &h, &err) == STATUS_OK) {
        ask(&h);
        char *first = text_of(&h);
        enum status status = parse(first, strlen(first), &again, &err);
        assert(status == STATUS_OK);
        char *second = text_of(&again);
        assert(strcmp(first, second) == 0);
        free(first);
        free(second);
    } else {
        assert(err.status != STATUS_OK && strncmp(err.text, "fuzz:", 5) == 0);
    }
    hardware_release(&h);
    hardware_release(&again);
    return 0;
}
