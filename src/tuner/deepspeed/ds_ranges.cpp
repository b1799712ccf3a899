// What is worth trying of a knob that the file leaves to krigtune, by the size of the model and the machine.
//
// A reduce bucket costs (1 + overlap_comm) * reduce_bucket_size elements (runtime/zero/stage_1_and_2.py); useful sizes
// lie between a layer and the whole model, beyond which there is one bucket and only the memory grows.
#include <algorithm>
#include <cmath>

#include "ds_job.h"
#include "krigtune/core/text.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

// Rounded to two digits, a power of two apart, up to what holds the model.
Json sizes(double least, double most) {
  constexpr std::int64_t kFewest = 2;
  const auto rounded = [](double size) {
    const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(size)) - 1.0));
    return std::llround(std::ceil(size / unit) * unit);
  };
  const std::int64_t steps = std::max<std::int64_t>(kFewest, std::llround(std::log2(most / least)) + 1);
  return {{"min", rounded(least)}, {"max", rounded(most)}, {"scale", "log"}, {"steps", steps}};
}

// Of use where communication runs beside computation: on streams, which CPU ranks do not have. A bucket smaller than
// the model is sent more often and no sooner there.
bool serves_overlap(const std::string& name) { return name == kReduceBucket || name == kOverlap || name == kPrefetch; }

bool only_hosts_hold(const DsJob& job) {
  const auto& memory = job.inputs.machine.rank_memory;
  return memory && job.num_params && model_state_bytes(job, 3) > static_cast<double>(memory->count);
}

}  // namespace

// DeepSpeed's own estimate of host memory (runtime/zero/stage_1_and_2.py, estimate_zero2_model_states_mem_needs):
// parameters * max(4 * ranks of a node, 16) * 1.5 bytes; and it asks for an Adam that it makes itself.
bool may_offload(const DsJob& job) {
  const DsMachine& machine = job.inputs.machine;
  if (machine.on_cpu || !machine.host_memory || !job.num_params) return false;
  const Json section = job.inputs.config.value("optimizer", Json::object());
  const Json type = section.is_object() ? section.value("type", Json("")) : Json("");
  if (!type.is_string() || lower_case(type.get<std::string>()).rfind("adam", 0) != 0) return false;
  const auto ranks = static_cast<double>(job.cluster.gpus_per_node);
  const double bytes = 1.5 * static_cast<double>(*job.num_params) * std::max(4.0 * ranks, 16.0);
  return bytes <= static_cast<double>(machine.host_memory->count);
}

Json sensible_values(const DsJob& job, const std::string& name) {
  constexpr double kLargestBucket = 5e8;  // DeepSpeed's default
  constexpr double kSpan = 64.0;
  const double model = static_cast<double>(job.num_params.value_or(static_cast<std::int64_t>(kLargestBucket)));
  const double most = std::clamp(model, 1e3, kLargestBucket);
  if (job.inputs.machine.on_cpu && serves_overlap(name)) return {};
  if (name == kReduceBucket) return sizes(most / kSpan, most);
  if (name == kPrefetch) return sizes(most / kSpan, most / 4.0);
  if (name == kPersistence) return sizes(std::min(most / kSpan, 1e4), std::min(most, 1e6));
  if (name == kOverlap) return Json::array({false, true});
  const bool is_offload = name == kOffloadOptimizer || (name == kOffloadParam && only_hosts_hold(job));
  if (is_offload && (may_offload(job) || job.is_opened(name))) return Json::array({"none", "cpu"});
  return {};
}

}  // namespace krigtune
