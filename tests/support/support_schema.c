/* See support_schema.h. */
#include "tests/support/support_schema.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

struct checking {
    char *why;
    size_t size;
};

static bool fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place);

static bool fail(const struct checking *c, const char *place, const char *what)
{
    snprintf(c->why, c->size, "%s: %s", *place ? place : "the root", what);
    return false;
}

static bool is_type(const json_t *value, const char *name)
{
    const struct {
        const char *name;
        bool is;
    } types[] = {{"object", json_is_object(value)}, {"array", json_is_array(value)},     {"string", json_is_string(value)},
                 {"number", json_is_number(value)}, {"integer", json_is_integer(value)}, {"boolean", json_is_boolean(value)},
                 {"null", json_is_null(value)}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
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

static bool all_known(const json_t *schema)
{
    static const char *const known[] = {"$schema", "title", "description", "type", "const", "enum", "required", "properties",
                                        "additionalProperties", "items", "minItems", "minimum", "pattern"};
    const char *key;
    json_t *unused;
    json_object_foreach((json_t *)schema, key, unused)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= strcmp(known[i], key) == 0;
        if (!found) return false;
    }
    return json_is_object(schema);
}

static bool object_fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place)
{
    const json_t *required = json_object_get(schema, "required"), *properties = json_object_get(schema, "properties");
    bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
    char inner[256];
    const char *key;
    json_t *child;
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i))))
            return fail(c, place, json_string_value(json_array_get(required, i)));
    json_object_foreach((json_t *)value, key, child)
    {
        const json_t *rule = json_object_get(properties, key);
        snprintf(inner, sizeof inner, "%.180s/%.60s", place, key);
        if (!rule && closed) return fail(c, inner, "no such key");
        if (rule && !fits(c, rule, child, inner)) return false;
    }
    return true;
}

static bool array_fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place)
{
    const json_t *items = json_object_get(schema, "items"), *least = json_object_get(schema, "minItems");
    char inner[256];
    if (least && (json_int_t)json_array_size(value) < json_integer_value(least)) return fail(c, place, "too few items");
    for (size_t i = 0; items && i < json_array_size(value); i++) {
        snprintf(inner, sizeof inner, "%.200s/%zu", place, i);
        if (!fits(c, items, json_array_get(value, i), inner)) return false;
    }
    return true;
}

static bool fits(const struct checking *c, const json_t *schema, const json_t *value, const char *place)
{
    const json_t *type = json_object_get(schema, "type"), *constant = json_object_get(schema, "const");
    const json_t *list = json_object_get(schema, "enum"), *pattern = json_object_get(schema, "pattern");
    const json_t *least = json_object_get(schema, "minimum");
    if (!all_known(schema)) return fail(c, place, "the schema has a key that is not checked");
    if (type && !has_type(type, value)) return fail(c, place, "of another type");
    if (constant && !json_equal(constant, value)) return fail(c, place, "another value");
    if (list && !is_among(list, value)) return fail(c, place, "none of the values");
    if (pattern && json_is_string(value) && !matches(json_string_value(pattern), json_string_value(value)))
        return fail(c, place, "not of the pattern");
    if (least && json_is_number(value) && json_number_value(value) < json_number_value(least))
        return fail(c, place, "below the minimum");
    if (json_is_object(value)) return object_fits(c, schema, value, place);
    if (json_is_array(value)) return array_fits(c, schema, value, place);
    return true;
}

bool support_schema_fits(const json_t *schema, const json_t *value, char *why, size_t size)
{
    return fits(&(struct checking){why, size}, schema, value, "");
}
