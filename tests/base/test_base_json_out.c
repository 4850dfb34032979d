/*
 * base/json/json_out.h: the layout byte for byte, strings with everything that needs escaping, random
 * documents that read back equal, and an end of memory that is told at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "base/random.h"
#include "tests/support/support_seed.h"

static void layout(void **state)
{
    (void)state;
    struct json_out *out = json_out_create(NULL);
    json_out_object_begin(out, NULL, false);
    json_out_string(out, "name", "a");
    json_out_array_begin(out, "layers", true);
    json_out_u64(out, NULL, 1);
    json_out_double(out, NULL, 2.5);
    json_out_object_begin(out, NULL, false); /* inside a compact one: compact as well */
    json_out_bool(out, "k", true);
    json_out_null(out, "n");
    json_out_object_end(out);
    json_out_array_end(out);
    json_out_array_begin(out, "long", false);
    json_out_bool(out, NULL, false);
    json_out_u64(out, NULL, UINT64_MAX);
    json_out_array_end(out);
    json_out_object_begin(out, "empty", false);
    json_out_object_end(out);
    json_out_array_begin(out, "none", false);
    json_out_array_end(out);
    json_out_object_end(out);
    size_t length;
    const char *text = json_out_text(out, &length);
    assert_string_equal(text, "{\n"
                              "  \"name\": \"a\",\n"
                              "  \"layers\": [1, 2.5, {\"k\": true, \"n\": null}],\n"
                              "  \"long\": [\n"
                              "    false,\n"
                              "    18446744073709551615\n"
                              "  ],\n"
                              "  \"empty\": {},\n"
                              "  \"none\": []\n"
                              "}\n");
    assert_int_equal(length, strlen(text));
    assert_true(json_out_complete(out));
    json_out_destroy(out);
}

static const char *string_text(struct json_out *out, const char *value)
{
    json_out_string(out, NULL, value);
    return json_out_text(out, NULL);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *value, *text;
    } rows[] = {
        {"", "\"\"\n"},
        {"say \"no\" \\ yes", "\"say \\\"no\\\" \\\\ yes\"\n"},
        {"a\nb\tc\rd\x01\x1f\x7f", "\"a\\nb\\tc\\rd\\u0001\\u001f\x7f\"\n"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
         "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"\n"},
        {"\xc4\x80 \xc3\xbf \xe2\x82\xbf \xe4\x80\x80", /* the lowest and the highest second and third bytes */
         "\"\xc4\x80 \xc3\xbf \xe2\x82\xbf \xe4\x80\x80\"\n"},
        {"\xff", "\"\xef\xbf\xbd\"\n"},
        {"a\xc3", "\"a\xef\xbf\xbd\"\n"},
        {"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"\n"},
        {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"\n"},         /* overlong NUL */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"}, /* half a surrogate pair */
        {"\xe2\x82\xc0", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"}, /* a third byte above 0xbf */
        {"\xf0\x90\x80\xff", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"},
        {"\xe2\x82\x7f", "\"\xef\xbf\xbd\xef\xbf\xbd\x7f\"\n"}, /* and one below 0x80 */
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_out *out = json_out_create(NULL);
        assert_string_equal(string_text(out, rows[i].value), rows[i].text);
        json_out_destroy(out);
    }
}

/* --- round trip ------------------------------------------------------------------------------ */

/* The same draws write a document and later tell what must be found in it. */
struct source {
    uint64_t seed, draws;
};

static uint64_t draw(struct source *source, uint64_t bound)
{
    return random_below(source->seed, source->draws++, bound);
}

static double draw_double(struct source *source)
{
    double value;
    do {
        uint64_t bits = random_u64(source->seed, source->draws++);
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

static void draw_string(struct source *source, char buffer[40])
{
    static const char *const pieces[] = {"a", "\"", "\\", "\n", "\xc3\xa9",
                                         "\xe2\x82\xac", "/", "\x02"};
    uint64_t count = draw(source, 10);
    buffer[0] = '\0';
    for (uint64_t i = 0; i < count; i++) strcat(buffer, pieces[draw(source, 8)]);
}

static void write_children(struct source *source, struct json_out *out, int depth)
{
    uint64_t count = draw(source, 12);
    for (uint64_t i = 0; i < count; i++) {
        char text[40];
        switch (draw(source, depth < 5 ? 5 : 4)) {
        case 0: json_out_double(out, NULL, draw_double(source)); break;
        case 1: json_out_u64(out, NULL, draw(source, INT64_MAX)); break;
        case 2: json_out_bool(out, NULL, draw(source, 2)); break;
        case 3:
            draw_string(source, text);
            json_out_string(out, NULL, text);
            break;
        default:
            json_out_array_begin(out, NULL, draw(source, 2));
            write_children(source, out, depth + 1);
            json_out_array_end(out);
        }
    }
}

static void check_children(struct source *source, const struct json_input *input,
                           const json_t *array, int depth)
{
    struct error err = {0};
    size_t count = (size_t)draw(source, 12);
    assert_int_equal(json_array_size(array), count);
    for (size_t i = 0; i < count; i++) {
        char text[40];
        const char *string;
        double number, expected;
        uint64_t whole;
        const json_t *inner;
        switch (draw(source, depth < 5 ? 5 : 4)) {
        case 0:
            expected = draw_double(source);
            assert_int_equal(json_item_double(input, array, i, -INFINITY, INFINITY, &number, &err),
                             STATUS_OK);
            assert_memory_equal(&number, &expected, sizeof number);
            break;
        case 1:
            assert_int_equal(json_item_u64(input, array, i, 0, UINT64_MAX, &whole, &err),
                             STATUS_OK);
            assert_true(whole == draw(source, INT64_MAX));
            break;
        case 2:
            assert_int_equal(json_is_true(json_array_get(array, i)), draw(source, 2));
            break;
        case 3:
            draw_string(source, text);
            if (strpbrk(text, "\n\x02")) { /* written, but refused by the reader of strings */
                assert_int_equal(json_item_string(input, array, i, &string, &err), STATUS_BAD_INPUT);
                break;
            }
            assert_int_equal(json_item_string(input, array, i, &string, &err), STATUS_OK);
            assert_string_equal(string, text);
            break;
        default:
            assert_int_equal(json_item_array(input, array, i, SIZE_MAX, &inner, &err), STATUS_OK);
            draw(source, 2);
            check_children(source, input, inner, depth + 1);
        }
    }
}

static void random_documents_read_back(void **state)
{
    (void)state;
    uint64_t seed = support_seed("json_out");
    for (uint64_t i = 0; i < 300; i++) {
        struct source source = {random_u64(seed, i), 0};
        struct json_out *out = json_out_create(NULL);
        json_out_array_begin(out, NULL, false);
        write_children(&source, out, 0);
        json_out_array_end(out);
        assert_true(json_out_complete(out));
        size_t length;
        const char *text = json_out_text(out, &length);
        struct json_input *input;
        struct error err = {0};
        if (json_input_parse("t.json", text, length, &input, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        source.draws = 0;
        check_children(&source, input, json_input_root(input), 0);
        json_input_destroy(input);
        json_out_destroy(out);
    }
}

/* --- size, files, memory ---------------------------------------------------------------------- */

static void write_many(struct json_out *out)
{
    char *text = malloc(200001);
    assert_non_null(text);
    memset(text, 'x', 200000);
    text[200000] = '\0';
    json_out_object_begin(out, NULL, false);
    json_out_string(out, "text", text);
    json_out_array_begin(out, "numbers", true);
    for (uint64_t i = 0; i < 50000; i++) json_out_double(out, NULL, random_unit(3, i));
    json_out_array_end(out);
    json_out_object_end(out);
    free(text);
}

static void files_and_memory_get_the_same_bytes(void **state)
{
    (void)state;
    char path[] = "/tmp/spillway-out-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct error err = {0};
    struct file_out *file;
    assert_int_equal(file_out_create(path, &file, &err), STATUS_OK);
    struct json_out *to_file = json_out_create(file), *to_memory = json_out_create(NULL);
    write_many(to_file);
    write_many(to_memory);
    assert_true(json_out_complete(to_file));
    json_out_destroy(to_file);
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);

    size_t expected_length, length;
    const char *expected = json_out_text(to_memory, &expected_length);
    char *text;
    assert_int_equal(file_read(path, 1 << 24, &text, &length, &err), STATUS_OK);
    assert_int_equal(length, expected_length);
    assert_memory_equal(text, expected, length);
    free(text);
    json_out_destroy(to_memory);
    unlink(path);
}

static void an_end_of_memory_is_told_at_the_end(void **state)
{
    (void)state;
    uint64_t calls = 1;
    for (uint64_t n = 0; n <= calls; n++) {
        alloc_test_fail_at(n);
        struct json_out *out = json_out_create(NULL);
        if (out) write_many(out);
        uint64_t made = alloc_test_fail_at(0);
        if (n == 0) {
            calls = made;
            assert_true(calls > 4);
            assert_true(json_out_complete(out));
        } else {
            assert_true(!out || !json_out_complete(out));
        }
        json_out_destroy(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(random_documents_read_back),
        cmocka_unit_test(files_and_memory_get_the_same_bytes),
        cmocka_unit_test(an_end_of_memory_is_told_at_the_end),
    };
    return cmocka_run_group_tests_name("base/json/json_out.h", tests, NULL, NULL);
}
