#include "runner/local_machine.h"

#include <fmt/format.h>

#include <exception>
#include <optional>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/text.h"
#include "trial/process.h"
#include "trial/trial_files.h"

namespace krigtune::runner {
namespace {

constexpr double kMeasurementTimeoutS = 120.0;

std::filesystem::path cache_file(const std::filesystem::path& directory, const workload::MachineKey& key) {
  workload::MeasuredMachine nothing;
  nothing.key = key;
  const std::string text = workload::to_json(nothing).at("key").dump();
  Fnv1a64 hash;
  hash.add(text.data(), text.size());
  return directory / fmt::format("machine-{}.json", hash.hex());
}

std::optional<workload::MeasuredMachine> cached(const std::filesystem::path& file, const workload::MachineKey& key) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  try {
    const workload::MeasuredMachine machine = workload::read_measured_machine(load_json(file), file.string(), "");
    if (machine.key == key) return machine;
  } catch (const UserError&) {
    // Another version wrote it, or it is incomplete; it will be written again.
    return std::nullopt;
  }
  return std::nullopt;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t before = text.rfind('\n');
  return before == std::string::npos ? text : text.substr(before + 1);
}

workload::MeasuredMachine measure(std::int64_t ranks, workload::Precision precision, const std::filesystem::path& bench,
                                  const Clock& clock) {
  const trial::ScratchDirectory scratch;
  trial::ProcessSpec spec;
  spec.argv = {bench.string(), "--measure-machine", std::to_string(ranks), "--precision",
               workload::to_string(precision)};
  spec.stdout_file = scratch / "stdout";
  spec.stderr_file = scratch / "stderr";
  spec.timeout_s = kMeasurementTimeoutS;
  const trial::ProcessResult result = trial::run_process(spec, clock);
  if (result.exit_code != 0 || !result.start_error.empty()) {
    const std::string why = result.start_error.empty()
                                ? last_line(trial::read_tail(spec.stderr_file, trial::kMostJobFileBytes))
                                : result.start_error;
    throw EnvironmentError(fmt::format("this machine could not be measured: {}", why),
                           "see krigtune-bench --measure-machine, or name a \"gpu\"");
  }
  try {
    return workload::read_measured_machine(load_json(spec.stdout_file), "krigtune-bench --measure-machine", "");
  } catch (const UserError& error) {
    throw EnvironmentError(fmt::format("this machine could not be measured: {}", error.what()),
                           "use the krigtune-bench of this version");
  }
}

}  // namespace

workload::MeasuredMachine local_machine(std::int64_t ranks, workload::Precision precision,
                                        const LocalMachineOptions& options, const Clock& clock) {
  const workload::MachineKey key = workload::machine_key(ranks, precision);
  const std::filesystem::path file = options.cache.empty() ? std::filesystem::path() : cache_file(options.cache, key);
  if (!options.fresh && !file.empty()) {
    if (std::optional<workload::MeasuredMachine> machine = cached(file, key)) return *machine;
  }
  options.say(fmt::format("measuring this machine with {}, once, for about 5 s", counted(ranks, "rank")));
  workload::MeasuredMachine machine = measure(ranks, precision, options.bench, clock);
  if (file.empty()) return machine;
  try {
    make_writable_directory(options.cache);
    write_atomically(file, workload::to_json(machine).dump(2) + "\n");
  } catch (const std::exception& error) {
    options.say(fmt::format("the measurement is not kept: {}; set KRIGTUNE_CACHE to a directory that can be written",
                            error.what()));
  }
  return machine;
}

std::optional<workload::MeasuredMachine> earlier_local_machine(std::int64_t ranks, workload::Precision precision,
                                                               const std::filesystem::path& cache) {
  if (cache.empty()) return std::nullopt;
  const workload::MachineKey key = workload::machine_key(ranks, precision);
  return cached(cache_file(cache, key), key);
}

}  // namespace krigtune::runner
