#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cost/time/step_cost.h"
#include "plan/memory.h"
#include "space/configuration.h"

// What limits a configuration, how that is known, and what would change it.
namespace krigtune::diagnose {

/// What holds a step up.
enum class Limit {
  kMissingMemory,      ///< it does not fit
  kStraggler,          ///< one rank is slower than the others
  kSlowDevice,         ///< kernels take longer than the device's numbers say
  kInput,              ///< the next batch is not there
  kCopies,             ///< between host and device, while no kernel runs
  kCommunication,      ///< exposed, of whatever group
  kLongSteps,          ///< now and then
  kDataCommunication,  ///< of data parallelism (ZeRO), while no kernel runs
  kTensorCommunication,
  kPipelineCommunication,
  kPipelineBubble,
  kHost,             ///< kernels that were not issued yet, and what is once a step
  kSmallKernels,     ///< kernels too small for the device
  kRecomputation,    ///< without need: there is memory for what is computed again
  kOffload,          ///< without need, likewise
  kMemoryRoom,       ///< a larger micro-batch would be faster and does not fit
  kMemoryBandwidth,  ///< elementwise kernels and the optimizer
  kCompute,          ///< matrix products and attention
};
inline constexpr int kLimitCount = 18;
const char* to_string(Limit limit);  ///< "data_communication": for programs
const char* title_of(Limit limit);   ///< "exposed data-parallel communication": for people

/// The finer reason of communication.
enum class Reason {
  kNone,
  kNoOverlap,           ///< gradients are not reduced beside the backward pass
  kSmallBuckets,        ///< collectives that are mostly latency
  kLargeBuckets,        ///< the first ends too late to be hidden
  kLittleAccumulation,  ///< a step's communication has too little work to be spread over
  kAcrossNodes,         ///< tensor parallelism over the network between nodes
  kSlowNetwork,         ///< slower than the session states
  kSharding,            ///< the ZeRO stage sends more than a lower one
  kBandwidth,           ///< none of these: what is sent takes as long
};
const char* to_string(Reason reason);

/// Time for so many sequences, as the models have it.
struct Prediction {
  cost::StepCost cost;
  double sequences = 1.0;                       ///< of one optimizer step
  std::optional<plan::MemoryVerdict> memory{};  ///< empty: not modelled
  double seconds_per_sequence() const { return cost.step_time_s / sequences; }
  bool fits() const { return !memory || memory->probability_fits >= 0.5; }
};

/// A parameter that is given another value.
struct Change {
  std::string parameter;
  space::Value before;  ///< what the configuration says, or the default that holds where it says nothing
  space::Value after;
};

/// Something that the models say helps.
struct Advice {
  std::vector<Change> changes;         ///< empty: the machine has to be fixed, and nothing else changes
  std::string machine;                 ///< what of the machine, then
  space::Configuration configuration;  ///< with the changes
  Prediction predicted;
  double speedup = 1.0;            ///< sequences a second over those of the present configuration
  bool in_space = true;            ///< the session's space holds the configuration
  std::vector<std::string> price;  ///< one sentence each; empty: it costs nothing that is known
};

/// One thing that holds the step up.
struct Verdict {
  Limit limit{};
  Reason reason = Reason::kNone;
  double share = 0.0;          ///< of the step time that it explains
  double number = 0.0;         ///< what was compared
  double threshold = 0.0;      ///< with this
  std::string quantity;        ///< what the number is: "exposed_comm_s of data parallelism / step_time_s"
  bool measured = false;       ///< the number comes from a measurement, not from the models alone
  std::string sentence;        ///< what, with the numbers
  std::vector<Advice> advice;  ///< what gains most first; empty: nothing helps
};

/// How many times as long as the session's numbers say each class of work took.
struct LearnedFactors {
  double kernels = 1.0;  ///< products and memory-bound kernels together, weighed by their time
  double products = 1.0;
  double memory = 1.0;
  double collectives = 1.0;
};

/// The whole answer.
struct Diagnosis {
  space::Configuration configuration;
  std::optional<double> measured_step_s;
  std::optional<double> measured_exposed_comm_s;
  std::optional<Bytes> measured_peak;
  Prediction stated;                      ///< by the session's numbers alone
  Prediction learned;                     ///< corrected by what was measured; without measurements the same
  std::optional<LearnedFactors> factors;  ///< empty: nothing was measured
  double straggling_s = 0.0;              ///< of the measured step: what its slow rank costs, which is in no model
  std::vector<Verdict> verdicts;          ///< the first limits most

  /// The corrected models miss the measured step by more than a tenth.
  bool is_unexplained() const;
};

}  // namespace krigtune::diagnose
