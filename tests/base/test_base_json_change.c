/* base/json/json_change.h: the value that each text becomes, keys that lead into objects, and keys that lead
 * nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/json/json_change.h"

static void check_changed(const char *before, const char *key, const char *value, const char *after)
{
    struct error err = {0};
    json_t *object = json_loads(before, 0, NULL), *wanted = json_loads(after, 0, NULL);
    assert_non_null(object);
    assert_non_null(wanted);
    if (json_change(object, key, value, key, &err) != STATUS_OK) fail_msg("%s: %s", key, err.text);
    assert_true(json_equal(object, wanted));
    json_decref(object);
    json_decref(wanted);
}

/* Kinds matter: json_equal() tells 3 from 3.0 and from "3". */
static void texts_become_values(void **state)
{
    (void)state;
    check_changed("{}", "a", "true", "{\"a\": true}");
    check_changed("{}", "a", "false", "{\"a\": false}");
    check_changed("{}", "a", "37", "{\"a\": 37}");
    check_changed("{}", "a", "9223372036854775807", "{\"a\": 9223372036854775807}");
    check_changed("{}", "a", "9223372036854775808", "{\"a\": 9223372036854775808.0}"); /* more than an integer holds */
    check_changed("{}", "a", "0.25", "{\"a\": 0.25}");
    check_changed("{}", "a", "-3", "{\"a\": -3.0}");
    check_changed("{}", "a", "37x", "{\"a\": \"37x\"}");
    check_changed("{}", "a", "truer", "{\"a\": \"truer\"}");
    check_changed("{}", "a", "inf", "{\"a\": \"inf\"}");
    check_changed("{}", "a", "", "{\"a\": \"\"}");
}

static void keys_lead_into_objects(void **state)
{
    (void)state;
    check_changed("{\"a\": [1], \"b\": 2}", "a", "5", "{\"a\": 5, \"b\": 2}");
    check_changed("{\"a\": {\"b\": 2, \"c\": 3}}", "a.b", "5", "{\"a\": {\"b\": 5, \"c\": 3}}");
    check_changed("{\"a\": {}}", "a.b.c", "5", "{\"a\": {\"b\": {\"c\": 5}}}");
    check_changed("{}", "optimizer.kind", "sgd", "{\"optimizer\": {\"kind\": \"sgd\"}}");
}

static void check_refused(const char *key, const char *message)
{
    struct error err = {0};
    json_t *object = json_loads("{\"a\": 7, \"b\": {\"c\": \"gpt2\"}}", 0, NULL);
    assert_int_equal(json_change(object, key, "5", "jobs.KEY", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, message);
    json_decref(object);
}

static void keys_that_lead_nowhere(void **state)
{
    static const char no_key[] = "'jobs.KEY' is not a key (expected names with '.' between them)";
    char longest[129];
    (void)state;
    check_refused("", no_key);
    check_refused(".a", no_key);
    check_refused("b.", no_key);
    check_refused("b..c", no_key);
    check_refused("a.b", "'a' of 'jobs.KEY' is not an object");
    check_refused("b.c.d", "'c' of 'jobs.KEY' is not an object");
    memset(longest, 'k', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    check_refused(longest, no_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_values),
        cmocka_unit_test(keys_lead_into_objects),
        cmocka_unit_test(keys_that_lead_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
