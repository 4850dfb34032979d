#include "models/tokenizer/normalizer.h"

#include <utf8proc.h>

#include "base/try.h"
#include "models/tokenizer/characters.h"

static enum status put_in_form(enum normalizer_form form, const char *text, size_t length, struct byte_list *out,
                               struct error *err)
{
    static const utf8proc_option_t options[] = {
        [NORMALIZER_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [NORMALIZER_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [NORMALIZER_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [NORMALIZER_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    utf8proc_uint8_t *normal = NULL;
    const utf8proc_ssize_t bytes =
        length > 0 ? utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, &normal, options[form]) : 0;
    if (bytes < 0) return error_memory(err, "a normalized text", length);
    const enum status status = byte_list_add(out, (const char *)normal, (size_t)bytes, err);
    free(normal);
    return status;
}

static enum status replace(const struct normalizer_step *step, struct text_search *search, const char *text,
                           size_t length, struct byte_list *out, struct error *err)
{
    size_t done = 0, from = 0, begin, end;
    while (from <= length) {
        bool found;
        TRY(text_pattern_find(step->replaced, search, text, length, from, &found, &begin, &end, err));
        if (!found) break;
        TRY(byte_list_add(out, text + done, begin - done, err));
        TRY(byte_list_add(out, step->text, step->length, err));
        done = end;
        from = end > begin ? end : end + character_bytes(text + end);
    }
    return byte_list_add(out, text + done, length - done, err);
}

static enum status take_step(const struct normalizer_step *step, struct text_search *search, const char *text,
                             size_t length, struct byte_list *out, struct error *err)
{
    if (step->form != NORMALIZER_NONE) return put_in_form(step->form, text, length, out, err);
    if (step->replaced) return replace(step, search, text, length, out, err);
    if (length > 0) TRY(byte_list_add(out, step->text, step->length, err));
    return byte_list_add(out, text, length, err);
}

enum status normalizer_apply(const struct normalizer *normalizer, struct text_search *search, const char *text,
                             size_t length, struct byte_list *out, struct byte_list *spare, struct error *err)
{
    const size_t begin = out->count;
    TRY(byte_list_add(out, text, length, err));
    for (size_t i = 0; i < normalizer->count; i++) {
        spare->count = 0;
        TRY(byte_list_add(spare, byte_list_text(out) + begin, out->count - begin, err));
        out->count = begin;
        TRY(take_step(&normalizer->steps[i], search, byte_list_text(spare), spare->count, out, err));
    }
    return STATUS_OK;
}

void normalizer_release(struct normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->count; i++) text_pattern_destroy(normalizer->steps[i].replaced);
}
