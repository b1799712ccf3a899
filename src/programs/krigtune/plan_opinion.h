#pragma once
#include <ostream>
#include <vector>

#include "core/json.h"
#include "forecast/plan_study.h"
#include "opinion/second_opinion.h"

namespace krigtune::cli {

/// Returns the published runs near a session's job, the nearest first. Empty if no time is predicted.
std::vector<opinion::NearRun> published_runs_near(const session::Session& session, const forecast::PlanStudy& study);

/// Returns the "second_opinion" of `krigtune plan --json`: a list, [] if nothing is near.
Json opinion_json(const std::vector<opinion::NearRun>& near);

/// Prints the section "Second opinion"; nothing if nothing is near.
void print_opinion(std::ostream& out, const std::vector<opinion::NearRun>& near);

}  // namespace krigtune::cli
