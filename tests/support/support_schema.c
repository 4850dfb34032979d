#include "tests/support/support_schema.h"

#include <dirent.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

static const char ending[] = ".schema.json";

/* --- reading --------------------------------------------------------------------------------- */

/* Returns false when the file is a schema that cannot be read. */
static bool add_schema(json_t *schemas, const char *folder, const char *file)
{
    char path[1024], name[256];
    const char *end = strstr(file, ending);
    json_error_t why;
    if (!end || strcmp(end, ending) != 0) return true;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    snprintf(name, sizeof name, "%.*s", (int)(end - file), file);
    json_t *schema = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!schema) fprintf(stderr, "%s:%d: %s\n", path, why.line, why.text);
    return schema && json_object_set_new(schemas, name, schema) == 0;
}

json_t *support_schemas_read(const char *folder)
{
    DIR *directory = opendir(folder);
    json_t *schemas = json_object();
    bool good = directory != NULL;
    if (!good) perror(folder);
    for (struct dirent *entry; good && (entry = readdir(directory)) != NULL;)
        good = add_schema(schemas, folder, entry->d_name);
    if (directory) closedir(directory);
    if (good) return schemas;
    json_decref(schemas);
    return NULL;
}

const char *support_schema_name(const json_t *value, char *buffer, size_t size)
{
    static const char answer[] = "spillway-", file[] = "spillway_";
    const char *schema = json_string_value(json_object_get(value, "schema")), *key;
    json_t *unused;
    if (schema && strncmp(schema, answer, strlen(answer)) == 0) {
        snprintf(buffer, size, "%s", schema + strlen(answer));
        if (strrchr(buffer, '-')) *strrchr(buffer, '-') = '\0'; /* the version */
        return buffer;
    }
    json_object_foreach((json_t *)value, key, unused)
    {
        if (strncmp(key, file, strlen(file)) != 0) continue;
        snprintf(buffer, size, "%s-file", key + strlen(file));
        for (char *c = buffer; *c; c++)
            if (*c == '_') *c = '-';
        return buffer;
    }
    if (!json_object_get(value, "model_type")) return NULL;
    snprintf(buffer, size, "network-file");
    return buffer;
}

/* --- checking -------------------------------------------------------------------------------- */

struct checking {
    const json_t *schemas, *root; /* references without a file's name are to the root */
    char *why;
    size_t size;
};

static bool fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place);

static bool fail(const struct checking *c, const char *place, const char *what, const char *name)
{
    snprintf(c->why, c->size, "%s: %s%s%s%s", *place ? place : "the root", what, *name ? " '" : "", name,
             *name ? "'" : "");
    return false;
}

static bool is_whole(const json_t *value)
{
    return json_is_integer(value) || (json_is_real(value) && json_real_value(value) == floor(json_real_value(value)));
}

static bool is_type(const json_t *value, const char *name)
{
    const struct {
        const char *name;
        bool is;
    } types[] = {{"object", json_is_object(value)}, {"array", json_is_array(value)}, {"string", json_is_string(value)},
                 {"number", json_is_number(value)}, {"integer", is_whole(value)},
                 {"boolean", json_is_boolean(value)},
                 {"null", json_is_null(value)}};
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0) return types[i].is;
    return false;
}

static bool has_type(const json_t *types, const json_t *value)
{
    if (json_is_string(types)) return is_type(value, json_string_value(types));
    for (size_t i = 0; i < json_array_size(types); i++)
        if (is_type(value, json_string_value(json_array_get(types, i)))) return true;
    return false;
}

static bool is_among(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value)) return true;
    return false;
}

static bool matches(const char *pattern, const char *text)
{
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0) return false;
    bool matched = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return matched;
}

/* Returns a key of the schema that nothing here looks at; NULL when there is none. */
static const char *unknown_rule(const json_t *schema)
{
    static const char *const known[] = {
        "$schema", "$id", "$defs", "$ref", "title", "description", "type", "const", "enum", "anyOf", "required",
        "properties",
        "additionalProperties", "items", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "pattern"};
    const char *key;
    json_t *unused;
    if (!json_is_object(schema)) return "";
    json_object_foreach((json_t *)schema, key, unused)
    {
        bool found = false;
        for (size_t i = 0; i < ARRAY_COUNT(known); i++) found |= strcmp(known[i], key) == 0;
        if (!found) return key;
    }
    return NULL;
}

/* Follows "FILE.schema.json#/$defs/NAME", either half of which may be missing. */
static bool reference_fits(const struct checking *c, const char *text, const json_t *value, const char *place)
{
    static const char inside[] = "#/$defs/";
    const char *hash = strchr(text, '#'), *end = strstr(text, ending);
    struct checking there = *c;
    char name[256];
    if (end) {
        snprintf(name, sizeof name, "%.*s", (int)(end - text), text);
        there.root = json_object_get(c->schemas, name);
    }
    const json_t *schema = there.root;
    if (hash)
        schema = strncmp(hash, inside, strlen(inside)) == 0
                     ? json_object_get(json_object_get(there.root, "$defs"), hash + strlen(inside))
                     : NULL;
    return schema ? fits(&there, schema, value, place) : fail(c, place, "the schema refers to nothing:", text);
}

static bool object_fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place)
{
    const json_t *required = json_object_get(schema, "required"), *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    char inner[256];
    const char *key;
    json_t *child;
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i))))
            return fail(c, place, "missing key", json_string_value(json_array_get(required, i)));
    json_object_foreach((json_t *)value, key, child)
    {
        const json_t *rule = json_object_get(properties, key);
        snprintf(inner, sizeof inner, "%.180s/%.60s", place, key);
        if (!rule && json_is_false(others)) return fail(c, inner, "unknown key", "");
        if (!rule && json_is_object(others)) rule = others;
        if (rule && !fits(c, rule, child, inner)) return false;
    }
    return true;
}

static bool array_fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place)
{
    const json_t *items = json_object_get(schema, "items"), *least = json_object_get(schema, "minItems");
    const json_t *most = json_object_get(schema, "maxItems");
    const json_int_t count = (json_int_t)json_array_size(value);
    char inner[256];
    if (least && count < json_integer_value(least)) return fail(c, place, "too few items", "");
    if (most && count > json_integer_value(most)) return fail(c, place, "too many items", "");
    for (size_t i = 0; items && i < json_array_size(value); i++) {
        snprintf(inner, sizeof inner, "%.200s/%zu", place, i);
        if (!fits(c, items, json_array_get(value, i), inner)) return false;
    }
    return true;
}

static bool number_fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place)
{
    const json_t *least = json_object_get(schema, "minimum"), *most = json_object_get(schema, "maximum");
    const json_t *above = json_object_get(schema, "exclusiveMinimum");
    const double number = json_number_value(value);
    if (least && number < json_number_value(least)) return fail(c, place, "below the minimum", "");
    if (most && number > json_number_value(most)) return fail(c, place, "above the maximum", "");
    if (above && number <= json_number_value(above)) return fail(c, place, "below the minimum", "");
    return true;
}

/* When no schema of the list fits, `why` is of the last one. */
static bool any_fits(const struct checking *c, const json_t *list, const json_t *value, const char *place)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (fits(c, json_array_get(list, i), value, place)) {
            c->why[0] = '\0';
            return true;
        }
    return false;
}

static bool fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place)
{
    const json_t *type = json_object_get(schema, "type"), *constant = json_object_get(schema, "const");
    const json_t *list = json_object_get(schema, "enum"), *any = json_object_get(schema, "anyOf");
    const char *pattern = json_string_value(json_object_get(schema, "pattern")), *unknown = unknown_rule(schema);
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    if (unknown) return fail(c, place, "the schema has a rule that is not checked:", unknown);
    if (reference && !reference_fits(c, reference, value, place)) return false;
    if (any && !any_fits(c, any, value, place)) return false;
    if (type && !has_type(type, value)) return fail(c, place, "another type", "");
    if (constant && !json_equal(constant, value)) return fail(c, place, "another value", "");
    if (list && !is_among(list, value)) return fail(c, place, "none of the values", "");
    if (pattern && json_is_string(value) && !matches(pattern, json_string_value(value)))
        return fail(c, place, "another pattern", "");
    if (json_is_number(value)) return number_fits(c, schema, value, place);
    if (json_is_object(value)) return object_fits(c, schema, value, place);
    if (json_is_array(value)) return array_fits(c, schema, value, place);
    return true;
}

bool support_schema_fits(const json_t *schemas, const char *name, const json_t *value, char *why, size_t size)
{
    const json_t *schema = json_object_get(schemas, name);
    const struct checking c = {schemas, schema, why, size};
    return schema ? fits(&c, schema, value, "") : fail(&c, "", "no schema", name);
}
