#pragma once
#include <cstddef>

#include "krigtune/surrogate/surrogate.h"

namespace krigtune::surrogate {

/// Predictions over one list of candidates, for a surrogate that grows: what the last call computed and still holds
/// (L^-1 K* of the rows that have not changed) is kept, so that one more observation, or points believed and forgotten,
/// cost O(n m) instead of O(n^2 m).
class CandidatePredictions {
 public:
  /// `memory_limit_bytes`: of what is kept; a list that would need more is predicted anew every time.
  explicit CandidatePredictions(Points candidates, std::size_t memory_limit_bytes = std::size_t{256} << 20);
  ~CandidatePredictions();
  CandidatePredictions(CandidatePredictions&&) noexcept;
  CandidatePredictions& operator=(CandidatePredictions&&) noexcept;

  const Points& candidates() const { return candidates_; }
  /// As surrogate.predict(candidates()), to rounding.
  Prediction predict(const Surrogate& surrogate);
  /// Of L^-1 K*, over all processes, by the last call: the others were kept.
  Eigen::Index rows_computed() const { return rows_computed_; }

 private:
  struct Kept;
  Points candidates_;
  std::size_t memory_limit_bytes_;
  std::unique_ptr<Kept> kept_;
  Eigen::Index rows_computed_ = 0;
};

}  // namespace krigtune::surrogate
