#include "fleet/choice.h"

#include <algorithm>
#include <functional>

namespace krigtune::fleet {
namespace {

double days_of(const ClusterPlan& plan) { return plan.best->days.value; }

double gpu_hours_of(const ClusterPlan& plan) { return plan.best->gpu_hours; }

// Returns the plan with the smallest cost among those that have one and meet the condition; the earlier among equal
// ones.
std::optional<std::size_t> least(const Fleet& fleet, const std::function<double(const ClusterPlan&)>& cost,
                                 const std::function<bool(const ClusterPlan&)>& counts) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const ClusterPlan& plan = fleet.plans[i];
    if (!plan.best || !counts(plan)) continue;
    if (!best || cost(plan) < cost(fleet.plans[*best])) best = i;
  }
  return best;
}

bool is_priced(const ClusterPlan& plan) { return plan.best->price.has_value(); }
double price_of(const ClusterPlan& plan) { return plan.best->price->value; }

std::vector<std::size_t> front_of(const Fleet& fleet) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    if (fleet.plans[i].best && is_priced(fleet.plans[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const ClusterPlan& first = fleet.plans[a];
    const ClusterPlan& second = fleet.plans[b];
    return std::pair(days_of(first), price_of(first)) < std::pair(days_of(second), price_of(second));
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || price_of(fleet.plans[i]) < price_of(fleet.plans[front.back()])) front.push_back(i);
  }
  return front;
}

}  // namespace

Choice choose(const Fleet& fleet, std::optional<double> deadline_days) {
  const auto all = [](const ClusterPlan&) { return true; };
  Choice choice;
  choice.fastest = least(fleet, days_of, all);
  choice.cheapest = least(fleet, price_of, is_priced);
  choice.front = front_of(fleet);
  if (!deadline_days) return choice;
  const bool by_price = fleet.has_prices();
  const auto counts = [by_price](const ClusterPlan& plan) { return !by_price || is_priced(plan); };
  const auto cost = by_price ? price_of : gpu_hours_of;
  choice.in_time =
      least(fleet, cost, [&](const ClusterPlan& plan) { return counts(plan) && days_of(plan) <= *deadline_days; });
  choice.surely_in_time = least(
      fleet, cost, [&](const ClusterPlan& plan) { return counts(plan) && plan.best->days.high <= *deadline_days; });
  const bool is_met = std::ranges::any_of(
      fleet.plans, [&](const ClusterPlan& plan) { return plan.best && days_of(plan) <= *deadline_days; });
  if (!is_met) choice.nearest = choice.fastest;
  return choice;
}

}  // namespace krigtune::fleet
