#include "krigtune/surrogate/kernel.h"

#include <stdexcept>

#include "matern52.h"

namespace krigtune {

Points Points::zero(Eigen::Index count, Eigen::Index ordered_dims, Eigen::Index category_dims) {
  return {Eigen::MatrixXd::Zero(count, ordered_dims), Eigen::MatrixXi::Zero(count, category_dims)};
}

void Points::append(const Points& more) {
  if (size() == 0) {
    *this = more;
    return;
  }
  const Eigen::Index before = size();
  const Eigen::Index added = more.size();
  // more.* is read before *this is resized: an object may be appended to itself.
  const Points copy = more;
  ordered.conservativeResize(before + added, Eigen::NoChange);
  ordered.bottomRows(added) = copy.ordered;
  categories.conservativeResize(before + added, Eigen::NoChange);
  if (categories.cols() > 0) categories.bottomRows(added) = copy.categories;
}

Points Points::slice(Eigen::Index first, Eigen::Index count) const {
  Points part = zero(count, ordered.cols(), categories.cols());
  part.ordered = ordered.middleRows(first, count);
  if (categories.cols() > 0) part.categories = categories.middleRows(first, count);
  return part;
}

std::unique_ptr<Kernel> make_kernel(KernelKind kind) {
  switch (kind) {
    case KernelKind::kMatern52:
      return make_matern52();
  }
  throw std::logic_error("make_kernel: no such kernel");
}

}  // namespace krigtune
