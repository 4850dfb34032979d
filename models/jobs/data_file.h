/* Recognises training data without text or tokens. */
#ifndef SPILLWAY_MODELS_JOBS_DATA_FILE_H
#define SPILLWAY_MODELS_JOBS_DATA_FILE_H

#include <stdbool.h>

/* Returns static text for a folder, or for a file whose first bytes identify such a format ("a Parquet file"); else
 * NULL, also if unreadable. */
const char *data_file_foreign(const char *path);

bool data_file_is_folder(const char *path);

/* Returns static text for a file whose name says that it holds records ("JSON lines"), else NULL. */
const char *data_file_records(const char *path);

#endif
