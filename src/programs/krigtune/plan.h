#pragma once
#include <optional>

#include "core/json.h"
#include "forecast/plan_study.h"
#include "programs/krigtune/plan_beside.h"
#include "search/model/job_summary.h"
#include "session/memory_filter.h"
#include "session/session.h"

// What krigtune plan --json prints is also what krigtune serve answers.
namespace krigtune::cli {

/// Returns what tune assumes of a job that the session does not describe. Empty if it does, and if the names of its
/// parameters say nothing.
std::optional<search::JobSummary> assumed_job(const session::Session& session, const session::MemoryFilter& filter);

/// Returns the contents of `krigtune plan --json` below the document's head.
Json planned_json(const session::Session& session, const forecast::Forecaster& forecaster,
                  const forecast::PlanStudy& study, const forecast::PlanAnswers& answers,
                  const std::optional<search::JobSummary>& assumed, const BesidePlan& beside);

/// Returns a configuration with what is predicted of it, as the best ones are shown.
Json candidate_json(const forecast::Candidate& candidate);

/// Returns how many threads look at the configurations of a plan.
unsigned plan_threads();

}  // namespace krigtune::cli
