// The reference point, above which the hypervolume is measured, must lie a little beyond the ends of the front: members
// at the ends would be worth nothing otherwise, and everything if it lay far away (Ishibuchi, Imada, Setoguchi & Nojima
// 2018, "How to specify a reference point in hypervolume calculation for fair performance comparison"). Few trials have
// not seen the ends. So it is computed from the measured front and from the front of what the models expect of the
// candidates, together: with w_j and b_j the worst and the best of both in objective j, in its own unit with larger
// values better,
//
//   r_j = w_j - 0.1 (b_j - w_j),   but never below the limit of that objective
//
// What models expect of a part without trials is flat there, so that an end of the front which lies beyond would be cut
// off and never looked at. So w_j also includes what must be given of objective j to reach a promising end of another
// objective i: of the candidates whose expected improvement of i alone is at least half of the largest (and that is
// more than 1 % of the range of i), the best mean of objective j.
//
// The improvement is computed in these units too, although models may be of logarithms: with psi_j(a) the
// expected improvement of objective j over the level a, which ObjectiveScale knows in closed form for both, the sum
// over boxes (surrogate/src/pareto.cpp) is exact.
#include "search/model/front.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/model/best.h"
#include "search/model/limit_models.h"
#include "search/model/other_objective.h"
#include "session/objectives.h"

namespace krigtune::search {
namespace {

constexpr double kBeyondTheEnds = 0.1;

}  // namespace

std::vector<FrontMember> front_of(const session::Session& session, const History& history) {
  if (session.others.empty()) return {};
  std::vector<FrontMember> all;
  std::vector<space::Configuration> configurations;
  for (const MeasuredMean& mean : measured_means(session.objective, without_broken(session, history))) {
    const journal::Trial& trial = history[mean.best];
    const bool is_complete = std::all_of(session.others.begin(), session.others.end(),
                                         [&](const auto& objective) { return value_of(trial, objective).has_value(); });
    if (!is_complete) continue;  // of a journal that another program wrote
    all.push_back({trial.number, trial.proposal.configuration, {mean.value}, mean.measurements});
    configurations.push_back(trial.proposal.configuration);
  }
  for (const session::Objective& objective : session.others) {
    const std::vector<double> means = mean_values(objective, history, configurations);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].values.push_back(means[i]);
  }
  const std::vector<session::Objective> objectives = session::all_objectives(session);
  std::erase_if(all, [&](const FrontMember& member) {
    for (std::size_t j = 0; j < objectives.size(); ++j) {
      if (!session::is_within(objectives[j], member.values[j])) return true;
    }
    return false;
  });
  Eigen::MatrixXd worth(static_cast<Eigen::Index>(all.size()), static_cast<Eigen::Index>(objectives.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < objectives.size(); ++j) {
      worth(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          objectives[j].maximize ? all[i].values[j] : -all[i].values[j];
    }
  }
  std::vector<FrontMember> front;
  for (const Eigen::Index row : surrogate::pareto_front(worth)) front.push_back(all[static_cast<std::size_t>(row)]);
  std::stable_sort(front.begin(), front.end(), [&](const FrontMember& a, const FrontMember& b) {
    return session.objective.better(a.values.front(), b.values.front());
  });
  return front;
}

int trials_without_progress(const session::Session& session, const History& history) {
  if (session.others.empty()) return trials_without_gain(session.objective, without_broken(session, history));
  const std::vector<FrontMember> front = front_of(session, history);
  if (front.empty()) return 0;
  int without = 0;
  for (auto trial = history.rbegin(); trial != history.rend(); ++trial) {
    if (!is_closed(*trial)) continue;
    if (std::any_of(front.begin(), front.end(), [&](const auto& member) { return member.trial == trial->number; })) {
      break;
    }
    ++without;
  }
  return without;
}

namespace {

constexpr double kLeastOfWorst = 0.5;   // a reference that has a logarithm
constexpr double kPromisingEnd = 0.01;  // of the range of the fronts
constexpr double kNearlyBest = 0.5;

// Latent values in the objectives' units, larger is better.
Eigen::MatrixXd worth_of(const std::vector<ObjectiveScale>& scales, Eigen::MatrixXd latent) {
  for (Eigen::Index j = 0; j < latent.cols(); ++j) {
    const ObjectiveScale& scale = scales[static_cast<std::size_t>(j)];
    for (double& value : latent.col(j)) value = (scale.maximize() ? 1.0 : -1.0) * scale.from_latent(value);
  }
  return latent;
}

Eigen::MatrixXd front_rows(const Eigen::MatrixXd& points) {
  const std::vector<Eigen::Index> rows = surrogate::pareto_front(points);
  return points(rows, Eigen::all);
}

// Returns, for each objective, the least that must be given of it to reach a promising end of another one.
Eigen::VectorXd given_for_ends(const std::vector<ObjectiveScale>& scales, const Eigen::MatrixXd& measured,
                               const Eigen::MatrixXd& expected, const Eigen::MatrixXd& stddev,
                               const Eigen::MatrixXd& fronts) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Eigen::VectorXd given = Eigen::VectorXd::Constant(measured.cols(), kInfinity);
  if (expected.rows() == 0 || measured.rows() == 0) return given;
  for (Eigen::Index j = 0; j < measured.cols(); ++j) {
    const ObjectiveScale& scale = scales[static_cast<std::size_t>(j)];
    const double best = measured.col(j).maxCoeff();
    Eigen::VectorXd gain(expected.rows());
    for (Eigen::Index i = 0; i < gain.size(); ++i) {
      gain(i) = std::exp(scale.log_expected_improvement(expected(i, j), stddev(i, j), best));
    }
    const double range = fronts.col(j).maxCoeff() - fronts.col(j).minCoeff();
    if (!(gain.maxCoeff() > kPromisingEnd * range)) continue;
    std::vector<Eigen::Index> promising;
    for (Eigen::Index i = 0; i < gain.size(); ++i) {
      if (gain(i) >= kNearlyBest * gain.maxCoeff()) promising.push_back(i);
    }
    const Eigen::VectorXd least = worth_of(scales, expected(promising, Eigen::all)).colwise().maxCoeff().transpose();
    for (Eigen::Index other = 0; other < given.size(); ++other) {
      if (other != j) given(other) = std::min(given(other), least(other));
    }
  }
  return given;
}

// Returns the latent reference point. A maximised objective has no logarithm at 0 or less, so there it is at least half
// of the worst.
Eigen::VectorXd reference_of(const std::vector<ObjectiveScale>& scales, const Eigen::MatrixXd& measured,
                             const Eigen::MatrixXd& expected, const Eigen::MatrixXd& stddev,
                             const std::vector<std::optional<double>>& limits) {
  const Eigen::MatrixXd found = front_rows(measured);
  const Eigen::MatrixXd hoped = front_rows(expected);
  Eigen::MatrixXd both(found.rows() + hoped.rows(), measured.cols());
  both.topRows(found.rows()) = found;
  both.bottomRows(hoped.rows()) = hoped;
  const Eigen::MatrixXd worth = worth_of(scales, both);
  const Eigen::MatrixXd all = worth_of(scales, measured);
  const Eigen::VectorXd given = given_for_ends(scales, measured, expected, stddev, worth);
  Eigen::VectorXd reference(both.cols());
  for (Eigen::Index j = 0; j < both.cols(); ++j) {
    const ObjectiveScale& scale = scales[static_cast<std::size_t>(j)];
    const double worst = std::min(worth.col(j).minCoeff(), given(j));
    double range = worth.col(j).maxCoeff() - worst;
    if (!(range > 0.0)) range = all.col(j).maxCoeff() - all.col(j).minCoeff();
    if (!(range > 0.0)) range = worst == 0.0 ? 1.0 : std::abs(worst);
    double point = worst - kBeyondTheEnds * range;
    if (scale.logarithmic() && scale.maximize()) point = std::max(point, kLeastOfWorst * worst);
    reference(j) = scale.to_latent(scale.maximize() ? point : -point);
    const std::optional<double>& limit = limits[static_cast<std::size_t>(j)];
    if (limit && (*limit > 0.0 || !scale.logarithmic())) {
      reference(j) = std::max(reference(j), scale.to_latent(*limit));
    }
  }
  return reference;
}

}  // namespace

FrontGain::FrontGain(std::vector<ObjectiveScale> scales, const Eigen::MatrixXd& measured,
                     const Eigen::MatrixXd& expected, const Eigen::MatrixXd& stddev,
                     const std::vector<std::optional<double>>& limits)
    : scales_(std::move(scales)),
      reference_(reference_of(scales_, measured, expected, stddev, limits)),
      region_(measured, reference_),
      hypervolume_(surrogate::hypervolume(worth_of(scales_, measured),
                                          worth_of(scales_, reference_.transpose()).row(0).transpose())) {}

double FrontGain::share(const Eigen::VectorXd& mean, const Eigen::VectorXd& stddev) const {
  std::vector<Eigen::VectorXd> excess;
  for (std::size_t j = 0; j < scales_.size(); ++j) {
    const Eigen::VectorXd& levels = region_.levels()[j];
    const auto index = static_cast<Eigen::Index>(j);
    Eigen::VectorXd values = Eigen::VectorXd::Zero(levels.size());
    for (Eigen::Index k = 0; k + 1 < levels.size(); ++k) {
      values(k) = std::exp(scales_[j].log_expected_improvement(mean(index), stddev(index), levels(k)));
    }
    excess.push_back(std::move(values));
  }
  const double gain = std::max(region_.expected_improvement(excess), 0.0);
  return hypervolume_ > 0.0 ? gain / hypervolume_ : gain;
}

double FrontGain::lately_added(const Eigen::MatrixXd& measured, Eigen::Index count) const {
  if (!(hypervolume_ > 0.0)) return 0.0;
  const Eigen::VectorXd reference = worth_of(scales_, reference_.transpose()).row(0).transpose();
  const Eigen::MatrixXd worth = worth_of(scales_, measured);
  const Eigen::MatrixXd earlier = worth.topRows(std::max<Eigen::Index>(worth.rows() - count, 0));
  const double added = surrogate::hypervolume(worth, reference) - surrogate::hypervolume(earlier, reference);
  return added / (static_cast<double>(count) * hypervolume_);
}

std::optional<std::size_t> preferred(const session::Session& session, const std::vector<FrontMember>& front,
                                     const session::Preference& preference) {
  const std::vector<session::Objective> objectives = session::all_objectives(session);
  const session::Objective& bounded = objectives[preference.objective];
  const std::size_t by = preference.objective == 0 ? 1 : 0;
  double bound = preference.bound;
  if (preference.is_of_best && !front.empty()) {
    double best = front.front().values[preference.objective];
    for (const FrontMember& member : front) {
      if (bounded.better(member.values[preference.objective], best)) best = member.values[preference.objective];
    }
    bound *= best;
  }
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (bounded.better(bound, front[i].values[preference.objective])) continue;
    if (!chosen || objectives[by].better(front[i].values[by], front[*chosen].values[by])) chosen = i;
  }
  return chosen;
}

std::optional<std::size_t> preferred(const session::Session& session, const std::vector<FrontMember>& front) {
  return session.preference ? preferred(session, front, *session.preference) : std::nullopt;
}

}  // namespace krigtune::search
