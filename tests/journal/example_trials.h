#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"

namespace krigtune {

/// A space with one parameter of each kind.
inline space::Space example_space() {
  const auto number = [](std::int64_t v) { return space::Value(v); };
  std::vector<space::Parameter> parameters(6);
  parameters[0] = {"zero_stage", {number(0), number(1), number(2), number(3)}, space::Scale::kRank, false};
  parameters[1] = {"micro_batch", {number(1), number(2), number(4), number(8)}, space::Scale::kLog, false};
  parameters[2] = {"workers", {number(2), number(4), number(6), number(8)}, space::Scale::kLinear, false};
  parameters[3] = {"overlap_comm", {space::Value(true), space::Value(false)}, space::Scale::kRank, false};
  parameters[4] = {
      "offload", {space::Value(std::string("none")), space::Value(std::string("cpu"))}, space::Scale::kRank, true};
  parameters[5] = {"lr", {}, space::Scale::kLog, false, space::RealRange{0.125, 2.5}};
  space::JobFacts facts;
  facts.well_known = false;
  return {parameters, facts};
}

inline space::Configuration example_configuration(std::int64_t stage, std::int64_t micro_batch, bool overlap) {
  return {{"zero_stage", stage},     {"micro_batch", micro_batch},    {"workers", std::int64_t{4}},
          {"overlap_comm", overlap}, {"offload", std::string("cpu")}, {"lr", 0.5}};
}

inline journal::Proposal example_proposal(std::int64_t stage, std::int64_t micro_batch) {
  journal::Proposal proposal;
  proposal.configuration = example_configuration(stage, micro_batch, stage % 2 == 0);
  proposal.configuration.set("gradient_accumulation_steps", std::int64_t{16} / micro_batch);
  proposal.strategy = "bayes";
  proposal.predicted_value = 1.0 / 3.0;
  proposal.predicted_memory = Bytes{123456789012345};
  proposal.suggest_s = 0.1;
  proposal.hyperparameters = {-0.1, 1e-300, 2.0 / 3.0, 5.0};
  return proposal;
}

struct ExampleTrial {
  journal::Proposal proposal;
  std::optional<trial::Outcome> outcome;
};

/// Every kind of ending, with and without optional parts, one that runs, and one asked by hand without the parameters
/// that do not exist in it. The first eight are in tests/golden/journal_0_1.log, so add new ones at the end.
inline std::vector<ExampleTrial> example_trials() {
  journal::Proposal bare;
  bare.configuration = example_configuration(2, 4, true);
  bare.strategy = "baseline";
  journal::Proposal conditional = example_proposal(1, 2);
  conditional.configuration = {{"zero_stage", std::int64_t{1}}, {"lr", 0.3}};
  conditional.asker = journal::Asker::kHand;
  conditional.trials_without_gain = 3;
  conditional.outlook = journal::Outlook{1.0 / 3.0, 2.0 / 7.0, 0.95, 1.0 / 7.0};
  const trial::Measured full{
      {{"throughput", 100.0 / 3.0}, {"step_time_s", 0.1}, {"steps", 40.0}}, 1e-3 / 7.0, Bytes{1 << 20}};
  return {
      {bare, trial::Measured{{{"throughput", 12.0}}, 0.0, std::nullopt}},
      {example_proposal(1, 8), full},
      {example_proposal(0, 8), trial::OutOfMemory{Bytes{9007199254740993}, false}},
      {example_proposal(0, 4), trial::OutOfMemory{std::nullopt, true}},
      {example_proposal(3, 1), trial::Failed{trial::FailureReason::kCrash, 139, "signal 11\nßtack \"trace\"\t\\\n"}},
      {example_proposal(3, 2), trial::Failed{trial::FailureReason::kTimeout, 143, ""}},
      {example_proposal(3, 4), trial::Bounded{0.1 + 0.2}},
      {example_proposal(2, 1), std::nullopt},
      {conditional, trial::Failed{trial::FailureReason::kInterrupted, 0, ""}}};
}

inline constexpr std::int64_t kExampleStartUs = 1'787'479'200'123'456;

/// Begins the next trial. No other process may have begun one.
inline int begin_next(journal::Journal& journal, const journal::Proposal& proposal, std::int64_t started_us) {
  return journal.begin(proposal, started_us, journal.trials().size()).value();
}

/// Writes the trials, one minute each.
inline void write_trials(journal::Journal& journal, const std::vector<ExampleTrial>& trials) {
  for (const ExampleTrial& trial : trials) {
    const std::int64_t started_us = kExampleStartUs + 60'000'000 * static_cast<std::int64_t>(journal.trials().size());
    const int number = begin_next(journal, trial.proposal, started_us);
    if (trial.outcome) journal.end(number, *trial.outcome, 1.1, started_us + 1'100'000);
  }
}

/// Returns everything in a proposal or an outcome, with all bits of doubles: equal texts mean equal values.
inline std::string full_text(const journal::Proposal& p) {
  std::string text = p.configuration.text() + "|" + p.strategy + fmt::format("|{:a}|", p.suggest_s);
  text += p.asker == journal::Asker::kHand ? "by hand|" : "|";
  if (p.predicted_value) text += fmt::format("{:a}", *p.predicted_value);
  text += "|";
  if (p.predicted_memory) text += fmt::format("{}", p.predicted_memory->count);
  if (p.trials_without_gain) text += fmt::format("|{}", *p.trials_without_gain);
  if (p.outlook) {
    text += fmt::format("|{:a} {:a} {:a}", p.outlook->expected_gain, p.outlook->regret_bound, p.outlook->confidence);
    if (p.outlook->bound_of_new) text += fmt::format(" {:a}", *p.outlook->bound_of_new);
  }
  for (const double h : p.hyperparameters) text += fmt::format("|{:a}", h);
  return text;
}

inline std::string full_text(const std::optional<trial::Outcome>& outcome) {
  if (!outcome) return "running";
  std::string text = std::string(trial::status_text(*outcome)) + "|" + trial::reason_text(*outcome);
  if (const auto* m = std::get_if<trial::Measured>(&*outcome)) {
    for (const auto& [name, value] : m->metrics) text += fmt::format("|{}={:a}", name, value);
    text += fmt::format("|{:a}|{}", m->value_sem, m->peak_memory ? m->peak_memory->count : -1);
  } else if (const auto* oom = std::get_if<trial::OutOfMemory>(&*outcome)) {
    text += fmt::format("|{}|{}", oom->requested ? oom->requested->count : -1, oom->predicted);
  } else if (const auto* failed = std::get_if<trial::Failed>(&*outcome)) {
    text += fmt::format("|{}|{}", failed->exit_code, failed->last_lines);
  } else {
    text += fmt::format("|{:a}", std::get<trial::Bounded>(*outcome).at_best);
  }
  return text;
}

inline std::string full_text(const journal::Trial& trial) {
  return fmt::format("{} {} {:a} {}", trial.number, full_text(trial.proposal), trial.wall_s, trial.started_at) + " " +
         full_text(trial.outcome);
}

}  // namespace krigtune
