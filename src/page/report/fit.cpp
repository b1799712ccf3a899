// Compares predictions, made before the trials ran, with the measurements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/statistics.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "search/trials/objective_scale.h"

namespace krigtune::page {
namespace {

constexpr double kNormal95 = 1.6448536269514722;  // 90 % of a normal distribution are within this many deviations
constexpr std::size_t kFewest = 3;

struct Predicted {
  const journal::Trial* trial = nullptr;
  double median = 0.0, low = 0.0, high = 0.0;  // 90 % interval
  double measured = 0.0;
  bool is_inside() const { return measured >= low && measured <= high; }
};

std::vector<Predicted> predicted_trials(const RunFacts& facts) {
  const search::ObjectiveScale scale(facts.objective(), facts.run().history);
  std::vector<Predicted> all;
  for (const journal::Trial* trial : facts.closed()) {
    const journal::Proposal& proposal = trial->proposal;
    const std::optional<double> value = facts.value_of(*trial);
    if (!value || !proposal.predicted_value || !proposal.predicted_stddev || proposal.repeat_of) continue;
    if (scale.logarithmic() && *proposal.predicted_value <= 0.0) continue;
    const double deviation = kNormal95 * scale.latent_stddev(*proposal.predicted_value, *proposal.predicted_stddev);
    const double latent = scale.to_latent(*proposal.predicted_value);
    const double a = scale.from_latent(latent - deviation);
    const double b = scale.from_latent(latent + deviation);
    all.push_back({trial, *proposal.predicted_value, std::min(a, b), std::max(a, b), *value});
  }
  return all;
}

// The errors of the medians say more than the widths of the intervals. "" if values are not positive, because their
// quotients have no meaning.
std::string typical_error(const std::vector<Predicted>& all) {
  constexpr double kPercentError = 100.0;
  std::vector<double> errors;
  for (const Predicted& one : all) {
    if (!(one.measured > 0.0) || !(one.median > 0.0)) return "";
    errors.push_back(std::abs(one.median / one.measured - 1.0));
  }
  std::sort(errors.begin(), errors.end());
  return fmt::format(" Half of the predictions were off by {:.2g} % or less, nine of ten by {:.2g} % or less.",
                     kPercentError * quantile(errors, 0.5), kPercentError * quantile(errors, 0.9));
}

std::string calibration(const std::vector<Predicted>& all) {
  const auto held = std::count_if(all.begin(), all.end(), [](const Predicted& one) { return one.is_inside(); });
  std::string text = fmt::format(
      "Of {} trials that were predicted before they ran, {} lay within the 90 % interval that "
      "was stated then.",
      all.size(), held);
  // If intervals are correct, the count is binomial, and a result two standard deviations below the mean is rare.
  const double n = static_cast<double>(all.size());
  const double expected = 0.9 * n;
  const bool too_few = static_cast<double>(held) < expected - 2.0 * std::sqrt(0.09 * n);
  text += too_few ? " That is fewer than there should be: the intervals are too narrow here."
                  : " That is what such intervals are for.";
  return text + typical_error(all);
}

std::string fit_numbers(const RunFacts& facts, const std::vector<Predicted>& all) {
  HtmlTable shown{"", {"trial", "predicted", "90 % from", "to", "measured"}, {}};
  for (const Predicted& one : all) {
    shown.rows.push_back({fmt::format("{}", one.trial->number), escaped(facts.value_text(one.median)),
                          escaped(facts.value_text(one.low)), escaped(facts.value_text(one.high)),
                          escaped(facts.value_text(one.measured))});
  }
  return table(shown);
}

}  // namespace

std::string fit(const RunFacts& facts) {
  const std::vector<Predicted> all = predicted_trials(facts);
  if (all.size() < kFewest) return "";
  Chart drawing;
  drawing.title = "What was predicted of a trial, and what it measured";
  drawing.description = calibration(all);
  drawing.description.pop_back();
  Marks inside{"within its 90 % interval", Shape::kDot, 0, {}};
  Marks outside{"outside", Shape::kSquare, 1, {}};
  std::vector<double> values;
  std::vector<double> reach;
  for (const Predicted& one : all) {
    const double measured = facts.shown(one.measured);
    values.push_back(measured);
    reach.insert(reach.end(), {facts.shown(one.low), facts.shown(one.high)});
    (one.is_inside() ? inside : outside)
        .marks.push_back({.x = measured,
                          .y = facts.shown(one.median),
                          .low = facts.shown(one.low),
                          .high = facts.shown(one.high),
                          .tip = facts.tip_of(*one.trial),
                          .link = facts.link_of(*one.trial)});
  }
  drawing.x = axis_around("measured " + facts.value_title(), values);
  // Early intervals may be much wider than all later ones, so they are cut.
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  for (double& end : reach) end = std::clamp(end, *least - (*most - *least), *most + (*most - *least));
  drawing.y = axis_around("predicted", reach);
  const std::vector<double> ends = {std::max(drawing.x.min, drawing.y.min), std::min(drawing.x.max, drawing.y.max)};
  drawing.lines = {{.name = "predicted = measured", .hue = 5, .x = ends, .y = ends, .dashed = true}};
  drawing.marks = {inside, outside};
  return figure({drawing.title, chart(drawing), escaped(calibration(all)), fit_numbers(facts, all)});
}

}  // namespace krigtune::page
