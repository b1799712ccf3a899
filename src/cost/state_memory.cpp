// Bytes a parameter with 16 bits and AdamW: 2 + 2 + 12 (Rajbhandari et al. 2020, section 3.1), each part divided by the
// data ranks where its stage shards it; in fp32 the optimizer updates the parameters themselves, unless they live in
// another memory than its state.
#include "state_memory.h"

#include <algorithm>

#include "krigtune/plan/op_kind.h"

namespace krigtune {
namespace {

// Padded elements of the tensors that stay whole, and of those of which each rank has a part.
struct Homes {
  std::int64_t whole_elems = 0;
  std::int64_t sharded_elems = 0;
};

Homes homes_of(const ModelTensors& model, const Knobs& knobs) {
  Homes homes;
  for (const ModelTensor& tensor : model.tensors) {
    const bool whole = knobs.zero_stage < 3 || tensor.elems <= knobs.persistence_elems;
    (whole ? homes.whole_elems : homes.sharded_elems) += tensor.padded_elems;
  }
  return homes;
}

}  // namespace

StateBytes state_bytes(const ModelTensors& model, const Workload& workload, const Knobs& knobs) {
  StateBytes states;
  const std::int64_t type = size_bytes(compute_type(workload.precision));
  const std::int64_t n = knobs.data_ranks;
  const Homes homes = homes_of(model, knobs);
  const auto at = [&](bool on_host) -> MomentBytes& { return on_host ? states.host : states.device; };
  const bool offloads = knobs.offload_optimizer;

  states.device.add(Term::kParameters, homes.whole_elems * type);
  at(knobs.offload_parameters).add(Term::kParameters, homes.sharded_elems / n * type);
  const std::int64_t updated = knobs.zero_stage >= 1 ? model.padded_elems / n : model.padded_elems;
  const std::int64_t reduced = knobs.zero_stage >= 2 ? model.padded_elems / n : model.padded_elems;
  if (!offloads || knobs.zero_stage < 2) states.device.add(Term::kGradients, reduced * type);
  if (offloads) states.host.add(Term::kGradients, updated * type);

  const std::int64_t parts = knobs.zero_stage >= 1 ? n : 1;
  std::int64_t mastered = 0;
  if (workload.precision != Precision::kFp32 || offloads) mastered += homes.whole_elems / parts;
  if (workload.precision != Precision::kFp32 || offloads != knobs.offload_parameters) {
    mastered += homes.sharded_elems / parts;
  }
  const std::int64_t moments = workload.optimizer == OptimizerKind::kSgd ? 1 : 2;
  at(offloads).add(Term::kOptimizerState, 4 * (mastered + moments * updated));

  const bool controls = workload.gradient_clipping > 0.0 || workload.precision == Precision::kFp16;
  if (controls) states.device.add(Term::kInputs, std::int64_t{4} * kControlElementCount);
  states.device.add(Term::kInputs, 4 * knobs.micro_steps);
  if (knobs.offload_parameters && !offloads && workload.precision != Precision::kFp32) {
    states.rounded_bytes = homes.sharded_elems / n * type;
  }
  if (offloads) {
    // Whoever is late on the host holds all that has come, or all that has been rounded and not yet been sent.
    const bool accumulates = knobs.zero_stage >= 2 && knobs.micro_steps > 1;
    const std::int64_t sent = (homes.whole_elems + (knobs.offload_parameters ? 0 : homes.sharded_elems)) / parts;
    const std::int64_t rounded = workload.precision == Precision::kFp32 ? 0 : sent * type;
    states.host_transient_bytes = std::max(accumulates ? updated * type : 0, rounded);
  }
  return states;
}

}  // namespace krigtune
