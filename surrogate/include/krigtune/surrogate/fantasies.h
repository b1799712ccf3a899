#pragma once
#include <Eigen/Core>

#include "krigtune/rng.h"
#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::surrogate {

/// Returns the log of the expected improvement, averaged over `count` joint draws of the values that the pending points
/// may yield (fantasies: Snoek, Larochelle & Adams 2012, section 3.2). The draws are quasi-random, from `rng`.
/// `process` must neither have observed `pending` nor believe it. The incumbent of each draw is the larger of `best`
/// and the draw's posterior means at the pending points.
std::shared_ptr<const ScoreFunction> make_fantasy_improvement(const GaussianProcess& process, const Points& pending,
                                                              double best, int count, Rng& rng);

}  // namespace krigtune::surrogate
