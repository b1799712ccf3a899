#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "krigtune/surrogate/maximize.h"
#include "krigtune/surrogate/surrogate.h"

namespace krigtune::surrogate {

/// What became of a point.
struct Evaluation {
  Points point;                 ///< one
  std::optional<double> value;  ///< larger is better; none: it failed
  Eigen::VectorXd constraints;  ///< measured, feasible where all are <= 0; empty if there are none or it failed
};

/// A model for functions of which nothing is known, exact or noisy, of light or heavy tails.
SurrogateOptions surrogate_for_unknown_functions();

struct OptimizerOptions {
  enum class Failures {
    kProbability,  ///< probability of success times improvement: the best median where failures are a region
    kImpute,       ///< failures count as the worst value seen: for failures without a pattern
  };
  /// Of the values. The constraints have its kernel and priors, a constant mean and no transform.
  SurrogateOptions surrogate = surrogate_for_unknown_functions();
  int initial_points = 0;  ///< quasi-random, before the first model; 0: one more than there are columns
  Failures failures = Failures::kProbability;
  MaximizeOptions maximize;
  std::uint64_t seed = 1;
  void validate() const;
};

/// Bayesian optimisation of an expensive function over a mixed space, by ask and tell, for maximisation. Points asked
/// and not yet told are pending and conditioned on. What is asked depends on the options, the points pending and what
/// was told, in its order, and on nothing else.
class Optimizer {
 public:
  /// UserError if the space or the options make no sense.
  explicit Optimizer(MixedSpace space, OptimizerOptions options = {});
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// A point that was neither asked nor told before; nothing if there is none left (or, in a space too large to list,
  /// none found that is allowed).
  std::optional<Points> ask();
  /// Any point of the space, asked or not, may be told, more than once too. UserError if it is not one point of the
  /// space, if a number is not finite, or if there are not as many constraints as before.
  void tell(const Evaluation& evaluation);
  /// The feasible evaluation of the largest value told so far.
  std::optional<Evaluation> best() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace krigtune::surrogate
