// A machine that differs somewhat from the prediction. With z standard normal numbers drawn from the seed:
//
//   seconds of class c   = predicted * exp(e z_c)            products, memory, collectives, issuing, host
//   step of x            = that step * exp(e / 2 r(x))       r: unit variance, not explained by any class
//   activations          = predicted * exp(m z)
//   measured step        = step of x * exp(s z_trial)        * slowdown, if a rank straggles, * today's slowdown
//   x fails              if a(x) > t, a hidden plane with t such that it cuts off the stated part of the space
//
// r(x) = sqrt(2 / n) sum_i cos(w_i x + b_i + c_i(categories)) is a draw of a Gaussian process with a squared
// exponential kernel (Rahimi & Recht 2007, random Fourier features), x the encoded configuration.
#include "runner/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "core/block.h"
#include "core/error.h"
#include "core/hash.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "krigtune/rng.h"
#include "schedule/knobs.h"
#include "space/encoder.h"
#include "trial/race.h"

namespace krigtune::runner {
namespace {

// The streams of the seed's random numbers.
constexpr std::uint64_t kFactorStream = 0;
constexpr std::uint64_t kSampleStream = 1;
constexpr std::uint64_t kPlaneStream = 2;
constexpr std::uint64_t kRippleStreams = 3;  // and all following streams

constexpr int kRipples = 32;
constexpr double kFrequency = 2.0;  // radians along an axis: about half a wave
constexpr int kSamples = 2000;      // used to place the plane

struct HiddenFactors {
  cost::TimeCalibration time;
  cost::MemoryCalibration memory;
};

HiddenFactors draw_factors(const SimulateSpec& spec) {
  Rng rng(static_cast<std::uint64_t>(spec.seed), kFactorStream);
  HiddenFactors hidden;
  cost::TimeCalibration& time = hidden.time;
  for (double* factor : {&time.products, &time.memory, &time.collectives, &time.issue, &time.host}) {
    *factor = std::exp(spec.systematic_error * rng.normal());
  }
  hidden.memory.activations = std::exp(spec.memory_error * rng.normal());
  return hidden;
}

/// A hidden linear function of the encoded configuration: a slope for each ordered column, an offset for each category.
class HiddenSlope {
 public:
  HiddenSlope(std::uint64_t seed, std::uint64_t stream, double scale) : seed_(seed), stream_(stream), scale_(scale) {}

  double at(const space::EncodedPoint& point) const {
    Rng rng(seed_, stream_);
    double sum = 0.0;
    for (const double coordinate : point.ordered) sum += scale_ * rng.normal() * coordinate;
    for (std::size_t column = 0; column < point.categories.size(); ++column) {
      sum += scale_ * category(column, point.categories[column]);
    }
    return sum;
  }

 private:
  // Each category has a random stream of its own, so any number of categories is possible.
  double category(std::size_t column, int index) const {
    Fnv1a64 hash;
    for (const std::uint64_t part : {stream_, std::uint64_t{column}, static_cast<std::uint64_t>(index)}) {
      hash.add(&part, sizeof part);
    }
    return Rng(seed_, hash.value()).normal();
  }

  std::uint64_t seed_;
  std::uint64_t stream_;
  double scale_;
};

/// r(x)
class HiddenRipple {
 public:
  explicit HiddenRipple(std::uint64_t seed) {
    Rng rng(seed, kRippleStreams);
    for (int i = 0; i < kRipples; ++i) {
      waves_.emplace_back(seed, kRippleStreams + 1 + static_cast<std::uint64_t>(i), kFrequency);
      phases_.push_back(2.0 * std::numbers::pi * rng.uniform());
    }
  }

  double at(const space::EncodedPoint& point) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < waves_.size(); ++i) sum += std::cos(waves_[i].at(point) + phases_[i]);
    return std::sqrt(2.0 / kRipples) * sum;
  }

 private:
  std::vector<HiddenSlope> waves_;
  std::vector<double> phases_;
};

/// The part of the space in which trials fail.
class HiddenPlane {
 public:
  HiddenPlane(const SimulateSpec& spec, const space::Space& space, const space::Encoder& encoder)
      : slope_(static_cast<std::uint64_t>(spec.seed), kPlaneStream, 1.0) {
    if (spec.unforeseen_fraction <= 0.0) return;
    Rng rng(static_cast<std::uint64_t>(spec.seed), kSampleStream);
    std::vector<double> heights;
    for (int i = 0; i < kSamples; ++i) heights.push_back(slope_.at(encoder.encode(space.sample(rng))));
    const auto rank = static_cast<std::ptrdiff_t>((1.0 - spec.unforeseen_fraction) * (kSamples - 1));
    std::nth_element(heights.begin(), heights.begin() + rank, heights.end());
    threshold_ = heights[static_cast<std::size_t>(rank)];
  }

  bool cuts_off(const space::EncodedPoint& point) const { return slope_.at(point) > threshold_; }

 private:
  HiddenSlope slope_;
  double threshold_ = std::numeric_limits<double>::infinity();
};

class SimulateRunner final : public trial::Runner {
 public:
  explicit SimulateRunner(SimulateJob job)
      : job_(std::move(job)),
        encoder_(job_.space),
        hidden_(draw_factors(job_.spec)),
        ripple_(static_cast<std::uint64_t>(job_.spec.seed)),
        plane_(job_.spec, job_.space, encoder_),
        time_(job_.workload, job_.cluster, hidden_.time),
        memory_(job_.workload, job_.cluster, job_.memory, hidden_.memory),
        limit_(workload::memory_limit_per_rank(job_.memory, job_.cluster)) {}

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    try {
      const trial::Outcome outcome = outcome_of(configuration);
      return job_.spec.early_end && context.rival ? raced(outcome, *context.rival) : outcome;
    } catch (const UserError& error) {
      return trial::Failed{trial::FailureReason::kInvalid, 0, error.what()};
    }
  }

 private:
  // A simulated trial takes no time, so it is judged once, with all its steps.
  static trial::Outcome raced(const trial::Outcome& outcome, const trial::Rival& rival) {
    constexpr std::int64_t kSteps = 100;
    const auto* measured = std::get_if<trial::Measured>(&outcome);
    if (measured == nullptr || measured->metrics.count(rival.metric) == 0) return outcome;
    const trial::Provisional last{measured->metrics.at(rival.metric), measured->value_sem, kSteps};
    const std::optional<double> bound = trial::bound_of_a_loser(last, rival);
    return bound ? trial::Outcome(trial::Bounded{*bound}) : outcome;
  }

  trial::Outcome outcome_of(const space::Configuration& configuration) {
    const SimulateSpec& spec = job_.spec;
    const std::uint64_t key = key_of(configuration);
    Rng rng(key, static_cast<std::uint64_t>(measurements_[key]++));
    double factor = spec.today.slowdown * std::exp(spec.noise * rng.normal());
    const double straggling = rng.uniform() < spec.straggler_probability ? spec.straggler_slowdown : 1.0;
    const bool crashes = rng.uniform() < spec.crash_probability;
    const cost::MemoryEstimate memory = memory_.estimate(configuration);
    if (memory.expected > limit_) return trial::OutOfMemory{memory.expected, false};
    if (job_.memory.host_limit_gib && memory.host > from_gib(*job_.memory.host_limit_gib)) {
      return trial::OutOfMemory{memory.host, false};
    }
    const space::EncodedPoint point = encoder_.encode(configuration);
    if (plane_.cuts_off(point))
      return trial::Failed{trial::FailureReason::kCrash, 1, "simulated: this part of the space fails"};
    if (crashes) return trial::Failed{trial::FailureReason::kCrash, 1, "simulated: a crash by chance"};
    factor *= std::exp(0.5 * spec.systematic_error * ripple_.at(point));
    return measured(configuration, factor, straggling, memory.expected - Bytes{memory.overhead_bytes});
  }

  // The other ranks wait for the kernels of a straggler, and this time appears as exposed communication.
  trial::Measured measured(const space::Configuration& configuration, double factor, double straggling,
                           Bytes peak) const {
    const cost::StepCost cost = time_(configuration);
    const double kernels_s = factor * (cost.products_s + cost.memory_bound_s + cost.optimizer_s);
    const std::int64_t sequences = schedule::read_knobs(job_.workload, job_.cluster, configuration).sequences();
    const double step_s = straggling * factor * cost.step_time_s;
    const double samples_per_s = static_cast<double>(sequences) / step_s;
    trial::Measured result;
    result.metrics = {{"step_time_s", step_s},
                      {"samples_per_s", samples_per_s},
                      {"tokens_per_s", samples_per_s * static_cast<double>(job_.workload.model.seq_len)},
                      {"flops_per_s", (workload::model_flops(job_.workload.model, sequences) -
                                       workload::spared_flops(job_.workload, sequences)) /
                                          step_s / static_cast<double>(job_.cluster.ranks())},
                      {"exposed_comm_s", straggling * factor * cost.exposed_comm_s + (straggling - 1.0) * kernels_s},
                      {"median_rank_kernels_s", kernels_s},
                      {"slowest_rank_kernels_s", straggling * kernels_s}};
    result.peak_memory = peak;
    return result;
  }

  // The key does not depend on the order in which the names were set.
  std::uint64_t key_of(const space::Configuration& configuration) const {
    std::map<std::string, std::string> sorted;
    for (const auto& [name, value] : configuration) sorted.emplace(name, space::to_string(value));
    Fnv1a64 hash;
    const std::int64_t seed = job_.spec.today.seed.value_or(job_.spec.seed);
    hash.add(&seed, sizeof seed);
    for (const auto& [name, value] : sorted) {
      const std::string text = name + "=" + value + "\n";
      hash.add(text.data(), text.size());
    }
    return hash.value();
  }

  SimulateJob job_;
  space::Encoder encoder_;
  HiddenFactors hidden_;
  HiddenRipple ripple_;
  HiddenPlane plane_;
  cost::StepCostModel time_;
  cost::MemoryModel memory_;
  Bytes limit_;
  std::map<std::uint64_t, int> measurements_;
};

Block<SimulateSpec::Today> today_block() {
  using Today = SimulateSpec::Today;
  Block<Today> block(
      "The state of the simulated machine during a command; a command with another state begins a new run");
  block.key("slowdown", &Today::slowdown, number(from_to(0.01, 100)), "factor by which every step takes longer");
  block.key("seed", &Today::seed, integer_or_null(at_least(0)),
            "seed of noise, stragglers and crashes (default: \"seed\" of the runner)");
  return block;
}

Block<SimulateSpec> simulate_block(const std::filesystem::path& /*base_dir*/) {
  const Codec<double> spread = number(from_to(0, 2));      // a factor of more than 7 in one case of three
  const Codec<double> fraction = number(from_to(0, 0.9));  // some configurations must run
  Block<SimulateSpec> stragglers("Slow ranks");
  stragglers.key("probability", &SimulateSpec::straggler_probability, fraction, "probability for each trial");
  stragglers.key("slowdown", &SimulateSpec::straggler_slowdown, number(from_to(1, 100)),
                 "factor by which a step takes longer");
  Block<SimulateSpec> failures("Failures that the models do not predict");
  failures.key("unforeseen_fraction", &SimulateSpec::unforeseen_fraction, fraction,
               "fraction of the space, beyond a hidden plane, in which all trials fail");
  failures.key("crash_probability", &SimulateSpec::crash_probability, fraction,
               "probability for each trial, anywhere in the space");

  Block<SimulateSpec> block("Simulated trials with hidden model errors; takes no time, requires a named GPU");
  block.key("noise", &SimulateSpec::noise, spread,
            "standard deviation of the logarithm of a step time, trial by trial");
  block.key("systematic_error", &SimulateSpec::systematic_error, spread,
            "standard deviation of the logarithm of the hidden factor of each class of operations");
  block.key("memory_error", &SimulateSpec::memory_error, spread,
            "standard deviation of the logarithm of the hidden factor on activations");
  block.group("stragglers", stragglers);
  block.group("failures", failures);
  block.key("seed", &SimulateSpec::seed, integer(at_least(0)), "seed of the hidden errors and of the noise");
  block.key("early_end", &SimulateSpec::early_end, boolean(),
            "end a trial early if it is certainly worse than the best (status bounded)");
  block.block("today", &SimulateSpec::today, today_block());
  return block;
}

}  // namespace

std::string SimulateSpec::machine() const {
  return fmt::format("simulated: slowdown {}, seed {}", today.slowdown, today.seed.value_or(seed));
}

trial::RunnerEntry<SimulateSpec> SimulateSpec::entry() {
  return {{.name = "simulate",
           .only_what_is_modelled = true,
           .has_our_fields = true,
           .words = {.trainer = "the virtual clock",
                     .trials_are = "simulated",
                     .about_trials = "The trials were simulated: nothing ran."}},
          simulate_block,
          [](const SimulateSpec& spec, const trial::RunnerJob& job) {
            return make_simulate_runner({job.workload.value(), job.cluster, job.memory, job.space, spec});
          }};
}

std::unique_ptr<trial::Runner> make_simulate_runner(SimulateJob job) {
  return std::make_unique<SimulateRunner>(std::move(job));
}

}  // namespace krigtune::runner
