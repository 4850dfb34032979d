/* base/files/path.h: a path as seen from a folder leads back to the same file, also through links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/path.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

/* top/a/b, top/a/c, top/d, and top/link, which leads to a/b */
static char top[PATH_MAX];
static const char *const folders[] = {"", "/a", "/a/b", "/a/c", "/d", "/link"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static int make_folders(void **state)
{
    (void)state;
    char path[PATH_MAX], name[SUPPORT_FOLDER_BYTES];
    support_folder_make(name);
    if (!realpath(name, top)) return -1;
    for (size_t i = 1; i + 1 < FOLDERS; i++) {
        snprintf(path, sizeof path, "%s%s", name, folders[i]);
        if (mkdir(path, 0700) != 0) return -1;
    }
    snprintf(path, sizeof path, "%s/link", name);
    return symlink("a/b", path);
}

static int remove_folders(void **state)
{
    (void)state;
    support_folder_remove(top);
    return 0;
}

static void check(const char *folder, const char *path, const char *expected)
{
    char from[PATH_MAX + 16], to[PATH_MAX + 64], out[PATH_RELATIVE_BYTES];
    snprintf(from, sizeof from, "%s%s", top, folder);
    snprintf(to, sizeof to, "%s%s", top, path);
    assert_string_equal(path_relative(from, to, out), expected);
}

static void paths_are_seen_from_folders(void **state)
{
    (void)state;
    char out[PATH_RELATIVE_BYTES];
    check("/a", "/a/x", "x");
    check("/a", "/a//x", "x");
    check("/a", "/a/b/x", "b/x");
    check("/a/b", "/a/x", "../x");
    check("/a/b", "/a/c/x", "../c/x");
    check("/a/b", "/d/x", "../../d/x");
    check("/a", "/ab", "../ab");           /* a longer name is another folder */
    check("/a", "/d/new/x", "../d/new/x"); /* a folder that is not there yet */
    check("/link", "/d/x", "../../d/x");   /* ".." of a link is where it leads to */
    check("/link", "/link/x", "x");
    assert_string_equal(path_relative("/usr", "/dev/null", out), "/dev/null"); /* only the root in common */
    assert_string_equal(path_relative("/usr", "x/y", out), "x/y");
}

/* From any folder, the relative path leads to the same file. */
static void they_lead_back(void **state)
{
    (void)state;
    uint64_t seed = support_seed("path");
    for (int round = 0; round < 200; round++) {
        struct arena arena = {0};
        struct error err = {0};
        char from[PATH_MAX + 16], file[PATH_MAX + 32], out[PATH_RELATIVE_BYTES], real[2][PATH_MAX];
        const char *back;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        snprintf(from, sizeof from, "%s%s", top, folders[(seed >> 40) % FOLDERS]);
        snprintf(file, sizeof file, "%s%s/f", top, folders[(seed >> 50) % FOLDERS]);
        FILE *made = fopen(file, "we");
        assert_non_null(made);
        assert_int_equal(fclose(made), 0);
        const char *seen = path_relative(from, file, out);
        assert_true(seen[0] != '/');
        assert_int_equal(path_absolute(from, seen, &arena, &back, &err), STATUS_OK);
        assert_non_null(realpath(back, real[0]));
        assert_non_null(realpath(file, real[1]));
        assert_string_equal(real[0], real[1]);
        unlink(file);
        arena_release(&arena);
    }
}

static void the_folder_of_a_file(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    char here[PATH_MAX], expected[PATH_MAX + 8];
    const char *folder;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(path_folder("/x/y.json", &arena, &folder, &err), STATUS_OK);
    assert_string_equal(folder, "/x");
    assert_int_equal(path_folder("/y.json", &arena, &folder, &err), STATUS_OK);
    assert_string_equal(folder, "/");
    assert_int_equal(path_folder("y.json", &arena, &folder, &err), STATUS_OK);
    assert_string_equal(folder, here);
    snprintf(expected, sizeof expected, "%s/s", here);
    assert_int_equal(path_folder("./s/y.json", &arena, &folder, &err), STATUS_OK);
    assert_string_equal(folder, expected);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_seen_from_folders),
        cmocka_unit_test(they_lead_back),
        cmocka_unit_test(the_folder_of_a_file),
    };
    return cmocka_run_group_tests_name("path", tests, make_folders, remove_folders);
}
