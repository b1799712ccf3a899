#include "runners.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/runner/command.h"
#include "krigtune/runner/deepspeed/deepspeed_runner.h"
#include "krigtune/runner/deepspeed/ds_probe.h"
#include "krigtune/runner/simulate.h"
#include "krigtune/tuner/goodput.h"

namespace krigtune {
namespace {

constexpr const char* kBench = "krigtune-bench";

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::filesystem::path found_bench(const Console& console) {
  std::filesystem::path bench = find_bench(console);
  if (!bench.empty()) return bench;
  throw EnvironmentError(
      fmt::format("{} is neither in '{}' nor on PATH", kBench, console.program.parent_path().string()),
      "build it: ninja krigtune-bench");
}

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

namespace {

std::unique_ptr<Runner> make_deepspeed_job_runner(const Session& session, const Console& console,
                                                  const std::atomic<bool>* stop) {
  const DeepSpeedSpec& spec = session.runner.deepspeed;
  return make_deepspeed_runner({spec, session.objective.reported_field(), session.cluster.ranks(),
                                session.workload ? session.workload->model.seq_len : 0, stop,
                                installed_version(read_ds_command(spec.argv), spec.working_directory, console.clock)},
                               console.clock);
}

std::unique_ptr<Runner> make_reporting_runner(const Session& session, const Console& console,
                                              const std::atomic<bool>* stop) {
  switch (session.runner.kind) {
    case RunnerKind::kReplay:
      return make_replay_runner(*session.table);
    case RunnerKind::kSimulate:
      return make_simulate_runner(
          {*session.workload, session.cluster, session.memory, session.space, session.runner.simulate});
    case RunnerKind::kCommand:
      return make_command_runner({session.runner.command, session.objective.reported_field(), stop}, console.clock);
    case RunnerKind::kDeepSpeed:
      return make_deepspeed_job_runner(session, console, stop);
    case RunnerKind::kNone:
      throw UserError(fmt::format("{}: /runner/kind: with 'none' nobody runs trials but you", session.file.string()),
                      "use krigtune ask and krigtune tell, or name a runner");
    case RunnerKind::kBench:
      break;
  }
  return make_bench_runner({found_bench(console), *session.workload, session.cluster, session.memory, session.runner,
                            session.objective.reported_field(), stop},
                           console.clock);
}

}  // namespace

std::unique_ptr<Runner> make_session_runner(const Session& session, const Console& console,
                                            const std::atomic<bool>* stop) {
  return with_goodput(session, make_reporting_runner(session, console, stop));
}

}  // namespace krigtune
