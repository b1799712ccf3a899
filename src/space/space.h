#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "krigtune/rng.h"
#include "space/configuration.h"
#include "space/parameter.h"

namespace krigtune::space {

/// What a space needs to know about the job, as plain numbers; whoever composes the session provides them.
struct JobFacts {
  std::int64_t ranks = 1;
  std::optional<std::int64_t> train_batch_size = std::nullopt;  ///< sequences per step, if fixed
  /// Elements of the model: bucket sizes that hold at least this many are equivalent.
  std::optional<std::int64_t> parameter_count = std::nullopt;
  /// Numbers that constraints may use in addition to the parameters: nodes, layers, hidden, ... (known_facts()).
  std::vector<std::pair<std::string, double>> numbers = {};
  /// False (no workload): names have no meaning, so there is no batch identity and nothing is canonical.
  bool well_known = true;
  Configuration fixed = {};  ///< values that every configuration has; they are no dimensions and no columns of a table

  /// Returns whether gradient_accumulation_steps follows from the batch identity: the batch is fixed and names have a
  /// meaning.
  bool accumulation_follows() const { return well_known && train_batch_size.has_value(); }
};

/// Why a point of the lattice is not a configuration of the space.
enum class Exclusion { kNone, kRanksNotDivisible, kBatchNotDivisible, kBatchMismatch, kConstraint, kRestricted };
const char* to_string(Exclusion exclusion);  ///< "batch not divisible", ...

/// How many points of the lattice a reason excludes.
struct ExclusionCount {
  Exclusion reason = Exclusion::kNone;
  std::int64_t count = 0;
  std::string constraint = {};  ///< the text of the constraint, for kConstraint
};

class Lattice;

/// The configurations that may be tried. They are the points of the lattice of the parameters' values that meet
///
///   train_batch_size = micro_batch * dp * gradient_accumulation_steps
///   dp = the replicas among the ranks (space/parallel_layout.h)
///
/// and the session's constraints and further restrictions. Conditional parameters are absent if their "when" is not
/// true, and equivalent points have one canonical representative (a knob without effect has one value). A space is not
/// a list: counting and sampling 10^9 points or more takes only as long as their constraints require. A constraint that
/// uses a parameter which does not exist in a configuration does not apply to it (Kleene: unknown).
class Space {
 public:
  using Predicate = std::function<bool(const Configuration&)>;

  /// Throws UserError for conditions that use unknown names (with the nearest known one), mix kinds or are circular.
  Space(std::vector<Parameter> parameters, JobFacts facts, std::vector<Expression> constraints = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Returns the parameter, or nullptr if the space has none of that name; fixed values are not parameters.
  const Parameter* find(std::string_view name) const;
  const JobFacts& facts() const { return facts_; }
  const std::vector<Expression>& constraints() const { return constraints_; }
  /// False if a parameter is continuous: then the space can be sampled, but neither counted nor listed.
  bool listable() const;
  bool is_empty() const;  ///< it has no configuration; if it is not listable: sampling finds none
  /// Returns the columns of every table: the names in session order, then gradient_accumulation_steps if it is derived.
  std::vector<std::string> columns() const;

  /// Keeps only configurations for which `keep` is true, in addition to earlier restrictions.
  void restrict_to(Predicate keep);

  /// Product of the value counts (continuous: 1); saturates at the largest integer.
  std::int64_t lattice_count() const;
  /// Configurations without equivalent ones; saturates too. Throws UserError if not listable.
  std::int64_t count() const;
  /// Calls `visit` once for each configuration, the last parameter changing fastest, until it returns false. Throws
  /// UserError if not listable.
  void for_each(const std::function<bool(const Configuration&)>& visit) const;
  /// Returns how many lattice points each reason excludes (kNone: points that are configurations or equivalent to one).
  /// A point counts for its first reason, in the order of Exclusion; each constraint is counted separately.
  std::vector<ExclusionCount> exclusions() const;
  /// Draws a configuration uniformly; continuous values are uniform on their scale. Throws UserError if the space is
  /// empty.
  Configuration sample(Rng& rng) const;
  /// Returns the configurations that differ by one step of one ordered parameter or by one category. A step goes to the
  /// next value that makes a different configuration; for a continuous parameter it is a tenth of its axis. If gradient
  /// accumulation is a parameter too, it follows the micro-batch. A parameter that comes into existence gets its first
  /// value, or the middle of its range.
  std::vector<Configuration> neighbours(const Configuration& configuration) const;
  bool contains(const Configuration& configuration) const;

  /// Adds fixed values, derives gradient_accumulation_steps, replaces values without effect by the canonical ones, and
  /// removes parameters that do not exist ("when"). If the point is invalid, returns why and leaves `configuration`
  /// unchanged. Values may lie outside the lists (a baseline's, for example); constraints and restrictions are not
  /// checked.
  Exclusion complete(Configuration& configuration) const;
  /// Constraints of the session; values may lie outside the lists.
  bool meets_constraints(const Configuration& configuration) const;

 private:
  bool is_kept(const Configuration& configuration) const;
  std::optional<Configuration> draw(Rng& rng) const;
  std::optional<Configuration> moved_to(const Configuration& configuration, const Parameter& parameter,
                                        const Value& value) const;
  Exclusion keep_batch(Configuration& moved, const std::string& moved_name) const;

  std::vector<Parameter> parameters_;
  std::vector<Parameter> with_fixed_;  ///< the parameters, then one with a single value for each fixed value
  JobFacts facts_;
  std::vector<Expression> constraints_;
  std::vector<Predicate> restrictions_;
  std::shared_ptr<const Lattice> lattice_;  ///< the rules and their counts, shared by copies
};

}  // namespace krigtune::space
