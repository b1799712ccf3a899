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

/// What a space must know of the job: plain numbers, given by who composes the session.
struct JobFacts {
  std::int64_t ranks = 1;
  std::optional<std::int64_t> train_batch_size = std::nullopt;  ///< sequences a step, to be kept
  /// Elements of the model: buckets that hold as many are all alike.
  std::optional<std::int64_t> parameter_count = std::nullopt;
  /// Numbers that constraints may use beside the parameters: nodes, layers, hidden, ... (known_facts()).
  std::vector<std::pair<std::string, double>> numbers = {};
  bool well_known = true;    ///< false: names mean nothing (no workload): no batch identity, nothing canonical
  Configuration fixed = {};  ///< what every configuration has, and is no dimension and no column of a table

  /// Whether gradient_accumulation_steps follows from the batch identity: the batch is kept and names have a meaning.
  bool accumulation_follows() const { return well_known && train_batch_size.has_value(); }
};

/// Why a point of the lattice is no configuration of the space.
enum class Exclusion { kNone, kRanksNotDivisible, kBatchNotDivisible, kBatchMismatch, kConstraint, kRestricted };
const char* to_string(Exclusion exclusion);  ///< "batch not divisible", ...

/// How many lattice points a reason excludes.
struct ExclusionCount {
  Exclusion reason = Exclusion::kNone;
  std::int64_t count = 0;
  std::string constraint = {};  ///< its text, with kConstraint
};

class Lattice;

/// The configurations that may be tried: the lattice of the parameters' values under the batch identity
/// train_batch_size = micro_batch * dp * gradient_accumulation_steps, dp = ranks / (tensor_parallel *
/// pipeline_parallel), the session's constraints, conditional parameters (absent where their "when" does not hold), one
/// canonical representative for each meaning (a knob without effect has one value), and further restrictions. It is no
/// vector: 10^9 points and more are counted and sampled in the time that their constraints take, never listed.
/// A constraint that uses a parameter which does not exist in a configuration does not apply to it (Kleene: unknown).
class Space {
 public:
  using Predicate = std::function<bool(const Configuration&)>;

  /// Throws UserError for conditions that use unknown names (with the nearest one), mix kinds, or go in a circle.
  Space(std::vector<Parameter> parameters, JobFacts facts, std::vector<Expression> constraints = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// nullptr where no parameter of the space has that name (what is fixed is none).
  const Parameter* find(std::string_view name) const;
  const JobFacts& facts() const { return facts_; }
  const std::vector<Expression>& constraints() const { return constraints_; }
  bool listable() const;  ///< false where a parameter is continuous: no count and no list then, only samples
  bool is_empty() const;  ///< it holds no configuration; where it is not listable: sampling finds none
  /// Names in session order, then gradient_accumulation_steps where it is derived: the columns of every table.
  std::vector<std::string> columns() const;

  void restrict_to(Predicate keep);  ///< to configurations for which `keep` holds (with earlier restrictions)

  std::int64_t lattice_count() const;  ///< product of the value counts (continuous: 1); else the largest integer
  std::int64_t count() const;  ///< configurations, each meaning once; likewise. UserError where it is not listable
  /// Calls `visit` for each configuration once, the last parameter fastest, until it returns false. Likewise listable.
  void for_each(const std::function<bool(const Configuration&)>& visit) const;
  /// How many lattice points each reason excludes (kNone: those that are configurations or mean the same as one).
  /// Each point by the first reason, in the order of Exclusion, constraints one by one.
  std::vector<ExclusionCount> exclusions() const;
  /// Uniform over the configurations; real values uniform on their scale. Throws UserError when the space is empty.
  Configuration sample(Rng& rng) const;
  /// Configurations that differ by one step of one ordered parameter or by one category. A step goes to the next value
  /// that makes another configuration, of a continuous one a tenth of its axis. Where gradient accumulation is a
  /// parameter too, it follows the micro-batch; what a step makes exist has its first value, or the middle of its
  /// range.
  std::vector<Configuration> neighbours(const Configuration& configuration) const;
  bool contains(const Configuration& configuration) const;

  /// Adds what is fixed, derives gradient_accumulation_steps, replaces values without effect by the canonical ones,
  /// drops what does not exist ("when"). If the point is invalid, returns why and leaves `configuration` unchanged.
  /// Values need not be of the lists (a baseline may lie outside); constraints and restrictions are not asked.
  Exclusion complete(Configuration& configuration) const;
  bool meets_constraints(const Configuration& configuration) const;  ///< of the session; likewise any values

 private:
  bool is_kept(const Configuration& configuration) const;
  std::optional<Configuration> draw(Rng& rng) const;
  std::optional<Configuration> moved_to(const Configuration& configuration, const Parameter& parameter,
                                        const Value& value) const;
  Exclusion keep_batch(Configuration& moved, const std::string& moved_name) const;

  std::vector<Parameter> parameters_;
  std::vector<Parameter> with_fixed_;  ///< the parameters, then one of a single value for each that is fixed
  JobFacts facts_;
  std::vector<Expression> constraints_;
  std::vector<Predicate> restrictions_;
  std::shared_ptr<const Lattice> lattice_;  ///< the rules and their counts, shared by copies
};

}  // namespace krigtune::space
