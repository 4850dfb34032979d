/* Networks of published shapes, and jobs that run them in parallel. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_H

#include "models/job/job.h"

/* A GPT with the shapes of Megatron-LM's papers: F = 4 C, s 2048, V 51200, tied. As in the papers, attention counts
 * as if each token saw all others. */
struct support_gpt {
    const char *name;
    uint64_t heads, width, blocks;
};
struct network support_gpt(struct support_gpt shape);

/* Shapes of Narayanan et al., arXiv 2104.04473, table 1, and Korthikanti et al., arXiv 2205.05198, table
 * 3. */
enum { SUPPORT_GPT_1700M, SUPPORT_GPT_7500M, SUPPORT_GPT_22B, SUPPORT_GPT_39B, SUPPORT_GPT_145B,
       SUPPORT_GPT_175B, SUPPORT_GPT_530B, SUPPORT_GPT_1T, SUPPORT_GPT_COUNT };
extern const struct support_gpt support_gpts[SUPPORT_GPT_COUNT];

/* Returns a job of one microbatch of `microbatch` samples with AdamW in bf16 on tensor * pipeline devices. */
struct job support_parallel_job(struct network network, uint64_t microbatch, uint32_t tensor, uint32_t pipeline);

struct parallel_layers support_all_layers(const struct job *job);

struct network support_preset(const char *name);

#endif
