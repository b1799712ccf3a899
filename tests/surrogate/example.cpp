// A circuit board: find where to put a heater (x, y in [0, 1]), and which of three materials to use, so that it warms
// evenly. Every measurement takes an hour, and there is a budget of forty.
#include <cmath>
#include <cstdio>

#include "krigtune/surrogate/optimizer.h"

namespace {

double measure(const krigtune::surrogate::Points& point) {
  const double x = point.ordered(0, 0);
  const double y = point.ordered(0, 1);
  const double best_x[] = {0.2, 0.7, 0.5};
  const double quality[] = {0.6, 1.0, 0.8};
  const int material = point.categories(0, 0);
  return quality[material] - std::pow(x - best_x[material], 2) - 0.5 * std::pow(y - 0.4, 2);
}

}  // namespace

int main() {
  krigtune::surrogate::MixedSpace space;
  space.ordered.resize(2);  // two continuous columns
  space.categories = {3};   // and one of three categories

  krigtune::surrogate::Optimizer optimizer(space);
  for (int trial = 0; trial < 40; ++trial) {
    const auto point = optimizer.ask();
    if (!point) break;  // all points were asked
    optimizer.tell({*point, measure(*point), {}});
  }

  const auto best = optimizer.best();
  if (!best) return 1;
  const krigtune::surrogate::Points& p = best->point;
  std::printf("%.6f at (%.3f, %.3f), material %d\n", *best->value, p.ordered(0, 0), p.ordered(0, 1),
              p.categories(0, 0));
  return *best->value > 0.9999 ? 0 : 1;
}
