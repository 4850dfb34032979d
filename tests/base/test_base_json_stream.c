/*
 * Long arrays of JSON files (label: fast): elements in order with their places, whatever stands between them and
 * wherever pieces of the file end; errors where they are; gzip members, pipes; rows of numbers against the tree; memory
 * that ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/json/json_stream.h"
#include "base/random.h"
#include "base/size.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/support_seed.h"

static const char *const keys[] = {"rows", "more", NULL};

static const char small[] = "{\"a\": [[7], \"rows\"], \"rows\": [[1, 2],\n"
                            "  {\"k\": \"]}\\\"\"} ,\"x\\\\\", 5, null\n"
                            " ], \"b\": {\"rows\": [3]},\n"
                            " \"more\": [ ], \"c\": 4}\n";

static void all_elements(struct json_stream *s, size_t array, const char *expected)
{
    struct error err = {0};
    struct json_element element;
    bool more = true;
    char text[1000] = "";
    size_t used = 0;
    assert_int_equal(json_stream_begin(s, array, &err), STATUS_OK);
    for (uint64_t i = 0;; i++) {
        if (json_stream_next(s, &element, &more, &err) != STATUS_OK) fail_msg("%s", err.text);
        if (!more) break;
        assert_int_equal(element.index, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%zu:%zu %.*s|", element.line, element.column,
                                 (int)element.length, element.text);
    }
    assert_string_equal(text, expected);
}

static void head_and_elements(void **state)
{
    (void)state;
    struct error err = {0};
    struct json_stream *s;
    if (json_stream_of_text("t", small, strlen(small), keys, &s, &err)) fail_msg("%s", err.text);
    const json_t *root = json_input_root(json_stream_head(s));
    assert_int_equal(json_object_size(root), 5);
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 0);
    assert_int_equal(json_array_size(json_object_get(root, "a")), 2);
    assert_int_equal(json_array_size(json_object_get(json_object_get(root, "b"), "rows")), 1);
    static const char rows[] = "1:31 [1, 2]|2:3 {\"k\": \"]}\\\"\"}|2:18 \"x\\\\\"|2:25 5|2:28 null|";
    all_elements(s, 0, rows);
    all_elements(s, 1, "");
    all_elements(s, 0, rows);
    /* what comes after a long array has the place that it has in the file */
    json_fail_key(json_stream_head(s), root, "c", &err, "four");
    assert_string_equal(err.text, "t:4:20: four");
    json_stream_close(s);
}

static void the_root_may_be_a_long_array(void **state)
{
    (void)state;
    static const char *const of_root[] = {"rows", "", NULL};
    static const char text[] = "\n[[1, []],\n {\"rows\": [2]}, [\"\"]]", object[] = "{\"a\": [3], \"rows\": [4]}";
    struct error err = {0};
    struct json_stream *s;
    if (json_stream_of_text("t", text, strlen(text), of_root, &s, &err)) fail_msg("%s", err.text);
    assert_int_equal(json_array_size(json_input_root(json_stream_head(s))), 0);
    all_elements(s, 0, "");
    all_elements(s, 1, "2:2 [1, []]|3:2 {\"rows\": [2]}|3:17 [\"\"]|");
    json_stream_close(s);
    if (json_stream_of_text("t", object, strlen(object), of_root, &s, &err)) fail_msg("%s", err.text);
    all_elements(s, 0, "1:21 4|");
    all_elements(s, 1, "");
    json_stream_close(s);
}

static void errors_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"rows\": [1, 2}", "t:1:15: unexpected token near '}'"},
        {"{\"rows\": [[1, 2\n]", "t:2:2: ']' expected near end of file"},
        {"{\"rows\": [1 2]}", "t:1:13: ']' expected near '2'"},
        {"{\"rows\": [1,]}", "t:1:13: a value expected near ']'"},
        {"{\"rows\": [,1]}", "t:1:11: a value expected near ','"},
        {"{\"rows\": [1,,2]}", "t:1:13: a value expected near ','"},
        {"{\"rows\": [[1, 2],\n [3 4]]}", "t:2:5: ']' expected near '4'"},
        {"{\"rows\": [[1, 2}]}", "t:1:16: ']' expected near '}'"},
        {"{\"rows\": [\n[\"\xff\"]]}", "t:2:2: unable to decode byte 0xff near '\"'"},
        {"{\"rows\": [\n[1]\n], \"b\": x}", "t:3:9: invalid token near 'x'"},
        {"{\"rows\": [], \"rows\": []}", "t:1:14: duplicate object key near '\"rows\"'"},
        {"{\"rows\": []", "t:1:11: '}' expected near end of file"},
        {"{\"rows\": []} {", "t:1:14: end of file expected near '{'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        struct json_stream *s = NULL;
        struct json_element element;
        bool more = true;
        enum status status = json_stream_of_text("t", cases[i].text, strlen(cases[i].text), keys, &s, &err);
        if (status == STATUS_OK) status = json_stream_begin(s, 0, &err);
        while (status == STATUS_OK && more) {
            struct json_input *in = NULL;
            status = json_stream_next(s, &element, &more, &err);
            if (status == STATUS_OK && more && strchr("[{", element.text[0]))
                status = json_stream_parse(s, &element, &in, &err);
            json_input_destroy(in);
        }
        if (strncmp(err.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("'%s': got '%s', expected '%s'", cases[i].text, err.text, cases[i].message);
        assert_int_equal(status, STATUS_BAD_INPUT);
        json_stream_close(s);
    }
}

/* Writes numbered elements of all lengths, some longer than any buffer, so that pieces of the file end everywhere. */
static char *long_text(uint64_t seed, uint32_t count, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    assert_non_null(out);
    fputs("{\"a\": 1,\n \"rows\": [", out);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t size = random_below(seed, i, 40) == 0 ? random_below(~seed, i, 200000) : random_below(~seed, i, 60);
        fprintf(out, "%s{\"i\": %u, \"t\": \"", i > 0 ? random_below(seed, i, 2) ? ",\n" : ", " : "", i);
        for (uint64_t k = 0; k < size; k++)
            fputs(k % 7 == 3 ? "\\\"" : k % 5 == 2 ? "]" : k % 11 == 1 ? "\xc3\xbc" : "x", out);
        fputs("\"}", out);
    }
    fputs("],\n \"b\": [2]}\n", out);
    fclose(out);
    return text;
}

static void check_numbers(struct json_stream *s, uint32_t count)
{
    struct error err = {0};
    struct json_element element;
    bool more = true;
    assert_int_equal(json_stream_begin(s, 0, &err), STATUS_OK);
    for (uint32_t i = 0;; i++) {
        struct json_input *in = NULL;
        if (json_stream_next(s, &element, &more, &err)) fail_msg("%s", err.text);
        if (!more) {
            assert_int_equal(i, count);
            return;
        }
        if (json_stream_parse(s, &element, &in, &err)) fail_msg("%s", err.text);
        assert_int_equal(json_integer_value(json_object_get(json_input_root(in), "i")), i);
        json_input_destroy(in);
    }
}

static void write_file(const char *path, const char *text, size_t length, bool members)
{
    if (!members) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, length, file), length);
        fclose(file);
        return;
    }
    for (size_t at = 0, part = 0; at < length; at += part) { /* several members, as concatenated files have */
        gzFile file = gzopen(path, at == 0 ? "wb" : "ab");
        part = length - at < 100003 ? length - at : 100003;
        assert_int_equal(gzwrite(file, text + at, (unsigned)part), (int)part);
        gzclose(file);
    }
}

static void pieces_end_anywhere(void **state)
{
    (void)state;
    enum { COUNT = 900 };
    uint64_t seed = support_seed("json_stream");
    size_t length;
    char *text = long_text(seed, COUNT, &length);
    struct error err = {0};
    struct json_stream *s;
    assert_true(length > 300000);
    for (uint32_t way = 0; way < 3; way++) {
        const char *path = support_path(way == 1 ? "long.json.gz" : "long.json");
        if (way < 2) write_file(path, text, length, way == 1);
        enum status status = way == 2 ? json_stream_of_text("t", text, length, keys, &s, &err)
                                      : json_stream_open(path, keys, &s, &err);
        if (status) fail_msg("%s", err.text);
        check_numbers(s, COUNT);
        check_numbers(s, COUNT); /* and from the beginning again */
        assert_int_equal(json_array_size(json_object_get(json_input_root(json_stream_head(s)), "b")), 1);
        json_stream_close(s);
    }
    support_clean();
    free(text);
}

static void a_pipe_is_read(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    size_t length;
    char *text = long_text(5, COUNT, &length);
    int ends[2], old = dup(STDIN_FILENO), code;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        size_t done = 0;
        for (ssize_t got = 1; done < length && got > 0; done += (size_t)got)
            got = write(ends[1], text + done, length - done);
        _exit(done == length ? 0 : 1);
    }
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    struct error err = {0};
    struct json_stream *s;
    if (json_stream_open("-", keys, &s, &err)) fail_msg("%s", err.text);
    check_numbers(s, COUNT);
    assert_string_equal(json_input_name(json_stream_head(s)), "standard input");
    json_stream_close(s);
    dup2(old, STDIN_FILENO);
    close(old);
    close(ends[0]);
    waitpid(child, &code, 0);
    assert_int_equal(code, 0);
    free(text);
}

/* The fast reader accepts numbers as the tree does, or leaves them to the tree. */
static void rows_of_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        bool taken;
    } cases[] = {
        {"[1, 2.5, 3]", true},    {"[0, 0.0, 0]", true},      {"[1,2e3,3E+2]", true},
        {"[1, 2, 9007199254740993]", true},
        {"[1, 2]", false},        {"[1, 2, 3, 4]", false},    {"[-1, 2, 3]", false},   {"[01, 2, 3]", false},
        {"[1, .5, 3]", false},    {"[1, 5., 3]", false},      {"[1, 5.e1, 3]", false}, {"[1, 2, 1e]", false},
        {"[1, \"2\", 3]", false}, {"[1, 2, 3}", false},       {"[1 2, 3]", false},     {"{1, 2, 3]", false},
        {"[1, 2, 1e999]", false}, {"[1, 0x2, 3]", false},     {"[1, 2, [3]]", false},  {"[ 0.1 , 2 , 1e-5 ]", true},
        {"[18446744073709551616, 1, 1]", true},               {"[0.30000000000000004, 123456789.125, 5e-324]", true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        double out[3];
        const struct json_element element = {.text = cases[i].row, .length = strlen(cases[i].row)};
        if (json_element_numbers(&element, 3, out) != cases[i].taken) fail_msg("%s", cases[i].row);
        if (!cases[i].taken) continue;
        const char *c = cases[i].row + 1;
        for (int k = 0; k < 3; k++) {
            char *end;
            assert_true(strtod(c, &end) == out[k]);
            c = end + strspn(end, " ,");
        }
    }
}

static void memory_that_ends(void **state)
{
    (void)state;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        struct error err = {0};
        struct json_stream *s = NULL;
        struct json_element element;
        bool more = true;
        assert_true(n < 1000);
        alloc_test_fail_at(n);
        enum status status = json_stream_of_text("t", small, strlen(small), keys, &s, &err);
        if (status == STATUS_OK) status = json_stream_begin(s, 0, &err);
        while (status == STATUS_OK && more) status = json_stream_next(s, &element, &more, &err);
        alloc_test_fail_at(0);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        done = status == STATUS_OK;
        json_stream_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_and_elements), cmocka_unit_test(the_root_may_be_a_long_array),
            cmocka_unit_test(errors_have_a_place), cmocka_unit_test(pieces_end_anywhere),
        cmocka_unit_test(a_pipe_is_read),    cmocka_unit_test(rows_of_numbers),     cmocka_unit_test(memory_that_ends),
    };
    return cmocka_run_group_tests_name("base/json/json_stream.h", tests, NULL, NULL);
}
