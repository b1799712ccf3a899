#include "search/model/job_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace krigtune::search {
namespace {

constexpr double kLikely = 0.5;
constexpr double kContradicted = 0.05;

/// Probabilities of what the job is, from all hypotheses.
struct Marginals {
  std::vector<std::pair<double, double>> sizes;  ///< parameters and their probability, ascending
  std::map<std::string, double> frameworks;
  std::map<double, double> links;
  double told = 0.0;
  double adapters = 0.0;
  double no_step = 0.0;
};

Marginals marginals_of(const forecast::Hypotheses& hypotheses, const Eigen::VectorXd& probabilities) {
  Marginals result;
  std::map<double, double> sizes;
  for (std::size_t h = 0; h < hypotheses.all().size(); ++h) {
    const forecast::Hypothesis& one = hypotheses.all()[h];
    const double probability = probabilities(static_cast<Eigen::Index>(h));
    if (!one.job) {
      result.no_step += probability;
      continue;
    }
    const workload::Workload& job = hypotheses.workload(*one.job);
    sizes[static_cast<double>(workload::parameter_count(job.model))] += probability;
    result.frameworks[hypotheses.framework_name(*one.job)] += probability;
    result.links[one.link_times] += probability;
    if (hypotheses.has_told_model(*one.job)) result.told += probability;
    if (hypotheses.trains_adapters(*one.job)) result.adapters += probability;
  }
  result.sizes.assign(sizes.begin(), sizes.end());
  return result;
}

double size_at(const Marginals& marginals, double share) {
  double sum = 0.0;
  for (const auto& [size, probability] : marginals.sizes) {
    sum += probability;
    if (sum >= share * (1.0 - marginals.no_step)) return size;
  }
  return marginals.sizes.back().first;
}

std::string billions(double parameters) {
  const double number = parameters / 1e9;
  return number < 10.0 ? fmt::format("{:.1f}", number) : fmt::format("{:.0f}", number);
}

template <class Key>
std::pair<Key, double> likeliest(const std::map<Key, double>& probabilities) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return {best->first, best->second};
}

std::string links_words(const Marginals& marginals) {
  const auto [times, probability] = likeliest(marginals.links);
  if (times == 1.0 || probability < kLikely) return "";
  return times > 1.0 ? fmt::format(", over links {:g} times slower than their data", times)
                     : fmt::format(", over links {:g} times faster than their data", 1.0 / times);
}

std::string inferred(const Marginals& marginals) {
  if (marginals.no_step > kLikely) return "nothing that the models know: the search goes by the trials alone";
  const std::string low = billions(size_at(marginals, 0.05));
  const std::string high = billions(size_at(marginals, 0.95));
  std::string text =
      fmt::format("most likely a dense model of about {} billion parameters{}", billions(size_at(marginals, 0.5)),
                  low == high ? "" : fmt::format(" ({} to {})", low, high));
  const auto [framework, probability] = likeliest(marginals.frameworks);
  if (probability > kLikely) text += fmt::format(", trained as by {}", framework);
  return text + links_words(marginals);
}

}  // namespace

std::string job_sentence(const forecast::Hypotheses& hypotheses, const JobBelief& belief) {
  const Marginals marginals = marginals_of(hypotheses, belief.probabilities());
  if (marginals.sizes.empty()) return "";
  if (!hypotheses.is_told(0)) return inferred(marginals);
  if (marginals.told >= kContradicted || marginals.no_step > kLikely) return "";
  if (marginals.adapters > kLikely) {
    return "the trials contradict the session: gradients and states take far less memory than a full training, as if "
           "only "
           "adapters (LoRA) were trained";
  }
  return fmt::format("the trials contradict the session: they look like a model of {} billion parameters",
                     billions(size_at(marginals, 0.5)));
}

}  // namespace krigtune::search
