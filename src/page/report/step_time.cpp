#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "page/report/trial_bars.h"
#include "report/labels.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostStepBars = 6;
constexpr double kMilliseconds = 1e3;

// Times are per sequence, so that batches of all sizes can be compared.
double per_sequence(const RunFacts& facts, const journal::Trial& trial) {
  return kMilliseconds /
         static_cast<double>(forecast::sequences_per_step(facts.session(), trial.proposal.configuration));
}

std::optional<double> measured_step(const RunFacts& facts, const journal::Trial& trial) {
  const std::optional<double> step_s = report::metric_of(trial, "step_time_s");
  return step_s ? std::optional(*step_s * per_sequence(facts, trial)) : std::nullopt;
}

std::optional<TrialBar> predicted_bar(const RunFacts& facts, const journal::Trial& trial) {
  const std::optional<cost::StepCost> cost = facts.forecaster()(trial.proposal.configuration).cost;
  if (!cost) return std::nullopt;
  const double unit = per_sequence(facts, trial);
  return TrialBar{{{"matrix products and attention", cost->products_s * unit},
                   {"memory-bound kernels", cost->memory_bound_s * unit},
                   {"exposed communication", cost->exposed_comm_s * unit},
                   {"pipeline bubble", cost->bubble_s * unit},
                   {"optimizer", cost->optimizer_s * unit},
                   {"offload and host", (cost->offload_s + cost->idle_s) * unit}},
                  measured_step(facts, trial)};
}

// Uses krigtune-bench's breakdown of the time of rank 0, with the field names of its result.
std::optional<TrialBar> measured_bar(const RunFacts& facts, const journal::Trial& trial) {
  if (!report::metric_of(trial, "breakdown_span_s")) return std::nullopt;
  const double unit = per_sequence(facts, trial);
  const auto part = [&](const char* name, std::initializer_list<const char*> fields) {
    double seconds = 0.0;
    for (const char* field : fields) {
      seconds += report::metric_of(trial, fmt::format("breakdown_{}_s", field)).value_or(0.0);
    }
    return BarPart{name, seconds * unit};
  };
  // In this order parts with the same name above have the same hue.
  return TrialBar{
      {part("forward", {"forward"}), part("backward", {"backward"}),
       part("exposed communication", {"all_reduce_exposed", "reduce_scatter_exposed", "all_gather_exposed"}),
       part("optimizer", {"optimizer"}), part("copies and host work", {"copies_exposed", "host_work_exposed"}),
       part("computed again", {"recompute"}), part("waiting for other ranks", {"waiting"}),
       part("nothing runs", {"idle"})},
      measured_step(facts, trial)};
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? escaped(duration_text(*seconds)) : "";
}

std::string chosen_steps(const RunFacts& facts, const std::vector<ChosenTrial>& chosen) {
  HtmlTable numbers{
      "Steps", {"trial", "predicted", "measured", "exposed, predicted", "exposed, measured", "limited by"}, {}};
  for (const ChosenTrial& one : chosen) {
    const std::optional<cost::StepCost> cost = facts.forecaster()(one.trial->proposal.configuration).cost;
    if (!cost) continue;
    numbers.rows.push_back(
        {escaped(one.name), seconds_text(cost->step_time_s), seconds_text(report::metric_of(*one.trial, "step_time_s")),
         seconds_text(cost->exposed_comm_s), seconds_text(report::metric_of(*one.trial, "exposed_comm_s")),
         cost::to_string(cost->bottleneck())});
  }
  return table(numbers);
}

TrialBars step_bars(const RunFacts& facts, const char* title, const char* description) {
  TrialBars bars;
  bars.drawing.title = title;
  bars.drawing.description = description;
  bars.drawing.mark_name = "measured step";
  bars.drawing.axis.label = [](double milliseconds) { return fmt::format("{:.3g}", milliseconds); };
  bars.unit = "ms a sequence";
  bars.chosen = chosen_trials(facts, kMostStepBars, false);
  return bars;
}

std::string predicted_figure(const RunFacts& facts) {
  TrialBars bars = step_bars(facts, "A step, by what it spends its time on: predicted",
                             "Predicted by the cost model; the tables have the numbers");
  bars.id = "predicted-steps";
  bars.whole = "predicted step";
  bars.drawing.axis.title = "ms a sequence, predicted";
  bars.bar_of = [&](const journal::Trial& trial) { return predicted_bar(facts, trial); };
  bars.says =
      "The parts are predicted, not measured; where the mark lies beside the end of its bar, they are that far off. "
      "Times are of a step over its sequences, so that batches of all sizes compare.";
  bars.numbers = chosen_steps(facts, bars.chosen);
  return trial_bars_figure(facts, std::move(bars));
}

std::string measured_figure(const RunFacts& facts) {
  TrialBars bars = step_bars(facts, "The same steps as measured on rank 0", "Measured; the table has the numbers");
  bars.id = "measured-steps";
  bars.whole = "all parts";
  bars.drawing.axis.title = "ms a sequence, measured";
  bars.bar_of = [&](const journal::Trial& trial) { return measured_bar(facts, trial); };
  bars.says =
      "krigtune-bench writes down when each operation of rank 0 begins and ends. Collectives, copies and host work "
      "count only while no kernel runs. Each part and the mark are medians over the measured steps.";
  return trial_bars_figure(facts, std::move(bars));
}

}  // namespace

std::string step_time(const RunFacts& facts) {
  return figures({facts.forecaster().knows_time() ? predicted_figure(facts) : "", measured_figure(facts)});
}

}  // namespace krigtune::page
