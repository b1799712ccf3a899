#pragma once
#include "krigtune/core/json.h"
#include "krigtune/tuner/plan_answers.h"

namespace krigtune {

/// What `krigtune plan --json` says beside the document's head.
Json to_json(const Session& session, const Forecaster& forecaster, const PlanStudy& study, const PlanAnswers& answers);

}  // namespace krigtune
