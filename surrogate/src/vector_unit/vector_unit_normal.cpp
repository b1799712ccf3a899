// log h and log Phi for many arguments by the formulas of normal_tails.h: exp, the polynomials, and log.
#include "vector_unit/normal_tails.h"
#include "vector_unit/vector_unit_functions.h"
#include "vector_unit/vector_unit_lanes.h"

namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT {
namespace {

template <class Parts>
void logarithms(Index n, const double* arguments, double* results, Parts parts_at) {
  for (Index first = 0; first < n; first += kLanes) {
    const Lanes u = load(arguments + first, n - first);
    Lanes bell;
    for (Index i = 0; i < kLanes; ++i) bell[i] = bell_exponent(u[i]);
    bell = bell.exp().eval();
    Lanes offset;
    Lanes factor;
    for (Index i = 0; i < kLanes; ++i) {
      const LogParts parts = parts_at(u[i], bell[i]);
      offset[i] = parts.offset;
      factor[i] = parts.factor;
    }
    store(offset + factor.log(), results + first, n - first);
  }
}

}  // namespace

void log_h(Index n, const double* u, double* result) {
  logarithms(n, u, result, [](double x, double bell) { return log_h_parts(x, bell); });
}

void log_normal_cdf(Index n, const double* z, double* result) {
  logarithms(n, z, result, [](double x, double bell) { return log_normal_cdf_parts(x, bell); });
}

}  // namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT
