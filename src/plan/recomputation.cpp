#include "plan/recomputation.h"

#include <utility>

namespace krigtune::plan {

void Recomputation::at(schedule::Phase phase, std::int64_t micro_step, std::int64_t layer) {
  phase_ = phase;
  micro_step_ = micro_step;
  layer_ = layer;
}

void Recomputation::open(schedule::Module module, int part) {
  ++depth_;
  if (open_ != nullptr || phase_ != schedule::Phase::kForward || !modules_ || !modules_->has(module)) return;
  Region& region = regions_[{layer_, module, part}];
  if (region.micro_step != micro_step_) {
    for (const BufferId buffer : region.written) dropped_.erase(buffer);
    region = {module, micro_step_, {}, {}, false};
  }
  open_ = &region;
  depth_of_open_ = depth_;
}

void Recomputation::close() {
  if (open_ != nullptr && depth_ == depth_of_open_) open_ = nullptr;
  --depth_;
}

void Recomputation::emit(Emitted operation) {
  if (!modules_) return append(std::move(operation));
  if (phase_ == schedule::Phase::kForward) {
    note(operation);
  } else {
    for (Operand& operand : operation.operands) operand.range.buffer = again(operand.range.buffer, nullptr);
  }
  append(std::move(operation));
}

void Recomputation::note(const Emitted& operation) {
  for (const Operand& operand : operation.operands) {
    const BufferId buffer = operand.range.buffer;
    if (open_ != nullptr && operand.access == Access::kWrite) {
      open_->written.insert(buffer);
      dropped_[buffer] = open_;
    }
    const auto found = dropped_.find(buffer);
    const bool is_of_another = found != dropped_.end() && found->second != open_;
    if (is_of_another && !schedule::discards_output(found->second->module)) dropped_.erase(found);
  }
  if (open_ != nullptr) open_->operations.push_back(operation);
}

// Returns where a buffer's values are in the backward pass. `writer`: the region that is computed again, which writes
// what it wrote into new buffers.
BufferId Recomputation::again(BufferId buffer, Region* writer) {
  const bool is_own = writer != nullptr && writer->written.contains(buffer);
  const auto dropped = dropped_.find(buffer);
  if (!is_own && dropped == dropped_.end()) return buffer;
  if (!is_own && !dropped->second->is_done) compute_again(*dropped->second);
  const auto [known, is_new] = again_of_.try_emplace(buffer, -1);
  if (is_new) {
    const Buffer old = builder_.get(buffer);
    known->second = builder_.buffer(old.name + " again", schedule::Term::kWorkspace, old.elems, old.type);
    if (dropped != dropped_.end()) builder_.set_term(buffer, schedule::Term::kWorkspace);
  }
  return known->second;
}

void Recomputation::compute_again(Region& region) {
  region.is_done = true;
  const schedule::Phase phase = phase_;
  for (const Emitted& operation : region.operations) {
    Emitted copy = operation;
    for (Operand& operand : copy.operands) operand.range.buffer = again(operand.range.buffer, &region);
    builder_.at(schedule::Phase::kRecompute, micro_step_, layer_);
    append(std::move(copy));
  }
  builder_.at(phase, micro_step_, layer_);
}

void Recomputation::append(Emitted operation) {
  if (operation.of_tensor_group) {
    builder_.add_tensor_group(operation.kind, schedule::Stream::kCompute, operation.shape,
                              std::move(operation.operands));
  } else {
    builder_.add(operation.kind, schedule::Stream::kCompute, operation.shape, std::move(operation.operands),
                 operation.scale);
  }
}

}  // namespace krigtune::plan
