/* Normalizers of a tokenizer: how a text is changed before it is cut into pieces. */
#ifndef SPILLWAY_MODELS_TOKENIZER_NORMALIZER_H
#define SPILLWAY_MODELS_TOKENIZER_NORMALIZER_H

#include "models/tokenizer/byte_list.h"
#include "models/tokenizer/text_pattern.h"

enum normalizer_form {
    NORMALIZER_NONE, NORMALIZER_NFC, NORMALIZER_NFD, NORMALIZER_NFKC, NORMALIZER_NFKD, NORMALIZER_FORM_COUNT
};

struct normalizer_step {
    enum normalizer_form form;         /* NORMALIZER_NONE: one of the following */
    struct text_pattern *replaced; /* owned; each match becomes `text` ... */
    const char *text;              /* ... or, without a pattern, this is put before a text that is not empty */
    size_t length;
};

enum { NORMALIZER_STEPS_MAX = 32 };
struct normalizer {
    struct normalizer_step steps[NORMALIZER_STEPS_MAX];
    size_t count;
};

/* Appends the normalized text to *out; `spare` is room. Errors: STATUS_BAD_INPUT as in text_pattern.h. */
MUST_CHECK enum status normalizer_apply(const struct normalizer *normalizer, struct text_search *search,
                                        const char *text, size_t length,
                                 struct byte_list *out, struct byte_list *spare, struct error *err);

void normalizer_release(struct normalizer *normalizer);

#endif
