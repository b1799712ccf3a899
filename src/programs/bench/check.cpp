#include "programs/bench/check.h"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/processor.h"
#include "plan/build_plan.h"
#include "plan/check/check_plan.h"

namespace krigtune::bench {
namespace {

using Results = std::vector<plan::PlanCheckResult>;

constexpr int kCheckSchemaVersion = 1;

Json check_json(const TrainingJob& job, const plan::StepPlan& plan, const Results& results) {
  const plan::PlanFindings findings = plan::findings_of(results);
  Json json = {{"schema_version", kCheckSchemaVersion},
               {"program", "krigtune-bench"},
               {"version", KRIGTUNE_VERSION},
               {"host", host_name()},
               {"status", findings.empty() ? "ok" : "failed"},
               {"reason", findings.empty() ? "" : "plan"},
               {"findings", findings},
               {"checks", Json::array()},
               {"operations", plan.operations.size()},
               {"buffers", plan.buffers.size()},
               {"ranks", plan.world()},
               {"micro_steps", plan.micro_steps},
               {"planned_peak_bytes", plan.arena_bytes},
               {"planned_host_bytes", plan.host_arena_bytes},
               {"configuration", space::to_json(job.configuration)}};
  for (const plan::PlanCheckResult& result : results) {
    json["checks"].push_back({{"name", result.name},
                              {"status", result.passed()   ? "ok"
                                         : result.was_made ? "failed"
                                                           : "not made"},
                              {"proves", result.proves}});
  }
  return json;
}

std::string check_text(const TrainingJob& job, const plan::StepPlan& plan, const Results& results) {
  std::string text = fmt::format(
      "# krigtune-bench {}: the plan of a training step, checked; nothing was run\n"
      "# configuration: {}\n"
      "# plan: {} operations, {} buffers, {} ranks, {} micro-steps, ZeRO stage {}\n",
      KRIGTUNE_VERSION, job.configuration.text(), plan.operations.size(), plan.buffers.size(), plan.world(),
      plan.micro_steps, plan.zero_stage);
  for (const plan::PlanCheckResult& result : results) {
    if (result.passed()) {
      text += fmt::format("  {:<12} ok: {}\n", result.name, result.proves);
    } else if (!result.was_made) {
      text += fmt::format("  {:<12} not checked: it relies on the checks before it\n", result.name);
    }
    for (const std::string& finding : result.findings) text += finding + "\n";
  }
  return text;
}

}  // namespace

int check(const TrainingJob& job, const plan::StepPlan& plan, const BenchOptions& options, std::ostream& out) {
  const Results results = plan::run_plan_checks(plan);
  out << (options.json ? check_json(job, plan, results).dump(2) + "\n" : check_text(job, plan, results)) << std::flush;
  return plan::findings_of(results).empty() ? BenchExit::kOk : BenchExit::kFindings;
}

int check_config(const BenchOptions& options, std::ostream& out) {
  const TrainingJob job = load_job(options.config);
  return check(job, plan::build_plan(job.workload, job.cluster, job.configuration), options, out);
}

}  // namespace krigtune::bench
