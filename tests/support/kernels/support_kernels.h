/*
 * The cases of all kernels, for any back end (support_cases.h). A program sets them up with the tables that it tests
 * and lists them with KERNEL_CASES(KERNEL_CASE_TEST).
 */
#ifndef SPILLWAY_TESTS_SUPPORT_KERNELS_SUPPORT_KERNELS_H
#define SPILLWAY_TESTS_SUPPORT_KERNELS_SUPPORT_KERNELS_H

#include "tests/support/support_cases.h"

/* support_kernels.c */
#define KERNEL_CASES_GPT2(X)                                                \
    X(linear) X(elementwise) X(relu) X(gelu_extremes) X(norm) X(loss) X(update)     \
    X(embedding) X(embedding_slices)

/* ... _llama.c, _encoder.c */
#define KERNEL_CASES_OTHERS(X)                                              \
    X(rms_norm) X(rope) X(swiglu) X(swiglu_extremes)                                            \
    X(loss_labels) X(loss_labels_as_tokens) X(images)

/* ... _bf16.c */
#define KERNEL_CASES_BF16(X)                                                \
    X(bf16_round) X(bf16_linear) X(bf16_update) X(bf16_embedding)

/* ... _share.c */
#define KERNEL_CASES_SHARE(X)                                               \
    X(squares) X(update_scaled) X(embed_gradient) X(embed_gradient_continues) X(embed_gradient_parts) X(loss_share) \
    X(copy_rows) X(codes)

/* ... _attention.c */
#define KERNEL_CASES_ATTENTION(X)                                           \
    X(attention) X(attention_grouped) X(attention_as_one) X(attention_rounds) X(attention_sliced)     \
    X(attention_in_rows)

#define KERNEL_CASES(X)                                                     \
    KERNEL_CASES_GPT2(X) KERNEL_CASES_ATTENTION(X) KERNEL_CASES_OTHERS(X)   \
    KERNEL_CASES_BF16(X) KERNEL_CASES_SHARE(X)

#define KERNEL_CASE_DECLARE(name) void test_kernel_##name(void **state);
#define KERNEL_CASE_TEST(name) cmocka_unit_test(test_kernel_##name),

KERNEL_CASES(KERNEL_CASE_DECLARE)

#endif
