/*
 * What a command reads and what it writes are kept apart.
 *
 * A command declares and probes its outputs before it does any work: options_parse() does so for those of the option
 * table, job_files_declare() for those of the jobs. A name that cannot be written is an error at once and not after hours.
 * Readers report every file that they open (file_read() does). Refused are
 *
 *     - an output that is a file which the command reads, whichever of the two is seen first;
 *     - an output that would replace a file of another kind (base/files/file_kind.h);
 *     - two outputs of one file, or a file in a folder whose files are another output.
 *
 * The user's --force allows the first two. Files are compared by device and inode, names that do not exist yet by their
 * path with links and ".." resolved.
 *
 * The register belongs to the process and is empty outside of outputs_begin() and outputs_end(), where nothing is
 * checked: libraries and tests read and write as they like. All calls may come from several threads.
 */
#ifndef SPILLWAY_BASE_OUTPUTS_H
#define SPILLWAY_BASE_OUTPUTS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/files/file_kind.h"

void outputs_begin(void);
void outputs_end(void);

/* With `force`, inputs and files of another kind may be replaced. */
void outputs_allow(bool force);

/*
 * Declare an output: `what` names it in messages ("option '--output'"); it is copied. "-" is standard output.
 * Errors: STATUS_BAD_INPUT as above; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status outputs_declare(const char *path, enum file_kind kind, const char *what, struct error *err);

/* Declare a folder in which the command makes and removes files by names of its own: no other output may be in it. Errors: as
 * above; STATUS_BAD_INPUT when the path is something else than a folder. */
MUST_CHECK enum status outputs_declare_folder(const char *path, const char *what, struct error *err);

/* Check that a file of that kind can be written at `path`; what was there is untouched. Works outside of a command, too.
 * Errors: STATUS_IO; STATUS_BAD_INPUT for weights that would go into a pipe. */
MUST_CHECK enum status outputs_probe(const char *path, enum file_kind kind, const char *what, struct error *err);

/* Report that the command reads the file at `path`; what is no regular file does not count. STATUS_BAD_INPUT when it is a
 * declared output that has not been replaced yet; STATUS_NO_MEMORY. */
MUST_CHECK enum status outputs_read(const char *path, struct error *err);

/* Check a path that is about to be replaced, declared or not. STATUS_BAD_INPUT when the command has read it. */
MUST_CHECK enum status outputs_check(const char *path, struct error *err);

#endif
