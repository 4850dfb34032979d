#!/usr/bin/env python3
"""Parallel jobs of 2 to 16 devices on a few cores: predicted beside measured throughput, and bubbles beside their
closed forms.

Usage: bench_parallel.py BUILD [--profile HARDWARE.json] [--repeat N] [--busy SHARE] [--out FILE.json]
                         [--class CLASS ...] [--list]

Devices are dilated so that they keep the cores busy for about --busy of the time. One `spillway measure` serves all
workloads (made first, unless a profile is given). A way that `run` does not carry out is counted as such. A run whose
cores were the limit is taken again with twice the dilation. Exit code 1 when the median absolute error is above 5 % or
the worst above 15 %.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile


def gpt(blocks, width, heads):
    return {"model_type": "gpt2", "n_layer": blocks, "n_embd": width, "n_head": heads, "vocab_size": 256,
            "n_positions": 256}


def llama(blocks, width, heads):
    return {"model_type": "llama", "num_hidden_layers": blocks, "hidden_size": width, "num_attention_heads": heads,
            "num_key_value_heads": heads // 2, "intermediate_size": 3 * width, "vocab_size": 256,
            "max_position_embeddings": 256, "tie_word_embeddings": False}


WIDE, DEEP, LLAMA = gpt(8, 384, 6), gpt(16, 256, 4), llama(8, 384, 8)


def job(network, microbatches=8, steps=3, microbatch=4, sequence=64, name="a", **more):
    return {"name": name, "network": network, "sequence": sequence, "microbatch": microbatch,
            "microbatches": microbatches, "minibatches": steps, "seed": 7,
            **{"optimizer": {"kind": "adamw", "lr": 1e-3}, **more}}


def pipelines():
    for network, label in ((WIDE, "gpt2"), (LLAMA, "llama")):
        for stages in (2, 4, 8):
            for schedule in ("gpipe", "1f1b"):
                yield f"{label} pp={stages} {schedule}", stages, [job(network)], [
                    "--parallel", f"pp={stages}", "--schedule", schedule]
    for stages, chunks in ((2, 2), (4, 2), (2, 4)):
        yield f"gpt2 pp={stages},v={chunks} interleaved", stages, [job(WIDE)], [
            "--parallel", f"pp={stages},v={chunks}", "--schedule", "interleaved"]
    yield "deep pp=16 1f1b", 16, [job(DEEP, microbatches=16, steps=2)], ["--parallel", "pp=16"]
    for recompute in ("full", "stage"):
        yield f"gpt2 pp=4 recompute {recompute}", 4, [job(WIDE)], ["--parallel", "pp=4", "--recompute", recompute]
    for schedule, chunks in (("zb-h1", 1), ("zb-h2", 1), ("zb-v", 2)):
        for stages in (2, 4):
            yield f"gpt2 pp={stages} {schedule}", stages, [job(WIDE)], [
                "--parallel", f"pp={stages},v={chunks}", "--schedule", schedule]


def slices():
    long = dict(sequence=256, microbatch=1)
    for network, label in ((WIDE, "gpt2"), (LLAMA, "llama")):
        for stages in (2, 4, 8):
            yield f"{label} pp={stages} terapipe", stages, [job(network, microbatches=2, **long)], [
                "--parallel", f"pp={stages}", "--schedule", "terapipe"]
    yield "gpt2 dp=2,pp=2 terapipe", 4, [job(WIDE, microbatches=4, **long)], [
        "--parallel", "dp=2,pp=2", "--schedule", "terapipe"]


def replicas():
    for count in (2, 4, 8, 16):
        yield f"gpt2 dp={count}", count, [job(WIDE, microbatches=16)], ["--parallel", f"dp={count}"]
    for degrees, devices in (("dp=2,pp=2", 4), ("dp=2,pp=4", 8), ("dp=4,pp=2", 8), ("dp=4,pp=4", 16)):
        yield f"gpt2 {degrees}", devices, [job(WIDE, microbatches=16)], ["--parallel", degrees]
    clipped = {"kind": "adamw", "lr": 1e-3, "clip": 1.0}
    yield "gpt2 dp=2,pp=2 clipped", 4, [job(WIDE, optimizer=clipped)], ["--parallel", "dp=2,pp=2"]
    yield "llama dp=4", 4, [job(LLAMA)], ["--parallel", "dp=4"]
    for degrees, devices in (("dp=4", 4), ("dp=2,pp=2", 4)):  # beside the same without "tree": its cost in time
        yield f"gpt2 {degrees},tree", devices, [job(WIDE, microbatches=16)], ["--parallel", f"{degrees},tree"]
    yield "gpt2 dp=4 buckets", 4, [job(WIDE)], ["--parallel", "dp=4,v=4"]


def zero():
    for level in (1, 2, 3):
        for count in (2, 4):
            yield f"gpt2 dp={count},zero={level}", count, [job(WIDE)], ["--parallel", f"dp={count},v=4,zero={level}"]
        yield f"gpt2 dp=2,pp=2,zero={level}", 4, [job(WIDE)], ["--parallel", f"dp=2,pp=2,zero={level}"]


def offload():
    for level in (0, 2, 3):
        yield f"gpt2 dp=2,zero={level} offload=states", 2, [job(WIDE)], ["--parallel", f"dp=2,v=4,zero={level},offload=states"]
    yield "gpt2 dp=4,zero=2 offload=states", 4, [job(WIDE)], ["--parallel", "dp=4,v=4,zero=2,offload=states"]
    for degrees, devices in (("pp=2", 2), ("pp=4", 4), ("dp=2,pp=2,zero=1", 4), ("dp=2,pp=2,zero=3", 4)):
        yield f"gpt2 {degrees} offload=states", devices, [job(WIDE)], ["--parallel", f"{degrees},offload=states"]
    for degrees, devices in (("v=4", 2), ("dp=2,v=4,zero=3", 2), ("dp=4,v=4,zero=3", 4), ("dp=2,pp=2,zero=3", 4)):
        yield f"gpt2 {degrees} offload=weights", devices, [job(WIDE)], ["--parallel", f"{degrees},offload=weights"]
    yield "gpt2 dp=2 offload=weights", 2, [job(WIDE, microbatches=2)], ["--parallel", "dp=2,v=4,offload=weights"]
    yield "llama pp=2 offload=states", 2, [job(LLAMA)], ["--parallel", "pp=2,offload=states"]


def tensor():
    for degrees, devices in (("tp=2", 2), ("tp=2,pp=2", 4), ("tp=2,dp=2", 4), ("tp=2,pp=2,dp=2", 8)):
        for network, label in ((WIDE, "gpt2"), (LLAMA, "llama")):
            yield f"{label} {degrees}", devices, [job(network)], ["--parallel", degrees]


def asynchronous():
    for stages in (2, 4, 8):
        yield f"llama pp={stages} pipedream", stages, [job(LLAMA, microbatches=1, steps=24)], [
            "--parallel", f"pp={stages}", "--schedule", "pipedream"]
        yield f"llama pp={stages} 2bw", stages, [job(LLAMA)], ["--parallel", f"pp={stages}", "--schedule", "2bw"]


def several():
    jobs = [job(WIDE, name="a"), job(LLAMA, name="b"), job(DEEP, name="c", steps=2)]
    for devices in (2, 4):
        yield f"3 jobs saturn on {devices}", devices, jobs, ["--policy", "saturn"]
    given = [{**jobs[0], "parallel": {"pipeline": 2}}, {**jobs[1], "parallel": {"data": 2}},
             {**jobs[2], "parallel": {"pipeline": 4}}, job(WIDE, name="d", microbatches=1, steps=12)]
    for devices in (4, 8):
        yield f"4 jobs with degrees, saturn on {devices}", devices, given, ["--policy", "saturn"]


CLASSES = {"pipelines": pipelines, "slices": slices, "replicas": replicas, "zero": zero, "offload": offload, "tensor": tensor, "asynchronous": asynchronous,
           "saturn": several}


def call(command, may_fail=False):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0 and not may_fail:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done


def compute_spans(path, minibatch):
    """Returns the computations of a minibatch in a trace: (stream, pass, start, end)."""
    trace = json.load(open(path))
    columns = {name: i for i, name in enumerate(trace["span_columns"])}
    operations = {name: i for i, name in enumerate(trace["operation_columns"])}
    for span in trace["spans"]:
        operation = trace["operations"][span[columns["operation"]]]
        stream = operation[operations["stream"]]
        if trace["streams"][stream]["kind"] == "compute" and span[columns["minibatch"]] == minibatch:
            yield stream, operation[operations["pass"]], span[columns["start_s"]], span[columns["end_s"]]


def bubbles(path, options, microbatches):
    """Returns the share of a minibatch in which its busiest device does not compute, and the share by the closed form
    for this pipeline with that device's mean seconds of passes (None: there is none).

    Closed forms, for stages that take equally long: (p - 1) (F + B + W) / v, and of zero-bubble schedules (p - 1) times
    F + B - W (zb-h1) or F + B - 2 W (zb-h2, zb-v; Qi et al., arXiv 2401.10241).
    """
    busy, passes, begin, end = {}, {}, float("inf"), 0
    for stream, which, start_s, end_s in compute_spans(path, 1):
        begin, end = min(begin, start_s), max(end, end_s)
        busy[stream] = busy.get(stream, 0) + end_s - start_s
        passes.setdefault(stream, {}).setdefault(which, 0)
        passes[stream][which] += end_s - start_s
    if not busy or "--parallel" not in options:
        return None, None
    device = max(busy, key=busy.get)
    measured = 1 - busy[device] / (end - begin)
    degrees = dict((part.split("=") + [""])[:2] for part in options[options.index("--parallel") + 1].split(","))
    schedule = options[options.index("--schedule") + 1] if "--schedule" in options else "1f1b"
    if set(degrees) - {"pp", "v"} or schedule in ("pipedream", "2bw", "terapipe"):  # these do not drain, or have unequal passes
        return measured, None
    each = {name: seconds / microbatches for name, seconds in passes[device].items()}
    stages, chunks = int(degrees["pp"]), int(degrees.get("v", 1))
    weight = sum(seconds for name, seconds in each.items() if "weight" in name)
    whole = sum(seconds for name, seconds in each.items() if "forward" in name or "backward" in name)
    saved = {"zb-h1": 2 * weight, "zb-h2": 3 * weight, "zb-v": 3 * weight}.get(schedule, 0)
    bubble = (stages - 1) * (whole - saved) / (chunks if schedule == "interleaved" else 1)
    return measured, max(bubble, 0) / (max(bubble, 0) + busy[device])


def measure_once(spillway, folder, hardware, devices, jobs, options, dilation):
    with open(f"{folder}/jobs.json", "w") as file:
        json.dump({"spillway_jobs": 1, "jobs": jobs}, file)
    plan = call([spillway, "plan", f"{folder}/jobs.json", "--hw", hardware, "--devices", str(devices), "--link-rate",
                 "2GB/s", "--p2p-rate", "2GB/s", "--dilate", str(dilation), *options, "-o", f"{folder}/plan.json",
                 "--json"], may_fail=True)
    if plan.returncode != 0:
        return {"refused": plan.stderr.strip().splitlines()[-1]}
    call([spillway, "simulate", f"{folder}/plan.json", "--trace", f"{folder}/sim.json", "--json"])
    run = call([spillway, "run", f"{folder}/plan.json", "--trace", f"{folder}/run.json", "--no-weights", "--json"],
               may_fail=True)
    if run.returncode != 0:
        return {"refused": run.stderr.strip().splitlines()[-1]}
    answer = json.loads(run.stdout)
    compared = json.loads(call([spillway, "compare", f"{folder}/sim.json", f"{folder}/run.json", "--json"]).stdout)
    return {"valid": answer["dilation"]["valid"] if dilation > 1 else True, "dilation": dilation,
            "busy": answer["load"]["own"], "others": answer["load"]["others"], "measured_s": answer["makespan_s"],
            "error": compared["throughput_error"],
            "compute_error": compared["by_class"]["compute"]["error"],
            "bubbles": dict(zip(("measured", "closed_form"), bubbles(f"{folder}/run.json", options, jobs[0]["microbatches"])),
                            simulated=bubbles(f"{folder}/sim.json", options, jobs[0]["microbatches"])[0])}


def workload(spillway, folder, hardware, busy, repeat, devices, jobs, options):
    dilation, results = max(1.0, devices / (os.cpu_count() * busy)), []
    while len(results) < repeat:
        result = measure_once(spillway, folder, hardware, devices, jobs, options, round(dilation, 2))
        if "refused" in result:
            return result
        if not result["valid"] and dilation < 64:
            dilation *= 2
            continue
        results.append(result)
    results.sort(key=lambda r: r["measured_s"])
    chosen = results[len(results) // 2]
    chosen["spread"] = (results[-1]["measured_s"] - results[0]["measured_s"]) / chosen["measured_s"]
    return chosen


def percent(value):
    return "      -" if value is None else f"{100 * value:+6.1f}%"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--profile")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--busy", type=float, default=0.4)
    parser.add_argument("--out")
    parser.add_argument("--class", dest="classes", action="append", choices=list(CLASSES))
    parser.add_argument("--name", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [(c, *w) for c in CLASSES if not options.classes or c in options.classes
              for w in CLASSES[c]() if options.name in w[0]]
    if options.list:
        for name in chosen:
            print(f"{name[0]:14} {name[1]}")
        return 0
    spillway, results = os.path.join(options.build, "spillway"), []
    with tempfile.TemporaryDirectory() as folder:
        hardware = options.profile
        if not hardware:
            hardware = f"{folder}/hardware.json"
            call([spillway, "measure", "-o", hardware, "--quiet"])
        print(f"{'workload':34} {'devices':>7} {'dilated':>8} {'measured':>9} {'busy':>5} {'error':>7} {'compute':>7} "
              f"{'bubbles':>7} {'closed':>7}")
        for kind, name, devices, jobs, plan_options in chosen:
            result = workload(spillway, folder, hardware, options.busy, options.repeat, devices, jobs, plan_options)
            results.append({"class": kind, "name": name, "devices": devices, **result})
            if "refused" in result:
                print(f"{name:34} {devices:7} not carried out: {result['refused'][:110]}", flush=True)
                continue
            print(f"{name:34} {devices:7} {result['dilation']:8.4g} {result['measured_s']:8.2f}s "
                  f"{100 * result['busy']:4.0f}% {percent(result['error'])} {percent(result['compute_error'])} "
                  f"{percent(result['bubbles']['measured'])} {percent(result['bubbles']['closed_form'])}"
                  f"{'' if result['valid'] else '  NOT VALID'}", flush=True)
    carried = [r for r in results if "error" in r]
    for kind in CLASSES:
        errors = [abs(r["error"]) for r in carried if r["class"] == kind]
        if errors:
            print(f"{kind:14} {len(errors):3} workloads: median error {100 * statistics.median(errors):4.1f} %, worst "
                  f"{100 * max(errors):4.1f} %")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(results, file, indent=1)
    errors = [abs(r["error"]) for r in carried]
    if not errors:
        sys.exit("no workload was carried out")
    print(f"{len(errors)} of {len(results)} workloads carried out: median error {100 * statistics.median(errors):.1f} %, "
          f"worst {100 * max(errors):.1f} %")
    return 1 if statistics.median(errors) > 0.05 or max(errors) > 0.15 else 0


if __name__ == "__main__":
    sys.exit(main())
