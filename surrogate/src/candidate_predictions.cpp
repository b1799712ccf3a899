// Predictions of a growing Gaussian process over a fixed list of candidates. With R = V^T, one row for each candidate,
//
//   R = C(x*, X) L^-T,   mean = h(x*)^T b + R w,   variance = C(x*, x*) - the squared norms of R's rows
//
// and new points at the end of X, [R R'] L'^T = [C C'] leaves R as it is and gives
//
//   R' = (C(x*, X') - R L21^T) L22^-T
//
// (the rows of the extended factor: cholesky.cpp). What R depends on is compared, not announced: kernel, theta, mean
// function, points and their noise. R stands in panels of columns, each panel in blocks of candidates, so that a block
// of R is read from one place.
#include "krigtune/surrogate/candidate_predictions.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kPredictedBlock = 512;  // candidates: 512 x 16 doubles fill half of a second cache of 128 KB
constexpr Index kSpare = 16;            // columns of a new panel beyond what is needed at once
// Factors of the same matrix found on two ways (all at once, or appended) agree to rounding; where a corner needed a
// jitter in one of them, they do not.
constexpr double kSameFactor = 1e-10;

bool same_row(const Points& a, const Points& b, Index i) {
  return a.ordered.row(i) == b.ordered.row(i) && a.categories.row(i) == b.categories.row(i) &&
         a.features.row(i) == b.features.row(i);
}

bool same(const MatrixXd& a, const MatrixXd& b) { return a.rows() == b.rows() && a.cols() == b.cols() && a == b; }

/// Columns of R, of observations `first` and following.
struct Panel {
  Index first = 0;
  Index used = 0;
  Index capacity = 0;
  VectorXd entries;  ///< candidates times capacity: blocks of candidates, each column-major

  Panel(Index first_column, Index columns, Index candidates)
      : first(first_column), capacity(columns), entries(candidates * capacity) {}
  Index room() const { return capacity - used; }
  /// Columns from `column` on, of the block of candidates that begins at `row`; stride: the block's candidates.
  double* at(Index row, Index block, Index column) { return entries.data() + row * capacity + column * block; }
};

/// What is kept of one process.
class KeptRows {
 public:
  explicit KeptRows(Index candidates) : candidates_(candidates) {}

  /// Returns the number of rows of V computed.
  Index update(const GaussianProcess& process, const Points& candidates);
  Prediction prediction() const { return {prior_mean_ + sums_, (prior_variance_ - squares_).cwiseMax(0.0)}; }

 private:
  Index unchanged(const GaussianProcess& process, const Points& candidates) const;
  void begin(const GaussianProcess& process, const Points& candidates);
  void keep(Index rows);
  void sum_up(const VectorXd& whitened);
  Index add(const GaussianProcess& process, const Points& candidates, Index from);
  Panel& panel_with_room(Index wanted);

  Index candidates_;
  std::shared_ptr<const Kernel> kernel_;
  VectorXd theta_;
  VectorXd mean_stddev_;
  VectorXd mean_centre_;
  MatrixXd features_;  ///< of the candidates
  Points points_;
  VectorXd noise_;
  VectorXd diagonal_;  ///< of L
  VectorXd whitened_;
  VectorXd prior_mean_;
  VectorXd prior_variance_;
  VectorXd sums_;     ///< R w
  VectorXd squares_;  ///< squared norms of R's rows
  std::vector<Panel> panels_;
};

/// How many of the first rows of V are still what they were.
Index KeptRows::unchanged(const GaussianProcess& process, const Points& candidates) const {
  if (kernel_ != process.kernel() || !same(theta_, process.theta()) || !same(features_, candidates.features) ||
      !same(mean_stddev_, process.mean().stddev()) || !same(mean_centre_, process.mean().centre()))
    return 0;
  const Index most = std::min(points_.size(), process.points().size());
  const auto same_pivot = [&](Index i) { return std::abs(diagonal_[i] / process.lower()(i, i) - 1.0) <= kSameFactor; };
  for (Index i = 0; i < most; ++i)
    if (noise_[i] != process.noise_variance()[i] || !same_pivot(i) || !same_row(points_, process.points(), i)) return i;
  return most;
}

void KeptRows::begin(const GaussianProcess& process, const Points& candidates) {
  kernel_ = process.kernel();
  theta_ = process.theta();
  mean_stddev_ = process.mean().stddev();
  mean_centre_ = process.mean().centre();
  features_ = candidates.features;
  prior_mean_ = process.prior_mean(candidates);
  prior_variance_ = process.prior_variance(candidates);
}

void KeptRows::keep(Index rows) {
  // The first panel's memory serves again, should nothing of it be kept.
  while (panels_.size() > 1 && panels_.back().first >= rows) panels_.pop_back();
  if (!panels_.empty()) panels_.back().used = rows - panels_.back().first;
}

void KeptRows::sum_up(const VectorXd& whitened) {
  sums_ = VectorXd::Zero(candidates_);
  squares_ = VectorXd::Zero(candidates_);
  for (Index row = 0; row < candidates_; row += kPredictedBlock) {
    const Index block = std::min(kPredictedBlock, candidates_ - row);
    for (Panel& panel : panels_)
      vector_unit().add_moments(block, panel.used, panel.at(row, block, 0), block, whitened.data() + panel.first,
                                sums_.data() + row, squares_.data() + row);
  }
}

/// One with room; `wanted` rows are to come.
Panel& KeptRows::panel_with_room(Index wanted) {
  const Index from = panels_.empty() ? 0 : panels_.back().first + panels_.back().used;
  if (from == 0 && !panels_.empty() && panels_.front().capacity < wanted) panels_.clear();
  if (panels_.empty()) {
    panels_.emplace_back(from, wanted + kSpare, candidates_);
  } else if (panels_.back().room() == 0) {
    panels_.emplace_back(from, std::max(wanted, kSpare), candidates_);
  }
  return panels_.back();
}

/// The process's rows from `from` on, or as many as one panel takes; returns how many.
Index KeptRows::add(const GaussianProcess& process, const Points& candidates, Index from) {
  const Index wanted = process.points().size() - from;
  Panel& target = panel_with_room(wanted);
  const Index count = std::min(wanted, target.room());
  const Points points = process.points().slice(from, count);
  const MatrixXd& lower = process.lower();
  const VectorUnit& unit = vector_unit();
  for (Index row = 0; row < candidates_; row += kPredictedBlock) {
    const Index block = std::min(kPredictedBlock, candidates_ - row);
    double* added = target.at(row, block, target.used);
    Eigen::Map<MatrixXd>(added, block, count) = process.prior_covariance(candidates.slice(row, block), points);
    for (Panel& panel : panels_)
      unit.subtract_product(block, count, panel.used, panel.at(row, block, 0), block, &lower(from, panel.first),
                            lower.outerStride(), added, block);
    unit.solve_rows(block, count, &lower(from, from), lower.outerStride(), added, block);
    unit.add_moments(block, count, added, block, process.whitened().data() + from, sums_.data() + row,
                     squares_.data() + row);
  }
  target.used += count;
  return count;
}

Index KeptRows::update(const GaussianProcess& process, const Points& candidates) {
  const Index kept = unchanged(process, candidates);
  points_ = Points();  // should anything below throw, nothing is kept
  if (kept == 0) begin(process, candidates);
  keep(kept);
  if (kept == 0 || kept < whitened_.size() || whitened_ != process.whitened().head(kept)) sum_up(process.whitened());
  const Index rows = process.points().size();
  for (Index row = kept; row < rows;) row += add(process, candidates, row);
  points_ = process.points();
  noise_ = process.noise_variance();
  diagonal_ = process.lower().diagonal();
  whitened_ = process.whitened();
  return rows - kept;
}

}  // namespace

struct CandidatePredictions::Kept {
  std::vector<KeptRows> processes;
};

CandidatePredictions::CandidatePredictions(Points candidates, std::size_t memory_limit_bytes)
    : candidates_(std::move(candidates)), memory_limit_bytes_(memory_limit_bytes), kept_(std::make_unique<Kept>()) {}

CandidatePredictions::~CandidatePredictions() = default;
CandidatePredictions::CandidatePredictions(CandidatePredictions&&) noexcept = default;
CandidatePredictions& CandidatePredictions::operator=(CandidatePredictions&&) noexcept = default;

Prediction CandidatePredictions::predict(const Surrogate& surrogate) {
  const std::vector<GaussianProcess>& processes = surrogate.processes();
  std::size_t entries = 0;
  for (const GaussianProcess& process : processes)
    entries += static_cast<std::size_t>((process.points().size() + kSpare) * candidates_.size());
  rows_computed_ = 0;
  if (entries * sizeof(double) > memory_limit_bytes_) {
    kept_->processes.clear();
    for (const GaussianProcess& process : processes) rows_computed_ += process.points().size();
    return surrogate.predict(candidates_);
  }
  kept_->processes.resize(processes.size(), KeptRows(candidates_.size()));
  // Features are all that is standardised.
  const bool plain = candidates_.features.cols() == 0;
  const Points standardised = plain ? Points() : surrogate.standardised(candidates_);
  std::vector<Prediction> each;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    rows_computed_ += kept_->processes[i].update(processes[i], plain ? candidates_ : standardised);
    each.push_back(kept_->processes[i].prediction());
  }
  return surrogate.mixture(each);
}

}  // namespace krigtune::surrogate
