// A bench trial: krigtune-bench in a process of its own, everything it was given and said kept in the trial's
// directory.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "bench_result.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/runner/replay.h"
#include "registry.h"

namespace krigtune {
namespace {

constexpr std::size_t kLastLines = 20;
constexpr std::size_t kLastBytes = 8192;  // of them: one endless line must not fill the journal

std::string last_lines(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kLastBytes) text.erase(0, text.size() - kLastBytes);
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < kLastLines && begin != std::string::npos && begin > 0; ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

// Only what can change a measurement: run directories are passed on, and a whole environment holds people's tokens.
std::string environment_text() {
  constexpr std::array<std::string_view, 16> kPrefixes = {
      "PATH=", "LD_LIBRARY_PATH=", "LD_PRELOAD=", "CUDA_",  "NVIDIA_", "NCCL_",    "OMP_", "GOMP_", "OMPI_", "PMIX_",
      "UCX_",  "SLURM_",           "MKL_",        "GLIBC_", "MALLOC_", "KRIGTUNE_"};
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const auto starts = [&](std::string_view prefix) { return line.substr(0, prefix.size()) == prefix; };
    if (std::any_of(kPrefixes.begin(), kPrefixes.end(), starts)) lines.emplace_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines.empty() ? "" : join(lines, "\n") + "\n";
}

class BenchRunner final : public Runner {
 public:
  BenchRunner(BenchJob job, const Clock& clock) : job_(std::move(job)), clock_(clock) {}

  Outcome run(const Configuration& configuration, const std::filesystem::path& trial_dir) override {
    const ProcessSpec spec = prepare(configuration, trial_dir);
    BenchEnd end;
    end.process = run_process(spec, clock_);
    end.last_lines = last_lines(read_text(spec.stderr_file));
    end.document = bench_document(read_text(spec.stdout_file));
    if (end.document) write_atomically(trial_dir / "result.json", end.document->dump(2) + "\n");
    const Json exit = {{"exit_code", end.process.exit_code},
                       {"signal", end.process.signal},
                       {"timed_out", end.process.timed_out},
                       {"wall_s", end.process.wall_s}};
    write_atomically(trial_dir / "exit.json", exit.dump(2) + "\n");
    return bench_outcome(end, job_.metric_field);
  }

 private:
  ProcessSpec prepare(const Configuration& configuration, const std::filesystem::path& trial_dir) const {
    const Json config = {{"workload", to_json(job_.workload)},
                         {"cluster", to_json(job_.cluster)},
                         {"memory", to_json(job_.memory)},
                         {"configuration", to_json(configuration)}};
    const std::filesystem::path config_file = trial_dir / "config.json";
    write_atomically(config_file, config.dump(2) + "\n");
    ProcessSpec spec;
    spec.argv = {job_.program.string(), "--config",
                 config_file.string(),  "--json",
                 "--warmup-s",          number_text(job_.spec.bench.warmup_s),
                 "--measure-s",         number_text(job_.spec.bench.measure_s)};
    if (job_.spec.bench.memory_limit_gib) {
      spec.argv.insert(spec.argv.end(), {"--memory-limit", number_text(*job_.spec.bench.memory_limit_gib)});
    }
    write_atomically(trial_dir / "cmd.txt", shell_line(spec.argv) + "\n");
    write_atomically(trial_dir / "env.txt", environment_text());
    spec.stdout_file = trial_dir / "stdout.log";
    spec.stderr_file = trial_dir / "stderr.log";
    spec.timeout_s = job_.spec.bench.timeout_s;
    spec.stop = job_.stop;
    return spec;
  }

  BenchJob job_;
  const Clock& clock_;
};

double positive(JsonObject& block, const char* key, double fallback) {
  const double value = block.number(key, fallback);
  if (!(value > 0.0)) block.fail(key, fmt::format("{} is not positive", value), "give seconds above 0");
  return value;
}

void read_bench(JsonObject& block, const std::filesystem::path& /*base_dir*/, RunnerSpec& spec) {
  spec.bench.warmup_s = block.number("warmup_s", spec.bench.warmup_s);
  if (!(spec.bench.warmup_s >= 0.0)) {
    block.fail("warmup_s", fmt::format("{} is negative", spec.bench.warmup_s), "give 0 or more seconds");
  }
  spec.bench.measure_s = positive(block, "measure_s", spec.bench.measure_s);
  spec.bench.timeout_s = positive(block, "timeout_s", spec.bench.timeout_s);
  if (spec.bench.timeout_s <= spec.bench.warmup_s + spec.bench.measure_s) {
    block.fail("timeout_s",
               fmt::format("{} s end before warm-up and measurement ({} s)", spec.bench.timeout_s,
                           spec.bench.warmup_s + spec.bench.measure_s),
               "raise it");
  }
  spec.bench.memory_limit_gib = block.optional_number("memory_limit_gib");
  if (spec.bench.memory_limit_gib && !(*spec.bench.memory_limit_gib > 0.0)) {
    block.fail("memory_limit_gib", "is not positive", "give GiB per rank, or leave it out");
  }
}

void write_bench(const RunnerSpec& spec, Json& block) {
  block["warmup_s"] = json_number(spec.bench.warmup_s);
  block["measure_s"] = json_number(spec.bench.measure_s);
  block["timeout_s"] = json_number(spec.bench.timeout_s);
  block["memory_limit_gib"] = spec.bench.memory_limit_gib ? json_number(*spec.bench.memory_limit_gib) : Json(nullptr);
}

}  // namespace

RunnerEntry bench_runner_entry() { return {RunnerKind::kBench, "bench", read_bench, write_bench}; }

std::unique_ptr<Runner> make_bench_runner(BenchJob job, const Clock& clock) {
  return std::make_unique<BenchRunner>(std::move(job), clock);
}

}  // namespace krigtune
