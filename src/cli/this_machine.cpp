#include "this_machine.h"

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/runner/local_machine.h"
#include "krigtune/tuner/run_directory.h"
#include "runners.h"

namespace krigtune {

void know_this_machine(const Context& context, Session& session, const std::filesystem::path& run_directory) {
  const bool is_wanted =
      session.workload && session.runner.kind == RunnerKind::kBench && session.cluster.gpu == "local";
  if (!is_wanted || session.cluster.measured) return;
  if (!run_directory.empty() && std::filesystem::exists(session_path(run_directory))) {
    session.cluster.measured = recorded_machine(run_directory);
    return;
  }
  const std::filesystem::path bench = find_bench(context.console);
  if (bench.empty()) return;
  LocalMachineOptions options;
  options.bench = bench;
  options.cache = cache_directory();
  options.say = [&log = context.log](const std::string& text) { log.progress(text); };
  try {
    session.cluster.measured =
        local_machine(session.cluster.ranks(), session.workload->precision, options, context.console.clock);
  } catch (const EnvironmentError& error) {
    context.log.warning(error.what());
  }
}

}  // namespace krigtune
