#pragma once
#include "krigtune/cost/machine.h"

namespace krigtune {

/// `"gpu": "local"` as it was measured; needs ClusterSpec::measured.
Machine make_local_machine(const ClusterSpec& cluster, const TimeCalibration& calibration);

}  // namespace krigtune
