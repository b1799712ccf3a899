#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "forecast/hypotheses.h"
#include "forecast/prior.h"
#include "journal/journal.h"
#include "krigtune/surrogate/kernel.h"
#include "session/memory_filter.h"
#include "space/encoder.h"
#include "space/space.h"

namespace krigtune::search {

class DerivedColumns;

/// Configurations that a strategy scores, each once, in a defined order, with encodings, priors and predicted memory.
struct CandidateList {
  std::vector<space::Configuration> configurations;
  std::vector<std::optional<plan::MemoryVerdict>> memory;  ///< one per configuration, where it is predicted
  std::unordered_map<std::string, std::size_t> index;      ///< by Candidates::key
  surrogate::Points points;                                ///< one row per configuration

  std::size_t size() const { return configurations.size(); }
  std::optional<std::size_t> find(const std::string& key) const {
    const auto found = index.find(key);
    return found == index.end() ? std::nullopt : std::optional(found->second);
  }
};

/// The configurations that may be asked: those of the space that are not known to be too large. If they can be listed,
/// they are listed once, in lattice order, and any number of strategies (and threads) share the list. Spaces with
/// continuous ranges and very large spaces have no list: each suggestion then scores a pool of its own. `filter` must
/// outlive it.
class Candidates {
 public:
  /// kNever samples every space, to show what sampling loses.
  enum class Listing { kWhereSmall, kNever };

  Candidates(const session::Session& session, const session::MemoryFilter& filter, const forecast::Priors& priors = {},
             Listing listing = Listing::kWhereSmall);

  /// Returns whether all configurations are listed.
  bool listed() const { return all_ != nullptr; }
  /// Returns whether nothing may be asked. Without a list: whether no sample may be asked.
  bool empty() const;
  /// The list. Call only if listed().
  std::size_t size() const { return all_->size(); }
  const space::Configuration& operator[](std::size_t index) const { return all_->configurations[index]; }
  std::optional<plan::MemoryVerdict> memory_of(std::size_t index) const { return all_->memory[index]; }

  /// Returns what a strategy scores after that history: the whole list, or a pool of samples and points near the best
  /// trials. A pure function of its arguments.
  std::shared_ptr<const CandidateList> to_score(const std::vector<journal::Trial>& history, std::uint64_t seed) const;
  /// Does the same with what the session's plan calls too large and another hypothesis about the job does not: a stated
  /// model may be wrong. Only a strategy that weighs hypotheses should score it.
  std::shared_ptr<const CandidateList> to_score_with_doubted(const std::vector<journal::Trial>& history,
                                                             std::uint64_t seed) const;
  /// Draws a configuration uniformly among those that may be asked and that `is_asked` does not refuse. Empty if many
  /// draws found none.
  std::optional<space::Configuration> draw(Rng& rng,
                                           const std::function<bool(const space::Configuration&)>& is_asked) const;
  bool contains(const space::Configuration& configuration) const;  ///< whether it may be asked

  /// Returns the number of configurations of the space, including those that are too large. Empty with continuous
  /// ranges. Without a list it counts again, which takes seconds for 10^9.
  std::optional<std::int64_t> space_count() const;
  /// Returns the memory verdict where it is known, also for a configuration that is not a candidate (a baseline).
  std::optional<plan::MemoryVerdict> memory_of(const space::Configuration& configuration) const;
  const session::MemoryFilter& filter() const { return filter_; }
  /// The features of all points are the values of these. The column of a prior with hypotheses is 0: TrialModel fills
  /// it with the average over them that its trials suggest.
  const forecast::Priors& priors() const { return priors_; }
  /// Returns what the job may be, or nullptr if nothing is known of it. It is the first prior's.
  const forecast::Hypotheses* hypotheses() const { return priors_.empty() ? nullptr : priors_.front()->hypotheses(); }
  const space::Space& space() const { return space_; }

  /// Encodes any configurations, also ones that are not candidates (a baseline): the Encoder's columns, then ordered
  /// columns that follow from several parameters together (candidates.cpp). If the job is known or guessed by the names
  /// of its parameters, a column of numbers whose name is none of a training step's is a tenth as wide as the others.
  surrogate::Points encode(const std::vector<space::Configuration>& configurations) const;
  /// Returns the names of the Encoder's ordered columns, which are the first ones of encode().
  std::vector<std::string> ordered_names() const { return encoder_.ordered_names(); }
  /// Equal keys mean equal values in every column of the space.
  std::string key(const space::Configuration& configuration) const;

 private:
  const CandidateList& longest() const { return with_doubted_ ? *with_doubted_ : *all_; }
  std::shared_ptr<const CandidateList> list_with_doubted() const;
  surrogate::Points encode_anew(const std::vector<space::Configuration>& configurations) const;

  const session::MemoryFilter& filter_;
  forecast::Priors priors_;
  std::vector<session::Objective> objectives_;
  space::Space space_;
  space::Encoder encoder_;
  std::shared_ptr<const DerivedColumns> derived_;
  Eigen::RowVectorXd widths_;  ///< of the Encoder's ordered columns
  std::vector<std::string> columns_;
  std::shared_ptr<const CandidateList> all_;           ///< nullptr: not listed
  std::shared_ptr<const CandidateList> with_doubted_;  ///< nullptr: nothing is doubted
  std::int64_t space_count_ = 0;                       ///< only if listed
};

/// Further ordered columns of the surrogate's points, each computed from several parameters because together they say
/// more about a trial than each of them alone.
class DerivedColumns {
 public:
  explicit DerivedColumns(const space::Space& space);

  Eigen::Index size() const { return static_cast<Eigen::Index>(products_.size()); }
  /// Returns one row per configuration. The values over the space span [0, 1].
  Eigen::MatrixXd encode(const std::vector<space::Configuration>& configurations) const;

 private:
  /// log2 of a product of parameters, scaled to its range in the space.
  struct Product {
    std::vector<std::string> names;
    double low = 0.0;
    double width = 1.0;
  };
  std::vector<Product> products_;
};

}  // namespace krigtune::search
