#pragma once
#include <cstdint>
#include <vector>

#include "plan/step_operations.h"
#include "schedule/parameters.h"

namespace krigtune::plan {

/// The two ends of a model: the token table (and learned positions), and the final norm, head and loss. With tensor
/// parallelism both are split over the vocabulary.
class VocabularyPart {
 public:
  VocabularyPart(StepOperations& to, const schedule::ParameterTable& table, BufferId loss)
      : to_(to), table_(table), loss_(loss) {}

  void load_batch();
  /// Returns the residual stream of the own tokens.
  BufferId embed();
  /// Adds the final norm, the head and the loss.
  void head(BufferId input);
  /// Adds their backward, which writes residual_gradient.
  void head_backward(BufferId residual_gradient);
  void embed_backward(BufferId residual_gradient);

 private:
  /// Tokens of this micro-step for which head and loss are computed at once.
  struct Rows {
    std::int64_t begin = 0, count = 0;
    bool are_last = true;
  };

  void look_up(BufferId x);
  Rows all_rows() const;
  Range range_of(BufferId buffer, const Rows& rows, std::int64_t width) const;
  void logits_and_loss(const Rows& rows);
  void head_and_loss_by_parts(BufferId dnormed);
  void loss(const Rows& rows);
  void loss(const Rows& rows, const Operand& mean);
  void split_loss(const Rows& rows, const Operand& mean);
  double loss_scale() const;
  void add_scaled(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands);
  void project_backward(const Rows& rows, BufferId dnormed);

  StepOperations& to_;
  const schedule::ParameterTable& table_;
  BufferId loss_;
  BufferId tokens_ = -1, targets_ = -1, embedding_mask_ = -1;
  BufferId head_input_ = -1, logits_ = -1;
  KeptByNorm norm_;
  BufferId normed_ = -1;  ///< for all tokens
};

}  // namespace krigtune::plan
