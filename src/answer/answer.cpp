#include "answer/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/runner.h"
#include "search/trials/run_effects.h"

namespace krigtune::answer {
namespace {

constexpr double kSecondsPerHour = 3600.0;

std::string class_of(const trial::Outcome& outcome) {
  const std::string reason = trial::reason_text(outcome);
  return reason.empty() ? trial::status_text(outcome) : fmt::format("{} ({})", trial::status_text(outcome), reason);
}

std::optional<Reference> reference_of(const session::Session& session, const search::History& history,
                                      const std::optional<search::Recommendation>& best) {
  std::optional<journal::Trial> trial;
  if (!best) {
    trial = search::reference_trial(session.objective, history);
  } else if (const journal::Trial* found = search::find_trial(history, best->reference_trial)) {
    trial = *found;
  }
  if (!trial) return best ? std::optional(Reference{best->reference_trial}) : std::nullopt;
  return Reference{trial->number, trial->proposal.strategy == search::kBaselineStrategy};
}

// `means`: of all measured configurations.
std::optional<RunnerUp> runner_up_of(const session::Objective& objective, const search::History& history,
                                     const std::vector<search::MeasuredMean>& means,
                                     const search::Recommendation& best) {
  const search::MeasuredMean* next = nullptr;
  for (const search::MeasuredMean& mean : means) {
    if (next != nullptr && !objective.better(mean.value, next->value)) continue;
    if (!(history[mean.best].proposal.configuration == best.configuration)) next = &mean;
  }
  if (next == nullptr) return std::nullopt;
  const journal::Trial& trial = history[next->best];
  const bool is_inside = next->value >= best.lower_95 && next->value <= best.upper_95;
  // A better single measurement that the model does not believe is within noise too.
  return RunnerUp{trial.number, trial.proposal.configuration, next->value,
                  is_inside || objective.better(next->value, best.value)};
}

std::optional<RawBest> raw_best_of(const session::Objective& objective, const search::History& history,
                                   const std::vector<search::MeasuredMean>& means,
                                   const std::optional<search::Recommendation>& best) {
  const search::RunEffects effects(objective, history);
  std::optional<RawBest> raw;
  for (const search::MeasuredMean& mean : means) {
    const journal::Trial& trial = history[mean.best];
    const double value = *effects.value_of(trial);
    const bool is_earlier = raw && value == raw->value && trial.number < raw->trial;
    if (raw && !is_earlier && !objective.better(value, raw->value)) continue;
    raw = RawBest{trial.number, value, best && best->configuration == trial.proposal.configuration};
  }
  return raw;
}

std::optional<LastOutlook> outlook_of(const search::History& history) {
  const auto last = std::find_if(history.rbegin(), history.rend(),
                                 [](const journal::Trial& trial) { return trial.proposal.outlook.has_value(); });
  return last == history.rend() ? std::nullopt : std::optional(LastOutlook{last->number, *last->proposal.outlook});
}

std::optional<double> gpu_hours_of(const session::Session& session, const search::History& history) {
  if (!runner::traits_of(session.runner).runs_programs) return std::nullopt;
  double seconds = 0.0;
  for (const journal::Trial& trial : history) seconds += trial.outcome ? trial.wall_s : 0.0;
  return seconds / kSecondsPerHour * static_cast<double>(session.cluster.ranks());
}

}  // namespace

TrialCounts count_trials(const search::History& history) {
  TrialCounts counts{0, search::closed_trials(history), {{"ok", 0}, {"oom", 0}, {"failed", 0}, {"bounded", 0}}, {}};
  std::vector<ClassCount>& classes = counts.by_class;
  classes = {{"ok", "ok"}};
  for (const journal::Trial& trial : history) {
    if (!search::is_closed(trial)) continue;
    ++counts.closed;
    const std::string name = class_of(*trial.outcome);
    const auto found =
        std::find_if(classes.begin(), classes.end(), [&](const ClassCount& c) { return c.name == name; });
    if (found == classes.end()) {
      classes.push_back({name, trial::status_text(*trial.outcome), 1, trial.number});
    } else {
      ++found->count;
    }
  }
  std::stable_sort(classes.begin() + 1, classes.end(),
                   [](const ClassCount& a, const ClassCount& b) { return a.count > b.count; });
  if (classes.front().count == 0) classes.erase(classes.begin());
  for (auto& [status, count] : counts.by_status) {
    for (const ClassCount& one : classes) count += one.status == status ? one.count : 0;
  }
  return counts;
}

Answer answer_of(const session::Session& session, const search::History& history,
                 const std::optional<search::Recommendation>& best) {
  return answer_of(session, history, best, search::measured_means(session.objective, history));
}

Answer answer_of(const session::Session& session, const search::History& history,
                 const std::optional<search::Recommendation>& best, const std::vector<search::MeasuredMean>& means) {
  Answer answer;
  answer.trials = count_trials(history);
  answer.best = best;
  answer.reference = reference_of(session, history, best);
  if (best) answer.runner_up = runner_up_of(session.objective, history, means, *best);
  answer.raw_best = raw_best_of(session.objective, history, means, best);
  answer.front = search::front_of(session, history);
  answer.outlook = outlook_of(history);
  answer.gpu_hours = gpu_hours_of(session, history);
  answer.emulated_network = emulated_label(session);
  answer.machine = search::run_effect_sentence(session.objective, history);
  return answer;
}

std::string emulated_label(const session::Session& session) {
  const auto& network = session.cluster.emulated_network;
  return network ? "emulated network " + network->name : "";
}

}  // namespace krigtune::answer
