#!/usr/bin/env python3
"""Does double buffering hide transfers that take as long as the computation?

Usage: bench_overlap.py BUILD HARDWARE.json [--repeat N]

Four GPT jobs are spilled through one device whose link is paced so that copies in take as long as all
computing (the rate is found with the simulator). AdamW on the device with recomputation, because there each unit's
copies are in proportion to its computation (forward 1 part of state in, backward 3 in and 3 out).
With double buffering the makespan should be
within 10 % of the larger of the two plus the first copy, which nothing can hide; without, it should
be the sum of computing and both directions of copies. Both simulated and measured.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

from bench_accuracy import call, gpt, job


def plan(spillway, folder, hardware, rate, extra):
    call([spillway, "plan", f"{folder}/jobs.json", "--hw", hardware, "--devices", "1",
          "--device-memory", "192MiB", "--activations", "recompute", "--policy", "fifo",
          "--optimizer", "device",
          "--link-rate", f"{rate / 1e9:.6f}GB/s", *extra, "-o", f"{folder}/plan.json",
          "--json"])
    result = json.loads(call([spillway, "simulate", f"{folder}/plan.json", "--trace",
                              f"{folder}/sim.json", "--json"]))
    return result["makespan_s"], busy_of(f"{folder}/sim.json")


def busy_of(path):
    """Seconds by stream kind (compute, h2d, d2h, host), and of the first operation that copies."""
    with open(path) as file:
        trace = json.load(file)
    operation = {name: i for i, name in enumerate(trace["operation_columns"])}
    busy, first = {"compute": 0.0, "h2d": 0.0, "d2h": 0.0, "host": 0.0}, 0.0
    for _, index, _, start, end in trace["spans"]:
        what = trace["operations"][index]
        kind = trace["streams"][what[operation["stream"]]]["kind"]
        busy[kind] += end - start
        if kind == "h2d" and first == 0 and what[operation["bytes"]] > 1 << 20:
            first = end - start
    return {**busy, "first": first}


def report(label, makespan, busy, double):
    ideal = (max(busy["compute"], busy["h2d"], busy["d2h"]) + busy["first"] if double
             else busy["compute"] + busy["h2d"] + busy["d2h"])
    print(f"  {label:10} makespan {makespan:7.3f} s, compute {busy['compute']:.3f}, h2d "
          f"{busy['h2d']:.3f}, d2h {busy['d2h']:.3f}; "
          f"{'max + first copy' if double else 'sum'} {ideal:.3f}: ratio {makespan / ideal:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("hardware")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    spillway = os.path.join(options.build, "spillway")
    with tempfile.TemporaryDirectory() as folder:
        jobs = [job(f"j{i}", gpt(8, 512, 8), 6, microbatch=4, sequence=64)
                for i in range(4)]
        with open(f"{folder}/jobs.json", "w") as file:
            json.dump({"spillway_jobs": 1, "jobs": jobs}, file)
        rate = 2e9
        for _ in range(4):
            _, busy = plan(spillway, folder, options.hardware, rate, [])
            rate *= busy["h2d"] / busy["compute"]
        print(f"link paced to {rate / 1e9:.3f} GB/s each way")
        for double, extra in ((True, ["--weight-buffers", "3"]), (True, ["--weight-buffers", "2"]),
                              (False, ["--no-double-buffer"])):
            print(f"{' '.join(extra)}:")
            makespan, busy = plan(spillway, folder, options.hardware, rate, extra)
            report("simulated", makespan, busy, double)
            runs = []
            for _ in range(options.repeat):
                run = json.loads(call([spillway, "run", f"{folder}/plan.json", "--trace",
                                       f"{folder}/run.json", "--no-weights", "--json"]))
                runs.append((run["makespan_s"], busy_of(f"{folder}/run.json")))
            runs.sort(key=lambda r: r[0])
            report("measured", *runs[len(runs) // 2], double)
            print(f"  spread of {len(runs)} runs: {runs[0][0]:.3f} to {runs[-1][0]:.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
