/*
 * cli/document/document.h: a whole document in both forms against golden files, text that looks like markup, random
 * bytes checked by an independent reader of the page, and a failed allocation that is reported at the end.
 *
 * SPILLWAY_REWRITE_GOLDEN=1 rewrites tests/golden/document; review the difference like code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/file_kind.h"
#include "base/random.h"
#include "cli/document/document.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

static char folder[SUPPORT_FOLDER_BYTES];

static const char svg[] =
    "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>\n";
static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 255};

static const char *at(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *contents(const char *path)
{
    char *text;
    size_t length;
    struct error err = {0};
    if (file_read(path, 1 << 24, &text, &length, &err) != STATUS_OK) fail_msg("%s", err.text);
    return text;
}

static char *written(const struct document *document, const char *name)
{
    struct error err = {0};
    if (document_write(document, at(name), &err) != STATUS_OK) fail_msg("%s", err.text);
    return contents(at(name));
}

/* Makes a document with every kind of part. */
static struct document *example(void)
{
    struct error err = {0};
    struct document *document = document_create("Two jobs on <a card>");
    document_contents(document);
    document_heading(document, 2, "Jobs & places");
    document_paragraph(document, "%u jobs by '%s', 91.5 %% busy", 2, "sharded_lrtf");
    document_table_begin(document, "what each takes", (const char *const[]){"JOB", ">STATE", NULL});
    document_cell(document, "a|b");
    document_cell(document, "%.1f GiB", 1.5);
    document_cell(document, "<b>");
    document_cell(document, "-");
    document_table_end(document);
    document_table_begin(document, "no rows: left out", (const char *const[]){"JOB", NULL});
    document_table_end(document);
    document_heading(document, 3, "What is assumed");
    document_item(document, "links are shared fairly");
    document_item(document, "1. is no number of a list");
    document_paragraph(document, "# no heading");
    document_code(document, "spillway run plan.json && echo '```'\n  <indented>");
    assert_int_equal(document_picture(document, "who ran \"what\"", svg, strlen(svg), &err), STATUS_OK);
    assert_int_equal(document_picture(document, "memory [GiB]", png, sizeof png, &err), STATUS_OK);
    document_heading(document, 2, "End");
    return document;
}

static void compare_golden(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/tests/golden/document/%s", SOURCE_DIR, name);
    if (getenv("SPILLWAY_REWRITE_GOLDEN")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
    }
    char *expected = contents(path);
    assert_string_equal(text, expected);
    free(expected);
}

static void both_forms(void **state)
{
    (void)state;
    struct document *document = example();
    char *html = written(document, "page.html"), *markdown = written(document, "my page.md");
    compare_golden("page.html", html);
    compare_golden("page.md", markdown);
    /* a page contains its pictures; Markdown has them in files of their own */
    assert_int_not_equal(access(at("page-1.svg"), F_OK), 0);
    char *beside = contents(at("my page-1.svg"));
    assert_string_equal(beside, svg);
    size_t length;
    char *second;
    struct error err = {0};
    assert_int_equal(file_read(at("my page-2.png"), 1000, &second, &length, &err), STATUS_OK);
    assert_int_equal(length, sizeof png);
    assert_memory_equal(second, png, length);
    /* again: the same bytes */
    char *again = written(document, "again.htm");
    assert_string_equal(html, again);
    free(again);
    free(second);
    free(beside);
    free(markdown);
    free(html);
    document_destroy(document);
}

static void refused(void **state)
{
    (void)state;
    struct document *document = document_create("t");
    static const char *const names[] = {"out.txt", "out", ".html", "html", "a.md/out", "out.html.gz"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct error err = {0};
        char text[200];
        snprintf(text, sizeof text, "'%s' is not the name of a report (expected a name that ends in .html or .md)",
                 names[i]);
        assert_int_equal(document_write(document, names[i], &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, text);
        assert_int_not_equal(access(names[i], F_OK), 0);
    }
    struct error err = {0};
    assert_int_equal(document_picture(document, "", "GIF89a", 6, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "a picture has an unknown format (expected SVG or PNG)");
    err = (struct error){0};
    assert_int_equal(document_picture(document, "", "", 0, &err), STATUS_BAD_INPUT);
    err = (struct error){0};
    assert_int_equal(document_picture_file(document, "", "/nowhere.svg", &err), STATUS_BAD_INPUT);
    err = (struct error){0};
    assert_int_equal(document_write(document, "/nowhere/out.html", &err), STATUS_BAD_INPUT);
    document_destroy(document);
}

/* --- an independent reader ------------------------------------------------------------------- */

/* Reads the first paragraph as a browser would. Each tag must be one of ours and be closed in order, and each '&'
 * must begin one of our escapes. Void elements and elements of the head are skipped by name. */
struct reader {
    const char *open[32];
    size_t lengths[32], depth;
};

static void read_tag(struct reader *reader, const char *tag, size_t length)
{
    static const char *const empty[] = {"!DOCTYPE", "meta", "img"};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(tag, empty[i], strlen(empty[i])) == 0) return;
    if (tag[0] == '/') {
        assert_true(reader->depth > 0);
        reader->depth--;
        assert_int_equal(reader->lengths[reader->depth], length - 1);
        assert_memory_equal(reader->open[reader->depth], tag + 1, length - 1);
        return;
    }
    size_t name = strcspn(tag, " >");
    static const char known[] = " html head title style body h1 h2 h3 h4 p ul li pre nav a div table caption thead "
                                "tbody tr th td figure figcaption ";
    char wanted[40];
    snprintf(wanted, sizeof wanted, " %.*s ", (int)name, tag);
    assert_non_null(strstr(known, wanted));
    assert_true(reader->depth < 32);
    reader->open[reader->depth] = tag;
    reader->lengths[reader->depth++] = name;
}

/* Reads one letter of text at *at. */
static char read_letter(const char **at)
{
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    if (**at != '&') return *(*at)++;
    for (size_t i = 0; i < 5; i++) {
        if (strncmp(*at, names[i], strlen(names[i])) != 0) continue;
        *at += strlen(names[i]);
        return "&<>\"'"[i];
    }
    fail_msg("an '&' that escapes nothing: %.20s", *at);
    return 0;
}

/* Reads the text in the first element `tag`. */
static void read_page(const char *page, const char *tag, char *text)
{
    struct reader reader = {0};
    bool taken = false;
    *text = '\0';
    while (*page) {
        if (*page == '<') {
            size_t length = strcspn(page + 1, ">");
            read_tag(&reader, page + 1, length);
            page += length + 2;
            if (strncmp(page - length - 1, "style", 5) == 0) page = strstr(page, "</style>");
            if (reader.depth > 0 && strncmp(page - length - 1, tag, strlen(tag)) == 0 && page[-1] == '>' && !taken) {
                taken = true;
                while (*page != '<') *text++ = read_letter(&page);
                *text = '\0';
            }
        } else {
            read_letter(&page);
        }
    }
    assert_int_equal(reader.depth, 0);
    assert_true(taken);
}

static void hostile_text(void **state)
{
    (void)state;
    static const struct {
        const char *given, *shown, *markdown;
    } cases[] = {
        {"</p><script>alert('1')</script>", "</p><script>alert('1')</script>",
         "&lt;/p&gt;&lt;script&gt;alert('1')&lt;/script&gt;"},
        {"a & b &amp; \"c\"", "a & b &amp; \"c\"", "a &amp; b &amp;amp; \"c\""},
        {"![x](http://y) *a* _b_ `c` ~d~", "![x](http://y) *a* _b_ `c` ~d~",
         "!\\[x\\](http://y) \\*a\\* \\_b\\_ \\`c\\` \\~d\\~"},
        {"two\nlines\tand a tab", "two lines and a tab", "two lines and a tab"},
        {"- no list", "- no list", "\\- no list"},
        {"12) no list", "12) no list", "12\\) no list"},
        {"    no code", "    no code", "no code"},
        {"+5 % = $x$", "+5 % = $x$", "+5 % = \\$x\\$"},
        {"1.5 GiB", "1.5 GiB", "1.5 GiB"},
        {"# no heading", "# no heading", "\\# no heading"},
        {"--- no rule", "--- no rule", "\\--- no rule"},
        {"-", "-", "\\-"},
        {"-0.5", "-0.5", "-0.5"},
        {"\x01\x7f\xc2\x85", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        /* too long a sequence, a surrogate, past the last letter, cut off */
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80x", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"gr\xc3\xb6\xc3\x9f""er \xe2\x82\xac", "gr\xc3\xb6\xc3\x9f""er \xe2\x82\xac",
         "gr\xc3\xb6\xc3\x9f""er \xe2\x82\xac"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct document *document = document_create("t");
        document_paragraph(document, "%s", cases[i].given);
        char *html = written(document, "hostile.html"), *markdown = written(document, "hostile.md");
        char shown[256], expected[256];
        read_page(html, "p", shown);
        assert_string_equal(shown, cases[i].shown);
        snprintf(expected, sizeof expected, FILE_KIND_PAGE_MARK "\n\n# t\n\n%s\n\n", cases[i].markdown);
        assert_string_equal(markdown, expected);
        free(markdown);
        free(html);
        document_destroy(document);
    }
}

/* Uses special letters more often than others, everywhere: the page stays well formed and shows the given text. */
static void random_text(void **state)
{
    (void)state;
    static const char often[] = "<>&\"'/!-=p ";
    uint64_t seed = support_seed("document");
    for (uint64_t round = 0; round < 300; round++) {
        char given[64], shown[64];
        size_t length = 1 + random_below(seed, round, sizeof given - 2);
        for (size_t i = 0; i < length; i++) {
            uint64_t draw = random_u64(seed ^ round, i);
            given[i] = draw & 1 ? often[(draw >> 8) % (sizeof often - 1)] : (char)(32 + (draw >> 8) % 95);
        }
        given[length] = '\0';
        struct document *document = document_create(given);
        document_contents(document);
        document_paragraph(document, "%s", given);
        document_heading(document, 2, "%s", given);
        document_item(document, "%s", given);
        document_code(document, given);
        document_table_begin(document, given, (const char *const[]){given, NULL});
        document_cell(document, "%s", given);
        document_table_end(document);
        struct error err = {0};
        assert_int_equal(document_picture(document, given, svg, strlen(svg), &err), STATUS_OK);
        char *html = written(document, "random.html");
        read_page(html, "p", shown);
        assert_string_equal(shown, given);
        read_page(html, "td", shown);
        assert_string_equal(shown, given);
        read_page(html, "title", shown);
        assert_string_equal(shown, given);
        free(html);
        document_destroy(document);
    }
}

static void no_memory(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct error err = {0};
        alloc_test_fail_at(n);
        struct document *document = document_create("a long enough title");
        if (document) {
            document_table_begin(document, "c", (const char *const[]){"A", ">B", NULL});
            for (int i = 0; i < 40; i++) document_cell(document, "%d", i);
            document_table_end(document);
            document_paragraph(document, "behind it");
            if (document_write(document, at("memory.html"), &err) != STATUS_OK) {
                assert_int_equal(err.status, STATUS_NO_MEMORY);
                assert_int_not_equal(access(at("memory.html"), F_OK), 0);
            }
        }
        bool done = alloc_test_fail_at(0) < n;
        if (done) assert_int_equal(err.status, STATUS_OK);
        document_destroy(document);
        if (done) break;
    }
    assert_int_equal(access(at("memory.html"), F_OK), 0);
}

static int group_setup(void **state)
{
    (void)state;
    support_folder_make(folder);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"page.html",  "my page.md",   "my page-1.svg", "my page-2.png", "again.htm",
                                        "random.html", "memory.html", "hostile.html",  "hostile.md"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(at(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms), cmocka_unit_test(refused),   cmocka_unit_test(hostile_text),
        cmocka_unit_test(random_text), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests_name("cli/document/document.h", tests, group_setup, group_teardown);
}
