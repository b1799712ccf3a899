"""Four steps on two CPU ranks that are made slow on purpose: what `krigtune diagnose`
says about each, and how much its first advice really gains.

usage: cases.py BIN_FOLDER OUT_FOLDER [SECONDS [CASE]]

BIN_FOLDER has krigtune and krigtune-bench. OUT_FOLDER gets configurations, results,
diagnoses and diagnose_cpu.csv. SECONDS is the limit for each measurement
(default 4). With CASE, only that case runs.

Other programs on the machine slow single ranks down, which is then the right
diagnosis. So each configuration is measured several times, alternating before
and after, and the fastest of each counts.
"""
import copy
import csv
import json
import os
import subprocess
import sys

RUNS = 4
RANKS = 2
FAST = {"latency_us": 50, "bytes_per_s": 4e9}
SESSION = {
    "workload": {
        "model": {"layers": 6, "hidden": 128, "heads": 4, "vocab": 256, "seq_len": 32},
        "precision": "fp32", "optimizer": "adamw", "train_batch_size": 16},
    "cluster": {"gpu": "local", "gpus_per_node": RANKS, "emulate_network": FAST},
    "space": {
        "zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 4, 8], "activation_checkpointing": ["none", "full"],
        "reduce_bucket_size": {"min": 1e3, "max": 1e6, "scale": "log", "steps": 7}, "overlap_comm": [True, False]},
    "memory": {"limit_gib": 0.5},
    "runner": {"kind": "bench"},
}
GOOD = {"zero_stage": 1, "micro_batch": 4, "activation_checkpointing": "none", "reduce_bucket_size": 1000000,
        "overlap_comm": True}

# name, what was made worse, the configuration, the emulated network, the correct verdict
CASES = [
    ("slow network", "100 MB/s and ZeRO stage 3", {**GOOD, "zero_stage": 3, "micro_batch": 2},
     {"latency_us": 50, "bytes_per_s": 1e8}, "data_communication"),
    ("nice'd rank", "rank 1 at nice 19 beside a program that computes",
     {**GOOD, "zero_stage": 0, "micro_batch": 8}, FAST, "straggler"),
    ("tiny bucket", "buckets of 1000 elements, 400 us of latency", {**GOOD, "reduce_bucket_size": 1000},
     {"latency_us": 400, "bytes_per_s": 4e9}, "data_communication"),
    ("recomputation", "activations computed again, memory to spare",
     {**GOOD, "micro_batch": 8, "activation_checkpointing": "full"}, FAST, "recomputation"),
]
COLUMNS = ["case", "made_worse_by", "expected_verdict", "verdict", "reason", "right", "share", "advice",
           "foretold_gain", "measured_gain", "step_before_ms", "step_after_ms"]


class Bench:
    def __init__(self, programs, out, seconds):
        self.programs, self.out, self.seconds = programs, out, seconds

    def path(self, name):
        return os.path.join(self.out, name)

    def write(self, name, document):
        with open(self.path(name), "w") as file:
            json.dump(document, file, indent=1)
        return self.path(name)

    def command(self, config):
        return [os.path.join(self.programs, "krigtune-bench"), "--config", config, "--json",
                "--warmup-s", "0.5", "--measure-s", str(self.seconds)]

    def once(self, config, launch):
        """Returns one result document. `launch`: "threads", or "mpirun" or "niced" with a process for each rank."""
        one = self.command(config)
        if launch == "threads":
            return json.loads(subprocess.run(one, stdout=subprocess.PIPE, check=True).stdout)
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        nice = ["nice", "-n", "19"] if launch == "niced" else []
        both = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "1", *one, ":", "-np", "1", *nice, *one]
        # The rank at nice 19 gets what a busy program leaves of its core.
        busy = subprocess.Popen(["sh", "-c", "while :; do :; done"]) if nice else None
        try:
            return json.loads(subprocess.run(both, stdout=subprocess.PIPE, check=True, env=environment).stdout)
        finally:
            if busy:
                busy.kill()
                busy.wait()

    def config(self, session, configuration, name):
        config = {key: session[key] for key in ("workload", "cluster", "memory")}
        return self.write(name + ".config.json", {**config, "configuration": configuration})

    def diagnose(self, result, session_file, name):
        command = [os.path.join(self.programs, "krigtune"), "diagnose", result, "--plan", session_file, "--json"]
        document = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        self.write(name + ".diagnosis.json", document)
        return document


def fastest(results):
    return min(results, key=lambda result: result["step_time_s"])


def accumulated(configuration):
    batch = SESSION["workload"]["train_batch_size"]
    return {**configuration, "gradient_accumulation_steps": batch // (configuration["micro_batch"] * RANKS)}


def advice_text(advice):
    changes = [f"{change['parameter']}={change['after']}" for change in advice["changes"]]
    return " ".join(changes) if changes else "the slow rank as fast as the other"


def run_case(bench, name, worse, configuration, network, expected):
    session = copy.deepcopy(SESSION)
    session["cluster"]["emulate_network"] = network
    session["baseline"] = configuration
    key = name.replace(" ", "_").replace("'", "")
    session_file = bench.write(key + ".json", session)
    worse_launch, mended_launch = ("niced", "mpirun") if expected == "straggler" else ("threads", "threads")
    before_config = bench.config(session, accumulated(configuration), key + ".before")
    before = [bench.once(before_config, worse_launch) for _ in range(RUNS)]
    result = bench.write(key + ".result.json", fastest(before))
    verdict = bench.diagnose(result, session_file, key)["verdicts"][0]
    row = {"case": name, "made_worse_by": worse, "expected_verdict": expected, "verdict": verdict["limit"],
           "reason": verdict["reason"] or "", "right": str(verdict["limit"] == expected).lower(),
           "share": f"{verdict['share']:.3f}", "step_before_ms": f"{1e3 * fastest(before)['step_time_s']:.2f}"}
    if verdict["advice"]:
        advice = verdict["advice"][0]
        after_config = bench.config(session, advice["configuration"], key + ".after")
        after = []
        for _ in range(RUNS):
            # If the machine must be fixed, leave out what was made worse.
            after.append(bench.once(after_config, mended_launch))
            before.append(bench.once(before_config, worse_launch))
        gain = fastest(before)["step_time_s"] / fastest(after)["step_time_s"]
        row.update({"advice": advice_text(advice), "foretold_gain": f"{advice['speedup']:.2f}",
                    "measured_gain": f"{gain:.2f}",
                    "step_before_ms": f"{1e3 * fastest(before)['step_time_s']:.2f}",
                    "step_after_ms": f"{1e3 * fastest(after)['step_time_s']:.2f}"})
    return row


def main():
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    bench = Bench(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 4.0)
    cases = [case for case in CASES if len(sys.argv) < 5 or case[0] == sys.argv[4]]
    os.makedirs(bench.out, exist_ok=True)
    rows = []
    for case in cases:
        print(case[0], "...", file=sys.stderr)
        rows.append(run_case(bench, *case))
    with open(bench.path("diagnose_cpu.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(f"{row['case']:<14} {row['verdict']:<20} {row['reason']:<20} right: {row['right']:<5} "
              f"foretold {row.get('foretold_gain', '-'):>5}  measured {row.get('measured_gain', '-'):>5}  "
              f"{row.get('advice', '')}")


if __name__ == "__main__":
    main()
