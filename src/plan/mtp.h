#pragma once
#include <vector>

#include "plan/step_operations.h"
#include "plan/transformer.h"
#include "plan/vocabulary.h"

namespace krigtune::plan {

/// The layers that predict further tokens (workload::MtpSpec), as Megatron Core has them
/// (transformer/multi_token_prediction.py): norms of the hidden state and of the next token's embedding, side by side,
/// a product to the model's width, blocks, and head and loss once more. All belong to the unit of the head.
class MtpLayers {
 public:
  MtpLayers(StepOperations& to, VocabularyPart& vocabulary, const schedule::ParameterTable& table)
      : to_(to), vocabulary_(vocabulary), table_(table) {}

  /// Adds all of them behind the blocks, whose output is `hidden`. `terms`: of their blocks.
  void forward(BufferId hidden, const LayerTerms& terms);
  /// Adds the backward of the head's uses and of all layers; residual_gradient is written. `computes_again`: blocks and
  /// what they read are computed once more, each layer before its backward.
  void backward(BufferId residual_gradient, const LayerTerms& terms, bool computes_again);

 private:
  /// What one layer keeps.
  struct Kept {
    BufferId hidden = -1, embedding = -1;
    KeptByNorm of_hidden, of_embedding;
    BufferId joined = -1;  ///< both norms' outputs, side by side
    std::vector<LayerBuffers> blocks;
    BufferId output = -1;
  };

  const schedule::MtpTensors& tensors_of(std::size_t layer) const;
  void layer_forward(const schedule::MtpTensors& tensors, Kept& kept, const LayerTerms& terms);
  void layer_backward(const schedule::MtpTensors& tensors, Kept& kept, const LayerTerms& terms, BufferId gradient,
                      BufferId hidden_gradient);
  BufferId join_forward(const schedule::MtpTensors& tensors, const Kept& kept, schedule::Term term);
  Operand join_backward(const schedule::MtpTensors& tensors, const Kept& kept, BufferId gradient);

  StepOperations& to_;
  VocabularyPart& vocabulary_;
  const schedule::ParameterTable& table_;
  std::vector<Kept> layers_;
};

}  // namespace krigtune::plan
