/* Descriptions of failures on any bytes: refused with a message, or failures in the order of their times. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "models/hardware/failures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEVICES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_input *in;
    struct error err = {0};
    struct arena arena = {0};
    struct failures failures = {0};
    enum status status = json_input_parse("fuzz", (const char *)data, size, &in, &err);
    if (status == STATUS_OK) {
        status = failures_parse(in, json_input_root(in), DEVICES, &arena, &failures, &err);
        json_input_destroy(in);
    }
    if (status == STATUS_OK) {
        assert(failures.mtbf_s > 0 && isfinite(failures.repair_s) && failures.repair_s >= 0);
        for (uint32_t i = 0; i < failures.event_count; i++) {
            assert(isfinite(failures.events[i].at_s) && failures.events[i].at_s >= 0);
            assert(i == 0 || failures.events[i].at_s >= failures.events[i - 1].at_s);
        }
        for (double random = 0.01; random < 30; random *= 3) assert(failures_life_s(&failures, random) >= 0);
    } else {
        assert(strncmp(err.text, "fuzz:", strlen("fuzz:")) == 0);
    }
    arena_release(&arena);
    return 0;
}
