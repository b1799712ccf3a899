#pragma once
#include <optional>
#include <ostream>
#include <vector>

#include "core/json.h"
#include "fleet/sureness.h"
#include "fleet/whole_run.h"
#include "forecast/plan_study.h"
#include "opinion/second_opinion.h"

namespace krigtune::cli {

/// The whole training with the configuration that the plan analyses.
struct PlannedRun {
  double tokens = 0.0;
  std::size_t row = 0;  ///< of the plan's best, from 1
  fleet::StepTimeRange range;
  std::optional<fleet::WholeRun> whole;  ///< empty if failures would never let it end
};

/// What a plan says beside its configurations.
struct BesidePlan {
  std::vector<opinion::NearRun> near;  ///< published runs of such jobs, the nearest first
  std::optional<PlannedRun> run;       ///< empty if no amount of data is stated
};

/// Needs predicted times: without them both are empty. `tokens`: instead of the session's amount of data.
BesidePlan beside_plan(const session::Session& session, const forecast::PlanStudy& study,
                       std::optional<double> tokens = std::nullopt);

/// Returns the "second_opinion" of `krigtune plan --json`: a list, [] if nothing is near.
Json opinion_json(const std::vector<opinion::NearRun>& near);

/// Returns the parts of a training's time, in seconds.
Json whole_run_json(const fleet::WholeRun& whole);
/// Returns the "whole_run" of `krigtune plan --json`: null if no amount of data is stated.
Json planned_run_json(const std::optional<PlannedRun>& run);

/// Prints the section "Second opinion"; nothing if nothing is near.
void print_opinion(std::ostream& out, const BesidePlan& beside);
/// Returns how long the whole training takes, line by line; empty if no amount of data is stated.
std::vector<std::string> planned_run_lines(const session::Session& session, const BesidePlan& beside);
/// Prints the section "The whole training"; nothing if no amount of data is stated.
void print_planned_run(std::ostream& out, const session::Session& session, const BesidePlan& beside);

}  // namespace krigtune::cli
