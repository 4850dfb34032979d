/* base/text/suggest.h: distances worked out by hand, and how near is near enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "base/text/suggest.h"

static const char *const words[] = {"steps", "microbatch", "optimizer", "lr", "layers"};

static void near_words_are_found(void **state)
{
    (void)state;
    size_t count = ARRAY_COUNT(words);
    assert_string_equal(suggest("stpes", words, count), "steps");         /* one exchange */
    assert_string_equal(suggest("step", words, count), "steps");          /* one insertion */
    assert_string_equal(suggest("stteps", words, count), "steps");        /* one deletion */
    assert_string_equal(suggest("optimiser", words, count), "optimizer"); /* one replacement */
    assert_string_equal(suggest("micro_bacth", words, count), "microbatch"); /* two of three */
    assert_string_equal(suggest("layer", words, count), "layers");
}

static void far_words_are_not(void **state)
{
    (void)state;
    size_t count = ARRAY_COUNT(words);
    assert_null(suggest("epochs", words, count));
    assert_null(suggest("batch", words, count)); /* five insertions, 2 allowed */
    assert_null(suggest("", words, count));
    assert_null(suggest("q", words, count)); /* replacing the whole word is no resemblance */
    assert_null(suggest("steps", words, 0));
    char word[200];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    assert_null(suggest(word, words, count));
}

static void nearest_wins_then_first(void **state)
{
    (void)state;
    const char *const some[] = {"abcdx", "abcde", "abcdy"};
    assert_string_equal(suggest("abcde", some, 3), "abcde");
    assert_string_equal(suggest("abcdz", some, 3), "abcdx");
}

/* Names of figures, of networks and of keys, as they are in the program. */
static void prefixes_win_over_edits(void **state)
{
    (void)state;
    static const char *const figures[] = {"hydra-fig7", "hydra-fig8-text", "hydra-fig8-nas", "hydra-fig9-left"};
    static const char *const networks[] = {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt-j-6b", "gpt-neox-20b"};
    char buffer[SUGGEST_BYTES];
    assert_string_equal(suggest_ending("hydra-fig8", figures, 4, buffer),
                        " (did you mean 'hydra-fig8-text' or 'hydra-fig8-nas'?)");
    assert_string_equal(suggest("hydra-fig9", figures, 4), "hydra-fig9-left"); /* fig7 is one letter away */
    assert_string_equal(suggest_ending("hydra-fg7", figures, 4, buffer), " (did you mean 'hydra-fig7'?)");
    assert_string_equal(suggest_ending("gpt", networks, 6, buffer),
                        " (did you mean 'gpt2', 'gpt2-medium', 'gpt2-large', 'gpt2-xl' or 2 more?)");
    assert_string_equal(suggest_ending("gpt2-xxl", networks, 6, buffer), " (did you mean 'gpt2-xl'?)");
    assert_string_equal(suggest_ending("gp", networks, 2, buffer), " (expected gpt2 or gpt2-medium)");
}

static void longer_words_suggest_what_they_start_with(void **state)
{
    (void)state;
    static const char *const keys[] = {"lr", "micro", "microbatch", "microbatches", "minibatches"};
    assert_string_equal(suggest("micro_batchsize", keys, 5), "microbatch"); /* five edits, 4 allowed */
    assert_string_equal(suggest("micro_batches_of_a_step", keys, 5), "microbatches");
    assert_null(suggest("microsoft_windows", keys, 5)); /* 5 of 17 letters */
    assert_null(suggest("lr_of_the_first_steps", keys, 5));
}

static void lists_read_as_a_sentence(void **state)
{
    (void)state;
    char buffer[64];
    assert_string_equal(suggest_list(words, 0, buffer, sizeof buffer), "");
    assert_string_equal(suggest_list(words, 1, buffer, sizeof buffer), "steps");
    assert_string_equal(suggest_list(words, 2, buffer, sizeof buffer), "steps or microbatch");
    assert_string_equal(suggest_list(words, 3, buffer, sizeof buffer),
                        "steps, microbatch or optimizer");
    assert_string_equal(suggest_list(words, 5, buffer, 20), "steps, microbatc...");
}

static void endings_suggest_or_list(void **state)
{
    (void)state;
    char buffer[SUGGEST_BYTES];
    assert_string_equal(suggest_ending("stpes", words, 3, buffer), " (did you mean 'steps'?)");
    assert_string_equal(suggest_ending("epochs", words, 3, buffer), " (expected steps, microbatch or optimizer)");
    assert_string_equal(suggest_ending_or("stpes", words, 3, " (see there)", buffer), " (did you mean 'steps'?)");
    assert_string_equal(suggest_ending_or("epochs", words, 3, " (see there)", buffer), " (see there)");
    assert_string_equal(suggest_ending_or("epochs", words, 3, "", buffer), "");
    const char *many[200];
    for (size_t i = 0; i < ARRAY_COUNT(many); i++) many[i] = "a-long-word-of-many";
    suggest_ending("q", many, ARRAY_COUNT(many), buffer);
    assert_string_equal(buffer + strlen(buffer) - 4, "...)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_words_are_found),
        cmocka_unit_test(far_words_are_not),
        cmocka_unit_test(nearest_wins_then_first),
        cmocka_unit_test(prefixes_win_over_edits),
        cmocka_unit_test(longer_words_suggest_what_they_start_with),
        cmocka_unit_test(lists_read_as_a_sentence),
        cmocka_unit_test(endings_suggest_or_list),
    };
    return cmocka_run_group_tests_name("base/text/suggest.h", tests, NULL, NULL);
}
