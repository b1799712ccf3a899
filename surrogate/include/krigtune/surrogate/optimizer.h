#pragma once
#include <memory>
#include <optional>

#include "krigtune/surrogate/maximize.h"
#include "krigtune/surrogate/surrogate.h"

namespace krigtune {

/// What became of asking a point.
struct Evaluation {
  Points point;                 ///< one
  std::optional<double> value;  ///< none: it failed
  Eigen::VectorXd constraints;  ///< measured, feasible where all are <= 0; empty if there are none
};

struct OptimizerOptions {
  enum class Failures {
    kProbability,  ///< probability of success times improvement: the best median where failures are a region
    kImpute,       ///< failures count as the worst value seen: never far off
  };
  SurrogateOptions surrogate;
  int initial_points = 0;  ///< quasi-random, before the first model; 0: by the dimension
  Failures failures = Failures::kProbability;
  MaximizeOptions maximize;
  std::uint64_t seed = 1;
  void validate() const;
};

/// Bayesian optimisation of an expensive function over a mixed space, by ask and tell, for maximisation. Points asked
/// and not yet told are pending and conditioned on. The same seed and history ask the same.
class Optimizer {
 public:
  Optimizer(MixedSpace space, OptimizerOptions options = {});
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;

  std::optional<Points> ask();
  void tell(const Evaluation& evaluation);
  /// The feasible point of the largest value told so far.
  std::optional<Evaluation> best() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace krigtune
