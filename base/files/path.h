/* Paths named in files; they are relative to the folder of the file that names them. */
#ifndef SPILLWAY_BASE_FILES_PATH_H
#define SPILLWAY_BASE_FILES_PATH_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* Sets *out to the absolute form of `path`, relative to `folder` ("" and ".": the current folder). It lives as long
 * as `arena`. Errors: STATUS_IO when there is no current folder; STATUS_BAD_INPUT when the path is too long. */
MUST_CHECK enum status path_absolute(const char *folder, const char *path, struct arena *arena, const char **out,
                                     struct error *err);

/* Works as path_absolute() with the folder of `file`. */
MUST_CHECK enum status path_beside(const char *file, const char *path, struct arena *arena, const char **out,
                                   struct error *err);

/* Sets *out to the absolute folder of `file`, without a trailing slash unless it is the root. Errors: as
 * path_absolute(). */
MUST_CHECK enum status path_folder(const char *file, struct arena *arena, const char **out, struct error *err);

/*
 * Makes `path` relative to the absolute `folder`: "corpus.txt", "../data/corpus.txt". A path does not change when it
 * is already relative, when it shares only the root folder with `folder`, or when it is too long. Symbolic links in
 * `folder` are resolved where ".." is needed, because the kernel resolves them too. Returns `path`, a part of it, or
 * `out`.
 */
enum { PATH_RELATIVE_BYTES = 3 * 4096 };
const char *path_relative(const char *folder, const char *path, char out[PATH_RELATIVE_BYTES]);

/* Of every path that a system call takes; PATH_MAX, which plain C does not have. */
enum { PATH_MOST_BYTES = 4096 };

/* Writes the first bytes of `folder` and then `name`. Cuts a path that is too long off: no system call takes it. */
void path_join(char out[PATH_MOST_BYTES], const char *folder, size_t folder_length, const char *name);

/* Writes the path that a symbolic link points to, which need not exist, or the path itself. A circle of links is left
 * where it was entered too often. */
void path_follow(const char *path, char out[PATH_MOST_BYTES]);

/* Writes into `path` the path `relative` ("../share/x") as seen from the folder of the running program; the file need
 * not exist. "" is the program itself. Errors: STATUS_IO; STATUS_LIMIT when the path is longer than `size`. */
MUST_CHECK enum status path_from_program(const char *relative, char *path, size_t size, struct error *err);

/* Makes the parent folders of `path`, as mkdir -p does. Errors: STATUS_IO; STATUS_BAD_INPUT when the path is too
 * long. */
MUST_CHECK enum status path_make_folders(const char *path, struct error *err);

#endif
