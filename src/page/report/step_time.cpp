#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/chosen.h"
#include "page/report/sections.h"
#include "report/labels.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostStepBars = 6;
constexpr double kMilliseconds = 1e3;

std::vector<BarPart> step_parts(const cost::StepCost& cost, std::int64_t sequences) {
  const double unit = kMilliseconds / static_cast<double>(sequences);
  return {{"matrix products and attention", cost.products_s * unit},
          {"memory-bound kernels", cost.memory_bound_s * unit},
          {"exposed communication", cost.exposed_comm_s * unit},
          {"pipeline bubble", cost.bubble_s * unit},
          {"optimizer", cost.optimizer_s * unit},
          {"offload and host", (cost.offload_s + cost.idle_s) * unit}};
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? escaped(duration_text(*seconds)) : "";
}

}  // namespace

std::string step_time(const RunFacts& facts) {
  if (!facts.forecaster().knows_time()) return "";
  Bars drawing;
  drawing.title = "A step, by what it spends its time on";
  drawing.mark_name = "measured";
  HtmlTable numbers{
      "Steps", {"trial", "predicted", "measured", "exposed, predicted", "exposed, measured", "held up by"}, {}};
  double longest = 0.0;
  bool is_measured = false;
  for (const ChosenTrial& one : chosen_trials(facts, kMostStepBars, false)) {
    const space::Configuration& configuration = one.trial->proposal.configuration;
    const std::optional<cost::StepCost> cost = facts.forecaster()(configuration).cost;
    if (!cost) continue;
    const std::int64_t sequences = forecast::sequences_per_step(facts.session(), configuration);
    const double unit = kMilliseconds / static_cast<double>(sequences);
    const std::optional<double> step_s = report::metric_of(*one.trial, "step_time_s");
    Bar bar{one.name, step_parts(*cost, sequences), step_s ? std::optional(*step_s * unit) : std::nullopt};
    is_measured = is_measured || step_s;
    longest = std::max({longest, cost->step_time_s * unit, bar.mark.value_or(0.0)});
    drawing.bars.push_back(std::move(bar));
    numbers.rows.push_back(
        {escaped(one.name), seconds_text(cost->step_time_s), seconds_text(step_s), seconds_text(cost->exposed_comm_s),
         seconds_text(report::metric_of(*one.trial, "exposed_comm_s")), cost::to_string(cost->bottleneck())});
  }
  if (drawing.bars.empty()) return "";
  if (!is_measured) drawing.mark_name.clear();
  constexpr double kRoom = 1.03;
  drawing.axis = {.title = "ms a sequence, predicted", .min = 0.0, .max = kRoom * longest};
  drawing.axis.label = [](double milliseconds) { return fmt::format("{:.3g}", milliseconds); };
  drawing.description = "Predicted by the cost model; the table has the numbers";
  const char* says =
      "The parts are predicted, not measured; where the mark lies beside the end of its bar, they are that "
      "far off. Times are of a step over its sequences, so that batches of all sizes compare.";
  return figures({figure({drawing.title, bars(drawing), says, table(numbers)})});
}

}  // namespace krigtune::page
