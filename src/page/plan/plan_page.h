#pragma once
#include <string>
#include <vector>

#include "forecast/plan_study.h"
#include "opinion/second_opinion.h"

namespace krigtune::page {

/// The input of a plan's page.
struct PlanSource {
  const session::Session& session;
  const forecast::PlanStudy& study;
  const forecast::PlanAnswers& answers;
  const std::vector<forecast::Candidate>& looked_at;
  const std::vector<opinion::NearRun>& near;  ///< published runs of similar jobs
  std::vector<std::string> whole_run;         ///< how long the whole training takes; empty: no amount of data is stated
  std::string name;
  std::string made;  ///< time of creation, for people
};

/// Returns one self-contained file about a session before any trial runs: what fits, a map of the memory over ZeRO
/// stage and micro-batch, the Pareto front of memory and speed, where memory goes, what published runs say, and how
/// long the whole training takes.
std::string plan_page(const PlanSource& source);

}  // namespace krigtune::page
