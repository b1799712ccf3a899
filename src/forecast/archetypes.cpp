#include "forecast/archetypes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "core/json.h"
#include "cost/framework.h"
#include "schedule/knobs.h"
#include "session/memory_filter.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"
#include "trial/outcome.h"

namespace krigtune::forecast {
namespace {

using workload::Framework;

// Shapes of dense models with gated MLPs, one for each factor of about 2.5 in size. Heads and MLPs are divisible by
// many numbers of ranks, so that no shape excludes a configuration which another model of that size could have.
struct Shape {
  std::int64_t layers, hidden, heads, ffn_hidden;
};
constexpr std::array<Shape, 9> kShapes{{{24, 1024, 32, 2816},        // 0.4 billion parameters
                                        {24, 2048, 32, 5632},        // 1.3
                                        {32, 2560, 32, 8960},        // 3.4
                                        {32, 4096, 32, 11264},       // 7
                                        {40, 5120, 64, 13824},       // 13
                                        {60, 6656, 64, 17920},       // 33
                                        {80, 8192, 64, 28672},       // 76
                                        {96, 12288, 128, 32768},     // 176
                                        {128, 16384, 128, 53248}}};  // 476
constexpr std::int64_t kVocabulary = 64'000;

struct Length {
  std::int64_t seq_len;
  double probability;
};
constexpr std::array<Length, 4> kLengths{{{2048, 0.3}, {4096, 0.4}, {8192, 0.2}, {32768, 0.1}}};

constexpr std::array<Framework, 4> kFrameworks{Framework::kMegatron, Framework::kDeepSpeed, Framework::kFsdp,
                                               Framework::kNanotron};

// Steps of so many of the smallest possible batch.
struct BatchTimes {
  std::int64_t times;
  double probability;
};
constexpr std::array<BatchTimes, 2> kBatchTimes{{{1, 0.6}, {4, 0.4}}};

constexpr double kToldFramework = 0.7;  // the others share the remainder
constexpr double kToldModel = 0.8;
constexpr double kHalfModel = 0.08;
constexpr double kDoubleModel = 0.08;
constexpr double kAdapters = 0.04;

constexpr int kSamples = 1'000;
constexpr std::int64_t kRanksOfANode = 8;

}  // namespace

space::Configuration as_training_step(const space::Configuration& configuration, const Roles& roles) {
  space::Configuration step;
  for (const auto& [name, value] : configuration) {
    const auto role = roles.find(name);
    const std::string& known = role != roles.end() ? role->second : name;
    const auto* flag = std::get_if<bool>(&value);
    const bool is_flag = known == space::kCheckpointing && flag != nullptr;
    step.set(known, is_flag ? space::Value(std::string(*flag ? "full" : "none")) : value);
  }
  return session::modelled_part(step);
}

namespace {

std::vector<space::Configuration> some_configurations(const space::Space& space, std::int64_t most) {
  std::vector<space::Configuration> some;
  if (space.listable() && space.lattice_count() <= most * 10) {
    space.for_each([&](const space::Configuration& configuration) {
      some.push_back(configuration);
      return std::ssize(some) < most;
    });
    return some;
  }
  if (space.is_empty()) return some;
  Rng rng(0, 0);
  for (int i = 0; i < kSamples; ++i) some.push_back(space.sample(rng));
  return some;
}

// Returns the least common multiple, or the largest number if that is far smaller: then the numbers have no common
// meaning.
std::int64_t common_multiple(const std::set<std::int64_t>& numbers) {
  constexpr std::int64_t kMostTimes = 64;
  if (numbers.empty()) return 1;
  const std::int64_t largest = *numbers.rbegin();
  std::int64_t common = 1;
  for (const std::int64_t number : numbers) {
    common = std::lcm(common, std::max<std::int64_t>(number, 1));
    if (common > kMostTimes * largest) return largest;
  }
  return common;
}

std::int64_t fewest_ranks(const std::vector<space::Configuration>& configurations) {
  std::set<std::int64_t> replicas;
  for (const space::Configuration& one : configurations) replicas.insert(space::ranks_of_replica(one));
  return common_multiple(replicas);
}

// The smallest batch that every configuration divides. Empty if the space has micro-steps of its own.
std::optional<std::int64_t> smallest_batch(const std::vector<space::Configuration>& configurations,
                                           std::int64_t ranks) {
  std::set<std::int64_t> of_micro_steps;
  for (const space::Configuration& one : configurations) {
    if (one.has(space::kAccumulation)) return std::nullopt;
    const auto data_ranks = space::data_parallel_ranks(ranks, one);
    if (data_ranks) of_micro_steps.insert(*data_ranks * one.integer(space::kMicroBatch, 1));
  }
  return common_multiple(of_micro_steps);
}

workload::ClusterSpec usual_cluster(std::int64_t nodes, std::int64_t gpus_per_node) {
  Json json = {{"nodes", nodes},
               {"gpus_per_node", gpus_per_node},
               {"gpu", "h100-80gb"},
               {"interconnect", "nvlink4"},
               {"network", "ib-ndr-400"}};
  return workload::read_cluster(json, "the usual cluster", "");
}

struct ClusterGuess {
  workload::ClusterSpec cluster;
  double probability;
};

std::vector<ClusterGuess> clusters_of(const session::Session& session,
                                      const std::vector<space::Configuration>& configurations) {
  const workload::ClusterSpec& told = session.cluster;
  const bool has_gpu = told.device && told.network;
  if (!told.assumes_ranks) return {{has_gpu ? told : usual_cluster(told.nodes, told.gpus_per_node), 1.0}};
  const auto cluster_of = [&](std::int64_t ranks) {
    const std::int64_t nodes = ranks % kRanksOfANode == 0 ? ranks / kRanksOfANode : 1;
    workload::ClusterSpec cluster = usual_cluster(nodes, ranks / nodes);
    if (has_gpu) {
      cluster.gpu = told.gpu;
      cluster.device = told.device;
      cluster.network->intra = told.network->intra;
    }
    return cluster;
  };
  const std::int64_t fewest = std::max(fewest_ranks(configurations), kRanksOfANode);
  return {{cluster_of(fewest), 0.6}, {cluster_of(4 * fewest), 0.4}};
}

workload::Workload usual_workload(const Shape& shape, std::int64_t seq_len, Framework framework,
                                  std::optional<std::int64_t> batch) {
  workload::Workload workload;
  workload.model = {.layers = shape.layers,
                    .hidden = shape.hidden,
                    .heads = shape.heads,
                    .kv_heads = shape.heads,
                    .ffn_hidden = shape.ffn_hidden,
                    .vocab = kVocabulary,
                    .seq_len = seq_len,
                    .gated_mlp = true,
                    .tied_embeddings = false,
                    .positions = workload::Positions::kRotary,
                    .norm = workload::Norm::kRmsNorm};
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  workload.dialect = cost::traits_of(framework).dialect;
  workload.train_batch_size = batch;
  return workload;
}

std::vector<std::pair<Framework, double>> frameworks_around(Framework told) {
  std::vector<std::pair<Framework, double>> frameworks = {{told, kToldFramework}};
  for (const Framework other : kFrameworks) {
    if (other != told) frameworks.emplace_back(other, 0.0);
  }
  const double each = (1.0 - kToldFramework) / static_cast<double>(frameworks.size() - 1);
  for (std::size_t i = 1; i < frameworks.size(); ++i) frameworks[i].second = each;
  return frameworks;
}

std::vector<std::pair<Framework, double>> frameworks_of(const session::Session& session) {
  if (session.framework) return frameworks_around(*session.framework);
  std::vector<std::pair<Framework, double>> all;
  for (const Framework one : kFrameworks) all.emplace_back(one, 1.0 / kFrameworks.size());
  return all;
}

}  // namespace

bool speaks_of_a_step(const space::Space& space) {
  const std::vector<std::string>& planned = schedule::planned_parameters();
  return std::any_of(space.parameters().begin(), space.parameters().end(), [&](const space::Parameter& parameter) {
    const bool varies = parameter.continuous() || parameter.values.size() > 1;
    const std::string known(space::well_known_name(parameter.name));
    return varies && std::find(planned.begin(), planned.end(), known) != planned.end();
  });
}

namespace {

/// What is tried with one meaning of the parameters.
struct Guessed {
  std::span<const Length> lengths;
  std::vector<std::pair<Framework, double>> frameworks;
  std::span<const BatchTimes> batches;
};

/// A job without its model's shape.
struct Setting {
  workload::ClusterSpec cluster;
  std::int64_t seq_len;
  Framework framework;
  std::optional<std::int64_t> batch;
  double weight;
};

std::vector<Setting> settings_of(const session::Session& session,
                                 const std::vector<space::Configuration>& configurations, const Guessed& guessed) {
  std::vector<Setting> settings;
  for (const ClusterGuess& on : clusters_of(session, configurations)) {
    const std::optional<std::int64_t> smallest = smallest_batch(configurations, on.cluster.ranks());
    for (const Length& length : guessed.lengths) {
      for (const auto& [framework, of_framework] : guessed.frameworks) {
        const double weight = on.probability * length.probability * of_framework;
        if (!smallest) settings.push_back({on.cluster, length.seq_len, framework, std::nullopt, weight});
        for (std::size_t i = 0; smallest && i < guessed.batches.size(); ++i) {
          const auto& [times, of_times] = guessed.batches[i];
          settings.push_back({on.cluster, length.seq_len, framework, *smallest * times, weight * of_times});
        }
      }
    }
  }
  return settings;
}

/// Numbers usual jobs by all that they differ in within a session, because comparing whole workloads would take longer
/// than the first predictions.
class UsualJobNumbers {
 public:
  std::size_t of(std::size_t shape, const Setting& setting) {
    const std::tuple key{shape, setting.cluster.ranks(), setting.seq_len, setting.framework, setting.batch};
    return numbers_.emplace(key, numbers_.size()).first->second;
  }

 private:
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, Framework, std::optional<std::int64_t>>, std::size_t>
      numbers_;
};

void add_usual_jobs(const session::Session& session, const std::vector<space::Configuration>& some,
                    const Guessed& guessed, const RoleGuess& meaning, UsualJobNumbers& numbers,
                    std::vector<JobGuess>& jobs) {
  std::vector<space::Configuration> configurations;
  for (const space::Configuration& one : some) configurations.push_back(as_training_step(one, meaning.roles));
  const std::vector<Setting> settings = settings_of(session, configurations, guessed);
  double sum = 0.0;
  for (const Setting& one : settings) sum += one.weight * kShapes.size();
  for (std::size_t shape = 0; shape < kShapes.size(); ++shape) {
    for (const Setting& one : settings) {
      jobs.push_back({usual_workload(kShapes[shape], one.seq_len, one.framework, one.batch), one.cluster,
                      meaning.probability * one.weight / sum, false, false, meaning.roles, numbers.of(shape, one)});
    }
  }
}

// Only the numbers that may split ranks and batches.
std::vector<space::Configuration> configurations_of(const ListedNumbers& listed) {
  std::vector<space::Configuration> configurations;
  for (const std::vector<std::int64_t>& row : listed.rows) {
    space::Configuration& configuration = configurations.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) configuration.set(listed.names[i], row[i]);
  }
  return configurations;
}

// The fewer meanings the parameters may have, the more jobs come with each.
Guessed guessed_for(std::size_t meanings, std::vector<std::pair<Framework, double>> frameworks) {
  constexpr std::size_t kFewMeanings = 4;
  constexpr std::size_t kSomeMeanings = 16;
  if (meanings <= kFewMeanings) return {kLengths, std::move(frameworks), kBatchTimes};
  if (meanings > kSomeMeanings) frameworks.resize(2);
  return {std::span(kLengths).subspan(1, 1), std::move(frameworks), std::span(kBatchTimes).first(1)};
}

}  // namespace

std::vector<JobGuess> usual_jobs(const session::Session& session) {
  constexpr std::int64_t kMostWalked = 10'000;
  constexpr std::int64_t kMostWalkedForRoles = 500;
  const trial::Metric* metric = session::metric_of(session.objective);
  if (metric == nullptr || !metric->is_speed) return {};
  std::vector<JobGuess> jobs;
  UsualJobNumbers numbers;
  if (speaks_of_a_step(session.space)) {
    const Guessed all{kLengths, frameworks_of(session), kBatchTimes};
    add_usual_jobs(session, some_configurations(session.space, kMostWalked), all, {{}, 1.0}, numbers, jobs);
    return jobs;
  }
  const ListedNumbers listed = listed_numbers(session.space);
  const std::vector<space::Configuration> some =
      listed.rows.empty() ? some_configurations(session.space, kMostWalkedForRoles) : configurations_of(listed);
  const std::vector<RoleGuess> meanings = possible_roles(session.space, listed);
  const Guessed guessed = guessed_for(meanings.size(), frameworks_of(session));
  for (const RoleGuess& meaning : meanings) add_usual_jobs(session, some, guessed, meaning, numbers, jobs);
  return jobs;
}

namespace {

// The runner itself runs the framework's training step, or the virtual clock does.
bool is_known_exactly(const session::Session& session) {
  return runner::traits_of(session.runner).only_what_is_modelled;
}

struct ModelGuess {
  workload::ModelSpec model;
  double probability;
  bool trains_adapters = false;
};

std::vector<ModelGuess> models_around(const workload::ModelSpec& told) {
  workload::ModelSpec half = told;
  half.layers = std::max<std::int64_t>(told.layers / 2, 1);
  workload::ModelSpec twice = told;
  twice.layers = 2 * told.layers;
  return {{told, kToldModel}, {half, kHalfModel}, {twice, kDoubleModel}, {told, kAdapters, true}};
}

}  // namespace

std::vector<JobGuess> around_the_told_job(const session::Session& session) {
  const workload::Workload& told = *session.workload;
  if (is_known_exactly(session)) return {{told, session.cluster, 1.0, true}};
  std::vector<JobGuess> jobs;
  const std::vector<std::pair<Framework, double>> frameworks = frameworks_around(told.framework);
  for (const ModelGuess& model : models_around(told.model)) {
    for (const auto& [framework, probability] : frameworks) {
      workload::Workload job = told;
      job.model = model.model;
      if (framework != told.framework) {
        job.framework = framework;
        job.dialect = cost::traits_of(framework).dialect;
      }
      // A job that is told to train adapters may train all weights.
      const bool is_told_adapters = told.training.freezes();
      if (model.trains_adapters && is_told_adapters) job.training = {};
      const bool trains_adapters = model.trains_adapters && !is_told_adapters;
      // Adapters have the times of the told model, which are those of the first jobs.
      const std::size_t physics = trains_adapters ? jobs.size() % frameworks.size() : jobs.size();
      jobs.push_back({std::move(job),
                      session.cluster,
                      model.probability * probability,
                      jobs.empty(),
                      trains_adapters,
                      {},
                      physics});
    }
  }
  return jobs;
}

}  // namespace krigtune::forecast
