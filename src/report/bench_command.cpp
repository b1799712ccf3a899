// cmd_optimal.txt and config_optimal.json: the krigtune-bench command that measures the recommended configuration
// again, as its trial was measured.
#include "krigtune/core/text.h"
#include "writers.h"

namespace krigtune {

std::optional<std::string> config_optimal(const RunView& run) {
  const Session& session = run.session;
  if (!run.best || session.runner.kind != RunnerKind::kBench) return std::nullopt;
  const Json json = {{"workload", to_json(*session.workload)},
                     {"cluster", to_json(session.cluster)},
                     {"memory", to_json(session.memory)},
                     {"configuration", to_json(run.best->configuration)}};
  return json.dump(2) + "\n";
}

std::optional<std::string> cmd_optimal(const RunView& run) {
  const RunnerSpec& runner = run.session.runner;
  if (!run.best || runner.kind != RunnerKind::kBench) return std::nullopt;
  const std::filesystem::path config = std::filesystem::absolute(run.directory / kBenchConfigFile).lexically_normal();
  std::vector<std::string> words = {run.bench.string(), "--config",
                                    config.string(),    "--json",
                                    "--warmup-s",       number_text(runner.bench.warmup_s),
                                    "--measure-s",      number_text(runner.bench.measure_s)};
  if (runner.bench.memory_limit_gib) {
    words.emplace_back("--memory-limit");
    words.push_back(number_text(*runner.bench.memory_limit_gib));
  }
  return shell_line(words) + "\n";
}

}  // namespace krigtune
