#include "bench/run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <ostream>

#include "bench/bench_result.h"
#include "bench/exit_codes.h"
#include "bench/options.h"
#include "bench/probe.h"
#include "bench/train.h"
#include "krigtune/core/error.h"
#include "krigtune/plan/build_plan.h"

namespace krigtune {
namespace {

std::int64_t process_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr std::int64_t kKibibyte = 1024;
  return usage.ru_maxrss * kKibibyte;
}

void plan_and_train(const BenchOptions& options, const Clock& clock, BenchResult& result) {
  if (options.device == DeviceChoice::kCuda) {
    const GpuProbe probe = probe_gpus();
    result.ending = {
        kNoDevice, "failed", "environment",
        "this build has no CUDA engine" + (probe.reason.empty() ? "" : ", and " + probe.reason) + "; use --device cpu"};
    return;
  }
  const TrainingJob job = load_job(options.config);
  StepPlan plan = build_plan(job.workload, job.cluster, job.configuration);
  result.planned = plan_job(job, plan, options.memory_limit_gib);
  const PlannedJob& planned = *result.planned;
  if (planned.missing_bytes() > 0) {
    result.ending = out_of_memory(planned);
    return;
  }
  result.trained = train(std::move(plan), planned, options, clock);
  result.ending = ending_of(result.trained->measurement);
}

// Every way to end becomes a value: the document is printed in every case.
void end_with_current_exception(BenchResult& result) {
  try {
    throw;
  } catch (const UserError& error) {
    result.ending = {kBadInput, "failed", "invalid", error.what()};
  } catch (const EnvironmentError& error) {
    result.ending = {kEnvironmentLacks, "failed", "environment", error.what()};
  } catch (const std::bad_alloc&) {
    result.ending = {kOutOfMemory, "oom", "allocation", "this machine has not enough memory for all ranks"};
  } catch (const std::exception& error) {
    result.ending = {kInternal, "failed", "crash", error.what()};
  }
}

int print_probe(bool json, std::ostream& out) {
  const GpuProbe probe = probe_gpus();
  if (json) {
    BenchResult result;
    if (probe.gpus == 0) result.ending = {kNoDevice, "failed", "environment", probe.reason};
    out << json_report(result);
  } else {
    out << (probe.gpus > 0 ? fmt::format("{} GPU(s)\n", probe.gpus) : "no GPU: " + probe.reason + "\n");
  }
  return probe.gpus > 0 ? 0 : kNoDevice;
}

int report(BenchResult& result, bool json, std::ostream& out, std::ostream& err) {
  result.process_peak_bytes = process_peak_bytes();
  out << (json ? json_report(result) : text_report(result)) << std::flush;
  if (!result.ending.message.empty()) err << "krigtune-bench: " << result.ending.message << "\n";
  return result.ending.exit_code;
}

}  // namespace

int run_bench(const std::vector<std::string>& arguments, const Clock& clock, std::ostream& out, std::ostream& err) {
  BenchResult result;
  // Also where the command line cannot be read.
  bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    const BenchOptions options = parse_options(arguments);
    json = options.json;
    if (options.help) return out << help_text(), 0;
    if (options.version) return out << "krigtune-bench " << KRIGTUNE_VERSION << "\n", 0;
    if (options.probe) return print_probe(options.json, out);
    result.seed = options.seed;
    plan_and_train(options, clock, result);
  } catch (...) {
    end_with_current_exception(result);
  }
  return report(result, json, out, err);
}

}  // namespace krigtune
