#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/surrogate/gaussian_process.h"
#include "krigtune/surrogate/success_model.h"
#include "search/candidates/candidates.h"
#include "search/trials/history.h"
#include "space/encoder.h"

namespace krigtune::search {

/// The numbers of a configuration from which its need of memory follows, read from encoded points.
class MemoryFeatures {
 public:
  /// One number of one parameter: of an ordered column (log2 micro_batch), or of a category's value.
  struct Feature {
    int owner = 0;  ///< 0: a parameter whose name says how it affects memory; otherwise the number of another one
    int column = 0;
    bool is_category = false;
    double weight = 0.0;                 ///< by the rule of its name: log bytes for each unit; 0: there is no rule
    std::vector<double> of_values = {};  ///< of a category: the number for each index; others have 0
  };

  explicit MemoryFeatures(const space::Space& space);

  const std::vector<Feature>& all() const { return features_; }
  int others() const { return others_; }  ///< the number of parameters without a rule
  /// Returns one row per point and one column per feature.
  Eigen::MatrixXd at(const surrogate::Points& points) const;
  /// Returns the points without the columns of parameters that have no rule.
  surrogate::Points with_rules_only(const surrogate::Points& points) const;

 private:
  void add_ordered(int column);
  void add_category(int column);
  Eigen::VectorXd numbers(const Feature& feature, const surrogate::Points& points) const;
  Eigen::VectorXd categories(const Feature& feature, const surrogate::Points& points) const;

  space::Encoder encoder_;
  std::vector<Feature> features_;
  int others_ = 0;
};

/// The probability that a configuration does not run out of memory, learned from the trials of a session in which
/// nothing plans memory.
class LearnedMemory {
 public:
  /// Copies what it needs.
  LearnedMemory(const Candidates& candidates, const History& history);

  /// Returns whether memory is not planned and a trial ran out of it.
  bool knows() const { return !beliefs_.empty(); }
  /// Returns one probability per point. Call only if knows().
  Eigen::VectorXd probability(const surrogate::Points& points) const;

 private:
  /// A hypothesis about the parameters without a rule: which of them matter.
  struct Hypothesis {
    bool all = false;
    int owner = 0;  ///< unless all: the only one that does; 0: none does
    double probability = 1.0;

    bool matters(int which) const { return all || which == owner; }
  };
  struct Belief {
    surrogate::GaussianProcess excess;  ///< log(need / wall) if the hypothesis is true
    double weight = 0.0;                ///< its posterior probability
  };

  std::vector<Hypothesis> hypotheses() const;
  surrogate::Mean mean_if(const Hypothesis& hypothesis) const;
  surrogate::Points featured(const surrogate::Points& points, double wall) const;
  void learn(const surrogate::Observations& peaks, const surrogate::Bounds& sides);

  MemoryFeatures features_;
  std::vector<Belief> beliefs_;
};

}  // namespace krigtune::search
