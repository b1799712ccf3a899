#pragma once
#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/history.h"
#include "model/objective_scale.h"

namespace krigtune {

/// By what factor standard deviations of the surrogate are to be multiplied, so that central intervals of 90 % hold as
/// often as they say: by how far the trials of `history` were from what was predicted of them. 1.3 before any is known,
/// and never below 1. See calibration.cpp. Private to this layer.
double learned_widening(const Objective& objective, const ObjectiveScale& scale, const History& history);

}  // namespace krigtune
