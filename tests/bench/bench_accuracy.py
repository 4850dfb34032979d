#!/usr/bin/env python3
"""Predicted beside measured throughput over a list of workloads.

Usage: bench_accuracy.py BUILD [--profile HARDWARE.json] [--repeat N] [--threads N] [--out FILE.json]
                         [NAME ...]

One `spillway measure` serves all workloads (made first, unless a profile is given); nothing is tuned
per workload. Each workload is planned, simulated, run and compared; with --repeat the run whose
makespan is the median counts, and the spread of the runs is printed beside it. Exit code 1 when the
median absolute error is above 5 % or the worst above 15 %.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile


def gpt(blocks, width, heads, vocabulary=256, positions=256):
    return {"model_type": "gpt2", "n_layer": blocks, "n_embd": width, "n_head": heads,
            "vocab_size": vocabulary, "n_positions": positions}


SMALL, MIDDLE, LARGE = gpt(6, 256, 4), gpt(8, 384, 6), gpt(6, 512, 8)
WIDE = gpt(3, 768, 12, vocabulary=8192)


def job(name, network, steps, microbatch=4, sequence=64, optimizer="adamw"):
    return {"name": name, "network": network, "sequence": sequence, "microbatch": microbatch,
            "minibatches": steps, "optimizer": {"kind": optimizer, "lr": 1e-3}, "seed": 7}


def pipelined(network, steps, microbatches=8, **more):
    return [{**job("a", network, steps, **more), "microbatches": microbatches}]


def several(count, steps, networks=(SMALL, MIDDLE), **more):
    return [job(f"j{i}", networks[i % len(networks)], steps, **more) for i in range(count)]


# name: (jobs, options of `spillway plan`)
WORKLOADS = {
    "1 job resident": ([job("a", MIDDLE, 40)],
                       ["--policy", "model-parallel", "--devices", "1"]),
    "1 job spilled": ([job("a", MIDDLE, 40)],
                      ["--devices", "1", "--device-memory", "96MiB"]),
    "1 job spilled, 2 GB/s": ([job("a", MIDDLE, 30)],
                              ["--devices", "1", "--device-memory", "96MiB",
                               "--link-rate", "2GB/s"]),
    "1 job spilled, updated on the device": ([job("a", MIDDLE, 40)],
                                             ["--devices", "1", "--device-memory", "96MiB",
                                              "--optimizer", "device"]),
    "2 jobs on 2 devices, split, 2 GB/s": (several(2, 20), ["--devices", "2", "--device-memory",
                                                            "96MiB", "--link-rate", "2GB/s",
                                                            "--optimizer", "split"]),
    "1 wide job spilled, sgd": ([job("a", WIDE, 30, optimizer="sgd")],
                                ["--devices", "1", "--device-memory", "128MiB"]),
    "2 jobs, 1 device, fifo": (several(2, 30), ["--policy", "fifo", "--devices", "1",
                                                "--device-memory", "96MiB"]),
    "2 jobs sequential, 1 GB/s": (several(2, 15), ["--policy", "spill-sequential", "--devices",
                                                   "1", "--device-memory", "96MiB",
                                                   "--link-rate", "1GB/s"]),
    "3 jobs, 2 devices, lrtf": (several(3, 30), ["--devices", "2", "--device-memory", "96MiB"]),
    "3 jobs, 2 devices, 2 GB/s": (several(3, 30), ["--devices", "2", "--device-memory", "96MiB",
                                                   "--link-rate", "2GB/s"]),
    "4 jobs, 2 devices, cached": (several(4, 20), ["--policy", "sharded-lrtf-cached", "--devices",
                                                   "2", "--device-memory", "96MiB"]),
    "4 jobs, 2 devices, srtf": (several(4, 20, networks=(SMALL, LARGE)),
                                ["--policy", "srtf", "--devices", "2", "--device-memory",
                                 "96MiB", "--link-rate", "3GB/s"]),
    "4 jobs, 2 devices, random": (several(4, 20), ["--policy", "random", "--devices", "2",
                                                   "--device-memory", "96MiB", "--link-rate",
                                                   "1GB/s"]),
    "6 jobs, 2 devices, lrtf": (several(6, 15, networks=(SMALL, MIDDLE, LARGE)),
                                ["--devices", "2", "--device-memory", "112MiB", "--link-rate",
                                 "2GB/s"]),
    "2 jobs model-parallel": (several(2, 30), ["--policy", "model-parallel", "--devices", "2"]),
    "3 jobs shard-parallel": (several(3, 30), ["--policy", "shard-parallel", "--devices", "2"]),
    "no double buffer, 2 GB/s": (several(2, 20), ["--devices", "1", "--device-memory", "96MiB",
                                                  "--link-rate", "2GB/s", "--no-double-buffer"]),
    "long sequence": ([job("a", gpt(4, 384, 6), 25, microbatch=1, sequence=256)],
                      ["--devices", "1", "--device-memory", "96MiB"]),
    "pipeline 1f1b": (pipelined(MIDDLE, 10), ["--devices", "2", "--parallel", "pp=2"]),
    "pipeline gpipe": (pipelined(MIDDLE, 10), ["--devices", "2", "--parallel", "pp=2", "--schedule", "gpipe"]),
    "pipeline interleaved": (pipelined(MIDDLE, 10), ["--devices", "2", "--parallel", "pp=2,v=2",
                                                     "--schedule", "interleaved"]),
    "pipeline, 2 microbatches": (pipelined(SMALL, 40, microbatches=2), ["--devices", "2", "--parallel", "pp=2"]),
    "pipeline, recompute full": (pipelined(MIDDLE, 10), ["--devices", "2", "--parallel", "pp=2",
                                                         "--recompute", "full"]),
    "pipeline, 300 MB/s": (pipelined(MIDDLE, 10), ["--devices", "2", "--parallel", "pp=2", "--p2p-rate", "300MB/s"]),
    "pipeline, wide": (pipelined(WIDE, 8, optimizer="sgd"), ["--devices", "2", "--parallel", "pp=2"]),
}


def call(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return done.stdout


def measured_run(spillway, folder, number):
    trace = f"{folder}/run{number}.json"
    run = json.loads(call([spillway, "run", f"{folder}/plan.json", "--trace", trace,
                           "--no-weights", "--json"]))
    return run["makespan_s"], trace


def workload(spillway, folder, hardware, repeat, jobs, options):
    with open(f"{folder}/jobs.json", "w") as file:
        json.dump({"spillway_jobs": 1, "jobs": jobs}, file)
    call([spillway, "plan", f"{folder}/jobs.json", "--hw", hardware, *options,
          "-o", f"{folder}/plan.json", "--json"])
    call([spillway, "simulate", f"{folder}/plan.json", "--trace", f"{folder}/sim.json", "--json"])
    runs = sorted(measured_run(spillway, folder, i) for i in range(repeat))
    seconds, trace = runs[len(runs) // 2]
    compared = json.loads(call([spillway, "compare", f"{folder}/sim.json", trace, "--json"]))
    return {"error": compared["throughput_error"], "measured_s": seconds,
            "spread": (runs[-1][0] - runs[0][0]) / seconds, "by_class": compared["by_class"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--profile")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", help="of each device (default: as plan chooses)")
    parser.add_argument("--out")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    spillway = os.path.join(options.build, "spillway")
    threads = ["--threads", options.threads] if options.threads else []
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        hardware = options.profile
        if not hardware:
            hardware = f"{folder}/hardware.json"
            call([spillway, "measure", "-o", hardware, "--quiet"])
        print(f"{'workload':28} {'measured':>9} {'spread':>7} {'error':>7}   "
              "compute     h2d     d2h waiting")
        for name, (jobs, plan_options) in WORKLOADS.items():
            if options.names and name not in options.names:
                continue
            result = workload(spillway, folder, hardware, options.repeat, jobs, plan_options + threads)
            results[name] = result
            classes = " ".join(f"{100 * result['by_class'][c]['error']:+6.1f}%"
                               for c in ("compute", "h2d", "d2h", "waiting"))
            print(f"{name:28} {result['measured_s']:8.2f}s {100 * result['spread']:6.1f}% "
                  f"{100 * result['error']:+6.1f}%   {classes}", flush=True)
    errors = [abs(r["error"]) for r in results.values()]
    median, worst = statistics.median(errors), max(errors)
    print(f"{len(errors)} workloads: median error {100 * median:.1f} %, worst {100 * worst:.1f} %")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(results, file, indent=1)
    return 1 if median > 0.05 or worst > 0.15 else 0


if __name__ == "__main__":
    sys.exit(main())
