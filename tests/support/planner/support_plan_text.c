#include "tests/support/planner/support_plan_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "planner/files/plan_io.h"

char *support_plan_text(const struct plan *plan)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert_non_null(out);
    plan_write_json(plan, out);
    assert_true(json_out_complete(out));
    const char *text = json_out_text(out, &length);
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, text, length + 1);
    json_out_destroy(out);
    return copy;
}
