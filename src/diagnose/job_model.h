#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cost/machine.h"
#include "diagnose/diagnosis.h"
#include "session/memory_filter.h"
#include "session/session.h"

namespace krigtune::diagnose {

/// The measurements of one configuration; unknown values are empty.
struct Observation {
  space::Configuration configuration;
  double step_time_s = 0.0;
  std::optional<double> exposed_comm_s{};         ///< of the rank that waits longest, including waiting for others
  std::optional<double> median_rank_kernels_s{};  ///< kernels of the median rank, and of the slowest one
  std::optional<double> slowest_rank_kernels_s{};
  std::optional<double> waiting_s{};       ///< of one rank: nothing ran or was sent because others were late
  std::optional<double> data_loading_s{};  ///< between steps; not part of step_time_s
  std::optional<Bytes> peak_memory{};

  /// Returns the delay that the slowest rank causes for all others; 0 if ranks were not measured individually. If a
  /// rank is slow, all waiting for it counts, because a rank without a core is also late for its collectives.
  double straggling_s() const;
};

/// The cost models of a session's job, corrected by measurements.
///
///   JobModel model(session, filter);
///   model.learn(observations, 0);                       // the first one is the configuration to diagnose
///   const std::optional<Prediction> now = model.predict(configuration);
class JobModel {
 public:
  /// Throws UserError if no time can be predicted. The arguments must outlive it.
  JobModel(const session::Session& session, const session::MemoryFilter& filter);
  ~JobModel();

  /// Learns how many times longer each class of work took than the session's numbers predict. The observation
  /// `diagnosed` is matched most closely; the cost of its straggler is subtracted first.
  void learn(const std::vector<Observation>& observations, std::size_t diagnosed);

  /// Empty for configurations that are not modelled.
  std::optional<Prediction> predict(const space::Configuration& configuration) const;
  /// Predicts from the session's numbers alone.
  std::optional<Prediction> stated(const space::Configuration& configuration) const;
  /// Predicts with the learned factors on a changed machine.
  std::optional<Prediction> on(const space::Configuration& configuration,
                               const std::function<void(cost::Machine&)>& change) const;
  /// Predicts with factors other than the learned ones.
  std::optional<Prediction> with(const space::Configuration& configuration, const cost::TimeCalibration& factors) const;

  const cost::TimeCalibration& factors() const;
  const session::Session& session() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::diagnose
