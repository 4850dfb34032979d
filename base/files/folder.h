/* Folders: temporary ones, and whole trees that are removed or moved. */
#ifndef SPILLWAY_BASE_FILES_FOLDER_H
#define SPILLWAY_BASE_FILES_FOLDER_H

#include <stddef.h>

#include "base/error.h"

/* Returns the folder for temporary files: $TMPDIR when it is an absolute path, else /tmp. */
const char *folder_for_temporary(void);

/* Makes an empty folder "spillway-WHAT-XXXXXX" for temporary files and writes its path. The caller removes it with
 * folder_remove(). Errors: STATUS_IO; STATUS_LIMIT when the path is longer than `size`. */
MUST_CHECK enum status folder_make_temporary(const char *what, char *path, size_t size, struct error *err);

/* Removes a folder and everything in it, or a file. Symbolic links are removed, not followed. Leaves what cannot be
 * removed; a path that does not exist is fine. */
void folder_remove(const char *path);

/* Moves a folder to a path that does not exist; between file systems as a copy of its files, folders and symbolic
 * links. Errors: STATUS_IO; `from` is complete then. */
MUST_CHECK enum status folder_move(const char *from, const char *to, struct error *err);

#endif
