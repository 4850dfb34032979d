/*
 * Files with long arrays, which are read element by element: hardware, profiles of networks, failures. They hold the
 * same as by the tree of the whole file, have the same errors, and take little memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/size.h"
#include "models/hardware/failures.h"
#include "models/hardware/hardware.h"
#include "models/network/network.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/sim/support_traces_long.h"
#include "tests/support/support_hardware_text.h"
#include "tests/support/support_models.h"

enum { FAILING_DEVICES = 4 };

static const char *write_text(const char *text)
{
    const char *path = support_path("long.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* --- the three kinds --------------------------------------------------------------------------- */

/* Reads the file; with `in`, reads its tree instead. */
typedef enum status (*read_kind)(const char *path, const struct json_input *in, struct error *err);

static enum status read_hardware(const char *path, const struct json_input *in, struct error *err)
{
    struct hardware h = {0};
    enum status status = in ? hardware_parse(in, json_input_root(in), &h, err) : hardware_read(path, &h, err);
    hardware_release(&h);
    return status;
}

static enum status read_network(const char *path, const struct json_input *in, struct error *err)
{
    struct network n;
    struct arena arena = {0};
    enum status status = in ? network_parse(in, json_input_root(in), path, &arena, &n, err)
                            : network_read_config(path, &arena, &n, err);
    arena_release(&arena);
    return status;
}

static enum status read_failures(const char *path, const struct json_input *in, struct error *err)
{
    struct failures f;
    struct arena arena = {0};
    enum status status = in ? failures_parse(in, json_input_root(in), FAILING_DEVICES, &arena, &f, err)
                            : failures_read(path, FAILING_DEVICES, &arena, &f, err);
    arena_release(&arena);
    return status;
}

/* --- contents ----------------------------------------------------------------------------------- */

#define TWO_LINKS \
    "\"links\": [{\"name\": \"a\", \"bandwidth\": " SOURCED_VALUE("1", "GB/s") ", \"duplex\": true},\n" \
    " {\"name\": \"b\", \"bandwidth\": " SOURCED_VALUE("2", "GB/s") ", \"duplex\": false}],\n"
#define TWO_DEVICES \
    "\"devices\": [{\"type\": \"core\", \"path\": [\"b\", \"a\"]},\n" \
    " {\"type\": \"core\", \"path\": [\"a\"], \"memory_bytes\": 7}]"

static void the_same_machine_as_by_the_tree(void **state)
{
    /* devices may come before links, and the keys may be written with escapes */
    static const char *const texts[] = {
        HEAD TYPES TWO_LINKS TWO_DEVICES "}",
        HEAD TWO_DEVICES ",\n" TWO_LINKS TYPES "\"note\": \"n\"}",
        HEAD TYPES TWO_LINKS "\"devi\\u0063es\": [{\"type\": \"core\", \"path\": [\"a\"]}]}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct hardware tree = {0}, rows = {0};
        struct error err = {0};
        if (support_hardware(texts[i], &tree, &err) != STATUS_OK) fail_msg("%s", err.text);
        if (hardware_read(write_text(texts[i]), &rows, &err) != STATUS_OK) fail_msg("%s", err.text);
        char *expected = support_hardware_text(&tree), *found = support_hardware_text(&rows);
        assert_string_equal(found, expected);
        free(expected);
        free(found);
        hardware_release(&tree);
        hardware_release(&rows);
    }
    support_clean();
}

#define LAYER(name) \
    "{\"parameter_bytes\": 8, \"activation_bytes\": 1, \"boundary_bytes\": 2, \"forward_ns\": 3, \"" name "\": 4"
#define PROFILE(layers) "{\"model_type\": \"profile\", \"samples\": 1, \"layers\": [" layers "]}"

static void the_same_layers_and_events(void **state)
{
    struct network n;
    struct failures f;
    struct arena arena = {0};
    struct error err = {0};
    (void)state;
    const char *path = write_text(PROFILE(LAYER("backward_ns") ", \"repeat\": 3},\n" LAYER("backward_ns") "5}"));
    if (network_read_config(path, &arena, &n, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(n.layer_count, 4);
    assert_int_equal(n.profile[2].backward_ns, 4);
    assert_int_equal(n.profile[3].backward_ns, 45);
    path = write_text("{\"spillway_failures\": 1, \"events\": [{\"at\": \"2s\", \"for\": \"1s\", \"device\": 3},\n"
                      "{\"at\": \"1s\", \"for\": \"4s\", \"device\": 2, \"factor\": 5}]}");
    if (failures_read(path, FAILING_DEVICES, &arena, &f, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(f.event_count, 2);
    assert_true(f.events[0].at_s == 1 && f.events[0].factor == 5 && f.events[0].device == 2);
    assert_true(f.events[1].at_s == 2 && f.events[1].for_s == 1 && f.events[1].device == 3);
    /* a key that this family ignores */
    path = write_text("{\"model_type\": \"gpt2\", \"layers\": [1, 2]}");
    if (network_read_config(path, &arena, &n, &err) != STATUS_OK) fail_msg("%s", err.text);
    arena_release(&arena);
    support_clean();
}

/* --- errors --------------------------------------------------------------------------------------- */

static const struct {
    read_kind read;
    const char *text;
} faulty[] = {
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": [{\"type\": \"core\", \"path\": [\"a\"]},\n"
                    " {\"type\": \"core\", \"path\": [\"c\"]}]}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": [{\"type\": \"core\",\n \"path\": [\"a\"], \"colour\": 1}]}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": [{\"type\": \"core\"},\n {\"path\": [\"a\"]}]}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": [{\"type\": \"core\", \"path\": [\"a\"]}, 7]}"},
    {read_hardware, HEAD TYPES TWO_LINKS TWO_DEVICES ", \"colour\": 1}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": {}}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": []}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": [{\"type\": \"core\", \"path\": [\"a\"]}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": [{\"type\": \"core\", \"path\": [\"a\"]},]}"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"devices\": [{\"type\": \"core\", \"type\": \"core\", \"path\": [\"a\"]}]}"},
    {read_hardware, HEAD TYPES TWO_LINKS TWO_LINKS TWO_DEVICES "}"},
    {read_hardware, HEAD TYPES TWO_LINKS TWO_DEVICES "} 1"},
    {read_hardware, HEAD TYPES TWO_LINKS "\"lonks\": 1}"},
    {read_hardware, HEAD TYPES "\"links\": [{\"name\": \"a\", \"bandwidth\": " SOURCED_VALUE("1", "GB/s") "}],\n"
                    "\"devices\": [{}]}"},
    {read_hardware, HEAD TYPES "\"links\": [{\"name\": \"a\", \"bandwidth\": " SOURCED_VALUE("1", "GB/s") ", "
                    "\"duplex\": true},\n"
                    "{\"name\": \"a\", \"bandwidth\": " SOURCED_VALUE("1", "GB/s") ", \"duplex\": true}],\n"
                    TWO_DEVICES "}"},
    {read_hardware, "{\"spillway_hardware\": 1, " TWO_LINKS "\"devices\": [{\"tipe\": 1}]}"},
    {read_hardware, "{\"spillway_jobs\": 1, \"jobs\": [], \"devices\": [1]}"},
    {read_hardware, "[1]"},
    {read_network, PROFILE(LAYER("backward_ns") "},\n" LAYER("backwards_ns") "}")},
    {read_network, PROFILE(LAYER("backward_ns") "},\n 3")},
    {read_network, PROFILE(LAYER("backward_ns") "},\n" LAYER("backward_ns") ", \"repeat\": 100000}")},
    {read_network, PROFILE("")},
    {read_network, PROFILE(LAYER("backward_ns") ", ]}")},
    {read_network, "{\"model_type\": \"gpt2\", \"layers\": [1,\n ,2]}"},
    {read_failures, "{\"spillway_failures\": 1, \"events\": [{\"at\": \"2s\", \"for\": \"1s\", \"device\": 3},\n"
                    "{\"at\": \"1s\", \"device\": 4}]}"},
    {read_failures, "{\"events\": [{\"at\": \"2s\", \"for\": \"1s\",\n \"device\": 9}]}"},
    {read_failures, "{\"spillway_failures\": 1, \"events\": [null]}"},
    {read_failures, "{\"spillway_failures\": 1, \"mtfb\": \"1s\", \"events\": [null]}"},
};

static void the_same_errors_as_by_the_tree(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(faulty); i++) {
        struct error expected = {0}, found = {0};
        struct json_input *in = NULL;
        const char *path = write_text(faulty[i].text);
        if (json_input_read(path, &in, &expected) == STATUS_OK)
            assert_int_not_equal(faulty[i].read(path, in, &expected), STATUS_OK);
        json_input_destroy(in);
        assert_int_equal(faulty[i].read(path, NULL, &found), expected.status);
        assert_string_equal(found.text, expected.text);
    }
    support_clean();
}

/* --- memory --------------------------------------------------------------------------------------- */

enum { LONG_DEVICES = 20000, LONG_LAYERS = 50000, LONG_EVENTS = 100000 };

static void write_devices(FILE *file)
{
    fputs(HEAD TYPES TWO_LINKS "\"devices\": [", file);
    for (uint32_t i = 0; i < LONG_DEVICES; i++)
        fprintf(file,
                "%s\n  {\"type\": \"core\", \"path\": [\"b\", \"a\"], \"memory_bytes\": 1024, \"networks\": "
                "[{\"group\": 1, \"path\": [\"a\"]}, {\"group\": 2, \"path\": [\"b\", \"a\"]}]}",
                i > 0 ? "," : "");
    fputs("]}", file);
}

static void write_layers(FILE *file)
{
    fputs("{\"model_type\": \"profile\", \"samples\": 1, \"layers\": [", file);
    for (uint32_t i = 0; i < LONG_LAYERS; i++) fprintf(file, "%s\n%s}", i > 0 ? "," : "", LAYER("backward_ns"));
    fputs("]}", file);
}

static void write_events(FILE *file)
{
    fputs("{\"spillway_failures\": 1, \"events\": [", file);
    for (uint32_t i = 0; i < LONG_EVENTS; i++)
        fprintf(file, "%s\n{\"at\": \"%us\", \"for\": \"1s\", \"device\": %u}", i > 0 ? "," : "", i,
                i % FAILING_DEVICES);
    fputs("]}", file);
}

static const struct long_file {
    const char *name;
    void (*write)(FILE *file);
    read_kind read;
} long_files[] = {
    {"hardware", write_devices, read_hardware},
    {"a profile", write_layers, read_network},
    {"failures", write_events, read_failures},
};

static int do_nothing(const void *context)
{
    (void)context;
    return 0;
}

static int read_long(const void *context)
{
    const struct long_file *file = context;
    struct error err = {0};
    return file->read(support_path("long.json"), NULL, &err) != STATUS_OK;
}

static void memory_within_four_times_the_file(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory, and shadows of it */
#endif
    for (size_t i = 0; i < ARRAY_COUNT(long_files); i++) {
        struct stat stat_of;
        const char *path = support_path("long.json");
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        long_files[i].write(file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(stat(path, &stat_of), 0);
        const long size = (long)stat_of.st_size / 1024, nothing = support_peak_kib(do_nothing, NULL);
        const long peak = support_peak_kib(read_long, &long_files[i]);
        print_message("%s: a file of %ld KiB takes %ld KiB\n", long_files[i].name, size, peak - nothing);
        assert_true(peak - nothing < 4 * size); /* the trees of these files take more than seven times that */
    }
    support_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_machine_as_by_the_tree),
        cmocka_unit_test(the_same_layers_and_events),
        cmocka_unit_test(the_same_errors_as_by_the_tree),
        cmocka_unit_test(memory_within_four_times_the_file),
    };
    return cmocka_run_group_tests_name("long files of models", tests, NULL, NULL);
}
