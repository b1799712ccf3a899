#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "krigtune/surrogate/maximize.h"
#include "krigtune/surrogate/surrogate.h"

namespace krigtune::surrogate {

/// The result of evaluating one point.
struct Evaluation {
  Points point;                 ///< a single point
  std::optional<double> value;  ///< larger is better; empty if the evaluation failed
  /// measured; feasible if all are <= 0; empty if there are none or the evaluation failed
  Eigen::VectorXd constraints;
};

/// Options of a model for functions about which nothing is known: exact or noisy, with light or heavy tails.
SurrogateOptions surrogate_for_unknown_functions();

struct OptimizerOptions {
  enum class Failures {
    kProbability,  ///< probability of success times improvement: the best median if the failures form a region
    kImpute,       ///< failures count as the worst value seen: for failures without a pattern
  };
  /// Model of the values. The constraints use the same kernel and priors, a constant mean and no transform.
  SurrogateOptions surrogate = surrogate_for_unknown_functions();
  int initial_points = 0;  ///< number of quasi-random points before the first model; 0: number of columns + 1
  Failures failures = Failures::kProbability;
  MaximizeOptions maximize;
  std::uint64_t seed = 1;
  void validate() const;
};

/// Bayesian optimisation (maximisation) of an expensive function over a mixed space, by ask and tell. Points that were
/// asked and not yet told are pending; the model is conditioned on them. The next point depends only on the options,
/// the pending points and the evaluations told, in their order.
class Optimizer {
 public:
  /// Throws UserError if the space or the options are invalid.
  explicit Optimizer(MixedSpace space, OptimizerOptions options = {});
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// Returns a point that was neither asked nor told before. Returns nothing if no such point remains or, in a space
  /// too large to list, if no allowed one was found.
  std::optional<Points> ask();
  /// Records an evaluation of any point of the space, asked or not; the same point may be told several times. Throws
  /// UserError if the point is not a single point of the space, a number is not finite, or the number of constraints
  /// differs from before.
  void tell(const Evaluation& evaluation);
  /// Returns the feasible evaluation with the largest value told so far.
  std::optional<Evaluation> best() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace krigtune::surrogate
