/*
 * A name is compared with presets word by word. Words are what stands between '-', '.', blanks and the like, and a
 * word of a name may be several words of a preset, written as one:
 *
 *     rtx3090          rtx-3090-24gb      the preset: all words match
 *     a100 80gb        a100-sxm4-80gb, a100-pcie-80gb, dgx-a100-80gb: listed
 *     rtx-2080         rtx-2080-ti-11gb   suggested: a variant ("ti") is another GPU
 *     dgx-a10-80gb     dgx-a100-80gb      suggested: its words only start so
 *     rtx3O90          rtx-3090-24gb      suggested: one letter differs
 *
 * Only whole words count, so a count ("4" of "4 a100-sxm4-40gb") is never a part of "40gb", and a name whose digits
 * differ is never taken for a preset. Each word of a preset matches once: "2 dgx-2" is two nodes.
 */
#include "models/hardware/hardware_names.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "base/text/number.h"
#include "base/text/suggest.h"
#include "models/hardware/hardware.h"
#include "models/hardware/hardware_catalogue.h"

enum {
    PRESETS_MAX = 128,
    WORDS_MAX = 16,
    LETTERS_MIN = 2, /* letters and digits of a name that is compared */
    LISTED_MAX = 8   /* presets that a message lists */
};

const char machine_name_host[] = "host-2-cores";
static const char cloud_prefix[] = "aws:", cloud_summary[] = "AWS: ";
static const char times_sign[] = "\xc3\x97"; /* UTF-8 */

/* --- presets ---------------------------------------------------------------------------------- */

static const char host_summary[] =
    "a 2-core Xeon (Emerald Rapids) as its own device: for trying things without a GPU";

static uint32_t gpu_count(void)
{
    uint32_t count = 0;
    while (catalogue_gpu(count)) count++;
    return count;
}

static uint32_t node_count(void)
{
    uint32_t count = 0;
    while (catalogue_node(count)) count++;
    return count;
}

const char *hardware_preset_name(uint32_t index)
{
    uint32_t gpus = gpu_count(), nodes = node_count();
    if (index < gpus) return catalogue_gpu(index)->name;
    if (index < gpus + nodes) return catalogue_node(index - gpus)->name;
    return index == gpus + nodes ? machine_name_host : NULL;
}

const char *hardware_preset_summary(uint32_t index)
{
    uint32_t gpus = gpu_count(), nodes = node_count();
    assert(index <= gpus + nodes);
    if (index < gpus) return catalogue_gpu(index)->summary;
    return index < gpus + nodes ? catalogue_node(index - gpus)->summary : host_summary;
}

/* --- finding ---------------------------------------------------------------------------------- */

/* "rtx-3090" of "rtx-3090-24gb": all but the memory. */
static bool is_all_but_memory(const char *name, const char *full)
{
    size_t length = strlen(name);
    if (length == 0 || strncmp(full, name, length) != 0 || full[length] != '-') return false;
    const char *memory = full + length + 1;
    size_t digits = strspn(memory, "0123456789");
    return digits > 0 && strcmp(memory + digits, "gb") == 0;
}

/* Finds a device that is sold with only one size of memory. */
static const struct hardware_gpu *find_short(const char *name)
{
    const struct hardware_gpu *found = NULL;
    for (uint32_t i = 0; catalogue_gpu(i); i++) {
        if (!is_all_but_memory(name, catalogue_gpu(i)->name)) continue;
        if (found) return NULL;
        found = catalogue_gpu(i);
    }
    return found;
}

const struct hardware_gpu *machine_name_gpu(const char *name)
{
    for (uint32_t i = 0; catalogue_gpu(i); i++)
        if (strcmp(catalogue_gpu(i)->name, name) == 0 || strcmp(catalogue_gpu(i)->driver_name, name) == 0)
            return catalogue_gpu(i);
    return find_short(name);
}

static bool has_cloud(const char *name)
{
    return strncmp(name, cloud_prefix, strlen(cloud_prefix)) == 0;
}

static bool is_of_cloud(const struct hardware_node *node)
{
    return strncmp(node->summary, cloud_summary, strlen(cloud_summary) - 2) == 0;
}

static const char *after_colon(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? colon + 1 : name;
}

const struct hardware_node *machine_name_node(const char *name)
{
    bool cloud = has_cloud(name);
    if (cloud) name = after_colon(name);
    for (uint32_t i = 0; catalogue_node(i); i++)
        if (strcmp(catalogue_node(i)->name, name) == 0 && (!cloud || is_of_cloud(catalogue_node(i))))
            return catalogue_node(i);
    return NULL;
}

static bool is_preset(const char *name)
{
    return strcmp(name, machine_name_host) == 0 || machine_name_gpu(name) || machine_name_node(name);
}

/* --- words ------------------------------------------------------------------------------------ */

struct words {
    size_t count;
    char text[WORDS_MAX][MACHINE_NAME_BYTES];
};

static bool is_family(const char *word)
{
    static const char *const families[] = {"nvidia", "geforce", "tesla"};
    for (size_t i = 0; i < ARRAY_COUNT(families); i++)
        if (strcmp(word, families[i]) == 0) return true;
    return false;
}

static void split_words(const char *name, struct words *out)
{
    out->count = 0;
    for (const char *at = name; *at && out->count < WORDS_MAX;) {
        char *word = out->text[out->count];
        size_t length = 0;
        for (; isalnum((unsigned char)*at) && length + 1 < MACHINE_NAME_BYTES; at++)
            word[length++] = (char)tolower((unsigned char)*at);
        word[length] = '\0';
        if (length > 0 && !is_family(word)) out->count++;
        if (length == 0) at++;
    }
}

/* Returns how many unused words of the preset, from `first` on, are together the word; 0: they are not. */
static size_t spans(const struct words *preset, const bool used[WORDS_MAX], size_t first, const char *word)
{
    for (size_t w = first; w < preset->count && !used[w]; w++) {
        size_t length = strlen(preset->text[w]);
        if (strncmp(word, preset->text[w], length) != 0) return 0;
        word += length;
        if (*word == '\0') return w + 1 - first;
    }
    return 0;
}

static bool is_number(const char *word)
{
    return word[strspn(word, "0123456789")] == '\0';
}

/* Returns true if each word of the name is a word of the preset. *variant is set if the preset has a word left over
 * that makes it another GPU. After a number, words are in the preset's order: "1080 ti", not "2 dgx". */
static bool matches(const struct words *preset, const struct words *name, bool *variant)
{
    bool used[WORDS_MAX] = {false}, ordered = name->count > 0 && is_number(name->text[0]);
    size_t from = 0;
    for (size_t n = 0; n < name->count; n++) {
        size_t first = ordered ? from : 0, span = 0;
        while (first < preset->count && (span = spans(preset, used, first, name->text[n])) == 0) first++;
        if (span == 0) return false;
        for (size_t w = first; w < first + span; w++) used[w] = true;
        from = first + span;
    }
    *variant = false;
    for (size_t w = 0; w < preset->count; w++) *variant |= !used[w] && strcmp(preset->text[w], "ti") == 0;
    return true;
}

/* Returns true if each word of the name is the start of a word of the preset. */
static bool starts_words(const struct words *preset, const struct words *name)
{
    for (size_t n = 0; n < name->count; n++) {
        const char *word = name->text[n];
        bool any = false;
        for (size_t w = 0; w < preset->count && !any; w++) any = strncmp(preset->text[w], word, strlen(word)) == 0;
        if (!any) return false;
    }
    return name->count > 0;
}

/* --- candidates ------------------------------------------------------------------------------- */

static bool long_enough(const struct words *name)
{
    size_t letters = 0;
    for (size_t n = 0; n < name->count; n++) letters += strlen(name->text[n]);
    return letters >= LETTERS_MIN;
}

struct candidates {
    size_t count;
    const char *names[PRESETS_MAX];
};

/* Returns true if the preset is a node of the cloud that the name begins with, or if it begins with none. */
static bool is_in_cloud(const char *preset, const char *name)
{
    const struct hardware_node *node = machine_name_node(preset);
    return has_cloud(name) ? node && is_of_cloud(node) : strchr(name, ':') == NULL;
}

/* Finds the presets that `name` may stand for, in the order of the catalogue. "aws:" stands for all nodes of AWS. */
static void find_candidates(const char *name, struct candidates *out)
{
    struct words words, preset_words;
    const char *preset;
    bool variant;
    out->count = 0;
    split_words(after_colon(name), &words);
    if (!long_enough(&words) && strcmp(name, cloud_prefix) != 0) return;
    for (uint32_t i = 0; out->count < PRESETS_MAX && (preset = hardware_preset_name(i)); i++) {
        split_words(preset, &preset_words);
        if (is_in_cloud(preset, name) && matches(&preset_words, &words, &variant) && !variant)
            out->names[out->count++] = preset;
    }
}

/* Finds presets that a name which stands for none is near to by its words. */
static void find_started(const char *name, struct candidates *out)
{
    struct words words, preset_words;
    const char *preset;
    out->count = 0;
    split_words(after_colon(name), &words);
    if (!long_enough(&words)) return;
    for (uint32_t i = 0; out->count < PRESETS_MAX && (preset = hardware_preset_name(i)); i++) {
        split_words(preset, &preset_words);
        if ((!has_cloud(name) || is_in_cloud(preset, name)) && starts_words(&preset_words, &words))
            out->names[out->count++] = preset;
    }
}

/* Replaces a name that is no preset's by the only candidate. */
static void complete_name(char name[MACHINE_NAME_BYTES])
{
    struct candidates candidates;
    if (is_preset(name)) return;
    find_candidates(name, &candidates);
    if (candidates.count == 1) snprintf(name, MACHINE_NAME_BYTES, "%s", candidates.names[0]);
}

static bool is_name(const char *text)
{
    struct candidates candidates;
    if (is_preset(text)) return true;
    find_candidates(text, &candidates);
    return candidates.count > 0;
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Returns the length of "x", "*" or "×" at the start of the text; 0: there is none. */
static size_t times_length(const char *text)
{
    if (*text == 'x' || *text == 'X' || *text == '*') return 1;
    return strncmp(text, times_sign, strlen(times_sign)) == 0 ? strlen(times_sign) : 0;
}

/* "4x NAME", "4 NAME", "4-NAME": leaves NAME. A number before a blank or '-' may be a part of the name: "1080 ti". */
static bool cut_leading(char *text, uint64_t *count)
{
    if (!isdigit((unsigned char)text[0])) return false;
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    char *rest = end + strspn(end, " ");
    size_t sign = times_length(rest);
    if (sign == 0) {
        bool apart = rest > end || *rest == '-';
        if (!apart || is_name(text)) return false;
        sign = *rest == '-';
    }
    rest += sign;
    rest += strspn(rest, " ");
    *count = number;
    memmove(text, rest, strlen(rest) + 1);
    return true;
}

/* "NAME*4", "NAME x4": leaves NAME. The letter x ends many names: it counts after a blank or a preset's name. */
static bool cut_trailing(char *text, uint64_t *count)
{
    size_t length = strlen(text), digits = length;
    while (digits > 0 && isdigit((unsigned char)text[digits - 1])) digits--;
    if (digits == 0 || digits == length || is_name(text)) return false;
    size_t end = digits;
    while (end > 0 && text[end - 1] == ' ') end--;
    size_t sign = end >= strlen(times_sign) && times_length(text + end - strlen(times_sign)) > 1 ? strlen(times_sign)
                                                                                                 : 1;
    if (end <= sign || times_length(text + end - sign) != sign) return false;
    size_t begin = end - sign, name = begin;
    while (name > 0 && text[name - 1] == ' ') name--;
    char rest[MACHINE_NAME_BYTES];
    snprintf(rest, sizeof rest, "%.*s", (int)name, text);
    bool letter = isalpha((unsigned char)text[begin]);
    if (letter && name == begin && !is_preset(rest)) return false;
    *count = strtoull(text + digits, NULL, 10);
    text[name] = '\0';
    return true;
}

/* Cuts "NAME 2:1" at the blank and returns the ratio; 1, with the name unchanged, when there is none, and 0 for an
 * invalid ratio. */
static double cut_oversubscription(char *name)
{
    char *blank = strrchr(name, ' ');
    const char *end;
    double ratio;
    if (!blank || !number_read(blank + 1, &end, &ratio) || end[0] != ':') return 1;
    if (strcmp(end, ":1") != 0) ratio = 0; /* as in 2:3 */
    *blank = '\0';
    return ratio >= 1 && ratio <= 1e6 ? ratio : 0;
}

bool machine_name_is_path(const char *text)
{
    return strchr(text, '/') || (strlen(text) > 5 && text_ends_in(text, ".json")) ||
           (strlen(text) > 8 && text_ends_in(text, ".json.gz"));
}

bool machine_name_split(const char *text, struct machine_name *out)
{
    *out = (struct machine_name){.count = 1, .oversubscription = 1};
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') length--;
    if (length >= sizeof out->given) return false;
    snprintf(out->given, sizeof out->given, "%.*s", (int)length, text);
    snprintf(out->name, sizeof out->name, "%s", out->given);
    if (machine_name_is_path(out->given)) return true;
    out->oversubscription = cut_oversubscription(out->given);
    out->counted = cut_leading(out->given, &out->count) || cut_trailing(out->given, &out->count);
    snprintf(out->name, sizeof out->name, "%s", out->given);
    complete_name(out->name);
    return true;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Writes "a, b, c" or, of many, "a, b and 3 more". */
static const char *list_names(const struct candidates *candidates, const char *quote, char *buffer, size_t size)
{
    size_t used = 0, shown = candidates->count <= LISTED_MAX ? candidates->count : LISTED_MAX;
    for (size_t i = 0; i < shown; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s%s%s", i ? ", " : "", quote, candidates->names[i],
                                 quote);
    if (shown < candidates->count)
        snprintf(buffer + used, size - used, " and %zu more; see 'spillway hardware list'", candidates->count - shown);
    return buffer;
}

/* Finds the preset that has a word of the name: "t4-16gb" for "quadro-t4". NULL: none, or several. */
static const char *find_by_word(const char *name)
{
    const char *found = NULL, *preset;
    for (const char *at = name; *at; at += *at ? 1 : 0) {
        size_t length = strcspn(at, "- _");
        bool digits = strcspn(at, "0123456789") < length && length >= LETTERS_MIN;
        for (uint32_t i = 0; digits && (preset = hardware_preset_name(i)); i++) {
            if (strncasecmp(preset, at, length) != 0 || preset[length] != '-') continue;
            if (found) return NULL;
            found = preset;
        }
        at += length;
    }
    return found;
}

/* Writes the words as one, without a last word that is a size of memory if `is_short`. */
static void join_words(const struct words *words, bool is_short, char out[MACHINE_NAME_BYTES])
{
    size_t used = 0, count = words->count;
    if (is_short && count > 1 && isdigit((unsigned char)words->text[count - 1][0])) count--;
    out[0] = '\0';
    for (size_t w = 0; w < count && used + strlen(words->text[w]) < MACHINE_NAME_BYTES; w++)
        used += (size_t)snprintf(out + used, MACHINE_NAME_BYTES - used, "%s", words->text[w]);
}

/* Finds the preset whose letters and digits, with or without its memory, are nearest by edit distance. */
static const char *find_near(const char *name)
{
    struct words words;
    char letters[MACHINE_NAME_BYTES];
    static const bool is_short[] = {false, true};
    for (size_t s = 0; s < ARRAY_COUNT(is_short); s++) {
        char forms[PRESETS_MAX][MACHINE_NAME_BYTES];
        const char *list[PRESETS_MAX];
        size_t count = 0;
        for (const char *preset; count < PRESETS_MAX && (preset = hardware_preset_name((uint32_t)count)); count++) {
            split_words(preset, &words);
            join_words(&words, is_short[s], forms[count]);
            list[count] = forms[count];
        }
        split_words(name, &words);
        join_words(&words, false, letters);
        const char *near = suggest(letters, list, count);
        for (size_t i = 0; near && i < count; i++)
            if (list[i] == near) return hardware_preset_name((uint32_t)i);
    }
    return find_by_word(name);
}

enum status machine_name_fail(const char *name, struct error *err)
{
    static const char expected[] =
        "a preset such as a100-sxm4-40gb, '4x rtx-3090-24gb', '2x dgx-a100-80gb', or the path of a "
        "hardware file";
    struct candidates candidates;
    char list[LISTED_MAX * 40 + 64];
    if (name[0] == '\0') return error_set(err, STATUS_BAD_INPUT, "the machine has no name (expected %s)", expected);
    find_candidates(name, &candidates);
    if (candidates.count > 0)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' does not say which machine is meant (expected one of %s)",
                         name, list_names(&candidates, "", list, sizeof list));
    find_started(name, &candidates);
    const char *near = candidates.count == 0 ? find_near(after_colon(name)) : NULL;
    if (near) candidates = (struct candidates){.count = 1, .names = {near}};
    if (candidates.count > 0)
        return error_set(err, STATUS_BAD_INPUT, "unknown machine '%.100s' (did you mean %s?)", name,
                         list_names(&candidates, "'", list, sizeof list));
    return error_set(err, STATUS_BAD_INPUT, "unknown machine '%.100s' (expected %s)", name, expected);
}
