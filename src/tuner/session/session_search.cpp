// The blocks of the strategies that bayes is compared with.
#include <fmt/format.h>

#include <array>

#include "krigtune/core/text.h"
#include "session/session_blocks.h"

namespace krigtune {
namespace {

template <class Enum, std::size_t count>
using Words = std::array<std::pair<Enum, const char*>, count>;

constexpr Words<GridOrder, 2> kOrders{{{GridOrder::kSeed, "seed"}, {GridOrder::kSession, "session"}}};
constexpr Words<SpaceTuner, 3> kTuners{{{SpaceTuner::kGridSearch, "gridsearch"},
                                        {SpaceTuner::kRandom, "random"},
                                        {SpaceTuner::kModelBased, "model_based"}}};
constexpr std::int64_t kMost = 1'000'000;

template <class Enum, std::size_t count>
const char* word_of(const Words<Enum, count>& words, Enum wanted) {
  for (const auto& [value, word] : words) {
    if (value == wanted) return word;
  }
  return "";
}

template <class Enum, std::size_t count>
Enum read_word(JsonObject& block, const char* key, const Words<Enum, count>& words, Enum fallback) {
  const std::string text = block.text(key, word_of(words, fallback));
  std::vector<std::string> names;
  for (const auto& [value, word] : words) {
    if (text == word) return value;
    names.emplace_back(word);
  }
  block.fail(key, fmt::format("unknown {} '{}'", key, text), suggestion(text, names));
}

int read_count(JsonObject& block, const char* key, int fallback) {
  const std::int64_t count = block.integer(key, fallback);
  if (count < 1 || count > kMost) block.fail(key, "out of range", "write a number from 1 to 1000000");
  return static_cast<int>(count);
}

}  // namespace

GridOptions read_grid(const Json* json, const std::string& source, const std::string& pointer) {
  GridOptions options;
  if (json == nullptr) return options;
  JsonObject block(*json, source, pointer);
  options.order = read_word(block, "order", kOrders, options.order);
  options.prune = block.boolean("prune", options.prune);
  block.finish();
  return options;
}

StagewiseOptions read_stagewise(const Json* json, const std::string& source, const std::string& pointer) {
  StagewiseOptions options;
  if (json == nullptr) return options;
  JsonObject block(*json, source, pointer);
  options.plateau = block.number("plateau", options.plateau);
  options.fast = block.boolean("fast", options.fast);
  options.tuner = read_word(block, "tuner", kTuners, options.tuner);
  options.tuner_trials = read_count(block, "tuner_trials", options.tuner_trials);
  options.early_stopping = read_count(block, "early_stopping", options.early_stopping);
  options.micro_batches = read_count(block, "micro_batches", options.micro_batches);
  block.finish();
  if (!(options.plateau >= 0.0 && options.plateau < 1.0)) {
    block.fail("plateau", "out of range", "write a fraction, as 0.01 for 1 %");
  }
  return options;
}

Json to_json(const GridOptions& options) {
  return {{"order", word_of(kOrders, options.order)}, {"prune", options.prune}};
}

Json to_json(const StagewiseOptions& options) {
  return {{"plateau", json_number(options.plateau)},  {"fast", options.fast},
          {"tuner", word_of(kTuners, options.tuner)}, {"tuner_trials", options.tuner_trials},
          {"early_stopping", options.early_stopping}, {"micro_batches", options.micro_batches}};
}

}  // namespace krigtune
