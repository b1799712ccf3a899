#include "runners.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"

namespace krigtune {
namespace {

constexpr const char* kBench = "krigtune-bench";

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// A runner of a comparison: its caller keeps no run directory.
class NumberedRunner final : public Runner {
 public:
  NumberedRunner(std::unique_ptr<Runner> runner, std::filesystem::path directory, std::atomic<int>& trials)
      : runner_(std::move(runner)), directory_(std::move(directory)), trials_(trials) {}

  Outcome run(const Configuration& configuration, const std::filesystem::path& /*trial_dir*/) override {
    const std::filesystem::path directory = directory_ / fmt::format("{:06}", trials_++);
    make_writable_directory(directory);
    return runner_->run(configuration, directory);
  }

 private:
  std::unique_ptr<Runner> runner_;
  std::filesystem::path directory_;
  std::atomic<int>& trials_;
};

}  // namespace

std::filesystem::path find_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    std::filesystem::path candidate = std::filesystem::path(rest.substr(0, colon)) / name;
    if (is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return {};
}

std::filesystem::path find_bench(const Console& console) {
  const std::filesystem::path beside = console.program.parent_path() / kBench;
  return is_program(beside) ? beside : find_on_path(kBench);
}

std::unique_ptr<Runner> make_session_runner(const Session& session, const Console& console,
                                            const std::atomic<bool>* stop) {
  if (session.runner.kind == RunnerKind::kReplay) return make_replay_runner(*session.table);
  const std::filesystem::path bench = find_bench(console);
  if (bench.empty()) {
    throw EnvironmentError(
        fmt::format("{} is neither in '{}' nor on PATH", kBench, console.program.parent_path().string()),
        "build it: ninja krigtune-bench");
  }
  return make_bench_runner(
      {bench, *session.workload, session.cluster, session.memory, session.runner, session.objective.field, stop},
      console.clock);
}

std::unique_ptr<Runner> make_numbered_runner(const Session& session, const Console& console,
                                             const std::filesystem::path& directory, std::atomic<int>& trials) {
  std::unique_ptr<Runner> runner = make_session_runner(session, console, nullptr);
  if (session.runner.kind == RunnerKind::kReplay) return runner;
  return std::make_unique<NumberedRunner>(std::move(runner), directory, trials);
}

}  // namespace krigtune
