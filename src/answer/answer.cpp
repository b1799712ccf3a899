#include "answer/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "runner/runner.h"
#include "search/model/limit_models.h"
#include "session/objectives.h"

namespace krigtune::answer {
namespace {

constexpr double kSecondsPerHour = 3600.0;

std::string class_of(const trial::Outcome& outcome) {
  const std::string reason = trial::reason_text(outcome);
  return reason.empty() ? trial::status_text(outcome) : fmt::format("{} ({})", trial::status_text(outcome), reason);
}

std::optional<Reference> reference_of(const session::Objective& objective, const search::History& history,
                                      const std::optional<search::Recommendation>& best = std::nullopt) {
  std::optional<int> number = best ? std::optional(best->reference_trial) : std::nullopt;
  if (const auto trial = search::reference_trial(objective, history); trial && !number) number = trial->number;
  if (!number) return std::nullopt;
  const journal::Trial* trial = search::find_trial(history, *number);
  return Reference{*number, trial != nullptr && trial->proposal.strategy == search::kBaselineStrategy};
}

std::string reference_note_of(const session::Session& session, const search::History& history,
                              const std::optional<Reference>& reference) {
  if (!reference || reference->is_own) return "";
  const char* why = session.baseline ? "the baseline was not tried" : "the session has no baseline";
  for (const journal::Trial& trial : history) {
    if (trial.proposal.strategy != search::kBaselineStrategy || !session.baseline) continue;
    why = search::is_closed(trial) ? "the baseline failed" : "the baseline has no result yet";
    if (search::is_closed(trial)) break;
  }
  return fmt::format("{}; gains are relative to trial {}, the first that succeeded", why, reference->trial);
}

// The best measurement of a configuration need not be that of the reference trial, which may have been repeated.
bool is_reference(const search::History& history, const std::optional<search::Recommendation>& best) {
  if (!best) return false;
  const journal::Trial* reference = search::find_trial(history, best->reference_trial);
  return best->trial == best->reference_trial ||
         (reference != nullptr && reference->proposal.configuration == best->configuration);
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

std::optional<std::size_t> pick_of(const session::Session& session, const std::vector<search::FrontMember>& front,
                                   const std::optional<search::Recommendation>& best) {
  if (front.empty()) return std::nullopt;
  if (const std::optional<std::size_t> preferred = search::preferred(session, front)) return preferred;
  const auto member = std::find_if(front.begin(), front.end(), [&](const search::FrontMember& one) {
    return best && one.configuration == best->configuration;
  });
  return member == front.end() ? 0 : static_cast<std::size_t>(member - front.begin());
}

std::string unmet_preference(const session::Session& session, const std::vector<search::FrontMember>& front) {
  if (!session.preference || front.empty() || search::preferred(session, front)) return "";
  return fmt::format("no configuration of the front has {}; the best by {} is recommended", session.preference->text,
                     session.objective.metric);
}

std::string kept_limits(const session::Session& session, const search::History& history,
                        const std::optional<search::Recommendation>& best) {
  if (session.limits.empty() || !best) return "";
  std::vector<std::string> limits;
  for (const session::Objective& limit : session.limits) limits.push_back(session::limit_text(limit));
  int ran = 0;
  int broke = 0;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !std::holds_alternative<trial::Measured>(*trial.outcome)) continue;
    ++ran;
    if (!search::broken_limits(session, trial).empty()) ++broke;
  }
  return fmt::format("the {} to {}; {} of {} trials that ran did not",
                     session.others.empty() ? "best configuration keeps" : "configurations of the front keep",
                     join(limits, " and "), broke, ran);
}

}  // namespace

TrialGains::TrialGains(const session::Objective& objective, const search::History& history,
                       const std::optional<Reference>& reference)
    : objective_(objective), effects_(objective, history), reference_(reference) {
  const journal::Trial* trial = reference ? search::find_trial(history, reference->trial) : nullptr;
  if (trial != nullptr) base_ = effects_.value_of(*trial);
}

TrialGains::TrialGains(const session::Objective& objective, const search::History& history)
    : TrialGains(objective, history, reference_of(objective, history)) {}

std::optional<double> TrialGains::operator()(const journal::Trial& trial) const {
  const std::optional<double> value = effects_.value_of(trial);
  return value && base_ ? std::optional(search::gain_over(objective_, *value, *base_)) : std::nullopt;
}

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

std::ptrdiff_t ended_trials(const search::History& history) {
  return std::ranges::count_if(history, [](const journal::Trial& trial) { return trial.outcome.has_value(); });
}

Answer answer_of(const session::Session& session, const search::History& history,
                 const std::optional<search::Recommendation>& best) {
  return answer_of(session, history, best,
                   search::measured_means(session.objective, search::without_broken(session, history)));
}

Answer answer_of(const session::Session& session, const search::History& history,
                 const std::optional<search::Recommendation>& best, const std::vector<search::MeasuredMean>& means) {
  Answer answer;
  answer.trials = count_trials(history);
  answer.best = best;
  answer.reference = reference_of(session.objective, history, best);
  answer.reference_note = reference_note_of(session, history, answer.reference);
  answer.is_reference = is_reference(history, best);
  answer.raw_best = raw_best_of(session.objective, history, means, best);
  if (best && session.others.empty()) answer.runner_up = runner_up_of(session.objective, history, means, *best);
  // With several objectives another trial may be better by the first one for a reason that is not noise.
  if (!session.others.empty() && answer.raw_best && !answer.raw_best->is_recommended) answer.raw_best.reset();
  answer.front = search::front_of(session, history);
  answer.pick = pick_of(session, answer.front, best);
  answer.outlook = outlook_of(history);
  answer.gpu_hours = gpu_hours_of(session, history);
  answer.emulated_network = emulated_label(session);
  answer.remarks = {{"machine", search::run_effect_sentence(session.objective, history)},
                    {"preference", unmet_preference(session, answer.front)},
                    {"limits", kept_limits(session, history, best)}};
  std::erase_if(answer.remarks, [](const Remark& remark) { return remark.text.empty(); });
  return answer;
}

std::string emulated_label(const session::Session& session) {
  const auto& network = session.cluster.emulated_network;
  return network ? "emulated network " + network->name : "";
}

}  // namespace krigtune::answer
