#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/cli_fixtures.h"

namespace krigtune {

struct ExampleSession {
  std::string name;
  std::string text;
};

/// Good sessions that together have every block and every key. Tables are named by absolute paths.
inline std::vector<ExampleSession> own_sessions() {
  const std::string table = KRIGTUNE_BAD_SESSIONS "/table.csv";
  return {
      {"bench with everything", R"json({
    "$schema": "session.schema.json",
    "workload": {"model": {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "ffn_hidden": 128, "vocab": 96,
                           "seq_len": 16, "gated_mlp": false, "tied_embeddings": true, "positions": "learned",
                           "norm": "layernorm"},
                 "precision": "fp32", "optimizer": "adamw", "train_batch_size": 16},
    "cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "local",
                "emulate_network": {"latency_us": 30, "bytes_per_s": 3e9}},
    "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 8, "scale": "log2"},
              "reduce_bucket_size": {"min": 1e3, "max": 1e5, "scale": "log", "steps": 4},
              "overlap_comm": [true, false]},
    "baseline": {"zero_stage": 2, "micro_batch": 4},
    "constraints": ["micro_batch * seq_len <= 64", "zero_stage != 1 || micro_batch < 4"],
    "objective": {"metric": "throughput", "direction": "maximize"},
    "runner": {"kind": "bench", "warmup_s": 0.1, "measure_s": 0.2, "timeout_s": 60, "memory_limit_gib": null},
    "budget": {"trials": 5, "hours": 1.5, "gpu_hours": null, "patience": 3},
    "grid": {"order": "session"},
    "memory": {"limit_gib": 1.5, "reserve_fraction": 0.05, "model": "krigtune"},
})json"},
      {"bench, short", R"json({
    "workload": {"model": {"preset": "gpt2-124m", "layers": 1, "seq_len": 8}},
    "space": {"zero_stage": [0, 3], "gradient_accumulation_steps": [1, 2], "micro_batch": [1, 2]},
    "baseline": null, "memory": {"limit_gib": 16}})json"},
      {"emulated line", R"json({
    "workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 8},
    "cluster": {"emulate_network": "eth-25"}, "space": {"micro_batch": [1, 2, 4]}, "memory": {"limit_gib": 1}})json"},
      {"named GPUs", R"json({
    "workload": {"model": {"preset": "gpt2-124m", "seq_len": 128}, "precision": "bf16"},
    "cluster": {"nodes": 2, "gpus_per_node": 8, "gpu": "mine", "interconnect": "nvlink4", "network": "our-net",
                "hardware": {"gpus": {"mine": {"like": "h100-80gb", "memory_gib": 94.5, "memory_bytes_per_s": 2.4e12,
                                               "gemm_fraction": 0.5, "launch_us": 4}},
                             "links": {"our-net": {"kind": "network", "latency_us": 5, "bytes_per_s": 5e10,
                                                   "reached": 0.9}}}},
    "space": {"micro_batch": [1, 2, 4]}, "runner": {"kind": "none"}})json"},
      {"simulate with everything", R"json({
    "workload": {"model": {"preset": "gpt2-1.5b"}, "precision": "bf16", "train_batch_size": 64, "framework": "megatron"},
    "cluster": {"gpus_per_node": 8, "gpu": "a100-80gb"},
    "space": {"zero_stage": [0, 1], "micro_batch": [1, 2, 4], "pipeline_parallel": [1, 2]},
    "memory": {"host_limit_gib": 500, "model": "deepspeed-autotuner"},
    "runner": {"kind": "simulate", "noise": 0.02, "systematic_error": 0.15, "memory_error": 0.05,
               "stragglers": {"probability": 0.05, "slowdown": 1.3},
               "failures": {"unforeseen_fraction": 0.05, "crash_probability": 0.01}, "seed": 1}})json"},
      {"command with everything", R"json({
    "space": {"lr": {"type": "real", "min": 1e-5, "max": 1e-1, "scale": "log"},
              "momentum": {"type": "real", "min": 0.5, "max": 0.99, "when": "optimizer == 'sgd'"},
              "optimizer": ["adam", "sgd"], "layers": {"min": 1, "max": 4},
              "width": {"min": 32, "max": 512, "scale": "log", "steps": 5, "when": "layers > 1"},
              "batch": {"values": [8, 16, 32], "scale": "log", "when": "layers >= 1 && !(layers == 4)"}},
    "constraints": ["layers * width <= 1024 || batch % 16 == 0", "max(layers, 2) < 5"],
    "baseline": {"lr": 0.001, "optimizer": "adam"},
    "objective": {"metric": "loss", "direction": "minimize"},
    "runner": {"kind": "command", "argv": ["/bin/true", "{config}", "{result}", "{dir}", "{trial}"], "cwd": "/tmp",
               "env": {"OMP_NUM_THREADS": "1", "N": 2}, "timeout_s": 60, "grace_s": 1, "no_progress_s": 30,
               "oom_exit_codes": [3, 137], "oom_patterns": ["out of memory", "^OOM [0-9]+$"]},
    "budget": {"trials": 3}})json"},
      {"deepspeed with everything", R"json({
    "space": {"zero_stage": [1, 2, 3], "micro_batch": [1, 2]},
    "runner": {"kind": "deepspeed", "argv": ["/bin/true", "train.py", "--deepspeed", "ds_config.json"],
               "ds_config": "/tmp/ds_config.json", "cwd": "/tmp", "env": {"OMP_NUM_THREADS": 1},
               "arg_mappings": {"train_micro_batch_size_per_gpu": "--batch"}, "warmup_steps": 3, "measure_steps": 8,
               "timeout_s": 600, "grace_s": 5, "no_progress_s": 60, "early_end": false},
    "budget": {"trials": 3}})json"},
      {"replay with everything", R"json({
    "space": {"alpha": [1, 2, 3]}, "baseline": null,
    "objective": {"metric": "speed", "direction": "maximize"},
    "runner": {"kind": "replay", "table": ")json" +
                                     table + R"json(", "where": {"host": "one", "nodes": 1},
               "columns": {"alpha": {"column": "milli_a", "times": 0.001}}, "value": {"column": "speed", "times": 2},
               "metrics": {"power": "watt"}, "status": "status", "reason": "why", "repeats": "median"}})json"},
      {"by hand", R"json({
    "space": {"x": {"min": 0, "max": 100, "steps": 11}, "y": [0.5, 1, 2.5], "on": [true, false]},
    "constraints": ["x + y < 90", "on || x > 10"], "runner": {"kind": "none"},
    "objective": {"metric": "score", "direction": "maximize"}})json"},
      {"least", R"json({"space": {"a": [1, 2]}})json"},
  };
}

/// Returns the ```jsonc blocks of a Markdown file that are whole sessions.
inline std::vector<ExampleSession> sessions_in(const std::filesystem::path& markdown) {
  const std::string begin = "```jsonc\n";
  const std::string text = read_text(markdown);
  std::vector<ExampleSession> sessions;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const std::string block = text.substr(at + begin.size(), text.find("\n```", at) - at - begin.size());
    if (block.find("\"space\"") == std::string::npos) continue;
    sessions.push_back({markdown.filename().string() + " at " + std::to_string(at), block});
  }
  return sessions;
}

/// Returns a session of experiments/<folder>, with its table as an absolute path.
inline ExampleSession experiment(const std::string& name) {
  std::string text = read_text(KRIGTUNE_ROOT "/experiments/" + name);
  const std::string up = "\"../";
  for (std::size_t at = text.find(up); at != std::string::npos; at = text.find(up, at + 1)) {
    text.replace(at, up.size(), "\"" KRIGTUNE_ROOT "/experiments/");
  }
  return {name, text};
}

inline ExampleSession made_by_init() {
  const TemporaryDirectory directory;
  const std::string file = (directory / "session.json").string();
  EXPECT_EQ(run_krigtune({"init", file}).code, 0);
  return {"init", read_text(file)};
}

/// Returns all good sessions.
inline std::vector<ExampleSession> example_sessions() {
  std::vector<ExampleSession> all = own_sessions();
  for (const char* file : {"quickstart/session.json", "quickstart/replay.json", "vtrain/session.json"}) {
    all.push_back(experiment(file));
  }
  for (const ExampleSession& session : sessions_in(KRIGTUNE_ROOT "/README.md")) all.push_back(session);
  all.push_back(made_by_init());
  return all;
}

}  // namespace krigtune
