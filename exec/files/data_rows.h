/* Samples of rows (models/rows/rows_set.h), for data.c. */
#ifndef SPILLWAY_EXEC_FILES_DATA_ROWS_H
#define SPILLWAY_EXEC_FILES_DATA_ROWS_H

#include "models/job/job.h"
#include "models/rows/rows_set.h"

struct data_rows {
    struct rows_file file;
    const struct mapped_file *mapped; /* borrowed; NULL: in memory */
    unsigned char *tables;            /* the file's offsets and marks, which are read at any time: malloc'ed */
    struct rows_set set;
    uint64_t held_out_samples; /* of all held-out minibatches; 0: for training */
    uint64_t seed, vocabulary, sequence;
    uint64_t samples, microbatch; /* of a minibatch; of a microbatch */
    bool in_order;                /* samples come by their numbers ... */
    const struct data_rows *then; /* ... and then these held-out ones; borrowed; NULL: none */
};

/* Opens the rows of a job in `file`, which it borrows; `name` is for messages. A job that is not evaluated uses all
 * rows. `held_out_samples`: as above. `known`: the tokens were checked before. Release with data_rows_close(), also
 * after an error. Errors: as rows_file_parse() and rows_set_make(); STATUS_BAD_INPUT for a token outside the
 * vocabulary. */
MUST_CHECK enum status data_rows_open(const struct job *job, const char *name, const struct mapped_file *file,
                                      uint64_t held_out_samples, bool known, struct data_rows *out, struct error *err);
void data_rows_close(struct data_rows *rows);

/* Returns the number of a sample of the training in the set. */
uint64_t data_rows_sample(const struct data_rows *rows, uint64_t s);

/* Implement data_batch_part(), data_begins() and data_targets(). */
MUST_CHECK enum status data_rows_batch(const struct data_rows *rows, uint64_t minibatch,
                                       const struct parallel_microbatches *part, int32_t *out, struct error *err);
void data_rows_begins(const struct data_rows *rows, uint64_t minibatch, const struct parallel_microbatches *part,
                      int32_t *out);
uint64_t data_rows_targets(const struct data_rows *rows, uint64_t minibatch);

#endif
