/* A checker of JSON Schemas: the part of draft 2020-12 that docs/schemas uses. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_SCHEMA_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads all *.schema.json of a folder into an object by their names without this ending. Returns NULL and prints the
 * reason to standard error when one cannot be read. The caller releases it with json_decref(). */
json_t *support_schemas_read(const char *folder);

/* Returns the name of the schema that a file or an answer of Spillway has to fit. Returns NULL when the value is of
 * another program. `buffer` holds the name. */
const char *support_schema_name(const json_t *value, char *buffer, size_t size);

/*
 * Returns true when `value` fits the schema of that name. If not, `why` says where and what. Known are $ref (into $defs
 * of the same file, or to another file of the folder), type, const, enum, anyOf, required, properties,
 * additionalProperties, items, minItems, maxItems, minimum, maximum, exclusiveMinimum and pattern. A schema with
 * another key fits nothing, so that no rule goes unchecked.
 */
bool support_schema_fits(const json_t *schemas, const char *name, const json_t *value, char *why, size_t size);

#endif
