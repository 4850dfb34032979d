/* A tokenizer.json on any bytes: refused with a message, or texts are encoded in tokens of its vocabulary, or
 * refused. */
#include <assert.h>
#include <string.h>

#include "models/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(struct tokenizer_encoder *encoder, uint32_t vocabulary, const char *text, size_t length)
{
    struct token_list list = {0};
    struct error err = {0};
    for (int around = 0; around < 2; around++) {
        const enum status status = tokenizer_encode(encoder, text, length, around == 1, &list, &err);
        assert(status == STATUS_OK || (status == STATUS_BAD_INPUT && err.text[0]));
        for (size_t i = 0; i < list.count; i++) assert(list.ids[i] < vocabulary);
    }
    token_list_release(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {"", " ", "ab ab  abc\n",
                                        "na\xc3\xafve e\xcc\x81 12 <s>x</s> \xe4\xbd\xa0\xf0\x9f\x98\x80", "\xff"};
    struct tokenizer *tokenizer = NULL;
    struct tokenizer_encoder *encoder = NULL;
    struct error err = {0};
    if (tokenizer_parse("fuzz", (const char *)data, size, &tokenizer, &err)) {
        assert(!tokenizer && strncmp(err.text, "fuzz", 4) == 0);
        return 0;
    }
    if (tokenizer_encoder_create(tokenizer, &encoder, &err) == STATUS_OK) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            encode(encoder, tokenizer_vocabulary(tokenizer), texts[i], strlen(texts[i]));
        encode(encoder, tokenizer_vocabulary(tokenizer), (const char *)data, size < 200 ? size : 200);
    }
    tokenizer_encoder_destroy(encoder);
    tokenizer_destroy(tokenizer);
    return 0;
}
