#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "space/configuration.h"

// Chooses the values worth trying for a job of this size on this machine.
namespace krigtune::jobs {

/// The limits on the values.
struct JobSize {
  std::int64_t ranks = 1;
  std::int64_t gpus_per_node = 1;
  std::optional<std::int64_t> train_batch_size;  ///< sequences per step, to be kept; empty if unknown
  std::optional<std::int64_t> kv_heads;          ///< of the model
  std::optional<std::int64_t> layers;
  space::Configuration own;  ///< present values of the command
  /// The session derives the accumulation, because it has a workload with a batch.
  bool follows_batch = false;
  bool can_write_accumulation = false;  ///< the job has a place for it
};

struct JobSpace {
  Json space = Json::object();  ///< as in a session; without parameters that have a single remaining value
  std::vector<std::string> constraints;
  std::vector<std::string> without_effect;  ///< parameters left out, because there is one data-parallel rank
};

/// Restricts `space`, the values of a recipe:
/// - tensor_parallel stays within a node and divides its ranks and the heads; pipeline_parallel divides ranks and
/// layers;
/// - micro_batch has the powers of two and the command's own value that divide the batch of a replica; without a batch,
/// up to eight times its own value;
/// - gradient_accumulation_steps follows: as a parameter with a constraint if the session cannot derive it;
/// - parameters without effect on one data-parallel rank are left out.
JobSpace fitted_space(const Json& space, const JobSize& size);

/// Returns the numbers of micro-steps with which a configuration of `space`, the block of a session, has so many
/// sequences a step; the micro-batch is `own`'s if it does not vary. With kinds of parallelism any number of replicas
/// that divides the ranks is possible.
Json steps_that_keep(std::int64_t train_batch_size, const Json& space, const space::Configuration& own,
                     std::int64_t ranks);

/// Returns how many pairs of micro_batch and gradient_accumulation_steps, which both vary in `space`, have so many
/// sequences a step on `dp` replicas.
int configurations_at(const Json& space, std::int64_t train_batch_size, std::int64_t dp);

/// Returns "micro_batch * gradient_accumulation_steps * dp == 64".
std::string kept_batch(std::int64_t train_batch_size);

}  // namespace krigtune::jobs
