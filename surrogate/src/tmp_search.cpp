// Stand-in until the acquisition's own files are here.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "krigtune/core/error.h"
#include "krigtune/surrogate/maximize.h"
#include "nlopt_minimizer.h"

namespace krigtune {
namespace {
using Eigen::Index;
using Eigen::VectorXd;

class LogEi final : public Acquisition {
 public:
  explicit LogEi(double best) : best_(best) {}
  AcquisitionValue at(double mean, double variance) const override {
    const double s = std::sqrt(std::max(variance, 1e-12));
    const double u = (mean - best_) / s;
    const double g = log_h_derivative(u);
    return {log_h(u) + std::log(s), g / s, variance < 1e-12 ? 0.0 : (1.0 - g * u) / (2.0 * s * s)};
  }
  VectorXd values(const Prediction& p) const override { return log_expected_improvement(p, best_); }

 private:
  double best_;
};
class LogBelow final : public Acquisition {
 public:
  explicit LogBelow(double bound) : bound_(bound) {}
  AcquisitionValue at(double mean, double variance) const override {
    const double s = std::sqrt(std::max(variance, 1e-12));
    const double z = (bound_ - mean) / s;
    const double value = log_normal_cdf(z);
    const double slope = std::exp(-0.5 * z * z - 0.91893853320467274178 - value);
    return {value, -slope / s, -slope * z / (2.0 * s * s)};
  }
  VectorXd values(const Prediction& p) const override {
    VectorXd r(p.mean.size());
    for (Index i = 0; i < r.size(); ++i) r[i] = at(p.mean[i], p.variance[i]).value;
    return r;
  }

 private:
  double bound_;
};

double radical_inverse(unsigned i, unsigned base) {
  double f = 1.0, r = 0.0;
  while (i > 0) {
    f /= base;
    r += f * (i % base);
    i /= base;
  }
  return r;
}
}  // namespace

std::unique_ptr<Acquisition> make_log_expected_improvement(double best) { return std::make_unique<LogEi>(best); }
std::unique_ptr<Acquisition> make_log_probability_below(double bound) { return std::make_unique<LogBelow>(bound); }

Score::Score(std::vector<ScoreTerm> terms) : terms_(std::move(terms)) {}
VectorXd Score::values(const Points& points) const {
  VectorXd sum = VectorXd::Zero(points.size());
  for (const auto& t : terms_) sum += t.weight * t.acquisition->values(t.model->predict(points));
  return sum;
}
double Score::value_with_gradient(const Points& point, VectorXd& gradient) const {
  gradient = VectorXd::Zero(point.ordered.cols());
  double sum = 0.0;
  for (const auto& t : terms_) {
    const PredictionGradient p = t.model->predict_with_gradient(point);
    const AcquisitionValue v = t.acquisition->at(p.mean, p.variance);
    sum += t.weight * v.value;
    gradient += t.weight * (v.by_mean * p.mean_gradient + v.by_variance * p.variance_gradient);
  }
  return sum;
}

void MixedSpace::validate() const {}
Points MixedSpace::sample(Index count, Rng& rng) const {
  const unsigned primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
  const auto d = static_cast<Index>(ordered.size()), c = static_cast<Index>(categories.size());
  Points all = Points::zero(count, d, c);
  for (Index j = 0; j < d + c; ++j) {
    const unsigned b = primes[j];
    std::vector<unsigned> digits(b);
    std::iota(digits.begin(), digits.end(), 0U);
    const double shift = rng.uniform();
    for (Index i = 0; i < count; ++i) {
      double u = radical_inverse(static_cast<unsigned>(i + 1), b) + shift;
      u -= std::floor(u);
      if (j < d) {
        const auto& v = ordered[static_cast<std::size_t>(j)].values;
        all.ordered(i, j) = v.empty() ? u : v[static_cast<std::size_t>(u * static_cast<double>(v.size()))];
      } else {
        all.categories(i, j - d) = static_cast<int>(u * categories[static_cast<std::size_t>(j - d)]);
      }
    }
  }
  if (!allowed) return all;
  Points kept;
  for (Index i = 0; i < count; ++i)
    if (allowed(all, i)) kept.append(all.slice(i, 1));
  if (kept.size() == 0) kept = Points::zero(0, d, c);
  return kept;
}

namespace {
double climb_continuous(const ScoreFunction& score, const MixedSpace& space, Points& point, int evaluations) {
  const Index d = point.ordered.cols();
  VectorXd lower = point.ordered.row(0).transpose(), upper = lower;
  bool any = false;
  for (Index i = 0; i < d; ++i)
    if (space.ordered[static_cast<std::size_t>(i)].values.empty()) lower[i] = 0.0, upper[i] = 1.0, any = true;
  if (!any) return score.values(point)[0];
  const double before = score.values(point)[0];
  Points at = point;
  const Minimum m = minimize_in_box(
      [&](const VectorXd& x, VectorXd& g) {
        at.ordered.row(0) = x.transpose();
        const double v = score.value_with_gradient(at, g);
        g = -g;
        for (Index i = 0; i < d; ++i)
          if (lower[i] == upper[i]) g[i] = 0.0;
        return -v;
      },
      point.ordered.row(0).transpose(), lower, upper, {1e-6, evaluations});
  if (m.point.size() == 0 || !(-m.value > before)) return before;
  at.ordered.row(0) = m.point.transpose();
  if (space.allowed && !space.allowed(at, 0)) return before;
  point = at;
  return -m.value;
}
double climb_discrete(const ScoreFunction& score, const MixedSpace& space, Points& point, double value) {
  Points around;
  for (Index i = 0; i < point.ordered.cols(); ++i)
    for (double v : space.ordered[static_cast<std::size_t>(i)].values) {
      Points p = point;
      p.ordered(0, i) = v;
      if (!space.allowed || space.allowed(p, 0)) around.append(p);
    }
  for (Index i = 0; i < point.categories.cols(); ++i)
    for (int v = 0; v < space.categories[static_cast<std::size_t>(i)]; ++v) {
      Points p = point;
      p.categories(0, i) = v;
      if (!space.allowed || space.allowed(p, 0)) around.append(p);
    }
  if (around.size() == 0) return value;
  Index best = 0;
  const double s = score.values(around).maxCoeff(&best);
  if (s > value) {
    point = around.slice(best, 1);
    return s;
  }
  return value;
}
}  // namespace

Maximum maximize(const ScoreFunction& score, const MixedSpace& space, const Points& hints, Rng& rng,
                 const MaximizeOptions& options) {
  Points all = space.sample(options.samples, rng);
  const Index hint_rows = hints.size();
  if (hint_rows > 0) {
    Points h = hints;
    h.append(all);
    all = h;
  }
  if (all.size() == 0) return {all, 0.0};
  const VectorXd s = score.values(all);
  std::vector<Index> order(static_cast<std::size_t>(s.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return s[a] > s[b]; });
  Maximum best{{}, -HUGE_VAL};
  int done = 0;
  for (Index i : order) {
    if (done == options.starts) break;
    Points p = all.slice(i, 1);
    if (space.allowed && !space.allowed(p, 0)) continue;
    ++done;
    double v = s[i];
    for (int round = 0; round < options.rounds; ++round) {
      const double before = v;
      v = std::max(v, climb_continuous(score, space, p, options.evaluations));
      v = climb_discrete(score, space, p, v);
      if (!(v > before + 1e-6)) break;
    }
    if (v > best.score) best = {p, v};
  }
  return best;
}
}  // namespace krigtune
