#!/usr/bin/env python3
"""GPT-2 124M on one host device: resident, and spilled through a third of its training state.

Usage: bench_spill.py BUILD HARDWARE.json [--repeat N] [--steps N]

Microbatch 4 x 64 tokens, AdamW, unpaced copies. The model's training state is 16 bytes per parameter
(parameter, gradient, two moments). Resident and spilled runs alternate; ratios are pair by pair.
"""
import argparse, json, os, statistics, sys, tempfile

from bench_accuracy import call, job

PARAMETERS = 124439808


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("hardware")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    spillway = os.path.join(options.build, "spillway")
    third = f"{PARAMETERS * 16 // 3 >> 20}MiB"
    variants = {"resident": ["--policy", "model-parallel"],
                f"spilled, {third}": ["--policy", "spill-sequential", "--device-memory", third]}
    times = {name: [] for name in variants}
    with tempfile.TemporaryDirectory() as folder:
        jobs = [job("gpt2", "gpt2", options.steps)]
        with open(f"{folder}/jobs.json", "w") as file:
            json.dump({"spillway_jobs": 1, "jobs": jobs}, file)
        for i, (name, extra) in enumerate(variants.items()):
            planned = json.loads(call([spillway, "plan", f"{folder}/jobs.json", "--hw",
                                       options.hardware, "--devices", "1", *extra, "-o",
                                       f"{folder}/plan{i}.json", "--json"]))
            print(f"{name}: predicted {planned['makespan_s'] / options.steps:.3f} s per step")
        for _ in range(options.repeat):
            for i, name in enumerate(variants):
                run = json.loads(call([spillway, "run", f"{folder}/plan{i}.json", "--no-weights",
                                       "--json"]))
                times[name].append(run["makespan_s"] / options.steps)
    for name, seconds in times.items():
        print(f"{name}: median {statistics.median(seconds):.3f} s per step "
              f"({min(seconds):.3f} to {max(seconds):.3f})")
    resident, spilled = times.values()
    ratios = sorted(s / r for s, r in zip(spilled, resident))
    print(f"spilled / resident: median {statistics.median(ratios):.3f} "
          f"({ratios[0]:.3f} to {ratios[-1]:.3f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
