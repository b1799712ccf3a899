#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/step_operations.h"
#include "schedule/parameters.h"

namespace krigtune::plan {

/// The two ends of a model: the token table (and learned positions), and the final norm, head and loss. With tensor
/// parallelism both are split over the vocabulary. Each further token (workload::MtpSpec) uses the table and the head
/// once more.
class VocabularyPart {
 public:
  VocabularyPart(StepOperations& to, const schedule::ParameterTable& table, BufferId loss)
      : to_(to), table_(table), loss_(loss) {}

  void load_batch();
  /// Returns the residual stream of the own tokens.
  BufferId embed();
  /// Adds the final norm, the head and the loss.
  void head(BufferId input) { head(input, table_.final_norm); }
  /// The same for a further token, whose norm is another one.
  void head(BufferId input, const schedule::NormTensors& norm);
  /// Adds the backward of the head's use number `use`, in the order of these calls, which writes residual_gradient.
  void head_backward(std::size_t use, BufferId residual_gradient);
  void embed_backward(BufferId residual_gradient);

  /// Looks up the token that follows each token; positions are not added. The backward pass adds to the table's
  /// gradient.
  BufferId embed_next(schedule::Term term);
  void embed_next_backward(BufferId gradient);

 private:
  /// One use of the head.
  struct Use {
    schedule::NormTensors norm;
    BufferId input = -1;
    KeptByNorm kept;
    BufferId normed = -1;  ///< for all tokens
    BufferId logits = -1;
  };

  /// Tokens of this micro-step for which head and loss are computed at once.
  struct Rows {
    std::int64_t begin = 0, count = 0;
    bool are_last = true;
  };

  void look_up(BufferId x);
  std::vector<Operand> table_gradient(BufferId dx);
  Rows all_rows() const;
  Range range_of(BufferId buffer, const Rows& rows, std::int64_t width) const;
  void logits_and_loss(Use& use, const Rows& rows);
  void head_and_loss_by_parts(Use& use, BufferId dnormed);
  void loss(const Use& use, const Rows& rows);
  void loss(const Use& use, const Rows& rows, const Operand& mean);
  void split_loss(const Use& use, const Rows& rows, const Operand& mean);
  double loss_scale() const;
  void add_scaled(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands);
  void project_backward(const Use& use, const Rows& rows, BufferId dnormed);
  bool is_first(const Use& use) const { return &use == uses_.data(); }
  bool is_last(const Use& use) const { return &use == &uses_.back(); }

  StepOperations& to_;
  const schedule::ParameterTable& table_;
  BufferId loss_;
  BufferId tokens_ = -1, targets_ = -1, embedding_mask_ = -1;
  std::vector<Use> uses_;  ///< of the head, in this micro-step
};

}  // namespace krigtune::plan
