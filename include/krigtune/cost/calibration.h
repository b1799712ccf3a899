#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "krigtune/core/units.h"
#include "krigtune/space/configuration.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// What measured step times taught: factors on predicted seconds, 1 where nothing is known.
struct TimeCalibration {
  double products = 1.0;  ///< matrix products and attention
  double memory = 1.0;    ///< elementwise kernels and optimizers
  double collectives = 1.0;
  double issue = 1.0;   ///< of issuing kernels
  double host = 1.0;    ///< copies and host work
  double step_s = 0.0;  ///< added to every step
};

/// A step time that was measured.
struct TimedTrial {
  Configuration configuration;
  double seconds = 0.0;
  double relative_error = 0.02;  ///< standard error of `seconds`, relative
};

/// What trials of one workload teach about its times: the most probable factors under a prior around 1, in which one
/// common factor is the least surprising. A trial that lies far off counts little. Factors of 1 where fewer than two
/// trials are given, or where predicting each trial from the others would not gain by it. Configurations that the model
/// does not know are a UserError.
TimeCalibration calibrate_time(const Workload& workload, const ClusterSpec& cluster,
                               std::span<const TimedTrial> trials);

struct MeasuredTime {
  double seconds = 0.0;
  double relative_error = 0.02;
};
/// Predicted seconds of each trial under a calibration, in order.
using PredictTimes = std::function<std::vector<double>(const TimeCalibration&)>;
/// Likewise for any model, say for trials of several workloads. Asks for predictions some tens of times.
TimeCalibration calibrate_time(const PredictTimes& predict_s, std::span<const MeasuredTime> measured);

/// What a program keeps otherwise than its framework's numbers have it: for simulated machines. Trials teach the same
/// factors and more by memory_shape.h.
struct MemoryCalibration {
  double activations = 1.0;     ///< factor on activations
  double logits_bytes = 0.0;    ///< a logit, instead of the framework's; 0: the framework's
  double overhead_bytes = 0.0;  ///< on top of what is allocated
  double log_stddev = 0.0;      ///< of measured over predicted; 0: the framework's spread
};

}  // namespace krigtune
