#pragma once
#include <Eigen/Core>

#include "krigtune/rng.h"
#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::surrogate {

/// log of the expected improvement averaged over `count` joint draws of what the pending points will measure
/// (fantasies: Snoek, Larochelle & Adams 2012, section 3.2), quasi-random by `rng`. `process` observes and believes
/// nothing yet of `pending`; each draw's incumbent is the larger of `best` and its posterior means at the pending
/// points.
std::shared_ptr<const ScoreFunction> make_fantasy_improvement(const GaussianProcess& process, const Points& pending,
                                                              double best, int count, Rng& rng);

}  // namespace krigtune::surrogate
