/*
 * Turns files of text into one file of tokens, by several threads.
 *
 * A document is a whole file, a line of it, or a row of JSON lines. Each is encoded by itself, with the tokens that the
 * tokenizer puts around a text, and ends with a token of the caller's choice. The file of tokens is llm.c's .bin: 16
 * bits a token for vocabularies up to 65 536, else 32. It depends on the number of threads in nothing.
 *
 * Documents may also become rows of a file of rows (models/rows/rows_file.h). All of a file or a line is then learned;
 * of a row of JSON what cli/run/cli_tokenize_row.h says.
 */
#ifndef SPILLWAY_CLI_RUN_CLI_TOKENIZE_H
#define SPILLWAY_CLI_RUN_CLI_TOKENIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process/options.h"
#include "cli/run/cli_tokenize_row.h"
#include "models/tokenizer/tokenizer.h"

enum cli_documents { CLI_DOCUMENTS_BY_NAME, CLI_DOCUMENTS_FILES, CLI_DOCUMENTS_LINES, CLI_DOCUMENTS_JSON };

enum { CLI_TOKENIZE_THREADS_MAX = 256 };

struct cli_tokenize_request {
    const char *const *paths; /* "-" is standard input */
    size_t path_count;
    const struct tokenizer *tokenizer;
    enum cli_documents documents;     /* by name: rows of *.jsonl, *.ndjson and these with .gz; other files whole */
    const char *const *fields;        /* of a row: the texts under these keys are joined; none only for rows */
    size_t field_count;
    const char *path_of_tokenizer;    /* for rows */
    bool rows;                        /* a file of rows is written */
    const struct cli_template *template; /* of messages; may be NULL */
    bool around;                      /* with the tokenizer's tokens around a document */
    bool ends;                        /* with `end` after each document; in a row, unless it ends so */
    uint32_t end;
    bool skips_bad_rows;
    uint32_t threads;
    const char *output;               /* NULL: count only */
};

struct cli_tokenized {
    uint64_t documents, bytes, tokens, skipped; /* bytes of texts; documents without a text have no token but those
                                                   around */
    uint64_t learned, longest;                  /* tokens of rows; of the longest row */
    double seconds;
    uint32_t token_bytes;                       /* 2 or 4 */
};

/* Adds the counts of each file to counts[path_count]. Errors: STATUS_IO; STATUS_BAD_INPUT with file, line and column
 * for a row that is no object or has no such text, and for text that is not UTF-8; STATUS_LIMIT above 2^32 - 1 tokens.
 * Nothing is written then. */
MUST_CHECK enum status cli_tokenize(const struct cli_tokenize_request *request, struct cli_tokenized *counts,
                                    struct error *err);

#endif
