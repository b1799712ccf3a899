#pragma once
#include <optional>
#include <set>
#include <string_view>

#include "cost/machine.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// Seconds of the operations of a block as a job's precision and framework have them: operation_time_s, but for
/// products that stay in the model's type where others read fewer bits (workload::PreciseProducts), and for the biases
/// of experts in Megatron. The machine and the plan must outlive it.
class BlockTime {
 public:
  /// `plan`: from BlockPlans.
  BlockTime(const workload::Workload& workload, const Machine& machine, const plan::StepPlan& plan);
  double seconds(const plan::Operation& operation) const;

 private:
  /// By how many bits a product's inputs are read.
  enum class Width { kAsOthers, kFp8, kFull };
  Width width_of(const plan::Operation& operation) const;
  std::string_view weight_of(const plan::Operation& operation) const;
  double biases_s(const plan::Operation& operation) const;

  const Machine& machine_;
  const plan::StepPlan& plan_;
  workload::PreciseProducts precise_;
  double last_share_ = 0.0;                   ///< of the layers, whose products all stay in the model's type
  bool adds_biases_ = false;                  ///< to the experts' outputs, by kernels of PyTorch
  std::optional<Machine> full_, fp8_;         ///< the machine for products of 16 and of 8 bits
  std::set<std::int64_t> attention_, mixed_;  ///< layers with attention, and with a mixer in its place
};

}  // namespace krigtune::cost
