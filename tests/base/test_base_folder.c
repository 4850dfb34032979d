/* base/files/folder.h: temporary folders, and trees that are removed or moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/folder.h"

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* A tree in `top`: a file, a program, a folder that holds a folder, and links that lead out of it. */
static void fill(const char *top)
{
    char path[256];
    snprintf(path, sizeof path, "%s/one.txt", top);
    put(path, "one", 0640);
    snprintf(path, sizeof path, "%s/a folder", top);
    assert_int_equal(mkdir(path, 0750), 0);
    snprintf(path, sizeof path, "%s/a folder/.hidden", top);
    put(path, "two", 0700);
    snprintf(path, sizeof path, "%s/a folder/inner", top);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/out", top);
    assert_int_equal(symlink("../kept", path), 0);
    snprintf(path, sizeof path, "%s/a folder/nowhere", top);
    assert_int_equal(symlink("/no/such/file", path), 0);
}

static void check_filled(const char *top)
{
    char path[256], target[64] = "", *text;
    size_t length;
    struct stat info;
    struct error err = {0};
    snprintf(path, sizeof path, "%s/one.txt", top);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    snprintf(path, sizeof path, "%s/a folder/.hidden", top);
    assert_int_equal(file_read(path, 100, &text, &length, &err), STATUS_OK);
    assert_string_equal(text, "two");
    free(text);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    snprintf(path, sizeof path, "%s/a folder", top);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0750);
    snprintf(path, sizeof path, "%s/out", top);
    assert_int_equal(readlink(path, target, sizeof target - 1), strlen("../kept"));
    assert_string_equal(target, "../kept");
}

static void a_tree_is_removed_and_its_links_are_not_followed(void **state)
{
    (void)state;
    char top[128], path[256];
    struct error err = {0};
    assert_int_equal(folder_make_temporary("test", top, sizeof top, &err), STATUS_OK);
    assert_non_null(strstr(top, "/spillway-test-"));
    snprintf(path, sizeof path, "%s/kept", top);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/kept/file", top);
    put(path, "kept", 0600);
    snprintf(path, sizeof path, "%s/tree", top);
    assert_int_equal(mkdir(path, 0700), 0);
    fill(path);
    folder_remove(path);
    assert_int_not_equal(access(path, F_OK), 0);
    folder_remove(path); /* does nothing */
    snprintf(path, sizeof path, "%s/kept/file", top);
    assert_int_equal(access(path, F_OK), 0);
    folder_remove(path); /* a file */
    assert_int_not_equal(access(path, F_OK), 0);
    folder_remove(top);
    assert_int_not_equal(access(top, F_OK), 0);
}

static void move_and_check(const char *from, const char *to)
{
    struct error err = {0};
    assert_int_equal(mkdir(from, 0700), 0);
    fill(from);
    enum status status = folder_move(from, to, &err);
    if (status) fail_msg("%s", err.text);
    assert_int_not_equal(access(from, F_OK), 0);
    check_filled(to);
}

static void a_tree_is_moved(void **state)
{
    (void)state;
    char top[128], from[160], to[160], other[] = "/dev/shm/spillway-test-XXXXXX", away[64];
    struct error err = {0};
    struct stat here, there;
    assert_int_equal(folder_make_temporary("test", top, sizeof top, &err), STATUS_OK);
    snprintf(from, sizeof from, "%s/from", top);
    snprintf(to, sizeof to, "%s/to", top);
    move_and_check(from, to);
    assert_int_equal(folder_move(from, to, &err), STATUS_IO); /* there is nothing to move */
    /* and to another file system, where there is one */
    if (mkdtemp(other) && stat(top, &here) == 0 && stat(other, &there) == 0 && here.st_dev != there.st_dev) {
        snprintf(away, sizeof away, "%s/away", other);
        move_and_check(from, away);
    }
    folder_remove(other);
    folder_remove(top);
}

static void too_long_a_folder_is_told(void **state)
{
    (void)state;
    char path[16];
    struct error err = {0};
    assert_int_equal(folder_make_temporary("test", path, sizeof path, &err), STATUS_LIMIT);
    assert_string_equal(err.text, "TMPDIR is too long (limit is 16 bytes)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_removed_and_its_links_are_not_followed),
        cmocka_unit_test(a_tree_is_moved),
        cmocka_unit_test(too_long_a_folder_is_told),
    };
    return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
