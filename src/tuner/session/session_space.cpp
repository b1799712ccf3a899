// The session's space: its parameters, its constraints, and what both may know of the job.
#include <fmt/format.h>

#include <algorithm>

#include "krigtune/core/text.h"
#include "session/session_blocks.h"

namespace krigtune {
namespace {

std::vector<std::pair<std::string, double>> numbers_of(const Session& session) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  std::vector<std::pair<std::string, double>> numbers = {{"nodes", number(session.cluster.nodes)},
                                                         {"gpus_per_node", number(session.cluster.gpus_per_node)}};
  if (!session.workload) return numbers;
  const ModelSpec& model = session.workload->model;
  numbers.insert(numbers.end(), {{"layers", number(model.layers)},
                                 {"hidden", number(model.hidden)},
                                 {"heads", number(model.heads)},
                                 {"kv_heads", number(model.kv_heads)},
                                 {"vocab", number(model.vocab)},
                                 {"seq_len", number(model.seq_len)}});
  return numbers;
}

JobFacts job_facts(const Session& session, const Configuration& fixed) {
  JobFacts facts;
  facts.fixed = fixed;
  facts.ranks = session.cluster.ranks();
  facts.numbers = numbers_of(session);
  facts.well_known = session.workload.has_value();
  if (session.workload) {
    facts.train_batch_size = session.workload->train_batch_size;
    facts.parameter_count = parameter_count(session.workload->model);
  }
  return facts;
}

std::string constraint_key(std::size_t index) { return fmt::format("constraints/{}", index); }

std::vector<Expression> read_constraints(JsonObject& root) {
  std::vector<Expression> constraints;
  for (const std::string& text : root.texts("constraints")) {
    constraints.push_back(at_key(root, constraint_key(constraints.size()), [&] { return Expression::parse(text); }));
  }
  return constraints;
}

// Reasons with their counts, the largest first.
std::vector<ExclusionCount> reasons_of(const Space& space) {
  std::vector<ExclusionCount> reasons;
  for (const ExclusionCount& excluded : space.exclusions()) {
    if (excluded.reason != Exclusion::kNone && excluded.count > 0) reasons.push_back(excluded);
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const ExclusionCount& a, const ExclusionCount& b) { return a.count > b.count; });
  return reasons;
}

std::string excluded_text(const ExclusionCount& excluded) {
  if (excluded.reason != Exclusion::kConstraint)
    return fmt::format("{} ({})", to_string(excluded.reason), excluded.count);
  return fmt::format("constraint '{}' ({})", excluded.constraint, excluded.count);
}

// Of all that excludes, the constraint that excludes most; else the space itself.
std::string key_to_blame(const Space& space, const std::vector<ExclusionCount>& reasons) {
  const std::vector<Expression>& constraints = space.constraints();
  if (!reasons.empty() && reasons.front().reason != Exclusion::kConstraint) return "space";
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    if (reasons.empty() || constraints[i].text() == reasons.front().constraint) return constraint_key(i);
  }
  return "space";
}

}  // namespace

void read_space(Session& session, JsonObject& root) {
  const std::vector<Parameter> parameters = read_parameters(root.require("space"), root.source(), "/space");
  const JobFacts facts = job_facts(session, read_fixed(root));
  const std::vector<Expression> constraints = read_constraints(root);
  if (!facts.fixed.empty()) at_key(root, "fixed", [&] { return Space({}, facts); });
  at_key(root, "space", [&] { return Space(parameters, facts); });
  // One by one, so that what is wrong is said of the right one.
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    at_key(root, constraint_key(i), [&] { return Space(parameters, facts, {constraints[i]}); });
  }
  session.space = Space(parameters, facts, constraints);
}

void refuse_empty_space(const Space& space, const JsonObject& root) {
  if (!at_key(root, "space", [&] { return space.is_empty(); })) return;
  const std::vector<ExclusionCount> reasons = space.listable() ? reasons_of(space) : std::vector<ExclusionCount>{};
  std::vector<std::string> texts;
  for (const ExclusionCount& reason : reasons) texts.push_back(excluded_text(reason));
  if (texts.empty()) texts.emplace_back("the constraints hold nowhere together");
  const std::string key = key_to_blame(space, reasons);
  root.fail(key, "no configuration is left: " + join(texts, ", "),
            key == "space" ? "choose micro-batches whose product with the ranks divides train_batch_size"
                           : "loosen the constraint, or widen the ranges of its parameters");
}

}  // namespace krigtune
