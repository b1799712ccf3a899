#include "result/result_files.h"

#include <algorithm>

#include "core/files.h"
#include "deepspeed/result/ds_result.h"
#include "jobs/result/changes.h"
#include "result/writers.h"
#include "run/run_directory.h"
#include "search/model/limit_models.h"

namespace krigtune::result {
namespace {

constexpr std::ptrdiff_t kGrowth = 10;  // a recommendation may ignore one tenth as many trials as it knows

std::vector<std::string> write_files(const report::RunView& run, bool with_trials) {
  std::vector<std::string> written;
  for (const ResultFile& file : result_files()) {
    if (!with_trials && file.text == trials_csv) continue;
    const std::optional<std::string> text = file.text(run);
    if (!text) continue;
    write_atomically(run.directory / file.name, *text);
    written.emplace_back(file.name);
  }
  const std::vector<std::string> job_files = write_optimal_job_files(run);
  written.insert(written.end(), job_files.begin(), job_files.end());
  return written;
}

}  // namespace

std::vector<ResultFile> result_files() {
  return {{"trials.csv", trials_csv},
          {"best.json", best_json},
          {kDsConfigOptimal, ds_config_beside_command},
          {"ds_config_diff.md", deepspeed::ds_config_difference},
          {"changes.md", jobs::changes_of_job},
          {kConfigFile, config_optimal},
          {"cmd_optimal.txt", cmd_optimal}};
}

std::vector<std::string> write_result_files(const report::RunView& run) { return write_files(run, true); }

Recommender make_recommender(const session::Session& session, const search::Candidates& candidates,
                             std::uint64_t seed) {
  return [&session, &candidates, seed](const search::History& history) {
    return search::recommend(session, candidates, history, seed);
  };
}

ResultFileWriter::ResultFileWriter(report::RunView run, Recommender recommend)
    : run_(std::move(run)), recommend_(std::move(recommend)), journal_(run::journal_path(run_.directory)) {}

void ResultFileWriter::trial_ended(const journal::Trial& /*trial*/, const search::History& history) {
  write(history, false);
}

void ResultFileWriter::write(const search::History& history) { write(history, true); }

ResultFileWriter::Basis ResultFileWriter::basis_of(const search::History& history,
                                                   const std::vector<search::MeasuredMean>& means) const {
  const session::Objective& objective = run_.session.objective;
  Basis basis{answer::ended_trials(history), std::nullopt, std::nullopt};
  if (const std::optional<journal::Trial> reference = search::reference_trial(objective, history))
    basis.reference = reference->number;
  for (const search::MeasuredMean& mean : means) {
    if (!basis.best_mean || objective.better(mean.value, basis.best_mean->value)) basis.best_mean = mean;
  }
  return basis;
}

// A fit takes time cubic in the number of trials. Fitting after each of n trials would take n^4 / 4; this rule takes
// only a few times n^3.
bool ResultFileWriter::is_outdated(const Basis& now) const {
  return now.reference != basis_->reference || now.best_mean != basis_->best_mean ||
         kGrowth * (now.closed - basis_->closed) >= basis_->closed;
}

void ResultFileWriter::write(const search::History& history, bool all_trials_count) {
  const search::History* known = &history;
  while (true) {
    const std::vector<search::MeasuredMean> means =
        search::measured_means(run_.session.objective, search::without_broken(run_.session, *known));
    const Basis now = basis_of(*known, means);
    if (!basis_ || (all_trials_count ? now.closed != basis_->closed : is_outdated(now))) {
      best_ = recommend_(*known);
      basis_ = now;
    }
    const report::RunView run = run_.with(*known, answer::answer_of(run_.session, *known, best_, means));
    trials_csv_.write(run, all_trials_count);
    write_files(run, false);
    // Other processes may have closed trials in the meantime.
    const search::History& later = journal_.look();
    if (answer::ended_trials(later) <= now.closed) return;
    known = &later;
  }
}

}  // namespace krigtune::result
