/* Recognises files given as training data that hold something other than text or tokens. */
#ifndef SPILLWAY_MODELS_JOBS_DATA_FILE_H
#define SPILLWAY_MODELS_JOBS_DATA_FILE_H

/* Returns a name for a folder, or for a file whose first bytes identify a format without tokens ("a Parquet file"),
 * in static storage. Returns NULL for every other file, and for a file that cannot be read. */
const char *data_file_foreign(const char *path);

/* Returns a name for the records of a file whose name says that it holds records ("JSON lines"), in static storage.
 * Returns NULL for every other name. */
const char *data_file_records(const char *path);

#endif
