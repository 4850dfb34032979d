/*
 * base/files/file.h: a file is there whole or not at all. Full devices, missing folders, files past a size limit and
 * failing allocations leave no temporary file; compressed data reads back; damaged compressed data is refused at every
 * length.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/random.h"
#include "tests/support/support_folder.h"

static char folder[SUPPORT_FOLDER_BYTES];

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[384];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static size_t file_count(void)
{
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *directory = opendir(folder);
    if (!directory) return -1;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.') unlink(path_of(entry->d_name));
    closedir(directory);
    return rmdir(folder);
}

static void assert_content(const char *path, const char *content)
{
    struct error err = {0};
    char *text;
    size_t length;
    if (file_read(path, 1 << 24, &text, &length, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_string_equal(text, content);
    assert_int_equal(length, strlen(content));
    free(text);
}

static void write_content(const char *path, const void *data, size_t length)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
}

/* --- writing --------------------------------------------------------------------------------- */

static void a_file_appears_at_commit(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file;
    assert_int_equal(file_out_create(path_of("plan.json"), &file, &err), STATUS_OK);
    file_out_printf(file, "%s %d\n", "tasks", 37);
    file_out_write(file, "end\n", 4);
    assert_int_equal(access(path_of("plan.json"), F_OK), -1);
    char temporary[64];
    snprintf(temporary, sizeof temporary, "plan.json.tmp-%ld", (long)getpid());
    assert_int_equal(access(path_of(temporary), F_OK), 0);
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);
    assert_content(path_of("plan.json"), "tasks 37\nend\n");
    assert_int_equal(file_count(), 1);
}

static void a_discarded_file_leaves_the_old_one(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file;
    write_content(path_of("plan.json"), "old", 3);
    assert_int_equal(file_out_create(path_of("plan.json"), &file, &err), STATUS_OK);
    file_out_printf(file, "new");
    file_out_discard(file);
    file_out_discard(NULL);
    assert_content(path_of("plan.json"), "old");
    assert_int_equal(file_count(), 1);
}

static void replacing_keeps_links_and_modes(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file;
    struct stat info;
    char target[384];
    strcpy(target, path_of("real.json"));
    write_content(target, "old", 3);
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink("real.json", path_of("link.json")), 0);
    assert_int_equal(file_out_create(path_of("link.json"), &file, &err), STATUS_OK);
    file_out_printf(file, "new");
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);
    assert_int_equal(lstat(path_of("link.json"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_content(target, "new");
    assert_int_equal(file_count(), 2);
}

/* A link to a file that is not there yet is followed, through a second link too, and stays. */
static void dangling_links_are_followed(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file;
    struct stat info;
    assert_int_equal(mkdir(path_of("deep"), 0755), 0);
    assert_int_equal(symlink("deep/second", path_of("first")), 0);
    assert_int_equal(symlink("../real", path_of("deep/second")), 0);
    assert_int_equal(file_out_create(path_of("first"), &file, &err), STATUS_OK);
    file_out_printf(file, "new");
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);
    assert_content(path_of("real"), "new");
    assert_int_equal(lstat(path_of("first"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat(path_of("deep/second"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(symlink("nowhere/file", path_of("third")), 0);
    assert_int_equal(file_out_create(path_of("third"), &file, &err), STATUS_BAD_INPUT);
    assert_int_equal(lstat(path_of("third"), &info), 0);
    err = (struct error){0};
    assert_int_equal(symlink("fourth", path_of("fourth")), 0); /* a circle */
    assert_int_equal(file_out_create(path_of("fourth"), &file, &err), STATUS_BAD_INPUT);
    assert_int_equal(lstat(path_of("fourth"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(path_of("deep/second")), 0);
    assert_int_equal(rmdir(path_of("deep")), 0);
}

static void two_writers_do_not_meet(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *first, *second;
    assert_int_equal(file_out_create(path_of("a"), &first, &err), STATUS_OK);
    assert_int_equal(file_out_create(path_of("a"), &second, &err), STATUS_OK);
    file_out_printf(first, "first");
    file_out_printf(second, "second");
    assert_int_equal(file_out_commit(second, &err), STATUS_OK);
    assert_content(path_of("a"), "second");
    assert_int_equal(file_out_commit(first, &err), STATUS_OK);
    assert_content(path_of("a"), "first");
    assert_int_equal(file_count(), 1);
}

static void large_writes_and_texts_arrive_whole(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file;
    size_t length = 1000003;
    char *data = malloc(length + 1);
    assert_non_null(data);
    for (size_t i = 0; i < length; i++) data[i] = (char)('a' + random_below(5, i, 26));
    data[length] = '\0';
    static const char *const names[] = {"large", "large.gz"};
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(file_out_create(path_of(names[k]), &file, &err), STATUS_OK);
        for (size_t at = 0, i = 0; at < length; i++) {
            size_t part = (size_t)random_below(7, i, i % 7 == 6 ? 200000 : 3000);
            if (part > length - at) part = length - at;
            file_out_write(file, data + at, part);
            at += part;
        }
        file_out_printf(file, "%s", data); /* longer than its small buffer */
        assert_int_equal(file_out_commit(file, &err), STATUS_OK);
        char *text;
        size_t read_length;
        assert_int_equal(file_read(path_of(names[k]), 1 << 24, &text, &read_length, &err),
                         STATUS_OK);
        assert_int_equal(read_length, 2 * length);
        assert_memory_equal(text, data, length);
        assert_memory_equal(text + length, data, length);
        free(text);
    }
    free(data);
}

/* --- writing fails --------------------------------------------------------------------------- */

static void a_missing_folder_is_told(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file = (struct file_out *)&err;
    assert_int_equal(file_out_create("/nonexistent/plan.json", &file, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text,
                        "cannot create '/nonexistent/plan.json': No such file or directory");
    assert_ptr_equal(file, &err);
    err = (struct error){0};
    assert_int_equal(file_out_create("/tmp", &file, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "cannot write '/tmp': Is a directory");
}

static void a_full_device_is_told_and_stays(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file;
    struct stat info;
    assert_int_equal(file_out_create("/dev/full", &file, &err), STATUS_OK);
    file_out_printf(file, "text");
    assert_int_equal(file_out_commit(file, &err), STATUS_IO);
    assert_string_equal(err.text, "cannot write '/dev/full': No space left on device");
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    err = (struct error){0};
    assert_int_equal(file_out_create("/dev/null", &file, &err), STATUS_OK);
    file_out_printf(file, "text");
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

/* RLIMIT_FSIZE makes every write past the limit fail, as a full disk does. */
static void a_full_disk_leaves_no_file(void **state)
{
    (void)state;
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = (struct rlimit){.rlim_cur = 100000, .rlim_max = old.rlim_max};
    void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    struct error err = {0};
    struct file_out *file;
    static const char *const names[] = {"plan.json", "plan.json.gz"};
    enum status statuses[2];
    char texts[2][sizeof err.text];
    for (size_t k = 0; k < 2; k++) {
        err = (struct error){0};
        assert_int_equal(file_out_create(path_of(names[k]), &file, &err), STATUS_OK);
        for (uint64_t i = 0; i < 100000; i++) {
            uint64_t bits = random_u64(1, i); /* does not compress */
            file_out_write(file, &bits, sizeof bits);
        }
        statuses[k] = file_out_commit(file, &err);
        strcpy(texts[k], err.text);
    }
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, old_handler);
    for (size_t k = 0; k < 2; k++) {
        char expected[512];
        assert_int_equal(statuses[k], STATUS_IO);
        snprintf(expected, sizeof expected, "cannot write '%s': File too large", path_of(names[k]));
        assert_string_equal(texts[k], expected);
    }
    assert_int_equal(file_count(), 0);
}

static void a_vanished_folder_is_told(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *file;
    char inner[384];
    strcpy(inner, path_of("inner"));
    assert_int_equal(mkdir(inner, 0755), 0);
    assert_int_equal(file_out_create(path_of("inner/a"), &file, &err), STATUS_OK);
    char temporary[64];
    snprintf(temporary, sizeof temporary, "inner/a.tmp-%ld", (long)getpid());
    assert_int_equal(unlink(path_of(temporary)), 0);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(file_out_commit(file, &err), STATUS_IO);
    assert_int_equal(file_count(), 0);
}

static void every_failing_allocation_leaves_no_file(void **state)
{
    (void)state;
    static const char *const names[] = {"a.json", "a.json.gz"};
    for (size_t k = 0; k < 2; k++) {
        uint64_t calls = 1;
        for (uint64_t n = 0; n <= calls; n++) {
            struct error err = {0};
            struct file_out *file;
            alloc_test_fail_at(n);
            enum status status = file_out_create(path_of(names[k]), &file, &err);
            if (status == STATUS_OK) {
                file_out_printf(file, "%02000d", 7);
                status = file_out_commit(file, &err);
            }
            uint64_t made = alloc_test_fail_at(0);
            if (n == 0) {
                calls = made;
                assert_true(calls >= 4);
                assert_int_equal(status, STATUS_OK);
                unlink(path_of(names[k]));
            } else {
                assert_true(status == STATUS_NO_MEMORY || status == STATUS_IO);
                assert_non_null(strstr(err.text, "emory"));
            }
            assert_int_equal(file_count(), 0);
        }
    }
}

static void pending_files_can_be_removed(void **state)
{
    (void)state;
    struct error err = {0};
    struct file_out *first, *second;
    assert_int_equal(file_out_create(path_of("a"), &first, &err), STATUS_OK);
    assert_int_equal(file_out_create(path_of("b"), &second, &err), STATUS_OK);
    assert_int_equal(file_count(), 2);
    file_remove_pending();
    assert_int_equal(file_count(), 0);
    file_out_discard(first);
    file_out_discard(second);
}

/* --- standard output -------------------------------------------------------------------------- */

/* Returns the result of a commit to standard output while descriptor 1 is `fd`. */
static enum status commit_to(int fd, bool commit, struct error *err)
{
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0);
    struct file_out *file;
    enum status status = file_out_create("-", &file, err);
    dup2(fd, STDOUT_FILENO);
    if (status == STATUS_OK) {
        for (int i = 0; i < 20000; i++) file_out_printf(file, "%07d\n", i);
        if (commit)
            status = file_out_commit(file, err);
        else
            file_out_discard(file);
    }
    dup2(kept, STDOUT_FILENO);
    close(kept);
    return status;
}

static void standard_output_gets_all_or_nothing(void **state)
{
    (void)state;
    struct error err = {0};
    int fd = open(path_of("out"), O_RDWR | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(commit_to(fd, false, &err), STATUS_OK);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    assert_int_equal(commit_to(fd, true, &err), STATUS_OK);
    assert_int_equal(lseek(fd, 0, SEEK_END), 160000);
    close(fd);
}

static void a_closed_pipe_is_an_error_and_no_signal(void **state)
{
    (void)state;
    struct error err = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(commit_to(ends[1], true, &err), STATUS_IO);
    assert_string_equal(err.text, "cannot write to standard output: Broken pipe");
    close(ends[1]);
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    err = (struct error){0};
    assert_int_equal(commit_to(full, true, &err), STATUS_IO);
    assert_string_equal(err.text, "cannot write to standard output: No space left on device");
    close(full);
}

/* --- compressed ------------------------------------------------------------------------------- */

static size_t write_gzip(const char *name, const char *text)
{
    struct error err = {0};
    struct file_out *file;
    struct stat info;
    assert_int_equal(file_out_create(path_of(name), &file, &err), STATUS_OK);
    file_out_printf(file, "%s", text);
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);
    assert_int_equal(stat(path_of(name), &info), 0);
    return (size_t)info.st_size;
}

static size_t read_raw(const char *name, unsigned char *data, size_t size)
{
    FILE *stream = fopen(path_of(name), "rb");
    assert_non_null(stream);
    size_t length = fread(data, 1, size, stream);
    fclose(stream);
    return length;
}

static void compressed_files_are_the_same_every_time(void **state)
{
    (void)state;
    unsigned char first[512], second[512];
    write_gzip("a.gz", "{\"steps\": 3, \"more\": [3, 3, 3, 3, 3, 3, 3, 3, 3]}");
    write_gzip("b.gz", "{\"steps\": 3, \"more\": [3, 3, 3, 3, 3, 3, 3, 3, 3]}");
    size_t length = read_raw("a.gz", first, sizeof first);
    assert_int_equal(read_raw("b.gz", second, sizeof second), length);
    assert_memory_equal(first, second, length);
    /* RFC 1952: magic, deflate, no flags, no time, extra flags, unknown system */
    static const unsigned char header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    assert_memory_equal(first, header, sizeof header);
    assert_content(path_of("a.gz"), "{\"steps\": 3, \"more\": [3, 3, 3, 3, 3, 3, 3, 3, 3]}");

    write_gzip("empty.gz", "");
    assert_content(path_of("empty.gz"), "");
}

static void gzip_is_known_by_its_bytes_and_may_be_chained(void **state)
{
    (void)state;
    unsigned char data[512];
    write_gzip("a.gz", "one,");
    size_t length = read_raw("a.gz", data, sizeof data / 2);
    write_gzip("b.gz", "two");
    length += read_raw("b.gz", data + length, sizeof data / 2);
    write_content(path_of("both.json"), data, length);
    assert_content(path_of("both.json"), "one,two");
}

static void damaged_gzip_is_refused(void **state)
{
    (void)state;
    unsigned char data[2048];
    struct error err;
    char *text = NULL;
    size_t length, read_length;
    write_gzip("a.gz", "{\"steps\": 3, \"name\": \"a text that is long enough to be cut\"}");
    length = read_raw("a.gz", data, sizeof data);
    for (size_t cut = 0; cut < length; cut++) {
        write_content(path_of("cut.gz"), data, cut);
        err = (struct error){0};
        assert_int_equal(file_read(path_of("cut.gz"), 1000, &text, &read_length, &err),
                         STATUS_BAD_INPUT);
        char expected[512];
        snprintf(expected, sizeof expected, "'%s' is %s gzip data", path_of("cut.gz"),
                 cut < 2 ? "not" : "truncated");
        assert_string_equal(err.text, expected);
    }
    for (size_t at = 10; at < length; at++) { /* the header has bytes that mean nothing */
        data[at] ^= 0x10;
        write_content(path_of("bad.gz"), data, length);
        data[at] ^= 0x10;
        err = (struct error){0};
        assert_int_equal(file_read(path_of("bad.gz"), 1000, &text, &read_length, &err),
                         STATUS_BAD_INPUT);
    }
    memcpy(data + length, "tail", 4);
    write_content(path_of("tail.gz"), data, length + 4);
    err = (struct error){0};
    assert_int_equal(file_read(path_of("tail.gz"), 1000, &text, &read_length, &err),
                     STATUS_BAD_INPUT);
    assert_null(text);
}

static void limits_are_kept(void **state)
{
    (void)state;
    struct error err = {0};
    char *text, expected[512];
    size_t length;
    write_content(path_of("a"), "0123456789", 10);
    assert_int_equal(file_read(path_of("a"), 10, &text, &length, &err), STATUS_OK);
    free(text);
    assert_int_equal(file_read(path_of("a"), 9, &text, &length, &err), STATUS_LIMIT);
    snprintf(expected, sizeof expected, "'%s' is too large (limit is 9 bytes)", path_of("a"));
    assert_string_equal(err.text, expected);
    /* A small file that inflates to a large one. */
    struct file_out *file;
    err = (struct error){0};
    assert_int_equal(file_out_create(path_of("bomb.gz"), &file, &err), STATUS_OK);
    for (int i = 0; i < 1000; i++) file_out_printf(file, "%01000d", 0);
    assert_int_equal(file_out_commit(file, &err), STATUS_OK);
    assert_int_equal(file_read(path_of("bomb.gz"), 100000, &text, &length, &err), STATUS_LIMIT);
    err = (struct error){0};
    assert_int_equal(file_read("/dev/zero", 100000, &text, &length, &err), STATUS_LIMIT);
}

static void every_failing_allocation_while_reading_is_told(void **state)
{
    (void)state;
    write_gzip("a.gz", "0123456789");
    uint64_t calls = 1;
    for (uint64_t n = 0; n <= calls; n++) {
        struct error err = {0};
        char *text = NULL;
        size_t length;
        alloc_test_fail_at(n);
        enum status status = file_read(path_of("a.gz"), 1000, &text, &length, &err);
        uint64_t made = alloc_test_fail_at(0);
        if (n == 0) {
            calls = made;
            assert_true(calls >= 3);
        }
        assert_int_equal(status, n == 0 ? STATUS_OK : STATUS_NO_MEMORY);
        free(text);
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_file_appears_at_commit),
        IN_FOLDER(a_discarded_file_leaves_the_old_one),
        IN_FOLDER(replacing_keeps_links_and_modes),
        IN_FOLDER(dangling_links_are_followed),
        IN_FOLDER(two_writers_do_not_meet),
        IN_FOLDER(large_writes_and_texts_arrive_whole),
        IN_FOLDER(a_missing_folder_is_told),
        IN_FOLDER(a_full_device_is_told_and_stays),
        IN_FOLDER(a_full_disk_leaves_no_file),
        IN_FOLDER(a_vanished_folder_is_told),
        IN_FOLDER(every_failing_allocation_leaves_no_file),
        IN_FOLDER(pending_files_can_be_removed),
        IN_FOLDER(standard_output_gets_all_or_nothing),
        IN_FOLDER(a_closed_pipe_is_an_error_and_no_signal),
        IN_FOLDER(compressed_files_are_the_same_every_time),
        IN_FOLDER(gzip_is_known_by_its_bytes_and_may_be_chained),
        IN_FOLDER(damaged_gzip_is_refused),
        IN_FOLDER(limits_are_kept),
        IN_FOLDER(every_failing_allocation_while_reading_is_told),
    };
    return cmocka_run_group_tests_name("base/files/file.h", tests, NULL, NULL);
}
