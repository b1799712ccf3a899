// Reads the block "budget" and the blocks of the strategies that bayes is compared with.
#include "session/session_blocks.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/block.h"
#include "core/text.h"
#include "session/goodput.h"
#include "space/usual_names.h"
#include "space/well_known.h"
#include "trial/outcome.h"

namespace krigtune::session {

namespace {

Block<Budget> budget_block() {
  constexpr double kMostTrials = 1e6;
  Block<Budget> block("When the session ends; the limit that is reached first counts");
  block.key("trials", &Budget::trials, integer<int>(from_to(1, kMostTrials)), "number of closed trials");
  block.key("hours", &Budget::hours, number_or_null(above(0)),
            "wall-clock hours during which trials run or are being proposed; trials that run at the same time count "
            "once (default: no limit)");
  block.key("gpu_hours", &Budget::gpu_hours, number_or_null(above(0)),
            "hours of each trial times its ranks, added up (default: no limit)");
  block.key("patience", &Budget::patience, integer_or_null<int>(from_to(1, kMostTrials)),
            "end after so many trials without an improvement of more than 1 % (default: off)");
  block.key("regret", &Budget::regret, number(from_to_below(0, 1), "0.01 for 1 %, or 0 for no such rule"),
            "end once no other configuration is likely to be better by more than this fraction; 0: off");
  block.key("confidence", &Budget::confidence, number(from_to_below(0.5, 1), "0.95 for 95 %"),
            "the confidence of regret");
  block.key("least_gain", &Budget::least_gain, number(from_to_below(0, 1), "0.01 for 1 %, or 0 for no such rule"),
            "end once no trial of typical length is expected to gain this fraction; 0: off, which is the default if "
            "run_gpu_hours is given");
  block.key("run_gpu_hours", &Budget::run_gpu_hours, number_or_null(above(0)),
            "length of the training that will use the result, in hours times ranks: end once no trial is expected to "
            "save more of it than it costs (default: off)");
  // run_gpu_hours states what a gain is worth, which the default of least_gain only guesses.
  block.check([](JsonObject& object, Budget& budget) {
    if (budget.run_gpu_hours && !object.has("least_gain")) budget.least_gain = 0.0;
  });
  return block;
}

constexpr EnumWords<GridOrder, 2> kOrderWords = {{{"seed", GridOrder::kSeed}, {"session", GridOrder::kSession}}};

Block<GridOptions> grid_block() {
  Block<GridOptions> block("The order of the strategy grid");
  block.key("order", &GridOptions::order, one_of(kOrderWords),
            "seed: the largest even sub-grid that fits the budget, in an order drawn from the seed; session: the full "
            "factorial, in order");
  block.key("prune", &GridOptions::prune, boolean(),
            "skip configurations that need more memory than one that ran out of it, and ZeRO stages 2 and 3 if a lower "
            "one runs");
  return block;
}

constexpr EnumWords<SpaceTuner, 3> kTunerWords = {{{"gridsearch", SpaceTuner::kGridSearch},
                                                   {"random", SpaceTuner::kRandom},
                                                   {"model_based", SpaceTuner::kModelBased}}};

Block<StagewiseOptions> stagewise_block() {
  const Codec<int> count = integer<int>(from_to(1, 1e6));
  Block<StagewiseOptions> block("Settings of the strategy stagewise, the algorithm of DeepSpeed's autotuner");
  block.key("plateau", &StagewiseOptions::plateau, number(from_to_below(0, 1), "0.01 for 1 %"),
            "stop changing the micro-batch once it gains less than this fraction (DeepSpeed: 0.05)");
  block.key("fast", &StagewiseOptions::fast, boolean(), "search ZeRO stages and micro-batches only (DeepSpeed: true)");
  block.key("tuner", &StagewiseOptions::tuner, one_of(kTunerWords),
            "how the other parameters are searched within a stage");
  block.key("tuner_trials", &StagewiseOptions::tuner_trials, count, "at most so many of these trials per stage");
  block.key("early_stopping", &StagewiseOptions::early_stopping, count,
            "at most so many of these trials after the best one");
  block.key("micro_batches", &StagewiseOptions::micro_batches, count,
            "number of micro-batches between half of the largest and the largest");
  return block;
}

}  // namespace

Budget read_budget(const Json* json, const std::string& source, const std::string& pointer) {
  return budget_block().value_of(json, source, pointer);
}
GridOptions read_grid(const Json* json, const std::string& source, const std::string& pointer) {
  return grid_block().value_of(json, source, pointer);
}
StagewiseOptions read_stagewise(const Json* json, const std::string& source, const std::string& pointer) {
  return stagewise_block().value_of(json, source, pointer);
}

Json to_json(const Budget& budget) { return budget_block().written(budget); }
Json to_json(const GridOptions& options) { return grid_block().written(options); }
Json to_json(const StagewiseOptions& options) { return stagewise_block().written(options); }

Json budget_schema() { return budget_block().schema(); }
Json grid_schema() { return grid_block().schema(); }
Json stagewise_schema() { return stagewise_block().schema(); }

// Reads the block "objective".
namespace {

constexpr const char* kHowToMeasure =
    "measure the mean squared norm of the gradient with two batch sizes: docs/goodput.md";

enum class Direction { kMaximize, kMinimize };
constexpr EnumWords<Direction, 2> kDirectionWords = {
    {{"maximize", Direction::kMaximize}, {"minimize", Direction::kMinimize}}};

constexpr std::size_t kLongestUnit = 16;

// The block as written in the file.
struct WrittenObjective {
  std::string metric = Objective().metric;
  std::optional<Direction> direction;
  std::optional<double> noise_scale;
  std::optional<double> base_batch;
  double run_noise = kUsualRunNoise;
  std::string unit;
  std::optional<double> limit;

  std::optional<bool> maximize() const {
    return direction ? std::optional(*direction == Direction::kMaximize) : std::nullopt;
  }
};

const char* direction_text(bool maximize) { return maximize ? "maximize" : "minimize"; }

void refuse_other_direction(JsonObject& block, const std::string& metric, bool maximize,
                            std::optional<bool> direction) {
  if (!direction || *direction == maximize) return;
  block.fail("direction",
             fmt::format("'{}' is to {}, not to {}", metric, direction_text(maximize), direction_text(*direction)),
             "leave the direction out");
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const trial::Metric& metric : trial::known_metrics()) names.emplace_back(metric.name);
  return names;
}

std::string metric_meaning() { return join(known_names(), ", ") + ", or a field of the runner's result"; }

Objective own_objective(JsonObject& block, const std::string& metric, std::optional<bool> maximize) {
  if (metric.empty()) block.fail("metric", "is empty", "name a field of the runner's result");
  if (!maximize) {
    block.fail("direction", fmt::format("is missing for the metric '{}'", metric),
               fmt::format("write \"maximize\" or \"minimize\"; known without: {}", join(known_names(), ", ")));
  }
  return {metric, *maximize, metric};
}

Block<GradientNorm> norm_block() {
  Block<GradientNorm> block("The gradient with one batch size");
  block.key("batch", &GradientNorm::batch, number(above(0)), "sequences a step").required();
  block.key("squared_norm", &GradientNorm::squared_norm, number(above(0)), "mean of the gradient's squared norm")
      .required();
  return block;
}

// Reads a number, or two measurements from which it follows.
double read_noise_scale(JsonObject& block, const std::string& key) {
  const Json& json = block.require(key);
  if (json.is_number() && json.get<double>() > 0.0) return json.get<double>();
  if (!json.is_array() || json.size() != 2) {
    block.fail(key, "sequences above 0, or two measurements [{\"batch\", \"squared_norm\"}, ...] were expected",
               kHowToMeasure);
  }
  const std::string pointer = block.pointer(key);
  const auto scale = gradient_noise_scale(norm_block().value_of(&json.at(0), block.source(), pointer + "/0"),
                                          norm_block().value_of(&json.at(1), block.source(), pointer + "/1"));
  if (scale) return *scale;
  block.fail(key, "these norms are not those of one gradient with noise: the larger batch must have the smaller one",
             "average over more steps, or take batches that are further apart");
}

Block<WrittenObjective> objective_block() {
  Codec<std::string> metric = text();
  metric.schema = schema::not_empty(metric.schema);
  const Codec<double> noise_scale = {schema::either({above(0).applied_to(schema::number("sequences")),
                                                     schema::list(norm_block().schema(), "two measurements")}),
                                     read_noise_scale, [](const double& sequences) { return json_number(sequences); }};
  Block<WrittenObjective> block("The number to maximize or minimize");
  block.key("metric", &WrittenObjective::metric, metric, metric_meaning().c_str());
  block.key("direction", &WrittenObjective::direction, one_of(kDirectionWords), "required for a metric of your own");
  block.key("noise_scale", &WrittenObjective::noise_scale, noise_scale,
            "goodput: the gradient noise scale in sequences, or two measurements from which it is calculated");
  block.key("base_batch", &WrittenObjective::base_batch, number_or_null(above(0)),
            "goodput: sequences per step at which statistical efficiency is 1 (default: the baseline's)");
  block.key("run_noise", &WrittenObjective::run_noise, number(above(0)),
            "relative standard deviation of a trial's value from run to run, until repeated trials show another");
  block.key("unit", &WrittenObjective::unit, text(),
            "shown after the values of a metric of your own, such as \"tok/s\"; --metric takes it from the expression");
  block.key("limit", &WrittenObjective::limit, number_or_null({}),
            "one of several objectives: configurations with a worse value do not belong to the front");
  return block;
}

// Returns the runner's name of the metric. A user's program reports it under its own name; in a replayed table it is
// only a label.
std::string field_of(const trial::Metric& metric, const trial::RunnerTraits& runner) {
  return std::string(runner.has_our_fields ? metric.field : metric.name);
}

Objective read_goodput(const JsonObject& block, const WrittenObjective& written, const trial::Metric& goodput,
                       const trial::RunnerTraits& runner) {
  Objective objective{std::string(goodput.name), goodput.maximize, std::string(goodput.field)};
  objective.throughput_field = field_of(*trial::find_metric("throughput"), runner);
  if (!written.noise_scale) {
    block.fail("noise_scale", "is missing: goodput needs the gradient noise scale, in sequences", kHowToMeasure);
  }
  objective.gradient_noise = GradientNoise{*written.noise_scale, written.base_batch.value_or(0.0)};
  return objective;
}

bool knows_its_batch(const Session& session) {
  return runner::traits_of(session.runner).only_what_is_modelled || session.workload->train_batch_size ||
         space::find_usual(session.space.parameters(), space::kMicroBatch) != nullptr;
}

}  // namespace

namespace {

Objective objective_of(JsonObject& block, const WrittenObjective& written, const trial::RunnerTraits& runner) {
  const std::string& metric = written.metric;
  const trial::Metric* known = trial::find_metric(metric);
  if (known != nullptr && known->kind == trial::MetricKind::kGoodput) {
    refuse_other_direction(block, metric, known->maximize, written.maximize());
    return read_goodput(block, written, *known, runner);
  }
  for (const char* key : {"noise_scale", "base_batch"}) {
    if (block.has(key)) block.fail(key, fmt::format("is of goodput, not of '{}'", metric), "leave it out");
  }
  if (known == nullptr) return own_objective(block, metric, written.maximize());
  refuse_other_direction(block, metric, known->maximize, written.maximize());
  return {metric, known->maximize, field_of(*known, runner)};
}

}  // namespace

Objective read_objective(const Json* json, const std::string& source, const std::string& pointer,
                         const trial::RunnerTraits& runner) {
  const Json empty = Json::object();
  JsonObject block(json == nullptr ? empty : *json, source, pointer);
  WrittenObjective written;
  objective_block().read(block, written);
  Objective objective = objective_of(block, written, runner);
  objective.run_noise = written.run_noise;
  if (!is_unit(written.unit)) {
    block.fail(
        "unit", fmt::format("'{}' is not a unit", written.unit),
        fmt::format("write {} letters at most, with /, %, _, - or . and no digits, such as \"tok/s\"", kLongestUnit));
  }
  if (!written.unit.empty() && trial::find_metric(written.metric) != nullptr && runner.has_our_units) {
    block.fail("unit", fmt::format("'{}' has its own unit", written.metric), "leave it out");
  }
  objective.unit = written.unit;
  objective.limit = written.limit;
  return objective;
}

Json to_json(const Objective& objective) {
  Json json = {{"metric", objective.metric}, {"direction", direction_text(objective.maximize)}};
  if (const auto& noise = objective.gradient_noise) {
    json["noise_scale"] = json_number(noise->noise_scale);
    json["base_batch"] = json_number(noise->base_batch);
  }
  if (objective.run_noise != kUsualRunNoise) json["run_noise"] = json_number(objective.run_noise);
  if (!objective.unit.empty()) json["unit"] = objective.unit;
  if (objective.limit) json["limit"] = json_number(*objective.limit);
  return json;
}

bool is_unit(const std::string& text) {
  return text.size() <= kLongestUnit && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  std::string_view("/%_-.").find(c) != std::string::npos;
         });
}

namespace {

// Units in which trainers print their speed. Those of a device, "tokens/s/gpu", are left out: they follow from the
// number of ranks, which differs from trial to trial on some clusters.
struct SpeedUnit {
  std::string_view unit;
  std::string_view metric;
  bool maximize;
  bool is_the_metrics;  ///< the unit of the metric itself
};
constexpr std::array kSpeedUnits = {
    SpeedUnit{"tokens/s", "tokens_per_second", true, true},
    SpeedUnit{"tokens/sec", "tokens_per_second", true, true},
    SpeedUnit{"tokens/second", "tokens_per_second", true, true},
    SpeedUnit{"tok/s", "tokens_per_second", true, true},
    SpeedUnit{"tok/sec", "tokens_per_second", true, true},
    SpeedUnit{"samples/s", "throughput", true, true},
    SpeedUnit{"samples/sec", "throughput", true, true},
    SpeedUnit{"samples/second", "throughput", true, true},
    SpeedUnit{"sequences/s", "throughput", true, true},
    SpeedUnit{"seq/s", "throughput", true, true},
    SpeedUnit{"s/step", "latency", false, true},
    SpeedUnit{"s/it", "latency", false, true},
    SpeedUnit{"s/iter", "latency", false, true},
    SpeedUnit{"sec/step", "latency", false, true},
    SpeedUnit{"ms/step", "latency", false, false},
    SpeedUnit{"ms/it", "latency", false, false},
    SpeedUnit{"ms/iter", "latency", false, false},
};

const SpeedUnit* speed_unit_of(const Objective& objective) {
  const auto found = std::find_if(kSpeedUnits.begin(), kSpeedUnits.end(), [&](const SpeedUnit& one) {
    return one.unit == objective.unit && one.maximize == objective.maximize;
  });
  return found == kSpeedUnits.end() ? nullptr : &*found;
}

}  // namespace

const trial::Metric* metric_of(const Objective& objective) {
  if (const trial::Metric* known = trial::find_metric(objective.metric)) return known;
  const SpeedUnit* unit = speed_unit_of(objective);
  return unit == nullptr ? nullptr : trial::find_metric(unit->metric);
}

bool has_unit_of_metric(const Objective& objective) {
  if (trial::find_metric(objective.metric) != nullptr) return true;
  const SpeedUnit* unit = speed_unit_of(objective);
  return unit != nullptr && unit->is_the_metrics;
}

Json objective_schema() { return objective_block().schema(); }

void complete_goodput(Session& session, const JsonObject& root) {
  std::optional<GradientNoise>& noise = session.objective.gradient_noise;
  if (!noise) return;
  if (!session.workload) {
    root.fail("objective/metric", "goodput needs to know the batch, which no session without a workload does",
              "add \"workload\"");
  }
  if (!knows_its_batch(session)) {
    root.fail("objective/metric", "goodput needs to know the batch: there is no parameter micro_batch",
              "add \"micro_batch\" to the space, or \"train_batch_size\" to the workload");
  }
  if (session.workload->train_batch_size) {
    session.warnings.emplace_back(
        "train_batch_size keeps the batch, so goodput ranks as throughput does; leave it out to let the batch vary");
  }
  if (noise->base_batch > 0.0) return;
  if (!session.baseline && !session.workload->train_batch_size) {
    root.fail("objective/base_batch", "is missing, and there is no baseline to take it from",
              "give the sequences of a step of today's training");
  }
  noise->base_batch = static_cast<double>(global_batch(session, session.baseline.value_or(space::Configuration())));
}

}  // namespace krigtune::session
