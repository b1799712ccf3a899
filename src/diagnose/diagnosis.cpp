#include "diagnose/diagnosis.h"

#include <array>
#include <cmath>

namespace krigtune::diagnose {
namespace {

struct LimitWords {
  Limit limit;
  const char* word;
  const char* title;
};
constexpr std::array<LimitWords, kLimitCount> kLimits = {{
    {Limit::kMissingMemory, "missing_memory", "missing memory"},
    {Limit::kStraggler, "straggler", "a slow rank"},
    {Limit::kSlowDevice, "slow_device", "a slow device"},
    {Limit::kInput, "input", "data loading"},
    {Limit::kCopies, "copies", "copies and host work"},
    {Limit::kCommunication, "communication", "exposed communication"},
    {Limit::kLongSteps, "long_steps", "occasional slow steps"},
    {Limit::kDataCommunication, "data_communication", "exposed data-parallel communication"},
    {Limit::kTensorCommunication, "tensor_communication", "tensor-parallel communication"},
    {Limit::kContextCommunication, "context_communication", "communication of ranks that share sequences"},
    {Limit::kExpertCommunication, "expert_communication", "exposed communication of experts"},
    {Limit::kPipelineCommunication, "pipeline_communication", "communication between pipeline stages"},
    {Limit::kPipelineBubble, "pipeline_bubble", "pipeline bubble"},
    {Limit::kHost, "host", "kernel launches by the host"},
    {Limit::kSmallKernels, "small_kernels", "kernels too small for the device"},
    {Limit::kRecomputation, "recomputation", "unnecessary recomputation"},
    {Limit::kOffload, "offload", "unnecessary offload"},
    {Limit::kMemoryRoom, "memory_room", "memory: a larger micro-batch does not fit"},
    {Limit::kMemoryBandwidth, "memory_bandwidth", "memory bandwidth"},
    {Limit::kCompute, "compute", "compute"},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    if (kLimits[i].limit != static_cast<Limit>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

const LimitWords& words_of(Limit limit) { return kLimits[static_cast<std::size_t>(limit)]; }

}  // namespace

const char* to_string(Limit limit) { return words_of(limit).word; }
const char* title_of(Limit limit) { return words_of(limit).title; }

bool Diagnosis::is_unexplained() const {
  constexpr double kMost = 0.1;
  if (!measured_step_s) return false;
  const double healthy_s = *measured_step_s - straggling_s;
  return std::abs(learned.cost.step_time_s - healthy_s) > kMost * healthy_s;
}

const char* to_string(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kNoOverlap:
      return "no_overlap";
    case Reason::kSmallBuckets:
      return "small_buckets";
    case Reason::kLargeBuckets:
      return "large_buckets";
    case Reason::kLittleAccumulation:
      return "little_accumulation";
    case Reason::kAcrossNodes:
      return "across_nodes";
    case Reason::kSlowNetwork:
      return "slow_network";
    case Reason::kSharding:
      return "sharding";
    case Reason::kBandwidth:
      return "bandwidth";
  }
  return "";
}

}  // namespace krigtune::diagnose
