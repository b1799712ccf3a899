#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/rng.h"
#include "krigtune/space/configuration.h"
#include "krigtune/space/parameter.h"

namespace krigtune {

/// What a space must know of the job: plain numbers, given by who composes the session.
struct JobFacts {
  std::int64_t ranks = 1;
  std::optional<std::int64_t> train_batch_size = std::nullopt;  ///< sequences a step, to be kept
  /// Elements of the model: buckets that hold as many are all alike.
  std::optional<std::int64_t> parameter_count = std::nullopt;
  bool well_known = true;  ///< false: names mean nothing (no workload): no batch identity, no canonical values
};

/// Why a point of the lattice is no configuration of the space.
enum class Exclusion { kNone, kRanksNotDivisible, kBatchNotDivisible, kBatchMismatch, kRestricted };
const char* to_string(Exclusion exclusion);  ///< "batch not divisible", ...

/// The configurations that may be tried: the lattice of the parameters' values under the batch identity
/// train_batch_size = micro_batch * dp * gradient_accumulation_steps, dp = ranks / (tensor_parallel *
/// pipeline_parallel), one canonical representative for each meaning (a knob without effect has one value), and further
/// restrictions. It answers count, iterate, sample and neighbours; it is no vector.
class Space {
 public:
  using Predicate = std::function<bool(const Configuration&)>;

  Space(std::vector<Parameter> parameters, JobFacts facts);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const JobFacts& facts() const { return facts_; }
  /// Names in session order, then gradient_accumulation_steps where it is derived: the columns of every table.
  std::vector<std::string> columns() const;

  /// Keeps only configurations for which `keep` holds (with earlier restrictions).
  void restrict_to(Predicate keep);

  std::int64_t lattice_count() const;  ///< product of the parameters' value counts
  std::int64_t count() const;          ///< configurations, each meaning once
  /// Calls `visit` for each configuration once, in lattice order (the last parameter fastest), until it returns false.
  void for_each(const std::function<bool(const Configuration&)>& visit) const;
  /// How many lattice points each reason excludes (kNone: those that are configurations or mean the same as one).
  std::vector<std::pair<Exclusion, std::int64_t>> exclusions() const;
  /// Uniform over the configurations. Throws UserError when the space is empty.
  Configuration sample(Rng& rng) const;
  /// Configurations that differ by one step of one ordered parameter or by one category. A step goes to the next value
  /// that makes another configuration; where gradient accumulation is a parameter too, it follows the micro-batch.
  std::vector<Configuration> neighbours(const Configuration& configuration) const;
  bool contains(const Configuration& configuration) const;

  /// Derives gradient_accumulation_steps and replaces values without effect by the canonical ones.
  /// Returns the reason where the point is none; `configuration` is then left as it was.
  /// Values need not be of the lists (a baseline may lie outside), restrictions are not asked.
  Exclusion complete(Configuration& configuration) const;

 private:
  bool derives_accumulation() const;
  bool is_kept(const Configuration& configuration) const;
  /// Completes a lattice point that stands for its own meaning and is kept; false and unchanged otherwise.
  bool admit(Configuration& point) const;
  std::optional<Configuration> moved_to(const Configuration& configuration, const Parameter& parameter,
                                        const Value& value) const;
  Exclusion keep_batch(Configuration& moved, const std::string& moved_name) const;

  std::vector<Parameter> parameters_;
  JobFacts facts_;
  std::vector<Predicate> restrictions_;
};

}  // namespace krigtune
