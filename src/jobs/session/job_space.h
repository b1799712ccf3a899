#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "space/configuration.h"

// Which values are worth trying for a job of this size on this machine.
namespace krigtune::jobs {

/// What bounds the values.
struct JobSize {
  std::int64_t ranks = 1;
  std::int64_t gpus_per_node = 1;
  std::optional<std::int64_t> train_batch_size;  ///< sequences of a step, to be kept; empty: not known
  std::optional<std::int64_t> kv_heads;          ///< of the model
  std::optional<std::int64_t> layers;
  space::Configuration own;             ///< what the command says now
  bool follows_batch = false;           ///< the session derives the accumulation: it has a workload with a batch
  bool can_write_accumulation = false;  ///< the job has a place for it
};

struct JobSpace {
  Json space = Json::object();  ///< as in a session; parameters that have one value left are not in it
  std::vector<std::string> constraints;
};

/// `space`: what a recipe would try. Of it
/// - tensor_parallel stays within a node and divides its ranks and the heads, pipeline_parallel divides ranks and
///   layers;
/// - micro_batch takes powers of two, and the command's own, that divide the batch of a replica; without a batch up to
///   eight times its own;
/// - gradient_accumulation_steps follows, as a parameter with a constraint where the session cannot derive it;
/// - what changes nothing on one data-parallel rank is left out.
JobSpace fitted_space(const Json& space, const JobSize& size);

/// "micro_batch * gradient_accumulation_steps * dp == 64".
std::string kept_batch(std::int64_t train_batch_size);

}  // namespace krigtune::jobs
