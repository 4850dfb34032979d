#include "cli/run/cli_tokenize_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/size.h"
#include "base/try.h"

enum { ROLES_MAX = 16 };

struct role {
    const char *name, *before, *after; /* borrowed from `in` */
    bool learned;
};

struct cli_template {
    struct json_input *in;
    const char *begin;
    struct role roles[ROLES_MAX];
    size_t role_count;
};

/* --- templates ---------------------------------------------------------------------------------- */

static enum status read_role(struct cli_template *template, const char *name, const json_t *value, struct error *err)
{
    struct json_object o;
    struct role role = {.name = name, .before = "", .after = "", .learned = strcmp(name, "assistant") == 0};
    TRY(json_object_open(&o, template->in, value, "a role, with the texts 'before' and 'after' a message", err));
    TRY(json_take_text(&o, "before", JSON_OPTIONAL, &role.before, err));
    TRY(json_take_text(&o, "after", JSON_OPTIONAL, &role.after, err));
    TRY(json_take_bool(&o, "learned", JSON_OPTIONAL, &role.learned, err));
    TRY(json_object_close(&o, err));
    if (template->role_count == ROLES_MAX)
        return json_fail_key(template->in, value, NULL, err, "too many roles (limit is %d)", (int)ROLES_MAX);
    template->roles[template->role_count++] = role;
    return STATUS_OK;
}

static enum status parse_template(struct cli_template *template, struct error *err)
{
    struct json_object o;
    uint64_t version;
    const json_t *roles = NULL;
    template->begin = "";
    TRY(json_object_open(&o, template->in, json_input_root(template->in), "a template", err));
    TRY(json_take_u64(&o, "spillway_template", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_text(&o, "begin", JSON_OPTIONAL, &template->begin, err));
    TRY(json_take_object(&o, "roles", JSON_REQUIRED, &roles, err));
    TRY(json_object_close(&o, err));
    json_t *const all = (json_t *)(uintptr_t)roles; /* only read */
    for (void *at = json_object_iter(all); at; at = json_object_iter_next(all, at))
        TRY(read_role(template, json_object_iter_key(at), json_object_iter_value(at), err));
    return STATUS_OK;
}

enum status cli_template_read(const char *path, struct cli_template **out, struct error *err)
{
    struct cli_template *template = alloc_zeroed(1, sizeof *template);
    if (!template) return error_memory(err, "a template", sizeof *template);
    enum status status = json_input_read(path, &template->in, err);
    if (status == STATUS_OK) status = parse_template(template, err);
    if (status == STATUS_OK)
        *out = template;
    else
        cli_template_destroy(template);
    return status;
}

void cli_template_destroy(struct cli_template *template)
{
    if (!template) return;
    json_input_destroy(template->in);
    free(template);
}

/* --- rows --------------------------------------------------------------------------------------- */

/* A row that is put together. */
struct making {
    struct cli_row *row;
    size_t capacity, part_capacity;
};

static enum status append(struct making *making, const char *text, struct error *err)
{
    struct cli_row *const row = making->row;
    const size_t length = strlen(text);
    if (making->capacity - row->length < length + 1) {
        const size_t capacity = 2 * making->capacity + length + 1;
        char *const grown = alloc_resize(row->text, capacity);
        if (!grown) return error_memory(err, "a row", capacity);
        row->text = grown;
        making->capacity = capacity;
    }
    memcpy(row->text + row->length, text, length + 1);
    row->length += length;
    return STATUS_OK;
}

/* Marks the text from `begin` on as learned. */
static enum status learn(struct making *making, size_t begin, struct error *err)
{
    struct cli_row *const row = making->row;
    if (begin == row->length) return STATUS_OK;
    TRY(array_reserve(&row->parts, &making->part_capacity, row->part_count, sizeof *row->parts, SIZE_MAX / 64,
                      "messages", err));
    row->parts[row->part_count++] = (struct cli_row_part){begin, row->length};
    return STATUS_OK;
}

static enum status fail_empty(const struct json_input *in, const char *key, struct error *err)
{
    return json_fail_key(in, json_input_root(in), key, err, "'%s' is empty (expected a text)", key);
}

static enum status read_text(struct json_object *o, struct making *making, struct error *err)
{
    const char *text;
    TRY(json_take_text(o, "text", JSON_REQUIRED, &text, err));
    if (!*text) return fail_empty(o->input, "text", err);
    TRY(append(making, text, err));
    return learn(making, 0, err);
}

static enum status read_completion(struct json_object *o, struct making *making, struct error *err)
{
    const char *prompt, *completion;
    TRY(json_take_text(o, "prompt", JSON_REQUIRED, &prompt, err));
    TRY(json_take_text(o, "completion", JSON_REQUIRED, &completion, err));
    if (!*completion) return fail_empty(o->input, "completion", err);
    TRY(append(making, prompt, err));
    TRY(append(making, completion, err));
    return learn(making, strlen(prompt), err);
}

static const struct role *find_role(const struct cli_template *template, const char *name)
{
    for (size_t i = 0; i < template->role_count; i++)
        if (strcmp(template->roles[i].name, name) == 0) return &template->roles[i];
    return NULL;
}

static enum status read_message(const struct json_input *in, const json_t *messages, size_t index,
                                const struct cli_template *template, struct making *making, struct error *err)
{
    struct json_object o;
    const char *name, *content;
    TRY(json_object_open_at(&o, in, messages, index, "a message, with 'role' and 'content'", err));
    json_object_ignore_others(&o);
    TRY(json_take_string(&o, "role", JSON_REQUIRED, &name, err));
    TRY(json_take_text(&o, "content", JSON_REQUIRED, &content, err));
    const struct role *const role = find_role(template, name);
    if (!role)
        return json_fail_key(in, o.value, "role", err, "the template has no role '%.64s'", name);
    TRY(append(making, role->before, err));
    const size_t begin = making->row->length;
    TRY(append(making, content, err));
    TRY(append(making, role->after, err));
    return role->learned && *content ? learn(making, begin, err) : STATUS_OK;
}

static enum status read_messages(struct json_object *o, const struct cli_template *template, struct making *making,
                                 struct error *err)
{
    const json_t *messages = NULL;
    TRY(json_take_array(o, "messages", JSON_REQUIRED, &messages, err));
    if (!template)
        return json_fail_key(o->input, o->value, "messages", err,
                             "'messages' need a template (expected '--template FILE', or a rendered 'text')");
    TRY(append(making, template->begin, err));
    for (size_t i = 0; i < json_array_size(messages); i++)
        TRY(read_message(o->input, messages, i, template, making, err));
    if (making->row->part_count > 0) return STATUS_OK;
    return json_fail_key(o->input, o->value, "messages", err, "no message of a role that is learned has a content");
}

enum status cli_row_read(const struct json_input *in, const struct cli_template *template, struct cli_row *out,
                         struct error *err)
{
    struct making making = {.row = out};
    struct json_object o;
    TRY(json_object_open(&o, in, json_input_root(in), "a row", err));
    json_object_ignore_others(&o);
    const bool text = json_has(&o, "text"), messages = json_has(&o, "messages");
    const bool completion = json_has(&o, "prompt") || json_has(&o, "completion");
    if (text + messages + completion != 1)
        return json_fail_key(in, json_input_root(in), NULL, err,
                             "the row has %s (expected one of 'text', 'prompt' with 'completion', 'messages')",
                             text + messages + completion == 0 ? "no text" : "several texts");
    if (messages) return read_messages(&o, template, &making, err);
    return completion ? read_completion(&o, &making, err) : read_text(&o, &making, err);
}

void cli_row_release(struct cli_row *row)
{
    free(row->text);
    free(row->parts);
    *row = (struct cli_row){0};
}

/* --- tokens ------------------------------------------------------------------------------------- */

/* Returns in *out the number of tokens of the whole text before the character at `place`. */
static enum status find_border(const struct cli_row *row, size_t place, struct tokenizer_encoder *encoder, bool around,
                               const struct token_list *whole, uint64_t *out, struct error *err)
{
    struct token_list before = {0};
    size_t common = 0;
    if (place == 0 || place == row->length) {
        *out = place == 0 ? 0 : whole->count;
        return STATUS_OK;
    }
    const enum status status = tokenizer_encode(encoder, row->text, place, around, &before, err);
    while (common < before.count && common < whole->count && before.ids[common] == whole->ids[common]) common++;
    token_list_release(&before);
    *out = common;
    return status;
}

enum status cli_row_encode(const struct cli_row *row, struct tokenizer_encoder *encoder, bool around,
                           struct token_list *out, struct rows_write_span *spans, struct error *err)
{
    TRY(tokenizer_encode(encoder, row->text, row->length, around, out, err));
    for (size_t i = 0; i < row->part_count; i++) {
        TRY(find_border(row, row->parts[i].begin, encoder, around, out, &spans[i].first, err));
        TRY(find_border(row, row->parts[i].end, encoder, around, out, &spans[i].last, err));
    }
    return STATUS_OK;
}
