#include "tests/support/support_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status test_json_parse(const char *text, struct json_input **out, struct error *err)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    *out = NULL;
    enum status status = json_input_parse("test", copy, strlen(copy), out, err);
    free(copy);
    return status;
}

void test_json_print(struct json_out *out)
{
    size_t length;
    assert_non_null(out);
    printf("%s\n", json_out_text(out, &length));
    json_out_destroy(out);
}
