"""Runs jobs that fail (and some that do not) with real DeepSpeed and records what they print.

usage: $(./setup.sh) record_outputs.py FOLDER [CASE...]        (Linux; needs prlimit; 10-15 s per case)

Writes FOLDER/<case>.txt: stdout and then stderr, each below its heading, without
the middle of long ones and without this machine's paths. FOLDER/cases.json has
exit code, whether the metrics file exists, launcher and expected class. The case
`success` also leaves its metrics and csv files in FOLDER/trial_ok. Other cases in
cases.json (`reported_...`, which come from public reports, because they need a
GPU or a cluster) are kept.
"""
import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.dirname(os.path.abspath(sys.executable))
BIG = ["--hidden", "512", "--layers", "7", "--vocabulary", "2048", "--sequence", "32"]
FROM_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1"}
OFFLOAD = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
TIME_LIMIT_S = 90
HEAD_LINES, TAIL_LINES = 60, 100


def case(expected, config=None, flags=(), **more):
    return {"class": expected, "config": config or {}, "flags": list(flags), **more}


def zero(**keys):
    return {"zero_optimization": keys}


CASES = {
    "success": case("success"),
    "success_torchrun": case("success", launcher="torchrun", until_rc=0),
    "harmless_error_line": case("success", flags=["--say", "ERROR: tracking server not reachable, Error 503 ignored"]),
    "aborted_at_exit": case("success", zero(stage=3), launcher="torchrun", until_rc=1),
    "too_short": case("too short", flags=["--steps", "4"]),
    "another_configuration": case("too short", flags=["--steps", "4"], without_measurement=True),
    "out_of_memory": case("out of memory", zero(stage=0), BIG, data_limit=760_000_000),
    "out_of_memory_torchrun": case("out of memory", zero(stage=0), BIG, data_limit=760_000_000, launcher="torchrun"),
    "out_of_memory_at_once": case("out of memory", zero(stage=0), BIG, data_limit=100_000_000, launcher="torchrun"),
    "invalid_batch": case("invalid configuration", {"train_batch_size": 48}),
    "invalid_stage": case("invalid configuration", zero(stage=5)),
    "invalid_unknown_key": case("invalid configuration", zero(stage=1, reduce_bucket=1000)),
    "invalid_negative_bucket": case("invalid configuration", zero(stage=1, reduce_bucket_size=-5)),
    "invalid_opened_itself": case("invalid configuration", as_base64=True, program="""
import json, sys
json.load(open(sys.argv[sys.argv.index("--deepspeed") + 1]))
"""),
    "invalid_type": case("invalid configuration", zero(stage=1, reduce_bucket_size="large")),
    "invalid_fractional_bucket": case("invalid configuration", zero(stage=3, stage3_prefetch_bucket_size=14745.6)),
    "invalid_stage3_one_bit": case("invalid configuration", {
        "optimizer": {"type": "OneBitAdam", "params": {"lr": 0.001}}, **zero(stage=3)}, launcher="torchrun"),
    "invalid_own_optimizer_offload": case("invalid configuration", {"optimizer": None, "zero_optimization": OFFLOAD}),
    "invalid_json": case("invalid configuration", text='{"train_micro_batch_size_per_gpu": 2,'),
    "invalid_hf_flags": case("invalid configuration", {"gradient_accumulation_steps": 4}, script="train_hf.py", flags=[
        "--per_device_train_batch_size", "2", "--gradient_accumulation_steps", "8", "--learning_rate", "0.001"]),
    "metric_folder_missing": case("invalid configuration", metric_folder="missing"),
    "killed": case("killed", flags=["--kill_at", "6"]),
    "killed_torchrun": case("killed", flags=["--kill_at", "6"], launcher="torchrun"),
    "hang": case("hang", flags=["--hang_at", "6"], limit_s=25),
    "launcher_bad_hostfile": case("launcher trouble", hostfile="worker-0 slots=two\n"),
    "launcher_no_such_host": case("launcher trouble", include="worker-9:0,1"),
    "launcher_port_in_use": case("launcher trouble", port_in_use=True),
    "launcher_port_in_use_torchrun": case("launcher trouble", port_in_use=True, launcher="torchrun"),
    "launcher_no_script": case("launcher trouble", script="train_missing.py"),
}


def config_of(spec, folder):
    with open(os.path.join(HERE, "ds_config.json"), encoding="utf-8") as file:
        config = json.load(file)
    del config["train_batch_size"]
    config.update(spec["config"])
    config = {key: value for key, value in config.items() if value is not None}
    if spec.get("without_measurement"):
        return config
    metrics = os.path.join(folder, spec.get("metric_folder", ""), "metrics.json")
    config["autotuning"] = {"enabled": True, "start_profile_step": 1, "end_profile_step": 10, "metric_path": metrics}
    config["csv_monitor"] = {"enabled": True, "output_path": os.path.join(folder, "csv"), "job_name": "trial"}
    return config


def launch_line(spec, folder, port):
    if spec.get("launcher") == "torchrun":
        launch = [f"{BIN}/torchrun", "--nproc_per_node", "2", "--master_port", port]
    else:
        launch = [f"{BIN}/deepspeed", "--num_gpus", "2", "--master_port", port]
    if "hostfile" in spec:
        path = os.path.join(folder, "hostfile")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec["hostfile"])
        launch += ["--hostfile", path]
    if "include" in spec:
        launch = [f"{BIN}/deepspeed", "--include", spec["include"], "--master_port", port]
    limit = ["prlimit", f"--data={spec['data_limit']}"] if "data_limit" in spec else []
    script = os.path.join(HERE, spec.get("script", "train.py"))
    if "program" in spec:
        script = os.path.join(folder, "program.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(spec["program"])
    config = os.path.join(folder, "ds_config.json")
    if spec.get("as_base64"):
        with open(config, "rb") as file:
            config = base64.urlsafe_b64encode(json.dumps(json.load(file)).encode()).decode()
    return [*limit, *launch, script, "--deepspeed", config, *spec["flags"]]


def run(spec, folder):
    """Exit code (None if the time limit ended it), stdout and stderr."""
    with open(os.path.join(folder, "ds_config.json"), "w", encoding="utf-8") as file:
        file.write(spec.get("text") or json.dumps(config_of(spec, folder), indent=2))
    environment = {**os.environ, "PATH": BIN + ":" + os.environ["PATH"], "DS_ACCELERATOR": "cpu", "LOCAL_SIZE": "2",
                   "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1", "PYTHONUNBUFFERED": "1"}
    environment.update(FROM_MALLOC if "data_limit" in spec else {})
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        if not spec.get("port_in_use"):
            taken.close()
        process = subprocess.Popen(launch_line(spec, folder, port), env=environment, text=True, start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, errors="replace")
        try:
            streams = process.communicate(timeout=spec.get("limit_s", TIME_LIMIT_S))
            return process.returncode, streams
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()


def shortened(text, folder):
    for path, name in ((folder, "/trial"), (HERE, "/job"), (BIN, "/venv/bin")):
        text = text.replace(path, name)
    text = re.sub(r"/[^\s'\",]*/lib/python[\d.]+/site-packages", "/venv/site-packages", text)
    text = re.sub(r"/[^\s'\",]*/lib/python[\d.]+/", "/python/", text)
    text = text.replace(socket.gethostname(), "node-0")
    lines = text.splitlines()
    if len(lines) > HEAD_LINES + TAIL_LINES + 1:
        lines[HEAD_LINES:-TAIL_LINES] = ["[...]"]
    return "".join(line.rstrip() + "\n" for line in lines)


def record(name, spec, target):
    tries = 12 if "until_rc" in spec else 1
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder:
            code, streams = run(spec, folder)
            measured = os.path.exists(os.path.join(folder, "metrics.json"))
            if code != spec.get("until_rc", code):
                continue
            with open(os.path.join(target, name + ".txt"), "w", encoding="utf-8") as file:
                file.write("".join(f"==== {stream}\n" + shortened(text, folder)
                                   for stream, text in zip(("stdout", "stderr"), streams)))
            if name == "success":
                keep_trial(folder, os.path.join(target, "trial_ok"))
            return {"rc": code, "metrics": measured, "launcher": spec.get("launcher", "deepspeed"),
                    "class": spec["class"]}
    print(f"record_outputs.py: {name}: did not happen in {tries} runs", file=sys.stderr)
    return None


def keep_trial(folder, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(os.path.join(folder, "csv"), os.path.join(target, "csv"))
    shutil.copy(os.path.join(folder, "metrics.json"), target)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    target = sys.argv[1]
    path = os.path.join(target, "cases.json")
    os.makedirs(target, exist_ok=True)
    recorded = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            recorded = json.load(file)
    for name in sys.argv[2:] or CASES:
        result = record(name, CASES[name], target)
        recorded.update({name: result} if result else {})
        print(name, result, flush=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(recorded[key])}"
                                          for key in [*CASES, *(key for key in recorded if key not in CASES)]
                                          if key in recorded) + "\n}\n")


if __name__ == "__main__":
    main()
