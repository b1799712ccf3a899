#include "search/model/job_summary.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <utility>

#include "core/text.h"

namespace krigtune::search {
namespace {

constexpr double kContradicted = 0.05;
constexpr double kUnlikelyStep = 0.5;

constexpr std::array kAspects = {JobAspect::kParameters, JobAspect::kTrained, JobAspect::kFramework,
                                 JobAspect::kSequence,   JobAspect::kBatch,   JobAspect::kRanks,
                                 JobAspect::kLinks,      JobAspect::kRoles};

using Answer = std::pair<double, std::string>;  // number and name

std::string roles_text(const forecast::Roles& roles) {
  std::vector<std::string> each;
  for (const auto& [name, role] : roles) each.push_back(name + " is " + role);
  return join(each, ", ");
}

Answer answer_to(JobAspect aspect, const forecast::Hypotheses& hypotheses, const forecast::Hypothesis& one) {
  const workload::Workload& job = hypotheses.workload(*one.job);
  switch (aspect) {
    case JobAspect::kParameters:
      return {static_cast<double>(workload::parameter_count(job.model)), ""};
    case JobAspect::kTrained:
      return {0.0, hypotheses.trains_adapters(*one.job) ? "adapters" : "all"};
    case JobAspect::kFramework:
      return {0.0, hypotheses.framework_name(*one.job)};
    case JobAspect::kSequence:
      return {static_cast<double>(job.model.seq_len), ""};
    case JobAspect::kBatch:
      return {static_cast<double>(job.train_batch_size.value_or(0)), ""};
    case JobAspect::kRanks:
      return {static_cast<double>(hypotheses.cluster(*one.job).ranks()), ""};
    case JobAspect::kLinks:
      return {one.link_times, ""};
    case JobAspect::kRoles:
      return {0.0, roles_text(hypotheses.roles(*one.job))};
  }
  return {};
}

}  // namespace

const JobQuestion* JobSummary::find(JobAspect aspect) const {
  const auto found = std::find_if(questions.begin(), questions.end(),
                                  [&](const JobQuestion& question) { return question.aspect == aspect; });
  return found == questions.end() ? nullptr : &*found;
}

JobSummary summary_of(const forecast::Hypotheses& hypotheses, const Eigen::VectorXd& probabilities) {
  const std::vector<forecast::Hypothesis>& all = hypotheses.all();
  assert(probabilities.size() == std::ssize(all));
  JobSummary summary;
  summary.is_told = hypotheses.is_told(0);
  std::array<std::map<Answer, double>, kAspects.size()> marginals;
  for (std::size_t h = 0; h < all.size(); ++h) {
    const double probability = probabilities(static_cast<Eigen::Index>(h));
    if (!all[h].job) {
      summary.no_step += probability;
      continue;
    }
    if (hypotheses.has_told_model(*all[h].job)) summary.told_model += probability;
    for (std::size_t i = 0; i < kAspects.size(); ++i) {
      marginals[i][answer_to(kAspects[i], hypotheses, all[h])] += probability;
    }
  }
  for (std::size_t i = 0; i < kAspects.size(); ++i) {
    if (marginals[i].size() < 2) continue;
    JobQuestion question{kAspects[i], {}};
    for (const auto& [answer, probability] : marginals[i]) {
      question.answers.push_back({answer.first, answer.second, probability});
    }
    summary.questions.push_back(std::move(question));
  }
  return summary;
}

JobSummary summary_before_trials(const forecast::Hypotheses& hypotheses) {
  const std::vector<forecast::Hypothesis>& all = hypotheses.all();
  Eigen::VectorXd probabilities(std::ssize(all));
  for (std::size_t h = 0; h < all.size(); ++h) probabilities(static_cast<Eigen::Index>(h)) = all[h].probability;
  return summary_of(hypotheses, probabilities);
}

bool has_names(JobAspect aspect) {
  return aspect == JobAspect::kFramework || aspect == JobAspect::kTrained || aspect == JobAspect::kRoles;
}

const JobAnswer& likeliest(const JobQuestion& question) {
  return *std::max_element(question.answers.begin(), question.answers.end(),
                           [](const JobAnswer& a, const JobAnswer& b) { return a.probability < b.probability; });
}

bool is_contradicted(const JobSummary& summary) {
  return summary.is_told && summary.told_model < kContradicted && is_known_step(summary);
}

bool is_known_step(const JobSummary& summary) { return summary.no_step <= kUnlikelyStep; }

}  // namespace krigtune::search
