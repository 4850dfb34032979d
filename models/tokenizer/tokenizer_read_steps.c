/* Reads normalizers and pre-tokenizers. */
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "models/tokenizer/tokenizer_state.h"

static const char *const forms[NORMALIZER_FORM_COUNT] = {
    [NORMALIZER_NFC] = "NFC", [NORMALIZER_NFD] = "NFD", [NORMALIZER_NFKC] = "NFKC", [NORMALIZER_NFKD] = "NFKD"};
static const char *const prefixes[PIECE_PREFIX_COUNT] = {
    [PIECE_PREFIX_NEVER] = "never", [PIECE_PREFIX_FIRST] = "first", [PIECE_PREFIX_ALWAYS] = "always"};
static const char *const behaviours[PIECE_MATCHES_COUNT] = {[PIECE_MATCHES_REMOVED] = "Removed",
                                                      [PIECE_MATCHES_ISOLATED] = "Isolated",
                                                      [PIECE_MATCHES_WITH_PREVIOUS] = "MergedWithPrevious",
                                                      [PIECE_MATCHES_WITH_NEXT] = "MergedWithNext",
                                                      [PIECE_MATCHES_CONTIGUOUS] = "Contiguous"};

/* A step of one kind: reads the rest of its object into the last step of the tokenizer. */
struct kind {
    const char *name;
    enum status (*read)(struct json_object *object, struct tokenizer *out, struct error *err);
};

/* --- shared ------------------------------------------------------------------------------------- */

/* Reads each element of the array under `key` by `read`. */
static enum status read_sequence(struct json_object *object, const char *key, struct tokenizer *out,
                                 enum status (*read)(const struct json_input *, const json_t *, struct tokenizer *,
                                                     struct error *),
                                 struct error *err)
{
    const json_t *list, *value;
    size_t i;
    TRY(json_take_array(object, key, JSON_REQUIRED, &list, err));
    json_array_foreach((json_t *)(uintptr_t)list, i, value) {
        if (!json_is_object(value)) return json_fail_index(object->input, list, i, err, "expected an object");
        TRY(read(object->input, value, out, err));
    }
    return STATUS_OK;
}

/* Reads a pattern: {"String": ...} or {"Regex": ...}. */
static enum status read_pattern(struct json_object *object, struct text_pattern **out, struct error *err)
{
    const json_t *value;
    struct json_object pattern;
    const char *text = NULL, *expression = NULL;
    struct error own = {0};
    TRY(json_take_object(object, "pattern", JSON_DECIDES, &value, err));
    TRY(json_object_open(&pattern, object->input, value, "a pattern", err));
    TRY(json_take_text(&pattern, "String", JSON_OPTIONAL, &text, err));
    TRY(json_take_text(&pattern, "Regex", JSON_OPTIONAL, &expression, err));
    TRY(json_object_close(&pattern, err));
    if ((text != NULL) == (expression != NULL) || (text && !*text))
        return json_fail_key(object->input, object->value, "pattern", err,
                             "expected \"String\" with a text, or \"Regex\"");
    const enum status status = text ? text_pattern_fixed(text, strlen(text), out, &own)
                                    : text_pattern_create(expression, out, &own);
    if (status == STATUS_BAD_INPUT)
        return json_fail_key(object->input, value, text ? "String" : "Regex", err, "%s", own.text);
    if (status) *err = own;
    return status;
}

static enum status keep_text(struct tokenizer *out, const char *text, const char **kept, size_t *length,
                             struct error *err)
{
    *length = strlen(text);
    return arena_string(&out->arena, text, kept, err);
}

/* Finds the kind named by "type", and reads it. */
static enum status read_kind(const struct json_input *in, const json_t *value, const struct kind *kinds, size_t count,
                             const char *what, struct tokenizer *out, struct error *err)
{
    struct json_object object;
    const char *type;
    char known[256] = "";
    TRY(json_object_open(&object, in, value, what, err));
    TRY(json_take_string(&object, "type", JSON_DECIDES, &type, err));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, type) == 0) {
            TRY(kinds[i].read(&object, out, err));
            return json_object_close(&object, err);
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ",
                 kinds[i].name);
    }
    return json_fail_key(in, value, "type", err, "%s of kind '%s' is not known (expected %s)", what, type, known);
}

/* --- normalizers -------------------------------------------------------------------------------- */

/* Adds a step. Returns NULL and sets the error when there are too many. */
static struct normalizer_step *add_normalizer(struct json_object *object, struct tokenizer *out, struct error *err)
{
    struct normalizer *const normalizer = &out->normalizer;
    if (normalizer->count < NORMALIZER_STEPS_MAX) return &normalizer->steps[normalizer->count++];
    json_fail_key(object->input, object->value, NULL, err, "too many normalizers (limit is %d)", NORMALIZER_STEPS_MAX);
    return NULL;
}

/* Reads one of Unicode's normal forms, which is named by the type. */
static enum status read_form(struct json_object *object, struct tokenizer *out, struct error *err)
{
    const char *const type = json_string_value(json_object_get(object->value, "type"));
    struct normalizer_step *step = add_normalizer(object, out, err);
    if (!step) return err->status;
    for (size_t form = NORMALIZER_NFC; form < NORMALIZER_FORM_COUNT; form++)
        if (strcmp(forms[form], type) == 0) step->form = (enum normalizer_form)form;
    return STATUS_OK;
}

static enum status read_replace(struct json_object *object, struct tokenizer *out, struct error *err)
{
    const char *text;
    struct normalizer_step *step = add_normalizer(object, out, err);
    if (!step) return err->status;
    TRY(read_pattern(object, &step->replaced, err));
    TRY(json_take_text(object, "content", JSON_REQUIRED, &text, err));
    return keep_text(out, text, &step->text, &step->length, err);
}

static enum status read_prepend(struct json_object *object, struct tokenizer *out, struct error *err)
{
    const char *text;
    struct normalizer_step *step = add_normalizer(object, out, err);
    if (!step) return err->status;
    TRY(json_take_text(object, "prepend", JSON_REQUIRED, &text, err));
    return keep_text(out, text, &step->text, &step->length, err);
}

static enum status read_normalizers(struct json_object *object, struct tokenizer *out, struct error *err)
{
    return read_sequence(object, "normalizers", out, tokenizer_read_normalizer, err);
}

enum status tokenizer_read_normalizer(const struct json_input *in, const json_t *value, struct tokenizer *out,
                                      struct error *err)
{
    static const struct kind kinds[] = {{"Sequence", read_normalizers}, {"Replace", read_replace},
                                        {"Prepend", read_prepend},
                                        {"NFC", read_form},             {"NFD", read_form},        {"NFKC", read_form},
                                        {"NFKD", read_form}};
    return read_kind(in, value, kinds, ARRAY_COUNT(kinds), "a normalizer", out, err);
}

/* --- pre-tokenizers ------------------------------------------------------------------------------- */

static struct piece_step *add_piece_step(struct json_object *object, struct tokenizer *out, struct error *err)
{
    struct pieces *const pieces = &out->pieces;
    if (pieces->count < PIECE_STEPS_MAX) return &pieces->steps[pieces->count++];
    json_fail_key(object->input, object->value, NULL, err, "too many pre-tokenizers (limit is %d)", PIECE_STEPS_MAX);
    return NULL;
}

static enum status read_split(struct json_object *object, struct tokenizer *out, struct error *err)
{
    size_t behaviour;
    struct piece_step *step = add_piece_step(object, out, err);
    if (!step) return err->status;
    TRY(read_pattern(object, &step->pattern, err));
    TRY(json_take_choice(object, "behavior", JSON_DECIDES, behaviours, PIECE_MATCHES_COUNT, &behaviour, err));
    step->matches = (enum piece_matches)behaviour;
    return json_take_bool(object, "invert", JSON_OPTIONAL, &step->inverted, err);
}

static enum status read_byte_level(struct json_object *object, struct tokenizer *out, struct error *err)
{
    bool prefix = true, expression = true;
    TRY(json_take_bool(object, "add_prefix_space", JSON_OPTIONAL, &prefix, err));
    TRY(json_take_bool(object, "use_regex", JSON_OPTIONAL, &expression, err));
    json_take_any(object, "trim_offsets");
    struct piece_step *step = add_piece_step(object, out, err);
    if (!step) return err->status;
    step->matches = PIECE_MATCHES_ISOLATED;
    if (prefix) {
        step->prefix = PIECE_PREFIX_ALWAYS;
        TRY(keep_text(out, " ", &step->text, &step->length, err));
    }
    if (expression) TRY(text_pattern_create(pieces_gpt2_expression, &step->pattern, err));
    step = add_piece_step(object, out, err);
    if (!step) return err->status;
    step->kind = PIECE_BYTES;
    return STATUS_OK;
}

static enum status read_metaspace(struct json_object *object, struct tokenizer *out, struct error *err)
{
    const char *text = "\xe2\x96\x81";
    size_t prefix = PIECE_PREFIX_ALWAYS;
    bool splits = true, old = true;
    TRY(json_take_text(object, "replacement", JSON_OPTIONAL, &text, err));
    TRY(json_take_bool(object, "add_prefix_space", JSON_OPTIONAL, &old, err));
    if (!old) prefix = PIECE_PREFIX_NEVER;
    TRY(json_take_choice(object, "prepend_scheme", JSON_OPTIONAL, prefixes, PIECE_PREFIX_COUNT, &prefix, err));
    TRY(json_take_bool(object, "split", JSON_OPTIONAL, &splits, err));
    json_take_any(object, "str_rep");
    if (!*text) return json_fail_key(object->input, object->value, "replacement", err, "expected a character");
    struct piece_step *step = add_piece_step(object, out, err);
    if (!step) return err->status;
    *step = (struct piece_step){.kind = PIECE_METASPACE, .matches = PIECE_MATCHES_WITH_NEXT,
                                .prefix = (enum piece_prefix)prefix};
    TRY(keep_text(out, text, &step->text, &step->length, err));
    return splits ? text_pattern_fixed(text, strlen(text), &step->pattern, err) : STATUS_OK;
}

static enum status read_digits(struct json_object *object, struct tokenizer *out, struct error *err)
{
    bool each = false;
    TRY(json_take_bool(object, "individual_digits", JSON_OPTIONAL, &each, err));
    struct piece_step *step = add_piece_step(object, out, err);
    if (!step) return err->status;
    step->matches = each ? PIECE_MATCHES_ISOLATED : PIECE_MATCHES_CONTIGUOUS;
    return text_pattern_create("\\p{N}", &step->pattern, err);
}

static enum status read_pieces_in_turn(struct json_object *object, struct tokenizer *out, struct error *err)
{
    return read_sequence(object, "pretokenizers", out, tokenizer_read_pieces, err);
}

enum status tokenizer_read_pieces(const struct json_input *in, const json_t *value, struct tokenizer *out,
                                  struct error *err)
{
    static const struct kind kinds[] = {{"Sequence", read_pieces_in_turn}, {"Split", read_split},   {"ByteLevel",
                                                                                                     read_byte_level},
                                        {"Metaspace", read_metaspace},     {"Digits", read_digits}};
    return read_kind(in, value, kinds, ARRAY_COUNT(kinds), "a pre-tokenizer", out, err);
}
