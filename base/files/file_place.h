/* Places in files: where reading can start in the middle. */
#ifndef SPILLWAY_BASE_FILES_FILE_PLACE_H
#define SPILLWAY_BASE_FILES_FILE_PLACE_H

#include <stdint.h>

/* A place between two bytes of a text. */
struct file_place {
    uint64_t text;         /* offset in the text */
    uint64_t raw;          /* offset in the file as it is on disk; in a gzip file, where a member begins */
    uint64_t line, column; /* of the byte after the place, both from 1 */
};

/*
 * A gzip file that was written with places ends in an empty member that has only a header, of which every reader
 * of gzip data takes no notice. Its extra field (RFC 1952, 2.3.1.1) has the subfield 'S' 'W': the offset at which the
 * last member with text begins, as 8 bytes, the lowest first.
 *
 *     1f 8b 08 04  00 00 00 00  00 ff  0c 00  'S' 'W' 08 00  <offset>  03 00  00 00 00 00  00 00 00 00
 */
enum { FILE_MARK_BYTES = 34, FILE_MARK_OFFSET_AT = 16 };
extern const unsigned char file_mark[FILE_MARK_BYTES]; /* with an offset of 0 */

#endif
