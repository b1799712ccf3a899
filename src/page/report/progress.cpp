#include <fmt/format.h>

#include <algorithm>

#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/labels.h"
#include "report/trial_classes.h"

namespace krigtune::page {
namespace {

/// The trials by what became of them.
struct Kinds {
  Marks ok{"ok", Shape::kDot, 0, {}};
  Marks again{"ok, once more", Shape::kRing, 0, {}};
  Marks bounded{"bounded: ended early, at best this", Shape::kTriangle, 4, {}};
  Marks oom{"out of memory", Shape::kSquare, 1, {}};
  Marks failed{"failed", Shape::kCross, 1, {}};
  Marks best{"recommended", Shape::kDiamond, 2, {}};
};

// The best value so far, at each trial that is ok.
Line best_so_far(const RunFacts& facts) {
  Line line{.name = "best so far", .hue = 2, .x = {}, .y = {}, .steps = true};
  std::optional<double> best;
  for (const journal::Trial* trial : facts.closed()) {
    const std::optional<double> value = facts.value_of(*trial);
    if (value && (!best || facts.objective().better(*value, *best))) best = value;
    if (!best) continue;
    line.x.push_back(trial->number);
    line.y.push_back(facts.shown(*best));
  }
  return line;
}

Line level(const RunFacts& facts, double value, int last) {
  return {.name = facts.session().baseline ? "yours (trial 0)" : "what gains are relative to",
          .hue = 5,
          .x = {0.0, static_cast<double>(last)},
          .y = {facts.shown(value), facts.shown(value)},
          .dashed = true};
}

// What has no value stands at the foot of the drawing.
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
  const int last = facts.closed().back()->number;
  drawing.x = {.title = "trial", .min = -0.5, .max = last + 0.5};
  drawing.y = axis_around(facts.value_title(), values);
  Kinds kinds = kinds_of(facts, drawing.y.min);
  drawing.lines = {best_so_far(facts)};
  if (facts.reference() != nullptr)
    drawing.lines.push_back(level(facts, facts.value_of(*facts.reference()).value_or(0.0), last));
  drawing.marks = {kinds.ok, kinds.again, kinds.bounded, kinds.oom, kinds.failed, kinds.best};
  const std::string classes = report::text_of(report::counts_by_class(facts.run().history));
  drawing.description =
      fmt::format("{} trials: {}. The table of all trials has the numbers", facts.closed().size(), classes);
  const std::string foot = kinds.oom.marks.empty() && kinds.failed.marks.empty()
                               ? ""
                               : " Trials without a value stand at the foot of the drawing.";
  return figure({drawing.title, chart(drawing), escaped(fmt::format("{}.{}", classes, foot)), ""});
}

}  // namespace krigtune::page
