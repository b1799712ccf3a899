#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fleet/sureness.h"
#include "fleet/whole_run.h"
#include "forecast/plan_study.h"
#include "opinion/second_opinion.h"
#include "session/clusters.h"
#include "session/session.h"

namespace krigtune::fleet {

/// A session before it is read, because it is read anew on each cluster.
struct SessionText {
  const nlohmann::ordered_json& json;
  std::string source;  ///< for messages
  std::filesystem::path base_dir;
};

/// Returns the session with this cluster instead of its own. Its space consists of the values that this cluster can
/// use, and of the configurations that keep `train_batch_size` on its ranks. What belongs to the session's own machine
/// is left out: baseline, memory.limit_gib, runner (nothing runs) and objective (the most samples a second are best).
/// Throws UserError as read_session does, also if no configuration is left.
session::Session session_on(const SessionText& text, const workload::ClusterSpec& cluster);

/// The best configuration on one cluster, and what the whole training takes there.
struct BestOfCluster {
  forecast::Candidate candidate;  ///< the fastest that surely fits; if there is none, that fits more likely than not
  /// A faster one that fits more likely than not, but not surely.
  std::optional<forecast::Candidate> faster;
  std::int64_t sequences = 0;  ///< of one optimizer step
  Estimate tokens_per_s;       ///< of all GPUs
  std::optional<Estimate> mfu;
  std::optional<Estimate> memory_bytes;  ///< peak of a rank
  WholeRun whole;                        ///< the whole training, as predicted
  Estimate days;                         ///< of the whole training, with all that the session's "run" states
  double gpu_hours = 0.0;                ///< as predicted
  std::optional<Estimate> price;
  /// Tokens a second and GPU, relative to the smallest size of the entry on which a configuration fits.
  double efficiency = 1.0;
  /// How many times as fast this very configuration is if the slowest links between the GPUs are twice as fast; empty
  /// for a single GPU.
  std::optional<double> network_gain;
  /// Published runs of such jobs on such machines, the nearest first.
  std::vector<opinion::NearRun> near;
};

/// One size of one entry.
struct ClusterPlan {
  std::size_t entry = 0;  ///< index in session::ClustersFile::entries
  std::string name;
  workload::ClusterSpec cluster;
  std::optional<double> price_per_gpu_hour;
  std::optional<double> power_w = {};  ///< of a GPU, if the cluster says it
  std::int64_t configurations = 0;     ///< that were looked at
  std::optional<Bytes> usable;         ///< of one rank
  std::optional<BestOfCluster> best;
  std::string why_not;      ///< set if `best` is empty
  bool never_ends = false;  ///< there is a configuration that fits, but failures would never let its training end
};

/// Plans of all clusters, in the order of the file.
struct Fleet {
  std::vector<ClusterPlan> plans;
  std::vector<std::string> warnings;  ///< each once
  /// The session on the first cluster on which it can be read: for what all of them have in common.
  session::Session session;
  double tokens = 0.0;
  StepTimeRange range;
  std::string currency;

  bool has_prices() const;  ///< of at least one plan with a best configuration
};

struct FleetOptions {
  unsigned threads = 1;
  /// Called before each plan with its index and the number of plans.
  std::function<void(std::size_t, std::size_t)> progress = {};
};

/// Examines the session's space on each cluster. Throws the first UserError if the session cannot be read on any of
/// them, and if it has no workload.
Fleet study_fleet(const SessionText& text, const session::ClustersFile& file, const FleetOptions& options);

}  // namespace krigtune::fleet
