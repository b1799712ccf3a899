#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cost/time/step_cost.h"
#include "plan/memory.h"
#include "space/configuration.h"

// What limits a configuration, the evidence for it, and what would change it.
namespace krigtune::diagnose {

/// What slows a step down.
enum class Limit {
  kMissingMemory,      ///< it does not fit
  kStraggler,          ///< one rank is slower than the others
  kSlowDevice,         ///< kernels take longer than the device's numbers say
  kInput,              ///< the next batch is not ready
  kCopies,             ///< between host and device, while no kernel runs
  kCommunication,      ///< exposed, regardless of the group
  kLongSteps,          ///< occasionally
  kDataCommunication,  ///< of data parallelism (ZeRO), while no kernel runs
  kTensorCommunication,
  kContextCommunication,  ///< among ranks that share a sequence, as far as attention does not hide it
  kExpertCommunication,   ///< tokens on their way to the ranks of their experts and back, while no kernel runs
  kPipelineCommunication,
  kPipelineBubble,
  kHost,             ///< kernels that are not issued in time, and overhead once per step
  kSmallKernels,     ///< kernels too small for the device
  kRecomputation,    ///< unnecessary: there is enough memory for the recomputed activations
  kOffload,          ///< unnecessary in the same way
  kMemoryRoom,       ///< a larger micro-batch would be faster and does not fit
  kMemoryBandwidth,  ///< elementwise kernels and the optimizer
  kCompute,          ///< matrix products and attention
};
inline constexpr int kLimitCount = 20;
const char* to_string(Limit limit);  ///< "data_communication": for programs
const char* title_of(Limit limit);   ///< "exposed data-parallel communication": for people

/// The more specific reason of a communication limit.
enum class Reason {
  kNone,
  kNoOverlap,           ///< gradients are not reduced during the backward pass; tokens of experts travel alone
  kSmallBuckets,        ///< collectives that consist mostly of latency
  kLargeBuckets,        ///< the first bucket is complete too late to be hidden
  kLittleAccumulation,  ///< a step has too little work over which its communication can be spread
  kAcrossNodes,         ///< a group whose ranks should be near each other, over the network between nodes
  kSlowNetwork,         ///< slower than the session states
  kSharding,            ///< the ZeRO stage sends more than a lower one
  kBandwidth,           ///< none of these: the amount of data takes this long
};
const char* to_string(Reason reason);

/// A model's prediction for one optimizer step.
struct Prediction {
  cost::StepCost cost;
  double sequences = 1.0;                       ///< per optimizer step
  std::optional<plan::MemoryVerdict> memory{};  ///< empty: not modelled
  double seconds_per_sequence() const { return cost.step_time_s / sequences; }
  bool fits() const { return !memory || memory->probability_fits >= 0.5; }
};

/// A new value for a parameter.
struct Change {
  std::string parameter;
  space::Value before;  ///< the configuration's value, or the default if it has none
  space::Value after;
};

/// A change that helps according to the models.
struct Advice {
  std::vector<Change> changes;         ///< empty: the machine must be fixed, and nothing else changes
  std::string machine;                 ///< the part of the machine to fix
  space::Configuration configuration;  ///< with the changes applied
  Prediction predicted;
  double speedup = 1.0;            ///< sequences per second relative to the present configuration
  bool in_space = true;            ///< the session's space contains the configuration
  std::vector<std::string> price;  ///< one sentence each; empty: no known cost
};

/// One thing that slows the step down.
struct Verdict {
  Limit limit{};
  Reason reason = Reason::kNone;
  double share = 0.0;          ///< of the step time that it explains
  double number = 0.0;         ///< the number that was compared
  double threshold = 0.0;      ///< with this threshold
  std::string quantity;        ///< meaning of the number: "exposed_comm_s of data parallelism / step_time_s"
  bool measured = false;       ///< the number comes from a measurement and not only from the models
  std::string sentence;        ///< the limit, with its numbers
  std::vector<Advice> advice;  ///< the largest gain first; empty: nothing helps
};

/// How many times longer each class of work took than the session's numbers predict.
struct LearnedFactors {
  double kernels = 1.0;  ///< products and memory-bound kernels together, weighted by their time
  double products = 1.0;
  double memory = 1.0;
  double collectives = 1.0;
};

/// The complete diagnosis.
struct Diagnosis {
  space::Configuration configuration;
  std::optional<double> measured_step_s;
  std::optional<double> measured_exposed_comm_s;
  std::optional<Bytes> measured_peak;
  Prediction stated;                      ///< from the session's numbers alone
  Prediction learned;                     ///< corrected by measurements; equal to `stated` without any
  std::optional<LearnedFactors> factors;  ///< empty: nothing was measured
  double straggling_s = 0.0;              ///< cost of the slow rank in the measured step, which no model includes
  std::vector<Verdict> verdicts;          ///< the most limiting one first

  /// Returns whether the corrected models miss the measured step by more than a tenth.
  bool is_unexplained() const;
};

}  // namespace krigtune::diagnose
