/*
 * Tokenizers: the tokens that the `tokenizers` library finds (tests/golden/tokenizer), byte pair encoding against a
 * slow reference on random vocabularies, an encoder that is used again against a new one, broken files with their exact
 * message.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/random.h"
#include "models/tokenizer/tokenizer.h"
#include "tests/support/support_seed.h"

static struct tokenizer_encoder *encoder_of(const struct tokenizer *tokenizer)
{
    struct tokenizer_encoder *encoder;
    struct error err = {0};
    assert_int_equal(tokenizer_encoder_create(tokenizer, &encoder, &err), STATUS_OK);
    return encoder;
}

/* --- golden tokens ------------------------------------------------------------------------------ */

/* Compares a row's tokens, by an encoder that has seen the rows before, and by a new one. */
static void check_row(const struct tokenizer *tokenizer, struct tokenizer_encoder *used, const char *kind, int row,
                      const char *line)
{
    struct error err = {0};
    json_t *const tree = json_loads(line, JSON_ALLOW_NUL, NULL);
    const json_t *const text = json_object_get(tree, "text"), *const ids = json_object_get(tree, "ids");
    struct tokenizer_encoder *const encoders[] = {used, encoder_of(tokenizer)};
    for (size_t e = 0; e < 2; e++) {
        struct token_list list = {0};
        assert_int_equal(tokenizer_encode(encoders[e], json_string_value(text), json_string_length(text), true, &list,
                                          &err), STATUS_OK);
        bool equal = list.count == json_array_size(ids);
        for (size_t i = 0; equal && i < list.count; i++)
            equal = list.ids[i] == json_integer_value(json_array_get(ids, i));
        if (!equal) fail_msg("%s, row %d: other tokens than the reference's", kind, row);
        for (size_t i = 0; i < list.count; i++) assert_true(list.ids[i] < tokenizer_vocabulary(tokenizer));
        token_list_release(&list);
    }
    tokenizer_encoder_destroy(encoders[1]);
    json_decref(tree);
}

static int check_kind(const char *kind)
{
    char path[512], *line = NULL;
    size_t room = 0;
    int rows = 0;
    struct tokenizer *tokenizer;
    struct error err = {0};
    snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/tokenizer/%s", kind);
    if (tokenizer_read(path, &tokenizer, &err)) fail_msg("%s", err.text);
    struct tokenizer_encoder *const encoder = encoder_of(tokenizer);
    strcat(path, "/tokens.jsonl");
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    while (getline(&line, &room, file) > 0) check_row(tokenizer, encoder, kind, ++rows, line);
    free(line);
    fclose(file);
    tokenizer_encoder_destroy(encoder);
    tokenizer_destroy(tokenizer);
    return rows;
}

static void test_golden(void **state)
{
    (void)state;
    static const char *const kinds[] = {"gpt2", "prefix", "gpt_neox", "llama3", "qwen2", "llama2", "metaspace", "words",
                                        "gemma", "removed", "contiguous"};
    int rows = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) rows += check_kind(kinds[i]);
    printf("%d texts have the reference's tokens\n", rows);
    assert_true(rows > 2500);
}

/* --- byte pair encoding, slowly ------------------------------------------------------------------ */

enum { LETTERS = 4, MERGES_MAX = 40, TEXT_MAX = 60 };

struct slow {
    char texts[LETTERS + MERGES_MAX][64];
    uint32_t left[MERGES_MAX], right[MERGES_MAX];
    uint32_t merge_count;
};

static bool has_text(const struct slow *slow, const char *text)
{
    for (uint32_t i = 0; i < LETTERS + slow->merge_count; i++)
        if (strcmp(slow->texts[i], text) == 0) return true;
    return false;
}

struct draws {
    uint64_t key, count;
};

static uint64_t draw(struct draws *draws, uint64_t bound)
{
    return random_below(draws->key, draws->count++, bound);
}

/* Makes random merges, each of which makes a new text. */
static void draw_merges(struct slow *slow, struct draws *draws)
{
    *slow = (struct slow){0};
    for (uint32_t i = 0; i < LETTERS; i++) slow->texts[i][0] = (char)('a' + i);
    const uint32_t wanted = 1 + (uint32_t)draw(draws, MERGES_MAX);
    for (uint32_t tries = 0; tries < 400 && slow->merge_count < wanted; tries++) {
        const uint32_t known = LETTERS + slow->merge_count;
        const uint32_t left = (uint32_t)draw(draws, known), right = (uint32_t)draw(draws, known);
        char text[128];
        snprintf(text, sizeof text, "%s%s", slow->texts[left], slow->texts[right]);
        if (strlen(text) >= sizeof slow->texts[0] || has_text(slow, text)) continue;
        slow->left[slow->merge_count] = left;
        slow->right[slow->merge_count] = right;
        strcpy(slow->texts[LETTERS + slow->merge_count++], text);
    }
}

/* Merges the first pair of the lowest rank until there is none. */
static size_t encode_slowly(const struct slow *slow, const char *text, uint32_t *ids)
{
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++) ids[i] = (uint32_t)(text[i] - 'a');
    for (uint32_t rank = 0; rank < slow->merge_count; rank++) {
        size_t at = 0;
        while (at + 1 < count && (ids[at] != slow->left[rank] || ids[at + 1] != slow->right[rank])) at++;
        if (at + 1 >= count) continue;
        ids[at] = LETTERS + rank;
        memmove(ids + at + 1, ids + at + 2, (count - at - 2) * sizeof *ids);
        count--;
        rank = UINT32_MAX; /* from the lowest again */
    }
    return count;
}

/* Writes the tokenizer as a file. */
static char *write_slow(const struct slow *slow)
{
    json_t *const vocabulary = json_object(), *const merges = json_array();
    for (uint32_t i = 0; i < LETTERS + slow->merge_count; i++)
        json_object_set_new(vocabulary, slow->texts[i], json_integer(i));
    for (uint32_t i = 0; i < slow->merge_count; i++)
        json_array_append_new(merges, json_pack("[s, s]", slow->texts[slow->left[i]], slow->texts[slow->right[i]]));
    json_t *const root = json_pack("{s: {s: s, s: o, s: o}}", "model", "type", "BPE", "vocab", vocabulary, "merges",
                                   merges);
    char *const text = json_dumps(root, 0);
    json_decref(root);
    return text;
}

static void test_slow_reference(void **state)
{
    (void)state;
    struct draws draws = {support_seed("test_models_tokenizer"), 0};
    for (int round = 0; round < 300; round++) {
        struct slow slow;
        struct tokenizer *tokenizer;
        struct error err = {0};
        draw_merges(&slow, &draws);
        char *const file = write_slow(&slow);
        if (tokenizer_parse("random", file, strlen(file), &tokenizer, &err)) fail_msg("%s", err.text);
        struct tokenizer_encoder *const encoder = encoder_of(tokenizer);
        for (int i = 0; i < 30; i++) {
            char text[TEXT_MAX + 1] = "";
            uint32_t ids[TEXT_MAX];
            struct token_list list = {0};
            const size_t length = draw(&draws, TEXT_MAX + 1);
            for (size_t c = 0; c < length; c++) text[c] = (char)('a' + draw(&draws, LETTERS));
            const size_t count = encode_slowly(&slow, text, ids);
            assert_int_equal(tokenizer_encode(encoder, text, length, true, &list, &err), STATUS_OK);
            assert_int_equal(list.count, count);
            if (count > 0) assert_memory_equal(list.ids, ids, count * sizeof *ids);
            token_list_release(&list);
        }
        tokenizer_encoder_destroy(encoder);
        tokenizer_destroy(tokenizer);
        free(file);
    }
}

/* --- faults -------------------------------------------------------------------------------------- */

#define MODEL "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}"

static void expect_message(const char *text, const char *message)
{
    struct tokenizer *tokenizer;
    struct error err = {0};
    assert_int_equal(tokenizer_parse("t.json", text, strlen(text), &tokenizer, &err), STATUS_BAD_INPUT);
    assert_null(tokenizer);
    assert_string_equal(err.text, message);
}

static void test_faults(void **state)
{
    (void)state;
    expect_message("{}", "t.json:1:1: missing key 'model'");
    expect_message("{\"model\": {\"type\": \"Unigram\"}}",
                   "t.json:1:20: a model of kind 'Unigram' is not known (expected BPE)");
    expect_message("{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": [\"a b\"]}}",
                   "t.json:1:50: 'ab', which this merge makes, is no token");
    expect_message("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [[\"a\", \"c\"]]}}",
                   "t.json:1:42: 'c' of this merge is no token");
    expect_message("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [\"a\"]}}",
                   "t.json:1:42: expected a merge: [\"a\", \"b\"] or \"a b\"");
    expect_message("{\"model\": {\"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}",
                   "t.json:1:35: tokens 'a' and 'b' have the same number");
    expect_message("{\"model\": {\"vocab\": {\"a\": -1}, \"merges\": []}}",
                   "t.json:1:27: expected the number of a token, 0 to 16777215");
    expect_message("{" MODEL ", \"normalizer\": {\"type\": \"Lowercase\"}}",
                   "t.json:1:106: a normalizer of kind 'Lowercase' is not known (expected Sequence, Replace, Prepend, "
                   "NFC, NFD, NFKC or NFKD)");
    expect_message("{" MODEL ", \"pre_tokenizer\": {\"type\": \"Whitespace\"}}",
                   "t.json:1:109: a pre-tokenizer of kind 'Whitespace' is not known (expected Sequence, Split, "
                   "ByteLevel, Metaspace or Digits)");
    expect_message("{" MODEL ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a\"}, "
                             "\"behavior\": \"Isolated\"}}",
                   "t.json:1:139: bad expression: missing terminating ] for character class: [a");
    expect_message("{" MODEL ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a[b]]\"}, "
                             "\"behavior\": \"Isolated\"}}",
                   "t.json:1:139: the expression has a set in a set at character 2, which is not known: [a[b]]");
    expect_message("{" MODEL ", \"post_processor\": {\"type\": \"TemplateProcessing\", "
                             "\"single\": [{\"SpecialToken\": {\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], "
                             "\"special_tokens\": {}}}",
                   "t.json:1:143: the special token '<s>' has no \"ids\"");
    expect_message("{" MODEL ", \"added_tokens\": [{\"id\": 3, \"content\": \"x\"}, {\"id\": 4, \"content\": \"x\"}]}",
                   "t.json:1:127: token 'x' is added twice");
}

static void test_not_utf8(void **state)
{
    (void)state;
    struct tokenizer *tokenizer;
    struct token_list list = {0};
    struct error err = {0};
    assert_int_equal(tokenizer_parse("t.json", "{" MODEL "}", strlen("{" MODEL "}"), &tokenizer, &err), STATUS_OK);
    struct tokenizer_encoder *const encoder = encoder_of(tokenizer);
    assert_int_equal(tokenizer_encode(encoder, "ab\xff", 3, true, &list, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "byte 2 is not UTF-8");
    assert_int_equal(list.count, 0);
    token_list_release(&list);
    tokenizer_encoder_destroy(encoder);
    tokenizer_destroy(tokenizer);
}

static void test_names(void **state)
{
    (void)state;
    struct tokenizer *tokenizer;
    struct error err = {0};
    uint32_t id = 77;
    const char *const text = "{" MODEL ", \"added_tokens\": [{\"id\": 3, \"content\": \"<end>\"}]}";
    assert_int_equal(tokenizer_parse("t.json", text, strlen(text), &tokenizer, &err), STATUS_OK);
    assert_int_equal(tokenizer_vocabulary(tokenizer), 4);
    assert_true(tokenizer_find(tokenizer, "<end>", &id) && id == 3);
    assert_true(tokenizer_find(tokenizer, "ab", &id) && id == 2);
    assert_false(tokenizer_find(tokenizer, "abc", &id));
    assert_int_equal(id, 2);
    tokenizer_destroy(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_slow_reference), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_not_utf8), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
