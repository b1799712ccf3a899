#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "space/configuration.h"
#include "space/well_known.h"

namespace krigtune::space {

// How the ranks of a job are divided among kinds of parallelism. Each kind is a row of well_known_parameters() whose
// `splits_ranks` says how, and whose value is the number of ranks in each of its groups:
//
//   ranks = dp * tensor_parallel * pipeline_parallel * context_parallel
//
//   const auto layout = ParallelLayout::of(16, {{kTensorParallel, std::int64_t{2}}, {kContextParallel,
//   std::int64_t{4}}}); layout->data();                 // 2 replicas with sequences of their own layout->holders(); //
//   8 ranks that hold the same parameters and reduce their gradients together layout->ways(kTensorParallel);  // 2
//
// All code that divides ranks uses these functions, so that a further kind of parallelism is a further row. Conditions
// of a session read the same names as real numbers, for which divisibility is not required: Vocabulary computes dp for
// one configuration, and Binder (lattice_count.cpp) computes its bounds over many.

/// A kind of parallelism: the parameter that states the ranks of a group, and what they divide.
struct RankGroup {
  const char* parameter = "";
  RankSplit split = RankSplit::kNone;
};

/// Returns all kinds of parallelism, in the order of the table, which is that in which they divide the ranks.
const std::vector<RankGroup>& rank_groups();
/// Returns the parameters of those that divide the ranks of a job among the ranks of a replica: all but
/// RankSplit::kDataRanks.
const std::vector<const char*>& rank_divisors();
/// Returns whether this is one of rank_divisors().
bool divides_ranks(std::string_view parameter);
/// Returns whether this is a parameter of one of rank_groups().
bool splits_ranks(std::string_view parameter);

/// The numbers of ranks of each kind of parallelism in one job.
class ParallelLayout {
 public:
  /// All ranks are data-parallel. Requires at least one.
  explicit ParallelLayout(std::int64_t ranks) : data_(ranks) { ways_.fill(1); }

  /// Returns the layout of a configuration with the usual names; a parameter that it lacks is 1. Empty if the divisors
  /// do not divide the ranks evenly. Groups of data-parallel ranks are not checked, because it depends on the framework
  /// what they must divide. Throws UserError if a divisor is no integer.
  static std::optional<ParallelLayout> of(std::int64_t ranks, const Configuration& configuration);

  /// Gives each group of a kind `ways` ranks; at most once for each. Returns false, and changes nothing, if `ways` is
  /// below 1 or does not divide left_for(parameter).
  bool split(std::string_view parameter, std::int64_t ways);
  /// Returns the ranks that groups of this kind divide, beside those that are split already.
  std::int64_t left_for(std::string_view parameter) const;

  /// Returns the ranks in each group of a kind; 1 if it is not used.
  std::int64_t ways(std::string_view parameter) const;
  /// Returns the replicas of the model, each with its own micro-batch: dp.
  std::int64_t data() const { return data_; }
  /// Returns the ranks that hold the same parameters: dp times those that share each sequence.
  std::int64_t holders() const { return data_ * sharing_; }

 private:
  static constexpr std::size_t kMostGroups = 8;  // an array, because spaces ask for every candidate
  static std::size_t index_of(std::string_view parameter);
  bool split_group(std::size_t index, std::int64_t ways);

  std::int64_t data_ = 1;
  std::int64_t sharing_ = 1;                      // ranks that share each sequence
  std::array<std::int64_t, kMostGroups> ways_{};  // in the order of rank_groups()
};

/// Returns the number of replicas of the model, each with its own micro-batch: ParallelLayout::data().
std::optional<std::int64_t> data_parallel_ranks(std::int64_t ranks, const Configuration& configuration);
/// Returns the fewest ranks that a configuration can use, those of one replica; divisors below 1 count as 1. Throws
/// UserError if a divisor is no integer.
std::int64_t ranks_of_replica(const Configuration& configuration);

}  // namespace krigtune::space
