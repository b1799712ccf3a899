#pragma once
// Kernels of every kind and combination, with points that suit them.
#include <string>
#include <utility>
#include <vector>

#include "krigtune/surrogate/kernel.h"
#include "surrogate/reference_gp.h"

namespace krigtune {

inline surrogate::KernelSpec spec_of(surrogate::KernelKind kind, surrogate::Columns columns = {}) {
  return {kind, std::move(columns), {}};
}

inline surrogate::KernelSpec sum_of(std::vector<surrogate::KernelSpec> parts, surrogate::Columns columns = {}) {
  return {surrogate::KernelKind::kSum, std::move(columns), std::move(parts)};
}

inline surrogate::KernelSpec product_of(std::vector<surrogate::KernelSpec> parts, surrogate::Columns columns = {}) {
  return {surrogate::KernelKind::kProduct, std::move(columns), std::move(parts)};
}

inline surrogate::Columns ordered_columns(std::vector<Eigen::Index> ordered) { return {false, std::move(ordered), {}}; }

inline surrogate::Columns category_columns(std::vector<Eigen::Index> categories) {
  return {false, {}, std::move(categories)};
}

struct KernelCase {
  std::string name;
  surrogate::KernelSpec spec;
  int ordered;
  int categories;
  std::string roles;  ///< roles in theta: l lengthscale, s signal variance

  /// Category indices are 0, 1 and 2.
  surrogate::Points random_points(Rng& rng, int count) const {
    return reference::random_points(rng, count, ordered, categories);
  }
};

inline std::vector<KernelCase> kernel_cases() {
  using enum surrogate::KernelKind;
  std::vector<KernelCase> cases;
  for (const auto& [kind, name] :
       {std::pair{kMatern52, "Matern 5/2"}, {kMatern32, "Matern 3/2"}, {kSquaredExponential, "SE"}}) {
    cases.push_back({name + std::string(" 1+0"), spec_of(kind), 1, 0, "ls"});
    cases.push_back({name + std::string(" 3+0"), spec_of(kind), 3, 0, "llls"});
    cases.push_back({name + std::string(" 8+0"), spec_of(kind), 8, 0, "lllllllls"});
    cases.push_back({name + std::string(" 2+2"), spec_of(kind), 2, 2, "lllls"});
    cases.push_back({name + std::string(" 0+3"), spec_of(kind), 0, 3, "llls"});
    cases.push_back({name + std::string(" on columns"), spec_of(kind, {false, {2, 0}, {1}}), 3, 2, "llls"});
  }
  cases.push_back({"linear 1+0", spec_of(kLinear), 1, 0, "ls"});
  cases.push_back({"linear 5+1", spec_of(kLinear), 5, 1, "llllls"});
  cases.push_back({"linear on columns", spec_of(kLinear, ordered_columns({1})), 3, 0, "ls"});
  cases.push_back({"main effects 2+0", spec_of(kMainEffects), 2, 0, "lls"});
  cases.push_back({"main effects 0+1", spec_of(kMainEffects), 0, 1, "ls"});
  cases.push_back({"main effects 0+2", spec_of(kMainEffects), 0, 2, "lslslls"});
  cases.push_back({"main effects 2+2", spec_of(kMainEffects), 2, 2, "llslslslllls"});
  cases.push_back({"main effects on columns", spec_of(kMainEffects, {false, {2, 0}, {1}}), 3, 2, "llslsllls"});
  cases.push_back({"sum", sum_of({spec_of(kMatern32), spec_of(kLinear)}), 2, 1, "lllslls"});
  cases.push_back(
      {"product", product_of({spec_of(kMatern52), spec_of(kLinear), spec_of(kSquaredExponential)}), 2, 0, "llsllslls"});
  cases.push_back({"trend, smooth part and category",
                   sum_of({spec_of(kLinear), product_of({spec_of(kMatern32, category_columns({0})),
                                                         spec_of(kMatern52, ordered_columns({0, 1}))})}),
                   2, 1, "llslslls"});
  cases.push_back({"product on columns",
                   product_of({spec_of(kMatern32, ordered_columns({1})), spec_of(kLinear)}, ordered_columns({2, 0})), 3,
                   1, "lslls"});
  return cases;
}

}  // namespace krigtune
