#pragma once
#include "step/step_operations.h"

namespace krigtune {

/// The two ends of a model: token table (and learned positions), and final norm, head and loss. With tensor parallelism
/// both are split over the vocabulary.
class VocabularyPart {
 public:
  VocabularyPart(StepOperations& to, const ParameterTable& table, BufferId loss)
      : to_(to), table_(table), loss_(loss) {}

  void load_batch();
  /// Returns the residual stream, of the own tokens.
  BufferId embed();
  /// The final norm, the head and the loss.
  void head(BufferId input);
  /// Their backward: residual_gradient is written.
  void head_backward(BufferId residual_gradient);
  void embed_backward(BufferId residual_gradient);

 private:
  void look_up(BufferId x);
  void loss(BufferId logits);
  void split_loss(BufferId logits, const Operand& mean);
  double loss_scale() const;
  void add_scaled(OpKind kind, const Shape& shape, std::vector<Operand> operands);
  void project_backward(BufferId dnormed);

  StepOperations& to_;
  const ParameterTable& table_;
  BufferId loss_;
  BufferId tokens_ = -1, targets_ = -1, embedding_mask_ = -1;
  BufferId head_input_ = -1, stats_ = -1, logits_ = -1;
  BufferId normed_ = -1;  ///< of all tokens
};

}  // namespace krigtune
