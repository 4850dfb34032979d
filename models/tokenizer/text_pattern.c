#define PCRE2_CODE_UNIT_WIDTH 8

#include "models/tokenizer/text_pattern.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "models/tokenizer/byte_list.h"

struct text_pattern {
    pcre2_code *code; /* NULL: a fixed text */
    char *text;
    size_t length;
};

struct text_search {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

enum { MATCHES_MAX = 10 * 1000 * 1000, STACK_BYTES = 32 * 1024, STACK_BYTES_MAX = 16 * 1024 * 1024 };

/* --- expressions -------------------------------------------------------------------------------- */

/* Unicode's White_Space, inside of a set. */
static const char SPACES[] = "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}"
                             "\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

static enum status add(struct byte_list *out, const char *text, struct error *err)
{
    return byte_list_add(out, text, strlen(text), err);
}

static enum status refuse(const char *expression, size_t at, const char *what, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT, "the expression has %s at character %zu, which is not known: %.200s", what,
                     at, expression);
}

/* Writes the escape \c for PCRE2. */
static enum status rewrite_escape(const char *expression, size_t at, bool in_set, struct byte_list *out,
                                  struct error *err)
{
    const char c = expression[at + 1];
    if (c == '\0') return refuse(expression, at, "an unfinished escape", err);
    if (c == 'h' || c == 'H') return refuse(expression, at, "\\h", err);
    if (c == 'S' && in_set) return refuse(expression, at, "\\S in a set", err);
    if (c != 's' && c != 'S') return byte_list_add(out, expression + at, 2, err);
    if (!in_set) TRY(add(out, c == 's' ? "[" : "[^", err));
    TRY(add(out, SPACES, err));
    return in_set ? STATUS_OK : add(out, "]", err);
}

/* Writes the expression for PCRE2, with its end. */
static enum status rewrite(const char *expression, struct byte_list *out, struct error *err)
{
    size_t set = 0; /* 1 + where the present set begins; 0: outside */
    for (size_t i = 0; expression[i]; i++) {
        const char c = expression[i];
        if (c == '\\') {
            TRY(rewrite_escape(expression, i, set > 0, out, err));
            i++;
            continue;
        }
        if (set > 0 && c == '[' && expression[i + 1] != ':') return refuse(expression, i, "a set in a set", err);
        if (set > 0 && c == '&' && expression[i + 1] == '&') return refuse(expression, i, "'&&' in a set", err);
        /* ']' stands for itself */
        const bool first = set > 0 && (i == set || (i == set + 1 && expression[set] == '^'));
        TRY(byte_list_add(out, &c, 1, err));
        if (set == 0 && c == '[') set = i + 1;
        else if (set > 0 && c == '[') {
            const char *const end = strstr(expression + i, ":]");
            if (!end) return refuse(expression, i, "an unfinished class", err);
            const size_t rest = (size_t)(end + 2 - expression) - i - 1;
            TRY(byte_list_add(out, expression + i + 1, rest, err));
            i += rest;
        } else if (c == ']' && !first) set = 0;
    }
    return byte_list_add(out, "", 1, err);
}

static enum status compile(struct text_pattern *pattern, const char *expression, const char *rewritten,
                           struct error *err)
{
    int code;
    PCRE2_SIZE at;
    pattern->code = pcre2_compile((PCRE2_SPTR)rewritten, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (!pattern->code) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(code, why, sizeof why);
        return error_set(err, STATUS_BAD_INPUT, "bad expression: %s: %.200s", (const char *)why, expression);
    }
    pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); /* without it, matching is slower and nothing else */
    return STATUS_OK;
}

enum status text_pattern_create(const char *expression, struct text_pattern **out, struct error *err)
{
    struct text_pattern *const pattern = alloc_zeroed(1, sizeof *pattern);
    struct byte_list rewritten = {0};
    *out = NULL;
    if (!pattern) return error_memory(err, "a pattern", sizeof *pattern);
    enum status status = rewrite(expression, &rewritten, err);
    if (!status) status = compile(pattern, expression, rewritten.bytes, err);
    free(rewritten.bytes);
    if (status) text_pattern_destroy(pattern);
    else *out = pattern;
    return status;
}

enum status text_pattern_fixed(const char *text, size_t length, struct text_pattern **out, struct error *err)
{
    struct text_pattern *const pattern = alloc_zeroed(1, sizeof *pattern);
    char *const copy = alloc_zeroed(length + 1, 1);
    *out = NULL;
    if (!pattern || !copy) {
        free(pattern);
        free(copy);
        return error_memory(err, "a pattern", sizeof *pattern);
    }
    memcpy(copy, text, length);
    *pattern = (struct text_pattern){.text = copy, .length = length};
    *out = pattern;
    return STATUS_OK;
}

void text_pattern_destroy(struct text_pattern *pattern)
{
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern->text);
    free(pattern);
}

/* --- searching ------------------------------------------------------------------------------------ */

enum status text_search_create(struct text_search **out, struct error *err)
{
    struct text_search *const search = alloc_zeroed(1, sizeof *search);
    *out = NULL;
    if (!search) return error_memory(err, "a search", sizeof *search);
    search->match = pcre2_match_data_create(1, NULL);
    search->context = pcre2_match_context_create(NULL);
    if (!search->match || !search->context) {
        text_search_destroy(search);
        return error_memory(err, "a search", sizeof *search);
    }
    search->stack = pcre2_jit_stack_create(STACK_BYTES, STACK_BYTES_MAX, NULL);
    if (search->stack) pcre2_jit_stack_assign(search->context, NULL, search->stack);
    pcre2_set_match_limit(search->context, MATCHES_MAX);
    *out = search;
    return STATUS_OK;
}

void text_search_destroy(struct text_search *search)
{
    if (!search) return;
    pcre2_match_data_free(search->match);
    pcre2_match_context_free(search->context);
    pcre2_jit_stack_free(search->stack);
    free(search);
}

static bool find_fixed(const struct text_pattern *pattern, const char *text, size_t length, size_t from, size_t *begin,
                       size_t *end)
{
    const char *const at = memmem(text + from, length - from, pattern->text, pattern->length);
    if (!at) return false;
    *begin = (size_t)(at - text);
    *end = *begin + pattern->length;
    return true;
}

enum status text_pattern_find(const struct text_pattern *pattern, struct text_search *search, const char *text,
                              size_t length, size_t from, bool *found, size_t *begin, size_t *end, struct error *err)
{
    if (!pattern->code) {
        *found = find_fixed(pattern, text, length, from, begin, end);
        return STATUS_OK;
    }
    const int result = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from, PCRE2_NO_UTF_CHECK, search->match,
                                   search->context);
    *found = result >= 0;
    if (result == PCRE2_ERROR_NOMATCH) return STATUS_OK;
    if (result < 0) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(result, why, sizeof why);
        return error_set(err, STATUS_BAD_INPUT, "a pattern of the tokenizer fails on the text: %s", (const char *)why);
    }
    const PCRE2_SIZE *const where = pcre2_get_ovector_pointer(search->match);
    *begin = where[0];
    *end = where[1];
    return STATUS_OK;
}
