#pragma once
#include <string>
#include <vector>

#include "forecast/plan_study.h"

namespace krigtune::page {

/// What a page of a plan is made of: what was looked at, and what follows.
struct PlanSource {
  const session::Session& session;
  const forecast::PlanStudy& study;
  const forecast::PlanAnswers& answers;
  const std::vector<forecast::Candidate>& looked_at;
  std::string name;
  std::string made;  ///< when, for people
};

/// Before anything runs: what fits, a map of the memory over ZeRO stage and micro-batch, the Pareto front of memory and
/// speed, where memory goes. One self-contained file.
std::string plan_page(const PlanSource& source);

}  // namespace krigtune::page
