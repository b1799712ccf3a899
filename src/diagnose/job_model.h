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

/// What was measured of one configuration. What is not known is empty.
struct Observation {
  space::Configuration configuration;
  double step_time_s = 0.0;
  std::optional<double> exposed_comm_s{};         ///< of the rank that waits longest, waiting for others included
  std::optional<double> median_rank_kernels_s{};  ///< kernels of the median rank, and of the slowest
  std::optional<double> slowest_rank_kernels_s{};
  std::optional<double> waiting_s{};       ///< of one rank: nothing ran or was sent, others were not there yet
  std::optional<double> data_loading_s{};  ///< between steps, not part of step_time_s
  std::optional<Bytes> peak_memory{};

  /// By which the slowest rank delays all others; 0 where ranks were not measured one by one. Where one is slow, all
  /// that another waits for it counts: a rank without a core is late for its collectives as well.
  double straggling_s() const;
};

/// The cost models of a session's job, corrected by measurements.
///
///   JobModel model(session, filter);
///   model.learn(observations, 0);                       // of these the first is what is diagnosed
///   const std::optional<Prediction> now = model.predict(configuration);
class JobModel {
 public:
  /// Throws UserError where no time can be predicted. The arguments must outlive it.
  JobModel(const session::Session& session, const session::MemoryFilter& filter);
  ~JobModel();

  /// Finds how many times as long each class of work took as the session's numbers say. The observation `diagnosed` is
  /// met closest; what its straggler costs is taken off before.
  void learn(const std::vector<Observation>& observations, std::size_t diagnosed);

  /// Empty for configurations that are not modelled.
  std::optional<Prediction> predict(const space::Configuration& configuration) const;
  /// By the session's numbers alone.
  std::optional<Prediction> stated(const space::Configuration& configuration) const;
  /// As learned, with something of the machine changed.
  std::optional<Prediction> on(const space::Configuration& configuration,
                               const std::function<void(cost::Machine&)>& change) const;
  /// With other factors than those learned.
  std::optional<Prediction> with(const space::Configuration& configuration, const cost::TimeCalibration& factors) const;

  const cost::TimeCalibration& factors() const;
  const session::Session& session() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::diagnose
