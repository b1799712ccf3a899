#include "krigtune/tuning.h"

#include "answer/answer.h"
#include "core/clock.h"
#include "core/error.h"
#include "forecast/plan_study.h"
#include "run/by_hand.h"
#include "run/prepared.h"
#include "run/run_directory.h"
#include "search/model/best.h"
#include "session/objectives.h"

namespace krigtune {
namespace {

ParameterValues values_of(const space::Configuration& configuration) {
  return {configuration.begin(), configuration.end()};
}

trial::Outcome outcome_of(const TrialResult& result, const session::Session& session) {
  switch (result.status) {
    case TrialResult::Status::kOutOfMemory:
      return trial::OutOfMemory{};
    case TrialResult::Status::kFailed:
      return trial::Failed{trial::FailureReason::kCrash, 0, result.last_lines};
    case TrialResult::Status::kOk:
      break;
  }
  trial::Measured measured;
  measured.metrics = result.metrics;
  measured.metrics[session.objective.field] = result.value;
  measured.value_sem = result.value_sem;
  if (result.peak_memory_bytes) measured.peak_memory = Bytes{*result.peak_memory_bytes};
  session::name_peak_memory(session, measured);
  return measured;
}

}  // namespace

struct Tuning::Impl {
  run::Prepared prepared;
  std::filesystem::path directory;
  run::LoopOptions options;
  SystemClock clock;
  std::unique_ptr<run::HandRun> run;  ///< nullptr before the first ask()

  Impl(session::Session read, std::filesystem::path path, std::uint64_t seed)
      : prepared(std::move(read)), directory(std::move(path)) {
    options.seed = seed;
  }
  const session::Session& session() const { return prepared.session; }
};

Tuning::Tuning(const std::filesystem::path& session_file, std::filesystem::path directory, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(session::load_session(session_file), std::move(directory), seed)) {}
Tuning::~Tuning() = default;
Tuning::Tuning(Tuning&&) noexcept = default;
Tuning& Tuning::operator=(Tuning&&) noexcept = default;

std::optional<AskedTrial> Tuning::ask() {
  if (!impl_->run) {
    impl_->run = std::make_unique<run::HandRun>(impl_->session(), impl_->prepared.candidates, impl_->directory,
                                                impl_->options, impl_->clock);
  }
  const std::optional<journal::Trial> asked = impl_->run->ask();
  if (!asked) return std::nullopt;
  const journal::Proposal& proposal = asked->proposal;
  AskedTrial trial{asked->number, values_of(proposal.configuration), proposal.predicted_value, std::nullopt};
  if (proposal.predicted_memory) trial.predicted_memory_bytes = proposal.predicted_memory->count;
  return trial;
}

void Tuning::tell(int trial, const TrialResult& result) {
  run::tell_by_hand(impl_->session(), impl_->directory, trial, outcome_of(result, impl_->session()), impl_->clock);
}

std::optional<Best> Tuning::best() const {
  const std::filesystem::path journal = run::journal_path(impl_->directory);
  if (!std::filesystem::exists(journal)) return std::nullopt;
  const search::History history = journal::read_journal(journal);
  const answer::Answer answer =
      answer::answer_of(impl_->session(), history,
                        search::recommend(impl_->session(), impl_->prepared.candidates, history, impl_->options.seed));
  if (!answer.best) return std::nullopt;
  const search::Recommendation& best = *answer.best;
  Best made{best.trial, values_of(best.configuration), best.value, best.lower_95, best.upper_95, best.gain, {}};
  for (const answer::Remark& remark : answer.remarks) made.remarks.push_back(remark.text);
  return made;
}

PlanAnswer Tuning::plan() const {
  const forecast::Forecaster forecaster(impl_->session(), impl_->prepared.filter);
  const forecast::PlanStudy study = forecast::study_plan(impl_->session(), forecaster, {});
  PlanAnswer answer{study.looked_at(), study.counts.fit, study.counts.uncertain, study.counts.too_large, {}, {}};
  if (!study.best.empty()) {
    answer.fastest = values_of(study.best.front().configuration);
    if (study.best.front().forecast.cost) {
      answer.fastest_step_time_s = study.best.front().forecast.cost->step_time_s;
    }
  }
  return answer;
}

}  // namespace krigtune
