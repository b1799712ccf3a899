#pragma once
#include "step/step_operations.h"

namespace krigtune {

/// The two ends of a model: token table (and learned positions), and final norm, head and loss. With tensor parallelism
/// both are split over the vocabulary.
class VocabularyPart {
 public:
  VocabularyPart(StepOperations& to, const ParameterTable& table, BufferId loss)
      : to_(to), table_(table), loss_(loss) {}

  /// Returns the residual stream, of the own tokens.
  BufferId embed();
  /// Forward, loss and backward of the final norm and the head: residual_gradient is written.
  void head(BufferId input, BufferId residual_gradient);
  void embed_backward(BufferId residual_gradient);

 private:
  void load_batch();
  void look_up(BufferId x);
  void loss(BufferId logits);
  void split_loss(BufferId logits, const Operand& mean);
  double loss_scale() const;
  void add_scaled(OpKind kind, const Shape& shape, std::vector<Operand> operands);
  void head_backward(BufferId logits, BufferId normed, BufferId dnormed);

  StepOperations& to_;
  const ParameterTable& table_;
  BufferId loss_;
  BufferId tokens_ = -1, targets_ = -1, embedding_mask_ = -1;
};

}  // namespace krigtune
