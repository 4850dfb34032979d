/* Files given as training data that hold something other than text or tokens. */
#ifndef SPILLWAY_MODELS_DATA_FILE_H
#define SPILLWAY_MODELS_DATA_FILE_H

/* Names the kind of a folder or of a file whose first bytes identify a format that holds no tokens ("a Parquet file"),
 * in static storage. NULL for every other file, and for a file that cannot be read. */
const char *data_file_foreign(const char *path);

/* Names the records of a text whose name says that it holds records ("JSON lines"), in static storage; NULL for every
 * other name. */
const char *data_file_records(const char *path);

#endif
