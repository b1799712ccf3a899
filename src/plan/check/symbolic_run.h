#pragma once
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/check/checks.h"
#include "plan/check/symbols.h"

namespace krigtune::plan {

/// Executes a plan's steps with symbols on all ranks of the job, in the order of issue. It finds errors in the values
/// that operations read and in the optimizer's results.
class SymbolicRun {
 public:
  SymbolicRun(const StepPlan& plan, Findings& findings);

  void step();
  /// Call after the last step.
  void check_uses();

 private:
  struct Place {
    std::int64_t world, data, tensor;  ///< rank of the job, and in each group
  };
  /// The values of a tensor and their derivative on one rank.
  struct Parameter {
    std::size_t tensor;
    std::uint64_t name;  ///< equal for tensor ranks that hold the same values
    Symbols value, derivative;
  };

  void start();
  void execute(std::size_t operation, const Place& place, Executed* executed);
  void communicate(std::size_t operation, const std::vector<Place>& group, std::vector<Executed>* executed);
  void run_group(std::size_t operation, schedule::Group group);
  void compute(std::size_t operation, const Place& place);
  void compute_layer(std::size_t operation, const Place& place, const SymbolicCall& call);
  void expect(std::size_t operation, std::size_t operand, const Place& place, const Symbols& value,
              const std::string& what);
  void check_batch(std::size_t operation, const Place& place);
  void check_split_loss(std::size_t operation, const Place& place);
  void load(std::size_t operation, const Place& place, const SymbolicCall& call);
  void pairwise(std::size_t operation, const Place& place);
  void add_norm(std::size_t operation, const Place& place);
  void scale_loss(std::size_t operation, const Place& place);
  void update(std::size_t operation, const Place& place);
  void update_part(std::size_t operation, const Place& place, std::size_t first, std::size_t stride,
                   const Piece& piece);
  void accumulate_momentum(std::size_t operation, const Place& place);
  void orthogonalize(std::size_t operation, const Place& place);
  void put_part(std::size_t operation, std::size_t operand, const Place& place, const Piece& piece,
                const Symbols& values);
  void check_control(std::size_t operation, const Place& place, bool is_there);
  void know_parameters();
  void check_homes();
  void check_losses();
  void check_fresh(std::size_t operation, const Symbols& values, BufferId buffer);

  std::uint64_t name_of(std::size_t tensor, std::int64_t tensor_rank) const;
  Symbols value_of(std::size_t tensor, std::int64_t tensor_rank, std::int64_t version) const;
  Symbols moment_of(const Parameter& parameter, std::size_t which, std::int64_t version) const;
  Symbols direction_of(const Parameter& parameter) const;
  static Symbols squares_of(const Parameter& parameter);
  std::uint64_t place_of(std::size_t operation, const Place& place) const;
  const Parameter* parameter_at(const Piece& piece, bool derivative, std::int64_t* place) const;
  Range at(const Operation& operation, std::size_t operand, const Place& place) const;
  Symbols& memory(const Place& place, BufferId buffer);
  Symbols look(std::size_t operation, std::size_t operand, const Place& place);
  Symbols read(std::size_t operation, std::size_t operand, const Place& place);
  void write(std::size_t operation, std::size_t operand, const Place& place, const Symbols& values);
  void complain(std::size_t operation, BufferId buffer, const std::string& what);

  const StepPlan& plan_;
  Findings& findings_;
  std::int64_t steps_ = 0;
  std::vector<Place> world_;
  std::vector<std::vector<Symbols>> memory_;  ///< for each rank and buffer
  std::vector<bool> is_used_;                 ///< for each operation
  std::unordered_set<std::uint64_t> reported_;
  Derivatives derivatives_;
  /// The values of the parameters and their derivatives in this step are known.
  bool knows_parameters_ = false;
  /// Matrices are updated along their orthogonal directions (Muon).
  bool orthogonalizes_ = false;
  /// Parameters of this step, each name once.
  std::vector<Parameter> parameters_;
  /// From the `b` of a symbol to its parameter.
  std::unordered_map<std::uint64_t, std::size_t> by_value_, by_derivative_;
  std::unordered_map<std::uint64_t, std::size_t> by_momentum_;  ///< the same of this step's momenta of matrices
  std::unordered_set<std::uint64_t> stale_;                     ///< `b` of the values of earlier steps
  std::unordered_set<std::uint64_t> controls_;                  ///< written in this step
  Symbols control_;                                             ///< value before this step
  /// For each data rank in its current micro-step: tokens and targets. For each tensor rank: its part of the loss.
  std::vector<std::array<Symbols, 2>> batch_;
  std::vector<std::vector<Symbols>> logits_, exponentials_, tops_, sums_, at_target_;
};

}  // namespace krigtune::plan
