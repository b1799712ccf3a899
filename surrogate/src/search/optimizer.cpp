#include "krigtune/surrogate/optimizer.h"

#include <cmath>
#include <string>
#include <utility>

#include "krigtune/core/error.h"
#include "search/history.h"
#include "search/optimizer_score.h"

namespace krigtune {
namespace {

using Eigen::Index;

// Streams of the generator: one for the initial design, then one for every point asked.
constexpr std::uint64_t kDesignStream = 0;
// Ascent starts around so many of the best points: the second best is often the foot of a better peak.
constexpr std::size_t kHints = 3;

void require(bool holds, const char* what) {
  if (!holds) throw UserError(std::string("evaluation: ") + what);
}

}  // namespace

SurrogateOptions surrogate_for_unknown_functions() {
  SurrogateOptions options;
  options.kernel.kind = KernelKind::kMainEffects;  // what a category does in one place it mostly does in others
  // A few very bad points must not set the scale on which the good ones are told apart.
  options.transform = OutputTransform::Kind::kRankRobust;
  // Half of the cube, give or take a factor of three: shorter is found soon enough where there are ripples.
  options.priors.lengthscale = {std::log(0.5), 1.0};
  // From a tenth of the spread and more down to exact values: the fit then goes to its lower bound of 1e-4, and
  // improvements far below a thousandth of the spread are still told from noise.
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

/// The space less what was told or asked. Borrows this object.
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
    point = unseen.sample(history.size() + 1, design);  // the next of the sequence comes first: the others are seen
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

}  // namespace krigtune
