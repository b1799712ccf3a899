// The only file that uses NLopt. Its C interface returns result codes instead of throwing. Failures and rounding
// problems are normal here (see its issues on "roundoff limited" L-BFGS): whatever the code is, the result is the best
// point that was evaluated.
#include "nlopt_minimizer.h"

#include <nlopt.h>

#include <cassert>
#include <cmath>
#include <exception>
#include <memory>

namespace krigtune::surrogate {
namespace {

using Eigen::VectorXd;
using Termination = FitReport::Termination;

struct Search {
  const DifferentiableFunction& f;
  const VectorXd& lower;
  const VectorXd& upper;
  nlopt_opt running = nullptr;
  std::exception_ptr thrown;  ///< carried past NLopt's C frames, through which no exception may pass
  Minimum best;
};

double evaluate(Search& search, const VectorXd& proposed, VectorXd& gradient) {
  // Algorithms may leave the box by an ulp.
  const VectorXd x = proposed.cwiseMax(search.lower).cwiseMin(search.upper);
  const double value = search.f(x, gradient);
  ++search.best.evaluations;
  if (!std::isfinite(value) || !gradient.allFinite()) {
    nlopt_force_stop(search.running);
  } else if (value < search.best.value) {
    search.best.value = value;
    search.best.point = x;
  }
  return value;
}

double on_evaluation(unsigned size, const double* x, double* gradient_out, void* data) {
  Search& search = *static_cast<Search*>(data);
  try {
    VectorXd gradient = VectorXd::Zero(size);
    const double value = evaluate(search, Eigen::Map<const VectorXd>(x, size), gradient);
    if (gradient_out != nullptr) Eigen::Map<VectorXd>(gradient_out, size) = gradient;
    return value;
  } catch (...) {
    search.thrown = std::current_exception();
    nlopt_force_stop(search.running);
    return HUGE_VAL;
  }
}

nlopt_result run(nlopt_algorithm algorithm, Search& search, VectorXd x, const MinimizeLimits& limits) {
  const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> opt(
      nlopt_create(algorithm, static_cast<unsigned>(x.size())), &nlopt_destroy);
  if (!opt) return NLOPT_OUT_OF_MEMORY;
  search.running = opt.get();
  nlopt_set_min_objective(opt.get(), &on_evaluation, &search);
  nlopt_set_lower_bounds(opt.get(), search.lower.data());
  nlopt_set_upper_bounds(opt.get(), search.upper.data());
  nlopt_set_ftol_rel(opt.get(), limits.ftol_rel);
  // The relative test alone does not stop the search if f is close to zero.
  nlopt_set_ftol_abs(opt.get(), 1e-2 * limits.ftol_rel);
  nlopt_set_maxeval(opt.get(), limits.evaluations);
  double value = 0.0;
  const nlopt_result result = nlopt_optimize(opt.get(), x.data(), &value);
  search.running = nullptr;
  if (search.thrown) std::rethrow_exception(search.thrown);
  return result;
}

}  // namespace

Minimum minimize_in_box(const DifferentiableFunction& f, const VectorXd& start, const VectorXd& lower,
                        const VectorXd& upper, const MinimizeLimits& limits) {
  assert(start.size() == lower.size() && start.size() == upper.size());
  nlopt_srand(1);  // the algorithms used here draw no random numbers; if that changes, they are the same every time
  Search search{f, lower, upper, nullptr, nullptr, {}};
  const VectorXd inside = start.cwiseMax(lower).cwiseMin(upper);
  const nlopt_result first = run(NLOPT_LD_LBFGS, search, inside, limits);
  nlopt_result last = first;
  if (first < 0) last = run(NLOPT_LD_SLSQP, search, search.best.point.size() > 0 ? search.best.point : inside, limits);

  Minimum best = std::move(search.best);
  const char* text = nlopt_result_to_string(last);
  best.message = (first < 0 ? "SLSQP after a failure of L-BFGS: " : "L-BFGS: ") + std::string(text ? text : "?");
  if (last < 0) {
    best.termination = Termination::kFailed;
  } else if (last == NLOPT_MAXEVAL_REACHED) {
    best.termination = Termination::kEvaluationLimit;
  } else {
    best.termination = first < 0 ? Termination::kFallback : Termination::kConverged;
  }
  return best;
}

}  // namespace krigtune::surrogate
