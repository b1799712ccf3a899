#include <fmt/format.h>

#include "core/text.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/labels.h"
#include "runner/runner.h"

namespace krigtune::page {
namespace {

std::string machine(const RunFacts& facts) {
  const workload::ClusterSpec& cluster = facts.session().cluster;
  return fmt::format("Trials are of {} on {}, by the runner {}.", counted(cluster.ranks(), "rank"),
                     counted(cluster.nodes, "node"), runner::traits_of(facts.session().runner).name);
}

std::string assumed(const session::Assumption& one) {
  return fmt::format("Assumed, because the session does not say: {} = {}{}.", one.name, space::to_string(one.value),
                     one.where.empty() ? "" : " " + one.where);
}

}  // namespace

std::string limits(const RunFacts& facts) {
  std::vector<std::string> items = {escaped(machine(facts))};
  for (const session::Assumption& one : facts.session().assumptions) items.push_back(escaped(assumed(one)));
  if (!facts.forecaster().knows_time()) {
    items.push_back(escaped(fmt::format("Times are not predicted: {}.", facts.forecaster().why_no_time())));
  }
  if (facts.predictor() != nullptr) {
    items.push_back(
        "Expectations, effects and slices are those of the surrogate: a Gaussian process over what was measured. Where "
        "nothing was measured near by they rest on the cost model and on its prior; the intervals say how much.");
  }
  if (facts.predictor() == nullptr && facts.best() != nullptr) {
    items.push_back(
        "There are too many trials for a fit of the surrogate each time that this page is made: effects and "
        "slices are left out.");
  }
  return list(items);
}

}  // namespace krigtune::page
