#include "run/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.h"
#include "search/model/best.h"
#include "search/trials/objective_scale.h"

namespace krigtune::run {
namespace {

constexpr double kMatters = 0.03;     // a larger slowdown or spread is reported
constexpr double kNearTheBest = 0.1;  // a configuration that is worse by more cannot be the best
constexpr std::size_t kAlone = 3;     // number of configurations measured alone at the end

bool is_measured(const journal::Trial& trial) {
  return trial.outcome && std::holds_alternative<trial::Measured>(*trial.outcome);
}

std::vector<const journal::Trial*> together(const search::History& history) {
  std::vector<const journal::Trial*> trials;
  for (const journal::Trial& trial : history) {
    if (search::counts(trial) && trial.proposal.strategy == search::kTogetherStrategy) trials.push_back(&trial);
  }
  return trials;
}

}  // namespace

SideBySide::SideBySide(const session::Session& session, const search::Candidates& candidates, int at_a_time,
                       bool is_checked)
    : session_(session),
      candidates_(candidates),
      at_a_time_(at_a_time),
      is_checked_(is_checked && at_a_time >= 2 && session.baseline) {}

// Returns the first trial that counts, if it is the baseline. A session that was begun without this check continues
// without.
const journal::Trial* SideBySide::baseline_alone(const search::History& history) const {
  const auto first = std::find_if(history.begin(), history.end(), search::counts);
  return first != history.end() && first->proposal.strategy == search::kBaselineStrategy ? &*first : nullptr;
}

SideBySide::Turn SideBySide::turn(const search::History& history) const {
  const journal::Trial* alone = is_checked_ ? baseline_alone(history) : nullptr;
  if (alone == nullptr) return {};
  // A trial that somebody runs by hand is not awaited.
  if (!alone->outcome) return {.waits = alone->proposal.asker == journal::Asker::kTune};
  if (!is_measured(*alone)) return {};
  const std::vector<const journal::Trial*> places = together(history);
  const auto others = std::any_of(history.begin(), history.end(), [&](const journal::Trial& trial) {
    return search::counts(trial) && &trial != alone && trial.proposal.strategy != search::kTogetherStrategy;
  });
  const bool has_ended =
      std::any_of(places.begin(), places.end(), [](const journal::Trial* trial) { return trial->outcome.has_value(); });
  if (others || has_ended || static_cast<int>(places.size()) >= at_a_time_) {
    const bool runs =
        std::any_of(places.begin(), places.end(), [](const journal::Trial* trial) { return !trial->outcome; });
    return {.waits = runs};
  }
  journal::Proposal again;
  again.configuration = alone->proposal.configuration;
  again.strategy = search::kTogetherStrategy;
  again.repeat_of = alone->number;
  again.machine = alone->proposal.machine;
  return {.waits = false, .proposal = std::move(again)};
}

// Measuring alone counts as the later run, although it comes first, because values are converted to the scale of the
// latest.
int SideBySide::run_of(const journal::Proposal& proposal, const search::History& history) const {
  const journal::Trial* alone = baseline_alone(history);
  const bool is_first = is_checked_ && proposal.strategy == search::kBaselineStrategy &&
                        std::none_of(history.begin(), history.end(), search::counts);
  if (is_first) return proposal.run + 1;
  if (proposal.strategy == search::kTogetherStrategy) return alone->proposal.run - 1;
  const bool is_compared = alone != nullptr && at_a_time_ >= 2 && !together(history).empty();
  if (!is_compared || proposal.run != alone->proposal.run) return proposal.run;
  return proposal.strategy == search::kAloneStrategy ? proposal.run : proposal.run - 1;
}

std::optional<journal::Proposal> SideBySide::next_alone(const search::History& history) const {
  const journal::Trial* alone = baseline_alone(history);
  if (alone == nullptr || at_a_time_ < 2 || together(history).empty()) return std::nullopt;
  std::vector<search::MeasuredMean> means = search::measured_means(session_.objective, history);
  std::sort(means.begin(), means.end(), [&](const search::MeasuredMean& a, const search::MeasuredMean& b) {
    return session_.objective.better(a.value, b.value);
  });
  means.resize(std::min(means.size(), kAlone));
  for (const search::MeasuredMean& mean : means) {
    if (search::gain_over(session_.objective, means.front().value, mean.value) > 1.0 + kNearTheBest) break;
    const journal::Trial& trial = history[mean.best];
    const std::string key = candidates_.key(trial.proposal.configuration);
    const auto is_it = [&](const journal::Trial& other) {
      return search::counts(other) && other.proposal.run == alone->proposal.run &&
             candidates_.key(other.proposal.configuration) == key;
    };
    if (std::any_of(history.begin(), history.end(), is_it)) continue;
    journal::Proposal again;
    again.configuration = trial.proposal.configuration;
    again.strategy = search::kAloneStrategy;
    again.repeat_of = trial.number;
    again.run = alone->proposal.run;
    again.machine = trial.proposal.machine;
    return again;
  }
  return std::nullopt;
}

std::optional<Interference> interference_of(const session::Objective& objective, const search::History& history) {
  const std::vector<const journal::Trial*> places = together(history);
  std::vector<double> slowdowns;  // logarithms
  for (const journal::Trial* trial : places) {
    const journal::Trial* alone = search::find_trial(history, trial->proposal.repeat_of.value_or(-1));
    const std::optional<double> value = search::value_of(*trial, objective);
    const std::optional<double> before = alone == nullptr ? std::nullopt : search::value_of(*alone, objective);
    if (!value || !before || !(*value > 0.0) || !(*before > 0.0)) continue;
    slowdowns.push_back(std::log(objective.maximize ? *before / *value : *value / *before));
  }
  if (slowdowns.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(slowdowns.size());
  double mean = 0.0;
  for (const double slowdown : slowdowns) mean += slowdown / count;
  double square = 0.0;
  for (const double slowdown : slowdowns) square += (slowdown - mean) * (slowdown - mean) / (count - 1.0);
  return Interference{static_cast<int>(slowdowns.size()), std::expm1(mean), std::sqrt(square)};
}

std::optional<Bytes> host_memory_of_a_trial(const session::Session& session, const search::Candidates& candidates,
                                            bool on_processors) {
  constexpr std::size_t kLooks = 64;
  std::vector<space::Configuration> looked_at;
  if (session.baseline) looked_at.push_back(*session.baseline);
  const std::size_t count = candidates.listed() ? candidates.size() : 0;
  for (std::size_t i = 0; i < std::min(count, kLooks); ++i) looked_at.push_back(candidates[i * count / kLooks]);
  std::optional<Bytes> most;
  for (const space::Configuration& configuration : looked_at) {
    const std::optional<cost::MemoryEstimate> estimate = candidates.filter().estimate(configuration);
    if (!estimate) continue;
    const std::int64_t ranks = on_processors ? session.cluster.gpus_per_node : 0;
    const Bytes host{estimate->host.count + ranks * estimate->expected.count};
    if (!most || *most < host) most = host;
  }
  return most;
}

std::string memory_warning(Bytes of_a_trial, int at_a_time, Bytes machine) {
  const std::int64_t share = machine.count / std::max(at_a_time, 1);
  if (at_a_time < 2 || of_a_trial.count <= share) return "";
  const std::int64_t fit = std::max<std::int64_t>(machine.count / std::max<std::int64_t>(of_a_trial.count, 1), 1);
  return fmt::format(
      "a trial takes up to {} of this machine's memory, and {} at a time have {} each: the kernel may kill them; use "
      "--jobs {}, or \"memory\": {{\"host_limit_gib\": {:.4g}}} to leave such configurations out",
      to_string(of_a_trial), at_a_time, to_string(Bytes{share}), fit, to_gib(Bytes{share}));
}

std::string interference_sentence(const Interference& interference) {
  const bool is_slower = interference.slowdown >= 0.0;
  return fmt::format(
      "{} trials at a time: each is {:.1f} % {} than alone, and they differ by {:.1f} % from place to place",
      interference.at_a_time, 100.0 * std::abs(interference.slowdown), is_slower ? "slower" : "faster",
      100.0 * interference.stddev);
}

std::string interference_advice(const Interference& interference) {
  if (interference.slowdown <= kMatters && interference.stddev <= kMatters) return "";
  const int fewer = std::max(interference.at_a_time / 2, 1);
  return fmt::format(
      "{} at a time complete {:.1f} times as many trials as one, with more noise: the model includes it, and the best "
      "are measured again alone at the end; --jobs {} measures more precisely",
      interference.at_a_time, interference.at_a_time / (1.0 + interference.slowdown), fewer);
}

}  // namespace krigtune::run
