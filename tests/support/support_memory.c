#include "tests/support/support_memory.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void assert_memory_as_planned(const struct plan *plan, const struct run_result *result)
{
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        const struct run_device_memory *device = &result->devices[d];
        struct plan_memory planned;
        struct error err = {0};
        char text[PLAN_MEMORY_TEXT_BYTES];
        uint64_t sum = 0;
        assert_int_equal(plan_memory_planned(plan, d, &planned, &err), STATUS_OK);
        assert_int_equal(planned.bytes, plan_device_bytes(plan, d));
        assert_int_equal(device->taken.arena_bytes, planned.bytes);
        assert_int_equal(device->memory.bytes, planned.bytes);
        assert_int_equal(device->memory.count, planned.count);
        for (uint32_t i = 0; i < planned.count; i++) {
            const struct plan_memory_line *line = &device->memory.lines[i];
            assert_int_equal(line->uses, planned.lines[i].uses);
            if (line->bytes != planned.lines[i].bytes)
                fail_msg("device %" PRIu32 ", %s: %" PRIu64 " bytes, planned %" PRIu64, d,
                         plan_memory_text(line->uses, text), line->bytes, planned.lines[i].bytes);
            sum += line->bytes;
        }
        assert_int_equal(sum, planned.bytes);
    }
}
