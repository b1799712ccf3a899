#include "forecast/predicted_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "cost/pipeline.h"
#include "cost/time/virtual_clock.h"
#include "plan/build_plan.h"
#include "plan/trace.h"

namespace krigtune::forecast {
namespace {

constexpr const char* kProgram = "krigtune plan";

std::size_t ranks_of(const cost::PipelineStep& step) { return static_cast<std::size_t>(step.shape.ranks); }

std::vector<plan::TracedProcess> rank_rows(const cost::PipelineStep& step) {
  std::vector<plan::TracedProcess> rows;
  const std::size_t ranks = ranks_of(step);
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::string layers =
        counted(cost::layers_of_rank(step.layers, static_cast<std::int64_t>(i), step.shape), "layer");
    rows.push_back({step.shape.stages_of_rank == 1
                        ? fmt::format("pipeline stage {} ({})", i, layers)
                        : fmt::format("pipeline rank {} ({} in {} stages)", i, layers, step.shape.stages_of_rank),
                    {"compute", "to other stages"}});
  }
  return rows;
}

// After the last task of each rank: its remaining gradient reductions and the optimizer; after those of all ranks, the
// overhead once per step.
void add_ends(const cost::PipelineStep& step, std::vector<plan::TracedSpan>& spans) {
  std::vector<double> ends_s(ranks_of(step), 0.0);
  for (const cost::StageTask& task : step.tasks) {
    double& end_s = ends_s[step.shape.rank_of(task.stage)];
    end_s = std::max(end_s, task.end_s);
  }
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
    const std::size_t rank = step.shape.rank_of(task.stage);
    const char* pass = task.weights ? "weights" : task.backward ? "backward" : "forward";
    const std::string of_stage = step.shape.stages_of_rank == 1 ? "" : fmt::format(", stage {}", task.stage);
    const std::string name = fmt::format("{} micro-step {}{}", pass, task.micro_step, of_stage);
    spans.push_back({rank, 0, name, pass, task.start_s, task.worked_s});
    if (task.end_s > task.worked_s) {
      const char* what = task.backward ? "gradients" : "activations";
      spans.push_back({rank, 1, fmt::format("send {} of micro-step {}{}", what, task.micro_step, of_stage), "send",
                       task.worked_s, task.end_s});
    }
  }
  add_ends(step, spans);
  return plan::trace_json(rank_rows(step), spans, kProgram);
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
