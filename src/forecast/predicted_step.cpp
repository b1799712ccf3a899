#include "forecast/predicted_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "cost/time/virtual_clock.h"
#include "plan/build_plan.h"
#include "plan/trace.h"

namespace krigtune::forecast {
namespace {

constexpr const char* kProgram = "krigtune plan";

std::vector<plan::TracedProcess> stage_rows(const cost::PipelineStep& step) {
  std::vector<plan::TracedProcess> rows;
  for (std::size_t i = 0; i < step.layers.size(); ++i) {
    const std::int64_t layers = step.layers[i];
    rows.push_back(
        {fmt::format("pipeline stage {} ({})", i, counted(layers, "layer")), {"compute", "to other stages"}});
  }
  return rows;
}

// After the last task of each stage: its remaining gradient reductions and the optimizer; after those of all stages,
// the overhead once per step.
void add_ends(const cost::PipelineStep& step, std::vector<plan::TracedSpan>& spans) {
  std::vector<double> ends_s(step.stages.size(), 0.0);
  for (const cost::StageTask& task : step.tasks) ends_s[task.stage] = std::max(ends_s[task.stage], task.end_s);
  double last_s = 0.0;
  for (std::size_t i = 0; i < ends_s.size(); ++i) {
    const double rest_s = step.stages[i].rest_s;
    if (rest_s > 0.0) spans.push_back({i, 0, "gradients and optimizer", "optimizer", ends_s[i], ends_s[i] + rest_s});
    last_s = std::max(last_s, ends_s[i] + rest_s);
  }
  if (step.tie_s > 0.0) {
    for (const std::size_t i : {std::size_t{0}, ends_s.size() - 1}) {
      spans.push_back({i, 1, "sum of the tied token table", "optimizer", last_s, last_s + step.tie_s});
    }
  }
  const double once_from_s = last_s + step.tie_s;
  if (step.step_time_s > once_from_s) {
    spans.push_back({0, 0, "once a step", "overhead", once_from_s, step.step_time_s});
  }
}

std::string trace_of(const cost::PipelineStep& step) {
  std::vector<plan::TracedSpan> spans;
  for (const cost::StageTask& task : step.tasks) {
    const char* pass = task.backward ? "backward" : "forward";
    const std::string name = fmt::format("{} micro-step {}", pass, task.micro_step);
    spans.push_back({task.stage, 0, name, pass, task.start_s, task.worked_s});
    if (task.end_s > task.worked_s) {
      const char* what = task.backward ? "gradients" : "activations";
      spans.push_back({task.stage, 1, fmt::format("send {} of micro-step {}", what, task.micro_step), "send",
                       task.worked_s, task.end_s});
    }
  }
  add_ends(step, spans);
  return plan::trace_json(stage_rows(step), spans, kProgram);
}

}  // namespace

std::string predicted_trace(const session::Session& session, const Forecaster& forecaster,
                            const space::Configuration& configuration) {
  if (!forecaster.knows_time()) {
    throw UserError("no step can be predicted: " + forecaster.why_no_time());
  }
  const space::Configuration modelled = session::modelled_part(configuration);
  const cost::StepCostModel model(*session.workload, session.cluster);
  if (const auto stages = model.pipeline_step(modelled)) return trace_of(*stages);
  const plan::StepPlan plan = plan::build_plan(*session.workload, session.cluster, modelled);
  const cost::PredictedStep step = cost::predict_step(plan, cost::make_machine(*session.workload, session.cluster));
  return plan::trace_json(plan, cost::traced(step));
}

}  // namespace krigtune::forecast
