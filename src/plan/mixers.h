#pragma once
#include "plan/step_operations.h"

namespace krigtune::plan {

/// What a mixer in place of attention keeps: what one product made of each token, and what its kernels keep.
struct MixerBuffers {
  BufferId projected = -1, kept = -1;
};

/// Width of a mixer's output on one tensor rank, and of what one product makes of each token.
struct MixerWidths {
  std::int64_t output = 0, projected = 0;
};
MixerWidths mixer_widths(const StepOperations& to, const schedule::BlockTensors& block);

/// State-space layers and linear attention (workload::MambaSpec, workload::DeltaSpec) of the block's input `norm`:
/// `out` receives what the product of the output reads. `rest` says what is kept.
///
/// Mamba-2 keeps what mamba_split_conv1d_scan_combined does (state-spaces/mamba, ops/triton/ssd_combined.py): the
/// product's output and that of the scan; the convolution and the states are computed again. The norm behind it keeps
/// its input, as in Megatron Core's mamba_mixer.py, where it is a module of its own. A gated delta rule keeps what
/// flash-linear-attention's does (ops/gated_delta_rule/chunk.py): queries, keys and values after the convolution, with
/// a copy of queries and keys for each head of values, the inverted matrix of each chunk, and the input of the norm.
MixerBuffers mixer_forward(StepOperations& to, const schedule::BlockTensors& block, BufferId norm, BufferId out,
                           schedule::Term rest);
/// Returns the gradient of what the first product made.
BufferId mixer_backward(StepOperations& to, const schedule::BlockTensors& block, const MixerBuffers& kept,
                        BufferId dout);

}  // namespace krigtune::plan
