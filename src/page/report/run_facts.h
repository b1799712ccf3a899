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
#include "search/trials/run_effects.h"
#include "session/memory_filter.h"

namespace krigtune::page {

/// What a report is made of. What it refers to must outlive it.
struct ReportSource {
  const report::RunView& run;
  const search::Candidates& candidates;
  const session::MemoryFilter& filter;
  std::string state;                     ///< why it ended, or that it runs: a sentence without its full stop
  std::string made;                      ///< when the page is made, for people
  std::filesystem::path place;           ///< the directory where the page lies: links are relative to it
  report::ComparedCurves compared = {};  ///< of the same session; without curves where there are none
};

/// What several sections ask, worked out once.
class RunFacts {
 public:
  explicit RunFacts(const ReportSource& source);

  const ReportSource& source() const { return source_; }
  const report::RunView& run() const { return source_.run; }
  const session::Session& session() const { return source_.run.session; }
  const session::Objective& objective() const { return session().objective; }
  /// nullptr: no trial is ok.
  const search::Recommendation* best() const { return run().best ? &*run().best : nullptr; }

  const std::vector<const journal::Trial*>& closed() const { return closed_; }
  /// nullptr: no trial is ok.
  const journal::Trial* reference() const { return reference_; }
  /// Of an ok trial, on the scale of the latest run.
  std::optional<double> value_of(const journal::Trial& trial) const { return effects_.value_of(trial); }

  const forecast::Forecaster& forecaster() const { return forecaster_; }
  /// nullptr: no trial is ok, or there are too many for a fit.
  const insight::Predictor* predictor() const { return predictor_.get(); }
  const std::optional<insight::Importance>& importance() const { return importance_; }

  std::string value_text(double value) const;  ///< with its unit
  std::string value_title() const;             ///< of an axis: "throughput (samples/s)"
  double shown(double value) const;            ///< in the unit of value_title()
  /// Whether the table of trials has it: the last ones, the recommended one and the one that gains are relative to.
  bool is_listed(const journal::Trial& trial) const;
  /// Of which the page has the command, the memory by term and the time by part, too: fewer, since these take room.
  bool is_detailed(const journal::Trial& trial) const;
  std::string link_of(const journal::Trial& trial) const;  ///< to its row; "": it has none
  /// "trial 7: zero_stage=3 micro_batch=4": of an ok one with its value, of others with what became of them.
  std::string tip_of(const journal::Trial& trial) const;

 private:
  bool is_among_last(const journal::Trial& trial, std::size_t most) const;

  const ReportSource& source_;
  search::RunEffects effects_;
  std::vector<const journal::Trial*> closed_;
  const journal::Trial* reference_ = nullptr;
  forecast::Forecaster forecaster_;
  std::unique_ptr<search::TrialModel> model_;
  std::unique_ptr<insight::Predictor> predictor_;  ///< of it
  std::optional<insight::Importance> importance_;
};

}  // namespace krigtune::page
