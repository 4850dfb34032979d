/*
 * The samples of a job that trains on rows: which rows are used, which are held out, and in which order they come.
 *
 * A sample has T places. A row of n tokens takes the first n - 1 of them, for each of which the next token may be
 * learned; of a longer row only the first T + 1 tokens are used, or it is skipped. With packs a sample has as many
 * rows as fit.
 *
 * All rows that are not skipped are ordered by the seed of the split. The first ones of this order are for training,
 * the rest is held out. Packs are made of each part in this order, so that they are the same in every epoch and for
 * every seed of a job. An epoch has each sample once, in an order drawn from the job's seed and the epoch's number;
 * sample s of the training is number s % samples of epoch s / samples.
 */
#ifndef SPILLWAY_MODELS_ROWS_ROWS_SET_H
#define SPILLWAY_MODELS_ROWS_ROWS_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "models/rows/rows_file.h"
#include "models/rows/rows_pack.h"

struct rows_choice {
    uint64_t sequence;   /* T */
    bool skips_long;     /* rows of more than T + 1 tokens are skipped, not cut */
    bool packs;
    double held_out;     /* share of the rows; 0: none */
    uint64_t split_seed;
};

struct rows_set {
    const struct rows_file *file; /* borrowed */
    struct rows_choice choice;
    uint64_t samples;
    uint64_t first, rows;         /* its rows: places in the order of the split */
    uint64_t long_rows;           /* of the file: cut or skipped */
    uint64_t idle_rows;           /* of the set: without a learned token among those that are used */
    uint64_t filled;              /* places that rows take, of all samples */
    uint64_t used;                /* rows of the file that are not skipped */
    uint32_t *skipped;            /* in rising order; malloc'ed */
    uint64_t skipped_count;
    struct rows_pack pack;
};

/* Makes the set of training samples, or of those held out. Release with rows_set_release(). Errors: STATUS_BAD_INPUT
 * where no sample is left for training, or none is held out; STATUS_LIMIT. */
MUST_CHECK enum status rows_set_make(const struct rows_file *file, const struct rows_choice *choice, bool held_out,
                                     struct rows_set *out, struct error *err);
void rows_set_release(struct rows_set *set);

/* Returns the number, below `samples`, of sample s of the training, counted over all epochs. */
uint64_t rows_set_sample(const struct rows_set *set, uint64_t seed, uint64_t s);

/* Returns the number of rows of a sample, and *rows, their numbers in the file. `one` is room for one. */
uint64_t rows_set_rows(const struct rows_set *set, uint64_t sample, uint32_t *one, const uint32_t **rows);

/* Returns the places that a row takes. */
uint64_t rows_set_places(const struct rows_set *set, uint64_t row);

/* Counts the learned tokens of a sample. */
uint64_t rows_set_learned(const struct rows_set *set, uint64_t sample);

#endif
