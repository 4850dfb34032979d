/*
 * The reader of plans on any bytes. An accepted plan has passed plan_check(), so every user of plans must survive it,
 * and it must read back from its own text as the same plan.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json/json_out.h"
#include "planner/files/plan_io.h"
#include "planner/walk/plan_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPERATIONS_MAX = 100000 }; /* a small file may repeat a segment very often */

static void walk(const struct plan *plan)
{
    struct plan_walk *walk;
    struct plan_walk_op op;
    struct error err = {0};
    if (plan_walk_create(plan, NULL, &walk, &err) != STATUS_OK) return;
    uint64_t count = 0;
    while (count < OPERATIONS_MAX && plan_walk_next(walk, &op)) {
        if (op.number != count++) abort();
        for (uint32_t i = 0; i < op.wait_count; i++)
            if (op.waits[i] >= op.number) abort();
    }
    if (count < OPERATIONS_MAX && !plan_walk_failed(walk) && count != plan_operations(plan))
        abort();
    plan_walk_destroy(walk);
}

static void read_back(const struct plan *plan)
{
    struct json_out *out = json_out_create(NULL);
    struct plan again = {0};
    struct error err = {0};
    size_t length;
    if (!out) return;
    plan_write_json(plan, out);
    const char *text = json_out_text(out, &length);
    enum status status = plan_parse("again", text, length, &again, &err);
    if (json_out_complete(out) && status != STATUS_NO_MEMORY) {
        if (status != STATUS_OK) abort();
        if (plan_fingerprint(plan) != plan_fingerprint(&again)) abort();
    }
    plan_release(&again);
    json_out_destroy(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan plan = {0};
    struct error err = {0};
    if (plan_parse("input", (const char *)data, size, &plan, &err) == STATUS_OK) {
        char text[PLAN_TEXT_BYTES];
        for (uint32_t b = 0; b < plan.buffer_count; b++) plan_buffer_text(&plan, b, text);
        for (uint32_t d = 0; d < plan.hardware.device_count; d++)
            if (plan_device_bytes(&plan, d) > plan.hardware.devices[d].memory_bytes) abort();
        walk(&plan);
        read_back(&plan);
    }
    plan_release(&plan);
    return 0;
}
