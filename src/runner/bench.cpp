// A bench trial: krigtune-bench in a process of its own, everything it was given and said kept in the trial's
// directory.
#include <fmt/format.h>

#include "bench_result.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/runner/replay.h"
#include "registry.h"
#include "trial_files.h"

namespace krigtune {
namespace {

class BenchRunner final : public Runner {
 public:
  BenchRunner(BenchJob job, const Clock& clock) : job_(std::move(job)), clock_(clock) {}

  Outcome run(const Configuration& configuration, const std::filesystem::path& trial_dir) override {
    const TrialFiles files(trial_dir);
    const ProcessSpec spec = prepare(configuration, files);
    BenchEnd end;
    end.process = run_process(spec, clock_);
    end.last_lines = last_lines(read_text(spec.stderr_file));
    end.document = bench_document(read_text(spec.stdout_file));
    if (end.document) write_atomically(files.result(), end.document->dump(2) + "\n");
    write_exit(files, end.process);
    return bench_outcome(end, job_.metric_field);
  }

 private:
  ProcessSpec prepare(const Configuration& configuration, const TrialFiles& files) const {
    const Json config = {{"workload", to_json(job_.workload)},
                         {"cluster", to_json(job_.cluster)},
                         {"memory", to_json(job_.memory)},
                         {"configuration", to_json(configuration)}};
    ProcessSpec spec;
    spec.argv = {job_.program.string(),
                 "--config",
                 files.config().string(),
                 "--json",
                 "--warmup-s",
                 number_text(job_.spec.bench.warmup_s),
                 "--measure-s",
                 number_text(job_.spec.bench.measure_s)};
    if (job_.spec.bench.memory_limit_gib) {
      spec.argv.insert(spec.argv.end(), {"--memory-limit", number_text(*job_.spec.bench.memory_limit_gib)});
    }
    write_inputs(files, config, spec);
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
