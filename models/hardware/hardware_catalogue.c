/*
 * A row per GPU with its datasheet, a row per node with the parts around its GPUs, each value with source and date.
 *
 * Rates are dense and accumulate in fp32; tables of sparse rates, or of half-precision sums of GeForce cards, are
 * twice too high. Memory is nvidia-smi's total, less a process's driver context. Values without agreeing sources are
 * "assumed".
 *
 * The tables are in C: names work wherever the program runs, and the compiler checks fields.
 *
 * Bridges between pairs of cards are left out (--p2p-rate describes one). Without NVLink, data-centre cards copy
 * directly over PCIe (NCCL_P2P_LEVEL; --no-p2p for hosts where that fails). The driver forbids it for GeForce cards
 * since Turing (NVIDIA/nccl-tests issues 117 and 287); the GTX 1080 Ti is treated alike. NVLink between the V100s of a
 * node is a cube of single links; rings perform the same on it.
 */
#include "models/hardware/hardware_catalogue.h"

#include "base/size.h"

/* --- GPUs ----------------------------------------------------------------------------------- */

#define BOARD "board power; NVIDIA datasheet"
#define BOARD_RECALLED "board power; NVIDIA datasheet, as recalled"
#define SMI "nvidia-smi, total memory"
#define SMI_RECALLED "nvidia-smi, total memory, as recalled"
#define VENDOR "NVIDIA datasheet"
#define NVLINK_3 FITTED(275 * HW_GB)
#define NVLINK_4 HW_PUBLISHED(370 * HW_GB, "NVLink 4: NCCL reaches 370 of 450 GB/s (NVIDIA/nccl-tests issue 212)")
#define NVLINK_5 HW_GUESS(750 * HW_GB, "NVLink 5 to a switch: copies taken to reach 0.83 of 900 GB/s each way")
#define VENDOR_RECALLED "NVIDIA datasheet, as recalled"
#define SHADERS "shaders x 2 x boost clock, as in llm.c mfu.h"
#define VOLTA_16_BITS "NVIDIA datasheet, fp16 tensor cores: stands for 16 bits, it has no bf16"
#define DISAGREE "sources disagree: 31.5 to 35 TFLOP/s fp32, 62.5 to 70 half precision"

/*
 * The A100 under the software of 2021 (Megatron-LM, DeepSpeed), fitted to every other run of plots/papers/data except
 * megatron_fig7.csv and megatron_table2.csv, with weights 12 and 9 for vTrain's files (plots/papers/README.md has the
 * command; tests/cli/test_calibrate_a100.c checks the values). Mean errors, fitted and held out: vTrain on one node
 * 5.0 and 4.2 %, on several 6.6 and 8.9 %, Megatron's table 1 3.3 and 3.6 %, Korthikanti's table 5 1.0 and 3.5 %. The
 * first two give the spread. The forms were chosen with both halves in view; efficiencies and NVLink's rate were set
 * by hand. Fits without any run of a given width are off by 10 and 11 % on runs of widths 3072 and 8192 on several
 * nodes. A collective's wait exceeds NVLink's latency: its members do not arrive at the same time.
 */
#define FITTED(v)                                                                                 \
    {.value = (v), .spread = 0.08, .kind = SOURCE_FITTED, .as_of = HARDWARE_AS_OF,                 \
     .source = "iteration times of GPT on A100: vTrain, arXiv 2104.04473, arXiv 2205.05198"}

static const struct hardware_gpu_fit a100_fit = {
    .matmul_efficiency = FITTED(0.95),
    .memory_efficiency = FITTED(0.85),
    .launch_latency = HW_GUESS(2e-6, "between kernels of one stream"),
    .collective_latency = FITTED(232e-6),
    .nvlink_latency = HW_GUESS(5e-6, "a copy starts in 5 to 15 us, half of it on each of two links"),
    .kernel_model = {
        .multiprocessors = HW_GUESS(108, "NVIDIA A100 whitepaper, as recalled"),
        .matmul_depth = FITTED(25.8),
        .score_bytes_forward = FITTED(17.2),
        .score_bytes_backward = FITTED(16.8),
        .loss_passes = FITTED(6.77),
        .elementwise_passes = FITTED(1.06),
        .matmul_sustained = FITTED(0.789),
        .misaligned_rate = FITTED(0.352),
        .kernel_gap = FITTED(25.4e-6),
        .dispatch_latency = FITTED(71.1e-6),
    },
};

/*
 * The V100. Products in fp32: the 1 x 1 convolutions of ResNet-50 by PipeDream's profiler (docs/instances/pipedream),
 * which does not name its device, but 0.74 to 0.89 TB/s over memory fit no other of its time. The rate is 9.9 TFLOP/s
 * overall, 8 to 12 by batch and shape.
 *
 * 16-bit transformers. Products and scores were set by hand to kernels that Aceso measured, a sequence of 2048 through
 * a block 5120 wide (microsoft/SuperScaler): its three large products reach 92 TFLOP/s overall, longer ones more. All
 * other values, mainly gaps and dispatches, are the A100's from before collectives were dispatched. No iteration was
 * fitted: iterations in Megatron-LM's README of November 2020, with tensor groups of 1, 2, 4 and 8, come out 12, 11, 3
 * and 1 % too long (plots/papers/megatron-v100.json). Tried and dropped: the A100's present values, without and with
 * its wait before collectives, and only that wait, which are no better overall on megatron-v100, terapipe-table2,
 * compression-table6 and pipedream-2bw-fig6 and -fig8.
 */
#define V100_KERNELS(v)                                                                           \
    {.value = (v), .spread = 0.15, .kind = SOURCE_FITTED, .as_of = HARDWARE_AS_OF,                 \
     .source = "kernels of GPT of 13 billion on a V100: Aceso's profiles, microsoft/SuperScaler"}
#define LIKE_A100(v)                                                                              \
    {.value = (v), .spread = 0.3, .kind = SOURCE_ASSUMED, .as_of = HARDWARE_AS_OF,                 \
     .source = "as an earlier fit to the same software has it on A100"}

static const struct hardware_gpu_fit v100_fit = {
    .fp32_efficiency = {.value = 0.63, .spread = 0.1, .kind = SOURCE_FITTED, .as_of = HARDWARE_AS_OF,
                        .source = "1 x 1 convolutions of ResNet-50 in PipeDream's profile"},
    .matmul_efficiency = V100_KERNELS(0.755),
    .kernel_model = {
        .multiprocessors = HW_GUESS(80, "NVIDIA V100 whitepaper, as recalled"),
        .matmul_depth = V100_KERNELS(130),
        .score_bytes_forward = V100_KERNELS(8.4),
        .score_bytes_backward = V100_KERNELS(8.8),
        .elementwise_passes = LIKE_A100(1.26),
        .misaligned_rate = LIKE_A100(0.433),
        .kernel_gap = LIKE_A100(28e-6),
        .dispatch_latency = LIKE_A100(69.7e-6),
    },
};

/*
 * Products in 16 bits of GPUs since 2022: the fastest that published measurements found, as shares of the datasheet's
 * peak, which the kernel model lowers for shapes. Two sets of them:
 *
 *   MAMF   stas00/ml-engineering, compute/accelerator (PyTorch, searched over shapes, 2026-08): H100 794.5 TFLOP/s,
 *          "H200 is the same", B200 1745
 *   TABLE  zzc0721/torch-performance-test-data, database.md (PyTorch, squares of 1024 to 10240, 2026-01): H100 798 and
 *          784, H200 790, B200 1696, H100 PCIe 496, L40S 269, RTX 4090 160 to 173 in twelve entries, median 165
 *
 * The median RTX 4090 reaches its datasheet's peak, which is stated at a clock that cards exceed. Depths are guesses:
 * half of the rate at k = 60, as between the A100's and the V100's.
 *
 * The rate that an H100 sustains is fitted to iterations (models/hardware/software_stack.c) and includes what products
 * lose while collectives run beside them. The H200 has the same chip and board power. No run of the others was found.
 */
#define MAMF "the fastest bf16 product: stas00/ml-engineering, compute/accelerator"
#define TABLE "the fastest bf16 product: zzc0721/torch-performance-test-data"
#define DEPTH HW_GUESS(60, "between those of A100 and V100")
#define UNITS "NVIDIA datasheet or whitepaper, as recalled"
#define HOPPER_SUSTAINED(v, kind_)                                                                \
    {.value = (v), .spread = 0.05, .kind = (kind_), .as_of = HARDWARE_AS_OF,                       \
     .source = "iteration times of GPT on H100: Megatron-LM's README of July 2024"}
#define STREAM_GAP HW_GUESS(2e-6, "between kernels of one stream")

static const struct hardware_gpu_fit h100_fit = {
    .matmul_efficiency = HW_PUBLISHED(0.803, MAMF),
    .memory_efficiency = HW_GUESS(0.9, "a copy in device memory reaches 0.9 of the datasheet's rate"),
    .launch_latency = STREAM_GAP,
    .kernel_model = {
        .multiprocessors = HW_GUESS(132, UNITS),
        .matmul_depth = DEPTH,
        .matmul_sustained = HOPPER_SUSTAINED(0.561, SOURCE_FITTED),
    },
};

static const struct hardware_gpu_fit h200_fit = {
    .matmul_efficiency = HW_PUBLISHED(0.799, TABLE),
    .memory_efficiency = HW_GUESS(0.9, "as the H100's"),
    .launch_latency = STREAM_GAP,
    .kernel_model = {
        .multiprocessors = HW_GUESS(132, UNITS),
        .matmul_depth = DEPTH,
        .matmul_sustained = HOPPER_SUSTAINED(0.561, SOURCE_ASSUMED),
    },
};

static const struct hardware_gpu_fit h100_pcie_fit = {
    .matmul_efficiency = HW_PUBLISHED(0.656, TABLE),
    .launch_latency = STREAM_GAP,
    .kernel_model = {.multiprocessors = HW_GUESS(114, UNITS), .matmul_depth = DEPTH},
};

static const struct hardware_gpu_fit b200_fit = {
    .matmul_efficiency = HW_PUBLISHED(0.776, MAMF),
    .launch_latency = STREAM_GAP,
    .kernel_model = {.multiprocessors = HW_GUESS(148, UNITS), .matmul_depth = DEPTH},
};

static const struct hardware_gpu_fit l40s_fit = {
    .matmul_efficiency = HW_PUBLISHED(0.744, TABLE),
    .launch_latency = STREAM_GAP,
    .kernel_model = {.multiprocessors = HW_GUESS(142, UNITS), .matmul_depth = DEPTH},
};

static const struct hardware_gpu_fit rtx_4090_fit = {
    .matmul_efficiency = HW_PUBLISHED(1.0, TABLE),
    .launch_latency = STREAM_GAP,
    .kernel_model = {.multiprocessors = HW_GUESS(128, UNITS), .matmul_depth = DEPTH},
};

/* Directly over PCIe, or through host memory. */
enum { STAGED = false, PEERS = true };

static const struct hardware_gpu gpus[] = {
    {"gtx-1080-ti-11gb", "NVIDIA GeForce GTX 1080 Ti", "Pascal, no tensor cores, PCIe 3", HW_SEEN(11 * HW_GIB, VENDOR),
     HW_GUESS(11178 * HW_MIB, SMI_RECALLED), HW_SEEN(484 * HW_GB, VENDOR), HW_SEEN(11.3 * HW_TFLOP, VENDOR), HW_NONE,
     HW_NONE, 3, HW_NONE, HW_GUESS(250, BOARD_RECALLED), NULL, STAGED},
    {"v100-pcie-16gb", "Tesla V100-PCIE-16GB", "Volta, fp16 tensor cores, PCIe 3 card", HW_SEEN(16 * HW_GIB, VENDOR),
     HW_GUESS(16160 * HW_MIB, SMI_RECALLED), HW_SEEN(900 * HW_GB, VENDOR), HW_SEEN(14.0 * HW_TFLOP, VENDOR), HW_NONE,
     HW_SEEN(112 * HW_TFLOP, VOLTA_16_BITS), 3, HW_NONE, HW_SEEN(250, BOARD), &v100_fit, PEERS},
    {"v100-sxm2-32gb", "Tesla V100-SXM2-32GB", "Volta, fp16 tensor cores, PCIe 3", HW_SEEN(32 * HW_GIB, VENDOR),
     HW_GUESS(32510 * HW_MIB, SMI_RECALLED), HW_SEEN(900 * HW_GB, VENDOR), HW_SEEN(15.7 * HW_TFLOP, VENDOR), HW_NONE,
     HW_SEEN(125 * HW_TFLOP, VOLTA_16_BITS), 3, HW_NONE, HW_SEEN(300, BOARD), &v100_fit, STAGED},
    {"v100-sxm2-16gb", "Tesla V100-SXM2-16GB", "Volta, fp16 tensor cores, PCIe 3", HW_SEEN(16 * HW_GIB, VENDOR),
     HW_GUESS(16160 * HW_MIB, SMI_RECALLED), HW_SEEN(900 * HW_GB, VENDOR), HW_SEEN(15.7 * HW_TFLOP, VENDOR), HW_NONE,
     HW_SEEN(125 * HW_TFLOP, VOLTA_16_BITS), 3, HW_NONE, HW_SEEN(300, BOARD), &v100_fit, STAGED},
    {"rtx-2080-ti-11gb", "NVIDIA GeForce RTX 2080 Ti", "Turing, fp16 tensor cores, PCIe 3",
     HW_SEEN(11 * HW_GIB, VENDOR),
     HW_SEEN(11012 * HW_MIB, SMI), HW_SEEN(616 * HW_GB, VENDOR),
     HW_SEEN(13.4 * HW_TFLOP, "NVIDIA datasheet; a GEMM was measured at 12.7 TFLOP/s"), HW_NONE, HW_NONE, 3, HW_NONE,
     HW_GUESS(260, "board power, 250 to 260 W by version"), NULL, STAGED},
    {"t4-16gb", "Tesla T4", "Turing, fp16 tensor cores, PCIe 3", HW_SEEN(16 * HW_GIB, VENDOR),
     HW_SEEN(15360 * HW_MIB, SMI),
     HW_SEEN(320 * HW_GB, VENDOR), HW_SEEN(8.1 * HW_TFLOP, VENDOR), HW_NONE, HW_NONE, 3, HW_NONE, HW_SEEN(70, BOARD),
     NULL, PEERS},
    {"rtx-3090-24gb", "NVIDIA GeForce RTX 3090", "Ampere, PCIe 4", HW_SEEN(24 * HW_GIB, VENDOR),
     HW_SEEN(24576 * HW_MIB, SMI),
     HW_SEEN(936 * HW_GB, VENDOR), HW_SEEN(35.6 * HW_TFLOP, SHADERS), HW_SEEN(35.6 * HW_TFLOP, SHADERS),
     HW_SEEN(71.2 * HW_TFLOP, SHADERS), 4, HW_NONE, HW_SEEN(350, BOARD), NULL, STAGED},
    {"a10g-24gb", "NVIDIA A10G", "Ampere, of AWS g5 machines, PCIe 4", HW_SEEN(24 * HW_GIB, VENDOR),
     HW_GUESS(23028 * HW_MIB, "nvidia-smi of the A10, its sibling"), HW_SEEN(600 * HW_GB, VENDOR),
     HW_GUESS(35 * HW_TFLOP, DISAGREE), HW_GUESS(35 * HW_TFLOP, DISAGREE), HW_GUESS(70 * HW_TFLOP, DISAGREE), 4,
     HW_NONE, HW_SEEN(300, "nvidia-smi, power limit"), NULL, PEERS},
    {"a100-sxm4-40gb", "NVIDIA A100-SXM4-40GB", "Ampere, HBM2, PCIe 4", HW_SEEN(40 * HW_GIB, VENDOR),
     HW_SEEN(40960 * HW_MIB, SMI), HW_SEEN(1555 * HW_GB, VENDOR), HW_SEEN(19.5 * HW_TFLOP, VENDOR),
     HW_SEEN(156 * HW_TFLOP, VENDOR), HW_SEEN(312 * HW_TFLOP, VENDOR), 4, NVLINK_3, HW_SEEN(400, BOARD), &a100_fit,
     STAGED},
    {"a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", "Ampere, HBM2e, PCIe 4", HW_SEEN(80 * HW_GIB, VENDOR),
     HW_SEEN(81920 * HW_MIB, SMI), HW_SEEN(2039 * HW_GB, VENDOR), HW_SEEN(19.5 * HW_TFLOP, VENDOR),
     HW_SEEN(156 * HW_TFLOP, VENDOR), HW_SEEN(312 * HW_TFLOP, VENDOR), 4, NVLINK_3, HW_SEEN(400, BOARD), &a100_fit,
     STAGED},
    {"rtx-4090-24gb", "NVIDIA GeForce RTX 4090", "Ada, PCIe 4", HW_SEEN(24 * HW_GIB, VENDOR),
     HW_GUESS(24564 * HW_MIB, SMI_RECALLED), HW_SEEN(1008 * HW_GB, VENDOR), HW_SEEN(82.6 * HW_TFLOP, SHADERS),
     HW_SEEN(82.6 * HW_TFLOP, SHADERS), HW_SEEN(165.2 * HW_TFLOP, SHADERS), 4, HW_NONE, HW_SEEN(450, BOARD),
     &rtx_4090_fit, STAGED},
    {"l4-24gb", "NVIDIA L4", "Ada, of AWS g6 machines, PCIe 4", HW_SEEN(24 * HW_GIB, VENDOR),
     HW_SEEN(23034 * HW_MIB, SMI),
     HW_SEEN(300 * HW_GB, VENDOR), HW_SEEN(30.3 * HW_TFLOP, VENDOR), HW_SEEN(60 * HW_TFLOP, VENDOR),
     HW_SEEN(121 * HW_TFLOP, VENDOR), 4, HW_NONE, HW_GUESS(72, BOARD_RECALLED), NULL, PEERS},
    {"l40s-48gb", "NVIDIA L40S", "Ada, PCIe 4", HW_SEEN(48 * HW_GIB, VENDOR), HW_SEEN(46068 * HW_MIB, SMI),
     HW_SEEN(864 * HW_GB, VENDOR), HW_SEEN(91.6 * HW_TFLOP, VENDOR), HW_SEEN(183 * HW_TFLOP, VENDOR),
     HW_SEEN(362 * HW_TFLOP, VENDOR), 4, HW_NONE, HW_SEEN(350, BOARD), &l40s_fit, PEERS},
    {"h100-sxm5-80gb", "NVIDIA H100 80GB HBM3", "Hopper, HBM3, PCIe 5", HW_SEEN(80 * HW_GIB, VENDOR),
     HW_SEEN(81559 * HW_MIB, SMI), HW_SEEN(3350 * HW_GB, VENDOR), HW_SEEN(67 * HW_TFLOP, VENDOR),
     HW_GUESS(494.7 * HW_TFLOP, "half of the bf16 rate"), HW_SEEN(989.4 * HW_TFLOP, VENDOR), 5, NVLINK_4,
     HW_SEEN(700, BOARD), &h100_fit, STAGED},
    {"h200-sxm-141gb", "NVIDIA H200", "Hopper, HBM3e, PCIe 5", HW_SEEN(141 * HW_GIB, VENDOR),
     HW_GUESS(143771 * HW_MIB, SMI_RECALLED), HW_GUESS(4800 * HW_GB, VENDOR_RECALLED),
     HW_GUESS(67 * HW_TFLOP, VENDOR_RECALLED),
     HW_GUESS(494.7 * HW_TFLOP, "half of the bf16 rate"), HW_SEEN(989.4 * HW_TFLOP, VENDOR), 5, NVLINK_4,
     HW_GUESS(700, BOARD_RECALLED), &h200_fit, STAGED},
    {"v100-pcie-32gb", "Tesla V100-PCIE-32GB", "Volta, fp16 tensor cores, PCIe 3 card", HW_SEEN(32 * HW_GIB, VENDOR),
     HW_GUESS(32510 * HW_MIB, SMI_RECALLED), HW_SEEN(900 * HW_GB, VENDOR), HW_SEEN(14.0 * HW_TFLOP, VENDOR), HW_NONE,
     HW_SEEN(112 * HW_TFLOP, VOLTA_16_BITS), 3, HW_NONE, HW_SEEN(250, BOARD), &v100_fit, PEERS},
    {"p100-pcie-16gb", "Tesla P100-PCIE-16GB", "Pascal, no tensor cores, PCIe 3 card", HW_SEEN(16 * HW_GIB, VENDOR),
     HW_GUESS(16280 * HW_MIB, SMI_RECALLED), HW_SEEN(732 * HW_GB, VENDOR), HW_SEEN(9.3 * HW_TFLOP, VENDOR), HW_NONE,
     HW_NONE, 3, HW_NONE, HW_SEEN(250, BOARD), NULL, PEERS},
    {"p100-sxm2-16gb", "Tesla P100-SXM2-16GB", "Pascal, no tensor cores, PCIe 3", HW_SEEN(16 * HW_GIB, VENDOR),
     HW_GUESS(16280 * HW_MIB, SMI_RECALLED), HW_GUESS(732 * HW_GB, VENDOR_RECALLED),
     HW_GUESS(10.6 * HW_TFLOP, VENDOR_RECALLED),
     HW_NONE, HW_NONE, 3, HW_NONE, HW_GUESS(300, BOARD_RECALLED), NULL, STAGED},
    {"a10-24gb", "NVIDIA A10", "Ampere, PCIe 4", HW_SEEN(24 * HW_GIB, VENDOR), HW_SEEN(23028 * HW_MIB, SMI),
     HW_SEEN(600 * HW_GB, VENDOR), HW_SEEN(31.2 * HW_TFLOP, VENDOR), HW_SEEN(62.5 * HW_TFLOP, VENDOR),
     HW_SEEN(125 * HW_TFLOP, VENDOR), 4, HW_NONE, HW_SEEN(150, BOARD), NULL, PEERS},
    {"a100-pcie-40gb", "NVIDIA A100-PCIE-40GB", "Ampere, HBM2, PCIe 4 card", HW_SEEN(40 * HW_GIB, VENDOR),
     HW_SEEN(40960 * HW_MIB, SMI), HW_SEEN(1555 * HW_GB, VENDOR), HW_SEEN(19.5 * HW_TFLOP, VENDOR),
     HW_SEEN(156 * HW_TFLOP, VENDOR), HW_SEEN(312 * HW_TFLOP, VENDOR), 4, HW_NONE, HW_SEEN(250, BOARD), NULL, PEERS},
    {"a100-pcie-80gb", "NVIDIA A100 80GB PCIe", "Ampere, HBM2e, PCIe 4 card", HW_SEEN(80 * HW_GIB, VENDOR),
     HW_SEEN(81920 * HW_MIB, SMI), HW_SEEN(1935 * HW_GB, VENDOR), HW_SEEN(19.5 * HW_TFLOP, VENDOR),
     HW_SEEN(156 * HW_TFLOP, VENDOR), HW_SEEN(312 * HW_TFLOP, VENDOR), 4, HW_NONE, HW_SEEN(300, BOARD), NULL, PEERS},
    {"h100-pcie-80gb", "NVIDIA H100 PCIe", "Hopper, PCIe 5 card", HW_SEEN(80 * HW_GIB, VENDOR),
     HW_GUESS(81559 * HW_MIB, "nvidia-smi of the H100 SXM5, its sibling"), HW_SEEN(2000 * HW_GB, VENDOR),
     HW_SEEN(51 * HW_TFLOP, VENDOR), HW_SEEN(378 * HW_TFLOP, VENDOR), HW_SEEN(756 * HW_TFLOP, VENDOR), 5, HW_NONE,
     HW_SEEN(350, BOARD), &h100_pcie_fit, PEERS},
    {"rtx-5090-32gb",
     "NVIDIA GeForce RTX 5090",
     "Blackwell, PCIe 5",
     HW_SEEN(32 * HW_GIB, VENDOR),
     HW_GUESS(32607 * HW_MIB, SMI_RECALLED),
     HW_SEEN(1792 * HW_GB, VENDOR),
     HW_SEEN(104.8 * HW_TFLOP, VENDOR),
     HW_GUESS(104.8 * HW_TFLOP, "as fp32"),
     {.value = 209.5 * HW_TFLOP,
      .kind = SOURCE_DERIVED,
      .as_of = HARDWARE_AS_OF,
      .source = "838.4 sparse with fp16 sums: a half of a half of it"},
     5,
     HW_NONE,
     HW_SEEN(575, BOARD),
     NULL,
     STAGED},
    {"b200-180gb", "NVIDIA B200", "Blackwell, HBM3e, PCIe 5", HW_SEEN(180 * HW_GIB, VENDOR),
     HW_GUESS(179 * HW_GB, "clouds list 179 to 192 GB"), HW_GUESS(7700 * HW_GB, "sources disagree: 7.7 to 8 TB/s"),
     HW_GUESS(75 * HW_TFLOP, "sources disagree: 75 to 80 TFLOP/s"), HW_SEEN(1100 * HW_TFLOP, VENDOR),
     HW_SEEN(2250 * HW_TFLOP, VENDOR), 5, NVLINK_5, HW_SEEN(1000, BOARD), &b200_fit, STAGED},
};

/* --- machines ------------------------------------------------------------------------------- */

/*
 * Hydra's machines. According to the publications GPUs do not wait for each other's copies: eight are 8.6 times as
 * fast as one while nothing hides the copies (Table 3), and the gain per model is the same with 2 models as with 8
 * (Fig. 9A). Each GPU has its own link.
 *
 * The efficiency of the machine of 2022 is the geometric mean of fits to its baseline, plain model parallelism with
 * negligible copies: 0.18 from the text models (84.3 h for 12 of 0.9 B, 4 epochs of 2.05 M tokens), 0.525 from the
 * image models (18.1 h for 12 of 0.3 to 2 B, 5 epochs of 50 000 images). The cause of the difference is not published.
 * Hydra's own hours and speed-ups are not used.
 */
#define HYDRA_NOTE                                                                               \
    "the papers state GPUs, memory and cores; assumed: each GPU with 16 lanes of PCIe 3 of its own, " \
    "one host bridge; NVLink is not used"
static const struct hardware_gpu_fit hydra_fit = {
    .matmul_efficiency = {
        .value = 0.31, .spread = 0.7, .kind = SOURCE_FITTED, .as_of = HARDWARE_AS_OF,
        .source = "hours of model parallelism in Hydra's report of April 2022, Fig. 8: 0.18 and 0.525, "
                  "their geometric mean"},
};

/*
 * The V100 of a DGX-2 under DeepSpeed with 16-bit transformers, fitted to ZeRO-Offload's Fig. 8 (nine throughputs,
 * 2048 to 4096 wide, microbatches of 4 to 32): mean error 5 %, at most 9 %. Wider matrices are faster, as the depth
 * models.
 */
#define DEEPSPEED_FITTED(v)                                                                       \
    {.value = (v), .spread = 0.1, .kind = SOURCE_FITTED, .as_of = HARDWARE_AS_OF,                  \
     .source = "throughput of one V100: ZeRO-Offload, arXiv 2101.06840, Fig. 8"}

static const struct hardware_gpu_fit dgx_2_fit = {
    .matmul_efficiency = DEEPSPEED_FITTED(0.4),
    .kernel_model = {
        .multiprocessors = HW_GUESS(80, "NVIDIA V100 whitepaper, as recalled"),
        .matmul_depth = DEEPSPEED_FITTED(1500),
        .elementwise_passes = DEEPSPEED_FITTED(1), /* the efficiency contains the software's overheads */
    },
};

#define NVLINK_2                                                                                    \
    {.value = 135 * HW_GB, .spread = 0.1, .kind = SOURCE_MEASURED, .as_of = HARDWARE_AS_OF,             \
     .source = "NVLink 2, six links of 25 GB/s each way: all-reduce of 8 V100 reaches 135 (vTrain's " \
               "traces)"}
#define DGX_NOTE                                                                                  \
    "datasheet values; efficiencies and latencies are assumed. Nodes meet in a fat tree, 20 to a leaf " \
    "switch of each rail, oversubscribed if the machine's name says so"
#define CLOUD_NOTE                                                                                \
    "datasheet values; efficiencies, latencies and PCIe are assumed. Nodes meet in one switch"
#define IB_LATENCY HW_GUESS(0, "counted at the PCIe links: 20 us in all, as Calculon's InfiniBand")
#define TCP_LATENCY HW_GUESS(15e-6, "a message over TCP takes about 50 us")
#define EFA_LATENCY HW_GUESS(5e-6, "a message over EFA takes about 30 us")

static const struct hardware_node nodes[] = {
    {.name = "hydra-8x2080ti",
     .summary = "the machine of Hydra's 2022 report: 8 RTX 2080 Ti, 500 GB, 80 cores",
     .note = HYDRA_NOTE, .gpu = "rtx-2080-ti-11gb", .device_count = 8, .switch_devices = 1,
     .fit = &hydra_fit,
     .host_bytes = HW_SEEN(500 * HW_GB, "Hydra technical report, April 2022, experimental setup"),
     .host_cores = 80},
    {.name = "hydra-8x1080ti",
     .summary = "the machine of Hydra's 2021 report: 8 GTX 1080 Ti, 512 GB, 10 cores",
     .note = HYDRA_NOTE, .gpu = "gtx-1080-ti-11gb", .device_count = 8, .switch_devices = 1,
     .host_bytes = HW_SEEN(512 * HW_GB, "Hydra technical report, July 2021, experimental setup"),
     .host_cores = 10},
    {.name = "dgx-a100-80gb", .summary = "8 A100 80 GB, NVSwitch, 8 NICs of 200 Gb/s; Selene's node",
     .note = DGX_NOTE, .gpu = "a100-sxm4-80gb", .device_count = 8,
     .host_bytes = HW_SEEN(2048 * HW_GIB, "NVIDIA DGX A100 datasheet, 640 GB version"), .host_cores = 128,
     .nic_count = 8, .nic = HW_GUESS(22.5 * HW_GB, "HDR InfiniBand, 200 Gb/s each way (arXiv 2104.04473, section 5), "
                                                   "0.9 of it as Calculon has it"),
     .nic_latency = IB_LATENCY, .leaf_nodes = 20},
    {.name = "dgx-h100", .summary = "8 H100, NVSwitch, 8 NICs of 400 Gb/s", .note = DGX_NOTE,
     .gpu = "h100-sxm5-80gb", .device_count = 8,
     .host_bytes = HW_SEEN(2048 * HW_GIB, "NVIDIA DGX H100 datasheet"), .host_cores = 112,
     .nic_count = 8, .nic = HW_SEEN(50 * HW_GB, "NDR InfiniBand, 400 Gb/s each way; NVIDIA DGX H100 datasheet"),
     .nic_latency = IB_LATENCY, .leaf_nodes = 20},
    {.name = "p4d.24xlarge", .summary = "AWS: 8 A100 40 GB, NVSwitch, 4 NICs of 100 Gb/s", .note = CLOUD_NOTE,
     .gpu = "a100-sxm4-40gb", .device_count = 8,
     .host_bytes = HW_SEEN(1152 * HW_GIB, "AWS, p4d.24xlarge"), .host_cores = 96,
     .pcie = 3,
     .nic_count = 4, .nic = HW_SEEN(12.5 * HW_GB, "AWS, p4d.24xlarge: 400 Gb/s each way, a quarter of it"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p3dn.24xlarge", .summary = "AWS: 8 V100 32 GB, NVLink, one NIC of 100 Gb/s", .note = CLOUD_NOTE,
     .gpu = "v100-sxm2-32gb", .device_count = 8,
     .host_bytes = HW_SEEN(768 * HW_GIB, "AWS, p3dn.24xlarge"), .host_cores = 96, .nvlink = NVLINK_2,
     .nic_count = 1, .nic = HW_SEEN(12.5 * HW_GB, "AWS, p3dn.24xlarge: 100 Gb/s each way"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p3.16xlarge", .summary = "AWS: PipeDream's cluster B: 8 V100 16 GB, NVLink, one NIC of 25 Gb/s",
     .note = CLOUD_NOTE, .gpu = "v100-sxm2-16gb", .device_count = 8,
     .host_bytes = HW_SEEN(488 * HW_GIB, "AWS, p3.16xlarge"), .host_cores = 64, .nvlink = NVLINK_2,
     .nic_count = 1, .nic = HW_SEEN(3.125 * HW_GB, "25 Gb/s each way; arXiv 1806.03377, cluster B"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "nc24v3", .summary = "Azure, PipeDream's cluster A: 4 V100 16 GB, PCIe, one NIC of 10 Gb/s",
     .note = CLOUD_NOTE, .gpu = "v100-pcie-16gb", .device_count = 4,
     .host_bytes = HW_GUESS(448 * HW_GIB, "Azure, NC24s v3, as recalled"), .host_cores = 24,
     .nic_count = 1, .nic = HW_SEEN(1.25 * HW_GB, "10 Gb/s Ethernet; arXiv 1806.03377, cluster A"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "p4de.24xlarge", .summary = "AWS: 8 A100 80 GB, NVSwitch, 4 NICs of 100 Gb/s", .note = CLOUD_NOTE,
     .gpu = "a100-sxm4-80gb", .device_count = 8,
     .host_bytes = HW_GUESS(1152 * HW_GIB, "AWS, p4de.24xlarge, as recalled"), .host_cores = 96, .pcie = 3,
     .nic_count = 4, .nic = HW_GUESS(12.5 * HW_GB, "AWS, p4de.24xlarge: 400 Gb/s each way, a quarter of it, "
                                                   "as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p5.48xlarge", .summary = "AWS: 8 H100, NVSwitch, 3200 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "h100-sxm5-80gb", .device_count = 8,
     .host_bytes = HW_SEEN(2048 * HW_GIB, "AWS, p5.48xlarge"), .host_cores = 192,
     .nic_count = 8, .nic = HW_SEEN(50 * HW_GB, "AWS, p5.48xlarge: 3200 Gb/s each way, an eighth of it"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p5en.48xlarge", .summary = "AWS: 8 H200, NVSwitch, 3200 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "h200-sxm-141gb", .device_count = 8,
     .host_bytes = HW_GUESS(2048 * HW_GIB, "AWS, p5en.48xlarge, as recalled"), .host_cores = 192,
     .nic_count = 8, .nic = HW_GUESS(50 * HW_GB, "AWS, p5en.48xlarge: 3200 Gb/s each way, an eighth of it, "
                                                 "as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p6-b200.48xlarge", .summary = "AWS: 8 B200, NVSwitch, 3200 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "b200-180gb", .device_count = 8,
     .host_bytes = HW_GUESS(2048 * HW_GIB, "AWS, p6-b200.48xlarge, as recalled"), .host_cores = 192,
     .nic_count = 8, .nic = HW_GUESS(50 * HW_GB, "AWS, p6-b200.48xlarge: 3200 Gb/s each way, an eighth of it, "
                                                 "as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p3.2xlarge", .summary = "AWS: one V100 16 GB", .note = CLOUD_NOTE,
     .gpu = "v100-sxm2-16gb", .device_count = 1,
     .host_bytes = HW_GUESS(61 * HW_GIB, "AWS, p3.2xlarge, as recalled"), .host_cores = 8},
    {.name = "p3.8xlarge", .summary = "AWS: 4 V100 16 GB, NVLink, one NIC of 10 Gb/s", .note = CLOUD_NOTE,
     .gpu = "v100-sxm2-16gb", .device_count = 4,
     .host_bytes = HW_GUESS(244 * HW_GIB, "AWS, p3.8xlarge, as recalled"), .host_cores = 32, .nvlink = NVLINK_2,
     .nic_count = 1, .nic = HW_GUESS(1.25 * HW_GB, "AWS, p3.8xlarge: 10 Gb/s each way, as recalled"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "g4dn.xlarge", .summary = "AWS: one T4", .note = CLOUD_NOTE,
     .gpu = "t4-16gb", .device_count = 1,
     .host_bytes = HW_SEEN(16 * HW_GIB, "AWS, g4dn.xlarge"), .host_cores = 4},
    {.name = "g4dn.12xlarge", .summary = "AWS: 4 T4, PCIe, 50 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "t4-16gb", .device_count = 4,
     .host_bytes = HW_SEEN(192 * HW_GIB, "AWS, g4dn.12xlarge"), .host_cores = 48,
     .nic_count = 1, .nic = HW_GUESS(6.25 * HW_GB, "AWS, g4dn.12xlarge: 50 Gb/s each way, as recalled"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "g4dn.metal", .summary = "AWS: 8 T4, PCIe, 100 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "t4-16gb", .device_count = 8,
     .host_bytes = HW_SEEN(384 * HW_GIB, "AWS, g4dn.metal"), .host_cores = 96,
     .nic_count = 1, .nic = HW_GUESS(12.5 * HW_GB, "AWS, g4dn.metal: 100 Gb/s each way, as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "g5.xlarge", .summary = "AWS: one A10G", .note = CLOUD_NOTE,
     .gpu = "a10g-24gb", .device_count = 1,
     .host_bytes = HW_GUESS(16 * HW_GIB, "AWS, g5.xlarge, as recalled"), .host_cores = 4},
    {.name = "g5.12xlarge", .summary = "AWS: 4 A10G, PCIe, 40 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "a10g-24gb", .device_count = 4,
     .host_bytes = HW_GUESS(192 * HW_GIB, "AWS, g5.12xlarge, as recalled"), .host_cores = 48,
     .nic_count = 1, .nic = HW_GUESS(5 * HW_GB, "AWS, g5.12xlarge: 40 Gb/s each way, as recalled"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "g5.24xlarge", .summary = "AWS: 4 A10G, PCIe, 50 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "a10g-24gb", .device_count = 4,
     .host_bytes = HW_GUESS(384 * HW_GIB, "AWS, g5.24xlarge, as recalled"), .host_cores = 96,
     .nic_count = 1, .nic = HW_GUESS(6.25 * HW_GB, "AWS, g5.24xlarge: 50 Gb/s each way, as recalled"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "g5.48xlarge", .summary = "AWS: 8 A10G, PCIe, 100 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "a10g-24gb", .device_count = 8,
     .host_bytes = HW_GUESS(768 * HW_GIB, "AWS, g5.48xlarge, as recalled"), .host_cores = 192,
     .nic_count = 1, .nic = HW_GUESS(12.5 * HW_GB, "AWS, g5.48xlarge: 100 Gb/s each way, as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "g6.xlarge", .summary = "AWS: one L4", .note = CLOUD_NOTE,
     .gpu = "l4-24gb", .device_count = 1,
     .host_bytes = HW_GUESS(16 * HW_GIB, "AWS, g6.xlarge, as recalled"), .host_cores = 4},
    {.name = "g6.12xlarge", .summary = "AWS: 4 L4, PCIe, 40 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "l4-24gb", .device_count = 4,
     .host_bytes = HW_GUESS(192 * HW_GIB, "AWS, g6.12xlarge, as recalled"), .host_cores = 48,
     .nic_count = 1, .nic = HW_GUESS(5 * HW_GB, "AWS, g6.12xlarge: 40 Gb/s each way, as recalled"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "g6.48xlarge", .summary = "AWS: 8 L4, PCIe, 100 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "l4-24gb", .device_count = 8,
     .host_bytes = HW_GUESS(768 * HW_GIB, "AWS, g6.48xlarge, as recalled"), .host_cores = 192,
     .nic_count = 1, .nic = HW_GUESS(12.5 * HW_GB, "AWS, g6.48xlarge: 100 Gb/s each way, as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "g6e.xlarge", .summary = "AWS: one L40S", .note = CLOUD_NOTE,
     .gpu = "l40s-48gb", .device_count = 1,
     .host_bytes = HW_GUESS(32 * HW_GIB, "AWS, g6e.xlarge, as recalled"), .host_cores = 4},
    {.name = "g6e.12xlarge", .summary = "AWS: 4 L40S, PCIe, 100 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "l40s-48gb", .device_count = 4,
     .host_bytes = HW_GUESS(384 * HW_GIB, "AWS, g6e.12xlarge, as recalled"), .host_cores = 48,
     .nic_count = 1, .nic = HW_GUESS(12.5 * HW_GB, "AWS, g6e.12xlarge: 100 Gb/s each way, as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "g6e.48xlarge", .summary = "AWS: 8 L40S, PCIe, 400 Gb/s to other nodes", .note = CLOUD_NOTE,
     .gpu = "l40s-48gb", .device_count = 8,
     .host_bytes = HW_GUESS(1536 * HW_GIB, "AWS, g6e.48xlarge, as recalled"), .host_cores = 192,
     .nic_count = 4, .nic = HW_GUESS(12.5 * HW_GB, "AWS, g6e.48xlarge: 400 Gb/s each way, a quarter of it, "
                                                   "as recalled"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "abci", .summary = "KARMA's nodes: 4 V100 16 GB, NVLink, 2 NICs of 100 Gb/s, NVMe", .note = DGX_NOTE,
     .gpu = "v100-sxm2-16gb", .device_count = 4,
     .host_bytes = HW_SEEN(384 * HW_GIB, "KARMA, arXiv 2008.11421: 384 GB"), .host_cores = 40,
     .host_bandwidth = HW_GUESS(205 * HW_GB, "0.8 of twelve channels of DDR4-2666, of two Xeon Gold 6148"),
     .storage = HW_GUESS(1.5 * HW_TB, "KARMA's artifact: 1.5 TB of NVMe"),
     .storage_rate = HW_GUESS(3 * HW_GB, "one drive"),
     .nvlink = NVLINK_2, .nic_count = 2, .nic = HW_SEEN(12.5 * HW_GB, "2 x EDR InfiniBand; KARMA, arXiv 2008.11421"),
     .nic_latency = IB_LATENCY, .leaf_nodes = 17},
    {.name = "dgx-1v", .summary = "8 V100 32 GB, NVLink, 4 NICs of 100 Gb/s", .note = DGX_NOTE,
     .gpu = "v100-sxm2-32gb", .device_count = 8,
     .host_bytes = HW_GUESS(512 * HW_GIB, "NVIDIA DGX-1 datasheet, as recalled"), .host_cores = 40, .nvlink = NVLINK_2,
     .nic_count = 4, .nic = HW_GUESS(12.5 * HW_GB, "EDR InfiniBand, 100 Gb/s each way; as recalled"),
     .nic_latency = IB_LATENCY, .leaf_nodes = 20},
    {.name = "dgx-2", .summary = "16 V100 32 GB, NVSwitch, 8 NICs of 100 Gb/s, NVMe",
     .note = DGX_NOTE ". Four GPUs share a PCIe switch", .gpu = "v100-sxm2-32gb", .device_count = 16,
     .fit = &dgx_2_fit,
     .host_bytes = HW_SEEN(1500 * HW_GB, "ZeRO-Offload, arXiv 2101.06840, table 2"), .host_cores = 48,
     .host_bandwidth = HW_GUESS(200 * HW_GB, "2 sockets of 6 channels of DDR4-2666 have 256 GB/s in all"),
     .nvlink = NVLINK_2, .switch_devices = 4,
     .storage = HW_GUESS(28 * HW_TB, "the NVMe drives of a DGX-2; ZeRO-Infinity, arXiv 2104.07857"),
     .storage_rate = HW_PUBLISHED(25.6 * HW_GB, "ZeRO-Infinity, arXiv 2104.07857, fig. 2b: "
                                                "1.6 GB/s for each of 16 GPUs"),
     .nic_count = 8, .nic = HW_SEEN(12.5 * HW_GB, "EDR InfiniBand, 800 Gb/s between nodes; ZeRO, arXiv 1910.02054"),
     .nic_latency = IB_LATENCY, .leaf_nodes = 20},
};

/* --- access ----------------------------------------------------------------------------------- */

const struct hardware_gpu *catalogue_gpu(uint32_t index)
{
    return index < ARRAY_COUNT(gpus) ? &gpus[index] : NULL;
}

const struct hardware_node *catalogue_node(uint32_t index)
{
    return index < ARRAY_COUNT(nodes) ? &nodes[index] : NULL;
}
