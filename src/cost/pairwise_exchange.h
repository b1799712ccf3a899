#pragma once
#include <cstdint>

#include "cost/machine.h"

namespace krigtune::cost {

/// What each rank of a group sends to the others, and receives as much of. Ranks of one node use the links within it,
/// the others a card each, at the same time.
struct PairwiseExchange {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;
  double within_bytes = 0.0;  ///< to all ranks of its node together
  double beyond_bytes = 0.0;  ///< to all others together
};

/// Returns the exchange in which a rank sends as many bytes to each of the others: an all-to-all.
PairwiseExchange all_to_all(std::int64_t ranks, std::int64_t ranks_per_node, double bytes_to_each);

/// Returns its seconds; 0 for one rank.
double pairwise_exchange_s(const Machine& machine, const PairwiseExchange& exchange);

}  // namespace krigtune::cost
