#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/labels.h"
#include "report/trial_classes.h"
#include "runner/runner.h"
#include "search/model/limit_models.h"

namespace krigtune::page {
namespace {

/// The trials by their result.
struct Kinds {
  Marks ok{"ok", Shape::kDot, 0, {}};
  Marks again{"ok, once more", Shape::kRing, 0, {}};
  Marks bounded{"bounded: ended early, at best this", Shape::kTriangle, 4, {}};
  Marks oom{"out of memory", Shape::kSquare, 1, {}};
  Marks failed{"failed", Shape::kCross, 1, {}};
  Marks best{"recommended", Shape::kDiamond, 2, {}};
};

// The best value so far, at each successful trial.
Line best_so_far(const RunFacts& facts) {
  Line line{.name = "best so far", .hue = 2, .x = {}, .y = {}, .steps = true};
  std::optional<double> best;
  for (const journal::Trial* trial : facts.closed()) {
    const std::optional<double> value = facts.value_of(*trial);
    if (!search::broken_limits(facts.session(), *trial).empty()) continue;
    if (value && (!best || facts.objective().better(*value, *best))) best = value;
    if (!best) continue;
    line.x.push_back(trial->number);
    line.y.push_back(facts.shown(*best));
  }
  return line;
}

Line level(const RunFacts& facts, double value, int last) {
  const answer::Reference& reference = *facts.answer().reference;
  return {.name = reference.is_own ? fmt::format("yours (trial {})", reference.trial) : "what gains are relative to",
          .hue = 5,
          .x = {0.0, static_cast<double>(last)},
          .y = {facts.shown(value), facts.shown(value)},
          .dashed = true};
}

constexpr int kFirstHueCompared = 3;
constexpr int kHuesCompared = 3;
constexpr int kMostTimesAsLong = 2;  // as this session; otherwise its trials would be crowded on the left

// For runs of another command: the median best value so far of each strategy.
std::vector<Line> compared_lines(const RunFacts& facts, int last) {
  std::vector<Line> lines;
  for (const report::ComparedCurve& curve : facts.source().compared.curves) {
    const std::string runs = curve.runs == 1 ? "one run" : fmt::format("median of {} runs", curve.runs);
    Line line{.name = fmt::format("{} in krigtune compare, {}", curve.strategy, runs),
              .hue = kFirstHueCompared + static_cast<int>(lines.size()) % kHuesCompared,
              .x = {},
              .y = {},
              .steps = true,
              .dashed = true,
              .at_end = curve.strategy};
    for (std::size_t i = 0; i < curve.trials.size() && curve.trials[i] <= last; ++i) {
      line.x.push_back(curve.trials[i]);
      line.y.push_back(facts.shown(curve.best[i].median));
    }
    if (!line.x.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

// Returns the last trial that is drawn.
int end_of_axis(const RunFacts& facts) {
  const int own = facts.closed().back()->number;
  int last = own;
  for (const report::ComparedCurve& curve : facts.source().compared.curves) {
    last = std::max(last, std::min(curve.trials.back(), kMostTimesAsLong * (own + 1)));
  }
  return last;
}

std::string compared_numbers(const RunFacts& facts) {
  const std::vector<report::ComparedCurve>& curves = facts.source().compared.curves;
  if (curves.empty()) return "";
  const int last = end_of_axis(facts);
  HtmlTable shown{"The best so far in krigtune compare: median, and quartiles in brackets", {"trial"}, {}};
  for (const report::ComparedCurve& curve : curves) {
    shown.columns.push_back(user_text(fmt::format("{} ({})", curve.strategy, counted(curve.runs, "run"))));
  }
  for (int trial = 0; trial <= last; ++trial) {
    std::vector<std::string>& row = shown.rows.emplace_back();
    row.push_back(fmt::format("{}", trial));
    for (const report::ComparedCurve& curve : curves) {
      const auto at = std::find(curve.trials.begin(), curve.trials.end(), trial) - curve.trials.begin();
      const auto i = static_cast<std::size_t>(at);
      if (i >= curve.best.size()) {
        row.emplace_back();
        continue;
      }
      row.push_back(escaped(curve.runs == 1 ? facts.value_text(curve.best[i].median)
                                            : fmt::format("{} ({} to {})", facts.value_text(curve.best[i].median),
                                                          facts.value_text(curve.best[i].q25),
                                                          facts.value_text(curve.best[i].q75))));
    }
  }
  return table(shown);
}

// Says where the curves of other strategies come from.
std::string compared_says(const RunFacts& facts) {
  const report::ComparedCurves& compared = facts.source().compared;
  if (compared.curves.empty()) return "";
  const std::string own = runner::traits_of(facts.session().runner).name;
  const std::string with = compared.runner.empty() || compared.runner == own
                               ? ""
                               : fmt::format(", whose trials are of the runner {}, not {}", compared.runner, own);
  return fmt::format(
      " Dashed: other runs of this session by krigtune compare, from {}{}; each line is what the configuration that "
      "was "
      "the best so far is worth.",
      compared.directory.string(), with);
}

// Trials without a value are drawn at the bottom.
Kinds kinds_of(const RunFacts& facts, double foot) {
  Kinds kinds;
  for (const journal::Trial* trial : facts.closed()) {
    Mark mark{.x = static_cast<double>(trial->number), .tip = facts.tip_of(*trial), .link = facts.link_of(*trial)};
    if (const std::optional<double> value = facts.value_of(*trial)) {
      mark.y = facts.shown(*value);
      const bool is_best = facts.best() != nullptr && facts.best()->trial == trial->number;
      (is_best ? kinds.best : trial->proposal.repeat_of ? kinds.again : kinds.ok).marks.push_back(mark);
      continue;
    }
    mark.y = foot;
    if (const auto* bounded = std::get_if<trial::Bounded>(&*trial->outcome)) {
      mark.y = facts.shown(bounded->at_best);
      kinds.bounded.marks.push_back(mark);
    } else if (std::holds_alternative<trial::OutOfMemory>(*trial->outcome)) {
      kinds.oom.marks.push_back(mark);
    } else {
      kinds.failed.marks.push_back(mark);
    }
  }
  return kinds;
}

}  // namespace

std::string progress(const RunFacts& facts) {
  std::vector<double> values;
  for (const journal::Trial* trial : facts.closed()) {
    if (const std::optional<double> value = facts.value_of(*trial)) values.push_back(facts.shown(*value));
  }
  if (values.empty()) return "";
  Chart drawing;
  drawing.title = "Trials in their order";
  const int last = end_of_axis(facts);
  std::vector<Line> compared = compared_lines(facts, last);
  for (const Line& line : compared) values.insert(values.end(), line.y.begin(), line.y.end());
  drawing.x = {.title = "trial", .min = -0.5, .max = last + 0.5};
  drawing.y = axis_around(facts.value_title(), values);
  Kinds kinds = kinds_of(facts, drawing.y.min);
  drawing.lines = {best_so_far(facts)};
  if (facts.reference() != nullptr)
    drawing.lines.push_back(level(facts, facts.value_of(*facts.reference()).value_or(0.0), last));
  for (Line& line : compared) drawing.lines.push_back(std::move(line));
  drawing.marks = {kinds.ok, kinds.again, kinds.bounded, kinds.oom, kinds.failed, kinds.best};
  const std::string classes = report::text_of(facts.answer().trials.by_class);
  drawing.description = fmt::format("{}: {}. The table of all trials has the numbers",
                                    counted(facts.answer().trials.closed, "trial"), classes);
  const std::string foot = kinds.oom.marks.empty() && kinds.failed.marks.empty()
                               ? ""
                               : " Trials without a value are at the foot of the drawing.";
  const std::string says = fmt::format("{}.{}{}", classes, foot, compared_says(facts));
  return figure({drawing.title, chart(drawing), escaped(says), compared_numbers(facts)});
}

}  // namespace krigtune::page
