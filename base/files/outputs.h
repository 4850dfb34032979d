/*
 * Protection of a command's inputs and of existing files against its outputs.
 *
 * A command declares and probes its outputs before it does any work: options_parse() declares outputs named by
 * options, job_files_declare() outputs named in jobs. A name that cannot be written is therefore an error at the
 * start and not after hours. Readers report every file that they open (file_read() does). These outputs are refused:
 *
 *     - an output that is also an input, whichever of the two is reported first;
 *     - an output that would replace a file of another kind (base/files/file_kind.h);
 *     - a second output with the same file, or an output inside a folder that is itself declared as an output.
 *
 * The user's --force allows the first two. Existing files are compared by device and inode, new names by their path
 * after resolving links and "..".
 *
 * The register belongs to the process. Nothing is checked outside of outputs_begin() and outputs_end(): libraries and
 * tests read and write freely. All calls are thread-safe.
 */
#ifndef SPILLWAY_BASE_FILES_OUTPUTS_H
#define SPILLWAY_BASE_FILES_OUTPUTS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/files/file_kind.h"

void outputs_begin(void);
void outputs_end(void);

/* With `force`, lets outputs replace inputs and files of another kind. */
void outputs_allow(bool force);

/*
 * Declares an output. `what` names it in messages ("option '--output'") and is copied. "-" is standard output. Errors:
 * STATUS_BAD_INPUT for the refusals above.
 */
MUST_CHECK enum status outputs_declare(const char *path, enum file_kind kind, const char *what, struct error *err);

/* Declares a folder in which the command makes and removes files under names of its own. No other output may be in
 * the folder. Errors: as outputs_declare(); STATUS_BAD_INPUT when the path is not a folder. */
MUST_CHECK enum status outputs_declare_folder(const char *path, const char *what, struct error *err);

/* Checks that a file of that kind can be written at `path`. An existing file is untouched. A named pipe is opened, and
 * stays open until outputs_end(). Also works outside of outputs_begin() and outputs_end(). Errors: STATUS_IO;
 * STATUS_BAD_INPUT for weights that would go into a pipe, and for a pipe without a reader. */
MUST_CHECK enum status outputs_probe(const char *path, enum file_kind kind, const char *what, struct error *err);

/* Keeps a file open until outputs_end(). Outside of outputs_begin() and outputs_end() it is closed at once. */
void outputs_hold(int file);

/* Reports that the command reads the file at `path`. Paths that are not regular files are ignored. Errors:
 * STATUS_BAD_INPUT when the file is a declared output that has not been replaced yet. */
MUST_CHECK enum status outputs_read(const char *path, struct error *err);

/* Checks a path that is about to be replaced, declared or not. Errors: STATUS_BAD_INPUT when the command has read
 * it. */
MUST_CHECK enum status outputs_check(const char *path, struct error *err);

#endif
