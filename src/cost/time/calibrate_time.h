#pragma once
#include <functional>
#include <span>
#include <vector>

#include "cost/calibration.h"
#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// A measured step time.
struct TimedTrial {
  space::Configuration configuration;
  double seconds = 0.0;
  double relative_error = 0.02;  ///< standard error of `seconds`, relative
};

/// Learns from trials of one workload how to correct predicted times. It returns the most probable factors under a
/// prior around 1, in which a common factor on everything is the least surprising. A trial that is far off has little
/// weight. All factors are 1 if there are fewer than two trials, or if the factors would not improve the prediction of
/// each trial from the others. Throws UserError for configurations that the model does not support.
TimeCalibration calibrate_time(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                               std::span<const TimedTrial> trials);

struct MeasuredTime {
  double seconds = 0.0;
  double relative_error = 0.02;
};
/// Returns the predicted seconds of each trial under a calibration, in order.
using PredictTimes = std::function<std::vector<double>(const TimeCalibration&)>;
/// Does the same for any model, for example for trials of several workloads. Calls `predict_s` some tens of times.
TimeCalibration calibrate_time(const PredictTimes& predict_s, std::span<const MeasuredTime> measured);

}  // namespace krigtune::cost
