#pragma once
#include <ostream>

#include "cost/time/step_cost.h"
#include "forecast/plan_study.h"

namespace krigtune::cli {

/// What `krigtune plan` prints, section by section, in lines of at most 100 columns where names allow it.
struct PlanText {
  std::ostream& out;
  const session::Session& session;
  const forecast::PlanStudy& study;
  const forecast::PlanAnswers& answers;
};

void print_job(const PlanText& text);  ///< nothing without a workload
void print_parameters(const PlanText& text);
void print_assumptions(const PlanText& text);  ///< nothing where the session says it all
void print_space(const PlanText& text);
void print_memory(const PlanText& text);
/// The predicted best and what follows from it, or one line that says why there is none.
void print_best(const PlanText& text, const forecast::Forecaster& forecaster);
void print_batch(const PlanText& text);
void print_communication(const PlanText& text);
void print_expected_time(const PlanText& text);

/// A line for each part of a step, but for those that are next to nothing.
void print_step_shares(std::ostream& out, const cost::StepCost& cost);

}  // namespace krigtune::cli
