/* Reads a tokenizer.json. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"
#include "models/tokenizer/tokenizer_state.h"

/* --- vocabulary and merges ------------------------------------------------------------------------ */

static enum status read_vocabulary(const struct json_input *in, const json_t *map, struct tokenizer *out,
                                   struct error *err)
{
    struct vocabulary *const vocabulary = &out->merges.vocabulary;
    const char *text;
    const json_t *value;
    if (json_object_size(map) == 0) return json_fail_key(in, map, NULL, err, "no tokens (expected \"text\": number)");
    TRY(vocabulary_begin(vocabulary, &out->arena, json_object_size(map), err));
    json_object_foreach((json_t *)(uintptr_t)map, text, value) {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= TOKENIZER_VOCABULARY_MAX)
            return json_fail_key(in, map, text, err, "expected the number of a token, 0 to %d",
                                 TOKENIZER_VOCABULARY_MAX - 1);
        TRY(vocabulary_add(vocabulary, &out->arena, text, strlen(text), (uint32_t)id, err));
        if (out->vocabulary <= (uint32_t)id) out->vocabulary = (uint32_t)id + 1;
    }
    return STATUS_OK;
}

/* Refuses tokens of one number. */
static enum status check_numbers(const struct json_input *in, const json_t *map, const struct tokenizer *out,
                                 struct error *err)
{
    const struct vocabulary *const vocabulary = &out->merges.vocabulary;
    const char **const texts = alloc_zeroed(out->vocabulary, sizeof *texts);
    enum status status = texts ? STATUS_OK : error_memory(err, "a vocabulary", out->vocabulary * sizeof *texts);
    for (uint32_t i = 0; !status && i < vocabulary->count; i++) {
        const struct vocabulary_word *const word = &vocabulary->words[i];
        if (texts[word->id])
            status = json_fail_key(in, map, word->text, err, "tokens '%s' and '%s' have the same number",
                                   texts[word->id], word->text);
        texts[word->id] = word->text;
    }
    free(texts);
    return status;
}

/* Finds the two sides of a merge, ["a", "b"] or "a b". */
static bool merge_sides(const json_t *value, const char *texts[2], size_t lengths[2])
{
    const char *const line = json_string_value(value);
    if (line) {
        const char *const space = strchr(line, ' ');
        if (!space || strchr(space + 1, ' ')) return false;
        texts[0] = line;
        texts[1] = space + 1;
        lengths[0] = (size_t)(space - line);
        lengths[1] = strlen(space + 1);
        return true;
    }
    if (json_array_size(value) != 2) return false;
    for (size_t i = 0; i < 2; i++) {
        texts[i] = json_string_value(json_array_get(value, i));
        if (!texts[i]) return false;
        lengths[i] = strlen(texts[i]);
    }
    return true;
}

static enum status read_merge(const struct json_input *in, const json_t *list, size_t at, struct tokenizer *out,
                              struct byte_list *joined, struct error *err)
{
    const char *texts[2];
    size_t lengths[2];
    uint32_t sides[2];
    if (!merge_sides(json_array_get(list, at), texts, lengths))
        return json_fail_index(in, list, at, err, "expected a merge: [\"a\", \"b\"] or \"a b\"");
    for (size_t i = 0; i < 2; i++) {
        sides[i] = vocabulary_find(&out->merges.vocabulary, texts[i], lengths[i]);
        if (sides[i] == VOCABULARY_NONE)
            return json_fail_index(in, list, at, err, "'%.*s' of this merge is no token", (int)lengths[i], texts[i]);
    }
    joined->count = 0;
    TRY(byte_list_add(joined, texts[0], lengths[0], err));
    TRY(byte_list_add(joined, texts[1], lengths[1], err));
    const uint32_t id = vocabulary_find(&out->merges.vocabulary, joined->bytes, joined->count);
    if (id == VOCABULARY_NONE)
        return json_fail_index(in, list, at, err, "'%.*s', which this merge makes, is no token", (int)joined->count,
                               joined->bytes);
    merges_add(&out->merges, sides[0], sides[1], (uint32_t)at, id);
    return STATUS_OK;
}

static enum status read_merges(const struct json_input *in, const json_t *list, struct tokenizer *out,
                               struct error *err)
{
    struct byte_list joined = {0};
    enum status status = merges_begin(&out->merges, &out->arena, json_array_size(list), err);
    for (size_t i = 0; !status && i < json_array_size(list); i++) status = read_merge(in, list, i, out, &joined, err);
    free(joined.bytes);
    return status;
}

/* --- the model ------------------------------------------------------------------------------------ */

/* Refuses parts of BPE that no known network needs. */
static enum status refuse_rest(struct json_object *object, struct error *err)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    double dropout = 0;
    TRY(json_take_double(object, "dropout", JSON_OPTIONAL, 0, 1, &dropout, err));
    if (dropout > 0)
        return json_fail_key(object->input, object->value, "dropout", err, "dropout of merges is not known");
    for (size_t i = 0; i < ARRAY_COUNT(affixes); i++) {
        const char *text = "";
        TRY(json_take_text(object, affixes[i], JSON_OPTIONAL, &text, err));
        if (*text) return json_fail_key(object->input, object->value, affixes[i], err, "'%s' is not known", affixes[i]);
    }
    return STATUS_OK;
}

static void find_bytes(struct merges *merges)
{
    for (unsigned int byte = 0; byte < 256; byte++) {
        char name[8];
        const int length = snprintf(name, sizeof name, "<0x%02X>", byte);
        merges->byte_ids[byte] = vocabulary_find(&merges->vocabulary, name, (size_t)length);
    }
}

static enum status read_unknown(struct json_object *object, struct tokenizer *out, struct error *err)
{
    const char *text = NULL;
    TRY(json_take_text(object, "unk_token", JSON_OPTIONAL, &text, err));
    out->merges.unknown = text ? vocabulary_find(&out->merges.vocabulary, text, strlen(text)) : VOCABULARY_NONE;
    if (text && out->merges.unknown == VOCABULARY_NONE)
        return json_fail_key(object->input, object->value, "unk_token", err, "'%s' is no token", text);
    return STATUS_OK;
}

static enum status read_model(const struct json_input *in, const json_t *value, struct tokenizer *out,
                              struct error *err)
{
    struct json_object object;
    struct merges *const merges = &out->merges;
    const char *type = "BPE";
    const json_t *map, *list;
    TRY(json_object_open(&object, in, value, "a model", err));
    TRY(json_take_string(&object, "type", JSON_OPTIONAL, &type, err));
    if (strcmp(type, "BPE") != 0) return json_fail_key(in, value, "type", err,
                                                       "a model of kind '%s' is not known (expected BPE)", type);
    TRY(json_take_object(&object, "vocab", JSON_DECIDES, &map, err));
    TRY(json_take_array(&object, "merges", JSON_DECIDES, &list, err));
    TRY(json_take_bool(&object, "fuse_unk", JSON_OPTIONAL, &merges->joins_unknown, err));
    TRY(json_take_bool(&object, "byte_fallback", JSON_OPTIONAL, &merges->falls_back, err));
    TRY(json_take_bool(&object, "ignore_merges", JSON_OPTIONAL, &merges->takes_whole, err));
    TRY(refuse_rest(&object, err));
    TRY(read_vocabulary(in, map, out, err));
    TRY(check_numbers(in, map, out, err));
    find_bytes(merges);
    TRY(read_unknown(&object, out, err));
    TRY(read_merges(in, list, out, err));
    return json_object_close(&object, err);
}

/* --- added tokens --------------------------------------------------------------------------------- */

/* Adds the token to those that are looked for in normalized text, by its own normalized text. */
static enum status add_normalized(struct tokenizer *out, const char *text, const struct added_token *token,
                                  struct error *err)
{
    struct byte_list normal = {0}, spare = {0};
    struct text_search *search = NULL;
    enum status status = text_search_create(&search, err);
    if (!status) status = normalizer_apply(&out->normalizer, search, text, strlen(text), &normal, &spare, err);
    if (!status) status = added_tokens_add(&out->normalized, &out->arena, normal.bytes, normal.count, token, err);
    text_search_destroy(search);
    free(normal.bytes);
    free(spare.bytes);
    return status;
}

/* Returns the number of an added token. As in the `tokenizers` library, it is the vocabulary's or, for a new one, the
 * next: "id" is the same in files that the library wrote. */
static uint32_t number_added(struct tokenizer *out, const char *text)
{
    const struct vocabulary *const vocabulary = &out->merges.vocabulary;
    const uint32_t known = vocabulary_find(vocabulary, text, strlen(text));
    const uint32_t next = out->next_added > vocabulary->count ? out->next_added : vocabulary->count;
    const uint32_t id = known != VOCABULARY_NONE ? known : next;
    if (out->next_added <= id) out->next_added = id + 1;
    return id;
}

static enum status read_added(const struct json_input *in, const json_t *list, size_t at, struct tokenizer *out,
                              struct error *err)
{
    struct json_object object;
    struct added_token token = {0};
    const char *text;
    bool normalized = true;
    TRY(json_object_open_at(&object, in, list, at, "an added token", err));
    TRY(json_take_u32(&object, "id", JSON_DECIDES, 0, TOKENIZER_VOCABULARY_MAX - 1, &token.id, err));
    TRY(json_take_text(&object, "content", JSON_DECIDES, &text, err));
    TRY(json_take_bool(&object, "single_word", JSON_OPTIONAL, &token.alone, err));
    TRY(json_take_bool(&object, "lstrip", JSON_OPTIONAL, &token.left, err));
    TRY(json_take_bool(&object, "rstrip", JSON_OPTIONAL, &token.right, err));
    TRY(json_take_bool(&object, "normalized", JSON_OPTIONAL, &normalized, err));
    json_take_any(&object, "special");
    TRY(json_object_close(&object, err));
    if (vocabulary_find(&out->names, text, strlen(text)) != VOCABULARY_NONE)
        return json_fail_index(in, list, at, err, "token '%s' is added twice", text);
    token.id = number_added(out, text);
    TRY(vocabulary_add(&out->names, &out->arena, text, strlen(text), token.id, err));
    if (out->vocabulary <= token.id) out->vocabulary = token.id + 1;
    return normalized ? add_normalized(out, text, &token, err)
                      : added_tokens_add(&out->raw, &out->arena, text, strlen(text), &token, err);
}

static enum status read_all_added(struct json_object *root, struct tokenizer *out, struct error *err)
{
    const json_t *list;
    TRY(json_take_array(root, "added_tokens", JSON_OPTIONAL, &list, err));
    const size_t count = list ? json_array_size(list) : 0;
    TRY(vocabulary_begin(&out->names, &out->arena, count, err));
    TRY(added_tokens_begin(&out->raw, &out->arena, count, err));
    TRY(added_tokens_begin(&out->normalized, &out->arena, count, err));
    for (size_t i = 0; i < count; i++) TRY(read_added(root->input, list, i, out, err));
    return STATUS_OK;
}

/* --- tokens around a text ------------------------------------------------------------------------- */

/* Grows a list of tokens around a text by one. */
static enum status add_around(struct tokenizer *out, bool after, uint32_t id, struct error *err)
{
    uint32_t **const list = after ? &out->after : &out->before;
    size_t *const count = after ? &out->after_count : &out->before_count;
    uint32_t *grown;
    TRY(ARENA_NEW(&out->arena, *count + 1, grown, err));
    if (*count > 0) memcpy(grown, *list, *count * sizeof *grown);
    grown[(*count)++] = id;
    *list = grown;
    return STATUS_OK;
}

static enum status add_number(const struct json_input *in, const json_t *list, size_t at, bool after,
                              struct tokenizer *out, struct error *err)
{
    const json_t *const value = json_array_get(list, at);
    const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    if (id < 0 || id >= out->vocabulary)
        return json_fail_index(in, list, at, err, "expected the number of a token, 0 to %u", out->vocabulary - 1);
    return add_around(out, after, (uint32_t)id, err);
}

/* Reads a part of a template: the text itself, or a special token. */
static enum status read_part(const struct json_input *in, const json_t *list, size_t at, const json_t *specials,
                             bool *after, struct tokenizer *out, struct error *err)
{
    const json_t *const part = json_array_get(list, at);
    const json_t *const special = json_object_get(part, "SpecialToken"), *const sequence = json_object_get(part,
                                                                                                           "Sequence");
    const char *const name = json_string_value(json_object_get(special ? special : sequence, "id"));
    if (json_object_size(part) != 1 || !name)
        return json_fail_index(in, list, at, err, "expected \"SpecialToken\" or \"Sequence\", with \"id\"");
    if (sequence) {
        if (*after || strcmp(name, "A") != 0)
            return json_fail_index(in, list, at, err, "expected the sequence 'A', once");
        *after = true;
        return STATUS_OK;
    }
    const json_t *const ids = json_object_get(json_object_get(specials, name), "ids");
    if (!json_is_array(ids)) return json_fail_index(in, list, at, err, "the special token '%s' has no \"ids\"", name);
    for (size_t i = 0; i < json_array_size(ids); i++) TRY(add_number(in, ids, i, *after, out, err));
    return STATUS_OK;
}

static enum status read_template(struct json_object *object, struct tokenizer *out, struct error *err)
{
    const json_t *list, *specials;
    bool after = false;
    TRY(json_take_array(object, "single", JSON_DECIDES, &list, err));
    TRY(json_take_object(object, "special_tokens", JSON_DECIDES, &specials, err));
    json_take_any(object, "pair");
    for (size_t i = 0; i < json_array_size(list); i++)
        TRY(read_part(object->input, list, i, specials, &after, out, err));
    return after ? STATUS_OK : json_fail_key(object->input, object->value, "single", err, "no sequence 'A'");
}

/* Reads BERT's and RoBERTa's: ["token", number] before and after a text. */
static enum status read_pair(struct json_object *object, struct tokenizer *out, struct error *err)
{
    static const char *const keys[] = {"cls", "sep"};
    json_take_any(object, "trim_offsets");
    json_take_any(object, "add_prefix_space");
    for (size_t i = 0; i < 2; i++) {
        const json_t *list;
        TRY(json_take_array(object, keys[i], JSON_DECIDES, &list, err));
        TRY(add_number(object->input, list, 1, i == 1, out, err));
    }
    return STATUS_OK;
}

static enum status read_processor(const struct json_input *in, const json_t *value, struct tokenizer *out,
                                  struct error *err)
{
    struct json_object object;
    const char *type;
    const json_t *list, *each;
    size_t i;
    TRY(json_object_open(&object, in, value, "a post-processor", err));
    TRY(json_take_string(&object, "type", JSON_DECIDES, &type, err));
    if (strcmp(type, "TemplateProcessing") == 0) TRY(read_template(&object, out, err));
    else if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0)
        TRY(read_pair(&object, out, err));
    else if (strcmp(type, "Sequence") == 0) {
        TRY(json_take_array(&object, "processors", JSON_DECIDES, &list, err));
        json_array_foreach((json_t *)(uintptr_t)list, i, each) TRY(read_processor(in, each, out, err));
    } else if (strcmp(type, "ByteLevel") == 0) json_object_ignore_others(&object); /* changes offsets only */
    else
        return json_fail_key(in, value, "type", err,
                             "a post-processor of kind '%s' is not known (expected TemplateProcessing, "
                             "RobertaProcessing, BertProcessing, ByteLevel or Sequence)",
                             type);
    return json_object_close(&object, err);
}

/* --- the file ------------------------------------------------------------------------------------- */

enum status tokenizer_read_root(const struct json_input *in, struct tokenizer *out, struct error *err)
{
    static const char *const passed_over[] = {"version", "truncation", "padding", "decoder"};
    struct json_object root;
    const json_t *model, *normalizer, *pieces, *processor;
    TRY(json_object_open(&root, in, json_input_root(in), "a tokenizer", err));
    for (size_t i = 0; i < ARRAY_COUNT(passed_over); i++) json_take_any(&root, passed_over[i]);
    TRY(json_take_object(&root, "model", JSON_DECIDES, &model, err));
    TRY(read_model(in, model, out, err));
    TRY(json_take_object(&root, "normalizer", JSON_OPTIONAL, &normalizer, err));
    if (normalizer) TRY(tokenizer_read_normalizer(in, normalizer, out, err));
    TRY(json_take_object(&root, "pre_tokenizer", JSON_OPTIONAL, &pieces, err));
    if (pieces) TRY(tokenizer_read_pieces(in, pieces, out, err));
    TRY(read_all_added(&root, out, err));
    TRY(json_take_object(&root, "post_processor", JSON_OPTIONAL, &processor, err));
    if (processor) TRY(read_processor(in, processor, out, err));
    return json_object_close(&root, err);
}
