#pragma once
#include <functional>
#include <span>
#include <vector>

#include "cost/calibration.h"
#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// A step time that was measured.
struct TimedTrial {
  space::Configuration configuration;
  double seconds = 0.0;
  double relative_error = 0.02;  ///< standard error of `seconds`, relative
};

/// What trials of one workload teach about its times: the most probable factors under a prior around 1, in which one
/// common factor is the least surprising. A trial that lies far off counts little. Factors of 1 where fewer than two
/// trials are given, or where predicting each trial from the others would not gain by it. Configurations that the model
/// does not know are a UserError.
TimeCalibration calibrate_time(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                               std::span<const TimedTrial> trials);

struct MeasuredTime {
  double seconds = 0.0;
  double relative_error = 0.02;
};
/// Predicted seconds of each trial under a calibration, in order.
using PredictTimes = std::function<std::vector<double>(const TimeCalibration&)>;
/// Likewise for any model, say for trials of several workloads. Asks for predictions some tens of times.
TimeCalibration calibrate_time(const PredictTimes& predict_s, std::span<const MeasuredTime> measured);

}  // namespace krigtune::cost
