#include <fmt/format.h>

#include <vector>

#include "krigtune/core/text.h"
#include "registry.h"

namespace krigtune {
namespace {

// One line per runner.
std::vector<RunnerEntry> registry() {
  return {
      bench_runner_entry(),   simulate_runner_entry(),  replay_runner_entry(),
      command_runner_entry(), deepspeed_runner_entry(), none_runner_entry(),
  };
}

}  // namespace

bool leaves_files(RunnerKind kind) {
  return kind == RunnerKind::kBench || kind == RunnerKind::kCommand || kind == RunnerKind::kDeepSpeed;
}

double timeout_s(const RunnerSpec& spec) {
  switch (spec.kind) {
    case RunnerKind::kBench:
      return spec.bench.timeout_s;
    case RunnerKind::kCommand:
      return spec.command.timeout_s;
    case RunnerKind::kDeepSpeed:
      return spec.deepspeed.timeout_s;
    case RunnerKind::kSimulate:
    case RunnerKind::kReplay:
    case RunnerKind::kNone:
      break;
  }
  return 0.0;
}

RunnerSpec read_runner(const Json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir) {
  JsonObject block(json, source, pointer);
  const std::string kind = block.text("kind", "bench");
  std::vector<std::string> known;
  for (const RunnerEntry& entry : registry()) {
    known.emplace_back(entry.name);
    if (kind != entry.name) continue;
    RunnerSpec spec;
    spec.kind = entry.kind;
    entry.read(block, base_dir, spec);
    block.finish();
    return spec;
  }
  block.fail("kind", fmt::format("'{}' is no runner", kind), suggestion(kind, known));
}

Json to_json(const RunnerSpec& spec) {
  Json block = Json::object();
  for (const RunnerEntry& entry : registry()) {
    if (entry.kind != spec.kind) continue;
    block["kind"] = entry.name;
    entry.write(spec, block);
  }
  return block;
}

}  // namespace krigtune
