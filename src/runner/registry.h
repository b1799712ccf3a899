#pragma once
#include "krigtune/core/json.h"
#include "krigtune/runner/runner.h"

namespace krigtune {

/// A kind of runner as the session file knows it. `read` takes its own keys from the block, `write` adds them to it.
struct RunnerEntry {
  RunnerKind kind;
  const char* name;
  void (*read)(JsonObject& block, const std::filesystem::path& base_dir, RunnerSpec& spec);
  void (*write)(const RunnerSpec& spec, Json& block);
};

RunnerEntry bench_runner_entry();
RunnerEntry simulate_runner_entry();
RunnerEntry replay_runner_entry();
RunnerEntry command_runner_entry();
RunnerEntry deepspeed_runner_entry();
RunnerEntry none_runner_entry();

}  // namespace krigtune
