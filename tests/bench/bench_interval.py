#!/usr/bin/env python3
"""How often a 90 % interval of `spillway simulate --seeds` holds the run that it predicts.

Usage: bench_interval.py BUILD [--profile HARDWARE.json] [--before N] [--runs N] [--steps SHARE] [--seed N]
                         [--out FILE.json]

One `spillway measure`, then --before runs (default 24) that fill a history of this benchmark's own, then --runs more
(default 60), each predicted with its interval, by spreads and by the runs until then, before it is carried out. The
workloads are those of bench_accuracy.py with --steps (default 0.35) of their minibatches, drawn by the seed. Printed: each run beside its intervals, and what share of
the runs each kind of interval held. Exit code 1 when the share of the intervals by runs is not within 85 to 95 %.
"""
import argparse, json, os, random, sys, tempfile

from bench_accuracy import WORKLOADS, call


def shorter(jobs, share):
    return [dict(job, minibatches=max(3, round(job["minibatches"] * share))) for job in jobs]


def predicted(spillway, folder, hardware, name, steps):
    jobs, options = WORKLOADS[name]
    jobs = shorter(jobs, steps)
    with open(f"{folder}/jobs.json", "w") as file:
        json.dump({"spillway_jobs": 1, "jobs": jobs}, file)
    call([spillway, "plan", f"{folder}/jobs.json", "--hw", hardware, *options, "-o", f"{folder}/plan.json", "--json"])
    return json.loads(call([spillway, "simulate", f"{folder}/plan.json", "--seeds", "200", "--json"]))


def measured(spillway, folder):
    return json.loads(call([spillway, "run", f"{folder}/plan.json", "--no-weights", "--json"]))["makespan_s"]


def inside(interval, kind, seconds):
    quantiles = interval.get(kind, {}).get("makespan_s")
    return quantiles and quantiles["p5"] <= seconds <= quantiles["p95"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--profile")
    parser.add_argument("--before", type=int, default=24)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--steps", type=float, default=0.35)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    options = parser.parse_args()
    spillway = os.path.join(options.build, "spillway")
    chance = random.Random(options.seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPILLWAY_HISTORY"] = f"{folder}/history.db"
        hardware = options.profile
        if not hardware:
            hardware = f"{folder}/hardware.json"
            call([spillway, "measure", "-o", hardware, "--quiet"])
        for number in range(options.before + options.runs):
            name = chance.choice(sorted(WORKLOADS))
            report = predicted(spillway, folder, hardware, name, options.steps)
            seconds = measured(spillway, folder)
            if number < options.before:
                continue
            interval = report["interval"]
            row = {"workload": name, "predicted_s": report["makespan_s"], "measured_s": seconds, "interval": interval,
                   "by_runs": inside(interval, "by_runs", seconds), "by_spreads": inside(interval, "by_spreads", seconds)}
            rows.append(row)
            by_runs = interval["by_runs"]["makespan_s"]
            print(f"{name:38} predicted {row['predicted_s']:7.3f} s, measured {seconds:7.3f}, by runs "
                  f"{by_runs['p5']:7.3f} to {by_runs['p95']:7.3f}{'' if row['by_runs'] else '  outside'}", flush=True)
    shares = {kind: sum(bool(row[kind]) for row in rows) / len(rows) for kind in ("by_runs", "by_spreads")}
    width = sorted(row["interval"]["by_runs"]["makespan_s"]["p95"] / row["interval"]["by_runs"]["makespan_s"]["p5"]
                   for row in rows)[len(rows) // 2]
    print(f"{len(rows)} runs: {100 * shares['by_runs']:.1f} % inside by runs (median width {100 * (width - 1):.1f} %), "
          f"{100 * shares['by_spreads']:.1f} % by spreads alone")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(rows, file, indent=1)
    return 0 if 0.85 <= shares["by_runs"] <= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
