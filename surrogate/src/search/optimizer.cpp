#include "krigtune/surrogate/optimizer.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "krigtune/surrogate/success_model.h"
#include "search/history.h"
#include "search/optimizer.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;

// Streams of the generator: one for the initial design, then one for every proposed point.
constexpr std::uint64_t kDesignStream = 0;
// Ascent starts around this many of the best points, because the second best is often at the foot of a better peak.
constexpr std::size_t kHints = 3;

void require(bool holds, const char* what) {
  if (!holds) throw UserError(std::string("evaluation: ") + what);
}

}  // namespace

SurrogateOptions surrogate_for_unknown_functions() {
  SurrogateOptions options;
  options.kernel.kind = KernelKind::kMainEffects;  // the effect of a category is usually similar everywhere
  // A few very bad points must not determine the scale on which good points are distinguished.
  options.transform = OutputTransform::Kind::kRankRobust;
  // Half of the cube, up to a factor of three more or less. If the function has ripples, shorter lengthscales are found
  // soon.
  options.priors.lengthscale = {std::log(0.5), 1.0};
  // From a tenth of the spread or more down to exact values. In the latter case the fit reaches its lower bound of
  // 1e-4, and improvements far below a thousandth of the spread can still be distinguished from noise.
  options.priors.noise_stddev = {std::log(0.01), 3.0};
  return options;
}

void OptimizerOptions::validate() const {
  surrogate.validate();
  maximize.validate();
  if (initial_points < 0) throw UserError("initial_points must not be negative");
}

struct Optimizer::State {
  MixedSpace space;
  OptimizerOptions options;
  History history;

  MixedSpace unseen() const;
  Index initial_points() const;
  void check(const Evaluation& evaluation) const;
};

/// Returns the space without the points that were told or asked. The result refers to this object.
MixedSpace Optimizer::State::unseen() const {
  MixedSpace result = space;
  result.allowed = [this](const Points& points, Index row) {
    return (!space.allowed || space.allowed(points, row)) && !history.contains(points, row);
  };
  return result;
}

Index Optimizer::State::initial_points() const {
  if (options.initial_points > 0) return options.initial_points;
  return std::ssize(space.ordered) + std::ssize(space.categories) + 1;
}

void Optimizer::State::check(const Evaluation& evaluation) const {
  const Points& point = evaluation.point;
  require(point.size() == 1 && point.categories.rows() == 1 && point.ordered.cols() == std::ssize(space.ordered) &&
              point.categories.cols() == std::ssize(space.categories),
          "its point must be one, with the columns of the space");
  require(point.ordered.allFinite() && (point.ordered.array() >= 0.0).all() && (point.ordered.array() <= 1.0).all(),
          "ordered columns must lie in [0, 1]");
  for (Index j = 0; j < point.categories.cols(); ++j)
    require(point.categories(0, j) >= 0 && point.categories(0, j) < space.categories[static_cast<std::size_t>(j)],
            "a category is not of the space");
  require(!evaluation.value || std::isfinite(*evaluation.value),
          "its value must be finite; no value says that it failed");
  require(evaluation.constraints.allFinite(), "constraints must be finite");
  const Index before = history.constraints();
  const Index now = evaluation.constraints.size();
  const bool known = before > 0 || history.worst();
  require(!known || now == before || (now == 0 && !evaluation.value), "there must be as many constraints as before");
}

Optimizer::Optimizer(MixedSpace space, OptimizerOptions options) : state_(std::make_unique<State>()) {
  space.validate();
  options.validate();
  state_->history.pending = Points::zero(0, std::ssize(space.ordered), std::ssize(space.categories));
  state_->space = std::move(space);
  state_->options = std::move(options);
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

std::optional<Points> Optimizer::ask() {
  State& state = *state_;
  History& history = state.history;
  const MixedSpace unseen = state.unseen();
  Points point;
  if (history.size() < state.initial_points() || history.told.empty()) {
    Rng design(state.options.seed, kDesignStream);
    point = unseen.sample(history.size() + 1,
                          design);  // the next of the sequence comes first, because the earlier ones are seen
  }
  if (point.size() == 0) {
    Rng rng(state.options.seed, kDesignStream + 1 + static_cast<std::uint64_t>(history.size()));
    point = maximize(score_of(history, state.options, rng), unseen, history.best_points(kHints), rng,
                     state.options.maximize)
                .point;
  }
  if (point.size() == 0) return std::nullopt;
  point = point.slice(0, 1);
  history.pending.append(point);
  return point;
}

void Optimizer::tell(const Evaluation& evaluation) {
  state_->check(evaluation);
  Evaluation complete = evaluation;
  if (state_->space.add_features) state_->space.add_features(complete.point);
  state_->history.tell(complete);
}

std::optional<Evaluation> Optimizer::best() const { return state_->history.best(); }

// The score of a point as the next one:
//
//   a(x) = log EI(x) + sum_k log P(c_k(x) <= 0) + log P(success at x)
//
// which is the expected improvement over the best posterior mean at a feasible point, times the probability that every
// measured constraint is satisfied (Gardner et al. 2014, "Bayesian optimization with inequality constraints"), times
// that of not failing. While no feasible point is known, the improvement is left out. Pending points are believed at
// their posterior means (Ginsbourger, Le Riche & Carraro 2010) and count as measured, also as incumbents.
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// Plain EI times P keeps proposing failures as long as the values promise an improvement beyond the edge of a failing
// region, because EI spans many decades and P does not. So P is used unchanged only down to two thirds of the largest P
// at a point told. Below that, its shortfall counts a hundred times more: such points are almost forbidden, but the
// gradient leads back.
constexpr double kLeastPart = 2.0 / 3.0;
constexpr double kCaution = 100.0;

/// log P(success) above `floor`. Below that, it falls 1 + kCaution times as fast.
class CautiousSuccess final : public Acquisition {
 public:
  explicit CautiousSuccess(double floor) : log_probability_(make_log_success_probability()), floor_(floor) {}

  AcquisitionValue at(double mean, double variance) const override {
    AcquisitionValue result = log_probability_->at(mean, variance);
    if (result.value >= floor_) return result;
    result.value += kCaution * (result.value - floor_);
    result.by_mean *= 1.0 + kCaution;
    result.by_variance *= 1.0 + kCaution;
    return result;
  }
  VectorXd values(const Prediction& prediction) const override {
    const VectorXd log_probability = log_probability_->values(prediction);
    return log_probability + kCaution * (log_probability.array() - floor_).cwiseMin(0.0).matrix();
  }

 private:
  std::unique_ptr<Acquisition> log_probability_;
  double floor_;
};

ScoreTerm success_term(const History& history) {
  Points points = history.pending.slice(0, 0);
  std::vector<bool> succeeded;
  for (const Evaluation& evaluation : history.told) {
    points.append(evaluation.point);
    succeeded.push_back(evaluation.value.has_value());
  }
  auto model = std::make_shared<SuccessModel>(make_kernel(KernelKind::kMatern52));
  model->fit(points, VectorXd::Zero(points.size()), succeeded);
  const double safest = make_log_success_probability()->values(model->predict(points)).maxCoeff();
  return {model, std::make_shared<CautiousSuccess>(safest + std::log(kLeastPart))};
}

std::shared_ptr<const Surrogate> fitted(const Observations& observations, SurrogateOptions options,
                                        const Points& pending, Rng& rng) {
  auto model = std::make_shared<Surrogate>(std::move(options));
  model->fit(observations, rng);
  model->believe(pending);
  return model;
}

/// Returns the pending points at which the posterior mean of every constraint satisfies it.
Points believed_feasible(const Points& pending, const std::vector<Constraint>& constraints) {
  Eigen::Array<bool, Eigen::Dynamic, 1> holds = Eigen::Array<bool, Eigen::Dynamic, 1>::Constant(pending.size(), true);
  for (const Constraint& constraint : constraints)
    holds = holds && constraint.model->predict(pending).mean.array() <= constraint.bound;
  Points feasible = pending.slice(0, 0);
  for (Index i = 0; i < pending.size(); ++i)
    if (holds[i]) feasible.append(pending.slice(i, 1));
  return feasible;
}

}  // namespace

Score score_of(const History& history, const OptimizerOptions& options, Rng& rng) {
  SurrogateOptions of_values = options.surrogate;
  SurrogateOptions of_constraints = options.surrogate;
  of_constraints.transform = OutputTransform::Kind::kIdentity;
  of_constraints.mean = Mean::constant();  // features, if there are any, describe the values and not the constraints
  std::vector<Constraint> constraints;
  for (Index k = 0; k < history.constraints(); ++k)
    constraints.push_back({fitted(history.constraint(k), of_constraints, history.pending, rng)});
  // With constraints the best feasible value may lie anywhere among the values, including the half that would be
  // warped.
  if (!constraints.empty() && of_values.transform == OutputTransform::Kind::kRankRobust)
    of_values.transform = OutputTransform::Kind::kIdentity;

  const auto imputed = options.failures == OptimizerOptions::Failures::kImpute ? history.worst() : std::nullopt;
  std::shared_ptr<const Surrogate> model;
  std::optional<double> incumbent;
  if (history.best()) {
    model = fitted(history.values(imputed), of_values, history.pending, rng);
    Points feasible = history.feasible_points();
    feasible.append(believed_feasible(history.pending, constraints));
    incumbent = incumbent_mean(*model, feasible);
  }
  std::vector<ScoreTerm> terms = constrained_improvement(model, incumbent, constraints);
  if (history.has_failures() && !imputed) terms.push_back(success_term(history));
  return Score(std::move(terms));
}

}  // namespace krigtune::surrogate
