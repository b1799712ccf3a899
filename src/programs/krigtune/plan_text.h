#pragma once
#include <optional>
#include <ostream>

#include "cost/time/step_cost.h"
#include "forecast/plan_study.h"
#include "programs/krigtune/plan_beside.h"
#include "search/model/job_summary.h"

namespace krigtune::cli {

/// The output of `krigtune plan`, section by section, in lines of at most 100 columns if the names are short enough.
struct PlanText {
  std::ostream& out;
  const session::Session& session;
  const forecast::PlanStudy& study;
  const forecast::PlanAnswers& answers;
  /// What tune assumes before the first trial; empty if the session describes the job, or if no parameter's name speaks
  /// of a training step.
  const std::optional<search::JobSummary>& assumed;
  const BesidePlan& beside;
};

/// Prints the part of the job that does not depend on the machine. Requires a workload.
void print_training(std::ostream& out, const session::Session& session);
void print_job(const PlanText& text);  ///< without a workload: what is assumed instead, or nothing
void print_parameters(const PlanText& text);
/// Prints nothing if the session is complete.
void print_assumptions(std::ostream& out, const session::Session& session);
void print_space(const PlanText& text);
void print_memory(const PlanText& text);
/// Prints the predicted best configurations and what follows from them, or one line that says why there are none.
void print_best(const PlanText& text, const forecast::Forecaster& forecaster);
void print_batch(const PlanText& text);
void print_communication(const PlanText& text);
void print_expected_time(const PlanText& text);

/// Prints a line for each part of a step that is not negligible.
void print_step_shares(std::ostream& out, const cost::StepCost& cost);

}  // namespace krigtune::cli
