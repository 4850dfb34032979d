/*
 * A row of JSON lines as a text, and the parts of it that are learned.
 *
 *     {"text": t}                              all of t
 *     {"prompt": p, "completion": c}           p c, of which c is learned
 *     {"messages": [{"role": r, "content": t}, ...]}
 *                                              rendered by a template; contents of learned roles, and what follows
 *
 * A template is a file, a small part of what chat templates of the Hub (Jinja programs) can do:
 *
 *     {"spillway_template": 1, "begin": "<s>",
 *      "roles": {"user": {"before": "<|im_start|>user\n", "after": "<|im_end|>\n"},
 *                "assistant": {"before": "<|im_start|>assistant\n", "after": "<|im_end|>\n", "learned": true}}}
 *
 * "begin" stands before the first message. By default only the role "assistant" is learned.
 */
#ifndef SPILLWAY_CLI_RUN_CLI_TOKENIZE_ROW_H
#define SPILLWAY_CLI_RUN_CLI_TOKENIZE_ROW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json_in.h"
#include "models/rows/rows_write.h"
#include "models/tokenizer/tokenizer.h"

struct cli_template; /* opaque */

/* Reads a template. The caller frees *out with cli_template_destroy(). */
MUST_CHECK enum status cli_template_read(const char *path, struct cli_template **out, struct error *err);
void cli_template_destroy(struct cli_template *template); /* NULL does nothing */

/* Characters [begin, end) of the text are learned. */
struct cli_row_part {
    size_t begin, end;
};

/* A zeroed one is empty; cli_row_release() frees it. */
struct cli_row {
    char *text;
    size_t length;
    struct cli_row_part *parts; /* in rising order */
    size_t part_count;
};

/* Reads a row; `template` may be NULL. Errors: STATUS_BAD_INPUT with its position for a row without these keys or with
 * more than one kind, and for one that learns nothing: an empty text or completion, no message of a learned role. */
MUST_CHECK enum status cli_row_read(const struct json_input *in, const struct cli_template *template,
                                    struct cli_row *out, struct error *err);
void cli_row_release(struct cli_row *row);

/*
 * Appends the tokens of the text, encoded as one, to *out, and sets the spans[part_count] of its learned tokens. A
 * part begins and ends where the tokens of the text before that place stop being the tokens of the whole: a token
 * across the border belongs to what follows. Errors: as tokenizer_encode().
 */
MUST_CHECK enum status cli_row_encode(const struct cli_row *row, struct tokenizer_encoder *encoder, bool around,
                                      struct token_list *out, struct rows_write_span *spans, struct error *err);

#endif
