/* JSON in tests: texts with ' for ", and the output of writers. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_JSON_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_JSON_H

#include "base/json/json_in.h"
#include "base/json/json_out.h"

/* As json_input_parse() of the file "test"; *out is NULL after an error. */
MUST_CHECK enum status test_json_parse(const char *text, struct json_input **out, struct error *err);

/* Prints to standard output, for the report of a failure. Destroys `out`, which was made without a file. */
void test_json_print(struct json_out *out);

#endif
