#pragma once
#include <Eigen/Core>
#include <memory>

#include "krigtune/surrogate/fantasies.h"

namespace krigtune::surrogate {

/// make_fantasy_improvement with given draws: standard normals, one row for each pending point and one column for each
/// fantasy.
std::shared_ptr<const ScoreFunction> make_fantasy_improvement(const GaussianProcess& process, const Points& pending,
                                                              double best, const Eigen::MatrixXd& draws);

}  // namespace krigtune::surrogate
