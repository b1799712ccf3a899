#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forecast/forecast.h"
#include "insight/importance.h"
#include "insight/predictions.h"
#include "report/compared_curves.h"
#include "report/plot.h"
#include "report/run_view.h"
#include "search/candidates/candidates.h"
#include "search/model/job_summary.h"
#include "search/trials/run_effects.h"
#include "session/memory_filter.h"

namespace krigtune::page {

/// The input of a report. Everything that it refers to must outlive it.
struct ReportSource {
  const report::RunView& run;
  const search::Candidates& candidates;
  const session::MemoryFilter& filter;
  /// Why the session ended, or that it is running: a sentence without its full stop.
  std::string state;
  std::string made;                      ///< time of creation, for people
  std::filesystem::path place;           ///< directory of the page; links are relative to it
  report::ComparedCurves compared = {};  ///< of the same session; has no curves if there is no comparison
};

/// Facts that several sections need, computed once.
class RunFacts {
 public:
  explicit RunFacts(const ReportSource& source);

  const ReportSource& source() const { return source_; }
  const report::RunView& run() const { return source_.run; }
  const session::Session& session() const { return source_.run.session; }
  const session::Objective& objective() const { return session().objective; }
  const answer::Answer& answer() const { return run().answer; }
  /// Returns nullptr if no trial has succeeded.
  const search::Recommendation* best() const { return answer().best ? &*answer().best : nullptr; }

  const std::vector<const journal::Trial*>& closed() const { return closed_; }
  /// Returns nullptr if no trial has succeeded.
  const journal::Trial* reference() const { return reference_; }
  /// Returns the value of a successful trial, on the scale of the latest run.
  std::optional<double> value_of(const journal::Trial& trial) const { return effects_.value_of(trial); }

  const forecast::Forecaster& forecaster() const { return forecaster_; }
  /// Returns nullptr if no trial has succeeded, or if there are too many for a fit.
  const insight::Predictor* predictor() const { return predictor_.get(); }
  const std::optional<insight::Importance>& importance() const { return importance_; }
  /// Returns what is believed about the job; empty if the models know nothing of it.
  const std::optional<search::JobSummary>& job() const { return job_; }

  std::string value_text(double value) const;  ///< with its unit
  std::string value_title() const;             ///< of an axis: "throughput (samples/s)"
  double shown(double value) const;            ///< in the unit of value_title()
  /// Returns whether the table of trials contains it: the last ones, the recommended one and the reference of gains.
  bool is_listed(const journal::Trial& trial) const;
  /// Returns whether the page also shows its command, memory by term and time by part; these take space, so there are
  /// fewer such trials.
  bool is_detailed(const journal::Trial& trial) const;
  std::string link_of(const journal::Trial& trial) const;  ///< link to its row; "" if it has none
  /// Returns "trial 7: zero_stage=3 micro_batch=4", with the value of a successful trial or the result of another one.
  std::string tip_of(const journal::Trial& trial) const;

 private:
  bool is_among_last(const journal::Trial& trial, std::size_t most) const;

  const ReportSource& source_;
  search::RunEffects effects_;
  std::vector<const journal::Trial*> closed_;
  const journal::Trial* reference_ = nullptr;
  forecast::Forecaster forecaster_;
  std::unique_ptr<search::TrialModel> model_;
  std::unique_ptr<insight::Predictor> predictor_;  ///< for model_
  std::optional<insight::Importance> importance_;
  std::optional<search::JobSummary> job_;
};

}  // namespace krigtune::page
