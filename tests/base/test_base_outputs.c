/*
 * base/files/outputs.h and base/files/file_kind.h: an output that is also an input is found in either order, through
 * links, ".." and second names; files of another kind are kept; two outputs to one file are refused; --force permits
 * exactly the documented cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/outputs.h"
#include "base/size.h"
#include "tests/support/support_folder.h"

static char folder[SUPPORT_FOLDER_BYTES];

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    return chdir(folder) == 0 && mkdir("sub", 0777) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "link", "dangling", "hard", "pipe", "new"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) unlink(names[i]);
    return rmdir("sub") == 0 && chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static int begin(void **state)
{
    (void)state;
    outputs_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    outputs_end();
    return 0;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect(enum status status, const struct error *err, const char *text)
{
    assert_string_equal(err->text, text);
    assert_int_equal(status, *text ? STATUS_BAD_INPUT : STATUS_OK);
}

static void declare(const char *path, enum file_kind kind, const char *what, const char *text)
{
    struct error err = {0};
    const enum status status = outputs_declare(path, kind, what, &err);
    expect(status, &err, text);
}

static void read_it(const char *path, const char *text)
{
    struct error err = {0};
    const enum status status = outputs_read(path, &err);
    expect(status, &err, text);
}

#define REPLACES(what, path) \
    what " would replace '" path "', which this command reads (expected another name, or --force)"

/* --- inputs ------------------------------------------------------------------------------------ */

static void an_input_is_no_output(void **state)
{
    (void)state;
    put("a", "{\"spillway_plan\": 1}");
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(link("a", "hard"), 0);
    read_it("sub/../a", "");
    declare("a", FILE_KIND_PLAN, "x", REPLACES("x", "a"));
    declare("./a", FILE_KIND_PLAN, "x", REPLACES("x", "./a"));
    declare("link", FILE_KIND_PLAN, "x", REPLACES("x", "link"));
    declare("hard", FILE_KIND_PLAN, "x", REPLACES("x", "hard"));
    declare("b", FILE_KIND_PLAN, "x", "");
}

static void an_output_is_no_input(void **state)
{
    (void)state;
    char *text;
    size_t length;
    struct error err = {0};
    put("a", "{\"spillway_plan\": 1}");
    declare("a", FILE_KIND_PLAN, "x", "");
    read_it("link", REPLACES("x", "a"));
    assert_int_equal(file_read("a", 100, &text, &length, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, REPLACES("x", "a"));
}

/* The command may read its own new output, which has replaced the old file. */
static void an_output_that_is_written_can_be_read(void **state)
{
    (void)state;
    struct file_out *file;
    struct error err = {0};
    put("c", "{\"spillway_plan\": 1}");
    declare("c", FILE_KIND_PLAN, "x", "");
    assert_int_equal(file_out_create("c", &file, &err), STATUS_OK);
    file_out_printf(file, "{\"spillway_plan\": 2}");
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);
    read_it("c", "");
}

/* Paths that no option names: pictures next to a page, weights named by a checkpoint. */
static void an_undeclared_output_is_checked_when_it_is_written(void **state)
{
    (void)state;
    struct file_out *file;
    struct error err = {0};
    put("a", "some text");
    read_it("a", "");
    assert_int_equal(file_out_create("link", &file, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'link' would be replaced, which this command reads (expected another name, or "
                                  "--force)");
}

static void outside_of_a_command_nothing_is_checked(void **state)
{
    (void)state;
    struct file_out *file;
    struct error err = {0};
    outputs_end();
    put("a", "some text");
    read_it("a", "");
    declare("a", FILE_KIND_PLAN, "x", "");
    assert_int_equal(file_out_create("a", &file, &err), STATUS_OK);
    file_out_discard(file);
}

static void force_allows_both(void **state)
{
    (void)state;
    outputs_allow(true);
    put("a", "some text");
    read_it("a", "");
    declare("a", FILE_KIND_PLAN, "x", "");
    read_it("a", "");
    declare("hard", FILE_KIND_PLAN, "y", "x and y would both write one file: 'hard' is 'a' (expected different files)");
}

/* --- two outputs ------------------------------------------------------------------------------- */

static void two_outputs_are_two_files(void **state)
{
    (void)state;
    assert_int_equal(symlink("sub/new", "dangling"), 0);
    declare("sub/new", FILE_KIND_PLAN, "x", "");
    declare("sub/new", FILE_KIND_TRACE, "y", "x and y would both write 'sub/new' (expected different files)");
    declare("sub/../sub//new", FILE_KIND_TRACE, "y",
            "x and y would both write one file: 'sub/../sub//new' is 'sub/new' (expected different files)");
    declare("dangling", FILE_KIND_TRACE, "y",
            "x and y would both write one file: 'dangling' is 'sub/new' (expected different files)");
    declare("-", FILE_KIND_LOG, "z", "");
    declare("-", FILE_KIND_TRACE, "y", "z and y would both write '-' (expected different files)");
    declare("/dev/null", FILE_KIND_TRACE, "y", "");
    declare("/dev/null", FILE_KIND_LOG, "z", "");
}

/* --- kinds ------------------------------------------------------------------------------------- */

static void kinds_are_known_by_their_beginning(void **state)
{
    (void)state;
    /* a safetensors header of 0x41 = 65 bytes */
    static const char weights[] = "A\0\0\0\0\0\0\0{\"w\": 1}", database[] = "SQLite format 3\0rest";
    static const struct {
        const char *bytes;
        size_t length; /* 0: a text */
        enum file_kind kind;
        const char *found; /* when a trace is expected */
    } files[] = {
        {"{\"spillway_plan\": 1}", 0, FILE_KIND_PLAN, "a plan"},
        {" {\"_comment\": \"mine\",\n \"spillway_hardware\": 1}", 0, FILE_KIND_HARDWARE, "a hardware file"},
        {"{\"spillway_instance\": 1}", 0, FILE_KIND_INSTANCE, "an instance"},
        {"{\"spillway_log\":1}\n{\"job\":\"a\"}\n", 0, FILE_KIND_LOG, "a log"},
        {"{\"spillway_chain_schedule\": 1}", 0, FILE_KIND_SCHEDULE, "a chain's schedule of 'spillway solve'"},
        {"{\"spillway_checkpoints\": 1}", 0, FILE_KIND_RESULT, "a list of checkpoints"},
        {"{\"layers\": []}", 0, FILE_KIND_NETWORK, "other JSON"},
        {"{\"spillway_unknown\": 1}", 0, FILE_KIND_NONE, "a file with the key 'spillway_unknown'"},
        {"{\"traceEvents\": []}", 0, FILE_KIND_TIMELINE, "a timeline"},
        {"<?xml version=\"1.0\"?>\n<svg width=\"7\"><desc>Produced by GNUPLOT", 0, FILE_KIND_PICTURE, "a picture"},
        {"\x89PNG\r\n", 0, FILE_KIND_PICTURE, "a picture"},
        {"<!DOCTYPE html><meta name=\"generator\" content=\"spillway 0.2.0\">", 0, FILE_KIND_PAGE, "a web page"},
        {FILE_KIND_PAGE_MARK "\n\n# A report\n", 0, FILE_KIND_PAGE, "a text"},
        {"# spillway mem\n", 0, FILE_KIND_PAGE, "a text"},
        {"workload,seed,policy,outcome\ntight,1,fifo,done\n", 0, FILE_KIND_TABLE, "a text"},
        {"model,series,published,simulated,error\n", 0, FILE_KIND_TABLE, "a text"},
        {"tp,link [B/s],outcome,makespan_s,reason\r\n", 0, FILE_KIND_POINTS, "a text"},
        {"\7\n\5" "1.0.0d", 9, FILE_KIND_EXECUTION_TRACE, "a text"},
        {"{\n  \"1\": [0, 1]\n}", 0, FILE_KIND_PROCESS_GROUPS, "other JSON"},
        {database, sizeof database, FILE_KIND_POINTS, "a SQLite database"},
        {database, sizeof database, FILE_KIND_DATABASE, "a SQLite database"},
        {weights, sizeof weights, FILE_KIND_WEIGHTS, "a safetensors file"},
        {"\\* Problem: x *\\\n", 0, FILE_KIND_PROGRAM, "a text"},
        {"\1\2\0\3", 4, FILE_KIND_NONE, "a file of another kind"},
        {"PK\3\4", 4, FILE_KIND_NONE, "a ZIP archive"},
        {"\x7f" "ELF\2", 5, FILE_KIND_NONE, "a compiled program or library"},
        {"\x1f\x8b\b\0\0\0\0\0\0\3", 10, FILE_KIND_NONE, "damaged gzip data"},
    };
    char found[FILE_KIND_FOUND_BYTES];
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        FILE *file = fopen("b", "w");
        assert_non_null(file);
        const size_t length = files[i].length > 0 ? files[i].length : strlen(files[i].bytes);
        assert_int_equal(fwrite(files[i].bytes, 1, length, file), length);
        assert_int_equal(fclose(file), 0);
        assert_true(file_kind_matches("b", files[i].kind, found));
        assert_false(file_kind_matches("b", FILE_KIND_TRACE, found));
        assert_string_equal(found, files[i].found);
    }
    for (int kind = FILE_KIND_NONE + 1; kind < FILE_KIND_COUNT; kind++)
        assert_string_not_equal(file_kind_noun((enum file_kind)kind), "a file");
    put("b", "");
    assert_true(file_kind_matches("b", FILE_KIND_TRACE, found));
    assert_true(file_kind_matches("nothing", FILE_KIND_TRACE, found));
    assert_true(file_kind_matches("sub", FILE_KIND_TRACE, found));
}

/* Pages, tables and pictures of other programs are not replaced. */
static void other_works_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        enum file_kind kind;
    } files[] = {
        {"# My project\n", FILE_KIND_PAGE}, {"<!doctype html><p>my page", FILE_KIND_PAGE},
        {"policy,makespan_s\nlrtf,3\n", FILE_KIND_TABLE}, {"day,weather\nMonday,good\n", FILE_KIND_POINTS},
        {"<svg width=\"7\"><path/></svg>", FILE_KIND_PICTURE}, {"notes", FILE_KIND_EXECUTION_TRACE},
        {"{\"spillway_jobs\": 1}", FILE_KIND_PROCESS_GROUPS},
    };
    char found[FILE_KIND_FOUND_BYTES];
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        put("b", files[i].bytes);
        assert_false(file_kind_matches("b", files[i].kind, found));
    }
}

static void compressed_files_are_looked_into(void **state)
{
    (void)state;
    char found[FILE_KIND_FOUND_BYTES];
    gzFile file = gzopen("b", "w");
    assert_non_null(file);
    assert_true(gzputs(file, "{\"spillway_trace\": 1}") > 0);
    assert_int_equal(gzclose(file), Z_OK);
    assert_true(file_kind_matches("b", FILE_KIND_TRACE, found));
    assert_false(file_kind_matches("b", FILE_KIND_PLAN, found));
    assert_string_equal(found, "a trace");
}

static void a_file_of_another_kind_is_kept(void **state)
{
    (void)state;
    put("a", "{\"spillway_jobs\": 1}");
    declare("a", FILE_KIND_PLAN, "x",
            "x would replace 'a', which is a jobs file and not a plan (expected another name, or --force)");
}

/* --- probing ----------------------------------------------------------------------------------- */

static void what_cannot_be_written_is_told(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(outputs_probe("nowhere/a", FILE_KIND_PLAN, "x", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "x: cannot create 'nowhere/a': No such file or directory");
    err = (struct error){0};
    assert_int_equal(outputs_probe("sub", FILE_KIND_WEIGHTS, "x", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "x: cannot write 'sub': Is a directory");
    err = (struct error){0};
    assert_int_equal(mkfifo("pipe", 0666), 0);
    assert_int_equal(outputs_probe("pipe", FILE_KIND_WEIGHTS, "x", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "x cannot go into 'pipe', which is a pipe (expected a file)");
    err = (struct error){0};
    assert_int_equal(outputs_probe("pipe", FILE_KIND_TRACE, "x", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "x is 'pipe', a pipe that no process reads (expected a reader, or a file)");
    err = (struct error){0};
    assert_int_equal(outputs_probe("new", FILE_KIND_TRACE, "x", &err), STATUS_OK);
    assert_int_not_equal(access("new", F_OK), 0);
}

/* A pipe that somebody reads is an output, and its reader sees no end before the command is over. */
static void a_pipe_stays_open_after_its_probe(void **state)
{
    (void)state;
    struct error err = {0};
    char byte;
    int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    outputs_begin();
    assert_int_equal(outputs_probe("pipe", FILE_KIND_TRACE, "x", &err), STATUS_OK);
    assert_int_equal(read(reader, &byte, 1), -1); /* 0 would be the end */
    assert_int_equal(errno, EAGAIN);
    outputs_end();
    assert_int_equal(read(reader, &byte, 1), 0);
    close(reader);
}

/* A pipe without a reader does not block the program. */
static void a_pipe_without_a_reader_is_an_error(void **state)
{
    (void)state;
    struct file_out *file;
    struct error err = {0};
    assert_int_equal(file_out_create("pipe", &file, &err), STATUS_OK);
    file_out_printf(file, "text");
    assert_int_equal(file_out_commit(file, &err), STATUS_IO);
    assert_string_equal(err.text, "cannot write 'pipe': no process reads from this pipe");
}

static void no_memory_is_told_at_every_allocation(void **state)
{
    (void)state;
    enum { MOST = 40 };
    size_t failed = 0;
    put("a", "some text");
    for (uint64_t n = 1; n < MOST; n++) {
        struct error err = {0};
        outputs_begin();
        alloc_test_fail_at(n);
        enum status status = outputs_read("a", &err);
        if (status == STATUS_OK) status = outputs_declare("new", FILE_KIND_PLAN, "x", &err);
        alloc_test_fail_at(0);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        failed += status == STATUS_NO_MEMORY;
    }
    assert_int_equal(failed, 7); /* an entry and two names of the input; and three of the output */
}

/* In either order of declaration, and under any name of the folder. */
static void folders_are_for_one_output(void **state)
{
    (void)state;
    struct error err = {0};
    put("a", "");
    assert_int_equal(outputs_declare_folder("a", "option '--checkpoint'", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "option '--checkpoint' is 'a', which is not a folder (expected a folder, or a new "
                                  "name)");
    unlink("link");
    assert_int_equal(symlink("sub", "link"), 0);
    err = (struct error){0};
    assert_int_equal(outputs_declare_folder("sub/", "option '--checkpoint'", &err), STATUS_OK);
    assert_int_equal(outputs_declare("suburb", FILE_KIND_LOG, "option '--log'", &err), STATUS_OK);
    assert_int_equal(outputs_declare("link/../sub/deep", FILE_KIND_TRACE, "option '--trace'", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "option '--trace' would write 'link/../sub/deep' into the folder of option "
                                  "'--checkpoint', 'sub/' (expected a path outside of it)");
    outputs_end();
    outputs_begin();
    err = (struct error){0};
    assert_int_equal(outputs_declare("link/x", FILE_KIND_WEIGHTS, "the weights of job 'a'", &err), STATUS_OK);
    assert_int_equal(outputs_declare_folder("sub", "option '--checkpoint'", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the weights of job 'a' would write 'link/x' into the folder of option "
                                  "'--checkpoint', 'sub' (expected a path outside of it)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_input_is_no_output, begin, end),
        cmocka_unit_test_setup_teardown(an_output_is_no_input, begin, end),
        cmocka_unit_test_setup_teardown(an_output_that_is_written_can_be_read, begin, end),
        cmocka_unit_test_setup_teardown(an_undeclared_output_is_checked_when_it_is_written, begin, end),
        cmocka_unit_test_setup_teardown(outside_of_a_command_nothing_is_checked, begin, end),
        cmocka_unit_test_setup_teardown(force_allows_both, begin, end),
        cmocka_unit_test_setup_teardown(two_outputs_are_two_files, begin, end),
        cmocka_unit_test(kinds_are_known_by_their_beginning),
        cmocka_unit_test(other_works_are_kept),
        cmocka_unit_test(compressed_files_are_looked_into),
        cmocka_unit_test_setup_teardown(a_file_of_another_kind_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(folders_are_for_one_output, begin, end),
        cmocka_unit_test(what_cannot_be_written_is_told),
        cmocka_unit_test(a_pipe_stays_open_after_its_probe),
        cmocka_unit_test(a_pipe_without_a_reader_is_an_error),
        cmocka_unit_test_setup_teardown(no_memory_is_told_at_every_allocation, begin, end),
    };
    return cmocka_run_group_tests_name("outputs", tests, make_folder, remove_folder);
}
