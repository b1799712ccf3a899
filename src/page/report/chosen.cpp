#include "page/report/chosen.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/labels.h"

namespace krigtune::page {
namespace {

class Choice {
 public:
  Choice(const RunFacts& facts, std::size_t most) : facts_(facts), most_(most) {}

  void add(const journal::Trial* trial, const std::string& role) {
    const bool is_there = std::any_of(chosen_.begin(), chosen_.end(), [&](const ChosenTrial& one) {
      return one.trial->proposal.configuration == trial->proposal.configuration;
    });
    if (is_there || chosen_.size() == most_) return;
    chosen_.push_back({trial, fmt::format("trial {}{}: {}", trial->number, role, text_of(*trial))});
  }
  std::vector<ChosenTrial> take() { return std::move(chosen_); }

 private:
  // For any other configuration returns its differences from the recommended one.
  std::string text_of(const journal::Trial& trial) const {
    const space::Configuration& configuration = trial.proposal.configuration;
    if (facts_.best() == nullptr || configuration == facts_.best()->configuration)
      return report::short_text(facts_.session(), configuration);
    std::string text;
    for (const auto& [name, value] : configuration) {
      const space::Value* best = facts_.best()->configuration.find(name);
      if (best == nullptr || !space::same_value(*best, value))
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, space::to_string(value));
    }
    return text;
  }

  const RunFacts& facts_;
  std::size_t most_;
  std::vector<ChosenTrial> chosen_;
};

}  // namespace

std::vector<ChosenTrial> chosen_trials(const RunFacts& facts, std::size_t most, bool also_without_value) {
  Choice choice(facts, most);
  if (facts.best() != nullptr) {
    if (const journal::Trial* trial = search::find_trial(facts.run().history, facts.best()->trial))
      choice.add(trial, " (recommended)");
  }
  if (facts.reference() != nullptr) choice.add(facts.reference(), facts.answer().reference->is_own ? " (yours)" : "");
  if (also_without_value) {
    int oom = 0;
    for (const journal::Trial* trial : facts.closed()) {
      if (!std::holds_alternative<trial::OutOfMemory>(*trial->outcome) || ++oom > 2) continue;
      choice.add(trial, " (out of memory)");
    }
  }
  std::vector<const journal::Trial*> measured;
  for (const journal::Trial* trial : facts.closed()) {
    if (facts.value_of(*trial)) measured.push_back(trial);
  }
  std::stable_sort(measured.begin(), measured.end(), [&](const journal::Trial* a, const journal::Trial* b) {
    return facts.objective().better(*facts.value_of(*a), *facts.value_of(*b));
  });
  for (const journal::Trial* trial : measured) choice.add(trial, "");
  return choice.take();
}

}  // namespace krigtune::page
