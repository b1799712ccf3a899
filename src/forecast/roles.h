#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "space/space.h"

namespace krigtune::forecast {

/// What a session's parameters mean: the name of a well-known parameter for each of its own names. Names that are
/// missing are read as space::well_known_name reads them.
using Roles = std::map<std::string, std::string, std::less<>>;

struct RoleGuess {
  Roles roles;
  double probability = 0.0;
};

/// The whole numbers of a space's configurations: of its parameters that have several and only positive ones.
struct ListedNumbers {
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> values;  ///< that each of the names may have
  std::vector<std::vector<std::int64_t>> rows;    ///< of the configurations, one number a name, without repetitions;
                                                  ///< empty: too many to list
};

ListedNumbers listed_numbers(const space::Space& space);

/// Returns what parameters whose names say nothing may mean, going by their values: a list of a few powers of two from
/// 1 on may be a kind of parallelism or the micro-batch, 0 to 3 the ZeRO stage, and each may also mean nothing. Which
/// combinations are missing from the space says more: ranks and batches must be divisible (see roles.cpp). The most
/// probable guesses first; probabilities add up to 1 together with that of the guess that no parameter means anything,
/// which is left out. Empty if no values look like those of a training step. `listed`: of the same space.
std::vector<RoleGuess> possible_roles(const space::Space& space, const ListedNumbers& listed);

}  // namespace krigtune::forecast
