/* Paths that files name: as seen from the folder that such a file is in. */
#ifndef SPILLWAY_BASE_PATH_H
#define SPILLWAY_BASE_PATH_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* `path` as seen from `folder` ("" and ".": the current one), absolute; lives as long as `arena`.
 * Errors: STATUS_IO without a current folder, STATUS_BAD_INPUT when it is too long, STATUS_NO_MEMORY. */
MUST_CHECK enum status path_absolute(const char *folder, const char *path, struct arena *arena, const char **out,
                                     struct error *err);

/* The same as seen from the folder of `file`. */
MUST_CHECK enum status path_beside(const char *file, const char *path, struct arena *arena, const char **out,
                                   struct error *err);

/* The folder of `file`, absolute, without a slash at its end unless it is the root. Errors: as path_absolute(). */
MUST_CHECK enum status path_folder(const char *file, struct arena *arena, const char **out, struct error *err);

/*
 * `path` as seen from `folder`, which is absolute: "corpus.txt", "../data/corpus.txt". A path stays as it is when it is
 * relative, when the two have only the root folder in common, or when it is too long. Links in `folder` are followed
 * where ".." is needed, because that is how the kernel reads it. Returns `path`, a part of it, or `out`.
 */
enum { PATH_RELATIVE_BYTES = 3 * 4096 };
const char *path_relative(const char *folder, const char *path, char out[PATH_RELATIVE_BYTES]);

/* `relative` as seen from the folder of this very program ("../share/x"), whether it is there or not; "" is the program
 * itself. Errors: STATUS_IO; STATUS_LIMIT when it is longer than `size`. */
MUST_CHECK enum status path_from_program(const char *relative, char *path, size_t size, struct error *err);

/* The folders above `path`, as mkdir -p makes them. Errors: STATUS_IO, STATUS_BAD_INPUT when it is too long. */
MUST_CHECK enum status path_make_folders(const char *path, struct error *err);

#endif
