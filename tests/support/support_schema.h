/* A checker of JSON Schemas: the part of draft 2020-12 that docs/schemas uses. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_SCHEMA_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Does `value` fit `schema`? If not, `why` says where and what. Known are type, const, enum, required, properties,
 * additionalProperties (false), items, minItems, minimum and pattern; a schema with another key fits nothing, so that no rule
 * goes unchecked.
 */
bool support_schema_fits(const json_t *schema, const json_t *value, char *why, size_t size);

#endif
