#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

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
  std::vector<std::optional<plan::MemoryVerdict>> memory;  ///< one a configuration, where it is predicted
  std::unordered_map<std::string, std::size_t> index;      ///< by Candidates::key
  surrogate::Points points;                                ///< one row a configuration

  std::size_t size() const { return configurations.size(); }
  std::optional<std::size_t> find(const std::string& key) const {
    const auto found = index.find(key);
    return found == index.end() ? std::nullopt : std::optional(found->second);
  }
};

/// The configurations that may be asked: those of the space that are not known to be too large. Where they can be
/// listed they are, once, in lattice order, and shared by any number of strategies (and threads). Spaces with real
/// ranges, and very large ones, have no such list: each suggestion then scores a pool of its own.
/// `filter` must outlive it.
class Candidates {
 public:
  /// kNever samples every space: it shows what sampling loses.
  enum class Listing { kWhereSmall, kNever };

  Candidates(const session::Session& session, const session::MemoryFilter& filter, const forecast::Priors& priors = {},
             Listing listing = Listing::kWhereSmall);

  /// Whether there is a list of all of them.
  bool listed() const { return all_ != nullptr; }
  /// Nothing may be asked; where there is no list: no sample may.
  bool empty() const;
  /// The list; it must be listed().
  std::size_t size() const { return all_->size(); }
  const space::Configuration& operator[](std::size_t index) const { return all_->configurations[index]; }
  std::optional<plan::MemoryVerdict> memory_of(std::size_t index) const { return all_->memory[index]; }

  /// What a strategy scores on that history: the whole list, or a pool of samples and of what lies near the best
  /// trials. A pure function of its arguments.
  std::shared_ptr<const CandidateList> to_score(const std::vector<journal::Trial>& history, std::uint64_t seed) const;
  /// A configuration drawn uniformly that may be asked and that `is_asked` does not refuse. Empty: many draws found
  /// none.
  std::optional<space::Configuration> draw(Rng& rng,
                                           const std::function<bool(const space::Configuration&)>& is_asked) const;
  bool contains(const space::Configuration& configuration) const;  ///< whether it may be asked

  /// Configurations of the space, those that are too large among them. Empty with real ranges. Counts anew where there
  /// is no list: seconds for 10^9.
  std::optional<std::int64_t> space_count() const;
  /// Where it is known; also for a configuration that is no candidate (a baseline).
  std::optional<plan::MemoryVerdict> memory_of(const space::Configuration& configuration) const;
  const session::MemoryFilter& filter() const { return filter_; }
  /// Their values are the features of all points: of every prior, then of every alternative. No alternatives where
  /// there are too many configurations to work them out.
  const std::vector<forecast::Belief>& beliefs() const { return beliefs_; }
  const space::Space& space() const { return space_; }

  /// Any configuration, also one that is no candidate (a baseline): the Encoder's columns, then ordered ones that
  /// follow from several parameters together (candidates.cpp).
  surrogate::Points encode(const std::vector<space::Configuration>& configurations) const;
  /// Names of the Encoder's ordered columns: of encode()'s first ones.
  std::vector<std::string> ordered_names() const { return encoder_.ordered_names(); }
  /// Equal for configurations with the same value in every column of the space.
  std::string key(const space::Configuration& configuration) const;

 private:
  surrogate::Points encode_anew(const std::vector<space::Configuration>& configurations) const;

  const session::MemoryFilter& filter_;
  std::vector<forecast::Belief> beliefs_;
  session::Objective objective_;
  space::Space space_;
  space::Encoder encoder_;
  std::shared_ptr<const DerivedColumns> derived_;
  std::vector<std::string> columns_;
  std::shared_ptr<const CandidateList> all_;  ///< nullptr: not listed
  std::int64_t space_count_ = 0;              ///< where listed
};

/// Further ordered columns of the surrogate's points: what follows from several parameters together and says more of a
/// trial than each of them.
class DerivedColumns {
 public:
  explicit DerivedColumns(const space::Space& space);

  Eigen::Index size() const { return static_cast<Eigen::Index>(products_.size()); }
  /// One row a configuration; over the space they span [0, 1].
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
