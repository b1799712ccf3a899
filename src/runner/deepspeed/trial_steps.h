#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/json.h"
#include "krigtune/runner/deepspeed/deepspeed_runner.h"
#include "krigtune/runner/deepspeed/ds_trial.h"

namespace krigtune {

/// The steps of a running trial, read while they come in. The arguments must outlive it.
class TrialSteps {
 public:
  /// `ds_config`: the trial's own.
  TrialSteps(const DsTrialFiles& files, const Json& ds_config, const DeepSpeedJob& job);

  /// False: nothing new.
  bool look();
  /// Once it has ended. `output`: in case that the files are not seen from here.
  void finish(const std::string& output);

  std::int64_t count() const { return static_cast<std::int64_t>(times_.size()); }
  std::optional<DsEstimate> estimate_now() const;
  /// The numbers of the result.
  std::map<std::string, double> metrics(const DsEstimate& found) const;

 private:
  const DsTrialFiles& files_;
  const Json& ds_config_;
  DsSteps steps_;
  std::int64_t ranks_;
  std::int64_t tokens_per_sample_;
  DsArrivals arrivals_;
  std::vector<DsStepTime> times_;
  std::uintmax_t size_ = 0;
};

}  // namespace krigtune
