// Both scans work on chunks of tokens: products of matrices within a chunk, and a state that passes from chunk to chunk
// (op_scans.h counts their FLOPs). Convolution, scan, gate and norm are one operation here; its time is the sum of
// what its products and its bytes take.
#include "plan/mixers.h"

#include <utility>
#include <vector>

namespace krigtune::plan {
namespace {

using schedule::OpKind;
using schedule::Term;

bool is_mamba(const schedule::BlockTensors& block) { return block.kind.mixer == workload::Mixer::kMamba; }

Shape mixer_shape(const StepOperations& to, const schedule::BlockTensors& block) {
  const StepSizes& n = to.sizes();
  const std::int64_t t = to.knobs().tensor_ranks;
  Shape shape{.batch = n.batch, .seq = n.seq, .rows = n.rows, .inner = mixer_widths(to, block).output};
  if (is_mamba(block)) {
    const workload::MambaSpec& mamba = to.model().mamba;
    shape.heads = mamba.heads / t;
    shape.kv_heads = mamba.groups / t;
    shape.outer = mamba.state;
    shape.chunk = mamba.chunk;
  } else {
    const workload::DeltaSpec& delta = to.model().delta;
    shape.heads = delta.value_heads / t;
    shape.kv_heads = delta.key_heads / t;
    shape.outer = delta.key_dim;
    shape.chunk = delta.chunk;
  }
  return shape;
}

// Numbers of the states of all chunks.
std::int64_t states_of(const Shape& shape) {
  return shape.batch * ((shape.seq + shape.chunk - 1) / shape.chunk) * shape.inner * shape.outer;
}

/// Elements of what the kernels of a mixer keep, and of what they write and read again.
struct MixerElems {
  std::int64_t kept = 0;
  std::int64_t states = 0;  ///< between chunks
  std::int64_t mixed = 0;   ///< of the tokens
};

// Mamba's scan has its states in fp32, and a copy in the type of the activations after they passed from chunk to chunk.
MixerElems elems_of(const StepOperations& to, const schedule::BlockTensors& block, const Shape& shape) {
  const std::int64_t states = states_of(shape);
  if (is_mamba(block)) {
    const std::int64_t convolved = to.model().mamba.conv_width() / to.knobs().tensor_ranks;
    return {shape.rows * 2 * shape.inner, states, shape.rows * convolved + states};
  }
  const std::int64_t keys = shape.heads * shape.outer;
  return {shape.rows * (2 * keys + 2 * shape.inner + shape.heads * shape.chunk), states,
          shape.rows * (keys + 2 * shape.inner)};
}

schedule::DType type_of_states(const StepOperations& to, const schedule::BlockTensors& block) {
  return is_mamba(block) ? schedule::DType::kFp32 : to.type();
}

}  // namespace

MixerWidths mixer_widths(const StepOperations& to, const schedule::BlockTensors& block) {
  const std::int64_t t = to.knobs().tensor_ranks;
  const workload::ModelSpec& model = to.model();
  if (is_mamba(block)) return {model.mamba.inner() / t, model.mamba.in_width() / t};
  return {model.delta.values() / t, model.delta.in_width() / t};
}

MixerBuffers mixer_forward(StepOperations& to, const schedule::BlockTensors& block, BufferId norm, BufferId out,
                           Term rest) {
  const Shape shape = mixer_shape(to, block);
  const MixerElems elems = elems_of(to, block, shape);
  const MixerWidths widths = mixer_widths(to, block);
  MixerBuffers buffers;
  buffers.projected = to.all("mixer's input", rest, widths.projected);
  buffers.kept = to.buffer("kept by the mixer", rest, elems.kept, to.type());
  to.column_forward(norm, block.mixer.in, buffers.projected, widths.projected);
  const BufferId states = to.buffer("states", Term::kWorkspace, elems.states, type_of_states(to, block));
  const BufferId mixed = to.buffer("between kernels", Term::kWorkspace, elems.mixed, to.type());
  to.add(is_mamba(block) ? OpKind::kMambaForward : OpKind::kDeltaForward, shape,
         {reads(buffers.projected, shape.rows * widths.projected), to.zero().parameter(block.mixer.norm),
          to.zero().parameter(block.mixer.heads), to.zero().parameter(block.mixer.conv),
          writes(out, shape.rows * shape.inner), writes(buffers.kept, elems.kept), writes(states, elems.states),
          writes(mixed, elems.mixed)});
  return buffers;
}

BufferId mixer_backward(StepOperations& to, const schedule::BlockTensors& block, const MixerBuffers& kept,
                        BufferId dout) {
  const Shape shape = mixer_shape(to, block);
  const MixerElems elems = elems_of(to, block, shape);
  const MixerWidths widths = mixer_widths(to, block);
  const BufferId dprojected = to.all("mixer's input gradient", Term::kWorkspace, widths.projected);
  // What is computed again, and its gradient.
  const BufferId states = to.buffer("states again", Term::kWorkspace, 2 * elems.states, type_of_states(to, block));
  const BufferId mixed = to.buffer("between kernels again", Term::kWorkspace, 2 * elems.mixed, to.type());
  std::vector<Operand> operands = {reads(dout, shape.rows * shape.inner),
                                   reads(kept.projected, shape.rows * widths.projected),
                                   to.zero().parameter(block.mixer.norm),
                                   to.zero().parameter(block.mixer.heads),
                                   to.zero().parameter(block.mixer.conv),
                                   reads(kept.kept, elems.kept),
                                   writes(dprojected, shape.rows * widths.projected),
                                   writes(states, 2 * elems.states),
                                   writes(mixed, 2 * elems.mixed)};
  const OpKind kind = is_mamba(block) ? OpKind::kMambaBackward : OpKind::kDeltaBackward;
  if (!to.zero().trains(block.mixer.conv)) {
    to.add(kind, shape, std::move(operands));
    return dprojected;
  }
  const auto trained = {block.mixer.norm, block.mixer.heads, block.mixer.conv};
  for (const int tensor : trained) operands.push_back(to.zero().gradient(tensor));
  to.add(kind, shape, std::move(operands));
  for (const int tensor : trained) to.zero().gradient_done(tensor);
  return dprojected;
}

}  // namespace krigtune::plan
