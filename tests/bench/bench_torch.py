#!/usr/bin/env python3
"""A training step of GPT-2 124M by PyTorch and by Spillway on the same processors, in fp32 and in bf16.

Usage: bench_torch.py BUILD HARDWARE.json [--microbatch 4] [--sequence 512] [--threads 2] [--steps 3] [--rounds 3]
                      [--python PYTHON]

PyTorch runs transformers' GPT-2 without dropout, with its fused attention and fused AdamW, in fp32 and under autocast
to bf16. Spillway runs a resident job on one device in fp32, bf16-weights and bf16. Every run is a process; its first
step is not counted, and the median of the others is. Rounds of all alternate, and ratios are taken round by round.
PYTHON (default: this one) needs torch and transformers. Variables of the BLAS libraries must not be set.
"""
import argparse, json, os, re, statistics, subprocess, sys, tempfile, time

WORDS = 50257
PAIRS = [("fp32", "torch-fp32"), ("bf16-weights", "torch-bf16"), ("bf16", "torch-bf16")]


def torch_steps(options):
    """Prints the seconds of each step; runs in a process of its own."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    network = GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False,
                                         attn_implementation="sdpa")).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    batch = torch.randint(0, WORDS, (options.microbatch, options.sequence + 1))
    print(f"PyTorch {torch.__version__}", file=sys.stderr)
    for _ in range(options.steps + 1):
        begin = time.monotonic()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.inside == "torch-bf16"):
            logits = network(batch[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.view(-1, WORDS), batch[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {time.monotonic() - begin:.4f}")


def run_torch(kind, options):
    arguments = ["--microbatch", str(options.microbatch), "--sequence", str(options.sequence),
                 "--threads", str(options.threads), "--steps", str(options.steps)]
    out = subprocess.run([options.python, __file__, options.build, options.hardware, "--inside", kind, *arguments],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    return [float(x) for x in re.findall(r"step ([0-9.]+)", out)]


def plan(precision, options, folder):
    job = {"name": "gpt2", "network": "gpt2", "microbatch": options.microbatch, "sequence": options.sequence,
           "minibatches": options.steps + 1, "optimizer": {"kind": "adamw", "lr": 1e-4, "weight_decay": 0.1},
           "precision": precision, "seed": 7}
    with open(f"{folder}/{precision}.json", "w") as file:
        json.dump({"spillway_jobs": 1, "jobs": [job]}, file)
    subprocess.run([f"{options.build}/spillway", "plan", f"{folder}/{precision}.json", "--hw", options.hardware,
                    "--devices", "1", "--device-memory", options.device_memory, "--policy", "model-parallel",
                    "-o", f"{folder}/{precision}.plan.json"], check=True, stdout=subprocess.DEVNULL)


def run_spillway(precision, options, folder):
    log = f"{folder}/{precision}.log"
    subprocess.run([f"{options.build}/spillway", "run", f"{folder}/{precision}.plan.json", "--no-weights", "--log",
                    log], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(log) as file:
        steps = [line["elapsed_s"] for line in map(json.loads, file) if "step" in line]
    return [after - before for before, after in zip([0] + steps, steps)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("hardware")
    parser.add_argument("--microbatch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of PyTorch")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device-memory", default="8GiB")
    parser.add_argument("--only", default="", help="such as bf16,torch-bf16")
    parser.add_argument("--python", default=sys.executable, help="one that has torch and transformers")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        torch_steps(options)
        return 0
    kinds = options.only.split(",") if options.only else ["fp32", "torch-fp32", "bf16-weights", "torch-bf16", "bf16"]
    times = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            if not kind.startswith("torch"):
                plan(kind, options, folder)
        for _ in range(options.rounds):
            for kind in kinds:
                steps = (run_torch(kind, options) if kind.startswith("torch") else
                         run_spillway(kind, options, folder))
                times[kind].append(statistics.median(steps[1:]))
                print(kind, *(f"{step:.3f}" for step in steps), flush=True)
    for kind in kinds:
        print(f"{kind}: median {statistics.median(times[kind]):.3f} s a step "
              f"({min(times[kind]):.3f} to {max(times[kind]):.3f})")
    for own, other in PAIRS:
        if own in times and other in times:
            ratios = sorted(b / a for a, b in zip(times[own], times[other]))
            print(f"{other} / {own}: median {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
