#include "models/tokenizer/pieces.h"

#include "base/try.h"
#include "models/tokenizer/characters.h"

const char pieces_gpt2_expression[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* A visit of all steps from one on. */
struct walk {
    const struct pieces *pieces;
    struct text_search *search;
    struct byte_list *rooms;
    piece_visit visit;
    void *context;
};

static enum status take_step(const struct walk *walk, size_t step, const char *text, size_t length, bool first,
                             struct error *err);

/* --- bytes ------------------------------------------------------------------------------------ */

/* Writes the printable character of a byte, as UTF-8, and returns its length (1 or 2). Printable Latin-1 stands for
 * itself; the other 68 bytes have the characters from U+0100 on, in their order. */
static size_t byte_character(unsigned char byte, char out[2])
{
    unsigned int code = byte;
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    if (!printable) code = 0x100u + (byte <= 0x20 ? byte : byte == 0xad ? 67u : byte - 0x7fu + 33u);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    out[0] = (char)(0xc0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3f));
    return 2;
}

static enum status write_bytes(const struct walk *walk, size_t step, const char *text, size_t length, bool first,
                               struct error *err)
{
    struct byte_list *const room = &walk->rooms[step];
    room->count = 0;
    for (size_t i = 0; i < length; i++) {
        char character[2];
        const size_t bytes = byte_character((unsigned char)text[i], character);
        TRY(byte_list_add(room, character, bytes, err));
    }
    return take_step(walk, step + 1, byte_list_text(room), room->count, first, err);
}

/* --- splitting -------------------------------------------------------------------------------- */

struct span {
    size_t begin, end;
    bool match;
};

/* Pieces under way: the last one waits until it is known that nothing joins it. */
struct split {
    const struct walk *walk;
    size_t step;
    const char *text;
    bool first;
    struct span last;    /* empty: none */
    bool after_match;    /* the span before was a match */
};

static enum status end_piece(struct split *split, struct error *err)
{
    const struct span piece = split->last;
    split->last = (struct span){piece.end, piece.end, false};
    if (piece.begin == piece.end) return STATUS_OK;
    return take_step(split->walk, split->step + 1, split->text + piece.begin, piece.end - piece.begin,
                     split->first && piece.begin == 0, err);
}

/* Returns true if the span goes on the piece under way. */
static bool joins(const struct split *split, const struct span *span, enum piece_matches matches)
{
    if (split->last.begin == split->last.end) return false;
    switch (matches) {
    case PIECE_MATCHES_WITH_PREVIOUS: return span->match && !split->after_match;
    case PIECE_MATCHES_WITH_NEXT: return !span->match && split->after_match;
    case PIECE_MATCHES_CONTIGUOUS: return span->match == split->after_match;
    default: return false;
    }
}

static enum status add_span(struct split *split, struct span span, struct error *err)
{
    const struct piece_step *const step = &split->walk->pieces->steps[split->step];
    span.match = span.match != step->inverted;
    if (!joins(split, &span, step->matches)) {
        TRY(end_piece(split, err));
        split->last.begin = span.begin;
    }
    split->last.end = span.end;
    split->after_match = span.match;
    if (step->matches == PIECE_MATCHES_REMOVED && span.match) split->last.begin = span.end;
    return STATUS_OK;
}

static enum status split_text(const struct walk *walk, size_t step, const char *text, size_t length, bool first,
                              struct error *err)
{
    struct split split = {.walk = walk, .step = step, .text = text, .first = first};
    size_t done = 0, from = 0, begin, end;
    while (from <= length) {
        bool found;
        TRY(text_pattern_find(walk->pieces->steps[step].pattern, walk->search, text, length, from, &found, &begin, &end,
                              err));
        if (!found) break;
        if (begin > done) TRY(add_span(&split, (struct span){done, begin, false}, err));
        if (end > begin) TRY(add_span(&split, (struct span){begin, end, true}, err));
        done = end;
        from = end > begin ? end : end + character_bytes(text + end);
    }
    if (done < length) TRY(add_span(&split, (struct span){done, length, false}, err));
    return end_piece(&split, err);
}

/* --- prefixes --------------------------------------------------------------------------------- */

/* Replaces spaces of PIECE_METASPACE, and puts the mark of a word's begin before the text. */
static enum status write_marks(const struct walk *walk, size_t step, const char **text, size_t *length, bool first,
                               struct error *err)
{
    const struct piece_step *const of = &walk->pieces->steps[step];
    struct byte_list *const room = &walk->rooms[step];
    const bool replaces = of->kind == PIECE_METASPACE;
    const bool begins = (replaces && *length > 0 && (*text)[0] == ' ') ||
                        (*length >= of->length && memcmp(*text, of->text, of->length) == 0);
    const bool wanted = of->prefix == PIECE_PREFIX_ALWAYS || (of->prefix == PIECE_PREFIX_FIRST && first);
    room->count = 0;
    if (wanted && !begins) TRY(byte_list_add(room, of->text, of->length, err));
    for (size_t i = 0; i < *length; i++)
        TRY(replaces && (*text)[i] == ' ' ? byte_list_add(room, of->text, of->length, err)
                                          : byte_list_add(room, *text + i, 1, err));
    *text = byte_list_text(room);
    *length = room->count;
    return STATUS_OK;
}

/* --- public ----------------------------------------------------------------------------------- */

static enum status take_step(const struct walk *walk, size_t step, const char *text, size_t length, bool first,
                             struct error *err)
{
    if (length == 0) return STATUS_OK;
    if (step == walk->pieces->count) return walk->visit(walk->context, text, length, err);
    const struct piece_step *const of = &walk->pieces->steps[step];
    if (of->kind == PIECE_BYTES) return write_bytes(walk, step, text, length, first, err);
    if (of->text) TRY(write_marks(walk, step, &text, &length, first, err));
    return of->pattern ? split_text(walk, step, text, length, first, err)
                       : take_step(walk, step + 1, text, length, first, err);
}

enum status pieces_each(const struct pieces *pieces, struct text_search *search, struct byte_list *rooms,
                        const char *text, size_t length, bool first, piece_visit visit, void *context,
                        struct error *err)
{
    const struct walk walk = {pieces, search, rooms, visit, context};
    return take_step(&walk, 0, text, length, first, err);
}

void pieces_release(struct pieces *pieces)
{
    for (size_t i = 0; i < pieces->count; i++) text_pattern_destroy(pieces->steps[i].pattern);
}
