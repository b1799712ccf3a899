// The costs of a space of 10^9 points: making and counting the rules, and drawing one configuration. Also the costs of
// listing 10^6 points and of one evaluation of a constraint.
#include <benchmark/benchmark.h>

#include "space/spaces.h"

namespace krigtune {
namespace {

std::string name_of(int i) { return std::string("p").append(std::to_string(i)); }

// p0, p1, ... with ten values each.
std::vector<space::Parameter> parameters_of(int count) {
  std::vector<space::Parameter> parameters;
  for (int i = 0; i < count; ++i) {
    space::Parameter parameter{name_of(i), {}};
    for (std::int64_t value = 0; value < 10; ++value) parameter.values.emplace_back(value);
    parameters.push_back(parameter);
  }
  return parameters;
}

const std::vector<std::vector<const char*>>& constraint_sets() {
  static const std::vector<std::vector<const char*>> kSets = {
      {"p0 * p1 <= 30", "(p2 + p3) % 3 == 0 || p4 == 0", "p5 + p6 + p7 + p8 <= 18"},
      {"p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8 <= 40"},
      {"p0 * p4 <= p8 * 5", "p1 + p5 != p7", "max(p0, p3, p6) - min(p2, p8) < 6"}};
  return kSets;
}

space::Space billion(std::int64_t set) {
  std::vector<space::Expression> constraints;
  for (const char* text : constraint_sets()[static_cast<std::size_t>(set)]) {
    constraints.push_back(space::Expression::parse(text));
  }
  return {parameters_of(9), {.well_known = false}, constraints};
}

void count_a_billion(benchmark::State& state) {
  std::int64_t count = 0;
  for (auto _ : state) count = billion(state.range(0)).count();
  state.counters["configurations"] = static_cast<double>(count);
}
BENCHMARK(count_a_billion)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

void sample_a_billion(benchmark::State& state) {
  const space::Space space = billion(state.range(0));
  Rng rng(1, 0);
  for (auto _ : state) benchmark::DoNotOptimize(space.sample(rng));
}
BENCHMARK(sample_a_billion)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

void list_a_million(benchmark::State& state) {
  const space::Space space(parameters_of(6), {.well_known = false});
  for (auto _ : state) {
    std::int64_t sum = 0;
    space.for_each([&](const space::Configuration& c) {
      sum += std::get<std::int64_t>(c.begin()->second);
      return true;
    });
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(list_a_million)->Unit(benchmark::kMillisecond);

void list_a_session(benchmark::State& state) {
  const space::Space space = space_from(R"({
    "zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 64, "scale": "log2"},
    "reduce_bucket_size": {"min": 1e5, "max": 1e8, "scale": "log", "steps": 40},
    "allgather_bucket_size": {"min": 1e5, "max": 1e8, "scale": "log", "steps": 40},
    "stage3_prefetch_bucket_size": {"min": 1e5, "max": 1e8, "scale": "log", "steps": 16},
    "overlap_comm": [true, false]})",
                                        {.ranks = 8, .train_batch_size = 512, .parameter_count = 1'000'000'000});
  std::int64_t count = 0;
  for (auto _ : state) {
    count = 0;
    space.for_each([&](const space::Configuration&) { return ++count > 0; });
  }
  state.counters["configurations"] = static_cast<double>(count);
}
BENCHMARK(list_a_session)->Unit(benchmark::kMillisecond);

void evaluate(benchmark::State& state) {
  const space::Expression expression = space::Expression::parse("p0 * p1 <= 30 && (p2 + p3) % 3 == 0");
  const space::Value value = std::int64_t{3};
  for (auto _ : state) benchmark::DoNotOptimize(expression.holds([&](std::string_view) { return &value; }));
}
BENCHMARK(evaluate);

}  // namespace
}  // namespace krigtune

BENCHMARK_MAIN();
