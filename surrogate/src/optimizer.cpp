#include "krigtune/surrogate/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "krigtune/core/error.h"
#include "krigtune/surrogate/success_model.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

double knob(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stod(text) : otherwise;
}

bool feasible(const Evaluation& e) { return e.value && (e.constraints.size() == 0 || e.constraints.maxCoeff() <= 0.0); }

bool same_point(const Points& x, Index i, const Points& y, Index j) {
  return (x.ordered.row(i) - y.ordered.row(j)).cwiseAbs().sum() < 1e-9 &&
         (x.categories.cols() == 0 || x.categories.row(i) == y.categories.row(j));
}
bool contains(const Points& all, const Points& x, Index row) {
  for (Index i = 0; i < all.size(); ++i)
    if (same_point(all, i, x, row)) return true;
  return false;
}

class WithSuccess final : public ScoreFunction {
 public:
  WithSuccess(const ScoreFunction* improvement, const SuccessModel& success, double least, double power)
      : improvement_(improvement), success_(success), least_(least), power_(power) {}
  VectorXd values(const Points& points) const override {
    const VectorXd p = success_.probability(points, VectorXd::Constant(points.size(), prior_));
    VectorXd s = improvement_ ? improvement_->values(points) : VectorXd::Zero(points.size());
    for (Index i = 0; i < p.size(); ++i) s[i] += power_ * std::log(p[i]) - penalty(p[i]);
    return s;
  }
  double value_with_gradient(const Points& point, VectorXd& gradient) const override {
    const Index d = point.ordered.cols();
    gradient = VectorXd::Zero(d);
    if (improvement_) improvement_->value_with_gradient(point, gradient);
    Points around;
    for (Index i = 0; i < d; ++i)
      for (double h : {1e-5, -1e-5}) {
        Points q = point;
        q.ordered(0, i) += h;
        around.append(q);
      }
    const VectorXd p = success_.probability(around, VectorXd::Constant(around.size(), prior_));
    for (Index i = 0; i < d; ++i)
      gradient[i] +=
          (power_ * std::log(p[2 * i]) - penalty(p[2 * i]) - power_ * std::log(p[2 * i + 1]) + penalty(p[2 * i + 1])) /
          2e-5;
    return values(point)[0];
  }
  double penalty(double p) const { return p < least_ ? 20.0 * (least_ - p) * 10 : 0.0; }
  static constexpr double prior_ = 2.0;

 private:
  const ScoreFunction* improvement_;
  const SuccessModel& success_;
  double least_;
  double power_;
};

class Inflated final : public Acquisition {
 public:
  Inflated(std::unique_ptr<Acquisition> inner, double factor) : inner_(std::move(inner)), factor_(factor) {}
  AcquisitionValue at(double mean, double variance) const override {
    AcquisitionValue v = inner_->at(mean, factor_ * variance);
    v.by_variance *= factor_;
    return v;
  }
  VectorXd values(const Prediction& p) const override { return inner_->values({p.mean, factor_ * p.variance}); }

 private:
  std::unique_ptr<Acquisition> inner_;
  double factor_;
};

}  // namespace

void OptimizerOptions::validate() const { surrogate.validate(); }

struct Optimizer::State {
  MixedSpace space;
  OptimizerOptions options;
  std::vector<Evaluation> told;
  Points pending;

  Points seen() const {
    Points all;
    for (const auto& e : told) all.append(e.point);
    all.append(pending);
    return all;
  }
};

Optimizer::Optimizer(MixedSpace space, OptimizerOptions options) : state_(std::make_unique<State>()) {
  options.validate();
  state_->space = std::move(space);
  state_->options = std::move(options);
  state_->pending = Points::zero(0, std::ssize(state_->space.ordered), std::ssize(state_->space.categories));
}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;

std::optional<Points> Optimizer::ask() {
  State& s = *state_;
  const Points seen = s.seen();
  MixedSpace space = s.space;
  space.allowed = [&](const Points& p, Index i) {
    return (!s.space.allowed || s.space.allowed(p, i)) && !contains(seen, p, i);
  };
  const auto dims = static_cast<int>(space.ordered.size() + space.categories.size());
  const Index count = seen.size();
  Rng rng(s.options.seed, static_cast<std::uint64_t>(count) + 1);
  const int initial =
      s.options.initial_points > 0 ? s.options.initial_points : static_cast<int>(knob("INIT", 2 * dims));
  auto finish = [&](Points p) -> std::optional<Points> {
    s.pending.append(p);
    return p;
  };
  if (count < initial || s.told.empty()) {
    Rng design(s.options.seed, 0);
    const Points all = s.space.sample(4 * initial + 64, design);
    for (Index i = count; i < all.size(); ++i)
      if (space.allowed(all, i)) return finish(all.slice(i, 1));
  }
  Observations data;
  std::vector<Observations> constraint_data;
  double worst = HUGE_VAL;
  bool any_failure = false, any_feasible = false;
  for (const auto& e : s.told) {
    if (e.value) worst = std::min(worst, *e.value);
    any_failure = any_failure || !e.value;
    any_feasible = any_feasible || feasible(e);
  }
  const bool impute = s.options.failures == OptimizerOptions::Failures::kImpute;
  for (const auto& e : s.told) {
    if (e.value || (impute && worst < HUGE_VAL))
      data.append({e.point, VectorXd::Constant(1, e.value.value_or(worst)), {}});
    if (e.constraints.size() == 0) continue;
    constraint_data.resize(static_cast<std::size_t>(e.constraints.size()));
    for (Index i = 0; i < e.constraints.size(); ++i)
      constraint_data[static_cast<std::size_t>(i)].append({e.point, VectorXd::Constant(1, e.constraints[i]), {}});
  }
  std::vector<ScoreTerm> terms;
  double incumbent = -HUGE_VAL;
  SurrogateOptions so = s.options.surrogate;
  so.hyperparameter_samples = static_cast<int>(knob("HS", 0));
  so.random_starts = static_cast<int>(knob("RS", 2));
  so.priors.noise_stddev = {std::log(knob("NM", 1e-2)), knob("NS", 3.0)};
  so.priors.signal_stddev = {std::log(knob("SM", 1)), knob("SS", 0.7)};
  so.priors.lengthscale = {std::log(knob("LM", 0.5)) + knob("LD", 0) * 0.5 * std::log(dims), knob("LS", 1.0)};
  if (knob("LP", 0) == 1) so.priors.lengthscale = dimension_scaled_lengthscale(dims);
  if (knob("MC", 0) > 0) so.mean = Mean::constant(knob("MC", 0));
  if (knob("SE", 0) == 1) so.kernel.kind = KernelKind::kSquaredExponential;
  if (knob("TR", 0) == 1) so.transform = OutputTransform::Kind::kRankRobust;
  // hints
  std::vector<std::pair<double, Points>> ranked;
  for (const auto& e : s.told)
    if (feasible(e)) ranked.push_back({*e.value, e.point});
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Points hints;
  for (std::size_t k = 0; k < std::min<std::size_t>(ranked.size(), static_cast<std::size_t>(knob("TOP", 3))); ++k)
    for (int r = 0; r < knob("SPRAY", 48); ++r) {
      Points p = ranked[k].second;
      const double scale = std::pow(10.0, -0.5 - 3.5 * rng.uniform());
      for (Index i = 0; i < p.ordered.cols(); ++i)
        if (space.ordered[static_cast<std::size_t>(i)].values.empty())
          p.ordered(0, i) = std::clamp(p.ordered(0, i) + scale * rng.normal(), 0.0, 1.0);
      hints.append(p);
    }
  if (any_feasible) {
    auto model = std::make_shared<Surrogate>(so);
    const FitReport report = model->fit(data, rng);
    if (knob("LOG", 0) > 0 && count % 5 == 0)
      std::fprintf(stderr, "%ld: %s theta %s\n", static_cast<long>(count), report.message.c_str(),
                   [&] {
                     std::string t;
                     for (double v : model->theta()) t += std::to_string(std::exp(v)) + " ";
                     return t;
                   }()
                       .c_str());
    if (knob("LOG", 0) > 0 && dims == 6) {
      Points opt = Points::zero(1, 6, 0);
      opt.ordered << 0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573;
      const Prediction p = model->predict(opt);
      const double inc = model->transform().to_latent(best()->value.value());
      std::fprintf(stderr, "n %ld inc %.6f; at optimum mean %.3f sd %.3f logei %.2f, scale %.3f\n", (long)count, best()->value.value(), p.mean[0], std::sqrt(p.variance[0]), log_expected_improvement(p, inc)[0], model->scale());
    }
    model->believe(s.pending);
    for (const auto& e : s.told)
      if (feasible(e))
        incumbent = std::max(incumbent, knob("MEANINC", 1) > 0 ? model->predict(e.point).mean[0]
                                                               : model->transform().to_latent(*e.value));
    terms.push_back({model, make_log_expected_improvement(incumbent), 1.0});
  }
  for (const auto& c : constraint_data) {
    auto model = std::make_shared<Surrogate>(so);
    model->fit(c, rng);
    model->believe(s.pending);
    terms.push_back({model, make_log_probability_below(0.0), 1.0});
  }
  const Score score(terms);
  MaximizeOptions mo = s.options.maximize;
  Maximum best;
  if (!impute && any_failure) {
    SuccessOptions sopt;
    sopt.lengthscale = knob("SL", 0.5);
    sopt.signal_stddev = knob("SSD", 2.0);
    sopt.slope_stddev = knob("SSL", 0.0);
    SuccessModel success(make_kernel(KernelKind::kMatern52), sopt);
    Points all;
    std::vector<bool> ok;
    for (const auto& e : s.told) all.append(e.point), ok.push_back(e.value.has_value());
    success.fit(all, VectorXd::Constant(all.size(), WithSuccess::prior_), ok);
    const double best_p = success.probability(all, VectorXd::Constant(all.size(), WithSuccess::prior_)).maxCoeff();
    const WithSuccess with(terms.empty() ? nullptr : &score, success, knob("FILTER", 2.0 / 3.0) * best_p,
                           knob("PP", 1.0));
    best = maximize(with, space, hints, rng, mo);
  } else {
    best = maximize(score, space, hints, rng, mo);
  }
  if (best.point.size() == 0) return std::nullopt;
  if (knob("EXPLORE", 0) > 0 && any_feasible && count % static_cast<int>(knob("EVERY", 2)) == 0) {
    double high = -HUGE_VAL, low = HUGE_VAL;
    for (Index i = 0; i < data.values.size(); ++i) high = std::max(high, data.values[i]), low = std::min(low, data.values[i]);
    if (best.score < std::log(knob("EXPLORE", 0) * (high - low))) {
      terms[0].acquisition = std::make_shared<Inflated>(make_log_expected_improvement(incumbent + knob("XI", 0) * (high - low)), knob("INFL", 9));
      const Score wide(terms);
      const Maximum other = maximize(wide, space, hints, rng, mo);
      if (other.point.size() > 0) best = other;
      if (knob("LOG", 0) > 0) std::fprintf(stderr, "  EXPLORE score %.2f\n", other.score);
    }
  }
  if (knob("LOG", 0) > 0) std::fprintf(stderr, "  asked score %.2f\n", best.score);
  return finish(best.point);
}

void Optimizer::tell(const Evaluation& e) {
  State& s = *state_;
  Points left = Points::zero(0, s.pending.ordered.cols(), s.pending.categories.cols());
  for (Index i = 0; i < s.pending.size(); ++i)
    if (!same_point(s.pending, i, e.point, 0)) left.append(s.pending.slice(i, 1));
  s.pending = left;
  s.told.push_back(e);
}

std::optional<Evaluation> Optimizer::best() const {
  std::optional<Evaluation> r;
  for (const auto& e : state_->told)
    if (feasible(e) && (!r || *e.value > *r->value)) r = e;
  return r;
}

}  // namespace krigtune
